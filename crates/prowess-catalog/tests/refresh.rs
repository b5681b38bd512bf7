//! Looking again: only what has changed is read, and all of it at once (S02, 3).

mod support;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use prowess_catalog::{
    Catalog, DEBOUNCE, DirectorySource, FoundSkill, MemoryFile, MemorySource, ReadError,
    ResourceDiscovery, ResourceListing, ResourcePath, ResourceScope, Snapshot, Source,
    SourceFuture, SourceInfo, SourceListing,
};
use support::{Tree, codes, names, text};

/// A catalog whose files are old enough to be trusted.
async fn settled(tree: &Tree) -> (Catalog, Snapshot) {
    tokio::time::sleep(Duration::from_millis(60)).await;
    let catalog = Catalog::builder().source(DirectorySource::new(tree.path())).build();
    let snapshot = catalog.refresh().await;
    (catalog, snapshot)
}

#[tokio::test]
async fn nothing_changed_means_the_same_snapshot() {
    let tree = Tree::new();
    tree.skill("a");
    tree.write("broken/SKILL.md", "x");
    tree.skill("1/2/3/4/5/6/7/deep");
    let (catalog, first) = settled(&tree).await;
    for _ in 0..3 {
        let again = catalog.refresh().await;
        assert!(again.is_same(&first));
        assert_eq!(again.generation(), 1);
    }
}

#[tokio::test]
async fn every_kind_of_change_is_seen() {
    let tree = Tree::new();
    tree.skill("kept");
    tree.skill("edited");
    tree.skill("removed");
    tree.skill("group/moved");
    tree.write("broken/SKILL.md", "x");
    let (catalog, first) = settled(&tree).await;
    assert_eq!(names(&first), ["edited", "kept", "moved", "removed"]);

    tree.write("edited/SKILL.md", text("edited").replace("A test", "A best"));
    fs::remove_file(tree.at("removed/SKILL.md")).unwrap();
    fs::rename(tree.at("group/moved"), tree.at("group/renamed")).unwrap();
    tree.skill("new");
    tree.skill("group/sub/deep");
    tree.write("broken/SKILL.md", text("broken"));
    let second = catalog.refresh().await;
    assert_eq!(names(&second), ["broken", "deep", "edited", "kept", "moved", "new"]);
    assert_eq!(second.get("edited").unwrap().found().description(), "A best skill");
    assert_eq!(second.generation(), 2);
    // What was kept is the same value, not a copy.
    let kept = |snapshot: &Snapshot| Arc::clone(snapshot.get("kept").unwrap().found());
    assert!(Arc::ptr_eq(&kept(&first), &kept(&second)));
    // The old snapshot is as it was.
    assert_eq!(names(&first), ["edited", "kept", "moved", "removed"]);

    fs::remove_dir_all(tree.path()).unwrap();
    let gone = catalog.refresh().await;
    assert_eq!((names(&gone).len(), codes(&gone)), (0, vec!["unreadable-file"]));
    tree.skill("back");
    assert_eq!(names(&catalog.refresh().await), ["back"]);
}

#[tokio::test]
async fn a_change_of_the_same_length_at_the_same_time_is_seen() {
    let tree = Tree::new();
    tree.skill("a");
    let file = tree.at("a/SKILL.md");
    let (catalog, first) = settled(&tree).await;
    let times = fs::metadata(&file).unwrap().modified().unwrap();
    let changed = text("a").replace("A test", "B test");
    assert_eq!(changed.len(), text("a").len());
    fs::write(&file, changed).unwrap();
    // The modification time lies; the change time does not.
    fs::File::options().write(true).open(&file).unwrap().set_modified(times).unwrap();
    let second = catalog.refresh().await;
    assert!(!second.is_same(&first));
    assert_eq!(second.get("a").unwrap().found().description(), "B test skill");
}

/// Two writes within one tick of the clock leave the same times. Each must be seen.
#[tokio::test]
async fn changes_within_a_tick_are_seen() {
    let tree = Tree::new();
    tree.skill("a");
    let catalog = Catalog::builder().source(DirectorySource::new(tree.path())).build();
    for at in 0..200 {
        let description = format!("Version {at:03} of it");
        let text = text("a").replace("A test skill", &description);
        fs::write(tree.at("a/SKILL.md"), text).unwrap();
        let snapshot = catalog.refresh().await;
        assert_eq!(snapshot.get("a").unwrap().found().description(), description);
    }
}

#[tokio::test]
async fn touching_a_file_changes_nothing() {
    let tree = Tree::new();
    tree.skill("a");
    let (catalog, first) = settled(&tree).await;
    let file = fs::File::options().write(true).open(tree.at("a/SKILL.md")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(5)).unwrap();
    assert!(catalog.refresh().await.is_same(&first));
}

#[tokio::test]
async fn notes_about_folders_go_when_their_cause_goes() {
    let tree = Tree::new();
    tree.skill("a");
    tree.link("nowhere", "dangling");
    let (catalog, first) = settled(&tree).await;
    assert_eq!(codes(&first), ["dangling-link"]);
    fs::remove_file(tree.at("dangling")).unwrap();
    assert_eq!(codes(&catalog.refresh().await), [""; 0]);
}

/// The text is the same; what stands beside it is not.
#[tokio::test]
async fn a_dangling_link_beside_a_skill_is_seen_to_come_and_go() {
    let tree = Tree::new();
    tree.write("a/skill.md", text("a"));
    let (catalog, first) = settled(&tree).await;
    assert_eq!(codes(&first), ["file-name-case"]);
    tree.link("nowhere", "a/SKILL.md");
    let second = catalog.refresh().await;
    assert_eq!(
        (names(&second), codes(&second)),
        (vec!["a"], vec!["file-name-case", "dangling-link"])
    );
    assert!(catalog.refresh().await.is_same(&second));
    fs::remove_file(tree.at("a/SKILL.md")).unwrap();
    assert_eq!(codes(&catalog.refresh().await), ["file-name-case"]);
}

#[tokio::test]
async fn the_name_of_the_file_may_change() {
    let tree = Tree::new();
    tree.write("a/skill.md", text("a"));
    tree.write("b/skill.md", text("b"));
    let (catalog, first) = settled(&tree).await;
    assert_eq!(codes(&first), ["file-name-case"; 2]);
    fs::rename(tree.at("a/skill.md"), tree.at("a/SKILL.md")).unwrap();
    tree.write("b/SKILL.md", text("b").replace("A test", "The new"));
    let second = catalog.refresh().await;
    assert_eq!(codes(&second), [""; 0]);
    assert_eq!(second.get("b").unwrap().found().description(), "The new skill");
    assert!(second.get("a").unwrap().read().await.is_ok());
    assert!(second.get("a").unwrap().tree_digest().await.is_ok());
}

#[tokio::test]
async fn a_file_that_was_replaced_by_its_twin_is_found_anew() {
    let tree = Tree::new();
    tree.skill("a");
    tree.write("a/references/x.md", "x");
    let (catalog, first) = settled(&tree).await;
    tree.write("twin", text("a"));
    fs::rename(tree.at("twin"), tree.at("a/SKILL.md")).unwrap();
    let scope = ResourceScope::OneLevel;
    assert!(first.get("a").unwrap().resources(scope).await.is_err());
    let second = catalog.refresh().await;
    assert_eq!(second.get("a").unwrap().resources(scope).await.unwrap().resources.len(), 1);
}

#[tokio::test]
async fn a_text_that_is_not_the_one_that_was_found_is_refused() {
    let tree = Tree::new();
    tree.skill("a");
    let (_, snapshot) = settled(&tree).await;
    let skill = snapshot.get("a").unwrap();
    assert!(skill.read().await.is_ok());
    tree.write("a/SKILL.md", text("a").replace("Body", "Evil"));
    let error = skill.read().await.unwrap_err();
    assert_eq!(error.code(), "content_changed");
}

#[tokio::test]
async fn eager_resources_are_found_with_the_skills() {
    let source = MemorySource::new("m").with_skill("a", text("a")).with_file(
        "a",
        "scripts/run.sh",
        MemoryFile::executable("#!/bin/sh\n"),
    );
    let eager = Catalog::builder().source(source).resources(ResourceDiscovery::Eager).build();
    let listing = eager.refresh().await.get("a").unwrap().resources(ResourceScope::OneLevel).await;
    assert_eq!(listing.unwrap().resources.len(), 1);

    let tree = Tree::new();
    tree.skill("a");
    let source = DirectorySource::new(tree.path());
    let catalog = Catalog::builder().source(source).resources(ResourceDiscovery::Eager).build();
    let first = catalog.refresh().await;
    tree.write("a/assets/new.txt", "x");
    let of = |snapshot: &Snapshot| {
        let skill = snapshot.get("a").unwrap().clone();
        async move { skill.resources(ResourceScope::OneLevel).await.unwrap().resources.len() }
    };
    // The snapshot keeps what it saw; the next one sees more.
    assert_eq!(of(&first).await, 0);
    assert_eq!(of(&catalog.refresh().await).await, 1);
}

/// Skills in memory, of which `locked` keeps its resources to itself until it is opened.
struct Locked {
    skills: MemorySource,
    is_open: AtomicBool,
}

impl Source for Locked {
    fn info(&self) -> &SourceInfo {
        self.skills.info()
    }

    fn list(&self) -> SourceFuture<'_, Arc<SourceListing>> {
        self.skills.list()
    }

    fn read<'a>(&'a self, skill: &'a FoundSkill) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        self.skills.read(skill)
    }

    fn resources<'a>(
        &'a self,
        skill: &'a FoundSkill,
        scope: ResourceScope,
    ) -> SourceFuture<'a, Result<ResourceListing, ReadError>> {
        match skill.name.as_str() == "locked" && !self.is_open.load(Ordering::Relaxed) {
            true => Box::pin(std::future::ready(Err(ReadError::Replaced))),
            false => self.skills.resources(skill, scope),
        }
    }

    fn read_resource<'a>(
        &'a self,
        skill: &'a FoundSkill,
        path: &'a ResourcePath,
    ) -> SourceFuture<'a, Result<Vec<u8>, ReadError>> {
        self.skills.read_resource(skill, path)
    }
}

#[tokio::test]
async fn eager_resources_that_cannot_be_read_are_a_diagnostic() {
    let skills = ["locked", "open"].into_iter().fold(MemorySource::new("m"), |source, name| {
        source.with_skill(name, text(name)).with_file(name, "notes.md", MemoryFile::new("x"))
    });
    let source = Arc::new(Locked { skills, is_open: AtomicBool::new(false) });
    let builder = Catalog::builder().shared_source(Arc::clone(&source) as Arc<dyn Source>);
    let catalog = builder.resources(ResourceDiscovery::Eager).build();
    let first = catalog.refresh().await;
    // One bad skill hurts no other, and is there itself.
    assert_eq!((names(&first), codes(&first)), (vec!["locked", "open"], vec!["unreadable-file"]));
    let path = first.diagnostics()[0].path.as_deref();
    assert_eq!(path, Some("memory:m/locked/SKILL.md"));
    let of = async |snapshot: &Snapshot, name: &str| {
        let listing = snapshot.get(name).unwrap().resources(ResourceScope::OneLevel).await;
        listing.map(|listing| listing.resources.len()).map_err(|error| error.code())
    };
    assert_eq!(of(&first, "open").await, Ok(1));
    assert_eq!(of(&first, "locked").await, Err("content_changed"));
    assert!(catalog.refresh().await.is_same(&first));
    source.is_open.store(true, Ordering::Relaxed);
    let second = catalog.refresh().await;
    assert_eq!((second.generation(), codes(&second)), (2, vec![]));
    assert_eq!(of(&second, "locked").await, Ok(1));
}

#[tokio::test]
async fn eager_resources_keep_what_was_left_out() {
    let tree = Tree::new();
    tree.skill("a");
    tree.link("/etc/hostname", "a/elsewhere.md");
    let source = DirectorySource::new(tree.path());
    let catalog = Catalog::builder().source(source).resources(ResourceDiscovery::Eager).build();
    let snapshot = catalog.refresh().await;
    // It is what was found with the skill, not what is there now.
    fs::remove_file(tree.at("a/elsewhere.md")).unwrap();
    let listing = snapshot.get("a").unwrap().resources(ResourceScope::OneLevel).await.unwrap();
    assert_eq!(listing.left_out.len(), 1);
    assert_eq!(listing.left_out[0].path, "elsewhere.md");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_whole_generations_while_others_refresh() {
    let tree = Tree::new();
    let catalog = Catalog::builder().source(DirectorySource::new(tree.path())).build();
    let writer = {
        let (catalog, path) = (catalog.clone(), tree.path().to_owned());
        tokio::spawn(async move {
            for round in 0..30 {
                for name in ["x", "y"] {
                    let folder = path.join(name);
                    fs::create_dir_all(&folder).unwrap();
                    let text = text(name).replace("A test", &format!("Round {round:02}"));
                    fs::write(folder.join("SKILL.md"), text).unwrap();
                }
                catalog.refresh().await;
            }
        })
    };
    let mut generation = 0;
    while !writer.is_finished() {
        let snapshot = catalog.snapshot();
        assert!(snapshot.generation() >= generation);
        generation = snapshot.generation();
        let described: Vec<&str> =
            snapshot.skills().iter().map(|skill| skill.found().description()).collect();
        assert!(described.is_empty() || described[0] == described[1], "{described:?}");
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert_eq!(catalog.snapshot().skills().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_publishes_new_snapshots() {
    let tree = Tree::new();
    tree.skill("here/first");
    let (here, later) = (tree.at("here"), tree.at("later/skills"));
    let catalog = Catalog::builder()
        .source(DirectorySource::new(here))
        .source(DirectorySource::new(later))
        .build();
    catalog.refresh().await;
    let mut snapshots = catalog.subscribe();
    let watch = catalog.watch(DEBOUNCE / 4).unwrap();
    let mut wait_for = async |expected: &[&str]| {
        let seen = snapshots.wait_for(|snapshot| names(snapshot) == expected);
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("in time").unwrap().clone()
    };
    tree.skill("here/new/folder/second");
    wait_for(&["first", "second"]).await;
    tree.write("here/first/SKILL.md", text("first").replace("name: first", "name: renamed"));
    wait_for(&["renamed", "second"]).await;
    fs::remove_dir_all(tree.at("here/new")).unwrap();
    wait_for(&["renamed"]).await;
    // A source that did not exist when watching began.
    fs::create_dir_all(tree.at("later/skills")).unwrap();
    tokio::time::sleep(DEBOUNCE * 3).await;
    tree.skill("later/skills/third");
    wait_for(&["renamed", "third"]).await;
    // One that goes and comes back, as another folder.
    fs::remove_dir_all(tree.at("later")).unwrap();
    wait_for(&["renamed"]).await;
    tree.skill("later/skills/fourth");
    wait_for(&["fourth", "renamed"]).await;
    tokio::time::sleep(DEBOUNCE * 3).await;
    tree.skill("later/skills/fifth");
    wait_for(&["fifth", "fourth", "renamed"]).await;
    drop(watch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_sees_through_links() {
    let (tree, store) = (Tree::new(), Tree::new());
    let file = store.write("nix/one.md", text("one"));
    store.skill("old/two");
    store.skill("new/three");
    tree.link(&file, "skills/one/SKILL.md");
    tree.link(store.at("old"), "skills/group");
    tree.link(tree.at("skills"), "root");
    let catalog = Catalog::builder().source(DirectorySource::new(tree.at("root"))).build();
    catalog.refresh().await;
    let mut snapshots = catalog.subscribe();
    let watch = catalog.watch(DEBOUNCE / 4).unwrap();
    let mut wait_for = async |expected: &[&str]| {
        let seen = snapshots.wait_for(|snapshot| names(snapshot) == expected);
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("in time").unwrap().clone()
    };
    store.write("nix/one.md", text("one").replace("name: one", "name: uno"));
    wait_for(&["two", "uno"]).await;
    store.write("old/two/SKILL.md", text("two").replace("name: two", "name: due"));
    wait_for(&["due", "uno"]).await;
    // The root is another folder now.
    fs::remove_file(tree.at("root")).unwrap();
    tree.link(store.at("new"), "root");
    wait_for(&["three"]).await;
    drop(watch);
}
