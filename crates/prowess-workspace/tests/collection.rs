//! Bringing back what hostile commands wrote.

mod common;

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use proptest::prelude::*;
use prowess_workspace::{CollectLimit, CollectLimits, RefusedReason, WorkspacePath};

#[test]
fn as_an_ordinary_user_too() {
    again_as_an_ordinary_user(&["as_an_ordinary_user_too"]);
}

#[test]
fn what_matches_is_brought_back_in_order() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    workspace.stage("demo", "d", None, &[file("a.txt", "of the skill")]).unwrap();
    let run = workspace.begin_run().unwrap();
    for name in ["out/b.txt", "out/a.txt", "out/sub/c.txt", "out/d.json", "work/e.txt"] {
        workspace.put(&path(name), name.as_bytes()).unwrap();
    }
    workspace.put(&path(&format!("{run}/log")), b"log").unwrap();
    let run_log = format!("{run}/log");
    for (globs, expected) in [
        (&["out/*.txt"][..], &["out/a.txt", "out/b.txt"][..]),
        (&["$OUTPUT_DIR/**"], &["out/a.txt", "out/b.txt", "out/d.json", "out/sub/c.txt"]),
        (&["${WORK_DIR}/*"], &["work/e.txt"]),
        (&["out/a.txt", "out/*", "out/a.txt"], &["out/a.txt", "out/b.txt", "out/d.json"]),
        (&["skills/demo/out/*.txt"], &["out/a.txt", "out/b.txt"]),
        (&["$SKILLS_DIR/demo/work/*"], &["work/e.txt"]),
        (&["skills/**"], &["skills/demo/a.txt"]),
        (
            &["**/*.txt"],
            &["out/a.txt", "out/b.txt", "out/sub/c.txt", "skills/demo/a.txt", "work/e.txt"],
        ),
        (&["*"], &[]),
        (&["metadata.json", ".new/*"], &[]),
        (&["none/**", "out/none"], &[]),
        (&["out"], &[]),
        (&["$RUN_DIR/*"], &[run_log.as_str()]),
    ] {
        let globs: Vec<_> = globs.iter().map(|glob| (*glob).to_owned()).collect();
        let collected = workspace.collect(&globs, Some(&run), &CollectLimits::default()).unwrap();
        assert_eq!(names(&collected), expected, "{globs:?}");
        assert_eq!((collected.refused_count, collected.limits_hit.len()), (0, 0), "{globs:?}");
    }
    let file = &collect(&workspace, &["out/d.json"]).files[0];
    assert_eq!((file.text(), file.mime_type.as_str()), (Some("out/d.json"), "application/json"));
    assert_eq!((file.size_bytes, file.truncated), (10, false));
    for glob in ["../*", "/etc/*", "$HOME/*", "$RUN_DIR/*"] {
        let error = workspace.collect(&[glob.into()], None, &CollectLimits::default());
        assert_eq!(error.unwrap_err().code(), "invalid_glob", "{glob}");
    }
}

/// Reference §1.13, 1, and every other kind of file that is no file.
#[test]
fn hostile_outputs_are_refused_and_listed() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let out = workspace.path().join("out");
    fs::write(out.join("good"), "good").unwrap();
    symlink(fixture.secret(), out.join("absolute")).unwrap();
    symlink("../../../host/secret", out.join("relative")).unwrap();
    symlink(fixture.host(), out.join("folder")).unwrap();
    symlink("/etc", out.join("etc")).unwrap();
    symlink("good", out.join("inner")).unwrap();
    symlink("nowhere", out.join("dangling")).unwrap();
    symlink("loop", out.join("loop")).unwrap();
    symlink("/proc/self/environ", out.join("proc")).unwrap();
    fs::hard_link(fixture.secret(), out.join("hard")).unwrap();
    fifo(&out.join("fifo"));
    let _socket = std::os::unix::net::UnixListener::bind(out.join("socket")).unwrap();
    let odd = std::ffi::OsString::from_vec(b"latin\xe9".to_vec());
    fs::write(out.join(odd), "x").unwrap();
    fs::write(out.join("new\nline"), "x").unwrap();
    fs::write(out.join("back\\slash"), "x").unwrap();
    let mut expected = vec![
        ("out/absolute", RefusedReason::Symlink),
        ("out/back\\\\slash", RefusedReason::Name),
        ("out/dangling", RefusedReason::Symlink),
        ("out/etc", RefusedReason::Symlink),
        ("out/fifo", RefusedReason::Special),
        ("out/folder", RefusedReason::Symlink),
        ("out/hard", RefusedReason::HardLinked),
        ("out/inner", RefusedReason::Symlink),
        ("out/latin\u{fffd}", RefusedReason::NotUtf8Name),
        ("out/loop", RefusedReason::Symlink),
        ("out/new\\nline", RefusedReason::Name),
        ("out/proc", RefusedReason::Symlink),
        ("out/relative", RefusedReason::Symlink),
        ("out/socket", RefusedReason::Special),
    ];
    if is_root() {
        use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
        let device = makedev(1, 3);
        mknodat(CWD, out.join("device"), FileType::CharacterDevice, Mode::RUSR, device).unwrap();
        expected.push(("out/device", RefusedReason::Special));
    } else {
        fs::write(out.join("locked"), "x").unwrap();
        fs::create_dir(out.join("closed")).unwrap();
        for name in ["locked", "closed"] {
            fs::set_permissions(out.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        expected.push(("out/locked", RefusedReason::Unreadable));
        expected.push(("out/closed", RefusedReason::Unreadable));
    }
    expected.sort_unstable();
    // Control: what looks only at the path reads the secret, by each of these.
    for name in ["absolute", "relative", "folder/secret", "hard"] {
        assert!(out.join(name).starts_with(workspace.path()));
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), SECRET, "{name}");
    }
    for globs in [&["out/*"][..], &["out/**"]] {
        let collected = collect(&workspace, globs);
        assert_eq!(names(&collected), ["out/good"]);
        let mut found = refused(&collected);
        if !globs[0].ends_with("**") && !is_root() {
            found.push(("out/closed", RefusedReason::Unreadable));
            found.sort_unstable();
        }
        assert_eq!(found, expected);
    }
    // Asked for by name, and through a link on the way.
    for (glob, name) in [("out/folder/secret", "out/folder"), ("out/etc/*", "out/etc")] {
        let collected = collect(&workspace, &[glob]);
        assert_eq!(names(&collected), Vec::<&str>::new());
        assert_eq!(refused(&collected), [(name, RefusedReason::Symlink)], "{glob}");
    }
    for (name, code) in [
        ("absolute", "is_link"),
        ("folder/secret", "is_link"),
        ("loop", "is_link"),
        ("hard", "not_a_file"),
        ("fifo", "not_a_file"),
        ("socket", "not_a_file"),
        ("", "not_a_file"),
        ("good/x", "not_a_folder"),
        ("none", "not_found"),
    ] {
        let error = workspace.read(&path(&format!("out/{name}")), 99).unwrap_err();
        assert_eq!(error.code(), code, "{name}: {error}");
    }
}

#[test]
fn a_setuid_program_comes_back_as_bytes_only() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    workspace.put(&path("out/tool"), b"\x7fELF\x02\x01\x01\0").unwrap();
    let mode = fs::Permissions::from_mode(0o6755);
    fs::set_permissions(workspace.path().join("out/tool"), mode).unwrap();
    let collected = collect(&workspace, &["out/*"]);
    assert_eq!(collected.files[0].bytes, b"\x7fELF\x02\x01\x01\0");
    assert!(!collected.files[0].is_text());
}

/// Reference §1.13, 9.
#[test]
fn wildcards_in_names_and_in_the_path_of_the_workspace_do_not_matter() {
    let fixture = Fixture::named("a[b]*{c,d}?\\e");
    let workspace = fixture.open("[x]*");
    for name in ["out/[a].txt", "out/a.txt", "out/*", "out/{a,b}", "out/?"] {
        workspace.put(&path(name), name.as_bytes()).unwrap();
    }
    // Control: a glob of the whole path does not match what is there.
    let whole = format!("{}/out/a.txt", workspace.path().display());
    let naive = globset::GlobBuilder::new(&whole).literal_separator(true).build();
    let found =
        naive.is_ok_and(|glob| glob.compile_matcher().is_match(workspace.path().join("out/a.txt")));
    assert!(!found);
    assert_eq!(collect(&workspace, &["out/*"]).files.len(), 5);
    assert_eq!(names(&collect(&workspace, &["out/a.txt"])), ["out/a.txt"]);
    assert_eq!(names(&collect(&workspace, &["out/\\[a\\].txt"])), ["out/[a].txt"]);
    assert_eq!(names(&collect(&workspace, &["out/\\*"])), ["out/*"]);
    assert_eq!(names(&collect(&workspace, &["out/[[]a[]].txt"])), ["out/[a].txt"]);
}

#[test]
fn every_limit_holds_at_its_edge() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    for name in ["out/1", "out/2", "out/3"] {
        workspace.put(&path(name), b"1234567890").unwrap();
    }
    let collect = |change: &dyn Fn(&mut CollectLimits)| {
        let mut limits = CollectLimits::default();
        change(&mut limits);
        workspace.collect(&["out/**".into()], None, &limits).unwrap()
    };
    let all = collect(&|limits| {
        limits.max_files = 3;
        limits.max_file_bytes = 10;
        limits.max_total_bytes = 30;
        limits.max_entries = 3;
        limits.max_globs = 1;
        limits.max_depth = 2;
    });
    assert_eq!((all.files.len(), all.refused_count, all.limits_hit.len()), (3, 0, 0));

    let collected = collect(&|limits| limits.max_files = 2);
    assert_eq!(names(&collected), ["out/1", "out/2"]);
    assert_eq!(refused(&collected), [("out/3", RefusedReason::TooMany)]);
    assert_eq!(collected.limits_hit, [CollectLimit::MaxFiles]);

    let collected = collect(&|limits| limits.max_file_bytes = 9);
    let file = &collected.files[0];
    assert_eq!((file.text(), file.size_bytes, file.truncated), (Some("123456789"), 10, true));
    assert_eq!(collected.limits_hit, [CollectLimit::MaxFileBytes]);

    let collected = collect(&|limits| limits.max_total_bytes = 29);
    assert_eq!(names(&collected), ["out/1", "out/2"]);
    assert_eq!(refused(&collected), [("out/3", RefusedReason::TotalBytes)]);
    assert_eq!(collected.limits_hit, [CollectLimit::MaxTotalBytes]);

    let collected = collect(&|limits| limits.max_entries = 2);
    assert_eq!(collected.files.len(), 2);
    assert_eq!(collected.limits_hit, [CollectLimit::MaxEntries]);

    let collected = collect(&|limits| {
        limits.max_files = 0;
        limits.max_refused = 2;
    });
    assert_eq!((collected.refused.len(), collected.refused_count), (2, 3));
    assert_eq!(collected.refused[0].name, "out/1");

    workspace.put(&path("out/a/b/c"), b"x").unwrap();
    let collected = collect(&|limits| limits.max_depth = 4);
    assert_eq!((collected.files.len(), collected.refused_count), (4, 0));
    let collected = collect(&|limits| limits.max_depth = 3);
    assert_eq!(refused(&collected), [("out/a/b", RefusedReason::Depth)]);
    assert_eq!(collected.limits_hit, [CollectLimit::MaxDepth]);

    let mut limits = CollectLimits::default();
    limits.max_globs = 1;
    let globs = vec!["out/*".to_owned(); 2];
    assert_eq!(workspace.collect(&globs, None, &limits).unwrap_err().code(), "limit_exceeded");
}

#[test]
fn huge_deep_and_countless_outputs_cost_no_more_than_the_limits() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let out = workspace.path().join("out");
    fs::File::create(out.join("a-hole")).unwrap().set_len(1 << 42).unwrap();
    fs::write(out.join("b-é"), "é".repeat(3 << 20)).unwrap();
    deep(&out, 3000);
    fs::create_dir(out.join("many")).unwrap();
    for at in 0..100_000 {
        fs::File::create(out.join(format!("many/{at:06}"))).unwrap();
    }
    let collected = collect(&workspace, &["out/**"]);
    assert_eq!(collected.files.len(), 100);
    let hole = &collected.files[0];
    assert_eq!((hole.bytes.len(), hole.size_bytes, hole.truncated), (4 << 20, 1 << 42, true));
    assert_eq!(hole.text(), None);
    let text = &collected.files[1];
    assert_eq!((text.truncated, text.text().map(str::len)), (true, Some(4 << 20)));
    assert_eq!(collected.files[2].name, "out/many/000000");
    // Those too many, and the depth.
    assert_eq!(collected.refused_count, 100_000 + 2 - 100 + 1);
    assert_eq!(collected.refused.len(), 100);
    assert_eq!(
        collected.limits_hit,
        [CollectLimit::MaxFiles, CollectLimit::MaxFileBytes, CollectLimit::MaxDepth]
    );
    drop(workspace);
    assert!(fixture.workspaces.remove(&id("a")).unwrap());
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_is_swapped_for_a_link_meanwhile_is_never_followed() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let out = workspace.path().join("out");
    let work = workspace.path().join("work");
    // Control: between a look and the reading, the file becomes the secret.
    fs::write(out.join("control"), "mine").unwrap();
    assert!(fs::symlink_metadata(out.join("control")).unwrap().is_file());
    symlink(fixture.secret(), work.join("link")).unwrap();
    fs::rename(work.join("link"), out.join("control")).unwrap();
    assert_eq!(fs::read_to_string(out.join("control")).unwrap(), SECRET);
    fs::remove_file(out.join("control")).unwrap();

    // A file and a folder, each exchanged with a link that leads to the host.
    fs::write(out.join("secret"), "mine").unwrap();
    symlink(fixture.secret(), work.join("file")).unwrap();
    fs::create_dir(out.join("folder")).unwrap();
    fs::write(out.join("folder/secret"), "mine").unwrap();
    symlink(fixture.host(), work.join("folder")).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !is_over.load(Ordering::Relaxed) {
                for (a, b) in [("file", "secret"), ("folder", "folder")] {
                    let (a, b) = (work.join(a), out.join(b));
                    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        // However this ends, the other thread ends too.
        let _end = End(&is_over);
        let (mut whole, mut links) = (0, 0);
        for _ in 0..1000 {
            let collected = collect(&workspace, &["out/**", "out/folder/secret"]);
            for file in &collected.files {
                assert_eq!(file.text(), Some("mine"), "{}", file.name);
                whole += 1;
            }
            links += collected.refused_count;
            for name in ["out/secret", "out/folder/secret", "skills/../out/secret"] {
                let Ok(name) = WorkspacePath::parse(name) else { continue };
                if let Ok(file) = workspace.read(&name, 99) {
                    assert_eq!(file.text(), Some("mine"));
                }
                let copied = workspace.copy_within(&name, &path("work/copy"));
                if copied.is_ok() {
                    assert_eq!(fs::read_to_string(work.join("copy")).unwrap(), "mine");
                }
                let _ = workspace.put(&path("out/folder/put"), b"mine");
            }
        }
        assert!(whole > 0 && links > 0, "the race took place: {whole} {links}");
    });
    fixture.assert_host_is_intact();
}

/// A tree full of traps: everything outside says so.
fn trapped(fixture: &Fixture) -> prowess_workspace::Workspace {
    let workspace = fixture.open("a");
    workspace.stage("x", "d", None, &[file("a", "mine")]).unwrap();
    let at = workspace.path();
    for folder in ["out", "work", "runs"] {
        fs::create_dir_all(at.join(folder).join("a/b")).unwrap();
        for name in ["a/file", "a/b/file", "file"] {
            fs::write(at.join(folder).join(name), "mine").unwrap();
        }
        for parent in ["", "a", "a/b"] {
            let parent = at.join(folder).join(parent);
            symlink(fixture.host(), parent.join("host")).unwrap();
            symlink(fixture.secret(), parent.join("secret")).unwrap();
            symlink("..", parent.join("up")).unwrap();
            symlink("/", parent.join("root")).unwrap();
        }
    }
    workspace
}

/// Anything that can be written of these.
fn written() -> impl Strategy<Value = String> {
    let parts = vec![
        "out",
        "work",
        "runs",
        "skills",
        "x",
        "a",
        "b",
        "file",
        "host",
        "secret",
        "up",
        "root",
        "..",
        ".",
        "",
        "*",
        "**",
        "?",
        "[a-z]*",
        "{out,..}",
        "{a/b,host/..}",
        "s*",
        "$OUTPUT_DIR",
        "${WORK_DIR}",
        "%2e%2e",
        "\\..",
        "[.][.]",
        "etc",
        "passwd",
        "inputs",
        ".venv",
        "~",
    ];
    prop::collection::vec(prop::sample::select(parts), 1..7).prop_map(|parts| parts.join("/"))
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..Default::default() }
}

#[test]
fn no_glob_and_no_path_yields_what_is_outside() {
    let fixture = Fixture::new();
    let workspace = trapped(&fixture);
    let root = workspace.path();
    let limits = CollectLimits::default();
    let mut runner = proptest::test_runner::TestRunner::new(cases(3000));
    let counted = std::cell::Cell::new(0_u64);
    runner
        .run(&written(), |text| {
            let globs = [text];
            if let Ok(collected) = workspace.collect(&globs, None, &limits) {
                for file in &collected.files {
                    prop_assert_eq!(file.text(), Some("mine"), "{:?} {}", &globs, &file.name);
                    let real = root.join(&file.name).canonicalize().unwrap();
                    prop_assert_eq!(real, root.join(&file.name));
                    counted.set(counted.get() + 1);
                }
            }
            let [text] = &globs;
            if let Ok(path) = WorkspacePath::parse(text)
                && let Ok(file) = workspace.read(&path, 99)
            {
                prop_assert_eq!(file.text(), Some("mine"), "{}", text);
            }
            Ok(())
        })
        .unwrap();
    assert!(counted.get() > 0, "something was found");
}

#[test]
fn no_path_leads_a_writer_outside() {
    let mut runner = proptest::test_runner::TestRunner::new(cases(100));
    runner
        .run(&prop::collection::vec(written(), 8), |texts| {
            let fixture = Fixture::new();
            let workspace = trapped(&fixture);
            for text in &texts {
                let Ok(to) = WorkspacePath::parse(text) else { continue };
                let _ = workspace.put(&to, b"mine");
                let _ = workspace.copy_within(&path("out/a"), &to);
                let _ = workspace.link_within(&path("out/a"), &to);
                let _ = workspace.copy_in(&fixture.host(), std::path::Path::new("secret"), &to);
            }
            fixture.assert_host_is_intact();
            let skill = workspace.staged("x", "d", None).unwrap();
            prop_assert!(skill.is_some(), "the skill was changed");
            Ok(())
        })
        .unwrap();
}
