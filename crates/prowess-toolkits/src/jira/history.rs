//! `get_changelog`, `get_comments`, `get_worklogs`.

use jiff::Timestamp;
use jiff::fmt::strtime;
use prowess_runtime::ToolOutcome;
use serde_json::{Value, json};

use super::access::ApiVersion;
use super::arguments::Arguments;
use super::client::{Client, Deadline, Patience};
use super::endpoint::{Read, Window};
use super::error::JiraError;
use super::fields::{Rich, id, person, text};
use super::key::IssueKey;
use super::listed::Listed;
use super::page::{Page, Total};
use super::text::{datum, in_quotes, line};

/// Cloud gives no more changes at once, whatever it is asked for.
const MOST_CHANGES: u64 = 100;

/// When something was done: `2024-01-15T10:30:00.000+0000`.
fn created(entry: &Value) -> Option<Timestamp> {
    let text = text(entry, "/created")?;
    let parsed =
        strtime::parse("%Y-%m-%dT%H:%M:%S%.f%z", text).and_then(|time| time.to_timestamp());
    parsed.or_else(|_| text.parse()).ok()
}

/// `1.5` for an hour and a half.
fn hours(seconds: u64) -> String {
    let hundredths = (u128::from(seconds) * 100 + 1800) / 3600;
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Client {
    pub(super) async fn get_changelog(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let (key, window) = (arguments.issue_key()?, arguments.window()?);
        let deadline = self.deadline();
        let page = match self.version(deadline).await? {
            ApiVersion::Two => {
                let read = Read::whole_changelog(&key);
                let mut answer = self.read(&read, deadline, Patience::Retry).await?;
                let all = answer.pointer_mut("/changelog/histories").map(Value::take);
                let Some(Value::Array(mut all)) = all else {
                    return Err(JiraError::invalid("it has no list 'changelog.histories'"));
                };
                all.sort_by_key(|entry| std::cmp::Reverse((created(entry), id(entry))));
                Page::by_offset(Value::Array(all), "histories", window)?
            }
            ApiVersion::Three => self.newest_changes(&key, window, deadline).await?,
        };
        let most = self.settings.field();
        let entry = |change: &Value| {
            let author = person(change, "/author").unwrap_or("Unknown");
            let when = text(change, "/created").unwrap_or("unknown time");
            let items = change["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut shown = format!("\n**{}** by {}:", line(when, most), line(author, most));
            let mut data = Vec::new();
            for item in items.iter().take(self.settings.max_change_items) {
                let field = text(item, "/field").unwrap_or("?");
                let side = |text: &str, id: &str| {
                    item[text].as_str().or_else(|| item[id].as_str()).unwrap_or_default()
                };
                let (from, to) = (side("fromString", "from"), side("toString", "to"));
                let row = format!(
                    "\n- {}: '{}' → '{}'",
                    line(field, most),
                    in_quotes(from, most),
                    in_quotes(to, most),
                );
                if shown.len() + row.len() > self.settings.max_answer_bytes {
                    break;
                }
                shown.push_str(&row);
                data.push(json!({
                    "field": datum(field, most), "from": datum(from, most), "to": datum(to, most),
                }));
            }
            let left_out = items.len() - data.len();
            if left_out > 0 {
                let limit = match data.len() < self.settings.max_change_items {
                    true => "max_answer_bytes",
                    false => "max_change_items",
                };
                shown.push_str(&format!("\n[{left_out} more of this change not shown; {limit}]"));
            }
            let data = json!({
                "id": id(change), "created": datum(when, most), "author": datum(author, most),
                "items": data, "items_left_out": left_out,
            });
            (shown, data)
        };
        let listed = Listed {
            entries: page.items.iter().map(entry).collect(),
            name: "changes",
            between: "\n",
            none: format!("No changes found for {}.", key.as_str()),
            page,
        };
        let heading = format!("**Changelog for {}** (newest first):", key.as_str());
        Ok(listed.tell(&self.settings, |_, _| heading))
    }

    /// Cloud gives the oldest first: what is asked for is counted from the end.
    async fn newest_changes(
        &self,
        key: &IssueKey,
        window: Window,
        deadline: Deadline,
    ) -> Result<Page, JiraError> {
        let window = Window { limit: window.limit.min(MOST_CHANGES), ..window };
        let ask = async |window: Window| {
            let read = Read::changelog(key, window);
            let answer = self.read(&read, deadline, Patience::Retry).await?;
            Page::by_offset(answer, "values", window)
        };
        let first = ask(Window { start: 0, limit: window.limit }).await?;
        let Total::Exact(total) = first.total else {
            return Err(JiraError::invalid("the changelog names no 'total'"));
        };
        let end = total.saturating_sub(window.start);
        let start = end.saturating_sub(window.limit);
        let mut items = if start == 0 { first.items } else { Vec::new() };
        // A server may give fewer at once than it is asked for.
        loop {
            let at = start + items.len() as u64;
            if at >= end {
                break;
            }
            let given = ask(Window { start: at, limit: end - at }).await?.items;
            if given.is_empty() {
                let cause = format!("{} changes of {} were given", items.len(), end - start);
                return Err(JiraError::invalid(cause));
            }
            items.extend(given);
        }
        items.truncate(usize::try_from(end - start).unwrap_or(usize::MAX));
        items.reverse();
        let newest = json!({"values": items, "startAt": window.start, "total": total});
        Page::by_offset(newest, "values", window)
    }

    pub(super) async fn get_comments(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let key = arguments.issue_key()?;
        let window = Window { limit: arguments.max_results()?, ..arguments.window()? };
        let deadline = self.deadline();
        let version = self.version(deadline).await?;
        let read = Read::comments(version, &key, window);
        let answer = self.read(&read, deadline, Patience::Retry).await?;
        let page = Page::by_offset(answer, "comments", window)?;
        // Old servers do not sort as they are asked to.
        let times = page.items.first().and_then(created).zip(page.items.last().and_then(created));
        let order =
            if times.is_some_and(|(first, last)| first < last) { "oldest" } else { "newest" };
        let most = self.settings.field();
        let entry = |comment: &Value| {
            let author = person(comment, "/author").unwrap_or("Unknown");
            let when = text(comment, "/created").unwrap_or("unknown time");
            let body = Rich::read(&comment["body"], self.settings.comment(), &self.settings);
            let quoted = if body.is_empty() { "> (empty)".to_owned() } else { body.quoted() };
            let shown = format!("\n**{}** ({}):\n{quoted}", line(author, most), line(when, most));
            let data = json!({
                "id": id(comment), "author": datum(author, most), "created": datum(when, most),
                "body": body.data(),
            });
            (shown, data)
        };
        let listed = Listed {
            entries: page.items.iter().map(entry).collect(),
            name: "comments",
            between: "\n",
            none: format!("No comments found for {}.", key.as_str()),
            page,
        };
        let heading = format!("**Comments for {}** ({order} first):", key.as_str());
        Ok(listed.tell(&self.settings, |_, _| heading))
    }

    pub(super) async fn get_worklogs(
        &self,
        arguments: Arguments<'_>,
    ) -> Result<ToolOutcome, JiraError> {
        let (key, window) = (arguments.issue_key()?, arguments.window()?);
        let deadline = self.deadline();
        let version = self.version(deadline).await?;
        let read = Read::worklogs(version, &key, window);
        let answer = self.read(&read, deadline, Patience::Retry).await?;
        let page = Page::by_offset(answer, "worklogs", window)?;
        let most = self.settings.field();
        let entry = |worklog: &Value| {
            let author = person(worklog, "/author").unwrap_or("Unknown");
            let started = text(worklog, "/started").unwrap_or("unknown time");
            let seconds = worklog["timeSpentSeconds"].as_u64().unwrap_or(0);
            let spent =
                text(worklog, "/timeSpent").map_or(format!("{}h", hours(seconds)), str::to_owned);
            let comment = Rich::read(&worklog["comment"], self.settings.comment(), &self.settings);
            let mut shown = format!(
                "- **{}**: {} ({})",
                line(author, most),
                line(&spent, most),
                line(started, most),
            );
            if !comment.is_empty() {
                shown.push_str(&format!("\n{}", comment.quoted()));
            }
            let data = json!({
                "id": id(worklog), "author": datum(author, most),
                "started": datum(started, most), "seconds": seconds, "comment": comment.data(),
            });
            (shown, data)
        };
        let listed = Listed {
            entries: page.items.iter().map(entry).collect(),
            name: "worklogs",
            between: "\n",
            none: format!("No worklogs found for {}.", key.as_str()),
            page,
        };
        let name = key.as_str();
        let heading = |page: &Page, entries: &[Value]| {
            let seconds = entries.iter().filter_map(|entry| entry["seconds"].as_u64());
            let sum = hours(seconds.fold(0, u64::saturating_add));
            match page.before == 0 && page.next.is_none() {
                true => format!("**Worklogs for {name}** (Total: {sum}h):"),
                false => format!("**Worklogs for {name}** (Total of those shown: {sum}h):"),
            }
        };
        Ok(listed.tell(&self.settings, heading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_written_shortly() {
        let table =
            [(0, "0"), (60, "0.02"), (5400, "1.5"), (3600, "1"), (36_000, "10"), (7260, "2.02")];
        for (seconds, expected) in table {
            assert_eq!(hours(seconds), expected);
        }
        assert!(hours(u64::MAX).len() > 3);
    }

    #[test]
    fn times_of_both_editions_are_understood() {
        let table = [
            "2024-01-15T10:30:00.000+0000",
            "2024-01-15T12:30:00.000+0200",
            "2024-01-15T10:30:00Z",
        ];
        let times = table.map(|time| created(&json!({"created": time})).unwrap());
        assert!(times.iter().all(|time| *time == times[0]), "{times:?}");
        assert_eq!(created(&json!({"created": "yesterday"})), None);
    }
}
