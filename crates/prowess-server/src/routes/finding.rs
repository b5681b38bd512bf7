//! What was found out about a skill that somebody sends.

use std::sync::Arc;

use prowess_catalog::SkillContents;
use prowess_format::{Diagnostic, Level};
use prowess_store::{SKILL_FILE, SkillReading, VersionSource};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::heavy::heavy;
use crate::problem::Problem;

/// What is said to whoever sends a skill that this engine cannot use.
const STORED: &str = "the skill is stored all the same, for hosts that it fits; here no agent can \
                      load it";

/// Something that was found out about a text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Finding {
    code: &'static str,
    /// `error`, `warning` or `info`.
    level: String,
    message: String,
    path: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    help: Option<String>,
}

impl From<&Diagnostic> for Finding {
    fn from(it: &Diagnostic) -> Self {
        Self {
            code: it.code.as_str(),
            level: it.level.to_string(),
            message: it.message.clone(),
            path: it.path.as_ref().map(ToString::to_string),
            line: it.span.map(|span| span.line),
            column: it.span.map(|span| span.column),
            help: it.help.as_ref().map(ToString::to_string),
        }
    }
}

/// What there is to say about a skill that is or would be stored: about its text, and about what it
/// declares, as far as this engine cannot use that.
pub(super) async fn findings(
    app: &App,
    reading: &SkillReading,
    contents: &Arc<SkillContents>,
) -> Result<Vec<Finding>, Problem> {
    let (id, files) = (reading.id.clone(), Arc::clone(contents));
    let skill = heavy(contents.bytes(), move || VersionSource::skill_of(&id, &files)).await?;
    let of_use = match skill {
        Some(skill) => app.runtime().findings(&skill).await,
        None => Vec::new(),
    };
    // What keeps the engine from using it is said by the text's own rules as well.
    let is_of_use = |it: &&Diagnostic| {
        of_use.iter().any(|other| other.code == it.code && other.message == it.message)
    };
    let of_text = reading.diagnostics.iter().filter(|it| !is_of_use(it)).map(Finding::from);
    let mut findings: Vec<Finding> = of_text.collect();
    findings.extend(of_use.into_iter().map(of_engine));
    Ok(findings)
}

/// What the engine found, in the words of whoever sent the text.
fn of_engine(found: Diagnostic) -> Finding {
    let help = match (found.help.as_deref(), found.level) {
        (Some(help), Level::Error) => Some(format!("{help}; {STORED}")),
        (None, Level::Error) => Some(STORED.to_owned()),
        (help, _) => help.map(str::to_owned),
    };
    Finding { help, ..Finding::from(&found.with_path(SKILL_FILE)) }
}
