//! The databases of the tests: what the dump of one tells, and what its roles can do.

#![cfg(feature = "sql")]

mod sql_servers;

use sql_servers::{Database, Kind, Role};

/// The dump is the same while nothing is changed, and tells every change of these.
#[tokio::test]
async fn a_dump_tells_what_was_changed() {
    let all = ["UPDATE customers SET city = 'x' WHERE id = 1", "DROP VIEW paid_orders"];
    let postgresql = [
        "SELECT nextval('tickets')",
        "SELECT lo_put(4242, 2, 'x')",
        "GRANT INSERT ON products TO PUBLIC",
        "ALTER TABLE orders ADD COLUMN note text",
        "COMMENT ON TABLE orders IS 'x'",
        "CREATE SCHEMA other",
        "COPY products TO '{dir}/copied'",
    ];
    let mysql = [
        "SELECT NEXTVAL(tickets)",
        "ALTER TABLE orders ADD COLUMN note TEXT",
        "CREATE PROCEDURE other() SELECT 1",
        "GRANT INSERT ON {db}.products TO {reader}",
        "SELECT 1 INTO OUTFILE '{dir}/copied'",
        "SET GLOBAL max_connections = 299",
    ];
    let sqlite = [
        "PRAGMA user_version = 9",
        "VACUUM INTO '{dir}/copied'",
        "CREATE INDEX i ON orders (status)",
    ];
    for kind in Kind::ALL {
        let test = "a_dump_tells_what_was_changed";
        let Some(database) = Database::alone(test, kind).await else { continue };
        let more: &[&str] = match kind {
            Kind::Sqlite => &sqlite,
            Kind::Postgresql => &postgresql,
            Kind::Mysql => &mysql,
        };
        let mut before = database.dump().await;
        assert_eq!(before, database.dump().await, "{kind:?}");
        for sql in all.iter().chain(more) {
            let sql = database.place(sql);
            database.run(Role::Superuser, &sql).await.unwrap();
            let after = database.dump().await;
            assert_ne!(before, after, "{sql}");
            before = after;
        }
    }
}

/// The reader reads and does not write; the owner does both.
#[tokio::test]
async fn the_reader_cannot_write_and_the_owner_can() {
    for kind in [Kind::Postgresql, Kind::Mysql] {
        let test = "the_reader_cannot_write_and_the_owner_can";
        let Some(database) = Database::new(test, kind).await else { continue };
        database.run(Role::Reader, "SELECT count(*) FROM customers").await.unwrap();
        for sql in ["DELETE FROM orders", "CREATE TABLE t (a INTEGER)"] {
            database.run(Role::Reader, sql).await.unwrap_err();
        }
        for sql in ["DELETE FROM orders", "CREATE TABLE t (a INTEGER)"] {
            database.run(Role::Owner, sql).await.unwrap();
        }
    }
}
