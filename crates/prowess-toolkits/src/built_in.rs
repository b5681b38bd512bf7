//! The skills that come with the toolkits.

use prowess_catalog::{MemoryFile, MemorySource, SourceInfo};

/// A skill that comes with a toolkit: a folder of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltInSkill {
    /// Its name.
    pub name: &'static str,
    /// Its files: paths and bytes. `SKILL.md` comes first.
    pub files: &'static [(&'static str, &'static [u8])],
}

#[cfg(any(feature = "sql", feature = "jira", feature = "xlsx"))]
macro_rules! skill {
    ($name:literal, $folder:literal, $($file:literal),+) => {
        BuiltInSkill {
            name: $name,
            files: &[$((
                $file,
                include_bytes!(concat!("../../../skills/", $folder, "/", $file)),
            )),+],
        }
    };
}

impl BuiltInSkill {
    /// All of them, as far as their toolkits are part of this program.
    pub const ALL: &'static [Self] = &[
        #[cfg(feature = "sql")]
        skill!(
            "write_sql",
            "sql",
            "SKILL.md",
            "examples.md",
            "patterns.md",
            "anti_patterns.md",
            "dialect_reference.md"
        ),
        #[cfg(feature = "xlsx")]
        skill!("xlsx", "xlsx", "SKILL.md", "examples.md", "formatting.md", "recalc.md"),
        #[cfg(feature = "jira")]
        skill!("jira", "jira", "SKILL.md", "jql_reference.md"),
    ];

    /// These skills as a source of a catalog. It is trusted.
    pub fn source(skills: &[Self]) -> MemorySource {
        let source = MemorySource::new("built-in");
        let source = source.with_info(SourceInfo::new("built-in", "builtin:"));
        let files = |skill: &Self| skill.files.iter().map(|file| (skill.name, *file)).collect();
        let all = skills.iter().flat_map(|skill| -> Vec<_> { files(skill) });
        all.fold(source, |source, (skill, (path, bytes))| {
            source.with_file(skill, path, MemoryFile::new(bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_their_folders_is_there() {
        let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
        for skill in BuiltInSkill::ALL {
            let folder = skills.join(skill.name.trim_start_matches("write_"));
            let read = std::fs::read_dir(&folder).unwrap();
            let names = read.map(|it| it.unwrap().file_name().into_string().unwrap());
            let here: BTreeSet<String> =
                skill.files.iter().map(|(path, _)| (*path).into()).collect();
            assert_eq!(here, names.collect(), "{}", skill.name);
            assert_eq!(skill.files[0].0, "SKILL.md");
        }
    }
}
