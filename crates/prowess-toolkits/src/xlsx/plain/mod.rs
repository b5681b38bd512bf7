//! Formulas over numbers alone, calculated here.
//!
//! Most workbooks that are made by programs hold nothing else: products, sums, conditions. They
//! need no engine, and are calculated several times as fast without one. Whatever is not plain (a
//! function that is not known here, a text that is calculated with, a division by zero, a circle,
//! a part that is not known) is left to the engine, with the whole workbook: what is calculated
//! here is what the engine would give.

mod calculate;
mod compile;
mod grid;
mod program;
mod round;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::time::Duration;

use super::address::Cell;
use super::book::{Book, SheetKind};
use super::edit::with_dimension;
use super::given::{Shape, right_area};
use super::package::{Changes, Package};
use super::settings::XlsxSettings;
use super::sheet::{Formula, Kind, Raw, Sharing};
use compile::Compiler;
use grid::{Grid, Place, Slot};
use program::Program;

/// The parts of a workbook that nothing follows from for its formulas.
const PARTS: [&str; 14] = [
    "[Content_Types].xml",
    "_rels/",
    "docProps/",
    "xl/_rels/",
    "xl/calcChain.xml",
    "xl/charts/",
    "xl/drawings/",
    "xl/media/",
    "xl/printerSettings/",
    "xl/sharedStrings.xml",
    "xl/styles.xml",
    "xl/theme/",
    "xl/workbook.xml",
    "xl/worksheets/",
];
/// Settings of a workbook that change what its formulas give.
const CALCULATING_OTHERWISE: [&str; 2] = ["fullPrecision", "iterate"];

/// How many sheets there may be. Each reference to another one looks for it.
const MOST_SHEETS: usize = 256;
/// How many steps formulas may have. Those that are shared have as many in each of their cells.
const MOST_STEPS: usize = 1 << 24;

/// A workbook whose formulas are plain, as far as it was looked at.
pub(super) struct Plain {
    names: Vec<Option<String>>,
    grid: Grid,
    program: Program,
    /// Formulas that others share, by their sheet and number.
    shared: BTreeMap<(usize, u32), (Cell, String)>,
}

/// What came of it.
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) changed_cells: u64,
}

impl Plain {
    /// Begins with a workbook; none if there is something in it that the engine has to look at.
    pub(super) fn begin(
        package: &mut Package,
        book: &Book,
        settings: &XlsxSettings,
    ) -> Option<Self> {
        let is_known = |name: &str| {
            PARTS.iter().any(|it| name == *it || (it.ends_with('/') && name.starts_with(it)))
        };
        let is_small = |bytes: u64| bytes <= settings.max_edited_bytes;
        if book.sheets.len() > MOST_SHEETS {
            return None;
        }
        if !package.parts().all(|(name, part)| is_known(name) && is_small(part.bytes)) {
            return None;
        }
        let workbook = package.text(&book.part, settings).ok()?;
        if CALCULATING_OTHERWISE.iter().any(|it| workbook.contains(it)) {
            return None;
        }
        let names = book.sheets.iter();
        let names = names.map(|it| (it.kind == SheetKind::Cells).then(|| it.name.clone()));
        Some(Self {
            names: names.collect(),
            grid: Grid::new(book.sheets.len(), settings.max_recalc_cells),
            program: Program::new(MOST_STEPS),
            shared: BTreeMap::new(),
        })
    }

    /// Takes a cell; none if it is not plain.
    pub(super) fn take(&mut self, sheet: usize, raw: &Raw) -> Option<()> {
        let at = raw.at.filter(|_| !raw.is_odd)?;
        let place = Place::of(sheet, at)?;
        if let Some(formula) = &raw.formula {
            let number = self.program.begin(place)?;
            self.compile(sheet, at, raw, formula)?;
            return self.grid.put(place, Slot::Waiting, f64::from(number));
        }
        match raw.kind {
            Kind::Number => match raw.value.as_deref().map(str::trim) {
                None | Some("") => Some(()),
                Some(text) => {
                    let number = text.parse().ok().filter(|it: &f64| it.is_finite())?;
                    self.grid.put(place, Slot::Number, number)
                }
            },
            Kind::Shared | Kind::Text | Kind::Boolean => self.grid.put(place, Slot::Other, 0.0),
            Kind::Error | Kind::Date => None,
        }
    }

    fn compile(&mut self, sheet: usize, at: Cell, raw: &Raw, formula: &Formula) -> Option<()> {
        if raw.has_metadata {
            return None;
        }
        let own = formula.text.as_str();
        let (names, program) = (&self.names, &mut self.program);
        match formula.sharing {
            Sharing::Own => Compiler::new(names, sheet, program).compile(own),
            Sharing::Shared(number) if !own.is_empty() => {
                let before = self.shared.insert((sheet, number), (at, own.to_owned()));
                // Whose it is has to be clear.
                let is_clear = before.is_none() && formula.area.is_some();
                is_clear.then(|| Compiler::new(names, sheet, program).compile(own))?
            }
            Sharing::Shared(number) => {
                let (from, text) = self.shared.get(&(sheet, number))?;
                Compiler::new(names, sheet, program).moved(*from, at).compile(text)
            }
            Sharing::Array | Sharing::DataTable => None,
        }
    }

    /// Calculates all formulas; none if the engine has to, or if it takes longer than this.
    pub(super) fn calculate(&mut self, most: Duration) -> Option<()> {
        calculate::calculate(&mut self.grid, &self.program, most)
    }

    /// The workbook with the values that were calculated; none if the engine has to write it.
    pub(super) fn write(
        &self,
        package: &mut Package,
        book: &Book,
        shapes: &BTreeMap<String, Shape>,
        original: &[u8],
        settings: &XlsxSettings,
    ) -> Option<Written> {
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); book.sheets.len()];
        for place in self.program.places() {
            values[place.sheet()].push(self.grid.number(place));
        }
        let (mut changes, mut changed_cells) = (Changes::new(), 0);
        for (sheet, values) in book.sheets.iter().zip(&values).filter(|it| !it.1.is_empty()) {
            let xml = package.text(&sheet.part, settings).ok()?;
            let new = write::with_values(&xml, &sheet.part, values, settings).ok()??;
            if new.changed_cells == 0 {
                continue;
            }
            changed_cells += new.changed_cells;
            let shape = shapes.get(&sheet.part)?;
            let xml = match right_area(package, sheet, shape, settings).ok()? {
                Some(area) => with_dimension(&new.xml, &sheet.part, area, settings).ok()?,
                None => new.xml,
            };
            changes.insert(sheet.part.clone(), Some(xml.into_bytes()));
        }
        let bytes = match changes.is_empty() {
            true => original.to_vec(),
            false => package.write(&changes).ok()?,
        };
        let is_small = bytes.len() as u64 <= settings.max_file_bytes;
        is_small.then_some(Written { bytes, changed_cells })
    }

    /// The sum of all numbers.
    pub(super) fn sum(&self) -> f64 {
        self.grid.numbers().sum()
    }

    pub(super) fn formulas(&self) -> u64 {
        u64::from(self.program.len())
    }
}
