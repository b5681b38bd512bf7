//! What a session is given of a skill: its text, its docs, its resources.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use prowess_catalog::{
    CatalogSkill, ContentError, LeftOutReason, LookupError, ReadError, ResourcePath, Snapshot,
    Trust,
};
use prowess_format::{Arguments, Context, Digest};
use serde_json::{Value, json};

use crate::bind::Quarantined;
use crate::engine::{Engine, content_failure};
use crate::event::EventKind;
use crate::handlers::Handler;
use crate::message::ToolCall;
use crate::outcome::ToolOutcome;
use crate::runtime::Inner;
use crate::session::{KnownResources, LoadedSkill, SessionState, ToolRules};
use crate::tool::Invocation;
use crate::tools::LOAD;
use crate::turn::LoadedBy;
use crate::visibility::Visibility;

/// A skill that was opened to be loaded.
pub(crate) struct Opened {
    /// What the state keeps.
    pub(crate) loaded: LoadedSkill,
    /// Its text.
    pub(crate) text: SkillText,
    /// Another model that it asks for.
    pub(crate) model: Option<String>,
    /// What else happened.
    pub(crate) notes: Vec<(EventKind, String)>,
}

/// The text of a skill.
pub(crate) struct SkillText {
    /// What stands above the body: the frontmatter and its fences.
    pub(crate) head: String,
    /// The body, with arguments put in.
    pub(crate) body: String,
}

/// A doc whose text is given.
pub(crate) struct GivenDoc {
    pub(crate) path: String,
    pub(crate) digest: Digest,
    pub(crate) text: String,
}

impl GivenDoc {
    pub(crate) fn to_json(&self) -> Value {
        json!({"path": self.path, "text": self.text})
    }
}

/// Which docs are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WantedDocs<'a> {
    All,
    These(&'a [String]),
}

/// The folder that a skill is in, as somebody would have to write it who looks for it.
pub(crate) fn folder_of(skill: &CatalogSkill) -> String {
    let path = skill.path();
    let folder = path.parent().unwrap_or(Path::new(""));
    // Only a folder on the disk has an absolute path.
    let on_disk = skill.source().watched_folder().and_then(|_| std::path::absolute(folder).ok());
    on_disk.as_deref().unwrap_or(folder).display().to_string()
}

/// The name that a session knows a skill by: its own, or the qualified one if another skill
/// answers to its own.
pub(crate) fn session_name(snapshot: &Snapshot, skill: &CatalogSkill) -> String {
    let is_first = snapshot.get(skill.name()).is_ok_and(|first| {
        first.source_id() == skill.source_id() && first.found() == skill.found()
    });
    match is_first {
        true => skill.name().to_owned(),
        false => skill.qualified_name(),
    }
}

impl Inner {
    /// What says something above the body of a skill when it is loaded. Only those that are trusted
    /// are said something above.
    pub(crate) fn opening(&self, skill: &CatalogSkill) -> Option<&Arc<dyn Handler>> {
        self.handlers.opening(skill.name()).filter(|_| skill.trust() == Trust::Trusted)
    }

    /// The text of a skill as a session has pinned it, with its arguments; `None` if it is lost.
    pub(crate) async fn pinned_text(
        &self,
        loaded: &LoadedSkill,
        skill: Option<&CatalogSkill>,
        session: &str,
    ) -> Result<Option<SkillText>, ContentError> {
        let bytes: Option<Arc<[u8]>> = match (self.kept_or_lost(loaded.digest).await?, skill) {
            (Some(bytes), _) => Some(bytes),
            (None, Some(skill)) if skill.found().digest == loaded.digest => {
                skill.read().await.ok().map(Into::into)
            }
            (None, _) => None,
        };
        let whole = bytes.as_deref().and_then(|bytes| parts_of(bytes).ok());
        let head = whole.map(|(head, _)| head.to_owned()).unwrap_or_default();
        if let Some(text) = loaded.text
            && let Some(kept) = self.kept_or_lost(text).await?
        {
            let body = String::from_utf8_lossy(&kept).into_owned();
            return Ok(Some(SkillText { head, body }));
        }
        let (Some(bytes), Some((_, body))) = (&bytes, whole) else { return Ok(None) };
        // The names of its arguments are those of the text that is pinned.
        let parse = |_| prowess_format::Skill::parse_bytes(bytes, &Default::default()).skill;
        let pinned = body.find('$').and_then(parse);
        let names = pinned.map(|it| it.frontmatter.arguments()).unwrap_or_default();
        let path = skill.map(CatalogSkill::path);
        let limit = self.settings.max_given_bytes;
        let body = with_arguments(path.as_deref(), names, body, &loaded.arguments, session, limit);
        Ok(body.map(|body| SkillText { head, body }))
    }
}

/// Puts arguments into a text that has places for them; every other text stays as it is. They may
/// make it longer by so many bytes; else there is none.
fn with_arguments(
    path: Option<&Path>,
    names: Vec<String>,
    body: &str,
    arguments: &str,
    session: &str,
    limit: usize,
) -> Option<String> {
    let has_places = body.contains("$ARGUMENTS") || body.contains("${CLAUDE_");
    if arguments.is_empty() && names.is_empty() && !has_places {
        return Some(body.to_owned());
    }
    arguments_of(path, names, arguments, session)
        .substitute_within(body, body.len().saturating_add(limit))
}

/// What the places in a text stand for.
fn arguments_of(
    path: Option<&Path>,
    names: Vec<String>,
    arguments: &str,
    session: &str,
) -> Arguments {
    let folder = path.and_then(Path::parent).unwrap_or(Path::new("")).display().to_string();
    Arguments::new(arguments)
        .with_names(names)
        .with_variable("CLAUDE_SKILL_DIR", folder)
        .with_variable("CLAUDE_SESSION_ID", session)
}

impl Engine<'_> {
    /// The skill of this name, or what to tell the model.
    pub(crate) fn find<'s>(
        &self,
        snapshot: &'s Snapshot,
        name: &str,
    ) -> Result<&'s CatalogSkill, ToolOutcome> {
        match snapshot.get(name) {
            // A host may have changed its mind since the snapshot was taken.
            Ok(skill) if self.visibility(skill) != Visibility::Hidden => Ok(skill),
            Err(LookupError::Ambiguous { candidates, .. }) => Err(ToolOutcome::failed(
                "skill_ambiguous",
                json!({"skill": name, "candidates": candidates}),
            )),
            _ => {
                if let Some(quarantined) = self.quarantined(name) {
                    return Err(quarantined);
                }
                let shown = |skill: &&CatalogSkill| self.visibility(skill) < Visibility::ManualOnly;
                let names = snapshot.skills().iter().filter(shown).map(CatalogSkill::name);
                let names: Vec<&str> = names.collect();
                let nearest = prowess_format::nearest_name(name, names.iter().copied());
                let (available, more) =
                    self.some(names.iter().map(|name| (*name).to_owned()).collect());
                let data = json!({
                    "skill": name, "available": available, "more": more, "nearest": nearest,
                });
                Err(ToolOutcome::failed("skill_not_found", data))
            }
        }
    }

    /// What is said of a skill that is there and cannot be used.
    fn quarantined(&self, name: &str) -> Option<ToolOutcome> {
        let is_it = |it: &&Quarantined| {
            it.skill.name() == name && self.visibility(&it.skill) != Visibility::Hidden
        };
        self.view.quarantined.iter().find(is_it).map(refused)
    }

    /// The body of a skill as its author wrote it, below what the host says above it.
    pub(crate) async fn text_as_written(
        &self,
        snapshot: &Snapshot,
        skill: &CatalogSkill,
    ) -> Result<String, ToolOutcome> {
        let (name, path) = (skill.name(), skill.path().display().to_string());
        let text = skill.read().await.map_err(|error| read_failure(name, &path, &error))?;
        let (_, body) = parts_of(&text)
            .map_err(|error| unreadable("skill_not_text", name, &path, &error.to_string()))?;
        let opening = self.opening(snapshot, skill).await?;
        self.below(name, opening, body.to_owned())
    }

    /// A body below what the host says above it.
    fn below(
        &self,
        name: &str,
        opening: Option<String>,
        body: String,
    ) -> Result<String, ToolOutcome> {
        let Some(opening) = opening else { return Ok(body) };
        self.check_size(name, "opening", opening.len())?;
        Ok(format!("{}\n\n{}", opening.trim_end(), body.trim_start_matches(['\r', '\n'])))
    }

    /// What stands above the body of a skill, if the host has something to say there.
    async fn opening(
        &self,
        snapshot: &Snapshot,
        skill: &CatalogSkill,
    ) -> Result<Option<String>, ToolOutcome> {
        let Some(handler) = self.inner.opening(skill) else { return Ok(None) };
        let call = ToolCall::new("", LOAD, json!({}));
        let (session, agent, state) = (self.session, self.agent, &SessionState::default());
        let invocation = Invocation { session, agent, state, snapshot, call: &call, engine: self };
        let outcome = handler.call(invocation).await;
        match outcome.is_error {
            true => Err(outcome.about(skill.name())),
            false => Ok(Some(outcome.content).filter(|text| !text.is_empty())),
        }
    }

    /// As many names as an error lists, and how many more there are.
    pub(crate) fn some(&self, mut names: Vec<String>) -> (Vec<String>, usize) {
        let more = names.len().saturating_sub(self.settings().max_listed_names);
        names.truncate(self.settings().max_listed_names);
        (names, more)
    }

    /// Reads a skill that is to be loaded, and keeps its text.
    pub(crate) async fn open_skill(
        &self,
        snapshot: &Snapshot,
        skill: &CatalogSkill,
        arguments: &str,
        by: LoadedBy,
    ) -> Result<Opened, ToolOutcome> {
        let name = session_name(snapshot, skill);
        let path = skill.path().display().to_string();
        let frontmatter = &skill.found().frontmatter;
        if let Some(Context::Unknown(word)) = frontmatter.context() {
            let cause = format!("its context '{word}' is not known");
            return Err(unreadable("skill_invalid", &name, &path, &cause));
        }
        let whole = skill.whole().await.map_err(|error| read_failure(&name, &path, &error))?;
        let (head, body) = parts_of(&whole.text)
            .map_err(|error| unreadable("skill_not_text", &name, &path, &error.to_string()))?;
        self.check_size(&name, "arguments", arguments.len())?;
        let limit = self.settings().max_given_bytes;
        let (path_of_text, names) = (skill.path(), frontmatter.arguments());
        let commands = match by {
            LoadedBy::Model | LoadedBy::Host => Vec::new(),
            LoadedBy::Person => self.commands_of(body),
        };
        let session = self.session.session();
        let with = match commands.as_slice() {
            [] => with_arguments(Some(&path_of_text), names, body, arguments, session, limit),
            commands => {
                let values = arguments_of(Some(&path_of_text), names, arguments, session);
                self.with_commands(&name, skill, body, commands, values).await?
            }
        };
        let opening = self.opening(snapshot, skill).await?;
        let is_changed = opening.is_some() || with.as_deref() != Some(body);
        let head = head.to_owned();
        let body = with.ok_or_else(|| {
            let what = "the text with arguments";
            let data = json!({"skill": name, "what": what, "bytes": null, "limit": limit});
            ToolOutcome::failed("too_large", data)
        })?;
        let body = self.below(&name, opening, body)?;
        let mut notes = Vec::new();
        let mut note = |message: String| notes.push((EventKind::ResourcesUnlisted, message));
        let (resources, tree_digest) = match whole.files {
            Ok(files) => {
                let listing = files.listing.within(self.settings().resources);
                // A link out of the folder is no content, but somebody meant it to be.
                let is_missed = |reason: LeftOutReason| {
                    reason.loses_content() || reason == LeftOutReason::Outside
                };
                let mut missed = listing.left_out.iter().filter(|it| is_missed(it.reason));
                if let Some(left) = missed.next() {
                    let (path, why) = (&left.path, left.reason.as_str());
                    let more = match missed.count() {
                        0 => String::new(),
                        more => format!(" (and {more} more)"),
                    };
                    note(format!("'{path}' of skill '{name}' is not listed: {why}{more}"));
                }
                if let Err(error) = &files.tree_digest {
                    note(format!("The files of skill '{name}' cannot be pinned: {error}"));
                }
                (KnownResources::of(&listing.resources), files.tree_digest.ok())
            }
            Err(error) => {
                note(format!("Failed to list resources for skill '{name}': {error}"));
                (KnownResources::default(), None)
            }
        };
        self.keep(whole.text).await?;
        let mut loaded = LoadedSkill::new(name, skill.found().digest);
        loaded.tree_digest = tree_digest;
        loaded.version = version(skill);
        arguments.clone_into(&mut loaded.arguments);
        if is_changed {
            loaded.text = Some(self.keep(body.clone().into_bytes()).await?);
        }
        loaded.resources = resources;
        loaded.tools = ToolRules::of(skill);
        let model = frontmatter.model().filter(|model| *model != "inherit").map(str::to_owned);
        Ok(Opened { loaded, text: SkillText { head, body }, model, notes })
    }

    /// The text of a skill as this session has pinned it.
    pub(crate) async fn pinned_text(
        &self,
        loaded: &LoadedSkill,
        skill: Option<&CatalogSkill>,
    ) -> Result<SkillText, ToolOutcome> {
        self.check_size(&loaded.name, "arguments", loaded.arguments.len())?;
        let text = self.inner.pinned_text(loaded, skill, self.session.session()).await;
        let text = text.map_err(|error| content_failure(&error))?;
        text.ok_or_else(|| ToolOutcome::failed("content_lost", json!({"skill": loaded.name})))
    }

    /// Whether the text of a loaded skill is in the conversation.
    pub(crate) async fn is_loaded_here(
        &self,
        loaded: &LoadedSkill,
        skill: Option<&CatalogSkill>,
    ) -> Result<bool, ToolOutcome> {
        // What was to be sent once and was is given again to whoever asks.
        if loaded.sent {
            return Ok(false);
        }
        if loaded.call.is_some() {
            return self.is_in_transcript(loaded.call.as_deref(), "").await;
        }
        match self.pinned_text(loaded, skill).await {
            Ok(text) => self.is_in_transcript(None, &text.body).await,
            // It could not be given again; then it is assumed to be there.
            Err(_) => Ok(true),
        }
    }

    /// The paths of a skill's docs, in order.
    pub(crate) async fn doc_paths(
        &self,
        skill: &CatalogSkill,
    ) -> Result<Vec<ResourcePath>, ToolOutcome> {
        let docs = skill.docs().await.map_err(|error| {
            let path = skill.path().display().to_string();
            read_failure(skill.name(), &path, &error)
        })?;
        Ok(docs.resources.into_iter().map(|doc| doc.path).collect())
    }

    /// Reads docs of a skill, and keeps their text. All of them, or none.
    pub(crate) async fn docs(
        &self,
        name: &str,
        skill: &CatalogSkill,
        wanted: WantedDocs<'_>,
    ) -> Result<Vec<GivenDoc>, ToolOutcome> {
        let known = self.doc_paths(skill).await?;
        let paths: Vec<&ResourcePath> = match wanted {
            WantedDocs::All => known.iter().collect(),
            WantedDocs::These(paths) => {
                let mut found: Vec<&ResourcePath> = Vec::new();
                let mut missing: Vec<&str> = Vec::new();
                for path in paths {
                    let plain = path.strip_prefix("./").unwrap_or(path);
                    match known.iter().find(|doc| doc.as_str() == plain) {
                        Some(doc) if found.contains(&doc) => {}
                        Some(doc) => found.push(doc),
                        None => missing.push(path),
                    }
                }
                if !missing.is_empty() {
                    let known = known.iter().map(|path| path.as_str().to_owned()).collect();
                    let (available, more) = self.some(known);
                    return Err(ToolOutcome::failed(
                        "doc_not_found",
                        json!({"skill": name, "missing": missing, "available": available, "more": more}),
                    ));
                }
                found
            }
        };
        let mut docs = Vec::with_capacity(paths.len());
        let mut total = 0;
        for path in paths {
            let text = self.text_of(name, skill, path).await?;
            total += text.len();
            self.check_size(name, "docs", total)?;
            docs.push(GivenDoc {
                path: path.as_str().to_owned(),
                digest: Digest::of(text.as_bytes()),
                text,
            });
        }
        for doc in &docs {
            self.keep(doc.text.clone().into_bytes()).await?;
        }
        Ok(docs)
    }

    /// The text of a resource.
    pub(crate) async fn text_of(
        &self,
        name: &str,
        skill: &CatalogSkill,
        path: &ResourcePath,
    ) -> Result<String, ToolOutcome> {
        let unreadable = |cause: &str| {
            let data = json!({"skill": name, "resource": path.as_str(), "cause": cause});
            ToolOutcome::failed("resource_unreadable", data)
        };
        let bytes = skill.read_resource(path).await.map_err(|error| match error {
            ReadError::TooLarge { limit, .. } => {
                unreadable(&format!("it is larger than {limit} bytes"))
            }
            error => unreadable(&error.to_string()),
        })?;
        String::from_utf8(bytes).map_err(|_| {
            let data = json!({"skill": name, "resource": path.as_str()});
            ToolOutcome::failed("not_text", data)
        })
    }

    /// Whether so many bytes may be given at once.
    pub(crate) fn check_size(
        &self,
        name: &str,
        what: &str,
        bytes: usize,
    ) -> Result<(), ToolOutcome> {
        let limit = self.settings().max_given_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let data = json!({"skill": name, "what": what, "bytes": bytes, "limit": limit});
        Err(ToolOutcome::failed("too_large", data))
    }

    /// A loaded skill with the files that it was loaded with: as it is, if they are the same, or as
    /// its source has kept it.
    pub(crate) async fn pinned<'s>(
        &self,
        loaded: &LoadedSkill,
        skill: &'s CatalogSkill,
    ) -> Result<Cow<'s, CatalogSkill>, ToolOutcome> {
        let Some(pinned) = loaded.tree_digest else { return Ok(Cow::Borrowed(skill)) };
        if skill.tree_digest().await.is_ok_and(|actual| actual == pinned) {
            return Ok(Cow::Borrowed(skill));
        }
        let changed = || ToolOutcome::failed("content_changed", json!({"skill": loaded.name}));
        skill.earlier(pinned).await.map(Cow::Owned).ok_or_else(changed)
    }
}

/// The version that a skill's author gave it.
fn version(skill: &CatalogSkill) -> Option<String> {
    let frontmatter = &skill.found().frontmatter;
    frontmatter.version().or_else(|| frontmatter.metadata_text("version")).map(str::to_owned)
}

/// What stands above the body, and the body.
fn parts_of(bytes: &[u8]) -> Result<(&str, &str), std::str::Utf8Error> {
    let text = std::str::from_utf8(bytes)?;
    let body = prowess_format::split(text, usize::MAX).map_or(0, |split| split.body.start);
    Ok(text.split_at(body))
}

/// What is said of a skill that is there and cannot be used.
pub(crate) fn refused(quarantined: &Quarantined) -> ToolOutcome {
    let path = quarantined.skill.path().display().to_string();
    let name = quarantined.skill.name();
    unreadable("skill_invalid", name, &path, &quarantined.cause())
        .with_hint("Tell the user; `prowess doctor` says what is wrong.")
}

fn unreadable(code: &'static str, skill: &str, path: &str, cause: &str) -> ToolOutcome {
    ToolOutcome::failed(code, json!({"skill": skill, "path": path, "cause": cause})).with_note(
        EventKind::SkillUnreadable,
        format!("Failed to read SKILL.md at {path}: {cause}"),
    )
}

fn read_failure(skill: &str, path: &str, error: &ReadError) -> ToolOutcome {
    match error {
        ReadError::TooLarge { limit, .. } => {
            let cause = format!("it is larger than {limit} bytes");
            unreadable("skill_too_large", skill, path, &cause).with_data("limit", *limit)
        }
        error @ (ReadError::ContentChanged { .. } | ReadError::Replaced) => {
            unreadable("skill_changed", skill, path, &error.to_string())
        }
        error => unreadable("skill_unreadable", skill, path, &error.to_string()),
    }
}
