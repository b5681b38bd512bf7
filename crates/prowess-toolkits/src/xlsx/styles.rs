//! How numbers are shown, as far as it says what they mean: which of them are dates.

use std::collections::BTreeMap;

use quick_xml::events::Event;

use super::book::Book;
use super::error::XlsxError;
use super::package::Package;
use super::settings::XlsxSettings;
use super::xml::{Xml, attribute};

/// The number formats of cells.
#[derive(Clone, Debug, Default)]
pub(super) struct Styles {
    /// By the number of a style, the number of its format.
    formats: Vec<u32>,
    /// The formats that the workbook brings.
    own: BTreeMap<u32, String>,
}

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Number,
    Date,
    DateTime,
    Time,
}

impl Styles {
    pub(super) fn read(
        package: &mut Package,
        book: &Book,
        limits: &XlsxSettings,
    ) -> Result<Self, XlsxError> {
        let mut styles = Self::default();
        let Some(part) = book.styles.as_deref().filter(|it| package.has(it)) else {
            return Ok(styles);
        };
        let mut xml = Xml::new(package.stream(part)?, part, limits);
        let mut is_cells = false;
        loop {
            match xml.next()? {
                Event::Start(it) | Event::Empty(it) => match it.local_name().as_ref() {
                    "numFmt" => {
                        let id = attribute(&it, "numFmtId").and_then(|it| it.parse().ok());
                        if let (Some(id), Some(code)) = (id, attribute(&it, "formatCode")) {
                            styles.own.insert(id, code.into_owned());
                        }
                    }
                    "cellXfs" => is_cells = true,
                    "cellStyles" | "dxfs" => is_cells = false,
                    "xf" if is_cells => {
                        let id = attribute(&it, "numFmtId").and_then(|it| it.parse().ok());
                        styles.formats.push(id.unwrap_or(0));
                    }
                    _ => {}
                },
                Event::End(it) if it.local_name().as_ref() == "cellXfs" => is_cells = false,
                Event::Eof => return Ok(styles),
                _ => {}
            }
        }
    }

    /// What numbers of a style stand for.
    pub(super) fn meaning(&self, style: u32) -> Meaning {
        let format = self.formats.get(style as usize).copied().unwrap_or(0);
        match (self.own.get(&format), format) {
            (Some(code), _) => meaning_of(code),
            (None, 14..=17 | 27..=31 | 34..=36 | 50..=58) => Meaning::Date,
            (None, 22) => Meaning::DateTime,
            (None, 18..=21 | 32 | 33 | 45..=47) => Meaning::Time,
            _ => Meaning::Number,
        }
    }

    /// The code of a style's number format, if it is not the general one.
    pub(super) fn code(&self, style: u32) -> Option<String> {
        let format = self.formats.get(style as usize).copied().unwrap_or(0);
        match self.own.get(&format) {
            Some(code) => Some(code.clone()),
            None => built_in(format).map(str::to_owned),
        }
    }
}

/// The codes of the formats that every workbook has.
const BUILT_IN: &[(u32, &str)] = &[
    (1, "0"),
    (2, "0.00"),
    (3, "#,##0"),
    (4, "#,##0.00"),
    (9, "0%"),
    (10, "0.00%"),
    (11, "0.00E+00"),
    (12, "# ?/?"),
    (14, "m/d/yyyy"),
    (15, "d-mmm-yy"),
    (16, "d-mmm"),
    (17, "mmm-yy"),
    (18, "h:mm AM/PM"),
    (20, "h:mm"),
    (21, "h:mm:ss"),
    (22, "m/d/yyyy h:mm"),
    (49, "@"),
];

fn built_in(format: u32) -> Option<&'static str> {
    BUILT_IN.iter().find(|(id, _)| *id == format).map(|(_, code)| *code)
}

/// The number of a format that every workbook has.
pub(super) fn built_in_number(code: &str) -> Option<u32> {
    match code {
        "General" | "general" => Some(0),
        code => BUILT_IN.iter().find(|(_, it)| *it == code).map(|(id, _)| *id),
    }
}

/// What a format makes of a number: its letters outside of quotes and brackets say it.
fn meaning_of(code: &str) -> Meaning {
    let (mut has_day, mut has_time, mut has_month) = (false, false, false);
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => while chars.next().is_some_and(|c| c != '"') {},
            '\\' | '_' | '*' => {
                chars.next();
            }
            '[' => {
                let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
                let elapsed = inside.to_ascii_lowercase();
                has_time |= matches!(elapsed.as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss");
            }
            'y' | 'Y' | 'd' | 'D' => has_day = true,
            'm' | 'M' => has_month = true,
            'h' | 'H' | 's' | 'S' => has_time = true,
            ';' => break,
            // `General` is no date.
            'G' | 'g' => return Meaning::Number,
            _ => {}
        }
    }
    match (has_day || (has_month && !has_time), has_time) {
        (true, true) => Meaning::DateTime,
        (true, false) => Meaning::Date,
        (false, true) => Meaning::Time,
        (false, false) => Meaning::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_say_what_numbers_mean() {
        let table = [
            ("0.00", Meaning::Number),
            ("General", Meaning::Number),
            ("#,##0 \"days\"", Meaning::Number),
            ("[Red]0", Meaning::Number),
            ("yyyy-mm-dd", Meaning::Date),
            ("mmm yy", Meaning::Date),
            ("dd/mm/yyyy hh:mm", Meaning::DateTime),
            ("[h]:mm:ss", Meaning::Time),
            ("h:mm AM/PM", Meaning::Time),
            ("mm:ss", Meaning::Time),
            ("0.0_d", Meaning::Number),
            ("\\d0", Meaning::Number),
        ];
        for (code, expected) in table {
            assert_eq!(meaning_of(code), expected, "{code}");
        }
    }
}
