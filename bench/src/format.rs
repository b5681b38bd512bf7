//! Parsing and validating frontmatter, against YAML libraries that only parse.

use std::hint::black_box;

use anyhow::{Result, ensure};
use prowess_format::{Options, Skill};

use crate::measure::{medians, python};
use crate::results::Row;

/// Frontmatter of the usual kind, 400 bytes.
const FRONTMATTER: &str = "\
name: pdf-forms
description: Fill, read and merge PDF forms. Use this skill whenever the user mentions a PDF form, wants fields listed, filled or flattened, or asks for several documents to become one file.
license: Apache-2.0
compatibility: Needs python3 and the package pypdf 5.4
allowed-tools: Read Write Bash(python3 scripts/*)
metadata:
  author: docs team
  version: \"1.4.0\"
  title: PDF forms
";

const BODY: &str = "\n# PDF forms\n\n1. List the fields.\n2. Fill them.\n";

/// Seconds per `yaml.safe_load`, then per load with the C loader, medians of repeated runs.
const PYYAML: &str = "
import statistics, sys, timeit, yaml
text = sys.argv[1]
def median(load, number):
    return statistics.median(timeit.repeat(load, number=number, repeat=9)) / number
print(median(lambda: yaml.safe_load(text), 100))
print(median(lambda: yaml.load(text, Loader=yaml.CSafeLoader), 500))
";

pub(crate) fn run() -> Result<Vec<Row>> {
    ensure!(FRONTMATTER.len() == 400, "the frontmatter has {} bytes", FRONTMATTER.len());
    let text = format!("---\n{FRONTMATTER}---\n{BODY}");
    let options = Options::new().in_folder("pdf-forms");
    let parsed = Skill::parse(&text, &options);
    ensure!(parsed.skill.is_some() && parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);

    let [ours, events, value] = medians([
        &|| {
            black_box(Skill::parse(black_box(&text), &options));
        },
        &|| {
            let parser = granit_parser::Parser::new_from_str(black_box(FRONTMATTER));
            for event in parser {
                let _ = black_box(event);
            }
        },
        &|| {
            let value = serde_saphyr::from_str::<serde_json::Value>(black_box(FRONTMATTER));
            let _ = black_box(value);
        },
    ]);

    let detail = |peer: f64| format!("{} to {}", time(ours), time(peer));
    let library = "parse + full validation, to the YAML library's events alone (granit-parser)";
    let serde = "parse + full validation, to the YAML library into a value (serde-saphyr)";
    let mut rows = vec![
        Row::at_most(library, ours / events, 0.5, &detail(events)),
        Row::at_most(serde, ours / value, 0.5, &detail(value)),
    ];
    let safe_load = "PyYAML `safe_load` to parse + full validation";
    let c_loader = "PyYAML C loader to parse + full validation";
    match python(PYYAML, FRONTMATTER).as_deref() {
        Ok([python, c]) => {
            rows.push(Row::at_least(safe_load, python / ours, 100.0, &detail(*python)));
            rows.push(Row::at_least(c_loader, c / ours, 10.0, &detail(*c)));
        }
        other => {
            let why = format!("no PyYAML: {other:?}").replace('\n', " ");
            rows.push(Row::not_measured(safe_load, "≥ 100×", &why));
            rows.push(Row::not_measured(c_loader, "≥ 10×", &why));
        }
    }
    Ok(rows)
}

fn time(seconds: f64) -> String {
    format!("{:.2} µs", seconds * 1e6)
}
