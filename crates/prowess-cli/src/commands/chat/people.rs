//! Which skills people can start.

use std::fmt;

use prowess_catalog::{CatalogSkill, LookupError, Snapshot};
use prowess_format::nearest_name;

use super::line::COMMANDS;

/// Why somebody cannot start a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// There is none, and no command either.
    Unknown { name: String, nearest: Option<String> },
    /// There are several.
    Ambiguous(LookupError),
    /// Its author has kept it for the model.
    ForTheModel { name: String },
}

impl Refused {
    /// The stable name of the cause.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_skill",
            Self::Ambiguous(_) => "ambiguous_name",
            Self::ForTheModel { .. } => "not_user_invocable",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, nearest: None } => {
                write!(formatter, "there is no command and no skill '{name}'")
            }
            Self::Unknown { name, nearest: Some(nearest) } => write!(
                formatter,
                "there is no command and no skill '{name}'; did you mean '{nearest}'?"
            ),
            Self::Ambiguous(error) => error.fmt(formatter),
            Self::ForTheModel { name } => write!(
                formatter,
                "'{name}' is not for people to start (user-invocable: false); the model loads it \
                 when it is needed"
            ),
        }
    }
}

/// The skill that somebody starts by its name.
pub(super) fn startable<'a>(
    snapshot: &'a Snapshot,
    name: &str,
) -> Result<&'a CatalogSkill, Refused> {
    let skill = snapshot.get(name).map_err(|error| match error {
        LookupError::Unknown { .. } => {
            let skills = snapshot.skills().iter().filter(|skill| is_for_people(skill));
            let commands = COMMANDS.iter().map(|(command, ..)| *command);
            let known = skills.map(CatalogSkill::name).chain(commands);
            let nearest = nearest_name(name, known).map(str::to_owned);
            Refused::Unknown { name: name.to_owned(), nearest }
        }
        other => Refused::Ambiguous(other),
    })?;
    match is_for_people(skill) {
        true => Ok(skill),
        false => Err(Refused::ForTheModel { name: skill.name().to_owned() }),
    }
}

/// Whether the author of a skill lets people start it.
pub(super) fn is_for_people(skill: &CatalogSkill) -> bool {
    skill.found().frontmatter.user_invocable()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use prowess_catalog::{Catalog, MemorySource};

    use super::*;

    fn snapshot() -> Snapshot {
        let text = |name: &str, more: &str| {
            format!("---\nname: {name}\ndescription: Does {name}.\n{more}---\nText.\n")
        };
        let source = MemorySource::new("tests")
            .with_skill("deploy", text("deploy", "disable-model-invocation: true\n"))
            .with_skill("style", text("style", "user-invocable: false\n"))
            .with_skill("review", text("review", ""));
        let catalog = Catalog::builder().source(source).build();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(catalog.refresh())
    }

    #[test]
    fn people_start_what_is_for_them() {
        let snapshot = snapshot();
        let table = [
            ("review", "review"),
            // Nobody else can.
            ("deploy", "deploy"),
            (
                "style",
                "not_user_invocable: 'style' is not for people to start (user-invocable: false); \
                 the model loads it when it is needed",
            ),
            (
                "reveiw",
                "unknown_skill: there is no command and no skill 'reveiw'; did you mean 'review'?",
            ),
            (
                "sklils",
                "unknown_skill: there is no command and no skill 'sklils'; did you mean 'skills'?",
            ),
            // What cannot be started is not offered.
            ("styel", "unknown_skill: there is no command and no skill 'styel'"),
            ("other", "unknown_skill: there is no command and no skill 'other'"),
        ];
        for (name, expected) in table {
            let found = match startable(&snapshot, name) {
                Ok(skill) => skill.name().to_owned(),
                Err(refused) => format!("{}: {refused}", refused.code()),
            };
            assert_eq!(found, expected);
        }
    }
}
