//! The rules, one file per subject, in the order in which the reference library reports.

mod body;
mod configs;
mod description;
mod fields;
mod hooks;
mod name;
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
    tools::check,
    configs::check,
    hooks::check,
    body::check,
];
