//! Comments, quotes and the ends of statements, read as the databases read them.
//!
//! A parser that sees other strings and comments than the database does can be talked past. So
//! comments are taken out before anything else looks, and what two readers could read differently
//! is refused.

use super::refusal::Refusal;
use crate::sql::dialect::SqlDialect;

/// One statement without comments and without the semicolon at its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lexed {
    /// What is left.
    pub(super) text: String,
    /// How many strings and quoted names there are.
    pub(super) quoted: usize,
}

/// Reads one statement.
pub(super) fn lex(dialect: SqlDialect, sql: &str) -> Result<Lexed, Refusal> {
    let mut lexer =
        Lexer { dialect, sql, at: 0, text: String::with_capacity(sql.len()), quoted: 0 };
    let mut ended = false;
    while let Some(next) = lexer.peek() {
        if ended && !next.is_whitespace() && next != ';' && !lexer.is_comment() {
            return Err(Refusal::Several);
        }
        if next == ';' {
            ended = true;
            lexer.at += 1;
            continue;
        }
        lexer.step(next)?;
    }
    let text = lexer.text.trim().to_owned();
    if text.is_empty() {
        return Err(Refusal::Empty);
    }
    Ok(Lexed { text, quoted: lexer.quoted })
}

struct Lexer<'s> {
    dialect: SqlDialect,
    sql: &'s str,
    at: usize,
    text: String,
    quoted: usize,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.sql[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn is_comment(&self) -> bool {
        let rest = self.rest();
        rest.starts_with("/*") || self.is_line_comment(rest)
    }

    fn is_line_comment(&self, rest: &str) -> bool {
        match self.dialect {
            SqlDialect::Mysql => {
                let dashes = rest.strip_prefix("--");
                // Without a space these are two signs.
                rest.starts_with('#')
                    || dashes.is_some_and(|it| {
                        it.chars().next().is_none_or(|next| next.is_ascii_whitespace())
                    })
            }
            _ => rest.starts_with("--"),
        }
    }

    fn take(&mut self, bytes: usize) {
        self.text.push_str(&self.rest()[..bytes]);
        self.at += bytes;
    }

    /// The last thing that was kept, if it ends a word.
    fn is_after_word(&self) -> bool {
        self.text.chars().next_back().is_some_and(is_word)
    }

    fn step(&mut self, next: char) -> Result<(), Refusal> {
        let rest = self.rest();
        if self.is_line_comment(rest) {
            return self.line_comment(rest);
        }
        if rest.starts_with("/*") {
            return self.block_comment(rest);
        }
        match (next, self.dialect) {
            ('\'', _) => {
                let backslash = self.dialect == SqlDialect::Mysql || self.is_escape_string();
                self.quote('\'', '\'', backslash)
            }
            ('"', dialect) => self.quote('"', '"', dialect == SqlDialect::Mysql),
            ('`', SqlDialect::Mysql | SqlDialect::Sqlite) => self.quote('`', '`', false),
            ('[', SqlDialect::Sqlite) => self.bracket(),
            ('$', SqlDialect::Postgresql) => self.dollar(),
            (':', SqlDialect::Mysql) if rest.starts_with(":=") => {
                Err(Refusal::Construct { what: "an assignment to a variable" })
            }
            (sign, SqlDialect::Postgresql) if OPERATOR_SIGNS.contains(sign) => self.operator(rest),
            ('\\' | '`', _) => Err(Refusal::Ambiguous { what: "a backslash or a backtick" }),
            (other, _) if other.is_ascii() && !is_known(other) => {
                Err(Refusal::Ambiguous { what: "a control character" })
            }
            (other, _) if !other.is_ascii() && !other.is_alphanumeric() => {
                Err(Refusal::Ambiguous { what: "a character outside of quotes" })
            }
            (other, _) => {
                self.take(other.len_utf8());
                Ok(())
            }
        }
    }

    fn line_comment(&mut self, rest: &str) -> Result<(), Refusal> {
        let end = rest.find('\n').unwrap_or(rest.len());
        let comment = rest[..end].strip_suffix('\r').unwrap_or(&rest[..end]);
        if comment.contains(['\r', '\0', '\x0b', '\x0c', '\u{85}', '\u{2028}', '\u{2029}']) {
            // Some end the comment here, some do not.
            return Err(Refusal::Ambiguous { what: "a comment with another end of line" });
        }
        self.at += end;
        self.text.push(' ');
        Ok(())
    }

    fn block_comment(&mut self, rest: &str) -> Result<(), Refusal> {
        let inner = &rest[2..];
        let executable = inner.starts_with('!') || inner.starts_with("M!");
        if executable || inner.starts_with("m!") {
            return Err(Refusal::Construct { what: "a comment that is executed" });
        }
        let end = match self.dialect {
            SqlDialect::Postgresql => nested_end(inner),
            _ => inner.find("*/"),
        };
        let Some(end) = end else {
            return Err(Refusal::Ambiguous { what: "a comment without an end" });
        };
        let is_nested = inner[..end].contains("/*") && self.dialect != SqlDialect::Postgresql;
        if is_nested || inner[..end].contains('\0') {
            // Some nest comments, some do not.
            return Err(Refusal::Ambiguous { what: "a comment in a comment" });
        }
        self.at += 2 + end + 2;
        self.text.push(' ');
        Ok(())
    }

    /// Whether the quote that comes begins `E'…'`.
    fn is_escape_string(&self) -> bool {
        self.dialect == SqlDialect::Postgresql && self.is_after_letter('e')
    }

    /// Whether the last thing that was kept is this letter alone.
    fn is_after_letter(&self, letter: char) -> bool {
        let mut before = self.text.chars().rev();
        before.next().is_some_and(|it| it.eq_ignore_ascii_case(&letter))
            && !before.next().is_some_and(is_word)
    }

    /// An operator, which must be one that comes with the database: others are functions that
    /// somebody wrote.
    fn operator(&mut self, rest: &str) -> Result<(), Refusal> {
        let end = rest.find(|it: char| !OPERATOR_SIGNS.contains(it)).unwrap_or(rest.len());
        let mut operator = &rest[..end];
        for comment in ["--", "/*"] {
            operator = &operator[..operator.find(comment).unwrap_or(operator.len())];
        }
        // Signs of numbers are not part of what is before them.
        while operator.len() > 1
            && operator.ends_with(['+', '-'])
            && !operator.contains(['~', '!', '@', '#', '%', '^', '&', '|', '?'])
        {
            operator = &operator[..operator.len() - 1];
        }
        match OPERATORS.contains(&operator) {
            true => {
                self.take(operator.len());
                Ok(())
            }
            false => Err(Refusal::Function { name: operator.to_owned() }),
        }
    }

    fn quote(&mut self, open: char, close: char, backslash: bool) -> Result<(), Refusal> {
        let rest = self.rest();
        let mut characters = rest.char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if character == '\0' {
                return Err(Refusal::Ambiguous { what: "a null character" });
            }
            if backslash && character == '\\' {
                characters.next();
                continue;
            }
            if character == close {
                if open == close && characters.peek().is_some_and(|(_, next)| *next == close) {
                    characters.next();
                    continue;
                }
                // Numbers in hexadecimal may have no quotes, and are not counted.
                self.quoted += usize::from(!self.is_after_letter('x'));
                self.take(at + close.len_utf8());
                return Ok(());
            }
        }
        Err(Refusal::Ambiguous { what: "a quote without an end" })
    }

    fn bracket(&mut self) -> Result<(), Refusal> {
        self.quote('[', ']', false)
    }

    /// `$tag$ … $tag$`, or a parameter.
    fn dollar(&mut self) -> Result<(), Refusal> {
        if self.is_after_word() {
            return Err(Refusal::Ambiguous { what: "a dollar sign in a word" });
        }
        let rest = self.rest();
        let after = &rest[1..];
        let tag = after.find(|it: char| !is_tag(it)).unwrap_or(after.len());
        let is_quote = after[tag..].starts_with('$')
            && !after[..tag].starts_with(|it: char| it.is_ascii_digit());
        if !is_quote {
            self.take(1);
            return Ok(());
        }
        let mark = &rest[..tag + 2];
        match rest[mark.len()..].find(mark) {
            Some(_) if rest.contains('\0') => Err(Refusal::Ambiguous { what: "a null character" }),
            Some(end) => {
                self.quoted += 1;
                self.take(end + 2 * mark.len());
                Ok(())
            }
            None => Err(Refusal::Ambiguous { what: "a quote without an end" }),
        }
    }
}

/// Where a comment ends that may have comments in it.
fn nested_end(inner: &str) -> Option<usize> {
    let (mut depth, mut at) = (1, 0);
    loop {
        let end = at + inner[at..].find("*/")?;
        match inner[at..].find("/*").map(|begin| at + begin) {
            Some(begin) if begin < end => {
                depth += 1;
                at = begin + 2;
            }
            _ => {
                depth -= 1;
                if depth == 0 {
                    return Some(end);
                }
                at = end + 2;
            }
        }
    }
}

/// What operators of PostgreSQL are made of.
const OPERATOR_SIGNS: &str = "+-*/<>=~!@#%^&|?";

/// The operators that come with PostgreSQL, with `!=` and the arrow of named arguments, and without
/// one that nobody needs.
const OPERATORS: &[&str] = &[
    "!!", "!=", "!~", "!~*", "!~~", "!~~*", "#", "##", "#-", "#>", "#>>", "%", "&", "&&", "&<",
    "&<|", "&>", "*", "*<", "*<=", "*<>", "*=", "*>", "*>=", "+", "-", "->", "->>", "-|-", "/",
    "<", "<->", "<<", "<<=", "<<|", "<=", "<>", "<@", "<^", "=", "=>", ">", ">=", ">>", ">>=",
    ">^", "?", "?#", "?&", "?-", "?-|", "?|", "?||", "@", "@-@", "@>", "@?", "@@", "^", "^@", "|",
    "|&>", "|/", "|>>", "||", "||/", "~", "~*", "~<=~", "~<~", "~=", "~>=~", "~>~", "~~", "~~*",
];

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

fn is_tag(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_known(character: char) -> bool {
    character.is_ascii_graphic() || matches!(character, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(dialect: SqlDialect, sql: &str) -> Result<String, Refusal> {
        lex(dialect, sql).map(|lexed| lexed.text)
    }

    #[test]
    fn comments_are_taken_out_and_strings_are_kept() {
        use SqlDialect::{Mysql, Postgresql, Sqlite};
        for (dialect, sql, expected) in [
            (Sqlite, "SELECT 1 -- x", "SELECT 1"),
            (Sqlite, "SELECT/* x */1;", "SELECT 1"),
            (Sqlite, "SELECT '--' , '/*'", "SELECT '--' , '/*'"),
            (Sqlite, "SELECT [a;b], \"c;d\", `e;f`;; -- end", "SELECT [a;b], \"c;d\", `e;f`"),
            (Mysql, "SELECT 5--3", "SELECT 5--3"),
            (Mysql, "SELECT 5-- 3", "SELECT 5"),
            (Mysql, "SELECT 5 # x;y", "SELECT 5"),
            (Mysql, r"SELECT 'a\';b'", r"SELECT 'a\';b'"),
            (Mysql, r#"SELECT "a\";b""#, r#"SELECT "a\";b""#),
            (Postgresql, r"SELECT 'a\', 'b'", r"SELECT 'a\', 'b'"),
            (Postgresql, r"SELECT E'a\';b'", r"SELECT E'a\';b'"),
            (Postgresql, "SELECT $a$;--$a$, $1", "SELECT $a$;--$a$, $1"),
            (Postgresql, "SELECT 'it''s;'", "SELECT 'it''s;'"),
            (Postgresql, "SELECT a # b", "SELECT a # b"),
            (Postgresql, "SELECT /* a /* b */ c */ 1", "SELECT   1"),
            (Postgresql, "SELECT a=-1, b->>'c', d@>e--f", "SELECT a=-1, b->>'c', d@>e"),
        ] {
            assert_eq!(text(dialect, sql).as_deref(), Ok(expected), "{dialect}: {sql}");
        }
    }

    #[test]
    fn what_two_readers_read_differently_is_refused() {
        use SqlDialect::{Mysql, Postgresql, Sqlite};
        for (dialect, sql) in [
            (Sqlite, "SELECT 1; DELETE FROM t"),
            (Sqlite, "SELECT 1;/**/DELETE FROM t"),
            (Sqlite, "SELECT 1 /* a"),
            (Sqlite, "SELECT 'a"),
            (Sqlite, "SELECT 1 -- a\rDELETE"),
            (Sqlite, "SELECT\u{a0}1"),
            (Sqlite, "SELECT \0 1"),
            (Mysql, "SELECT 1 /*! INTO OUTFILE 'x' */"),
            (Mysql, "SELECT 1 /*M!100000 INTO OUTFILE 'x' */"),
            (Mysql, "SELECT @a := 1"),
            (Mysql, r"SELECT 1\"),
            (Postgresql, "SELECT /* /* */ 1"),
            (Postgresql, "SELECT @@@ 'x'"),
            (Postgresql, "SELECT 1 +* 2"),
            (Mysql, "SELECT /* /* */ 1 */ 2"),
            (Postgresql, "SELECT a$b$c"),
            (Postgresql, "SELECT `a`"),
            (Postgresql, "SELECT $a$ x"),
            (Postgresql, " ; -- nothing"),
        ] {
            assert!(text(dialect, sql).is_err(), "{dialect}: {sql}");
        }
    }
}
