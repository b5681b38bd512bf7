//! `prowess artifacts`, and where artifacts are kept (S10, 4).

#[path = "../../prowess-workspace/tests/s3_server/mod.rs"]
mod s3_server;
mod support;

use std::fs;

use s3_server::{ACCESS_KEY, S3Server, SECRET_KEY, free_address};
use serde_json::{Value, json};
use support::Run;
use support::exec::{Project, files};

/// A project whose user keeps artifacts in this bucket.
fn in_bucket(test: &str, endpoint: &str) -> Option<Project> {
    let project = Project::new(test)?;
    project.write("home/prowess.toml", s3(endpoint, "artifacts"));
    Some(project)
}

fn s3(endpoint: &str, bucket: &str) -> String {
    format!(
        "[artifacts]\nstore = \"s3\"\n[artifacts.s3]\nendpoint = \"{endpoint}\"\n\
         bucket = \"{bucket}\"\nmax_retries = 1\n"
    )
}

fn prowess(project: &Project, arguments: &[&str]) -> Run {
    let mut command = project.command(arguments);
    command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    command.env_remove("AWS_SESSION_TOKEN");
    let run = project.sandbox.run(command, b"");
    assert!(!format!("{run:?}").contains(SECRET_KEY), "{run:?}");
    run
}

/// Runs a command of the skill in the session `s`, and keeps `out/a.txt`.
fn keep(project: &Project, text: &str) -> Value {
    let call = |tool: &str, arguments: Value| {
        prowess(project, &["call", tool, &arguments.to_string(), "--session", "s", "--json"])
    };
    call("load_skill", json!({"skill": "demo"}));
    let run = call(
        "skill_run",
        json!({
            "skill": "demo", "command": format!("printf '{text}' > out/a.txt"),
            "output_files": ["out/a.txt"], "save_as_artifacts": true,
        }),
    );
    run.json()
}

/// What can be done with artifacts, wherever they are kept.
fn artifacts_can_be_used(project: &Project) -> String {
    let of = |arguments: &[&str]| {
        prowess(project, &[&["artifacts"], arguments, &["--session", "s"]].concat())
    };
    let mut said = vec![("list", of(&["list"]))];
    for (version, text) in ["one", "two"].iter().enumerate() {
        let kept = keep(project, text);
        let expected = json!([{"name": "out/a.txt", "version": version}]);
        assert_eq!(kept["data"]["artifact_files"], expected, "{kept}");
    }
    said.push(("list", of(&["list"])));
    said.push(("list --json", of(&["list", "--json"])));
    said.push(("versions out/a.txt", of(&["versions", "out/a.txt"])));
    said.push(("versions out/a.txt --json", of(&["versions", "out/a.txt", "--json"])));
    assert_eq!(of(&["get", "out/a.txt"]).stdout, "two");
    assert_eq!(of(&["get", "artifact://out/a.txt@0"]).stdout, "one");
    said.push(("get out/a.txt@0 --json", of(&["get", "out/a.txt@0", "--json"])));
    said.push(("get out/a.txt --output got", of(&["get", "out/a.txt", "--output", "got"])));
    assert_eq!(fs::read_to_string(project.path("got")).unwrap(), "two");
    let again = of(&["get", "out/a.txt@0", "--output", "got"]);
    assert_eq!((again.code, fs::read_to_string(project.path("got")).unwrap()), (1, "two".into()));
    fs::remove_file(project.path("got")).unwrap();
    said.push(("get out/a.txt@7", of(&["get", "out/a.txt@7"])));
    said.push(("get b --json", of(&["get", "b", "--json"])));
    said.push(("get ../b", of(&["get", "../b"])));
    said.push(("delete out/a.txt", of(&["delete", "out/a.txt"])));
    said.push(("delete out/a.txt", of(&["delete", "out/a.txt"])));
    assert_eq!(of(&["versions", "out/a.txt"]).code, 1);
    let said =
        said.iter().map(|(words, run)| format!("$ prowess artifacts {words}\n{}", run.text()));
    said.collect::<Vec<_>>().join("\n")
}

#[test]
fn artifacts_are_kept_in_files_or_in_a_bucket_as_the_configuration_says() {
    let test = "artifacts::artifacts_are_kept_in_files_or_in_a_bucket_as_the_configuration_says";
    let Some(server) = S3Server::start(test) else { return };
    let Some(project) = in_bucket(test, &server.endpoint()) else { return };
    let in_a_bucket = artifacts_can_be_used(&project);
    assert!(!project.path("home/artifacts").exists());
    assert!(!files(&server.bucket()).is_empty());
    insta::assert_snapshot!("artifacts", in_a_bucket);
    // The same project with another store.
    project.write("home/prowess.toml", "[artifacts]\nstore = \"file\"\nfolder = \"kept\"\n");
    let in_files = artifacts_can_be_used(&project);
    assert_eq!(in_files, in_a_bucket);
    assert!(project.path("home/kept").exists());
    // In memory they end with the program.
    project.write("home/prowess.toml", "[artifacts]\nstore = \"memory\"\n");
    assert_eq!(keep(&project, "x")["data"]["artifact_files"][0]["version"], 0);
    assert_eq!(keep(&project, "x")["data"]["artifact_files"][0]["version"], 0);
}

#[test]
fn a_project_cannot_send_artifacts_elsewhere() {
    let test = "artifacts::a_project_cannot_send_artifacts_elsewhere";
    let Some(server) = S3Server::start(test) else { return };
    // Control: in the user's own file the same lines count.
    let Some(project) = in_bucket(test, &server.endpoint()) else { return };
    keep(&project, "for the bucket");
    let count = files(&server.bucket()).len();
    assert!(count > 0);
    let Some(project) = Project::new(test) else { return };
    project.write("prowess.toml", s3(&server.endpoint(), "artifacts"));
    assert_eq!(keep(&project, "for nobody else")["data"]["artifact_files"][0]["version"], 0);
    let list = prowess(&project, &["artifacts", "list", "--session", "s"]);
    assert!(list.stderr.contains("[artifacts] counts only in"), "{list:?}");
    assert_eq!(files(&server.bucket()).len(), count);
    assert!(project.path("home/artifacts").exists());
}

#[test]
fn a_store_that_cannot_be_used_is_named_with_cause_and_remedy() {
    let test = "artifacts::a_store_that_cannot_be_used_is_named_with_cause_and_remedy";
    let Some(project) = Project::new(test) else { return };
    let away = free_address();
    let stable = |text: &str| project.stable(text).replace(&away.to_string(), "[ADDRESS]");
    let mut said = Vec::new();
    for settings in [
        "[artifacts]\nstore = \"ftp\"\n".to_owned(),
        "[artifacts]\nstore = \"s3\"\n".to_owned(),
        "[artifacts.s3]\nsecret_access_key = \"x\"\n".to_owned(),
        s3("http://s3.example.com", "artifacts"),
        s3("https://key:password@s3.example.com", "artifacts"),
        s3(&format!("http://{away}"), "artifacts"),
    ] {
        project.write("home/prowess.toml", &settings);
        for json in [&[][..], &["--json"]] {
            let run = prowess(&project, &[&["artifacts", "list"], json].concat());
            assert!(!run.text().contains("password"), "{run:?}");
            said.push(format!("{settings}{}", run.text()));
        }
    }
    project.write("home/prowess.toml", s3(&format!("http://{away}"), "artifacts"));
    let mut command = project.command(&["artifacts", "list"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    said.push(format!("without credentials:\n{}", project.sandbox.run(command, b"").text()));
    // A tool says the same to the model, and the command itself has run.
    let kept = keep(&project, "x");
    assert_eq!(kept["data"]["exit_code"], 0, "{kept}");
    said.push(format!("a tool:\n{}\n", kept["data"]["warnings"]));
    insta::assert_snapshot!("artifacts_unusable", stable(&said.join("\n")));
}

#[test]
fn help_is_there() {
    let Some(project) = Project::new("artifacts::help_is_there") else { return };
    let help = [&["artifacts", "--help"][..], &["artifacts", "get", "--help"]];
    let help = help.map(|words| project.prowess(words).stdout);
    insta::assert_snapshot!("artifacts_help", help.join("\n---\n"));
}
