//! The rules, one file per subject, in the order in which the reference library reports.

mod body;
mod configs;
mod description;
mod fields;
mod files;
mod hooks;
mod metadata;
mod name;
mod portable;
mod scalars;
mod tools;
mod types;

use super::{Checker, Document};

/// A rule looks at a document and reports what it finds.
pub(crate) type Rule = fn(&Document<'_>, &mut Checker<'_>);

/// All rules.
pub(crate) const ALL: &[Rule] = &[
    fields::check,
    name::check,
    description::check,
    types::check,
    scalars::check,
    metadata::check,
    tools::check,
    configs::check,
    files::check,
    hooks::check,
    portable::check,
    body::check,
];
