//! Every threat under "Skill folders and paths" (S02, 7). Each attack first succeeds against a
//! control that does what a careless program does, and then fails against us.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use prowess_catalog::{
    CatalogSkill, DirectorySource, LeftOutReason, ReadError, ResourcePath, ResourceScope,
    ScanLimits, Trust,
};
use support::{Tree, codes, names, snapshot, text};

const SECRET: &str = "the secret outside";

/// A skill `victim`, and a secret beside its root.
fn tree() -> (Tree, PathBuf) {
    let tree = Tree::new();
    tree.skill("skills/victim");
    tree.write("skills/victim/references/guide.md", "inside");
    let secret = tree.write("outside/secret.md", SECRET);
    (tree, secret)
}

async fn victim(tree: &Tree) -> CatalogSkill {
    let found = snapshot(DirectorySource::new(tree.at("skills"))).await;
    found.get("victim").unwrap().clone()
}

/// What a careless program does: join and read.
fn careless(tree: &Tree, path: &str) -> std::io::Result<String> {
    fs::read_to_string(tree.at("skills/victim").join(path))
}

/// What we do, from the text that a model wrote.
async fn read(skill: &CatalogSkill, path: &str) -> Result<String, ReadError> {
    let invalid = |cause| ReadError::InvalidPath { path: path.to_owned(), cause };
    let path = ResourcePath::parse(path).map_err(invalid)?;
    Ok(String::from_utf8_lossy(&skill.read_resource(&path).await?).into_owned())
}

#[tokio::test]
async fn paths_that_climb_or_start_at_the_root_are_refused() {
    let (tree, secret) = tree();
    let skill = victim(&tree).await;
    assert_eq!(read(&skill, "references/guide.md").await.unwrap(), "inside");
    let absolute = secret.to_str().unwrap();
    for path in ["../../outside/secret.md", "references/../../../outside/secret.md", absolute] {
        assert_eq!(careless(&tree, path).unwrap(), SECRET, "the control must succeed: {path}");
        assert_eq!(read(&skill, path).await.unwrap_err().code(), "invalid_path", "{path}");
    }
    // Up and down again stays inside, and is refused all the same: nobody needs it.
    assert!(careless(&tree, "references/../references/guide.md").is_ok());
    assert!(read(&skill, "references/../references/guide.md").await.is_err());
}

#[tokio::test]
async fn encoded_and_backslashed_forms_are_names_or_refused() {
    let (tree, _) = tree();
    let skill = victim(&tree).await;
    // The control: a program that decodes or translates before it joins.
    for (path, decoded) in [
        ("%2e%2e/%2e%2e/outside/secret.md", "../../outside/secret.md"),
        ("..\\..\\outside\\secret.md", "../../outside/secret.md"),
        ("..%2f..%2foutside%2fsecret.md", "../../outside/secret.md"),
    ] {
        assert_eq!(careless(&tree, decoded).unwrap(), SECRET);
        let code = read(&skill, path).await.unwrap_err().code();
        assert!(matches!(code, "not_found" | "invalid_path"), "{path}: {code}");
    }
    for path in ["C:/x", "c:x", "/", "", ".", "./.", "a\0b", "a\nb"] {
        assert_eq!(read(&skill, path).await.unwrap_err().code(), "invalid_path", "{path:?}");
    }
}

#[tokio::test]
async fn over_long_paths_are_refused_at_their_limit() {
    let (tree, _) = tree();
    let skill = victim(&tree).await;
    let name = "n".repeat(ResourcePath::MAX_NAME_BYTES);
    assert!(ResourcePath::parse(&name).is_ok());
    assert_eq!(read(&skill, &name).await.unwrap_err().code(), "not_found");
    assert!(ResourcePath::parse(&format!("{name}n")).is_err());
    let long = "d/".repeat(ResourcePath::MAX_BYTES / 2);
    assert!(ResourcePath::parse(&long).is_ok());
    assert!(ResourcePath::parse(&format!("{long}d")).is_err());
}

#[tokio::test]
async fn links_that_leave_the_folder_are_refused() {
    let (tree, secret) = tree();
    tree.link(&secret, "skills/victim/references/absolute.md");
    tree.link("../../../outside/secret.md", "skills/victim/references/relative.md");
    tree.link(tree.at("outside"), "skills/victim/assets");
    tree.link("absolute.md", "skills/victim/references/chain.md");
    tree.link("guide.md", "skills/victim/references/inside.md");
    tree.link("/proc/self/root/etc/hostname", "skills/victim/references/magic.md");
    let skill = victim(&tree).await;
    for path in [
        "references/absolute.md",
        "references/relative.md",
        "assets/secret.md",
        "references/chain.md",
    ] {
        assert_eq!(careless(&tree, path).unwrap(), SECRET, "the control must succeed: {path}");
        assert_eq!(read(&skill, path).await.unwrap_err().code(), "outside_skill", "{path}");
    }
    assert_eq!(read(&skill, "references/magic.md").await.unwrap_err().code(), "outside_skill");
    // A link that stays inside is a file like others.
    assert_eq!(read(&skill, "references/inside.md").await.unwrap(), "inside");
    // None of them is listed, and each is named with the reason.
    let listing = skill.resources(ResourceScope::Recursive).await.unwrap();
    let listed: Vec<&str> = listing.resources.iter().map(|r| r.path.as_str()).collect();
    assert_eq!(listed, ["references/guide.md", "references/inside.md"]);
    let left_out: Vec<&str> = listing.left_out.iter().map(|left| left.path.as_str()).collect();
    assert_eq!(
        left_out,
        [
            "assets",
            "references/absolute.md",
            "references/chain.md",
            "references/magic.md",
            "references/relative.md"
        ]
    );
}

/// The skill's own folder is swapped after it was found.
#[tokio::test]
async fn a_skill_folder_that_was_replaced_opens_nothing() {
    let (tree, _) = tree();
    for trust in [Trust::Trusted, Trust::Untrusted] {
        let source = DirectorySource::new(tree.at("skills")).with_trust(trust);
        let found = snapshot(source).await;
        let skill = found.get("victim").unwrap();
        fs::rename(tree.at("skills/victim"), tree.at("aside")).unwrap();
        tree.link(tree.at("outside"), "skills/victim");
        assert_eq!(careless(&tree, "secret.md").unwrap(), SECRET, "the control must succeed");
        assert_eq!(read(skill, "secret.md").await.unwrap_err().code(), "content_changed");
        assert!(skill.resources(ResourceScope::Recursive).await.is_err());
        // Nor if there is a SKILL.md, but another one.
        tree.write("outside/SKILL.md", text("victim"));
        assert_eq!(read(skill, "secret.md").await.unwrap_err().code(), "content_changed");
        fs::remove_file(tree.at("outside/SKILL.md")).unwrap();
        fs::remove_file(tree.at("skills/victim")).unwrap();
        fs::rename(tree.at("aside"), tree.at("skills/victim")).unwrap();
        assert_eq!(read(skill, "references/guide.md").await.unwrap(), "inside");
    }
}

#[tokio::test]
async fn version_control_inside_a_skill_is_neither_listed_nor_read() {
    let (tree, _) = tree();
    tree.write("skills/victim/.git/config", "token = secret");
    tree.write("skills/victim/scripts/.svn/entries", "x");
    assert!(careless(&tree, ".git/config").is_ok());
    let skill = victim(&tree).await;
    for path in [".git/config", "scripts/.svn/entries"] {
        assert_eq!(read(&skill, path).await.unwrap_err().code(), "not_found", "{path}");
    }
    let listing = skill.resources(ResourceScope::Recursive).await.unwrap();
    assert_eq!(listing.resources.len(), 1);
}

#[tokio::test]
async fn loops_of_links_end() {
    let (tree, _) = tree();
    tree.link("b.md", "skills/victim/a.md");
    tree.link("a.md", "skills/victim/b.md");
    tree.link(".", "skills/victim/again");
    let skill = victim(&tree).await;
    assert_eq!(read(&skill, "a.md").await.unwrap_err().code(), "outside_skill");
    // The control: a walk that follows links goes round until the system stops it.
    let round = tree.at("skills/victim").join("again/".repeat(30)).join("SKILL.md");
    assert!(fs::metadata(round).is_ok());
    let listing = skill.resources(ResourceScope::Recursive).await.unwrap();
    let listed: Vec<&str> = listing.resources.iter().map(|r| r.path.as_str()).collect();
    assert_eq!(listed, ["references/guide.md"]);
}

/// A folder is swapped with a link that leads outside, 10⁵ times, while we read through it.
#[test]
fn a_hundred_thousand_swaps_between_check_and_open_leak_nothing() {
    const SWAPS: usize = 100_000;
    let (tree, _) = tree();
    tree.write("skills/victim/references/secret.md", "inside");
    tree.link(tree.at("outside"), "skills/victim/swapped");
    let folder = fs::canonicalize(tree.at("skills/victim")).unwrap();
    let swap = {
        let (a, b) = (folder.join("references"), folder.join("swapped"));
        move || {
            let (here, flags) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
            rustix::fs::renameat_with(here, &a, here, &b, flags).unwrap();
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = |limit: usize| {
        let (swap, stop) = (swap.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut swaps = 0;
            while swaps < limit && !stop.load(Ordering::Relaxed) {
                swap();
                swaps += 1;
            }
            // Leave everything as it was.
            if swaps % 2 == 1 {
                swap();
            }
            swaps
        })
    };

    // The control: a program that checks first and opens then.
    let flips = swapper(usize::MAX);
    let deadline = Instant::now() + Duration::from_secs(30);
    let leaked = loop {
        let path = folder.join("references/secret.md");
        let checked = fs::canonicalize(&path).is_ok_and(|real| real.starts_with(&folder));
        if checked && fs::read_to_string(&path).is_ok_and(|content| content == SECRET) {
            break true;
        }
        if Instant::now() > deadline {
            break false;
        }
    };
    stop.store(true, Ordering::Relaxed);
    flips.join().unwrap();
    assert!(leaked, "the control must leak");

    // We check in opening.
    stop.store(false, Ordering::Relaxed);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let skill = runtime.block_on(victim(&tree));
    let flips = swapper(SWAPS);
    let (mut inside, mut refused) = (0_u64, 0_u64);
    while !flips.is_finished() {
        match runtime.block_on(read(&skill, "references/secret.md")) {
            Ok(content) => {
                assert_eq!(content, "inside");
                inside += 1;
            }
            Err(error) => {
                assert!(!matches!(error.code(), "invalid_path"), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!(flips.join().unwrap(), SWAPS);
    assert!(inside > 0 && refused > 0, "{inside} {refused}");
}

#[tokio::test]
async fn pipes_devices_and_sockets_are_no_files_and_block_nothing() {
    let (tree, _) = tree();
    let pipe = tree.at("skills/victim/references/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = tree.at("skills/victim/references/socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    tree.skill("skills/pipe-skill");
    let skill_pipe = tree.at("skills/pipe-skill/SKILL.md");
    fs::remove_file(&skill_pipe).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&skill_pipe).status().unwrap().success());
    tree.link("/dev/zero", "skills/zero/SKILL.md");

    // The control: opening the pipe as a file does not come back.
    let (done, is_done) = std::sync::mpsc::channel();
    let path = pipe.clone();
    std::thread::spawn(move || {
        let _ = fs::read(path);
        let _ = done.send(());
    });
    assert!(is_done.recv_timeout(Duration::from_millis(300)).is_err(), "the control must hang");
    // Let it go.
    drop(fs::File::options().write(true).open(&pipe).unwrap());
    is_done.recv_timeout(Duration::from_secs(10)).unwrap();

    let work = async {
        let found = snapshot(DirectorySource::new(tree.at("skills"))).await;
        assert_eq!(names(&found), ["victim"]);
        assert_eq!(codes(&found), ["unreadable-file", "unreadable-file"]);
        let skill = found.get("victim").unwrap();
        for path in ["references/pipe", "references/socket", "references"] {
            assert_eq!(read(skill, path).await.unwrap_err().code(), "not_a_file", "{path}");
        }
        let listing = skill.resources(ResourceScope::Recursive).await.unwrap();
        assert_eq!(listing.left_out.len(), 2);
    };
    tokio::time::timeout(Duration::from_secs(10), work).await.expect("nothing blocks");
}

#[tokio::test]
async fn hard_links_are_refused_where_the_source_is_not_trusted() {
    let (tree, secret) = tree();
    fs::hard_link(&secret, tree.at("skills/victim/references/hard.md")).unwrap();
    assert_eq!(careless(&tree, "references/hard.md").unwrap(), SECRET);
    let source = DirectorySource::new(tree.at("skills")).with_trust(Trust::Untrusted);
    let found = snapshot(source).await;
    let skill = found.get("victim").unwrap();
    assert_eq!(read(skill, "references/hard.md").await.unwrap_err().code(), "hard_link");
    assert_eq!(read(skill, "references/guide.md").await.unwrap(), "inside");
    let listing = skill.resources(ResourceScope::Recursive).await.unwrap();
    assert_eq!(listing.left_out[0].reason, LeftOutReason::HardLink);
    // Nor is a text believed that may be anybody's.
    fs::hard_link(tree.at("skills/victim/SKILL.md"), tree.at("outside/copy")).unwrap();
    let source = DirectorySource::new(tree.at("skills")).with_trust(Trust::Untrusted);
    let found = snapshot(source).await;
    assert_eq!((names(&found).len(), codes(&found)), (0, vec!["unreadable-file"]));
    // Package managers link files of trusted folders.
    assert_eq!(read(&victim(&tree).await, "references/hard.md").await.unwrap(), SECRET);
}

#[tokio::test]
async fn huge_and_sparse_files_are_not_read() {
    let (tree, _) = tree();
    let limit = ScanLimits::default().resource_bytes;
    for path in ["skills/huge/SKILL.md", "skills/victim/references/huge.md"] {
        let file = fs::File::create(tree.write(path, "")).unwrap();
        file.set_len(200 << 30).unwrap();
    }
    // The control: the system itself would have us read 200 GiB.
    assert_eq!(fs::metadata(tree.at("skills/huge/SKILL.md")).unwrap().len(), 200 << 30);
    let start = Instant::now();
    let found = snapshot(DirectorySource::new(tree.at("skills"))).await;
    assert_eq!((names(&found), codes(&found)), (vec!["victim"], vec!["file-too-large"]));
    let skill = found.get("victim").unwrap();
    assert_eq!(read(skill, "references/huge.md").await.unwrap_err().code(), "too_large");
    assert!(start.elapsed() < Duration::from_secs(10));
    fs::File::options()
        .write(true)
        .open(tree.at("skills/victim/references/huge.md"))
        .unwrap()
        .set_len(limit)
        .unwrap();
    assert_eq!(read(skill, "references/huge.md").await.unwrap().len() as u64, limit);
}

#[tokio::test]
async fn floods_of_files_and_deep_trees_are_cut_and_counted() {
    let (tree, _) = tree();
    for at in 0..300 {
        tree.write(&format!("skills/victim/assets/{at}.txt"), "x");
    }
    let deep = format!("skills/victim/{}end.txt", "d/".repeat(100));
    tree.write(&deep, "x");
    let limits = ScanLimits::default().with_resources(100);
    let found = snapshot(DirectorySource::new(tree.at("skills")).with_limits(limits)).await;
    let skill = found.get("victim").unwrap();
    let listing = skill.resources(ResourceScope::Recursive).await.unwrap();
    assert_eq!(listing.resources.len(), 100);
    assert!(listing.left_out.iter().any(|left| left.reason == LeftOutReason::TooMany));
    let whole = snapshot(DirectorySource::new(tree.at("skills"))).await;
    let listing = whole.get("victim").unwrap().resources(ResourceScope::Recursive).await.unwrap();
    assert_eq!(listing.resources.len(), 301, "300 assets and the guide, not the deep file");
    assert!(
        listing.left_out.iter().any(|left| left.reason == LeftOutReason::TooDeep),
        "{:?}",
        listing.left_out
    );
}

#[tokio::test]
async fn hostile_names_never_become_paths() {
    let (tree, _) = tree();
    for (folder, name) in [
        ("a", "\"../../outside\""),
        ("b", "\"/etc\""),
        ("c", "\"a\\0b\""),
        ("d", "\"..\""),
        ("e", "\"x\\\\y\""),
        ("f", "\"\\u202egnp.exe\""),
    ] {
        tree.write(&format!("skills/{folder}/SKILL.md"), text(name));
    }
    // The control: these names, joined, leave the folder.
    assert!(tree.at("skills/victim").join("../../outside").join("secret.md").exists());
    let found = snapshot(DirectorySource::new(tree.at("skills"))).await;
    assert_eq!(names(&found), ["victim"]);
    assert_eq!(codes(&found).iter().filter(|code| **code == "unsafe-name").count(), 6);
}

#[tokio::test]
async fn text_that_is_no_unicode_is_refused_as_a_skill_and_given_as_a_resource() {
    let (tree, _) = tree();
    tree.write("skills/latin/SKILL.md", b"---\nname: latin\ndescription: caf\xe9\n---\n");
    tree.write("skills/victim/assets/image.bin", b"\xff\0\xfe");
    assert!(fs::read_to_string(tree.at("skills/latin/SKILL.md")).is_err());
    let found = snapshot(DirectorySource::new(tree.at("skills"))).await;
    assert_eq!((names(&found), codes(&found)), (vec!["victim"], vec!["not-utf8"]));
    let path = ResourcePath::parse("assets/image.bin").unwrap();
    let bytes = found.get("victim").unwrap().read_resource(&path).await.unwrap();
    assert_eq!(bytes, b"\xff\0\xfe");
}

/// A tree with links of every kind, made once.
fn maze() -> (Tree, PathBuf) {
    let (tree, _) = tree();
    for path in ["a/b/c.md", "a/d.md", "e.md"] {
        tree.write(&format!("skills/victim/{path}"), "inside");
    }
    tree.link("a/b", "skills/victim/in");
    tree.link("../..", "skills/victim/up");
    tree.link("../../outside", "skills/victim/out");
    tree.link("/", "skills/victim/root");
    tree.link("../e.md", "skills/victim/a/back");
    tree.link("../../../outside/secret.md", "skills/victim/a/leak");
    tree.link("in/c.md", "skills/victim/chain");
    tree.link("out", "skills/victim/chain-out");
    let folder = fs::canonicalize(tree.at("skills/victim")).unwrap();
    (tree, folder)
}

#[test]
fn the_resolver_never_yields_a_path_outside_its_root() {
    let (tree, folder) = maze();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let skill = runtime.block_on(victim(&tree));
    let part = prop::sample::select(vec![
        "a",
        "b",
        "c.md",
        "d.md",
        "e.md",
        "in",
        "up",
        "out",
        "root",
        "back",
        "leak",
        "chain",
        "chain-out",
        "..",
        ".",
        "",
        "secret.md",
        "outside",
        "skills",
        "victim",
        "SKILL.md",
        "%2e%2e",
        "..\\",
        "tmp",
        "etc",
    ]);
    let random = prop::collection::vec(part.clone(), 1..7).prop_map(|parts| parts.join("/"));
    let target = prop::sample::select(vec![
        "a/d.md",
        "chain",
        "in/c.md",
        "a/leak",
        "out/secret.md",
        "chain-out/secret.md",
        "up/outside/secret.md",
    ]);
    let near = (target, part).prop_map(|(path, part)| match part {
        "." | "" => path.replace('/', &format!("/{part}/")),
        _ => path.to_owned(),
    });
    let path = prop_oneof![3 => random, 1 => near];
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let (given, escapes) = (std::cell::Cell::new(0_u32), std::cell::Cell::new(0_u32));
    runner
        .run(&path, |path| {
            let names: Vec<&str> =
                path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
            let oracle = fs::canonicalize(folder.join(names.join("/")));
            let inside = oracle.as_ref().is_ok_and(|real| real.starts_with(&folder));
            let result = runtime.block_on(read(&skill, &path));
            if let Ok(content) = result {
                prop_assert!(inside, "{} leads to {:?}", path, oracle);
                prop_assert!(content != SECRET);
                given.set(given.get() + 1);
            } else if oracle.is_ok_and(|real| real.is_file()) && !inside {
                escapes.set(escapes.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    // The generator reaches both sides.
    assert!(given.get() > 500 && escapes.get() > 500, "{given:?} {escapes:?}");
}

/// Any text, and texts of the pieces that paths are made of.
fn path_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("".to_owned()),
        Just(".".to_owned()),
        Just("..".to_owned()),
        Just("C:".to_owned()),
        Just("c:a".to_owned()),
        Just("%2e%2e".to_owned()),
        Just("a b".to_owned()),
        "[a-zA-Z:.]{1,3}",
        any::<String>(),
    ];
    prop_oneof![
        any::<String>(),
        prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.join("/"))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn a_resource_path_is_always_relative_and_never_climbs(text in path_like()) {
        if let Ok(path) = ResourcePath::parse(&text) {
            let path = Path::new(path.as_str());
            prop_assert!(path.is_relative());
            let all_normal = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            prop_assert!(all_normal);
            let again = ResourcePath::parse(path.to_str().unwrap()).unwrap();
            prop_assert_eq!(again.as_str(), path.to_str().unwrap());
        }
    }
}
