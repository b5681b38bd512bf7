//! Every shape of `SKILL.md` in circulation (S01, 2) and the types that its values keep (S01, 4).

use prowess_format::yaml::{Node, Value};
use prowess_format::{Code, Level, Options, Parsed, Profile, Skill};

fn parse(text: &str) -> Parsed {
    Skill::parse(text, &Options::new().in_folder("my-skill"))
}

fn skill(text: &str) -> Skill {
    let parsed = parse(text);
    parsed.skill.unwrap_or_else(|| panic!("not loaded: {:#?}", parsed.diagnostics))
}

/// What was found, except the remark that a field is not portable.
fn codes(parsed: &Parsed) -> Vec<&'static str> {
    let codes = parsed.diagnostics.iter().map(|diagnostic| diagnostic.code);
    codes.filter(|code| *code != Code::NotPortable).map(Code::as_str).collect()
}

fn value<'a>(skill: &'a Skill, key: &str) -> &'a Value {
    &skill.frontmatter.raw().get(key).unwrap_or_else(|| panic!("no {key}")).value
}

const MINIMAL: &str = "---\nname: my-skill\ndescription: A test skill\n---\n# My Skill\n";

#[test]
fn reads_the_minimal_skill_without_a_word() {
    let parsed = parse(MINIMAL);
    assert_eq!(parsed.diagnostics, []);
    let skill = parsed.skill.unwrap();
    assert_eq!(skill.name(), "my-skill");
    assert_eq!(skill.description(), "A test skill");
    assert_eq!(skill.body, "# My Skill\n");
}

#[test]
fn reads_a_byte_order_mark_with_a_warning() {
    let parsed = parse(&format!("\u{feff}{MINIMAL}"));
    assert_eq!(codes(&parsed), ["byte-order-mark"]);
    assert_eq!(parsed.skill.unwrap().name(), "my-skill");
}

#[test]
fn reads_crlf_and_keeps_it_in_the_body() {
    let parsed = parse(&MINIMAL.replace('\n', "\r\n"));
    assert_eq!(codes(&parsed), [""; 0]);
    let skill = parsed.skill.unwrap();
    assert_eq!(skill.description(), "A test skill");
    assert_eq!(skill.body, "# My Skill\r\n");
}

#[test]
fn reads_leading_blank_lines_with_a_warning() {
    let parsed = parse(&format!("\n  \n{MINIMAL}"));
    assert_eq!(codes(&parsed), ["leading-blank-lines"]);
    assert!(parsed.skill.is_some());
}

#[test]
fn reads_frontmatter_that_ends_at_the_end_of_the_file() {
    let skill = skill("---\nname: my-skill\ndescription: d\n---");
    assert_eq!(skill.body, "");
}

#[test]
fn fences_may_have_trailing_blanks() {
    assert_eq!(skill("--- \nname: my-skill\ndescription: d\n---\t \nbody").body, "body");
}

#[test]
fn a_fence_is_a_whole_line() {
    let text = "---\nname: my-skill\ndescription: a --- b\n  ---\n  c\nlicense: x---\n---\nbody --- \n---\nrest";
    let skill = skill(text);
    assert_eq!(skill.description(), "a --- b --- c");
    assert_eq!(skill.frontmatter.license(), Some("x---"));
    assert_eq!(skill.body, "body --- \n---\nrest");
}

#[test]
fn four_hyphens_are_no_fence() {
    assert_eq!(codes(&parse("----\nname: a\ndescription: d\n----\n")), ["missing-frontmatter"]);
    let skill = skill("---\nname: my-skill\ndescription: |\n  a\n  ----\n---\nb");
    assert_eq!(skill.description(), "a\n----");
    let unclosed = parse("---\nname: a\ndescription: d\n----\n");
    assert_eq!(codes(&unclosed), ["unclosed-frontmatter"]);
}

#[test]
fn a_fence_further_down_opens_nothing() {
    for text in ["text\n---\nname: a\ndescription: d\n---\n", "\ntext\n---\n---\n", "", "\n \n"] {
        let parsed = parse(text);
        assert_eq!(codes(&parsed), ["missing-frontmatter"], "{text:?}");
    }
    for text in ["---", "---\n", "\n---", "--- \nname: a"] {
        assert_eq!(codes(&parse(text)), ["unclosed-frontmatter"], "{text:?}");
    }
}

#[test]
fn keeps_tabs_and_every_byte_of_the_body() {
    let body = "\n\n\tif x:\r\n\t\ty\t# tab\n\u{0}\u{7f}\u{feff}--- \t\n  trailing  \n\n\n";
    let skill = skill(&format!("---\nname: my-skill\ndescription: d\n---\n{body}"));
    assert_eq!(skill.body, body);
}

#[test]
fn repairs_unquoted_colons_and_says_so() {
    let text = "---\nname: my-skill\ndescription: Use when: the user's asking: now\n---\nx";
    let parsed = parse(text);
    assert_eq!(codes(&parsed), ["repaired-value"]);
    let found = &parsed.diagnostics[0];
    assert_eq!(found.level, Level::Warning);
    let span = found.span.unwrap();
    assert_eq!((span.line, span.column), (3, 14));
    assert_eq!(&text[span.start as usize..span.end as usize], "Use when: the user's asking: now");
    assert_eq!(parsed.skill.unwrap().description(), "Use when: the user's asking: now");
}

#[test]
fn repairs_each_broken_value_and_leaves_the_others_alone() {
    let cases: [(&str, &str, &str); 12] = [
        ("argument-hint: <duration: e.g. 7d, 2w>", "argument-hint", "<duration: e.g. 7d, 2w>"),
        ("license: @scope/pkg", "license", "@scope/pkg"),
        ("license: `code` here", "license", "`code` here"),
        ("license: %d percent", "license", "%d percent"),
        ("license: [MIT] or so", "license", "[MIT] or so"),
        ("license: \"MIT\" license", "license", "\"MIT\" license"),
        ("license: **bold** text: x", "license", "**bold** text: x"),
        ("license: - dash", "license", "- dash"),
        ("license: ends with:", "license", "ends with:"),
        ("license: folded: over\n  two lines", "license", "folded: over two lines"),
        ("license: > not a: block", "license", "> not a: block"),
        ("metadata:\n  note: a: b", "metadata", ""),
    ];
    for (line, key, expected) in cases {
        let text = format!(
            "---\nname: my-skill\n{line}\ndescription: |\n  Block: with: colons\n  stays\n---\nx"
        );
        let parsed = parse(&text);
        assert_eq!(codes(&parsed), ["repaired-value"], "{line}");
        let skill = parsed.skill.unwrap();
        assert_eq!(skill.description(), "Block: with: colons\nstays", "{line}");
        match key {
            "metadata" => assert_eq!(skill.frontmatter.metadata_text("note"), Some("a: b")),
            key => assert_eq!(*value(&skill, key), Value::from(expected), "{line}"),
        }
    }
}

#[test]
fn repairs_values_under_any_key_and_over_several_lines() {
    for (fields, path, expected) in [
        ("\"license\": Use when: x", vec!["license"], "Use when: x"),
        ("metadata:\n  my key: a: b", vec!["metadata", "my key"], "a: b"),
        ("metadata:\n  größe: a: b", vec!["metadata", "größe"], "a: b"),
        (
            "license: Use this skill for X.\n  Triggers: a, b",
            vec!["license"],
            "Use this skill for X. Triggers: a, b",
        ),
        ("license: One: two\n\n  three: four", vec!["license"], "One: two\nthree: four"),
        ("license: 'It's a test'", vec!["license"], "It's a test"),
        ("license: \"Say \"hi\" to all\"", vec!["license"], "Say \"hi\" to all"),
        ("license: a: b # note", vec!["license"], "a: b"),
        ("license: a: b\r", vec!["license"], "a: b"),
    ] {
        let text = format!("---\nname: my-skill\ndescription: d\n{fields}\n---\nx");
        let parsed = parse(&text);
        assert_eq!(codes(&parsed), ["repaired-value"], "{fields}");
        let skill = parsed.skill.unwrap();
        let mut node = skill.frontmatter.raw().get(path[0]).unwrap();
        for key in &path[1..] {
            node = node.as_mapping().unwrap().get(key).unwrap();
        }
        assert_eq!(node.as_str(), Some(expected), "{fields}");
    }
}

#[test]
fn repair_leaves_alone_what_is_fine() {
    let broken = "license: broken: value\n";
    for (fields, expected) in [
        ("metadata:\n  my note: |\n    Steps: run: this\n", "Steps: run: this\n"),
        ("metadata:\n  \"my note\": |\n    Steps: run: this\n", "Steps: run: this\n"),
        ("metadata:\n  ? my note\n  : |\n    Steps: run: this\n", "Steps: run: this\n"),
        (
            "metadata:\n  my note:\n    \"Foo.\n    Usage: git: commit\n    end\"\n",
            "Foo. Usage: git: commit end",
        ),
    ] {
        for order in [format!("{broken}{fields}"), format!("{fields}{broken}")] {
            let parsed = parse(&format!("---\nname: my-skill\ndescription: d\n{order}---\nx"));
            assert_eq!(codes(&parsed), ["repaired-value"], "{order}");
            let skill = parsed.skill.unwrap();
            assert_eq!(skill.frontmatter.metadata_text("my note"), Some(expected), "{order}");
            assert_eq!(skill.frontmatter.license(), Some("broken: value"), "{order}");
        }
    }
}

#[test]
fn repairs_32_values_and_not_one_more() {
    let text = |count: usize| {
        let lines: String = (0..count).map(|at| format!("k{at}: a: b\n")).collect();
        format!("---\nname: my-skill\ndescription: d\n{lines}---\nx")
    };
    assert!(parse(&text(32)).skill.is_some());
    assert_eq!(codes(&parse(&text(33))), ["invalid-yaml"]);
}

#[test]
fn repairs_reserved_characters_inside_a_list() {
    let text = "---\nname: my-skill\ndescription: d\npaths: [next,@supabase/ssr]\n---\nx";
    let parsed = parse(text);
    assert_eq!(codes(&parsed), ["repaired-value"]);
    assert_eq!(parsed.skill.unwrap().frontmatter.paths(), ["next", "@supabase/ssr"]);
}

#[test]
fn does_not_repair_what_is_merely_unfinished() {
    for line in ["name: [invalid", "name: \"open", "name: {a: b", "license: *missing"] {
        let parsed = parse(&format!("---\n{line}\ndescription: d\n---\nx"));
        assert_eq!(codes(&parsed), ["invalid-yaml"], "{line}");
        assert!(parsed.diagnostics[0].message.starts_with("Invalid YAML in frontmatter: "));
        assert!(parsed.skill.is_none());
    }
}

#[test]
fn ranges_after_a_repair_point_into_the_original() {
    let text = "---\nname: my-skill\ndescription: it's: this's\nversion: 2.0\n---\nx";
    let parsed = parse(text);
    let number = parsed.diagnostics.iter().find(|d| d.code == Code::UnquotedNumber).unwrap();
    let span = number.span.unwrap();
    assert_eq!(&text[span.start as usize..span.end as usize], "2.0");
}

#[test]
fn tools_are_a_string_or_a_list() {
    for (written, expected) in [
        ("Bash(git add *) Read", vec!["Bash(git add *)", "Read"]),
        ("Bash(git:*), Bash(jq:*),Read", vec!["Bash(git:*)", "Bash(jq:*)", "Read"]),
        ("[Read, Grep]", vec!["Read", "Grep"]),
        ("\n  - Bash(git add *)\n  - Read", vec!["Bash(git add *)", "Read"]),
        ("\n- Read, Write\n- mcp__server__tool", vec!["Read", "Write", "mcp__server__tool"]),
        ("Bash(echo (a b) c) Read", vec!["Bash(echo (a b) c)", "Read"]),
        ("Bash(git add Read", vec!["Bash(git", "add", "Read"]),
        ("\"\"", vec![]),
        ("[]", vec![]),
    ] {
        let skill = skill(&format!(
            "---\nname: my-skill\ndescription: d\nallowed-tools: {written}\n---\nx"
        ));
        let tools = skill.frontmatter.allowed_tools().unwrap();
        let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
        assert_eq!(tools, expected, "{written}");
    }
    assert_eq!(skill(MINIMAL).frontmatter.allowed_tools(), None);
}

#[test]
fn names_are_trimmed_collapsed_and_normalized() {
    for (written, expected) in [
        ("  deploy  service ", "deploy service"),
        ("ａｂｃ", "abc"),
        ("cafe\u{301}", "caf\u{e9}"),
        ("\"padded \"", "padded"),
        ("a", "a"),
        ("42", "42"),
        ("007", "007"),
        ("yes", "yes"),
        ("技能", "技能"),
    ] {
        let skill = skill(&format!("---\nname: {written}\ndescription: d\n---\nx"));
        assert_eq!(skill.name(), expected, "{written}");
    }
}

#[test]
fn a_missing_name_is_the_folders() {
    for text in ["---\ndescription: d\n---\nx", "---\nname:\ndescription: d\n---\nx"] {
        let parsed = parse(text);
        assert_eq!(parsed.diagnostics.len(), 1);
        assert_eq!(parsed.skill.unwrap().name(), "my-skill");
        assert!(Skill::parse(text, &Options::new()).skill.is_none());
    }
}

#[test]
fn unsafe_names_are_refused() {
    for name in ["a/b", "..", ".hidden", "a\\\\b", "\"a\\u001bb\"", "\"a\\u202eb\"", "\"a\\0b\""] {
        let parsed = parse(&format!("---\nname: {name}\ndescription: d\n---\nx"));
        assert!(codes(&parsed).contains(&"unsafe-name"), "{name}: {:?}", codes(&parsed));
        assert!(parsed.skill.is_none(), "{name}");
    }
}

#[test]
fn an_id_names_the_skill_and_the_name_is_its_title() {
    let parsed = Skill::parse(
        "---\nid: write_sql\nname: SQL Query Expert\ndescription: d\n---\nx",
        &Options::new().in_folder("write_sql"),
    );
    assert_eq!(codes(&parsed), [""; 0]);
    let skill = parsed.skill.unwrap();
    assert_eq!(skill.name(), "write_sql");
    assert_eq!(skill.frontmatter.title(), Some("SQL Query Expert"));
}

#[test]
fn nothing_becomes_a_surprising_string() {
    // A null is no text.
    let parsed = parse("---\nname: my-skill\ndescription: null\n---\nx");
    assert_eq!(codes(&parsed), ["empty-description"]);
    assert!(parsed.skill.is_none());
    for written in ["", "~", "Null", "[a, b]", "{a: b}", "true", "\"  \"", "''"] {
        let parsed = parse(&format!("---\nname: my-skill\ndescription: {written}\n---\nx"));
        assert_eq!(codes(&parsed), ["empty-description"], "{written}");
        assert!(parsed.skill.is_none(), "{written}");
    }
    // A YAML 1.1 boolean is the text that was written, and others are warned of.
    let parsed = parse("---\nname: yes\ndescription: d\n---\nx");
    assert_eq!(codes(&parsed), ["name-folder-mismatch", "ambiguous-scalar"]);
    assert_eq!(parsed.skill.unwrap().name(), "yes");
    // A real boolean is no name.
    let parsed = parse("---\nname: true\ndescription: d\n---\nx");
    assert_eq!(codes(&parsed), ["empty-name"]);
    assert_eq!(parsed.skill.unwrap().name(), "my-skill");
    // A number keeps its type in the mapping and its spelling as text.
    let parsed = parse("---\nname: my-skill\ndescription: d\nversion: 2.0\n---\nx");
    assert_eq!(codes(&parsed), ["unquoted-number"]);
    let skill = parsed.skill.unwrap();
    assert_eq!(skill.frontmatter.version(), Some("2.0"));
    assert_eq!(
        serde_json::to_string(skill.frontmatter.raw().get("version").unwrap()).unwrap(),
        "2.0"
    );
    // Text is no mapping.
    let parsed = parse("---\nname: my-skill\ndescription: d\nmetadata: foo\n---\nx");
    assert_eq!(codes(&parsed), ["wrong-type"]);
    let skill = parsed.skill.unwrap();
    assert_eq!(skill.frontmatter.metadata(), None);
    assert_eq!(*value(&skill, "metadata"), Value::from("foo"));
    // Null fields are absent.
    let parsed = parse("---\nname: my-skill\ndescription: d\nlicense:\ncompatibility: ~\n---\nx");
    assert_eq!(codes(&parsed), ["wrong-type", "wrong-type"]);
    let skill = parsed.skill.unwrap();
    assert_eq!((skill.frontmatter.license(), skill.frontmatter.compatibility()), (None, None));
}

#[test]
fn the_raw_mapping_keeps_real_types_and_unknown_keys() {
    let skill = skill(
        "---\nname: my-skill\ndescription: d\nx-int: 3\nx-hex: 0x1F\nx-big: 18446744073709551615\n\
         x-float: 1.50\nx-bool: False\nx-null: ~\nx-list: [1, a, null]\nx-map: {k: {v: true}}\n\
         x-date: 2024-01-01\nx-inf: .inf\n'x y': 'z'\n---\nx",
    );
    let json = serde_json::to_value(skill.frontmatter.raw()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "name": "my-skill", "description": "d", "x-int": 3, "x-hex": 31,
            "x-big": 18_446_744_073_709_551_615_u64, "x-float": 1.5, "x-bool": false,
            "x-null": null, "x-list": [1, "a", null], "x-map": {"k": {"v": true}},
            "x-date": "2024-01-01", "x-inf": ".inf", "x y": "z",
        })
    );
    let keys: Vec<&str> = skill.frontmatter.raw().iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys[0], "name");
    assert_eq!(keys.last(), Some(&"x y"));
}

#[test]
fn tags_anchors_and_merge_keys_are_read_or_reported() {
    let parsed = parse(
        "---\nname: &n my-skill\ndescription: !!str 12\nauthor: *n\nversion: !!float 1\n\
         metadata: {<<: {a: b}, t: !custom x}\n---\nx",
    );
    assert_eq!(codes(&parsed), ["yaml-anchor", "merge-key", "ignored-tag", "unquoted-number"]);
    let skill = parsed.skill.unwrap();
    assert_eq!(skill.description(), "12");
    assert_eq!(skill.frontmatter.author(), Some("my-skill"));
    assert!(skill.frontmatter.metadata().unwrap().get("<<").is_some());
}

#[test]
fn a_comment_that_eats_the_description_is_reported() {
    let parsed = parse("---\nname: my-skill\ndescription: Fixes issue #1 and # the rest\n---\nx");
    assert_eq!(codes(&parsed), ["comment-in-value"]);
    assert_eq!(parsed.skill.unwrap().description(), "Fixes issue");
}

#[test]
fn refuses_what_is_not_utf8() {
    let parsed = Skill::parse_bytes(b"---\nname: a\xff\n---\n", &Options::new());
    assert_eq!(codes(&parsed), ["not-utf8"]);
    let span = parsed.diagnostics[0].span.unwrap();
    assert_eq!((span.line, span.column), (2, 8));
    let utf16 = Skill::parse_bytes(b"\xff\xfe-\0-\0-\0", &Options::new());
    assert_eq!(utf16.diagnostics[0].message, "The file is UTF-16, not UTF-8");
}

#[test]
fn empty_frontmatter_lacks_both_fields() {
    let parsed = Skill::parse("---\n---\nx", &Options::new().with_profile(Profile::Spec));
    assert_eq!(codes(&parsed), ["not-a-mapping"]);
    assert_eq!(codes(&parse("---\n---\nx")), ["missing-name", "missing-description"]);
}

#[test]
fn yaml_that_is_no_mapping_is_refused() {
    for text in ["- a\n- b", "just text", "42", "[a]"] {
        let parsed = parse(&format!("---\n{text}\n---\nx"));
        assert_eq!(codes(&parsed), ["not-a-mapping"], "{text}");
    }
}

#[test]
fn nodes_say_what_they_are() {
    assert_eq!(Node::new("x").kind(), "text");
    assert_eq!(Node::new(true).kind(), "a boolean");
}

#[test]
fn whole_numbers_that_no_machine_holds_keep_their_digits() {
    let skill = skill("---\nname: my-skill\ndescription: d\nx: 12345678901234567890123\n---\nx");
    let json = serde_json::to_string(skill.frontmatter.raw().get("x").unwrap()).unwrap();
    assert_eq!(json, "\"12345678901234567890123\"");
}

#[test]
fn a_syntax_error_comes_with_the_remedy_that_fits() {
    for (fields, help) in [
        ("metadata:\n\ta: b", "indent with spaces, not with tabs"),
        ("license:MIT\nx: y", "put a space behind the colon"),
        (
            "license: \"open\nx: y",
            "close the quote, or put the whole value in quotes of the other kind",
        ),
        ("license: [a\nx: y", "put a value with special characters in quotes"),
    ] {
        let parsed = parse(&format!("---\nname: my-skill\ndescription: d\n{fields}\n---\nx"));
        assert_eq!(codes(&parsed), ["invalid-yaml"], "{fields}");
        assert_eq!(parsed.diagnostics[0].help.as_deref(), Some(help), "{fields}");
    }
}

/// What a linter must not do: look at the whole file for each finding.
#[test]
fn ten_thousand_findings_are_counted_and_fifty_are_shown() {
    let body = "[a](b)\n".repeat(10_000);
    let text = format!("---\nname: my-skill\ndescription: d\n---\n{body}");
    let missing = |_: &str| false;
    let parsed = Skill::parse(&text, &Options::new().checking_links(&missing));
    let links = parsed.diagnostics.iter().filter(|found| found.code == Code::BrokenLink);
    assert_eq!(links.count(), 51);
    assert_eq!(parsed.diagnostics.last().unwrap().message, "9950 more links lead nowhere");
}
