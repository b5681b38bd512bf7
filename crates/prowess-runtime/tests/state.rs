//! The JSON form of a session's state, and the forms of other systems.

mod support;

use prowess_format::Digest;
use prowess_runtime::interop::{System, export, import};
use prowess_runtime::{
    AgentName, Caps, Change, KnownResources, LoadedSkill, MAX_NESTING, Reset, SessionState,
    StateDelta, Usage,
};
use serde_json::{Value, json};
use support::{Plan, World};

fn world() -> World {
    Plan::new()
        .file(
            "sql/SKILL.md",
            "---\nname: sql\ndescription: Queries.\nversion: 2.0.0\nmodel: opus\nallowed-tools: Read Bash(git:*)\nmetadata:\n  team: data\n---\nBody\n",
        )
        .file("sql/examples.md", "Examples.")
        .file("sql/scripts/run.sh", "echo")
        .skill("jira", "Jira.")
        .build()
}

#[tokio::test]
async fn the_json_form_is_stable() {
    let world = world();
    world
        .call("load_skill", json!({"skill": "sql", "docs": ["examples.md"], "arguments": "x"}))
        .await;
    let state = serde_json::to_string_pretty(&world.state().await).unwrap();
    insta::assert_snapshot!(state);
}

#[test]
fn another_version_is_not_read() {
    let error = serde_json::from_str::<SessionState>(r#"{"version":2}"#).unwrap_err();
    assert!(error.to_string().contains("version 2; this program reads version 1"), "{error}");
    assert!(serde_json::from_str::<SessionState>("{}").is_err());
}

#[test]
fn counters_at_their_end_stay_there() {
    let text = r#"{"version":1,"turn":18446744073709551615,"clock":18446744073709551615}"#;
    let mut state: SessionState = serde_json::from_str(text).unwrap();
    let skill = LoadedSkill::new("a", Digest::of(b"a"));
    let changes = vec![
        Change::BeginTurn { reset: Reset::Keep },
        Change::Load { skill: Box::new(skill), model: None },
    ];
    state.apply(&[StateDelta::new(0, "call", changes)], &Caps::default());
    assert_eq!((state.turn, state.loaded[0].touched), (u64::MAX, u64::MAX));
    let text = r#"{"named":[{"path":"a","kind":"other"}],"more":18446744073709551615}"#;
    assert_eq!(serde_json::from_str::<KnownResources>(text).unwrap().len(), u64::MAX);
    let usage = r#"{"input_tokens":18446744073709551615}"#;
    let mut usage: Usage = serde_json::from_str(usage).unwrap();
    usage += usage;
    assert_eq!(usage.input_tokens, u64::MAX);
}

#[test]
fn names_of_agents_are_checked_where_they_are_read() {
    assert!(serde_json::from_str::<AgentName>(r#""main""#).is_ok());
    for name in [r#""""#, r#""a/b""#, r#""\u001b[31m""#] {
        assert!(serde_json::from_str::<AgentName>(name).is_err(), "{name}");
    }
    let session = r#"{"agents":{"a/b":{"version":1}}}"#;
    assert!(serde_json::from_str::<prowess_runtime::Session>(session).is_err());
}

/// An array in an array, so many times.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[tokio::test]
async fn json_that_is_nested_too_deep_is_kept_as_text_and_harms_no_session() {
    let world = world();
    for (levels, is_text) in [(MAX_NESTING - 1, false), (MAX_NESTING, true), (120, true)] {
        // The object around it is one level.
        let outcome = world.call("skill_list_docs", json!({"skill": "sql", "x": nested(levels)}));
        assert_eq!(outcome.await.code, "docs_listed", "it is understood all the same");
        let messages = world.messages().await;
        let asked = &messages[messages.len() - 2];
        assert_eq!(asked.tool_calls().next().unwrap().arguments.is_string(), is_text, "{levels}");
        let text = serde_json::to_string(asked).unwrap();
        assert_eq!(serde_json::from_str::<prowess_runtime::Message>(&text).unwrap(), *asked);
    }
    let value = nested(120);
    let context = Change::SetContext { skill: "sql".to_owned(), value: value.clone() };
    world.runtime.change(&world.session, &world.agent, vec![context]).await.unwrap();
    let foreign = json!({"skill_context": {"sql": value}});
    let (state, _) = imported(&world, System::LangchainDocker, &foreign).await;
    for state in [state, world.state().await] {
        assert_eq!(state.context["sql"], json!(value.to_string()));
    }
}

#[tokio::test]
async fn a_change_from_outside_that_does_not_fit_is_refused_and_not_dropped() {
    let world = world();
    let unload = vec![Change::Unload { skill: "sql".to_owned() }];
    let error = world.runtime.change(&world.session, &world.agent, unload).await.unwrap_err();
    assert_eq!(error.code(), "change_refused");
    assert_eq!(error.to_string(), "the state cannot be changed: 'sql' is not loaded");
    assert_eq!(world.revision().await, 0);
}

#[tokio::test]
async fn ten_loaded_skills_take_at_most_8_kib() {
    let mut plan = Plan::new();
    for at in 0..10 {
        let name = format!("skill-{at:02}");
        plan = plan.skill(&name, "Body");
        for file in ["scripts/run.py", "scripts/check.sh", "references/api.md", "references/faq.md"]
        {
            plan = plan.file(&format!("{name}/{file}"), "x");
        }
    }
    let world = plan.build();
    for at in 0..10 {
        world.load(&format!("skill-{at:02}")).await;
    }
    let bytes = serde_json::to_string(&world.state().await).unwrap().len();
    assert!(bytes <= 8 << 10, "{bytes} bytes");
}

#[tokio::test]
async fn at_most_64_resources_are_named_and_the_rest_is_counted() {
    let mut plan = Plan::new().skill("exact", "x").skill("more", "x");
    for at in 0..KnownResources::MOST_NAMED {
        plan = plan.file(&format!("exact/scripts/{at:03}.sh"), "x");
    }
    for at in 0..=KnownResources::MOST_NAMED {
        plan = plan.file(&format!("more/scripts/{at:03}.sh"), "x");
    }
    let world = plan.build();
    let exact = world.load("exact").await;
    assert!(!exact.content.contains("more"), "all are named");
    let more = world.load("more").await;
    assert!(more.content.ends_with("- [script] `scripts/063.sh`\n- and 1 more"));
    let state = world.state().await;
    let resources = |name: &str| state.loaded(name).unwrap().resources.clone();
    assert_eq!((resources("exact").named.len(), resources("exact").more), (64, 0));
    assert_eq!((resources("more").named.len(), resources("more").more), (64, 1));
}

#[tokio::test]
async fn a_skill_brings_its_model_until_it_is_unloaded() {
    let world = world();
    world.load("sql").await;
    let model = world.state().await.model.unwrap();
    assert_eq!((model.model.as_str(), model.skill.as_str()), ("opus", "sql"));
    world.call("unload_skill", json!({"skill": "sql"})).await;
    assert_eq!(world.state().await.model, None);
}

async fn exported(world: &World, system: System) -> Value {
    let snapshot = world.runtime.snapshot(&world.session, &world.agent).await;
    export(system, &world.state().await, &world.agent, &snapshot)
}

/// Takes a state over into a fresh session and gives it.
async fn imported(world: &World, system: System, value: &Value) -> (SessionState, Vec<String>) {
    let snapshot = world.runtime.snapshot(&world.session, &world.agent).await;
    let imported = import(system, value, &world.agent, &snapshot).unwrap();
    let session = "fresh".parse().unwrap();
    let adopt = vec![Change::Adopt { state: Box::new(imported.state) }];
    world.runtime.change(&session, &world.agent, adopt).await.unwrap();
    let state = world.runtime.state(&session, &world.agent).await.unwrap();
    world.runtime.sessions().delete(&session).await.unwrap();
    (state, imported.problems)
}

#[tokio::test]
async fn deepagents_state_goes_out_and_in() {
    let world = world();
    world.load("sql").await;
    let value = exported(&world, System::DeepAgents).await;
    let path = |path: &str| world.path(path).display().to_string();
    assert_eq!(value["skills_loaded"], json!(["sql"]));
    assert_eq!(
        value["skills_metadata"][1],
        json!({
            "path": path("sql/SKILL.md"), "name": "sql", "description": "Queries.", "license": null,
            "compatibility": null, "metadata": {"team": "data"},
            "allowed_tools": ["Read", "Bash(git:*)"],
        })
    );
    assert_eq!(
        value["skill_resources"]["sql"],
        json!([
            {"path": path("sql/examples.md"), "type": "other", "skill_name": "sql"},
            {"path": path("sql/scripts/run.sh"), "type": "script", "skill_name": "sql"},
        ])
    );
    let (state, problems) = imported(&world, System::DeepAgents, &value).await;
    assert!(problems.is_empty(), "{problems:?}");
    let original = world.state().await;
    assert_eq!(state.loaded_names(), ["sql"]);
    assert_eq!(state.skills, original.skills);
    let (a, b) = (state.loaded("sql").unwrap(), original.loaded("sql").unwrap());
    assert_eq!((a.digest, &a.resources), (b.digest, &b.resources));
}

#[tokio::test]
async fn deepagents_null_means_look_again_and_an_empty_list_does_not() {
    let world = world();
    let (missing, _) = imported(&world, System::DeepAgents, &json!({"skills_loaded": []})).await;
    let (null, _) = imported(&world, System::DeepAgents, &json!({"skills_metadata": null})).await;
    let (empty, _) = imported(&world, System::DeepAgents, &json!({"skills_metadata": []})).await;
    assert_eq!((missing.skills, null.skills), (None, None));
    assert!(empty.skills.is_some());
}

#[tokio::test]
async fn trpc_state_goes_out_and_in() {
    let world = world();
    world.call("load_skill", json!({"skill": "sql", "docs": ["examples.md"]})).await;
    world.load("jira").await;
    world.load("sql").await;
    let value = exported(&world, System::Trpc).await;
    assert_eq!(
        value,
        json!({
            "temp:skill:loaded_by_agent:main/sql": "1",
            "temp:skill:docs_by_agent:main/sql": "[\"examples.md\"]",
            "temp:skill:loaded_by_agent:main/jira": "1",
            "temp:skill:loaded_order_by_agent:main": "[\"jira\",\"sql\"]",
        })
    );
    let (state, problems) = imported(&world, System::Trpc, &value).await;
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(state.touch_order(), ["jira", "sql"]);
    assert_eq!(state.loaded("sql").unwrap().docs.paths(), ["examples.md"]);
}

#[tokio::test]
async fn trpc_old_keys_cleared_keys_and_other_agents_are_understood() {
    let world = world();
    let value = json!({
        "temp:skill:loaded:sql": "1",
        "temp:skill:docs:sql": "*",
        "temp:skill:loaded_by_agent:main/jira": null,
        "temp:skill:loaded_by_agent:other/jira": "1",
        "temp:skill:loaded_by_agent:main/gone": "1",
        "unrelated": 7,
    });
    let (state, problems) = imported(&world, System::Trpc, &value).await;
    assert_eq!(state.loaded_names(), ["sql"]);
    assert!(state.loaded("sql").unwrap().docs.all);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("'gone' is not loaded any more"), "{problems:?}");
}

#[tokio::test]
async fn langchain_docker_state_goes_out_and_in() {
    let world = world();
    world.load("sql").await;
    let context = Change::SetContext { skill: "sql".to_owned(), value: json!({"rows": 3}) };
    world.runtime.change(&world.session, &world.agent, vec![context]).await.unwrap();
    let value = exported(&world, System::LangchainDocker).await;
    assert_eq!(
        value,
        json!({
            "skills_loaded": ["sql"],
            "skill_load_count": {"sql": 1},
            "skills_version_loaded": {"sql": "2.0.0"},
            "skill_context": {"sql": {"rows": 3}},
        })
    );
    let (state, problems) = imported(&world, System::LangchainDocker, &value).await;
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((state.loaded_names(), &state.context["sql"]), (vec!["sql"], &json!({"rows": 3})));
    let older = json!({"skills_loaded": ["sql", 3], "skills_version_loaded": {"sql": 1}});
    let (_, problems) = imported(&world, System::LangchainDocker, &older).await;
    assert_eq!(
        problems,
        [
            "`skills_loaded` has items that are no names",
            "'sql' was loaded as version 1; it is 2.0.0 now",
        ]
    );
}

#[tokio::test]
async fn an_imported_skill_is_given_when_it_is_asked_for() {
    let world = world();
    let snapshot = world.runtime.snapshot(&world.session, &world.agent).await;
    let value = json!({"skills_loaded": ["sql"]});
    let state = import(System::LangchainDocker, &value, &world.agent, &snapshot).unwrap().state;
    let adopt = vec![Change::Adopt { state: Box::new(state) }];
    world.runtime.change(&world.session, &world.agent, adopt).await.unwrap();
    // Its text is in no transcript of ours.
    let outcome = world.load("sql").await;
    assert_eq!(outcome.code, "loaded");
    assert!(outcome.content.starts_with("Body"));
    assert!(outcome.content.contains("- [script] `scripts/run.sh`"), "{}", outcome.content);
    assert_eq!(world.load("sql").await.code, "already_loaded");
    // From now on its files are pinned.
    world.write("sql/examples.md", "Other examples.");
    let docs = json!({"skill": "sql", "docs": ["examples.md"]});
    assert_eq!(world.call("load_skill", docs).await.code, "content_changed");
}

#[tokio::test]
async fn what_cannot_be_carried_over_is_told() {
    let world = world();
    let table = [
        (
            System::LangchainDocker,
            json!({"skill_load_count": 3}),
            "`skill_load_count` is no mapping",
        ),
        (System::LangchainDocker, json!({"skill_context": []}), "`skill_context` is no mapping"),
        (
            System::DeepAgents,
            json!({"skill_resources": {"sql": [{"type": "script"}]}}),
            "`skill_resources` of 'sql' has items without a path",
        ),
        (
            System::DeepAgents,
            json!({"pinned_skills": ["sql"]}),
            "'sql' was to be pinned; pin it when the next turn begins",
        ),
    ];
    for (system, value, expected) in table {
        let (_, problems) = imported(&world, system, &value).await;
        assert_eq!(problems, [expected], "{value}");
    }
}

#[test]
fn what_is_no_object_is_refused() {
    let catalog = prowess_catalog::Catalog::builder().build();
    for system in System::ALL {
        let error =
            import(system, &json!([]), &AgentName::default(), &catalog.snapshot()).unwrap_err();
        let expected =
            format!("the state of {} cannot be read: it is no JSON object", system.as_str());
        assert_eq!(error.to_string(), expected);
    }
}
