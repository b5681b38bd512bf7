//! What must be known of a sheet before it is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::super::address::{Area, Cell};
use super::super::error::XlsxError;
use super::super::inspect::grown;
use super::super::settings::XlsxSettings;
use super::super::sheet::{self, Item, Raw, Sharing};
use super::sheet_xml::SheetEdit;

/// What must be known of a sheet before it is changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The cells that hold something.
    pub(super) used: Option<Area>,
    /// All cells that are there, and the area that the sheet says they are in.
    pub(super) present: Option<Area>,
    pub(super) merges: Vec<Area>,
    /// Arrays and tables of what-if that fill more than one cell.
    pub(super) arrays: Vec<Area>,
    /// Shared formulas: their number, the cell with the text, the text.
    masters: BTreeMap<u32, (Cell, String)>,
    /// The cells that share a formula.
    sharing: BTreeMap<u32, Vec<Cell>>,
    /// Shared formulas whose text goes away, and the rows with the cells that need it.
    pub(super) broken: BTreeMap<u32, (Cell, String)>,
    pub(super) broken_rows: BTreeSet<u32>,
    /// The styles of columns: first, last, style.
    columns: Vec<(u32, u32, u32)>,
    pub(super) is_protected: bool,
}

impl Facts {
    pub(super) fn read(xml: &str, part: &str, limits: &XlsxSettings) -> Result<Self, XlsxError> {
        let mut facts = Self::default();
        sheet::scan(xml.as_bytes(), part, limits, &mut |item| {
            match item {
                Item::Cell(raw) => facts.cell(raw),
                Item::Dimension(text) => facts.present = Area::parse(text),
                Item::Merge(area) => facts.merges.push(area),
                Item::Other("sheetProtection") => facts.is_protected = true,
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        facts.columns = column_styles(xml, part, limits)?;
        Ok(facts)
    }

    fn cell(&mut self, raw: &Raw) {
        let Some(at) = raw.at else { return };
        self.present = Some(grown(self.present, at));
        if raw.value.is_some() || raw.formula.is_some() {
            self.used = Some(grown(self.used, at));
        }
        let Some(formula) = &raw.formula else { return };
        match (formula.sharing, formula.area) {
            (Sharing::Array | Sharing::DataTable, Some(area)) if area.cells() > 1 => {
                self.arrays.push(area);
            }
            (Sharing::Shared(number), _) => {
                if !formula.text.is_empty() {
                    self.masters.insert(number, (at, formula.text.clone()));
                }
                self.sharing.entry(number).or_default().push(at);
            }
            _ => {}
        }
    }

    /// Finds the shared formulas that lose their text by an edit.
    pub(super) fn find_broken(&mut self, edit: &SheetEdit) {
        let is_replaced =
            |at: &Cell| edit.cells.get(at).is_some_and(|change| change.content.is_some());
        for (number, (at, text)) in &self.masters {
            if !is_replaced(at) {
                continue;
            }
            self.broken.insert(*number, (*at, text.clone()));
            let others = self.sharing.get(number).into_iter().flatten();
            self.broken_rows.extend(others.filter(|it| !is_replaced(it)).map(|it| it.row));
        }
    }

    pub(super) fn column_style(&self, column: u32) -> u32 {
        let found = self.columns.iter().find(|(first, last, _)| (first..=last).contains(&&column));
        found.map_or(0, |(_, _, style)| *style)
    }
}

fn column_styles(
    xml: &str,
    part: &str,
    limits: &XlsxSettings,
) -> Result<Vec<(u32, u32, u32)>, XlsxError> {
    use quick_xml::events::Event;

    use super::super::xml::attribute;
    let mut styles = Vec::new();
    let mut pieces = super::super::splice::Pieces::of(xml, part, limits);
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) | Event::Empty(it) => match it.local_name().as_ref() {
                "col" => {
                    let number = |name| attribute(it, name).and_then(|it| it.parse().ok());
                    if let (Some(min), Some(max), Some(style)) =
                        (number("min"), number("max"), number("style"))
                    {
                        styles.push((min, max, style));
                    }
                }
                "sheetData" => break,
                _ => {}
            },
            _ => {}
        }
    }
    Ok(styles)
}

/// The cells of one row.
pub(super) fn row_of(
    xml: &str,
    part: &str,
    row: u32,
    limits: &XlsxSettings,
) -> Result<BTreeMap<u32, Raw>, XlsxError> {
    let mut cells = BTreeMap::new();
    let mut masters: BTreeMap<u32, (Cell, String)> = BTreeMap::new();
    sheet::scan(xml.as_bytes(), part, limits, &mut |item| {
        let Item::Cell(raw) = item else { return Ok(ControlFlow::Continue(())) };
        let Some(at) = raw.at else { return Ok(ControlFlow::Continue(())) };
        if at.row > row {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(formula) = &raw.formula
            && let (Sharing::Shared(number), false) = (formula.sharing, formula.text.is_empty())
        {
            masters.insert(number, (at, formula.text.clone()));
        }
        if at.row == row {
            let mut raw = raw.clone();
            let own = super::super::read_range::formula_of(&raw, at, &masters);
            if let (Some(formula), Some(own)) = (&mut raw.formula, own) {
                formula.text = own;
            }
            cells.insert(at.column, raw);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(cells)
}

/// The first cell of an area that holds something.
pub(super) fn first_in(
    xml: &str,
    part: &str,
    area: Area,
    limits: &XlsxSettings,
) -> Result<Option<Cell>, XlsxError> {
    let mut found = None;
    sheet::scan(xml.as_bytes(), part, limits, &mut |item| {
        let Item::Cell(raw) = item else { return Ok(ControlFlow::Continue(())) };
        let is_full = raw.value.is_some() || raw.formula.is_some();
        match raw.at {
            Some(at) if at.row > area.last.row => Ok(ControlFlow::Break(())),
            Some(at) if is_full && area.holds(at) => {
                found = Some(at);
                Ok(ControlFlow::Break(()))
            }
            _ => Ok(ControlFlow::Continue(())),
        }
    })?;
    Ok(found)
}
