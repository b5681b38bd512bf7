//! Large results in little memory, and the demo that many programs make at once.
#![cfg(feature = "sql")]

#[path = "sql_servers/mod.rs"]
mod sql_servers;
mod sql_support;

use std::process::Command;
use std::sync::Arc;

use prowess_toolkits::{SqlConnectionSettings, SqlSettings, SqlToolkit};
use prowess_workspace::FileArtifacts;
use serde_json::json;
use sql_servers::{Database, Kind, Role};
use sql_support::Tools;

/// Bytes that this process had at most since it was asked to forget.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn rows(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => {
            "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 200000) \
             SELECT n, printf('%0500d', n) AS t FROM g"
        }
        Kind::Postgresql => {
            "SELECT n, lpad(n::text, 500, 'x') AS t FROM generate_series(1, 200000) g(n)"
        }
        Kind::Mysql => "SELECT seq, LPAD(seq, 500, 'x') AS t FROM seq_1_to_200000",
    }
}

#[tokio::test]
async fn two_hundred_thousand_rows_are_kept_in_little_memory() {
    for kind in Kind::ALL {
        let Some(database) = Database::new("large results", kind).await else { continue };
        let folder = tempfile::tempdir().unwrap();
        let mut own = SqlConnectionSettings::new(database.url(Role::Reader));
        own.max_artifact_bytes = 1 << 30;
        own.timeout_seconds = 300;
        let settings = SqlSettings::default().with_connection("main", own);
        let store = FileArtifacts::new(folder.path().join("artifacts")).with_max_bytes(1 << 30);
        let toolkit = SqlToolkit::new(settings, folder.path()).unwrap();
        let toolkit = toolkit.with_artifacts(Arc::new(store)).with_scratch(folder.path());
        let tools = Tools::new(toolkit);
        tools.ok("SELECT 1").await;
        // The peak begins anew.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = peak();
        let outcome = tools.ok(rows(kind)).await;
        let grown = peak() - before;
        assert_eq!(outcome.data["row_count"], 200_000, "{kind:?}");
        assert_eq!(outcome.artifacts.len(), 1, "{}", outcome.content);
        println!("{kind:?}: 100 MB of rows in {} KiB", grown >> 10);
        assert!(grown < 16 << 20, "{kind:?}: {grown} bytes");
    }
}

#[test]
fn child() {
    let Ok(home) = std::env::var("PROWESS_TEST_DEMO_HOME") else { return };
    let settings = SqlSettings::default().with_environment(|_| None).unwrap();
    let tools = Tools::new(SqlToolkit::new(settings, home).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(tools.ok("SELECT COUNT(*) FROM customers"));
    assert_eq!(outcome.data["rows"], json!([[42]]));
}

#[test]
fn many_programs_make_one_demo() {
    let home = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let start = || {
        Command::new(&own)
            .args(["--exact", "child"])
            .env("PROWESS_TEST_DEMO_HOME", home.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..8).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let left: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["demo.db"]);
}
