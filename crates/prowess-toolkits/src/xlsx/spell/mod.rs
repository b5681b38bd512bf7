//! Numbers that formulas make texts of, spelled as Excel spells them.
//!
//! The engine writes all digits of such a number, Excel fifteen. What a formula makes a text of is
//! therefore given to a function of ours first, in the copy that the engine calculates.

mod function;
mod general;

pub(super) use function::register;

use super::formula::{Kind, Token, tokens};
use super::functions::{names_before_brackets, plain_function};

/// What our function is called in the copy.
pub(super) const SPELLED: &str = "_PROWESS.SPELLED";

/// Functions that make texts of arguments, and of which.
const SPELLING: [(&str, Arguments); 33] = [
    ("ASC", Arguments::Only(&[0])),
    ("CLEAN", Arguments::Only(&[0])),
    ("CODE", Arguments::Only(&[0])),
    ("CONCAT", Arguments::All),
    ("CONCATENATE", Arguments::All),
    ("ENCODEURL", Arguments::Only(&[0])),
    ("EXACT", Arguments::All),
    ("FIND", Arguments::Only(&[0, 1])),
    ("FINDB", Arguments::Only(&[0, 1])),
    ("HYPERLINK", Arguments::Only(&[0])),
    ("INDIRECT", Arguments::Only(&[0])),
    ("LEFT", Arguments::Only(&[0])),
    ("LEFTB", Arguments::Only(&[0])),
    ("LEN", Arguments::Only(&[0])),
    ("LENB", Arguments::Only(&[0])),
    ("LOWER", Arguments::Only(&[0])),
    ("MID", Arguments::Only(&[0])),
    ("MIDB", Arguments::Only(&[0])),
    ("NUMBERVALUE", Arguments::Only(&[0])),
    ("PROPER", Arguments::Only(&[0])),
    ("REPLACE", Arguments::Only(&[0, 3])),
    ("REPT", Arguments::Only(&[0])),
    ("RIGHT", Arguments::Only(&[0])),
    ("RIGHTB", Arguments::Only(&[0])),
    ("SEARCH", Arguments::Only(&[0, 1])),
    ("SUBSTITUTE", Arguments::Only(&[0, 1, 2])),
    ("TEXTAFTER", Arguments::Only(&[0, 1])),
    ("TEXTBEFORE", Arguments::Only(&[0, 1])),
    ("TEXTJOIN", Arguments::All),
    ("TEXTSPLIT", Arguments::Only(&[0, 1, 2])),
    ("TRIM", Arguments::Only(&[0])),
    ("UNICODE", Arguments::Only(&[0])),
    ("UPPER", Arguments::Only(&[0])),
];

#[derive(Clone, Copy)]
enum Arguments {
    All,
    Only(&'static [usize]),
}

fn is_spelling(function: &str, argument: usize) -> bool {
    let known = SPELLING.iter().find(|(name, _)| *name == function);
    known.is_some_and(|(_, arguments)| match arguments {
        Arguments::All => true,
        Arguments::Only(numbers) => numbers.contains(&argument),
    })
}

/// Whether a formula may make a text of a number. Says yes too often, but is fast.
pub(super) fn may_spell(upper: &str) -> bool {
    let is_spelling = |name: &str| name == "TEXT" || SPELLING.iter().any(|(it, _)| *it == name);
    upper.contains('&') || names_before_brackets(upper).any(is_spelling)
}

/// The formula with everything that it makes a text of given to our function first; none if there
/// is nothing.
pub(super) fn spelled(formula: &str) -> Option<String> {
    let tokens = tokens(formula);
    let mut walk = Walk { tokens: &tokens, open: vec![Bracket::new(None, 0)], wrapped: Vec::new() };
    for (at, token) in tokens.iter().enumerate() {
        walk.step(at, token);
    }
    walk.end_of_argument(tokens.len());
    let wrapped = walk.wrapped;
    if wrapped.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(formula.len() + wrapped.len() * (SPELLED.len() + 2));
    let (mut opened, mut closed) = (vec![0; tokens.len()], vec![0; tokens.len()]);
    for (first, last) in wrapped {
        opened[first] += 1;
        closed[last] += 1;
    }
    let call = format!("{SPELLED}(");
    for (token, (opened, closed)) in tokens.iter().zip(opened.into_iter().zip(closed)) {
        out.push_str(&call.repeat(opened));
        out.push_str(token.text);
        out.push_str(&")".repeat(closed));
    }
    Some(out)
}

/// The brackets that are open, and what is in them so far.
struct Walk<'t, 'f> {
    tokens: &'t [Token<'f>],
    open: Vec<Bracket>,
    /// The first and the last piece of what is made a text of.
    wrapped: Vec<(usize, usize)>,
}

struct Bracket {
    /// The function that is called; none if the bracket is there for the order.
    function: Option<String>,
    /// Where the arguments began and ended, as far as each is one operand.
    arguments: Vec<Option<(usize, usize)>>,
    /// Where the argument began that is being read, and the operand of it.
    argument: usize,
    operand: usize,
    /// Whether `&` stands before the operand.
    is_joined: bool,
    /// Whether the argument consists of several operands: it is a text or a logical value.
    is_composed: bool,
}

impl Bracket {
    fn new(function: Option<String>, from: usize) -> Self {
        let arguments = Vec::new();
        let (is_joined, is_composed) = (false, false);
        Self { function, arguments, argument: from, operand: from, is_joined, is_composed }
    }
}

impl Walk<'_, '_> {
    fn step(&mut self, at: usize, token: &Token<'_>) {
        if token.kind != Kind::Other {
            return;
        }
        match token.text {
            "(" => self.open.push(Bracket::new(self.called(at), at + 1)),
            // What stands in braces is written there; it is not calculated.
            "{" => self.open.push(Bracket::new(None, at + 1)),
            ")" | "}" => {
                self.end_of_argument(at);
                if self.open.len() > 1
                    && let Some(done) = self.open.pop()
                {
                    self.end_of_call(&done);
                }
            }
            "," => self.end_of_argument(at),
            "&" => self.end_of_operand(at, true),
            "=" | "<" | ">" => self.end_of_operand(at, false),
            _ => {}
        }
    }

    /// The function before a bracket. Blanks may stand between them.
    fn called(&self, at: usize) -> Option<String> {
        let before = self.tokens[..at].iter().rev().find(|it| !it.text.trim().is_empty())?;
        let is_function = matches!(before.kind, Kind::Function | Kind::Name);
        is_function.then(|| plain_function(before.text))
    }

    fn end_of_operand(&mut self, at: usize, is_joined: bool) {
        let Some(open) = self.open.last_mut() else { return };
        let (from, was_joined) = (open.operand, open.is_joined);
        open.operand = at + 1;
        open.is_joined = is_joined;
        open.is_composed = true;
        if was_joined || is_joined {
            self.wrap(from, at);
        }
    }

    fn end_of_argument(&mut self, at: usize) {
        let Some(open) = self.open.last_mut() else { return };
        let (from, is_joined) = (open.operand, open.is_joined);
        let whole = (open.argument, at);
        let is_one = !std::mem::take(&mut open.is_composed);
        open.arguments.push(is_one.then_some(whole));
        (open.argument, open.operand, open.is_joined) = (at + 1, at + 1, false);
        if is_joined {
            self.wrap(from, at);
        }
    }

    fn end_of_call(&mut self, call: &Bracket) {
        let Some(function) = call.function.as_deref() else { return };
        for (number, argument) in call.arguments.iter().enumerate() {
            let Some((from, to)) = *argument else { continue };
            let is_general = || number == 0 && function == "TEXT" && self.is_general(call);
            if is_spelling(function, number) || is_general() {
                self.wrap(from, to);
            }
        }
    }

    /// Whether `TEXT` is to spell its number as a text that is joined is spelled.
    fn is_general(&self, call: &Bracket) -> bool {
        let Some(Some((from, to))) = call.arguments.get(1) else { return false };
        let format: String = self.tokens[*from..*to].iter().map(|it| it.text.trim()).collect();
        format.eq_ignore_ascii_case("\"General\"") || format == "\"@\""
    }

    /// Wraps the pieces from one up to another, without the blanks around them. A text is one
    /// already.
    fn wrap(&mut self, from: usize, to: usize) {
        let is_solid = |at: &usize| !self.tokens[*at].text.trim().is_empty();
        let (Some(first), Some(last)) = ((from..to).find(is_solid), (from..to).rfind(is_solid))
        else {
            return;
        };
        if first != last || self.tokens[first].kind != Kind::Text {
            self.wrapped.push((first, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_made_a_text_of_is_given_to_our_function() {
        let table = [
            ("A1&\"x\"", "~(A1)&\"x\""),
            ("\"x\"& 1/3 &B2", "\"x\"& ~(1/3) &~(B2)"),
            ("A1*2&-B1%", "~(A1*2)&~(-B1%)"),
            ("A1&B1=C1&D1", "~(A1)&~(B1)=~(C1)&~(D1)"),
            ("IF(A1=B1,A1&1,2)", "IF(A1=B1,~(A1)&~(1),2)"),
            ("(A1&B1)&C1", "~((~(A1)&~(B1)))&~(C1)"),
            ("LEFT(A1/3,4)", "LEFT(~(A1/3),4)"),
            ("_xlfn.TEXTJOIN(\",\",TRUE,A1:A3)", "_xlfn.TEXTJOIN(\",\",~(TRUE),~(A1:A3))"),
            ("CONCATENATE(A1,,\"x\")", "CONCATENATE(~(A1),,\"x\")"),
            ("LEN(A1&B1)", "LEN(~(A1)&~(B1))"),
            ("LEN (A1)", "LEN (~(A1))"),
            ("SUM(LEN(A1),MID(B1,1,2))", "SUM(LEN(~(A1)),MID(~(B1),1,2))"),
            ("TEXT(A1,\"general\")", "TEXT(~(A1),\"general\")"),
            ("COUNTIF(A:A,\">\"&B1)", "COUNTIF(A:A,\">\"&~(B1))"),
            ("'a&b'!A1&\"c&d\"", "~('a&b'!A1)&\"c&d\""),
            ("SUM({1,2}&\"\")", "SUM(~({1,2})&\"\")"),
        ];
        for (formula, expected) in table {
            let expected = expected.replace('~', SPELLED);
            assert_eq!(spelled(formula).as_deref(), Some(expected.as_str()), "{formula}");
        }
        for formula in ["A1+B1", "SUM(A1:A3)", "TEXT(A1,\"0.0\")", "LEN(\"x\")", "\"a\"&\"b\"", ""]
        {
            assert_eq!(spelled(formula), None, "{formula}");
        }
    }

    proptest! {
        #[test]
        fn a_formula_without_our_function_is_the_formula(
            formula in "(LEN|_xlfn\\.CONCAT|[A-C1-3&=,(){}\" +*]){0,30}"
        ) {
            if let Some(text) = spelled(&formula) {
                let calls = text.matches(SPELLED).count();
                prop_assert_eq!(text.len(), formula.len() + calls * (SPELLED.len() + 2));
                prop_assert!(may_spell(&formula.to_uppercase()));
            }
        }
    }
}
