//! The 40 vectors of the reference library (S01, 4), and the reference library itself on the
//! same folders.

mod support;

use std::process::Command;

use support::{Run, Sandbox, minimal, skip};

/// A skill folder and what the reference library's `validate` says of it.
struct Vector {
    number: u32,
    folder: &'static str,
    /// The file, or none.
    text: Option<String>,
    /// A part of the only message; none if the skill is valid.
    error: Option<&'static str>,
}

fn vector(number: u32, folder: &'static str, text: &str, error: Option<&'static str>) -> Vector {
    Vector { number, folder, text: Some(text.to_owned()), error }
}

fn with_fields(fields: &str) -> String {
    format!("---\nname: my-skill\ndescription: A test skill\n{fields}\n---\nBody\n")
}

/// Vectors 20 to 40, and 2 to 5, which `validate` reports too.
fn validator_vectors() -> Vec<Vector> {
    let long = "a".repeat(70);
    let long: &'static str = long.leak();
    let description =
        format!("---\nname: my-skill\ndescription: {}\n---\nBody\n", "x".repeat(1100));
    vec![
        vector(2, "my-skill", "# No frontmatter here", Some("must start with YAML frontmatter")),
        vector(3, "my-skill", "---\nname: my-skill\ndescription: d\n", Some("not properly closed")),
        vector(4, "my-skill", "---\nname: [invalid\ndescription: d\n---\nB", Some("Invalid YAML")),
        vector(5, "my-skill", "---\n- just\n- a list\n---\nBody", Some("must be a YAML mapping")),
        vector(
            9,
            "my-skill",
            "---\ndescription: d\n---\nB",
            Some("Missing required field in frontmatter: name"),
        ),
        vector(
            10,
            "my-skill",
            "---\nname: my-skill\n---\nB",
            Some("Missing required field in frontmatter: description"),
        ),
        vector(20, "my-skill", &minimal("my-skill"), None),
        Vector {
            number: 23,
            folder: "my-skill",
            text: None,
            error: Some("Missing required file: SKILL.md"),
        },
        vector(24, "MySkill", &minimal("MySkill"), Some("Skill name 'MySkill' must be lowercase")),
        vector(25, long, &minimal(long), Some("exceeds 64 character limit (70 chars)")),
        vector(
            26,
            "-my-skill",
            &minimal("-my-skill"),
            Some("Skill name cannot start or end with a hyphen"),
        ),
        vector(
            27,
            "my--skill",
            &minimal("my--skill"),
            Some("Skill name cannot contain consecutive hyphens"),
        ),
        vector(
            28,
            "my_skill",
            &minimal("my_skill"),
            Some("contains invalid characters. Only letters, digits, and hyphens are allowed."),
        ),
        vector(
            29,
            "wrong-name",
            &minimal("correct-name"),
            Some("Directory name 'wrong-name' must match skill name 'correct-name'"),
        ),
        vector(
            30,
            "my-skill",
            &with_fields("unknown_field: x"),
            Some(
                "Unexpected fields in frontmatter: unknown_field. Only ['allowed-tools', 'compatibility', 'description', 'license', 'metadata', 'name'] are allowed.",
            ),
        ),
        vector(
            31,
            "my-skill",
            &with_fields(
                "license: MIT\ncompatibility: Python\nallowed-tools: Read\nmetadata:\n  author: Test",
            ),
            None,
        ),
        vector(32, "my-skill", &with_fields("allowed-tools: Bash(jq:*) Bash(git:*)"), None),
        vector(33, "技能", &minimal("技能"), None),
        vector(34, "мой-навык", &minimal("мой-навык"), None),
        vector(35, "навык", &minimal("навык"), None),
        vector(36, "НАВЫК", &minimal("НАВЫК"), Some("Skill name 'НАВЫК' must be lowercase")),
        vector(
            37,
            "my-skill",
            &description,
            Some("Description exceeds 1024 character limit (1100 chars)"),
        ),
        vector(38, "my-skill", &with_fields("compatibility: Requires Python 3.11+"), None),
        vector(
            39,
            "my-skill",
            &with_fields(&format!("compatibility: {}", "y".repeat(550))),
            Some("Compatibility exceeds 500 character limit (550 chars)"),
        ),
        vector(40, "caf\u{e9}", &minimal("cafe\u{301}"), None),
    ]
}

fn validate(sandbox: &Sandbox, path: &str) -> Run {
    sandbox.prowess(&["validate", "--profile", "spec", "--", path])
}

fn folder(vector: &Vector) -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join(vector.folder)).unwrap();
    if let Some(text) = &vector.text {
        sandbox.write(&format!("{}/SKILL.md", vector.folder), text);
    }
    sandbox
}

#[test]
fn vectors_2_to_5_9_10_and_20_to_40_validate() {
    for vector in validator_vectors() {
        let sandbox = folder(&vector);
        let run = validate(&sandbox, vector.folder);
        let number = vector.number;
        match vector.error {
            None => {
                assert_eq!(run.stdout, format!("Valid skill: {}\n", vector.folder), "{number}");
                assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{number}");
            }
            Some(error) => {
                assert_eq!(run.code, 1, "{number}");
                let lines: Vec<&str> = run.stderr.lines().collect();
                assert_eq!(lines[0], format!("Validation failed for {}:", vector.folder));
                assert_eq!(lines.len(), 2, "{number}: {lines:?}");
                assert!(lines[1].starts_with("  - "), "{number}");
                assert!(lines[1].contains(error), "{number}: {}", lines[1]);
            }
        }
    }
}

#[test]
fn vector_1_6_7_15_properties_are_read() {
    let sandbox = Sandbox::new();
    sandbox.write("my-skill/SKILL.md", minimal("my-skill"));
    let run = sandbox.prowess(&["read-properties", "my-skill"]);
    assert_eq!(
        run.stdout,
        "{\n  \"name\": \"my-skill\",\n  \"description\": \"A test skill\"\n}\n"
    );
    let fields = "license: MIT\nallowed-tools: Bash(jq:*) Bash(git:*)\nmetadata:\n  author: Test Author\n  version: 1.0";
    sandbox.write("my-skill/SKILL.md", with_fields(fields));
    let properties = sandbox.prowess(&["read-properties", "my-skill"]).json();
    assert_eq!(
        properties,
        serde_json::json!({
            "name": "my-skill", "description": "A test skill", "license": "MIT",
            "allowed-tools": "Bash(jq:*) Bash(git:*)",
            "metadata": {"author": "Test Author", "version": "1.0"},
        })
    );
}

#[test]
fn vectors_2_to_5_and_8_to_10_properties_are_refused() {
    for vector in validator_vectors().iter().filter(|vector| vector.number <= 10) {
        let sandbox = folder(vector);
        let run = sandbox.prowess(&["read-properties", vector.folder]);
        assert_eq!(run.code, 1);
        assert!(run.stderr.starts_with("Error: "), "{}", run.stderr);
        assert!(run.stderr.contains(vector.error.unwrap()), "{}", run.stderr);
        assert_eq!(run.stdout, "");
    }
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("empty")).unwrap();
    let run = sandbox.prowess(&["read-properties", "empty"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, "Error: SKILL.md not found in empty\n"));
}

#[test]
fn vectors_11_to_14_the_file_is_found_in_either_case() {
    let sandbox = Sandbox::new();
    sandbox.write("both/SKILL.md", minimal("both"));
    sandbox.write("both/skill.md", minimal("other"));
    sandbox.write("lower/skill.md", minimal("lower"));
    assert_eq!(sandbox.prowess(&["read-properties", "both"]).json()["name"], "both");
    assert_eq!(sandbox.prowess(&["read-properties", "lower"]).json()["name"], "lower");
    assert_eq!(validate(&sandbox, "lower").code, 0);
    sandbox.write("upper/SKILL.MD", minimal("upper"));
    let run = sandbox.prowess(&["read-properties", "upper"]);
    assert_eq!(run.stderr, "Error: SKILL.md not found in upper\n");
}

#[test]
fn vectors_16_to_19_prompts() {
    let sandbox = Sandbox::new();
    sandbox.write("my-skill/SKILL.md", minimal("my-skill"));
    let described = "---\nname: b\ndescription: Use <foo> & <bar> tags, \"so\" to 'say'\n---\nB";
    sandbox.write("b/SKILL.md", described);
    let one = sandbox.prowess(&["to-prompt", "my-skill"]).stdout;
    let real = sandbox.path().canonicalize().unwrap();
    assert_eq!(
        one,
        format!(
            "<available_skills>\n<skill>\n<name>\nmy-skill\n</name>\n<description>\nA test skill\n\
             </description>\n<location>\n{}/my-skill/SKILL.md\n</location>\n</skill>\n\
             </available_skills>\n",
            real.display()
        )
    );
    let two = sandbox.prowess(&["to-prompt", "my-skill", "b/SKILL.md"]).stdout;
    assert_eq!((two.matches("<skill>").count(), two.matches("</skill>").count()), (2, 2));
    assert!(
        two.contains("Use &lt;foo&gt; &amp; &lt;bar&gt; tags, &quot;so&quot; to &#x27;say&#x27;")
    );
}

#[test]
fn vectors_21_and_22_paths_that_are_no_skill() {
    let sandbox = Sandbox::new();
    let run = validate(&sandbox, "nowhere");
    assert_eq!(run.code, 1);
    assert_eq!(run.stderr, "Validation failed for nowhere:\n  - Path does not exist: nowhere\n");
    sandbox.write("file.txt", "x");
    let run = validate(&sandbox, "file.txt");
    assert_eq!(run.stderr, "Validation failed for file.txt:\n  - Not a directory: file.txt\n");
}

/// The reference library itself, on the same folders: what it prints is what we print.
#[test]
fn the_reference_library_says_the_same() {
    let Ok(python) = std::env::var("PROWESS_PEERS_PYTHON") else {
        return skip("the_reference_library_says_the_same", "PROWESS_PEERS_PYTHON is not set");
    };
    let reference = |sandbox: &Sandbox, arguments: &[&str]| {
        let mut command = Command::new(&python);
        let script = "import sys; from skills_ref.cli import main; main(sys.argv[1:])";
        command.args(["-c", script]).args(arguments).env("PYTHONUTF8", "1");
        sandbox.run(command, b"")
    };
    for vector in validator_vectors() {
        let sandbox = folder(&vector);
        let path = vector.folder;
        let ours = validate(&sandbox, path);
        let theirs = reference(&sandbox, &["validate", "--", path]);
        // The words of the YAML library behind "Invalid YAML in frontmatter: " are its own.
        let shared = |run: Run| match vector.number {
            4 => Run { stderr: run.stderr.split(": ").next().unwrap().to_owned(), ..run },
            _ => run,
        };
        assert_eq!(shared(ours), shared(theirs), "{}", vector.number);
        if vector.error.is_none() {
            for command in ["read-properties", "to-prompt"] {
                let ours = sandbox.prowess(&[command, path]);
                assert_eq!(ours, reference(&sandbox, &[command, path]), "{command} {path}");
            }
        }
    }
    let sandbox = Sandbox::new();
    for fields in [
        "license: MIT\ncompatibility: ünïcode 😀\nmetadata:\n  version: 1.0\n  on: yes",
        "metadata:\n  a: True\n  b: null\n  c: ~\n  d: 007",
        "metadata:\n  a:\n    b: c\n    d: \"it's\"\n  e:\n    - x\n    - 1.0",
        "license: true\ncompatibility: 3.10",
        "license: |\n  two\n  lines",
        "license:\nmetadata:\n  x: ''",
    ] {
        sandbox.write("my-skill/SKILL.md", with_fields(fields));
        let ours = sandbox.prowess(&["read-properties", "my-skill/SKILL.md"]);
        assert_eq!(
            ours,
            reference(&sandbox, &["read-properties", "my-skill/SKILL.md"]),
            "{fields}"
        );
    }
    // Judged alike, where the words of the YAML library differ.
    for (folder, text) in [
        ("my-skill", with_fields("metadata: {a: b}")),
        ("my-skill", with_fields("license: &a x")),
        ("my-skill", with_fields("license: !!str x")),
        ("my-skill", with_fields("license: Use when: x")),
        ("my-skill", with_fields("compatibility:")),
        ("my-skill", with_fields("license: x\nlicense: y")),
        ("my-skill", "---\n---\nB\n".to_owned()),
        ("नाम", minimal("नाम")),
        ("my-skill", format!("\n{}", minimal("my-skill"))),
        ("my-skill", format!("\u{feff}{}", minimal("my-skill"))),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write(&format!("{folder}/SKILL.md"), &text);
        let ours = validate(&sandbox, folder);
        let theirs = reference(&sandbox, &["validate", folder]);
        assert_eq!(ours.code, theirs.code, "{text}: {ours:?} {theirs:?}");
    }
}
