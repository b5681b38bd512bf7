//! Staging skills and inputs.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use common::*;
use prowess_workspace::{RefusedReason, SkillFile, Workspace, WorkspaceLimits, Workspaces};
use rustix::fs::inotify;

#[test]
fn as_an_ordinary_user_too() {
    again_as_an_ordinary_user(&["as_an_ordinary_user_too"]);
}

/// A skill of which every file says which version it belongs to.
fn skill(version: &str, count: usize) -> Vec<(String, String)> {
    (0..count).map(|at| (format!("d{}/f{at}.sh", at % 7), version.to_owned())).collect()
}

fn stage_version(workspace: &Workspace, version: &str, count: usize) -> bool {
    let owned = skill(version, count);
    let files: Vec<_> = owned.iter().map(|(path, bytes)| file(path, bytes)).collect();
    workspace.stage("demo", version, None, &files).unwrap().was_staged
}

/// The one version that all files have.
fn version_of(workspace: &Workspace, count: usize) -> String {
    let files = tree(&workspace.path().join("skills/demo"));
    let mut versions: Vec<_> = files
        .iter()
        .filter(|(path, _)| path.starts_with("d0") || path.to_string_lossy().contains("/f"))
        .map(|(_, text)| text.clone())
        .collect();
    assert_eq!(versions.len(), count);
    versions.sort();
    versions.dedup();
    assert_eq!(versions.len(), 1, "a mixture: {versions:?}");
    versions.remove(0)
}

#[test]
fn child() {
    let Some((role, folder)) = role() else { return };
    let workspace = Workspaces::new(folder).open(&id("a")).unwrap();
    match role.as_str() {
        "stage forever" => loop {
            for version in ["A", "B"] {
                stage_version(&workspace, version, 60);
                say(version);
            }
        },
        "stage some" => {
            for round in 0..20 {
                stage_version(&workspace, ["A", "B"][round % 2], 60);
            }
        }
        role => panic!("{role}"),
    }
}

#[test]
fn a_skill_is_staged_read_only_with_links_and_a_venv() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let files = [file("SKILL.md", "# demo"), file("scripts/run.sh", "echo"), file("a/b/c", "")];
    let staged = workspace.stage("demo", "d1", Some("s1"), &files).unwrap();
    assert_eq!((staged.path.as_str(), staged.was_staged), ("skills/demo", false));
    assert_eq!(staged.warnings, Vec::<String>::new());
    let at = workspace.path().join("skills/demo");
    let found: Vec<_> =
        tree(&at).into_iter().map(|(path, text)| format!("{} {text}", path.display())).collect();
    assert_eq!(
        found,
        [
            "SKILL.md # demo",
            "a/b/c ",
            "inputs -> ../../work/inputs",
            "out -> ../../out",
            "scripts/run.sh echo",
            "work -> ../../work",
        ]
    );
    for (name, mode) in
        [("SKILL.md", 0o444), ("scripts/run.sh", 0o555), ("a/b", 0o555), ("", 0o555)]
    {
        assert_eq!(fs::metadata(at.join(name)).unwrap().mode() & 0o7777, mode, "{name}");
    }
    assert!(at.join(".venv").is_dir());
    // The links lead to the workspace's folders, for whoever follows them and for us.
    fs::write(at.join("out/x"), "through the link").unwrap();
    assert_eq!(workspace.read(&path("skills/demo/out/x"), 99).unwrap().name, "out/x");
    assert_eq!(workspace.read(&path("out/x"), 99).unwrap().text(), Some("through the link"));
    if !is_root() {
        assert!(fs::write(at.join("SKILL.md"), "changed").is_err());
        assert!(fs::write(at.join("new"), "new").is_err());
    }
}

/// Counts how often anything in a folder is opened or read.
struct Watch(rustix::fd::OwnedFd);

impl Watch {
    fn new(folder: &Path) -> Self {
        let handle =
            inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        let flags = inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS;
        inotify::add_watch(&handle, folder, flags).unwrap();
        Self(handle)
    }

    fn files_opened(&self) -> Vec<String> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 65536];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            if !event.events().contains(inotify::ReadFlags::ISDIR) {
                names.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
            }
        }
        names
    }
}

#[test]
fn an_unchanged_skill_is_looked_at_and_not_read() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let files = [file("a", "x"), file("b", "y")];
    workspace.stage("demo", "d1", Some("s1"), &files).unwrap();
    let at = workspace.path().join("skills/demo");
    let before = fs::metadata(at.join("a")).unwrap().ino();
    let watch = Watch::new(&at);
    assert!(workspace.staged("demo", "d1", Some("s1")).unwrap().unwrap().was_staged);
    assert!(workspace.stage("demo", "d1", Some("s1"), &files).unwrap().was_staged);
    assert_eq!(watch.files_opened(), Vec::<String>::new());
    assert_eq!(fs::metadata(at.join("a")).unwrap().ino(), before);
    // Control: whoever reads is seen.
    fs::read(at.join("b")).unwrap();
    assert!(watch.files_opened().contains(&"b".to_owned()));
}

#[test]
fn another_source_or_digest_is_staged_anew() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let old = [file("a", "old"), file("gone", "x")];
    workspace.stage("demo", "d1", Some("s1"), &old).unwrap();
    assert!(workspace.staged("demo", "d2", Some("s1")).unwrap().is_none());
    assert!(workspace.staged("demo", "d1", Some("s2")).unwrap().is_none());
    assert!(workspace.staged("other", "d1", Some("s1")).unwrap().is_none());
    assert!(workspace.staged("demo", "d1", None).unwrap().is_some());
    // A source that only looks different is not copied again, and known from then on.
    assert!(workspace.stage("demo", "d1", Some("s2"), &old).unwrap().was_staged);
    assert!(workspace.staged("demo", "d1", Some("s2")).unwrap().is_some());
    assert!(workspace.staged("demo", "d1", Some("s1")).unwrap().is_none());
    let new = [file("a", "new"), file("b/c", "x")];
    assert!(!workspace.stage("demo", "d2", Some("s2"), &new).unwrap().was_staged);
    assert_eq!(workspace.read(&path("skills/demo/a"), 9).unwrap().text(), Some("new"));
    assert_eq!(workspace.read(&path("skills/demo/gone"), 9).unwrap_err().code(), "not_found");
    let names: Vec<_> = fs::read_dir(workspace.path().join("skills"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["demo"]);
}

#[test]
fn a_copy_that_somebody_touched_is_staged_anew() {
    type Tamper = fn(&Path, &Path);
    let tampers: [(&str, Tamper); 11] = [
        ("content", |at, _| fs::write(at.join("d/a"), "evil").unwrap()),
        ("the same size and time", |at, _| {
            let time = fs::metadata(at.join("d/a")).unwrap().modified().unwrap();
            fs::write(at.join("d/a"), "bad").unwrap();
            let file = fs::File::options().append(true).open(at.join("d/a")).unwrap();
            file.set_modified(time).unwrap();
        }),
        ("a file more", |at, _| fs::write(at.join("d/new"), "x").unwrap()),
        ("a file less", |at, _| fs::remove_file(at.join("d/a")).unwrap()),
        ("another file", |at, _| {
            fs::write(at.join("d/b"), "evil").unwrap();
            fs::rename(at.join("d/b"), at.join("d/a")).unwrap();
        }),
        ("a link for a file", |at, secret| {
            fs::remove_file(at.join("d/a")).unwrap();
            symlink(secret, at.join("d/a")).unwrap();
        }),
        ("a mode", |at, _| {
            fs::set_permissions(at.join("d/a"), fs::Permissions::from_mode(0o4755)).unwrap();
        }),
        ("the mode of the folder", |at, _| {
            fs::set_permissions(at, fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("a link elsewhere", |at, secret| {
            fs::remove_file(at.join("out")).unwrap();
            symlink(secret, at.join("out")).unwrap();
        }),
        ("no .venv", |at, _| fs::remove_dir(at.join(".venv")).unwrap()),
        ("a link for the skill", |at, secret| {
            let moved = at.parent().unwrap().parent().unwrap().join("work/moved");
            fs::rename(at, moved).unwrap();
            symlink(secret.parent().unwrap(), at).unwrap();
        }),
    ];
    let fixture = Fixture::new();
    for (what, tamper) in tampers {
        let workspace = fixture.open(what);
        let files = [file("d/a", "good"[..3].as_ref()), file("e", "y")];
        workspace.stage("demo", "d1", Some("s1"), &files).unwrap();
        let at = workspace.path().join("skills/demo");
        assert!(workspace.staged("demo", "d1", Some("s1")).unwrap().is_some(), "{what}");
        // As somebody who could: nothing of this is possible in the sandbox.
        for folder in [&at, &at.join("d"), &at.join("d/a")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        tamper(&at, &fixture.secret());
        assert!(workspace.staged("demo", "d1", Some("s1")).unwrap().is_none(), "{what}");
        assert!(!workspace.stage("demo", "d1", Some("s1"), &files).unwrap().was_staged, "{what}");
        assert_eq!(workspace.read(&path("skills/demo/d/a"), 9).unwrap().text(), Some("goo"));
        assert!(workspace.staged("demo", "d1", Some("s1")).unwrap().is_some(), "{what}");
        assert_eq!(tree(&at).len(), 5, "{what}");
    }
    fixture.assert_host_is_intact();
}

#[test]
fn the_venv_is_kept_when_a_skill_is_staged_anew() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    workspace.stage("demo", "d1", None, &[file("a", "1")]).unwrap();
    let venv = workspace.path().join("skills/demo/.venv");
    fs::create_dir(venv.join("bin")).unwrap();
    fs::write(venv.join("bin/python"), "mine").unwrap();
    // What is written there does not make the copy another.
    assert!(workspace.staged("demo", "d1", None).unwrap().is_some());
    workspace.stage("demo", "d2", None, &[file("a", "2")]).unwrap();
    assert_eq!(fs::read_to_string(venv.join("bin/python")).unwrap(), "mine");
    // As a crash leaves it, after the exchange and before the move.
    let skills = workspace.path().join("skills");
    fs::create_dir(skills.join(".new-demo")).unwrap();
    fs::set_permissions(skills.join("demo"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&venv, skills.join(".new-demo/.venv")).unwrap();
    fs::set_permissions(skills.join(".new-demo"), fs::Permissions::from_mode(0o555)).unwrap();
    workspace.stage("demo", "d2", None, &[file("a", "2")]).unwrap();
    assert_eq!(fs::read_to_string(venv.join("bin/python")).unwrap(), "mine");
    // A skill that brings its own loses nothing of it, and takes nothing over.
    let own = [file("a", "3"), file(".venv/own", "own")];
    let staged = workspace.stage("demo", "d3", None, &own).unwrap();
    assert_eq!(staged.warnings.len(), 1);
    drop(staged);
    assert!(!venv.join("bin").exists() && venv.join("own").exists());
    workspace.stage("demo", "d4", None, &[file("a", "4")]).unwrap();
    assert_eq!(fs::read_dir(&venv).unwrap().count(), 0);
}

#[test]
fn what_somebody_uses_is_not_replaced() {
    let fixture = Fixture::new();
    let mut limits = WorkspaceLimits::default();
    limits.max_skill_wait_ms = 50;
    let impatient = fixture.workspaces.clone().with_limits(limits).open(&id("a")).unwrap();
    let workspace = fixture.open("a");
    let content = || fs::read_to_string(workspace.path().join("skills/demo/a")).unwrap();
    let used = workspace.stage("demo", "d1", None, &[file("a", "1")]).unwrap();
    // Whoever has another pin, in this process or in another one, does not get in between.
    let other = [file("a", "2")];
    let error = impatient.stage("demo", "d2", None, &other).unwrap_err();
    assert_eq!((error.code(), content().as_str()), ("skill_in_use", "1"));
    // The same version can be used at the same time, and another skill staged.
    let also = impatient.staged("demo", "d1", None).unwrap().unwrap();
    impatient.stage("another", "d2", None, &other).unwrap();
    drop(used);
    assert_eq!(impatient.stage("demo", "d2", None, &other).unwrap_err().code(), "skill_in_use");
    // The control: when nobody uses it, it is replaced.
    drop(also);
    impatient.stage("demo", "d2", None, &other).unwrap();
    assert_eq!(content(), "2");
    // Whoever waits gets it as soon as it is free.
    let used = workspace.staged("demo", "d2", None).unwrap().unwrap();
    let waiting = fixture.open("a");
    let staged =
        std::thread::spawn(move || waiting.stage("demo", "d3", None, &[file("a", "3")]).map(drop));
    drop(used);
    staged.join().unwrap().unwrap();
    assert_eq!(content(), "3");
}

#[test]
fn a_skill_keeps_its_own_folders_and_a_warning_says_so() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let files = [file("out/template", "mine"), file("work", "a file"), file("outer", "x")];
    let staged = workspace.stage("demo", "d", None, &files).unwrap();
    assert_eq!(
        staged.warnings,
        [
            "the skill has its own 'out', which is kept and is read-only; the workspace's folder \
             is ../../out",
            "the skill has its own 'work', which is kept and is read-only; the workspace's folder \
             is ../../work",
        ]
    );
    assert_eq!(workspace.staged("demo", "d", None).unwrap().unwrap().warnings, staged.warnings);
    let read = workspace.read(&path("skills/demo/out/template"), 9).unwrap();
    assert_eq!((read.name.as_str(), read.text()), ("skills/demo/out/template", Some("mine")));
    assert!(workspace.path().join("skills/demo/inputs").is_symlink());
}

/// Reference §1.13, 4.
#[test]
fn a_skill_cannot_be_staged_outside() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let name = "../../../host";
    // Control: as a path, it is the host's folder.
    let naive = workspace.path().join("skills").join(name);
    assert_eq!(fs::read_to_string(naive.join("secret")).unwrap(), SECRET);
    for name in [name, "..", ".", "", "a/../../../../host", "/tmp", ".new-x", "a\0b", "a\nb"] {
        let error = workspace.stage(name, "d", None, &[file("secret", "x")]).unwrap_err();
        assert_eq!(error.code(), "invalid_skill_name", "{name:?}");
        assert_eq!(workspace.staged(name, "d", None).unwrap_err().code(), "invalid_skill_name");
    }
    for name in ["../secret", "/etc/x", "a/../../../../host/secret", "", "a\\b"] {
        let error = workspace.stage("demo", "d", None, &[file(name, "x")]).unwrap_err();
        assert_eq!(error.code(), "invalid_skill_file", "{name:?}");
    }
    assert!(!workspace.path().join("skills/demo").exists());
    fixture.assert_host_is_intact();
}

/// Reference §1.13, 7: what is staged comes from bytes, so that no link can be among it; this is
/// the other half, a folder of the host.
#[test]
fn links_in_a_folder_of_the_host_are_left_out() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let allowed = fixture.folder.path().join("allowed");
    fs::create_dir_all(allowed.join("data/inner")).unwrap();
    fs::write(allowed.join("data/inner/a.csv"), "1,2").unwrap();
    symlink(fixture.secret(), allowed.join("data/secret")).unwrap();
    symlink(fixture.host(), allowed.join("data/folder")).unwrap();
    symlink("loop", allowed.join("data/loop")).unwrap();
    fifo(&allowed.join("data/fifo"));
    // Control: read plainly, the secret is there.
    assert_eq!(fs::read_to_string(allowed.join("data/secret")).unwrap(), SECRET);
    let copied = workspace.copy_in(&allowed, Path::new("data"), &path("work/inputs/d")).unwrap();
    let files: Vec<_> = copied.files.iter().map(|it| (it.path.as_str(), it.size_bytes)).collect();
    assert_eq!(files, [("work/inputs/d/inner/a.csv", 3)]);
    assert_eq!(copied.files[0].mime_type, "text/csv");
    let refused: Vec<_> = copied.refused.iter().map(|it| (it.name.as_str(), it.reason)).collect();
    assert_eq!(
        refused,
        [
            ("fifo", RefusedReason::Special),
            ("folder", RefusedReason::Symlink),
            ("loop", RefusedReason::Symlink),
            ("secret", RefusedReason::Symlink),
        ]
    );
    // A folder replaces the folder.
    fs::write(workspace.path().join("work/inputs/d/stale"), "x").unwrap();
    workspace.copy_in(&allowed, Path::new("data"), &path("work/inputs/d")).unwrap();
    assert_eq!(tree(&workspace.path().join("work/inputs")).len(), 1);
}

/// Reference §1.13, 3: the seed's own first example.
#[test]
fn a_single_file_of_the_host_is_copied_to_the_name_that_was_asked_for() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let notes = fixture.folder.path().join("notes.txt");
    fs::write(&notes, "one\ntwo\n").unwrap();
    let to = path("work/inputs/deep/renamed.txt");
    let copied = workspace.copy_in(fixture.folder.path(), &notes, &to).unwrap();
    assert_eq!(copied.files[0].mime_type, "text/plain");
    assert_eq!(workspace.read(&to, 99).unwrap().text(), Some("one\ntwo\n"));
    // Again, over what is there.
    fs::write(&notes, "three\n").unwrap();
    workspace.copy_in(fixture.folder.path(), Path::new("notes.txt"), &to).unwrap();
    assert_eq!(workspace.read(&to, 99).unwrap().text(), Some("three\n"));
}

/// Reference §1.13, 2.
#[test]
fn nothing_of_the_host_comes_in_from_outside_the_allowed_folder() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let allowed = fixture.folder.path().join("allowed");
    fs::create_dir(&allowed).unwrap();
    symlink(fixture.host(), allowed.join("link")).unwrap();
    symlink("../host", allowed.join("relative")).unwrap();
    symlink(fixture.secret(), allowed.join("file")).unwrap();
    for from in [
        allowed.join("../host/secret"),
        allowed.join("link/secret"),
        allowed.join("relative/secret"),
        allowed.join("file"),
        fixture.secret(),
    ] {
        // Control: opened plainly, it is the secret.
        assert_eq!(fs::read_to_string(&from).unwrap(), SECRET);
        let error = workspace.copy_in(&allowed, &from, &path("work/x")).unwrap_err();
        assert!(["outside", "is_link"].contains(&error.code()), "{from:?}: {error}");
    }
    // What stays inside may go through a link.
    fs::create_dir(allowed.join("inner")).unwrap();
    fs::write(allowed.join("inner/a"), "mine").unwrap();
    symlink("inner", allowed.join("alias")).unwrap();
    workspace.copy_in(&allowed, Path::new("alias/a"), &path("work/x")).unwrap();
    assert_eq!(tree(&workspace.path().join("work")).len(), 1);
}

/// Reference §1.13, 2.
#[test]
fn nothing_is_written_outside_or_through_a_link() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let at = workspace.path();
    workspace.stage("demo", "d", None, &[file("a", "x")]).unwrap();
    workspace.put(&path("work/source"), b"mine").unwrap();
    symlink(fixture.host(), at.join("work/host")).unwrap();
    symlink("../../../host", at.join("work/up")).unwrap();
    // Control: written plainly, it lands outside.
    fs::write(at.join("work/host/control"), "x").unwrap();
    fs::remove_file(fixture.host().join("control")).unwrap();
    assert!(at.join("../../host/secret").exists());
    assert!(prowess_workspace::WorkspacePath::parse("../../host/secret").is_err());
    for to in ["work/host/x", "work/up/x", "work/host/new/x"] {
        let to = path(to);
        assert_eq!(workspace.put(&to, b"x").unwrap_err().code(), "is_link", "{to}");
        assert_eq!(workspace.copy_within(&path("work/source"), &to).unwrap_err().code(), "is_link");
        assert_eq!(workspace.link_within(&path("work/source"), &to).unwrap_err().code(), "is_link");
        let copied = workspace.copy_in(&fixture.host(), Path::new("secret"), &to);
        assert_eq!(copied.unwrap_err().code(), "is_link");
    }
    for to in
        ["", "x", "work", "out", "skills/demo/a", "skills/demo/new", "skills/x", "metadata.json"]
    {
        let to = path(to);
        assert_eq!(workspace.put(&to, b"x").unwrap_err().code(), "not_writable", "{to}");
        let linked = workspace.link_within(&path("work/source"), &to);
        assert_eq!(linked.unwrap_err().code(), "not_writable", "{to}");
    }
    for from in ["work/host/secret", "work/up/secret", "work/host"] {
        for result in [
            workspace.copy_within(&path(from), &path("work/copy")).map(|_| ()),
            workspace.link_within(&path(from), &path("work/copy")),
            workspace.read(&path(from), 99).map(|_| ()),
        ] {
            assert_eq!(result.unwrap_err().code(), "is_link", "{from}");
        }
    }
    assert!(!at.join("work/copy").exists());
    // A link at the end is replaced, not followed.
    symlink(fixture.secret(), at.join("work/last")).unwrap();
    workspace.put(&path("work/last"), b"mine").unwrap();
    assert_eq!(fs::read_to_string(at.join("work/last")).unwrap(), "mine");
    assert!(!at.join("work/last").is_symlink());
    fixture.assert_host_is_intact();
    assert_eq!(fs::read_dir(at.join(".new")).unwrap().count(), 0);
}

#[test]
fn files_and_folders_of_the_workspace_are_copied_and_linked() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let files = [file("data/a.csv", "1,2"), file("data/run.sh", "x")];
    workspace.stage("demo", "d", None, &files).unwrap();
    let copied =
        workspace.copy_within(&path("skills/demo/data"), &path("work/inputs/data")).unwrap();
    assert_eq!(copied.files.len(), 2);
    let at = workspace.path();
    let mode = |name: &str| fs::metadata(at.join(name)).unwrap().mode() & 0o7777;
    assert_eq!(mode("work/inputs/data/a.csv"), 0o644);
    assert_eq!(mode("work/inputs/data/run.sh"), 0o755);
    workspace.copy_within(&path("skills/demo/data/a.csv"), &path("skills/demo/inputs/b")).unwrap();
    assert_eq!(workspace.read(&path("work/inputs/b"), 9).unwrap().text(), Some("1,2"));
    let link = path("work/inputs/deep/er/link");
    workspace.link_within(&path("skills/demo/data/a.csv"), &link).unwrap();
    let found = fs::read_link(at.join(link.as_str())).unwrap();
    assert_eq!(found, Path::new("../../../../skills/demo/data/a.csv"));
    assert_eq!(fs::read_to_string(at.join(link.as_str())).unwrap(), "1,2");
    // Folders are not lost by accident.
    let in_the_way = |result: Result<(), prowess_workspace::WorkspaceError>| {
        assert_eq!(result.unwrap_err().code(), "folder_in_the_way");
    };
    let inputs = path("work/inputs");
    in_the_way(workspace.put(&inputs, b"x").map(|_| ()));
    in_the_way(workspace.copy_within(&path("skills/demo/data"), &inputs).map(|_| ()));
    in_the_way(workspace.link_within(&path("skills/demo/data"), &inputs));
    // Nothing is copied into itself.
    for (from, to) in [("work", "work/inputs/x"), ("work/inputs/data", "work/inputs/data/x")] {
        let copied = workspace.copy_within(&path(from), &path(to));
        assert_eq!(copied.unwrap_err().code(), "not_writable");
    }
    fs::hard_link(at.join("work/inputs/b"), at.join("work/hard")).unwrap();
    let copied = workspace.copy_within(&path("work/hard"), &path("work/c"));
    assert_eq!(copied.unwrap_err().code(), "not_a_file");
    fifo(&at.join("work/fifo"));
    let copied = workspace.copy_within(&path("work/fifo"), &path("work/c"));
    assert_eq!(copied.unwrap_err().code(), "not_a_file");
}

#[test]
fn inputs_are_limited_and_nothing_is_left_of_those_that_are_too_large() {
    let fixture = Fixture::new();
    let mut limits = WorkspaceLimits::default();
    limits.max_input_bytes = 10;
    limits.max_input_files = 4;
    limits.max_input_depth = 2;
    let workspaces = fixture.workspaces.clone().with_limits(limits);
    let workspace = workspaces.open(&id("a")).unwrap();
    let host = fixture.folder.path().join("in");
    fs::create_dir_all(host.join("edge/1/2")).unwrap();
    fs::write(host.join("edge/1/2/a"), "12345").unwrap();
    fs::write(host.join("edge/1/b"), "12345").unwrap();
    fs::create_dir_all(host.join("deep/1/2/3")).unwrap();
    fs::create_dir(host.join("many")).unwrap();
    fs::create_dir(host.join("large")).unwrap();
    for at in 0..5 {
        fs::write(host.join(format!("many/{at}")), "").unwrap();
    }
    for at in 0..2 {
        fs::write(host.join(format!("large/{at}")), "123456").unwrap();
    }
    fs::write(host.join("eleven"), "12345678901").unwrap();
    fs::write(host.join("ten"), "1234567890").unwrap();
    fs::File::create(host.join("hole")).unwrap().set_len(1 << 40).unwrap();
    for (name, limit) in [
        ("edge", None),
        ("ten", None),
        ("deep", Some("max_input_depth")),
        ("many", Some("max_input_files")),
        ("large", Some("max_input_bytes")),
        ("eleven", Some("max_input_bytes")),
        ("hole", Some("max_input_bytes")),
    ] {
        let to = path(&format!("work/inputs/{name}"));
        let copied = workspace.copy_in(&host, Path::new(name), &to);
        match limit {
            None => assert!(copied.is_ok(), "{name}: {copied:?}"),
            Some(limit) => {
                let error = copied.unwrap_err();
                assert_eq!(error.code(), "limit_exceeded", "{name}");
                assert!(error.to_string().contains(limit), "{name}: {error}");
                assert!(!workspace.path().join(to.as_str()).exists(), "{name}");
            }
        }
    }
    assert!(workspace.put(&path("work/x"), b"1234567890").is_ok());
    let put = workspace.put(&path("work/y"), b"12345678901");
    assert_eq!(put.unwrap_err().code(), "limit_exceeded");
    assert_eq!(fs::read_dir(workspace.path().join(".new")).unwrap().count(), 0);
}

#[test]
fn many_stagers_at_once_leave_one_whole_skill() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let all = fixture.folder.path().join("all");
    let mut children: Vec<_> = (0..2).map(|_| spawn("stage some", &all)).collect();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let workspace = workspace.clone();
            std::thread::spawn(move || {
                for round in 0..10 {
                    stage_version(&workspace, ["A", "B"][(thread + round) % 2], 60);
                    workspace.put(&path(&format!("work/{thread}")), b"x").unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let version = version_of(&workspace, 60);
    assert!(workspace.staged("demo", &version, None).unwrap().is_some());
}

#[test]
fn a_stager_that_is_killed_leaves_the_old_or_the_new_skill() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    stage_version(&workspace, "A", 60);
    let venv = workspace.path().join("skills/demo/.venv");
    fs::write(venv.join("mine"), "kept").unwrap();
    for round in 0..20_u64 {
        let mut child = spawn("stage forever", &fixture.folder.path().join("all"));
        assert!(said(&mut child).next().is_some());
        std::thread::sleep(Duration::from_micros(round * 1733));
        child.kill().unwrap();
        child.wait().unwrap();
        let version = version_of(&workspace, 60);
        assert!(["A", "B"].contains(&version.as_str()));
        // Whatever is known about it, the next stager makes it right.
        stage_version(&workspace, &version, 60);
        assert!(workspace.staged("demo", &version, None).unwrap().is_some());
        assert_eq!(fs::read_to_string(venv.join("mine")).unwrap(), "kept", "{round}");
    }
    // What the last one left unfinished goes with the next one that is staged.
    stage_version(&workspace, "C", 60);
    assert_eq!(version_of(&workspace, 60), "C");
    assert_eq!(fs::read_dir(workspace.path().join("skills")).unwrap().count(), 1);
}

#[test]
fn executable_files_keep_that_and_nothing_else() {
    let fixture = Fixture::new();
    let workspace = fixture.open("a");
    let executable = SkillFile { path: "run", executable: true, bytes: b"#!"[..].into() };
    workspace.stage("demo", "d", None, &[executable]).unwrap();
    let found = fs::metadata(workspace.path().join("skills/demo/run")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o555);
    // An input with more is brought in with less.
    let tool = fixture.folder.path().join("tool");
    fs::write(&tool, "x").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o6777)).unwrap();
    workspace.copy_in(fixture.folder.path(), &tool, &path("work/tool")).unwrap();
    let found = fs::metadata(workspace.path().join("work/tool")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o755);
}
