//! The test table of the first DeepAgents document (25 unit rows, 3 integration rows). Where it
//! says the same as the second one, `seed_001.rs` holds the row; here is what differs: resources
//! are found together with the skills.
//!
//! The same as in `seed_001.rs`: `discover_resources_empty_skill`, `…_backend_error`,
//! `…_non_standard_dirs_ignored`, `…_root_level_files`, `load_skill_file_read_error`,
//! `load_skill_file_size_exceeded`, `v1_skills_work_without_modification`,
//! `read_file_still_works_for_skills`, integration rows 1 and 2.
//!
//! The rows on `allowed_tools…`, `default_policy_is_recommend` and `format_skills_list…` are the
//! same too, with one difference that is a setting: here a skill without `allowed-tools` lifts
//! nothing. Integration rows 1 to 6 run through the loop of agents: `prowess/tests/files.rs` (1),
//! `prowess-agent/tests/sub_agents.rs` (2), `compaction.rs` (3), `skills.rs` (4 to 6).

mod support;

use prowess_runtime::{AllowedToolsPolicy, AllowedToolsUnion, Settings, TurnRequest};
use serde_json::json;
use support::{Plan, echo, resources};

fn eager() -> Plan {
    Plan::new()
        .skill("deploy", "Deploy it.\n")
        .file("deploy/scripts/run.sh", "echo run")
        .file("deploy/references/guide.md", "# Guide")
        .eager()
}

#[tokio::test]
async fn discover_resources_standard_dirs() {
    let world = eager().build();
    let snapshot = world.catalog.refresh().await;
    // Afterwards the folder says something else; what was found with the skill counts.
    world.remove("deploy/references/guide.md");
    let listing = snapshot.get("deploy").unwrap().resources(Default::default()).await.unwrap();
    let paths: Vec<&str> = listing.resources.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["references/guide.md", "scripts/run.sh"]);
}

#[tokio::test]
async fn before_agent_initializes_new_state() {
    let world = eager().build();
    world.runtime.begin_turn(&world.session, &world.agent, TurnRequest::new()).await.unwrap();
    let state = world.state().await;
    assert!(state.loaded.is_empty());
    assert_eq!(state.skills.map(|skills| skills.count), Some(1));
    let snapshot = world.runtime.snapshot(&world.session, &world.agent).await;
    let listing = snapshot.get("deploy").unwrap().resources(Default::default()).await.unwrap();
    assert_eq!(listing.resources.len(), 2, "resources are known before anything is loaded");
}

#[tokio::test]
async fn before_agent_idempotent() {
    let world = eager().build();
    let begin = || world.runtime.begin_turn(&world.session, &world.agent, TurnRequest::new());
    begin().await.unwrap();
    let before = world.state().await;
    begin().await.unwrap();
    assert_eq!(world.state().await.skills, before.skills);
}

#[tokio::test]
async fn load_skill_returns_command_with_content() {
    let world = eager().build();
    let outcome = world.load("deploy").await;
    assert!(outcome.content.starts_with("Deploy it."));
    assert!(outcome.content.contains("- [reference] `references/guide.md`"));
    assert_eq!(resources(&world.state().await, "deploy").len(), 2);
}

#[tokio::test]
async fn load_skill_updates_skills_loaded() {
    let world = eager().build();
    world.load("deploy").await;
    assert_eq!(world.state().await.loaded_names(), ["deploy"]);
}

#[tokio::test]
async fn load_skill_not_found_returns_error() {
    let outcome = eager().build().load("xxx").await;
    assert_eq!(outcome.content, "Error: Skill 'xxx' not found. Available skills: deploy");
}

#[tokio::test]
async fn load_skill_already_loaded_returns_message() {
    let world = eager().build();
    world.load("deploy").await;
    let outcome = world.load("deploy").await;
    assert!(outcome.content.starts_with("Skill 'deploy' is already loaded."));
    assert!(
        outcome
            .changes
            .iter()
            .all(|change| !matches!(change, prowess_runtime::Change::Load { .. }))
    );
}

#[tokio::test]
async fn allowed_tools_restrict_as_soon_as_one_loaded_skill_defines_them() {
    let defines = "---\nname: x\ndescription: X.\nallowed-tools: tool_x\n---\nx\n";
    let settings = Settings::default()
        .with_allowed_tools_policy(AllowedToolsPolicy::Restrict)
        .with_allowed_tools_union(AllowedToolsUnion::Strict);
    let world = Plan::new()
        .file("x/SKILL.md", defines)
        .skill("free", "Free.")
        .settings(settings)
        .change(|builder| builder.tool(echo("tool_x")).tool(echo("execute")))
        .build();
    let passes = async |tool| !world.call(tool, json!({})).await.is_error;
    world.load("free").await;
    assert!(passes("execute").await);
    world.load("x").await;
    assert!(passes("tool_x").await && !passes("execute").await);
}
