//! Variables that a call may set for a listed command.

/// Language, time, and how a terminal looks. What programs find, load or run by variables has no
/// end, so that only these are taken. `LANGUAGE` is none of them: it names folders of messages, and
/// those would be found in the workspace.
const HARMLESS: [&str; 22] = [
    "CLICOLOR",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LINES",
    "NO_COLOR",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
];

/// Whether a variable changes nothing about what runs.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// Whether this is a name that POSIX has for variables.
pub(crate) fn is_posix(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty()
        && name.chars().all(is_plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
