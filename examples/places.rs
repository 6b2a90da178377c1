#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, missing_docs)]
use anelint::findings::python::Pattern;
use anelint::findings::source::{PlaceFile, SourceMap, SourceOptions, SourceRule};
use anelint::graph::NodeKind;
use anelint::readers::{ReadOptions, read};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let find: Vec<Pattern> = std::env::var("FIND")
        .ok()
        .iter()
        .flat_map(|s| s.split('|').map(|p| Pattern::parse(p).unwrap()).collect::<Vec<_>>())
        .collect();
    let rule = SourceRule { find, helper: std::env::var("FIND").is_ok() };
    for path in &args {
        let program = match read(path.as_ref(), ReadOptions::default()) {
            Ok(p) => p,
            Err(e) => {
                println!("{path}: {e}");
                continue;
            }
        };
        let options = SourceOptions {
            working_folder: std::env::current_dir().unwrap(),
            ..Default::default()
        };
        let map = SourceMap::new(&program, options);
        let (mut exact, mut line, mut none) = (0, 0, 0);
        println!("== {path}");
        for (fid, f) in program.linted() {
            for (id, node) in f.nodes().filter(|(_, n)| n.kind == NodeKind::Op) {
                let place = map.place(0, &rule, fid, id, &[]);
                let text = match &place.spot {
                    None => {
                        none += 1;
                        "-".to_owned()
                    }
                    Some(s) => {
                        if s.exact {
                            exact += 1
                        } else {
                            line += 1
                        }
                        match &s.file {
                            PlaceFile::Recorded { file, .. } => {
                                format!("recorded {file}:{}", s.span.start.line)
                            }
                            PlaceFile::Found(file) => {
                                let a = file.byte_of(s.span.start).unwrap();
                                let b = file.byte_of(s.span.end).unwrap_or(a);
                                format!(
                                    "{}:{}:{} {}{} {}",
                                    file.path().file_name().unwrap().to_string_lossy(),
                                    s.span.start.line,
                                    s.span.start.column,
                                    if s.exact { "EXACT" } else { "line" },
                                    if s.stale { " stale" } else { "" },
                                    file.text()[a..b].replace('\n', "⏎")
                                )
                            }
                        }
                    }
                };
                let related: Vec<String> = place
                    .related
                    .iter()
                    .map(|(s, w)| format!("{w}@{}", s.span.start.line))
                    .collect();
                println!(
                    "  {:22} {:18} {text} {} {}",
                    program.text(node.name),
                    node.op.name(),
                    related.join(","),
                    place.notes.join(";")
                );
            }
        }
        println!("  exact {exact} line {line} none {none}");
    }
}
