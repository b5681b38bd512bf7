//! Loading a skill: its text, counted.

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::response::{IntoResponse, Response};
use prowess_runtime::{SessionKey, estimate_tokens};
use prowess_store::{UsageKind, Use, VersionedSkill};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::asked::skill_text;
use super::existing;
use super::read::JSON;
use crate::app::App;
use crate::extract::{JsonOrDefault, Path, Query};
use crate::identity::Identity;
use crate::prepared::{Load, LoadAnswer};
use crate::problem::Problem;

/// The most characters of the name of a session or an agent.
const MOST_CHARACTERS: usize = 256;

/// Who asks, for the metrics.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct Asker {
    /// The session that it is for; sessions are counted once.
    #[param(min_length = 1, max_length = 256, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    session_id: Option<String>,
    /// Another name of `session_id`, which counts before it.
    #[param(min_length = 1, max_length = 256, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    session: Option<String>,
    /// The agent that it is for.
    #[param(min_length = 1, max_length = 256, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    agent: Option<String>,
}

/// Who asks, for the metrics. What stands here counts before what stands in the address.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AskerBody {
    /// The session that it is for; sessions are counted once.
    #[schema(min_length = 1, max_length = 256, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    session_id: Option<String>,
    /// Another name of `session_id`, which counts before it.
    #[schema(min_length = 1, max_length = 256, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    session: Option<String>,
    /// The agent that it is for.
    #[schema(min_length = 1, max_length = 256, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    agent: Option<String>,
}

impl From<AskerBody> for Asker {
    fn from(body: AskerBody) -> Self {
        Self { session_id: body.session_id, session: body.session, agent: body.agent }
    }
}

impl Asker {
    /// Whether all names can be counted by; else 422.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let fits = |text: &String| {
            !text.is_empty()
                && text.chars().count() <= MOST_CHARACTERS
                && !text.chars().any(char::is_control)
        };
        let Self { session_id, session, agent } = self;
        for (name, text) in [("session_id", session_id), ("session", session), ("agent", agent)] {
            if !text.as_ref().is_none_or(fits) {
                let message =
                    format!("it must be 1 to {MOST_CHARACTERS} characters, none of control");
                return Err(Problem::invalid(&[name], message));
            }
        }
        Ok(())
    }

    /// The session that it is for.
    pub(super) fn session(&self) -> Option<&str> {
        self.session_id.as_deref().or(self.session.as_deref())
    }

    /// The agent that it is for.
    pub(super) fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// This one, as far as it says something.
    fn or(self, other: Self) -> Self {
        let session_id = self.session_id.or(self.session);
        Self {
            session_id: session_id.or(other.session_id).or(other.session),
            session: None,
            agent: self.agent.or(other.agent),
        }
    }
}

/// The text of a skill.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoadedText {
    skill_id: String,
    name: String,
    /// What is below the frontmatter, and above it what the host makes when the skill is loaded, such
    /// as the schema of a database.
    pub(crate) content: String,
    version_number: u64,
    semantic_version: String,
    tree_digest: String,
    /// How many tokens the content is, estimated.
    pub(crate) tokens: u64,
}

impl LoadedText {
    /// A text of the active version of a skill.
    pub(crate) fn new(skill: &VersionedSkill, content: String) -> Self {
        Self {
            skill_id: skill.id.to_string(),
            name: skill.active.about.title.clone(),
            tokens: estimate_tokens(&content) as u64,
            content,
            version_number: skill.active.number,
            semantic_version: skill.active.about.semantic_version.clone(),
            tree_digest: skill.active.tree_digest.to_string(),
        }
    }
}

/// Gives the text of a skill (level 2), what the host makes when it is loaded included, and counts it.
/// The answer is sent when the count is on the disk. Places for arguments stay as they are, and no
/// session has loaded the skill by this.
#[utoipa::path(
    post, path = "/skills/{skill_id}/load", tag = "skills", operation_id = "load_skill",
    params(
        ("skill_id" = String, Path, description = "The id of the skill"), Asker,
    ),
    request_body(content = Option<AskerBody>),
    responses(
        (status = 200, body = LoadedText, headers(("ETag" = String))),
        (status = 409, description = "The skill cannot be used here: it names what this host does not have", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "What the host makes when the skill is loaded could not be made", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn load(
    State(app): State<App>,
    identity: Identity,
    Path(id): Path<String>,
    Query(address): Query<Asker>,
    JsonOrDefault(body): JsonOrDefault<AskerBody>,
) -> Result<Response, Problem> {
    let body = Asker::from(body);
    body.check()?;
    address.check()?;
    let asker = body.or(address);
    let shelved = existing(&app, &id).await?;
    let ready = app.prepared(&shelved).await?;
    let mut it = used(&identity, UsageKind::Load, &id, &asker);
    it.version = Some(ready.version);
    let made;
    let answer = match &ready.load {
        Load::Ready(answer) => answer,
        Load::Asked(skill) => {
            let text = skill_text(&app, &identity, &asker, skill.clone()).await?;
            made = LoadAnswer::new(&shelved.skill, text)?;
            &made
        }
    };
    (it.bytes, it.tokens) = answer.content;
    let time = it.time;
    app.counter().count(it).await?;
    shelved.loaded_at(time);
    Ok(([(CONTENT_TYPE, JSON), (ETAG, ready.etag.clone())], answer.sent.clone()).into_response())
}

/// A use of a skill by whoever asks.
fn used(identity: &Identity, kind: UsageKind, id: &str, asker: &Asker) -> Use {
    let mut it = Use::new(kind, id);
    // As the engine calls it: sessions of two users are two, and one is one by whichever way.
    let (app, user) = (SessionKey::DEFAULT_APP, identity.user());
    it.session = asker.session().map(|session| format!("{app}/{user}/{session}"));
    it.agent.clone_from(&asker.agent);
    it
}

/// Counts that a text was given.
pub(super) async fn counted(
    app: &App,
    identity: &Identity,
    kind: UsageKind,
    id: &str,
    version: u64,
    asker: &Asker,
    (bytes, content): (u64, &str),
) -> Result<(), Problem> {
    let mut it = used(identity, kind, id, asker);
    it.version = Some(version);
    (it.bytes, it.tokens) = (bytes, estimate_tokens(content) as u64);
    Ok(app.counter().count(it).await?)
}
