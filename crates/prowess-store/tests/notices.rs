//! What every store tells that several machines share.

mod support;

use std::sync::Arc;
use std::time::Duration;

use prowess_catalog::{ContentFile, ResourcePath, SkillContents};
use prowess_format::{Options, Skill};
use prowess_runtime::SessionKey;
use prowess_store::{About, Activation, Actor, Expected, Listener, NewVersion, Notice, Store};
use support::place::{Place, on_each_shared_store};
use support::{key, say};

on_each_shared_store! {
    a_commit_is_told_to_others_by_its_key
    a_change_of_a_skill_is_told_to_others
    what_is_refused_is_not_told
    a_store_that_is_dropped_leaves_the_others_listening
}

/// Waits for a notice, and says what came before it.
async fn heard(listener: &mut Listener, expected: &Notice) -> Vec<Notice> {
    let mut before = Vec::new();
    let wait = async {
        loop {
            match listener.next().await {
                notice if notice == *expected => return,
                notice => before.push(notice),
            }
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    assert!(waited.is_ok(), "{expected:?} was not told, but {before:?}");
    before
}

/// Two processes, and what the second one hears.
async fn two(place: &Place) -> (Store, Store, Listener) {
    let (one, two) = (place.open().await, place.open().await);
    let (mut own, mut listener) = (one.notices.listen(), two.notices.listen());
    // A store may begin to listen later than it is opened: something is told until both hear it.
    let notice = session("begin");
    let mut revision = 0;
    for listener in [&mut own, &mut listener] {
        loop {
            say(&*one.sessions, &key("begin"), revision, "x").await.unwrap();
            revision += 1;
            let wait = heard(listener, &notice);
            if tokio::time::timeout(Duration::from_millis(100), wait).await.is_ok() {
                break;
            }
            assert!(revision < 600, "nothing is told");
        }
    }
    (one, two, listener)
}

fn session(name: &str) -> Notice {
    Notice::Session(Arc::new(key(name)))
}

fn new(skill: &str) -> NewVersion {
    let text = format!("---\nname: {skill}\ndescription: For tests.\n---\nText.\n");
    let about = About::of(&Skill::parse_bytes(text.as_bytes(), &Options::new()).skill.unwrap());
    let file = ContentFile::new(ResourcePath::parse("SKILL.md").unwrap(), false, text);
    let contents = Arc::new(SkillContents::of(vec![file]));
    NewVersion::new(skill.parse().unwrap(), contents, about, Actor::local())
}

async fn a_commit_is_told_to_others_by_its_key(place: Place) {
    let (one, _two, mut listener) = two(&place).await;
    let long = "n".repeat(SessionKey::MAX_NAME_BYTES);
    let names =
        ["a", "a/b/c", "it's \"quoted\" \\ 漢字 😀", "skills", &format!("{long}/{long}/{long}")];
    for name in names {
        say(&*one.sessions, &key(name), 0, "x").await.unwrap();
        heard(&mut listener, &session(name)).await;
    }
}

async fn a_change_of_a_skill_is_told_to_others(place: Place) {
    let (one, two, mut listener) = two(&place).await;
    let (versions, actor) = (&one.versions, Actor::local());
    let mut later = new("demo");
    later.activation = Activation::Later;
    for appended in [new("demo"), later] {
        versions.append(appended).await.unwrap();
        heard(&mut listener, &Notice::Skills).await;
    }
    let skill = "demo".parse().unwrap();
    versions.activate(&skill, 2, Expected::Any, &actor).await.unwrap();
    heard(&mut listener, &Notice::Skills).await;
    assert_eq!(two.versions.skill(&skill).await.unwrap().active.number, 2);
    versions.delete(&skill, Expected::Any, &actor).await.unwrap();
    heard(&mut listener, &Notice::Skills).await;
}

async fn what_is_refused_is_not_told(place: Place) {
    let (one, _two, mut listener) = two(&place).await;
    say(&*one.sessions, &key("refused"), 7, "x").await.unwrap_err();
    one.versions.append(new("demo").expecting(Expected::Present)).await.unwrap_err();
    say(&*one.sessions, &key("last"), 0, "x").await.unwrap();
    let before = heard(&mut listener, &session("last")).await;
    assert!(!before.contains(&session("refused")), "{before:?}");
    assert!(!before.contains(&Notice::Skills), "{before:?}");
}

async fn a_store_that_is_dropped_leaves_the_others_listening(place: Place) {
    let (one, two, listener) = two(&place).await;
    let (third, mut own) = (place.open().await, one.notices.listen());
    drop((two, listener));
    say(&*third.sessions, &key("a"), 0, "x").await.unwrap();
    heard(&mut own, &session("a")).await;
}
