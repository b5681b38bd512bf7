//! The first layer: what a statement says, looked at before a database sees it.

mod functions;
mod lex;
mod look;
mod named;
mod refusal;
mod scope;
mod visit;
mod writes;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Statement, Visit};
use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::dialect::SqlDialect;
pub(crate) use functions::is_known as is_known_function;
pub(crate) use named::Named;
pub use refusal::SqlRefusal;
pub use scope::TableScope;
use visit::Reader;
use writes::Writer;

/// So deep may queries and expressions be in one another.
const MAX_DEPTH: usize = 48;
/// Statements that could be deeper than this are looked at with a stack of their own: a chain of
/// operators is a tree as deep as it is long.
const SHALLOW: usize = 12;
/// Bytes of that stack, of which only what is used is taken.
const STACK: usize = 512 << 20;

/// Decides whether a statement only reads.
///
/// It allows one `SELECT`, `VALUES`, `TABLE` or `EXPLAIN` of these, in which every part at every
/// depth only reads: no statement that writes, no `INTO`, no locks, and no function that is not
/// known to read. What it cannot read it refuses.
///
/// ```
/// use prowess_toolkits::{SqlDialect, SqlGuard};
///
/// let guard = SqlGuard::new(SqlDialect::Postgresql);
/// assert!(guard.check("SELECT count(*) FROM customers -- all").is_ok());
/// let refusal = guard.check("WITH d AS (DELETE FROM customers RETURNING *) SELECT * FROM d");
/// assert_eq!(refusal.unwrap_err().code(), "read_only");
/// assert!(guard.check("SELECT * FROM pg_read_file('/etc/passwd')").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct SqlGuard {
    dialect: SqlDialect,
    functions: BTreeSet<String>,
    tables: TableScope,
    max_bytes: usize,
    max_tokens: usize,
}

/// A statement that only reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// It, without comments and without the semicolon at its end. This is what is run.
    pub text: String,
    /// What it is: `select`, `explain`, `show` …
    pub kind: String,
    /// What it names, where something could be behind a name.
    pub(crate) named: Named,
}

/// What a statement is, if it can be read at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Such as `DELETE`.
    pub(crate) keyword: String,
    /// It, without comments and the semicolon.
    pub(crate) text: String,
}

/// A statement that was read, beside its tree.
struct Read {
    text: String,
    named: Named,
}

impl SqlGuard {
    /// For a kind of database.
    pub fn new(dialect: SqlDialect) -> Self {
        Self {
            dialect,
            functions: BTreeSet::new(),
            tables: TableScope::default(),
            max_bytes: 64 << 10,
            max_tokens: 10_000,
        }
    }

    /// Functions that are allowed beside those that are known: `name` or `schema.name`.
    pub fn with_functions(mut self, functions: impl IntoIterator<Item = String>) -> Self {
        self.functions = functions.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        self
    }

    /// The tables that may be read.
    pub fn with_tables(mut self, tables: TableScope) -> Self {
        self.tables = tables;
        self
    }

    /// How long a statement may be, in bytes.
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// How long a statement may be, in words, signs and values.
    pub fn with_max_tokens(mut self, tokens: usize) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// The kind of database.
    pub fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    /// Whether a statement only reads, and what of it is to be run.
    pub fn check(&self, sql: &str) -> Result<Reading, SqlRefusal> {
        self.with_statement(sql, |Read { text, named }, statement| {
            let mut reader = Reader::new(self.dialect, &self.functions, &self.tables);
            match statement.visit(&mut reader) {
                ControlFlow::Break(SqlRefusal::Write { keyword }) => {
                    Err(SqlRefusal::Write { keyword: leading(&text).unwrap_or(keyword) })
                }
                ControlFlow::Break(refusal) => Err(refusal),
                ControlFlow::Continue(()) => {
                    let kind = visit::keyword(statement).to_ascii_lowercase();
                    Ok(Reading { text, kind, named })
                }
            }
        })
    }

    /// What a statement is, whether it writes or not.
    pub(crate) fn kind(&self, sql: &str) -> Result<Kind, SqlRefusal> {
        self.with_statement(sql, |Read { text, .. }, statement| {
            let keyword = leading(&text).unwrap_or_else(|| visit::keyword(statement));
            Ok(Kind { keyword, text })
        })
    }

    /// What a statement is that writes, if it touches no table but those of the lists.
    pub(crate) fn check_write(&self, sql: &str) -> Result<Kind, SqlRefusal> {
        self.with_statement(sql, |Read { text, .. }, statement| {
            if !self.tables.is_open() {
                let reader = Reader::new(self.dialect, &self.functions, &self.tables);
                if let ControlFlow::Break(refusal) = statement.visit(&mut Writer(reader)) {
                    return Err(refusal);
                }
            }
            let keyword = leading(&text).unwrap_or_else(|| visit::keyword(statement));
            Ok(Kind { keyword, text })
        })
    }

    /// Reads one statement, and does something with it.
    fn with_statement<T: Send>(
        &self,
        sql: &str,
        then: impl FnOnce(Read, &Statement) -> Result<T, SqlRefusal> + Send,
    ) -> Result<T, SqlRefusal> {
        if sql.len() > self.max_bytes {
            let limit = self.max_bytes;
            return Err(SqlRefusal::TooLong { limit_name: "max_statement_bytes", limit });
        }
        let lexed = lex::lex(self.dialect, sql)?;
        let tokens = Tokenizer::new(self.parser(), &lexed.text)
            .with_unescape(false)
            .tokenize_with_location()
            .map_err(|error| self.unread(&lexed.text, &error.to_string()))?;
        let is_meant = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let count = tokens.iter().filter(is_meant).count();
        if count > self.max_tokens {
            let limit = self.max_tokens;
            return Err(SqlRefusal::TooLong { limit_name: "max_statement_tokens", limit });
        }
        if tokens.iter().filter(|token| is_quoted(&token.token)).count() != lexed.quoted {
            return Err(SqlRefusal::Ambiguous { what: "a string or a quoted name" });
        }
        let named = match self.dialect {
            SqlDialect::Sqlite => Named::default(),
            dialect => Named::of(dialect, &tokens),
        };
        let tokens = look::rewrite(self.dialect, tokens);
        let depth = tokens.iter().filter(|token| could_nest(&token.token)).count();
        let work = move || {
            let mut parser = Parser::new(self.parser())
                .with_recursion_limit(MAX_DEPTH)
                .with_tokens_with_locations(tokens);
            let statements = parser
                .parse_statements()
                .map_err(|error| self.unread(&lexed.text, &error.to_string()))?;
            match statements.as_slice() {
                [statement] => then(Read { text: lexed.text, named }, statement),
                [] => Err(SqlRefusal::Empty),
                _ => Err(SqlRefusal::Several),
            }
        };
        if depth <= SHALLOW {
            return work();
        }
        std::thread::scope(|scope| {
            let broken = || SqlRefusal::Syntax { message: "it could not be read".to_owned() };
            let builder = std::thread::Builder::new().stack_size(STACK);
            let thread = builder.spawn_scoped(scope, work).map_err(|_| broken())?;
            thread.join().unwrap_or_else(|_| Err(broken()))
        })
    }

    /// A statement that cannot be read: it is refused, and if it begins as one that writes, as that.
    fn unread(&self, text: &str, message: &str) -> SqlRefusal {
        let message = message.trim_start_matches("sql parser error: ").to_owned();
        match leading(text) {
            Some(keyword) => SqlRefusal::Unread { keyword, message },
            None => SqlRefusal::Syntax { message },
        }
    }

    fn parser(&self) -> &'static dyn Dialect {
        match self.dialect {
            SqlDialect::Sqlite => &SQLiteDialect {},
            SqlDialect::Postgresql => &PostgreSqlDialect {},
            SqlDialect::Mysql => &MySqlDialect {},
        }
    }
}

/// The word that a statement begins with, if that is not a query's.
fn leading(text: &str) -> Option<String> {
    let end = text.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(text.len());
    let word = text[..end].to_ascii_uppercase();
    OTHER_STATEMENTS.contains(&word.as_str()).then_some(word)
}

/// Words that begin statements which are not queries.
const OTHER_STATEMENTS: &[&str] = &[
    "ABORT",
    "ALTER",
    "ANALYSE",
    "ANALYZE",
    "ATTACH",
    "BACKUP",
    "BEGIN",
    "BINLOG",
    "CACHE",
    "CALL",
    "CHANGE",
    "CHECK",
    "CHECKPOINT",
    "CHECKSUM",
    "CLONE",
    "CLOSE",
    "CLUSTER",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DETACH",
    "DISCARD",
    "DO",
    "DROP",
    "END",
    "EXEC",
    "EXECUTE",
    "FETCH",
    "FLUSH",
    "GET",
    "GRANT",
    "HANDLER",
    "IMPORT",
    "INSERT",
    "INSTALL",
    "KILL",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "OPTIMIZE",
    "PRAGMA",
    "PREPARE",
    "PURGE",
    "REASSIGN",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "RENAME",
    "REPAIR",
    "REPLACE",
    "RESET",
    "RESIGNAL",
    "RESTART",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SECURITY",
    "SET",
    "SHUTDOWN",
    "SIGNAL",
    "START",
    "STOP",
    "TRUNCATE",
    "UNINSTALL",
    "UNLISTEN",
    "UNLOCK",
    "UPDATE",
    "USE",
    "VACUUM",
    "XA",
];

/// Whether a token could make a tree deeper.
fn could_nest(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            use sqlparser::keywords::Keyword;
            let plain = [
                Keyword::NoKeyword,
                Keyword::AS,
                Keyword::ASC,
                Keyword::BY,
                Keyword::DESC,
                Keyword::FROM,
                Keyword::GROUP,
                Keyword::LIMIT,
                Keyword::ON,
                Keyword::ORDER,
                Keyword::WHERE,
            ];
            word.quote_style.is_none() && !plain.contains(&word.keyword)
        }
        Token::Number(..) | Token::Comma | Token::Period | Token::RParen | Token::EOF => false,
        token => !is_quoted(token),
    }
}

fn is_quoted(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some(),
        Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::DoubleQuotedByteStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_) => true,
        // A number in hexadecimal may have no quotes, and is not counted.
        _ => false,
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
