//! Resources, docs, digests, and content by digest (S02, 4 and 5).

mod support;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use prowess_catalog::{
    Catalog, CatalogSkill, ContentStore, DirectorySource, FileContent, MemoryContent, MemoryFile,
    MemorySource, Nested, ResourceKind, ResourceScope, ScanLimits, TreeDigest,
};
use prowess_format::Digest;
use support::{Tree, snapshot, text};

const FILES: [&str; 10] = [
    "LICENSE.txt",
    "agents/helper.md",
    "assets/logo.png",
    "docs/deep/er.md",
    "examples/one.md",
    "reference/api.md",
    "references/guide.md",
    "references/nested/more.txt",
    "scripts/run.py",
    "templates/page.html",
];

async fn skill_with_files(tree: &Tree) -> CatalogSkill {
    tree.skill("a");
    for file in FILES {
        tree.write(&format!("a/{file}"), file);
    }
    fs::set_permissions(tree.at("a/scripts/run.py"), fs::Permissions::from_mode(0o755)).unwrap();
    snapshot(DirectorySource::new(tree.path())).await.get("a").unwrap().clone()
}

async fn paths(skill: &CatalogSkill, scope: ResourceScope) -> Vec<String> {
    let listing = skill.resources(scope).await.unwrap();
    listing.resources.iter().map(|resource| resource.path.to_string()).collect()
}

#[tokio::test]
async fn scopes_decide_how_deep_resources_are_found() {
    let tree = Tree::new();
    let skill = skill_with_files(&tree).await;
    assert_eq!(paths(&skill, ResourceScope::Recursive).await, FILES);
    let one_level: Vec<&str> =
        FILES.into_iter().filter(|path| path.matches('/').count() <= 1).collect();
    assert_eq!(paths(&skill, ResourceScope::OneLevel).await, one_level);
    assert_eq!(
        paths(&skill, ResourceScope::ThreeFolders).await,
        ["LICENSE.txt", "assets/logo.png", "references/guide.md", "scripts/run.py"]
    );
}

#[tokio::test]
async fn memory_and_folders_agree() {
    let tree = Tree::new();
    let on_disk = skill_with_files(&tree).await;
    let mut source = MemorySource::new("m").with_skill("a", text("a"));
    for path in FILES {
        let file = match path {
            "scripts/run.py" => MemoryFile::executable(path),
            _ => MemoryFile::new(path),
        };
        source = source.with_file("a", path, file);
    }
    let snapshot = Catalog::builder().source(source).build().refresh().await;
    let in_memory = snapshot.get("a").unwrap();
    for scope in [ResourceScope::OneLevel, ResourceScope::Recursive, ResourceScope::ThreeFolders] {
        let (a, b) =
            (on_disk.resources(scope).await.unwrap(), in_memory.resources(scope).await.unwrap());
        assert_eq!(a, b, "{scope:?}");
    }
    assert_eq!(on_disk.tree_digest().await.unwrap(), in_memory.tree_digest().await.unwrap());
    assert_eq!(on_disk.found().digest, in_memory.found().digest);
}

#[tokio::test]
async fn kinds_come_from_folders() {
    let tree = Tree::new();
    let skill = skill_with_files(&tree).await;
    let listing = skill.resources(ResourceScope::Recursive).await.unwrap();
    let kind = |path: &str| {
        let found = listing.resources.iter().find(|resource| resource.path.as_str() == path);
        found.unwrap_or_else(|| panic!("{path}")).kind
    };
    for (path, expected) in [
        ("LICENSE.txt", ResourceKind::Other),
        ("agents/helper.md", ResourceKind::Other),
        ("assets/logo.png", ResourceKind::Asset),
        ("docs/deep/er.md", ResourceKind::Reference),
        ("examples/one.md", ResourceKind::Reference),
        ("reference/api.md", ResourceKind::Reference),
        ("references/guide.md", ResourceKind::Reference),
        ("scripts/run.py", ResourceKind::Script),
        ("templates/page.html", ResourceKind::Asset),
    ] {
        assert_eq!(kind(path), expected, "{path}");
    }
    let executable: Vec<&str> = listing
        .resources
        .iter()
        .filter(|resource| resource.executable)
        .map(|resource| resource.path.as_str())
        .collect();
    assert_eq!(executable, ["scripts/run.py"]);
}

#[tokio::test]
async fn docs_are_texts_at_any_depth_in_a_stable_order() {
    let tree = Tree::new();
    let skill = skill_with_files(&tree).await;
    tree.write("a/inner/SKILL.md", text("inner"));
    tree.write("a/UPPER.MD", "x");
    tree.link("/etc/hostname", "a/references/elsewhere.md");
    let listing = skill.docs().await.unwrap();
    let docs: Vec<&str> = listing.resources.iter().map(|doc| doc.path.as_str()).collect();
    assert_eq!(
        docs,
        [
            "LICENSE.txt",
            "UPPER.MD",
            "agents/helper.md",
            "docs/deep/er.md",
            "examples/one.md",
            "reference/api.md",
            "references/guide.md",
            "references/nested/more.txt",
        ]
    );
    // What may have been one is not forgotten.
    let left_out: Vec<&str> = listing.left_out.iter().map(|left| left.path.as_str()).collect();
    assert_eq!(left_out, ["references/elsewhere.md"]);
}

/// These never change: a digest that was written down years ago must still be right. They were
/// computed by another program, from the description of the digest alone.
#[test]
fn golden_vectors_of_the_tree_digest() {
    let of = |files: &[(&str, bool, &str)]| {
        TreeDigest::of(files.iter().map(|(path, x, text)| (*path, *x, text.as_bytes()))).to_string()
    };
    assert_eq!(of(&[]), "v1:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(
        of(&[("SKILL.md", false, "text")]),
        "v1:07ac1318df71f4eafdc199b337730379a97d499b7270b4114b15f5bb3db7eb1e"
    );
    let files =
        [("SKILL.md", false, "a\n"), ("scripts/run.sh", true, "#!/bin/sh\n"), ("é.txt", false, "")];
    assert_eq!(of(&files), "v1:f496e458c72e26aa51d883ca503abe1c875589db039d2021223d14022b5496f5");
    // The order in which files come does not matter; everything else does.
    let mut reversed = files;
    reversed.reverse();
    assert_eq!(of(&files), of(&reversed));
    let changed = [
        [("SKILL.md", true, "a\n"), files[1], files[2]],
        [("SKILL.md", false, "b\n"), files[1], files[2]],
        [("SKILL.MD", false, "a\n"), files[1], files[2]],
        // The same bytes in a row, cut elsewhere.
        [("SKILL.md", false, "a\nscripts/run.sh"), ("", true, "#!/bin/sh\n"), files[2]],
    ];
    for other in changed {
        assert_ne!(of(&files), of(&other));
    }
}

#[tokio::test]
async fn the_tree_digest_sees_every_change() {
    let tree = Tree::new();
    let skill = skill_with_files(&tree).await;
    let first = skill.tree_digest().await.unwrap();
    assert_eq!(skill.tree_digest().await.unwrap(), first);
    tree.write("a/docs/deep/er.md", "changed");
    let second = skill.tree_digest().await.unwrap();
    assert_ne!(first, second);
    fs::set_permissions(tree.at("a/LICENSE.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_ne!(skill.tree_digest().await.unwrap(), second);
}

#[tokio::test]
async fn a_tree_digest_covers_everything_or_is_refused() {
    let tree = Tree::new();
    let skill = skill_with_files(&tree).await;
    tree.write("a/scripts/node_modules/dep/index.js", "one");
    let first = skill.tree_digest().await.unwrap();
    tree.write("a/scripts/node_modules/dep/index.js", "two");
    assert_ne!(skill.tree_digest().await.unwrap(), first);
    // Version control, links to elsewhere and empty folders are no content.
    let second = skill.tree_digest().await.unwrap();
    tree.write("a/.git/HEAD", "x");
    tree.link("/etc/hostname", "a/references/elsewhere");
    fs::create_dir(tree.at("a/empty")).unwrap();
    assert_eq!(skill.tree_digest().await.unwrap(), second);
    // The exec bit of the text itself counts, once it is found again.
    fs::set_permissions(tree.at("a/SKILL.md"), fs::Permissions::from_mode(0o755)).unwrap();
    let again = snapshot(DirectorySource::new(tree.path())).await;
    assert_ne!(again.get("a").unwrap().tree_digest().await.unwrap(), second);
    // What cannot be counted makes it impossible.
    tree.write(&format!("a/{}deep.md", "d/".repeat(20)), "x");
    let error = skill.tree_digest().await.unwrap_err();
    assert_eq!(error.code(), "incomplete", "{error}");
    let many = ScanLimits::default().with_resources(3);
    let few = snapshot(DirectorySource::new(tree.path()).with_limits(many)).await;
    assert_eq!(few.get("a").unwrap().tree_digest().await.unwrap_err().code(), "incomplete");
}

#[tokio::test]
async fn a_folder_has_the_tree_digest_of_its_skill_even_if_the_skill_cannot_be_used() {
    let tree = Tree::new();
    let skill = skill_with_files(&tree).await;
    tree.link("/etc/hostname", "a/elsewhere.md");
    let limits = ScanLimits::default();
    let of = |file: &str, text: &str, limits| {
        TreeDigest::of_folder(&tree.at("a"), file, Digest::of(text.as_bytes()), limits)
    };
    assert_eq!(of("SKILL.md", &text("a"), limits).unwrap(), skill.tree_digest().await.unwrap());
    // What is not the text that was read is refused, and what cannot be counted.
    assert_eq!(of("SKILL.md", "other", limits).unwrap_err().code(), "content_changed");
    assert_eq!(of("none.md", "other", limits).unwrap_err().code(), "not_found");
    let few = of("SKILL.md", &text("a"), limits.with_resources(3));
    assert_eq!(few.unwrap_err().code(), "incomplete");
    let own = |name: &str| {
        let rest = FILES.into_iter().map(|file| (file, file == "scripts/run.py", file.as_bytes()));
        TreeDigest::of(rest.chain([(name, true, b"broken".as_slice())]))
    };
    fs::remove_file(tree.at("a/SKILL.md")).unwrap();
    for name in ["skill.md", "Skill.MD"] {
        let file = tree.write(&format!("a/{name}"), "broken");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(of(name, "broken", limits).unwrap(), own(name), "{name}");
        fs::remove_file(file).unwrap();
    }
}

#[tokio::test]
async fn the_limit_on_resources_is_exact() {
    let tree = Tree::new();
    tree.skill("a");
    tree.write("a/A.md", "x");
    tree.write("a/B.md", "x");
    for (limit, left_out) in [(2, 0), (1, 1)] {
        let limits = ScanLimits::default().with_resources(limit);
        let found = snapshot(DirectorySource::new(tree.path()).with_limits(limits)).await;
        let listing = found.get("a").unwrap().resources(ResourceScope::OneLevel).await.unwrap();
        assert_eq!((listing.resources.len(), listing.left_out.len()), (limit, left_out));
    }
    let unbounded = ScanLimits::default().with_entries(usize::MAX).with_resources(usize::MAX);
    let found = snapshot(DirectorySource::new(tree.path()).with_limits(unbounded)).await;
    assert!(found.get("a").unwrap().resources(ResourceScope::Recursive).await.is_ok());
}

#[tokio::test]
async fn a_lower_case_skill_file_is_no_resource_of_itself() {
    let tree = Tree::new();
    tree.write("a/skill.md", text("a"));
    let found = snapshot(DirectorySource::new(tree.path())).await;
    assert!(paths(found.get("a").unwrap(), ResourceScope::Recursive).await.is_empty());
}

#[tokio::test]
async fn skills_inside_skills_keep_their_files_to_themselves() {
    let tree = Tree::new();
    tree.skill("outer");
    tree.skill("outer/inner");
    tree.write("outer/inner/doc.md", "x");
    tree.write("outer/doc.md", "x");
    let nested = snapshot(DirectorySource::new(tree.path()).with_nested(Nested::Find)).await;
    assert_eq!(paths(nested.get("outer").unwrap(), ResourceScope::Recursive).await, ["doc.md"]);
    assert_eq!(paths(nested.get("inner").unwrap(), ResourceScope::Recursive).await, ["doc.md"]);
}

#[test]
fn young_content_and_crash_leftovers_are_treated_as_what_they_are() {
    let tree = Tree::new();
    let store = FileContent::new(tree.path());
    let digest = store.put(b"just put").unwrap();
    // Nobody has said yet that it is needed.
    assert_eq!(store.collect_garbage(&HashSet::new()).unwrap(), 0);
    assert!(store.get(&digest).unwrap().is_some());
    let leftover = tree.write(&format!("content/{}/.new-crash", &digest.hex()[..2]), "half");
    let foreign = tree.write(&format!("content/{}/notes.txt", &digest.hex()[..2]), "mine");
    let strict = FileContent::new(tree.path()).with_grace(Duration::ZERO);
    assert_eq!(strict.collect_garbage(&HashSet::new()).unwrap(), 1);
    assert!(!leftover.exists() && foreign.exists());
}

fn check_store(store: &dyn ContentStore) {
    let (a, b) = (store.put(b"one").unwrap(), store.put(b"two").unwrap());
    assert_eq!(store.put(b"one").unwrap(), a);
    assert_eq!(a, Digest::of(b"one"));
    assert_eq!(store.get(&a).unwrap().as_deref(), Some(b"one".as_slice()));
    assert_eq!(store.get(&Digest::of(b"three")).unwrap(), None);
    assert_eq!(store.collect_garbage(&HashSet::from([b])).unwrap(), 1);
    assert_eq!(store.get(&a).unwrap(), None);
    assert!(store.get(&b).unwrap().is_some());
    assert_eq!(store.collect_garbage(&HashSet::from([b])).unwrap(), 0);
}

#[test]
fn content_is_kept_by_digest_in_memory_and_in_files() {
    check_store(&MemoryContent::default());
    let tree = Tree::new();
    let store = FileContent::new(tree.at("home")).with_grace(Duration::ZERO);
    assert_eq!(store.collect_garbage(&HashSet::new()).unwrap(), 0);
    check_store(&store);
    // Another process sees the same.
    let other = FileContent::new(tree.at("home"));
    assert!(other.get(&Digest::of(b"two")).unwrap().is_some());
}

#[test]
fn corrupt_content_is_never_given_and_can_be_put_again() {
    let tree = Tree::new();
    let store = FileContent::new(tree.path());
    let digest = store.put(b"right").unwrap();
    let hex = digest.hex();
    let file = tree.at(&format!("content/{}/{}", &hex[..2], &hex[2..]));
    fs::write(&file, b"wrong").unwrap();
    // The control: the file is there, under the name of what it should be.
    assert_eq!(fs::read(&file).unwrap(), b"wrong");
    assert_eq!(store.get(&digest).unwrap_err().code(), "content_corrupt");
    assert_eq!(store.get(&digest).unwrap(), None);
    fs::write(&file, b"wrong").unwrap();
    assert_eq!(store.put(b"right").unwrap(), digest);
    assert_eq!(store.get(&digest).unwrap().as_deref(), Some(b"right".as_slice()));
}

#[test]
fn many_writers_of_the_same_content_agree() {
    let tree = Tree::new();
    let store = Arc::new(FileContent::new(tree.path()));
    let bytes = vec![7_u8; 100_000];
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let digest = store.put(&bytes).unwrap();
                    assert_eq!(store.get(&digest).unwrap().as_deref(), Some(bytes.as_slice()));
                }
            });
        }
    });
    // Nothing is left behind.
    let shelf = fs::read_dir(tree.at("content")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_dir(shelf.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn the_limit_on_the_depth_of_resources_is_exact() {
    let tree = Tree::new();
    tree.skill("a");
    tree.write("a/1/2/deep.md", "x");
    for (depth, resources, left_out) in [(2, 1, 0), (1, 0, 1)] {
        let limits = ScanLimits::default().with_resource_depth(depth);
        let found = snapshot(DirectorySource::new(tree.path()).with_limits(limits)).await;
        let listing = found.get("a").unwrap().resources(ResourceScope::Recursive).await.unwrap();
        assert_eq!((listing.resources.len(), listing.left_out.len()), (resources, left_out));
    }
}

#[tokio::test]
async fn sources_in_memory_are_held_to_the_limit_on_files() {
    let limit = usize::try_from(ScanLimits::default().file_bytes).unwrap();
    for (bytes, skills) in [(limit, 1), (limit + 1, 0)] {
        let mut whole = text("a").into_bytes();
        whole.resize(bytes, b'x');
        let source = MemorySource::new("m").with_skill("a", whole);
        let found = Catalog::builder().source(source).build().refresh().await;
        assert_eq!((found.skills().len(), found.diagnostics().len()), (skills, 1 - skills));
    }
}
