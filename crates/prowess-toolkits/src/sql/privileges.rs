//! The third layer: what the role of a connection may do.

use std::fs::OpenOptions;

use serde_json::Value;

use super::connection::Database;
use super::dialect::SqlDialect;
use super::error::SqlError;
use super::guard::SqlRefusal;
use super::hidden::mysql::{View, view};
use super::schema::queries;

/// How closely the role is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// For what somebody granted.
    AtGrants,
    /// For what everybody may, as well.
    AtAll,
}

/// What the role of a connection can write; nothing is well.
pub(crate) async fn findings(database: &Database, look: Look) -> Result<Vec<String>, SqlError> {
    match database.dialect() {
        SqlDialect::Sqlite => Ok(of_file(database, look)),
        SqlDialect::Postgresql => {
            let mut all = lines(database.catalogue(queries::POSTGRESQL_PRIVILEGES).await?);
            if look == Look::AtAll {
                let more = database.catalogue(queries::POSTGRESQL_LARGE_OBJECTS).await?;
                all.extend(lines(more));
            }
            Ok(all)
        }
        SqlDialect::Mysql => {
            let grants = lines(database.catalogue("SHOW GRANTS").await?);
            let mut all: Vec<String> = grants.iter().filter_map(|it| of_grant(it)).collect();
            let views = database.catalogue(queries::MYSQL_DEFINER_VIEWS).await?;
            all.extend(views.iter().filter_map(|row| of_view(row)));
            Ok(all)
        }
    }
}

/// A file has no roles: who can write it can write it. It is opened so that it is not written.
fn of_file(database: &Database, look: Look) -> Vec<String> {
    let can_write = |path| OpenOptions::new().append(true).open(path).is_ok();
    match database.file() {
        Some(path) if look == Look::AtAll && can_write(path) => {
            vec!["this program can write the file".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// A view runs as who made it: whoever can read it can do what it does.
fn of_view(row: &[Value]) -> Option<String> {
    let [Value::String(name), Value::String(definition)] = row else { return None };
    match view(name, definition, &[]) {
        View::Refused(SqlRefusal::Hidden { function, .. }) => {
            Some(format!("it can read the view {name}, which calls {function} as its owner"))
        }
        _ => None,
    }
}

fn lines(rows: Vec<Vec<Value>>) -> Vec<String> {
    let text = |row: Vec<Value>| match row.into_iter().next() {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    rows.into_iter().filter_map(text).collect()
}

/// What is granted beyond reading.
fn of_grant(grant: &str) -> Option<String> {
    const READING: [&str; 11] = [
        "USAGE",
        "SELECT",
        "SHOW VIEW",
        "SHOW DATABASES",
        "PROCESS",
        "REPLICATION CLIENT",
        "BINLOG MONITOR",
        "SLAVE MONITOR",
        "REPLICA MONITOR",
        "SHOW_ROUTINE",
        "CREATE TEMPORARY TABLES",
    ];
    let rest = grant.strip_prefix("GRANT ")?;
    let Some((privileges, object)) = rest.split_once(" ON ") else {
        // A role, whose rights are not told here.
        let role = rest.split(" TO ").next().unwrap_or(rest);
        return Some(format!("it has the role {role}"));
    };
    let object = object.split(" TO ").next().unwrap_or(object);
    if grant.ends_with("WITH GRANT OPTION") {
        return Some(format!("it can grant {privileges} on {object}"));
    }
    // Columns in brackets belong to the privilege before them.
    let mut depth = 0;
    let mut words = vec![String::new()];
    for character in privileges.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => words.push(String::new()),
            other if depth == 0 => {
                if let Some(word) = words.last_mut() {
                    word.push(other);
                }
            }
            _ => {}
        }
    }
    let beyond: Vec<&str> =
        words.iter().map(|word| word.trim()).filter(|word| !READING.contains(word)).collect();
    (!beyond.is_empty()).then(|| format!("it may {} on {object}", beyond.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_beyond_reading_are_found() {
        for (grant, expected) in [
            ("GRANT USAGE ON *.* TO `r`@`%`", None),
            ("GRANT SELECT, SHOW VIEW ON `d`.* TO `r`@`%`", None),
            ("GRANT SELECT (`a`, `b`) ON `d`.`t` TO `r`@`%`", None),
            ("GRANT SELECT, INSERT (`a`) ON `d`.`t` TO `r`@`%`", Some("it may INSERT on `d`.`t`")),
            ("GRANT ALL PRIVILEGES ON `d`.* TO `r`@`%`", Some("it may ALL PRIVILEGES on `d`.*")),
            ("GRANT SELECT, FILE ON *.* TO `r`@`%`", Some("it may FILE on *.*")),
            ("GRANT EXECUTE ON `d`.* TO `r`@`%`", Some("it may EXECUTE on `d`.*")),
            ("GRANT `writer` TO `r`@`%`", Some("it has the role `writer`")),
            (
                "GRANT SELECT ON `d`.* TO `r`@`%` WITH GRANT OPTION",
                Some("it can grant SELECT on `d`.*"),
            ),
        ] {
            assert_eq!(of_grant(grant).as_deref(), expected, "{grant}");
        }
    }
}
