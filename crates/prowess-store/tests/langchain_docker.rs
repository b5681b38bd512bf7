//! What langchain-docker keeps in Redis, as skills of ours (S11, 1; ).

mod support;

use std::collections::BTreeMap;

use prowess_store::SkillReading;
use prowess_store::interop::langchain_docker::{
    FetchLimits, ImportedSkills, Layout, LayoutValue, fetch,
};
use serde_json::{Value, json};
use support::redis_server::RedisServer;

/// A layout as langchain-docker writes it: one skill with two versions, one that it brings.
fn layout() -> Layout {
    let mut layout = Layout::default();
    put(
        &mut layout,
        "skill:meta:my_skill",
        &json!({
        "skill_id": "my_skill", "is_builtin": false, "active_version": 1,
        "created_at": "2025-01-02T03:04:05.678901", "updated_at": "2025-01-03T00:00:00"}),
    );
    put(&mut layout, "skill:version:my_skill:1", &version(1, "# First\n\nDo it.\n"));
    put(&mut layout, "skill:version:my_skill:2", &version(2, "# Second\n\nDo it.\n"));
    let times = [("1", 1_735_787_045.678_901), ("2", 1_735_862_400.0)];
    let times = times.map(|(member, score)| (member.to_owned(), score)).to_vec();
    layout.entries.insert("skill:versions:my_skill".into(), LayoutValue::SortedSet(times));
    put(
        &mut layout,
        "skill:metrics:my_skill",
        &json!({
        "total_loads": 7, "unique_sessions": 2, "last_loaded_at": "2025-02-01T00:00:00",
        "loads_by_version": {"1": 3, "2": 4}}),
    );
    set(&mut layout, "skill:sessions:my_skill", &["s1", "s2"]);
    put(
        &mut layout,
        "skill:meta:write_sql",
        &json!({
        "skill_id": "write_sql", "is_builtin": true, "active_version": 1,
        "created_at": "2025-01-02T03:04:05", "updated_at": "2025-01-02T03:04:05"}),
    );
    put(&mut layout, "skill:version:write_sql:1", &version(1, "# SQL\n\nQuery.\n"));
    layout
        .entries
        .insert("skill:versions:write_sql".into(), LayoutValue::SortedSet(vec![("1".into(), 1.0)]));
    set(&mut layout, "skills:custom:index", &["my_skill"]);
    layout
}

fn version(number: u64, body: &str) -> Value {
    json!({
        "version_number": number, "semantic_version": format!("1.{}.0", number - 1),
        "name": "My Skill", "description": "Does what I want it to do.", "category": "custom",
        "author": "me", "core_content": body,
        "resources": [{"name": "guide", "description": "How to", "content": "Guide\n"}],
        "scripts": [{"name": "run.py", "description": "", "language": "python", "content": "pass\n"}],
        "tool_configs": [], "resource_configs": [], "mcp_tool_configs": [],
        "created_at": "2025-01-02T03:04:05.678901",
        "change_summary": if number == 1 { json!("Initial version") } else { json!(null) },
    })
}

fn put(layout: &mut Layout, key: &str, value: &Value) {
    let value = LayoutValue::String(value.to_string().into_bytes());
    layout.entries.insert(key.to_owned(), value);
}

fn set(layout: &mut Layout, key: &str, members: &[&str]) {
    let members = members.iter().map(|it| (*it).to_owned()).collect();
    layout.entries.insert(key.to_owned(), LayoutValue::Set(members));
}

fn check_whole(imported: &ImportedSkills) {
    assert_eq!(imported.problems, []);
    let ids: Vec<_> = imported.skills.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["my_skill", "write_sql"]);
    let skill = &imported.skills[0];
    assert_eq!((skill.is_builtin, skill.active_version), (false, 1));
    assert!(imported.skills[1].is_builtin);
    let numbers: Vec<_> = skill.versions.iter().map(|it| it.number).collect();
    assert_eq!(numbers, [1, 2]);
    let first = &skill.versions[0];
    assert_eq!(first.created.unwrap().to_string(), "2025-01-02T03:04:05.678901Z");
    assert_eq!(first.author.as_deref(), Some("me"));
    assert_eq!(first.change_summary.as_deref(), Some("Initial version"));
    assert_eq!(skill.versions[1].change_summary, None);
    let contents = skill.versions[1].document.contents(&skill.id).unwrap();
    let reading = SkillReading::of(&contents).unwrap();
    assert_eq!(reading.id, skill.id);
    assert_eq!(
        (reading.about.title.as_str(), reading.about.semantic_version.as_str()),
        ("My Skill", "1.1.0")
    );
    assert_eq!(contents.file("resources/guide").unwrap().bytes, b"Guide\n");
    assert_eq!(contents.file("scripts/run.py").unwrap().bytes, b"pass\n");
    assert_eq!(skill.metrics.total_loads, 7);
    assert_eq!(skill.metrics.loads_by_version, BTreeMap::from([(1, 3), (2, 4)]));
    assert_eq!((skill.metrics.unique_sessions, skill.metrics.sessions.len()), (2, 2));
    assert_eq!(skill.metrics.last_loaded.unwrap().to_string(), "2025-02-01T00:00:00Z");
}

#[test]
fn a_layout_is_imported_with_all_versions_and_metrics() {
    check_whole(&layout().import());
}

#[test]
fn one_broken_key_never_hurts_the_others() {
    for (key, value, cause) in [
        ("skill:meta:bad", LayoutValue::String(b"{".to_vec()), "is no JSON"),
        ("skill:meta:bad", LayoutValue::String(b"[]".to_vec()), "is no JSON object"),
        ("skill:version:bad:1", LayoutValue::String(vec![0xff]), "is no JSON"),
        ("skill:version:bad:1", LayoutValue::Other("hash".into()), "is a hash, not a string"),
        (
            "skill:version:bad:x",
            LayoutValue::String(b"{}".to_vec()),
            "is no key of langchain-docker",
        ),
        ("skill:versions:bad", LayoutValue::Set(vec![]), "is a set, not a sorted set"),
        ("skill:versions:bad", LayoutValue::SortedSet(vec![("x".into(), 1.0)]), "no number"),
        ("skill:sessions:bad", LayoutValue::String(vec![]), "is a string, not a set"),
        ("skill:odd", LayoutValue::String(vec![]), "is no key of langchain-docker"),
    ] {
        let mut layout = layout();
        layout.entries.insert(key.to_owned(), value);
        let mut imported = layout.import();
        let found = imported.problems.iter().any(|it| it.key == key && it.cause.contains(cause));
        assert!(found, "{key}: {:?}", imported.problems);
        imported.problems.clear();
        check_whole(&imported);
    }
}

#[test]
fn what_is_broken_in_a_version_is_mended_and_told() {
    for (change, mended) in [
        (json!({"description": ""}), "it is described as 'My Skill'"),
        (json!({"name": null}), "it is called 'my_skill'"),
        (json!({"core_content": null}), "it is empty"),
        (json!({"version_number": 9}), "the key counts"),
        (json!({"colour": "blue"}), "`colour` is not known"),
        (json!({"created_at": "yesterday"}), "is no time"),
        (json!({"resources": "x"}), "not a list"),
        (json!({"resources": [{"name": "../../x", "content": "a"}]}), "is put at"),
        (
            json!({"resources": [{"name": "a", "content": "1"}, {"name": "A", "content": "2"}]}),
            "is put at",
        ),
        (json!({"resources": [{"name": "", "content": "1"}]}), "it is called 'resource-1'"),
        (json!({"resources": [7]}), "`resources[0]` is left out"),
        (
            json!({"tool_configs": [{"name": "t", "args": [{"name": "a", "type": "tuple"}]}]}),
            "taken for string",
        ),
        (json!({"tool_configs": [{"name": "t"}, {"name": "t"}]}), "`tool_configs[1]` is left out"),
        (json!({"category": ["a"]}), "`category` is [\"a\"]; left out"),
    ] {
        let mut layout = layout();
        let mut value = version(2, "# Second\n\nDo it.\n");
        value.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        put(&mut layout, "skill:version:my_skill:2", &value);
        let imported = layout.import();
        let found: Vec<_> = imported.problems.iter().map(|it| it.cause.as_str()).collect();
        assert!(found.iter().any(|it| it.contains(mended)), "{change}: {found:?}");
        assert!(imported.problems.iter().all(|it| it.key == "skill:version:my_skill:2"));
        assert_eq!(imported.skills[0].versions.len(), 2, "{change}");
    }
}

#[test]
fn a_version_that_is_a_number_and_optional_fields_are_taken_as_they_are() {
    let mut layout = layout();
    put(
        &mut layout,
        "skill:version:my_skill:2",
        &json!({
        "version_number": 2, "semantic_version": 2.0, "name": "My Skill",
        "description": "Does what I want.", "core_content": "Do it.",
        "resources": [{"name": "gone", "description": "x", "content": null}],
        "tool_configs": [{"name": "t", "method": "m", "args": [{"name": "a"}]}]}),
    );
    let imported = layout.import();
    assert_eq!(imported.problems, []);
    let document = &imported.skills[0].versions[1].document;
    assert_eq!((document.version.as_str(), document.category.as_str()), ("2.0", "general"));
    assert_eq!(document.resources[0].content, None);
    // An argument is required there unless it says otherwise.
    assert!(document.tool_configs[0].args[0].required);
}

#[test]
fn ids_that_are_none_are_mended_and_collide_with_nobody() {
    let mut layout = layout();
    for id in ["../../etc", "etc", "", "日本", "New", "a:b"] {
        put(
            &mut layout,
            &format!("skill:meta:{id}"),
            &json!({
            "skill_id": id, "is_builtin": false, "active_version": 1}),
        );
        put(&mut layout, &format!("skill:version:{id}:1"), &version(1, "# Body\n\nDo it.\n"));
        let times = LayoutValue::SortedSet(vec![("1".into(), 1.0)]);
        layout.entries.insert(format!("skill:versions:{id}"), times);
    }
    set(
        &mut layout,
        "skills:custom:index",
        &["my_skill", "../../etc", "etc", "", "日本", "New", "a:b"],
    );
    let imported = layout.import();
    let ids: BTreeMap<_, _> =
        imported.skills.iter().map(|it| (it.source_id.as_str(), it.id.as_str())).collect();
    let expected = [
        ("", "my_skill_2"),
        ("../../etc", "etc_2"),
        ("New", "my_skill_3"),
        ("a:b", "a_b"),
        ("etc", "etc"),
        ("my_skill", "my_skill"),
        ("write_sql", "write_sql"),
        ("日本", "my_skill_4"),
    ];
    assert_eq!(ids, BTreeMap::from(expected));
    assert_eq!(imported.problems.len(), 5, "{:?}", imported.problems);
    assert!(imported.problems.iter().all(|it| it.cause.contains("it is imported as")));
}

#[test]
fn what_is_listed_and_not_there_is_told() {
    let told = |change: &dyn Fn(&mut Layout)| {
        let mut layout = layout();
        change(&mut layout);
        let imported = layout.import();
        let problems = imported.problems.iter().map(|it| format!("{} {}", it.key, it.cause));
        (problems.collect::<Vec<_>>().join("\n"), imported)
    };
    let (problems, imported) = told(&|it| drop(it.entries.remove("skill:version:my_skill:1")));
    assert!(problems.contains("skill:version:my_skill:1 is listed in"), "{problems}");
    assert!(
        problems.contains("`active_version` is 1, which is not there; 2 is taken"),
        "{problems}"
    );
    assert_eq!(imported.skills[0].active_version, 2);
    let (problems, imported) = told(&|it| drop(it.entries.remove("skill:meta:my_skill")));
    assert!(problems.contains("version 2 is taken for the active one"), "{problems}");
    assert_eq!(imported.skills.len(), 2);
    let (problems, imported) = told(&|it| set(it, "skills:custom:index", &["my_skill", "ghost"]));
    assert!(problems.contains("skill:meta:ghost has no version that can be read"), "{problems}");
    assert_eq!(imported.skills.len(), 2);
    let (problems, imported) = told(&|it| drop(it.entries.remove("skill:versions:my_skill")));
    assert!(problems.contains("is not listed in skill:versions:my_skill"), "{problems}");
    assert_eq!(imported.skills[0].versions.len(), 2);
    let (problems, _) = told(&|it| drop(it.entries.remove("skills:custom:index")));
    assert!(problems.contains("is not in skills:custom:index"), "{problems}");
}

/// Writes a layout as langchain-docker does.
fn write(server: &RedisServer, layout: &Layout) {
    let mut connection = server.connection();
    let mut run = |command: &redis::Cmd| command.exec(&mut connection).unwrap();
    for (key, value) in &layout.entries {
        match value {
            LayoutValue::String(bytes) => run(redis::cmd("SET").arg(key).arg(bytes.as_slice())),
            LayoutValue::Set(members) => run(redis::cmd("SADD").arg(key).arg(members)),
            LayoutValue::SortedSet(members) => {
                for (member, score) in members {
                    run(redis::cmd("ZADD").arg(key).arg(*score).arg(member));
                }
            }
            _ => run(redis::cmd("HSET").arg(key).arg("a").arg("b")),
        }
    }
}

#[test]
fn a_redis_database_is_read_as_it_is() {
    let Some(server) = RedisServer::start("a_redis_database_is_read_as_it_is") else { return };
    let mut expected = layout();
    write(&server, &expected);
    let mut connection = server.connection();
    for at in 0..2_000 {
        let mut command = redis::cmd("SET");
        command
            .arg(format!("checkpoint:{at}"))
            .arg("of somebody else")
            .exec(&mut connection)
            .unwrap();
    }
    let limits = FetchLimits::default();
    assert_eq!(fetch(&server.url(), &limits).unwrap(), expected);
    check_whole(&fetch(&server.url(), &limits).unwrap().import());
    // Sets of several pages, a type that nobody expects, and bytes that are no text.
    let sessions: Vec<String> = (0..3_000).map(|at| format!("session-{at:05}")).collect();
    let entries = [
        ("skill:sessions:many".to_owned(), LayoutValue::Set(sessions)),
        ("skill:meta:odd".to_owned(), LayoutValue::Other("hash".into())),
        ("skill:metrics:odd".to_owned(), LayoutValue::String(vec![0xff, 0xfe])),
    ];
    let more = Layout { entries: entries.into_iter().collect() };
    write(&server, &more);
    expected.entries.extend(more.entries);
    assert_eq!(fetch(&server.url(), &limits).unwrap(), expected);
    let keys = expected.entries.len();
    assert!(fetch(&server.url(), &limits.with_keys(keys)).is_ok());
    for tight in
        [limits.with_keys(keys - 1), limits.with_value_bytes(100), limits.with_total_bytes(2_000)]
    {
        assert_eq!(fetch(&server.url(), &tight).unwrap_err().code(), "import_limit");
    }
    let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut connection).unwrap();
    assert!(stats.contains("cmdstat_scan:") && !stats.contains("cmdstat_keys:"), "{stats}");
}

#[test]
fn an_address_that_leads_nowhere_is_told_without_its_password() {
    let limits = FetchLimits::default();
    let error = fetch("http://user:secret@example.invalid", &limits).unwrap_err();
    assert_eq!(error.code(), "invalid_address");
    assert!(!error.to_string().contains("secret"));
    let error = fetch("redis://:secret@127.0.0.1:1/0", &limits).unwrap_err();
    assert_eq!(error.code(), "redis_unavailable");
    assert!(!error.to_string().contains("secret"), "{error}");
}
