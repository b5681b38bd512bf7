//! What people load, and commands in the text of skills (S09, 5).

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use prowess_catalog::{Catalog, MemorySource, SourceInfo, Trust};
use prowess_runtime::{
    AgentName, BoxError, CommandAnswer, CommandRequest, CommandRunner, EmbeddedCommands,
    LoadRequest, Runtime, RuntimeError, SessionKey, Settings, ToolCall, TurnRequest,
};
use serde_json::json;

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl CommandRunner for Recorder {
    fn run<'a>(
        &'a self,
        request: CommandRequest<'a>,
    ) -> BoxFuture<'a, Result<CommandAnswer, BoxError>> {
        assert_eq!(request.timeout.as_millis(), 120_000);
        assert!(request.skill.is_some());
        self.0.lock().unwrap().push(request.code.to_owned());
        let answer = match request.code {
            "false" | "grep x y" => CommandAnswer::new(1, "nothing\n"),
            "sneaky" => CommandAnswer::new(0, "!`rm` $ARGUMENTS $0\n\n"),
            "slow" => {
                let mut answer = CommandAnswer::new(124, "");
                answer.timed_out = true;
                answer
            }
            "refused" => return Box::pin(std::future::ready(Err("no sandbox".into()))),
            code => CommandAnswer::new(0, format!("<{}>\n", code.replace('\n', "|"))),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

struct World {
    runtime: Runtime,
    ran: Arc<Recorder>,
}

fn session() -> SessionKey {
    "test".parse().unwrap()
}

fn world(body: &str, commands: EmbeddedCommands, trust: Trust) -> World {
    let text = format!("---\nname: a\ndescription: A.\narguments: [file]\n---\n{body}\n");
    let info = SourceInfo::new("memory", "memory").with_trust(trust);
    let source = MemorySource::new("memory").with_info(info).with_skill("a", text);
    let ran = Arc::new(Recorder::default());
    let runtime = Runtime::builder(Catalog::builder().source(source).build())
        .settings(Settings::default().with_embedded_commands(commands))
        .commands(ran.clone())
        .build()
        .unwrap();
    World { runtime, ran }
}

impl World {
    /// A person loads the skill; what the model is told.
    async fn typed(&self, arguments: &str) -> Result<String, RuntimeError> {
        let load = LoadRequest::typed("a", arguments);
        let turn = TurnRequest::new().with_load(load);
        let turn = self.runtime.begin_turn(&session(), &AgentName::default(), turn).await?;
        let text = turn.messages[0].text();
        let (_, body) = text.split_once("[Loaded] a\n\n").unwrap();
        Ok(body.split_once("\nDocs loaded").unwrap().0.to_owned())
    }

    fn ran(&self) -> Vec<String> {
        self.ran.0.lock().unwrap().clone()
    }
}

const PEOPLE: EmbeddedCommands = EmbeddedCommands::People;

#[tokio::test]
async fn off_by_default_and_for_models_they_are_text() {
    assert_eq!(Settings::default().embedded_commands, EmbeddedCommands::Off);
    let off = world("Now: !`date`", EmbeddedCommands::Off, Trust::Trusted);
    assert_eq!(off.typed("").await.unwrap(), "Now: !`date`");
    assert!(off.ran().is_empty());
    let on = world("Now: !`date`", PEOPLE, Trust::Trusted);
    let host = TurnRequest::new().with_load(LoadRequest::new("a"));
    on.runtime.begin_turn(&"host".parse().unwrap(), &AgentName::default(), host).await.unwrap();
    let call = ToolCall::new("1", "load_skill", json!({"skill": "a"}));
    let outcome = on.runtime.dispatch(&session(), &AgentName::default(), call).await.unwrap();
    assert_eq!(outcome.content, "Now: !`date`");
    assert!(on.ran().is_empty(), "loading a skill starts no process");
}

#[tokio::test]
async fn people_get_what_they_write() {
    let world =
        world("Now: !`date` and !`git log $file`.\n```!\na\nb\n```\nEnd", PEOPLE, Trust::Trusted);
    let text = world.typed("x.md").await.unwrap();
    let log = "__arguments=(x.md)\ngit log \"${__arguments[0]}\"";
    let shown = log.replace('\n', "|");
    assert_eq!(text, format!("Now: <date> and <{shown}>.\n<a|b>\nEnd\n\nARGUMENTS: x.md"));
    assert_eq!(world.ran(), ["date", log, "a\nb"]);
    // It is pinned: nothing runs again.
    let state = world.runtime.state(&session(), &AgentName::default()).await.unwrap();
    assert!(state.loaded[0].text.is_some());
}

/// What is put in is not looked at again: neither what was typed nor what was written.
#[tokio::test]
async fn nothing_that_is_put_in_becomes_a_command() {
    let world = world("!`sneaky` $ARGUMENTS !`ls $file`", PEOPLE, Trust::Trusted);
    let text = world.typed("'; rm -rf /' !`reboot` \u{e000}").await.unwrap();
    let listed = "__arguments=('; rm -rf /' '!`reboot`' '\u{e000}')\nls \"${__arguments[0]}\"";
    let shown = listed.replace('\n', "|");
    let expected = format!("!`rm` $ARGUMENTS $0 '; rm -rf /' !`reboot` \u{e000} <{shown}>");
    assert_eq!(text, expected);
    assert_eq!(world.ran(), ["sneaky", listed]);
}

#[tokio::test]
async fn what_is_not_trusted_is_not_run() {
    let world = world("Now: !`date`.", PEOPLE, Trust::Untrusted);
    let text = world.typed("").await.unwrap();
    assert_eq!(text, "Now: [shell command execution disabled by policy].");
    assert!(world.ran().is_empty());
}

#[tokio::test]
async fn a_command_that_fails_ends_the_whole_invocation() {
    let table = [
        ("!`false`", Some("Shell command failed for pattern \"!`false`\": exit code 1: nothing")),
        (
            "!`slow`",
            Some("Shell command failed for pattern \"!`slow`\": it took longer than 120000 ms"),
        ),
        (
            "!`refused`",
            Some("Shell command permission check failed for pattern \"!`refused`\": no sandbox"),
        ),
        ("!`grep x y`", None),
    ];
    for (body, expected) in table {
        let world = world(body, PEOPLE, Trust::Trusted);
        let outcome = world.typed("").await;
        match expected {
            Some(expected) => {
                let error = outcome.unwrap_err();
                assert!(error.to_string().contains(expected), "{error}");
                let state = world.runtime.state(&session(), &AgentName::default()).await.unwrap();
                assert_eq!((state.turn, state.loaded.len()), (0, 0), "{body}");
            }
            None => assert_eq!(outcome.unwrap(), "nothing"),
        }
    }
}

#[tokio::test]
async fn without_a_runner_nothing_is_run() {
    let text = "---\nname: a\ndescription: A.\n---\n!`date`\n";
    let source = MemorySource::new("memory").with_skill("a", text);
    let runtime = Runtime::builder(Catalog::builder().source(source).build())
        .settings(Settings::default().with_embedded_commands(PEOPLE))
        .build()
        .unwrap();
    let turn = TurnRequest::new().with_load(LoadRequest::typed("a", ""));
    let error = runtime.begin_turn(&session(), &AgentName::default(), turn).await.unwrap_err();
    assert!(error.to_string().contains("nobody here runs commands"), "{error}");
}

#[tokio::test]
async fn what_is_not_for_people_people_cannot_load() {
    let text = "---\nname: a\ndescription: A.\nuser-invocable: false\n---\nBody\n";
    let source = MemorySource::new("memory").with_skill("a", text);
    let runtime = Runtime::builder(Catalog::builder().source(source).build()).build().unwrap();
    let agent = AgentName::default();
    let typed = TurnRequest::new().with_load(LoadRequest::typed("a", "x"));
    let error = runtime.begin_turn(&session(), &agent, typed).await.unwrap_err();
    assert!(
        error.to_string().contains("is for the model alone (user-invocable: false)"),
        "{error}"
    );
    let host = TurnRequest::new().with_load(LoadRequest::new("a"));
    assert!(runtime.begin_turn(&session(), &agent, host).await.is_ok(), "a host may");
    let call = ToolCall::new("1", "load_skill", json!({"skill": "a"}));
    let outcome = runtime.dispatch(&"other".parse().unwrap(), &agent, call).await.unwrap();
    assert!(!outcome.is_error, "and so may a model");
}

/// `disable-model-invocation`: the other way round.
#[tokio::test]
async fn what_is_for_people_alone_a_model_cannot_load() {
    let text = "---\nname: a\ndescription: A.\ndisable-model-invocation: true\n---\nDo $0.\n";
    let source = MemorySource::new("memory").with_skill("a", text);
    let runtime = Runtime::builder(Catalog::builder().source(source).build()).build().unwrap();
    let agent = AgentName::default();
    let call = ToolCall::new("1", "load_skill", json!({"skill": "a"}));
    let outcome = runtime.dispatch(&session(), &agent, call).await.unwrap();
    assert_eq!(outcome.code, "manual_only");
    let typed = TurnRequest::new().with_load(LoadRequest::typed("a", "it"));
    let turn = runtime.begin_turn(&session(), &agent, typed).await.unwrap();
    assert!(turn.messages[0].text().contains("Do it."), "{:?}", turn.messages);
}

/// Started again, a skill says what its commands write now.
#[tokio::test]
async fn commands_are_run_for_every_invocation() {
    struct Clock(Mutex<usize>);
    impl CommandRunner for Clock {
        fn run<'a>(
            &'a self,
            _: CommandRequest<'a>,
        ) -> BoxFuture<'a, Result<CommandAnswer, BoxError>> {
            let mut now = self.0.lock().unwrap();
            *now += 1;
            Box::pin(std::future::ready(Ok(CommandAnswer::new(0, format!("tick {now}")))))
        }
    }
    let text = "---\nname: a\ndescription: A.\n---\nNow: !`date`\n";
    let source = MemorySource::new("memory").with_skill("a", text);
    let runtime = Runtime::builder(Catalog::builder().source(source).build())
        .settings(Settings::default().with_embedded_commands(PEOPLE))
        .commands(Arc::new(Clock(Mutex::new(0))))
        .build()
        .unwrap();
    for expected in ["Now: tick 1", "Now: tick 2"] {
        let turn = TurnRequest::new().with_load(LoadRequest::typed("a", ""));
        let turn = runtime.begin_turn(&session(), &AgentName::default(), turn).await.unwrap();
        assert!(turn.messages[0].text().contains(expected), "{:?}", turn.messages);
    }
}
