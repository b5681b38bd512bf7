//! Conversations played offline, request by request, on the real engine.

mod cache;
mod scenario;
mod translate;

pub(crate) use cache::{Cached, LEAST, cached};
pub(crate) use scenario::Scenario;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use prowess_catalog::{Catalog, ResourceScope};
use prowess_runtime::{
    AgentName, Dialect, Guidance, LoadMode, LoadRequest, Message, Part, Placement, Prompt,
    PromptRequest, Runtime, SessionKey, Settings, Step, ToolCall, ToolDeclaration, ToolOutcome,
    TurnRequest, WhenFull, tool_fn,
};

use self::translate::Translator;
use crate::commands::prompt::message_text;
use crate::tokens;

/// What a layout puts where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Ours.
    Prowess(Placement, LoadMode),
    /// All skills in the system prompt from the beginning; with their docs, or without.
    Everything { docs: bool },
    /// That of trpc-agent-go with loaded text in the system prompt.
    TrpcSystem,
    /// That of trpc-agent-go with loaded text in the last result of each skill.
    TrpcToolResult,
}

/// The tokens that trpc-agent-go spends on tools and on guidance in every request.
const TRPC_TOOLS: usize = 1_770;
const TRPC_GUIDANCE: usize = 1_173;

/// What a load mode is called.
pub(crate) fn mode_name(mode: LoadMode) -> &'static str {
    match mode {
        LoadMode::Turn => "turn",
        LoadMode::Once => "once",
        LoadMode::Session => "session",
    }
}

impl Layout {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Prowess(Placement::ToolResult, it) => format!("tool_result {}", mode_name(it)),
            Self::Prowess(Placement::System, it) => format!("system {}", mode_name(it)),
            Self::Everything { docs: true } => "everything, with docs".to_owned(),
            Self::Everything { docs: false } => "everything, bodies only".to_owned(),
            Self::TrpcSystem => "trpc-agent-go, system".to_owned(),
            Self::TrpcToolResult => "trpc-agent-go, tool results".to_owned(),
        }
    }

    fn settings(self, dialect: &Dialect) -> Settings {
        let mut settings = dialect.settings().clone();
        let (placement, mode) = match self {
            Self::Prowess(placement, mode) => (placement, mode),
            Self::TrpcSystem | Self::TrpcToolResult | Self::Everything { .. } => {
                (Placement::System, LoadMode::Session)
            }
        };
        settings.placement = placement;
        settings.load_mode = mode;
        settings.when_full = WhenFull::Evict;
        match self {
            Self::Prowess(..) => {}
            Self::Everything { .. } => {
                settings.max_loaded_skills = usize::MAX;
                settings.max_given_bytes = usize::MAX;
            }
            Self::TrpcSystem | Self::TrpcToolResult => settings.listing.guidance = Guidance::None,
        }
        settings
    }
}

/// The requests of a conversation, as tokens.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// Each request: tools, system prompt, messages.
    pub(crate) requests: Vec<Vec<u32>>,
    /// What the first one spends on tools, guidance and listing.
    pub(crate) first: Overhead,
}

#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Overhead {
    pub(crate) tools: usize,
    pub(crate) guidance: usize,
    pub(crate) listing: usize,
}

impl Played {
    pub(crate) fn total(&self) -> usize {
        self.requests.iter().map(Vec::len).sum()
    }
}

/// Plays a conversation; `None` if its skills are not there.
pub(crate) async fn play(
    scenario: &Scenario,
    layout: Layout,
    corpus: &Path,
    dialect: &Dialect,
) -> anyhow::Result<Option<Played>> {
    let Some(catalog) = scenario.catalog(corpus)? else { return Ok(None) };
    catalog.refresh().await;
    let answers: Arc<Mutex<VecDeque<String>>> = Arc::default();
    // What others do is modelled in our own words.
    let dialect = match layout {
        Layout::TrpcSystem | Layout::TrpcToolResult => Dialect::built_in()?,
        _ => dialect.clone(),
    };
    let mut builder = Runtime::builder(catalog.clone())
        .settings(layout.settings(&dialect))
        .dialect(dialect.clone())
        .token_counter(Arc::new(tokens::count));
    let mut declarations = Vec::new();
    for tool in &scenario.tool {
        let parameters = serde_json::from_str(&tool.parameters)?;
        declarations.push(ToolDeclaration::new(&tool.name, &tool.description, parameters));
    }
    declarations.extend(translate::reading_tool(&dialect, scenario));
    for declaration in declarations {
        let answers = Arc::clone(&answers);
        builder = builder.tool(tool_fn(declaration, move |_| {
            let answer = answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            async move { ToolOutcome::text(answer.unwrap_or_default()) }
        }));
    }
    let translator = Translator::new(&catalog, dialect)?;
    let player = Player {
        scenario,
        layout,
        translator,
        runtime: builder.build()?,
        session: "replay".parse()?,
        agent: AgentName::default(),
        answers,
    };
    player.play(&catalog).await.map(Some)
}

/// Remembers the tokens of a text: requests repeat most of what was said before.
#[derive(Default)]
pub(crate) struct Encoder {
    known: HashMap<String, Vec<u32>>,
}

impl Encoder {
    fn append(&mut self, text: String, request: &mut Vec<u32>) {
        let tokens = self.known.entry(text).or_insert_with_key(|text| tokens::encode(text));
        request.extend_from_slice(tokens);
    }

    /// A request as tokens: what stands in front, the system prompt, the messages.
    pub(crate) fn request(
        &mut self,
        front: Vec<u32>,
        system: String,
        messages: &[Message],
    ) -> Vec<u32> {
        let mut request = front;
        self.append(system, &mut request);
        for message in messages {
            self.append(message_text(message), &mut request);
        }
        request
    }
}

struct Player<'a> {
    scenario: &'a Scenario,
    layout: Layout,
    translator: Translator,
    runtime: Runtime,
    session: SessionKey,
    agent: AgentName,
    answers: Arc<Mutex<VecDeque<String>>>,
}

impl Player<'_> {
    async fn play(&self, catalog: &Catalog) -> anyhow::Result<Played> {
        let mut played = Played::default();
        let mut encoder = Encoder::default();
        let mut number = 0;
        for (at, turn) in self.scenario.turn.iter().enumerate() {
            let mut request = TurnRequest::new().with_message(Message::user(&turn.user));
            if let (Layout::Everything { docs }, 0) = (self.layout, at) {
                for load in everything(catalog, docs).await {
                    request = request.with_load(load);
                }
            }
            self.runtime.begin_turn(&self.session, &self.agent, request).await?;
            for step in &turn.step {
                for _ in 0..step.times.unwrap_or(1) {
                    self.record(&mut played, &mut encoder).await?;
                    number += 1;
                    self.step(step, number).await?;
                }
            }
        }
        Ok(played)
    }

    async fn step(&self, step: &scenario::Step, number: usize) -> anyhow::Result<()> {
        if let Some(tool) = &step.tool {
            let mut calls = Vec::new();
            let asked = self.translator.calls(tool, step.parsed_arguments()?).await?;
            for (at, call) in asked.into_iter().enumerate() {
                let answer = call.answer.unwrap_or_else(|| step.answered());
                self.answers.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
                calls.push(ToolCall::new(format!("call_{number}_{at}"), call.tool, call.arguments));
            }
            let result =
                self.runtime.dispatch_batch(&self.session, &self.agent, Step::new(calls)).await?;
            // Under `once` a skill is gone by now; the model is told, and that is counted too.
            let is_wrong =
                |outcome: &&ToolOutcome| outcome.is_error && outcome.code != "skill_not_loaded";
            if let Some(outcome) = result.outcomes.iter().find(is_wrong) {
                let name = &self.scenario.name;
                anyhow::bail!("scenario '{name}', step {number}: {}", outcome.content);
            }
            // What was not taken was for a tool of ours.
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        if let Some(text) = &step.say {
            let message = vec![Message::assistant(text)];
            self.runtime.append(&self.session, &self.agent, message).await?;
        }
        Ok(())
    }

    /// Makes a request and counts it.
    async fn record(&self, played: &mut Played, encoder: &mut Encoder) -> anyhow::Result<()> {
        let mut ask = PromptRequest::new();
        if !self.scenario.system.is_empty() {
            ask = ask.with_system(&self.scenario.system);
        }
        let mut prompt = self.runtime.request(&self.session, &self.agent, ask).await?;
        let listing = self.runtime.listing(&self.session, &self.agent).await?.text;
        let (tools, guidance) = match self.layout {
            Layout::TrpcSystem | Layout::TrpcToolResult => {
                // Tokens that no text has: they are the same in every request.
                (vec![u32::MAX; TRPC_TOOLS], vec![u32::MAX - 1; TRPC_GUIDANCE])
            }
            _ => (tokens::encode(&serde_json::to_string(&prompt.tools)?), Vec::new()),
        };
        if self.layout == Layout::TrpcToolResult {
            self.move_to_last_result(&mut prompt, &listing).await?;
        }
        if played.requests.is_empty() {
            played.first = match guidance.len() {
                0 => self.overhead().await?,
                guidance => {
                    Overhead { tools: tools.len(), guidance, listing: tokens::count(&listing) }
                }
            };
        }
        let mut front = tools;
        front.extend(guidance);
        played.requests.push(encoder.request(front, prompt.system, &prompt.messages));
        Ok(())
    }

    /// What a request spends before anything is loaded, wherever the listing stands.
    async fn overhead(&self) -> anyhow::Result<Overhead> {
        let session: SessionKey = "overhead".parse()?;
        let ask = PromptRequest::new().with_system(&self.scenario.system);
        let prompt = self.runtime.prompt(&session, &self.agent, ask).await?;
        let listing = self.runtime.listing(&session, &self.agent).await?.text;
        let mut tools = prompt.tools.to_vec();
        for tool in &mut tools {
            tool.description = tool.description.replacen(&listing, "", 1);
        }
        let (own, rest) = (&self.scenario.system, prompt.system.replacen(&listing, "", 1));
        Ok(Overhead {
            tools: tokens::count(&serde_json::to_string(&tools)?),
            guidance: tokens::count(&rest).saturating_sub(tokens::count(own)),
            listing: tokens::count(&listing),
        })
    }

    /// Moves the blocks of loaded skills from the system prompt to the last result of each.
    async fn move_to_last_result(&self, prompt: &mut Prompt, listing: &str) -> anyhow::Result<()> {
        let stored = self.runtime.sessions().messages(&self.session, &self.agent).await?;
        let about = |name: &str, call: &str| {
            let results = stored.iter().flat_map(Message::tool_results);
            let mut results = results.filter(|result| result.call_id == call);
            results.any(|it| it.expansion.as_ref().is_some_and(|it| it.skill == name))
        };
        let Some(end) = prompt.system.find(listing).map(|at| at + listing.len()) else {
            return Ok(());
        };
        let blocks = prompt.system.split_off(end);
        for block in blocks.split("\n\n[Loaded] ").skip(1) {
            let name = block.lines().next().unwrap_or_default();
            let messages = Arc::make_mut(&mut prompt.messages);
            let results = messages.iter_mut().rev().flat_map(|it| it.parts.iter_mut().rev());
            let last = results.into_iter().find_map(|part| match part {
                Part::ToolResult(result) if about(name, &result.call_id) => Some(result),
                _ => None,
            });
            if let Some(result) = last {
                result.content = format!("[Loaded] {block}");
            }
        }
        Ok(())
    }
}

/// Every skill that can be loaded, with all docs or without.
async fn everything(catalog: &Catalog, docs: bool) -> Vec<LoadRequest> {
    let snapshot = catalog.snapshot();
    let mut loads = Vec::new();
    for skill in snapshot.skills() {
        let mut load = LoadRequest::new(skill.name());
        if docs {
            let listing = skill.resources(ResourceScope::Recursive).await.unwrap_or_default();
            for doc in listing.resources.iter().filter(|it| it.is_doc()) {
                // What is no text cannot be put into a prompt.
                if skill
                    .read_resource(&doc.path)
                    .await
                    .is_ok_and(|it| String::from_utf8(it).is_ok())
                {
                    load = load.with_doc(doc.path.as_str());
                }
            }
        }
        loads.push(load);
    }
    loads
}
