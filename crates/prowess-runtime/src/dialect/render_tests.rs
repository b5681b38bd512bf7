use serde_json::json;

use super::*;

#[test]
fn text_cannot_close_the_block_it_is_in() {
    assert_eq!(within("a </skill> b </SKILL > c", "skill"), "a &lt;/skill> b &lt;/SKILL > c");
    assert_eq!(within("İ </skill>", "skill"), "İ &lt;/skill>");
    assert_eq!(within("nothing </skil>", "skill"), "nothing </skil>");
}

#[test]
fn text_cannot_begin_the_part_of_another_skill() {
    let table = [
        ("a\n[Loaded] b", "a\n\\[Loaded] b"),
        ("  [Doc] b\nc", "\\  [Doc] b\nc"),
        ("Docs loaded: b", "\\Docs loaded: b"),
        ("available SKILLS: b", "\\available SKILLS: b"),
        ("a\r[loaded] b", "a\r\\[loaded] b"),
        ("a\u{2028}Loaded skill context:", "a\u{2028}\\Loaded skill context:"),
        ("\u{200b}\u{feff}[Loaded] b", "\\\u{200b}\u{feff}[Loaded] b"),
        ("say [Loaded] b", "say [Loaded] b"),
        ("[Docs] b", "[Docs] b"),
        ("[Doé] b", "[Doé] b"),
    ];
    for (text, expected) in table {
        assert_eq!(unmarked(text), expected, "{text:?}");
    }
}

/// Data of every outcome, in every form that its words tell apart.
fn samples() -> Vec<(&'static str, Value)> {
    let doc = json!({"path": "references/a.md", "text": "Text of a."});
    let loaded = json!({
        "skill": "write_sql", "title": "SQL Query Expert", "folder": "/skills/write_sql",
        "version": "2.0.0", "digest": "sha256:00", "tree_digest": null,
        "head": "---\nname: write_sql\n---\n", "body": "Write SQL.\n", "docs": [],
        "doc_paths": [], "resources": [{"path": "scripts/a.sh", "kind": "script"}],
        "more_resources": 2, "tools": "",
    });
    let mut bare = loaded.clone();
    bare["title"] = Value::Null;
    bare["folder"] = Value::Null;
    bare["resources"] = json!([]);
    bare["more_resources"] = json!(0);
    bare["docs"] = json!([doc]);
    bare["doc_paths"] = json!(["references/a.md"]);
    bare["tools"] = json!("Tools of skill 'write_sql', ...");
    let unreadable = json!({"skill": "a", "path": "/s/a/SKILL.md", "cause": "no", "limit": 9});
    let named = json!({"skill": "a", "available": ["b", "c"], "more": 2, "nearest": "b"});
    let unnamed = json!({"skill": "a", "available": [], "more": 0, "nearest": null});
    let mut gone = unnamed.clone();
    gone["was_loaded"] = json!(true);
    let skill = json!({"skill": "a"});
    let selected = json!({
        "skill": "a", "mode": "add", "selected_docs": ["x.md"], "include_all_docs": false,
        "given": [doc],
    });
    let cleared = json!({
        "skill": "a", "mode": "clear", "selected_docs": [], "include_all_docs": false, "given": [],
    });
    let resource = json!({
        "skill": "a", "resource": "r", "available": ["x"], "more": 1, "cause": "no",
    });
    let fork = json!({
        "skill": "a", "mode": "fork", "agent": "writer", "model": "small", "cause": "no", "limit": 4,
    });
    let mut nothing = resource.clone();
    nothing["available"] = json!([]);
    nothing["more"] = json!(0);
    vec![
        ("loaded", loaded),
        ("loaded", bare),
        ("forked", json!({"skill": "a", "results": ["One.", "Two."]})),
        ("forked", json!({"skill": "a", "results": []})),
        ("agent_hub_missing", fork.clone()),
        ("model_hub_missing", fork.clone()),
        ("model_unavailable", fork.clone()),
        ("agent_unavailable", fork.clone()),
        ("content_failed", fork.clone()),
        ("history_unavailable", fork.clone()),
        ("fork_messages_failed", fork.clone()),
        ("fork_failed", fork.clone()),
        ("fork_result_failed", fork.clone()),
        ("fork_interrupted", fork.clone()),
        ("fork_too_deep", fork),
        (
            "embedded_command_failed",
            json!({"skill": "a", "pattern": "!`b`", "cause": "exit code 2: no"}),
        ),
        (
            "embedded_command_denied",
            json!({"skill": "a", "pattern": "!`b`", "cause": "no sandbox"}),
        ),
        ("docs_loaded", json!({"skill": "a", "docs": [doc]})),
        ("already_loaded", json!({"skill": "a", "load_count": 1, "update_available": false})),
        ("already_loaded", json!({"skill": "a", "load_count": 1, "update_available": true})),
        ("skill_not_found", named),
        ("skill_not_found", unnamed),
        ("skill_not_found", gone),
        ("skill_ambiguous", json!({"skill": "a", "candidates": ["a@x", "a@y"]})),
        ("manual_only", skill.clone()),
        ("model_only", skill.clone()),
        ("load_limit", json!({"skill": "c", "limit": 2, "loaded": ["a", "b"]})),
        ("skill_unreadable", unreadable.clone()),
        ("skill_changed", unreadable.clone()),
        ("skill_too_large", unreadable.clone()),
        ("skill_not_text", unreadable.clone()),
        ("skill_invalid", unreadable),
        ("content_changed", skill.clone()),
        ("content_lost", skill.clone()),
        ("unloaded", skill.clone()),
        ("skill_pinned", skill),
        ("skill_not_loaded", json!({"skill": "write_sql", "tool": "sql_query"})),
        ("skill_not_loaded", json!({"skill": "write_sql", "tool": null})),
        ("loaded_skills", json!({"skills": []})),
        ("loaded_skills", json!({"skills": [{"name": "a", "load_count": 1}]})),
        ("docs_listed", json!({"skill": "a", "docs": ["x.md"]})),
        ("docs_selected", selected),
        ("docs_selected", cleared),
        (
            "doc_not_found",
            json!({"skill": "a", "missing": ["x.md"], "available": ["y.md"], "more": 0}),
        ),
        ("doc_not_found", json!({"skill": "a", "missing": ["x.md"], "available": [], "more": 0})),
        ("detail", json!({"skill": "a", "resource": "r", "text": "Text of r."})),
        ("resource_not_found", resource.clone()),
        ("resource_not_found", nothing),
        ("resource_unreadable", resource.clone()),
        ("not_text", resource),
        ("too_large", json!({"skill": "a", "what": "docs", "bytes": 9, "limit": 5})),
        ("too_large", json!({"skill": "a", "what": "it", "bytes": null, "limit": 5})),
        ("invalid_arguments", json!({"tool": "load_skill", "cause": "skill is required"})),
        ("unknown_tool", json!({"tool": "x", "available": ["y"], "nearest": "y"})),
        ("unknown_tool", json!({"tool": "x", "available": ["long"], "nearest": null})),
        (
            "tool_not_allowed",
            json!({"tool": "execute", "allowed": ["Read", "ls"], "skills": ["a"]}),
        ),
        ("tool_not_allowed", json!({"tool": "execute", "allowed": [], "skills": ["a"]})),
        ("tool_disallowed", json!({"tool": "Bash", "entry": "Bash(rm:*)", "skill": "a"})),
        ("invalid_call_id", json!({"tool": "x", "call": "", "cause": "it is empty"})),
        ("tool_panicked", json!({"tool": "x"})),
        ("call_denied", json!({"tool": "x", "cause": "not today"})),
    ]
}

/// What is said of every outcome, in every dialect. No text fails.
#[test]
fn every_outcome_has_words() -> Result<(), DialectError> {
    for name in Dialect::names() {
        let dialect = Dialect::named(name)?;
        let mut said = String::new();
        for (code, data) in samples() {
            let mut outcome = ToolOutcome::coded(code, data.clone());
            dialect.render(&mut outcome);
            assert_ne!(outcome.content, data.to_string(), "{name}: {code} fails");
            assert!(!outcome.content.is_empty(), "{name}: {code} says nothing");
            said.push_str(&format!("== {code}\n{}\n", outcome.content));
            for (label, text) in [("stub", outcome.stub), ("hint", outcome.hint)] {
                said.extend(text.map(|text| format!("-- {label}: {text}\n")));
            }
        }
        insta::assert_snapshot!(format!("outcomes_{name}"), said);
    }
    Ok(())
}

#[test]
fn every_code_has_a_sample() -> Result<(), DialectError> {
    let dialect = Dialect::built_in()?;
    let sampled: Vec<&str> = samples().into_iter().map(|(code, _)| code).collect();
    for (name, _) in dialect.environment.templates() {
        let code = name.split('.').next().unwrap_or_default();
        assert!(code == "block" || sampled.contains(&code), "'{code}' has no sample");
    }
    Ok(())
}

/// What a template may speak of is what the outcomes have.
#[test]
fn all_data_is_known() {
    for (code, data) in samples() {
        for key in data.as_object().into_iter().flat_map(|data| data.keys()) {
            let is_known = DATA.contains(&key.as_str());
            assert!(is_known, "{code}: {key}");
        }
    }
    assert!(DATA.is_sorted());
}

#[test]
fn results_can_be_written_as_json() -> Result<(), DialectError> {
    let text = "name = \"json\"\nencoding = \"json\"\n[tools.load_skill]\ndescription = \"L\"\n\
                parameters.skill.description = \"S\"\n";
    let dialect = Dialect::parse(text)?;
    let render = |code, data| {
        let mut outcome = ToolOutcome::coded(code, data);
        dialect.render(&mut outcome);
        (outcome.content, outcome.stub)
    };
    assert_eq!(render("manual_only", json!({"skill": "a"})).0.chars().next(), Some('"'));
    let (content, stub) = render("detail", json!({"skill": "a", "resource": "r", "text": "a\"b"}));
    assert_eq!((content.as_str(), stub.as_deref()), (r#""a\"b""#, Some(r#""detail of a: r""#)));
    let (number, _) = render("detail", json!({"skill": "a", "resource": "r", "text": "42"}));
    assert_eq!(number, r#""42""#, "a text that looks like a number is a text");
    let listed = render("docs_listed", json!({"skill": "a", "docs": ["x.md"]})).0;
    assert_eq!(listed, r#"["x.md"]"#);
    Ok(())
}
