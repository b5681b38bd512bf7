//! What the trpc-agent-go document says of `skill_load`, `skill_select_docs` and
//! `skill_list_docs`, behaviour by behaviour, under the names of the default dialect; its words are
//! held at the end, in the dialect `trpc`.
//!
//! Deliberately different, and better: unknown docs are refused instead of remembered, an unknown
//! mode is refused instead of read as `replace`, docs are selected of loaded skills only, and
//! `replace` narrows a selection of all docs.

mod support;

use prowess_runtime::{Dialect, EventKind, PromptRequest, TurnRequest};
use serde_json::json;
use support::{Plan, World};

fn world() -> World {
    Plan::new()
        .skill("demo", "Body of demo.")
        .file("demo/USAGE.md", "How to use it.")
        .file("demo/notes/deep/more.txt", "More.")
        .file("demo/scripts/build.sh", "echo")
        .file("demo/LICENSE.TXT", "Free.")
        .build()
}

async fn select(world: &World, arguments: serde_json::Value) -> prowess_runtime::ToolOutcome {
    let mut arguments = arguments;
    arguments["skill"] = json!("demo");
    world.call("skill_select_docs", arguments).await
}

async fn paths(world: &World) -> Vec<String> {
    let state = world.state().await;
    state.loaded("demo").unwrap().docs.paths().into_iter().map(str::to_owned).collect()
}

// skill_list_docs

#[tokio::test]
async fn list_docs_gives_all_md_and_txt_files_at_any_depth_in_order() {
    let outcome = world().call("skill_list_docs", json!({"skill": "demo"})).await;
    assert_eq!(outcome.content, r#"["LICENSE.TXT","USAGE.md","notes/deep/more.txt"]"#);
    assert_eq!(outcome.data["docs"][1], "USAGE.md");
}

#[tokio::test]
async fn list_docs_of_an_unknown_skill_is_an_error_and_without_one_too() {
    let world = world();
    let unknown = world.call("skill_list_docs", json!({"skill": "nope"})).await;
    assert_eq!(unknown.content, "Error: Skill 'nope' not found. Available skills: demo");
    let none = world.call("skill_list_docs", json!({})).await;
    assert_eq!(none.content, "Error: Invalid arguments for skill_list_docs: skill is required");
}

// load with docs

#[tokio::test]
async fn a_load_takes_docs_along() {
    let world = world();
    let arguments = json!({"skill": "demo", "docs": ["USAGE.md"]});
    let outcome = world.call("load_skill", arguments).await;
    assert!(
        outcome.content.starts_with("Body of demo.\n\n[Doc] USAGE.md\n\nHow to use it.\n\n---")
    );
    assert_eq!(outcome.stub.as_deref(), Some("loaded: demo"));
    assert_eq!(paths(&world).await, ["USAGE.md"]);
}

#[tokio::test]
async fn a_load_takes_all_docs_along() {
    let world = world();
    world.call("load_skill", json!({"skill": "demo", "include_all_docs": true})).await;
    assert!(world.state().await.loaded("demo").unwrap().docs.all);
    assert_eq!(paths(&world).await, ["LICENSE.TXT", "USAGE.md", "notes/deep/more.txt"]);
}

#[tokio::test]
async fn a_doc_that_is_not_there_is_an_error_and_nothing_is_loaded() {
    let world = world();
    let arguments = json!({"skill": "demo", "docs": ["USAGE.md", "nope.md"]});
    let outcome = world.call("load_skill", arguments).await;
    assert_eq!(
        outcome.content,
        "Error: Skill 'demo' has no doc nope.md. Available docs: LICENSE.TXT, USAGE.md, \
         notes/deep/more.txt"
    );
    assert!(!world.state().await.is_loaded("demo"));
}

#[tokio::test]
async fn loading_again_with_docs_gives_only_the_new_ones() {
    let world = world();
    world.call("load_skill", json!({"skill": "demo", "docs": ["USAGE.md"]})).await;
    let arguments = json!({"skill": "demo", "docs": ["USAGE.md", "notes/deep/more.txt"]});
    let outcome = world.call("load_skill", arguments.clone()).await;
    assert_eq!(outcome.content, "Docs of skill 'demo':\n\n[Doc] notes/deep/more.txt\n\nMore.");
    assert_eq!(outcome.stub.as_deref(), Some("docs of demo: notes/deep/more.txt"));
    assert_eq!(paths(&world).await, ["USAGE.md", "notes/deep/more.txt"]);
    let again = world.call("load_skill", arguments).await;
    assert_eq!(again.code, "already_loaded", "all of them are there");
}

// skill_select_docs

#[tokio::test]
async fn select_docs_adds_replaces_and_clears() {
    let world = world();
    world.load("demo").await;
    let added = select(&world, json!({"docs": ["USAGE.md"], "mode": "add"})).await;
    assert_eq!(added.data["selected_docs"], json!(["USAGE.md"]));
    assert_eq!(
        added.content,
        "Docs of skill 'demo':\n\n[Doc] USAGE.md\n\nHow to use it.\n\nDocs loaded: USAGE.md"
    );
    assert_eq!(added.stub.as_deref(), Some("Docs loaded: USAGE.md"));
    let more = select(&world, json!({"docs": ["LICENSE.TXT"], "mode": "ADD"})).await;
    assert_eq!(more.data["selected_docs"], json!(["USAGE.md", "LICENSE.TXT"]));
    assert!(!more.content.contains("How to use it."), "what was given is not given again");
    // The default is to replace.
    select(&world, json!({"docs": ["LICENSE.TXT"]})).await;
    assert_eq!(paths(&world).await, ["LICENSE.TXT"]);
    let cleared = select(&world, json!({"mode": "clear"})).await;
    assert_eq!(cleared.content, "Docs loaded: none");
    assert!(paths(&world).await.is_empty());
    assert_eq!(world.events_of(EventKind::DocsSelected).len(), 4);
}

#[tokio::test]
async fn select_docs_takes_all_and_can_narrow_again() {
    let world = world();
    world.load("demo").await;
    let all = select(&world, json!({"include_all_docs": true})).await;
    assert_eq!(all.data["include_all_docs"], json!(true));
    assert!(world.state().await.loaded("demo").unwrap().docs.all);
    select(&world, json!({"docs": ["USAGE.md"], "mode": "replace"})).await;
    let state = world.state().await;
    assert!(!state.loaded("demo").unwrap().docs.all);
    assert_eq!(paths(&world).await, ["USAGE.md"]);
}

#[tokio::test]
async fn select_docs_refuses_what_it_cannot_do_and_changes_nothing() {
    let world = world();
    let unloaded = select(&world, json!({"docs": ["USAGE.md"]})).await;
    assert_eq!(
        unloaded.content,
        "Skill 'demo' is not loaded. Please load it first with load_skill('demo')."
    );
    assert_eq!((unloaded.is_error, unloaded.code.as_ref()), (true, "skill_not_loaded"));
    world.call("load_skill", json!({"skill": "demo", "docs": ["USAGE.md"]})).await;
    let mode = select(&world, json!({"docs": ["USAGE.md"], "mode": "append"})).await;
    assert!(mode.content.contains("mode 'append' is none of add, replace and clear"));
    let missing = select(&world, json!({"docs": ["../../etc/passwd"]})).await;
    assert_eq!(missing.code, "doc_not_found");
    assert_eq!(paths(&world).await, ["USAGE.md"]);
}

#[tokio::test]
async fn selecting_is_touching() {
    let world = Plan::new().skill("demo", "x").file("demo/a.md", "A").skill("other", "y").build();
    world.load("demo").await;
    world.load("other").await;
    assert_eq!(world.state().await.touch_order(), ["demo", "other"]);
    select(&world, json!({"docs": ["a.md"]})).await;
    assert_eq!(world.state().await.touch_order(), ["other", "demo"]);
}

// The words of the dialect

#[tokio::test]
async fn in_its_dialect_results_are_stubs_and_text_stands_in_the_system_prompt() {
    let world = Plan::new()
        .dialect(Dialect::named("trpc").unwrap())
        .skill("demo", "Body of demo.")
        .file("demo/USAGE.md", "How to use it.")
        .build();
    let begin = || world.runtime.begin_turn(&world.session, &world.agent, TurnRequest::new());
    let system = async || {
        let request = PromptRequest::new();
        world.runtime.prompt(&world.session, &world.agent, request).await.unwrap().system
    };
    begin().await.unwrap();
    let load = world.call("skill_load", json!({"skill": "demo"})).await;
    assert_eq!(load.content, "loaded: demo");
    assert!(system().await.ends_with("[Loaded] demo\n\nBody of demo.\nDocs loaded: none"));
    let list = world.call("skill_list_docs", json!({"skill": "demo"})).await;
    assert_eq!(list.content, r#"["USAGE.md"]"#);
    let arguments = json!({"skill": "demo", "docs": ["USAGE.md"], "mode": "add"});
    let select = world.call("skill_select_docs", arguments).await;
    assert_eq!(
        select.content,
        r#"{"skill":"demo","selected_docs":["USAGE.md"],"include_all_docs":false,"mode":"add"}"#
    );
    let expected = "Body of demo.\nDocs loaded: USAGE.md\n\n[Doc] USAGE.md\n\nHow to use it.";
    assert!(system().await.ends_with(expected));
    // Safe to call again; the next turn begins without it.
    let again = world.call("skill_load", json!({"skill": "demo"})).await;
    assert_eq!(again.content, "loaded: demo");
    begin().await.unwrap();
    assert!(!system().await.contains("[Loaded] demo"));
    for (arguments, text) in
        [(json!({}), "skill is required"), (json!({"skill": "x"}), "unknown skill: x")]
    {
        assert_eq!(world.call("skill_load", arguments).await.content, text);
    }
}
