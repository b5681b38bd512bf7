//! `prowess chat`: a conversation with a model that has skills.

mod audience;
mod complete;
mod failure;
mod fold;
mod line;
mod lines;
mod look;
mod model;
mod people;
mod repl;
mod screen;
mod talk;
mod turn;
mod views;

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use anyhow::Context;
use prowess_agent::{
    Agent, CodeBlocksMiddleware, ProviderModel, SameAgent, SkillsMiddleware, SubAgentMiddleware,
    SummarizationMiddleware, TodoMiddleware,
};
use prowess_catalog::{ConfigError, DEBOUNCE};
use prowess_runtime::{Event, SessionKey};
use prowess_workspace::Tier;

use self::audience::Audience;
use self::failure::Failure;
use self::lines::Said;
use self::model::{ChatSettings, CodeBlocks, EXAMPLES, choose};
use self::screen::Screen;
use self::talk::{Talk, fresh, last_session};
use self::turn::Committed;
use crate::Outcome;
use crate::cli::ChatArgs;
use crate::engine::{Parts, equip};
use crate::finder::{Finder, Form, complain};
use crate::store::OpenStore;
use crate::telemetry::{Log, Observed, observe};
use crate::terminal::safe_line;
use crate::toolkits::{Ready, own_config};

pub(crate) fn run(arguments: &ChatArgs) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(arguments.json);
    let mut parts = Parts::open(&arguments.catalog, Some(&arguments.dialect))?;
    parts.toolkits.run_by(&arguments.executor, Tier::T2, Ready::AsSet);
    let (home, catalog) = (parts.home.clone(), parts.catalog.clone());
    let settings = settings(&parts.finder, &home)?;
    let choice = match choose(arguments, settings.clone()) {
        Ok(choice) => choice,
        Err(failure) => return refuse(&failure, form),
    };
    let model = match choice.open() {
        Ok(model) => model,
        Err(failure) => return refuse(&failure, form),
    };
    let committed = Committed::default();
    let observed = observe(&parts.finder, &home, Log::Nowhere)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let store = runtime.block_on(parts.store.open())?;
    let agent = agent(parts, &store, model, &choice.system, settings, &committed, &observed)?;
    let Some(session) = runtime.block_on(session(arguments, &agent))? else {
        let message = "there is no conversation to go on with yet; begin one without --continue";
        complain("unknown_session", message, form)?;
        return Ok(Outcome::Findings);
    };
    let mut talk = Talk::new(agent, choice, session, committed);
    let is_watched = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let audience = || match form {
        Form::Json => Audience::Program,
        Form::Text => Audience::People(Box::new(Screen::split())),
    };
    let outcome = match &arguments.prompt {
        Some(prompt) => {
            let said = said(prompt)?;
            if said.text().trim().is_empty() {
                complain("nothing_said", "--prompt is empty: there is nothing to say", form)?;
                return Ok(Outcome::Usage);
            }
            runtime.block_on(lines::one(&mut talk, said, &mut audience()))
        }
        None if is_watched && form == Form::Text => {
            // Skills are written while they are tried.
            let watch = {
                let _inside = runtime.enter();
                catalog.watch(DEBOUNCE)
            };
            if let Err(error) = &watch {
                let error = safe_line(&error.to_string());
                anstream::eprintln!("Warning: skills that change are not noticed: {error}");
            }
            repl::run(&runtime, &mut talk, &home)
        }
        None => runtime.block_on(lines::all(&mut talk, &mut audience())),
    };
    // What was acknowledged is stored; nobody waits for the rest.
    runtime.shutdown_background();
    observed.end();
    outcome
}

/// `[chat]` of the user's own `prowess.toml`.
fn settings(finder: &Finder, home: &Path) -> anyhow::Result<ChatSettings> {
    let own = own_config(finder, home, &["chat"])?;
    let path = own.path.clone().unwrap_or_default();
    let invalid = |cause| ConfigError::Invalid { path, cause: Box::new(cause) };
    Ok(own.chat.try_into().map_err(invalid)?)
}

/// The agent on the engine that all commands use.
fn agent(
    parts: Parts,
    store: &OpenStore,
    model: ProviderModel,
    system: &str,
    chat: ChatSettings,
    committed: &Committed,
    observed: &Observed,
) -> anyhow::Result<Agent> {
    let Parts { catalog, dialect, settings, toolkits, .. } = parts;
    let sink = Arc::clone(committed);
    let sink = move |_: &SessionKey, event: &Event| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    };
    let commands = toolkits.commands();
    let skills = SkillsMiddleware::new(catalog)
        .with_dialect(dialect)
        .with_settings(settings)
        .with_agents(SameAgent);
    let mut agent = Agent::builder(Arc::new(model))
        .system(system)
        .middleware(TodoMiddleware::new())
        .middleware(SubAgentMiddleware::new().general_purpose(chat.subagent_skills))
        .middleware(SummarizationMiddleware::new().with_settings(chat.summarization))
        .middleware(skills)
        // A run waits until what happened was shown.
        .limits(chat.limits.with_event_buffer(1))
        .engine(|engine| observed.give(equip(engine, toolkits, store).sink(Arc::new(sink))));
    if chat.code_blocks == CodeBlocks::Run {
        agent = agent.middleware(CodeBlocksMiddleware::new(commands));
    }
    Ok(agent.build()?)
}

/// The session that is asked for; `None` if it is to go on and there is none.
async fn session(arguments: &ChatArgs, agent: &Agent) -> anyhow::Result<Option<SessionKey>> {
    Ok(match (&arguments.session, arguments.goes_on) {
        (Some(session), _) => Some(session.clone()),
        (None, false) => Some(fresh()?),
        (None, true) => last_session(agent).await?,
    })
}

/// What `--prompt` says. Standard input is a message, whatever it begins with: it may be the text
/// of others, who must not start a skill that only people start.
fn said(prompt: &str) -> anyhow::Result<Said> {
    if prompt != "-" {
        return Ok(Said::Typed(prompt.to_owned()));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input")?;
    Ok(Said::Read(text))
}

/// Says why there is no model, and how to name one.
fn refuse(failure: &Failure, form: Form) -> anyhow::Result<Outcome> {
    complain(&failure.code, &failure.message, form)?;
    match &failure.hint {
        Some(hint) => anstream::eprintln!("Hint: {}", safe_line(hint)),
        None => anstream::eprintln!("{EXAMPLES}"),
    }
    Ok(Outcome::Usage)
}
