//! What the engine calculates otherwise than Excel: a workbook with such a formula is not written.

mod array;
mod format;

use super::formula::{Kind, Token, tokens};
use super::functions::{argument, calls, names_before_brackets};
use array::scalar_with_array;
use format::is_known_format;

/// Something that the engine calculates otherwise than Excel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    /// `CEILING` and `FLOOR` with a step that is not written as a positive number.
    Step(&'static str),
    /// `CELL` of something else than a cell's place and value.
    Cell,
    /// `TEXT` with a format of a kind that the engine simplifies.
    Format,
    /// A text such as "1,234" or "$5" that is calculated with.
    Number,
    /// A function for one value that is given several.
    Array(&'static str),
    /// A text that shows how a value is written.
    Written(&'static str),
    /// Brackets within brackets, more than any program takes.
    Depth,
    /// A name that the copy for the engine needs for itself.
    Taken,
}

impl Doubt {
    /// What `unsupported` lists.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Step(name) | Self::Array(name) | Self::Written(name) => name,
            Self::Cell => "CELL",
            Self::Format => "TEXT",
            Self::Number => "number in a text",
            Self::Depth => "nested brackets",
            Self::Taken => super::spell::SPELLED,
        }
    }

    /// Why the engine's value would not be Excel's.
    pub(super) fn why(self) -> String {
        match self {
            Self::Step(name) => format!(
                "the engine calculates {name} right only with a step that is written as a \
                 positive number"
            ),
            Self::Cell => {
                let known = INFORMATION.join(", ");
                format!("the engine knows of CELL only {known}, written as a text")
            }
            Self::Format => "the engine knows of the formats of TEXT only those with 0, #, \
                             thousands, percent, texts, colours, dates and times, written as a \
                             text"
                .to_owned(),
            Self::Number => "the engine takes a text with thousands, a currency, brackets or a \
                             fraction for no number; NUMBERVALUE does"
                .to_owned(),
            Self::Array(name) => {
                format!("the engine calculates {name} for one value, and here it has several")
            }
            Self::Written(name) => {
                format!("the engine does not write numbers as Excel does in {name}")
            }
            Self::Depth => format!("more than {DEEPEST} brackets are open at once"),
            Self::Taken => format!("{} is no function", super::spell::SPELLED),
        }
    }
}

/// How many brackets may be open at once. Excel takes 64 functions one in the other.
const DEEPEST: usize = 256;
/// Functions that the engine calculates right only with a step above zero.
const STEPPING: [&str; 2] = ["CEILING", "FLOOR"];
/// Functions whose texts show how values are written.
const WRITTEN: [&str; 2] = ["ARRAYTOTEXT", "VALUETOTEXT"];
/// What `CELL` can be asked for.
const INFORMATION: [&str; 5] = ["address", "col", "contents", "row", "type"];

/// Whether there may be a doubt about a formula. Says yes too often, but is fast.
pub(super) fn may_doubt(upper: &str) -> bool {
    let is_doubtful = |name: &str| {
        name == "CELL"
            || name == super::spell::SPELLED
            || STEPPING.contains(&name)
            || WRITTEN.contains(&name)
            || array::is_scalar(name)
    };
    upper.contains('"') || names_before_brackets(upper).any(is_doubtful)
}

/// What the engine calculates otherwise in a formula.
pub(super) fn doubts(formula: &str) -> Vec<Doubt> {
    let tokens = tokens(formula);
    if depth(&tokens) > DEEPEST {
        return vec![Doubt::Depth];
    }
    let mut found = Vec::new();
    for (at, name) in calls(&tokens) {
        let pieces = &tokens[at + 1..];
        found.extend(doubt(&name, pieces));
        found.extend(scalar_with_array(&name, pieces).map(Doubt::Array));
    }
    if has_number_text(&tokens) {
        found.push(Doubt::Number);
    }
    found
}

/// How many brackets are open at once.
fn depth(tokens: &[Token<'_>]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for token in tokens.iter().filter(|it| it.kind == Kind::Other) {
        match token.text {
            "(" => open += 1,
            ")" => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// What the engine calculates otherwise in a call; the pieces begin with its bracket.
fn doubt(name: &str, pieces: &[Token<'_>]) -> Option<Doubt> {
    if let Some(name) = STEPPING.into_iter().find(|it| *it == name) {
        return (!is_positive(&argument(pieces, 1))).then_some(Doubt::Step(name));
    }
    if let Some(name) = WRITTEN.into_iter().find(|it| *it == name) {
        return Some(Doubt::Written(name));
    }
    match name {
        "CELL" => {
            let asked = text_of(&argument(pieces, 0)).map(|it| it.to_ascii_lowercase());
            let is_known = asked.is_some_and(|it| INFORMATION.contains(&it.as_str()));
            (!is_known).then_some(Doubt::Cell)
        }
        "TEXT" => {
            let format = text_of(&argument(pieces, 1));
            (!format.is_some_and(|it| is_known_format(&it))).then_some(Doubt::Format)
        }
        "VALUE" => {
            let text = text_of(&argument(pieces, 0))?;
            is_number_to_excel_only(&text).then_some(Doubt::Number)
        }
        name if name == super::spell::SPELLED => Some(Doubt::Taken),
        _ => None,
    }
}

fn is_positive(pieces: &[&Token<'_>]) -> bool {
    match pieces {
        [one] => one.kind == Kind::Number && one.text.parse::<f64>().is_ok_and(|it| it > 0.0),
        _ => false,
    }
}

/// The text that an argument is written as.
fn text_of(pieces: &[&Token<'_>]) -> Option<String> {
    match pieces {
        [one] if one.kind == Kind::Text => Some(unquoted(one.text)),
        _ => None,
    }
}

fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').unwrap_or(text);
    inner.strip_suffix('"').unwrap_or(inner).replace("\"\"", "\"")
}

/// Whether a text that is a number only to Excel stands beside an operator that calculates.
fn has_number_text(tokens: &[Token<'_>]) -> bool {
    let solid: Vec<&Token<'_>> = tokens.iter().filter(|it| !it.text.trim().is_empty()).collect();
    let is_operator = |at: Option<usize>| {
        let token = at.and_then(|it| solid.get(it));
        token.is_some_and(|it| it.kind == Kind::Other && "+-*/^%".contains(it.text))
    };
    solid.iter().enumerate().any(|(at, it)| {
        it.kind == Kind::Text
            && (is_operator(at.checked_sub(1)) || is_operator(Some(at + 1)))
            && is_number_to_excel_only(&unquoted(it.text))
    })
}

/// Whether Excel takes a text for a number and the engine does not: "1,234", "$5", "(5)", "1 1/2".
fn is_number_to_excel_only(text: &str) -> bool {
    let text = text.trim();
    let has_mark = text.contains([',', '$', '€', '£', '¥', '(']) || is_fraction(text);
    let bare: String = text.chars().filter(|it| !" ,$€£¥()+-%./eE".contains(*it)).collect();
    has_mark && !bare.is_empty() && bare.bytes().all(|it| it.is_ascii_digit())
}

/// `1 1/2`
fn is_fraction(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(_, part)| part.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_may_be_negative_is_doubtful() {
        let table: [(&str, &[&str]); 10] = [
            ("CEILING(A1,2)", &[]),
            ("floor( SUM(A1,B1) , 0.5 )", &[]),
            ("CEILING.MATH(A1,-2)", &[]),
            ("\"CEILING(1,-1)\"", &[]),
            ("CEILING(-2.5,-2)", &["CEILING"]),
            ("CEILING(A1,0)", &["CEILING"]),
            ("FLOOR(A1,B1)", &["FLOOR"]),
            ("FLOOR(A1,(2))", &["FLOOR"]),
            ("CEILING (A1,-1)", &["CEILING"]),
            ("CEILING(FLOOR(A1,-1),2)", &["FLOOR"]),
        ];
        for (formula, expected) in table {
            let found: Vec<&str> = doubts(formula).iter().map(|it| it.name()).collect();
            assert_eq!(found, expected, "{formula}");
        }
    }

    #[test]
    fn what_the_engine_calculates_otherwise_is_doubtful() {
        let table = [
            ("CELL(\"width\",A1)", Doubt::Cell),
            ("cell(A2,A1)", Doubt::Cell),
            ("CELL(\"filename\")", Doubt::Cell),
            ("VALUETOTEXT(A1)", Doubt::Written("VALUETOTEXT")),
            ("_xlfn.ARRAYTOTEXT(A1:A3,1)", Doubt::Written("ARRAYTOTEXT")),
            ("VALUE(\"1,234\")", Doubt::Number),
            ("\"1,234\"+0", Doubt::Number),
            ("0+\"$5\"", Doubt::Number),
            ("IFERROR(--\"(5)\",0)", Doubt::Number),
            ("VALUE(\"1 1/2\")", Doubt::Number),
            ("_PROWESS.SPELLED(1)", Doubt::Taken),
        ];
        for (formula, expected) in table {
            assert_eq!(doubts(formula), [expected], "{formula}");
            assert!(may_doubt(&formula.to_uppercase()), "{formula}");
        }
        for formula in [
            "CELL(\"address\",A1)",
            "CELL(\"Row\")",
            "VALUE(\"12.5\")",
            "VALUE(\"2024-01-15\")",
            "VALUE(A1)",
            "\"5\"+1",
            "\"Jan 5, 2024\"+0",
            "\"1,234\"&A1",
            "\"a, b\"&A1",
            "TEXTJOIN(\",\",TRUE,A1+1)",
        ] {
            assert_eq!(doubts(formula), [], "{formula}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_not_judged() {
        let nested = |depth| format!("{}A1:A3{}", "LEN(".repeat(depth), ")".repeat(depth));
        assert_eq!(doubts(&nested(DEEPEST)), [Doubt::Array("LEN")]);
        assert_eq!(doubts(&nested(DEEPEST + 1)), [Doubt::Depth]);
    }

    #[test]
    fn a_format_that_is_not_written_is_doubtful() {
        assert_eq!(doubts("TEXT(A1,B1)"), [Doubt::Format]);
        assert_eq!(doubts("TEXT(A1,\"# ?/?\")"), [Doubt::Format]);
        assert_eq!(doubts("TEXT(A1,\"0.0\")"), []);
    }
}
