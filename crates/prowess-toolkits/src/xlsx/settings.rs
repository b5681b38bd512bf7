//! What a host can set: the section `[xlsx]` of `prowess.toml`.

use serde::{Deserialize, Serialize};

/// How much of workbooks is read, made and told: the section `[xlsx]` of `prowess.toml`.
///
/// ```toml
/// [xlsx]
/// max_file_bytes = 67108864       # of a workbook that is opened or written
/// max_parts = 10000               # files inside a workbook
/// max_part_bytes = 536870912      # of one part, unpacked
/// max_expanded_bytes = 1073741824 # of all parts, unpacked
/// max_ratio = 250                 # unpacked to packed, of a part above one MiB
/// max_xml_depth = 64              # elements one inside the other
/// max_token_bytes = 4194304       # of one tag or text in XML
/// max_cells = 20000000            # that are looked at
/// max_shared_strings = 10000000   # that are looked at
/// max_edited_bytes = 134217728    # of one part that is edited, unpacked
/// max_written_cells = 1000000     # that one call writes
/// max_operations = 1000           # of one edit
/// max_sheets = 256                # that a workbook is made with
/// max_formulas = 1000000          # that are recalculated
/// max_recalc_cells = 8000000      # of a workbook that is recalculated
/// max_recalc_seconds = 120        # that a recalculation may take
/// max_locations = 20              # that are named of each kind of error
/// max_findings = 200              # that a check names
/// max_references = 4000000        # between formulas, that a check follows to find circles
/// max_range_cells = 5000          # that one reading gives
/// max_range_bytes = 65536         # of text that one reading gives
/// max_listed = 100                # sheets, names, tables that an inspection lists
/// max_csv_bytes = 67108864        # of one CSV file
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct XlsxSettings {
    /// Bytes of a workbook that is opened or written.
    pub max_file_bytes: u64,
    /// Files inside a workbook.
    pub max_parts: u64,
    /// Bytes of one part, unpacked.
    pub max_part_bytes: u64,
    /// Bytes of all parts, unpacked.
    pub max_expanded_bytes: u64,
    /// Unpacked to packed bytes of a part above one MiB.
    pub max_ratio: u64,
    /// Elements of XML one inside the other.
    pub max_xml_depth: u64,
    /// Bytes of one tag or text in XML.
    pub max_token_bytes: u64,
    /// Cells that are looked at.
    pub max_cells: u64,
    /// Shared strings that are looked at.
    pub max_shared_strings: u64,
    /// Bytes of one part that is edited, unpacked.
    pub max_edited_bytes: u64,
    /// Cells that one call writes.
    pub max_written_cells: u64,
    /// Operations of one edit.
    pub max_operations: u64,
    /// Sheets that a workbook is made with.
    pub max_sheets: u64,
    /// Formulas that are recalculated.
    pub max_formulas: u64,
    /// Cells of a workbook that is recalculated.
    pub max_recalc_cells: u64,
    /// Seconds that a recalculation may take.
    pub max_recalc_seconds: u64,
    /// Cells that are named of each kind of error.
    pub max_locations: usize,
    /// Findings that a check names.
    pub max_findings: usize,
    /// References between formulas that a check follows to find circles.
    pub max_references: u64,
    /// Cells that one reading gives.
    pub max_range_cells: u64,
    /// Bytes of text that one reading gives.
    pub max_range_bytes: usize,
    /// Sheets, names and tables that an inspection lists, of each.
    pub max_listed: usize,
    /// Bytes of one CSV file.
    pub max_csv_bytes: u64,
}

/// Why a section `[xlsx]` cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("[xlsx]: {0}")]
pub struct InvalidXlsxSettings(Box<toml::de::Error>);

impl InvalidXlsxSettings {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "invalid_xlsx_settings"
    }
}

impl Default for XlsxSettings {
    fn default() -> Self {
        Self {
            max_file_bytes: 64 << 20,
            max_parts: 10_000,
            max_part_bytes: 512 << 20,
            max_expanded_bytes: 1 << 30,
            max_ratio: 250,
            max_xml_depth: 64,
            max_token_bytes: 4 << 20,
            max_cells: 20_000_000,
            max_shared_strings: 10_000_000,
            max_edited_bytes: 128 << 20,
            max_written_cells: 1_000_000,
            max_operations: 1000,
            max_sheets: 256,
            max_formulas: 1_000_000,
            max_recalc_cells: 8_000_000,
            max_recalc_seconds: 120,
            max_locations: 20,
            max_findings: 200,
            max_references: 4_000_000,
            max_range_cells: 5000,
            max_range_bytes: 64 << 10,
            max_listed: 100,
            max_csv_bytes: 64 << 20,
        }
    }
}

macro_rules! setters {
    ($($method:ident $field:ident: $kind:ty;)+) => {
        $(#[doc = concat!("Sets [`XlsxSettings::", stringify!($field), "`].")]
        pub fn $method(mut self, $field: $kind) -> Self { self.$field = $field; self })+
    };
}

impl XlsxSettings {
    setters! {
        with_max_file_bytes max_file_bytes: u64;
        with_max_parts max_parts: u64;
        with_max_part_bytes max_part_bytes: u64;
        with_max_expanded_bytes max_expanded_bytes: u64;
        with_max_ratio max_ratio: u64;
        with_max_xml_depth max_xml_depth: u64;
        with_max_token_bytes max_token_bytes: u64;
        with_max_cells max_cells: u64;
        with_max_shared_strings max_shared_strings: u64;
        with_max_edited_bytes max_edited_bytes: u64;
        with_max_written_cells max_written_cells: u64;
        with_max_operations max_operations: u64;
        with_max_sheets max_sheets: u64;
        with_max_formulas max_formulas: u64;
        with_max_recalc_cells max_recalc_cells: u64;
        with_max_recalc_seconds max_recalc_seconds: u64;
        with_max_locations max_locations: usize;
        with_max_findings max_findings: usize;
        with_max_references max_references: u64;
        with_max_range_cells max_range_cells: u64;
        with_max_range_bytes max_range_bytes: usize;
        with_max_listed max_listed: usize;
        with_max_csv_bytes max_csv_bytes: u64;
    }

    /// The settings in a section `[xlsx]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidXlsxSettings> {
        table.try_into().map_err(|error| InvalidXlsxSettings(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_documentation_is_known_and_has_its_default() {
        let documentation = include_str!("settings.rs").lines();
        let section = documentation
            .filter_map(|line| line.strip_prefix("/// "))
            .skip_while(|line| *line != "```toml")
            .skip(1)
            .take_while(|line| *line != "```");
        let section: Vec<&str> = section.collect();
        let mut file: toml::Table = toml::from_str(&section.join("\n")).unwrap();
        let Some(toml::Value::Table(table)) = file.remove("xlsx") else { panic!("{file}") };
        let own = toml::Table::try_from(XlsxSettings::default()).unwrap();
        assert_eq!(table, own, "the documentation and the settings differ");
        assert_eq!(XlsxSettings::from_table(table).unwrap(), XlsxSettings::default());
    }

    #[test]
    fn a_section_says_what_is_different_and_wrong_settings_are_named() {
        let read = |text: &str| XlsxSettings::from_table(toml::from_str(text).unwrap());
        assert_eq!(read("max_parts = 1").unwrap(), XlsxSettings::default().with_max_parts(1));
        let wrong = read("parts = 1").unwrap_err();
        assert!(wrong.to_string().starts_with("[xlsx]: "), "{wrong}");
        assert!(wrong.to_string().contains("unknown field `parts`"), "{wrong}");
        assert_eq!(wrong.code(), "invalid_xlsx_settings");
    }
}
