//! Tables on sheets, and what else sheets lead to.

use quick_xml::events::Event;

use super::address::Area;
use super::book::{Sheet, relations};
use super::error::XlsxError;
use super::package::Package;
use super::settings::XlsxSettings;
use super::xml::{Xml, attribute};

/// A table on a sheet.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) part: String,
    pub(super) name: String,
    pub(super) area: Area,
    pub(super) has_header: bool,
    pub(super) has_totals: bool,
    pub(super) columns: Vec<Column>,
}

/// A column of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    pub(super) name: String,
    /// Whether a formula fills it.
    pub(super) is_calculated: bool,
}

/// What a sheet leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Related {
    pub(super) tables: Vec<Table>,
    /// The parts of charts.
    pub(super) charts: Vec<String>,
    pub(super) pivots: u64,
    pub(super) comments: u64,
    pub(super) pictures: u64,
}

impl Related {
    pub(super) fn read(
        package: &mut Package,
        sheet: &Sheet,
        limits: &XlsxSettings,
    ) -> Result<Self, XlsxError> {
        let mut related = Self::default();
        for relation in relations(package, &sheet.part, limits)? {
            match relation.kind.as_str() {
                "table" => related.tables.push(table(package, &relation.target, limits)?),
                "pivotTable" => related.pivots += 1,
                "comments" | "threadedComment" => related.comments += 1,
                "drawing" => {
                    for inner in relations(package, &relation.target, limits)? {
                        match inner.kind.as_str() {
                            "chart" | "chartEx" => related.charts.push(inner.target),
                            "image" => related.pictures += 1,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(related)
    }
}

fn table(package: &mut Package, part: &str, limits: &XlsxSettings) -> Result<Table, XlsxError> {
    let mut xml = Xml::new(package.stream(part)?, part, limits);
    let mut table: Option<Table> = None;
    loop {
        match xml.next()? {
            Event::Start(it) | Event::Empty(it) => match it.local_name().as_ref() {
                "table" => {
                    let area = attribute(&it, "ref").and_then(|it| Area::parse(&it));
                    let Some(area) = area else {
                        return Err(XlsxError::malformed(part, "the table has no range"));
                    };
                    let count = |name| attribute(&it, name).and_then(|it| it.parse::<u32>().ok());
                    let name = attribute(&it, "displayName").or_else(|| attribute(&it, "name"));
                    table = Some(Table {
                        part: part.to_owned(),
                        name: name.unwrap_or_default().into_owned(),
                        area,
                        has_header: count("headerRowCount") != Some(0),
                        has_totals: count("totalsRowCount").is_some_and(|it| it > 0),
                        columns: Vec::new(),
                    });
                }
                "tableColumn" => {
                    let name = attribute(&it, "name").unwrap_or_default().into_owned();
                    if let Some(table) = &mut table {
                        table.columns.push(Column { name, is_calculated: false });
                    }
                }
                "calculatedColumnFormula" => {
                    if let Some(column) = table.as_mut().and_then(|it| it.columns.last_mut()) {
                        column.is_calculated = true;
                    }
                }
                _ => {}
            },
            Event::Eof => {
                return table.ok_or_else(|| XlsxError::malformed(part, "it holds no table"));
            }
            _ => {}
        }
    }
}
