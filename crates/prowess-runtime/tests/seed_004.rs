//! What the langchain-docker document says of load, list and detail, behaviour by behaviour, with
//! its texts where programs match on them.
//!
//! Open, because they concern parts that come later: the SQL, Jira and XLSX skills and the REST
//! service.

mod support;

use std::sync::Arc;

use prowess_runtime::{Dialect, Handlers, Prompt, PromptRequest, ToolOutcome};
use serde_json::json;
use support::{Plan, World, echo};

const SQL: &str = "---
name: write_sql
description: Write and execute SQL queries
version: \"2.0.0\"
resource_configs:
  - name: samples
    description: Sample rows
    dynamic: true
    method: get_sample_rows
  - name: examples
    description: Query examples
    file: examples.md
  - name: hint
    description: One line
    content: Use LIMIT.
---
# SQL Query Expert
";

fn samples() -> Handlers {
    let text = |_| async { ToolOutcome::text("## Sample Data") };
    Handlers::for_skill("write_sql").method("get_sample_rows", [], text)
}

fn world() -> World {
    Plan::new()
        .file("write_sql/SKILL.md", SQL)
        .file("write_sql/examples.md", "SELECT 1;")
        .file("write_sql/assets/logo.bin", [0xff, 0xfe, 0x00])
        .skill("jira", "Jira")
        .change(|builder| builder.toolkit(Arc::new(samples())))
        .build()
}

async fn detail(world: &World, resource: &str) -> ToolOutcome {
    let arguments = json!({"skill_id": "write_sql", "resource": resource});
    world.call("load_skill_detail", arguments).await
}

#[tokio::test]
async fn a_skill_is_loaded_once_and_counted() {
    let world = world();
    let outcome = world.call("load_skill", json!({"skill_id": "write_sql"})).await;
    assert!(outcome.content.starts_with("# SQL Query Expert"));
    let state = world.state().await;
    let loaded = state.loaded("write_sql").unwrap();
    assert_eq!((loaded.load_count, loaded.version.as_deref()), (1, Some("2.0.0")));
    let again = world.call("load_skill", json!({"skill_id": "write_sql"})).await;
    assert_eq!((again.code.as_ref(), again.is_error), ("already_loaded", false));
}

#[tokio::test]
async fn list_loaded_skills_says_what_is_loaded_and_how_often() {
    let world = world();
    let nothing = world.call("list_loaded_skills", json!({})).await;
    assert_eq!(
        nothing.content,
        "No skills have been loaded yet. Use load_skill(skill_id) to load one."
    );
    world.load("write_sql").await;
    world.load("jira").await;
    let two = world.call("list_loaded_skills", json!({})).await;
    assert_eq!(
        two.content,
        "Currently loaded skills:\n- write_sql (loaded 1 time(s))\n- jira (loaded 1 time(s))"
    );
}

#[tokio::test]
async fn two_loads_in_one_step_do_not_disturb_each_other() {
    let world = world();
    let load = |name: &str| world.tool_call("load_skill", json!({"skill_id": name}));
    let list = world.tool_call("list_loaded_skills", json!({}));
    let result = world.step(vec![load("write_sql"), load("jira"), list]).await;
    assert!(result.outcomes.iter().all(|outcome| !outcome.is_error));
    assert!(result.outcomes[2].content.contains("- jira"), "a list sees the calls before it");
    assert_eq!(world.state().await.loaded_names(), ["write_sql", "jira"]);
}

#[tokio::test]
async fn details_come_from_handlers_files_and_the_frontmatter() {
    let world = world();
    world.load("write_sql").await;
    assert_eq!(detail(&world, "samples").await.content, "## Sample Data");
    assert_eq!(detail(&world, "examples").await.content, "SELECT 1;");
    assert_eq!(detail(&world, "hint").await.content, "Use LIMIT.");
    // Any file of the skill, by its path.
    let file = detail(&world, "examples.md").await;
    assert_eq!((file.code.as_ref(), file.content.as_str()), ("detail", "SELECT 1;"));
    assert_eq!(file.stub.as_deref(), Some("detail of write_sql: examples.md"));
}

#[tokio::test]
async fn details_of_a_skill_that_is_not_loaded_are_refused() {
    let outcome = detail(&world(), "examples").await;
    assert_eq!(
        outcome.content,
        "Skill 'write_sql' is not loaded. Please load it first with load_skill('write_sql')."
    );
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "skill_not_loaded"));
}

#[tokio::test]
async fn details_that_are_not_there_are_errors_with_a_name() {
    let world = world();
    world.load("write_sql").await;
    let unknown = detail(&world, "nope").await;
    assert_eq!(
        unknown.content,
        "Unknown resource: nope. Available: samples, examples, hint, assets/logo.bin"
    );
    assert!(unknown.is_error);
    let table = [
        ("assets/logo.bin", "not_text"),
        ("../jira/SKILL.md", "resource_not_found"),
        ("/etc/passwd", "resource_not_found"),
        ("SKILL.md", "resource_not_found"),
        ("", "invalid_arguments"),
    ];
    for (resource, code) in table {
        let outcome = detail(&world, resource).await;
        assert_eq!((outcome.code.as_ref(), outcome.is_error), (code, true), "{resource}");
        assert!(outcome.hint.is_some(), "{resource}");
    }
}

#[tokio::test]
async fn unloading_is_possible_and_what_is_not_loaded_cannot_be_unloaded() {
    let world = world();
    world.load("write_sql").await;
    let outcome = world.call("unload_skill", json!({"skill_id": "write_sql"})).await;
    assert_eq!(outcome.content, "Skill 'write_sql' unloaded. Its instructions no longer apply.");
    assert!(world.state().await.loaded.is_empty());
    let again = world.call("unload_skill", json!({"skill_id": "write_sql"})).await;
    assert_eq!((again.is_error, again.code.as_ref()), (true, "skill_not_loaded"));
    // It can be loaded again.
    assert_eq!(world.load("write_sql").await.code, "loaded");
}

// The words of the dialect

fn in_its_dialect() -> World {
    let sql = SQL.replace("---\n# SQL", "metadata:\n  title: SQL Query Expert\ntool_configs:\n  - \
        name: sql_query\n    description: Execute a SQL query.\n    method: execute_query\n---\n# SQL");
    Plan::new()
        .dialect(Dialect::named("langchain_docker").unwrap())
        .file("write_sql/SKILL.md", sql)
        .file("write_sql/examples.md", "SELECT 1;")
        .skill("jira", "Jira")
        .change(|builder| builder.tool(echo("sql_query")).toolkit(Arc::new(samples())))
        .build()
}

async fn prompt(world: &World) -> Prompt {
    let request = PromptRequest::new();
    world.runtime.prompt(&world.session, &world.agent, request).await.unwrap()
}

#[tokio::test]
async fn level_1_lists_ids_titles_and_descriptions_and_what_is_loaded() {
    let world = in_its_dialect();
    let system = prompt(&world).await.system;
    let entry = "- write_sql: SQL Query Expert - Write and execute SQL queries";
    assert!(system.contains("## Available Skills\n"));
    assert!(system.contains(entry) && system.contains("- jira: Jira - Does jira."), "{system}");
    assert!(!system.contains("Currently loaded"));
    world.load("write_sql").await;
    let system = prompt(&world).await.system;
    assert!(system.ends_with("\n\n**Currently loaded skills**: write_sql"), "{system}");
}

#[tokio::test]
async fn gated_tools_are_declared_and_refuse_until_their_skill_is_loaded() {
    let world = in_its_dialect();
    let tools = prompt(&world).await.tools;
    let query = tools.iter().find(|tool| tool.name == "sql_query").unwrap();
    assert!(query.description.ends_with("\n\nRequires the 'write_sql' skill to be loaded first."));
    let refused = world.call("sql_query", json!({"query": "SELECT 1"})).await;
    assert_eq!(
        refused.content,
        "The 'sql_query' tool requires the 'write_sql' skill to be loaded first.\nPlease use \
         load_skill('write_sql') before using this tool."
    );
    assert_eq!((refused.is_error, refused.code.as_ref()), (true, "skill_not_loaded"));
    world.load("write_sql").await;
    assert!(!world.call("sql_query", json!({"query": "SELECT 1"})).await.is_error);
    assert_eq!(prompt(&world).await.tools, tools);
}

#[tokio::test]
async fn the_texts_of_load_list_and_detail() {
    let world = in_its_dialect();
    let load = async |id: &str| world.call("load_skill", json!({"skill_id": id})).await.content;
    assert_eq!(load("nope").await, "Unknown skill: nope. Available skills: jira, write_sql");
    assert_eq!(load("write_sql").await, "## Skill Loaded: SQL Query Expert\n\n# SQL Query Expert");
    assert_eq!(
        load("write_sql").await,
        "Skill 'write_sql' is already loaded (loaded 1 time(s)). You can proceed with using its \
         tools without loading again."
    );
    let list = world.call("list_loaded_skills", json!({})).await.content;
    assert_eq!(list, "Currently loaded skills:\n- write_sql (loaded 1 time(s))");
    let detail = async |id: &str, resource: &str| {
        let arguments = json!({"skill_id": id, "resource": resource});
        world.call("load_skill_detail", arguments).await.content
    };
    assert_eq!(detail("write_sql", "examples").await, "SELECT 1;");
    assert_eq!(
        detail("jira", "x").await,
        "Skill 'jira' is not loaded. Please load it first with load_skill('jira')."
    );
    assert!(detail("write_sql", "x").await.starts_with("Unknown resource: x. Available: samples"));
    world.remove("write_sql/SKILL.md");
    world.catalog.refresh().await;
    assert_eq!(detail("write_sql", "examples").await, "Skill not found: write_sql");
    world.remove("jira/SKILL.md");
    let failed = load("jira").await;
    assert!(failed.starts_with("Error loading skill 'jira': "), "{failed}");
}
