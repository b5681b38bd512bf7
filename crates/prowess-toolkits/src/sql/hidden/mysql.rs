//! What MySQL and MariaDB say of it: the definitions of views are read as statements are.

use crate::sql::dialect::SqlDialect;
use crate::sql::guard::{Named, SqlGuard, SqlRefusal};

/// Asks for the names and the definitions of views, once for each of so many databases beside that
/// of the connection, and for each with so many names. The server itself wrote those of `sys`.
pub(crate) fn look(databases: usize, names: usize) -> String {
    let names = vec!["?"; names].join(", ");
    let one = |database: &str| {
        format!(
            "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS \
             WHERE TABLE_SCHEMA = {database} AND TABLE_SCHEMA <> 'sys' AND TABLE_NAME IN ({names})"
        )
    };
    let mut all = vec![one("DATABASE()")];
    all.extend((0..databases).map(|_| one("?")));
    all.join(" UNION ")
}

/// Asks which of so many functions that are called are stored in the database: where the server has
/// none of its own with that name, such a one is meant.
pub(crate) fn stored(names: usize) -> String {
    let names = vec!["?"; names].join(", ");
    format!(
        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_TYPE = 'FUNCTION' AND ROUTINE_NAME IN ({names}) \
         ORDER BY ROUTINE_NAME"
    )
}

/// What a view is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// It reads, by way of these names.
    Reads(Box<Named>),
    /// It does more, or could.
    Refused(SqlRefusal),
    /// Who asks may not see its definition, or the guard cannot read it.
    Unseen,
}

/// What a view is, by its definition.
pub(crate) fn view(name: &str, definition: &str, functions: &[String]) -> View {
    let guard = SqlGuard::new(SqlDialect::Mysql)
        .with_functions(functions.iter().cloned())
        .with_max_bytes(1 << 20)
        .with_max_tokens(100_000);
    match guard.check(definition) {
        Ok(reading) => View::Reads(Box::new(reading.named)),
        Err(SqlRefusal::Function { name: function }) => {
            View::Refused(SqlRefusal::Hidden { name: name.to_owned(), function })
        }
        Err(_) => View::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_read_by_their_definitions() {
        let hidden = |function: &str| {
            View::Refused(SqlRefusal::Hidden {
                name: "v".to_owned(),
                function: function.to_owned(),
            })
        };
        let allowed = ["d.f".to_owned()];
        assert_eq!(view("v", "select `d`.`g`(1) AS `a`", &allowed), hidden("`d`.`g`"));
        assert_eq!(view("v", "select nextval(`d`.`s`) AS `a`", &allowed), hidden("nextval"));
        assert_eq!(view("v", "", &allowed), View::Unseen);
        assert_eq!(view("v", "select (", &allowed), View::Unseen);
        let View::Reads(named) =
            view("v", "select `d`.`f`(`d`.`w`.`a`) AS `a` from `d`.`w`", &allowed)
        else {
            panic!("it reads")
        };
        assert!(named.words.contains("w") && named.qualifiers.contains("d"));
    }

    #[test]
    fn views_of_several_databases_are_asked_for_at_once() {
        let sql = look(1, 2);
        assert_eq!(sql.matches('?').count(), 5);
        assert_eq!(sql.matches("UNION").count(), 1);
    }
}
