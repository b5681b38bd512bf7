//! The skill `write_sql`: every query in its pages runs, on every database that it is written for.

#![cfg(feature = "sql")]

mod sql_servers;
mod sql_support;

use std::path::{Path, PathBuf};

use prowess_toolkits::{Layers, SqlConnectionSettings, SqlSettings, SqlToolkit};
use sql_servers::{Database, Kind, Role};
use sql_support::Tools;

const PAGES: [&str; 4] = ["examples.md", "patterns.md", "anti_patterns.md", "dialect_reference.md"];

fn skill() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills/sql")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(skill().join(name)).unwrap()
}

/// The queries of the pages that are written for a kind of database: those that are marked with its
/// name, and those that are marked as SQL, which are for all.
fn queries(kind: Kind) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for name in PAGES {
        let page = page(name);
        let mut blocks = page.split("```");
        blocks.next();
        while let (Some(block), _) = (blocks.next(), blocks.next()) {
            let (mark, text) = block.split_once('\n').unwrap();
            let known = ["sql", "sqlite", "postgresql", "mysql", "tsql", "text"];
            assert!(known.contains(&mark), "{name}: {mark}");
            if mark == "sql" || mark == kind.name() {
                all.push((name.to_owned(), text.to_owned()));
            }
        }
    }
    assert!(all.len() > 50, "{kind:?}: {}", all.len());
    all
}

async fn run_all(tools: &Tools, kind: Kind) {
    let mut wrong = Vec::new();
    for (page, sql) in queries(kind) {
        let outcome = tools.query(&sql).await;
        if outcome.is_error {
            wrong.push(format!("{page}: {}\n{sql}", outcome.content));
        }
    }
    assert!(wrong.is_empty(), "{kind:?}: {}", wrong.join("\n"));
}

async fn queries_of_the_skill_run(kind: Kind) {
    let test = format!("queries_of_the_skill_run_on_{}", kind.name());
    let Some(database) = Database::new(&test, kind).await else { return };
    let settings = SqlConnectionSettings::new(database.url(Role::Reader));
    run_all(&Tools::with(settings, Layers::ALL), kind).await;
}

#[tokio::test]
async fn queries_of_the_skill_run_on_sqlite() {
    queries_of_the_skill_run(Kind::Sqlite).await;
}

#[tokio::test]
async fn queries_of_the_skill_run_on_postgresql() {
    queries_of_the_skill_run(Kind::Postgresql).await;
}

#[tokio::test]
async fn queries_of_the_skill_run_on_mariadb() {
    queries_of_the_skill_run(Kind::Mysql).await;
}

/// The tables of the demo are those that the pages speak of.
#[tokio::test]
async fn queries_of_the_skill_run_on_the_demo() {
    let home = tempfile::tempdir().unwrap();
    let settings = SqlSettings::default().with_environment(|_| None).unwrap();
    let tools = Tools::new(SqlToolkit::new(settings, home.path()).unwrap());
    run_all(&tools, Kind::Sqlite).await;
}

#[test]
fn there_are_twenty_anti_patterns_each_with_the_wrong_the_why_and_the_right() {
    let page = page("anti_patterns.md");
    let all: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(all.len(), 20);
    for (at, one) in all.iter().enumerate() {
        assert!(one.starts_with(&format!("{}. ", at + 1)), "{one}");
        let (wrong, right) = one.split_once("\nWhy: ").unwrap();
        for part in [wrong, right] {
            assert_eq!(part.matches("```").count(), 2, "{one}");
        }
    }
}

#[test]
fn the_instructions_are_short_and_in_the_order_of_the_seed() {
    let text = page("SKILL.md");
    let (_, body) = text.split_once("\n---\n").unwrap();
    let tokens = tiktoken_rs::o200k_base_singleton().encode_ordinary(body).len();
    assert!(tokens <= 900, "{tokens} tokens");
    let headings: Vec<&str> = body.lines().filter(|line| line.starts_with('#')).collect();
    let expected = [
        "# SQL Query Expert",
        "## Core Purpose",
        "## Guidelines",
        "### Query Best Practices",
        "### Safety Considerations",
        "### Performance Tips",
        "### More",
    ];
    assert_eq!(headings, expected);
}
