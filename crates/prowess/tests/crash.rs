//! A run goes on after `kill -9` (S06, 4).

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess::agent::{Agent, Reply, Runner, ScriptedModel};
use prowess::catalog::FileContent;
use prowess::runtime::{Message, Role, Tool, ToolCall, ToolDeclaration, ToolOutcome, tool_fn};
use prowess::store::SqliteSessions;
use serde_json::json;

const FOLDER: &str = "PROWESS_TEST_CRASH_FOLDER";
/// The step in whose tool the process dies.
const LAST: u64 = 3;

/// Writes down that it ran; in the child it never comes back from the last step.
fn work(folder: &Path, dies: bool) -> Arc<dyn Tool> {
    let declaration = ToolDeclaration::new("work", "Works.", json!({"type": "object"}));
    let folder = folder.to_owned();
    tool_fn(declaration, move |arguments| {
        let number = arguments["n"].as_u64().unwrap();
        let file = folder.join(format!("ran-{number}"));
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(&file, before + "x").unwrap();
        async move {
            if dies && number == LAST {
                std::future::pending::<()>().await;
            }
            ToolOutcome::text(format!("did {number}"))
        }
    })
}

fn runner(folder: &Path, replies: Vec<Reply>, dies: bool) -> Runner {
    let sessions = SqliteSessions::open(folder.join("prowess.db")).unwrap();
    let content = FileContent::new(folder.join("content"));
    let agent = Agent::builder(Arc::new(ScriptedModel::new(replies)))
        .engine(|engine| engine.sessions(Arc::new(sessions)).content(Arc::new(content)))
        .tool(work(folder, dies))
        .build()
        .unwrap();
    Runner::new("app", agent)
}

fn call(id: &str, number: u64) -> Reply {
    Reply::calls([ToolCall::new(id, "work", json!({"n": number}))])
}

/// What the child does.
#[tokio::test]
async fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let replies = (1..=LAST).map(|number| call(&number.to_string(), number)).collect();
    runner(folder, replies, true).run("alice", "s", "Work.").await.unwrap();
}

#[tokio::test]
async fn a_run_that_was_killed_goes_on_from_its_last_committed_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = folder.path().join(format!("ran-{LAST}"));
    let patience = Instant::now() + Duration::from_secs(60);
    while !begun.exists() {
        assert!(Instant::now() < patience, "the child does not get there");
        assert!(child.try_wait().unwrap().is_none(), "the child has ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let replies = vec![call("again", LAST), Reply::text("All done.")];
    let runner = runner(folder.path(), replies, false);
    let outcome = runner.resume("alice", "s").outcome().await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.turn), ("All done.", 1));
    let ran = |number: u64| {
        std::fs::read_to_string(folder.path().join(format!("ran-{number}"))).unwrap().len()
    };
    assert_eq!(
        [ran(1), ran(2), ran(LAST)],
        [1, 1, 2],
        "only the step that was under way ran again"
    );
    let key = "app/alice/s".parse().unwrap();
    let agent = runner.agent();
    let stored = agent.runtime().sessions().messages(&key, agent.name()).await.unwrap();
    let roles: Vec<Role> = stored.iter().map(|message| message.role).collect();
    use Role::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Assistant, Tool, Assistant, Tool, Assistant]);
    let answers: Vec<&str> =
        stored.iter().flat_map(Message::tool_results).map(|it| it.content.as_str()).collect();
    assert_eq!(answers, ["did 1", "did 2", "did 3"]);
}
