//! Workbooks of the tools open in LibreOffice with the same values.

#![cfg(feature = "xlsx")]

#[path = "xlsx_corpus/corpus.rs"]
mod corpus;
#[path = "xlsx/support.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use corpus::{COLUMN, formulas, workbook};
use prowess_toolkits::{XlsxSettings, recalculate};
use serde_json::{Value, json};
use support::{World, rich};
use tempfile::TempDir;

/// LibreOffice, if `./dev` found it.
fn office(test: &str) -> Option<String> {
    use std::io::Write;
    if let Ok(office) = std::env::var("PROWESS_TEST_SOFFICE") {
        return Some(office);
    }
    let why = "PROWESS_TEST_SOFFICE is not set; ./dev test installs LibreOffice and sets it";
    println!("SKIPPED {test}: {why}");
    if let Ok(log) = std::env::var("PROWESS_SKIP_LOG") {
        let mut log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
    None
}

/// Every sheet of a workbook as LibreOffice shows it, as CSV, by the name of the sheet. It
/// calculates everything anew when it opens the file.
fn opened(office: &str, bytes: &[u8], sheets: &[&str]) -> Vec<Vec<Vec<String>>> {
    let folder = TempDir::new().unwrap();
    let profile = folder.path().join("profile");
    fs::create_dir_all(profile.join("user")).unwrap();
    fs::write(profile.join("user/registrymodifications.xcu"), ALWAYS_RECALCULATE).unwrap();
    let book = folder.path().join("book.xlsx");
    fs::write(&book, bytes).unwrap();
    // -1: every sheet becomes a file of its own. Numbers are written in full.
    let filter = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1";
    let done = Command::new(office)
        .arg(format!("-env:UserInstallation=file://{}", profile.display()))
        .args(["--headless", "--norestore", "--convert-to", filter, "--outdir"])
        .arg(folder.path())
        .arg(&book)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = |sheet: &&str| folder.path().join(format!("book-{sheet}.csv"));
    sheets.iter().map(|sheet| rows(&file(sheet))).collect()
}

/// LibreOffice recalculates what another program wrote: 0 is "always".
const ALWAYS_RECALCULATE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"#;

/// The fields of a CSV file.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = chars.next() {
        match (c, is_quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            ('"', _) => is_quoted = !is_quoted,
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            ('\r', false) => {}
            (c, _) => field.push(c),
        }
    }
    rows
}

/// A number as LibreOffice shows it: `20%`, `02/29/2024`, `12:30:45 PM`.
fn number(shown: &str) -> Option<f64> {
    if let Some(percent) = shown.strip_suffix('%') {
        return percent.parse::<f64>().ok().map(|it| it / 100.0);
    }
    let pieces = |text: &str, sign: char| -> Option<Vec<f64>> {
        let pieces: Vec<f64> = text.split(sign).filter_map(|it| it.parse().ok()).collect();
        (pieces.len() == 3).then_some(pieces)
    };
    if let Some(time) = shown.strip_suffix(" PM").or(shown.strip_suffix(" AM")) {
        let pieces = pieces(time, ':')?;
        let noon = if shown.ends_with("PM") && pieces[0] < 12.0 { 12.0 } else { 0.0 };
        return Some(((pieces[0] + noon) * 3600.0 + pieces[1] * 60.0 + pieces[2]) / 86_400.0);
    }
    if let Some(date) = pieces(shown, '/') {
        // The days since the first of January of a year that is no leap year are enough.
        let (month, day, year) = (date[0], date[1], date[2]);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a month")]
        let mut days = f64::from(before[month as usize - 1]) + day;
        let is_leap = year % 4.0 == 0.0;
        if is_leap && month > 2.0 {
            days += 1.0;
        }
        let years = year - 1900.0;
        return Some(years * 365.0 + ((years - 1.0) / 4.0).floor() + days + 1.0);
    }
    shown.parse().ok()
}

fn is_same(ours: &Value, theirs: &str) -> bool {
    match ours {
        Value::Null => theirs.is_empty(),
        Value::Bool(is) => theirs == if *is { "TRUE" } else { "FALSE" },
        Value::Number(own) => {
            let own = own.as_f64().unwrap();
            number(theirs).is_some_and(|it| (it - own).abs() <= 1e-9 * own.abs().max(1.0))
        }
        Value::String(text) => text == theirs,
        other => panic!("{other}"),
    }
}

async fn compare(world: &World, office: &str, path: &str, sheets: &[&str]) {
    let opened = opened(office, &world.bytes(path), sheets);
    for (sheet, theirs) in sheets.iter().zip(opened) {
        let read = world.ok("xlsx_read_range", json!({"path": path, "sheet": sheet})).await;
        let first = read["range"].as_str().unwrap();
        assert!(first.starts_with("A1"), "{first}");
        for (row, ours) in read["rows"].as_array().unwrap().iter().enumerate() {
            for (column, ours) in ours.as_array().unwrap().iter().enumerate() {
                let theirs =
                    theirs.get(row).and_then(|it| it.get(column)).map_or("", String::as_str);
                assert!(is_same(ours, theirs), "{sheet} {row} {column}: {ours} {theirs}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_made_and_edited_opens_with_the_same_values() {
    let Some(office) = office("what_is_made_and_edited_opens_with_the_same_values") else { return };
    let world = World::new().await;
    world.ok("xlsx_create", rich()).await;
    compare(&world, &office, "work/rich.xlsx", &["Orders", "My totals"]).await;
    let operations = json!([
        {"op": "set", "sheet": "Orders", "cell": "B2", "value": 41},
        {"op": "append_rows", "table": "Orders", "rows": [["d <&> é", 5, 1.25, "=B5*C5"]]},
        {"op": "add_sheet", "name": "Extra", "rows": [["=SUM(Orders!D2:D5)", true, "text"], ["=INDEX(Orders!B2:B5,MATCH(\"b\",Orders!A2:A5,0))", null, 0.1]]},
        {"op": "rename_sheet", "sheet": "Orders", "name": "All orders"},
        {"op": "format", "sheet": "Extra", "range": "C2", "format": "0.000"}
    ]);
    world.ok("xlsx_edit", json!({"path": "work/rich.xlsx", "operations": operations})).await;
    compare(&world, &office, "work/rich.xlsx", &["All orders", "My totals", "Extra"]).await;
}

#[test]
fn the_corpus_has_the_same_values() {
    let Some(office) = office("the_corpus_has_the_same_values") else { return };
    let report = recalculate(&workbook(), &XlsxSettings::default()).unwrap();
    let bytes = report.bytes.unwrap();
    let theirs = opened(&office, &bytes, &["Sheet1"]).remove(0);
    let ours = own_values(&bytes);
    let known: Vec<(&str, &str)> = include_str!("xlsx_corpus/libreoffice.txt")
        .lines()
        .filter(|it| !it.trim().is_empty() && !it.starts_with("# "))
        .map(|line| {
            let mut pieces = line.splitn(4, " | ").map(str::trim);
            let (formula, _ours, theirs) =
                (pieces.next().unwrap(), pieces.next().unwrap(), pieces.next().unwrap());
            assert!(pieces.next().is_some_and(|why| !why.is_empty()), "{line}");
            (formula, theirs)
        })
        .collect();
    let mut new = Vec::new();
    for (row, formula) in formulas().into_iter().enumerate() {
        let shown = theirs.get(row).and_then(|it| it.get(usize::from(COLUMN)));
        let shown = shown.map_or("", String::as_str);
        let is_same = is_same(&ours[row], shown);
        if !is_same && !known.contains(&(formula, shown)) {
            new.push(format!("{formula} | {} | {shown} | ", ours[row]));
        }
    }
    assert!(new.is_empty(), "not in libreoffice.txt:\n{}", new.join("\n"));
}

/// The values of the formulas, by our own reader.
fn own_values(bytes: &[u8]) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = World::new().await;
        world.put("work/corpus.xlsx", bytes);
        let range = format!("H1:H{}", formulas().len());
        let call = json!({"path": "work/corpus.xlsx", "range": range});
        let read = world.ok("xlsx_read_range", call).await;
        read["rows"].as_array().unwrap().iter().map(|row| row[0].clone()).collect()
    })
}
