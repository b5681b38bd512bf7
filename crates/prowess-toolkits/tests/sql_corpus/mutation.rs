//! Other ways to write a statement. They are made by chance, always by the same chance, and do the
//! same as the statement that they are made of, or more.

use std::fmt::Write;

use super::super::sql_servers::Kind;
use super::Hostile;

/// Chance that can be had again.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// So many other ways to write these statements, none twice, each with what it is made of.
pub(crate) fn mutations(kind: Kind, hostile: &[Hostile], many: usize) -> Vec<(Hostile, String)> {
    let mut chance = Chance::new(13);
    let mut seen = std::collections::HashSet::new();
    let mut all = Vec::with_capacity(many);
    while all.len() < many {
        let from = chance.of(hostile).clone();
        let mut sql = from.sql.clone();
        for _ in 0..=chance.below(3) {
            sql = mutate(kind, &mut chance, &sql, hostile);
        }
        if sql != from.sql && seen.insert(sql.clone()) {
            all.push((from, sql));
        }
    }
    all
}

fn mutate(kind: Kind, chance: &mut Chance, sql: &str, hostile: &[Hostile]) -> String {
    match chance.below(10) {
        0 | 1 => each(kind, sql, |part, text| case(kind, chance, part, text)),
        2 => each(kind, sql, |part, text| space(kind, chance, part, text)),
        3 | 4 => each(kind, sql, |part, text| comment(kind, chance, part, text)),
        5 => format!("{}{sql}", chance.of(prefixes(kind))),
        6 => format!("{sql}{}", chance.of(suffixes(kind))),
        7 | 8 => wrapped(kind, chance, sql),
        _ if chance.one_in(3) => format!("{sql};\n{}", chance.of(hostile).sql),
        _ => each(kind, sql, |part, text| encoded(kind, chance, part, text)),
    }
}

/// A piece of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Word,
    /// A word with a parenthesis behind it.
    Called,
    Space,
    /// A string, a quoted name or a comment: it stays what it is.
    Closed,
    Sign,
}

/// Puts a statement together again from its pieces, each changed.
fn each(kind: Kind, sql: &str, mut change: impl FnMut(Part, &str) -> String) -> String {
    let mut whole = String::with_capacity(sql.len() * 2);
    let mut rest = sql;
    while !rest.is_empty() {
        let (part, length) = piece(kind, rest);
        let (text, after) = rest.split_at(length);
        // `U&"…"`, `E'…'` and their like are one.
        let is_marked = part == Part::Word && after.starts_with(['"', '\'', '&', '$']);
        let is_called = part == Part::Word && after.trim_start().starts_with('(');
        let part = match part {
            _ if is_marked => Part::Closed,
            _ if is_called => Part::Called,
            part => part,
        };
        whole.push_str(&change(part, text));
        rest = after;
    }
    whole
}

/// What a statement begins with, and how long that is.
fn piece(kind: Kind, sql: &str) -> (Part, usize) {
    let first = sql.chars().next().unwrap_or(' ');
    let length = |end: fn(char) -> bool| sql.find(end).unwrap_or(sql.len());
    let until = |close: &str, from: usize| {
        sql.get(from..)
            .and_then(|rest| rest.find(close))
            .map_or(sql.len(), |at| from + at + close.len())
    };
    match first {
        _ if first.is_whitespace() => (Part::Space, length(|it| !it.is_whitespace())),
        _ if first.is_alphanumeric() || first == '_' => {
            (Part::Word, length(|it| !(it.is_alphanumeric() || it == '_')))
        }
        // From here on nobody knows what is inside of what: the rest stays.
        '\'' if kind != Kind::Sqlite && sql.contains('\\') => (Part::Closed, sql.len()),
        '"' | '`' if sql.contains('\\') => (Part::Closed, sql.len()),
        '\'' => (Part::Closed, until("'", 1)),
        '"' => (Part::Closed, until("\"", 1)),
        '`' => (Part::Closed, until("`", 1)),
        '[' if kind == Kind::Sqlite => (Part::Closed, until("]", 1)),
        // A name that is put in later.
        '{' => (Part::Closed, until("}", 1)),
        '$' | '\\' | '#' | '.' | ':' => (Part::Closed, sql.len()),
        '-' if sql.starts_with("--") => (Part::Closed, until("\n", 2)),
        '/' if sql.starts_with("/*") => (Part::Closed, sql.len()),
        _ => (Part::Sign, first.len_utf8()),
    }
}

fn case(kind: Kind, chance: &mut Chance, part: Part, text: &str) -> String {
    // Names of tables are files for MySQL.
    let is_keyword = text.chars().all(|it| it.is_ascii_uppercase());
    if !matches!(part, Part::Word | Part::Called) || (kind == Kind::Mysql && !is_keyword) {
        return text.to_owned();
    }
    let any = |it: char| {
        if chance.one_in(2) { it.to_ascii_uppercase() } else { it.to_ascii_lowercase() }
    };
    text.chars().map(any).collect()
}

fn space(kind: Kind, chance: &mut Chance, part: Part, text: &str) -> String {
    let mut all = vec!["\n", "\t", "  ", "\r\n", "\u{c}", " \n\t "];
    if kind == Kind::Mysql {
        all.push("\u{b}");
    }
    if part == Part::Space { (*chance.of(&all)).to_owned() } else { text.to_owned() }
}

fn comment(kind: Kind, chance: &mut Chance, part: Part, text: &str) -> String {
    let mut all =
        vec!["/**/", "/* ; */", " /*'*/ ", " -- x\n", " -- ';\n", "/* SELECT 1 */", "/*\"*/"];
    match kind {
        Kind::Sqlite => all.push(" /* -- */ "),
        Kind::Postgresql => all.extend(["/* /* nested */ */", " --/*\n"]),
        Kind::Mysql => {
            all.extend([" # x\n", " #'\n", "/*! */", "/*!50000 */", "/*M! */", "/*!99999 x */"]);
        }
    }
    if part == Part::Space && chance.one_in(2) {
        (*chance.of(&all)).to_owned()
    } else {
        text.to_owned()
    }
}

fn prefixes(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Sqlite => &[
            ";",
            "SELECT 1;",
            "/* x */",
            "-- x\n",
            "VALUES (1);\n",
            " \n\t",
            "SELECT 'x;y';",
            "EXPLAIN SELECT 1;",
        ],
        Kind::Postgresql => &[
            ";",
            "SELECT 1;",
            "/* /* x */ */",
            "-- x\n",
            "VALUES (1);\n",
            " \n\t",
            "SELECT $$;$$;",
            "SELECT E'\\'';",
            "TABLE customers;",
            "EXPLAIN SELECT 1;",
            "SELECT 'x;y';",
        ],
        Kind::Mysql => &[
            "SELECT 1;",
            "/* x */",
            "-- x\n",
            "# x\n",
            " \n\t",
            "SELECT 'it\\'s';",
            "SELECT \"a;b\";",
            "EXPLAIN SELECT 1;",
            "--\n",
            "/*!99999 x */",
        ],
    }
}

fn suffixes(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Sqlite => &[";", ";;", "; SELECT 1", "\n-- SELECT 1", "/* x */", ";\n-- x\n"],
        Kind::Postgresql => &[
            ";",
            ";;",
            "; SELECT 1",
            "\n-- SELECT 1",
            "/* /* x */ */",
            ";\n-- x\n",
            "; SELECT $$;$$",
        ],
        Kind::Mysql => {
            &[";", "; SELECT 1", "\n-- SELECT 1", "/* x */", "\n# x", ";\n-- x\n", "/*! */"]
        }
    }
}

/// A query inside of another one, a change inside of a query, everything inside of a comment that is
/// none.
fn wrapped(kind: Kind, chance: &mut Chance, sql: &str) -> String {
    let first: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
    let first = first.to_ascii_uppercase();
    let is_plain = !sql.contains([';', '#']) && !sql.contains("--") && !sql.contains("/*");
    let is_query = matches!(first.as_str(), "SELECT" | "VALUES" | "WITH" | "TABLE");
    let is_change = matches!(first.as_str(), "INSERT" | "UPDATE" | "DELETE");
    let is_returning = sql.to_ascii_uppercase().contains("RETURNING");
    if !is_plain {
        return sql.to_owned();
    }
    if kind == Kind::Mysql && chance.one_in(3) {
        return match chance.below(4) {
            0 => format!("/*! {sql} */"),
            1 => format!("/*!50000 {sql} */"),
            2 => format!("/*M! {sql} */"),
            _ => format!("/*!{first}*/{}", &sql[first.len()..]),
        };
    }
    if is_query {
        return match chance.below(9) {
            0 => format!("({sql})"),
            1 => format!("(({sql}))"),
            2 => format!("WITH w AS ({sql}) SELECT * FROM w"),
            3 => format!("SELECT * FROM ({sql}) AS w"),
            4 => format!("SELECT ({sql})"),
            5 => format!("SELECT 1 WHERE EXISTS ({sql})"),
            6 => format!("SELECT id FROM customers WHERE id IN ({sql})"),
            7 => format!("SELECT CASE WHEN EXISTS ({sql}) THEN 1 ELSE 2 END"),
            _ => format!(
                "WITH a AS (SELECT 1), w AS (SELECT * FROM ({sql}) AS v) SELECT * FROM a, w"
            ),
        };
    }
    if is_change && kind == Kind::Postgresql {
        let returning = if is_returning { "" } else { " RETURNING 1" };
        return match chance.below(4) {
            0 => format!("WITH w AS ({sql}{returning}) SELECT * FROM w"),
            1 => format!("WITH a AS (SELECT 1), w AS ({sql}) SELECT * FROM a"),
            2 => format!("EXPLAIN ANALYZE {sql}"),
            _ => format!("EXPLAIN (VERBOSE, ANALYZE, FORMAT JSON) {sql}"),
        };
    }
    match kind {
        Kind::Mysql if is_change => format!("ANALYZE FORMAT=JSON {sql}"),
        Kind::Sqlite if is_change => format!("WITH w AS (SELECT 1) {sql}"),
        _ => sql.to_owned(),
    }
}

/// Names in other letters, strings as numbers.
fn encoded(kind: Kind, chance: &mut Chance, part: Part, text: &str) -> String {
    let is_name = text.len() > 3 && text.chars().any(|it| it.is_ascii_lowercase());
    if part == Part::Called && is_name && kind != Kind::Mysql {
        let name = text.to_lowercase();
        return match (kind, chance.below(3)) {
            (Kind::Postgresql, 0) => {
                let mut escaped = String::from("U&\"");
                for letter in name.chars() {
                    if chance.one_in(2) {
                        write!(escaped, "\\{:04x}", u32::from(letter)).unwrap();
                    } else {
                        escaped.push(letter);
                    }
                }
                escaped + "\""
            }
            (Kind::Postgresql, 1) => {
                format!("U&\"!{:04x}{}\" UESCAPE '!' ", name.as_bytes()[0], &name[1..])
            }
            (Kind::Sqlite, 0) => format!("[{name}]"),
            (Kind::Sqlite, 1) => format!("`{name}`"),
            _ => format!("\"{name}\""),
        };
    }
    if part == Part::Called && is_name && chance.one_in(2) {
        return format!("{text} ");
    }
    let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    let is_string = inner.is_some_and(|it| !it.is_empty() && !it.contains(['\'', '{', '\\']));
    if kind == Kind::Mysql && part == Part::Closed && is_string && chance.one_in(2) {
        let bytes = &text.as_bytes()[1..text.len() - 1];
        return bytes.iter().fold(String::from("0x"), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
    }
    text.to_owned()
}
