//! The text of formulas: what it names, and the same formula in another cell.

use super::address::{Cell, LAST_COLUMN, LAST_ROW, column_of, quoted_sheet, row_of, split_sheet};
use super::book::same_name;

pub(super) use super::functions::{VOLATILE, functions, spilling, stored, written};

/// A piece of a formula. The pieces together are the formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `"text"`
    Text,
    /// `12.5`
    Number,
    /// `SUM`, before `(`
    Function,
    /// `Sheet1!`, `'My sheet'!`, `[1]Sheet!`
    Sheet,
    /// `B2`, `$B$2`
    Cell,
    /// `A:C`, `2:5`
    Lines,
    /// A name, `TRUE`, a structured reference
    Name,
    /// `#REF!`
    Error,
    /// Operators, brackets, blanks
    Other,
}

/// The pieces of a formula, without its `=`.
pub(super) fn tokens(formula: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = formula;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = next(rest, first);
        let length = length.max(first.len_utf8()).min(rest.len());
        let (text, after) = rest.split_at(length);
        tokens.push(Token { kind, text });
        rest = after;
    }
    tokens
}

fn next(rest: &str, first: char) -> (Kind, usize) {
    match first {
        '"' => (Kind::Text, quoted(rest, '"')),
        '\'' => {
            let length = quoted(rest, '\'');
            match rest[length..].starts_with('!') {
                true => (Kind::Sheet, length + 1),
                false => (Kind::Other, length),
            }
        }
        '#' => error_value(rest),
        '[' => word(rest, bracketed(rest)),
        '0'..='9' | '.' => number(rest),
        c if is_word(c) => word(rest, 0),
        c => (Kind::Other, c.len_utf8()),
    }
}

/// How long a quoted text is; a doubled quote is one in the text.
fn quoted(rest: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(found) = rest[at..].find(quote) {
        at += found + 1;
        match rest[at..].starts_with(quote) {
            true => at += 1,
            false => return at,
        }
    }
    rest.len()
}

fn error_value(rest: &str) -> (Kind, usize) {
    let known = ["#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#SPILL!"];
    match known.iter().find(|it| rest.starts_with(**it)) {
        Some(error) => (Kind::Error, error.len()),
        None => (Kind::Other, 1),
    }
}

/// How long `[…]` is, with brackets inside.
fn bracketed(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\'' => is_escaped = true,
            '[' => depth += 1,
            ']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    rest.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '\\' | '?' | '.')
}

fn word_length(rest: &str) -> usize {
    rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// Numbers, and rows such as `2:5`.
fn number(rest: &str) -> (Kind, usize) {
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    if let Some(length) = lines(rest, digits) {
        return (Kind::Lines, length);
    }
    let mut at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    if let Some(power) = rest[at..].strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let digits = power[sign..].find(|c: char| !c.is_ascii_digit());
        let digits = digits.unwrap_or(power.len() - sign);
        if digits > 0 {
            at += 1 + sign + digits;
        }
    }
    (Kind::Number, at)
}

/// How long `A:C` or `2:5` is, if that is what begins here.
fn lines(rest: &str, first: usize) -> Option<usize> {
    let bare = |text: &str| text.strip_prefix('$').unwrap_or(text).to_owned();
    let from = bare(&rest[..first]);
    let after = rest[first..].strip_prefix(':')?;
    let length = word_length(after);
    let to = bare(&after[..length]);
    let is_lines = (column_of(&from).is_some() && column_of(&to).is_some())
        || (row_of(&from).is_some() && row_of(&to).is_some());
    let is_ended = !after[length..].starts_with(['(', '!']);
    (is_lines && is_ended).then_some(first + 1 + length)
}

/// Functions, sheets, cells and names, after so many bytes that belong to them.
fn word(rest: &str, from: usize) -> (Kind, usize) {
    let mut at = from + word_length(&rest[from..]);
    if rest[at..].starts_with('!') {
        return (Kind::Sheet, at + 1);
    }
    if from == 0 {
        if rest[at..].starts_with('(') {
            return (Kind::Function, at);
        }
        if Cell::parse(&rest[..at]).is_some() {
            return (Kind::Cell, at);
        }
        if let Some(length) = lines(rest, at) {
            return (Kind::Lines, length);
        }
    }
    // `Table[Column]`
    if rest[at..].starts_with('[') {
        at += bracketed(&rest[at..]);
    }
    (Kind::Name, at)
}

/// The same formula, so many rows and columns further: what is not fixed by `$` goes along.
pub(super) fn shifted(formula: &str, rows: i64, columns: i64) -> String {
    let mut out = String::with_capacity(formula.len());
    for token in tokens(formula) {
        match token.kind {
            Kind::Cell => match moved(token.text, rows, columns) {
                Some(cell) => out.push_str(&cell),
                None => out.push_str("#REF!"),
            },
            Kind::Lines => {
                let (from, to) = token.text.split_once(':').unwrap_or((token.text, ""));
                match (moved_line(from, rows, columns), moved_line(to, rows, columns)) {
                    (Some(from), Some(to)) => {
                        out.push_str(&from);
                        out.push(':');
                        out.push_str(&to);
                    }
                    _ => out.push_str("#REF!"),
                }
            }
            _ => out.push_str(token.text),
        }
    }
    out
}

/// `$B2` in its four pieces: is the column fixed, its letters, is the row fixed, its digits.
fn pieces(text: &str) -> (bool, &str, bool, &str) {
    let column_fixed = text.starts_with('$');
    let text = text.strip_prefix('$').unwrap_or(text);
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (letters, digits) = text.split_at(letters);
    let row_fixed = digits.starts_with('$');
    (column_fixed, letters, row_fixed, digits.strip_prefix('$').unwrap_or(digits))
}

fn add(value: u32, by: i64, most: u32) -> Option<u32> {
    let moved = i64::from(value) + by;
    u32::try_from(moved).ok().filter(|it| (1..=most).contains(it))
}

fn moved(text: &str, rows: i64, columns: i64) -> Option<String> {
    let (column_fixed, letters, row_fixed, digits) = pieces(text);
    let column = column_of(letters)?;
    let column = if column_fixed { column } else { add(column, columns, LAST_COLUMN)? };
    let row = row_of(digits)?;
    let row = if row_fixed { row } else { add(row, rows, LAST_ROW)? };
    let dollar = |is_fixed: bool| if is_fixed { "$" } else { "" };
    let letters = super::address::letters_of(column);
    Some(format!("{}{letters}{}{row}", dollar(column_fixed), dollar(row_fixed)))
}

fn moved_line(text: &str, rows: i64, columns: i64) -> Option<String> {
    if text.starts_with('$') {
        return Some(text.to_owned());
    }
    match (column_of(text), row_of(text)) {
        (Some(column), _) => add(column, columns, LAST_COLUMN).map(super::address::letters_of),
        (_, Some(row)) => add(row, rows, LAST_ROW).map(|it| it.to_string()),
        _ => None,
    }
}

/// A formula as it looks from its cell: what was filled down a column is the same in all rows.
pub(super) fn relative(formula: &str, at: Cell) -> String {
    let mut out = String::with_capacity(formula.len());
    let offset = |value: u32, from: u32| i64::from(value) - i64::from(from);
    for token in tokens(formula) {
        let Some(cell) = Cell::parse(token.text).filter(|_| token.kind == Kind::Cell) else {
            out.push_str(token.text);
            continue;
        };
        let (column_fixed, _, row_fixed, _) = pieces(token.text);
        out.push_str(&match row_fixed {
            true => format!("R{}", cell.row),
            false => format!("R[{}]", offset(cell.row, at.row)),
        });
        out.push_str(&match column_fixed {
            true => format!("C{}", cell.column),
            false => format!("C[{}]", offset(cell.column, at.column)),
        });
    }
    out
}

/// Whether a formula names a sheet as the first or the last of several: `Jan:Mar!B2`.
pub(super) fn spans_from(formula: &str, sheet: &str) -> bool {
    let tokens = tokens(formula);
    tokens.iter().enumerate().filter(|(_, it)| it.kind == Kind::Sheet).any(|(at, it)| {
        let Some((Some(named), _)) = split_sheet(it.text) else { return false };
        if let Some((first, last)) = named.split_once(':') {
            return same_name(first, sheet) || same_name(last, sheet);
        }
        let first = match (at.checked_sub(2), at.checked_sub(1)) {
            (Some(first), Some(colon)) if tokens[colon].text == ":" => &tokens[first],
            _ => return false,
        };
        first.kind == Kind::Name && (same_name(first.text, sheet) || same_name(&named, sheet))
    })
}

/// The formula with a sheet called otherwise; none if it does not name the sheet.
pub(super) fn with_sheet_renamed(formula: &str, old: &str, new: &str) -> Option<String> {
    let mut out = String::with_capacity(formula.len());
    let mut is_changed = false;
    for token in tokens(formula) {
        if token.kind == Kind::Sheet
            && let Some((Some(sheet), _)) = split_sheet(token.text)
            && same_name(&sheet, old)
        {
            is_changed = true;
            out.push_str(&quoted_sheet(new));
            out.push('!');
        } else {
            out.push_str(token.text);
        }
    }
    is_changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formulas_go_along_with_their_cells() {
        let table = [
            ("A1+$A$1+A$1+$A1", 1, 1, "B2+$A$1+B$1+$A2"),
            ("SUM(A1:B2)", 2, 0, "SUM(A3:B4)"),
            ("SUM(A:B)+SUM(2:3)", 1, 1, "SUM(B:C)+SUM(3:4)"),
            ("Data!A1&\"A1\"", 1, 0, "Data!A2&\"A1\""),
            ("'A1 x'!A1", 1, 0, "'A1 x'!A2"),
            ("A1", -1, 0, "#REF!"),
            ("LOG10(A1)+LOG10", 1, 0, "LOG10(A2)+LOG11"),
            ("Table1[A1]+T[[#This Row],[B2]]", 1, 1, "Table1[A1]+T[[#This Row],[B2]]"),
            ("1E5+A1*2.5", 1, 0, "1E5+A2*2.5"),
            ("IF(A1=#N/A,1,#REF!)", 1, 0, "IF(A2=#N/A,1,#REF!)"),
            ("[1]Sheet1!A1", 1, 0, "[1]Sheet1!A2"),
            ("\"a\"\"A1\"&A1", 1, 0, "\"a\"\"A1\"&A2"),
            ("A1#", 1, 0, "A2#"),
        ];
        for (formula, rows, columns, expected) in table {
            assert_eq!(shifted(formula, rows, columns), expected, "{formula}");
        }
    }

    #[test]
    fn filled_formulas_look_the_same_from_their_cells() {
        let at = |text| Cell::parse(text).unwrap();
        assert_eq!(relative("B2*C2", at("D2")), relative("B3*C3", at("D3")));
        assert_ne!(relative("B2*C2", at("D2")), relative("B3*C2", at("D3")));
        assert_eq!(relative("B2*$C$1", at("D2")), relative("B9*$C$1", at("D9")));
    }

    #[test]
    fn sheets_are_renamed_where_they_are_meant() {
        let rename = |formula| with_sheet_renamed(formula, "Data", "New data");
        assert_eq!(rename("Data!A1+'data'!B2").unwrap(), "'New data'!A1+'New data'!B2");
        for other in ["A1", "\"Data!A1\"", "Data2!A1", "[1]Data!A1", "Data", "MyData!A1"] {
            assert_eq!(rename(other), None, "{other}");
        }
    }

    #[test]
    fn a_sheet_at_the_end_of_several_is_seen() {
        for formula in ["SUM(Jan:Mar!B2)", "SUM('Jan:Mar'!B2)", "1+'dec:JAN'!A1", "Dec:Jan!A1"] {
            assert!(spans_from(formula, "Jan"), "{formula}");
        }
        for formula in ["Jan!A1:B2", "SUM(Feb:Mar!B2)", "\"Jan:Mar!B2\"", "A1:B2", "Jan!A1"] {
            assert!(!spans_from(formula, "Jan"), "{formula}");
        }
        assert_eq!(with_sheet_renamed("ÄPFEL!A1", "Äpfel", "x").as_deref(), Some("x!A1"));
    }

    proptest! {
        #[test]
        fn the_pieces_together_are_the_formula(formula in "[A-Za-z0-9$:!'\"\\[\\]#(),.+ä_ -]{0,40}") {
            let whole: String = tokens(&formula).iter().map(|it| it.text).collect();
            prop_assert_eq!(whole, formula);
        }

        #[test]
        fn there_and_back_again(formula in "[A-M][1-9][0-9]?[-+*/][A-M]\\$[1-9]", rows in 0_i64..99) {
            prop_assert_eq!(shifted(&shifted(&formula, rows, 3), -rows, -3), formula);
        }
    }
}
