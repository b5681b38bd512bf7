//! Lists that come in pages, whichever way Jira counts them.

use serde_json::Value;

use super::endpoint::Window;
use super::error::JiraError;

/// No token of Jira is longer.
const LONGEST_TOKEN: usize = 2048;
/// No list is longer: Jira counts with less.
const LONGEST_LIST: u64 = u32::MAX as u64;

/// Where a list goes on. The model passes it back as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cursor {
    /// After so many entries.
    Offset(u64),
    /// At the page that this token opens, or at the first one, without its first `skip` entries.
    /// `seen` entries were given before.
    Token { seen: u64, skip: u64, token: Option<String> },
}

/// How many entries there are in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Total {
    Exact(u64),
    Approximate(u64),
    /// Jira does not say.
    Unknown,
}

/// A part of a list.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    /// How many entries come before the first one.
    pub(super) before: u64,
    pub(super) total: Total,
    pub(super) next: Option<Cursor>,
    /// How this page was asked for, if by a token.
    here: Option<(u64, Option<String>)>,
}

impl Cursor {
    pub(super) fn parse(text: &str) -> Result<Self, JiraError> {
        let wrong = || JiraError::argument("cursor", "one that an earlier answer gave");
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|number| is_number && *number <= LONGEST_LIST);
            number.ok_or_else(wrong)
        };
        let mut parts = text.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(offset), None, None) => Ok(Self::Offset(number(offset)?)),
            (Some(seen), Some(skip), Some(token)) if is_token(token) || token.is_empty() => {
                let token = Some(token.to_owned()).filter(|token| !token.is_empty());
                Ok(Self::Token { seen: number(seen)?, skip: number(skip)?, token })
            }
            _ => Err(wrong()),
        }
    }

    /// How many entries come before; only where entries are counted.
    pub(super) fn offset(cursor: Option<&Self>) -> Result<u64, JiraError> {
        match cursor {
            None => Ok(0),
            Some(Self::Offset(offset)) => Ok(*offset),
            Some(Self::Token { .. }) => {
                Err(JiraError::argument("cursor", "one that this tool gave for this list"))
            }
        }
    }
}

fn is_token(token: &str) -> bool {
    !token.is_empty()
        && token.len() <= LONGEST_TOKEN
        && token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\'' && byte != b'`')
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offset(offset) => write!(formatter, "{offset}"),
            Self::Token { seen, skip, token } => {
                write!(formatter, "{seen}.{skip}.{}", token.as_deref().unwrap_or_default())
            }
        }
    }
}

/// The entries of an answer, which must all be objects.
fn entries(answer: &mut Value, list: &str) -> Result<Vec<Value>, JiraError> {
    let entries = match answer.is_array() {
        true => Some(answer.take()),
        false => answer.get_mut(list).map(Value::take),
    };
    let Some(Value::Array(entries)) = entries else {
        return Err(JiraError::invalid(format!("it has no list '{list}'")));
    };
    match entries.iter().position(|entry| !entry.is_object()) {
        Some(at) => Err(JiraError::invalid(format!("{list}[{at}] is no object"))),
        None => Ok(entries),
    }
}

impl Page {
    /// A page that was asked for by a number. A server that gives more, or from an earlier entry
    /// on, is understood too.
    pub(super) fn by_offset(
        mut answer: Value,
        list: &str,
        window: Window,
    ) -> Result<Self, JiraError> {
        let is_whole = answer.is_array();
        let mut items = entries(&mut answer, list)?;
        let number = |key: &str| answer.get(key).and_then(Value::as_u64);
        let begins = if is_whole { 0 } else { number("startAt").unwrap_or(window.start) };
        if begins > window.start {
            return Err(JiraError::invalid(format!(
                "it begins at {begins}, not at {}",
                window.start
            )));
        }
        let given = items.len() as u64;
        let is_last = answer.get("isLast").and_then(Value::as_bool);
        let most = number("maxResults").filter(|most| *most > 0).unwrap_or(window.limit);
        let is_end = is_last.unwrap_or(given < most.min(window.limit));
        let total = match number("total") {
            Some(total) => Total::Exact(total),
            None if is_whole || (is_end && given > 0) => Total::Exact(begins + given),
            None if is_end && window.start == 0 => Total::Exact(0),
            None => Total::Unknown,
        };
        let skip = usize::try_from(window.start - begins).unwrap_or(usize::MAX);
        items.drain(..skip.min(items.len()));
        let is_longer = items.len() as u64 > window.limit;
        items.truncate(usize::try_from(window.limit).unwrap_or(usize::MAX));
        let after = window.start + items.len() as u64;
        let has_more = is_longer
            || match total {
                Total::Exact(total) => after < total,
                _ => !is_end,
            };
        let next = (has_more && !items.is_empty()).then_some(Cursor::Offset(after));
        Ok(Self { items, before: window.start, total, next, here: None })
    }

    /// A page that was asked for by a token.
    pub(super) fn by_token(
        mut answer: Value,
        list: &str,
        seen: u64,
        skip: u64,
        token: Option<String>,
    ) -> Result<Self, JiraError> {
        let mut items = entries(&mut answer, list)?;
        items.drain(..usize::try_from(skip).unwrap_or(usize::MAX).min(items.len()));
        let is_last = answer["isLast"].as_bool().unwrap_or(false);
        let next = answer["nextPageToken"].as_str().filter(|_| !is_last);
        if next.is_some_and(|next| !is_token(next)) {
            return Err(JiraError::invalid("its nextPageToken is no token"));
        }
        // A page that leads to itself would never end.
        let next = next.filter(|next| Some(*next) != token.as_deref());
        let after = seen + items.len() as u64;
        let total = if next.is_some() { Total::Unknown } else { Total::Exact(after) };
        let next =
            next.map(|next| Cursor::Token { seen: after, skip: 0, token: Some(next.to_owned()) });
        Ok(Self { items, before: seen, total, next, here: Some((skip, token)) })
    }

    /// Gives no more than the first so many: the list goes on after them.
    pub(super) fn keep(&mut self, count: usize) {
        if count >= self.items.len() {
            return;
        }
        self.items.truncate(count);
        let after = self.before + count as u64;
        self.next = Some(match self.here.take() {
            Some((skip, token)) => Cursor::Token { seen: after, skip: skip + count as u64, token },
            None => Cursor::Offset(after),
        });
    }

    /// `3 of 3`, `51-100 of 120`.
    pub(super) fn showing(&self) -> String {
        let count = self.items.len() as u64;
        let range = match self.before {
            0 => count.to_string(),
            before if count == 0 => format!("0 after {before}"),
            before => format!("{}-{}", before + 1, before + count),
        };
        match self.total {
            Total::Exact(total) => format!("{range} of {total}"),
            Total::Approximate(total) => format!("{range} of approximately {total}"),
            Total::Unknown => format!("{range}; Jira gives no total"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_understood_whichever_way_a_server_counts() {
        let items = |count: usize| vec![json!({}); count];
        let window = Window { start: 2, limit: 2 };
        let next = |offset| Some(Cursor::Offset(offset));
        let table = [
            (json!({"values": items(2), "startAt": 2, "total": 5}), 2, Total::Exact(5), next(4)),
            (json!({"values": items(2), "startAt": 2, "total": 4}), 2, Total::Exact(4), None),
            (json!({"values": items(2), "isLast": false}), 2, Total::Unknown, next(4)),
            (json!({"values": items(2), "isLast": true}), 2, Total::Exact(4), None),
            (json!({"values": items(1)}), 1, Total::Exact(3), None),
            (json!({"values": items(2)}), 2, Total::Unknown, next(4)),
            // It gives fewer at once than it was asked for.
            (json!({"values": items(1), "maxResults": 1}), 1, Total::Unknown, next(3)),
            // It gives all, whatever it was asked for.
            (json!(items(5)), 2, Total::Exact(5), next(4)),
            (json!({"values": items(3), "startAt": 0, "total": 3}), 1, Total::Exact(3), None),
            (json!({"values": [], "total": 9}), 0, Total::Exact(9), None),
            (json!([]), 0, Total::Exact(0), None),
        ];
        for (answer, count, total, next) in table {
            let page = Page::by_offset(answer.clone(), "values", window).unwrap();
            let found = (page.items.len(), page.total, page.next);
            assert_eq!(found, (count, total, next), "{answer}");
        }
    }

    #[test]
    fn a_page_says_what_it_shows_and_where_the_list_goes_on() {
        let page = |count: usize, next: Value| {
            let answer = json!({"issues": vec![json!({}); count], "nextPageToken": next});
            Page::by_token(answer, "issues", 10, 1, Some("here".into())).unwrap()
        };
        let token = |seen, skip, token: &str| {
            Some(Cursor::Token { seen, skip, token: Some(token.to_owned()) })
        };
        // The first of them was given before.
        let mut some = page(4, json!("there"));
        assert_eq!((some.items.len(), &some.next), (3, &token(13, 0, "there")));
        assert_eq!(some.showing(), "11-13; Jira gives no total");
        some.keep(3);
        assert_eq!(some.next, token(13, 0, "there"), "nothing was left out");
        some.keep(2);
        assert_eq!((some.items.len(), &some.next), (2, &token(12, 3, "here")));
        let last = page(4, Value::Null);
        assert_eq!((last.total, &last.next), (Total::Exact(13), &None));
        assert_eq!(last.showing(), "11-13 of 13");
        assert_eq!(page(4, json!("here")).next, None, "it leads to itself");
        assert_eq!(page(1, Value::Null).showing(), "0 after 10 of 10");

        let window = Window { start: 0, limit: 3 };
        let answer = json!({"values": vec![json!({}); 3], "total": 9});
        let mut first = Page::by_offset(answer, "values", window).unwrap();
        assert_eq!(first.showing(), "3 of 9");
        first.keep(1);
        assert_eq!((first.showing().as_str(), first.next), ("1 of 9", Some(Cursor::Offset(1))));
        let approximate = Page { total: Total::Approximate(7), ..page(2, json!("there")) };
        assert_eq!(approximate.showing(), "11-11 of approximately 7");
    }

    #[test]
    fn tokens_and_numbers_of_cursors_have_their_limits_at_the_edge() {
        let token = |length: usize| format!("0.0.{}", "x".repeat(length));
        assert!(Cursor::parse(&token(2048)).is_ok() && Cursor::parse(&token(2049)).is_err());
        assert!(Cursor::parse("4294967295").is_ok() && Cursor::parse("4294967296").is_err());
        for wrong in ["", "+1", "1.", "1.2", "1.2.a'b", "1.2.a`b", "1.2.a b", ".1.x", "1..x"] {
            assert!(Cursor::parse(wrong).is_err(), "{wrong}");
        }
        let first = Cursor::Token { seen: 1, skip: 2, token: None };
        assert_eq!(Cursor::parse("1.2.").unwrap(), first);
        assert!(Cursor::offset(Some(&first)).is_err());
        assert_eq!(Cursor::offset(Some(&Cursor::Offset(7))).unwrap(), 7);
        assert_eq!(Cursor::offset(None).unwrap(), 0);
    }

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_refused(text in "[0-9]{0,12}(\\.[0-9]{0,3}\\..{0,9})?|.{0,20}") {
            if let Ok(cursor) = Cursor::parse(&text) {
                prop_assert_eq!(Cursor::parse(&cursor.to_string()).unwrap(), cursor);
            }
        }
    }
}
