//! Scripted conversations.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use prowess_catalog::{Catalog, DirectorySource, MemoryFile, MemorySource};
use serde::Deserialize;
use serde_json::Value;

/// The conversations that are built in.
const BUILT_IN: &[&str] = &[
    include_str!("../../scenarios/release-notes.toml"),
    include_str!("../../scenarios/brand-landing-page.toml"),
    include_str!("../../scenarios/internal-comms.toml"),
    include_str!("../../scenarios/late-docs.toml"),
    include_str!("../../scenarios/three-skills.toml"),
];

/// A scripted conversation: what the user and the model say, and what tools answer.
///
/// ```toml
/// name = "release notes"
/// about = "One skill, one doc"
/// system = "You are a release manager."
/// corpus = true                        # the skills of the corpus; or
/// [[skill]]                            # skills of its own
/// text = "---\nname: …"
/// [skill.files]
/// "references/style.md" = "…"
/// [[tool]]                             # tools of the host
/// name = "skill_run"
/// description = "…"
/// parameters = '{"type": "object"}'
/// [[turn]]
/// user = "Write the notes."
/// [[turn.step]]
/// tool = "load_skill"
/// arguments = '{"skill": "release-notes"}'
/// [[turn.step]]
/// say = "Done."
/// ```
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) about: String,
    #[serde(default)]
    pub(crate) system: String,
    /// Whether skills of the corpus are used: all of them are listed.
    #[serde(default)]
    pub(crate) corpus: bool,
    #[serde(default)]
    skill: Vec<OwnSkill>,
    #[serde(default)]
    pub(crate) tool: Vec<HostTool>,
    pub(crate) turn: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnSkill {
    text: String,
    #[serde(default)]
    files: std::collections::BTreeMap<String, String>,
}

/// A tool of the host, whose answers are in the script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: String,
}

/// What the user says, and what the model does about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    pub(crate) user: String,
    pub(crate) step: Vec<Step>,
}

/// One message of the model: a call or words.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Option<String>,
    /// What a tool of the host answers.
    pub(crate) answer: Option<String>,
    /// The answer has so many words instead.
    pub(crate) answer_words: usize,
    pub(crate) say: Option<String>,
    /// The step happens so many times.
    pub(crate) times: Option<usize>,
}

impl Step {
    /// What the tool answers.
    pub(crate) fn answered(&self) -> String {
        match &self.answer {
            Some(answer) => answer.clone(),
            None => (0..self.answer_words).map(|at| format!("word{} ", at % 97)).collect(),
        }
    }

    pub(crate) fn parsed_arguments(&self) -> anyhow::Result<Value> {
        let text = self.arguments.as_deref().unwrap_or("{}");
        serde_json::from_str(text).with_context(|| format!("arguments: {text}"))
    }
}

impl Scenario {
    /// The conversations in files, or those that are built in.
    pub(crate) fn all(paths: &[PathBuf]) -> anyhow::Result<Vec<Self>> {
        if paths.is_empty() {
            return BUILT_IN.iter().map(|text| Ok(toml::from_str(text)?)).collect();
        }
        let read = |path: &PathBuf| -> anyhow::Result<Self> {
            let place = || path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(place)?;
            toml::from_str(&text).with_context(place)
        };
        paths.iter().map(read).collect()
    }

    /// Its skills; `None` if they are not there.
    pub(crate) fn catalog(&self, corpus: &Path) -> anyhow::Result<Option<Catalog>> {
        if self.corpus {
            let builder = Catalog::builder().source(DirectorySource::new(corpus));
            return Ok(corpus.is_dir().then(|| builder.build()));
        }
        ensure!(!self.skill.is_empty(), "scenario '{}' has no skills", self.name);
        let mut source = MemorySource::new("scenario");
        for (at, skill) in self.skill.iter().enumerate() {
            let parsed = prowess_format::Skill::parse(&skill.text, &Default::default());
            let name = parsed.skill.as_ref().map(|skill| skill.name().to_owned());
            let name =
                name.with_context(|| format!("skill {at} of '{}' is no skill", self.name))?;
            source = source.with_skill(&name, skill.text.clone());
            for (path, text) in &skill.files {
                source = source.with_file(&name, path, MemoryFile::new(text.clone()));
            }
        }
        Ok(Some(Catalog::builder().source(source).build()))
    }
}
