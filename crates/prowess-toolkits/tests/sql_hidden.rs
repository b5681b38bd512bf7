//! What a statement does not say: views, policies, operators, casts, domains and functions that
//! share a name make the database call what nobody wrote. The guard looks behind the names, alone
//! and beside the other layers.
#![cfg(feature = "sql")]

mod sql_servers;
mod sql_support;

use std::collections::BTreeSet;

use prowess_toolkits::{Layer, Layers, SqlConnectionSettings, SqlPrivileges};
use serde_json::json;
use sql_servers::{Database, Kind, Role};
use sql_support::Tools;

const NONE: Layers = Layers::for_tests(Layer::Off, Layer::Off, Layer::Off);
const GUARD: Layers = Layers::for_tests(Layer::On, Layer::Off, Layer::Off);

/// The lines in which two dumps differ.
fn changes(before: &str, after: &str) -> Vec<String> {
    let lines = |of: &str| of.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    lines(before).symmetric_difference(&lines(after)).cloned().collect()
}

fn tools(database: &Database, layers: Layers, functions: &[&str]) -> Tools {
    let mut settings = SqlConnectionSettings::new(database.url(Role::Owner));
    settings.privileges = SqlPrivileges::Warn;
    settings.functions = functions.iter().map(|it| (*it).to_owned()).collect();
    Tools::with(settings, layers)
}

/// Something in the schema, and statements that it makes write.
struct Trap {
    /// Who makes it.
    by: Role,
    setup: &'static str,
    hostile: &'static [&'static str],
    /// What stands behind it.
    function: &'static str,
}

const BUMP: &str = "CREATE FUNCTION bump(text, text) RETURNS boolean LANGUAGE sql VOLATILE AS \
                    $$ SELECT nextval('tickets') > 0 $$";

const POSTGRESQL: &[Trap] = &[
    Trap {
        by: Role::Owner,
        setup: "CREATE VIEW counting AS SELECT nextval('tickets') AS n",
        hostile: &[
            "SELECT n FROM counting",
            "SELECT (SELECT max(n) FROM public.counting)",
            "SELECT * FROM \"counting\"",
            "TABLE counting",
            "SELECT c.n FROM customers JOIN counting c ON true WHERE id = 1",
            "WITH x AS (SELECT n FROM COUNTING) SELECT n FROM x",
        ],
        function: "nextval",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE VIEW around AS SELECT id FROM adding; CREATE VIEW beyond AS SELECT id FROM around",
        hostile: &["SELECT * FROM around", "SELECT * FROM beyond"],
        function: "public.add_customer",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE FUNCTION initcap(integer) RETURNS bigint LANGUAGE sql VOLATILE AS \
                $$ SELECT nextval('tickets') $$",
        hostile: &["SELECT initcap(1)", "SELECT initcap(id) FROM customers WHERE id = 1"],
        function: "public.initcap",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE DOMAIN ticket AS integer CHECK (nextval('tickets') > 0 AND VALUE > 0);
                CREATE TYPE pair AS (a ticket, b text); CREATE TABLE marked (t ticket)",
        hostile: &[
            "SELECT 1::ticket",
            "SELECT 1::public.ticket",
            "SELECT CAST(1 AS ticket)",
            "SELECT ticket '1'",
            "SELECT '{1,2}'::ticket[]",
            "SELECT * FROM json_to_record('{\"a\": 1}') AS r(a ticket)",
            "SELECT '(1,x)'::pair",
            "SELECT jsonb_populate_record(NULL::marked, '{\"t\": 1}')",
            "SELECT jsonb_populate_record(m, '{\"t\": 1}') FROM (SELECT 1) x LEFT JOIN marked m ON true",
        ],
        function: "nextval",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE DOMAIN ticket AS integer CHECK (nextval('tickets') > 0);
                CREATE VIEW making AS SELECT id::ticket AS t FROM customers WHERE id = 1",
        hostile: &["SELECT t FROM making"],
        function: "nextval",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE POLICY counted ON words USING (nextval('tickets') > 0);
                ALTER TABLE words ENABLE ROW LEVEL SECURITY;
                ALTER TABLE words FORCE ROW LEVEL SECURITY;
                CREATE VIEW few AS SELECT id FROM words",
        hostile: &["SELECT id FROM words", "SELECT id FROM few"],
        function: "nextval",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE OPERATOR / (FUNCTION = bump, LEFTARG = text, RIGHTARG = text);
                CREATE VIEW dividing AS SELECT name FROM customers WHERE id = 1 AND name / name",
        hostile: &[
            "SELECT 'a'::text / 'b'::text",
            "SELECT name / city FROM customers WHERE id = 1",
            "SELECT * FROM dividing",
        ],
        function: "public.bump",
    },
    Trap {
        by: Role::Superuser,
        setup: "CREATE FUNCTION same(json, json) RETURNS boolean LANGUAGE sql VOLATILE AS \
                $$ SELECT nextval('tickets') > 0 $$;
                CREATE OPERATOR = (FUNCTION = same, LEFTARG = json, RIGHTARG = json)",
        hostile: &["SELECT '1'::json IN ('2'::json)", "SELECT '1'::json = '1'::json"],
        function: "public.same",
    },
    Trap {
        by: Role::Superuser,
        setup: "CREATE FUNCTION flat(point) RETURNS integer LANGUAGE sql VOLATILE AS \
                $$ SELECT nextval('tickets')::integer $$;
                CREATE CAST (point AS integer) WITH FUNCTION flat(point) AS IMPLICIT",
        hostile: &["SELECT abs(point '(1,2)')"],
        function: "public.flat",
    },
    Trap {
        by: Role::Superuser,
        setup: "CREATE FUNCTION high(integer) RETURNS point LANGUAGE sql VOLATILE AS \
                $$ SELECT point(nextval('tickets'), $1) $$;
                CREATE CAST (integer AS point) WITH FUNCTION high(integer)",
        hostile: &["SELECT 1::point", "SELECT CAST(id AS point) FROM customers WHERE id = 1"],
        function: "public.high",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE TABLE moods (m mood);
                INSERT INTO moods VALUES ('good');
                CREATE FUNCTION as_json(mood) RETURNS json LANGUAGE sql VOLATILE AS \
                $$ SELECT to_json(nextval('tickets')) $$;
                CREATE CAST (mood AS json) WITH FUNCTION as_json(mood)",
        hostile: &[
            "SELECT to_json(m) FROM moods",
            "SELECT jsonb_agg(m) FROM moods",
            "SELECT row_to_json(x) FROM moods x",
        ],
        function: "public.as_json",
    },
    Trap {
        by: Role::Owner,
        setup: "SELECT 1",
        hostile: &[
            "SELECT ('tickets'::regclass).nextval",
            "SELECT (g).nextval FROM unnest(ARRAY['tickets'::regclass]) AS g",
            "SELECT g.nextval FROM unnest(ARRAY['tickets'::regclass]) AS g",
            "SELECT g.\"nextval\" FROM unnest(ARRAY['tickets'::regclass]) AS g",
        ],
        function: "nextval",
    },
];

const MYSQL: &[Trap] = &[
    Trap {
        by: Role::Owner,
        setup: "CREATE VIEW adding AS SELECT add_customer('view') AS id",
        hostile: &[
            "SELECT * FROM adding",
            "SELECT id FROM `adding`",
            "SELECT * FROM {db}.adding",
            "SELECT p.id FROM products p JOIN adding a ON a.id > 0 WHERE p.id = 1",
            "WITH x AS (SELECT id FROM adding) SELECT id FROM x",
        ],
        function: "`add_customer`",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE VIEW counting AS SELECT NEXTVAL(tickets) AS n",
        hostile: &["SELECT n FROM counting", "SELECT (SELECT MAX(n) FROM counting)"],
        function: "nextval",
    },
    Trap {
        by: Role::Owner,
        setup: "CREATE VIEW adding AS SELECT add_customer('view') AS id; \
                CREATE VIEW around AS SELECT id FROM adding; CREATE VIEW beyond AS SELECT id FROM around",
        hostile: &["SELECT * FROM around", "SELECT * FROM beyond"],
        function: "`add_customer`",
    },
];

async fn what_is_behind_names_is_refused(kind: Kind, traps: &[Trap]) {
    let test = format!("what_is_behind_names_is_refused_on_{}", kind.name());
    let Some(first) = Database::alone(&test, kind).await else { return };
    for trap in traps {
        for hostile in trap.hostile {
            let database = first.another().await;
            if kind == Kind::Postgresql {
                database.run(Role::Owner, BUMP).await.unwrap();
            }
            database.run(trap.by, &database.place(trap.setup)).await.unwrap();
            let (sql, function) = (database.place(hostile), database.place(trap.function));
            let before = database.dump().await;
            for layers in [GUARD, Layers::ALL] {
                let tools = tools(&database, layers, &[]);
                for tool in ["sql_query", "sql_explain_query"] {
                    if tool == "sql_explain_query" && sql.starts_with("TABLE") {
                        continue;
                    }
                    let outcome = tools.call(tool, json!({"query": sql})).await;
                    let content = &outcome.content;
                    assert!(outcome.is_error && outcome.code == "read_only", "{sql}: {content}");
                    let told = format!("The function {function}, which ");
                    assert!(content.contains(&told), "{sql}: {content}");
                    assert!(outcome.hint.is_some_and(|it| it.contains("`functions`")), "{sql}");
                }
                let verdict = tools.call("sql_validate_query", json!({"query": sql})).await;
                assert_eq!(verdict.data["allowed"], false, "{sql}: {}", verdict.content);
                // What has nothing to do with it is read all the while.
                let is_everywhere =
                    ["same", "flat", "as_json"].iter().any(|it| trap.function.ends_with(it));
                if !is_everywhere {
                    tools.ok("SELECT COUNT(*) FROM paid_orders WHERE total > 0").await;
                }
            }
            let changed = changes(&before, &database.dump().await);
            assert!(changed.is_empty(), "{sql}: {changed:#?}");
            // The host can allow it. Without any layer the statement does what it is for.
            let name = function.replace('`', "");
            let allowing = tools(&database, GUARD, &[&name]).query(&sql).await;
            assert!(!allowing.is_error, "{sql}: {}", allowing.content);
            assert_ne!(database.dump().await, before, "no attack: {sql}");
            let before = database.dump().await;
            tools(&database, NONE, &[]).ok(&sql).await;
            assert_ne!(database.dump().await, before, "no attack: {sql}");
        }
    }
}

#[tokio::test]
async fn what_is_behind_names_is_refused_on_postgresql() {
    what_is_behind_names_is_refused(Kind::Postgresql, POSTGRESQL).await;
}

#[tokio::test]
async fn what_is_behind_names_is_refused_on_mariadb() {
    what_is_behind_names_is_refused(Kind::Mysql, MYSQL).await;
}

/// A function that the guard knows and this server does not have is what somebody made of it.
#[tokio::test]
async fn a_stored_function_with_a_known_name_is_refused() {
    let test = "a_stored_function_with_a_known_name_is_refused";
    let Some(database) = Database::alone(test, Kind::Mysql).await else { return };
    let setup = "CREATE FUNCTION regexp_like(a TEXT, b TEXT) RETURNS INTEGER MODIFIES SQL DATA
                 BEGIN DELETE FROM orders; RETURN 1; END";
    database.run(Role::Owner, setup).await.unwrap();
    let before = database.dump().await;
    let sql = "SELECT REGEXP_LIKE('a', 'b')";
    for layers in [GUARD, Layers::ALL] {
        let outcome = tools(&database, layers, &[]).query(sql).await;
        assert_eq!(outcome.code, "read_only", "{}", outcome.content);
        assert!(outcome.content.contains("The function regexp_like is not"), "{}", outcome.content);
    }
    let changed = changes(&before, &database.dump().await);
    assert!(changed.is_empty(), "{changed:#?}");
    tools(&database, GUARD, &["regexp_like"]).ok(sql).await;
    assert_ne!(database.dump().await, before);
}

/// What looks alike and only reads.
#[tokio::test]
async fn what_only_reads_is_not_refused() {
    let postgresql = (
        "CREATE VIEW report AS SELECT c.id, lower(c.name) AS name, count(o.id) AS orders, now() AS at, \
             random() AS r, rank() OVER (ORDER BY c.id) AS place \
         FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE c.name ~ '.' AND c.id IN (1, 2) \
         GROUP BY c.id, c.name;
         CREATE DOMAIN positive AS integer CHECK (VALUE > 0 AND abs(VALUE) > 0);
         CREATE VIEW over_totals AS SELECT * FROM totals;
         CREATE MATERIALIZED VIEW kept AS SELECT nextval('tickets') AS n;
         CREATE POLICY own ON words USING (length(coalesce(\"update\", '')) >= 0);
         ALTER TABLE words ENABLE ROW LEVEL SECURITY; ALTER TABLE words FORCE ROW LEVEL SECURITY;
         CREATE DOMAIN ticket AS integer CHECK (nextval('tickets') > 0);
         CREATE TABLE marked (id integer, t ticket); INSERT INTO marked VALUES (1, 1)",
        [
            "SELECT r.name, r.orders, r.at FROM report r",
            "SELECT 5::positive, positive '7'",
            "SELECT * FROM over_totals",
            "SELECT n FROM kept",
            "SELECT count(*) FROM words",
            "SELECT t, m.t FROM marked m WHERE m.t IS NOT NULL",
        ]
        .as_slice(),
    );
    let mysql = (
        "CREATE VIEW report AS SELECT c.id, LOWER(c.name) AS name, COUNT(o.id) AS orders, NOW() AS at, \
             CASE WHEN c.id > 1 THEN 'many' ELSE 'one' END AS size, DATE_ADD(c.created_at, INTERVAL 1 DAY) AS later \
         FROM customers c LEFT JOIN orders o ON o.customer_id = c.id \
         WHERE c.name LIKE '%a%' AND c.city = 'Lyon' OR c.id IN (1, 2) GROUP BY c.id, c.name",
        [
            "SELECT r.name, r.orders FROM report r",
            "SELECT COUNT(*) FROM paid_orders",
            "SELECT COUNT(*) FROM {db}.paid_orders p WHERE p.total > 0",
        ]
        .as_slice(),
    );
    for (kind, (setup, honest)) in [(Kind::Postgresql, postgresql), (Kind::Mysql, mysql)] {
        let Some(database) = Database::new("what_only_reads_is_not_refused", kind).await else {
            continue;
        };
        database.run(Role::Owner, setup).await.unwrap();
        for layers in [GUARD, Layers::ALL] {
            let tools = tools(&database, layers, &[]);
            for sql in honest {
                tools.ok(&database.place(sql)).await;
            }
        }
    }
}

/// A view of MariaDB whose definition the role may not see: the guard alone refuses it, and beside a
/// session that cannot write it is read.
#[tokio::test]
async fn a_view_that_cannot_be_seen_through_needs_a_session_that_cannot_write() {
    let test = "a_view_that_cannot_be_seen_through_needs_a_session_that_cannot_write";
    let Some(database) = Database::new(test, Kind::Mysql).await else { return };
    let blind = database.place("REVOKE SHOW VIEW ON {db}.* FROM {reader}");
    database.run(Role::Superuser, &blind).await.unwrap();
    let settings = || SqlConnectionSettings::new(database.url(Role::Reader));
    let sql = "SELECT COUNT(*) FROM paid_orders";
    let outcome = Tools::with(settings(), GUARD).query(sql).await;
    assert_eq!(outcome.code, "read_only", "{}", outcome.content);
    assert!(
        outcome.content.contains("view paid_orders, of which it cannot be seen"),
        "{}",
        outcome.content
    );
    assert!(outcome.hint.is_some_and(|hint| hint.contains("SHOW VIEW")));
    Tools::on(settings()).ok(sql).await;
}

/// Views of MariaDB run as who made them: a role that can read one that writes can write.
#[tokio::test]
async fn a_role_that_can_read_a_view_that_writes_is_told() {
    let test = "a_role_that_can_read_a_view_that_writes_is_told";
    let Some(database) = Database::alone(test, Kind::Mysql).await else { return };
    let role = || {
        let mut settings = SqlConnectionSettings::new(database.url(Role::Reader));
        settings.privileges = SqlPrivileges::Enforce;
        Tools::with(settings, Layers::for_tests(Layer::Off, Layer::Off, Layer::On))
    };
    role().ok("SELECT COUNT(*) FROM paid_orders").await;
    let setup = "CREATE SQL SECURITY INVOKER VIEW asking AS SELECT add_customer('view') AS id";
    database.run(Role::Owner, setup).await.unwrap();
    role().ok("SELECT COUNT(*) FROM paid_orders").await;
    let setup = "CREATE VIEW adding AS SELECT add_customer('view') AS id";
    database.run(Role::Owner, setup).await.unwrap();
    let before = database.dump().await;
    let outcome = role().query("SELECT * FROM adding").await;
    assert_eq!(outcome.code, "role_can_write", "{}", outcome.content);
    assert!(outcome.content.contains("the view adding, which calls"), "{}", outcome.content);
    let changed = changes(&before, &database.dump().await);
    assert!(changed.is_empty(), "{changed:#?}");
    // Without the look it writes.
    let settings = SqlConnectionSettings::new(database.url(Role::Reader));
    Tools::with(settings, NONE).ok("SELECT * FROM adding").await;
    assert_ne!(database.dump().await, before);
}
