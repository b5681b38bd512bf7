//! What a model is sent: placement × load mode, exactly.

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use prowess_catalog::{ContentStore, MemoryContent};
use prowess_runtime::{
    LoadMode, LoadRequest, Message, Placement, Prompt, PromptRequest, Settings, TurnRequest,
    WhenFull,
};
use serde_json::json;
use support::{Plan, World, skill};

fn world(placement: Placement, mode: LoadMode) -> World {
    Plan::new()
        .skill("a", "Text of a.")
        .file("a/guide.md", "Guide of a.")
        .skill("b", "Text of b.")
        .settings(Settings::default().with_placement(placement).with_load_mode(mode))
        .build()
}

async fn prompt(world: &World) -> Prompt {
    world.runtime.prompt(&world.session, &world.agent, PromptRequest::new()).await.unwrap()
}

async fn request(world: &World) -> Prompt {
    world.runtime.request(&world.session, &world.agent, PromptRequest::new()).await.unwrap()
}

async fn begin(world: &World) {
    let request = TurnRequest::new().with_message(Message::user("Next."));
    world.runtime.begin_turn(&world.session, &world.agent, request).await.unwrap();
}

/// The contents of all results.
fn results(prompt: &Prompt) -> Vec<&str> {
    prompt
        .messages
        .iter()
        .flat_map(Message::tool_results)
        .map(|result| result.content.as_str())
        .collect()
}

/// Whether each request begins with the one before it, byte for byte.
fn extends(earlier: &Prompt, later: &Prompt) -> bool {
    let bytes = |prompt: &Prompt| -> Vec<String> {
        prompt.messages.iter().map(|it| serde_json::to_string(it).unwrap()).collect()
    };
    earlier.system == later.system
        && earlier.tools == later.tools
        && bytes(later).starts_with(&bytes(earlier))
}

#[tokio::test]
async fn tool_result_session_a_body_stays_where_it_was_given() {
    let world = world(Placement::ToolResult, LoadMode::Session);
    begin(&world).await;
    world.load("a").await;
    let first = prompt(&world).await;
    assert!(results(&first)[0].starts_with("Text of a."));
    let select = json!({"skill": "a", "docs": ["guide.md"], "mode": "add"});
    world.call("skill_select_docs", select).await;
    let second = prompt(&world).await;
    assert!(results(&second)[1].contains("Guide of a."), "only the new doc, in its own result");
    assert!(!results(&second)[0].contains("Guide of a."));
    begin(&world).await;
    let third = prompt(&world).await;
    assert!(extends(&first, &second) && extends(&second, &third));
}

#[tokio::test]
async fn tool_result_session_an_unloaded_body_leaves_with_the_next_turn() {
    let world = world(Placement::ToolResult, LoadMode::Session);
    begin(&world).await;
    world.load("a").await;
    world.load("b").await;
    let before = prompt(&world).await;
    world.call("unload_skill", json!({"skill": "a"})).await;
    let after = prompt(&world).await;
    assert!(extends(&before, &after), "in this turn it stays");
    begin(&world).await;
    let next = prompt(&world).await;
    assert_eq!(results(&next)[0], "loaded: a");
    assert!(results(&next)[1].starts_with("Text of b."));
    // Loaded again, it stands in the later result and not in the earlier one.
    world.load("a").await;
    begin(&world).await;
    let again = prompt(&world).await;
    assert_eq!(results(&again)[0], "loaded: a");
    assert_eq!(results(&again).iter().filter(|text| text.starts_with("Text of a.")).count(), 1);
}

#[tokio::test]
async fn tool_result_turn_earlier_turns_keep_their_stubs() {
    let world = world(Placement::ToolResult, LoadMode::Turn);
    begin(&world).await;
    world.load("a").await;
    let within = prompt(&world).await;
    assert!(results(&within)[0].starts_with("Text of a."));
    begin(&world).await;
    assert_eq!(results(&prompt(&world).await), ["loaded: a"]);
    assert!(!world.state().await.is_loaded("a"));
}

#[tokio::test]
async fn tool_result_once_is_in_the_next_request_only() {
    let world = world(Placement::ToolResult, LoadMode::Once);
    begin(&world).await;
    world.load("a").await;
    // Looking is not requesting.
    assert!(results(&prompt(&world).await)[0].starts_with("Text of a."));
    assert!(results(&request(&world).await)[0].starts_with("Text of a."));
    assert_eq!(results(&request(&world).await), ["loaded: a"]);
    assert!(!world.state().await.is_loaded("a"));
}

#[tokio::test]
async fn the_first_request_freezes_the_listing() {
    let world = world(Placement::ToolResult, LoadMode::Session);
    let first = request(&world).await;
    world.write("late/SKILL.md", skill("late", "Comes late.", "x"));
    world.catalog.refresh().await;
    world.load("a").await;
    let second = request(&world).await;
    assert!(extends(&first, &second), "{}", second.system);
    let results = second.messages.iter().flat_map(Message::tool_results);
    assert!(results.into_iter().all(|result| result.expansion.is_none()), "as it is sent");
}

#[tokio::test]
async fn system_session_blocks_are_sorted_and_byte_stable() {
    let world = world(Placement::System, LoadMode::Session);
    begin(&world).await;
    world.load("b").await;
    world.call("load_skill", json!({"skill": "a", "docs": ["guide.md"]})).await;
    let one = prompt(&world).await;
    let blocks = "[Loaded] a\n\nText of a.\nDocs loaded: guide.md\n\n[Doc] guide.md\n\nGuide of a.\n\n[Loaded] b\n\nText of b.\nDocs loaded: none";
    assert!(one.system.ends_with(blocks), "{}", one.system);
    assert_eq!(results(&one), ["loaded: b", "loaded: a"]);
    assert_eq!(prompt(&world).await, one);
    begin(&world).await;
    assert_eq!(prompt(&world).await.system, one.system);
    world.call("unload_skill", json!({"skill": "a"})).await;
    assert!(!prompt(&world).await.system.contains("Text of a."), "at once");
}

#[tokio::test]
async fn system_declared_loads_stand_in_the_system_prompt_alone() {
    let world = world(Placement::System, LoadMode::Session);
    let request = TurnRequest::new().with_load(LoadRequest::new("a")).with_pinned("b");
    let turn = world.runtime.begin_turn(&world.session, &world.agent, request).await.unwrap();
    assert!(turn.messages.is_empty());
    let system = prompt(&world).await.system;
    assert!(system.contains("Text of a.") && system.contains("Text of b."));
}

/// Loads that no call has made come and go as those of calls do.
#[tokio::test]
async fn declared_and_pinned_text_leaves_as_text_that_was_loaded_does() {
    let texts = |prompt: &Prompt| -> String {
        prompt.messages.iter().map(|message| message.text() + "\n").collect()
    };
    for mode in [LoadMode::Session, LoadMode::Turn, LoadMode::Once] {
        let world = world(Placement::ToolResult, mode);
        let declare = TurnRequest::new().with_load(LoadRequest::new("a")).with_pinned("b");
        world.runtime.begin_turn(&world.session, &world.agent, declare).await.unwrap();
        let first = request(&world).await;
        assert!(texts(&first).contains("Text of a.") && texts(&first).contains("Text of b."));
        let second = request(&world).await;
        assert_eq!(texts(&second).contains("Text of a."), mode != LoadMode::Once, "{mode:?}");
        if mode == LoadMode::Session {
            world.call("unload_skill", json!({"skill": "a"})).await;
            assert!(extends(&second, &request(&world).await), "in this turn it stays");
        }
        begin(&world).await;
        let next = texts(&request(&world).await);
        assert!(!next.contains("Text of a.") && next.contains("loaded: a\n"), "{mode:?}: {next}");
        assert_eq!(next.contains("Text of b."), mode == LoadMode::Session, "{mode:?}: {next}");
    }
}

#[tokio::test]
async fn system_turn_is_cleared_when_the_next_turn_begins() {
    let world = world(Placement::System, LoadMode::Turn);
    begin(&world).await;
    world.load("a").await;
    assert!(prompt(&world).await.system.contains("Text of a."));
    begin(&world).await;
    assert!(!prompt(&world).await.system.contains("Text of a."));
}

#[tokio::test]
async fn system_once_is_in_the_next_request_only() {
    let world = world(Placement::System, LoadMode::Once);
    begin(&world).await;
    world.load("a").await;
    assert!(request(&world).await.system.contains("Text of a."));
    assert!(!request(&world).await.system.contains("Text of a."));
}

#[tokio::test]
async fn the_stored_transcript_is_never_rewritten() {
    for placement in [Placement::ToolResult, Placement::System] {
        for mode in [LoadMode::Session, LoadMode::Turn, LoadMode::Once] {
            let world = world(placement, mode);
            begin(&world).await;
            world.load("a").await;
            let before = world.messages().await;
            request(&world).await;
            begin(&world).await;
            request(&world).await;
            let after = world.messages().await;
            assert_eq!(after[..before.len()], before, "{placement:?} {mode:?}");
        }
    }
}

#[tokio::test]
async fn what_is_gone_from_the_conversation_comes_back_in_one_message() {
    let world = world(Placement::ToolResult, LoadMode::Session);
    begin(&world).await;
    world.load("a").await;
    world.load("b").await;
    let cut = vec![Message::user("A summary.")];
    let ask = PromptRequest::new().with_transcript(cut.clone());
    let prompt = world.runtime.prompt(&world.session, &world.agent, ask).await.unwrap();
    assert_eq!(
        prompt.messages[0].text(),
        "Loaded skill context:\n\n[Loaded] b\n\nText of b.\nDocs loaded: none\n\n[Loaded] \
         a\n\nText of a.\nDocs loaded: none\n",
        "most recent first"
    );
    assert_eq!(prompt.messages[1..], cut);
    // Its folder may be gone.
    std::fs::remove_dir_all(world.path("a")).unwrap();
    world.catalog.refresh().await;
    let ask = PromptRequest::new().with_transcript(cut);
    let again = world.runtime.prompt(&world.session, &world.agent, ask).await.unwrap();
    assert_eq!(again.messages, prompt.messages);
}

#[tokio::test]
async fn what_comes_back_is_bounded_and_the_rest_is_named() {
    let settings = Settings::default().with_max_context_tokens(60);
    let world = Plan::new()
        .skill("old", &"old words ".repeat(15))
        .skill("new", &"new words ".repeat(15))
        .settings(settings)
        .build();
    world.load("old").await;
    world.load("new").await;
    let ask = PromptRequest::new().with_transcript(vec![]);
    let prompt = world.runtime.prompt(&world.session, &world.agent, ask).await.unwrap();
    let text = prompt.messages[0].text();
    assert!(text.contains("new words") && !text.contains("old words"), "{text}");
    assert!(text.contains("too long to be given again here: old."), "{text}");
    assert_eq!(prompt.problems.len(), 1, "the caller is told too: {:?}", prompt.problems);
}

/// 50 calls with loads, docs, unloads and a change of the catalog.
#[tokio::test]
async fn every_request_of_a_long_session_extends_the_one_before_it() {
    let mut plan = Plan::new();
    for at in 0..8 {
        plan = plan
            .skill(&format!("skill-{at}"), &format!("Text {at}."))
            .file(&format!("skill-{at}/one.md"), "One.")
            .file(&format!("skill-{at}/two.md"), "Two.");
    }
    let world = plan.build();
    begin(&world).await;
    let mut last = prompt(&world).await;
    for at in 0..50 {
        let name = format!("skill-{}", (at / 5) % 8);
        match at % 5 {
            0 => drop(world.load(&name).await),
            1 => drop(
                world
                    .call(
                        "skill_select_docs",
                        json!({"skill": name, "docs": ["one.md"], "mode": "add"}),
                    )
                    .await,
            ),
            2 => drop(
                world.call("load_skill_detail", json!({"skill": name, "resource": "two.md"})).await,
            ),
            3 => drop(world.call("list_loaded_skills", json!({})).await),
            _ if at % 2 == 0 => drop(world.call("unload_skill", json!({"skill": name})).await),
            _ => drop(world.load("unknown").await),
        }
        if at == 25 {
            world.write("late/SKILL.md", skill("late", "Comes late.", "x"));
            world.catalog.refresh().await;
        }
        let next = prompt(&world).await;
        assert!(extends(&last, &next), "after call {at}");
        assert!(next.messages.len() > last.messages.len());
        last = next;
    }
    begin(&world).await;
    let note = world.messages().await;
    assert!(note.iter().any(|message| message.text().contains("- late: Comes late.")));
}

/// What earlier turns have loaded: unloading it, evicting it, reading it with other arguments.
#[tokio::test]
async fn a_request_extends_the_one_before_it_whatever_goes_in_a_later_turn() {
    let settings = Settings::default().with_max_loaded_skills(2).with_when_full(WhenFull::Evict);
    let world = Plan::new()
        .skill("a", "Text of a for $ARGUMENTS.")
        .file("a/guide.md", "Guide of a.")
        .skill("b", "Text of b.")
        .skill("c", "Text of c.")
        .settings(settings)
        .build();
    begin(&world).await;
    world.call("load_skill", json!({"skill": "a", "arguments": "one"})).await;
    world.call("skill_select_docs", json!({"skill": "a", "docs": ["guide.md"]})).await;
    world.load("b").await;
    begin(&world).await;
    let mut last = prompt(&world).await;
    for (tool, arguments) in [
        ("load_skill", json!({"skill": "a", "arguments": "two"})),
        ("load_skill", json!({"skill": "c"})),
        ("unload_skill", json!({"skill": "a"})),
        ("load_skill", json!({"skill": "a", "arguments": "three"})),
    ] {
        let outcome = world.call(tool, arguments.clone()).await;
        assert!(!outcome.is_error, "{}", outcome.content);
        let next = prompt(&world).await;
        assert!(extends(&last, &next), "{tool} {arguments}");
        last = next;
    }
    begin(&world).await;
    let next = prompt(&world).await;
    let given: Vec<&str> = results(&next);
    let has = |text: &str| given.iter().any(|result| result.contains(text));
    assert!(has("for three.") && has("Text of c."), "{given:?}");
    assert!(!has("for one.") && !has("Guide of a.") && !has("Text of b."), "{given:?}");
}

#[tokio::test]
async fn docs_stay_where_they_were_given_when_a_skill_is_read_with_other_arguments() {
    let world = Plan::new().skill("a", "For $ARGUMENTS.").file("a/guide.md", "Guide of a.").build();
    begin(&world).await;
    world.call("load_skill", json!({"skill": "a", "arguments": "one"})).await;
    world.call("skill_select_docs", json!({"skill": "a", "docs": ["guide.md"]})).await;
    begin(&world).await;
    world.call("load_skill", json!({"skill": "a", "arguments": "two"})).await;
    begin(&world).await;
    assert!(results(&prompt(&world).await)[1].contains("Guide of a."), "it is still selected");
}

#[tokio::test]
async fn what_comes_back_is_all_that_is_gone_and_nothing_else() {
    let world = world(Placement::ToolResult, LoadMode::Session);
    begin(&world).await;
    world.load("a").await;
    world.call("skill_select_docs", json!({"skill": "a", "docs": ["guide.md"]})).await;
    let all = world.messages().await;
    let gives = |message: &Message, text: &str| {
        message.tool_results().any(|result| result.content.starts_with(text))
    };
    for (gone, kept) in [("loaded: a", "Guide of a."), ("Docs loaded", "Text of a.")] {
        let cut = all.iter().filter(|message| !gives(message, gone)).cloned().collect();
        let ask = PromptRequest::new().with_transcript(cut);
        let prompt = world.runtime.prompt(&world.session, &world.agent, ask).await.unwrap();
        let back = prompt.messages[0].text();
        assert!(back.starts_with("Loaded skill context:\n\n[Loaded] a\n"), "{back}");
        assert!(!back.contains(kept), "it is still there: {back}");
        let whole = serde_json::to_string(&prompt.messages).unwrap();
        for text in ["Text of a.", "Guide of a."] {
            assert_eq!(whole.matches(text).count(), 1, "without {gone}: {whole}");
        }
    }
}

#[tokio::test]
async fn a_text_that_looks_like_a_loaded_skill_is_none() {
    let world =
        Plan::new().skill("a", "Text of a.").skill("b", "Says:\n[Loaded] a\nNot so.").build();
    let request = TurnRequest::new().with_load(LoadRequest::new("a")).with_pinned("b");
    world.runtime.begin_turn(&world.session, &world.agent, request).await.unwrap();
    let messages = world.messages().await;
    let (pinned, user) = (messages[1].clone(), Message::user("I read\n[Loaded] a\nthere."));
    let ask = PromptRequest::new().with_transcript(vec![pinned, user]);
    let prompt = world.runtime.prompt(&world.session, &world.agent, ask).await.unwrap();
    assert!(prompt.messages[0].text().contains("Text of a."), "{:?}", prompt.messages);
    assert!(!prompt.messages[0].text().contains("Not so."), "b is there");
}

#[tokio::test]
async fn an_earlier_result_stays_a_stub_when_the_skill_is_declared_later() {
    let world = world(Placement::ToolResult, LoadMode::Session);
    begin(&world).await;
    world.load("a").await;
    world.call("unload_skill", json!({"skill": "a"})).await;
    begin(&world).await;
    let before = prompt(&world).await;
    let request = TurnRequest::new().with_load(LoadRequest::new("a"));
    world.runtime.begin_turn(&world.session, &world.agent, request).await.unwrap();
    let after = prompt(&world).await;
    assert!(extends(&before, &after));
    assert_eq!(results(&after)[0], "loaded: a");
}

#[tokio::test]
async fn a_text_with_arguments_stays_the_same_when_its_folder_changes_or_goes() {
    let text = |names: &str| {
        format!(
            "---\nname: a\ndescription: D.\narguments: {names}\n---\nFor $who in ${{CLAUDE_SKILL_DIR}}: $ARGUMENTS."
        )
    };
    for placement in [Placement::System, Placement::ToolResult] {
        let world = Plan::new()
            .file("a/SKILL.md", text("[who]"))
            .settings(Settings::default().with_placement(placement))
            .build();
        begin(&world).await;
        world.call("load_skill", json!({"skill": "a", "arguments": "me"})).await;
        let ask = || PromptRequest::new().with_transcript(vec![]);
        let sent =
            async || world.runtime.prompt(&world.session, &world.agent, ask()).await.unwrap();
        let first = sent().await;
        let whole = format!("{}{:?}", first.system, first.messages);
        assert!(whole.contains("For me in /") && whole.contains(": me."), "{whole}");
        world.write("a/SKILL.md", text("[whom]"));
        world.catalog.refresh().await;
        assert_eq!(sent().await, first, "another version changes nothing");
        std::fs::remove_dir_all(world.path("a")).unwrap();
        world.catalog.refresh().await;
        assert_eq!(sent().await, first);
        world.runtime.collect_garbage().await.unwrap();
        assert_eq!(sent().await, first, "it is still referred to");
    }
}

#[tokio::test]
async fn a_lost_listing_is_written_anew_and_that_is_said() {
    let content = Arc::new(MemoryContent::default());
    let store = Arc::clone(&content);
    let world = Plan::new().skill("a", "x").change(|it| it.content(store)).build();
    begin(&world).await;
    let first = prompt(&world).await;
    content.collect_garbage(&Default::default()).unwrap();
    let again = prompt(&world).await;
    assert_eq!(again.system, first.system);
    assert_eq!(again.problems.len(), 1);
}

#[derive(Clone, Debug)]
enum Act {
    Load(usize, Option<u8>, bool),
    Docs(usize, &'static str),
    Detail(usize),
    Unload(usize),
    Begin(Option<usize>, Option<usize>),
}

fn act() -> impl Strategy<Value = Act> {
    let skill = 0..3usize;
    prop_oneof![
        3 => (skill.clone(), prop::option::of(0..3u8), any::<bool>())
            .prop_map(|(skill, arguments, docs)| Act::Load(skill, arguments, docs)),
        2 => (skill.clone(), prop::sample::select(vec!["add", "replace", "clear"]))
            .prop_map(|(skill, mode)| Act::Docs(skill, mode)),
        1 => skill.clone().prop_map(Act::Detail),
        2 => skill.clone().prop_map(Act::Unload),
        2 => (prop::option::of(skill.clone()), prop::option::of(skill))
            .prop_map(|(declared, pinned)| Act::Begin(declared, pinned)),
    ]
}

/// Whatever is done: within a turn each request extends the one before it, and what is loaded is
/// in it.
async fn check_acts(acts: &[Act]) {
    let names = ["a", "b", "c"];
    let mut plan = Plan::new()
        .settings(Settings::default().with_max_loaded_skills(2).with_when_full(WhenFull::Evict));
    for name in names {
        plan = plan
            .skill(name, &format!("Text of {name} for <$ARGUMENTS>."))
            .file(&format!("{name}/one.md"), format!("One of {name}."))
            .file(&format!("{name}/two.md"), format!("Two of {name}."));
    }
    let world = plan.build();
    begin(&world).await;
    let mut last = prompt(&world).await;
    for (at, act) in acts.iter().enumerate() {
        match act {
            Act::Load(skill, arguments, docs) => {
                let mut call = json!({"skill": names[*skill]});
                if let Some(arguments) = arguments {
                    call["arguments"] = json!(arguments.to_string());
                }
                if *docs {
                    call["docs"] = json!(["one.md"]);
                }
                world.call("load_skill", call).await;
            }
            Act::Docs(skill, mode) => {
                let call = json!({"skill": names[*skill], "docs": ["two.md"], "mode": mode});
                world.call("skill_select_docs", call).await;
            }
            Act::Detail(skill) => {
                let call = json!({"skill": names[*skill], "resource": "one.md"});
                world.call("load_skill_detail", call).await;
            }
            Act::Unload(skill) => {
                world.call("unload_skill", json!({"skill": names[*skill]})).await;
            }
            Act::Begin(declared, pinned) => {
                let mut request = TurnRequest::new();
                request.loads.extend(declared.map(|skill| LoadRequest::new(names[skill])));
                request.pinned.extend(pinned.map(|skill| names[skill].to_owned()));
                // Too many may be pinned.
                drop(world.runtime.begin_turn(&world.session, &world.agent, request).await);
            }
        }
        let next = prompt(&world).await;
        let is_turn = matches!(act, Act::Begin(..));
        assert!(is_turn || extends(&last, &next), "{at}: {acts:?}");
        let text: String = next
            .messages
            .iter()
            .map(|it| {
                it.text() + &it.tool_results().map(|it| it.content.as_str()).collect::<String>()
            })
            .collect();
        for loaded in &world.state().await.loaded {
            let body = format!("Text of {} for <{}>.", loaded.name, loaded.arguments);
            assert!(text.contains(&body), "{at}: {body} of {acts:?}: {text}");
            for path in loaded.docs.paths() {
                let doc = if path == "one.md" { "One" } else { "Two" };
                let doc = format!("{doc} of {}.", loaded.name);
                assert!(text.contains(&doc), "{at}: {doc} of {acts:?}: {text}");
            }
        }
        last = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn within_a_turn_requests_extend_each_other_and_hold_what_is_loaded(
        acts in prop::collection::vec(act(), 1..20),
    ) {
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        tokio.block_on(check_acts(&acts));
    }
}
