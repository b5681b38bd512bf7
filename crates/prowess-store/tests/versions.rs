//! What a registry of versions promises.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use prowess_catalog::{
    Catalog, ContentFile, LookupError, ResourcePath, ResourceScope, SkillContents,
};
use prowess_format::{Level, Options, Skill};
use prowess_runtime::{AgentName, Runtime, SessionKey, ToolCall};
use prowess_store::{
    About, Activation, Actor, Expected, NewVersion, Origin, Registry, SameContent, SkillId,
    SkillQuery, SkillStatus, UsageKind, Use, VersionError, VersionSource,
};
use serde_json::json;
use support::place::{Place, on_each_durable_store};

on_each_durable_store! {
    versions_are_numbered_kept_and_used
    what_is_not_as_expected_changes_nothing
    a_version_may_wait_and_the_same_content_may_count_for_nothing
    a_skill_of_which_no_version_was_activated_is_used_by_nobody
    what_waits_is_gone_on_with_until_somebody_decides
    several_versions_are_made_all_or_none
    what_is_deleted_is_hidden_and_its_history_stays
    what_was_shipped_can_be_changed_and_reset_and_is_never_lost
    of_writers_at_once_one_wins_and_the_others_are_told
    a_registry_takes_over_what_others_change
    a_session_stays_with_its_version_and_is_told_of_another
    nothing_is_lost_or_counted_twice
    who_follows_the_changes_misses_none_of_writers_at_once
    unusual_texts_about_a_version_come_back
    a_text_that_is_lost_hurts_no_other_skill
    a_registry_knows_what_waits
}

fn id(text: &str) -> SkillId {
    text.parse().unwrap()
}

fn contents(id: &str, body: &str, files: &[(&str, &str)]) -> Arc<SkillContents> {
    let text = format!(
        "---\nname: {id}\ndescription: Says {body}, for tests.\ncategory: testing\n---\n{body}\n"
    );
    let all = [("SKILL.md", text.as_str())].into_iter().chain(files.iter().copied());
    let file = |(path, text): (&str, &str)| {
        ContentFile::new(ResourcePath::parse(path).unwrap(), path.ends_with(".sh"), text)
    };
    SkillContents::of(all.map(file).collect()).into()
}

fn about(contents: &SkillContents) -> About {
    let text = &contents.file("SKILL.md").unwrap().bytes;
    About::of(&Skill::parse_bytes(text, &Options::new()).skill.unwrap())
}

fn new(skill: &str, body: &str) -> NewVersion {
    with_files(skill, body, &[])
}

fn with_files(skill: &str, body: &str, files: &[(&str, &str)]) -> NewVersion {
    let contents = contents(skill, body, files);
    let about = about(&contents);
    NewVersion::new(id(skill), contents, about, Actor::local())
}

fn shipped(skill: &str, body: &str) -> NewVersion {
    let mut new = new(skill, body);
    (new.origin, new.actor) = (Origin::BuiltIn, Actor::built_in());
    new
}

async fn versions_are_numbered_kept_and_used(place: Place) {
    let store = place.open().await.versions;
    let first = store.append(new("demo", "one").expecting(Expected::Absent)).await.unwrap();
    assert!(first.is_new_skill && first.is_new_version);
    assert_eq!((first.version.number, first.revision), (1, 1));
    assert_eq!(first.skill.unwrap().active, first.version);
    let second = with_files("demo", "two", &[("references/a.md", "A"), ("scripts/run.sh", "ls")]);
    let second = store.append(second.because(Some("more".into()))).await.unwrap();
    assert_eq!((second.version.number, second.revision), (2, 2));
    assert_eq!(second.version.change_summary.as_deref(), Some("more"));
    let store = place.open().await.versions;
    let listed = store.versions(&id("demo"), 0, 10).await.unwrap();
    assert_eq!(listed.total, 2);
    assert_eq!(listed.items, [second.version.clone(), first.version.clone()]);
    let older = store.versions(&id("demo"), 1, 10).await.unwrap().items;
    assert_eq!(older, std::slice::from_ref(&first.version));
    let files = store.contents(&second.version).await.unwrap();
    assert_eq!(files.file("references/a.md").unwrap().bytes, b"A");
    assert!(files.file("scripts/run.sh").unwrap().executable);
    assert_eq!(files.tree_digest, second.version.tree_digest);
    // Back to the first one: a change of the skill, and of no version.
    let actor = Actor("key:ann".into());
    let skill = store.activate(&id("demo"), 1, Expected::Revision(2), &actor).await.unwrap();
    assert_eq!((skill.active.number, skill.revision, skill.version_count), (1, 3, 2));
    let log = store.audit(None, 10).await.unwrap();
    let log: Vec<_> = log.iter().map(|it| (it.action.as_str(), it.actor.to_string())).collect();
    let expected =
        [("skill.activate", "key:ann"), ("skill.update", "local"), ("skill.create", "local")];
    assert_eq!(log, expected.map(|(action, actor)| (action, actor.to_owned())));
}

async fn a_text_that_is_lost_hurts_no_other_skill(place: Place) {
    let store = place.open().await.versions;
    for name in ["aa", "bb", "cc"] {
        store.append(new(name, name)).await.unwrap();
    }
    let lost = store.skill(&id("bb")).await.unwrap().active;
    place.lose(&lost.digest).await;
    let cause =
        format!("what is stored of 'bb' cannot be read: the file {} is missing", lost.digest.hex());
    assert_eq!(store.contents(&lost).await.unwrap_err().to_string(), cause);
    assert_eq!(store.file(&id("bb"), &lost.digest).await.unwrap_err().to_string(), cause);
    let registry = Arc::new(Registry::new(Arc::clone(&store)));
    let source = VersionSource::new("registry", Arc::clone(&registry));
    let catalog = Catalog::builder().source(source).build();
    let names = async || {
        let snapshot = catalog.refresh().await;
        snapshot.skills().iter().map(|skill| skill.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["aa", "cc"]);
    let snapshot = catalog.refresh().await;
    let errors = snapshot.diagnostics().iter().filter(|it| it.level == Level::Error);
    let errors: Vec<&str> = errors.map(|it| it.message.as_str()).collect();
    assert_eq!(errors, [format!("Cannot read registry:bb/SKILL.md: {cause}")]);
    assert_eq!(registry.broken(), [("bb".to_owned(), cause)]);
    // What others change is seen, and whoever brings the text again has mended it.
    store.append(new("dd", "dd")).await.unwrap();
    assert_eq!(names().await, ["aa", "cc", "dd"]);
    assert_eq!(registry.broken().len(), 1);
    store.append(new("bb", "bb")).await.unwrap();
    assert_eq!(names().await, ["aa", "bb", "cc", "dd"]);
    assert_eq!(registry.broken(), []);
}

async fn what_is_not_as_expected_changes_nothing(place: Place) {
    let store = place.open().await.versions;
    store.append(new("demo", "one")).await.unwrap();
    let stale = |expected| VersionError::Stale { skill: id("demo"), expected, actual: 1 };
    let table = [
        (Expected::Absent, VersionError::Exists(id("demo"))),
        (Expected::Revision(0), stale(0)),
        (Expected::Revision(2), stale(2)),
    ];
    for (expected, error) in table {
        let actor = Actor::local();
        assert_eq!(store.append(new("demo", "x").expecting(expected)).await.unwrap_err(), error);
        assert_eq!(store.activate(&id("demo"), 1, expected, &actor).await.unwrap_err(), error);
        assert_eq!(store.delete(&id("demo"), expected, &actor).await.unwrap_err(), error);
    }
    let missing = store.append(new("other", "x").expecting(Expected::Present)).await;
    assert_eq!(missing.unwrap_err(), VersionError::NoSkill(id("other")));
    let nowhere = store.activate(&id("demo"), 7, Expected::Any, &Actor::local()).await;
    assert_eq!(nowhere.unwrap_err(), VersionError::NoVersion { skill: id("demo"), number: 7 });
    assert_eq!(store.versions(&id("demo"), 0, 10).await.unwrap().total, 1);
    assert_eq!(store.audit(None, 10).await.unwrap().len(), 1);
}

async fn a_version_may_wait_and_the_same_content_may_count_for_nothing(place: Place) {
    let store = place.open().await.versions;
    store.append(new("demo", "one")).await.unwrap();
    let mut draft = new("demo", "two");
    draft.activation = Activation::Later;
    let draft = store.append(draft).await.unwrap();
    assert_eq!((draft.version.number, draft.skill.as_ref().unwrap().active.number), (2, 1));
    let mut same = new("demo", "one");
    same.same_content = SameContent::Keep;
    let same = store.append(same).await.unwrap();
    assert!(!same.is_new_version);
    assert_eq!((same.version.number, same.revision), (1, 2));
    assert!(store.append(new("demo", "one")).await.unwrap().is_new_version);
}

async fn a_skill_of_which_no_version_was_activated_is_used_by_nobody(place: Place) {
    let store = place.open().await.versions;
    let later = |body: &str| {
        let mut new = new("demo", body);
        new.activation = Activation::Later;
        new
    };
    let first = store.append(later("one").expecting(Expected::Absent)).await.unwrap();
    assert!(first.skill.is_none() && first.is_new_skill);
    assert_eq!(store.skill(&id("demo")).await.unwrap_err(), VersionError::NoSkill(id("demo")));
    let all = store.changes(None).await.unwrap();
    assert_eq!(all.skills, [(id("demo"), None)]);
    assert_eq!(all.waiting.len(), 1);
    assert_eq!((&all.waiting[0].version, all.waiting[0].revision), (&first.version, 1));
    let taken = store.append(later("x").expecting(Expected::Absent)).await.unwrap_err();
    assert_eq!(taken, VersionError::Exists(id("demo")));
    let second = store.append(later("two").expecting(Expected::Revision(1))).await.unwrap();
    assert_eq!((second.version.number, second.revision), (2, 2));
    assert_eq!(store.head(&id("demo")).await.unwrap(), (2, second.version.clone()));
    let used = store.activate(&id("demo"), 1, Expected::Any, &Actor::local()).await.unwrap();
    assert_eq!((used.active.number, used.revision), (1, 3));
    // What was deleted does not come back by somebody who may not decide that.
    store.delete(&id("demo"), Expected::Any, &Actor::local()).await.unwrap();
    assert!(store.append(later("three")).await.unwrap().skill.is_none());
}

async fn what_waits_is_gone_on_with_until_somebody_decides(place: Place) {
    let store = place.open().await.versions;
    let (demo, actor) = (id("demo"), Actor::local());
    let head = async || store.head(&demo).await.unwrap().1.number;
    let wait = async |body: &str| {
        let mut new = new("demo", body);
        new.activation = Activation::Later;
        store.append(new).await.unwrap().version.number
    };
    store.append(new("demo", "one")).await.unwrap();
    store.append(new("demo", "two")).await.unwrap();
    store.activate(&demo, 1, Expected::Any, &actor).await.unwrap();
    assert_eq!(head().await, 1, "what was rolled back does not wait");
    assert_eq!((wait("three").await, head().await), (3, 3));
    assert_eq!((wait("four").await, head().await), (4, 4));
    // It waits for others, too.
    assert_eq!(place.open().await.versions.head(&demo).await.unwrap(), {
        (5, store.version(&demo, 4).await.unwrap())
    });
    store.activate(&demo, 3, Expected::Any, &actor).await.unwrap();
    assert_eq!(head().await, 3, "somebody has decided");
    wait("five").await;
    store.append(new("demo", "six")).await.unwrap();
    assert_eq!(head().await, 6);
    wait("seven").await;
    store.delete(&demo, Expected::Any, &actor).await.unwrap();
    assert_eq!(store.head(&demo).await.unwrap_err(), VersionError::NoSkill(demo.clone()));
    store.append(new("demo", "eight")).await.unwrap();
    assert_eq!(head().await, 8, "what was deleted waits no more");
    // What is shipped anew beside a change is nobody's draft; a reset decides.
    let sql = id("sql");
    let head = async || store.head(&sql).await.unwrap().1.number;
    store.append(shipped("sql", "one")).await.unwrap();
    store.append(new("sql", "mine")).await.unwrap();
    assert!(store.append(shipped("sql", "two")).await.unwrap().is_new_version);
    assert_eq!(head().await, 1);
    let mut draft = new("sql", "yours");
    draft.activation = Activation::Later;
    store.append(draft).await.unwrap();
    assert_eq!(head().await, 3);
    assert_eq!(store.reset(&sql, Expected::Any, &actor).await.unwrap().active.number, 4);
    assert_eq!(head().await, 4);
}

async fn several_versions_are_made_all_or_none(place: Place) {
    let store = place.open().await.versions;
    store.append(new("beta", "one")).await.unwrap();
    let both = vec![new("alpha", "one"), new("beta", "two").expecting(Expected::Absent)];
    assert_eq!(store.append_all(both).await.unwrap_err(), VersionError::Exists(id("beta")));
    assert_eq!(store.skill(&id("alpha")).await.unwrap_err(), VersionError::NoSkill(id("alpha")));
    let both = vec![new("alpha", "one"), new("beta", "two")];
    assert_eq!(store.append_all(both).await.unwrap().len(), 2);
    assert_eq!(store.audit(None, 10).await.unwrap().len(), 3);
}

async fn what_is_deleted_is_hidden_and_its_history_stays(place: Place) {
    let store = place.open().await.versions;
    store.append(new("demo", "one")).await.unwrap();
    store.delete(&id("demo"), Expected::Any, &Actor::local()).await.unwrap();
    let missing = VersionError::NoSkill(id("demo"));
    assert_eq!(store.skill(&id("demo")).await.unwrap_err(), missing);
    assert_eq!(store.versions(&id("demo"), 0, 9).await.unwrap_err(), missing);
    assert_eq!(
        store.delete(&id("demo"), Expected::Any, &Actor::local()).await.unwrap_err(),
        missing
    );
    assert_eq!(store.version(&id("demo"), 1).await.unwrap().number, 1);
    let again = store.append(new("demo", "two").expecting(Expected::Absent)).await.unwrap();
    assert!(again.is_new_skill);
    assert_eq!((again.version.number, again.skill.as_ref().unwrap().version_count), (2, 2));
}

async fn what_was_shipped_can_be_changed_and_reset_and_is_never_lost(place: Place) {
    let store = place.open().await.versions;
    let first = store.append(shipped("sql", "one")).await.unwrap();
    assert_eq!((first.version.number, first.skill.as_ref().unwrap().origin), (0, Origin::BuiltIn));
    // The same program again.
    assert!(!store.append(shipped("sql", "one")).await.unwrap().is_new_version);
    // A newer one: used at once, because nobody has changed it.
    let newer = store.append(shipped("sql", "two")).await.unwrap();
    assert_eq!((newer.version.number, newer.skill.as_ref().unwrap().active.number), (1, 1));
    let edited = store.append(new("sql", "edited")).await.unwrap();
    assert_eq!(
        (edited.skill.as_ref().unwrap().active.number, edited.skill.as_ref().unwrap().origin),
        (2, Origin::BuiltIn)
    );
    // Now it is there, and waits.
    let newest = store.append(shipped("sql", "three")).await.unwrap();
    assert_eq!((newest.version.number, newest.skill.as_ref().unwrap().active.number), (3, 2));
    let reset = store.reset(&id("sql"), Expected::Any, &Actor::local()).await.unwrap();
    assert_eq!((reset.active.number, reset.version_count), (4, 5));
    assert_eq!(reset.active.tree_digest, newest.version.tree_digest);
    assert_eq!(reset.active.change_summary.as_deref(), Some("Reset to version 3, as shipped"));
    // What is reset is as it was shipped: the next one is used at once.
    assert!(!reset.is_changed && edited.skill.as_ref().unwrap().is_changed);
    let last = store.append(shipped("sql", "four")).await.unwrap();
    assert_eq!(last.skill.unwrap().active.number, 5);
    let protected = store.delete(&id("sql"), Expected::Any, &Actor::local()).await.unwrap_err();
    assert_eq!(protected, VersionError::Protected(id("sql")));
    store.append(new("own", "mine")).await.unwrap();
    let never = store.reset(&id("own"), Expected::Any, &Actor::local()).await.unwrap_err();
    assert_eq!(never, VersionError::NotBuiltIn(id("own")));
    let taken = store.append(shipped("own", "theirs")).await.unwrap_err();
    assert_eq!(taken, VersionError::Exists(id("own")));
}

async fn of_writers_at_once_one_wins_and_the_others_are_told(place: Place) {
    let first = place.open().await.versions;
    first.append(new("demo", "begin")).await.unwrap();
    // Two processes, as it were.
    let stores = [first.clone(), place.open().await.versions];
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..5 {
        let store = stores[writer % 2].clone();
        tasks.spawn(async move {
            let mut conflicts = 0;
            for round in 0..100 {
                loop {
                    let revision = store.skill(&id("demo")).await.unwrap().revision;
                    let version = new("demo", &format!("{writer} {round}"));
                    match store.append(version.expecting(Expected::Revision(revision))).await {
                        Ok(_) => break,
                        Err(VersionError::Stale { .. }) => conflicts += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            conflicts
        });
    }
    let conflicts: usize = tasks.join_all().await.into_iter().sum();
    assert!(conflicts > 0, "nobody was in anybody's way");
    let versions = first.versions(&id("demo"), 0, 1000).await.unwrap();
    assert_eq!(versions.total, 501);
    let numbers: Vec<u64> = versions.items.iter().rev().map(|it| it.number).collect();
    assert_eq!(numbers, (1..=501).collect::<Vec<_>>());
    let texts: BTreeSet<_> = versions.items.iter().map(|it| it.digest).collect();
    assert_eq!(texts.len(), 501);
}

async fn a_registry_takes_over_what_others_change(place: Place) {
    let registry = Registry::new(place.open().await.versions);
    assert!(registry.refresh().await.unwrap());
    let other = place.open().await.versions;
    for name in ["beta", "alpha", "gamma"] {
        other.append(new(name, "hello")).await.unwrap();
    }
    assert!(registry.get("alpha").is_none());
    assert!(registry.refresh().await.unwrap());
    assert!(!registry.refresh().await.unwrap());
    let ids = |query: &SkillQuery| {
        let page = registry.find(query);
        let ids: Vec<String> = page.skills.iter().map(|it| it.id().to_string()).collect();
        (ids, page.total, page.has_more)
    };
    let query = |text: &str, after: &str, limit| SkillQuery {
        text: (!text.is_empty()).then(|| text.to_owned()),
        after: (!after.is_empty()).then(|| after.to_owned()),
        limit,
        ..SkillQuery::default()
    };
    let all = ["alpha", "beta", "gamma"];
    assert_eq!(ids(&query("", "", 9)), (all.map(str::to_owned).to_vec(), 3, false));
    assert_eq!(ids(&query("", "", 2)), (vec!["alpha".into(), "beta".into()], 3, true));
    assert_eq!(ids(&query("", "beta", 2)), (vec!["gamma".into()], 3, false));
    assert_eq!(ids(&query("TESTING", "", 1)), (vec!["alpha".into()], 3, true));
    assert_eq!(ids(&query("MM", "", 1)), (vec!["gamma".into()], 1, false));
    assert_eq!(ids(&query("no such", "", 1)), (vec![], 0, false));
    other.delete(&id("beta"), Expected::Any, &Actor::local()).await.unwrap();
    registry.refresh().await.unwrap();
    assert_eq!(ids(&query("", "", 9)).0, ["alpha", "gamma"]);
}

async fn a_registry_knows_what_waits(place: Place) {
    let store = place.open().await.versions;
    let later = |skill: &str, body: &str| {
        let mut new = new(skill, body);
        new.activation = Activation::Later;
        new
    };
    for new in [new("alpha", "one"), later("alpha", "two"), later("beta", "one"), new("gamma", "x")]
    {
        store.append(new).await.unwrap();
    }
    // One that follows, and one that begins later.
    let followed = Registry::new(place.open().await.versions);
    followed.refresh().await.unwrap();
    let change = later("beta", "two");
    assert_eq!(store.append(change).await.unwrap().version.number, 2);
    let begun = Registry::new(place.open().await.versions);
    for registry in [&followed, &begun] {
        registry.refresh().await.unwrap();
        let found = |status, after: Option<&str>, limit| {
            let after = after.map(str::to_owned);
            let page = registry.find(&SkillQuery { status, after, limit, ..SkillQuery::default() });
            let ids: Vec<String> = page.skills.iter().map(|it| it.id().to_string()).collect();
            (ids.join(" "), page.total, page.has_more)
        };
        let (used, waiting, any) = (SkillStatus::Used, SkillStatus::Waiting, SkillStatus::Any);
        assert_eq!(found(used, None, 9), ("alpha gamma".into(), 2, false));
        assert_eq!(found(waiting, None, 9), ("alpha beta".into(), 2, false));
        assert_eq!(found(any, None, 2), ("alpha beta".into(), 3, true));
        assert_eq!(found(any, Some("beta"), 2), ("gamma".into(), 3, false));
        assert_eq!(found(waiting, Some("alpha"), 1), ("beta".into(), 2, false));
        assert_eq!(registry.get("alpha").unwrap().skill.pending, Some(2));
        assert_eq!(registry.get("alpha").unwrap().skill.newest(), 2);
        assert!(registry.get("beta").is_none() && registry.waiting("alpha").is_none());
        let beta = registry.waiting("beta").unwrap();
        assert_eq!((beta.version.number, beta.revision, beta.version_count), (2, 2, 2));
    }
    store.activate(&id("alpha"), 2, Expected::Any, &Actor::local()).await.unwrap();
    store.delete(&id("beta"), Expected::Any, &Actor::local()).await.unwrap();
    for registry in [followed, begun] {
        registry.refresh().await.unwrap();
        let waiting =
            SkillQuery { status: SkillStatus::Waiting, limit: 9, ..SkillQuery::default() };
        assert_eq!(registry.find(&waiting).total, 0);
        assert!(registry.waiting("beta").is_none());
        assert_eq!(registry.get("alpha").unwrap().skill.pending, None);
    }
}

async fn a_session_stays_with_its_version_and_is_told_of_another(place: Place) {
    let store = place.open().await.versions;
    store.append(with_files("demo", "one", &[("references/a.md", "A1")])).await.unwrap();
    let registry = Arc::new(Registry::new(store.clone()));
    let catalog = Catalog::builder().source(VersionSource::new("registry", registry)).build();
    catalog.refresh().await;
    let skill = catalog.snapshot().get("demo").unwrap().clone();
    let resources = skill.resources(ResourceScope::Recursive).await.unwrap();
    assert_eq!(resources.resources[0].path.as_str(), "references/a.md");
    let runtime =
        Runtime::builder(catalog.clone()).sessions(place.open().await.sessions).build().unwrap();
    let (session, agent): (SessionKey, _) = ("s".parse().unwrap(), AgentName::default());
    let call =
        |number: u32| ToolCall::new(number.to_string(), "load_skill", json!({"skill": "demo"}));
    let loaded = runtime.dispatch(&session, &agent, call(1)).await.unwrap();
    assert!(loaded.content.starts_with("one"), "{}", loaded.content);
    store.append(new("demo", "two")).await.unwrap();
    catalog.refresh().await;
    let again = runtime.dispatch(&session, &agent, call(2)).await.unwrap();
    assert!(!again.content.contains("two"), "{}", again.content);
    assert!(again.hint.as_deref().is_some_and(|hint| hint.contains("newer version")), "{again:?}");
    let other: SessionKey = "t".parse().unwrap();
    let loaded = runtime.dispatch(&other, &agent, call(1)).await.unwrap();
    assert_eq!(loaded.content, "two");
    // Its files stay, too.
    let detail = json!({"skill": "demo", "resource": "references/a.md"});
    let detail = ToolCall::new("3", "load_skill_detail", detail);
    let detail = runtime.dispatch(&session, &agent, detail).await.unwrap();
    assert_eq!((detail.is_error, detail.content.as_str()), (false, "A1"), "{detail:?}");
    // Both count, each for the version that it was given.
    let usage = place.open().await.usage.usage("demo").await.unwrap();
    let loads = usage.rows.iter().filter(|row| row.kind == UsageKind::Load);
    let loads: Vec<_> = loads.map(|row| (row.version, row.count, row.tokens)).collect();
    assert_eq!(loads, [(Some(1), 1, 16), (Some(2), 1, 1)]);
    assert_eq!(usage.unique_sessions, 2);
    store.delete(&id("demo"), Expected::Any, &Actor::local()).await.unwrap();
    catalog.refresh().await;
    assert!(matches!(catalog.snapshot().get("demo"), Err(LookupError::Unknown { .. })));
}

async fn nothing_is_lost_or_counted_twice(place: Place) {
    place.open().await.versions.append(new("demo", "one")).await.unwrap();
    let stores = [place.open().await.usage, place.open().await.usage];
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..400_u64 {
        let store = stores[usize::try_from(number % 2).unwrap()].clone();
        tasks.spawn(async move {
            let mut load = Use::new(UsageKind::Load, "demo");
            load.session = Some(format!("session-{}", number % 50));
            (load.version, load.tokens) = (Some(number % 3), 7);
            store.record(vec![load]).await.unwrap();
        });
    }
    tasks.join_all().await;
    let usage = stores[0].usage("demo").await.unwrap();
    assert_eq!(usage.rows.iter().map(|row| row.count).sum::<u64>(), 400);
    assert_eq!(usage.rows.iter().map(|row| row.tokens).sum::<u64>(), 2800);
    assert_eq!(usage.unique_sessions, 50);
    let totals = stores[1].totals().await.unwrap();
    assert_eq!(totals.iter().map(|row| row.count).sum::<u64>(), 400);
}

/// Writers at once are done in another order than they began: whoever follows must not step over
/// one that is late.
async fn who_follows_the_changes_misses_none_of_writers_at_once(place: Place) {
    const WRITERS: usize = 8;
    const VERSIONS: usize = 25;
    let stores = [place.open().await.versions, place.open().await.versions];
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = stores[writer % 2].clone();
        tasks.spawn(async move {
            for round in 0..VERSIONS {
                let skill = format!("skill-{}", (writer + round) % 5);
                store.append(new(&skill, &format!("{writer} {round}"))).await.unwrap();
            }
        });
    }
    let reader = place.open().await.versions;
    let mut seen = std::collections::BTreeMap::new();
    let mut generation = 0;
    let mut is_done = false;
    while !is_done {
        is_done = tasks.is_empty();
        let changes = reader.changes(Some(generation)).await.unwrap();
        assert!(changes.generation >= generation && changes.broken.is_empty());
        generation = changes.generation;
        seen.extend(changes.skills);
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    let all = reader.changes(None).await.unwrap();
    assert_eq!(all.generation, generation);
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all.skills);
    let counts = all.skills.iter().map(|(_, skill)| skill.as_ref().unwrap().version_count);
    assert_eq!(counts.sum::<u64>(), (WRITERS * VERSIONS) as u64);
    let log = reader.audit(None, 1_000).await.unwrap();
    assert!(log.windows(2).all(|pair| pair[0].place > pair[1].place));
    assert_eq!(log.len(), WRITERS * VERSIONS);
}

async fn unusual_texts_about_a_version_come_back(place: Place) {
    let store = place.open().await.versions;
    for summary in ["", "null", "\"quoted\"", "a\0b", "'; DROP TABLE versions; --", "漢字 😀"] {
        let version = new("demo", "text").because(Some(summary.to_owned()));
        let made = store.append(version).await.unwrap().version;
        assert_eq!(made.change_summary.as_deref(), Some(summary));
        assert_eq!(store.version(&id("demo"), made.number).await.unwrap(), made);
    }
    let binary = vec![("assets/a.bin", "\0\u{1}\r\n"), ("assets/b.bin", ""), ("assets/c.bin", "")];
    let made = store.append(with_files("demo", "files", &binary)).await.unwrap().version;
    let files = store.contents(&made).await.unwrap();
    assert_eq!(files.file("assets/a.bin").unwrap().bytes, b"\0\x01\r\n");
    assert_eq!(files.file("assets/c.bin").unwrap().bytes, b"");
}

#[test]
fn ids_have_one_form() {
    for good in ["a", "0", "write_sql", "a-b", &"x".repeat(64)] {
        assert!(good.parse::<SkillId>().is_ok(), "{good}");
    }
    let long = "x".repeat(65);
    for bad in
        ["", "-a", "_a", "A", "a b", "../../etc", "a/b", "é", "日本", "a\n", "import", "new", &long]
    {
        assert!(bad.parse::<SkillId>().is_err(), "{bad:?}");
    }
    let suggested = |name: &str| SkillId::suggested_by(name).map(|id| id.to_string());
    assert_eq!(suggested("My Skill").as_deref(), Some("my_skill"));
    assert_eq!(suggested("  SQL -- Expert! ").as_deref(), Some("sql_expert"));
    assert_eq!(suggested("日本"), None);
    assert_eq!(suggested("import"), None);
}
