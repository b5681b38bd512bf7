//! What a call says.

use serde_json::Value;

use super::endpoint::Window;
use super::error::JiraError;
use super::key::{IssueKey, ProjectKey};
use super::page::Cursor;
use super::settings::JiraSettings;

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    pub(super) values: &'a Value,
    pub(super) settings: &'a JiraSettings,
}

impl<'a> Arguments<'a> {
    /// A text that is there and not empty.
    fn text(self, name: &'static str) -> Result<Option<&'a str>, JiraError> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(JiraError::argument(name, "a text")),
        }
    }

    fn number(self, name: &'static str) -> Result<Option<u64>, JiraError> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(number) => {
                let number = number.as_u64().map(Some);
                number
                    .ok_or_else(|| JiraError::argument(name, "a whole number that is not negative"))
            }
        }
    }

    pub(super) fn id(self, name: &'static str) -> Result<u64, JiraError> {
        self.number(name)?.ok_or_else(|| JiraError::argument(name, "given: an id, a whole number"))
    }

    pub(super) fn issue_key(self) -> Result<IssueKey, JiraError> {
        IssueKey::parse(self.text("issue_key")?.unwrap_or_default())
    }

    pub(super) fn project_key(self) -> Result<Option<ProjectKey>, JiraError> {
        self.text("project_key")?.map(ProjectKey::parse).transpose()
    }

    pub(super) fn jql(self) -> Result<&'a str, JiraError> {
        let jql = self.text("jql")?.unwrap_or_default().trim();
        let most = self.settings.max_jql_bytes;
        if jql.is_empty() {
            return Err(JiraError::argument(
                "jql",
                "a query such as project = PROJ ORDER BY created",
            ));
        }
        if jql.len() > most {
            let must = format!("no longer than {most} bytes (max_jql_bytes); it has {}", jql.len());
            return Err(JiraError::argument("jql", must));
        }
        Ok(jql)
    }

    /// One of these words, in any case; `all` is none of them.
    pub(super) fn word(
        self,
        name: &'static str,
        default: &'static str,
        known: &'static [&'static str],
    ) -> Result<&'static str, JiraError> {
        let given = self.text(name)?.unwrap_or(default).trim().to_ascii_lowercase();
        let found = known.iter().copied().find(|word| *word == given);
        found.ok_or_else(|| JiraError::argument(name, format!("one of {}", known.join(", "))))
    }

    /// How many entries are asked for.
    pub(super) fn limit(self) -> Result<u64, JiraError> {
        let (default, most) = (self.settings.default_limit, self.settings.max_limit);
        match self.number("limit")? {
            None => Ok(default),
            Some(limit) if (1..=most).contains(&limit) => Ok(limit),
            Some(_) => Err(JiraError::argument("limit", format!("from 1 to {most} (max_limit)"))),
        }
    }

    /// The same, for the tool that had a name of its own for it.
    pub(super) fn max_results(self) -> Result<u64, JiraError> {
        if self.number("limit")?.is_some() {
            return self.limit();
        }
        let most = self.settings.max_limit;
        match self.number("max_results")? {
            None => self.limit(),
            Some(0) => Err(JiraError::argument("max_results", "at least 1")),
            // It has a default in the skill, which a host may not allow.
            Some(asked) => Ok(asked.min(most)),
        }
    }

    pub(super) fn cursor(self) -> Result<Option<Cursor>, JiraError> {
        self.text("cursor")?.map(Cursor::parse).transpose()
    }

    pub(super) fn window(self) -> Result<Window, JiraError> {
        let start = Cursor::offset(self.cursor()?.as_ref())?;
        Ok(Window { start, limit: self.limit()? })
    }
}
