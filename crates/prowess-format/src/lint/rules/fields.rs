//! Fields that a profile does not know.

use crate::fields::{FIELDS, Field, Origin, field};
use crate::lint::{Checker, Code, Document, Profile};
use crate::name::nearest_name;
use crate::yaml::Entry;

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let profile = checker.profile;
    let unknown: Vec<&Entry> = document
        .entries()
        .filter(|(_, field)| !field.is_some_and(|field| is_known(field, profile)))
        .map(|(entry, _)| entry)
        .collect();
    if unknown.is_empty() {
        return;
    }
    if profile == Profile::Spec {
        return report_as_reference_library(&unknown, checker);
    }
    for entry in unknown {
        let key = &entry.key;
        match nearest(key, profile) {
            Some(meant) if field(key).is_none() => checker.report_with_help(
                Code::MisspelledField,
                entry.key_range,
                format!("Unknown field '{key}'"),
                format!("did you mean '{meant}'?"),
            ),
            _ => checker.report_with_help(
                Code::UnknownField,
                entry.key_range,
                format!("Unknown field '{key}'"),
                "it is kept, but means nothing here; put your own data under 'metadata'",
            ),
        }
    }
}

fn is_known(field: &Field, profile: Profile) -> bool {
    match profile {
        Profile::Prowess => true,
        Profile::ClaudeCode => matches!(field.origin, Origin::Spec | Origin::ClaudeCode),
        Profile::Spec | Profile::DeepAgents => field.origin == Origin::Spec,
    }
}

/// One message for all fields, in the reference library's words.
fn report_as_reference_library(unknown: &[&Entry], checker: &mut Checker<'_>) {
    let mut keys: Vec<&str> = unknown.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    let allowed = FIELDS.iter().filter(|field| field.origin == Origin::Spec);
    let allowed: Vec<String> = allowed.map(|field| format!("'{}'", field.key)).collect();
    checker.report_with_help(
        Code::UnknownField,
        unknown[0].key_range,
        format!(
            "Unexpected fields in frontmatter: {}. Only [{}] are allowed.",
            keys.join(", "),
            allowed.join(", ")
        ),
        "put your own data under 'metadata'",
    );
}

/// The known field that the author probably meant.
fn nearest(key: &str, profile: Profile) -> Option<&'static str> {
    let known = || FIELDS.iter().filter(|field| is_known(field, profile)).map(|field| field.key);
    let folded = key.to_ascii_lowercase();
    let separators = |text: &str| text.replace('_', "-");
    known()
        .find(|field| separators(field) == separators(&folded))
        .or_else(|| nearest_name(&folded, known()))
}
