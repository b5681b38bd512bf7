use super::*;

use SqlDialect::{Mysql, Postgresql, Sqlite};

fn check(dialect: SqlDialect, sql: &str) -> Result<Reading, SqlRefusal> {
    SqlGuard::new(dialect).check(sql)
}

#[test]
fn queries_pass_in_every_dialect() {
    let everywhere = [
        "SELECT 1",
        "select count(*) from customers;",
        "SELECT name, UPPER(city) FROM customers WHERE city IN ('a', 'b') ORDER BY 1 LIMIT 5",
        "WITH t AS (SELECT 1 AS n) SELECT n FROM t",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
        "SELECT * FROM (SELECT 1 AS a) d WHERE EXISTS (SELECT 1) AND a IN (SELECT 1)",
        "SELECT 1 UNION SELECT 2 EXCEPT SELECT 3",
        "SELECT c.name, SUM(o.total) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id \
         GROUP BY c.name HAVING COUNT(*) > 1",
        "SELECT name, RANK() OVER (PARTITION BY city ORDER BY id) FROM customers",
        "SELECT CASE WHEN 1 = 1 THEN 'DELETE FROM x' ELSE '; DROP TABLE y' END",
        "SELECT updated_at, \"delete\", insert_count FROM updates",
        "SELECT COALESCE(a, 0), CAST(b AS INTEGER), NULLIF(c, '') FROM t",
        "/* DELETE */ SELECT 1 -- DROP",
        "SELECT EXTRACT(YEAR FROM d), TRIM(x), SUBSTRING(y, 1, 2) FROM t",
    ];
    for dialect in SqlDialect::ALL {
        for sql in everywhere {
            let quoted = sql.replace('"', if dialect == Mysql { "`" } else { "\"" });
            let checked = check(dialect, &quoted);
            assert!(checked.is_ok(), "{dialect}: {sql}: {checked:?}");
        }
    }
    for (dialect, sql) in [
        (Sqlite, "SELECT json_extract(a, '$.b'), a ->> '$.c' FROM t"),
        (Sqlite, "SELECT value FROM json_each('[1]')"),
        (Sqlite, "SELECT * FROM pragma_table_info('customers')"),
        (Sqlite, "EXPLAIN QUERY PLAN SELECT 1"),
        (Sqlite, "SELECT [a b] FROM `c d`"),
        (Sqlite, "SELECT 1 IS NOT 2, a IS b, a IS NULL, a IS NOT NULL, 1 << 4 FROM t"),
        (Sqlite, "WITH x AS NOT MATERIALIZED (SELECT 1 AS a) SELECT a FROM x INDEXED BY i"),
        (Sqlite, "SELECT 1 WHERE 1 ISNULL AND a NOTNULL OR (a) NOT NULL"),
        (Sqlite, "SELECT * FROM orders NOT INDEXED WHERE NOT indexed AND NOT NULL"),
        (Postgresql, "SELECT 1 ISNULL, a NOTNULL FROM t"),
        (Postgresql, "TABLE products"),
        (Mysql, "SELECT !0, INTERVAL(23, 1, 15), NOW() - INTERVAL 1 DAY, 0x41, x'41', b'1'"),
        (Mysql, "SELECT d + INTERVAL (1 + 1) DAY FROM t"),
        (Postgresql, "SELECT n FROM generate_series(1, 3) AS g(n)"),
        (Postgresql, "SELECT a::text, b ->> 'k', c @> '{}' FROM t"),
        (Postgresql, "SELECT pg_catalog.lower('A'), now() - interval '1 day'"),
        (Postgresql, "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b"),
        (Postgresql, "EXPLAIN (VERBOSE, COSTS false) SELECT 1"),
        (Postgresql, "SELECT count(*) FILTER (WHERE a > 1), string_agg(b, ',' ORDER BY b) FROM t"),
        (Postgresql, "SELECT $$DELETE$$, E'it\\'s'"),
        (Mysql, "SELECT IF(a, 1, 2), DATE_FORMAT(d, '%Y'), GROUP_CONCAT(x) FROM t"),
        (Mysql, "SELECT `a b` FROM `c d` LIMIT 5, 10"),
        (Mysql, "SHOW TABLES"),
        (Mysql, "DESCRIBE customers"),
        (Mysql, "SELECT 'it\\'s'"),
    ] {
        let checked = check(dialect, sql);
        assert!(checked.is_ok(), "{dialect}: {sql}: {checked:?}");
    }
}

#[test]
fn writes_are_refused_in_every_dialect() {
    let everywhere = [
        ("DELETE FROM orders", "DELETE"),
        ("/* hi */ DELETE FROM orders", "DELETE"),
        ("-- hi\nDELETE FROM orders", "DELETE"),
        ("WITH x AS (SELECT 1) DELETE FROM orders", "DELETE"),
        ("INSERT INTO t VALUES (1)", "INSERT"),
        ("UPDATE t SET a = 1", "UPDATE"),
        ("DROP TABLE t", "DROP"),
        ("CREATE TABLE t (a INT)", "CREATE"),
        ("CREATE TEMPORARY TABLE t (a INT)", "CREATE"),
        ("ALTER TABLE t ADD COLUMN a INT", "ALTER"),
        ("TRUNCATE TABLE t", "TRUNCATE"),
        ("REPLACE INTO t VALUES (1)", "REPLACE"),
        ("PRAGMA user_version = 7", "PRAGMA"),
        ("ATTACH DATABASE '/tmp/x' AS y", "ATTACH"),
        ("VACUUM INTO '/tmp/x'", "VACUUM"),
        ("COPY t TO PROGRAM 'sh'", "COPY"),
        ("CALL p()", "CALL"),
        ("DO $$ BEGIN END $$", "DO"),
        ("GRANT ALL ON t TO u", "GRANT"),
        ("SET ROLE admin", "SET"),
        ("LOAD DATA INFILE 'x' INTO TABLE t", "LOAD"),
        ("BEGIN", "BEGIN"),
        ("COMMIT", "COMMIT"),
    ];
    for dialect in SqlDialect::ALL {
        for (sql, keyword) in everywhere {
            let refusal = check(dialect, sql).expect_err(sql);
            assert_eq!(refusal.code(), "read_only", "{dialect}: {sql}: {refusal:?}");
            if let SqlRefusal::Write { keyword: told } = refusal {
                assert_eq!(told, keyword, "{dialect}: {sql}");
            }
        }
    }
}

#[test]
fn what_hides_in_a_query_is_refused() {
    for (dialect, sql) in [
        (Sqlite, "SELECT load_extension('x')"),
        (Sqlite, "SELECT LOAD_EXTENSION('x')"),
        (Sqlite, "SELECT \"load_extension\"('x')"),
        (Sqlite, "SELECT writefile('x', 'y')"),
        (Sqlite, "SELECT fts3_tokenizer('x', 'y')"),
        (Sqlite, "SELECT (SELECT readfile('x'))"),
        (Sqlite, "SELECT * FROM main.sqlite_dbpage"),
        (Sqlite, "SELECT 1 IS load_extension('x')"),
        (Sqlite, "WITH x AS MATERIALIZED (SELECT load_extension('x')) SELECT * FROM x"),
        (Mysql, "SELECT INTERVAL(1, SLEEP(1))"),
        (Mysql, "TABLE t INTO OUTFILE 'x'"),
        (Mysql, "SELECT 1 UNION TABLE t FOR UPDATE"),
        (Postgresql, "WITH x AS (TABLE orders FOR UPDATE) SELECT * FROM x"),
        (Postgresql, "SELECT * FROM (TABLE orders FOR UPDATE) x"),
        (Postgresql, "SELECT 1 UNION ALL TABLE orders"),
        (Postgresql, "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d"),
        (
            Postgresql,
            "SELECT * FROM (WITH d AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM d) x",
        ),
        (Postgresql, "SELECT * INTO t2 FROM t"),
        (Postgresql, "SELECT * FROM t FOR UPDATE"),
        (Postgresql, "SELECT * FROM (SELECT * FROM t FOR SHARE) x"),
        (Postgresql, "EXPLAIN ANALYZE DELETE FROM t"),
        (Postgresql, "EXPLAIN ANALYZE SELECT 1"),
        (Postgresql, "EXPLAIN (ANALYZE) SELECT 1"),
        (Postgresql, "EXPLAIN (ANALYZE true) DELETE FROM t"),
        (Postgresql, "EXPLAIN DELETE FROM t"),
        (Postgresql, "SELECT pg_read_file('/etc/passwd')"),
        (Postgresql, "SELECT * FROM pg_read_file('/etc/passwd')"),
        (Postgresql, "SELECT * FROM t, LATERAL pg_ls_dir('.') x"),
        (Postgresql, "SELECT pg_catalog.pg_read_file('x')"),
        (Postgresql, "SELECT \"pg_read_file\"('x')"),
        (Postgresql, "SELECT Pg_Read_File('x')"),
        (Postgresql, "SELECT public.lower('x')"),
        (Postgresql, "SELECT lo_import('x'), 1"),
        (Postgresql, "SELECT 1 WHERE nextval('s') > 0"),
        (Postgresql, "SELECT 1 ORDER BY setval('s', 1)"),
        (Postgresql, "SELECT CASE WHEN set_config('a', 'b', false) = 'b' THEN 1 END"),
        (Postgresql, "SELECT dblink_exec('x', 'y')"),
        (Postgresql, "SELECT query_to_xml('DELETE FROM t', true, true, '')"),
        (Postgresql, "SELECT ts_rewrite('a'::tsquery, 'DELETE FROM t')"),
        (Postgresql, "SELECT pg_sleep(1)"),
        (Postgresql, "SELECT pg_terminate_backend(1)"),
        (Postgresql, "SELECT pg_advisory_lock(1)"),
        (Postgresql, "SELECT sum(pg_notify('a', 'b')::text::int) OVER ()"),
        (Postgresql, "SELECT 1 LIMIT (SELECT nextval('s'))"),
        (Postgresql, "SELECT 1 FROM t TABLESAMPLE system (nextval('s'))"),
        (Postgresql, "VALUES (nextval('s'))"),
        (Postgresql, "SELECT my_own_function()"),
        (Postgresql, "SELECT 1 OPERATOR(public.+) 2"),
        (Mysql, "SELECT load_file('/etc/passwd')"),
        (Mysql, "SELECT 1 INTO OUTFILE '/tmp/x'"),
        (Mysql, "SELECT 1 INTO DUMPFILE '/tmp/x'"),
        (Mysql, "SELECT 1 INTO @x"),
        (Mysql, "SELECT SLEEP(5)"),
        (Mysql, "SELECT BENCHMARK(1, 1)"),
        (Mysql, "SELECT GET_LOCK('a', 1)"),
        (Mysql, "SELECT NEXTVAL(s)"),
        (Mysql, "SELECT NEXT VALUE FOR s"),
        (Mysql, "SELECT * FROM t LOCK IN SHARE MODE"),
        (Mysql, "SELECT * FROM t FOR UPDATE"),
        (Mysql, "SELECT @x := 1"),
        (Mysql, "SELECT db.f()"),
        (Mysql, "SELECT `count`(1)"),
        (Mysql, "SELECT 1 /*!50000 INTO OUTFILE 'x' */"),
        (Mysql, "HANDLER t OPEN"),
        (Mysql, "SELECT LAST_INSERT_ID(5)"),
    ] {
        let checked = check(dialect, sql);
        assert!(checked.is_err(), "{dialect}: {sql}: {checked:?}");
    }
}

#[test]
fn more_functions_can_be_allowed() {
    let guard = SqlGuard::new(Postgresql).with_functions(["Sales.Total".to_owned(), "f".into()]);
    assert!(guard.check("SELECT sales.total(1), F(2)").is_ok());
    assert!(guard.check("SELECT sales.\"Total\"(1)").is_err());
    assert!(guard.check("SELECT other.f(1)").is_err());
}

#[test]
fn names_of_with_are_no_tables_and_tables_stay_tables() {
    let tables = TableScope::new(Postgresql, [], ["orders".to_owned()]);
    let guard = SqlGuard::new(Postgresql).with_tables(tables);
    for (sql, expected) in [
        ("SELECT * FROM orders", true),
        ("SELECT * FROM secrets", false),
        ("WITH x AS (SELECT * FROM orders) SELECT * FROM x", true),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b, a", true),
        ("WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets", false),
        ("WITH b AS (SELECT * FROM secrets), secrets AS (SELECT 1) SELECT * FROM b", false),
        ("SELECT * FROM (WITH secrets AS (SELECT 1) SELECT * FROM secrets) x, secrets", false),
        ("SELECT (SELECT 1 FROM secrets)", false),
        ("SELECT * FROM public.secrets", false),
        ("TABLE secrets", false),
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT * FROM t", true),
        ("SELECT a FROM orders UNION ALL TABLE secrets", false),
        ("WITH x AS (TABLE secrets) SELECT * FROM x", false),
        ("SELECT * FROM (TABLE secrets) x", false),
    ] {
        assert_eq!(guard.check(sql).is_ok(), expected, "{sql}: {:?}", guard.check(sql));
    }
}

/// A name that `WITH` gives hides a table only where the database takes both for the same.
#[test]
fn names_are_the_same_only_where_the_database_says_so() {
    for (dialect, sql, expected) in [
        (Postgresql, "WITH Secrets AS (SELECT 1) SELECT * FROM sEcrets", true),
        (Postgresql, "WITH \"Secrets\" AS (SELECT 1) SELECT * FROM secrets", false),
        (Postgresql, "WITH secrets AS (SELECT 1) SELECT * FROM \"Secrets\"", false),
        (Postgresql, "WITH \u{c4} AS (SELECT 1) SELECT * FROM \u{e4}", false),
        (Postgresql, "SELECT * FROM \"Orders\"", false),
        (Postgresql, "SELECT * FROM ORDERS", true),
        (Mysql, "WITH Secrets AS (SELECT 1) SELECT * FROM secrets", false),
        (Mysql, "WITH secrets AS (SELECT 1) SELECT * FROM `secrets`", true),
        (Mysql, "SELECT * FROM Orders", false),
        (Sqlite, "WITH Secrets AS (SELECT 1) SELECT * FROM \"SECRETS\"", true),
        (Sqlite, "WITH \u{c4} AS (SELECT 1) SELECT * FROM \u{e4}", false),
        (Sqlite, "SELECT * FROM [ORDERS]", true),
    ] {
        let tables = TableScope::new(dialect, [], ["orders".to_owned()]);
        let guard = SqlGuard::new(dialect).with_tables(tables);
        assert_eq!(guard.check(sql).is_ok(), expected, "{dialect}: {sql}");
    }
    let ahead =
        "WITH RECURSIVE b AS (SELECT * FROM secrets), secrets AS (SELECT 1) SELECT * FROM b";
    let itself = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n FROM t) SELECT n FROM t";
    for dialect in SqlDialect::ALL {
        let tables = TableScope::new(dialect, [], ["orders".to_owned()]);
        let guard = SqlGuard::new(dialect).with_tables(tables);
        assert_eq!(guard.check(ahead).is_ok(), dialect != Mysql, "{dialect}");
        assert!(guard.check(itself).is_ok(), "{dialect}");
    }
    // The sign for kelvin is a letter k to nobody but Unicode.
    for dialect in SqlDialect::ALL {
        assert!(check(dialect, "SELECT RAN\u{212a}() OVER ()").is_err(), "{dialect}");
    }
}

#[test]
fn long_and_deep_statements_are_refused_and_do_not_break_anything() {
    let guard = SqlGuard::new(Sqlite).with_max_bytes(40);
    let exact = format!("SELECT '{}'", "x".repeat(31));
    assert_eq!(exact.len(), 40);
    assert!(guard.check(&exact).is_ok());
    assert_eq!(guard.check(&format!("{exact} ")).unwrap_err().code(), "query_too_long");
    let guard = SqlGuard::new(Sqlite).with_max_tokens(4);
    assert!(guard.check("SELECT 1 + 2").is_ok());
    assert_eq!(guard.check("SELECT 1 + 2 + 3").unwrap_err().code(), "query_too_long");

    // With the small stack of any thread.
    for depth in 1..60 {
        for (open, close) in
            [("(", ")"), ("(SELECT ", ")"), ("lower(", ")"), ("NOT ", ""), ("-", "")]
        {
            let sql = format!("SELECT {}1{}", open.repeat(depth), close.repeat(depth));
            let from = format!("SELECT * FROM {}t{}", open.repeat(depth), close.repeat(depth));
            for dialect in SqlDialect::ALL {
                let _ = (check(dialect, &sql), check(dialect, &from));
            }
        }
    }
    assert!(check(Sqlite, &format!("SELECT {}1{}", "(".repeat(20), ")".repeat(20))).is_ok());

    let chain = |count: usize| format!("SELECT {}1", "1+".repeat(count));
    for dialect in SqlDialect::ALL {
        assert!(check(dialect, &chain(49)).is_ok());
        assert!(check(dialect, &chain(4_900)).is_ok(), "{dialect}");
        assert_eq!(check(dialect, &chain(6_000)).unwrap_err().code(), "query_too_long");
        let unions = vec!["SELECT 1"; 2_500].join(" UNION ");
        assert!(check(dialect, &unions).is_ok(), "{dialect}");
        let deep = format!("SELECT {}1{}", "(".repeat(400), ")".repeat(400));
        assert!(check(dialect, &deep).is_err());
        let deep = format!("SELECT {}1{}", "(SELECT ".repeat(400), ")".repeat(400));
        assert!(check(dialect, &deep).is_err());
        let nots = format!("SELECT {} 1", "NOT ".repeat(4_000));
        assert!(check(dialect, &nots).is_err());
    }
}

#[test]
fn what_tells_of_all_tables_is_refused_where_some_may_be_read() {
    let tables = || TableScope::new(Sqlite, [], ["products".to_owned()]);
    let guard = SqlGuard::new(Sqlite).with_tables(tables());
    for sql in [
        "SELECT name FROM pragma_table_info('customers')",
        "SELECT name FROM PRAGMA_TABLE_INFO('products')",
        "SELECT name FROM \"pragma_table_info\"('customers')",
        "SELECT name FROM [pragma_table_list]()",
        "SELECT name FROM pragma_table_list",
        "SELECT name FROM pragma_table_info WHERE arg = 'customers'",
        "SELECT p.id FROM products p, pragma_foreign_key_list('orders')",
        "SELECT (SELECT count(*) FROM pragma_index_list('customers'))",
    ] {
        let refusal = guard.check(sql).unwrap_err();
        assert_eq!(refusal.code(), "table_not_allowed", "{sql}");
        assert!(SqlGuard::new(Sqlite).check(sql).is_ok(), "the control: {sql}");
    }
    assert!(guard.check("SELECT value FROM json_each('[1]'), products").is_ok());
    let write = "INSERT INTO products (name) SELECT name FROM pragma_table_info('customers')";
    assert_eq!(guard.check_write(write).unwrap_err().code(), "table_not_allowed");
    // Who lists it, means it.
    let listed = guard.with_functions(["pragma_table_info".to_owned()]);
    assert!(listed.check("SELECT name FROM pragma_table_info('products')").is_ok());
}
