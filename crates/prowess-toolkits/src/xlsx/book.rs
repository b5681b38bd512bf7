//! What a workbook is made of: its sheets, its names, and which part is what.

use std::collections::BTreeMap;

use quick_xml::events::Event;

use super::error::{XlsxError, shown};
use super::package::Package;
use super::settings::XlsxSettings;
use super::xml::{Xml, attribute, is_on, local_attribute, push_text};

/// What a workbook is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// The part that says all this.
    pub(super) part: String,
    pub(super) sheets: Vec<Sheet>,
    pub(super) names: Vec<Name>,
    /// Whether days are counted from 1904.
    pub(super) counts_from_1904: bool,
    pub(super) shared_strings: Option<String>,
    pub(super) styles: Option<String>,
    pub(super) calc_chain: Option<String>,
    pub(super) external_links: Vec<String>,
    pub(super) has_macros: bool,
    pub(super) pivots: Vec<String>,
    pub(super) is_protected: bool,
    pub(super) is_signed: bool,
}

/// A sheet.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub(super) name: String,
    pub(super) part: String,
    pub(super) state: State,
    pub(super) kind: SheetKind,
}

/// Whether a sheet can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Visible,
    Hidden,
    VeryHidden,
}

impl State {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Hidden => "hidden",
            Self::VeryHidden => "very_hidden",
        }
    }
}

/// What a sheet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SheetKind {
    Cells,
    Chart,
    Other,
}

/// A name for a range or a formula.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) refers_to: String,
    pub(super) is_hidden: bool,
    /// The sheet that it counts on, if not on all.
    pub(super) sheet: Option<usize>,
}

/// A relation from one part to another.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) id: String,
    /// The last piece of its type: `worksheet`, `table`.
    pub(super) kind: String,
    /// The part; an address if it is external.
    pub(super) target: String,
    pub(super) is_external: bool,
}

impl Book {
    pub(super) fn read(package: &mut Package, limits: &XlsxSettings) -> Result<Self, XlsxError> {
        let top = relations(package, "", limits)?;
        let main = top.iter().find(|it| it.kind == "officeDocument");
        let Some(main) = main else {
            let why = "it does not say which part is the workbook".to_owned();
            return Err(XlsxError::NotAWorkbook { why });
        };
        let mut book = Self { part: main.target.clone(), ..Self::default() };
        book.is_signed = package.parts().any(|(name, _)| name.starts_with("_xmlsignatures/"));
        let relations = relations(package, &book.part, limits)?;
        let mut by_id = BTreeMap::new();
        for relation in &relations {
            let target = || relation.target.clone();
            match relation.kind.as_str() {
                "sharedStrings" => book.shared_strings = Some(target()),
                "styles" => book.styles = Some(target()),
                "calcChain" => book.calc_chain = Some(target()),
                "externalLink" => book.external_links.push(target()),
                "vbaProject" => book.has_macros = true,
                "pivotCacheDefinition" => book.pivots.push(target()),
                _ => {}
            }
            by_id.insert(relation.id.as_str(), relation);
        }
        book.read_main(package, &by_id, limits)?;
        if book.sheets.is_empty() {
            return Err(XlsxError::malformed(&book.part, "it has no sheets"));
        }
        Ok(book)
    }

    fn read_main(
        &mut self,
        package: &mut Package,
        relations: &BTreeMap<&str, &Relation>,
        limits: &XlsxSettings,
    ) -> Result<(), XlsxError> {
        let part = self.part.clone();
        let mut xml = Xml::new(package.stream(&part)?, &part, limits);
        let mut name: Option<Name> = None;
        loop {
            let event = xml.next()?;
            match &event {
                Event::Start(it) | Event::Empty(it) => match it.local_name().as_ref() {
                    "workbookPr" => self.counts_from_1904 = is_on(it, "date1904"),
                    "workbookProtection" => self.is_protected = true,
                    "sheet" => {
                        let id = local_attribute(it, "id").unwrap_or_default();
                        let relation = relations.get(id.as_ref());
                        let found = relation.filter(|it| !it.is_external);
                        let Some(found) = found else {
                            return Err(XlsxError::malformed(&part, "a sheet has no part"));
                        };
                        self.sheets.push(Sheet {
                            name: attribute(it, "name").unwrap_or_default().into_owned(),
                            part: found.target.clone(),
                            state: match attribute(it, "state").as_deref() {
                                Some("hidden") => State::Hidden,
                                Some("veryHidden") => State::VeryHidden,
                                _ => State::Visible,
                            },
                            kind: match found.kind.as_str() {
                                "worksheet" => SheetKind::Cells,
                                "chartsheet" => SheetKind::Chart,
                                _ => SheetKind::Other,
                            },
                        });
                    }
                    "definedName" => {
                        name = Some(Name {
                            name: attribute(it, "name").unwrap_or_default().into_owned(),
                            refers_to: String::new(),
                            is_hidden: is_on(it, "hidden"),
                            sheet: attribute(it, "localSheetId").and_then(|it| it.parse().ok()),
                        });
                    }
                    _ => {}
                },
                Event::End(it) if it.local_name().as_ref() == "definedName" => {
                    self.names.extend(name.take());
                }
                Event::Eof => return Ok(()),
                other => {
                    if let Some(name) = &mut name {
                        push_text(&mut name.refers_to, other, &part, limits)?;
                    }
                }
            }
        }
    }

    /// The sheet of a name, or the first that holds cells.
    pub(super) fn sheet(&self, name: Option<&str>) -> Result<&Sheet, XlsxError> {
        let found = match name {
            Some(name) => self.sheets.iter().find(|it| same_name(&it.name, name)),
            None => self
                .sheets
                .iter()
                .find(|it| it.kind == SheetKind::Cells && it.state == State::Visible)
                .or_else(|| self.sheets.iter().find(|it| it.kind == SheetKind::Cells)),
        };
        match found {
            Some(sheet) if sheet.kind == SheetKind::Cells => Ok(sheet),
            Some(sheet) => Err(XlsxError::Refused {
                at: format!("sheet '{}'", shown(&sheet.name)),
                reason: "not_a_worksheet",
                why: "it holds no cells".to_owned(),
            }),
            None => Err(XlsxError::NoSheet {
                name: shown(name.unwrap_or_default()),
                have: self.sheet_names(),
            }),
        }
    }

    fn sheet_names(&self) -> String {
        const MOST: usize = 20;
        let names = self.sheets.iter().take(MOST).map(|it| format!("'{}'", shown(&it.name)));
        let mut names: Vec<String> = names.collect();
        if self.sheets.len() > MOST {
            names.push(format!("{} more", self.sheets.len() - MOST));
        }
        names.join(", ")
    }
}

/// Whether two names of sheets are the same to Excel.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

/// The part with the relations of a part.
pub(super) fn relations_part(part: &str) -> String {
    match part.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/_rels/{name}.rels"),
        None => format!("_rels/{part}.rels"),
    }
}

/// The relations of a part, or of the package if its name is empty.
pub(super) fn relations(
    package: &mut Package,
    part: &str,
    limits: &XlsxSettings,
) -> Result<Vec<Relation>, XlsxError> {
    let from = relations_part(part);
    if !package.has(&from) {
        return Ok(Vec::new());
    }
    let mut relations = Vec::new();
    let mut xml = Xml::new(package.stream(&from)?, &from, limits);
    loop {
        match xml.next()? {
            Event::Start(it) | Event::Empty(it) if it.local_name().as_ref() == "Relationship" => {
                let is_external = attribute(&it, "TargetMode").as_deref() == Some("External");
                let target = attribute(&it, "Target").unwrap_or_default().into_owned();
                let kind = attribute(&it, "Type").unwrap_or_default();
                relations.push(Relation {
                    id: attribute(&it, "Id").unwrap_or_default().into_owned(),
                    kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
                    target: if is_external { target } else { resolved(part, &target) },
                    is_external,
                });
            }
            Event::Eof => return Ok(relations),
            _ => {}
        }
    }
}

/// The part that a relation means, from another part.
fn resolved(from: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut names: Vec<&str> = from.split('/').collect();
    names.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_lead_to_parts() {
        let table = [
            ("xl/workbook.xml", "worksheets/sheet1.xml", "xl/worksheets/sheet1.xml"),
            ("xl/worksheets/sheet1.xml", "../tables/table1.xml", "xl/tables/table1.xml"),
            ("xl/workbook.xml", "/xl/styles.xml", "xl/styles.xml"),
            ("", "xl/workbook.xml", "xl/workbook.xml"),
            ("xl/workbook.xml", "../../../x", "x"),
        ];
        for (from, target, expected) in table {
            assert_eq!(resolved(from, target), expected, "{from} {target}");
        }
        assert_eq!(relations_part("xl/workbook.xml"), "xl/_rels/workbook.xml.rels");
        assert_eq!(relations_part(""), "_rels/.rels");
    }
}
