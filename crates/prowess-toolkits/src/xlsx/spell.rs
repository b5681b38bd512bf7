//! Numbers that formulas make texts of, spelled as Excel spells them.
//!
//! The engine writes all digits of such a number, Excel fifteen. What a formula makes a text of is
//! therefore given to a function of ours first, in the copy that the engine calculates.

use std::sync::{Arc, Once};

use formualizer_common::{DateSystem, ExcelError, LiteralValue};
use formualizer_eval::args::{ArgSchema, ShapeKind};
use formualizer_eval::engine::range_view::RangeView;
use formualizer_eval::function::{FnCaps, Function};
use formualizer_eval::traits::{ArgumentHandle, CalcValue, FunctionContext};

use super::formula::{Kind, Token, tokens};
use super::functions::plain_function;

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
    upper.contains('&')
        || upper.contains("TEXT")
        || SPELLING.iter().any(|(name, _)| upper.contains(name))
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

/// A number as Excel writes it where a text is needed: with fifteen digits, and with a power of
/// ten if it would be longer than twenty characters.
pub(super) fn general(number: f64) -> String {
    const LONGEST: usize = 20;
    if number == 0.0 || !number.is_normal() {
        return "0".to_owned();
    }
    // Where the power of ten has three digits, there is one digit less.
    let is_far = !(1e-98..1e99).contains(&number.abs());
    let text = format!("{:.*e}", if is_far { 13 } else { 14 }, number.abs());
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let digits = digits.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let sign = if number < 0.0 { "-" } else { "" };
    let zeros = |count: usize| "0".repeat(count);
    let places = usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    let is_long = match power < 0 {
        true => 1 + places + digits.len() > LONGEST,
        false => places >= LONGEST,
    };
    if is_long {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let way = if power < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}E{way}{places:02}");
    }
    if power < 0 {
        return format!("{sign}0.{}{digits}", zeros(places - 1));
    }
    match digits.split_at_checked(places + 1) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some((whole, part)) => format!("{sign}{whole}.{part}"),
        None => format!("{sign}{digits}{}", zeros(places + 1 - digits.len())),
    }
}

/// The value with its number spelled; none if the engine spells it the same way.
fn respelled(value: &LiteralValue, dates: DateSystem) -> Option<LiteralValue> {
    let number = match value {
        LiteralValue::Number(number) => *number,
        #[allow(clippy::cast_precision_loss, reason = "a cell holds no more")]
        LiteralValue::Int(number) => *number as f64,
        LiteralValue::Date(_)
        | LiteralValue::DateTime(_)
        | LiteralValue::Time(_)
        | LiteralValue::Duration(_) => {
            return Some(LiteralValue::Text(general(value.as_serial_number_for(dates)?)));
        }
        _ => return None,
    };
    let text = general(number);
    (text != number.to_string()).then_some(LiteralValue::Text(text))
}

fn respelled_rows(rows: &[Vec<LiteralValue>], dates: DateSystem) -> Option<Vec<Vec<LiteralValue>>> {
    let is_same = |it: &LiteralValue| respelled(it, dates).is_none();
    if rows.iter().flatten().all(is_same) {
        return None;
    }
    let spell = |it: &LiteralValue| respelled(it, dates).unwrap_or_else(|| it.clone());
    Some(rows.iter().map(|row| row.iter().map(spell).collect()).collect())
}

/// Our function: gives back what it is given, and numbers as texts where the engine would spell
/// them otherwise than Excel.
#[derive(Debug)]
struct Spelled;

impl Function for Spelled {
    fn caps(&self) -> FnCaps {
        FnCaps::PURE
    }

    fn name(&self) -> &'static str {
        SPELLED
    }

    fn min_args(&self) -> usize {
        1
    }

    fn arg_schema(&self) -> &'static [ArgSchema] {
        static SCHEMA: std::sync::LazyLock<Vec<ArgSchema>> = std::sync::LazyLock::new(|| {
            let mut schema = ArgSchema::any();
            schema.shape = ShapeKind::Range;
            vec![schema]
        });
        &SCHEMA
    }

    fn eval<'a, 'b, 'c>(
        &self,
        args: &'c [ArgumentHandle<'a, 'b>],
        ctx: &dyn FunctionContext<'b>,
    ) -> Result<CalcValue<'b>, ExcelError> {
        let [argument] = args else { return Err(ExcelError::new_value()) };
        let dates = ctx.date_system();
        let value = argument.value()?;
        let new = match &value {
            CalcValue::Scalar(LiteralValue::Array(rows)) => {
                respelled_rows(rows, dates).map(|rows| CalcValue::Scalar(LiteralValue::Array(rows)))
            }
            CalcValue::Scalar(one) | CalcValue::AnnotatedScalar(one, _) => {
                respelled(one, dates).map(CalcValue::Scalar)
            }
            CalcValue::Range(view) => {
                let mut rows = Vec::new();
                view.for_each_row(&mut |row| {
                    rows.push(row.to_vec());
                    Ok(())
                })?;
                let rows = respelled_rows(&rows, dates);
                rows.map(|rows| CalcValue::Range(RangeView::from_owned_rows(rows, dates)))
            }
            CalcValue::Callable(_) => None,
        };
        Ok(new.unwrap_or(value))
    }
}

/// Makes our function known to the engine.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| formualizer_workbook::register_function_dynamic(Arc::new(Spelled)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As Apache POI lists what Excel gives.
    #[test]
    fn numbers_are_spelled_as_excel_spells_them() {
        let table: [(f64, &str); 36] = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-5.0, "-5"),
            (1.0001, "1.0001"),
            (756.0, "756"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0 / 3.0, "0.666666666666667"),
            (123.456_789_012_345_68, "123.456789012346"),
            (1_234_567.890_123_456_7, "1234567.89012346"),
            (1.234_567_890_123_456_8e-5, "1.23456789012346E-05"),
            (1.234_567_890_123_456_7e-4, "0.000123456789012346"),
            (0.012_345_678_901_234_568, "0.0123456789012346"),
            (1.234_567_89e-5, "0.0000123456789"),
            (5.678_901_234_5e-8, "0.000000056789012345"),
            (5.678_901_234_56e-8, "5.67890123456E-08"),
            (9.999_999_999_999_123e-98, "9.99999999999912E-98"),
            (1.000_000_000_000_123_5e-99, "1.0000000000001E-99"),
            (2e-50, "2E-50"),
            (1.234_567_890_123_456_8e13, "12345678901234.6"),
            (1.234_567_890_123_456_7e14, "123456789012346"),
            (1.234_567_890_123_456_8e15, "1234567890123460"),
            (1.234_567_890_123_456_7e19, "12345678901234600000"),
            (-1.234_567_890_123_456_8e20, "-1.23456789012346E+20"),
            (1e19, "10000000000000000000"),
            (1e20, "1E+20"),
            (1.234_567_890_123_457_7e99, "1.2345678901235E+99"),
            (2e50, "2E+50"),
            (f64::MAX, "1.7976931348623E+308"),
            (f64::MIN_POSITIVE, "2.2250738585072E-308"),
            (5e-324, "0"),
            (123_499.999_999_999_9, "123500"),
            (999_999.999_999_999_9, "1000000"),
            (9.999_999_999_999_999e-9, "0.00000001"),
            (9.999_999_999_999_999e-20, "1E-19"),
        ];
        for (number, expected) in table {
            assert_eq!(general(number), expected, "{number:e}");
        }
    }

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
            formula in "[A-Z0-9&=,(){}\" +*LEN]{0,30}"
        ) {
            if let Some(text) = spelled(&formula) {
                let calls = text.matches(SPELLED).count();
                prop_assert_eq!(text.len(), formula.len() + calls * (SPELLED.len() + 2));
                prop_assert!(may_spell(&formula.to_uppercase()));
            }
        }
    }
}
