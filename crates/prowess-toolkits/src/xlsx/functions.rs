//! The functions of formulas: which are called, and what files call them.

use super::formula::{Kind, Token, tokens};

/// The functions that a formula calls, in capitals and without the prefixes that files put there.
pub(super) fn functions(formula: &str) -> Vec<String> {
    calls(&tokens(formula)).into_iter().map(|(_, name)| name).collect()
}

/// Where functions are called, and which. Blanks may stand before the bracket.
pub(super) fn calls(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let is_called = |at: usize| {
        let after = tokens.iter().skip(at + 1).find(|it| !it.text.trim().is_empty());
        after.is_some_and(|it| it.text == "(")
    };
    let called = tokens.iter().enumerate().filter(|(at, it)| match it.kind {
        Kind::Function => true,
        Kind::Name => is_called(*at),
        _ => false,
    });
    called.map(|(at, it)| (at, plain_function(it.text))).collect()
}

/// The names that stand before brackets in a formula in capitals, without the prefixes that files put
/// there. Those in texts too: it is fast, and says too much rather than too little.
pub(super) fn names_before_brackets(upper: &str) -> impl Iterator<Item = &str> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '.' || it == '_';
    upper.match_indices('(').map(move |(at, _)| {
        let before = upper[..at].trim_end();
        let name = before.rsplit(|it: char| !is_name(it)).next().unwrap_or_default();
        match name.starts_with('_') {
            true => name
                .rsplit_once("_XL")
                .and_then(|(_, it)| it.split_once('.'))
                .map_or(name, |it| it.1),
            false => name,
        }
    })
}

/// A function in capitals, without the prefixes that files put there.
pub(super) fn plain_function(name: &str) -> String {
    let mut name = name.to_uppercase();
    let strip = |name: &str| {
        let prefixes = ["_XLFN.", "_XLWS.", "_XLUDF.", "_XLL."];
        prefixes.iter().find_map(|it| name.strip_prefix(it)).map(str::to_owned)
    };
    while let Some(rest) = strip(&name) {
        name = rest;
    }
    name
}

/// Functions that give something else each time.
pub(super) const VOLATILE: [&str; 9] =
    ["NOW", "TODAY", "RAND", "RANDBETWEEN", "RANDARRAY", "OFFSET", "INDIRECT", "CELL", "INFO"];

/// The pieces of an argument of a call, from its bracket on; without blanks.
pub(super) fn argument<'t, 'f>(tokens: &'t [Token<'f>], wanted: usize) -> Vec<&'t Token<'f>> {
    let (mut depth, mut number) = (0_usize, 0);
    let mut pieces = Vec::new();
    for token in tokens.iter().filter(|it| !it.text.trim().is_empty()) {
        match token.text {
            "(" | "{" => depth += 1,
            ")" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 1 => {
                number += 1;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        let is_first_bracket = depth == 1 && token.text == "(";
        if number == wanted && !is_first_bracket {
            pieces.push(token);
        }
    }
    pieces
}

/// The functions that files write with a prefix, because Excel 2007 did not know them.
const LATER: &[&str] = &[
    "ACOT",
    "ACOTH",
    "AGGREGATE",
    "ARABIC",
    "ARRAYTOTEXT",
    "BASE",
    "BETA.DIST",
    "BETA.INV",
    "BINOM.DIST",
    "BINOM.DIST.RANGE",
    "BINOM.INV",
    "BITAND",
    "BITLSHIFT",
    "BITOR",
    "BITRSHIFT",
    "BITXOR",
    "CEILING.MATH",
    "CEILING.PRECISE",
    "CHISQ.DIST",
    "CHISQ.DIST.RT",
    "CHISQ.INV",
    "CHISQ.INV.RT",
    "CHISQ.TEST",
    "COMBINA",
    "CONCAT",
    "CONFIDENCE.NORM",
    "CONFIDENCE.T",
    "COT",
    "COTH",
    "COVARIANCE.P",
    "COVARIANCE.S",
    "CSC",
    "CSCH",
    "DAYS",
    "DECIMAL",
    "ERF.PRECISE",
    "ERFC.PRECISE",
    "EXPON.DIST",
    "F.DIST",
    "F.DIST.RT",
    "F.INV",
    "F.INV.RT",
    "F.TEST",
    "FLOOR.MATH",
    "FLOOR.PRECISE",
    "FORMULATEXT",
    "GAMMA",
    "GAMMA.DIST",
    "GAMMA.INV",
    "GAMMALN.PRECISE",
    "GAUSS",
    "HYPGEOM.DIST",
    "IFNA",
    "IFS",
    "IMCOSH",
    "IMCOT",
    "IMCSC",
    "IMCSCH",
    "IMSEC",
    "IMSECH",
    "IMSINH",
    "IMTAN",
    "ISFORMULA",
    "ISOWEEKNUM",
    "LET",
    "LOGNORM.DIST",
    "LOGNORM.INV",
    "MAXIFS",
    "MINIFS",
    "MODE.MULT",
    "MODE.SNGL",
    "MUNIT",
    "NEGBINOM.DIST",
    "NORM.DIST",
    "NORM.INV",
    "NORM.S.DIST",
    "NORM.S.INV",
    "NUMBERVALUE",
    "PDURATION",
    "PERCENTILE.EXC",
    "PERCENTILE.INC",
    "PERCENTRANK.EXC",
    "PERCENTRANK.INC",
    "PERMUTATIONA",
    "PHI",
    "POISSON.DIST",
    "QUARTILE.EXC",
    "QUARTILE.INC",
    "RANK.AVG",
    "RANK.EQ",
    "RRI",
    "SEC",
    "SECH",
    "SHEET",
    "SHEETS",
    "SKEW.P",
    "STDEV.P",
    "STDEV.S",
    "SWITCH",
    "T.DIST",
    "T.DIST.2T",
    "T.DIST.RT",
    "T.INV",
    "T.INV.2T",
    "T.TEST",
    "TEXTAFTER",
    "TEXTBEFORE",
    "TEXTJOIN",
    "UNICHAR",
    "UNICODE",
    "VALUETOTEXT",
    "VAR.P",
    "VAR.S",
    "WEIBULL.DIST",
    "XLOOKUP",
    "XMATCH",
    "XOR",
    "Z.TEST",
];

/// The functions whose results may fill more cells than their own.
const SPILLING: &[&str] = &[
    "BYCOL",
    "BYROW",
    "CHOOSECOLS",
    "CHOOSEROWS",
    "DROP",
    "EXPAND",
    "FILTER",
    "HSTACK",
    "MAKEARRAY",
    "MAP",
    "RANDARRAY",
    "SCAN",
    "SEQUENCE",
    "SORT",
    "SORTBY",
    "TAKE",
    "TEXTSPLIT",
    "TOCOL",
    "TOROW",
    "UNIQUE",
    "VSTACK",
    "WRAPCOLS",
    "WRAPROWS",
];

/// The first function whose result may fill more than one cell.
pub(super) fn spilling(formula: &str) -> Option<String> {
    functions(formula).into_iter().find(|it| SPILLING.contains(&it.as_str()))
}

/// A formula as files hold it: without `=`, and later functions with their prefix.
pub(super) fn stored(formula: &str) -> String {
    let formula = formula.strip_prefix('=').unwrap_or(formula);
    let mut out = String::with_capacity(formula.len());
    for token in tokens(formula) {
        let is_later = token.kind == Kind::Function
            && LATER.contains(&token.text.to_ascii_uppercase().as_str());
        if is_later {
            out.push_str("_xlfn.");
        }
        out.push_str(token.text);
    }
    out
}

/// A formula as people write it: with `=` and without prefixes.
pub(super) fn written(formula: &str) -> String {
    let mut out = String::from("=");
    for token in tokens(formula) {
        match token.kind {
            Kind::Function => {
                let bare = token.text.strip_prefix("_xlfn.").unwrap_or(token.text);
                out.push_str(bare.strip_prefix("_xlws.").unwrap_or(bare));
            }
            _ => out.push_str(token.text),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_functions_have_their_prefix_in_files_only() {
        assert_eq!(stored("=XLOOKUP(1,A:A,B:B)+sum(1)"), "_xlfn.XLOOKUP(1,A:A,B:B)+sum(1)");
        assert_eq!(written("_xlfn._xlws.SORT(A1:A3)"), "=SORT(A1:A3)");
        assert_eq!(functions("_xlfn.XLOOKUP(1,Now(),\"SUM(1)\")"), ["XLOOKUP", "NOW"]);
        assert_eq!(spilling("SUM(UNIQUE(A1:A3))").as_deref(), Some("UNIQUE"));
    }
}
