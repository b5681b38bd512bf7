//! `prowess demo`: a scripted model and the real engine play a session.

mod meter;
mod ran;
mod screen;
mod script;
mod shop;
mod workshop;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use anstream::stdout;
use futures_util::StreamExt;
use prowess_agent::{Agent, AgentEvent, RunLimits, RunRequest, SkillsMiddleware};
use prowess_catalog::{Catalog, Snapshot};
use prowess_runtime::{
    AllowedToolsPolicy, Dialect, Event, LoadMode, SessionKey, SessionState, Settings, Usage,
};
use prowess_workspace::LocalExecutor;
use serde_json::json;

use self::screen::Screen;
use self::shop::Shop;
use self::workshop::Workshop;
use crate::Outcome;
use crate::cli::DemoArgs;
use crate::tokens;
use crate::toolkits::local;

/// The modes that are compared in the end.
const MODES: [LoadMode; 3] = [LoadMode::Session, LoadMode::Turn, LoadMode::Once];

pub(crate) fn run(arguments: &DemoArgs) -> anyhow::Result<Outcome> {
    let dialect = match &arguments.dialect.dialect {
        Some(asked) => Dialect::find(asked)?,
        None => Dialect::built_in()?,
    };
    let mode = arguments.load_mode.map_or(dialect.settings().load_mode, LoadMode::from);
    let setting = Setting { dialect, executor: local(arguments.sandbox.best()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    match arguments.json {
        true => runtime.block_on(play_as_json(&setting, mode)),
        false => runtime.block_on(play_on_screen(&setting, mode)),
    }
}

/// What all sessions have in common.
struct Setting {
    dialect: Dialect,
    /// It tries to break out of its sandbox once, before the first command.
    executor: LocalExecutor,
}

/// Something that happens in the demo.
enum Happening<'a> {
    /// The user says something, and a turn begins with this state.
    Turn { user: &'a str, state: &'a SessionState },
    /// The agent does something.
    Agent(&'a AgentEvent),
    /// The engine has committed something.
    Engine(&'a Event),
}

/// What a session came to.
struct Played {
    mode: LoadMode,
    requests: usize,
    usage: Usage,
}

async fn play_as_json(setting: &Setting, mode: LoadMode) -> anyhow::Result<Outcome> {
    let demo = Demo::new(setting, mode).await?;
    let mut out = stdout().lock();
    demo.play(&mut |happening| {
        let line = match happening {
            Happening::Turn { user, .. } => json!({"event": "user", "text": user}),
            Happening::Agent(event) => serde_json::to_value(event)?,
            Happening::Engine(event) => json!({"event": "engine", "engine": event}),
        };
        Ok(writeln!(out, "{line}")?)
    })
    .await?;
    Ok(Outcome::Ok)
}

async fn play_on_screen(setting: &Setting, mode: LoadMode) -> anyhow::Result<Outcome> {
    let demo = Demo::new(setting, mode).await?;
    let mut screen = Screen::open();
    screen.found(&demo.snapshot, demo.listing_tokens().await?, demo.body_tokens().await?)?;
    let shown = demo.play(&mut |happening| screen.show(&happening)).await?;
    let mut all = Vec::new();
    for other in MODES.into_iter().filter(|other| *other != mode) {
        all.push(Demo::new(setting, other).await?.play(&mut |_| Ok(())).await?);
    }
    let at = MODES.iter().position(|it| *it == mode).unwrap_or_default();
    all.insert(at, shown);
    screen.sum_up(&demo.shop, mode, &all)?;
    Ok(Outcome::Ok)
}

/// A session that is about to be played.
struct Demo {
    agent: Agent,
    shop: Shop,
    snapshot: Snapshot,
    session: SessionKey,
    mode: LoadMode,
    /// What the engine has committed and nobody was told yet.
    committed: Arc<Mutex<Vec<Event>>>,
    /// Goes when the agent is gone.
    _workshop: Workshop,
}

impl Demo {
    async fn new(setting: &Setting, mode: LoadMode) -> anyhow::Result<Self> {
        let dialect = &setting.dialect;
        let session = "demo".parse()?;
        let workshop = Workshop::new(&session)?;
        let (exec, sql) = (workshop.exec(&setting.executor), workshop.sql()?);
        let sheets = workshop.sheets();
        let catalog: Catalog = shop::catalog();
        let snapshot = catalog.refresh().await;
        let settings: Settings = dialect
            .settings()
            .clone()
            .with_load_mode(mode)
            .with_allowed_tools_policy(AllowedToolsPolicy::Restrict);
        let skills =
            SkillsMiddleware::new(catalog).with_dialect(dialect.clone()).with_settings(settings);
        let shop = Shop::default();
        let committed: Arc<Mutex<Vec<Event>>> = Arc::default();
        let sink = Arc::clone(&committed);
        let mut builder = Agent::builder(Arc::new(script::model(dialect.clone())))
            .system(script::SYSTEM)
            .middleware(skills)
            // The run waits until what happened was shown.
            .limits(RunLimits::default().with_event_buffer(1))
            .engine(|engine| {
                let engine = engine.toolkit(exec).toolkit(sql).toolkit(sheets);
                engine.token_counter(Arc::new(tokens::count)).sink(Arc::new(
                    move |_: &SessionKey, event: &Event| {
                        sink.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
                    },
                ))
            });
        for tool in shop.tools() {
            builder = builder.tool(tool);
        }
        let reads_docs = ["skill_select_docs", "load_skill_detail"];
        if reads_docs.iter().all(|tool| dialect.tool(tool).is_none()) {
            builder = builder.tool(shop::reading_tool());
        }
        let agent = builder.build()?;
        Ok(Self { agent, shop, snapshot, session, mode, committed, _workshop: workshop })
    }

    /// What the names and descriptions of all skills cost in every request.
    async fn listing_tokens(&self) -> anyhow::Result<usize> {
        let listing = self.agent.runtime().listing(&self.session, self.agent.name()).await?;
        Ok(tokens::count(&listing.text))
    }

    /// What the texts of all skills would cost.
    async fn body_tokens(&self) -> anyhow::Result<usize> {
        let mut sum = 0;
        for skill in self.snapshot.skills() {
            sum += tokens::count(&String::from_utf8_lossy(&skill.read().await?));
        }
        Ok(sum)
    }

    /// Plays all turns, and tells what happens in its order.
    async fn play(
        &self,
        tell: &mut impl FnMut(Happening<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Played> {
        let mut played = Played { mode: self.mode, requests: 0, usage: Usage::default() };
        for user in script::TURNS {
            let mut run = self.agent.stream(RunRequest::new(self.session.clone(), user));
            while let Some(event) = run.next().await {
                if let AgentEvent::TurnBegan { .. } = event {
                    let runtime = self.agent.runtime();
                    let state = &runtime.state(&self.session, self.agent.name()).await?;
                    tell(Happening::Turn { user, state })?;
                }
                tell(Happening::Agent(&event))?;
                // The run stands still behind an event: what was committed since follows it.
                let committed = std::mem::take(
                    &mut *self.committed.lock().unwrap_or_else(PoisonError::into_inner),
                );
                for event in &committed {
                    tell(Happening::Engine(event))?;
                }
            }
            let outcome = run.outcome().await?;
            played.requests += outcome.steps;
            played.usage += outcome.usage;
        }
        Ok(played)
    }
}
