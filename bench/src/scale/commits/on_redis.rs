//! A commit on Redis, and the same scripts by the crate `redis` alone.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use prowess_runtime::Fence;
use prowess_store::{Durability, RedisStore};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, Script, cmd};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{Job, Kind, Ours, Sent, compare, measure, now, verdict};
use crate::results::Row;

/// So long the store waits for a connection, and for an answer.
const CONNECT_TIME: Duration = Duration::from_secs(5);
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// What all keys begin with.
const PREFIX: &str = "commits";
/// So many agents are counted apart, and what the others are called.
const AGENTS: (u64, &str) = (100, "other");

pub(super) fn row(tokio: &Runtime, url: &str, kind: Kind) -> Result<Row> {
    let (our_job, bare_job) = (Job::new(kind, "ours")?, Job::new(kind, "bare")?);
    let store = tokio.block_on(RedisStore::open(url, PREFIX))?;
    ensure!(store.durability() == Durability::Always, "what is acknowledged is not on the disk");
    let store = store.sessions();
    let mut ours = tokio.block_on(Ours::new(&store, &our_job))?;
    let mut other = tokio.block_on(Ours::new(&store, &bare_job))?;
    let mut bare = tokio.block_on(Bare::new(url, &bare_job, other.fence))?;
    tokio.block_on(async {
        ours.warm_up().await?;
        other.warm_up().await?;
        let mut monitor = Monitor::begin(url)?;
        ours.commit().await?;
        let sent = monitor.sent(&mut bare.connection).await?;
        bare.commit().await?;
        compare(&sent, &monitor.sent(&mut bare.connection).await?)
    })?;
    let seconds = measure(tokio, async || ours.commit().await, async || bare.commit().await)?;
    tokio.block_on(verdict("Redis", &store, (&bare_job, bare.revision), seconds))
}

/// What the server says that it was sent.
struct Monitor {
    lines: BufReader<TcpStream>,
    seen: usize,
}

impl Monitor {
    fn begin(url: &str) -> Result<Self> {
        let address = url.trim_start_matches("redis://").split('/').next().unwrap_or_default();
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        ensure!(line.starts_with("+OK"), "{line}");
        Ok(Self { lines, seen: 0 })
    }

    /// The scripts that were run since.
    async fn sent(&mut self, connection: &mut MultiplexedConnection) -> Result<Vec<Sent>> {
        self.seen += 1;
        let end = format!("seen-{}", self.seen);
        cmd("ECHO").arg(&end).exec_async(connection).await?;
        let mut sent = Vec::new();
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line)?;
            if line.contains(&end) {
                return Ok(sent);
            }
            // Not what a script does itself.
            if let Some((_, words)) = line.split_once("] \"EVALSHA\" \"") {
                let (script, with) = words.split_once("\" ").context("a script without key")?;
                let words = with.matches("\" \"").count();
                sent.push(Sent { what: format!("{script} {words}"), with: with.to_owned() });
            }
        }
    }
}

/// The scripts of the store.
struct Scripts {
    look: Script,
    announce: Script,
    commit: Script,
    count: Script,
}

macro_rules! script {
    ($name:literal) => {
        Script::new(include_str!(concat!("../../../../crates/prowess-store/src/redis/", $name)))
    };
}

fn call(script: &Script, key: &str) -> Cmd {
    let mut command = cmd("EVALSHA");
    command.arg(script.get_hash()).arg(1).arg(key);
    command
}

/// What a look says: born, revision, state, end; the lease, who has it, and for how long.
type Seen = (String, u64, String, Option<i64>, Option<u64>, Option<String>, i64);

/// A connection that sends what the store does.
struct Bare<'a> {
    connection: MultiplexedConnection,
    job: &'a Job,
    scripts: Scripts,
    session: String,
    registry: String,
    messages: Vec<String>,
    event: String,
    fence: u64,
    revision: u64,
}

impl<'a> Bare<'a> {
    async fn new(url: &str, job: &'a Job, fence: Fence) -> Result<Self> {
        let client = Client::open(format!("{url}?protocol=resp3"))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIME))
            .set_response_timeout(Some(ANSWER_TIME));
        let scripts = Scripts {
            look: script!("look.lua"),
            announce: script!("announce.lua"),
            commit: script!("commit.lua"),
            count: script!("count.lua"),
        };
        Ok(Self {
            connection: client.get_multiplexed_async_connection_with_config(&config).await?,
            job,
            scripts,
            session: format!("{PREFIX}:{{s:{}}}", job.key),
            registry: format!("{PREFIX}:{{registry}}"),
            messages: job.message_texts()?,
            event: job.event_text()?,
            fence: fence.0,
            revision: 0,
        })
    }

    async fn commit(&mut self) -> Result<()> {
        match self.job.kind {
            Kind::Call => {
                let look = call(&self.scripts.look, &self.session);
                let seen: Seen = look.query_async(&mut self.connection).await?;
                self.write(seen, ["", ""], "").await
            }
            Kind::Load => self.commit_load().await,
        }
    }

    async fn commit_load(&mut self) -> Result<()> {
        let job = self.job;
        let member = [job.key.app(), job.key.user(), job.key.session()].join("\0");
        let mut announce = call(&self.scripts.announce, &self.registry);
        announce.arg(&member).arg(0).arg(&job.skill).arg("");
        let mut both = Pipeline::new();
        both.add_command(call(&self.scripts.look, &self.session)).add_command(announce);
        let (seen, words): (Seen, Vec<Option<String>>) =
            both.query_async(&mut self.connection).await?;
        let [Some(number), Some(counted), ..] = &words[..] else {
            anyhow::bail!("{words:?} is no announcement");
        };
        let (skill, agent, day) = (job.skill.as_str(), job.agent.as_str(), &job.day());
        let (key, last) = (job.key.to_string(), job.event.time.as_millisecond());
        let uses = json!({
            "rows": [[skill, day, "load", -1, agent, "", 1, 0, 0, 0, 0, last]],
            "sessions": [[skill, &key, day]],
        });
        self.write(seen, [number, counted], &uses.to_string()).await?;
        let mut count = call(&self.scripts.count, &self.registry);
        count.arg(&member).arg(number).arg(1).arg(AGENTS.0).arg(AGENTS.1);
        count.arg(number).arg(1).arg(skill).arg(day).arg("load").arg(-1).arg(agent).arg("");
        count.arg(&[1, 0, 0, 0, 0, last]).arg(1).arg(skill).arg(key).arg(day);
        count.exec_async(&mut self.connection).await?;
        Ok(())
    }

    async fn write(&mut self, seen: Seen, announced: [&str; 2], uses: &str) -> Result<()> {
        let (born, revision, state, ..) = seen;
        let job = self.job;
        let mut commit = call(&self.scripts.commit, &self.session);
        commit.arg(born).arg(revision).arg(0).arg(self.fence);
        commit.arg(&announced).arg(revision + 1);
        commit.arg(state).arg(now()?).arg("").arg("").arg(uses).arg(format!("{PREFIX}:notices"));
        commit.arg(job.key.to_string()).arg(job.agent.as_str()).arg(self.messages.len());
        commit.arg(&self.messages).arg(&self.event);
        let answer: Vec<String> = commit.query_async(&mut self.connection).await?;
        ensure!(answer.first().is_some_and(|word| word == "done"), "{answer:?}");
        self.revision = revision + 1;
        Ok(())
    }
}
