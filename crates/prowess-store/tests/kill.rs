//! `kill -9` loses nothing that was acknowledged (S03, 4).

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use prowess_runtime::{
    AgentName, Caps, Change, Event, EventKind, Message, Revision, SessionDelta, SessionKey,
    SessionStore,
};
use prowess_store::SqliteSessions;
use serde_json::json;

/// Says to a process that it is the one who commits, and where.
const DATABASE: &str = "PROWESS_TEST_DATABASE";

fn key() -> SessionKey {
    "a".parse().unwrap()
}

/// Commits without end, and says each revision once it is acknowledged.
async fn commit_for_ever(database: &str) {
    let store = SqliteSessions::open(database).unwrap();
    let agent = AgentName::default();
    let mut revision = store.get(&key()).await.unwrap().unwrap_or_default().revision;
    loop {
        let text = (revision.0 + 1).to_string();
        let change = Change::SetContext { skill: "count".to_owned(), value: json!(text) };
        let delta = SessionDelta::new(agent.clone(), Caps::default())
            .with_setup(vec![change])
            .with_messages(vec![Message::user(&text)]);
        let events = vec![Event::new(EventKind::ToolCalled, &agent, 0, &text)];
        revision = store.commit(&key(), revision, delta, events).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nacknowledged {}", revision.0).unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    if let Ok(database) = std::env::var(DATABASE) {
        return commit_for_ever(&database).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("prowess.db");
    let mut last = 0;
    for wanted in [1, 7, 20, 33, 50] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["what_was_acknowledged_survives_kill_9", "--exact", "--nocapture"])
            .env(DATABASE, &database)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines {
            let Some(revision) = line.unwrap().strip_prefix("acknowledged ").map(str::to_owned)
            else {
                continue;
            };
            last = revision.parse::<u64>().unwrap();
            seen += 1;
            if seen == wanted {
                // SIGKILL, in the middle of whatever it does; what it said before still counts.
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= wanted, "it was killed, and did not end by itself");
        let store = SqliteSessions::open(&database).unwrap();
        let agent = AgentName::default();
        let stored = store.get(&key()).await.unwrap().unwrap();
        let Revision(revision) = stored.revision;
        // The last one may be on the disk without having been acknowledged.
        assert!((last..=last + 1).contains(&revision), "{revision}, acknowledged {last}");
        assert_eq!(stored.session.state(&agent).context["count"], json!(revision.to_string()));
        let all: Vec<String> = (1..=revision).map(|number| number.to_string()).collect();
        let messages = store.messages(&key(), &agent).await.unwrap();
        assert_eq!(messages.iter().map(Message::text).collect::<Vec<_>>(), all);
        let events = store.events(&key(), 0, usize::MAX).await.unwrap();
        assert_eq!(events.into_iter().map(|event| event.message).collect::<Vec<_>>(), all);
    }
}
