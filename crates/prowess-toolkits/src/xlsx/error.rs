//! Why something was not done with a workbook.

use prowess_runtime::ToolOutcome;

/// Why something was not done with a workbook. Nothing was written then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XlsxError {
    /// It is something else.
    #[error("it is no XLSX workbook: {why}")]
    NotAWorkbook {
        /// What it is instead.
        why: String,
    },
    /// It is a spreadsheet of another kind.
    #[error("it is {what}, which is not read here")]
    Format {
        /// Of which kind.
        what: &'static str,
    },
    /// It has a password.
    #[error("it is encrypted with a password")]
    Encrypted,
    /// A limit is exceeded.
    #[error("{what}: {found} exceeds `{limit}` = {most}")]
    Limit {
        /// Of what there is too much.
        what: String,
        /// How much.
        found: u64,
        /// The name of the limit, in the section `[xlsx]`.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// A part of it is not what it should be.
    #[error("its part {part} is damaged: {why}")]
    Malformed {
        /// Which.
        part: String,
        /// What is wrong.
        why: String,
    },
    /// There is no such sheet.
    #[error("there is no sheet '{name}'; there are {have}")]
    NoSheet {
        /// What was asked for.
        name: String,
        /// Which there are.
        have: String,
    },
    /// A text is no cell, or no range.
    #[error("'{text}' is no {what}; write it like {example}")]
    Reference {
        /// The text.
        text: String,
        /// What it should be.
        what: &'static str,
        /// An example.
        example: &'static str,
    },
    /// What is asked for is not described as it must be.
    #[error("{at}: {why}")]
    Invalid {
        /// Where in the arguments.
        at: String,
        /// What is wrong, and what to write.
        why: String,
    },
    /// It would damage the workbook.
    #[error("{at}: {why}")]
    Refused {
        /// Which operation.
        at: String,
        /// The stable name of the reason.
        reason: &'static str,
        /// The reason, and what to do instead.
        why: String,
    },
    /// The library that writes workbooks refuses it.
    #[error("the workbook cannot be made: {why}")]
    NotMade {
        /// What it says.
        why: String,
    },
    /// The system failed.
    #[error("the workbook cannot be read: {why}")]
    Io {
        /// What it says.
        why: String,
    },
}

impl XlsxError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAWorkbook { .. } => "not_a_workbook",
            Self::Format { .. } => "unsupported_format",
            Self::Encrypted => "encrypted_workbook",
            Self::Limit { .. } => "limit_exceeded",
            Self::Malformed { .. } => "malformed_workbook",
            Self::NoSheet { .. } => "sheet_not_found",
            Self::Reference { .. } => "invalid_reference",
            Self::Invalid { .. } => "invalid_arguments",
            Self::Refused { .. } => "operation_refused",
            Self::NotMade { .. } => "not_made",
            Self::Io { .. } => "workbook_io",
        }
    }

    /// What can be done about it.
    fn hint(&self) -> &'static str {
        match self {
            Self::Format { .. } => "Save it as .xlsx with the program that made it, and try again.",
            Self::Encrypted => "Ask for a copy without a password: Excel, File, Info, Protect.",
            Self::Limit { .. } => {
                "Work on a part of it, or have the host raise the limit in [xlsx] of prowess.toml."
            }
            Self::Malformed { .. } => "Open and save it with Excel or LibreOffice, and try again.",
            Self::NoSheet { .. } => "xlsx_inspect lists the sheets.",
            Self::NotAWorkbook { .. } => "CSV and text files are read with read_file.",
            Self::Invalid { .. } => {
                "Change what is named and call again; nothing was written. xlsx_get_examples shows \
                 calls that work."
            }
            Self::Refused { .. } => {
                "Nothing was written. Leave this out or do it as the reason says; the rest of the \
                 call is done then."
            }
            Self::Reference { .. } => "xlsx_inspect lists the sheets, tables and names.",
            Self::NotMade { .. } => {
                "Make it with less: one sheet with its rows first, then tables, rules and charts."
            }
            Self::Io { .. } => "Try again; if it fails again, the host has to look at its storage.",
        }
    }

    pub(super) fn malformed(part: &str, why: impl std::fmt::Display) -> Self {
        Self::Malformed { part: shown(part), why: shown(&why.to_string()) }
    }

    pub(super) fn invalid(at: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { at: at.into(), why: why.into() }
    }

    pub(super) fn limit(
        what: impl Into<String>,
        found: u64,
        limit: &'static str,
        most: u64,
    ) -> Self {
        Self::Limit { what: what.into(), found, limit, most }
    }

    /// What the model is told, of the workbook that was called so.
    pub(super) fn outcome(&self, path: &str) -> ToolOutcome {
        let text = match self {
            Self::Invalid { .. } | Self::Refused { .. } | Self::Reference { .. } => {
                format!("Error: {self}")
            }
            _ => format!("Error: '{}': {self}", shown(path)),
        };
        let mut outcome = ToolOutcome::error(self.code(), text);
        if let Self::Refused { reason, .. } = self {
            outcome = outcome.with_data("reason", *reason);
        }
        if let Self::Limit { limit, most, found, .. } = self {
            outcome = outcome
                .with_data("limit", *limit)
                .with_data("most", *most)
                .with_data("found", *found);
        }
        outcome.with_hint(self.hint())
    }
}

impl From<std::io::Error> for XlsxError {
    fn from(error: std::io::Error) -> Self {
        Self::Io { why: error.to_string() }
    }
}

/// The beginning of a text that somebody else wrote, on one line, for a message.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut out: String =
        text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_can_be_done() {
        let text = || "x".to_owned();
        let all = [
            XlsxError::NotAWorkbook { why: text() },
            XlsxError::Format { what: "x" },
            XlsxError::Encrypted,
            XlsxError::limit("x", 2, "max_parts", 1),
            XlsxError::malformed("x", "y"),
            XlsxError::NoSheet { name: text(), have: text() },
            XlsxError::Reference { text: text(), what: "cell", example: "A1" },
            XlsxError::invalid("x", "y"),
            XlsxError::Refused { at: text(), reason: "x", why: text() },
            XlsxError::NotMade { why: text() },
            XlsxError::Io { why: text() },
        ];
        let mut seen = std::collections::BTreeSet::new();
        for error in all {
            let outcome = error.outcome("work/a.xlsx");
            assert!(outcome.hint.is_some_and(|it| it.len() > 20), "{error}");
            assert!(seen.insert(error.code()), "{error}");
        }
    }
}
