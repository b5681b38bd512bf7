//! Statements that must be refused and statements that must not, for each kind of database.

#![allow(dead_code, reason = "every test file uses some of it")]

pub(crate) mod mutation;

use std::path::Path;

use super::sql_servers::Kind;

/// A statement that must be refused.
#[derive(Clone, Debug)]
pub(crate) struct Hostile {
    pub(crate) sql: String,
    /// Whether it leaves something behind that a dump tells, if nothing keeps it from that.
    pub(crate) writes: bool,
    /// Whether it looks like any other query, so that only the catalogue tells what it does.
    pub(crate) hidden: bool,
    /// Whether it changes only the account that runs it, which no lack of rights prevents.
    pub(crate) own: bool,
}

/// The statements that must be refused.
pub(crate) fn hostile(kind: Kind) -> Vec<Hostile> {
    let hostile = |line: String| {
        let (mark, sql) = match line.split_at_checked(2) {
            Some((mark @ ("~ " | "^ " | "= "), sql)) => (mark, sql),
            _ => ("", line.as_str()),
        };
        let (writes, hidden, own) = (mark != "~ ", mark == "^ ", mark == "= ");
        Hostile { sql: sql.to_owned(), writes, hidden, own }
    };
    lines(kind, "hostile.txt").map(hostile).collect()
}

/// The statements that must run.
pub(crate) fn honest(kind: Kind) -> Vec<String> {
    lines(kind, "honest.txt").collect()
}

fn lines(kind: Kind, file: &str) -> impl Iterator<Item = String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql_corpus");
    let text = std::fs::read_to_string(folder.join(kind.name()).join(file)).unwrap();
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("##") && !line.trim().is_empty())
        .map(|line| line.replace('⏎', "\n").replace('⇥', "\t"))
        .collect();
    lines.into_iter()
}
