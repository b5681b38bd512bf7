//! Skills as documents and back (S11, 1 and 3; ).

use proptest::prelude::*;
use prowess_catalog::{ContentFile, ResourcePath, SkillContents};
use prowess_format::Code;
use prowess_store::{
    DOCUMENT_BYTES, DocumentArgument, DocumentChange, DocumentError, DocumentFile,
    DocumentResource, DocumentServer, DocumentTool, Encoding, LIST_ENTRIES, SkillDocument, SkillId,
    SkillReading,
};
use serde_json::{Value, json};

fn id() -> SkillId {
    "demo".parse().unwrap()
}

fn file(path: &str, bytes: &[u8]) -> ContentFile {
    ContentFile::new(ResourcePath::parse(path).unwrap(), false, bytes)
}

fn skill(text: &str, more: &[(&str, &[u8])]) -> SkillContents {
    let more = more.iter().map(|(path, bytes)| file(path, bytes));
    SkillContents::of([file("SKILL.md", text.as_bytes())].into_iter().chain(more).collect())
}

fn text_of(contents: &SkillContents) -> &str {
    std::str::from_utf8(&contents.file("SKILL.md").unwrap().bytes).unwrap()
}

fn document(json: Value) -> SkillDocument {
    serde_json::from_value(json).unwrap()
}

fn change(json: Value) -> DocumentChange {
    serde_json::from_value(json).unwrap()
}

fn small() -> SkillDocument {
    SkillDocument::new("Demo", "Shows how a document looks.", "# Demo\n\nDo it.\n")
}

fn places(error: &DocumentError) -> Vec<String> {
    error.violations().into_iter().map(|it| it.place).collect()
}

#[test]
fn a_document_becomes_files_that_a_person_would_write() {
    let document = document(json!({
        "name": "Write SQL", "description": "Writes and runs SQL queries.", "category": "database",
        "version": "2.0", "author": "us", "core_content": "# SQL\n",
        "resources": [
            {"name": "guide.md", "description": "", "content": "Guide\n", "path": "guide.md"},
            {"name": "Examples", "description": "Queries", "content": "SELECT 1\n"},
        ],
        "scripts": [{"name": "run.py", "description": "", "language": "python", "content": "pass\n"}],
        "tool_configs": [{"name": "sql_query", "description": "Runs it", "method": "query", "args": [
            {"name": "limit", "type": "int", "default": 10}, {"name": "sql", "required": true}]}],
        "resource_configs": [{"name": "samples", "dynamic": true, "method": "samples"}],
        "mcp_tool_configs": [{"server": "db", "tools": ["a"]}],
    }));
    let contents = document.contents(&"write_sql".parse().unwrap()).unwrap();
    let expected = "---\nname: write_sql\ndescription: Writes and runs SQL queries.\nmetadata:\n  \
        title: Write SQL\ncategory: database\nversion: \"2.0\"\nauthor: us\ntool_configs:\n  - name: \
        sql_query\n    description: Runs it\n    method: query\n    args:\n      - name: limit\n        \
        type: integer\n        default: 10\n      - name: sql\n        required: true\n\
        resource_configs:\n  - name: samples\n    dynamic: true\n    method: samples\n\
        mcp_tool_configs:\n  - server: db\n    tools:\n      - a\nresources:\n  - name: guide.md\n    \
        file: guide.md\n  - name: Examples\n    description: Queries\n    file: resources/Examples\n\
        scripts:\n  - name: run.py\n    file: scripts/run.py\n    language: python\n---\n# SQL\n";
    assert_eq!(text_of(&contents), expected);
    let paths: Vec<_> = contents.files.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["SKILL.md", "guide.md", "resources/Examples", "scripts/run.py"]);
    let reading = SkillReading::of(&contents).unwrap();
    assert_eq!((reading.id.as_str(), reading.about.title.as_str()), ("write_sql", "Write SQL"));
    assert!(reading.diagnostics.iter().all(|it| it.level < prowess_format::Level::Error));
}

#[test]
fn what_every_skill_has_is_written_without_lists() {
    let contents = small().contents(&id()).unwrap();
    let expected = "---\nname: demo\ndescription: Shows how a document looks.\nmetadata:\n  title: \
        Demo\ncategory: general\nversion: 1.0.0\n---\n# Demo\n\nDo it.\n";
    assert_eq!(text_of(&contents), expected);
    let mut named = small();
    named.name = "demo".into();
    assert!(!text_of(&named.contents(&id()).unwrap()).contains("metadata"));
}

#[test]
fn every_file_of_a_skill_is_in_its_document() {
    let contents = skill(
        "---\nname: demo\ndescription: Shows it.\nresources:\n  - {name: Guide, description: Read \
         it, file: docs/guide.md}\n  - {name: gone.md}\nscripts:\n  - {name: x, file: tool.py, \
         language: python}\n---\nbody",
        &[
            ("docs/guide.md", b"g"),
            ("assets/logo.png", &[0xff, 0]),
            ("scripts/a.sh", b"a"),
            ("bin/b", b"b"),
            ("tool.py", b"t"),
            ("notes.txt", b"n"),
        ],
    );
    let document = SkillDocument::of(&contents).unwrap();
    let shown = |files: &[DocumentFile]| -> Vec<(String, String, Option<String>)> {
        let shown =
            |it: &DocumentFile| (it.name.clone(), it.path.clone().unwrap(), it.content.clone());
        files.iter().map(shown).collect()
    };
    let row = |name: &str, path: &str, content: Option<&str>| {
        (name.to_owned(), path.to_owned(), content.map(str::to_owned))
    };
    assert_eq!(
        shown(&document.resources),
        [
            row("Guide", "docs/guide.md", Some("g")),
            row("gone.md", "resources/gone.md", None),
            row("assets/logo.png", "assets/logo.png", Some("/wA=")),
            row("notes.txt", "notes.txt", Some("n")),
        ]
    );
    assert_eq!(document.resources[2].encoding, Encoding::Base64);
    assert_eq!(
        shown(&document.scripts),
        [
            row("x", "tool.py", Some("t")),
            row("bin/b", "bin/b", Some("b")),
            row("scripts/a.sh", "scripts/a.sh", Some("a")),
        ]
    );
    let again = SkillDocument::of(&document.contents(&id()).unwrap()).unwrap();
    assert_eq!(again, document);
}

#[test]
fn a_change_that_names_what_is_there_changes_no_byte() {
    let text = "\u{feff}\n---\r\n# why\nname: demo\ndescription: >\n  Shows\n  it all.\nversion: 2.0\n\
        unknown: {a: [1, 2]} # odd\ntool_configs:\n- {name: t, extra: 1, args: [{name: a, default: \
        0x1F}]}\n--- \nbody without end";
    let before = skill(text, &[("a.bin", &[0xff]), ("scripts/x.sh", b"#!")]);
    let document = SkillDocument::of(&before).unwrap();
    let mut json = serde_json::to_value(&document).unwrap();
    json.as_object_mut().unwrap().remove("id");
    for json in [json, json!({}), json!({"change_summary": "none"})] {
        let after = change(json).apply(&before, &id()).unwrap();
        assert_eq!(after.tree_digest, before.tree_digest);
    }
}

#[test]
fn a_change_leaves_alone_what_it_does_not_name() {
    let text = "---\nname: demo # id\ndescription: Shows it.\nlicense: MIT\n\n# for later\n\
        tool_configs:\n- name: t\n  extra: 1\n- name: u\n---\nbody\n";
    let before = skill(text, &[("a.md", b"a"), ("scripts/x.sh", b"#!")]);
    for (json, expected) in [
        (json!({"core_content": "other body\n"}), text.replace("body", "other body")),
        (
            json!({"description": "Shows something else."}),
            text.replace("Shows it.", "Shows something else."),
        ),
        (json!({"author": "us"}), text.replace("---\nbody", "author: us\n---\nbody")),
        (json!({"name": "Demo"}), text.replace("---\nbody", "metadata:\n  title: Demo\n---\nbody")),
        (json!({"version": "2.0"}), text.replace("---\nbody", "version: \"2.0\"\n---\nbody")),
        (
            json!({"tool_configs": [{"name": "t", "method": "m"}]}),
            text.replace(
                "- name: t\n  extra: 1\n- name: u",
                "  - name: t\n    extra: 1\n    method: m",
            ),
        ),
        (
            json!({"tool_configs": []}),
            text.replace("tool_configs:\n- name: t\n  extra: 1\n- name: u\n", ""),
        ),
    ] {
        let after = change(json.clone()).apply(&before, &id()).unwrap();
        assert_eq!(text_of(&after), expected, "{json}");
        assert_eq!(after.files.len(), 3);
    }
}

#[test]
fn a_file_that_is_named_without_its_content_stays_and_one_that_is_nowhere_is_found() {
    let before = skill(
        "---\nname: demo\ndescription: Shows it.\n---\nbody\n",
        &[("a.bin", &[0xff, 0]), ("resources/b", b"b"), ("scripts/x.sh", b"#!")],
    );
    let named = json!({
        "resources": [{"name": "b"}, {"name": "x", "path": "scripts/x.sh"}, {"name": "gone"},
            {"name": "text", "path": "SKILL.md"}],
        "scripts": [{"name": "a", "path": "./a.bin", "executable": true}],
    });
    let refused = change(named.clone()).apply(&before, &id()).unwrap_err();
    assert_eq!(places(&refused), ["/resources/3/path"], "the text is no file of the list");
    let mut named = named;
    named["resources"].as_array_mut().unwrap().pop();
    let after = change(named.clone()).apply(&before, &id()).unwrap();
    for file in before.files.iter().filter(|file| file.path.as_str() != "SKILL.md") {
        let kept = after.file(file.path.as_str()).unwrap();
        assert_eq!((&kept.bytes, kept.executable), (&file.bytes, file.executable), "{}", file.path);
    }
    assert_eq!(after.files.len(), 4);
    let found = SkillReading::of(&after).unwrap().diagnostics;
    let missing = found.iter().filter(|it| it.code == Code::MissingFile);
    let missing: Vec<&str> = missing.map(|it| it.message.as_str()).collect();
    let message = "'gone' in resources is the file 'resources/gone', which the skill does not have";
    assert_eq!(missing, [message]);
    // What is given counts, wherever it stands.
    named["scripts"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "b", "path": "resources/b", "content": "B"}));
    named["resources"].as_array_mut().unwrap().remove(0);
    let after = change(named).apply(&before, &id()).unwrap();
    assert_eq!(after.file("resources/b").unwrap().bytes, b"B");
}

#[test]
fn a_list_replaces_the_list_and_an_empty_one_clears_it() {
    let before = skill(
        "---\nname: demo\ndescription: Shows it.\nresources: [{name: A, file: a.md}]\n---\nbody\n",
        &[("a.md", b"a"), ("b.md", b"b"), ("scripts/x.sh", b"#!")],
    );
    let paths = |contents: &SkillContents| -> Vec<String> {
        contents.files.iter().map(|it| it.path.to_string()).collect()
    };
    let cleared = change(json!({"resources": []})).apply(&before, &id()).unwrap();
    assert_eq!(paths(&cleared), ["SKILL.md", "scripts/x.sh"]);
    assert!(!text_of(&cleared).contains("resources"));
    let none = change(json!({"scripts": []})).apply(&before, &id()).unwrap();
    assert_eq!(paths(&none), ["SKILL.md", "a.md", "b.md"]);
    let new = json!({"resources": [{"name": "c.md", "content": "c", "path": "c.md"}]});
    let replaced = change(new).apply(&before, &id()).unwrap();
    assert_eq!(paths(&replaced), ["SKILL.md", "c.md", "scripts/x.sh"]);
    assert!(!text_of(&replaced).contains("resources"));
    let binary = json!({"resources": [
        {"name": "x", "content": "/wA=", "encoding": "base64", "executable": true}]});
    let binary = change(binary).apply(&before, &id()).unwrap();
    let file = binary.file("resources/x").unwrap();
    assert_eq!((file.bytes.as_slice(), file.executable), ([0xff, 0].as_slice(), true));
}

#[test]
fn titles_are_set_where_they_are() {
    let titled = |frontmatter: &str, name: &str| {
        let before = skill(&format!("---\n{frontmatter}description: Shows it.\n---\nbody\n"), &[]);
        let after = change(json!({ "name": name })).apply(&before, &id()).unwrap();
        assert_eq!(SkillDocument::of(&after).unwrap().name, name);
        text_of(&after).replace("description: Shows it.\n", "").replace("---\n", "")
    };
    assert_eq!(titled("name: demo\n", "New"), "name: demo\nmetadata:\n  title: New\nbody\n");
    assert_eq!(titled("name: demo\nmetadata: {title: Old}\n", "demo"), "name: demo\nbody\n");
    assert_eq!(
        titled("name: demo\nmetadata: {title: Old, a: 1}\n", "demo"),
        "name: demo\nmetadata:\n  a: 1\nbody\n"
    );
    assert_eq!(titled("id: demo\nname: Old\n", "New"), "id: demo\nname: New\nbody\n");
    assert_eq!(titled("id: demo\nname: Old\n", "demo"), "id: demo\nname: demo\nbody\n");
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place() {
    let bad = document(json!({
        "id": "../../etc", "name": "", "description": "short", "core_content": "x",
        "resources": [
            {"name": "a", "content": "", "path": "../x"},
            {"name": "b", "content": "", "path": "SKILL.md"},
            {"name": "c", "content": "", "path": "x/c"},
            {"name": "d", "content": "", "path": "X/c"},
            {"name": "e", "content": "?", "encoding": "base64"},
            {"name": " ", "content": "", "path": ".git/config"},
            {"name": "f", "content": "", "path": "x"},
        ],
        "scripts": [{"name": "g", "content": "", "path": "x/c"}],
        "tool_configs": [{"name": "t"}, {"name": "t", "args": [{"name": ""}]}],
        "resource_configs": [{"name": ""}],
        "mcp_tool_configs": [{"server": "", "tools": [" a"]}],
    }));
    let error = bad.validate_new().unwrap_err();
    assert_eq!(error.code(), "invalid_document");
    let mut found = places(&error);
    found.sort();
    assert_eq!(
        found,
        [
            "/core_content",
            "/description",
            "/id",
            "/mcp_tool_configs/0/server",
            "/mcp_tool_configs/0/tools/0",
            "/name",
            "/resource_configs/0/name",
            "/resources/0/path",
            "/resources/1/path",
            "/resources/3/path",
            "/resources/4/content",
            "/resources/5/name",
            "/resources/5/path",
            "/resources/6/path",
            "/scripts/0/path",
            "/tool_configs/1/args/0/name",
            "/tool_configs/1/name",
        ]
    );
}

#[test]
fn limits_hold_at_their_edges() {
    let with = |key: &str, value: Value| {
        let mut json = serde_json::to_value(small()).unwrap();
        json[key] = value;
        document(json).validate_new().map_err(|error| places(&error))
    };
    for (key, value, good) in [
        ("name", json!("a"), true),
        ("name", json!("ä".repeat(100).replace('ä', "é")), false),
        ("name", json!("a".repeat(100)), true),
        ("name", json!("a".repeat(101)), false),
        ("description", json!("é".repeat(9)), false),
        ("description", json!("é".repeat(10)), true),
        ("description", json!("é".repeat(500)), true),
        ("description", json!("é".repeat(501)), false),
        ("core_content", json!("é".repeat(9)), false),
        ("core_content", json!("é".repeat(10)), true),
        ("core_content", json!("a".repeat(DOCUMENT_BYTES)), true),
        ("core_content", json!("a".repeat(DOCUMENT_BYTES + 1)), false),
        ("category", json!("a".repeat(200)), true),
        ("category", json!("a".repeat(201)), false),
        ("resources", files_of(LIST_ENTRIES), true),
        ("resources", files_of(LIST_ENTRIES + 1), false),
    ] {
        let result = with(key, value);
        assert_eq!(result.is_ok(), good, "{key}: {result:?}");
    }
    let before = small().contents(&id()).unwrap();
    for (json, good) in [
        (json!({"change_summary": "é".repeat(500)}), true),
        (json!({"change_summary": "é".repeat(501)}), false),
        (json!({"description": "short"}), false),
        (json!({"core_content": ""}), false),
        (json!({"name": ""}), false),
    ] {
        assert_eq!(change(json.clone()).apply(&before, &id()).is_ok(), good, "{json}");
    }
    // What is there already may be longer than what may be sent.
    let long = skill(&format!("---\nname: demo\ndescription: {}\n---\nx", "a".repeat(900)), &[]);
    let json = json!({"description": "a".repeat(900), "version": "2"});
    assert!(change(json).apply(&long, &id()).is_ok());
}

fn files_of(count: usize) -> Value {
    (0..count)
        .map(|at| json!({"name": format!("f{at}"), "content": "", "path": format!("f{at}")}))
        .collect()
}

#[test]
fn what_cannot_stand_in_frontmatter_is_refused_and_not_cut() {
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!([deep]);
    }
    for default in [deep, json!("x".repeat(70_000)), json!(vec![1; 2_000])] {
        let mut document = small();
        let mut tool = DocumentTool::new("t");
        let mut argument = DocumentArgument::new("a");
        argument.default = Some(default);
        tool.args.push(argument);
        document.tool_configs.push(tool);
        assert_eq!(document.contents(&id()).unwrap_err().code(), "invalid_document");
    }
}

#[test]
fn ids_come_from_names_and_are_checked() {
    let id_of = |id: Option<&str>, name: &str| {
        let mut document = small();
        document.id = id.map(str::to_owned);
        document.name = name.to_owned();
        document.validate_new().map(|id| id.to_string()).map_err(|error| places(&error))
    };
    assert_eq!(id_of(None, "My Skill!"), Ok("my_skill".into()));
    assert_eq!(id_of(Some("x-1"), "My Skill!"), Ok("x-1".into()));
    for (id, name) in [
        (None, "日本"),
        (None, "Import"),
        (Some("new"), "x"),
        (Some(""), "x"),
        (Some("../../etc"), "x"),
    ] {
        assert_eq!(id_of(id, name), Err(vec!["/id".to_owned()]), "{id:?} {name}");
    }
}

#[test]
fn unknown_fields_are_an_error_that_names_them() {
    let error =
        |json: Value| serde_json::from_value::<SkillDocument>(json).unwrap_err().to_string();
    let base = || serde_json::to_value(small()).unwrap();
    let mut json = base();
    json["colour"] = json!("blue");
    assert!(error(json).contains("unknown field `colour`"));
    let mut json = base();
    json["resources"] = json!([{"name": "a", "contents": ""}]);
    assert!(error(json).contains("unknown field `contents`"));
    let wrong = serde_json::from_value::<DocumentChange>(json!({"id": "x"})).unwrap_err();
    assert!(wrong.to_string().contains("unknown field `id`"));
    let mut json = base();
    json["tool_configs"] = json!([{"name": "t", "args": [{"name": "a", "type": "tuple"}]}]);
    assert!(error(json).contains("unknown variant `tuple`"));
}

#[test]
fn a_skill_that_cannot_be_read_is_told_with_lines() {
    let error = SkillReading::of(&skill("---\nname: demo\n---\nbody\n", &[])).unwrap_err();
    assert_eq!(error.code(), "unreadable_skill");
    assert!(error.diagnostics().iter().any(|it| it.code.as_str() == "missing-description"));
    assert!(error.violations()[0].message.contains("line "), "{error}");
    let text = "---\nname: Not An Id\ndescription: x\n---\n";
    assert_eq!(SkillReading::of(&skill(text, &[])).unwrap_err().code(), "invalid_id");
    let none = SkillContents::of(vec![file("skill.md", b"x")]);
    assert_eq!(SkillReading::of(&none).unwrap_err().code(), "no_skill_file");
    let bytes = SkillContents::of(vec![file("SKILL.md", &[0xff, 0xfe])]);
    assert_eq!(SkillDocument::of(&bytes).unwrap_err().code(), "unreadable_skill");
}

fn odd() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 _.:#-]{0,24}",
        "\\PC{0,24}",
        any::<String>(),
        "[ \\n\\t\\r|>'\"a:#-]{0,16}",
        prop::sample::select(vec![
            "",
            "yes",
            "null",
            "~",
            "2.0",
            "1.10",
            "0x1F",
            "1e3",
            "- a",
            "a: b",
            "[a]",
            "{a: b}",
            "*a",
            "&a b",
            "2024-01-01",
            "---",
            "...",
            "a\nb\n",
            "\n",
            "---\na\n---\n",
            "技能",
            "\u{feff}a",
            "#a",
        ])
        .prop_map(str::to_owned),
    ]
}

fn named() -> impl Strategy<Value = String> {
    odd().prop_filter("not blank", |text| !text.trim().is_empty())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(Value::from),
        odd().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(odd(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn argument() -> impl Strategy<Value = DocumentArgument> {
    let kind = prop::sample::select(vec!["string", "int", "number", "bool", "array"]);
    let items = prop::option::of(prop::sample::select(vec!["string", "int", "object"]));
    (named(), (kind, items), odd(), any::<bool>(), prop::option::of(json_value())).prop_map(
        |(name, (kind, items), description, required, default)| {
            let mut argument: DocumentArgument = serde_json::from_value(
                json!({"name": name, "type": kind, "items": items, "description": description, "required": required}),
            )
            .unwrap();
            argument.default = default;
            argument
        },
    )
}

fn tool() -> impl Strategy<Value = DocumentTool> {
    (named(), odd(), odd(), prop::collection::vec(argument(), 0..3), any::<bool>()).prop_map(
        |(name, description, method, args, gated)| {
            let mut tool = DocumentTool::new(name);
            (tool.description, tool.method) = (description, method);
            (tool.args, tool.requires_skill_loaded) = (args, gated);
            tool.args.sort_by(|a, b| a.name.cmp(&b.name));
            tool.args.dedup_by(|a, b| a.name == b.name);
            tool
        },
    )
}

fn resource() -> impl Strategy<Value = DocumentResource> {
    let option = || prop::option::of(odd());
    (named(), odd(), option(), option(), any::<bool>(), option()).prop_map(
        |(name, description, file, content, dynamic, method)| {
            let mut resource = DocumentResource::new(name);
            resource.description = description;
            (resource.file, resource.content) = (file, content);
            (resource.dynamic, resource.method) = (dynamic, method);
            resource
        },
    )
}

fn server() -> impl Strategy<Value = DocumentServer> {
    let tool = odd().prop_map(|it| it.trim().to_owned()).prop_filter("a name", |it| !it.is_empty());
    (named(), prop::collection::vec(tool, 0..3), any::<bool>()).prop_map(|(server, tools, all)| {
        let mut server = DocumentServer::new(server, tools);
        server.load_all = all;
        server
    })
}

fn document_file() -> impl Strategy<Value = DocumentFile> {
    let path = prop_oneof![
        "(scripts|docs|a|bin|resources)/[a-z]{1,4}\\.(md|py)",
        "[a-z]{1,4}\\.md",
        "docs/[가-힣é ]{1,3}x",
    ];
    let content = prop_oneof![
        odd().prop_map(|text| (Some(text), Encoding::Utf8)),
        prop::sample::select(vec!["/wA=", "", "aGk="])
            .prop_map(|text| (Some(text.to_owned()), Encoding::Base64)),
        Just((None, Encoding::Utf8)),
    ];
    (named(), any::<bool>(), odd(), prop::option::of(odd()), path, content, any::<bool>()).prop_map(
        |(name, is_path, description, language, path, (content, encoding), executable)| {
            let mut file =
                DocumentFile::new(if is_path { path.clone() } else { name }, "").at(path);
            (file.language, file.content) = (language, content);
            (file.encoding, file.executable) = (encoding, executable);
            if is_path && description.len() % 2 == 0 {
                file.language = None;
                return file;
            }
            file.described(description)
        },
    )
}

prop_compose! {
    fn any_document()(
        texts in (named(), named(), odd(), odd(), prop::option::of(odd()), odd()),
        files in prop::collection::vec((any::<bool>(), document_file()), 0..5),
        mut tools in prop::collection::vec(tool(), 0..3),
        mut resources in prop::collection::vec(resource(), 0..3),
        servers in prop::collection::vec(server(), 0..2),
    ) -> SkillDocument {
        let (name, description, category, version, author, body) = texts;
        let mut document = SkillDocument::new(name, description, body);
        (document.category, document.version, document.author) = (category, version, author);
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        resources.sort_by(|a, b| a.name.cmp(&b.name));
        resources.dedup_by(|a, b| a.name == b.name);
        (document.tool_configs, document.resource_configs) = (tools, resources);
        document.mcp_tool_configs = servers;
        let mut seen = std::collections::HashSet::new();
        for (is_script, file) in files {
            if seen.insert(file.path.clone().unwrap().to_lowercase()) {
                let list =
                    if is_script { &mut document.scripts } else { &mut document.resources };
                list.push(file);
            }
        }
        document
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(256)
    ))]

    /// A document that becomes files is the same document again, also by way of JSON.
    #[test]
    fn documents_survive_the_way_through_files(document in any_document()) {
        let contents = match document.contents(&id()) {
            Ok(contents) => contents,
            // One path may be a folder on the way to another.
            Err(error) => {
                prop_assert!(places(&error).iter().all(|it| it.ends_with("/path")), "{error}");
                return Ok(());
            }
        };
        let after = SkillDocument::of(&contents).unwrap();
        let mut expected = document.clone().normalized();
        expected.id = Some("demo".into());
        prop_assert_eq!(&after, &expected);
        let sent: SkillDocument =
            serde_json::from_str(&serde_json::to_string(&after).unwrap()).unwrap();
        prop_assert_eq!(&sent, &after);
        prop_assert_eq!(after.contents(&id()).unwrap().tree_digest, contents.tree_digest);
    }

    /// A change to a document is what the change says, and nothing else. Files that it only names
    /// stay.
    #[test]
    fn changes_change_what_they_name(before in any_document(), after in any_document()) {
        let Ok(contents) = before.contents(&id()) else { return Ok(()) };
        let change: DocumentChange = serde_json::from_value(json!({
            "version": after.version, "author": after.author.clone().unwrap_or_default(),
            "resources": after.resources, "tool_configs": after.tool_configs,
            "resource_configs": after.resource_configs,
        }))
        .unwrap();
        if let Ok(changed) = change.apply(&contents, &id()) {
            let mut expected = before.normalized();
            let mut after = after.normalized();
            let known = expected.resources.iter().chain(&expected.scripts);
            let known: Vec<_> = known.filter(|it| it.content.is_some()).cloned().collect();
            for file in after.resources.iter_mut().filter(|it| it.content.is_none()) {
                if let Some(known) = known.iter().find(|it| it.path == file.path) {
                    file.content.clone_from(&known.content);
                    (file.encoding, file.executable) = (known.encoding, known.executable);
                }
            }
            expected.id = Some("demo".into());
            (expected.version, expected.author) = (after.version, after.author);
            expected.resources = after.resources;
            expected.tool_configs = after.tool_configs;
            expected.resource_configs = after.resource_configs;
            prop_assert_eq!(SkillDocument::of(&changed).unwrap(), expected);
        }
    }
}

#[test]
fn a_file_without_a_path_is_where_a_declaration_names_it() {
    let document: SkillDocument = serde_json::from_value(json!({
        "name": "My Skill", "description": "Does something.", "core_content": "Some text.",
        "resources": [
            {"name": "examples.md", "content": "a"}, {"name": "other.md", "content": "b"},
            {"name": "moved.md", "path": "docs/moved.md", "content": "c"},
        ],
        "scripts": [{"name": "run.py", "content": "d"}, {"name": "rest.py", "content": "e"}],
        "resource_configs": [
            {"name": "examples", "file": "./examples.md"}, {"name": "moved", "file": "moved.md"},
        ],
        "tool_configs": [{"name": "run", "script": "run.py"}],
    }))
    .unwrap();
    let contents = document.contents(&"my_skill".parse().unwrap()).unwrap();
    let paths: Vec<&str> = contents.files.iter().map(|file| file.path.as_str()).collect();
    let expected = [
        "SKILL.md",
        "docs/moved.md",
        "examples.md",
        "resources/other.md",
        "run.py",
        "scripts/rest.py",
    ];
    assert_eq!(paths, expected);
    // Read back it is the same, list by list.
    let read = SkillDocument::of(&contents).unwrap();
    let names = |files: &[prowess_store::DocumentFile]| -> Vec<String> {
        files.iter().map(|file| file.name.clone()).collect()
    };
    assert_eq!(names(&read.resources), ["examples.md", "other.md", "moved.md"]);
    assert_eq!(names(&read.scripts), ["run.py", "rest.py"]);
    let again = read.contents(&"my_skill".parse().unwrap()).unwrap();
    assert_eq!(again.tree_digest, contents.tree_digest);
}
