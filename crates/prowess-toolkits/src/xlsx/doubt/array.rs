//! Functions for one value that are given several: the engine takes the first, or gives an error.

use super::super::formula::{Kind, Token};
use super::super::functions::{argument, plain_function, spilling};

/// Functions that the engine calculates for one value, and the arguments that this is said of; all,
/// if none is listed. In order.
const SCALAR: [(&str, &[usize]); 156] = [
    ("ABS", &[]),
    ("ACOS", &[]),
    ("ACOSH", &[]),
    ("ACOT", &[]),
    ("ACOTH", &[]),
    ("ADDRESS", &[]),
    ("ARABIC", &[]),
    ("ASC", &[]),
    ("ASIN", &[]),
    ("ASINH", &[]),
    ("ATAN", &[]),
    ("ATAN2", &[]),
    ("ATANH", &[]),
    ("AVERAGEIF", &[1]),
    ("AVERAGEIFS", &[2, 4, 6, 8]),
    ("BASE", &[]),
    ("BIN2DEC", &[]),
    ("BIN2HEX", &[]),
    ("BIN2OCT", &[]),
    ("BITAND", &[]),
    ("BITLSHIFT", &[]),
    ("BITOR", &[]),
    ("BITRSHIFT", &[]),
    ("BITXOR", &[]),
    ("CEILING", &[]),
    ("CEILING.MATH", &[]),
    ("CEILING.PRECISE", &[]),
    ("CHAR", &[]),
    ("CHOOSE", &[0]),
    ("CLEAN", &[]),
    ("CODE", &[]),
    ("COLUMN", &[0]),
    ("COMBIN", &[]),
    ("COMBINA", &[]),
    ("CONCATENATE", &[]),
    ("CONVERT", &[]),
    ("COUNTIF", &[1]),
    ("COUNTIFS", &[1, 3, 5, 7]),
    ("DATE", &[]),
    ("DATEDIF", &[]),
    ("DATEVALUE", &[]),
    ("DAY", &[]),
    ("DAYS", &[]),
    ("DAYS360", &[]),
    ("DEC2BIN", &[]),
    ("DEC2HEX", &[]),
    ("DEC2OCT", &[]),
    ("DECIMAL", &[]),
    ("DEGREES", &[]),
    ("DOLLAR", &[]),
    ("EDATE", &[]),
    ("EOMONTH", &[]),
    ("ERROR.TYPE", &[]),
    ("EVEN", &[]),
    ("EXACT", &[]),
    ("EXP", &[]),
    ("FACT", &[]),
    ("FACTDOUBLE", &[]),
    ("FIND", &[]),
    ("FINDB", &[]),
    ("FIXED", &[]),
    ("FLOOR", &[]),
    ("FLOOR.MATH", &[]),
    ("FLOOR.PRECISE", &[]),
    ("FORMULATEXT", &[]),
    ("HEX2BIN", &[]),
    ("HEX2DEC", &[]),
    ("HEX2OCT", &[]),
    ("HLOOKUP", &[0, 2]),
    ("HOUR", &[]),
    ("INDEX", &[1, 2]),
    ("INT", &[]),
    ("ISBLANK", &[]),
    ("ISERR", &[]),
    ("ISERROR", &[]),
    ("ISEVEN", &[]),
    ("ISFORMULA", &[]),
    ("ISLOGICAL", &[]),
    ("ISNA", &[]),
    ("ISNONTEXT", &[]),
    ("ISNUMBER", &[]),
    ("ISODD", &[]),
    ("ISOWEEKNUM", &[]),
    ("ISTEXT", &[]),
    ("LARGE", &[1]),
    ("LEFT", &[]),
    ("LEFTB", &[]),
    ("LEN", &[]),
    ("LENB", &[]),
    ("LN", &[]),
    ("LOG", &[]),
    ("LOG10", &[]),
    ("LOOKUP", &[0]),
    ("LOWER", &[]),
    ("MATCH", &[0]),
    ("MID", &[]),
    ("MIDB", &[]),
    ("MINUTE", &[]),
    ("MOD", &[]),
    ("MONTH", &[]),
    ("MROUND", &[]),
    ("N", &[]),
    ("NORM.DIST", &[]),
    ("NORM.INV", &[]),
    ("NORM.S.DIST", &[]),
    ("NORM.S.INV", &[]),
    ("NOT", &[]),
    ("NUMBERVALUE", &[]),
    ("OCT2BIN", &[]),
    ("OCT2DEC", &[]),
    ("OCT2HEX", &[]),
    ("ODD", &[]),
    ("OFFSET", &[1, 2]),
    ("PERMUT", &[]),
    ("POWER", &[]),
    ("PROPER", &[]),
    ("QUOTIENT", &[]),
    ("RADIANS", &[]),
    ("REPLACE", &[]),
    ("REPT", &[]),
    ("RIGHT", &[]),
    ("RIGHTB", &[]),
    ("ROMAN", &[]),
    ("ROUND", &[]),
    ("ROUNDDOWN", &[]),
    ("ROUNDUP", &[]),
    ("ROW", &[0]),
    ("SEARCH", &[]),
    ("SEARCHB", &[]),
    ("SECOND", &[]),
    ("SIGN", &[]),
    ("SMALL", &[1]),
    ("SQRT", &[]),
    ("SUBSTITUTE", &[]),
    ("SUMIF", &[1]),
    ("SUMIFS", &[2, 4, 6, 8]),
    ("T", &[]),
    ("TEXT", &[]),
    ("TEXTAFTER", &[]),
    ("TEXTBEFORE", &[]),
    ("TIME", &[]),
    ("TIMEVALUE", &[]),
    ("TRIM", &[]),
    ("TRUNC", &[]),
    ("TYPE", &[]),
    ("UNICHAR", &[]),
    ("UNICODE", &[]),
    ("UPPER", &[]),
    ("VALUE", &[]),
    ("VLOOKUP", &[0, 2]),
    ("WEEKDAY", &[]),
    ("WEEKNUM", &[]),
    ("XLOOKUP", &[0]),
    ("XMATCH", &[0]),
    ("YEAR", &[]),
    ("YEARFRAC", &[]),
];

/// Functions that are calculated for each of several values.
const LIFTED: [&str; 3] = ["IF", "IFERROR", "IFNA"];
/// Functions that give several values, beside those whose results spill.
const GIVING: [&str; 8] =
    ["FREQUENCY", "GROWTH", "LINEST", "LOGEST", "MMULT", "MODE.MULT", "TRANSPOSE", "TREND"];

/// Whether a function is one for one value.
pub(super) fn is_scalar(name: &str) -> bool {
    scalar(name).is_some()
}

fn scalar(name: &str) -> Option<&'static (&'static str, &'static [usize])> {
    let at = SCALAR.binary_search_by(|(it, _)| (*it).cmp(name)).ok()?;
    SCALAR.get(at)
}

/// The name of a function for one value that is given several; the pieces begin with its bracket.
pub(super) fn scalar_with_array(name: &str, pieces: &[Token<'_>]) -> Option<&'static str> {
    let (name, only) = scalar(name)?;
    let count = arguments(pieces);
    let mut judged = (0..count).filter(|it| only.is_empty() || only.contains(it));
    judged.any(|it| is_array(&argument(pieces, it))).then_some(*name)
}

/// How many arguments a call has.
fn arguments(pieces: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    let mut count = 1;
    for token in pieces {
        match token.text {
            "(" | "{" => depth += 1,
            ")" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            "," if depth == 1 => count += 1,
            _ => {}
        }
    }
    count
}

/// Whether what is written there has several values: an area, a list in braces, or something that
/// is calculated with one. What a function makes of one is something else.
fn is_array(pieces: &[&Token<'_>]) -> bool {
    let mut at = 0;
    while let Some(token) = pieces.get(at) {
        at += 1;
        match token.kind {
            Kind::Lines => return true,
            Kind::Other if token.text == ":" || token.text == "{" => return true,
            Kind::Name if is_column(token.text) => return true,
            Kind::Function => {
                let inside = at + 1..call_end(pieces, at);
                let name = plain_function(token.text);
                let inner = pieces.get(inside.clone()).unwrap_or_default();
                if is_given(&name, inner) {
                    return true;
                }
                at = inside.end;
            }
            _ => {}
        }
    }
    false
}

/// Where the call ends whose bracket stands there.
fn call_end(pieces: &[&Token<'_>], bracket: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in pieces.iter().enumerate().skip(bracket) {
        match token.text {
            "(" | "{" => depth += 1,
            ")" | "}" if depth <= 1 => return at,
            ")" | "}" => depth -= 1,
            _ => {}
        }
    }
    pieces.len()
}

/// Whether a function gives several values.
fn is_given(name: &str, inside: &[&Token<'_>]) -> bool {
    let is_line = name == "ROW" || name == "COLUMN";
    let points = || {
        inside.iter().any(|it| matches!(plain_function(it.text).as_str(), "INDIRECT" | "OFFSET"))
    };
    (LIFTED.contains(&name) && is_array(inside))
        || (is_line && (is_array(inside) || points()))
        || GIVING.contains(&name)
        || spilling(&format!("{name}()")).is_some()
}

/// Whether a structured reference is a column of a table, and not one cell of it.
fn is_column(name: &str) -> bool {
    name.contains('[') && !name.contains('@') && !name.to_lowercase().contains("#this row")
}

#[cfg(test)]
mod tests {
    use super::super::{Doubt, doubts, may_doubt};
    use super::*;

    #[test]
    fn the_functions_are_in_order() {
        assert!(SCALAR.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_function_for_one_value_that_is_given_several_is_doubtful() {
        let table = [
            ("SUMPRODUCT(LEN(A1:A3))", "LEN"),
            ("SUMPRODUCT(--ISNUMBER(A:A))", "ISNUMBER"),
            ("SUM(ROUND(A1:A3*2,1))", "ROUND"),
            ("SUMPRODUCT(INT({1.5,2.5}))", "INT"),
            ("SUMPRODUCT(--(LEFT(Data!A1:A3,1)=\"x\"))", "LEFT"),
            ("SUMPRODUCT(ABS(IF(A1:A3>1,1,2)))", "ABS"),
            ("SUMPRODUCT(LEN(Orders[Name]))", "LEN"),
            ("SUMPRODUCT(COUNTIF(A1:A9,B1:B3))", "COUNTIF"),
            ("SUMPRODUCT(1*MID(A1,ROW(INDIRECT(\"1:9\")),1))", "MID"),
            ("SUMPRODUCT(ROW(A1:A4))", "ROW"),
            ("SUM(YEAR (A1:A3))", "YEAR"),
            ("SUM(LEN(UNIQUE(A1:A3)))", "LEN"),
            ("MATCH(1,LEN(A1:A3),0)", "LEN"),
        ];
        for (formula, name) in table {
            assert_eq!(doubts(formula), [Doubt::Array(name)], "{formula}");
            assert!(may_doubt(&formula.to_uppercase()), "{formula}");
        }
        for formula in [
            "SUM(A1:A3)",
            "ROUND(SUM(A1:A3),2)",
            "LEN(A1)&LEN(B1)",
            "INT(VLOOKUP(A1,B1:C9,2,FALSE))",
            "INDEX(A1:A9,MATCH(B1,C1:C9,0))",
            "COUNTIF(A1:A9,\">\"&B1)",
            "IF(A1>1,SUM(A1:A3),LEN(B1))",
            "SUMPRODUCT((A1:A3>1)*(B1:B3=2))",
            "LEN(Orders[@Name])",
            "LEN(Orders[[#This Row],[Name]])",
            "ROW()",
            "ROW(A1)",
            "ISERROR(MATCH(A1,B1:B9,0))",
            "YEAR(MAX(A1:A3))",
        ] {
            assert_eq!(doubts(formula), [], "{formula}");
        }
    }
}
