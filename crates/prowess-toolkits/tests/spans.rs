//! What can be seen of a run from outside: its spans.
//!
//! Work that blocks is done on other threads, so that what listens must listen everywhere: this file
//! has one test.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use support::{Plan, stdout};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// A span that was opened.
#[derive(Clone, Debug)]
struct Seen {
    id: u64,
    name: &'static str,
    /// The spans that it is in, from the outermost.
    within: Vec<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

/// All spans, in the order in which they were opened.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Seen>>>);

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: Context<'_, S>,
    ) {
        let mut fields = BTreeMap::new();
        attributes.record(&mut Fields(&mut fields));
        let span = context.span(id).unwrap();
        let within = span.scope().from_root().map(|span| span.name());
        let mut within: Vec<&'static str> = within.collect();
        let name = within.pop().unwrap();
        self.0.lock().unwrap().push(Seen { id: id.into_u64(), name, within, fields });
    }

    fn on_record(
        &self,
        id: &tracing::span::Id,
        values: &tracing::span::Record<'_>,
        _: Context<'_, S>,
    ) {
        // The newest of this id: ids are used again.
        let mut seen = self.0.lock().unwrap();
        let span = seen.iter_mut().rev().find(|span| span.id == id.into_u64()).unwrap();
        values.record(&mut Fields(&mut span.fields));
    }
}

impl Listener {
    /// The spans of workspaces since it was asked last.
    fn take(&self) -> Vec<Seen> {
        let seen = std::mem::take(&mut *self.0.lock().unwrap());
        seen.into_iter().filter(|span| span.name.starts_with("workspace.")).collect()
    }
}

fn names(spans: &[Seen]) -> Vec<&'static str> {
    spans.iter().map(|span| span.name).collect()
}

#[tokio::test]
async fn every_step_of_a_run_has_its_span() {
    let listener = Listener::default();
    let subscriber = tracing_subscriber::registry().with(listener.clone());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let plan = Plan::new().settings(|it| it.with_interactive(true));
    let world = plan.sharing().file("shared/a.txt", "text").build();
    world.load("demo").await;
    let shared = format!("host://{}", world.path("shared/a.txt").display());
    let run = async || {
        let more = json!({"inputs": [{"from": shared}], "output_files": ["out/*"]});
        let outcome = world.run_with("cat inputs/a.txt; echo done > out/b.txt", more).await;
        assert_eq!(stdout(&outcome), "text");
    };
    listener.take();

    run().await;
    let mut first = listener.take();
    // Workspaces that nobody uses are looked for beside the run.
    for _ in 0..200 {
        if names(&first).contains(&"workspace.cleanup") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        first.extend(listener.take());
    }
    let cleanup = first.iter().position(|span| span.name == "workspace.cleanup");
    first.remove(cleanup.unwrap());
    let expected = [
        "workspace.create",
        "workspace.stage.skill",
        "workspace.stage.inputs",
        "workspace.run",
        "workspace.collect",
        "workspace.inline",
    ];
    assert_eq!(names(&first), expected);
    assert_eq!(first[1].fields["was_staged"], "false");

    // What is there already is looked at, which is a step too.
    run().await;
    let second = listener.take();
    assert_eq!(names(&second), expected);
    assert_eq!(second[1].fields["was_staged"], "true");

    for span in first.iter().chain(&second) {
        assert_eq!(span.within, ["prowess.step", "prowess.call"], "{span:?}");
    }
    for span in [&first[1], &second[1]] {
        let known: BTreeSet<_> = span.fields.keys().copied().collect();
        assert_eq!(known, BTreeSet::from(["digest", "skill", "was_staged", "workspace"]));
        assert_eq!(span.fields["skill"], "demo");
    }

    // A session has the same steps, and they belong to the call that began it or saw it end.
    let arguments = json!({"skill": "demo", "command": ":", "yield_ms": 60000});
    let outcome = world.call("skill_exec", arguments).await;
    assert_eq!(outcome.data["status"], "exited", "{}", outcome.content);
    let session = listener.take();
    let expected = [
        "workspace.create",
        "workspace.stage.skill",
        "workspace.run",
        "workspace.collect",
        "workspace.inline",
    ];
    assert_eq!(names(&session), expected);
    for span in &session {
        assert_eq!(span.within, ["prowess.step", "prowess.call"], "{span:?}");
    }
}
