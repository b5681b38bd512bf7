//! Traces and metrics of real processes, as a collector receives them (S12, 4).

#[path = "support/service/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "support/collector.rs"]
mod collector;
mod support;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Answer, Client};
use collector::{Collector, Manner, text};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use support::chat::{command, project};
use support::exec::Project;
use support::provider::{Provider, Reply};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const SECRET: &str = "hunter2hunter2";
/// What a model or a tool is told, and nobody else.
const PRIVATE: &str = "quetzalcoatl";

/// `prowess serve`; it is killed with the test.
struct Serving {
    child: Child,
    log: std::path::PathBuf,
    address: std::net::SocketAddr,
}

impl Serving {
    fn start(mut command: Command, log: std::path::PathBuf) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let said: Value = serde_json::from_str(&first).unwrap_or_default();
        let url = said["url"].as_str().unwrap_or_else(|| {
            panic!("{first}{}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        Self { child, log, address }
    }

    fn client(&self) -> Client {
        Client::new(self.address)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Ends it as a person would; the code, and everything that it wrote to standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < Duration::from_secs(25), "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        (status.code(), self.log())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets a process send to a collector, soon.
fn sending(command: &mut Command, url: &str) {
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer%20{SECRET}"))
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "200")
        .env("PROWESS_LOG", "trace");
}

fn serve(project: &Project, change: impl FnOnce(&mut Command)) -> Serving {
    let mut command = project.command(&["serve", "--port", "0", "--json"]);
    change(&mut command);
    Serving::start(command, project.path("serve.log"))
}

#[expect(clippy::needless_pass_by_value, reason = "callers write it in its place")]
fn call(id: &str, tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"id": id, "name": tool, "arguments": arguments}]})
}

fn post(client: &mut Client, path: &str, body: &Value) -> Answer {
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", parent.as_str()), ("tracestate", "vendor=abc")];
    let answer = client.ask("POST", path, &headers, Some(body)).unwrap();
    assert!(answer.status < 300, "{}", answer.brief());
    answer
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let names = || spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {:?}", names()))
}

fn parent_of<'s>(spans: &'s [Span], span: &Span) -> &'s Span {
    let parent = spans.iter().find(|other| other.span_id == span.parent_span_id);
    parent.unwrap_or_else(|| panic!("{} has no parent", span.name))
}

/// The names of a span and of those above it.
fn line(spans: &[Span], span: &Span) -> Vec<String> {
    let mut names = vec![span.name.clone()];
    let mut at = span.clone();
    while let Some(parent) = spans.iter().find(|other| other.span_id == at.parent_span_id) {
        names.push(parent.name.clone());
        at = parent.clone();
    }
    names
}

#[test]
fn one_trace_goes_from_who_calls_through_the_service_into_the_sandbox() {
    let test = "telemetry::one_trace_goes_from_who_calls_through_the_service_into_the_sandbox";
    let Some(project) = Project::new(test) else { return };
    let collector = Collector::start(Manner::Taking);
    let serving = serve(&project, |command| sending(command, &collector.url));
    let mut client = serving.client();
    post(&mut client, "/api/v1/sessions", &json!({"session_id": "s"}));
    let path = "/api/v1/sessions/s/calls";
    post(&mut client, path, &call("c1", "load_skill", json!({"skill": "demo"})));
    let line_of_command = format!("echo {PRIVATE}");
    let run = call("c2", "skill_run", json!({"skill": "demo", "command": line_of_command}));
    let ran = post(&mut client, path, &run).json();
    assert!(ran["results"][0]["content"].to_string().contains(PRIVATE), "the control: {ran}");
    post(&mut client, path, &call("c3", "no_such_tool", json!({"a": PRIVATE})));
    client.get("/api/v1/nowhere").unwrap();
    let (code, log) = serving.end();
    assert_eq!(code, Some(0), "{log}");

    let spans = collector.spans();
    let command = named(&spans, "workspace.run");
    let route = "POST /api/v1/sessions/{session_id}/calls";
    let expected = ["workspace.run", "execute_tool skill_run", "prowess.step", route];
    assert_eq!(line(&spans, command), expected);
    let tool = parent_of(&spans, command);
    let step = parent_of(&spans, tool);
    let request = parent_of(&spans, step);
    for span in [command, tool, step, request] {
        assert_eq!(hex(&span.trace_id), TRACE, "{}", span.name);
    }
    assert_eq!(hex(&request.parent_span_id), PARENT);
    assert_eq!(request.trace_state, "vendor=abc");
    let of = |span: &Span, key: &str| text(&span.attributes, key).unwrap_or_default();
    for (key, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/api/v1/sessions/{session_id}/calls"),
        ("http.response.status_code", "200"),
        ("url.scheme", "http"),
        ("url.path", path),
    ] {
        assert_eq!(of(request, key), value, "{key}");
    }
    assert_eq!(request.kind, 2, "a server");
    assert_eq!(of(step, "gen_ai.conversation.id"), "s");
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "skill_run"),
        ("gen_ai.tool.call.id", "c2"),
        ("gen_ai.tool.type", "function"),
    ] {
        assert_eq!(of(tool, key), value, "{key}");
    }
    let failed = named(&spans, "execute_tool no_such_tool");
    assert_eq!(of(failed, "error.type"), "unknown_tool");
    assert_eq!(failed.status.as_ref().unwrap().code, 2, "an error");
    let lost = spans.iter().find(|span| span.name == "GET").expect("an address without a route");
    assert_eq!(of(lost, "http.response.status_code"), "404");
    assert!(lost.parent_span_id.is_empty(), "nobody called");
    assert_ne!(hex(&lost.trace_id), TRACE);
    assert_eq!(collector.resource("service.name").as_deref(), Some("prowess"));
    assert_eq!(collector.resource("deployment.environment").as_deref(), Some("test"));
    let instance = collector.resource("service.instance.id").unwrap_or_default();
    assert_eq!((instance.len(), instance.matches('-').count()), (36, 4), "{instance}");

    for name in [
        "http.server.request.duration",
        "prowess.skill.loads",
        "prowess.tool.calls",
        "prowess.tool.duration",
        "prowess.tokens.disclosed",
    ] {
        assert!(collector.metrics().contains(&name.to_owned()), "{:?}", collector.metrics());
    }
    let calls = collector.points("prowess.tool.calls");
    let count = |tool: &str, outcome: &str| {
        let is_it = |attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue]| {
            text(attributes, "gen_ai.tool.name").as_deref() == Some(tool)
                && text(attributes, "prowess.outcome").as_deref() == Some(outcome)
        };
        let found = calls.iter().filter(|(attributes, _)| is_it(attributes));
        found.map(|(_, value)| *value).fold(0.0, f64::max)
    };
    assert_eq!(count("load_skill", "loaded"), 1.0, "{calls:?}");
    assert_eq!(count("_OTHER", "unknown_tool"), 1.0, "{calls:?}");
    let loads = collector.points("prowess.skill.loads");
    let demo = |(attributes, _): &(Vec<_>, f64)| {
        text(attributes, "prowess.skill.name").as_deref() == Some("demo")
    };
    assert!(loads.iter().all(demo), "{loads:?}");

    // Who may read traces does not thereby read conversations; who reads the log gets no key.
    let told = format!("{spans:?}{:?}", collector.points("prowess.tool.duration"));
    assert!(!told.contains(PRIVATE), "{told}");
    let heads = collector.heads();
    let authorization = format!("authorization: Bearer {SECRET}");
    assert!(heads.iter().all(|head| head.contains(&authorization)), "the control: {heads:?}");
    assert!(log.contains("request"), "the control: {log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_sub_agent_and_its_model_are_below_the_call_that_started_them() {
    let sandbox = project();
    let fork =
        "---\nname: report\ndescription: Does report.\ncontext: fork\n---\nWrite a report.\n";
    sandbox.write("skills/report/SKILL.md", fork);
    let provider = Provider::answering([
        Reply::call("load_skill", json!({"skill": "report"})),
        Reply::call("load_skill", json!({"skill": "greet"})),
        Reply::text(PRIVATE),
        Reply::text("Here it is."),
    ]);
    let collector = Collector::start(Manner::Taking);
    let own = format!(
        "[telemetry]\notlp_endpoint = \"{}\"\nservice_name = \"talk\"\nspan_delay_ms = 50\n",
        collector.url
    );
    sandbox.write("home/prowess.toml", own);
    let words = ["chat", "--model", "openai:test", "--base-url", &provider.url];
    let words = [&words[..], &["--session", "s", "--prompt", "Report."]].concat();
    let mut command = command(&sandbox, &words);
    command.env("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=mine");
    let run = sandbox.run(command, b"");
    assert_eq!((run.code, run.stdout.as_str()), (0, "Here it is.\n"), "{run:?}");
    assert!(!run.stderr.contains("Warning"), "{run:?}");

    let spans = collector.spans();
    let is_inside = |span: &&Span| {
        span.name == "execute_tool load_skill"
            && line(&spans, span).contains(&"invoke_agent main>report".to_owned())
    };
    let inside = spans.iter().find(is_inside).expect("the call of the sub-agent");
    let expected = [
        "execute_tool load_skill",
        "prowess.step",
        "invoke_agent main>report",
        "execute_tool load_skill",
        "prowess.step",
        "invoke_agent main",
    ];
    assert_eq!(line(&spans, inside), expected);
    let chats: Vec<&Span> = spans.iter().filter(|span| span.name == "chat test").collect();
    assert_eq!(chats.len(), 4);
    let below = |agent: &str| chats.iter().filter(|it| parent_of(&spans, it).name == agent).count();
    assert_eq!((below("invoke_agent main"), below("invoke_agent main>report")), (2, 2));
    for chat in chats {
        assert_eq!(chat.kind, 3, "a client");
        assert_eq!(chat.trace_id, inside.trace_id);
        for (key, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.request.model", "test"),
            ("gen_ai.conversation.id", "s"),
            ("gen_ai.usage.input_tokens", "1200"),
            ("gen_ai.usage.output_tokens", "34"),
        ] {
            assert_eq!(text(&chat.attributes, key).as_deref(), Some(value), "{key}");
        }
        let finish = text(&chat.attributes, "gen_ai.response.finish_reasons").unwrap();
        assert!(["[stop]", "[tool_calls]"].contains(&finish.as_str()), "{finish}");
    }
    assert_eq!(collector.resource("service.name").as_deref(), Some("talk"));
    assert_eq!(collector.resource("service.instance.id").as_deref(), Some("mine"));
    let tokens = collector.points("gen_ai.client.token.usage");
    let sum = |kind: &str| {
        let of_kind =
            tokens.iter().filter(|(it, _)| text(it, "gen_ai.token.type").as_deref() == Some(kind));
        of_kind.map(|(_, value)| *value).fold(0.0, f64::max)
    };
    assert_eq!((sum("input"), sum("output")), (4.0 * 1200.0, 4.0 * 34.0), "{tokens:?}");
    assert!(!collector.points("gen_ai.client.operation.duration").is_empty());
    assert!(!format!("{spans:?}").contains(PRIVATE));
}

#[test]
fn a_service_answers_and_ends_whatever_the_collector_does() {
    let test = "telemetry::a_service_answers_and_ends_whatever_the_collector_does";
    let Some(project) = Project::new(test) else { return };
    for manner in [Some(Manner::Hanging), Some(Manner::Refusing), None] {
        let collector = manner.map(Collector::start);
        // Nobody listens there.
        let away = "http://127.0.0.1:9".to_owned();
        let url = collector.as_ref().map_or(away, |collector| collector.url.clone());
        project.write(
            "home/prowess.toml",
            "[telemetry]\nqueue_spans = 4\nbatch_spans = 2\nshutdown_ms = 300\n",
        );
        let serving = serve(&project, |command| {
            sending(command, &url);
            command.env("PROWESS_LOG", "warn");
        });
        let mut client = serving.client();
        for _ in 0..200 {
            assert_eq!(client.get("/api/v1/skills").unwrap().status, 200, "{manner:?}");
        }
        let (code, log) = serving.end();
        assert_eq!(code, Some(0), "{manner:?}: {log}");
        assert!(log.contains("spans were not delivered"), "{manner:?}: {log}");
        let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert!(lines("and are dropped") <= 1, "{manner:?}: {log}");
        assert!(lines("telemetry cannot be delivered") <= 1, "{manner:?}: {log}");
        assert!(!log.contains(SECRET), "{manner:?}: {log}");
        if manner == Some(Manner::Hanging) {
            assert_eq!(lines("and are dropped"), 1, "{log}");
        }
    }
}

#[test]
fn nothing_is_sent_unless_somebody_says_where_to() {
    let test = "telemetry::nothing_is_sent_unless_somebody_says_where_to";
    let Some(project) = Project::new(test) else { return };
    let collector = Collector::start(Manner::Taking);
    let section = format!("[telemetry]\notlp_endpoint = \"{}\"\n", collector.url);
    let ask = |change: &dyn Fn(&mut Command)| {
        let serving = serve(&project, |command| {
            command.env("OTEL_BSP_SCHEDULE_DELAY", "1").env("OTEL_METRIC_EXPORT_INTERVAL", "20");
            change(command);
        });
        assert_eq!(serving.client().get("/api/v1/skills").unwrap().status, 200);
        let (code, log) = serving.end();
        assert_eq!(code, Some(0), "{log}");
        (collector.heads().len(), log)
    };
    assert_eq!(ask(&|_| {}).0, 0);
    // A project that was cloned from anywhere does not decide that.
    project.write("prowess.toml", &section);
    let (sent, log) = ask(&|_| {});
    assert_eq!(sent, 0);
    assert!(log.contains("[telemetry] counts only in"), "{log}");
    std::fs::remove_file(project.path("prowess.toml")).unwrap();
    project.write("home/prowess.toml", &section);
    let disabled = |command: &mut Command| {
        command.env("OTEL_SDK_DISABLED", "true");
    };
    assert_eq!(ask(&disabled).0, 0);
    assert!(ask(&|_| {}).0 > 0, "the control");
}

#[test]
fn traces_that_are_not_sampled_are_measured_all_the_same() {
    let test = "telemetry::traces_that_are_not_sampled_are_measured_all_the_same";
    let Some(project) = Project::new(test) else { return };
    let collector = Collector::start(Manner::Taking);
    let serving = serve(&project, |command| {
        sending(command, &collector.url);
        command.env("OTEL_TRACES_SAMPLER", "parentbased_always_off");
    });
    let mut client = serving.client();
    assert_eq!(client.get("/api/v1/skills").unwrap().status, 200);
    collector
        .until("a metric", |it| it.metrics().contains(&"http.server.request.duration".to_owned()));
    // Who calls has decided for its own trace.
    post(&mut client, "/api/v1/sessions", &json!({"session_id": "s"}));
    assert_eq!(serving.end().0, Some(0));
    let spans = collector.spans();
    assert!(!spans.is_empty());
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:?}");
}

#[test]
fn wrong_settings_are_said_at_the_start() {
    let sandbox = project();
    let refused = |key: &str, value: &str| {
        let mut command = command(&sandbox, &["serve", "--port", "0"]);
        command.env(key, value);
        let run = sandbox.run(command, b"");
        assert_eq!(run.code, 2, "{run:?}");
        run.stderr
    };
    for key in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"] {
        let said = refused(key, SECRET);
        assert!(said.contains(key) && said.contains("it must be"), "{said}");
        assert!(!said.contains(SECRET), "{said}");
    }
    sandbox.write("home/prowess.toml", "[telemetry]\nsample_ratio = 2.0\n");
    let said = refused("OTEL_SERVICE_NAME", "x");
    assert!(said.contains("home/prowess.toml"), "{said}");
    assert!(said.contains("[telemetry]: sample_ratio: it must be from 0 to 1"), "{said}");
}
