//! The skill `jira` in an engine: what the seed's tables say of it (S14.1).

#![cfg(feature = "jira")]

mod jira_support;

use std::fs;
use std::sync::Arc;

use jira_support::{Edition, Server, jira, toolkit};
use prowess_catalog::{Catalog, MemoryFile, MemorySource};
use prowess_runtime::{AgentName, Runtime, ToolCall, ToolOutcome};
use serde_json::{Value, json};

fn read(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../skills/jira/");
    fs::read_to_string(format!("{folder}{file}")).unwrap()
}

fn engine(server: &Server) -> Runtime {
    let reference = MemoryFile::new(read("jql_reference.md"));
    let source = MemorySource::new("built-in").with_skill("jira", read("SKILL.md"));
    let source = source.with_file("jira", "jql_reference.md", reference);
    let catalog = Catalog::builder().source(source).build();
    Runtime::builder(catalog).toolkit(Arc::new(toolkit(server))).build().unwrap()
}

async fn call(engine: &Runtime, tool: &str, arguments: Value) -> ToolOutcome {
    let id = format!("{tool}-{arguments}");
    let call = ToolCall::new(id, tool, arguments);
    engine.dispatch(&"test".parse().unwrap(), &AgentName::default(), call).await.unwrap()
}

#[tokio::test]
async fn the_tools_of_the_skill_open_when_it_is_loaded() {
    for edition in [Edition::Cloud, Edition::DataCenter] {
        let server = jira(edition);
        let engine = engine(&server);
        let set_aside = engine.quarantined(&"test".parse().unwrap(), &AgentName::default()).await;
        assert!(set_aside.is_empty(), "{set_aside:?}");
        let tools = [
            ("jira_search", json!({"jql": "project = PROJ"}), "Found "),
            ("jira_get_issue", json!({"issue_key": "PROJ-1"}), "# PROJ-1: It breaks"),
            ("jira_list_projects", json!({}), "**Available Projects:**"),
            ("jira_get_sprints", json!({"board_id": 1}), "**Active Sprints for Board 1:**"),
            ("jira_get_sprint_issues", json!({"sprint_id": 7}), "Found 3 issues in sprint 7"),
            ("jira_get_changelog", json!({"issue_key": "PROJ-1"}), "**Changelog for PROJ-1**"),
            ("jira_get_comments", json!({"issue_key": "PROJ-1"}), "**Comments for PROJ-1**"),
            (
                "jira_get_worklogs",
                json!({"issue_key": "PROJ-1"}),
                "**Worklogs for PROJ-1** (Total: 1.5h)",
            ),
            ("jira_get_boards", json!({}), "**Available Boards:**"),
            ("jira_jql_reference", json!({}), "# JQL reference"),
        ];
        for (tool, arguments, _) in &tools {
            let outcome = call(&engine, tool, arguments.clone()).await;
            assert_eq!(
                (outcome.code.as_ref(), outcome.is_error),
                ("skill_not_loaded", true),
                "{tool}"
            );
        }
        assert!(server.seen().is_empty(), "nothing is asked before that");
        let loaded = call(&engine, "load_skill", json!({"skill": "jira"})).await;
        assert!(!loaded.is_error, "{}", loaded.content);
        let (opening, body) = (
            loaded.content.find("## Jira Skill Activated"),
            loaded.content.find("# Jira Query Expert"),
        );
        assert!(opening.unwrap() < body.unwrap(), "{}", loaded.content);
        assert!(
            loaded.content.contains("- Status: configured")
                && loaded.content.contains("- **PROJ**: The Project")
        );
        for (tool, mut arguments, begins) in tools {
            // Another call than the one that was refused.
            arguments["limit"] = json!(50);
            if matches!(tool, "jira_get_issue" | "jira_jql_reference") {
                arguments.as_object_mut().unwrap().remove("limit");
            }
            let call = ToolCall::new(format!("again-{tool}"), tool, arguments);
            let outcome = engine
                .dispatch(&"test".parse().unwrap(), &AgentName::default(), call)
                .await
                .unwrap();
            assert!(outcome.content.starts_with(begins), "{tool}: {}", outcome.content);
        }
        let wrong =
            call(&engine, "jira_get_sprints", json!({"board_id": 1, "state_filter": "paused"}))
                .await;
        assert_eq!((wrong.code.as_ref(), wrong.is_error), ("invalid_arguments", true));
        let detail = call(
            &engine,
            "load_skill_detail",
            json!({"skill": "jira", "resource": "jql_reference"}),
        )
        .await;
        assert!(detail.content.contains("# JQL reference"), "{}", detail.content);
    }
}

#[tokio::test]
async fn the_skill_is_loaded_when_jira_cannot_be_reached() {
    let server = Server::start(|_| jira_support::Answer::html(503, ""));
    let engine = engine(&server);
    let loaded = call(&engine, "load_skill", json!({"skill": "jira"})).await;
    assert!(!loaded.is_error, "{}", loaded.content);
    assert!(
        loaded.content.contains("The projects could not be listed: Jira API error (503)"),
        "{}",
        loaded.content
    );
    let failed = call(&engine, "jira_get_boards", json!({})).await;
    assert_eq!((failed.code.as_ref(), failed.is_error), ("jira_unavailable", true));
}

#[test]
fn the_skill_is_what_the_seed_says() {
    let text = read("SKILL.md");
    for line in [
        "name: jira",
        "category: project_management",
        "version: \"1.0.0\"",
        "  title: Jira Query Expert",
        "  - name: jql_reference",
        "    file: jql_reference.md",
        "        default: jql_reference",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}");
    }
    let table = [
        ("jira_search", "search_issues"),
        ("jira_get_issue", "get_issue"),
        ("jira_list_projects", "list_projects"),
        ("jira_get_sprints", "get_sprints"),
        ("jira_get_changelog", "get_changelog"),
        ("jira_jql_reference", "load_details"),
    ];
    for (tool, method) in table {
        let after = text.split(&format!("  - name: {tool}\n")).nth(1).unwrap();
        let found = after.lines().find_map(|line| line.trim().strip_prefix("method: "));
        assert_eq!(found, Some(method), "{tool}");
    }
}
