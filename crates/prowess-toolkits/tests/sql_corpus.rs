//! The corpus against the tools: what is hostile is refused, by the whole and in other ways of
//! writing; each layer alone lets nothing be written; what is honest runs.
//!
//! The oracle is the dump of the database before and after, and the files beside it. What the
//! statements do without any layer is told by `sql_corpus_control.rs`.

#![cfg(feature = "sql")]

#[path = "sql_corpus/mod.rs"]
mod corpus;
mod sql_servers;
mod sql_support;

use corpus::mutation::mutations;
use corpus::{Hostile, honest, hostile};
use prowess_toolkits::{
    Layer, Layers, SqlConnectionSettings, SqlDialect, SqlGuard, SqlPrivileges, SqlSuperuser,
};
use sql_servers::{Database, Kind, Role};
use sql_support::Tools;

/// Other ways to write the hostile statements, for each kind of database.
const MUTATIONS: usize = 10_000;
/// All of them are asked of the guard. One of so many is also sent through each of the layers that
/// let it get to the database, which takes longer. [`ALL`] sends every one.
const SENT: usize = 20;
const ALL: &str = "PROWESS_TEST_SQL_ALL";
/// Statements between two dumps.
const BATCH: usize = 500;

const GUARD: Layers = Layers::for_tests(Layer::On, Layer::Off, Layer::Off);
const SESSION: Layers = Layers::for_tests(Layer::Off, Layer::On, Layer::Off);
const ROLE: Layers = Layers::for_tests(Layer::Off, Layer::Off, Layer::On);

fn dialect(kind: Kind) -> SqlDialect {
    match kind {
        Kind::Sqlite => SqlDialect::Sqlite,
        Kind::Postgresql => SqlDialect::Postgresql,
        Kind::Mysql => SqlDialect::Mysql,
    }
}

fn tools(database: &Database, role: Role, layers: Layers) -> Tools {
    let mut settings = SqlConnectionSettings::new(database.url(role));
    // A file can be written by whoever made it.
    let is_whole = layers == Layers::ALL;
    settings.privileges = match database.kind {
        Kind::Sqlite if is_whole => SqlPrivileges::Warn,
        _ => SqlPrivileges::Enforce,
    };
    settings.superuser = SqlSuperuser::Drop;
    Tools::with(settings, layers)
}

#[tokio::test]
async fn honest_statements_pass_on_sqlite() {
    honest_statements_pass(Kind::Sqlite).await;
}

#[tokio::test]
async fn honest_statements_pass_on_postgresql() {
    honest_statements_pass(Kind::Postgresql).await;
}

#[tokio::test]
async fn honest_statements_pass_on_mariadb() {
    honest_statements_pass(Kind::Mysql).await;
}

async fn honest_statements_pass(kind: Kind) {
    let test = format!("honest_statements_pass_on_{}", kind.name());
    let Some(database) = Database::new(&test, kind).await else { return };
    let tools = tools(&database, Role::Reader, Layers::ALL);
    let mut refused = Vec::new();
    for sql in honest(kind) {
        let outcome = tools.query(&sql).await;
        let rows = outcome.data["rows"].as_array().map_or(0, Vec::len);
        if outcome.is_error || rows == 0 {
            refused.push(format!("{}: {}\n    {sql}", outcome.code, outcome.content));
        }
    }
    assert!(refused.is_empty(), "{} of {kind:?}:\n{}", refused.len(), refused.join("\n"));
}

#[tokio::test]
async fn hostile_statements_are_refused_on_sqlite() {
    hostile_statements_are_refused(Kind::Sqlite).await;
}

#[tokio::test]
async fn hostile_statements_are_refused_on_postgresql() {
    hostile_statements_are_refused(Kind::Postgresql).await;
}

#[tokio::test]
async fn hostile_statements_are_refused_on_mariadb() {
    hostile_statements_are_refused(Kind::Mysql).await;
}

/// the whole refuses all of them, also for somebody who may write. So does the guard alone.
async fn hostile_statements_are_refused(kind: Kind) {
    let test = format!("hostile_statements_are_refused_on_{}", kind.name());
    let Some(database) = Database::new(&test, kind).await else { return };
    let guard = SqlGuard::new(dialect(kind));
    let mut settings = SqlConnectionSettings::new(database.url(Role::Owner));
    settings.privileges = SqlPrivileges::Warn;
    let tools = Tools::with(settings, Layers::ALL);
    let before = database.dump().await;
    let mut passed = Vec::new();
    for hostile in hostile(kind) {
        let sql = database.place(&hostile.sql);
        if guard.check(&sql).is_ok() && !hostile.hidden {
            passed.push(format!("the guard: {sql}"));
        }
        let outcome = tools.query(&sql).await;
        if !outcome.is_error {
            passed.push(format!("the whole: {sql}"));
        }
        assert!(outcome.code != "unreachable", "{}", outcome.content);
    }
    assert!(passed.is_empty(), "{} of {kind:?}:\n{}", passed.len(), passed.join("\n"));
    assert_eq!(database.dump().await, before);
}

#[test]
fn the_guard_refuses_mutations_for_sqlite() {
    the_guard_refuses_mutations(Kind::Sqlite);
}

#[test]
fn the_guard_refuses_mutations_for_postgresql() {
    the_guard_refuses_mutations(Kind::Postgresql);
}

#[test]
fn the_guard_refuses_mutations_for_mysql() {
    the_guard_refuses_mutations(Kind::Mysql);
}

fn the_guard_refuses_mutations(kind: Kind) {
    let guard = SqlGuard::new(dialect(kind));
    let visible: Vec<Hostile> = hostile(kind).into_iter().filter(|it| !it.hidden).collect();
    let all = mutations(kind, &visible, MUTATIONS);
    assert_eq!(all.len(), MUTATIONS);
    let passed: Vec<String> = all
        .into_iter()
        .filter(|(_, sql)| guard.check(sql).is_ok())
        .map(|(from, sql)| format!("{sql:?}\n    from {:?}", from.sql))
        .collect();
    assert!(passed.is_empty(), "{} of {kind:?}:\n{}", passed.len(), passed.join("\n"));
}

#[tokio::test]
async fn each_layer_alone_lets_nothing_be_written_on_sqlite() {
    each_layer_alone_lets_nothing_be_written(Kind::Sqlite).await;
}

#[tokio::test]
async fn each_layer_alone_lets_nothing_be_written_on_postgresql() {
    each_layer_alone_lets_nothing_be_written(Kind::Postgresql).await;
}

#[tokio::test]
async fn each_layer_alone_lets_nothing_be_written_on_mariadb() {
    each_layer_alone_lets_nothing_be_written(Kind::Mysql).await;
}

async fn each_layer_alone_lets_nothing_be_written(kind: Kind) {
    let test = format!("each_layer_alone_lets_nothing_be_written_on_{}", kind.name());
    let Some(database) = Database::alone(&test, kind).await else { return };
    let (special, plain): (Vec<Hostile>, Vec<Hostile>) =
        hostile(kind).into_iter().partition(|hostile| hostile.own);
    let sent = if std::env::var_os(ALL).is_some() { 1 } else { SENT };
    let mutated = mutations(kind, &plain, MUTATIONS);
    // No lack of rights keeps anybody from their account.
    type Asked = fn(&Hostile) -> bool;
    let mut lonely: Vec<(&str, Role, Layers, usize, Asked)> = vec![
        ("the guard", Role::Superuser, GUARD, 1, |_| true),
        ("the session", Role::Owner, SESSION, sent, |_| true),
        ("the role", Role::Reader, ROLE, sent, |hostile| !hostile.own),
    ];
    if kind == Kind::Postgresql {
        lonely.push(("the session of a superuser", Role::Superuser, SESSION, sent, |_| true));
    }
    let mut written = Vec::new();
    for (layer, role, layers, sent, is_its_own) in lonely {
        let database = database.another().await;
        let special = special.iter().filter(|hostile| is_its_own(hostile));
        let mutated = mutated.iter().step_by(sent).map(|(_, sql)| sql.clone());
        let all: Vec<String> =
            plain.iter().chain(special).map(|it| it.sql.clone()).chain(mutated).collect();
        for sql in writers(&database, role, layers, &all).await {
            written.push(format!("{layer} alone: {sql:?}"));
        }
    }
    assert!(written.is_empty(), "{} of {kind:?}:\n{}", written.len(), written.join("\n"));
}

/// Those of these statements that wrote something.
async fn writers(database: &Database, role: Role, layers: Layers, all: &[String]) -> Vec<String> {
    let mut writers = Vec::new();
    for batch in all.chunks(BATCH) {
        if wrote(database, role, layers, batch).await {
            // Which of them? Each is tried again where nothing has happened yet.
            for sql in batch {
                let one = std::slice::from_ref(sql);
                if wrote(&database.another().await, role, layers, one).await {
                    writers.push(sql.clone());
                }
            }
        }
    }
    writers
}

/// Whether anything of these was written.
async fn wrote(database: &Database, role: Role, layers: Layers, batch: &[String]) -> bool {
    let tools = tools(database, role, layers);
    let before = database.dump().await;
    for sql in batch {
        tools.query(&database.place(sql)).await;
    }
    if database.gone().await || database.dump().await != before {
        return true;
    }
    // It was there all the while. A file has no roles: one that could be written is not used.
    if database.kind != Kind::Sqlite || layers != ROLE {
        tools.ok("SELECT count(*) FROM customers").await;
    }
    false
}
