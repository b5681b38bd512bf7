//! A workbook while it is changed.

use std::collections::BTreeMap;

use super::super::address::{Area, Cell, LAST_COLUMN, LAST_ROW};
use super::super::book::{Book, Sheet, relations_part};
use super::super::cells::{Content, Left, Spec};
use super::super::error::{XlsxError, shown};
use super::super::formula::spilling;
use super::super::inspect::grown;
use super::super::package::{Changes, Package, text_of};
use super::super::settings::XlsxSettings;
use super::super::tables::{Column, Related, Table};
use super::super::value::serial;
use super::super::xml::attribute;
use super::facts::Facts;
use super::operation::{Operation, What};
use super::sheet_xml::{Change, SheetEdit, patch};
use super::style_xml::StyleBook;
use super::workbook_xml as workbook;

pub(super) const TYPES: &str = "[Content_Types].xml";

/// A workbook while it is changed.
pub(super) struct Draft<'s> {
    pub(super) package: Package,
    pub(super) book: Book,
    pub(super) settings: &'s XlsxSettings,
    styles: StyleBook,
    /// The parts that are other than before.
    pub(super) changes: Changes,
    /// By the part of a sheet, what is to be changed on it.
    edits: BTreeMap<String, SheetEdit>,
    /// What is known of sheets, as far as they were not changed since.
    pub(super) facts: BTreeMap<String, Facts>,
    pub(super) related: BTreeMap<String, Related>,
    pub(super) notes: Vec<String>,
    are_formulas_changed: bool,
}

impl<'s> Draft<'s> {
    pub(super) fn new(mut package: Package, settings: &'s XlsxSettings) -> Result<Self, XlsxError> {
        let book = Book::read(&mut package, settings)?;
        if book.is_signed {
            return Err(XlsxError::Refused {
                at: "workbook".to_owned(),
                reason: "signed",
                why: "it is signed, and an edit would break the signature".to_owned(),
            });
        }
        let styles = StyleBook::read(&mut package, &book, settings)?;
        Ok(Self {
            package,
            book,
            settings,
            styles,
            changes: Changes::new(),
            edits: BTreeMap::new(),
            facts: BTreeMap::new(),
            related: BTreeMap::new(),
            notes: Vec::new(),
            are_formulas_changed: false,
        })
    }

    /// A part as it is now.
    pub(super) fn text(&mut self, part: &str) -> Result<String, XlsxError> {
        match self.changes.get(part) {
            Some(Some(bytes)) => text_of(bytes.clone(), part),
            _ => self.package.text(part, self.settings),
        }
    }

    pub(super) fn put(&mut self, part: &str, text: String) {
        self.changes.insert(part.to_owned(), Some(text.into_bytes()));
    }

    fn facts(&mut self, part: &str) -> Result<&Facts, XlsxError> {
        if !self.facts.contains_key(part) {
            let xml = self.text(part)?;
            let facts = Facts::read(&xml, part, self.settings)?;
            self.facts.insert(part.to_owned(), facts);
        }
        self.facts.get(part).ok_or_else(|| XlsxError::malformed(part, "it is missing"))
    }

    pub(super) fn related(&mut self, sheet: &Sheet) -> Result<&Related, XlsxError> {
        if !self.related.contains_key(&sheet.part) {
            let related = match self.package.has(&sheet.part) {
                true => Related::read(&mut self.package, sheet, self.settings)?,
                false => Related::default(),
            };
            self.related.insert(sheet.part.clone(), related);
        }
        let missing = || XlsxError::malformed(&sheet.part, "it is missing");
        self.related.get(&sheet.part).ok_or_else(missing)
    }

    pub(super) fn apply(
        &mut self,
        operation: &Operation,
        left: &mut Left,
    ) -> Result<(), XlsxError> {
        let at = operation.at.as_str();
        match &operation.what {
            What::Set { sheet, start, rows } => {
                let sheet = self.book.sheet(sheet.as_deref())?.clone();
                self.set(&sheet, *start, rows, at)
            }
            What::Clear { sheet, area } => {
                let sheet = self.book.sheet(sheet.as_deref())?.clone();
                let Some(area) = self.used(&sheet)?.and_then(|used| area.within(&used)) else {
                    return Ok(());
                };
                left.take(area.cells())?;
                for cell in cells(area) {
                    let change = Change { content: Some(Content::Empty), ..Change::default() };
                    self.change(&sheet, cell, change, at)?;
                }
                Ok(())
            }
            What::Format { sheet, area, format, bold } => {
                let sheet = self.book.sheet(sheet.as_deref())?.clone();
                // Of whole columns and rows, what is used is meant.
                let is_whole =
                    area.rows() == u64::from(LAST_ROW) || area.columns() == u64::from(LAST_COLUMN);
                let used = self.used(&sheet)?;
                let area = match is_whole {
                    true => used.and_then(|used| area.within(&used)),
                    false => Some(*area),
                };
                let Some(area) = area else { return Ok(()) };
                left.take(area.cells())?;
                for cell in cells(area) {
                    let change =
                        Change { format: format.clone(), bold: *bold, ..Change::default() };
                    self.look(&sheet, cell, change);
                }
                Ok(())
            }
            What::Append { sheet, table, rows } => match table {
                Some(table) => self.append_to_table(table, rows, at),
                None => {
                    let sheet = self.book.sheet(sheet.as_deref())?.clone();
                    self.append(&sheet, rows, at)
                }
            },
            What::AddSheet { name, rows } => self.add_sheet(name, rows, at),
            What::RenameSheet { sheet, name } => self.rename(sheet, name, at),
            What::Width { sheet, first, last, width } => {
                let part = self.book.sheet(sheet.as_deref())?.part.clone();
                self.edits.entry(part).or_default().widths.push((*first, *last, *width));
                Ok(())
            }
            What::Name { name, refers_to } => {
                let part = self.book.part.clone();
                let xml = self.text(&part)?;
                let changed = workbook::with_name(&xml, &part, name, refers_to, self.settings)?;
                self.put(&part, changed);
                Ok(())
            }
        }
    }

    /// The cells of a sheet that hold something, with those that are to.
    pub(super) fn used(&mut self, sheet: &Sheet) -> Result<Option<Area>, XlsxError> {
        let used = self.facts(&sheet.part)?.used;
        let edit = self.edits.get(&sheet.part);
        let new = edit
            .into_iter()
            .flat_map(|it| &it.cells)
            .filter(|(_, change)| change.content.as_ref().is_some_and(|it| *it != Content::Empty));
        Ok(new.fold(used, |used, (cell, _)| Some(grown(used, *cell))))
    }

    pub(super) fn set(
        &mut self,
        sheet: &Sheet,
        start: Cell,
        rows: &[Vec<Spec>],
        at: &str,
    ) -> Result<(), XlsxError> {
        for (row, cells) in rows.iter().enumerate() {
            for (column, spec) in cells.iter().enumerate() {
                let cell = offset(start, row, column, at)?;
                self.change(sheet, cell, change_of(spec), at)?;
            }
        }
        Ok(())
    }

    /// Changes what a cell holds, if nothing is in the way.
    pub(super) fn change(
        &mut self,
        sheet: &Sheet,
        cell: Cell,
        change: Change,
        at: &str,
    ) -> Result<(), XlsxError> {
        let refused = |reason, why: String| {
            let at = format!("{at}, {}!{cell}", shown(&sheet.name));
            Err(XlsxError::Refused { at, reason, why })
        };
        if let Some(Content::Formula(text)) = &change.content
            && let Some(name) = spilling(text)
        {
            let why = format!(
                "{name} fills more cells than its own; make a new workbook with xlsx_create"
            );
            return refused("spilling_formula", why);
        }
        if let Some(Content::Date { text, .. }) = &change.content
            && serial(text, self.book.counts_from_1904).is_none()
        {
            let why = "this workbook counts its days from 1904 and has no earlier ones".to_owned();
            return refused("date_before_1904", why);
        }
        let facts = self.facts(&sheet.part)?;
        let merge = facts.merges.iter().find(|it| it.holds(cell) && it.first != cell);
        if let Some(merge) = merge {
            let why = format!("it is inside of the merged cells {merge}; set {}", merge.first);
            return refused("merged_cells", why);
        }
        if let Some(array) = facts.arrays.iter().find(|it| it.holds(cell)) {
            let why = format!("it belongs to the array formula of {array}");
            return refused("array_formula", why);
        }
        let tables = &self.related(sheet)?.tables;
        let header = tables.iter().find(|it| it.has_header && in_row(it, cell, it.area.first.row));
        if let Some(table) = header {
            let why = format!("it names a column of the table {}", shown(&table.name));
            return refused("table_header", why);
        }
        let totals = tables.iter().find(|it| it.has_totals && in_row(it, cell, it.area.last.row));
        if let Some(table) = totals {
            let why = format!("it is in the totals of the table {}", shown(&table.name));
            return refused("table_totals", why);
        }
        let is_filled = change.content.as_ref().is_some_and(|it| *it != Content::Empty);
        if let Some((table, column)) = calculated(tables, cell).filter(|_| is_filled) {
            let why = calculated_why(&table.name, &column.name);
            return refused("calculated_column", why);
        }
        let edit = self.edits.entry(sheet.part.clone()).or_default();
        let known = edit.cells.entry(cell).or_default();
        known.content = change.content;
        if change.format.is_some() {
            known.format = change.format;
        }
        known.bold |= change.bold;
        known.base_style = change.base_style.or(known.base_style);
        Ok(())
    }

    /// Changes how a cell looks.
    fn look(&mut self, sheet: &Sheet, cell: Cell, change: Change) {
        let edit = self.edits.entry(sheet.part.clone()).or_default();
        let known = edit.cells.entry(cell).or_default();
        known.format = change.format.or_else(|| known.format.take());
        known.bold |= change.bold;
    }

    /// Writes what is to be changed on a sheet.
    pub(super) fn flush(&mut self, part: &str) -> Result<(), XlsxError> {
        let Some(edit) = self.edits.remove(part) else { return Ok(()) };
        let xml = self.text(part)?;
        let mut facts = match self.facts.remove(part) {
            Some(facts) => facts,
            None => Facts::read(&xml, part, self.settings)?,
        };
        facts.find_broken(&edit);
        if facts.is_protected {
            let note = "the sheet is protected; its protection was kept";
            if !self.notes.iter().any(|it| it == note) {
                self.notes.push(note.to_owned());
            }
        }
        let from_1904 = self.book.counts_from_1904;
        let patched = patch(&xml, part, &edit, &facts, &mut self.styles, from_1904, self.settings)?;
        self.are_formulas_changed |= patched.are_formulas_changed || !facts.broken.is_empty();
        self.put(part, patched.xml);
        Ok(())
    }

    pub(super) fn flush_all(&mut self) -> Result<(), XlsxError> {
        let parts: Vec<String> = self.edits.keys().cloned().collect();
        parts.iter().try_for_each(|part| self.flush(part))
    }

    /// The chain says in which order formulas were calculated. If there are others now, it goes,
    /// and Excel makes a new one.
    fn drop_chain(&mut self) -> Result<(), XlsxError> {
        let Some(chain) = self.book.calc_chain.take() else { return Ok(()) };
        if !self.are_formulas_changed || !self.package.has(&chain) {
            self.book.calc_chain = Some(chain);
            return Ok(());
        }
        let absolute = format!("/{chain}");
        let xml = self.text(TYPES)?;
        let is_type = |it: &quick_xml::events::BytesStart<'_>| {
            attribute(it, "PartName").as_deref() == Some(absolute.as_str())
        };
        if let Some(changed) = workbook::without(&xml, TYPES, self.settings, &is_type)? {
            self.put(TYPES, changed);
        }
        let relations = relations_part(&self.book.part);
        let xml = self.text(&relations)?;
        let is_relation = |it: &quick_xml::events::BytesStart<'_>| {
            attribute(it, "Type").is_some_and(|it| it.ends_with("/calcChain"))
        };
        if let Some(changed) = workbook::without(&xml, &relations, self.settings, &is_relation)? {
            self.put(&relations, changed);
        }
        self.changes.insert(chain, None);
        Ok(())
    }

    /// The workbook as it is now.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, XlsxError> {
        self.flush_all()?;
        self.drop_chain()?;
        if let Some((part, xml)) = self.styles.changed() {
            self.put(&part, xml);
        }
        self.package.write(&self.changes)
    }

    pub(super) fn calculate_on_load(&mut self) -> Result<(), XlsxError> {
        let part = self.book.part.clone();
        let xml = self.text(&part)?;
        let changed = workbook::calculated_on_load(&xml, &part, self.settings)?;
        self.put(&part, changed);
        Ok(())
    }
}

pub(super) fn change_of(spec: &Spec) -> Change {
    Change {
        content: Some(spec.content.clone()),
        format: spec.format.clone(),
        bold: spec.bold,
        base_style: None,
    }
}

/// The table and the column that a cell is in, if a formula fills the column.
fn calculated(tables: &[Table], cell: Cell) -> Option<(&Table, &Column)> {
    let table = tables.iter().find(|it| it.area.holds(cell))?;
    let column = usize::try_from(cell.column - table.area.first.column).ok()?;
    table.columns.get(column).filter(|it| it.is_calculated).map(|it| (table, it))
}

/// Why nothing else is put into such a column.
pub(super) fn calculated_why(table: &str, column: &str) -> String {
    format!(
        "a formula fills the column '{}' of the table {}; leave the cell out or give null",
        shown(column),
        shown(table)
    )
}

fn in_row(table: &Table, cell: Cell, row: u32) -> bool {
    cell.row == row && table.area.holds(cell)
}

fn cells(area: Area) -> impl Iterator<Item = Cell> {
    let columns = area.first.column..=area.last.column;
    (area.first.row..=area.last.row)
        .flat_map(move |row| columns.clone().map(move |column| Cell { row, column }))
}

/// The cell so many rows and columns further.
pub(super) fn offset(start: Cell, row: usize, column: usize, at: &str) -> Result<Cell, XlsxError> {
    let add = |from: u32, by: usize| u32::try_from(by).ok().and_then(|by| from.checked_add(by));
    let cell = add(start.row, row).zip(add(start.column, column));
    let cell = cell.and_then(|(row, column)| Cell::new(row, column));
    cell.ok_or_else(|| XlsxError::invalid(at, format!("a sheet has {LAST_ROW} rows and XFD")))
}
