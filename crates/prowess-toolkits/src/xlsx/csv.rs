//! `xlsx_export_csv`: a sheet or a range as CSV (RFC 4180).

use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::json;

use super::Xlsx;
use super::address::Cell;
use super::arguments::Arguments;
use super::error::XlsxError;
use super::ground::Before;
use super::read_range::{Grid, read, wanted};
use super::render::capped;
use super::value::Value;
use crate::session::blocking;

/// What becomes of texts that a spreadsheet would take for formulas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Injection {
    /// They get a `'` in front, so that they stay texts.
    Escape,
    /// They stay as they are.
    Keep,
}

impl Injection {
    fn as_str(self) -> &'static str {
        match self {
            Self::Escape => "escape",
            Self::Keep => "keep",
        }
    }
}

impl Xlsx {
    pub(super) async fn export_csv(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let wrong = |error: XlsxError| error.outcome("");
        let arguments = Arguments::of(&invocation.call.arguments, "").map_err(wrong)?;
        let path = arguments.required("path").map_err(wrong)?;
        let output = match arguments.text("output").map_err(wrong)? {
            Some(output) => output.to_owned(),
            None => csv_name(path),
        };
        let sheet = arguments.text("sheet").map_err(wrong)?;
        let range = arguments.text("range").map_err(wrong)?;
        let wanted = wanted(sheet, range).map_err(wrong)?;
        let injection = match arguments.text("formula_injection").map_err(wrong)? {
            None | Some("escape") => Injection::Escape,
            Some("keep") => Injection::Keep,
            Some(_) => {
                let why = "it must be escape or keep";
                return Err(wrong(XlsxError::invalid("formula_injection", why)));
            }
        };
        let overwrite = arguments.flag("overwrite").map_err(wrong)?;
        let (bytes, reference) = self.ground.open(invocation, path).await?;
        let home = self.ground.home(invocation, &output).await?;
        let settings = self.settings.clone();
        let exported = blocking(move || {
            let most = settings.max_written_cells;
            let grid = read(bytes, &wanted, most, &settings)?;
            if grid.cut_after.is_some() {
                let what = "the cells of the range";
                return Err(XlsxError::limit(what, most + 1, "max_written_cells", most));
            }
            let (text, escaped) = csv(&grid, injection, settings.max_csv_bytes)?;
            let formulas = grid.cells.values().filter(|it| it.formula.is_some());
            let (with, without): (Vec<_>, Vec<_>) =
                formulas.partition(|it| it.value != Value::Empty);
            let formulas = (with.len(), without.len());
            Ok((text, escaped, grid.sheet, grid.area, formulas))
        });
        let (text, escaped, sheet, area, (formulas, uncalculated)) =
            exported.await?.map_err(|error| error.outcome(path))?;
        let rows = area.map_or(0, |it| it.rows());
        let before = if overwrite { Before::Anything } else { Before::Nothing };
        let saved =
            self.ground.save(invocation, &home, "text/csv", text.into_bytes(), before).await?;
        let range = area.map(|it| it.to_string());
        let mut said = format!(
            "Wrote {} ({} bytes, {rows} rows) from {reference}.",
            saved.reference, saved.size_bytes
        );
        if escaped > 0 {
            said.push_str(&format!(
                " {escaped} texts begin like formulas and got a ' in front (formula_injection: \
                 escape)."
            ));
        }
        if uncalculated > 0 {
            said.push_str(&format!(
                " {uncalculated} formulas have no value yet and are empty in it; xlsx_recalc gives \
                 them one."
            ));
        }
        let mut outcome = ToolOutcome::text(said);
        outcome.data = json!({
            "ref": saved.reference,
            "size_bytes": saved.size_bytes,
            "source": reference,
            "sheet": capped(&sheet),
            "untrusted": true,
            "range": range,
            "rows": rows,
            "columns": area.map_or(0, |it| it.columns()),
            "formulas_as_values": formulas,
            "uncalculated_formulas": uncalculated,
            "formula_injection": injection.as_str(),
            "escaped_texts": escaped,
        });
        Ok(match saved.artifact {
            Some(artifact) => outcome.with_artifact(artifact),
            None => outcome,
        })
    }
}

/// `work/a.xlsx` becomes `work/a.csv`.
fn csv_name(path: &str) -> String {
    let path = path.rsplit_once('@').filter(|_| path.contains("://")).map_or(path, |it| it.0);
    match path.rsplit_once('.') {
        Some((name, ending)) if !ending.contains('/') => format!("{name}.csv"),
        _ => format!("{path}.csv"),
    }
}

/// The cells as CSV, and how many texts were kept from being formulas.
fn csv(grid: &Grid, injection: Injection, most: u64) -> Result<(String, u64), XlsxError> {
    let (mut out, mut escaped) = (String::new(), 0);
    let Some(area) = grid.area else { return Ok((out, escaped)) };
    for row in area.first.row..=area.last.row {
        for column in area.first.column..=area.last.column {
            if column > area.first.column {
                out.push(',');
            }
            let Some(cell) = grid.cells.get(&Cell { row, column }) else { continue };
            let mut text = cell.value.text();
            let is_text = matches!(cell.value, Value::Text(_));
            if is_text && injection == Injection::Escape && is_like_a_formula(&text) {
                text.insert(0, '\'');
                escaped += 1;
            }
            out.push_str(&field(&text));
        }
        out.push_str("\r\n");
        if out.len() as u64 > most {
            let found = out.len() as u64;
            return Err(XlsxError::limit(
                "the bytes of the CSV file",
                found,
                "max_csv_bytes",
                most,
            ));
        }
    }
    Ok((out, escaped))
}

/// Whether a spreadsheet that opens the file would calculate this.
fn is_like_a_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

fn field(text: &str) -> String {
    // Where commas are decimal signs, programs take other characters for the ends of fields.
    match text.contains([',', ';', '\t', '"', '\r', '\n'])
        || text.starts_with(' ')
        || text.ends_with(' ')
    {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must() {
        let table = [
            ("a", "a"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("a\nb", "\"a\nb\""),
            ("a;b", "\"a;b\""),
            ("a\tb", "\"a\tb\""),
            ("", ""),
            (" a", "\" a\""),
        ];
        for (text, expected) in table {
            assert_eq!(field(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_looks_like_a_formula_is_seen() {
        for text in ["=1", "+1", "-1", "@x", "\t=1", "＝1"] {
            assert!(is_like_a_formula(text), "{text}");
        }
        for text in ["1=1", "a", "", "'=1"] {
            assert!(!is_like_a_formula(text), "{text}");
        }
    }

    #[test]
    fn names_get_another_ending() {
        for (path, expected) in [
            ("work/a.xlsx", "work/a.csv"),
            ("work/a", "work/a.csv"),
            ("work.x/a", "work.x/a.csv"),
            ("artifact://a.xlsx@3", "artifact://a.csv"),
        ] {
            assert_eq!(csv_name(path), expected);
        }
    }
}
