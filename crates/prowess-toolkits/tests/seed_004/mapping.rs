//! "Tool-to-Skill Mapping": each row of the three tables, with what its tool gives.

use serde_json::{Value, json};

use crate::jira_support::{Edition, jira, toolkit};
use crate::{frontmatter, world_with};

/// A row: the skill declares the tool with this method, its description has the words of the seed,
/// it waits for its skill, and then it gives what it says.
async fn row(skill: &str, tool: &str, method: &str, words: &str, call: Value, gives: &str) {
    let tools = frontmatter(skill).tool_configs();
    let own = tools.into_iter().find(|it| it.name == tool);
    let own = own.unwrap_or_else(|| panic!("{skill} declares no {tool}"));
    assert_eq!(own.method, method);
    assert!(own.requires_skill_loaded);
    let description = own.description.to_lowercase();
    for word in words.split(' ') {
        assert!(description.contains(word), "{word} is not in: {description}");
    }
    let server = jira(Edition::Cloud);
    let world = world_with(None, toolkit(&server));
    let shut = world.call(tool, call.clone()).await;
    assert_eq!((shut.is_error, shut.code.as_ref()), (true, "skill_not_loaded"));
    let loaded = world.load(skill).await;
    assert!(!loaded.is_error, "{}", loaded.content);
    let given = world.call(tool, call).await;
    assert!(!given.is_error && given.content.contains(gives), "{tool}: {}", given.content);
}

async fn sql(tool: &str, method: &str, words: &str, call: Value, gives: &str) {
    row("write_sql", tool, method, words, call, gives).await;
}

async fn of_jira(tool: &str, method: &str, words: &str, call: Value, gives: &str) {
    row("jira", tool, method, words, call, gives).await;
}

async fn xlsx(tool: &str, words: &str, gives: &str) {
    row("xlsx", tool, "load_details", words, json!({}), gives).await;
}

// SQL Skill (write_sql) - v2.0.0

#[tokio::test]
async fn sql_query() {
    let call = json!({"query": "SELECT COUNT(*) FROM customers"});
    sql("sql_query", "execute_query", "execute sql query read-only", call, "| 42 |").await;
}

#[tokio::test]
async fn sql_list_tables() {
    sql("sql_list_tables", "list_tables", "list all tables", json!({}), "customers").await;
}

#[tokio::test]
async fn sql_describe_table() {
    let call = json!({"table_name": "customers"});
    sql("sql_describe_table", "describe_table", "get schema indexes", call, "CREATE TABLE").await;
}

#[tokio::test]
async fn sql_explain_query() {
    let call = json!({"query": "SELECT 1"});
    let gives = "## Query Execution Plan";
    sql("sql_explain_query", "explain_query", "get execution plan", call, gives).await;
}

#[tokio::test]
async fn sql_validate_query() {
    let call = json!({"query": "SELECT name FROM customers"});
    let gives = "Query syntax is valid.";
    sql("sql_validate_query", "validate_query", "validate sql syntax", call, gives).await;
}

#[tokio::test]
async fn sql_get_samples() {
    sql("sql_get_samples", "load_details", "get sample", json!({}), "## Sample Data").await;
}

/// Or load resources.
#[tokio::test]
async fn sql_get_samples_of_a_resource() {
    let call = json!({"resource": "anti_patterns"});
    sql("sql_get_samples", "load_details", "get sample", call, "SELECT *").await;
}

#[test]
fn the_sql_skill_has_no_other_tools() {
    assert_eq!(frontmatter("write_sql").tool_configs().len(), 6);
}

// Jira Skill (jira) - v1.0.0

#[tokio::test]
async fn jira_search() {
    let call = json!({"jql": "project = SMALL"});
    of_jira("jira_search", "search_issues", "search issues jql", call, "Found 2 issues").await;
}

#[tokio::test]
async fn jira_get_issue() {
    let call = json!({"issue_key": "PROJ-1"});
    of_jira("jira_get_issue", "get_issue", "get issue", call, "# PROJ-1: It breaks").await;
}

#[tokio::test]
async fn jira_list_projects() {
    let gives = "- **PROJ**: The Project";
    of_jira("jira_list_projects", "list_projects", "list projects", json!({}), gives).await;
}

#[tokio::test]
async fn jira_get_sprints() {
    let call = json!({"board_id": 1});
    of_jira("jira_get_sprints", "get_sprints", "get sprints board", call, "Sprint 7").await;
}

#[tokio::test]
async fn jira_get_changelog() {
    let call = json!({"issue_key": "PROJ-1"});
    let gives = "**Changelog for PROJ-1**";
    of_jira("jira_get_changelog", "get_changelog", "get history issue", call, gives).await;
}

#[tokio::test]
async fn jira_jql_reference() {
    of_jira("jira_jql_reference", "load_details", "jql", json!({}), "# JQL reference").await;
}

// XLSX Skill (xlsx) - v1.0.0

#[tokio::test]
async fn xlsx_get_examples() {
    xlsx("xlsx_get_examples", "get code examples", "xlsx_create").await;
}

#[tokio::test]
async fn xlsx_get_formatting() {
    xlsx("xlsx_get_formatting", "get formatting guide", "#,##0").await;
}

#[tokio::test]
async fn xlsx_get_recalc() {
    xlsx("xlsx_get_recalc", "get recalc", "errors_found").await;
}
