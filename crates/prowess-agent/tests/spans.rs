//! The spans of runs: who is below whom, across sub-agents (S12, 4).

mod agent_support;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use agent_support::{call, catalog, load, scripted, session};
use prowess_agent::{
    Agent, Reply, RunRequest, SameAgent, SkillsMiddleware, SubAgentMiddleware, SubAgentSkills,
};
use prowess_runtime::{ToolDeclaration, ToolOutcome, tool_fn};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Instrument, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// A span: its fields, and the one above it.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<String, String>,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().to_owned(), value.to_owned());
    }
}

/// Keeps all spans, under numbers that are not given twice.
#[derive(Clone, Default)]
struct Keep(Arc<Mutex<Vec<Seen>>>);

struct Number(u64);

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Keep {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent();
        let parent = parent.and_then(|it| it.extensions().get::<Number>().map(|it| it.0));
        let mut seen = Seen { name: span.name(), parent, ..Seen::default() };
        attributes.record(&mut seen);
        let mut all = self.0.lock().unwrap();
        span.extensions_mut().insert(Number(all.len() as u64));
        all.push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let number = span.extensions().get::<Number>().unwrap().0 as usize;
        values.record(&mut self.0.lock().unwrap()[number]);
    }
}

impl Keep {
    fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }
}

fn shown(seen: &Seen) -> String {
    seen.fields.get("otel.name").cloned().unwrap_or_else(|| seen.name.to_owned())
}

/// A span and those above it.
fn line(all: &[Seen], seen: &Seen) -> Vec<String> {
    let mut names = vec![shown(seen)];
    let mut at = seen.parent;
    while let Some(number) = at {
        let above = &all[number as usize];
        names.push(shown(above));
        at = above.parent;
    }
    names
}

/// On several threads, with the run on a task of its own: the context goes with the work.
#[test]
fn forks_and_tasks_are_below_the_calls_that_started_them() {
    let keep = Keep::default();
    let subscriber = tracing_subscriber::registry().with(keep.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let model = scripted([
        Reply::calls([load("c1", "report")]),
        Reply::calls([call("c2", "look", json!({"at": "quetzalcoatl"}))]),
        Reply::text("The report."),
        Reply::calls([call(
            "c3",
            "task",
            json!({"description": "Look.", "subagent_type": "general-purpose"}),
        )]),
        Reply::calls([call("c4", "look", json!({"at": "that"}))]),
        Reply::text("Looked."),
        Reply::calls([call("c5", "look", json!({"at": "nothing"}))]),
        Reply::text("Done."),
    ]);
    let look = tool_fn(ToolDeclaration::new("look", "Looks.", json!({"type": "object"})), |it| {
        let is_nothing = it["at"] == "nothing";
        async move {
            // Other threads, and back.
            let elsewhere = async { tracing::info_span!("inside").in_scope(|| ()) };
            tokio::spawn(elsewhere.in_current_span()).await.unwrap();
            match is_nothing {
                true => ToolOutcome::error("nothing_there", "Nothing is there."),
                false => ToolOutcome::text("Seen."),
            }
        }
    });
    let agent = Agent::builder(model)
        .tool(look)
        .middleware(SubAgentMiddleware::new().general_purpose(SubAgentSkills::Isolated))
        .middleware(
            SkillsMiddleware::new(catalog(&[("report", "context: fork\n", "Write a report.")]))
                .with_agents(SameAgent),
        )
        .build()
        .unwrap();
    let run = async move { agent.run(RunRequest::new(session(), "Go.")).await.unwrap() };
    let outcome = runtime.block_on(async { tokio::spawn(run).await.unwrap() });
    assert_eq!(outcome.text(), "Done.");

    let all = keep.all();
    let lines: Vec<Vec<String>> =
        all.iter().filter(|it| it.name == "inside").map(|it| line(&all, it)).collect();
    let below = |tool: &str, agent: &str| {
        let inside = ["inside", "execute_tool look", "prowess.step", agent].map(str::to_owned);
        let above = [format!("execute_tool {tool}")];
        let above = [&above[..], &["prowess.step", "invoke_agent main"].map(str::to_owned)];
        [&inside[..], &above.concat()].concat()
    };
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], below("load_skill", "invoke_agent main>report"));
    assert_eq!(lines[1], below("task", "invoke_agent main>general-purpose"));
    assert_eq!(lines[2], ["inside", "execute_tool look", "prowess.step", "invoke_agent main"]);

    let chats = all.iter().filter(|it| it.name == "prowess.chat");
    assert_eq!(chats.clone().count(), 8);
    for chat in chats {
        assert!(chat.fields["otel.name"].starts_with("chat "), "{chat:?}");
        assert!(shown(&all[chat.parent.unwrap() as usize]).starts_with("invoke_agent main"));
        assert!(chat.fields.contains_key("gen_ai.response.finish_reasons"), "{chat:?}");
    }
    let failed = all.iter().filter(|it| it.fields.contains_key("error.type"));
    let failed: Vec<(String, &str)> =
        failed.map(|it| (shown(it), it.fields["error.type"].as_str())).collect();
    assert_eq!(failed, [("execute_tool look".to_owned(), "nothing_there")]);
    assert!(!format!("{all:?}").contains("quetzalcoatl"), "arguments are not recorded");
}
