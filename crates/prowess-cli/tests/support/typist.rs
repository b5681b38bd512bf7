//! `prowess skills`, as somebody types it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::chat::command;
use super::{Run, Sandbox};

/// A server at work; it is ended with the test.
pub(crate) struct Serving {
    child: Child,
    pub(crate) url: String,
}

impl Serving {
    pub(crate) fn start(sandbox: &Sandbox) -> Self {
        let mut command = command(sandbox, &["serve", "--port", "0", "--json"]);
        command.current_dir(sandbox.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let told: Value = serde_json::from_str(&first).unwrap();
        Self { child, url: told["url"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody who types, here or with a server.
pub(crate) struct Typist<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) server: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
}

impl<'a> Typist<'a> {
    pub(crate) fn here(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, server: None, key: None }
    }

    pub(crate) fn skills(&self, arguments: &[&str]) -> Run {
        let mut command = command(self.sandbox, &[&["skills"], arguments].concat());
        for name in ["PROWESS_SERVER", "PROWESS_KEY", "NO_COLOR"] {
            command.env_remove(name);
        }
        if let Some(server) = self.server {
            command.env("PROWESS_SERVER", server);
        }
        if let Some(key) = self.key {
            command.env("PROWESS_KEY", key);
        }
        self.sandbox.run(command, b"")
    }

    pub(crate) fn ok(&self, arguments: &[&str]) -> Run {
        let run = self.skills(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
        run
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.ok(&[arguments, &["--json"]].concat()).json()
    }

    /// The code of an error, for programs and for people.
    pub(crate) fn code(&self, arguments: &[&str]) -> String {
        let run = self.skills(&[arguments, &["--json"]].concat());
        assert_eq!(run.code, 1, "{arguments:?}: {run:?}");
        let code = run.json()["error"]["code"].as_str().unwrap().to_owned();
        assert!(run.stderr.contains(&format!("[{code}]")), "{run:?}");
        code
    }
}

pub(crate) fn skill(name: &str, version: &str, body: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Does {name}. Use it for {name}.\nversion: {version}\n---\n{body}"
    )
}

/// The skills that are listed and were not shipped with the program.
pub(crate) fn custom(typist: &Typist<'_>) -> Vec<Value> {
    let list = typist.json(&["list"]);
    let skills = list["skills"].as_array().unwrap().iter();
    skills.filter(|skill| skill["is_builtin"] == false).cloned().collect()
}
