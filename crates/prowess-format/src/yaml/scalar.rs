//! Which type a plain scalar has: the core schema of YAML 1.2, and where YAML 1.1 reads it
//! otherwise.

use super::value::Value;

/// A number that remembers how its author spelled it, so that `2.0` stays `2.0`, `1.10` is not
/// `1.1` and `007` is not `7`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

/// What a [`Number`] is as a machine value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberKind {
    /// A whole number that fits `i64`.
    Signed(i64),
    /// A whole number that fits `u64` only.
    Unsigned(u64),
    /// A finite number with a fraction or an exponent.
    Float(f64),
    /// An infinity, not-a-number, or a whole number that 64 bits do not hold: JSON readers have no
    /// such number, the spelling stands in.
    Unrepresentable,
}

impl Number {
    /// Reads a number of the core schema.
    pub fn parse(spelling: &str) -> Option<Self> {
        is_number(spelling).then(|| Self(spelling.into()))
    }

    /// The characters that the author wrote.
    pub fn spelling(&self) -> &str {
        &self.0
    }

    /// The machine value.
    pub fn kind(&self) -> NumberKind {
        let text = &*self.0;
        let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
        let whole = if let Some(digits) = text.strip_prefix("0x") {
            radix(digits, 16)
        } else if let Some(digits) = text.strip_prefix("0o") {
            radix(digits, 8)
        } else if let Ok(value) = text.parse::<i64>() {
            return NumberKind::Signed(value);
        } else {
            text.parse::<u64>().ok()
        };
        if let Some(value) = whole {
            return i64::try_from(value).map_or(NumberKind::Unsigned(value), NumberKind::Signed);
        }
        let is_whole = !text.contains(['.', 'e', 'E']) || text.starts_with("0x");
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && !is_whole => NumberKind::Float(value),
            _ => NumberKind::Unrepresentable,
        }
    }

    /// Whether a reader that keeps the value but not the spelling would write it differently.
    pub fn spelling_is_fragile(&self) -> bool {
        match self.kind() {
            NumberKind::Signed(value) => value.to_string() != *self.0,
            NumberKind::Unsigned(value) => value.to_string() != *self.0,
            NumberKind::Float(value) => format!("{value:?}") != *self.0,
            NumberKind::Unrepresentable => true,
        }
    }
}

/// Resolves a plain (unquoted, untagged) scalar.
pub(super) fn resolve(text: &str) -> Value {
    match text.as_bytes().first() {
        None => Value::Null,
        Some(b'~' | b'n' | b'N') if matches!(text, "~" | "null" | "Null" | "NULL") => Value::Null,
        Some(b't' | b'T') if matches!(text, "true" | "True" | "TRUE") => Value::Bool(true),
        Some(b'f' | b'F') if matches!(text, "false" | "False" | "FALSE") => Value::Bool(false),
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => match Number::parse(text) {
            Some(number) => Value::Number(number),
            None => Value::String(text.to_owned()),
        },
        Some(_) => Value::String(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    let all = |digits: &str, test: fn(&u8) -> bool| {
        !digits.is_empty() && digits.as_bytes().iter().all(test)
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return all(digits, u8::is_ascii_hexdigit);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return all(digits, |byte| (b'0'..=b'7').contains(byte));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || is_decimal(unsigned)
}

/// `[0-9]+ (\.[0-9]*)? ([eE][-+]?[0-9]+)?` or `\.[0-9]+ ([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if whole == 0 && length == 0 {
            return false;
        }
        rest = &fraction[length..];
    } else if whole == 0 {
        return false;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

/// What a YAML 1.1 reader such as `PyYAML` makes of a plain scalar that is text to us: `yes` is a
/// boolean there, `2024-01-01` a date, `1:30` a number.
pub fn yaml11_reading(text: &str) -> Option<&'static str> {
    match *text.as_bytes().first()? {
        b'y' | b'Y' | b'n' | b'N' | b'o' | b'O' => yaml11_boolean(text).then_some("a boolean"),
        b'0'..=b'9' | b'-' | b'+' if is_date(text) => Some("a date"),
        b'0'..=b'9' | b'-' | b'+' if is_yaml11_number(text) => Some("a number"),
        _ => None,
    }
}

/// `yes`, `no`, `on`, `off` in lower case, in upper case or capitalized.
fn yaml11_boolean(text: &str) -> bool {
    ["yes", "no", "on", "off"].iter().any(|word| {
        text.eq_ignore_ascii_case(word)
            && (text[1..] == word[1..] || text == word.to_ascii_uppercase())
    })
}

/// `1_000` and the base-60 `1:30`.
fn is_yaml11_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let only = |allowed: &[u8]| {
        unsigned.bytes().all(|byte| byte.is_ascii_digit() || allowed.contains(&byte))
    };
    let begins = unsigned.starts_with(|c: char| c.is_ascii_digit());
    begins
        && !unsigned.ends_with(':')
        && ((unsigned.contains(':') && only(b":._")) || (unsigned.contains('_') && only(b"_.")))
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && text[5..].bytes().all(|byte| byte.is_ascii_digit() || b"-:.TtZz +".contains(&byte))
        && text[5..].bytes().filter(|byte| *byte == b'-').count() >= 1
}
