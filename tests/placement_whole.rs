//! Whole models in the shapes that people deploy, written as Core ML programs without their weights:
//! everything but the work on token ids may run on the Neural Engine, and is predicted to.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write;
use std::process::Command;

use serde_json::Value;

/// Writes a program in MIL text. Values are `(name, dims)`.
struct Mil {
    text: String,
    count: usize,
}

#[derive(Clone)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
}

fn list(dims: &[u64]) -> String {
    dims.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn ints(numbers: &[u64]) -> String {
    format!("tensor<int32, [{}]>([{}])", numbers.len(), list(numbers))
}

impl Mil {
    fn new(inputs: &str) -> Mil {
        let text = format!(
            "program(1.3)\n[buildInfo = dict<string, string>({{{{\"coremlc-version\", \"3600\"}}}})]\n{{\n    \
             func main<ios18>({inputs}) {{\n"
        );
        Mil { text, count: 0 }
    }

    fn name(&mut self, op: &str) -> String {
        self.count += 1;
        format!("{op}_{}", self.count)
    }

    fn op(&mut self, op: &str, arguments: &str, kind: &str, dims: &[u64]) -> Tensor {
        let name = self.name(op);
        let dims_text = list(dims);
        let _ = writeln!(
            self.text,
            "            tensor<{kind}, [{dims_text}]> {name} = {op}({arguments})[name = string(\"{name}\")];"
        );
        Tensor { name, dims: dims.to_vec() }
    }

    fn f16(&mut self, op: &str, arguments: &str, dims: &[u64]) -> Tensor {
        self.op(op, arguments, "fp16", dims)
    }

    fn weight(&mut self, dims: &[u64]) -> String {
        let name = self.name("weight");
        let dims = list(dims);
        let _ = writeln!(
            self.text,
            "            tensor<fp16, [{dims}]> {name} = const()[name = string(\"{name}\"), val = tensor<fp16, [{dims}]>(BLOBFILE(path = string(\"@model_path/weights/weight.bin\"), offset = uint64(64)))];"
        );
        name
    }

    fn linear(&mut self, x: &Tensor, to: u64) -> Tensor {
        let from = *x.dims.last().unwrap();
        let (weight, bias) = (self.weight(&[to, from]), self.weight(&[to]));
        let mut dims = x.dims.clone();
        *dims.last_mut().unwrap() = to;
        self.f16("linear", &format!("bias = {bias}, weight = {weight}, x = {}", x.name), &dims)
    }

    fn unary(&mut self, op: &str, x: &Tensor, more: &str) -> Tensor {
        self.f16(op, &format!("{more}x = {}", x.name), &x.dims)
    }

    fn add(&mut self, a: &Tensor, b: &Tensor) -> Tensor {
        self.f16("add", &format!("x = {}, y = {}", a.name, b.name), &a.dims)
    }

    fn norm(&mut self, x: &Tensor) -> Tensor {
        let width = *x.dims.last().unwrap();
        let (gamma, beta) = (self.weight(&[width]), self.weight(&[width]));
        let axes = "tensor<int32, [1]>([-1])";
        self.unary(
            "layer_norm",
            x,
            &format!("axes = {axes}, beta = {beta}, epsilon = fp16(0x1p-16), gamma = {gamma}, "),
        )
    }

    fn reshape(&mut self, x: &Tensor, dims: &[u64]) -> Tensor {
        self.f16("reshape", &format!("shape = {}, x = {}", ints(dims), x.name), dims)
    }

    fn transpose(&mut self, x: &Tensor, perm: &[u64]) -> Tensor {
        let dims: Vec<u64> = perm.iter().map(|&at| x.dims[at as usize]).collect();
        self.f16("transpose", &format!("perm = {}, x = {}", ints(perm), x.name), &dims)
    }

    /// A transformer layer, norms before or after.
    fn layer(&mut self, x: &Tensor, heads: u64, inner: u64, pre: bool) -> Tensor {
        let [batch, tokens, width] = x.dims[..] else { panic!("rank 3") };
        let head = width / heads;
        let input = if pre { self.norm(x) } else { x.clone() };
        let split = |mil: &mut Mil| {
            let projected = mil.linear(&input, width);
            let split = mil.reshape(&projected, &[batch, tokens, heads, head]);
            mil.transpose(&split, &[0, 2, 1, 3])
        };
        let (q, k, v) = (split(self), split(self), split(self));
        let scores = self.f16(
            "matmul",
            &format!(
                "transpose_x = bool(false), transpose_y = bool(true), x = {}, y = {}",
                q.name, k.name
            ),
            &[batch, heads, tokens, tokens],
        );
        let scaled =
            self.f16("mul", &format!("x = {}, y = fp16(0x1p-3)", scores.name), &scores.dims);
        let attention = self.unary("softmax", &scaled, "axis = int32(-1), ");
        let mixed = self.f16(
            "matmul",
            &format!(
                "transpose_x = bool(false), transpose_y = bool(false), x = {}, y = {}",
                attention.name, v.name
            ),
            &[batch, heads, tokens, head],
        );
        let mixed = self.transpose(&mixed, &[0, 2, 1, 3]);
        let joined = self.reshape(&mixed, &[batch, tokens, width]);
        let out = self.linear(&joined, width);
        let mut x = self.add(x, &out);
        if !pre {
            x = self.norm(&x);
        }
        let input = if pre { self.norm(&x) } else { x.clone() };
        let hidden = self.linear(&input, inner);
        let hidden = self.unary("gelu", &hidden, "mode = string(\"EXACT\"), ");
        let out = self.linear(&hidden, width);
        let x = self.add(&x, &out);
        if pre { x } else { self.norm(&x) }
    }

    /// A convolution over NCHW, `same` padding for odd kernels.
    fn conv(&mut self, x: &Tensor, to: u64, kernel: u64, stride: u64, groups: u64) -> Tensor {
        let [n, from, height, width] = x.dims[..] else { panic!("rank 4") };
        let weight = self.weight(&[to, from / groups, kernel, kernel]);
        let pad = if kernel == stride { 0 } else { kernel / 2 };
        let size = |extent: u64| (extent + 2 * pad - kernel) / stride + 1;
        let arguments = format!(
            "dilations = {}, groups = int32({groups}), pad = {}, pad_type = string(\"custom\"), strides = {}, weight = {weight}, x = {}",
            ints(&[1, 1]),
            ints(&[pad; 4]),
            ints(&[stride; 2]),
            x.name
        );
        self.f16("conv", &arguments, &[n, to, size(height), size(width)])
    }

    fn mean(&mut self, x: &Tensor, axes: &[u64], keep: bool) -> Tensor {
        let dims: Vec<u64> = x
            .dims
            .iter()
            .enumerate()
            .filter(|(at, _)| keep || !axes.contains(&(*at as u64)))
            .map(|(at, &dim)| if axes.contains(&(at as u64)) { 1 } else { dim })
            .collect();
        let axes = ints(axes);
        self.f16(
            "reduce_mean",
            &format!("axes = {axes}, keep_dims = bool({keep}), x = {}", x.name),
            &dims,
        )
    }

    /// The placement of the program, as JSON.
    fn place(mut self, output: &Tensor) -> Value {
        let _ = writeln!(self.text, "        }} -> ({});\n}}", output.name);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.mil");
        std::fs::write(&path, self.text).unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_anelint"))
            .args(["placement", path.to_str().unwrap(), "--format", "json"])
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let mut json: Value = serde_json::from_slice(&done.stdout).unwrap();
        json["inputs"][0]["functions"][0].take()
    }
}

/// Ops that are not eligible, and ops that are and would yet run elsewhere.
fn off(function: &Value) -> (Vec<String>, Vec<String>) {
    let ops = function["ops"].as_array().unwrap();
    let name = |op: &&Value| op["node"].as_str().unwrap().to_owned();
    let judged = |op: &&Value| op["eligible"] != true;
    let left = |op: &&Value| op["eligible"] == true && op["predicted"] != "neural-engine";
    (
        ops.iter().filter(judged).map(|op| name(&op)).collect(),
        ops.iter().filter(left).map(|op| name(&op)).collect(),
    )
}

/// All of it may run on the Neural Engine, and would.
fn all_on(function: &Value) {
    assert_eq!(off(function), (Vec::new(), Vec::new()));
    assert_eq!(function["regions"].as_array().unwrap().len(), 1);
}

fn input(dims: &[u64]) -> (Mil, Tensor) {
    let text = format!("tensor<fp16, [{}]> x0", list(dims));
    (Mil::new(&text), Tensor { name: "x0".into(), dims: dims.to_vec() })
}

#[test]
fn of_a_bert_only_the_work_on_token_ids_leaves() {
    let (batch, tokens, width) = (16, 128, 768);
    let mut mil = Mil::new(&format!("tensor<int32, [{batch}, {tokens}]> ids"));
    let table = mil.weight(&[30_522, width]);
    let positions = mil.weight(&[1, tokens, width]);
    let ids = mil.op("cast", "dtype = string(\"int16\"), x = ids", "int16", &[batch, tokens]);
    let rows = mil.f16(
        "gather",
        &format!(
            "axis = int32(0), batch_dims = int32(0), indices = {}, validate_indices = bool(false), x = {table}",
            ids.name
        ),
        &[batch, tokens, width],
    );
    let x = mil.f16("add", &format!("x = {}, y = {positions}", rows.name), &rows.dims);
    let mut x = mil.norm(&x);
    for _ in 0..12 {
        x = mil.layer(&x, 12, 3072, false);
    }
    let function = mil.place(&x);
    let (not_eligible, left) = off(&function);
    assert_eq!(not_eligible, [ids.name, rows.name]);
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(function["regions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_vision_transformer_stays() {
    let (mut mil, x) = input(&[1, 3, 224, 224]);
    let patches = mil.conv(&x, 768, 16, 16, 1);
    let flat = mil.reshape(&patches, &[1, 768, 196]);
    let mut x = mil.transpose(&flat, &[0, 2, 1]);
    let positions = mil.weight(&[1, 196, 768]);
    x = mil.f16("add", &format!("x = {}, y = {positions}", x.name), &x.dims.clone());
    for _ in 0..12 {
        x = mil.layer(&x, 12, 3072, true);
    }
    let x = mil.norm(&x);
    let pooled = mil.mean(&x, &[1], false);
    all_on(&mil.place(&pooled));
}

#[test]
fn the_encoder_of_a_speech_model_stays() {
    let (mut mil, x) = input(&[1, 80, 1, 3000]);
    let x = mil.conv_1d(&x, 384, 1);
    let x = mil.unary("gelu", &x, "mode = string(\"EXACT\"), ");
    let x = mil.conv_1d(&x, 384, 2);
    let x = mil.unary("gelu", &x, "mode = string(\"EXACT\"), ");
    let flat = mil.reshape(&x, &[1, 384, 1500]);
    let mut x = mil.transpose(&flat, &[0, 2, 1]);
    for _ in 0..4 {
        x = mil.layer(&x, 6, 1536, true);
    }
    let x = mil.norm(&x);
    all_on(&mil.place(&x));
}

impl Mil {
    /// A convolution of width 3 along the last axis.
    fn conv_1d(&mut self, x: &Tensor, to: u64, stride: u64) -> Tensor {
        let weight = self.weight(&[to, x.dims[1], 1, 3]);
        let arguments = format!(
            "dilations = {}, groups = int32(1), pad = {}, pad_type = string(\"custom\"), strides = {}, weight = {weight}, x = {}",
            ints(&[1, 1]),
            ints(&[0, 0, 1, 1]),
            ints(&[1, stride]),
            x.name
        );
        self.f16("conv", &arguments, &[1, to, 1, x.dims[3] / stride])
    }
}

#[test]
fn a_residual_network_stays() {
    let (mut mil, x) = input(&[1, 3, 224, 224]);
    let x = mil.conv(&x, 64, 7, 2, 1);
    let x = mil.unary("relu", &x, "");
    let mut x = mil.f16(
        "max_pool",
        &format!(
            "ceil_mode = bool(false), kernel_sizes = {}, pad = {}, pad_type = string(\"custom\"), strides = {}, x = {}",
            ints(&[3, 3]),
            ints(&[1; 4]),
            ints(&[2, 2]),
            x.name
        ),
        &[1, 64, 56, 56],
    );
    for (blocks, width) in [(3, 64), (4, 128), (6, 256), (3, 512)] {
        for block in 0..blocks {
            let stride = if block == 0 && width > 64 { 2 } else { 1 };
            let y = mil.conv(&x, width, 1, 1, 1);
            let y = mil.unary("relu", &y, "");
            let y = mil.conv(&y, width, 3, stride, 1);
            let y = mil.unary("relu", &y, "");
            let y = mil.conv(&y, 4 * width, 1, 1, 1);
            let skip = match (block, stride) {
                (0, 2) => mil.strided(&x, 4 * width),
                (0, _) => mil.conv(&x, 4 * width, 1, 1, 1),
                _ => x.clone(),
            };
            let y = mil.add(&y, &skip);
            x = mil.unary("relu", &y, "");
        }
    }
    let x = mil.mean(&x, &[2, 3], false);
    let x = mil.linear(&x, 1000);
    all_on(&mil.place(&x));
}

impl Mil {
    /// A pointwise convolution that takes every second place.
    fn strided(&mut self, x: &Tensor, to: u64) -> Tensor {
        let weight = self.weight(&[to, x.dims[1], 1, 1]);
        let arguments = format!(
            "dilations = {}, groups = int32(1), pad = {}, pad_type = string(\"valid\"), strides = {}, weight = {weight}, x = {}",
            ints(&[1, 1]),
            ints(&[0; 4]),
            ints(&[2, 2]),
            x.name
        );
        self.f16("conv", &arguments, &[1, to, x.dims[2] / 2, x.dims[3] / 2])
    }

    /// x · relu6(x + 3) / 6.
    fn hard_swish(&mut self, x: &Tensor) -> Tensor {
        let gate = self.unary("sigmoid_hard", x, "alpha = fp16(0x1.554p-3), beta = fp16(0x1p-1), ");
        self.f16("mul", &format!("x = {}, y = {}", x.name, gate.name), &x.dims)
    }
}

#[test]
fn a_mobile_network_stays() {
    let (mut mil, x) = input(&[1, 3, 224, 224]);
    let x = mil.conv(&x, 16, 3, 2, 1);
    let mut x = mil.hard_swish(&x);
    // Kernel, expanded width, width, squeeze, stride: the large variant.
    for (kernel, inner, width, squeeze, stride) in [
        (3, 16, 16, false, 1),
        (3, 64, 24, false, 2),
        (3, 72, 24, false, 1),
        (5, 72, 40, true, 2),
        (5, 120, 40, true, 1),
        (3, 240, 80, false, 2),
        (3, 200, 80, false, 1),
        (3, 480, 112, true, 1),
        (5, 672, 160, true, 2),
        (5, 960, 160, true, 1),
    ] {
        let y = mil.conv(&x, inner, 1, 1, 1);
        let y = mil.hard_swish(&y);
        let y = mil.conv(&y, inner, kernel, stride, inner);
        let mut y = mil.hard_swish(&y);
        if squeeze {
            let gate = mil.mean(&y, &[2, 3], true);
            let gate = mil.conv(&gate, inner / 4, 1, 1, 1);
            let gate = mil.unary("relu", &gate, "");
            let gate = mil.conv(&gate, inner, 1, 1, 1);
            let gate =
                mil.unary("sigmoid_hard", &gate, "alpha = fp16(0x1.554p-3), beta = fp16(0x1p-1), ");
            y = mil.f16("mul", &format!("x = {}, y = {}", y.name, gate.name), &y.dims.clone());
        }
        let y = mil.conv(&y, width, 1, 1, 1);
        x = if stride == 1 && x.dims[1] == width { mil.add(&x, &y) } else { y };
    }
    let x = mil.mean(&x, &[2, 3], false);
    let x = mil.linear(&x, 1000);
    all_on(&mil.place(&x));
}
