//! A database to try things with: customers, orders, products.

use std::fs;
use std::io;
use std::path::Path;

use rusqlite::{Connection, params};
use uuid::Uuid;

/// How many customers there are.
pub const DEMO_CUSTOMERS: usize = 42;
/// The file that is made if it is not there.
const FILE_NAME: &str = "demo.db";

/// Why there is no demo.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error("there is no file {0}")]
    Missing(String),
    #[error("the demo database cannot be made: {0}")]
    Io(#[from] io::Error),
    #[error("the demo database cannot be made: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

const FIRST: [&str; 14] = [
    "Alice", "Bruno", "Chiara", "David", "Elena", "Farid", "Grace", "Hiro", "Ines", "Jonas",
    "Kavya", "Liam", "Mina", "Noah",
];
const LAST: [&str; 3] = ["Johnson", "Okafor", "Lindgren"];
const CITIES: [&str; 7] = ["New York", "Berlin", "Nairobi", "Osaka", "Lima", "Toronto", "Porto"];
/// Names, categories and prices in cents.
const PRODUCTS: [(&str, &str, i64); 10] = [
    ("Desk lamp", "Office", 3_990),
    ("Office chair", "Office", 18_900),
    ("Notebook, A5", "Stationery", 450),
    ("Fountain pen", "Stationery", 2_700),
    ("Backpack", "Travel", 7_450),
    ("Water bottle", "Travel", 1_890),
    ("Headphones", "Electronics", 12_900),
    ("Keyboard", "Electronics", 8_990),
    ("Monitor, 27 inch", "Electronics", 27_900),
    ("Plant pot", "Home", 1_250),
];

const TABLES: &str = "\
CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    city TEXT NOT NULL
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    price REAL NOT NULL
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL,
    total REAL NOT NULL,
    order_date TEXT NOT NULL
);
CREATE INDEX orders_by_customer ON orders (customer_id);
";

/// Makes the demo if this is its file and it is not there. Any number of programs may do it at once:
/// one wins, and nobody ever sees half of it.
pub(crate) fn make_if_missing(path: &Path) -> Result<(), DemoError> {
    if path.exists() {
        return Ok(());
    }
    if path.file_name().is_none_or(|name| name != FILE_NAME) {
        return Err(DemoError::Missing(path.display().to_string()));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let unfinished = folder.join(format!(".demo-{}.db", Uuid::now_v7().simple()));
    let made = fill(&unfinished).and_then(|()| {
        match fs::hard_link(&unfinished, path) {
            // Somebody else was faster, with the same content.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => Ok(other?),
        }
    });
    let _ = fs::remove_file(&unfinished);
    made
}

fn fill(path: &Path) -> Result<(), DemoError> {
    let mut connection = Connection::open(path)?;
    // Nothing but this file is left behind.
    connection.pragma_update(None, "journal_mode", "MEMORY")?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    for at in 0..DEMO_CUSTOMERS {
        let (first, last) = (FIRST[at % FIRST.len()], LAST[at / FIRST.len() % LAST.len()]);
        let name = format!("{first} {last}");
        let email = format!("{}.{}@example.com", first.to_lowercase(), last.to_lowercase());
        let city = CITIES[at * 5 % CITIES.len()];
        transaction.execute(
            "INSERT INTO customers (name, email, city) VALUES (?1, ?2, ?3)",
            params![name, email, city],
        )?;
    }
    for (name, category, cents) in PRODUCTS {
        transaction.execute(
            "INSERT INTO products (name, category, price) VALUES (?1, ?2, ?3)",
            params![name, category, price(cents)],
        )?;
    }
    // The first has the most orders, and a few have none.
    for customer in 0..DEMO_CUSTOMERS {
        for order in 0..(customer * 7 + 5) % 6 {
            let product = (customer * 3 + order * 7) % PRODUCTS.len();
            let quantity = i64::try_from((customer + order) % 4).unwrap_or(0) + 1;
            let (month, day) = ((customer + order * 5) % 12 + 1, (customer * 11 + order) % 28 + 1);
            transaction.execute(
                "INSERT INTO orders (customer_id, product_id, quantity, total, order_date)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    i64::try_from(customer).unwrap_or(0) + 1,
                    i64::try_from(product).unwrap_or(0) + 1,
                    quantity,
                    price(PRODUCTS[product].2 * quantity),
                    format!("2025-{month:02}-{day:02}"),
                ],
            )?;
        }
    }
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)?;
    fs::File::open(path)?.sync_all()?;
    Ok(())
}

/// Cents as what is shown.
fn price(cents: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "prices are small")]
    let cents = cents as f64;
    cents / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_forty_two_customers_however_many_make_them_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below").join(FILE_NAME);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| make_if_missing(&path).unwrap());
            }
        });
        let connection = Connection::open(&path).unwrap();
        let count = |table: &str| -> i64 {
            let sql = format!("SELECT count(*) FROM {table}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("customers"), count("products")), (42, 10));
        assert!(count("orders") > 50);
        let names = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(names.count(), 1, "something was left behind");
        // The same content everywhere.
        let other = folder.path().join(FILE_NAME);
        make_if_missing(&other).unwrap();
        assert_eq!(fs::read(&path).unwrap(), fs::read(&other).unwrap());
    }

    #[test]
    fn other_files_are_not_made_and_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        assert!(make_if_missing(&folder.path().join("other.db")).is_err());
        let own = folder.path().join(FILE_NAME);
        fs::write(&own, "mine").unwrap();
        make_if_missing(&own).unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"mine");
    }
}
