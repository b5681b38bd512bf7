//! `ROUND` as Excel does it.

/// How many digits Excel takes a number for.
const DIGITS: usize = 15;
/// How large a number may be in units of its last digit, so that a half can be told.
const MOST_SCALED: f64 = 2.5e13;

/// A number rounded half away from zero, as Excel does it: of a number it sees fifteen digits.
/// None where these are in doubt.
pub(super) fn rounded(number: f64, digits: i32) -> Option<f64> {
    if number == 0.0 {
        return Some(number);
    }
    let magnitude = number.abs();
    let power = 10_f64.powi(digits.abs());
    let scaled = if digits < 0 { magnitude / power } else { magnitude * power };
    let (whole, part) = (scaled.trunc(), scaled.fract());
    // Far from the half the digits beyond the fifteenth change nothing.
    let is_far = scaled < 1e14 && (part - 0.5).abs() > scaled * 1e-14;
    let up = match is_far {
        true => part > 0.5,
        // What is larger was perhaps rounded up already when it was scaled.
        false if scaled > MOST_SCALED => return None,
        false => is_up(magnitude, digits)?,
    };
    let whole = if up { whole + 1.0 } else { whole };
    let rounded = if digits < 0 { whole * power } else { whole / power };
    Some(rounded.copysign(number))
}

/// Whether a number close to a half is at least that, seen with fifteen digits; none if it is too
/// large to tell, or if its fifteenth digit is in doubt itself.
fn is_up(magnitude: f64, digits: i32) -> Option<bool> {
    // All of the digits that follow, so far as they matter.
    let text = format!("{magnitude:.30e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let all: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|it| it - b'0').collect();
    let (seen, beyond) = all.split_at(DIGITS);
    let is_tie = beyond[0] == 5 && beyond[1..].iter().all(|it| *it == 0);
    // The digit that decides is the first one behind those that stay.
    let decides = usize::try_from(exponent + 1 + digits).ok()?;
    if is_tie || decides >= DIGITS {
        return None;
    }
    // With a carry from beyond, nines behind the deciding digit become its next.
    let carry = beyond[0] >= 5 && seen[decides + 1..].iter().all(|it| *it == 9);
    let digit = seen[decides] + u8::from(carry);
    Some(digit >= 5)
}
