//! What holds for every input (S01, 3 and the fast path's promise).

#[path = "../../../fuzz/checks.rs"]
mod checks;

use proptest::prelude::*;
use prowess_format::yaml::{Limits, Mapping, Node, Number, Value, read, read_plain, write};
use prowess_format::{Options, Skill};

/// `PROPTEST_CASES`, or many.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4096)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 _.:#-]{0,24}",
        "\\PC{0,24}",
        any::<String>(),
        "[ \\n\\t\\r|>'\"a:#-]{0,16}",
        prop::sample::select(vec![
            "",
            "yes",
            "No",
            "on",
            "null",
            "~",
            "true",
            "1.0",
            "0x1F",
            "1e3",
            "- a",
            "a: b",
            "? x",
            "[a]",
            "{a: b}",
            "*a",
            "&a b",
            "!t x",
            "2024-01-01",
            "1:30",
            "a #b",
            "#a",
            "---",
            "...",
            "a\nb",
            "a\nb\n",
            "\n",
            " a",
            "a ",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "é",
            "技能",
            "%",
        ])
        .prop_map(str::to_owned),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z][a-z_-]{0,8}", text()]
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|n| format!("{n:?}")),
        prop::sample::select(vec![
            "2.0", "1.10", "007", "0x1F", "0o17", "+1", "1.", ".5", ".inf", "-.INF", ".nan"
        ])
        .prop_map(str::to_owned),
    ]
    .prop_filter_map("a number", |spelling| Number::parse(&spelling))
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        text().prop_map(Value::String),
    ]
    .prop_map(Node::new);
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Node::new),
            mapping_of(inner).prop_map(Node::new),
        ]
    })
}

fn mapping_of(node: impl Strategy<Value = Node>) -> impl Strategy<Value = Mapping> {
    prop::collection::vec((key(), node), 0..6).prop_map(|entries| {
        let mut mapping = Mapping::new();
        for (key, node) in entries {
            mapping.set(key, node.value);
        }
        mapping
    })
}

/// Lines that look like frontmatter, most of them in or near the plain subset.
fn lines() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        4 => "[A-Za-z0-9][A-Za-z0-9 .,:#'\"()*-]{0,20}",
        2 => prop_oneof!["\"[^\"\\\\\\n]{0,10}\"", "'[^'\\n]{0,10}'"],
        2 => "\\[[a-z]{1,4}(, ?[a-z0-9./-]{1,4}){0,3}\\]",
        1 => text(),
    ];
    let line = prop_oneof![
        6 => ("[a-z][a-z_-]{0,6}", value.clone()).prop_map(|(key, value)| format!("{key}: {value}")),
        2 => "[a-z]{1,4}:",
        3 => ("( {0,4})", "[a-z]{1,4}", value.clone()).prop_map(|(i, k, v)| format!("{i}{k}: {v}")),
        3 => ("( {0,4})", value).prop_map(|(indent, value)| format!("{indent}- {value}")),
        1 => Just(String::new()),
        1 => "# [ -~]{0,8}",
    ];
    (prop::collection::vec(line, 1..8), prop::sample::select(vec!["\n", "\r\n"]))
        .prop_map(|(lines, ending)| lines.join(ending) + ending)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn what_is_written_reads_back_the_same(mapping in mapping_of(node())) {
        let written = write(&mapping);
        let reading = read(&written, 0, &Limits::default());
        let reading = reading.map_err(|error| TestCaseError::fail(format!("{error:?}\n{written}")))?;
        prop_assert_eq!(&reading.mapping, &mapping, "written as\n{}", written);
        prop_assert!(reading.notes.is_empty());
    }

    #[test]
    fn a_skill_reads_back_the_same(
        mapping in mapping_of(node()),
        name in "[a-z]{1,8}(-[a-z]{1,8})?",
        description in "[A-Za-z].{0,40}",
        body in any::<String>(),
    ) {
        let mut mapping = mapping;
        mapping.remove("id");
        mapping.set("name", name.clone());
        mapping.set("description", description);
        let text = format!("---\n{}---\n{body}", write(&mapping));
        let skill = Skill::parse(&text, &Options::new()).skill.expect("is read");
        prop_assert_eq!(skill.name(), name);
        prop_assert_eq!(&skill.body, &body);
        prop_assert_eq!(skill.frontmatter.raw(), &mapping);
        let again = Skill::parse(&skill.to_markdown(), &Options::new()).skill;
        prop_assert_eq!(again, Some(skill));
    }

    #[test]
    fn the_fast_reader_agrees_with_the_full_one(text in lines()) {
        checks::plain(text.as_bytes());
    }

    #[test]
    fn nothing_panics(data in any::<Vec<u8>>(), text in lines()) {
        checks::split(&data);
        checks::frontmatter(&data);
        checks::frontmatter(format!("---\n{text}---\nbody").as_bytes());
        checks::arguments(&data);
    }
}

/// The property above would hold for a reader that accepts nothing.
#[test]
fn the_fast_reader_accepts_what_skills_are_written_in() {
    let limits = Limits::default();
    for text in [
        "name: a\ndescription: Does b. Use when c.\n",
        "name: a\r\ndescription: d\r\n",
        "name: \"a\"\ndescription: 'd — e’s 技能'\n\n# note\nlicense: MIT\n",
        "name: a\nallowed-tools: Read Bash(git:*)\nmetadata:\n  author: me\n  version: \"1.0\"\n",
        "name: a\nallowed-tools: [Read, Write]\ntags:\n  - x\n  - y z\nother:\n- q\nempty:\nlast: 1\n",
        "description: https://example.com/x#y and a:b\n",
    ] {
        assert!(read_plain(text, 0, &limits).is_some(), "{text}");
    }
    for text in [
        "",
        "- a\n",
        "a: b: c\n",
        "a: b\na: c\n",
        "a: |\n  b\n",
        "a: b #c\n",
        "a: &x b\n",
        "a:\n  b:\n    c: d\n",
        "a: b\n  c\n",
        "a: \"b\\n\"\n",
        "a:\tb\n",
    ] {
        assert!(read_plain(text, 0, &limits).is_none(), "{text}");
    }
}

/// Texts that need no escapes in the form that their author chose need none in ours.
#[test]
fn writing_does_not_outgrow_the_limits() {
    for piece in ["\"", "'", "\\", "\"'", "# ", "a: "] {
        let mut mapping = Mapping::new();
        mapping.set("name", "a");
        mapping.set("description", format!("x{}x", piece.repeat(40_000 / piece.len())));
        let written = write(&mapping);
        assert!(written.len() < 64 * 1024, "{piece}: {}", written.len());
        assert_eq!(read(&written, 0, &Limits::default()).unwrap().mapping, mapping, "{piece}");
    }
}
