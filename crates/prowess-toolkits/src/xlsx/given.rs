//! The copy of a workbook that the engine is given, where it would not take the workbook itself.

use std::collections::BTreeMap;
use std::io::Cursor;

use super::address::Area;
use super::book::{Book, SheetKind};
use super::edit::with_dimension;
use super::error::XlsxError;
use super::package::{Changes, Package};
use super::settings::XlsxSettings;
use super::tables::Related;

const TYPES: &str = "[Content_Types].xml";
/// What the engine calls a workbook.
const PLAIN: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml";
/// What others are called: with macros, templates, both.
const OTHERS: [&str; 4] = [
    "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml",
    "application/vnd.ms-excel.template.macroEnabled.main+xml",
    "application/vnd.ms-excel.addin.macroEnabled.main+xml",
];

/// Where the cells of a sheet are.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    /// As the sheet says it.
    pub(super) said: Option<String>,
    pub(super) present: Option<Area>,
}

/// A copy for the engine, if there has to be one.
pub(super) struct Given {
    copy: Option<Vec<u8>>,
}

impl Given {
    /// Makes a copy if the workbook is of a kind that the engine does not take, or says of a sheet
    /// that it is smaller than it is.
    pub(super) fn prepare(
        package: &mut Package,
        book: &Book,
        shapes: &BTreeMap<String, Shape>,
        settings: &XlsxSettings,
    ) -> Result<Self, XlsxError> {
        let mut changes = Changes::new();
        let types = package.text(TYPES, settings)?;
        if let Some(other) = OTHERS.iter().find(|it| types.contains(**it)) {
            let plain = types.replace(other, PLAIN).into_bytes();
            changes.insert(TYPES.to_owned(), Some(plain));
        }
        for sheet in book.sheets.iter().filter(|it| it.kind == SheetKind::Cells) {
            let Some(shape) = shapes.get(&sheet.part) else { continue };
            let (Some(said), Some(present)) = (&shape.said, shape.present) else { continue };
            let tables = Related::read(package, sheet, settings)?.tables;
            let all = tables.iter().fold(present, |all, table| all.around(&table.area));
            let area = Area::parse(said).filter(|_| !said.contains('$'));
            let right = area.map_or(all, |it| it.around(&all));
            if area != Some(right) {
                let xml = package.text(&sheet.part, settings)?;
                let xml = with_dimension(&xml, &sheet.part, right, settings)?;
                changes.insert(sheet.part.clone(), Some(xml.into_bytes()));
            }
        }
        let copy = match changes.is_empty() {
            true => None,
            false => Some(package.write(&changes)?),
        };
        Ok(Self { copy })
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.copy.as_deref()
    }

    /// The workbook with what the engine calculated: of a copy, the sheets with new values.
    pub(super) fn taken_back(
        &self,
        package: &mut Package,
        book: &Book,
        original: &[u8],
        calculated: Vec<u8>,
        settings: &XlsxSettings,
    ) -> Result<Vec<u8>, XlsxError> {
        let Some(copy) = &self.copy else { return Ok(calculated) };
        let open = |bytes: Vec<u8>| Package::open(Box::new(Cursor::new(bytes)), settings);
        let (mut before, mut after) = (open(copy.clone())?, open(calculated)?);
        let mut changes = Changes::new();
        for sheet in &book.sheets {
            let new = after.read(&sheet.part, settings)?;
            if before.read(&sheet.part, settings)? != new {
                changes.insert(sheet.part.clone(), Some(new));
            }
        }
        match changes.is_empty() {
            true => Ok(original.to_vec()),
            false => package.write(&changes),
        }
    }
}
