//! What was given is pinned, and is given again when it is gone from the conversation.

mod support;

use prowess_runtime::{Message, PromptRequest, Step, result_of};
use serde_json::json;
use support::{Plan, World, skill};

fn world() -> World {
    Plan::new().skill("a", "First text.").file("a/guide.md", "Guide one.").build()
}

async fn load_within(world: &World, transcript: Vec<Message>) -> prowess_runtime::ToolOutcome {
    let call = world.tool_call("load_skill", json!({"skill": "a"}));
    let step = Step::new(vec![call]).with_transcript(transcript);
    let mut result =
        world.runtime.dispatch_batch(&world.session, &world.agent, step).await.unwrap();
    result.outcomes.remove(0)
}

#[tokio::test]
async fn a_stored_transcript_keeps_stubs_and_is_expanded_for_the_model() {
    let world = world();
    let outcome = world.load("a").await;
    let stored = world.messages().await;
    let result = stored[1].tool_results().next().unwrap();
    assert_eq!(result.content, "loaded: a");
    let expansion = result.expansion.as_ref().unwrap();
    assert_eq!(expansion.skill, "a");
    let prompt = || world.runtime.prompt(&world.session, &world.agent, PromptRequest::new());
    let expanded = prompt().await.unwrap();
    assert_eq!(expanded.messages[1].tool_results().next().unwrap().content, outcome.content);
    assert!(expanded.problems.is_empty());
    assert_eq!(world.messages().await, stored, "the transcript itself stays as it is");
    // Where the content is gone, the stub stays, and that is said.
    world.runtime.content().collect_garbage(&Default::default()).unwrap();
    let lost = prompt().await.unwrap();
    assert_eq!(lost.messages[1].tool_results().next().unwrap().content, "loaded: a");
    let gone = "the text of 'a' that call call-1 gave is not there any more";
    assert!(lost.problems.iter().any(|problem| problem == gone), "{:?}", lost.problems);
}

#[tokio::test]
async fn what_is_gone_from_the_conversation_is_given_again() {
    let world = world();
    world.load("a").await;
    let whole = world.messages().await;
    assert_eq!(load_within(&world, whole).await.code, "already_loaded");
    let cut = vec![Message::user("A summary of what was said.")];
    let outcome = load_within(&world, cut).await;
    assert_eq!(outcome.code, "loaded");
    assert!(outcome.content.starts_with("First text."));
    assert_eq!(world.state().await.loaded("a").unwrap().load_count, 2);
    // Now it is in the later result.
    let stored = world.messages().await;
    let call = world.state().await.loaded("a").unwrap().call.clone().unwrap();
    assert!(result_of(&stored, &call).is_some());
    assert_eq!(load_within(&world, stored).await.code, "already_loaded");
}

#[tokio::test]
async fn a_doc_that_is_gone_from_the_conversation_is_given_again() {
    let world = world();
    world.load("a").await;
    let select = || {
        world.tool_call(
            "skill_select_docs",
            json!({"skill": "a", "docs": ["guide.md"], "mode": "add"}),
        )
    };
    world.step(vec![select()]).await;
    let again = world.step(vec![select()]).await.outcomes.remove(0);
    assert_eq!(again.content, "Docs loaded: guide.md", "it is there");
    let step = Step::new(vec![select()]).with_transcript(vec![Message::user("Summary.")]);
    let result = world.runtime.dispatch_batch(&world.session, &world.agent, step).await.unwrap();
    assert!(result.outcomes[0].content.contains("Guide one."));
}

#[tokio::test]
async fn a_new_version_is_offered_and_never_slipped_in() {
    let world = world();
    world.load("a").await;
    world.write("a/SKILL.md", skill("a", "Does a.", "Second text."));
    world.catalog.refresh().await;
    let outcome = world.load("a").await;
    assert_eq!(outcome.code, "already_loaded");
    assert_eq!(
        outcome.hint.as_deref(),
        Some("A newer version is there: unload_skill, then load_skill, to use it.")
    );
    // Even if the text must be given again, it is the one that was loaded.
    let again = load_within(&world, vec![Message::user("Summary.")]).await;
    assert!(again.content.starts_with("First text."), "{}", again.content);
    // Files of the new version do not mix with the text of the old one.
    let docs = world.call("skill_select_docs", json!({"skill": "a", "docs": ["guide.md"]})).await;
    assert_eq!((docs.is_error, docs.code.as_ref()), (true, "content_changed"));
    let detail = json!({"skill": "a", "resource": "guide.md"});
    assert_eq!(world.call("load_skill_detail", detail).await.code, "content_changed");
    world.call("unload_skill", json!({"skill": "a"})).await;
    assert!(world.load("a").await.content.starts_with("Second text."));
}

#[tokio::test]
async fn a_skill_that_was_edited_before_it_is_loaded_is_loaded_as_it_is() {
    let world = world();
    world.catalog.refresh().await;
    world.write("a/SKILL.md", skill("a", "Does a.", "Second text."));
    let outcome = world.load("a").await;
    assert!(outcome.content.starts_with("Second text."), "{}", outcome.content);
}

#[tokio::test]
async fn a_loaded_skill_outlives_its_folder() {
    let world = world();
    world.load("a").await;
    std::fs::remove_dir_all(world.path("a")).unwrap();
    world.catalog.refresh().await;
    assert_eq!(load_within(&world, world.messages().await).await.code, "already_loaded");
    let again = load_within(&world, vec![]).await;
    assert!(again.content.starts_with("First text."));
    let docs = world.call("load_skill", json!({"skill": "a", "docs": ["guide.md"]})).await;
    assert_eq!((docs.is_error, docs.code.as_ref()), (true, "skill_not_found"));
    assert!(world.state().await.is_loaded("a"));
    assert_eq!(world.call("unload_skill", json!({"skill": "a"})).await.code, "unloaded");
    assert_eq!(world.load("a").await.code, "skill_not_found");
}

#[tokio::test]
async fn arguments_are_put_into_the_text_and_new_ones_give_it_again() {
    let world = Plan::new().skill("deploy", "Deploy to $ARGUMENTS now. Cost: \\$5").build();
    let load = |arguments: serde_json::Value| world.call("load_skill", arguments);
    let first = load(json!({"skill": "deploy", "arguments": "staging"})).await;
    assert_eq!(first.content, "Deploy to staging now. Cost: $5");
    let same = load(json!({"skill": "deploy", "args": "staging"})).await;
    assert_eq!(same.code, "already_loaded");
    let other = load(json!({"skill": "deploy", "args": ["prod", "two words"]})).await;
    assert_eq!(other.content, "Deploy to prod \"two words\" now. Cost: $5");
}

#[tokio::test]
async fn a_text_without_places_for_arguments_is_given_as_it_is() {
    let body = "awk '{print \\$1}' and $HOME and ${x} and $1";
    let world = Plan::new().skill("shell", body).build();
    assert_eq!(world.load("shell").await.content, body);
}

#[tokio::test]
async fn what_is_too_long_to_be_given_is_refused_not_cut() {
    let settings = prowess_runtime::Settings::default().with_max_given_bytes(10);
    let plan = Plan::new().skill("a", "A").file("a/fits.md", "0123456789");
    let world = plan.file("a/long.md", "01234567890").settings(settings).build();
    world.load("a").await;
    let detail = |name: &str| json!({"skill": "a", "resource": name});
    assert_eq!(world.call("load_skill_detail", detail("fits.md")).await.code, "detail");
    let outcome = world.call("load_skill_detail", detail("long.md")).await;
    assert_eq!(
        outcome.content,
        "Error: long.md of skill 'a' is 11 bytes long; at most 10 are given at once."
    );
    let docs = json!({"skill": "a", "include_all_docs": true});
    let outcome = world.call("skill_select_docs", docs).await;
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "too_large"));
    assert!(world.state().await.loaded("a").unwrap().docs.is_empty());
}

#[tokio::test]
async fn arguments_are_bounded_however_often_a_text_asks_for_them() {
    let settings = prowess_runtime::Settings::default().with_max_given_bytes(10);
    let plan = Plan::new().skill("few", "$ARGUMENTS").skill("many", &"$ARGUMENTS ".repeat(100));
    let world = plan.settings(settings).build();
    let load = |skill: &str, arguments: &str| {
        world.call("load_skill", json!({"skill": skill, "arguments": arguments}))
    };
    assert_eq!(load("few", "0123456789").await.content, "0123456789");
    let long = load("few", "01234567890").await;
    assert_eq!(
        long.content,
        "Error: arguments of skill 'few' is 11 bytes long; at most 10 are given at once."
    );
    assert_eq!(world.state().await.loaded("few").unwrap().arguments, "0123456789");
    assert_eq!(load("many", "0123456789").await.code, "loaded", "not longer than the text itself");
    let world = Plan::new().skill("many", &"$0 ".repeat(1_000)).build();
    let typed = "x".repeat(1_000);
    let many = world.call("load_skill", json!({"skill": "many", "arguments": typed})).await;
    assert_eq!((many.is_error, many.code.as_ref()), (true, "too_large"));
    assert_eq!(
        many.content,
        "Error: the text with arguments of skill 'many' is too long; at most 262144 bytes are \
         given at once."
    );
    assert!(world.state().await.loaded.is_empty());
}

#[tokio::test]
async fn a_long_list_of_names_is_counted() {
    let mut plan =
        Plan::new().settings(prowess_runtime::Settings::default().with_max_listed_names(2));
    for name in ["a", "b", "c", "d"] {
        plan = plan.skill(name, "x");
    }
    let outcome = plan.build().load("zzz").await;
    assert_eq!(
        outcome.content,
        "Error: Skill 'zzz' not found. Available skills: a, b (and 2 more)"
    );
}

#[tokio::test]
async fn content_that_no_session_needs_is_collected() {
    let world = world();
    world.load("a").await;
    assert_eq!(world.runtime.collect_garbage().await.unwrap(), 0, "everything is needed");
    world.runtime.sessions().delete(&world.session).await.unwrap();
    let removed = world.runtime.collect_garbage().await.unwrap();
    assert_eq!(removed, 4, "the file, what was given, the listing, and whom it lists");
}

#[tokio::test]
async fn a_skill_with_an_unknown_context_is_not_loaded_inline_by_accident() {
    let text = "---\nname: a\ndescription: A.\ncontext: forkk\n---\nBody\n";
    let world = Plan::new().file("a/SKILL.md", text).build();
    let outcome = world.load("a").await;
    assert_eq!((outcome.is_error, outcome.code.as_ref()), (true, "skill_invalid"));
}
