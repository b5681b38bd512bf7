//! What a cell holds, in the words of people: texts, numbers, dates.

use serde_json::{Value as Json, json};

use super::sheet::{Kind, Raw};
use super::strings::decoded;
use super::styles::Meaning;

/// What a cell holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Empty,
    Number(f64),
    Text(String),
    Boolean(bool),
    Error(String),
    /// `2026-01-31`, `2026-01-31T12:00:00`, `12:00:00`
    Date(String),
}

impl Value {
    /// What a cell holds; `text` is its shared string, if that is what it holds.
    pub(super) fn of(raw: &Raw, text: Option<&str>, meaning: Meaning, from_1904: bool) -> Self {
        let Some(value) = raw.value.as_deref() else { return Self::Empty };
        match raw.kind {
            Kind::Shared => Self::Text(text.unwrap_or_default().to_owned()),
            Kind::Text => Self::Text(decoded(value).into_owned()),
            Kind::Boolean => Self::Boolean(value.trim() == "1" || value.trim() == "true"),
            Kind::Error => Self::Error(value.to_owned()),
            Kind::Date => Self::Date(value.to_owned()),
            Kind::Number => match value.trim().parse::<f64>() {
                Ok(number) => {
                    date_text(number, meaning, from_1904).map_or(Self::Number(number), Self::Date)
                }
                Err(_) if value.trim().is_empty() => Self::Empty,
                Err(_) => Self::Text(value.to_owned()),
            },
        }
    }

    pub(super) fn json(&self) -> Json {
        match self {
            Self::Empty => Json::Null,
            Self::Number(number) => number_json(*number),
            Self::Text(text) | Self::Error(text) | Self::Date(text) => json!(text),
            Self::Boolean(is) => json!(is),
        }
    }

    /// The value as text, as a CSV file or a table shows it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Number(number) => number_json(*number).to_string(),
            Self::Text(text) | Self::Error(text) | Self::Date(text) => text.clone(),
            Self::Boolean(true) => "TRUE".to_owned(),
            Self::Boolean(false) => "FALSE".to_owned(),
        }
    }
}

/// A number without `.0`.
fn number_json(number: f64) -> Json {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "it is a whole number that fits")]
    match number.fract() == 0.0 && number.abs() < EXACT {
        true => json!(number as i64),
        false => json!(number),
    }
}

/// A number as the date that it stands for; none if it is no date.
fn date_text(number: f64, meaning: Meaning, from_1904: bool) -> Option<String> {
    const LAST: f64 = 2_958_466.0;
    if meaning == Meaning::Number || !(0.0..LAST).contains(&number) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "it is below LAST")]
    let (mut day, mut second) =
        (number.floor() as i64, ((number - number.floor()) * 86_400.0).round() as i64);
    if second == 86_400 {
        (day, second) = (day + 1, 0);
    }
    let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    if meaning == Meaning::Time && day == 0 {
        return Some(time);
    }
    if meaning == Meaning::Time {
        return None;
    }
    // 1900 has a 29th of February in spreadsheets, the number 60.
    let since_1970 = match from_1904 {
        true => day - 24_107,
        false if day == 60 => return Some("1900-02-29".to_owned()),
        false if day < 60 => day - 25_568,
        false => day - 25_569,
    };
    let (year, month, day) = civil(since_1970);
    let date = format!("{year:04}-{month:02}-{day:02}");
    Some(match second == 0 && meaning == Meaning::Date {
        true => date,
        false => format!("{date}T{time}"),
    })
}

/// The date that is so many days after the first of January 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// The number of a date and a time of day: `2026-01-31`, `2026-01-31T12:00:00`.
pub(super) fn serial(text: &str, from_1904: bool) -> Option<(f64, Meaning)> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time.trim_end_matches('Z'))),
        None => (text, None),
    };
    let mut numbers = date.splitn(3, '-').map(|it| match it.bytes().all(|c| c.is_ascii_digit()) {
        true => it.parse::<i64>().ok(),
        false => None,
    });
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if !(1900..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let month_from_march = (month + 9) % 12;
    let shifted = year - i64::from(month <= 2);
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    if civil(days) != (year, month, day) {
        return None;
    }
    let number = match from_1904 {
        true => days + 24_107,
        false if days + 25_569 <= 60 => days + 25_568,
        false => days + 25_569,
    };
    if number < 0 {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "days are few")]
    let number = number as f64;
    match time {
        None => Some((number, Meaning::Date)),
        Some(time) => Some((number + day_part(time)?, Meaning::DateTime)),
    }
}

/// `12:00` and `12:00:00` as a part of a day.
fn day_part(time: &str) -> Option<f64> {
    let mut pieces = time.splitn(3, ':');
    let hour: u32 = pieces.next()?.parse().ok().filter(|it| *it < 24)?;
    let minute: u32 = pieces.next()?.parse().ok().filter(|it| *it < 60)?;
    let second: f64 = match pieces.next() {
        Some(second) => second.parse().ok().filter(|it| (0.0..60.0).contains(it))?,
        None => 0.0,
    };
    Some((f64::from(hour * 3600 + minute * 60) + second) / 86_400.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_numbers_and_numbers_are_dates() {
        let table = [
            ("1900-01-01", 1.0),
            ("1900-02-28", 59.0),
            ("1900-03-01", 61.0),
            ("1970-01-01", 25_569.0),
            ("2024-02-29", 45_351.0),
            ("9999-12-31", 2_958_465.0),
        ];
        for (text, number) in table {
            assert_eq!(serial(text, false), Some((number, Meaning::Date)), "{text}");
            let back = date_text(number, Meaning::Date, false);
            assert_eq!(back.as_deref(), Some(text));
        }
        assert_eq!(serial("1904-01-02", true), Some((1.0, Meaning::Date)));
        assert_eq!(date_text(1.0, Meaning::Date, true).as_deref(), Some("1904-01-02"));
        assert_eq!(date_text(60.0, Meaning::Date, false).as_deref(), Some("1900-02-29"));
        assert_eq!(date_text(0.5, Meaning::Time, false).as_deref(), Some("12:00:00"));
        let noon = serial("2026-01-31T12:00", false).unwrap();
        assert_eq!(noon, (46_053.5, Meaning::DateTime));
        for wrong in ["2026-02-30", "2026-13-01", "1899-12-31", "2026-1", "x", "2026-01-31T25:00"] {
            assert_eq!(serial(wrong, false), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_day_comes_back(day in 61_i32..2_958_465) {
            let text = date_text(f64::from(day), Meaning::Date, false).unwrap();
            prop_assert_eq!(serial(&text, false), Some((f64::from(day), Meaning::Date)));
        }
    }
}
