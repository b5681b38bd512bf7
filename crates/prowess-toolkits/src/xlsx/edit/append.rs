//! Rows that are added to a sheet or a table.

use std::collections::BTreeMap;

use super::super::address::{Area, Cell};
use super::super::book::Sheet;
use super::super::cells::{Content, Spec};
use super::super::error::{XlsxError, shown};
use super::super::formula::shifted;
use super::super::tables::Table;
use super::draft::{Draft, calculated_why, change_of, offset};
use super::facts::{first_in, row_of};
use super::sheet_xml::Change;
use super::workbook_xml as workbook;

impl Draft<'_> {
    /// Adds rows below the last one. They look like it.
    pub(super) fn append(
        &mut self,
        sheet: &Sheet,
        rows: &[Vec<Spec>],
        at: &str,
    ) -> Result<(), XlsxError> {
        let used = self.used(sheet)?;
        let start = Cell {
            row: used.map_or(1, |it| it.last.row + 1),
            column: used.map_or(1, |it| it.first.column),
        };
        let below =
            self.related(sheet)?.tables.iter().find(|it| {
                it.area.last.row + 1 == start.row && it.area.first.column == start.column
            });
        if let Some(table) = below {
            let note = format!(
                "the rows are below the table {0}, which did not grow; table: {0} makes it grow",
                shown(&table.name)
            );
            self.notes.push(note);
        }
        let looks = match used.filter(|it| it.rows() > 1) {
            Some(used) => self.row(sheet, used.last.row)?,
            None => BTreeMap::new(),
        };
        for (row, cells) in rows.iter().enumerate() {
            for (column, spec) in cells.iter().enumerate() {
                let cell = offset(start, row, column, at)?;
                let mut change = change_of(spec);
                change.base_style = looks.get(&cell.column).map(|it| it.style);
                self.change(sheet, cell, change, at)?;
            }
        }
        Ok(())
    }

    /// The cells of a row as the file has them.
    fn row(
        &mut self,
        sheet: &Sheet,
        row: u32,
    ) -> Result<BTreeMap<u32, super::super::sheet::Raw>, XlsxError> {
        let xml = self.text(&sheet.part)?;
        row_of(&xml, &sheet.part, row, self.settings)
    }

    /// Adds rows to a table, which grows. Columns that a formula fills are filled.
    pub(super) fn append_to_table(
        &mut self,
        name: &str,
        rows: &[Vec<Spec>],
        at: &str,
    ) -> Result<(), XlsxError> {
        let (sheet, table) = self.find_table(name, at)?;
        self.flush(&sheet.part)?;
        let refused =
            |reason, why: String| Err(XlsxError::Refused { at: at.to_owned(), reason, why });
        if table.has_totals {
            let why = format!("the table {} has totals below its rows", shown(&table.name));
            return refused("table_totals", why);
        }
        let columns = usize::try_from(table.area.columns()).unwrap_or(usize::MAX);
        if let Some(row) = rows.iter().find(|it| it.len() > columns) {
            let why = format!("a row has {} cells, the table {columns} columns", row.len());
            return Err(XlsxError::invalid(at, why));
        }
        let first = Cell { row: table.area.last.row + 1, ..table.area.first };
        let last = offset(first, rows.len() - 1, columns - 1, at)?;
        let new = Area::between(first, last);
        // What is below would be swallowed.
        let xml = self.text(&sheet.part)?;
        if let Some(cell) = first_in(&xml, &sheet.part, new, self.settings)? {
            return refused("cells_below_table", format!("{cell} below the table is not empty"));
        }
        let above = self.row(&sheet, table.area.last.row)?;
        for (row, cells) in rows.iter().enumerate() {
            for column in 0..columns {
                let cell = offset(first, row, column, at)?;
                let raw = above.get(&cell.column);
                let mut change = match cells.get(column) {
                    Some(spec) => change_of(spec),
                    None => Change { content: Some(Content::Empty), ..Change::default() },
                };
                let own = table.columns.get(column).filter(|it| it.is_calculated);
                let is_calculated = own.is_some();
                if let (Some(own), false) = (own, change.content == Some(Content::Empty)) {
                    let why = calculated_why(&table.name, &own.name);
                    return refused("calculated_column", why);
                }
                let formula = raw.and_then(|it| it.formula.as_ref());
                if let (Some(Content::Empty), Some(formula), true) =
                    (&change.content, formula, is_calculated)
                {
                    let rows = i64::from(cell.row) - i64::from(table.area.last.row);
                    let text = shifted(formula.text.trim_start_matches('='), rows, 0);
                    change.content = Some(Content::Formula(format!("={text}")));
                }
                change.base_style = raw.map(|it| it.style);
                self.change(&sheet, cell, change, at)?;
            }
        }
        let area = Area { first: table.area.first, last };
        let xml = self.text(&table.part)?;
        let text = area.to_string();
        let grown = workbook::with_table_area(&xml, &table.part, &text, self.settings)?;
        self.put(&table.part, grown);
        if let Some(related) = self.related.get_mut(&sheet.part) {
            for known in related.tables.iter_mut().filter(|it| it.part == table.part) {
                known.area = area;
            }
        }
        self.flush(&sheet.part)
    }

    fn find_table(&mut self, name: &str, at: &str) -> Result<(Sheet, Table), XlsxError> {
        for sheet in self.book.sheets.clone() {
            let tables = &self.related(&sheet)?.tables;
            if let Some(table) = tables.iter().find(|it| it.name.eq_ignore_ascii_case(name)) {
                let table = table.clone();
                return Ok((sheet, table));
            }
        }
        Err(XlsxError::invalid(at, format!("there is no table '{}'", shown(name))))
    }
}
