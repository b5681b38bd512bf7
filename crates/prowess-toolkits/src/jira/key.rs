//! Keys of issues and projects. What is not shaped like one is never part of an address.

use super::error::JiraError;

/// No key is longer.
const LONGEST: usize = 255;

/// The key of an issue: `^[A-Z][A-Z0-9_]+-\d+$`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IssueKey(String);

/// The key of a project, or its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProjectKey(String);

impl IssueKey {
    pub(super) fn parse(text: &str) -> Result<Self, JiraError> {
        let is_key = text.len() <= LONGEST
            && text.split_once('-').is_some_and(|(project, number)| {
                is_project(project) && !number.is_empty() && is_number(number)
            });
        match is_key {
            true => Ok(Self(text.to_owned())),
            false => Err(JiraError::argument("issue_key", "a key such as PROJ-123")),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl ProjectKey {
    pub(super) fn parse(text: &str) -> Result<Self, JiraError> {
        let is_id = !text.is_empty() && is_number(text);
        match text.len() <= LONGEST && (is_project(text) || is_id) {
            true => Ok(Self(text.to_owned())),
            false => Err(JiraError::argument("project_key", "a key such as PROJ, or an id")),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_project(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() > 1
        && bytes.next().is_some_and(|byte| byte.is_ascii_uppercase())
        && bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_look_like_keys() {
        for key in ["PROJ-1", "AB-0", "A1_B-123456789012345678901234567890"] {
            assert_eq!(IssueKey::parse(key).unwrap().as_str(), key);
        }
        let longest = format!("A{}-1", "B".repeat(LONGEST - 3));
        assert!(IssueKey::parse(&longest).is_ok());
        let others = [
            "",
            "-",
            "A-1",
            "-1",
            "PROJ",
            "PROJ-",
            "proj-1",
            "1PROJ-1",
            "PROJ-1 ",
            " PROJ-1",
            "PROJ-1\n",
            "PROJ-1/../x",
            "../PROJ-1",
            "PROJ-1?x=1",
            "PROJ-1#",
            "PROJ%2F-1",
            "PROJ-1-2",
            "PROJ-٣",
            "ÄB-1",
            "PR.OJ-1",
            "..",
            "../../../rest/api/2/myself?x=1",
        ];
        for key in others.iter().map(|key| (*key).to_owned()).chain([format!("{longest}0")]) {
            assert_eq!(IssueKey::parse(&key).unwrap_err().code(), "invalid_arguments", "{key:?}");
        }
    }

    #[test]
    fn projects_have_a_key_or_an_id() {
        for key in ["PROJ", "A_1", "10000"] {
            assert_eq!(ProjectKey::parse(key).unwrap().as_str(), key);
        }
        for key in ["", "A", "proj", "PROJ-1", "PROJ&type=x", "1a", "-1", "../x"] {
            assert!(ProjectKey::parse(key).is_err(), "{key:?}");
        }
    }
}
