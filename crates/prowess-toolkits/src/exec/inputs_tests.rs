use super::*;

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

fn artifact(text: &str) -> From {
    From::Artifact(ArtifactRef::parse(text).unwrap())
}

#[test]
fn inputs_come_from_four_places() {
    let skill = |name: &str, below| From::Skill { name: name.to_owned(), path: path(below) };
    let table = [
        ("artifact://a/b.txt", artifact("a/b.txt"), "b.txt"),
        ("artifact://user:b.txt@3", artifact("user:b.txt@3"), "b.txt"),
        ("artifact://mail@home", artifact("mail@home"), "mail@home"),
        ("host:///tmp/notes.txt", From::Host("/tmp/notes.txt".into()), "notes.txt"),
        ("host:///tmp//a/./b/", From::Host("/tmp/a/b".into()), "b"),
        ("workspace://out/a.txt", From::Workspace(path("out/a.txt")), "a.txt"),
        ("workspace://inputs/a", From::Workspace(path("work/inputs/a")), "a"),
        ("skill://demo/scripts/a.sh", skill("demo", "scripts/a.sh"), "a.sh"),
        ("skill://demo", skill("demo", ""), "demo"),
    ];
    for (text, expected, name) in table {
        let from = From::parse(text).unwrap();
        assert_eq!(from.base_name(), name, "{text}");
        assert_eq!(from, expected, "{text}");
    }
}

#[test]
fn inputs_from_elsewhere_are_refused() {
    let attacks = [
        "/etc/passwd",
        "notes.txt",
        "file:///etc/passwd",
        "http://example.com/x",
        "host://etc/passwd",
        "host://../etc/passwd",
        "host:///tmp/../etc/passwd",
        "host:///tmp/a\nb",
        "workspace://../../etc/passwd",
        "workspace://out/../../x",
        "workspace://a\\b",
        "skill://../../etc/passwd",
        "skill://demo/../../metadata.json",
        "skill://",
        "artifact://../x",
        "artifact:///etc/passwd",
        "artifact://",
    ];
    for text in attacks {
        let refused = From::parse(text).unwrap_err().to_string();
        assert!(!refused.is_empty(), "{text}");
    }
    // What is encoded stays encoded.
    assert!(From::parse("workspace://%2e%2e/x").is_ok());
}

#[test]
fn inputs_go_below_work_inputs_unless_said_otherwise() {
    let run = path("runs/run_1");
    let places = Places { workspace: Path::new("/data/ws"), run_dir: Some(&run) };
    let from = From::parse("host:///tmp/notes.txt").unwrap();
    let to = |to: &str| destination(to, &from, places).map(|it| it.to_string());
    let table = [
        ("", "work/inputs/notes.txt"),
        (".", "work/inputs/notes.txt"),
        ("inputs", "work/inputs/notes.txt"),
        ("inputs/", "work/inputs/notes.txt"),
        ("work/inputs", "work/inputs/notes.txt"),
        ("$WORK_DIR/inputs", "work/inputs/notes.txt"),
        ("inputs/other.txt", "work/inputs/other.txt"),
        ("work/inputs/notes.txt", "work/inputs/notes.txt"),
        ("work/data/", "work/data/notes.txt"),
        ("$WORK_DIR/x", "work/x"),
        ("$RUN_DIR/x", "runs/run_1/x"),
        ("/work/x", "work/x"),
        ("out/x", "out/x"),
    ];
    for (text, expected) in table {
        assert_eq!(to(text).unwrap(), expected, "{text}");
    }
    let attacks = [
        "../../x",
        "work/../../x",
        "/etc/x",
        "skills/demo/SKILL.md",
        "metadata.json",
        "work",
        "/",
        "$HOME/x",
        "x",
        "work/../metadata.json",
        "$SKILLS_DIR/demo/x",
        "out/a\\b",
    ];
    for text in attacks {
        assert!(to(text).is_err(), "{text}: {:?}", to(text));
    }
}

#[test]
fn an_input_without_a_name_needs_a_destination() {
    let places = Places { workspace: Path::new("/data/ws"), run_dir: None };
    let from = From::parse("workspace://").unwrap();
    assert!(destination("", &from, places).is_err());
    assert!(destination("work/all", &from, places).is_ok());
}

#[test]
fn a_folder_is_allowed_by_whole_names() {
    let allowed = ["/srv/shared", "/srv/shared/deep", "/tmp"].map(PathBuf::from);
    let table = [
        ("/srv/shared/a", Some("/srv/shared")),
        ("/srv/shared", Some("/srv/shared")),
        ("/srv/shared/deep/a", Some("/srv/shared/deep")),
        ("/srv/shared2/a", None),
        ("/srv", None),
        ("/etc/passwd", None),
    ];
    for (path, expected) in table {
        let found = allowed_folder(&allowed, Path::new(path));
        assert_eq!(found.map(PathBuf::as_path), expected.map(Path::new), "{path}");
    }
    assert_eq!(allowed_folder(&[], Path::new("/tmp/a")), None);
}
