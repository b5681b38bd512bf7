//! What is counted about skills, and what is not counted apart.

mod support;

use std::sync::Arc;

use prowess_catalog::{Catalog, ContentFile, MemorySource, ResourcePath, SkillContents};
use prowess_format::{Options, Skill};
use prowess_runtime::{
    AgentName, Runtime, RuntimeBuilder, SessionKey, ToolCall, ToolDeclaration, ToolOutcome, tool_fn,
};
use prowess_store::{About, Actor, NewVersion, Store, UsageKind, UsageRow, Use};
use serde_json::json;
use support::place::{Place, on_each_durable_store};

on_each_durable_store! {
    names_of_skills_that_are_not_there_count_together
    what_is_refused_is_a_denial_whichever_tool_it_was
    only_tools_of_a_skill_count_as_its_tools
    as_many_agents_are_counted_apart_as_may_be_and_the_others_together
}

const SKILL: &str = "---\nname: greet\ndescription: Says hello, for tests.\n---\nSay hello.\n";
/// As many agents as are counted apart.
const AGENTS: usize = 100;

/// Puts a skill into the registry.
async fn register(store: &Store, name: &str) {
    let text = format!("---\nname: {name}\ndescription: For tests.\n---\nText.\n");
    let about = About::of(&Skill::parse_bytes(text.as_bytes(), &Options::new()).skill.unwrap());
    let file = ContentFile::new(ResourcePath::parse("SKILL.md").unwrap(), false, text);
    let contents = Arc::new(SkillContents::of(vec![file]));
    let new = NewVersion::new(name.parse().unwrap(), contents, about, Actor::local());
    store.versions.append(new).await.unwrap();
}

/// An engine whose skill is in no registry.
async fn engine(store: &Store) -> Runtime {
    builder(store).await.build().unwrap()
}

async fn builder(store: &Store) -> RuntimeBuilder {
    let source = MemorySource::new("folder").with_skill("greet", SKILL);
    let catalog = Catalog::builder().source(source).build();
    catalog.refresh().await;
    Runtime::builder(catalog).sessions(Arc::clone(&store.sessions))
}

fn shown(rows: &[UsageRow]) -> Vec<(String, UsageKind, String, u64)> {
    let row = |row: &UsageRow| {
        (row.skill.clone(), row.kind, row.code.clone().unwrap_or_default(), row.count)
    };
    rows.iter().map(row).collect()
}

async fn names_of_skills_that_are_not_there_count_together(place: Place) {
    let store = place.open().await;
    let runtime = engine(&store).await;
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    for number in 0..5 {
        let arguments = json!({"skill": format!("invented-{number}")});
        let call = ToolCall::new(number.to_string(), "load_skill", arguments);
        assert!(runtime.dispatch(&session, &agent, call).await.unwrap().is_error);
    }
    let call = ToolCall::new("6", "load_skill", json!({"skill": "greet"}));
    assert!(!runtime.dispatch(&session, &agent, call).await.unwrap().is_error);
    let rows = store.usage.totals().await.unwrap();
    let of =
        |skill: &str| rows.iter().filter(|row| row.skill == skill).cloned().collect::<Vec<_>>();
    assert_eq!(of("greet").iter().map(|row| row.count).sum::<u64>(), 1, "it was loaded");
    assert_eq!(of("").len() + of("greet").len(), rows.len(), "{:?}", shown(&rows));
    // By hand as well.
    let unknown = Use::new(UsageKind::Denial, "invented");
    store.usage.record(vec![unknown]).await.unwrap();
    let rows = store.usage.totals().await.unwrap();
    assert!(rows.iter().any(|row| row.skill.is_empty() && row.kind == UsageKind::Denial));
    assert!(rows.iter().all(|row| row.skill != "invented"));
}

async fn what_is_refused_is_a_denial_whichever_tool_it_was(place: Place) {
    let store = place.open().await;
    let runtime = engine(&store).await;
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    let call = ToolCall::new("1", "unload_skill", json!({"skill": "greet"}));
    let outcome = runtime.dispatch(&session, &agent, call).await.unwrap();
    assert_eq!(outcome.code, "skill_not_loaded");
    let rows = store.usage.totals().await.unwrap();
    let expected = (String::new(), UsageKind::Denial, "skill_not_loaded".to_owned(), 1);
    assert_eq!(shown(&rows), [expected]);
}

async fn only_tools_of_a_skill_count_as_its_tools(place: Place) {
    let store = place.open().await;
    let greet = tool_fn(
        ToolDeclaration::new("greet_all", "For tests.", json!({"type": "object"})),
        |_| async { ToolOutcome::text("hello") },
    );
    let runtime = builder(&store).await.skill_tool("greet", greet).build().unwrap();
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    let call = async |id: &str, tool: &str, arguments| {
        let call = ToolCall::new(id, tool, arguments);
        runtime.dispatch(&session, &agent, call).await.unwrap().code.to_string()
    };
    let counted = async || {
        let rows = store.usage.usage("greet").await.unwrap().rows;
        let of = |kind| rows.iter().filter(|row| row.kind == kind).map(|row| row.count).sum();
        [of(UsageKind::Load), of(UsageKind::Detail), of(UsageKind::ToolCall)] as [u64; 3]
    };
    let skill = json!({"skill": "greet"});
    call("1", "load_skill", skill.clone()).await;
    assert_eq!(call("2", "load_skill", skill.clone()).await, "already_loaded");
    let missing = json!({"skill": "greet", "resource": "nothing"});
    call("3", "load_skill_detail", missing).await;
    call("4", "skill_list_docs", skill).await;
    assert_eq!(counted().await, [1, 0, 0]);
    assert_eq!(call("5", "greet_all", json!({})).await, "ok");
    assert_eq!(counted().await, [1, 0, 1]);
}

async fn as_many_agents_are_counted_apart_as_may_be_and_the_others_together(place: Place) {
    let store = place.open().await;
    register(&store, "demo").await;
    register(&store, "quiet").await;
    let used_by = |skill: &str, number: usize| {
        let mut it = Use::new(UsageKind::Load, skill);
        // One day, also at midnight.
        it.time = "2026-01-01T12:00:00Z".parse().unwrap();
        it.agent = Some(format!("agent-{number:03}"));
        it
    };
    let usage = &store.usage;
    usage.record((0..AGENTS).map(|number| used_by("demo", number)).collect()).await.unwrap();
    assert_eq!(usage.usage("demo").await.unwrap().rows.len(), AGENTS);
    // Two more, and one that was there.
    let more = vec![used_by("demo", AGENTS), used_by("demo", AGENTS + 1), used_by("demo", 0)];
    usage.record(more).await.unwrap();
    let rows = usage.usage("demo").await.unwrap().rows;
    assert_eq!(rows.len(), AGENTS + 1);
    let of = |agent: &str| rows.iter().find(|row| row.agent.as_deref() == Some(agent)).unwrap();
    assert_eq!((of("other").count, of("agent-000").count, of("agent-001").count), (2, 2, 1));
    // Another skill has its own.
    usage.record(vec![used_by("quiet", AGENTS)]).await.unwrap();
    let rows = usage.usage("quiet").await.unwrap().rows;
    assert_eq!(rows[0].agent.as_deref(), Some("agent-100"));
}
