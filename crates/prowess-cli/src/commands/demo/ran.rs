//! What came of a run, read from the result that a model is sent.

use prowess_workspace::Tier;
use serde::Deserialize;

/// What came of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Ran {
    pub(super) exit_code: i64,
    pub(super) stdout: String,
    pub(super) stderr: String,
    #[serde(default)]
    output_files: Vec<OutputFile>,
    isolation: Isolation,
}

#[derive(Debug, Deserialize)]
struct OutputFile {
    content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Isolation {
    tier: Tier,
    #[serde(default)]
    partial: Vec<String>,
    #[serde(default)]
    not_enforced: Vec<String>,
}

impl Ran {
    /// Reads a result; nothing but one of a command that was run is one.
    pub(super) fn read(content: &str) -> Option<Self> {
        serde_json::from_str(content).ok()
    }

    /// What was enforced, on a short line.
    pub(super) fn isolation(&self) -> String {
        let Isolation { tier, partial, not_enforced } = &self.isolation;
        let tier = match tier {
            Tier::T0 => "no sandbox (tier 0)",
            Tier::T1 => "sandbox of tier 1",
            Tier::T2 => "sandbox of tier 2",
            Tier::T3 => "container (tier 3)",
        };
        let mut line = format!("isolation: {tier}");
        for (word, names) in [("in part", partial), ("not enforced", not_enforced)] {
            if !names.is_empty() {
                line += &format!("; {word}: {}", names.join(", "));
            }
        }
        if partial.is_empty() && not_enforced.is_empty() {
            line += "; everything is enforced";
        }
        line
    }
}

/// What the model says of a result: the numbers, or what is missing and what to do about it.
pub(super) fn told(content: &str) -> String {
    let Some(ran) = Ran::read(content) else {
        let why = content.strip_prefix("Error: ").unwrap_or(content);
        return match why.starts_with("no sandbox ") {
            true => "Nothing was run: there is no sandbox here. Please install bubblewrap; \
                     `prowess sandbox check` says whether that is enough."
                .to_owned(),
            false => format!("Nothing was run: {why}"),
        };
    };
    let file = ran.output_files.first().and_then(|file| file.content.as_deref());
    match (ran.exit_code, file) {
        (0, Some(text)) => {
            format!("The numbers are {}.", text.split_whitespace().collect::<Vec<_>>().join(", "))
        }
        (0, None) => "The script wrote no file that I could read.".to_owned(),
        // The shell has not found the program.
        (127, _) => "The script needs python3, and there is none here. Please install it, and \
                     play this again."
            .to_owned(),
        (code, _) => format!("The script failed with exit code {code}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAN: &str = r#"{"exit_code":0,"stdout":"wrote 3\n","stderr":"","timed_out":false,
        "output_files":[{"name":"out/fib.txt","content":"0\n1\n1\n"}],
        "isolation":{"tier":"t2","partial":["pids","memory"]}}"#;

    #[test]
    fn the_model_says_what_came_of_it() {
        let table = [
            (RAN.to_owned(), "The numbers are 0, 1, 1."),
            (RAN.replace(r#","content":"0\n1\n1\n""#, ""), "The script wrote no file"),
            (RAN.replace(r#""exit_code":0"#, r#""exit_code":127"#), "The script needs python3"),
            (RAN.replace(r#""exit_code":0"#, r#""exit_code":1"#), "The script failed with exit"),
            (
                "Error: no sandbox can be set up here (T2: none); see".to_owned(),
                "Nothing was run: there is no sandbox here. Please install bubblewrap;",
            ),
            (
                "Error: the supervisor program cannot be used".to_owned(),
                "Nothing was run: the supervisor program cannot be used",
            ),
        ];
        for (content, expected) in table {
            let told = told(&content);
            assert!(told.starts_with(expected), "{content}: {told}");
        }
    }

    #[test]
    fn what_is_not_enforced_is_said() {
        let brief = r#""tier":"t2","partial":["pids","memory"]"#;
        let table = [
            (brief, "isolation: sandbox of tier 2; in part: pids, memory"),
            (r#""tier":"t2""#, "isolation: sandbox of tier 2; everything is enforced"),
            (
                r#""tier":"t1","partial":["metadata"],"not_enforced":["memory"]"#,
                "isolation: sandbox of tier 1; in part: metadata; not enforced: memory",
            ),
        ];
        for (isolation, expected) in table {
            let ran = Ran::read(&RAN.replace(brief, isolation)).map(|ran| ran.isolation());
            assert_eq!(ran.as_deref(), Some(expected));
        }
        assert!(Ran::read("Order 1042: stoneware teapot").is_none());
    }
}
