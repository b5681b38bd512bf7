//! Tests that run in a process of their own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which database a child works on. Without it a child does nothing.
pub(crate) const DATABASE: &str = "PROWESS_TEST_DATABASE";
/// What a child calls itself.
pub(crate) const NAME: &str = "PROWESS_TEST_NAME";

pub(crate) fn database_of_child() -> Option<PathBuf> {
    std::env::var_os(DATABASE).map(PathBuf::from)
}

/// Another process that runs one test of this file on a database.
pub(crate) fn child(test: &str, database: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(DATABASE, database);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// One line for the parent, at once.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    // The test harness may have begun a line of its own.
    out.write_all(format!("\n> {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// What a child has told in a line.
pub(crate) fn told(line: &str) -> Option<&str> {
    line.strip_prefix("> ")?.strip_suffix('\n')
}
