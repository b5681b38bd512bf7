//! A real terminal.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Sandbox, skip};

/// So long may something take on a terminal.
const PATIENCE: Duration = Duration::from_secs(60);
/// A usual terminal.
const ROWS: usize = 24;

/// A server of tmux of its own, which goes with the test.
pub(crate) struct Terminal {
    sandbox: Sandbox,
}

impl Terminal {
    /// The terminal; or says that a test cannot run here.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skip(test, "there is no tmux");
            return None;
        }
        Some(Self { sandbox: Sandbox::new() })
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.sandbox.path().join("socket"));
        command.args(["-f", "/dev/null"]).args(arguments);
        command.env_remove("TMUX").env_remove("NO_COLOR").stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command line in a terminal of its own, which stays when the command is over.
    pub(crate) fn begin(&self, name: &str, command: &str) {
        let rows = ROWS.to_string();
        let command = format!("{command}; echo exit $?; exec sleep 600");
        self.tmux(&["new-session", "-d", "-s", name, "-x", "80", "-y", &rows, &command]);
    }

    /// Presses keys, such as `Enter`, `C-c` or `Up`.
    pub(crate) fn press(&self, name: &str, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", name], keys].concat());
    }

    /// Types a text as it is.
    pub(crate) fn type_text(&self, name: &str, text: &str) {
        self.tmux(&["send-keys", "-t", name, "-l", text]);
    }

    /// Pastes a text as terminals do.
    pub(crate) fn paste(&self, name: &str, text: &str) {
        self.tmux(&["set-buffer", "-b", "pasted", text]);
        self.tmux(&["paste-buffer", "-p", "-r", "-b", "pasted", "-t", name]);
    }

    /// The lines of a terminal, from the first to the last one that is used.
    pub(crate) fn lines(&self, name: &str, options: &[&str]) -> Vec<String> {
        let all = self.tmux(&[&["capture-pane", "-p", "-t", name], options].concat());
        let mut lines: Vec<String> = all.lines().map(|line| line.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// What a terminal is called, which programs can change.
    pub(crate) fn title(&self, name: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", name, "#{pane_title}"]).trim().to_owned()
    }

    /// Waits until the lines are as they should be, and gives them.
    pub(crate) fn wait_until(&self, name: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let began = Instant::now();
        loop {
            let lines = self.lines(name, &[]);
            if is_so(&lines) {
                return lines;
            }
            assert!(began.elapsed() < PATIENCE, "{:#?}", self.lines(name, &["-S", "-"]));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a command is over that ends well, and says how long that took.
    pub(crate) fn wait(&self, name: &str) -> Duration {
        let began = Instant::now();
        self.wait_until(name, |lines| lines.last().is_some_and(|line| line == "exit 0"));
        began.elapsed()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let socket = self.sandbox.path().join("socket");
        let _ = Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output();
    }
}
