//! What seed 004 says of the three built-in skills, row by row: which tools they have and what these
//! are bound to, what they are called, and the flow from a question to "42".

#![cfg(all(feature = "sql", feature = "jira", feature = "xlsx"))]

mod jira_support;
#[path = "seed_004/mapping.rs"]
mod mapping;
#[path = "seed_004/reference.rs"]
mod reference;
mod sql_servers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prowess_catalog::Catalog;
use prowess_format::{Frontmatter, Skill};
use prowess_runtime::{
    AgentName, Dialect, PromptRequest, Runtime, SessionKey, ToolCall, ToolOutcome,
};
use prowess_toolkits::{
    BuiltInSkill, JiraAccess, JiraSettings, JiraToolkit, SqlConnectionSettings, SqlSettings,
    SqlToolkit, XlsxToolkit,
};
use prowess_workspace::Workspaces;
use serde_json::{Value, json};
use sql_servers::{Database, Kind, Role};
use tempfile::TempDir;

struct World {
    runtime: Runtime,
    calls: AtomicUsize,
    _folder: TempDir,
}

/// An engine with all built-in skills, as a program has it that is started without any setting but
/// this database.
fn world(database: Option<&str>) -> World {
    let settings = JiraSettings::default();
    let access = JiraAccess::from_variables(&settings, |_| None).unwrap();
    world_with(database, JiraToolkit::new(settings, access))
}

fn world_with(database: Option<&str>, jira: JiraToolkit) -> World {
    let folder = TempDir::new().unwrap();
    let settings = match database {
        Some(url) => {
            SqlSettings::default().with_connection("main", SqlConnectionSettings::new(url))
        }
        None => SqlSettings::default().with_environment(|_| None).unwrap(),
    };
    let sql = SqlToolkit::new(settings, folder.path()).unwrap();
    let sheets = XlsxToolkit::new(Workspaces::new(folder.path().join("workspaces")));
    let source = BuiltInSkill::source(BuiltInSkill::ALL);
    let runtime = Runtime::builder(Catalog::builder().source(source).build())
        .dialect(Dialect::named("langchain_docker").unwrap())
        .toolkit(Arc::new(sql))
        .toolkit(Arc::new(jira))
        .toolkit(Arc::new(sheets))
        .build()
        .unwrap();
    World { runtime, calls: AtomicUsize::new(0), _folder: folder }
}

impl World {
    async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let id = format!("call-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let call = ToolCall::new(id, tool, arguments);
        self.runtime.dispatch(&session(), &AgentName::default(), call).await.unwrap()
    }

    async fn load(&self, skill: &str) -> ToolOutcome {
        self.call("load_skill", json!({"skill_id": skill})).await
    }
}

fn session() -> SessionKey {
    "seed".parse().unwrap()
}

fn frontmatter(skill: &str) -> Frontmatter {
    let skill = BuiltInSkill::ALL.iter().find(|it| it.name == skill).unwrap();
    Skill::parse_bytes(skill.files[0].1, &Default::default()).skill.unwrap().frontmatter
}

#[tokio::test]
async fn nothing_that_they_declare_is_unbound() {
    let world = world(None);
    let set_aside = world.runtime.quarantined(&session(), &AgentName::default()).await;
    assert!(set_aside.is_empty(), "{set_aside:?}");
}

// Level 1

/// Every line of the seed, and with it the whole line that a model sees.
#[tokio::test]
async fn level_1_names_the_three_skills() {
    let world = world(None);
    let (session, agent) = (session(), AgentName::default());
    let prompt = world.runtime.prompt(&session, &agent, PromptRequest::new()).await;
    let system = prompt.unwrap().system;
    let lines: Vec<&str> = system.lines().collect();
    assert!(lines.contains(&"## Available Skills"), "{system}");
    for (skill, begins) in [
        (
            "write_sql",
            "- write_sql: SQL Query Expert - Write and execute SQL queries against the database",
        ),
        (
            "jira",
            "- jira: Jira Query Expert - Query Jira issues, sprints, projects, and users (read-only)",
        ),
        ("xlsx", "- xlsx: Spreadsheet Expert - Comprehensive spreadsheet creation and analysis"),
    ] {
        let own = frontmatter(skill);
        let (title, description) = (own.title().unwrap(), own.description().unwrap());
        let line = format!("- {skill}: {title} - {description}");
        assert!(line.starts_with(begins), "{line}");
        assert!(lines.contains(&line.as_str()), "{line} is not in {system}");
    }
}

// Gated tools

/// the gate is in the dispatcher, and its answer is an error.
#[tokio::test]
async fn every_tool_waits_for_its_skill() {
    for skill in ["write_sql", "jira", "xlsx"] {
        let world = world(None);
        for tool in frontmatter(skill).tool_configs().into_iter().map(|it| it.name) {
            let refused = world.call(&tool, json!({})).await;
            assert_eq!((refused.is_error, refused.code.as_ref()), (true, "skill_not_loaded"));
            let text = format!(
                "The '{tool}' tool requires the '{skill}' skill to be loaded first.\nPlease use \
                 load_skill('{skill}') before using this tool."
            );
            assert_eq!(refused.content, text);
        }
    }
}

// Execution flow, on three real servers

#[tokio::test]
async fn how_many_customers_do_we_have() {
    for kind in Kind::ALL {
        let Some(database) = Database::new("seed_004::how_many_customers_do_we_have", kind).await
        else {
            continue;
        };
        flow(world(Some(&database.url(Role::Reader))), kind.name()).await;
    }
}

#[tokio::test]
async fn the_demo_database_answers_without_any_setting() {
    flow(world(None), "sqlite").await;
}

/// every tool can name the connection that it is about.
#[tokio::test]
async fn a_connection_can_be_named_in_every_tool() {
    let folder = TempDir::new().unwrap();
    let other = rusqlite::Connection::open(folder.path().join("other.db")).unwrap();
    other
        .execute_batch("CREATE TABLE ships (name TEXT); INSERT INTO ships VALUES ('Ada')")
        .unwrap();
    let url = format!("sqlite:{}", folder.path().join("other.db").display());
    let settings = SqlSettings::default()
        .with_connection("main", SqlConnectionSettings::new("sqlite:///demo.db"))
        .with_connection("other", SqlConnectionSettings::new(url));
    let sql = SqlToolkit::new(settings, folder.path()).unwrap();
    let skill = BuiltInSkill::ALL.iter().find(|it| it.name == "write_sql").unwrap();
    let source = BuiltInSkill::source(std::slice::from_ref(skill));
    let runtime = Runtime::builder(Catalog::builder().source(source).build())
        .dialect(Dialect::named("langchain_docker").unwrap())
        .toolkit(Arc::new(sql))
        .build()
        .unwrap();
    let world = World { runtime, calls: AtomicUsize::new(0), _folder: folder };
    world.load("write_sql").await;
    for (tool, arguments) in [
        ("sql_query", json!({"query": "SELECT name FROM ships"})),
        ("sql_list_tables", json!({})),
        ("sql_describe_table", json!({"table_name": "ships"})),
        ("sql_explain_query", json!({"query": "SELECT name FROM ships"})),
        ("sql_validate_query", json!({"query": "SELECT name FROM ships"})),
        ("sql_get_samples", json!({})),
    ] {
        let mut named = arguments.clone();
        named["connection"] = json!("other");
        let given = world.call(tool, named).await;
        let is_it = given.content.contains("ships") || given.content.contains("Ada");
        let is_valid = tool == "sql_validate_query" && given.content.starts_with('✓');
        assert!(!given.is_error && (is_it || is_valid), "{tool}: {}", given.content);
        let without = world.call(tool, arguments.clone()).await;
        assert!(!without.content.contains("Ada"), "{tool}: {}", without.content);
        let mut named = arguments;
        named["connection"] = json!("gone");
        let wrong = world.call(tool, named).await;
        assert_eq!(wrong.code, "connection_not_found", "{tool}: {}", wrong.content);
    }
}

async fn flow(world: World, dialect: &str) {
    let loaded = world.load("write_sql").await;
    assert!(!loaded.is_error, "{}", loaded.content);
    let headings = [
        "## SQL Skill Activated",
        "### Database Information",
        &format!("- Dialect: {dialect}"),
        "- Available Tables: ",
        "### Database Schema",
        "CREATE TABLE",
        "# SQL Query Expert",
        "## Guidelines",
        "### Query Best Practices",
    ];
    let mut at = 0;
    for heading in headings {
        let found = loaded.content[at..].find(heading);
        at += found.unwrap_or_else(|| panic!("{heading} is not behind {at}: {}", loaded.content));
    }
    let counted = world.call("sql_query", json!({"query": "SELECT COUNT(*) FROM customers"})).await;
    assert!(!counted.is_error && counted.content.contains("| 42 |"), "{}", counted.content);
    assert_eq!(counted.data["rows"][0][0].to_string().trim_matches('"'), "42");
    let tables = world.call("sql_list_tables", json!({})).await;
    let tables: Vec<&str> = tables.content.split(", ").collect();
    for table in ["customers", "orders", "products"] {
        assert!(tables.contains(&table), "{table} is not in {tables:?}");
    }
    let described = world.call("sql_describe_table", json!({"table_name": "customers"})).await;
    assert!(described.content.contains("CREATE TABLE"), "{}", described.content);
    let explained = world.call("sql_explain_query", json!({"query": "SELECT 1"})).await;
    assert!(explained.content.starts_with("## Query Execution Plan"), "{}", explained.content);
    let valid =
        world.call("sql_validate_query", json!({"query": "SELECT name FROM customers"})).await;
    assert!(valid.content.starts_with("✓ Query syntax is valid."), "{}", valid.content);
    let samples = world.call("sql_get_samples", json!({})).await;
    assert!(samples.content.starts_with("## Sample Data"), "{}", samples.content);
    for resource in ["examples", "patterns", "anti_patterns", "dialect_reference"] {
        let given = world.call("sql_get_samples", json!({"resource": resource})).await;
        assert!(!given.is_error && given.content.len() > 1000, "{resource}");
    }
    let unknown = world.call("sql_get_samples", json!({"resource": "nope"})).await;
    let expected = "Unknown resource: nope. Available: samples, examples, patterns, anti_patterns, \
                    dialect_reference";
    assert_eq!((unknown.is_error, unknown.content.as_str()), (true, expected));
    let refused = world.call("sql_query", json!({"query": "DELETE FROM customers"})).await;
    assert_eq!(
        refused.content,
        "Error: DELETE operations not allowed in read-only mode. Only SELECT queries are permitted."
    );
    assert!(refused.is_error);
}
