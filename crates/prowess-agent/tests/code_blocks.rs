//! Code in an answer that is run (S09, 6). The runner here only tells what it was asked; the
//! sandboxed one has its test where it is.

mod agent_support;

use std::sync::{Arc, Mutex};

use agent_support::{answer, call, catalog, events, load, scripted, session};
use futures_util::future::BoxFuture;
use prowess_agent::{
    Agent, AgentEvent, CodeBlockSettings, CodeBlocksMiddleware, Reply, RunRequest, ScriptedModel,
    SkillsMiddleware, SubAgent, SubAgentMiddleware,
};
use prowess_runtime::{
    AllowedToolsPolicy, BoxError, CommandAnswer, CommandRequest, CommandRunner, Settings,
};
use serde_json::json;

/// Answers what it was asked, and remembers it.
#[derive(Default)]
struct Echo(Mutex<Vec<String>>);

impl CommandRunner for Echo {
    fn run<'a>(
        &'a self,
        request: CommandRequest<'a>,
    ) -> BoxFuture<'a, Result<CommandAnswer, BoxError>> {
        let asked = format!("{:?} {} {:?}", request.language, request.session, request.code);
        self.0.lock().unwrap().push(asked.clone());
        let answer = match request.code {
            "exit 3" => Ok(CommandAnswer::new(3, "no")),
            "broken" => Err("no sandbox".into()),
            "long" => Ok(CommandAnswer::new(0, format!("{}é{}", "a".repeat(60), "b".repeat(60)))),
            _ => Ok(CommandAnswer::new(0, asked)),
        };
        Box::pin(std::future::ready(answer))
    }
}

fn agent(model: &Arc<ScriptedModel>, echo: &Arc<Echo>) -> Agent {
    let settings = CodeBlockSettings::default().with_max_blocks(2).with_max_output_bytes(100);
    Agent::builder(model.clone())
        .middleware(CodeBlocksMiddleware::new(echo.clone()).with_settings(settings))
        .middleware(
            SkillsMiddleware::new(catalog(&[("a", "allowed-tools: Read\n", "A.")])).with_settings(
                Settings::default().with_allowed_tools_policy(AllowedToolsPolicy::Restrict),
            ),
        )
        .build()
        .unwrap()
}

#[tokio::test]
async fn blocks_are_run_in_order_and_the_model_sees_what_came_of_them() {
    let text =
        "First:\n```python\nprint(1)\n```\nthen\n```sh\nexit 3\n```\nand\n```json\n{}\n```\n";
    let model =
        scripted([Reply::text(text), Reply::text("```py\nlong\n```"), Reply::text("Done.")]);
    let echo = Arc::new(Echo::default());
    let outcome = agent(&model, &echo).run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(outcome.text(), "Done.");
    let expected = [
        r#"Python prowess/local/test "print(1)""#,
        r#"Shell prowess/local/test "exit 3""#,
        r#"Python prowess/local/test "long""#,
    ];
    assert_eq!(*echo.0.lock().unwrap(), expected);
    assert_eq!(answer(&model, "code-1"), expected[0]);
    assert_eq!(answer(&model, "code-2"), "[exit code 3]\nno");
    let cut = format!("{}\n[22 bytes are left out here]\n{}", "a".repeat(50), "b".repeat(50));
    assert_eq!(answer(&model, "code-3"), cut);
}

#[tokio::test]
async fn what_cannot_be_run_is_said() {
    let model = scripted([Reply::text("```bash\nbroken\n```"), Reply::text("Done.")]);
    let agent = agent(&model, &Arc::default());
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(answer(&model, "code-1"), "Error: The code was not run: no sandbox");
}

#[tokio::test]
async fn nothing_is_run_that_is_not_to_be() {
    let three = "```sh\n1\n```\n```sh\n2\n```\n```sh\n3\n```";
    for text in ["```rust\nfn\n```", "```sh\nnever closed", "```\nls\n```", "```sh\n \n```", three]
    {
        let model = scripted([Reply::text(text)]);
        let echo = Arc::new(Echo::default());
        let told = events(&agent(&model, &echo), "Go.").await;
        assert!(echo.0.lock().unwrap().is_empty(), "{text}");
        let is_told = told.iter().any(|event| matches!(event, AgentEvent::Problem { .. }));
        assert_eq!(is_told, text == three, "{text}");
    }
}

/// The way of every call: what a loaded skill does not allow is not run.
#[tokio::test]
async fn a_policy_holds_for_code_too() {
    let model = scripted([
        Reply::calls([load("1", "a")]),
        Reply::text("```sh\nls\n```"),
        Reply::text("Done."),
    ]);
    let echo = Arc::new(Echo::default());
    agent(&model, &echo).run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert!(echo.0.lock().unwrap().is_empty());
    assert!(answer(&model, "code-2").contains("not in the allowed-tools list"));
}

/// Who has no tool to run code answers with text.
#[tokio::test]
async fn without_the_tool_code_is_text() {
    let sub = scripted([Reply::text("```py\nprint(1)\n```")]);
    let narrow = SubAgent::new("narrow", "N.").model(sub).tools(["other"]);
    let arguments = json!({"description": "Go on.", "subagent_type": "narrow"});
    let model = scripted([Reply::calls([call("t", "task", arguments)]), Reply::text("Done.")]);
    let echo = Arc::new(Echo::default());
    let agent = Agent::builder(model.clone())
        .middleware(CodeBlocksMiddleware::new(echo.clone()))
        .middleware(SubAgentMiddleware::empty().with(narrow))
        .build()
        .unwrap();
    agent.run(RunRequest::new(session(), "Go.")).await.unwrap();
    assert_eq!(answer(&model, "t"), "```py\nprint(1)\n```");
    assert!(echo.0.lock().unwrap().is_empty());
}
