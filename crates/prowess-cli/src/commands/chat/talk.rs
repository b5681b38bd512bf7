//! A conversation: what is typed, and what comes of it.

use prowess_agent::{
    Agent, AgentError, CancellationToken, FinishReason, RunRequest, RunStream, StopReason,
};
use prowess_catalog::Snapshot;
use prowess_runtime::{
    Change, InvalidSessionKey, LoadRequest, Message, Role, Runtime, SessionKey, StoreError,
    TurnRequest,
};

use super::audience::Audience;
use super::failure::Failure;
use super::line::{Command, Line, Place, read};
use super::model::Choice;
use super::people::startable;
use super::turn::{Began, Committed, Ended, follow};
use super::views;
use crate::terminal::safe_line;

/// What somebody is offered whose last turn was cut short.
pub(super) const UNFINISHED: &str =
    "The last turn has not come to its end: /resume goes on with it.";

/// A conversation.
pub(super) struct Talk {
    pub(super) agent: Agent,
    pub(super) choice: Choice,
    pub(super) session: SessionKey,
    /// What comes with the next message.
    pub(super) loads: Vec<LoadRequest>,
    committed: Committed,
}

/// How a conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It does.
    On,
    /// Something went wrong, and was told.
    Failed,
    /// Somebody has ended the turn.
    Interrupted,
    /// Somebody wants to leave.
    Leave,
}

impl Talk {
    pub(super) fn new(
        agent: Agent,
        choice: Choice,
        session: SessionKey,
        committed: Committed,
    ) -> Self {
        Self { agent, choice, session, loads: Vec::new(), committed }
    }

    pub(super) fn runtime(&self) -> &Runtime {
        self.agent.runtime()
    }

    pub(super) async fn snapshot(&self) -> Snapshot {
        self.runtime().snapshot(&self.session, self.agent.name()).await
    }

    pub(super) async fn messages(&self) -> Result<Vec<Message>, Failure> {
        Ok(self.runtime().sessions().messages(&self.session, self.agent.name()).await?)
    }

    /// Does what a line says.
    pub(super) async fn enter(
        &mut self,
        line: &str,
        audience: &mut Audience,
    ) -> anyhow::Result<Next> {
        let failure = match read(line) {
            Ok(Line::Nothing) => return Ok(Next::On),
            Ok(Line::Say(text)) => return self.say(text, None, audience).await,
            Ok(Line::Quit) => return Ok(Next::Leave),
            Ok(Line::Resume) => return self.resume(line, audience).await,
            Ok(Line::Command(command)) => match self.answer(command, audience).await {
                Ok(text) => {
                    audience.answer(line.trim(), &text)?;
                    return Ok(Next::On);
                }
                Err(failure) => failure,
            },
            Ok(Line::Skill { name, arguments }) => {
                let refused = startable(&self.snapshot().await, &name).err();
                match refused {
                    None => return self.start(name, arguments, audience).await,
                    Some(refused) => refused.into(),
                }
            }
            Err(misuse) => Failure::new("usage", misuse),
        };
        audience.failed(&failure)?;
        Ok(Next::Failed)
    }

    /// Begins a turn with a skill.
    async fn start(
        &mut self,
        name: String,
        arguments: String,
        audience: &mut Audience,
    ) -> anyhow::Result<Next> {
        let text = match arguments.as_str() {
            "" => format!("/{name}"),
            arguments => arguments.to_owned(),
        };
        let load = LoadRequest::typed(name, arguments);
        self.say(text, Some(load), audience).await
    }

    /// Begins a turn.
    pub(super) async fn say(
        &mut self,
        text: String,
        load: Option<LoadRequest>,
        audience: &mut Audience,
    ) -> anyhow::Result<Next> {
        audience.user(&text)?;
        if let Some(load) = load {
            self.take(load);
        }
        let turn = std::mem::take(&mut self.loads)
            .into_iter()
            .fold(TurnRequest::new(), TurnRequest::with_load)
            .with_message(Message::user(text));
        let cancel = CancellationToken::new();
        let request = RunRequest::of(self.session.clone(), turn).with_cancel(cancel.clone());
        let run = self.agent.stream(request);
        self.follow(run, &cancel, Began::No, audience).await
    }

    /// Goes on with a turn that has not come to its end.
    async fn resume(&mut self, line: &str, audience: &mut Audience) -> anyhow::Result<Next> {
        match self.is_unfinished().await {
            Ok(true) => {
                let cancel = CancellationToken::new();
                let run = self.agent.resume(self.session.clone(), cancel.clone());
                self.follow(run, &cancel, Began::Yes, audience).await
            }
            Ok(false) => {
                let text = "There is nothing to go on with: the last turn has come to its end.";
                audience.answer(line.trim(), text)?;
                Ok(Next::On)
            }
            Err(failure) => {
                audience.failed(&failure)?;
                Ok(Next::Failed)
            }
        }
    }

    async fn follow(
        &self,
        run: RunStream,
        cancel: &CancellationToken,
        began: Began,
        audience: &mut Audience,
    ) -> anyhow::Result<Next> {
        let next = match follow(run, cancel, began, &self.committed, audience).await? {
            Ended::Left => Next::Interrupted,
            Ended::Over(outcome) => match outcome.stop {
                StopReason::Cancelled => Next::Interrupted,
                // There is nothing to go on with: the model has said something.
                StopReason::Answered(FinishReason::Stop | FinishReason::ToolCalls)
                | StopReason::Ended => return Ok(Next::On),
                StopReason::Answered(_) => return Ok(Next::Failed),
                _ => Next::Failed,
            },
            Ended::Failed(error, Began::No) => {
                let failure = self.failure(&error);
                let hint = failure.hint.clone().unwrap_or_else(|| "nothing was sent".to_owned());
                audience.failed(&failure.with_hint(hint))?;
                return Ok(Next::Failed);
            }
            Ended::Failed(error, Began::Yes) => {
                audience.failed(&self.failure(&error))?;
                Next::Failed
            }
        };
        let again = views::again(&self.session);
        audience.note(&format!("The session is kept: /resume, or later `{again}`, goes on."))?;
        Ok(next)
    }

    fn failure(&self, error: &AgentError) -> Failure {
        match error {
            AgentError::Model(error) => self.choice.failure(error),
            error => Failure::new(error.code(), error),
        }
    }

    /// Whether the last turn has not come to its end.
    pub(super) async fn is_unfinished(&self) -> Result<bool, Failure> {
        Ok(self.messages().await?.last().is_some_and(|last| last.role != Role::Assistant))
    }

    /// A skill comes with the next message, in the form that was asked for last.
    fn take(&mut self, load: LoadRequest) {
        self.loads.retain(|known| known.skill != load.skill);
        self.loads.push(load);
    }

    /// What a command answers.
    async fn answer(&mut self, command: Command, audience: &Audience) -> Result<String, Failure> {
        Ok(match command {
            Command::Help => views::help(),
            Command::Skills(filter) => {
                views::skills(&self.rows().await?, &filter, audience.width())
            }
            Command::Load { skill, arguments } => {
                startable(&self.snapshot().await, &skill)?;
                let text = format!("'{}' is loaded with your next message.", safe_line(&skill));
                self.take(LoadRequest::typed(skill, arguments));
                text
            }
            Command::Unload(skill) => self.unload(&skill).await?,
            Command::Tokens => views::tokens(self.cost().await?),
            Command::Session(place) => self.go(place).await?,
            Command::Expand(count) => audience.unfolded(count),
        })
    }

    async fn unload(&mut self, skill: &str) -> Result<String, Failure> {
        let shown = safe_line(skill);
        let before = self.loads.len();
        self.loads.retain(|load| load.skill != skill);
        if self.loads.len() < before {
            return Ok(format!("'{shown}' is not loaded with your next message."));
        }
        let agent = self.agent.name();
        let state = self.runtime().state(&self.session, agent).await?;
        let Some(loaded) = state.loaded(skill) else {
            let failure = Failure::new("skill_not_loaded", format!("'{skill}' is not loaded"));
            return Err(failure.with_hint("/skills shows what is"));
        };
        let change = Change::Unload { skill: loaded.name.clone() };
        self.runtime().change(&self.session, agent, vec![change]).await?;
        Ok(format!("'{shown}' is unloaded; its text goes with your next message."))
    }

    async fn go(&mut self, place: Place) -> Result<String, Failure> {
        match place {
            Place::List => {
                let all = self.runtime().sessions().list().await?;
                return Ok(views::sessions(&all, &self.session));
            }
            Place::Here => {}
            Place::New => self.move_to(fresh()?),
            Place::Other(key) => self.move_to(key),
        }
        let state = self.runtime().state(&self.session, self.agent.name()).await?;
        let count = self.messages().await?.len();
        let model = self.choice.name.to_string();
        let mut text = views::session(&self.session, &state, count, &model);
        if self.is_unfinished().await? {
            text += &format!("\n{UNFINISHED}");
        }
        Ok(text)
    }

    fn move_to(&mut self, session: SessionKey) {
        self.session = session;
        self.loads.clear();
    }
}

/// A new session, named after the time.
pub(super) fn fresh() -> Result<SessionKey, InvalidSessionKey> {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let random = uuid::Uuid::now_v7().simple().to_string();
    let name = format!("chat-{time}-{}", &random[random.len() - 4..]);
    name.parse()
}

/// The session that was talked in last, if there is one.
pub(super) async fn last_session(agent: &Agent) -> Result<Option<SessionKey>, StoreError> {
    let sessions = agent.runtime().sessions();
    let mut all = sessions.list().await?;
    let is_own = |key: &SessionKey| {
        (key.app(), key.user()) == (SessionKey::DEFAULT_APP, SessionKey::DEFAULT_USER)
    };
    all.retain(|session| is_own(&session.key));
    all.sort_by_key(|session| std::cmp::Reverse(session.updated));
    for session in all {
        let messages = sessions.messages(&session.key, agent.name()).await?;
        if messages.iter().any(|it| it.role == Role::User && it.given.is_none()) {
            return Ok(Some(session.key));
        }
    }
    Ok(None)
}
