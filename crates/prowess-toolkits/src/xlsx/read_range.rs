//! `xlsx_read_range`: values and formulas of a range.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use prowess_runtime::{Invocation, ToolOutcome};
use serde_json::{Value as Json, json};

use super::address::{Area, Cell, LAST_COLUMN, LAST_ROW, letters_of, split_sheet};
use super::arguments::Arguments;
use super::book::{Book, Sheet};
use super::error::{XlsxError, shown};
use super::formula::{shifted, written};
use super::inspect::grown;
use super::package::{Bytes, Package};
use super::render::{self, DATA_BEGINS, DATA_ENDS, capped, heading, inline, row};
use super::settings::XlsxSettings;
use super::sheet::{self, Item, Kind, Raw, Sharing};
use super::styles::Styles;
use super::value::Value;
use super::{Xlsx, strings};
use crate::session::blocking;

/// A cell as it is read: what it holds, and its formula.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) value: Value,
    /// As people write it, with `=`.
    pub(super) formula: Option<String>,
    pub(super) style: u32,
}

/// The cells of a range that hold something.
pub(super) struct Grid {
    pub(super) sheet: String,
    /// What was asked for, as far as the sheet is used.
    pub(super) area: Option<Area>,
    /// What was asked for, if it was not all.
    pub(super) asked: Option<Area>,
    pub(super) cells: BTreeMap<Cell, Read>,
    pub(super) styles: Styles,
    /// Whether the limit of cells was reached: the last row that is whole.
    pub(super) cut_after: Option<u32>,
}

/// What is shown of cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Values,
    Formulas,
    Both,
}

impl Xlsx {
    pub(super) async fn read_range(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let wrong = |error: XlsxError| error.outcome("");
        let arguments = Arguments::of(&invocation.call.arguments, "").map_err(wrong)?;
        let path = arguments.required("path").map_err(wrong)?;
        let sheet = arguments.text("sheet").map_err(wrong)?.map(str::to_owned);
        let range = arguments.text("range").map_err(wrong)?.map(str::to_owned);
        let show = match arguments.text("show").map_err(wrong)? {
            None | Some("both") => Show::Both,
            Some("values") => Show::Values,
            Some("formulas") => Show::Formulas,
            Some(_) => {
                let why = "it must be values, formulas or both";
                return Err(XlsxError::invalid("show", why).outcome(path));
            }
        };
        let (bytes, reference) = self.ground.open(invocation, path).await?;
        let settings = self.settings.clone();
        let read = blocking(move || {
            let wanted = wanted(sheet.as_deref(), range.as_deref())?;
            let most = settings.max_range_cells;
            let grid = read(bytes, &wanted, most, &settings)?;
            if let Some(columns) = grid.area.map(|it| it.columns()).filter(|it| *it > most) {
                let what = "the columns of the range";
                return Err(XlsxError::limit(what, columns, "max_range_cells", most));
            }
            Ok::<_, XlsxError>(tell(&grid, show, &settings))
        });
        let (content, mut data) = read.await?.map_err(|error| error.outcome(path))?;
        data["ref"] = json!(reference);
        let mut outcome = ToolOutcome::text(content);
        outcome.data = data;
        Ok(outcome)
    }
}

/// Which cells are wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) sheet: Option<String>,
    /// All that is used, if it is none.
    pub(super) area: Option<Area>,
    /// A name or a table, if it is no range.
    pub(super) name: Option<String>,
}

/// What `sheet` and `range` mean together: `range` may name the sheet.
pub(super) fn wanted(sheet: Option<&str>, range: Option<&str>) -> Result<Wanted, XlsxError> {
    let sheet = sheet.map(str::trim).filter(|it| !it.is_empty());
    let Some(range) = range.map(str::trim).filter(|it| !it.is_empty()) else {
        return Ok(Wanted { sheet: sheet.map(str::to_owned), area: None, name: None });
    };
    let wrong = || XlsxError::Reference {
        text: shown(range),
        what: "range",
        example: "B2, A1:D20, A:C, 'My sheet'!A1:D20, or a name or table",
    };
    let (own, rest) = split_sheet(range).ok_or_else(wrong)?;
    let own = own.or_else(|| sheet.map(str::to_owned));
    match Area::parse(rest) {
        Some(area) => Ok(Wanted { sheet: own, area: Some(area), name: None }),
        None if rest.chars().all(|c| c.is_alphanumeric() || "._\\".contains(c)) => {
            Ok(Wanted { sheet: own, area: None, name: Some(rest.to_owned()) })
        }
        None => Err(wrong()),
    }
}

/// Reads the cells of a range, at most so many.
pub(super) fn read(
    bytes: Box<dyn Bytes>,
    wanted: &Wanted,
    most: u64,
    settings: &XlsxSettings,
) -> Result<Grid, XlsxError> {
    let mut package = Package::open(bytes, settings)?;
    let book = Book::read(&mut package, settings)?;
    let (sheet, area) = resolve(&mut package, &book, wanted, settings)?;
    let styles = Styles::read(&mut package, &book, settings)?;
    let mut raws = Vec::new();
    let mut masters: BTreeMap<u32, (Cell, String)> = BTreeMap::new();
    let mut used: Option<Area> = None;
    let mut cut_after = None;
    let limit = area.unwrap_or(Area {
        first: Cell { row: 1, column: 1 },
        last: Cell { row: LAST_ROW, column: LAST_COLUMN },
    });
    let stream = package.stream(&sheet.part)?;
    sheet::scan(stream, &sheet.part, settings, &mut |item| {
        let Item::Cell(raw) = item else { return Ok(ControlFlow::Continue(())) };
        let Some(at) = raw.at else { return Ok(ControlFlow::Continue(())) };
        if at.row > limit.last.row {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(formula) = &raw.formula
            && let (Sharing::Shared(number), false) = (formula.sharing, formula.text.is_empty())
        {
            masters.insert(number, (at, formula.text.clone()));
        }
        let is_empty = raw.value.is_none() && raw.formula.is_none();
        if is_empty || !limit.holds(at) {
            return Ok(ControlFlow::Continue(()));
        }
        if raws.len() as u64 >= most {
            cut_after = Some(at.row - 1);
            return Ok(ControlFlow::Break(()));
        }
        used = Some(grown(used, at));
        raws.push(raw.clone());
        Ok(ControlFlow::Continue(()))
    })?;
    let mut texts: BTreeMap<u32, String> = BTreeMap::new();
    for raw in raws.iter().filter(|it| it.kind == Kind::Shared) {
        let Some(value) = raw.value.as_deref() else { continue };
        let Ok(number) = value.trim().parse() else {
            let why = format!("'{}' is no number of a shared string", shown(value));
            return Err(XlsxError::malformed(&sheet.part, why));
        };
        texts.insert(number, String::new());
    }
    strings::some(&mut package, &book, settings, &mut texts)?;
    let mut cells = BTreeMap::new();
    for raw in raws {
        let Some(at) = raw.at else { continue };
        let text = match raw.kind {
            Kind::Shared => {
                let number = raw.value.as_deref().and_then(|it| it.trim().parse::<u32>().ok());
                number.and_then(|it| texts.get(&it)).map(String::as_str)
            }
            _ => None,
        };
        let value = Value::of(&raw, text, styles.meaning(raw.style), book.counts_from_1904);
        let formula = formula_of(&raw, at, &masters);
        cells.insert(at, Read { value, formula, style: raw.style });
    }
    if let (Some(cut), Some(used)) = (cut_after, used)
        && cut < used.first.row
    {
        let found = used.columns() + 1;
        return Err(XlsxError::limit("the cells of one row", found, "max_range_cells", most));
    }
    // Of whole columns and rows, what is used is meant.
    let meant = match area {
        Some(area) if area.rows() > 100_000 || area.columns() > 1000 => {
            used.and_then(|used| area.within(&used))
        }
        area => area.or(used),
    };
    let sheet = sheet.name.clone();
    Ok(Grid { sheet, area: meant, asked: area, cells, styles, cut_after })
}

/// The formula of a cell as people write it; of a shared one, moved to its cell.
pub(super) fn formula_of(
    raw: &Raw,
    at: Cell,
    masters: &BTreeMap<u32, (Cell, String)>,
) -> Option<String> {
    let formula = raw.formula.as_ref()?;
    let text = match (formula.sharing, formula.text.is_empty()) {
        (Sharing::Shared(number), true) => {
            let (from, text) = masters.get(&number)?;
            let rows = i64::from(at.row) - i64::from(from.row);
            let columns = i64::from(at.column) - i64::from(from.column);
            shifted(text, rows, columns)
        }
        _ => formula.text.clone(),
    };
    Some(written(&text))
}

/// The sheet and the area that are meant, by a name or a table too.
fn resolve<'b>(
    package: &mut Package,
    book: &'b Book,
    wanted: &Wanted,
    settings: &XlsxSettings,
) -> Result<(&'b Sheet, Option<Area>), XlsxError> {
    let Some(name) = &wanted.name else {
        return Ok((book.sheet(wanted.sheet.as_deref())?, wanted.area));
    };
    for sheet in &book.sheets {
        let related = super::tables::Related::read(package, sheet, settings)?;
        if let Some(table) = related.tables.iter().find(|it| it.name.eq_ignore_ascii_case(name)) {
            return Ok((sheet, Some(table.area)));
        }
    }
    let found = book.names.iter().find(|it| it.name.eq_ignore_ascii_case(name));
    let meant = found.and_then(|it| {
        let (sheet, rest) = split_sheet(it.refers_to.trim_start_matches('='))?;
        Some((sheet?, Area::parse(rest)?))
    });
    match meant {
        Some((sheet, area)) => Ok((book.sheet(Some(&sheet))?, Some(area))),
        None => Err(XlsxError::Reference {
            text: shown(name),
            what: "range, table or name of a range",
            example: "A1:D20",
        }),
    }
}

/// The cells for a model, and as data.
fn tell(grid: &Grid, show: Show, settings: &XlsxSettings) -> (String, Json) {
    let name = render::name(&grid.sheet);
    let Some(area) = grid.area else {
        let asked = grid.asked.map(|it| it.to_string());
        let data = json!({"sheet": capped(&grid.sheet), "range": null, "asked": asked, "rows": [],
            "formulas": {}, "truncated": false, "untrusted": true});
        let told = match asked {
            Some(asked) => format!("'{name}' {asked} is empty."),
            None => format!("The sheet '{name}' is empty."),
        };
        return (told, data);
    };
    let mut lines = vec![DATA_BEGINS.to_owned(), heading(area.first.column, area.last.column)];
    let mut bytes = lines[1].len();
    let (mut rows, mut formulas, mut formats) =
        (Vec::new(), serde_json::Map::new(), serde_json::Map::new());
    let last = grid.cut_after.map_or(area.last.row, |it| it.min(area.last.row));
    let mut shown_rows = 0;
    let (mut next, mut why) = (None, "max_range_cells");
    let mut cut_texts = None;
    for number in area.first.row..=last {
        let mut values = Vec::new();
        let mut texts = Vec::new();
        let mut own = Vec::new();
        for column in area.first.column..=area.last.column {
            let at = Cell { row: number, column };
            let Some(cell) = grid.cells.get(&at) else {
                values.push(Json::Null);
                texts.push(String::new());
                continue;
            };
            values.push(cell.value.json());
            let value = inline(&cell.value.text());
            texts.push(match (&cell.formula, show) {
                (Some(formula), Show::Both) => format!("{value} {{{}}}", inline(formula)),
                (Some(formula), Show::Formulas) => inline(formula),
                _ => value,
            });
            own.push((at, cell));
        }
        let mut line = row(number, &texts);
        let is_first = shown_rows == 0;
        if is_first && line.len() > settings.max_range_bytes {
            let share = settings.max_range_bytes / texts.len().max(1);
            for text in &mut texts {
                if let Some((end, _)) = text.char_indices().nth(share / 4) {
                    text.truncate(end);
                    text.push('…');
                }
            }
            line = row(number, &texts);
            cut_texts = Some(number);
        }
        let cells = area.columns() * (shown_rows + 1);
        let is_long = bytes + line.len() > settings.max_range_bytes;
        let is_wide = cells > settings.max_range_cells;
        if (is_long || is_wide) && !is_first {
            next = Some(number);
            why = if is_wide { "max_range_cells" } else { "max_range_bytes" };
            break;
        }
        bytes += line.len() + 1;
        lines.push(line);
        rows.push(Json::Array(values));
        shown_rows += 1;
        for (at, cell) in own {
            if let Some(formula) = &cell.formula {
                formulas.insert(at.to_string(), json!(formula));
            }
            if let Some(code) = grid.styles.code(cell.style) {
                formats.insert(at.to_string(), json!(code));
            }
        }
    }
    if next.is_none() && last < area.last.row {
        next = Some(last + 1);
    }
    lines.push(DATA_ENDS.to_owned());
    let shown_last = area.first.row + u32::try_from(shown_rows).unwrap_or(0).max(1) - 1;
    let shown_area = Area { last: Cell { row: shown_last, ..area.last }, ..area };
    if let Some(row) = cut_texts {
        lines.push(format!("[texts of row {row} are cut by `max_range_bytes`]"));
    }
    if let Some(next) = next {
        let (first, last) = (letters_of(area.first.column), area.last);
        lines.push(format!(
            "[rows {}-{shown_last} of {}-{}, cut by `{why}`; go on with {first}{next}:{last}]",
            area.first.row, area.first.row, area.last.row,
        ));
    }
    let heading = format!("'{name}' {shown_area}");
    let data = json!({
        "sheet": capped(&grid.sheet),
        "untrusted": true,
        "range": shown_area.to_string(),
        "asked": area.to_string(),
        "rows": rows,
        "formulas": formulas,
        "number_formats": formats,
        "truncated": next.is_some() || cut_texts.is_some(),
        "next_row": next,
    });
    (format!("{heading}\n{}", lines.join("\n")), data)
}
