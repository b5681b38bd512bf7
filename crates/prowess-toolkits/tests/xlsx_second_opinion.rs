//! Another engine agrees on the corpus of formulas, and another reader reads our workbooks.

#![cfg(feature = "xlsx-second-opinion")]

#[path = "xlsx_corpus/corpus.rs"]
mod corpus;

use std::collections::BTreeMap;

use corpus::{
    COLUMN, DAYS, Given, MORE, NUMBERS, TEXTS, YES_NO, formulas, values, workbook, workbook_of,
};
use ironcalc_base::Model;
use ironcalc_base::cell::CellValue;
use prowess_toolkits::{RecalcStatus, XlsxSettings, recalculate};

/// Where the engines differ: the formula, what ours gives, what the other gives, and who is right.
fn differences() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let lines = include_str!("xlsx_corpus/differences.txt").lines();
    let lines = lines.filter(|it| !it.trim().is_empty() && !it.starts_with("# "));
    lines
        .map(|line| {
            let pieces: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let [formula, ours, theirs, why] = pieces.as_slice() else { panic!("{line}") };
            assert!(!why.is_empty(), "{line}");
            (*formula, (*ours, *theirs))
        })
        .collect()
}

fn shown(given: &Given) -> String {
    match given {
        Given::Number(number) => number.to_string(),
        Given::Text(text) => text.clone(),
        Given::Boolean(is) => is.to_string().to_uppercase(),
    }
}

fn second_opinion() -> Vec<Given> {
    let mut model = Model::new_empty("corpus", "en", "UTC", "en").unwrap();
    let mut set = |row: usize, column: u16, text: String| {
        let (row, column) = (i32::try_from(row + 1).unwrap(), i32::from(column) + 1);
        model.set_user_input(0, row, column, text).unwrap();
    };
    for row in 0..10 {
        set(row, 0, NUMBERS[row].to_string());
        if !TEXTS[row].is_empty() {
            set(row, 1, TEXTS[row].to_owned());
        }
        set(row, 2, MORE[row].to_string());
        set(row, 3, DAYS[row].to_string());
        if let Some(is) = YES_NO.get(row) {
            set(row, 4, is.to_string().to_uppercase());
        }
    }
    for (row, formula) in formulas().into_iter().enumerate() {
        set(row, COLUMN, format!("={formula}"));
    }
    model.evaluate();
    (0..formulas().len())
        .map(|row| {
            let (row, column) = (i32::try_from(row + 1).unwrap(), i32::from(COLUMN) + 1);
            match model.get_cell_value_by_index(0, row, column).unwrap() {
                CellValue::Number(number) => Given::Number(number),
                CellValue::String(text) => Given::Text(text),
                CellValue::Boolean(is) => Given::Boolean(is),
                CellValue::None => Given::Text(String::new()),
            }
        })
        .collect()
}

/// In a workbook of its own, a formula over numbers alone is calculated without the engine.
#[test]
fn two_engines_agree_on_formulas_over_numbers_alone() {
    let mut plain = 0;
    for (formula, theirs) in formulas().into_iter().zip(second_opinion()) {
        let report = recalculate(&workbook_of(&[formula]), &XlsxSettings::default()).unwrap();
        if report.engine != "prowess" {
            continue;
        }
        plain += 1;
        let ours = values(&report.bytes.unwrap()).swap_remove(0);
        assert!(ours.is_like(&theirs), "{formula}: {} to {}", shown(&ours), shown(&theirs));
    }
    assert!(plain >= 20, "{plain} of the formulas are plain");
}

#[test]
fn two_engines_agree_on_the_corpus() {
    let formulas = formulas();
    assert!(formulas.len() >= 200, "{}", formulas.len());
    let report = recalculate(&workbook(), &XlsxSettings::default()).unwrap();
    assert_eq!(report.status, RecalcStatus::ErrorsFound, "{:?}", report.refused_reason);
    assert!(report.total_formulas >= 200);
    let (ours, theirs) = (values(&report.bytes.unwrap()), second_opinion());
    let mut known = differences();
    let mut new = Vec::new();
    for ((formula, ours), theirs) in formulas.iter().zip(&ours).zip(&theirs) {
        if ours.is_like(theirs) {
            continue;
        }
        let found = (shown(ours), shown(theirs));
        match known.remove(formula) {
            Some((a, b)) if (a, b) == (found.0.as_str(), found.1.as_str()) => {}
            _ => new.push(format!("{formula} | {} | {} | ", found.0, found.1)),
        }
    }
    assert!(new.is_empty(), "not in differences.txt:\n{}", new.join("\n"));
    assert!(known.is_empty(), "no longer different: {:?}", known.keys());
}
