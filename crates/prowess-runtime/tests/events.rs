//! One event per step, at the level that the seed gives it.

mod support;

use prowess_runtime::{EventKind, EventLevel, Settings};
use serde_json::json;
use support::Plan;

/// The rows of the document's table that have happened by now: kind, level, message.
#[tokio::test]
async fn every_row_has_its_level_and_its_message() {
    let world = Plan::new()
        .skill("web-research", "x")
        .file("web-research/a.md", "1")
        .file("web-research/b.md", "2")
        .file("web-research/c.md", "3")
        .skill("deploy", "x")
        .skill("third", "x")
        .settings(Settings::default().with_max_loaded_skills(1))
        .build();
    world.catalog.refresh().await;
    world.load("web-research").await;
    world.load("third").await;
    world.call("unload_skill", json!({"skill": "web-research"})).await;
    world.remove("deploy/SKILL.md");
    world.load("deploy").await;
    let path = world.path("deploy/SKILL.md").display().to_string();
    let events = world.events();
    let expect = [
        (
            EventKind::SkillsDiscovered,
            EventLevel::Info,
            "Discovered 3 skills from 1 source".to_owned(),
        ),
        (
            EventKind::SkillLoaded,
            EventLevel::Info,
            "Skill 'web-research' loaded (3 resources discovered)".to_owned(),
        ),
        (
            EventKind::LoadLimitReached,
            EventLevel::Warning,
            "Skill loading limit reached (1/1)".to_owned(),
        ),
        (EventKind::SkillUnloaded, EventLevel::Info, "Skill 'web-research' unloaded".to_owned()),
        (
            EventKind::SkillUnreadable,
            EventLevel::Error,
            format!("Failed to read SKILL.md at {path}"),
        ),
    ];
    assert_eq!(events.len(), expect.len(), "{events:#?}");
    for (event, (kind, level, message)) in events.iter().zip(expect) {
        assert_eq!((event.kind, event.level), (kind, level));
        assert!(event.message.starts_with(&message), "{}", event.message);
    }
    // The store has the same ones.
    let stored = world.runtime.sessions().events(&world.session, 0, 100).await.unwrap();
    assert_eq!(stored, events);
    let loaded = &events[1];
    assert_eq!(loaded.code.as_deref(), Some("loaded"));
    assert_eq!(loaded.tool.as_deref(), Some("load_skill"));
    assert!(loaded.call_id.is_some() && loaded.digest.is_some() && loaded.elapsed_us.is_some());
}

#[tokio::test]
async fn links_out_of_the_folder_are_reported() {
    let world = Plan::new().skill("a", "x").file("secret.md", "Secret.").build();
    for name in ["one.md", "two.md"] {
        std::os::unix::fs::symlink(world.path("secret.md"), world.path(&format!("a/{name}")))
            .unwrap();
    }
    world.load("a").await;
    let events = world.events_of(EventKind::ResourcesUnlisted);
    assert_eq!(events.len(), 1);
    assert_eq!(
        events[0].message,
        "'one.md' of skill 'a' is not listed: it leads out of the skill's folder (and 1 more)"
    );
    assert_eq!(events[0].level, EventLevel::Warning);
}
