//! "Built-in Skills Reference": each row of the three tables.

use serde_json::json;

use crate::jira_support::{Edition, jira, toolkit};
use crate::{frontmatter, world, world_with};

fn purpose(skill: &str, words: &[&str]) {
    let frontmatter = frontmatter(skill);
    let description = frontmatter.description().unwrap();
    for word in words {
        assert!(description.contains(word), "{word} is not in: {description}");
    }
}

fn tools(skill: &str, expected: &[&str]) {
    let tools: Vec<String> =
        frontmatter(skill).tool_configs().into_iter().map(|it| it.name).collect();
    for tool in expected {
        assert!(tools.iter().any(|it| it == tool), "{tool} is not in {tools:?}");
    }
}

fn resources(skill: &str, expected: &[&str]) {
    let resources: Vec<String> =
        frontmatter(skill).resource_configs().into_iter().map(|it| it.name).collect();
    assert_eq!(resources, expected);
}

// SQL Skill (write_sql) - v2.0.0

#[test]
fn sql_name() {
    assert_eq!(frontmatter("write_sql").title(), Some("SQL Query Expert"));
}

#[test]
fn sql_purpose() {
    purpose("write_sql", &["Write and execute SQL queries", "optimization", "validation"]);
}

#[test]
fn sql_category() {
    assert_eq!(frontmatter("write_sql").category(), Some("database"));
}

#[test]
fn sql_version() {
    assert_eq!(frontmatter("write_sql").version(), Some("2.0.0"));
}

#[test]
fn sql_tools() {
    let all = ["sql_query", "sql_list_tables", "sql_describe_table", "sql_explain_query"];
    tools("write_sql", &all);
    tools("write_sql", &["sql_validate_query", "sql_get_samples"]);
}

#[tokio::test]
async fn sql_resources() {
    let all = ["samples", "examples", "patterns", "anti_patterns", "dialect_reference"];
    resources("write_sql", &all);
    let samples = frontmatter("write_sql").resource_configs().remove(0);
    assert!(samples.dynamic && samples.method.as_deref() == Some("get_sample_rows"));
    let world = world(None);
    world.load("write_sql").await;
    for resource in all {
        let call = json!({"skill_id": "write_sql", "resource": resource});
        let given = world.call("load_skill_detail", call).await;
        assert!(!given.is_error && given.content.len() > 200, "{resource}: {}", given.content);
    }
}

#[tokio::test]
async fn sql_dynamic_content() {
    let loaded = world(None).load("write_sql").await.content;
    for line in ["- Dialect: sqlite", "- Available Tables: ", "CREATE TABLE"] {
        assert!(loaded.contains(line), "{line} is not in {loaded}");
    }
    assert!(loaded.lines().any(|it| it.starts_with("- Available") && it.contains("customers")));
}

// Jira Skill (jira) - v1.0.0

#[test]
fn jira_name() {
    assert_eq!(frontmatter("jira").title(), Some("Jira Query Expert"));
}

#[test]
fn jira_purpose() {
    purpose("jira", &["Query Jira issues, sprints, projects", "(read-only)"]);
}

#[test]
fn jira_category() {
    assert_eq!(frontmatter("jira").category(), Some("project_management"));
}

#[test]
fn jira_version() {
    assert_eq!(frontmatter("jira").version(), Some("1.0.0"));
}

#[test]
fn jira_tools() {
    tools("jira", &["jira_search", "jira_get_issue", "jira_list_projects", "jira_get_sprints"]);
    tools("jira", &["jira_get_changelog", "jira_jql_reference"]);
}

#[tokio::test]
async fn jira_resources() {
    resources("jira", &["jql_reference"]);
    let world = world(None);
    world.load("jira").await;
    let call = json!({"skill_id": "jira", "resource": "jql_reference"});
    let given = world.call("load_skill_detail", call).await;
    assert!(given.content.contains("# JQL reference"), "{}", given.content);
}

#[tokio::test]
async fn jira_dynamic_content() {
    let unset = world(None).load("jira").await.content;
    assert!(unset.contains("- Status: not configured"), "{unset}");
    let server = jira(Edition::Cloud);
    let loaded = world_with(None, toolkit(&server)).load("jira").await.content;
    for line in ["- Status: configured", "- **PROJ**: The Project", "- **OPS**: Operations"] {
        assert!(loaded.contains(line), "{line} is not in {loaded}");
    }
}

// XLSX Skill (xlsx) - v1.0.0

#[test]
fn xlsx_name() {
    assert_eq!(frontmatter("xlsx").title(), Some("Spreadsheet Expert"));
}

#[test]
fn xlsx_purpose() {
    purpose("xlsx", &["spreadsheet creation and analysis", "edits"]);
}

#[test]
fn xlsx_category() {
    assert_eq!(frontmatter("xlsx").category(), Some("data"));
}

#[test]
fn xlsx_version() {
    assert_eq!(frontmatter("xlsx").version(), Some("1.0.0"));
}

/// "(via load_details)"
#[test]
fn xlsx_tools() {
    let tools = frontmatter("xlsx").tool_configs();
    let given: Vec<&str> =
        tools.iter().filter(|it| it.method == "load_details").map(|it| it.name.as_str()).collect();
    assert_eq!(given, ["xlsx_get_examples", "xlsx_get_formatting", "xlsx_get_recalc"]);
}

#[tokio::test]
async fn xlsx_resources() {
    let all = ["examples", "formatting", "recalc"];
    resources("xlsx", &all);
    let world = world(None);
    world.load("xlsx").await;
    for resource in all {
        let call = json!({"skill_id": "xlsx", "resource": resource});
        let given = world.call("load_skill_detail", call).await;
        assert!(!given.is_error && given.content.len() > 500, "{resource}: {}", given.content);
    }
}

/// "None"
#[tokio::test]
async fn xlsx_dynamic_content() {
    let (first, second) = (world(None).load("xlsx").await, world(None).load("xlsx").await);
    assert!(first.content.contains("## XLSX Skill Activated"), "{}", first.content);
    assert_eq!(first.content, second.content);
}
