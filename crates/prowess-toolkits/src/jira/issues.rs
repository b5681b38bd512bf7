//! `search_issues`, `get_issue`, `get_sprint_issues`.

use std::collections::BTreeSet;

use prowess_runtime::ToolOutcome;
use serde_json::{Value, json};

use super::access::ApiVersion;
use super::arguments::Arguments;
use super::client::{Client, Deadline, Patience};
use super::endpoint::{Read, Window};
use super::error::JiraError;
use super::fields::{Rich, listed_issue, person, text};
use super::listed::{Listed, answer};
use super::page::{Cursor, Page, Total};
use super::text::{datum, line};

/// How many there are, and how many of them are shown.
fn found(page: &Page, of: &str) -> String {
    let shown = match page.before {
        0 => page.items.len().to_string(),
        before => format!("{}-{}", before + 1, before + page.items.len() as u64),
    };
    match page.total {
        Total::Exact(total) => format!("Found {total} issues{of} (showing {shown}):"),
        Total::Approximate(total) => {
            format!("Found approximately {total} issues{of} (showing {shown}):")
        }
        Total::Unknown => {
            format!("Found more issues{of} than these (showing {shown}; Jira gives no total):")
        }
    }
}

impl Client {
    pub(super) async fn search_issues(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let (jql, limit) = (arguments.jql()?, arguments.limit()?);
        let cursor = arguments.cursor()?;
        let deadline = self.deadline();
        let page = match self.search_by(&cursor, deadline).await? {
            ApiVersion::Two => {
                let page = self.search_by_offset(jql, limit, cursor.as_ref(), deadline).await;
                match page {
                    // Cloud has no such search, whichever version is set for the rest.
                    Err(error) if error.is_gone() && cursor.is_none() && self.is_version_set() => {
                        self.remember_cloud();
                        self.search_by_token(jql, limit, None, deadline).await?
                    }
                    page => page?,
                }
            }
            ApiVersion::Three => self.search_by_token(jql, limit, cursor, deadline).await?,
        };
        let entries = page.items.iter().map(|issue| listed_issue(issue, &self.settings));
        let listed = Listed {
            entries: entries.collect(),
            name: "issues",
            between: "\n",
            none: format!("No issues found for query: {}", line(jql, self.settings.field())),
            page,
        };
        Ok(listed.tell(&self.settings, |page, _| found(page, "")))
    }

    /// By which version it is searched. A version that is set says little: a Cloud answers to both,
    /// and searches by one. Its cursors tell.
    async fn search_by(
        &self,
        cursor: &Option<Cursor>,
        deadline: Deadline,
    ) -> Result<ApiVersion, JiraError> {
        let is_of_cloud = matches!(cursor, Some(Cursor::Token { .. })) && self.is_version_set();
        match is_of_cloud || self.is_cloud_known() {
            true => Ok(ApiVersion::Three),
            false => self.version(deadline).await,
        }
    }

    async fn search_by_offset(
        &self,
        jql: &str,
        limit: u64,
        cursor: Option<&Cursor>,
        deadline: Deadline,
    ) -> Result<Page, JiraError> {
        let window = Window { start: Cursor::offset(cursor)?, limit };
        let read = Read::search_by_offset(jql, window);
        let answer = self.read(&read, deadline, Patience::Retry).await?;
        Page::by_offset(answer, "issues", window)
    }

    async fn search_by_token(
        &self,
        jql: &str,
        limit: u64,
        cursor: Option<Cursor>,
        deadline: Deadline,
    ) -> Result<Page, JiraError> {
        let (seen, skip, token) = match cursor {
            None => (0, 0, None),
            Some(Cursor::Token { seen, skip, token }) => (seen, skip, token),
            Some(Cursor::Offset(_)) => {
                return Err(JiraError::argument(
                    "cursor",
                    "one that this tool gave for this query",
                ));
            }
        };
        let ask = async |seen, skip, token: Option<String>| {
            let read = Read::search_by_token(jql, limit, token.as_deref());
            let answer = self.read(&read, deadline, Patience::Retry).await?;
            let mut page = Page::by_token(answer, "issues", seen, skip, token)?;
            // Whatever a server gives.
            page.keep(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(page)
        };
        let mut tokens: BTreeSet<String> = token.iter().cloned().collect();
        let mut page = ask(seen, skip, token).await?;
        // Cloud may give pages without entries before one with some.
        while page.items.is_empty()
            && let Some(Cursor::Token { token: Some(token), .. }) = &page.next
        {
            if !tokens.insert(token.clone()) {
                return Err(JiraError::invalid("its nextPageToken leads in a circle"));
            }
            match ask(seen, 0, Some(token.clone())).await {
                Ok(next) => page = next,
                // The cursor leads on from here.
                Err(JiraError::TooSlow { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        if page.total == Total::Unknown {
            // Good to know, and no more than that.
            let count = Read::approximate_count(jql);
            if let Ok(count) = self.read(&count, deadline, Patience::Once).await
                && let Some(count) = count["count"].as_u64()
            {
                page.total = Total::Approximate(count);
            }
        }
        Ok(page)
    }

    pub(super) async fn get_issue(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let key = arguments.issue_key()?;
        let deadline = self.deadline();
        let version = self.version(deadline).await?;
        let issue = self.read(&Read::issue(version, &key), deadline, Patience::Retry).await?;
        if !issue["fields"].is_object() {
            return Err(JiraError::invalid("it has no 'fields'"));
        }
        Ok(self.tell_issue(&issue, key.as_str()))
    }

    fn tell_issue(&self, issue: &Value, asked: &str) -> ToolOutcome {
        let most = self.settings.field();
        // An issue that was moved answers with its new key.
        let key = text(issue, "/key").unwrap_or(asked);
        let summary = text(issue, "/fields/summary").unwrap_or("(no summary)");
        let name = |pointer: &str| text(issue, pointer);
        let rows = [
            ("Type", name("/fields/issuetype/name").unwrap_or("Unknown")),
            ("Status", name("/fields/status/name").unwrap_or("Unknown")),
            ("Priority", name("/fields/priority/name").unwrap_or("None")),
            ("Assignee", person(issue, "/fields/assignee").unwrap_or("Unassigned")),
            ("Reporter", person(issue, "/fields/reporter").unwrap_or("Unknown")),
            ("Created", name("/fields/created").unwrap_or("Unknown")),
            ("Updated", name("/fields/updated").unwrap_or("Unknown")),
        ];
        let mut out = format!("# {}: {}\n", line(key, most), line(summary, most));
        for (label, value) in rows {
            out.push_str(&format!("\n**{label}:** {}", line(value, most)));
        }
        let labels = issue["fields"]["labels"].as_array().map(Vec::as_slice).unwrap_or_default();
        let labels: Vec<&str> = labels.iter().filter_map(Value::as_str).collect();
        if !labels.is_empty() {
            out.push_str(&format!("\n**Labels:** {}", line(&labels.join(", "), most)));
        }
        let description = &issue["fields"]["description"];
        let description = Rich::read(description, self.settings.description(), &self.settings);
        out.push_str("\n\n## Description\n\n");
        match description.is_empty() {
            true => out.push_str("No description."),
            false => out.push_str(&description.quoted()),
        }
        let short = |text: &str| datum(text, most);
        let named = |pointer: &str| name(pointer).map(short);
        // As many as the text shows.
        let mut room = most.bytes;
        let shown = labels.iter().take_while(|label| {
            let fits = label.len() <= room;
            room = room.saturating_sub(label.len() + ", ".len());
            fits
        });
        let shown: Vec<&str> = shown.copied().collect();
        let data = json!({
            "key": short(key), "summary": short(summary),
            "type": named("/fields/issuetype/name"), "status": named("/fields/status/name"),
            "priority": named("/fields/priority/name"),
            "assignee": person(issue, "/fields/assignee").map(short),
            "reporter": person(issue, "/fields/reporter").map(short),
            "created": named("/fields/created"), "updated": named("/fields/updated"),
            "labels": shown, "labels_left_out": labels.len() - shown.len(),
            "description": description.data(),
        });
        answer(&out, data)
    }

    pub(super) async fn get_sprint_issues(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let (sprint, window) = (arguments.id("sprint_id")?, arguments.window()?);
        let read = Read::sprint_issues(sprint, window);
        let answer = self.read(&read, self.deadline(), Patience::Retry).await?;
        let page = Page::by_offset(answer, "issues", window)?;
        let entries = page.items.iter().map(|issue| listed_issue(issue, &self.settings));
        let listed = Listed {
            entries: entries.collect(),
            name: "issues",
            between: "\n",
            none: format!("No issues found in sprint {sprint}."),
            page,
        };
        let of = format!(" in sprint {sprint}");
        Ok(listed.tell(&self.settings, |page, _| found(page, &of)))
    }
}
