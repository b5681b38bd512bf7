//! Which containers there are. Podman knows states that `bollard` does not read (`stopped`), so that
//! one container in such a state would hide all others: the list is asked for and read here.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A container, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Listed {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) labels: HashMap<String, String>,
    #[serde(default)]
    pub(crate) state: String,
}

impl Listed {
    /// Whether it will never run again.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state.as_str(), "exited" | "stopped" | "dead")
    }
}

/// The most bytes of an answer.
const MOST_BYTES: u64 = 64 << 20;

/// All containers with this label, running or not.
pub(crate) async fn list(
    socket: &Path,
    label: &str,
    patience: Duration,
) -> io::Result<Vec<Listed>> {
    let asked = tokio::time::timeout(patience, ask(socket, label)).await;
    let answer = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    read(&answer)
}

async fn ask(socket: &Path, label: &str) -> io::Result<Vec<u8>> {
    let mut line = UnixStream::connect(socket).await?;
    // Nothing in a label of ours needs to be encoded but these.
    let filters = format!("%7B%22label%22:%5B%22{label}%22%5D%7D");
    // This version has no chunks, and ends with the answer.
    let request = format!(
        "GET /containers/json?all=true&filters={filters} HTTP/1.0\r\nHost: localhost\r\n\r\n"
    );
    line.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    line.take(MOST_BYTES).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn read(answer: &[u8]) -> io::Result<Vec<Listed>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.ok_or_else(|| invalid("it does not answer"))?);
    let first = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    match first.split(' ').nth(1) {
        Some("200") => Ok(serde_json::from_slice(&body[4..])?),
        _ => Err(invalid(&first)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_whatever_the_states() {
        let answer =
            b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n[{\"Id\":\"1\",\"State\":\"stopped\",\"X\":1},\
            {\"Id\":\"2\",\"State\":\"running\",\"Labels\":{\"a\":\"b\"}},{\"Id\":\"3\"}]";
        let listed = read(answer).unwrap();
        let ended: Vec<(&str, bool)> =
            listed.iter().map(|it| (it.id.as_str(), it.has_ended())).collect();
        assert_eq!(ended, [("1", true), ("2", false), ("3", false)]);
        assert_eq!(listed[1].labels["a"], "b");
    }

    #[test]
    fn what_is_no_list_is_an_error_that_says_so() {
        for (answer, said) in [
            (&b"HTTP/1.0 500 Internal Server Error\r\n\r\n{}"[..], "500"),
            (b"", "does not answer"),
            (b"HTTP/1.0 200 OK\r\n\r\n[", "EOF"),
        ] {
            let error = read(answer).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
