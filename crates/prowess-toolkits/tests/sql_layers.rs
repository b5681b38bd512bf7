//! Three layers keep a statement from writing. Here each stands alone, on real databases, beside a
//! control without any: what the control lets through, each of them stops.
#![cfg(feature = "sql")]

#[path = "sql_servers/mod.rs"]
mod sql_servers;
mod sql_support;

use prowess_toolkits::{Layer, Layers, SqlConnectionSettings, SqlPrivileges, SqlSuperuser};
use sql_servers::{Database, Kind, Role};
use sql_support::Tools;

const NONE: Layers = Layers::for_tests(Layer::Off, Layer::Off, Layer::Off);
const GUARD: Layers = Layers::for_tests(Layer::On, Layer::Off, Layer::Off);
const SESSION: Layers = Layers::for_tests(Layer::Off, Layer::On, Layer::Off);
const ROLE: Layers = Layers::for_tests(Layer::Off, Layer::Off, Layer::On);

/// Statements that write, each in another way.
fn hostile(kind: Kind) -> Vec<&'static str> {
    let mut all = vec![
        "DELETE FROM orders",
        "/* hi */ DELETE FROM orders",
        "-- hi\nDELETE FROM orders",
        "INSERT INTO categories (id, name) VALUES (999, 'evil')",
        "UPDATE customers SET name = 'x'",
        "CREATE TABLE evil (a INTEGER)",
        "CREATE TABLE evil AS SELECT * FROM customers",
        "DROP TABLE categories",
        "ALTER TABLE customers ADD COLUMN evil INTEGER",
        "CREATE VIEW evil AS SELECT 1 AS x",
        "CREATE INDEX evil ON customers (name)",
    ];
    all.extend(match kind {
        Kind::Sqlite => vec![
            "WITH x AS (SELECT 1) DELETE FROM orders",
            "REPLACE INTO categories (id, name) VALUES (1, 'evil')",
            "PRAGMA user_version = 7",
            "PRAGMA application_id = 7",
            "VACUUM INTO '{dir}/copy.db'",
            "DELETE FROM orders RETURNING id",
        ],
        Kind::Postgresql => vec![
            "WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d",
            "SELECT * INTO evil FROM customers",
            "TRUNCATE orders",
            "EXPLAIN ANALYZE DELETE FROM orders",
            "DELETE FROM orders RETURNING id",
            "SELECT lo_from_bytea(0, 'evil')",
            "DO $$ BEGIN DELETE FROM orders; END $$",
            "SELECT 1; DELETE FROM orders",
            "COMMIT; DELETE FROM orders",
            "ROLLBACK; SET default_transaction_read_only = off; DELETE FROM orders",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE; DELETE FROM orders",
            "COMMENT ON TABLE orders IS 'evil'",
        ],
        Kind::Mysql => vec![
            "TRUNCATE TABLE orders",
            "REPLACE INTO categories (id, name) VALUES (1, 'evil')",
            "DELETE FROM orders RETURNING id",
            "SELECT 1; DELETE FROM orders",
            "COMMIT; DELETE FROM orders",
            "COMMIT; SET SESSION TRANSACTION READ WRITE; DELETE FROM orders",
            "RENAME TABLE categories TO evil",
            "/*!50000 DELETE FROM orders */",
            "ANALYZE DELETE FROM orders",
        ],
    });
    all
}

fn tools(database: &Database, role: Role, layers: Layers) -> Tools {
    let mut settings = SqlConnectionSettings::new(database.url(role));
    settings.privileges = SqlPrivileges::Enforce;
    Tools::with(settings, layers)
}

/// three layers, each of them alone.
async fn each_layer_alone_stops_every_write(kind: Kind) {
    let test = "each layer alone";
    let Some(database) = Database::new(test, kind).await else { return };
    // Who could write is stopped by the first two; the third is a role that cannot. A file has no
    // roles: one that could be written is not used at all.
    let lonely = [
        ("the guard", tools(&database, Role::Owner, GUARD)),
        ("the session", tools(&database, Role::Owner, SESSION)),
        ("the role", tools(&database, Role::Reader, ROLE)),
    ];
    let before = database.dump().await;
    for sql in hostile(kind) {
        let sql = database.place(sql);
        for (layer, tools) in &lonely {
            let outcome = tools.query(&sql).await;
            // A session that undoes everything may run it.
            let is_undone = *layer == "the session";
            let content = &outcome.content;
            assert!(outcome.is_error || is_undone, "{kind:?}: {layer} alone: {sql}: {content}");
        }
        assert!(database.dump().await == before, "{kind:?}: something was written: {sql}");
    }
    // All the while they read.
    for (layer, tools) in &lonely {
        if kind != Kind::Sqlite || *layer != "the role" {
            tools.ok("SELECT COUNT(*) FROM customers").await;
        }
    }
    // Without any layer each of them does what it says.
    for sql in hostile(kind) {
        let control = database.another().await;
        let fresh = control.dump().await;
        let sql = control.place(sql);
        let outcome = tools(&control, Role::Owner, NONE).query(&sql).await;
        let is_written = control.dump().await != fresh;
        assert!(is_written, "{kind:?}: no attack: {sql}: {}", outcome.content);
    }
}

#[tokio::test]
async fn each_layer_alone_stops_every_write_sqlite() {
    each_layer_alone_stops_every_write(Kind::Sqlite).await;
}

#[tokio::test]
async fn each_layer_alone_stops_every_write_postgresql() {
    each_layer_alone_stops_every_write(Kind::Postgresql).await;
}

#[tokio::test]
async fn each_layer_alone_stops_every_write_mysql() {
    each_layer_alone_stops_every_write(Kind::Mysql).await;
}

/// a read-only session does not keep a superuser from files: it is not used, or steps down.
#[tokio::test]
async fn the_session_alone_stops_a_superuser() {
    let Some(database) = Database::alone("the session of a superuser", Kind::Postgresql).await
    else {
        return;
    };
    let mut statements = hostile(Kind::Postgresql);
    statements.extend([
        "SELECT lo_export(4242, '{dir}/evil')",
        "SELECT pg_file_write('{dir}/evil', 'x', false)",
        "SELECT * FROM pg_read_file('/etc/passwd')",
        "COPY customers TO '{dir}/evil'",
        "COPY customers TO PROGRAM 'cat > {dir}/evil'",
        "SELECT pg_reload_conf()",
        "SELECT pg_create_physical_replication_slot('evil')",
    ]);
    let before = database.dump().await;
    let refusing = tools(&database, Role::Superuser, SESSION);
    let outcome = refusing.query("SELECT 1").await;
    assert_eq!(outcome.code, "superuser_not_used", "{}", outcome.content);
    assert!(outcome.hint.is_some_and(|hint| hint.contains("superuser = \"drop\"")));
    let mut settings = SqlConnectionSettings::new(database.url(Role::Superuser));
    settings.superuser = SqlSuperuser::Drop;
    let stepping_down = Tools::with(settings, SESSION);
    stepping_down.ok("SELECT COUNT(*) FROM customers").await;
    for sql in statements {
        let sql = database.place(sql);
        let outcome = refusing.query(&sql).await;
        assert_eq!(outcome.code, "superuser_not_used", "{sql}: {}", outcome.content);
        let outcome = stepping_down.query(&sql).await;
        assert!(outcome.is_error, "{sql}: {}", outcome.content);
        assert!(database.dump().await == before, "something was written: {sql}");
    }
    // Who can become one, or write files of the server, is no better.
    let reader = database.user(Role::Reader);
    for (gives, takes) in [
        (format!("GRANT prowess TO {reader}"), format!("REVOKE prowess FROM {reader}")),
        (
            format!("GRANT pg_write_server_files TO {reader}"),
            format!("REVOKE pg_write_server_files FROM {reader}"),
        ),
        (format!("ALTER ROLE {reader} REPLICATION"), format!("ALTER ROLE {reader} NOREPLICATION")),
    ] {
        database.run(Role::Superuser, &gives).await.unwrap();
        let outcome = tools(&database, Role::Reader, SESSION).query("SELECT 1").await;
        assert_eq!(outcome.code, "superuser_not_used", "{gives}: {}", outcome.content);
        database.run(Role::Superuser, &takes).await.unwrap();
        tools(&database, Role::Reader, SESSION).ok("SELECT 1").await;
    }
}
