//! Facts of real graphs: what torch, Core AI and Core ML make of attention, rotary embeddings, masks,
//! caches and f32, and that every format tells the same of one module.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use anelint::facts::{Facts, Field, Record};
use anelint::graph::{NodeKind, Program};

fn read(name: &str) -> Program {
    let path = std::path::Path::new("testdata/cases/out").join(name);
    anelint::readers::read(&path, anelint::readers::ReadOptions::default())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The words of some fields of every record of a fact, in order.
fn words(program: &Program, fact: &str, fields: &[&str]) -> Vec<String> {
    let facts = Facts::new(program);
    let word = |record: &Record, field: &str| match record.field(field) {
        Some(Field::Text(word)) => (*word).to_owned(),
        Some(Field::Int(n)) => n.to_string(),
        Some(Field::Bool(b)) => b.to_string(),
        Some(Field::Label(text)) => text.to_string(),
        Some(other) => panic!("{field}: {other:?}"),
        None => "-".to_owned(),
    };
    program
        .linted()
        .flat_map(|(id, _)| facts.records(id, fact))
        .map(|record| fields.iter().map(|field| word(record, field)).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Checks one module in each of the formats that it is there in.
fn each(stem: &str, suffixes: &[&str], fact: &str, fields: &[&str], expected: &[&str]) {
    for suffix in suffixes {
        let name = format!("{stem}.{suffix}");
        assert_eq!(words(&read(&name), fact, fields), expected, "{fact} of {name}");
    }
}

const TORCH: &[&str] = &["pt2", "decomp.pt2", "aimodel"];

#[test]
fn per_head_attention_has_the_same_axes_in_every_spelling() {
    let fields = &[
        "heads",
        "head-count",
        "layout",
        "softmax-axis",
        "contracted-axis",
        "scores-query-axis",
        "scores-key-axis",
        "mask-layout",
        "mask-hides",
    ];
    let clean = "per-head 2 bc1s 1 1 3 1 matches future";
    each("axes_ok", TORCH, "attention", fields, &[clean, clean]);
    each("axes_ok_mask_in_graph", TORCH, "attention", fields, &[clean, clean]);
    let transposed = "per-head 2 bc1s 1 1 3 1 transposed past";
    each("axes_mask_transposed", TORCH, "attention", fields, &[transposed, transposed]);
    each("axes_mask_transposed_in_graph", TORCH, "attention", fields, &[transposed, transposed]);
    let wrong = "per-head 2 bc1s 3 1 3 1 none none";
    each("axes_softmax", TORCH, "attention", fields, &[wrong, wrong]);
    let input = "per-head 2 bc1s 1 1 3 1 square unknown";
    each("axes_ok_mask_input", TORCH, "attention", fields, &[input, input]);
}

#[test]
fn batched_attention_says_which_axis_its_softmax_misses() {
    let fields = &["heads", "softmax-axis", "contracted-axis"];
    each("axes_softmax_batched", TORCH, "attention", fields, &["fused 2 3"]);
    each("axes_ok_softmax_batched", TORCH, "attention", fields, &["fused 3 3"]);
    each("axes_ok_softmax_transposed", TORCH, "attention", fields, &["fused 2 2"]);
    // A softmax that gates channels is no attention.
    each("axes_ok_gate", TORCH, "attention", fields, &[]);
}

#[test]
fn where_masks_are_told_by_the_keys_they_hide() {
    let fields = &["mask-layout", "mask-hides"];
    each("axes_mask_where", TORCH, "attention", fields, &["transposed past"]);
}

#[test]
fn minus_infinity_is_found_wherever_it_hides() {
    let all = ["pt2", "decomp.pt2", "aimodel"];
    for stem in [
        "neginf_full",
        "neginf_helper",
        "neginf_buffer",
        "neginf_finfo_buffer",
        "neginf_masked_fill",
        "neginf_where_scalars",
        "neginf_bool_buffer",
        "neginf_sdpa",
    ] {
        each(stem, &all, "mask-source", &["kind"], &["neg-inf"]);
    }
    for stem in ["neginf_max_pool", "neginf_no_softmax", "mask_40000", "two_masks_minimum"] {
        each(stem, &all, "mask-source", &["kind"], &[]);
    }
}

#[test]
fn numbers_at_the_edge_of_f16_fall_on_the_right_side() {
    for (stem, kind) in [
        ("mask_edge_65504", "lowest"),
        ("mask_edge_65505", "lowest"),
        ("mask_edge_65519", "lowest"),
        ("mask_edge_65520", "overflow"),
        ("minus_1e9_masked_fill", "overflow"),
        ("two_masks_summed", "sum-overflow"),
        ("bool_mask_added", "bool-added"),
    ] {
        each(stem, &["pt2", "decomp.pt2"], "mask-source", &["kind"], &[kind]);
    }
    // The converter has folded the number: the file holds an infinity.
    each("minus_1e9_masked_fill", &["aimodel"], "mask-source", &["kind"], &["neg-inf"]);
}

#[test]
fn rotary_embeddings_tell_their_table_and_what_they_halve() {
    let fields = &["form", "table"];
    let twice = |word: &'static str| [word, word];
    each("rope_gather", TORCH, "rope", fields, &twice("rotate-half gather"));
    each("rope_gather_embedding", TORCH, "rope", fields, &twice("rotate-half gather"));
    each("rope_trig", TORCH, "rope", fields, &twice("rotate-half trig"));
    each("rope_ok_passed_in", TORCH, "rope", fields, &twice("rotate-half input"));
    each("rope_ok_sine", TORCH, "rope", fields, &[]);
    let halves = &["halves-of", "heads"];
    each("rope_split", TORCH, "rope", halves, &twice("concatenated-heads 2"));
    each("rope_ok_split", TORCH, "rope", halves, &["head 1"; 4]);
}

#[test]
fn a_cached_key_tells_whether_it_was_rotated() {
    let keys = |name: &str| -> Vec<String> {
        let all = words(&read(name), "kv-cache", &["role", "rotated"]);
        all.into_iter().filter(|words| words.starts_with("key")).collect()
    };
    for suffix in TORCH {
        for (stem, rotated) in [
            ("key_raw_returned", "no"),
            ("key_raw_projected", "no"),
            ("key_raw_written", "no"),
            ("key_rotated", "yes"),
            ("key_rotated_joined", "yes"),
            ("key_rotated_later", "after-join"),
        ] {
            let name = format!("{stem}.{suffix}");
            assert_eq!(keys(&name), [format!("key {rotated}")], "{name}");
        }
    }
}

#[test]
fn writes_into_a_cache_tell_where_their_place_comes_from() {
    let fields = &["role", "begin"];
    each("write_position", TORCH, "kv-cache", fields, &["key run-time", "value run-time"]);
    each("write_index_copy", TORCH, "kv-cache", fields, &["key run-time", "value run-time"]);
    each("write_constant", TORCH, "kv-cache", fields, &["key constant", "value constant"]);
    each("write_one_hot", TORCH, "kv-cache", fields, &["key none", "value none"]);
}

#[test]
fn islands_of_f32_tell_their_cause() {
    for (stem, cause) in [
        ("literal_tensor", "literal"),
        ("literal_ones", "literal"),
        ("literal_buffer_f32", "literal"),
        ("literal_mask", "constructor"),
        ("fp32_softmax_float", "upcast"),
        ("fp32_rms_norm", "upcast"),
        ("fp32_table", "weights"),
    ] {
        each(stem, &["pt2", "decomp.pt2"], "f32-island", &["cause"], &[cause]);
    }
    each("fp32_softmax", &["pt2", "decomp.pt2"], "f32-island", &["cause"], &["softmax-dtype"]);
    each("literal_tensor", &["aimodel"], "f32-island", &["cause"], &["literal"]);
    for stem in ["literal_ok_python", "literal_ok_dtype", "fp32_ok_softmax", "fp32_ok_cast_out"] {
        each(stem, TORCH, "f32-island", &["cause"], &[]);
    }
    // A model that nobody has cast has no island: it is one.
    each("fp32_whole_model", TORCH, "f32-island", &["cause"], &[]);
}

#[test]
fn a_symbol_is_named_once_with_its_range() {
    for suffix in ["pt2", "decomp.pt2"] {
        let program = read(&format!("dynamic_sequence.{suffix}"));
        let facts = Facts::new(&program);
        let records: Vec<&Record> =
            program.linted().flat_map(|(id, _)| facts.records(id, "dynamic-symbol")).collect();
        assert_eq!(records.len(), 1, "{suffix}");
        let (id, function) = program.linted().next().unwrap();
        let _ = id;
        assert_eq!(function.node(records[0].anchor).kind, NodeKind::Input);
        assert!(matches!(records[0].field("ops"), Some(Field::Int(n)) if *n > 0));
    }
    assert_eq!(words(&read("dynamic_ok_static.pt2"), "dynamic-symbol", &["symbol"]), [""; 0]);
}

#[test]
fn clean_models_have_no_mask_and_no_island_to_speak_of() {
    for stem in ["clean_block", "clean_decoder", "clean_encoder", "clean_stateful", "clean_vision"]
    {
        for suffix in TORCH {
            let program = read(&format!("{stem}.{suffix}"));
            for fact in ["mask-source", "f32-island"] {
                let field = if fact == "mask-source" { "kind" } else { "cause" };
                assert_eq!(words(&program, fact, &[field]), [""; 0], "{fact} of {stem}.{suffix}");
            }
        }
    }
}

#[test]
fn onnx_tells_of_attention_norms_and_rotary_embeddings_what_torch_tells() {
    let torch = read("../../models/out/llama.pt2");
    let onnx = read("../../models/out/llama.onnx");
    for (fact, fields) in [
        ("attention", &["heads"][..]),
        ("rope", &["form", "halves-of"][..]),
        ("norm", &["kind", "axis"][..]),
    ] {
        let expected = words(&torch, fact, fields);
        assert!(!expected.is_empty(), "{fact}");
        assert_eq!(words(&onnx, fact, fields), expected, "{fact}");
    }
    // Two layers with a silu each; the norms' roots are written as a reciprocal of a root.
    let composed = words(&onnx, "composed", &["kind"]);
    assert_eq!(composed.iter().filter(|kind| *kind == "silu").count(), 2);
    assert_eq!(composed.iter().filter(|kind| *kind == "rsqrt").count(), 5);
}

#[test]
fn a_scaled_dot_product_of_onnx_is_attention_with_a_scale_on_each_side() {
    each("sdpa_causal", &["onnx"], "attention", &["kind", "mask-layout"], &["decomposed matches"]);
    each("neginf_sdpa", &["onnx"], "mask-source", &["kind"], &["neg-inf"]);
}
