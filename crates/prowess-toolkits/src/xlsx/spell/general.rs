//! Numbers as Excel writes them where a text is needed.

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

#[cfg(test)]
mod tests {
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
}
