//! What the catalogue of PostgreSQL says of it.

use crate::sql::dialect::SqlDialect;
use crate::sql::guard::{SqlRefusal, is_known_function};

/// Asks what is behind the words of a statement: rows of four texts, see there.
pub(crate) const LOOK: &str = include_str!("postgresql.sql");

/// Operators that a statement uses without their signs: `IN`, `BETWEEN`, `LIKE`, `ORDER BY` …
const IMPLIED: [&str; 12] =
    ["=", "<>", "<", ">", "<=", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~"];

/// A function that is behind something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// What it is behind: a `relation`, a `type`, a `field`, a `call`, an `operator` or a `cast`.
    pub(crate) kind: String,
    /// What that is called.
    pub(crate) name: String,
    pub(crate) schema: String,
    pub(crate) function: String,
}

/// The first of these that a statement may not call, unless the host allows it.
pub(crate) fn refusal(sql: &str, found: Vec<Behind>, allowed: &[String]) -> Option<SqlRefusal> {
    let refused = found.into_iter().find(|it| is_used(sql, it) && !is_allowed(it, allowed))?;
    let Behind { kind, name, schema, function } = refused;
    let name = match kind.as_str() {
        "operator" => format!("the operator {name}"),
        "cast" => format!("a cast to {name}"),
        _ => name,
    };
    let function = match schema.as_str() {
        "pg_catalog" => function,
        schema => format!("{schema}.{function}"),
    };
    Some(SqlRefusal::Hidden { name, function })
}

/// Operators are told whether the statement uses them or not.
fn is_used(sql: &str, behind: &Behind) -> bool {
    let name = behind.name.as_str();
    behind.kind != "operator" || IMPLIED.contains(&name) || sql.contains(name)
}

fn is_allowed(behind: &Behind, allowed: &[String]) -> bool {
    let Behind { schema, function, .. } = behind;
    let is_listed = |it: &String| it == function || *it == format!("{schema}.{function}");
    let is_known = schema == "pg_catalog" && is_known_function(SqlDialect::Postgresql, function);
    is_known || allowed.iter().any(is_listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_a_statement_is_held_against_what_is_allowed() {
        // The statement, what is behind what, what is allowed, what is refused.
        let table = [
            ("SELECT * FROM v", ["relation", "v", "public", "f"], "", Some(("v", "public.f"))),
            ("SELECT * FROM v", ["relation", "v", "public", "f"], "f", None),
            ("SELECT * FROM v", ["relation", "v", "public", "f"], "public.f", None),
            (
                "SELECT * FROM v",
                ["relation", "v", "public", "f"],
                "other.f",
                Some(("v", "public.f")),
            ),
            ("SELECT * FROM v", ["relation", "v", "pg_catalog", "random"], "", None),
            (
                "SELECT * FROM v",
                ["relation", "v", "public", "random"],
                "",
                Some(("v", "public.random")),
            ),
            (
                "SELECT * FROM v",
                ["relation", "v", "pg_catalog", "nextval"],
                "",
                Some(("v", "nextval")),
            ),
            (
                "SELECT 1 +++ 2",
                ["operator", "+++", "public", "f"],
                "",
                Some(("the operator +++", "public.f")),
            ),
            ("SELECT 1 + 2", ["operator", "+++", "public", "f"], "", None),
            (
                "SELECT 1 IN (2)",
                ["operator", "=", "public", "f"],
                "",
                Some(("the operator =", "public.f")),
            ),
            ("SELECT 1", ["cast", "t", "public", "f"], "", Some(("a cast to t", "public.f"))),
        ];
        for (sql, behind, allowed, expected) in table {
            let [kind, name, schema, function] = behind.map(str::to_owned);
            let found = vec![Behind { kind, name, schema, function }];
            let expected = expected.map(|(name, function)| SqlRefusal::Hidden {
                name: name.to_owned(),
                function: function.to_owned(),
            });
            let allowed = [allowed.to_owned()];
            assert_eq!(refusal(sql, found, &allowed), expected, "{sql} {behind:?} {allowed:?}");
        }
    }
}
