//! Sheets that are added or called otherwise.

use quick_xml::events::Event;

use super::super::address::{Cell, quoted_sheet, split_sheet};
use super::super::book::{Sheet, SheetKind, State, relations_part, same_name};
use super::super::cells::Spec;
use super::super::error::{XlsxError, shown};
use super::super::splice::Pieces;
use super::super::xml::attribute;
use super::draft::{Draft, TYPES};
use super::workbook_xml as workbook;

impl Draft<'_> {
    pub(super) fn add_sheet(
        &mut self,
        name: &str,
        rows: &[Vec<Spec>],
        at: &str,
    ) -> Result<(), XlsxError> {
        self.check_new_name(name, at)?;
        let mut number = self.book.sheets.len() + 1;
        let part_of = |number: usize| format!("xl/worksheets/sheet{number}.xml");
        while self.package.has(&part_of(number)) || self.changes.contains_key(&part_of(number)) {
            number += 1;
        }
        let part = part_of(number);
        let main = self.book.part.clone();
        let relations = relations_part(&main);
        let text = self.text(&relations)?;
        let (text, id) = workbook::with_relation(&text, &relations, &part, self.settings)?;
        self.put(&relations, text);
        let text = self.text(&main)?;
        let text = workbook::with_sheet(&text, &main, name, &id, self.settings)?;
        self.put(&main, text);
        let text = self.text(TYPES)?;
        let text = workbook::with_type(&text, TYPES, &part, self.settings)?;
        self.put(TYPES, text);
        self.put(&part, workbook::EMPTY_SHEET.to_owned());
        let (state, kind) = (State::Visible, SheetKind::Cells);
        let sheet = Sheet { name: name.to_owned(), part, state, kind };
        self.book.sheets.push(sheet.clone());
        self.set(&sheet, Cell { row: 1, column: 1 }, rows, at)
    }

    fn check_new_name(&self, name: &str, at: &str) -> Result<(), XlsxError> {
        match self.book.sheets.iter().any(|it| same_name(&it.name, name)) {
            true => {
                let why = format!("there is a sheet '{}' already", shown(name));
                Err(XlsxError::invalid(at, why))
            }
            false => Ok(()),
        }
    }

    /// Calls a sheet otherwise, in all formulas too.
    pub(super) fn rename(&mut self, old: &str, new: &str, at: &str) -> Result<(), XlsxError> {
        let old = match self.book.sheets.iter().find(|it| same_name(&it.name, old)) {
            Some(sheet) => sheet.name.clone(),
            None => self.book.sheet(Some(old))?.name.clone(),
        };
        if !same_name(&old, new) {
            self.check_new_name(new, at)?;
        }
        self.refuse_pivots(&old, at)?;
        self.flush_all()?;
        let names: Vec<String> = self.package.parts().map(|(name, _)| name.to_owned()).collect();
        let new_parts = self.changes.keys().filter(|it| !names.contains(it)).cloned();
        let parts: Vec<String> = names.iter().cloned().chain(new_parts).collect();
        for part in parts.iter().filter(|it| !it.contains("/_rels/")) {
            let is_in = |folders: &[&str]| folders.iter().any(|it| part.starts_with(it));
            if part.ends_with(".vml") && is_in(&["xl/drawings/"]) {
                self.refuse_drawing(part, &old, at)?;
            }
            let has_formulas = *part == self.book.part
                || is_in(&["xl/worksheets/", "xl/charts/", "xl/tables/", "xl/chartsheets/"]);
            let has_links = is_in(&["xl/drawings/", "xl/ctrlProps/"]);
            if !(has_formulas || has_links) || !part.ends_with(".xml") {
                continue;
            }
            let xml = self.text(part)?;
            self.refuse_named(&xml, part, &old, at)?;
            if !has_formulas {
                continue;
            }
            let renamed =
                workbook::with_sheet_in_formulas(&xml, part, &old, new, at, self.settings)?;
            if let Some(renamed) = renamed {
                self.put(part, renamed);
            }
        }
        let main = self.book.part.clone();
        let xml = self.text(&main)?;
        let renamed = workbook::with_sheet_name(&xml, &main, &old, new, self.settings)?;
        self.put(&main, renamed);
        for sheet in self.book.sheets.iter_mut().filter(|it| it.name == old) {
            new.clone_into(&mut sheet.name);
        }
        self.facts.clear();
        Ok(())
    }

    /// Pivot tables name sheets outside of formulas.
    fn refuse_pivots(&mut self, old: &str, at: &str) -> Result<(), XlsxError> {
        for part in self.book.pivots.clone() {
            let xml = self.text(&part)?;
            self.refuse_named(&xml, &part, old, at)?;
        }
        Ok(())
    }

    /// Links, shapes and controls name sheets outside of formulas.
    fn refuse_named(&self, xml: &str, part: &str, old: &str, at: &str) -> Result<(), XlsxError> {
        let mut pieces = Pieces::of(xml, part, self.settings);
        while let Some(piece) = pieces.next()? {
            let (Event::Start(it) | Event::Empty(it)) = &piece.event else { continue };
            let name = it.local_name().as_ref().to_owned();
            for (element, key, reason) in NAMING {
                if element.is_some_and(|it| it != name) {
                    continue;
                }
                let Some(value) = attribute(it, key) else { continue };
                let value = value.trim_start_matches('=');
                let named = split_sheet(value).and_then(|(sheet, _)| sheet);
                let is_whole = element.is_some() && same_name(value, old);
                if is_whole || named.is_some_and(|it| same_name(&it, old)) {
                    return Err(still_named(&format!("a {name}"), part, old, at, reason));
                }
            }
        }
        Ok(())
    }

    /// Drawings of an older kind are no XML that can be relied on: what they say of links is
    /// looked at as text.
    fn refuse_drawing(&mut self, part: &str, old: &str, at: &str) -> Result<(), XlsxError> {
        let bytes = self.package.read(part, self.settings)?;
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let names = [old.to_lowercase(), super::super::xml::escaped(&quoted_sheet(old))];
        let is_meant = text.split("<x:fmla").skip(1).any(|it| {
            let inside = it.split("</").next().unwrap_or_default();
            names.iter().any(|name| inside.contains(&name.to_lowercase()))
        });
        match is_meant {
            true => Err(still_named("a control", part, old, at, "control_link")),
            false => Ok(()),
        }
    }
}

/// What names sheets outside of formulas: the element if it matters, the attribute, the reason.
const NAMING: [(Option<&str>, &str, &str); 11] = [
    (Some("worksheetSource"), "sheet", "pivot_table"),
    (Some("dataRef"), "sheet", "consolidation"),
    (Some("hyperlink"), "location", "hyperlink"),
    (None, "textlink", "text_link"),
    (None, "fmlaLink", "control_link"),
    (None, "fmlaRange", "control_link"),
    (None, "fmlaGroup", "control_link"),
    (None, "fmlaTxbx", "control_link"),
    (None, "fmlaPict", "control_link"),
    (None, "linkedCell", "control_link"),
    (None, "listFillRange", "control_link"),
];

fn still_named(what: &str, part: &str, old: &str, at: &str, reason: &'static str) -> XlsxError {
    let why = format!("{what} in {part} names the sheet '{}'", shown(old));
    XlsxError::Refused { at: at.to_owned(), reason, why }
}
