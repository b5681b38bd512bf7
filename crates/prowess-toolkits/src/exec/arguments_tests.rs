use serde_json::json;

use super::*;

fn minimal() -> RunArguments {
    RunArguments { skill: "demo".into(), command: "ls".into(), ..RunArguments::default() }
}

/// The arguments of a call that has these besides the required ones.
fn parse(more: Value) -> Result<RunArguments, InvalidArguments> {
    let mut arguments = json!({"skill": "demo", "command": "ls"});
    if let (Some(all), Value::Object(more)) = (arguments.as_object_mut(), more) {
        all.extend(more);
    }
    RunArguments::parse(&arguments)
}

#[test]
fn a_skill_and_a_command_are_enough() {
    for name in SKILL_NAMES {
        let arguments = json!({name: " demo ", "command": "ls"});
        assert_eq!(RunArguments::parse(&arguments).unwrap(), minimal(), "{name}");
    }
    assert_eq!(parse(json!({})).unwrap(), minimal());
    let nulls = json!({"cwd": null, "env": null, "inputs": null, "outputs": {}, "timeout": ""});
    assert_eq!(parse(nulls).unwrap(), minimal());
}

#[test]
fn everything_can_be_said_at_once() {
    let all = json!({
        "cwd": "$WORK_DIR", "env": {"A": "b", "N": 1, "F": true}, "stdin": "in",
        "editor_text": "text", "timeout": 1.5, "output_files": ["out/*.txt"],
        "save_as_artifacts": true, "omit_inline_content": "true", "artifact_prefix": "pref/",
        "inputs": [{"from": "host:///a", "to": "work/inputs/a", "mode": "link", "pin": true}],
        "outputs": {
            "globs": ["$OUTPUT_DIR/**"], "inline": true, "save": true, "name_template": "n/",
            "max_files": 1, "max_file_bytes": "2", "max_total_bytes": 3,
        },
    });
    let variables = [("A", "b"), ("N", "1"), ("F", "true")];
    let expected = RunArguments {
        cwd: "$WORK_DIR".into(),
        env: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        stdin: "in".into(),
        editor_text: Some("text".into()),
        timeout: Some(Duration::from_millis(1500)),
        inputs: vec![InputArguments {
            from: "host:///a".into(),
            to: "work/inputs/a".into(),
            mode: InputMode::Link,
            pin: true,
        }],
        output_files: vec!["out/*.txt".into()],
        outputs: Some(OutputArguments {
            globs: vec!["$OUTPUT_DIR/**".into()],
            inline: true,
            save: true,
            name_template: "n/".into(),
            max_files: Some(1),
            max_file_bytes: Some(2),
            max_total_bytes: Some(3),
        }),
        save_as_artifacts: true,
        omit_inline_content: true,
        artifact_prefix: "pref/".into(),
        ..minimal()
    };
    assert_eq!(parse(all).unwrap(), expected);
}

#[test]
fn outputs_have_two_styles_of_keys_and_snake_case_wins() {
    let table = [
        (json!({"Globs": ["a"], "Inline": true, "Save": true}), None),
        (json!({"globs": ["a"], "inline": true, "save": true}), None),
        (json!({"Globs": ["a"], "Inline": true, "Save": true, "MaxFiles": 5}), Some(5)),
        (
            json!({"Globs": ["b"], "globs": "a", "inline": true, "Inline": false, "Save": true,
            "MaxFiles": 5, "max_files": 6}),
            Some(6),
        ),
        (json!(r#"{"globs": ["a"], "inline": true, "Save": true, "MaxFiles": 7}"#), Some(7)),
        (json!({"Globs": "a", "Inline": "true", "save": true, "max_files": 0}), None),
        (json!({"Globs": "a", "Inline": "true", "save": true, "max_files": -1}), None),
    ];
    for (outputs, max_files) in table {
        let read = parse(json!({"outputs": outputs})).unwrap().outputs.unwrap();
        let globs = vec!["a".to_owned()];
        let expected = OutputArguments {
            globs,
            inline: true,
            save: true,
            max_files,
            ..OutputArguments::default()
        };
        assert_eq!(read, expected, "{outputs}");
    }
    let go = json!({"NameTemplate": "p/", "MaxFileBytes": 1, "MaxTotalBytes": 2});
    let read = parse(json!({"outputs": go})).unwrap().outputs.unwrap();
    assert_eq!(
        (read.name_template.as_str(), read.max_file_bytes, read.max_total_bytes),
        ("p/", Some(1), Some(2))
    );
}

#[test]
fn lists_come_in_several_forms() {
    for files in [json!("a"), json!(["a"]), json!(r#"["a"]"#)] {
        assert_eq!(parse(json!({"output_files": files})).unwrap().output_files, ["a"], "{files}");
    }
    let one = json!({"from": "workspace://a"});
    for inputs in [one.clone(), json!([one]), json!(json!([one]).to_string())] {
        let read = parse(json!({"inputs": inputs})).unwrap().inputs;
        assert_eq!(read.len(), 1, "{inputs}");
        assert_eq!((read[0].from.as_str(), read[0].mode), ("workspace://a", InputMode::Copy));
    }
}

#[test]
fn no_time_limit_means_the_default_one() {
    for (timeout, expected) in [
        (json!(0), None),
        (json!(-5), None),
        (json!(10), Some(Duration::from_secs(10))),
        (json!("10"), Some(Duration::from_secs(10))),
        (json!(0.25), Some(Duration::from_millis(250))),
        (json!(1e300), Some(Duration::MAX)),
        (json!(u64::MAX), Some(Duration::MAX)),
        (json!("-1e300"), None),
        (json!(1e-30), None),
    ] {
        assert_eq!(parse(json!({"timeout": timeout})).unwrap().timeout, expected, "{timeout}");
    }
}

#[test]
fn what_means_nothing_is_remembered() {
    let read = parse(json!({"shell": "zsh", "timeout_ms": 5})).unwrap();
    assert_eq!(read.ignored, ["shell", "timeout_ms"]);
}

#[test]
fn wrong_arguments_are_named_with_the_remedy() {
    let table = [
        (json!({"skill": ""}), "skill is required"),
        (json!({"skill_name": "other"}), "they name two skills"),
        (json!({"command": " "}), "command is required"),
        (json!({"command": ["ls"]}), "'command' must be a string"),
        (json!({"env": "x"}), "'env' must be an object"),
        (json!({"env": {"A": {}}}), "'env.A' must be a string"),
        (json!({"timeout": "soon"}), "'timeout' must be a number of seconds"),
        (json!({"timeout": "NaN"}), "'timeout' must be a number of seconds"),
        (json!({"timeout": "inf"}), "'timeout' must be a number of seconds"),
        (json!({"inputs": "x"}), "'inputs' must be a list of objects"),
        (json!({"inputs": [1]}), "'inputs' must be a list of objects"),
        (json!({"inputs": [{"to": "x"}]}), "inputs[0].from is required"),
        (
            json!({"inputs": [{"from": "x", "mode": "move"}]}),
            "'inputs[0].mode' must be copy or link",
        ),
        (json!({"inputs": [{"from": "x", "dst": "y"}]}), "'inputs[0].dst' is not known"),
        (json!({"outputs": []}), "'outputs' must be an object"),
        (json!({"outputs": {"glob": "x"}}), "'outputs.glob' is not known"),
        (json!({"outputs": {"MaxFiles": "x"}}), "'outputs.max_files' must be a whole number"),
        (json!({"output_files": [1]}), "'output_files' must be a list of strings"),
        (json!({"save_as_artifacts": 1}), "'save_as_artifacts' must be true or false"),
    ];
    for (more, expected) in table {
        assert_eq!(parse(more.clone()).unwrap_err().to_string(), expected, "{more}");
    }
    let wrong = RunArguments::parse(&json!([])).unwrap_err();
    assert_eq!(wrong.to_string(), "they must be a JSON object");
}
