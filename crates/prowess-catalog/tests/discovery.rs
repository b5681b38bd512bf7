//! Finding skills in folders, within bounds (S02, 1).

mod support;

use std::fs;
use std::sync::Arc;

use prowess_catalog::{
    Catalog, DirectorySource, MemorySource, Nested, ScanLimits, Scope, Source, find_skill_files,
};
use support::{Tree, codes, names, snapshot, text};

fn limits() -> ScanLimits {
    ScanLimits::default()
}

#[tokio::test]
async fn skills_are_found_at_six_levels_and_not_at_the_seventh() {
    let tree = Tree::new();
    tree.skill("one");
    tree.skill("1/2/3/4/5/six");
    tree.skill("1/2/3/4/5/6/seven");
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!(names(&found), ["one", "six"]);
    assert_eq!(codes(&found), ["scan-depth"]);
    assert!(found.diagnostics()[0].path.as_ref().unwrap().ends_with("1/2/3/4/5/6"));
    let deeper = DirectorySource::new(tree.path()).with_limits(limits().with_depth(7));
    assert_eq!(names(&snapshot(deeper).await), ["one", "seven", "six"]);
}

#[tokio::test]
async fn one_level_is_a_mode_without_complaints() {
    let tree = Tree::new();
    tree.skill("one");
    tree.skill("group/two");
    let found =
        snapshot(DirectorySource::new(tree.path()).with_limits(limits().with_depth(1))).await;
    assert_eq!((names(&found), codes(&found)), (vec!["one"], vec![]));
}

#[tokio::test]
async fn a_source_may_be_one_skill_folder() {
    let tree = Tree::new();
    tree.skill("solo");
    tree.skill("solo/inside");
    let found = snapshot(DirectorySource::new(tree.at("solo"))).await;
    assert_eq!(names(&found), ["solo"]);
    let skill = found.get("solo").unwrap();
    assert_eq!(skill.path(), tree.at("solo/SKILL.md"));
    assert_eq!(skill.read().await.unwrap(), text("solo").into_bytes());
}

#[tokio::test]
async fn a_skill_is_a_leaf_unless_asked_otherwise() {
    let tree = Tree::new();
    tree.skill("outer");
    tree.skill("outer/assets/inner");
    assert_eq!(names(&snapshot(DirectorySource::new(tree.path())).await), ["outer"]);
    let nested = DirectorySource::new(tree.path()).with_nested(Nested::Find);
    assert_eq!(names(&snapshot(nested).await), ["inner", "outer"]);
}

#[tokio::test]
async fn version_control_and_node_modules_are_skipped_and_other_hidden_folders_are_not() {
    let tree = Tree::new();
    for folder in [".git/a", ".hg/b", ".svn/c", "node_modules/d", ".team/e", "x/node_modules/f"] {
        tree.skill(folder);
    }
    assert_eq!(names(&snapshot(DirectorySource::new(tree.path())).await), ["e"]);
}

#[tokio::test]
async fn symlinked_files_folders_and_roots_are_followed() {
    let (tree, store) = (Tree::new(), Tree::new());
    store.skill("farm/linked-folder");
    let file = store.write("nix/linked-file.md", text("linked-file"));
    tree.link(store.at("farm/linked-folder"), "linked-folder");
    tree.link(&file, "linked-file/SKILL.md");
    tree.link(store.at("farm"), "group");
    tree.link(tree.path(), "cycle");
    tree.link("nowhere", "dangling");
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!(names(&found), ["linked-file", "linked-folder"]);
    // The same folder by two ways is one skill, and a link to nothing is reported.
    assert_eq!(codes(&found), ["dangling-link"]);

    let root = Tree::new();
    root.link(tree.path(), "root");
    let found = snapshot(DirectorySource::new(root.at("root"))).await;
    assert_eq!(names(&found), ["linked-file", "linked-folder"]);
}

#[tokio::test]
async fn cycles_of_links_end() {
    let tree = Tree::new();
    tree.skill("a/skill");
    tree.link("../b", "a/to-b");
    tree.link("../a", "b/to-a");
    tree.link(".", "a/self");
    tree.link("..", "a/up");
    assert_eq!(names(&snapshot(DirectorySource::new(tree.path())).await), ["skill"]);
}

#[tokio::test]
async fn a_visible_link_to_a_skipped_folder_is_followed() {
    let tree = Tree::new();
    tree.skill("node_modules/pkg/skill");
    tree.link("node_modules/pkg", "pkg");
    assert_eq!(names(&snapshot(DirectorySource::new(tree.path())).await), ["skill"]);
}

#[tokio::test]
async fn each_limit_holds_at_its_edge_and_is_reported() {
    let tree = Tree::new();
    for name in ["a", "b", "c", "d"] {
        tree.skill(name);
    }
    let bytes = 4 * text("a").len() as u64;
    // The root is a folder too; four names are read.
    for (enough, too_few) in [
        (limits().with_folders(5), limits().with_folders(4)),
        (limits().with_entries(4), limits().with_entries(3)),
        (limits().with_bytes(bytes), limits().with_bytes(bytes - 1)),
    ] {
        let found = snapshot(DirectorySource::new(tree.path()).with_limits(enough)).await;
        assert_eq!((names(&found).len(), codes(&found)), (4, vec![]), "{enough:?}");
        let found = snapshot(DirectorySource::new(tree.path()).with_limits(too_few)).await;
        assert_eq!((names(&found).len(), codes(&found)), (3, vec!["scan-limit"]), "{too_few:?}");
    }
    let length = text("a").len() as u64;
    let exact = DirectorySource::new(tree.path()).with_limits(limits().with_file_bytes(length));
    assert_eq!(names(&snapshot(exact).await).len(), 4);
    let short = DirectorySource::new(tree.path()).with_limits(limits().with_file_bytes(length - 1));
    let found = snapshot(short).await;
    assert_eq!((names(&found).len(), codes(&found)), (0, vec!["file-too-large"; 4]));
}

#[tokio::test]
async fn one_broken_skill_hurts_no_other() {
    let tree = Tree::new();
    tree.skill("good");
    tree.write("empty/SKILL.md", "");
    tree.write("binary/SKILL.md", b"\xff\xfe\0");
    tree.write("nameless/SKILL.md", "---\ndescription: d\n---\nB");
    fs::create_dir_all(tree.at("folder/SKILL.md")).unwrap();
    tree.link("SKILL.md", "loop/SKILL.md");
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!(names(&found), ["good", "nameless"]);
    let mut codes = codes(&found);
    codes.sort_unstable();
    assert_eq!(
        codes,
        ["missing-frontmatter", "missing-name", "not-utf8", "unreadable-file", "unreadable-file"]
    );
    assert!(found.diagnostics().iter().all(|diagnostic| diagnostic.path.is_some()));
}

#[tokio::test]
async fn a_missing_root_is_a_diagnostic() {
    let tree = Tree::new();
    let found = snapshot(DirectorySource::new(tree.at("none"))).await;
    assert_eq!((names(&found).len(), codes(&found)), (0, vec!["unreadable-file"]));
}

#[tokio::test]
async fn lower_case_files_are_found_with_a_warning() {
    let tree = Tree::new();
    tree.write("a/skill.md", text("a"));
    tree.write("b/SKILL.MD", text("b"));
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!((names(&found), codes(&found)), (vec!["a"], vec!["file-name-case"]));
    assert_eq!(found.get("a").unwrap().read().await.unwrap(), text("a").into_bytes());
}

#[tokio::test]
async fn names_that_are_no_unicode_are_folders_like_others() {
    use std::os::unix::ffi::OsStrExt;
    let tree = Tree::new();
    let folder = tree.path().join(std::ffi::OsStr::from_bytes(b"bad-\xff-name"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), text("fine")).unwrap();
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!(names(&found), ["fine"]);
    assert_eq!(found.get("fine").unwrap().read().await.unwrap(), text("fine").into_bytes());
    // Their paths are not what is shown.
    assert_eq!(codes(&found), ["path-not-utf8", "name-folder-mismatch"]);
    let message = &found.diagnostics()[0].message;
    assert!(message.ends_with("/bad-\\xff-name/SKILL.md"), "{message}");
    // As roots too: the path of a skill leads to it.
    let found = snapshot(DirectorySource::new(&folder)).await;
    assert_eq!(found.get("fine").unwrap().path(), folder.join("SKILL.md"));
    assert_eq!(codes(&found), ["path-not-utf8", "name-folder-mismatch"]);
}

#[tokio::test]
async fn order_does_not_depend_on_threads() {
    let tree = Tree::new();
    for at in 0..300 {
        tree.skill(&format!("group-{}/skill-{at:03}", at % 7));
    }
    let first = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!(first.skills().len(), 300);
    assert!(names(&first).is_sorted());
    let listed = |source: DirectorySource| async move {
        source.list().await.skills.iter().map(|skill| skill.path()).collect::<Vec<_>>()
    };
    let expected = listed(DirectorySource::new(tree.path())).await;
    assert!(expected.is_sorted());
    for _ in 0..5 {
        assert_eq!(listed(DirectorySource::new(tree.path())).await, expected);
    }
}

#[tokio::test]
async fn factories_make_sources_for_a_user() {
    let factory = |scope: &Scope| -> Vec<Arc<dyn Source>> {
        let (user, agent) = (scope.user.clone().unwrap(), scope.agent.clone().unwrap());
        let name = format!("{user}-{agent}-{}", scope.session.as_deref().unwrap_or("none"));
        vec![Arc::new(MemorySource::new("own").with_skill(name.clone(), text(&name)))]
    };
    let catalog = Catalog::builder()
        .source(MemorySource::new("shared").with_skill("shared", text("shared")))
        .factory(factory)
        .build();
    assert_eq!(names(&catalog.refresh().await), ["shared"]);
    let scope = Scope::new().with_user("ann").with_agent("coder").with_session("7");
    let own = catalog.for_scope(&scope).refresh().await;
    assert_eq!(names(&own), ["ann-coder-7", "shared"]);
    let other = catalog.for_scope(&Scope::new().with_user("bob").with_agent("x")).refresh().await;
    assert_eq!(names(&other), ["bob-x-none", "shared"]);
}

#[test]
fn files_are_found_whether_they_can_be_used_or_not() {
    let tree = Tree::new();
    tree.skill("b");
    tree.write("a/SKILL.md", "broken");
    let found = find_skill_files(tree.path(), limits());
    assert_eq!(found.files, [tree.at("a/SKILL.md"), tree.at("b/SKILL.md")]);
    assert!(found.diagnostics.is_empty());
}

/// The same tree gives the same result, whoever is fastest, and again on the next look.
#[tokio::test]
async fn limits_are_deterministic_and_are_not_forgotten() {
    let tree = Tree::new();
    for at in 0..200 {
        tree.skill(&format!("group-{}/skill-{at:03}", at % 5));
    }
    let length = text("skill-000").len() as u64;
    for limits in [
        limits().with_folders(100),
        limits().with_entries(100),
        limits().with_bytes(50 * length),
        limits().with_bytes(1),
    ] {
        let mut expected: Option<(Vec<String>, Vec<&str>)> = None;
        for _ in 0..6 {
            let source = DirectorySource::new(tree.path()).with_limits(limits);
            let catalog = Catalog::builder().source(source).build();
            for look in 0..3 {
                let found = catalog.refresh().await;
                let names = names(&found).into_iter().map(str::to_owned).collect();
                let result = (names, codes(&found));
                assert_eq!(result.1, ["scan-limit"], "{limits:?}, look {look}");
                assert!(look == 0 || found.generation() == 1, "{limits:?}");
                assert_eq!(*expected.get_or_insert(result.clone()), result, "{limits:?}");
            }
        }
        let count = expected.unwrap().0.len();
        assert!(count < 200, "{limits:?}: {count}");
    }
}

#[tokio::test]
async fn what_is_not_searched_is_never_silent() {
    let tree = Tree::new();
    tree.skill("a");
    tree.link("nowhere.md", "dangling/SKILL.md");
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!((names(&found), codes(&found)), (vec!["a"], vec!["dangling-link"]));
    // Nor is a link beside the file that is used in its place.
    tree.write("dangling/skill.md", text("b"));
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert_eq!(names(&found), ["a", "b"]);
    let expected = ["name-folder-mismatch", "file-name-case", "dangling-link"];
    assert_eq!(codes(&found), expected);
    let path = found.diagnostics()[2].path.as_deref().unwrap();
    assert!(path.ends_with("dangling/SKILL.md"), "{path}");
    let none =
        snapshot(DirectorySource::new(tree.path()).with_limits(limits().with_depth(0))).await;
    assert_eq!((names(&none).len(), codes(&none)), (0, vec!["scan-depth"]));
}
