//! JSON from outside: how deep and how much is known before it is read.

use serde_json::Value;

use super::error::JiraError;
use super::settings::JiraSettings;

/// Reads an answer.
pub(super) fn parse(bytes: &[u8], settings: &JiraSettings) -> Result<Value, JiraError> {
    let measure = measure(bytes);
    let over = |limit, most: usize| JiraError::TooLarge { limit, most: most as u64 };
    if measure.depth > settings.max_json_depth {
        return Err(over("max_json_depth", settings.max_json_depth));
    }
    if measure.values > settings.max_json_values {
        return Err(over("max_json_values", settings.max_json_values));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        JiraError::invalid(format!("it is no JSON (line {line}, column {column})"))
    })
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Measure {
    depth: usize,
    /// At least as many as there are values.
    values: usize,
}

/// How deep it is nested and how many values there are, if it is JSON.
fn measure(bytes: &[u8]) -> Measure {
    let mut measure = Measure { depth: 0, values: 1 };
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in bytes {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                measure.depth = measure.depth.max(depth);
                measure.values += 1;
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (false, b',') => measure.values += 1,
            _ => {}
        }
    }
    measure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_number_are_limited_at_the_edge() {
        let settings = JiraSettings { max_json_depth: 3, max_json_values: 6, ..Default::default() };
        let read = |text: &str| parse(text.as_bytes(), &settings);
        assert!(read(r#"{"a":[{}]}"#).is_ok());
        // What stands in a string does not count.
        assert!(read(r#"["[[[[\"{{{,,,,,,,\\"]"#).is_ok());
        let deep = read("[[[[]]]]").unwrap_err();
        assert_eq!(deep, JiraError::TooLarge { limit: "max_json_depth", most: 3 });
        assert!(read("[1,2,3,4,5]").is_ok());
        let many = read("[1,2,3,4,5,6]").unwrap_err();
        assert_eq!(many, JiraError::TooLarge { limit: "max_json_values", most: 6 });
        let broken = read("<html>").unwrap_err();
        assert_eq!(broken.code(), "jira_invalid_answer");
        assert!(!broken.to_string().contains("html"), "{broken}");
    }

    #[test]
    fn the_deepest_that_is_allowed_can_be_read() {
        let settings = JiraSettings::default();
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(settings.max_json_depth).as_bytes(), &settings).is_ok());
        let deeper = nested(settings.max_json_depth + 1);
        assert_eq!(parse(deeper.as_bytes(), &settings).unwrap_err().code(), "jira_too_large");
    }
}
