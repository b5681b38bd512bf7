//! `prowess serve` and `prowess keys`, as they are typed.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::chat::{command, project};
use support::{Run, Sandbox};

/// A server at work; it is ended with the test.
struct Serving {
    child: Child,
    first: String,
}

impl Serving {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = command(sandbox, &[&["serve", "--port", "0"], arguments].concat());
        command.current_dir(sandbox.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        Self { child, first }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    fn ends_with(&mut self) -> Option<i32> {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(20) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(url: &str, path: &str, header: &str) -> String {
    ask(url, "GET", path, header)
}

fn ask(url: &str, method: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn prowess(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.run(command(sandbox, arguments), b"")
}

#[test]
fn a_server_says_where_it_is_answers_and_ends_when_it_is_told_to() {
    let sandbox = project();
    for signal in ["TERM", "INT"] {
        let mut server = Serving::start(&sandbox, &["--json"]);
        let told: Value = serde_json::from_str(&server.first).unwrap();
        let url = told["url"].as_str().unwrap();
        assert_eq!(told["docs"], format!("{url}/docs"));
        let database = sandbox.path().join("home/prowess.db");
        assert_eq!(told["store"], format!("sqlite:{}", database.display()));
        assert!(get(url, "/ready", "").starts_with("HTTP/1.1 200"), "it is ready at once");
        assert!(get(url, "/docs/", "").contains("swagger"));
        server.signal(signal);
        assert_eq!(server.ends_with(), Some(0), "{signal}");
    }
    let server = Serving::start(&sandbox, &[]);
    assert!(server.first.starts_with("Prowess serves http://127.0.0.1:"), "{}", server.first);
}

/// What the built-in skills of seed 004 give at levels 2 and 3, as their `load_core` and `load_details`.
#[test]
fn built_in_skills_give_over_http_what_is_made_when_they_are_loaded() {
    let sandbox = project();
    let server = Serving::start(&sandbox, &["--json"]);
    let told: Value = serde_json::from_str(&server.first).unwrap();
    let content = |method: &str, path: &str| {
        let answer =
            ask(told["url"].as_str().unwrap(), method, &format!("/api/v1/skills/{path}"), "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["content"].as_str().unwrap().to_owned()
    };
    let sql = content("POST", "write_sql/load");
    let opening = "## SQL Skill Activated\n\n### Database Information\n- Dialect: sqlite\n";
    assert!(sql.starts_with(opening), "{sql}");
    for part in ["CREATE TABLE", "### Read-Only Mode", "# SQL Query Expert"] {
        assert!(sql.contains(part), "{part}: {sql}");
    }
    assert!(content("POST", "jira/load").starts_with("## Jira Skill Activated\n"));
    assert!(content("POST", "xlsx/load").starts_with("## XLSX Skill Activated\n"));
    let rows = content("GET", "write_sql/resources/samples");
    assert!(rows.contains("customers") && rows.contains('|'), "{rows}");
    assert!(content("GET", "write_sql/resources/examples").contains("SELECT"));
}

#[test]
fn what_cannot_be_served_is_said_with_its_remedy() {
    let sandbox = project();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = prowess(&sandbox, &["serve", "--port", &port, "--json"]);
    assert_eq!((run.code, run.json()["error"]["code"].as_str()), (1, Some("address_in_use")));
    let run = prowess(&sandbox, &["serve", "--host", "0.0.0.0", "--port", "0", "--json"]);
    assert_eq!((run.code, run.json()["error"]["code"].as_str()), (1, Some("keys_required")));
    assert!(run.stderr.contains("prowess keys create"), "{}", run.stderr);
    let run = prowess(&sandbox, &["serve", "--host", "203.0.113.9", "--port", "0"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let run = prowess(&sandbox, &["serve", "--host", "example"]);
    assert!(run.code == 2 && run.stderr.contains("127.0.0.1"), "{}", run.stderr);
    sandbox.write("home/prowess.toml", "[server]\nprot = 1\n");
    let run = prowess(&sandbox, &["serve", "--port", "0", "--json"]);
    assert_eq!((run.code, run.json()["error"]["code"].as_str()), (2, Some("invalid_config")));
    assert!(run.stderr.contains("unknown field `prot`"), "{}", run.stderr);
}

#[test]
fn a_key_is_made_listed_used_and_revoked() {
    let sandbox = project();
    let run = prowess(&sandbox, &["keys", "create", "ci", "--role", "viewer", "--expires", "30d"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let key = run.stdout.trim().to_owned();
    assert!(key.starts_with("prowess_") && run.stderr.contains("only time"), "{}", run.stderr);
    let list = prowess(&sandbox, &["keys", "list", "--json"]);
    assert!(!list.stdout.contains(&key[21..]), "{}", list.stdout);
    let listed = &list.json()["keys"][0];
    assert_eq!((&listed["name"], &listed["role"]), (&"ci".into(), &"viewer".into()));
    assert_eq!(listed["usable"], true);
    let text = prowess(&sandbox, &["keys", "list"]).stdout;
    assert!(text.contains("ci") && text.contains("until "), "{text}");
    let server = Serving::start(&sandbox, &["--json"]);
    let told: Value = serde_json::from_str(&server.first).unwrap();
    let url = told["url"].as_str().unwrap();
    let bearer = format!("authorization: Bearer {key}\r\n");
    assert!(get(url, "/api/v1/sessions", "").starts_with("HTTP/1.1 401"));
    assert!(get(url, "/api/v1/sessions", &bearer).starts_with("HTTP/1.1 200"));
    let run = prowess(&sandbox, &["keys", "revoke", "ci", "--json"]);
    assert_eq!((run.code, &run.json()["usable"]), (0, &false.into()));
    std::thread::sleep(Duration::from_millis(50));
    assert!(get(url, "/api/v1/sessions", &bearer).starts_with("HTTP/1.1 401"));
    // The name is free again, once; the old key is not good any more.
    let create = || prowess(&sandbox, &["keys", "create", "ci", "--role", "admin", "--json"]);
    assert_eq!(create().code, 0);
    let again = create();
    assert_eq!((again.code, again.json()["error"]["code"].as_str()), (1, Some("key_exists")));
    assert!(get(url, "/api/v1/sessions", &bearer).starts_with("HTTP/1.1 401"));
    let unknown = prowess(&sandbox, &["keys", "revoke", "nobody"]);
    assert!(
        unknown.code == 1 && unknown.stderr.contains("prowess keys list"),
        "{}",
        unknown.stderr
    );
    let wrong = prowess(&sandbox, &["keys", "create", "x", "--role", "root"]);
    assert_eq!(wrong.code, 2);
}
