//! Tools and resources that skills declare, bound to handlers, to the engine and to scripts (S13.1).

mod support;

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use prowess_format::ArgumentKind;
use prowess_runtime::{
    BoxError, CommandAnswer, CommandRequest, CommandRunner, Exposure, Handlers, Parameter, Prompt,
    PromptRequest, Quarantined, RuntimeBuilder, Settings, ToolOutcome, TurnRequest,
};
use serde_json::{Value, json};
use support::{Plan, World, echo};

/// A `SKILL.md` with these lines in its frontmatter.
fn declaring(name: &str, lines: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n{lines}---\nThe body of {name}.\n")
}

const GREETER: &str = "\
tool_configs:
  - name: greet
    description: Greets somebody.
    method: greet
    args:
      - name: who
        type: string
        description: Whom
        required: true
      - name: times
        type: integer
        default: 2
      - name: tone
        enum: [warm, cold]
        default: warm
      - name: loud
        type: boolean
  - name: clock
    description: Says what time it is.
    method: clock
    args: []
  - name: about
    description: Gives a resource.
    method: load_details
    args:
      - name: resource
        default: notes
resource_configs:
  - name: notes
    file: notes.md
  - name: now
    dynamic: true
    method: clock
";

fn greeter() -> Handlers {
    Handlers::for_skill("greeter")
        .method(
            "greet",
            [
                Parameter::required("who", ArgumentKind::String),
                Parameter::required("times", ArgumentKind::Integer),
                Parameter::optional("tone", ArgumentKind::String),
                Parameter::optional("loud", ArgumentKind::Boolean),
            ],
            |arguments| async move { ToolOutcome::json(arguments) },
        )
        .method("clock", [], |_| async { ToolOutcome::text("half past nine") })
        .opening(|_| async { ToolOutcome::text("## Greeter Activated") })
}

fn plan() -> Plan {
    Plan::new()
        .file("greeter/SKILL.md", declaring("greeter", GREETER))
        .file("greeter/notes.md", "Be kind.")
        .skill("plain", "Plain.")
}

fn with(handlers: Handlers) -> impl FnOnce(RuntimeBuilder) -> RuntimeBuilder + 'static {
    move |builder| builder.toolkit(Arc::new(handlers))
}

fn world() -> World {
    plan().change(with(greeter())).build()
}

async fn prompt(world: &World) -> Prompt {
    world.runtime.prompt(&world.session, &world.agent, PromptRequest::new()).await.unwrap()
}

async fn names(world: &World) -> Vec<String> {
    prompt(world).await.tools.iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn a_declared_tool_is_there_once_its_skill_is_loaded() {
    let world = world();
    assert!(!names(&world).await.contains(&"greet".to_owned()));
    let shut = world.call("greet", json!({"who": "you"})).await;
    assert_eq!((shut.code.as_ref(), shut.is_error), ("skill_not_loaded", true));
    world.load("greeter").await;
    let tools = names(&world).await;
    assert!(["about", "clock", "greet"].iter().all(|it| tools.contains(&(*it).to_owned())));
    let greeted = world.call("greet", json!({"who": "you"})).await;
    assert_eq!(greeted.data, json!({"who": "you", "times": 2, "tone": "warm"}));
    let event = world.events().into_iter().rev().find(|it| it.tool.is_some()).unwrap();
    assert_eq!(event.skill.as_deref(), Some("greeter"), "the skill is in the event of the call");
}

#[tokio::test]
async fn the_schema_comes_from_the_declaration() {
    let world = world();
    world.load("greeter").await;
    let tools = prompt(&world).await.tools;
    let greet = tools.iter().find(|tool| tool.name == "greet").unwrap();
    assert_eq!(greet.description, "Greets somebody.");
    assert_eq!(
        greet.parameters,
        json!({
            "type": "object",
            "properties": {
                "who": {"type": "string", "description": "Whom"},
                "times": {"type": "integer", "default": 2},
                "tone": {"type": "string", "enum": ["warm", "cold"], "default": "warm"},
                "loud": {"type": "boolean"},
            },
            "additionalProperties": false,
            "required": ["who"],
        })
    );
    let clock = tools.iter().find(|tool| tool.name == "clock").unwrap();
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(clock.parameters, nothing);
}

/// Providers refuse an array that does not say what is in it.
#[tokio::test]
async fn an_array_says_what_is_in_it() {
    let lines = "tool_configs:\n  - name: a\n    script: notes.md\n    args:\n      - name: rows\n        type: array\n        items: object\n      - name: rest\n        type: list\n";
    let world = Plan::new()
        .file("greeter/SKILL.md", declaring("greeter", lines))
        .file("greeter/notes.md", "Be kind.")
        .build();
    world.load("greeter").await;
    let tools = prompt(&world).await.tools;
    let tool = tools.iter().find(|tool| tool.name == "a").unwrap();
    let rows = json!({"type": "array", "items": {"type": "object"}});
    assert_eq!(tool.parameters["properties"]["rows"], rows);
    assert_eq!(tool.parameters["properties"]["rest"], json!({"type": "array", "items": {}}));
}

/// defaults are put in before anybody sees the arguments.
#[tokio::test]
async fn arguments_are_checked_and_defaults_are_put_in() {
    let world = world();
    world.load("greeter").await;
    let rows: [(Value, Result<Value, &str>); 9] = [
        (json!({"who": "a", "times": 3}), Ok(json!({"who": "a", "times": 3, "tone": "warm"}))),
        (
            json!({"who": "a", "loud": null, "times": null}),
            Ok(json!({"who": "a", "times": 2, "tone": "warm"})),
        ),
        (json!("{\"who\": \"a\"}"), Ok(json!({"who": "a", "times": 2, "tone": "warm"}))),
        (json!({}), Err("\"who\" is a required property")),
        (json!({"who": null}), Err("null is not of type \"string\"")),
        (json!({"who": "a", "times": "three"}), Err("is not of type \"integer\"")),
        (json!({"who": "a", "tone": "rude"}), Err("\"rude\" is not one of")),
        (json!({"who": "a", "whom": "b"}), Err("'whom' was unexpected")),
        (json!([]), Err("they must be a JSON object")),
    ];
    for (arguments, expected) in rows {
        let outcome = world.call("greet", arguments.clone()).await;
        match expected {
            Ok(data) => assert_eq!(outcome.data, data, "{arguments}"),
            Err(cause) => {
                assert_eq!(outcome.code, "invalid_arguments", "{arguments}");
                assert!(outcome.content.contains(cause), "{arguments}: {}", outcome.content);
            }
        }
    }
}

#[tokio::test]
async fn a_tool_without_arguments_takes_whatever_models_write_for_none() {
    let world = world();
    world.load("greeter").await;
    for arguments in [json!({}), Value::Null, json!(""), json!("{}")] {
        let outcome = world.call("clock", arguments).await;
        assert_eq!(outcome.content, "half past nine");
    }
}

#[tokio::test]
async fn load_details_gives_what_the_skill_has() {
    let world = world();
    world.load("greeter").await;
    assert_eq!(world.call("about", json!({})).await.content, "Be kind.");
    assert_eq!(world.call("about", json!({"resource": "now"})).await.content, "half past nine");
    let unknown = world.call("about", json!({"resource": "nope"})).await;
    assert_eq!(unknown.code, "resource_not_found");
}

#[tokio::test]
async fn a_resource_that_is_made_now_gets_the_arguments_that_it_takes() {
    let lines = GREETER
        .replace("        default: notes\n", "        default: notes\n      - name: zone\n")
        .replace("method: clock\n    args: []", "method: time\n    args: []");
    let handlers = greeter().method(
        "clock",
        [
            Parameter::optional("zone", ArgumentKind::String),
            Parameter::optional("resource", ArgumentKind::String),
        ],
        |arguments| async move { ToolOutcome::text(arguments.to_string()) },
    );
    let handlers = handlers.method("time", [], |_| async { ToolOutcome::text("noon") });
    let world = Plan::new()
        .file("greeter/SKILL.md", declaring("greeter", &lines))
        .file("greeter/notes.md", "Be kind.")
        .change(with(handlers))
        .build();
    world.load("greeter").await;
    let given = world.call("about", json!({"resource": "now", "zone": "UTC"})).await;
    let text: Value = serde_json::from_str(&given.content).unwrap();
    assert_eq!(text, json!({"resource": "now", "zone": "UTC"}));
    // What is only read takes no notice of it.
    assert_eq!(world.call("about", json!({"zone": "UTC"})).await.content, "Be kind.");
    let call = json!({"skill": "greeter", "resource": "now"});
    let given = world.call("load_skill_detail", call).await;
    assert!(given.content.contains("{\"resource\":\"now\"}"), "{}", given.content);
}

#[tokio::test]
async fn a_skill_whose_file_was_deleted_is_quarantined() {
    let world = world();
    assert!(world.runtime.quarantined(&world.session, &world.agent).await.is_empty());
    world.remove("greeter/notes.md");
    // Another skill has a new text, and all are looked at again.
    world.write("plain/SKILL.md", support::skill("plain", "Plainer.", "Plain."));
    world.catalog.refresh().await;
    let quarantined = world.runtime.quarantined(&world.session, &world.agent).await;
    let cause = quarantined.first().map(Quarantined::cause).unwrap_or_default();
    assert!(cause.contains("'notes.md', which the skill does not have"), "{cause}");
}

#[tokio::test]
async fn what_is_known_only_now_stands_above_the_body() {
    let world = world();
    let loaded = world.call("load_skill", json!({"skill": "greeter"})).await;
    let text = "## Greeter Activated\n\nThe body of greeter.";
    assert!(loaded.content.starts_with(text), "{}", loaded.content);
    // It is pinned as it was given, and begins a turn in the same way.
    let request = TurnRequest::new().with_pinned("greeter");
    let other = self::world();
    let turn = other.runtime.begin_turn(&other.session, &other.agent, request).await.unwrap();
    assert!(turn.messages[0].text().contains(text));
}

#[tokio::test]
async fn an_opening_that_fails_keeps_the_skill_from_being_loaded() {
    let failing = greeter().opening(|_| async { ToolOutcome::error("db_away", "Error: away") });
    let world = plan().change(with(failing)).build();
    let outcome = world.call("load_skill", json!({"skill": "greeter"})).await;
    assert_eq!((outcome.code.as_ref(), outcome.is_error), ("db_away", true));
    assert!(world.state().await.loaded.is_empty());
}

/// file and line, that skill alone, and methods only from the table.
#[tokio::test]
async fn what_cannot_be_bound_is_quarantined_with_its_line_and_nothing_else_is() {
    // Lines of the frontmatter; the code, the line in SKILL.md, and what is said.
    let rows: [(&str, &str, u32, &str); 32] = [
        (
            "tool_configs:\n  - name: a\n    method: gret\n",
            "unknown-handler",
            5,
            "The tool 'a' is bound to 'gret', which nobody here offers",
        ),
        (
            "tool_configs:\n  - name: a\n    method: greet\n    args:\n      - name: who\n        required: true\n      - name: times\n        type: integer\n        default: 1\n      - name: tune\n",
            "handler-mismatch",
            13,
            "The tool 'a' has an argument 'tune', which 'greet' does not take",
        ),
        (
            "tool_configs:\n  - name: a\n    method: clock\n    args:\n      - name: x\n",
            "handler-mismatch",
            8,
            "The tool 'a' has an argument 'x', which 'clock' does not take",
        ),
        (
            "tool_configs:\n  - name: a\n    method: greet\n    args:\n      - name: who\n        required: true\n",
            "handler-mismatch",
            5,
            "The tool 'a' does not always have the argument 'times', which 'greet' needs",
        ),
        (
            "tool_configs:\n  - name: a\n    method: greet\n    args:\n      - name: who\n      - name: times\n        type: integer\n        default: 1\n",
            "handler-mismatch",
            5,
            "The tool 'a' does not always have the argument 'who', which 'greet' needs",
        ),
        (
            "tool_configs:\n  - name: a\n    method: greet\n    args:\n      - name: who\n        required: true\n      - name: times\n        default: two\n",
            "handler-mismatch",
            10,
            "The argument 'times' of the tool 'a' is of type string; 'greet' takes type integer",
        ),
        (
            "tool_configs:\n  - name: a\n    method: load_details\n    args:\n      - name: resource\n        default: gone\n",
            "missing-config-file",
            8,
            "The tool 'a' gives the resource 'gone', which the skill does not have",
        ),
        (
            "tool_configs:\n  - name: a\n    method: load_details\n",
            "handler-mismatch",
            5,
            "The tool 'a' does not always have the argument 'resource', which 'load_details' needs",
        ),
        (
            "tool_configs:\n  - name: a b\n    method: clock\n",
            "invalid-tool-config",
            5,
            "The tool 'a b' has a name that models cannot call",
        ),
        (
            "tool_configs:\n  - name: a\n    method: clock\n    script: x.py\n",
            "invalid-tool-config",
            5,
            "tool_configs[0] has a method and a script: leave out one of them",
        ),
        (
            "tool_configs:\n  - name: a\n    script: x.py\n",
            "missing-config-file",
            5,
            "The tool 'a' is in the file 'x.py', which the skill does not have",
        ),
        (
            "tool_configs:\n  - name: a\n    script: ../x.py\n",
            "missing-config-file",
            5,
            "The tool 'a' names the file '../x.py'",
        ),
        (
            "tool_configs:\n  - name: a\n    script: notes.md\n    args:\n      - name: n\n        type: integer\n        default: many\n",
            "invalid-tool-config",
            8,
            "tool_configs[0].args[0] has a default that is no integer",
        ),
        (
            "tool_configs:\n  - name: a\n    script: notes.md\n    args:\n      - name: n\n        enum: [x, y]\n        default: z\n",
            "invalid-tool-config",
            8,
            "tool_configs[0].args[0] has a default that is not in 'enum'",
        ),
        (
            "resource_configs:\n  - name: r\n    file: gone.md\n",
            "missing-config-file",
            5,
            "The resource 'r' is in the file 'gone.md', which the skill does not have",
        ),
        (
            "resource_configs:\n  - name: r\n    dynamic: true\n    method: clok\n",
            "unknown-handler",
            5,
            "The resource 'r' is bound to 'clok', which nobody here offers",
        ),
        (
            "resource_configs:\n  - name: r\n    dynamic: true\n    method: greet\n",
            "handler-mismatch",
            5,
            "The resource 'r' is bound to 'greet', which needs 'who'",
        ),
        (
            "resource_configs:\n  - name: r\n    dynamic: true\n    method: clok\n    file: notes.md\n",
            "unknown-handler",
            5,
            "The resource 'r' is bound to 'clok', which nobody here offers",
        ),
        (
            "tool_configs:\n  - name: a\n    description: x\n",
            "unknown-handler",
            5,
            "The tool 'a' is bound to nothing, and no tool of the host",
        ),
        (
            "tool_configs:\n  - name: a\n    script: notes.md\n    args:\n      - name: n\n        type: integr\n",
            "invalid-tool-config",
            9,
            "tool_configs[0].args[0].type: there is no type 'integr'",
        ),
        (
            "tool_configs:\n  - name: a\n    script: notes.md\n    args:\n      - name: n\n        enum: x\n",
            "invalid-tool-config",
            9,
            "tool_configs[0].args[0].enum must be a list, not text",
        ),
        (
            "tool_configs:\n  - name: a\n    script: notes.md\n    args:\n      - name: n\n        required: sometimes\n",
            "invalid-tool-config",
            9,
            "tool_configs[0].args[0].required must be true or false, not text",
        ),
        (
            "resource_configs:\n  - name: r\n",
            "invalid-resource-config",
            5,
            "resource_configs[0] gives 'r' no content: set file, content or dynamic",
        ),
        (
            "resource_configs:\n  - name: r\n    file: notes.md\n    method: clock\n",
            "invalid-resource-config",
            5,
            "resource_configs[0] has a method, which is used only with 'dynamic: true'",
        ),
        (
            "tool_configs: yes please\n",
            "invalid-tool-config",
            4,
            "tool_configs must be a list of mappings, not text",
        ),
        (
            "tool_configs:\n  - name: a\n    method: clock\n  - method: clock\n",
            "invalid-tool-config",
            7,
            "tool_configs[1] has no 'name'",
        ),
        (
            "tool_configs:\n  - name: a\n    method: clock\n  - name: a\n    method: clock\n",
            "invalid-tool-config",
            7,
            "tool_configs[1] declares the tool 'a' a second time",
        ),
        (
            "tool_configs:\n  - clock\n",
            "invalid-tool-config",
            5,
            "tool_configs[0] must be a mapping, not text",
        ),
        (
            "tool_configs:\n  - name: a\n    method: clock\n    args: none\n",
            "invalid-tool-config",
            7,
            "tool_configs[0].args must be a list of mappings, not text",
        ),
        (
            "resource_configs:\n  - file: notes.md\n",
            "invalid-resource-config",
            5,
            "resource_configs[0] has no 'name'",
        ),
        (
            "resource_configs:\n  - name: r\n    file: notes.md\n  - name: r\n    content: x\n",
            "invalid-resource-config",
            7,
            "resource_configs[1] declares the resource 'r' a second time",
        ),
        (
            "resource_configs:\n  name: r\n",
            "invalid-resource-config",
            5,
            "resource_configs must be a list of mappings, not a mapping",
        ),
    ];
    for (lines, code, line, message) in rows {
        let world = Plan::new()
            .file("greeter/SKILL.md", declaring("greeter", lines))
            .file("greeter/notes.md", "Be kind.")
            .skill("plain", "Plain.")
            .change(with(greeter()))
            .build();
        let quarantined = world.runtime.quarantined(&world.session, &world.agent).await;
        assert_eq!(quarantined.len(), 1, "{lines}");
        let found = &quarantined[0].diagnostics[0];
        let place = (found.code.as_str(), found.span.map(|span| span.line));
        assert_eq!(place, (code, Some(line)), "{lines}");
        assert!(found.message.starts_with(message), "{lines}: {}", found.message);
        assert!(found.path.as_deref().unwrap().ends_with("greeter/SKILL.md"));
        let system = prompt(&world).await.system;
        assert!(!system.contains("greeter") && system.contains("plain"), "{system}");
        let refused = world.call("load_skill", json!({"skill": "greeter"})).await;
        assert_eq!((refused.code.as_ref(), refused.is_error), ("skill_invalid", true), "{lines}");
        let said = format!("SKILL.md:{line}: {message}");
        assert!(refused.content.contains(&said), "{lines}: {}", refused.content);
        assert!(!world.call("load_skill", json!({"skill": "plain"})).await.is_error);
    }
}

#[tokio::test]
async fn a_skill_that_is_mended_is_used_again() {
    let world = Plan::new()
        .file("greeter/SKILL.md", declaring("greeter", GREETER))
        .change(with(greeter()))
        .build();
    assert_eq!(world.runtime.quarantined(&world.session, &world.agent).await.len(), 1);
    world.write("greeter/notes.md", "Be kind.");
    // A file came; the text is the same.
    world.write("greeter/SKILL.md", declaring("greeter", GREETER));
    world.write("other/SKILL.md", declaring("other", ""));
    world.catalog.refresh().await;
    assert!(world.runtime.quarantined(&world.session, &world.agent).await.is_empty());
    assert!(!world.call("load_skill", json!({"skill": "greeter"})).await.is_error);
}

#[tokio::test]
async fn handlers_are_for_one_skill_or_for_all_and_the_host_comes_first() {
    let all = Handlers::for_all().method("clock", [], |_| async { ToolOutcome::text("noon") });
    let lines = "tool_configs:\n  - name: clock\n    method: clock\n  - name: host\n    method: nobody_has_it\n";
    let world = Plan::new()
        .file("greeter/SKILL.md", declaring("greeter", lines))
        .file(
            "other/SKILL.md",
            declaring("other", "tool_configs:\n  - name: time\n    method: clock\n"),
        )
        .file(
            "third/SKILL.md",
            declaring("third", "tool_configs:\n  - name: g\n    method: greet\n"),
        )
        .change(move |builder| {
            builder.toolkit(Arc::new(all)).toolkit(Arc::new(greeter())).tool(echo("host"))
        })
        .build();
    world.load("greeter").await;
    world.load("other").await;
    assert_eq!(world.call("clock", json!({})).await.content, "half past nine");
    assert_eq!(world.call("time", json!({})).await.content, "noon");
    assert!(!world.call("host", json!({})).await.is_error, "a tool of the host needs no handler");
    let quarantined = world.runtime.quarantined(&world.session, &world.agent).await;
    assert_eq!(quarantined[0].skill.name(), "third", "what is for one skill is for no other");
}

#[tokio::test]
async fn a_session_keeps_the_tools_of_the_text_that_it_has_loaded() {
    let world = world();
    world.load("greeter").await;
    let before = prompt(&world).await.tools;
    let changed = GREETER.replace("name: clock\n    description", "name: watch\n    description");
    world.write("greeter/SKILL.md", declaring("greeter", &changed));
    world.catalog.refresh().await;
    assert_eq!(world.call("clock", json!({})).await.content, "half past nine");
    let closed = world.call("watch", json!({})).await;
    assert!(closed.is_error, "what another text declares is not open: {}", closed.content);
    let after: Vec<String> = names(&world).await;
    let before: Vec<String> = before.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(before, after);
}

#[tokio::test]
async fn tools_are_declared_in_every_exposure() {
    let exposed = |exposure| {
        let settings = Settings::default().with_exposure(exposure);
        plan().settings(settings).change(with(greeter())).build()
    };
    let declared = exposed(Exposure::Declared);
    assert!(names(&declared).await.contains(&"greet".to_owned()));
    let generic = exposed(Exposure::Generic);
    let loaded = generic.call("load_skill", json!({"skill": "greeter"})).await.content;
    assert!(loaded.contains("- greet: Greets somebody."), "{loaded}");
    let arguments = json!({"skill": "greeter", "tool": "greet", "arguments": {"who": "you"}});
    let outcome = generic.call("skill_tool", arguments).await;
    assert_eq!(outcome.data, json!({"who": "you", "times": 2, "tone": "warm"}));
}

#[tokio::test]
async fn a_tool_that_requires_nothing_can_be_called_at_once() {
    let lines =
        "tool_configs:\n  - name: clock\n    method: clock\n    requires_skill_loaded: false\n";
    let world = Plan::new()
        .file("greeter/SKILL.md", declaring("greeter", lines))
        .change(with(greeter()))
        .build();
    assert!(names(&world).await.contains(&"clock".to_owned()));
    assert_eq!(world.call("clock", json!({})).await.content, "half past nine");
}

#[tokio::test]
async fn load_and_use_fit_into_one_step() {
    let world = world();
    let load = world.tool_call("load_skill", json!({"skill": "greeter"}));
    let clock = world.tool_call("clock", json!({}));
    let result = world.step(vec![load, clock]).await;
    assert_eq!(result.outcomes[1].content, "half past nine");
}

#[tokio::test]
async fn narrowing_leaves_out_bound_tools_as_well() {
    let world = world();
    world.load("greeter").await;
    let narrowing = prowess_runtime::Narrowing::new().with_tools(["clock"]);
    let narrowed = world.runtime.narrowed(&narrowing);
    let call = |tool: &str| world.tool_call(tool, json!({"who": "you"}));
    let clock =
        narrowed.dispatch(&world.session, &world.agent, world.tool_call("clock", json!({})));
    assert!(!clock.await.unwrap().is_error);
    let greet = narrowed.dispatch(&world.session, &world.agent, call("greet")).await.unwrap();
    assert_eq!(greet.code, "unknown_tool");
}

/// Writes down what it is asked to run, and answers.
#[derive(Default)]
struct Recorder {
    asked: Mutex<Vec<(String, String, String)>>,
    answer: Mutex<CommandAnswer>,
}

impl CommandRunner for Recorder {
    fn run<'a>(
        &'a self,
        request: CommandRequest<'a>,
    ) -> BoxFuture<'a, Result<CommandAnswer, BoxError>> {
        let skill = request.skill.map(|it| it.name().to_owned()).unwrap_or_default();
        let input = String::from_utf8_lossy(request.input).into_owned();
        self.asked.lock().unwrap().push((skill, request.code.to_owned(), input));
        let answer = self.answer.lock().unwrap().clone();
        Box::pin(async move { Ok(answer) })
    }
}

const SCRIPTED: &str = "\
tool_configs:
  - name: sum
    description: Adds.
    script: scripts/sum.py
    args:
      - name: numbers
        type: array
        required: true
";

fn scripted(runner: Option<Arc<Recorder>>) -> World {
    Plan::new()
        .file("adder/SKILL.md", declaring("adder", SCRIPTED))
        .file("adder/scripts/sum.py", "print(1)")
        .change(move |builder| match runner {
            Some(runner) => builder.commands(runner),
            None => builder,
        })
        .build()
}

#[tokio::test]
async fn a_script_gets_its_arguments_as_json() {
    let recorder = Arc::new(Recorder::default());
    let world = scripted(Some(Arc::clone(&recorder)));
    world.load("adder").await;
    *recorder.answer.lock().unwrap() = CommandAnswer::new(0, "{\"sum\": 6}\n");
    let outcome = world.call("sum", json!({"numbers": [1, 2, 3]})).await;
    assert_eq!((outcome.content.as_str(), &outcome.data), ("{\"sum\": 6}", &json!({"sum": 6})));
    let code = "exec python3 \"$CLAUDE_SKILL_DIR\"/'scripts/sum.py'".to_owned();
    let asked = recorder.asked.lock().unwrap().clone();
    assert_eq!(asked, [("adder".to_owned(), code, "{\"numbers\":[1,2,3]}".to_owned())]);
    *recorder.answer.lock().unwrap() = CommandAnswer::new(3, "no such number\n");
    let failed = world.call("sum", json!({"numbers": []})).await;
    assert_eq!(failed.code, "script_failed");
    assert_eq!(failed.content, "Error in sum: exit code 3: no such number");
}

#[tokio::test]
async fn a_script_that_changed_since_it_was_loaded_is_not_run() {
    let recorder = Arc::new(Recorder::default());
    let world = scripted(Some(Arc::clone(&recorder)));
    world.load("adder").await;
    world.write("adder/scripts/sum.py", "print(2)");
    let refused = world.call("sum", json!({"numbers": []})).await;
    assert_eq!(refused.code, "content_changed");
    assert!(recorder.asked.lock().unwrap().is_empty(), "nothing was started");
}

#[tokio::test]
async fn without_anybody_who_runs_scripts_the_tool_says_so() {
    let world = scripted(None);
    world.load("adder").await;
    assert_eq!(world.call("sum", json!({"numbers": []})).await.code, "script_unavailable");
}
