//! Limits, each tested at its edge (S01, 6).

use prowess_format::yaml::{Limits, YamlError, read, read_full};
use prowess_format::{Options, Parsed, Skill};

fn parse(text: &str) -> Parsed {
    Skill::parse(text, &Options::new().in_folder("a"))
}

fn codes(parsed: &Parsed) -> Vec<&'static str> {
    parsed.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect()
}

fn error(text: &str) -> YamlError {
    read(text, 0, &Limits::default()).expect_err("must be refused").0
}

#[test]
fn frontmatter_of_64_kib_is_read_and_one_byte_more_is_refused() {
    let limit = 64 * 1024;
    let head = "name: a\ndescription: d\nlicense: ";
    let text = |bytes: usize| format!("---\n{head}{}\n---\nx", "x".repeat(bytes - head.len() - 1));
    assert!(parse(&text(limit)).skill.is_some());
    let refused = parse(&text(limit + 1));
    assert_eq!(codes(&refused), ["frontmatter-too-large"]);
    assert_eq!(
        refused.diagnostics[0].message,
        "SKILL.md frontmatter is 65537 bytes long, the limit is 65536"
    );
    let raised = Options::new().with_limits(Limits::default().with_frontmatter_bytes(limit + 1));
    assert!(Skill::parse(&text(limit + 1), &raised).skill.is_some());
}

#[test]
fn lists_nest_32_deep_and_no_deeper() {
    // The mapping itself is the first level.
    let flow = |depth: usize| format!("k: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&flow(31), 0, &Limits::default()).is_ok());
    assert_eq!(error(&flow(32)), YamlError::TooDeep(32));
    assert_eq!(error(&flow(20_000)), YamlError::TooDeep(32));
    let block = |depth: usize| {
        (0..depth).map(|level| format!("{}k:\n", " ".repeat(level))).collect::<String>()
    };
    assert!(read(&block(32), 0, &Limits::default()).is_ok());
    assert_eq!(error(&block(33)), YamlError::TooDeep(32));
    assert_eq!(codes(&parse(&format!("---\n{}---\n", flow(32)))), ["yaml-too-complex"]);
}

#[test]
fn ten_thousand_values_are_read_and_one_more_is_refused() {
    // The root, the key and the list are three of them.
    let list = |items: usize| format!("k: [{}]\n", vec!["a"; items].join(","));
    assert!(read(&list(9_997), 0, &Limits::default()).is_ok());
    assert_eq!(error(&list(9_998)), YamlError::TooManyNodes(10_000));
}

#[test]
fn aliases_have_a_budget() {
    // The anchor costs 64 + 36 bytes, and so does each alias: 10 of them are 1,000 bytes.
    let text = |aliases: usize| {
        let list = vec!["*a"; aliases].join(", ");
        format!("k: &a {}\nl: [{list}]\n", "x".repeat(36))
    };
    let limits = Limits::default().with_alias_bytes(1_000);
    assert!(read_full(&text(9), 0, &limits).is_ok());
    assert_eq!(read_full(&text(10), 0, &limits).unwrap_err().0, YamlError::AliasBudget(1_000));
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(bomb.len() < 700);
    assert_eq!(error(&bomb), YamlError::AliasBudget(64 * 1024));
    assert_eq!(error("a: &a [*a]\n"), YamlError::RecursiveAlias);
    assert_eq!(error("a: &a {b: {c: *a}}\n"), YamlError::RecursiveAlias);
}

#[test]
fn duplicate_keys_are_refused_at_every_level() {
    for text in [
        "name: a\nname: b\ndescription: d\n",
        "name: a\ndescription: d\nmetadata:\n  x: 1\n  x: 2\n",
        "name: a\ndescription: d\nmetadata: {x: 1, \"x\": 2}\n",
        "name: a\ndescription: d\n'name': b\n",
    ] {
        let parsed = parse(&format!("---\n{text}---\nx"));
        assert_eq!(codes(&parsed), ["duplicate-key"], "{text}");
        assert!(parsed.skill.is_none());
    }
    let many: String = (0..300).map(|at| format!("k{at}: v\n")).collect();
    assert!(read(&many, 0, &Limits::default()).is_ok());
    assert!(matches!(error(&format!("{many}k7: again\n")), YamlError::DuplicateKey { .. }));
    let parsed = parse("---\nname: a\n\nname: b\n---\n");
    assert_eq!(parsed.diagnostics[0].message, "The key 'name' stands twice, first on line 2");
    assert_eq!(parsed.diagnostics[0].span.unwrap().line, 4);
}

#[test]
fn keys_must_be_text() {
    assert_eq!(error("[a, b]: c\n"), YamlError::ComplexKey);
    assert_eq!(error("? {a: b}\n: c\n"), YamlError::ComplexKey);
    let reading = read("1: one\ntrue: yes\n~: nil\n", 0, &Limits::default()).unwrap();
    let keys: Vec<&str> = reading.mapping.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["1", "true", "~"]);
}

#[test]
fn a_second_document_is_refused() {
    assert!(matches!(error("a: b\n...\nc: d\n"), YamlError::Syntax(_)));
}
