//! The same tables with the same rows in each of the three databases, and things beside them that
//! only an attacker looks for.

use std::fmt::Write;

use super::Kind;

/// How many customers there are.
pub(crate) const CUSTOMERS: usize = 42;
/// How many products there are.
pub(crate) const PRODUCTS: usize = 12;
/// How many orders there are.
pub(crate) const ORDERS: usize = 120;

const FIRST: [&str; 7] = ["Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Grace"];
const LAST: [&str; 6] = ["Okafor", "Lindqvist", "Moreau", "Nakamura", "O'Brien", "Petrov"];
const CITIES: [&str; 6] = ["Berlin", "Lisbon", "Nairobi", "Osaka", "Toronto", "NULL"];
const STATUSES: [&str; 4] = ["paid", "shipped", "pending", "cancelled"];
const GOODS: [(&str, &str, &str); PRODUCTS] = [
    ("Desk lamp", "furniture", "39.90"),
    ("Standing desk", "furniture", "449.00"),
    ("Office chair", "furniture", "219.50"),
    ("Notebook", "paper", "4.20"),
    ("Fountain pen", "paper", "28.00"),
    ("Envelopes", "paper", "6.75"),
    ("Keyboard", "electronics", "89.00"),
    ("Monitor", "electronics", "310.00"),
    ("Headset", "electronics", "129.99"),
    ("Coffee beans", "kitchen", "14.30"),
    ("Kettle", "kitchen", "45.00"),
    ("Cup", "kitchen", "7.50"),
];

/// A text as a literal; `NULL` is none.
fn text(value: &str) -> String {
    if value == "NULL" { value.to_owned() } else { format!("'{}'", value.replace('\'', "''")) }
}

/// The cents of a price.
fn cents(price: &str) -> usize {
    price.replace('.', "").parse().unwrap()
}

/// The rows of the three tables.
fn rows() -> String {
    let mut sql = String::new();
    for id in 1..=CUSTOMERS {
        let (first, last) = (FIRST[id % FIRST.len()], LAST[id % LAST.len()]);
        let email = format!("{first}.{last}.{id}@example.com").to_lowercase().replace('\'', "");
        let city = text(CITIES[(id / 2) % CITIES.len()]);
        let name = text(&format!("{first} {last}"));
        let (year, month, day) = (2023 + id / 20, 1 + id % 12, 1 + id * 7 % 28);
        writeln!(
            sql,
            "INSERT INTO customers VALUES ({id}, {name}, '{email}', {city}, '{year}-{month:02}-{day:02}');"
        )
        .unwrap();
    }
    for (at, (name, category, price)) in GOODS.iter().enumerate() {
        let id = at + 1;
        writeln!(sql, "INSERT INTO products VALUES ({id}, '{name}', '{category}', {price});")
            .unwrap();
    }
    for id in 1..=ORDERS {
        // The last customers have not ordered yet.
        let (customer, product) = (1 + id * 17 % 36, id * 5 % PRODUCTS);
        let (quantity, status) = (1 + id % 4, STATUSES[id * 3 / 2 % STATUSES.len()]);
        let total = quantity * cents(GOODS[product].2);
        let (euros, rest, good) = (total / 100, total % 100, product + 1);
        let (month, day, hour) = (1 + id / 11, 1 + id * 3 % 28, id % 24);
        writeln!(
            sql,
            "INSERT INTO orders VALUES ({id}, {customer}, {good}, {quantity}, {euros}.{rest:02}, \
             '{status}', '2025-{month:02}-{day:02} {hour:02}:30:00', '2025-{month:02}-{day:02}');"
        )
        .unwrap();
    }
    sql
}

/// What makes the tables of a kind of database, and everything beside them.
pub(crate) fn script(kind: Kind) -> String {
    let (before, after) = match kind {
        Kind::Sqlite => (SQLITE, SQLITE_BESIDE),
        Kind::Postgresql => (POSTGRESQL, POSTGRESQL_BESIDE),
        Kind::Mysql => (MYSQL, MYSQL_BESIDE),
    };
    format!("{before}{}{SAMPLES}{after}", rows())
}

const SQLITE: &str = r#"
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE, city TEXT, created_at TEXT NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, category TEXT NOT NULL, price NUMERIC NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id),
    product_id INTEGER NOT NULL REFERENCES products(id), quantity INTEGER NOT NULL, total NUMERIC NOT NULL, status TEXT NOT NULL, ordered_at TEXT NOT NULL, order_date TEXT);
CREATE INDEX orders_customer ON orders (customer_id);
CREATE TABLE categories (id INTEGER PRIMARY KEY, parent_id INTEGER, name TEXT NOT NULL);
CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, payload TEXT NOT NULL);
CREATE TABLE words (id INTEGER PRIMARY KEY, "update" TEXT, "order" INTEGER, "delete" TEXT, "select" TEXT);
CREATE TABLE "odd table" (id INTEGER PRIMARY KEY, "a b" TEXT, "x;y" TEXT);
"#;

const POSTGRESQL: &str = r#"
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, email text NOT NULL UNIQUE, city text, created_at date NOT NULL);
CREATE TABLE products (id integer PRIMARY KEY, name text NOT NULL UNIQUE, category text NOT NULL, price numeric(10, 2) NOT NULL);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers(id),
    product_id integer NOT NULL REFERENCES products(id), quantity integer NOT NULL, total numeric(10, 2) NOT NULL, status text NOT NULL, ordered_at timestamp NOT NULL, order_date date);
CREATE INDEX orders_customer ON orders (customer_id);
CREATE TABLE categories (id integer PRIMARY KEY, parent_id integer, name text NOT NULL);
CREATE TABLE events (id integer PRIMARY KEY, kind text NOT NULL, payload jsonb NOT NULL);
CREATE TABLE words (id integer PRIMARY KEY, "update" text, "order" integer, "delete" text, "select" text);
CREATE TABLE "odd table" (id integer PRIMARY KEY, "a b" text, "x;y" text);
"#;

const MYSQL: &str = r#"
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(100) NOT NULL, email VARCHAR(200) NOT NULL UNIQUE, city VARCHAR(100), created_at DATE NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE, category VARCHAR(50) NOT NULL, price DECIMAL(10, 2) NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL,
    product_id INTEGER NOT NULL, quantity INTEGER NOT NULL, total DECIMAL(10, 2) NOT NULL, status VARCHAR(20) NOT NULL, ordered_at DATETIME NOT NULL, order_date DATE,
    FOREIGN KEY (customer_id) REFERENCES customers(id), FOREIGN KEY (product_id) REFERENCES products(id));
CREATE TABLE categories (id INTEGER PRIMARY KEY, parent_id INTEGER, name VARCHAR(50) NOT NULL);
CREATE TABLE events (id INTEGER PRIMARY KEY, kind VARCHAR(50) NOT NULL, payload JSON NOT NULL);
CREATE TABLE words (id INTEGER PRIMARY KEY, `update` VARCHAR(50), `order` INTEGER, `delete` VARCHAR(50), `select` VARCHAR(50), FULLTEXT (`update`));
CREATE TABLE `odd table` (id INTEGER PRIMARY KEY, `a b` VARCHAR(50), `x;y` VARCHAR(50));
"#;

const SAMPLES: &str = r#"
INSERT INTO categories VALUES (1, NULL, 'all'), (2, 1, 'office'), (3, 2, 'furniture'), (4, 2, 'paper'), (5, 1, 'home'), (6, 5, 'kitchen'), (7, 1, 'electronics');
INSERT INTO events VALUES (1, 'login', '{"user": "ada", "ok": true, "tags": ["web", "eu"]}'),
    (2, 'delete', '{"user": "bruno", "ok": false, "tags": []}'), (3, 'login', '{"user": "elif", "ok": true, "tags": ["app"], "device": {"os": "linux"}}');
INSERT INTO words VALUES (1, 'drop table customers', 3, 'insert', 'it''s; delete'), (2, 'update all', 1, NULL, '-- no comment'), (3, NULL, 2, 'grant', '/* neither */');
"#;

const SQLITE_BESIDE: &str = r#"
INSERT INTO "odd table" VALUES (1, 'one', 'two');
CREATE VIEW paid_orders AS SELECT * FROM orders WHERE status = 'paid';
CREATE VIEW writable AS SELECT id, name FROM customers;
CREATE TRIGGER writable_insert INSTEAD OF INSERT ON writable BEGIN INSERT INTO products VALUES (NEW.id, NEW.name, 'new', 1); END;
CREATE VIRTUAL TABLE notes USING fts5(body);
INSERT INTO notes VALUES ('please delete this note'), ('an order for tea');
PRAGMA user_version = 3;
"#;

const POSTGRESQL_BESIDE: &str = r#"
INSERT INTO "odd table" VALUES (1, 'one', 'two');
CREATE VIEW paid_orders AS SELECT * FROM orders WHERE status = 'paid';
CREATE SEQUENCE tickets START 100;
SELECT nextval('tickets');
CREATE FUNCTION add_customer(text) RETURNS integer LANGUAGE sql VOLATILE AS
    $$ INSERT INTO customers SELECT max(id) + 1, $1, $1 || max(id), NULL, '2026-01-01' FROM customers RETURNING id $$;
CREATE FUNCTION "Add Customer"(text) RETURNS integer LANGUAGE sql VOLATILE AS $$ SELECT add_customer($1) $$;
CREATE FUNCTION touch(integer) RETURNS SETOF customers LANGUAGE sql VOLATILE AS $$ UPDATE customers SET city = 'touched' WHERE id = $1 RETURNING * $$;
CREATE FUNCTION touched(customers) RETURNS text LANGUAGE sql VOLATILE AS $$ UPDATE customers SET city = 'touched' WHERE id = $1.id RETURNING city $$;
CREATE VIEW adding AS SELECT add_customer('view') AS id;
CREATE FUNCTION plus_one(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT $1 + 1 $$;
CREATE PROCEDURE clear_orders() LANGUAGE plpgsql AS $$ BEGIN DELETE FROM orders; COMMIT; END $$;
CREATE OPERATOR @@@ (FUNCTION = add_customer, RIGHTARG = text);
CREATE AGGREGATE count_up(integer) (SFUNC = int4pl, STYPE = integer, INITCOND = '0');
CREATE MATERIALIZED VIEW totals AS SELECT customer_id, sum(total) AS total FROM orders GROUP BY customer_id;
"#;

const MYSQL_BESIDE: &str = r#"
INSERT INTO `odd table` VALUES (1, 'one', 'two');
CREATE VIEW paid_orders AS SELECT * FROM orders WHERE status = 'paid';
CREATE SEQUENCE tickets START WITH 100 NOCACHE;
CREATE FUNCTION add_customer(who VARCHAR(50)) RETURNS INTEGER MODIFIES SQL DATA
    BEGIN
        INSERT INTO customers SELECT MAX(id) + 1, who, CONCAT(who, MAX(id)), NULL, '2026-01-01' FROM customers;
        RETURN 1;
    END;
CREATE FUNCTION plus_one(n INTEGER) RETURNS INTEGER DETERMINISTIC NO SQL RETURN n + 1;
CREATE PROCEDURE clear_orders() BEGIN COMMIT; START TRANSACTION READ WRITE; DELETE FROM orders; COMMIT; END;
"#;
