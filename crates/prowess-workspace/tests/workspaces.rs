//! Workspaces: made, used again, kept apart, and removed when they are garbage.

mod common;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use common::*;
use prowess_workspace::{
    EntryKind, InputMode, InputRecord, Workspace, WorkspaceId, WorkspaceLimits, WorkspaceOwner,
    Workspaces,
};

#[test]
fn as_an_ordinary_user_too() {
    again_as_an_ordinary_user(&["as_an_ordinary_user_too"]);
}

#[test]
fn child() {
    let Some((role, folder)) = role() else { return };
    assert_eq!(role, "hold");
    let _workspace = Workspaces::new(folder).open(&id("held")).unwrap();
    say("open");
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn is_there(workspaces: &Fixture, session: &str) -> bool {
    workspaces.folder.path().join("all").join(id(session).as_str()).exists()
}

fn limits(max_age_seconds: u64, max_total_bytes: u64) -> WorkspaceLimits {
    let mut limits = WorkspaceLimits::default();
    limits.max_age_seconds = max_age_seconds;
    limits.max_total_bytes = max_total_bytes;
    limits
}

/// Sets when a workspace was used.
fn used(fixture: &Fixture, session: &str, seconds_ago: u64) {
    let lock = fixture.folder.path().join("all/.locks").join(id(session).as_str());
    let time = SystemTime::now() - Duration::from_secs(seconds_ago);
    fs::File::options().append(true).open(lock).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_session_has_one_workspace_and_another_session_another() {
    let fixture = Fixture::new();
    let first = fixture.open("a");
    first.put(&path("work/x"), b"kept").unwrap();
    let again = fixture.open("a");
    assert_eq!(first.path(), again.path());
    assert_eq!(again.read(&path("work/x"), 10).unwrap().bytes, b"kept");
    let other = fixture.open("b");
    assert_ne!(other.path(), first.path());
    assert_eq!(other.read(&path("work/x"), 10).unwrap_err().code(), "not_found");
    for folder in ["skills", "work", "work/inputs", "out", "runs"] {
        assert!(first.path().join(folder).is_dir(), "{folder}");
    }
    assert!(first.path().is_absolute());
}

#[test]
fn no_session_escapes_or_meets_another_by_its_name() {
    let fixture = Fixture::new();
    let keys = [
        ("a", "b", "../host"),
        ("a", "b", "c"),
        ("a", "bc", ""),
        ("ab", "", "c"),
        ("", "", ""),
        ("a", "b", "../../x"),
        ("a", "b", "/etc"),
        ("a", "b", "."),
        ("a", "b", ".."),
        ("a", "b", "C"),
        ("a", "b/c", ""),
        ("a", "b", "c\0"),
        ("a", "b", "ws_c"),
        ("a", "b", ".locks"),
    ];
    // Control: as a path, the first is the host's folder.
    fixture.open("x");
    assert!(fixture.folder.path().join("all").join(keys[0].2).join("secret").exists());
    let mut paths = HashSet::new();
    for (app, user, session) in keys {
        let workspace = fixture.workspaces.open(&WorkspaceId::new(app, user, session)).unwrap();
        assert_eq!(
            workspace.path().parent(),
            Some(fixture.folder.path().join("all").canonicalize().unwrap().as_path())
        );
        assert!(paths.insert(workspace.path().to_owned()), "{app} {user} {session}");
    }
    fixture.assert_host_is_intact();
}

#[test]
fn commands_own_what_they_may_write_and_nothing_else() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let staged = workspace.stage("demo", "d", None, &[file("a/run.sh", "x"), file("b", "y")]);
    staged.unwrap();
    workspace.put(&path("work/new/file"), b"x").unwrap();
    let run = workspace.begin_run().unwrap();
    let us = rustix::process::geteuid().as_raw();
    let them = workspace.owner().map_or(us, |owner| owner.uid);
    assert_eq!(workspace.owner(), is_root().then_some(WorkspaceOwner::NOBODY));
    for (name, uid, mode) in [
        ("", us, if is_root() { 0o711 } else { 0o700 }),
        ("skills", us, if is_root() { 0o755 } else { 0o700 }),
        ("skills/demo", us, 0o555),
        ("skills/demo/a", us, 0o555),
        ("skills/demo/a/run.sh", us, 0o555),
        ("skills/demo/b", us, 0o444),
        ("skills/demo/.venv", them, 0o700),
        ("work", them, 0o700),
        ("work/inputs", them, 0o700),
        ("work/new", them, 0o755),
        ("work/new/file", them, 0o644),
        ("out", them, 0o700),
        ("runs", them, 0o700),
        (run.as_str(), them, 0o700),
        ("metadata.json", us, 0o600),
    ] {
        let found = fs::symlink_metadata(workspace.path().join(name)).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o7777), (uid, mode), "{name}");
    }
}

#[test]
fn what_a_command_did_to_the_folders_is_mended() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let at = workspace.path().to_owned();
    fs::remove_dir_all(at.join("work/inputs")).unwrap();
    symlink(fixture.host(), at.join("work/inputs")).unwrap();
    fs::remove_dir(at.join("out")).unwrap();
    fs::write(at.join("out"), "").unwrap();
    fs::set_permissions(at.join("runs"), fs::Permissions::from_mode(0o000)).unwrap();
    // Until then, nothing is written through it.
    assert_eq!(workspace.put(&path("work/inputs/x"), b"x").unwrap_err().code(), "is_link");
    drop(workspace);
    let workspace = fixture.open("a");
    workspace.put(&path("work/inputs/x"), b"x").unwrap();
    workspace.put(&path("out/x"), b"x").unwrap();
    workspace.begin_run().unwrap();
    fixture.assert_host_is_intact();
}

#[test]
fn damaged_metadata_is_as_good_as_none() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    workspace.stage("demo", "d", None, &[file("a", "x")]).unwrap();
    for damage in ["", "{", "[]", "{\"skills\": 3}", "null"] {
        fs::write(workspace.path().join("metadata.json"), damage).unwrap();
        assert!(workspace.staged("demo", "d", None).unwrap().is_none(), "{damage}");
    }
    fs::remove_file(workspace.path().join("metadata.json")).unwrap();
    fifo(&workspace.path().join("metadata.json"));
    assert!(workspace.staged("demo", "d", None).unwrap().is_none());
    assert!(!workspace.stage("demo", "d", None, &[file("a", "x")]).unwrap().was_staged);
    assert!(workspace.staged("demo", "d", None).unwrap().is_some());
}

/// Reference §1.13, 11.
#[test]
fn runs_that_begin_together_have_folders_of_their_own() {
    // Control: a time in milliseconds is the same for many.
    let stamp = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let stamps: Vec<_> = (0..1000).map(|_| stamp()).collect();
    assert!(stamps.iter().collect::<HashSet<_>>().len() < stamps.len());

    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let begin = |workspace: &Workspace| -> Vec<String> {
        (0..50).map(|_| workspace.begin_run().unwrap().to_string()).collect()
    };
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let workspace = workspace.clone();
            std::thread::spawn(move || begin(&workspace))
        })
        .collect();
    let runs: Vec<_> = threads.into_iter().flat_map(|it| it.join().unwrap()).collect();
    assert_eq!(runs.iter().collect::<HashSet<_>>().len(), 400);
    assert_eq!(fs::read_dir(workspace.path().join("runs")).unwrap().count(), 400);
}

#[test]
fn garbage_goes_by_age_and_what_is_open_stays() {
    let fixture = Fixture::new();
    for session in ["old", "young", "open"] {
        fixture.open(session);
    }
    let open = fixture.open("open");
    used(&fixture, "old", 1000);
    used(&fixture, "open", 1000);
    let workspaces = fixture.workspaces.clone().with_limits(limits(500, u64::MAX));
    let report = workspaces.collect_garbage().unwrap();
    assert_eq!(report.removed.iter().map(|it| &it.id).collect::<Vec<_>>(), [&id("old")]);
    assert_eq!((report.kept, report.failed.len()), (2, 0));
    assert!(!is_there(&fixture, "old"));
    assert!(is_there(&fixture, "young") && is_there(&fixture, "open"));
    open.put(&path("work/x"), b"still works").unwrap();
    drop(open);
    assert_eq!(workspaces.collect_garbage().unwrap().removed.len(), 1);
    assert!(is_there(&fixture, "young") && !is_there(&fixture, "open"));
}

#[test]
fn garbage_goes_by_size_the_longest_unused_first() {
    let fixture = Fixture::new();
    for (session, age) in [("a", 10), ("b", 30), ("c", 20)] {
        fixture.open(session).put(&path("work/x"), &vec![7; 1 << 20]).unwrap();
        used(&fixture, session, age);
    }
    // A hole takes no place.
    let holes = fixture.open("holes");
    fs::File::create(holes.path().join("work/x")).unwrap().set_len(1 << 40).unwrap();
    let collect = |bytes| {
        let workspaces = fixture.workspaces.clone().with_limits(limits(10_000, bytes));
        let report = workspaces.collect_garbage().unwrap();
        report.removed.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(collect(4 << 20), []);
    assert_eq!(collect(5 << 19), [id("b")]);
    assert_eq!(collect(3 << 19), [id("c")]);
    assert!(is_there(&fixture, "a") && is_there(&fixture, "holes"));
}

#[test]
fn what_another_process_has_open_is_no_garbage() {
    let fixture = Fixture::new();
    let all = fixture.folder.path().join("all");
    let mut child = spawn("hold", &all);
    assert_eq!(said(&mut child).next().as_deref(), Some("open"));
    let workspaces = fixture.workspaces.clone().with_limits(limits(0, 0));
    let report = workspaces.collect_garbage().unwrap();
    assert_eq!((report.removed.len(), report.kept, report.failed.len()), (0, 1, 0));
    assert_eq!(workspaces.remove(&id("held")).unwrap_err().code(), "in_use");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_there(&fixture, "held"));
    assert_eq!(workspaces.collect_garbage().unwrap().removed.len(), 1);
    assert!(!is_there(&fixture, "held"));
    assert_eq!(fs::read_dir(all.join(".locks")).unwrap().count(), 0);
}

#[test]
fn hostile_trees_are_removed_and_nothing_outside() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    workspace.stage("demo", "d", None, &[file("a/b/c", "x")]).unwrap();
    let work = workspace.path().join("work");
    symlink(fixture.host(), work.join("host")).unwrap();
    symlink(fixture.secret(), work.join("secret")).unwrap();
    symlink("loop", work.join("loop")).unwrap();
    symlink("/nowhere", work.join("dangling")).unwrap();
    fs::hard_link(fixture.secret(), work.join("hard")).unwrap();
    fifo(&work.join("fifo"));
    let _socket = std::os::unix::net::UnixListener::bind(work.join("s")).unwrap();
    fs::create_dir_all(work.join("locked/inner")).unwrap();
    fs::write(work.join("locked/inner/x"), "x").unwrap();
    deep(&work, 5000);
    fs::write(work.join(std::ffi::OsString::from("\u{202e}\n*")), "x").unwrap();
    for name in ["locked/inner", "locked"] {
        fs::set_permissions(work.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    // Control: what follows the link finds the host's folder.
    assert_eq!(fs::read_dir(work.join("host")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(work.join("host/secret")).unwrap(), SECRET);
    drop(workspace);

    let workspaces = fixture.workspaces.clone().with_limits(limits(0, 0));
    let report = workspaces.collect_garbage().unwrap();
    assert_eq!((report.removed.len(), report.kept), (1, 0), "{report:?}");
    assert_eq!(fs::read_dir(fixture.folder.path().join("all/.trash")).unwrap().count(), 0);
    assert!(!is_there(&fixture, "a"));
    fixture.assert_host_is_intact();
    assert_eq!(fs::metadata(fixture.secret()).unwrap().nlink(), 1);
}

#[test]
fn what_a_crash_left_of_a_removal_is_removed() {
    let fixture = Fixture::new();
    fixture.open("a");
    let left = fixture.folder.path().join("all/.trash/x/0/1/2");
    fs::create_dir_all(&left).unwrap();
    symlink(fixture.host(), left.join("host")).unwrap();
    fixture.workspaces.collect_garbage().unwrap();
    assert_eq!(fs::read_dir(fixture.folder.path().join("all/.trash")).unwrap().count(), 0);
    fixture.assert_host_is_intact();
}

#[test]
fn a_tree_too_deep_to_be_measured_is_garbage() {
    let fixture = Fixture::new();
    deep(&fixture.open("deep").path().join("work"), 300);
    fixture.open("flat");
    let report = fixture.workspaces.collect_garbage().unwrap();
    assert_eq!(report.removed.iter().map(|it| &it.id).collect::<Vec<_>>(), [&id("deep")]);
}

#[test]
fn a_workspace_can_be_removed_and_made_anew() {
    let fixture = Fixture::new();
    fixture.open("a").put(&path("work/x"), b"x").unwrap();
    assert!(fixture.workspaces.remove(&id("a")).unwrap());
    assert!(!fixture.workspaces.remove(&id("a")).unwrap());
    assert_eq!(fixture.open("a").read(&path("work/x"), 1).unwrap_err().code(), "not_found");
}

#[test]
fn opening_and_removing_at_once_never_gives_half_a_workspace() {
    let fixture = Fixture::new();
    let workspaces = fixture.workspaces.clone().with_limits(limits(0, 0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let workspace = workspaces.open(&id("a")).unwrap();
                    workspace.put(&path("work/x"), b"x").unwrap();
                    workspace.begin_run().unwrap();
                    assert_eq!(workspace.read(&path("work/x"), 1).unwrap().bytes, b"x");
                }
            });
            scope.spawn(|| {
                for _ in 0..100 {
                    let report = workspaces.collect_garbage().unwrap();
                    assert!(report.failed.is_empty(), "{report:?}");
                }
            });
        }
    });
}

#[test]
fn inputs_are_remembered_and_the_oldest_forgotten() {
    let fixture = Fixture::new();
    let mut limits = WorkspaceLimits::default();
    limits.max_input_records = 3;
    let workspaces = fixture.workspaces.clone().with_limits(limits);
    let workspace = workspaces.open(&id("a")).unwrap();
    let record = |to: &str, version| InputRecord {
        from: "artifact://data".into(),
        to: to.into(),
        resolved: "data".into(),
        version: Some(version),
        mode: InputMode::Copy,
        at: String::new(),
    };
    for (to, version) in [("work/a", 1), ("work/b", 2), ("work/a", 3)] {
        workspace.record_input(record(to, version)).unwrap();
    }
    let found = |to: &str, name: &str| {
        workspace.recorded_input(&path(to), name).unwrap().and_then(|it| it.version)
    };
    assert_eq!(found("work/a", "data"), Some(3));
    assert_eq!(found("work/b", "data"), Some(2));
    assert_eq!(found("work/b", "other"), None);
    assert!(!workspace.recorded_input(&path("work/a"), "data").unwrap().unwrap().at.is_empty());
    workspace.record_input(record("work/c", 4)).unwrap();
    workspace.record_input(record("work/d", 5)).unwrap();
    assert_eq!((found("work/b", "data"), found("work/a", "data")), (None, Some(3)));
    // It outlives the handle.
    drop(workspace);
    let workspace = workspaces.open(&id("a")).unwrap();
    assert!(workspace.recorded_input(&path("work/d"), "data").unwrap().is_some());
}

#[test]
fn a_folder_is_listed_in_order_up_to_a_limit() {
    let fixture = Fixture::new();
    let mut limits = WorkspaceLimits::default();
    limits.max_listed_entries = 5;
    let workspaces = fixture.workspaces.clone().with_limits(limits);
    let workspace = workspaces.open(&id("a")).unwrap();
    workspace.stage("demo", "d", None, &[file("a", "x")]).unwrap();
    let listed = |at: &str| {
        let entries = workspace.list(&path(at)).unwrap();
        let names: Vec<_> = entries.entries.iter().map(|it| (it.name.clone(), it.kind)).collect();
        (names, entries.omitted)
    };
    let folders = |names: &[&str]| -> Vec<_> {
        names.iter().map(|name| ((*name).to_owned(), EntryKind::Folder)).collect()
    };
    assert_eq!(listed(""), (folders(&["out", "runs", "skills", "work"]), 0));
    assert_eq!(listed("skills"), (folders(&["demo"]), 0));
    let (names, _) = listed("skills/demo");
    assert_eq!(names[1], ("a".into(), EntryKind::File));
    assert_eq!(names[2], ("inputs".into(), EntryKind::Folder));
    for name in ["z", "y", "b", "c", "d", "e", "f"] {
        workspace.put(&path(&format!("out/{name}")), name.as_bytes()).unwrap();
    }
    symlink(fixture.secret(), workspace.path().join("out/a")).unwrap();
    let (names, omitted) = listed("skills/demo/out");
    assert_eq!(omitted, 3);
    assert_eq!(names[0], ("a".into(), EntryKind::Link));
    assert_eq!(names[4], ("e".into(), EntryKind::File));
    assert_eq!(workspace.list(&path("out/a")).unwrap_err().code(), "is_link");
    assert_eq!(workspace.list(&path("out/b")).unwrap_err().code(), "not_a_folder");
    assert_eq!(workspace.list(&path("none")).unwrap_err().code(), "not_found");
}

#[test]
fn what_is_ours_in_a_workspace_is_not_shown() {
    let fixture = Fixture::new();
    let workspace = fixture.open("one");
    workspace.put(&common::path("work/a"), b"a").unwrap();
    assert_eq!(workspace.read(&common::path("work/a"), 10).unwrap().bytes, b"a");
    assert!(workspace.path().join("metadata.json").exists());
    for name in ["metadata.json", ".new"] {
        let error = workspace.read(&common::path(name), 10).unwrap_err();
        assert_eq!(error.code(), "not_found", "{name}");
    }
}
