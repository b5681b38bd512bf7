//! A sheet read as a stream: one cell after the other.

use std::io::Read;
use std::ops::ControlFlow;

use quick_xml::events::{BytesStart, Event};

use super::address::{Area, Cell};
use super::error::XlsxError;
use super::settings::XlsxSettings;
use super::xml::{Xml, attribute, is_on, push_text};

/// Something on a sheet.
#[derive(Debug)]
pub(super) enum Item<'a> {
    /// The area that the sheet says its cells are in.
    Dimension(&'a str),
    /// A row begins.
    Row { hidden: bool },
    /// A cell with something in it, or a style.
    Cell(&'a Raw),
    /// Columns that are hidden.
    HiddenColumns,
    /// Cells that are shown as one.
    Merge(Area),
    /// A rule for what may be put in: its cells.
    Validation,
    /// A rule for how cells look.
    Conditional,
    /// An element that stands for something else: `drawing`, `hyperlink`, `tablePart` …
    Other(&'a str),
    /// Where the panes are split.
    Frozen(&'a str),
}

/// What a cell holds, as the file says it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Raw {
    pub(super) at: Option<Cell>,
    pub(super) kind: Kind,
    pub(super) style: u32,
    /// The value, or the number of a shared string.
    pub(super) value: Option<String>,
    pub(super) formula: Option<Formula>,
    /// Whether it has metadata, as formulas have whose results spill.
    pub(super) has_metadata: bool,
    /// Whether it has two values or formulas, or a text that its kind does not have.
    pub(super) is_odd: bool,
}

impl Raw {
    /// Whether the file says a value. An empty text is one.
    pub(super) fn has_value(&self) -> bool {
        let is_text = matches!(self.kind, Kind::Text | Kind::Shared);
        self.value.as_ref().is_some_and(|it| is_text || !it.trim().is_empty())
    }
}

/// What kind of value a cell holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Number,
    Shared,
    Text,
    Boolean,
    Error,
    Date,
}

/// The formula of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Formula {
    pub(super) text: String,
    pub(super) sharing: Sharing,
    /// The cells of a shared formula or an array.
    pub(super) area: Option<Area>,
}

/// Whose formula it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The cell's own.
    #[default]
    Own,
    /// Written once, for several cells.
    Shared(u32),
    /// One for all cells of an array.
    Array,
    /// A table of what-if.
    DataTable,
}

/// What looks at a sheet.
pub(super) type Visit<'v> = dyn FnMut(Item<'_>) -> Result<ControlFlow<()>, XlsxError> + 'v;

/// Goes through a sheet until the visitor has enough.
pub(super) fn scan(
    stream: impl Read,
    part: &str,
    limits: &XlsxSettings,
    visit: &mut Visit<'_>,
) -> Result<(), XlsxError> {
    let mut xml = Xml::new(stream, part, limits);
    let mut at = Cell { row: 0, column: 0 };
    let mut cells = 0_u64;
    let mut raw = Raw::default();
    let mut text: Option<Inside> = None;
    let mut buffer = String::new();
    let mut is_in_cell = false;
    loop {
        let event = xml.next()?;
        let flow = match &event {
            Event::Start(it) | Event::Empty(it) => {
                let is_empty = matches!(event, Event::Empty(_));
                match it.local_name().as_ref() {
                    "row" => {
                        at.row = match attribute(it, "r") {
                            Some(row) => row.parse().unwrap_or(0),
                            None => at.row.saturating_add(1),
                        };
                        at.column = 0;
                        visit(Item::Row { hidden: is_on(it, "hidden") })?
                    }
                    "c" if !is_in_cell => {
                        begin(it, &mut raw, &mut at, part)?;
                        cells += 1;
                        if cells > limits.max_cells {
                            let (limit, most) = ("max_cells", limits.max_cells);
                            return Err(XlsxError::limit("its cells", cells, limit, most));
                        }
                        is_in_cell = !is_empty;
                        match is_empty {
                            true => visit(Item::Cell(&raw))?,
                            false => ControlFlow::Continue(()),
                        }
                    }
                    name @ ("v" | "t") if is_in_cell => {
                        raw.is_odd |= raw.value.is_some();
                        raw.is_odd |= name == "t" && raw.kind != Kind::Text;
                        text = (!is_empty).then_some(Inside::Value);
                        ControlFlow::Continue(())
                    }
                    // How a text is read aloud is not the text.
                    "rPh" if is_in_cell && !is_empty => {
                        text = Some(Inside::Aside);
                        ControlFlow::Continue(())
                    }
                    "f" if is_in_cell => {
                        raw.is_odd |= raw.formula.is_some();
                        raw.formula = Some(formula_of(it));
                        text = (!is_empty).then_some(Inside::Formula);
                        buffer.clear();
                        ControlFlow::Continue(())
                    }
                    _ if is_in_cell => ControlFlow::Continue(()),
                    name => element(name, it, visit)?,
                }
            }
            Event::End(it) => match (it.local_name().as_ref(), text) {
                ("c", _) => {
                    is_in_cell = false;
                    visit(Item::Cell(&raw))?
                }
                ("v" | "t", Some(Inside::Value)) => {
                    text = None;
                    raw.value.get_or_insert_default();
                    ControlFlow::Continue(())
                }
                ("rPh", _) => {
                    text = None;
                    ControlFlow::Continue(())
                }
                ("f", Some(Inside::Formula)) => {
                    text = None;
                    if let Some(formula) = &mut raw.formula {
                        formula.text = std::mem::take(&mut buffer);
                    }
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Continue(()),
            },
            Event::Eof => return Ok(()),
            other => {
                match text {
                    Some(Inside::Value) => {
                        push_text(raw.value.get_or_insert_default(), other, part, limits)?;
                    }
                    Some(Inside::Formula) => push_text(&mut buffer, other, part, limits)?,
                    Some(Inside::Aside) | None => {}
                }
                ControlFlow::Continue(())
            }
        };
        if flow.is_break() {
            return Ok(());
        }
    }
}

/// Which text is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Value,
    Formula,
    Aside,
}

fn begin(
    element: &BytesStart<'_>,
    raw: &mut Raw,
    at: &mut Cell,
    part: &str,
) -> Result<(), XlsxError> {
    at.column = at.column.saturating_add(1);
    if let Some(text) = attribute(element, "r") {
        let Some(cell) = Cell::parse(&text) else {
            return Err(XlsxError::malformed(part, format!("there is no cell {text}")));
        };
        *at = cell;
    }
    if Cell::new(at.row, at.column).is_none() {
        return Err(XlsxError::malformed(part, "a cell is outside of the sheet"));
    }
    let style = attribute(element, "s").and_then(|it| it.parse().ok()).unwrap_or(0);
    let kind = match attribute(element, "t").as_deref() {
        Some("s") => Kind::Shared,
        Some("str" | "inlineStr") => Kind::Text,
        Some("b") => Kind::Boolean,
        Some("e") => Kind::Error,
        Some("d") => Kind::Date,
        _ => Kind::Number,
    };
    let has_metadata = attribute(element, "cm").is_some();
    *raw = Raw { at: Some(*at), kind, style, has_metadata, ..Raw::default() };
    Ok(())
}

fn formula_of(element: &BytesStart<'_>) -> Formula {
    let sharing = match attribute(element, "t").as_deref() {
        Some("shared") => {
            let number = attribute(element, "si").and_then(|it| it.parse().ok());
            number.map_or(Sharing::Own, Sharing::Shared)
        }
        Some("array") => Sharing::Array,
        Some("dataTable") => Sharing::DataTable,
        _ => Sharing::Own,
    };
    let area = attribute(element, "ref").and_then(|it| Area::parse(&it));
    Formula { text: String::new(), sharing, area }
}

/// Everything beside the cells.
fn element(
    name: &str,
    element: &BytesStart<'_>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, XlsxError> {
    let text = |name| attribute(element, name).unwrap_or_default();
    match name {
        "dimension" => visit(Item::Dimension(&text("ref"))),
        "mergeCell" => match Area::parse(&text("ref")) {
            Some(area) => visit(Item::Merge(area)),
            None => Ok(ControlFlow::Continue(())),
        },
        "dataValidation" => visit(Item::Validation),
        "conditionalFormatting" => visit(Item::Conditional),
        "col" if is_on(element, "hidden") => visit(Item::HiddenColumns),
        "pane" if text("state").starts_with("frozen") => visit(Item::Frozen(&text("topLeftCell"))),
        "drawing" | "legacyDrawing" | "hyperlink" | "tablePart" | "sheetProtection"
        | "autoFilter" | "oleObject" | "control" | "picture" | "sparkline" => {
            visit(Item::Other(name))
        }
        _ => Ok(ControlFlow::Continue(())),
    }
}
