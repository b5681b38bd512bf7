//! Cells and areas as people write them: `B2`, `A1:C9`, `A:C`, `2:5`, `'My sheet'!B2`.

use std::fmt;

/// The last row of a sheet.
pub(super) const LAST_ROW: u32 = 1_048_576;
/// The last column of a sheet: `XFD`.
pub(super) const LAST_COLUMN: u32 = 16_384;

/// A cell; rows and columns count from 1. In the order in which a sheet is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell {
    pub(super) row: u32,
    pub(super) column: u32,
}

impl Cell {
    /// A cell that is on the sheet.
    pub(super) fn new(row: u32, column: u32) -> Option<Self> {
        let is_there = (1..=LAST_ROW).contains(&row) && (1..=LAST_COLUMN).contains(&column);
        is_there.then_some(Self { row, column })
    }

    /// Reads `B2`, `$B$2`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('$').unwrap_or(text);
        let letters = text.find(|c: char| !c.is_ascii_alphabetic())?;
        let (letters, digits) = text.split_at(letters);
        let digits = digits.strip_prefix('$').unwrap_or(digits);
        Self::new(row_of(digits)?, column_of(letters)?)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", letters_of(self.column), self.row)
    }
}

/// A rectangle of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Area {
    pub(super) first: Cell,
    pub(super) last: Cell,
}

impl Area {
    /// The smallest area that holds both.
    pub(super) fn between(a: Cell, b: Cell) -> Self {
        Self {
            first: Cell { row: a.row.min(b.row), column: a.column.min(b.column) },
            last: Cell { row: a.row.max(b.row), column: a.column.max(b.column) },
        }
    }

    /// Reads `B2`, `A1:C9`, `A:C`, `2:5`, with or without `$`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let Some((from, to)) = text.split_once(':') else {
            let cell = Cell::parse(text)?;
            return Some(Self::between(cell, cell));
        };
        if let (Some(from), Some(to)) = (Cell::parse(from), Cell::parse(to)) {
            return Some(Self::between(from, to));
        }
        let bare = |text: &'_ str| text.strip_prefix('$').unwrap_or(text).to_owned();
        let (from, to) = (bare(from), bare(to));
        if let (Some(from), Some(to)) = (column_of(&from), column_of(&to)) {
            let (top, bottom) = (Cell::new(1, from)?, Cell::new(LAST_ROW, to)?);
            return Some(Self::between(top, bottom));
        }
        let (from, to) = (row_of(&from)?, row_of(&to)?);
        Some(Self::between(Cell::new(from, 1)?, Cell::new(to, LAST_COLUMN)?))
    }

    pub(super) fn holds(&self, cell: Cell) -> bool {
        (self.first.row..=self.last.row).contains(&cell.row)
            && (self.first.column..=self.last.column).contains(&cell.column)
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.first.row <= other.last.row
            && other.first.row <= self.last.row
            && self.first.column <= other.last.column
            && other.first.column <= self.last.column
    }

    pub(super) fn rows(&self) -> u64 {
        u64::from(self.last.row - self.first.row) + 1
    }

    pub(super) fn columns(&self) -> u64 {
        u64::from(self.last.column - self.first.column) + 1
    }

    pub(super) fn cells(&self) -> u64 {
        self.rows() * self.columns()
    }

    /// The smallest area that holds both.
    pub(super) fn around(&self, other: &Self) -> Self {
        Self {
            first: Self::between(self.first, other.first).first,
            last: Self::between(self.last, other.last).last,
        }
    }

    /// The part that both have.
    pub(super) fn within(&self, other: &Self) -> Option<Self> {
        self.meets(other).then(|| Self {
            first: Cell {
                row: self.first.row.max(other.first.row),
                column: self.first.column.max(other.first.column),
            },
            last: Cell {
                row: self.last.row.min(other.last.row),
                column: self.last.column.min(other.last.column),
            },
        })
    }
}

impl fmt::Display for Area {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(formatter),
            false => write!(formatter, "{}:{}", self.first, self.last),
        }
    }
}

/// The number of a column: `A` is 1.
pub(super) fn column_of(letters: &str) -> Option<u32> {
    if letters.is_empty() || letters.len() > 3 {
        return None;
    }
    let mut column = 0;
    for letter in letters.bytes() {
        let letter = letter.to_ascii_uppercase();
        if !letter.is_ascii_uppercase() {
            return None;
        }
        column = column * 26 + u32::from(letter - b'A') + 1;
    }
    (column <= LAST_COLUMN).then_some(column)
}

/// The letters of a column.
pub(super) fn letters_of(mut column: u32) -> String {
    let mut letters = Vec::new();
    while column > 0 {
        let digit = u8::try_from((column - 1) % 26).unwrap_or(0);
        letters.push(char::from(b'A' + digit));
        column = (column - 1) / 26;
    }
    letters.iter().rev().collect()
}

pub(super) fn row_of(digits: &str) -> Option<u32> {
    if digits.is_empty() || digits.len() > 7 || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|row| (1..=LAST_ROW).contains(row))
}

/// A sheet, if one is named, and the rest: `'My sheet'!B2` is `My sheet` and `B2`.
pub(super) fn split_sheet(text: &str) -> Option<(Option<String>, &str)> {
    if let Some(quoted) = text.strip_prefix('\'') {
        let mut at = 0;
        loop {
            at += quoted[at..].find('\'')?;
            match quoted[at + 1..].strip_prefix('\'') {
                Some(_) => at += 2,
                None => break,
            }
        }
        let rest = quoted[at + 1..].strip_prefix('!')?;
        return Some((Some(quoted[..at].replace("''", "'")), rest));
    }
    match text.rsplit_once('!') {
        Some(("", _)) => None,
        Some((sheet, rest)) => Some((Some(sheet.to_owned()), rest)),
        None => Some((None, text)),
    }
}

/// The name of a sheet as formulas write it.
pub(super) fn quoted_sheet(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
        && !name.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && Cell::parse(name).is_none()
        && !matches!(name.to_ascii_uppercase().as_str(), "R" | "C" | "RC" | "TRUE" | "FALSE");
    match is_plain {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_and_written() {
        let table = [
            ("A1", Some((1, 1))),
            ("$B$2", Some((2, 2))),
            ("xfd1048576", Some((LAST_ROW, LAST_COLUMN))),
            ("XFE1", None),
            ("A1048577", None),
            ("A0", None),
            ("A", None),
            ("1", None),
            ("", None),
            ("A1B", None),
            ("Ä1", None),
        ];
        for (text, expected) in table {
            let cell = Cell::parse(text);
            assert_eq!(cell.map(|it| (it.row, it.column)), expected, "{text}");
        }
        for column in 1..=LAST_COLUMN {
            assert_eq!(column_of(&letters_of(column)), Some(column));
        }
    }

    #[test]
    fn areas_are_read_and_written() {
        let table = [
            ("B2", Some("B2")),
            ("C9:A1", Some("A1:C9")),
            ("$A:$C", Some("A1:C1048576")),
            ("2:5", Some("A2:XFD5")),
            ("A1:", None),
            ("A1:B", None),
            ("A1:B2:C3", None),
        ];
        for (text, expected) in table {
            let area = Area::parse(text).map(|it| it.to_string());
            assert_eq!(area.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn sheets_are_split_off_and_quoted() {
        let table = [
            ("A1", Some((None, "A1"))),
            ("Data!A1", Some((Some("Data"), "A1"))),
            ("'My sheet'!A1", Some((Some("My sheet"), "A1"))),
            ("'It''s'!A1:B2", Some((Some("It's"), "A1:B2"))),
            ("'open!A1", None),
            ("!A1", None),
        ];
        for (text, expected) in table {
            let split = split_sheet(text);
            let split = split.as_ref().map(|(sheet, rest)| (sheet.as_deref(), *rest));
            assert_eq!(split, expected, "{text}");
        }
        for (name, expected) in
            [("Data", "Data"), ("My sheet", "'My sheet'"), ("It's", "'It''s'"), ("A1", "'A1'")]
        {
            assert_eq!(quoted_sheet(name), expected);
        }
    }
}
