//! The words of a statement, by where they stand: what a database could look for by their names.

use std::collections::BTreeSet;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::is_quoted;
use crate::sql::dialect::SqlDialect;

/// Bytes of a name that PostgreSQL compares.
const LONGEST: usize = 63;

/// The words of a statement as the database compares them. A word can stand in more than one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// All of them.
    pub(crate) words: BTreeSet<String>,
    /// Those before a dot.
    pub(crate) qualifiers: BTreeSet<String>,
    /// Those after a dot.
    pub(crate) fields: BTreeSet<String>,
    /// Those before a bracket.
    pub(crate) calls: BTreeSet<String>,
    /// Those where a type could stand.
    pub(crate) types: BTreeSet<String>,
}

impl Named {
    /// A table, by its name in the catalogue.
    pub(crate) fn table(name: &str) -> Self {
        Self { words: BTreeSet::from([name.to_owned()]), ..Self::default() }
    }

    /// What is named by these.
    pub(super) fn of(dialect: SqlDialect, tokens: &[TokenWithSpan]) -> Self {
        let mut named = Self::default();
        let is_meant = |token: &&Token| !matches!(token, Token::Whitespace(_));
        let tokens: Vec<&Token> = tokens.iter().map(|it| &it.token).filter(is_meant).collect();
        for (at, token) in tokens.iter().enumerate() {
            let Token::Word(word) = token else { continue };
            let name = folded(dialect, word);
            let before = |by: usize| at.checked_sub(by).map_or(&Token::EOF, |it| tokens[it]);
            let after = tokens.get(at + 1).copied().unwrap_or(&Token::EOF);
            if *after == Token::Period {
                named.qualifiers.insert(name.clone());
            }
            if *after == Token::LParen {
                named.calls.insert(name.clone());
            }
            if *before(1) == Token::Period {
                named.fields.insert(name.clone());
            }
            // Past its schema.
            let begin = match (before(1), before(2)) {
                (Token::Period, Token::Word(_)) => before(3),
                (first, _) => first,
            };
            if is_before_type(begin) || is_quoted(after) && !matches!(after, Token::Word(_)) {
                named.types.insert(name.clone());
            }
            named.words.insert(name);
        }
        // These make rows of a type that a row gives them.
        if named.calls.iter().any(|name| name.contains("populate_record")) {
            named.types.clone_from(&named.words);
        }
        named
    }
}

/// Whether a type could stand after it: the words that cannot be the name of a column are those of
/// clauses, after which there are tables and values.
fn is_before_type(token: &Token) -> bool {
    match token {
        Token::Word(word) if word.quote_style.is_none() => !matches!(
            word.keyword,
            Keyword::SELECT
                | Keyword::FROM
                | Keyword::JOIN
                | Keyword::ONLY
                | Keyword::LATERAL
                | Keyword::WHERE
                | Keyword::ON
                | Keyword::AND
                | Keyword::OR
                | Keyword::NOT
        ),
        Token::DoubleColon | Token::Word(_) => true,
        _ => false,
    }
}

fn folded(dialect: SqlDialect, word: &Word) -> String {
    let name = match (dialect, word.quote_style) {
        (_, Some(quote)) => word.value.replace(&format!("{quote}{quote}"), &quote.to_string()),
        (SqlDialect::Mysql, None) => return word.value.clone(),
        (_, None) => word.value.to_ascii_lowercase(),
    };
    match dialect {
        SqlDialect::Postgresql => name[..name.floor_char_boundary(LONGEST)].to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::guard::SqlGuard;

    fn list(names: &BTreeSet<String>) -> String {
        names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_told_by_where_they_stand() {
        // The statement; words after a dot, before a bracket; whether these could be types.
        for (sql, fields, calls, ticket, customers) in [
            ("SELECT c.Touched FROM customers c", "touched", "", false, false),
            ("SELECT (c).\"Touched\" FROM customers c", "Touched", "select", false, false),
            ("SELECT lower(name) FROM public.customers", "customers", "lower", false, false),
            ("SELECT ticket, c.ticket FROM customers c", "ticket", "", false, false),
            ("SELECT 1::ticket", "", "", true, false),
            ("SELECT CAST(1 AS public.ticket)", "ticket", "cast", true, false),
            ("SELECT ticket '1'", "", "", true, false),
            (
                "SELECT * FROM json_to_record('{}') AS r(date ticket)",
                "",
                "json_to_record r",
                true,
                false,
            ),
            (
                "SELECT json_populate_record(c, '{}') FROM customers c",
                "",
                "json_populate_record",
                false,
                true,
            ),
        ] {
            let named = SqlGuard::new(SqlDialect::Postgresql).check(sql).unwrap().named;
            assert_eq!(
                (list(&named.fields), list(&named.calls)),
                (fields.to_owned(), calls.to_owned()),
                "{sql}"
            );
            let types = ["ticket", "customers"].map(|it| named.types.contains(it));
            assert_eq!(types, [ticket, customers], "{sql}");
        }
    }

    #[test]
    fn names_are_as_the_database_compares_them() {
        let long = "ä".repeat(40);
        for (dialect, sql, expected) in [
            (SqlDialect::Postgresql, "SELECT \"a\"\"B\"", "a\"B"),
            (SqlDialect::Postgresql, "SELECT aB", "ab"),
            (SqlDialect::Postgresql, &format!("SELECT {long}"), &long[..62]),
            (SqlDialect::Mysql, "SELECT `a``B`", "a`B"),
            (SqlDialect::Mysql, "SELECT aB", "aB"),
        ] {
            let named = SqlGuard::new(dialect).check(sql).unwrap().named;
            assert!(named.words.contains(expected), "{sql}: {named:?}");
        }
    }
}
