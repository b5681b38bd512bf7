//! The corpus of formulas, and a workbook of it.

#![allow(dead_code, reason = "every test file uses some of it")]

use rust_xlsxwriter::Workbook;

/// What stands in the columns that the formulas refer to.
pub(crate) const NUMBERS: [f64; 10] = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0];
pub(crate) const TEXTS: [&str; 10] =
    ["apple", "Banana", "cherry", "date", "apple", "fig", "Grape", "apple", "", "kiwi"];
pub(crate) const MORE: [f64; 10] =
    [10.5, -2.25, 0.0, 100.0, 33.333, -7.0, 8.0, 2.5, 1_000_000.0, 0.001];
pub(crate) const DAYS: [f64; 10] =
    [45_292.0, 45_351.0, 45_291.0, 45_823.0, 46_053.0, 36_526.0, 44_927.0, 45_000.0, 1.0, 60_000.0];
pub(crate) const YES_NO: [bool; 5] = [true, false, true, true, false];

/// The column with the formulas, counted from 0.
pub(crate) const COLUMN: u16 = 7;

/// The formulas, in their order.
pub(crate) fn formulas() -> Vec<&'static str> {
    let lines = include_str!("formulas.txt").lines().map(str::trim);
    // A comment has a blank behind its sign; an error has none.
    lines.filter(|it| !it.is_empty() && !it.starts_with("# ") && *it != "#").collect()
}

/// A workbook with the data and all formulas; the formulas have no values yet.
pub(crate) fn workbook() -> Vec<u8> {
    workbook_of(&formulas())
}

/// A workbook with the data and some formulas.
pub(crate) fn workbook_of(formulas: &[&str]) -> Vec<u8> {
    let mut workbook = Workbook::new();
    let sheet = workbook.add_worksheet();
    for row in 0..10_u32 {
        let at = row as usize;
        sheet.write_number(row, 0, NUMBERS[at]).unwrap();
        if !TEXTS[at].is_empty() {
            sheet.write_string(row, 1, TEXTS[at]).unwrap();
        }
        sheet.write_number(row, 2, MORE[at]).unwrap();
        sheet.write_number(row, 3, DAYS[at]).unwrap();
        if let Some(is) = YES_NO.get(at) {
            sheet.write_boolean(row, 4, *is).unwrap();
        }
    }
    for (row, formula) in formulas.iter().enumerate() {
        let row = u32::try_from(row).unwrap();
        sheet.write_formula(row, COLUMN, format!("={formula}").as_str()).unwrap();
    }
    workbook.save_to_buffer().unwrap()
}

/// A value that an engine gives, so that two of them can be compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Number(f64),
    Text(String),
    Boolean(bool),
}

impl Given {
    /// Whether two engines say the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => {
                (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
            }
            (a, b) => a == b,
        }
    }
}

/// The values of the formulas that a workbook holds, by a reader that is not ours.
#[cfg(feature = "xlsx-second-opinion")]
pub(crate) fn values(bytes: &[u8]) -> Vec<Given> {
    use calamine::{Data, Reader, Xlsx};
    let mut book: Xlsx<_> = Xlsx::new(std::io::Cursor::new(bytes.to_vec())).unwrap();
    let range = book.worksheet_range_at(0).unwrap().unwrap();
    (0..formulas().len())
        .map(|row| {
            let at = (u32::try_from(row).unwrap(), u32::from(COLUMN));
            match range.get_value(at) {
                Some(Data::Float(number)) => Given::Number(*number),
                Some(Data::Int(number)) => {
                    #[allow(clippy::cast_precision_loss, reason = "they are small")]
                    let number = *number as f64;
                    Given::Number(number)
                }
                Some(Data::Bool(is)) => Given::Boolean(*is),
                Some(Data::String(text)) => Given::Text(text.clone()),
                Some(Data::Error(error)) => Given::Text(error.to_string()),
                Some(Data::DateTime(date)) => Given::Number(date.as_f64()),
                other => Given::Text(format!("{other:?}")),
            }
        })
        .collect()
}
