//! The copy of a workbook that the engine is given, where it would not take the workbook itself.

use std::collections::BTreeMap;
use std::io::Cursor;

use super::address::Area;
use super::book::{Book, Sheet, SheetKind};
use super::edit::{exchanged, with_dimension, with_new_dimension};
use super::error::XlsxError;
use super::package::{Changes, Package, text_of};
use super::settings::XlsxSettings;
use super::spell::{SPELLED, spelled};
use super::tables::Related;
use super::xml::escaped;

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
    pub(super) has_formulas: bool,
    /// Whether its formulas may make texts of numbers.
    pub(super) spells: bool,
}

/// A copy for the engine, if there has to be one.
pub(super) struct Given {
    copy: Option<Vec<u8>>,
    /// By the part of a sheet, the formulas that are others in the copy, as the workbook has them.
    respelled: BTreeMap<String, Vec<String>>,
    /// By the part of a sheet, where the copy says its cells are, if the workbook does not.
    placed: BTreeMap<String, (usize, String)>,
}

impl Given {
    /// Makes a copy if the workbook is of a kind that the engine does not take, says of a sheet
    /// that it is smaller than it is, does not say where its cells are, which makes the engine
    /// slow, or makes texts of numbers, which the engine spells otherwise than Excel.
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
        let (mut respelled, mut placed) = (BTreeMap::new(), BTreeMap::new());
        for sheet in book.sheets.iter().filter(|it| it.kind == SheetKind::Cells) {
            let Some(shape) = shapes.get(&sheet.part) else { continue };
            let mut xml = match right_area(package, sheet, shape, settings)? {
                Some(area) => {
                    let xml = package.text(&sheet.part, settings)?;
                    Some(with_dimension(&xml, &sheet.part, area, settings)?)
                }
                None => None,
            };
            if let (None, Some(area), true) = (&shape.said, shape.present, shape.has_formulas) {
                let text = package.text(&sheet.part, settings)?;
                let new = with_new_dimension(&text, &sheet.part, area, settings)?;
                if let Some((text, at, dimension)) = new {
                    placed.insert(sheet.part.clone(), (at, dimension));
                    xml = Some(text);
                }
            }
            if shape.spells {
                let text = match &xml {
                    Some(xml) => xml.clone(),
                    None => package.text(&sheet.part, settings)?,
                };
                let (text, originals) = with_spelling(&text, &sheet.part, "f", settings)?;
                if !originals.is_empty() {
                    respelled.insert(sheet.part.clone(), originals);
                    xml = Some(text);
                }
            }
            if let Some(xml) = xml {
                changes.insert(sheet.part.clone(), Some(xml.into_bytes()));
            }
        }
        if book.names.iter().any(|it| spelled(&it.refers_to).is_some()) {
            let xml = package.text(&book.part, settings)?;
            let (xml, _) = with_spelling(&xml, &book.part, "definedName", settings)?;
            changes.insert(book.part.clone(), Some(xml.into_bytes()));
        }
        let copy = match changes.is_empty() {
            true => None,
            false => Some(package.write(&changes)?),
        };
        Ok(Self { copy, respelled, placed })
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
            if before.read(&sheet.part, settings)? == new {
                continue;
            }
            let mut new = match self.respelled.get(&sheet.part) {
                Some(originals) => {
                    let xml = text_of(new, &sheet.part)?;
                    without_spelling(&xml, &sheet.part, originals, settings)?.into_bytes()
                }
                None => new,
            };
            if let Some((at, dimension)) = self.placed.get(&sheet.part) {
                let range = *at..*at + dimension.len();
                if new.get(range.clone()) != Some(dimension.as_bytes()) {
                    return Err(XlsxError::malformed(&sheet.part, "the engine moved its cells"));
                }
                new.drain(range);
            }
            changes.insert(sheet.part.clone(), Some(new));
        }
        match changes.is_empty() {
            true => Ok(original.to_vec()),
            false => package.write(&changes),
        }
    }
}

/// The area that a sheet should say its cells are in, if it says another.
pub(super) fn right_area(
    package: &mut Package,
    sheet: &Sheet,
    shape: &Shape,
    settings: &XlsxSettings,
) -> Result<Option<Area>, XlsxError> {
    let (Some(said), Some(present)) = (&shape.said, shape.present) else { return Ok(None) };
    let tables = Related::read(package, sheet, settings)?.tables;
    let all = tables.iter().fold(present, |all, table| all.around(&table.area));
    let area = Area::parse(said).filter(|_| !said.contains('$'));
    let right = area.map_or(all, |it| it.around(&all));
    Ok((area != Some(right)).then_some(right))
}

/// The part with its formulas spelling numbers as Excel does, and those that changed, as they
/// stood there.
fn with_spelling(
    xml: &str,
    part: &str,
    element: &str,
    settings: &XlsxSettings,
) -> Result<(String, Vec<String>), XlsxError> {
    let mut originals = Vec::new();
    let xml = exchanged(xml, part, element, settings, &mut |formula, raw| {
        let new = spelled(formula)?;
        originals.push(raw.to_owned());
        Some(escaped(&new))
    })?;
    Ok((xml, originals))
}

/// The sheet with its own formulas, in their order.
fn without_spelling(
    xml: &str,
    part: &str,
    originals: &[String],
    settings: &XlsxSettings,
) -> Result<String, XlsxError> {
    let mut left = originals.iter();
    let mut is_short = false;
    let xml = exchanged(xml, part, "f", settings, &mut |formula, _| {
        if !formula.contains(SPELLED) {
            return None;
        }
        let original = left.next();
        is_short |= original.is_none();
        original.cloned()
    })?;
    match is_short || left.next().is_some() {
        true => Err(XlsxError::malformed(part, "the engine gave back other formulas")),
        false => Ok(xml),
    }
}
