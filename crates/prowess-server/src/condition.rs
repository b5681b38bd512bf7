//! `If-Match` and `If-None-Match`.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use prowess_store::{Expected, SkillId, VersionError};

use crate::problem::Problem;

/// What `If-Match` is like: what [`IfMatch::of`] takes.
pub(crate) const IF_MATCH_PATTERN: &str =
    r#"^(\*|(W/)?"[\x21\x23-\x7e]*"([ \t]*,[ \t]*(W/)?"[\x21\x23-\x7e]*")*)$"#;

/// What a request says about the state that it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// Nothing.
    Absent,
    /// Any state will do.
    Any,
    /// It must be one of these.
    OneOf(Vec<String>),
}

impl IfMatch {
    /// What the headers say.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let tags = tags(headers, &IF_MATCH)?;
        Ok(match tags {
            None => Self::Absent,
            Some(tags) if tags.iter().any(|tag| tag == "*") => Self::Any,
            Some(tags) => Self::OneOf(tags),
        })
    }

    /// Whether a change without it is refused: 428.
    pub(crate) fn required(self) -> Result<Self, Problem> {
        match self {
            Self::Absent => Err(Problem::new(
                428,
                "precondition_required",
                "say which state you change: `If-Match` with the ETag of GET, or `If-Match: *`",
            )),
            known => Ok(known),
        }
    }

    /// Whether it names this tag.
    pub(crate) fn names(&self, tag: &HeaderValue) -> bool {
        match self {
            Self::Absent | Self::Any => false,
            Self::OneOf(tags) => tags.iter().any(|it| it.as_bytes() == tag.as_bytes()),
        }
    }

    /// What must be there for a change of a skill that has this revision and this tag now; 412 if it
    /// has not.
    pub(crate) fn expected(
        &self,
        skill: &SkillId,
        actual: u64,
        now: &HeaderValue,
    ) -> Result<Expected, Problem> {
        match self {
            Self::Absent | Self::Any => Ok(Expected::Present),
            Self::OneOf(_) if self.names(now) => Ok(Expected::Revision(actual)),
            Self::OneOf(tags) => {
                // The revision that is meant, as far as that can be told.
                let revision = |tag: &String| tag.trim_matches('"').split('-').next()?.parse().ok();
                let expected = tags.iter().find_map(revision).unwrap_or_default();
                Err(VersionError::Stale { skill: skill.clone(), expected, actual }.into())
            }
        }
    }
}

/// Whether whoever asks has this already.
pub(crate) fn is_known(headers: &HeaderMap, now: &HeaderValue) -> bool {
    let strong = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    let Ok(Some(tags)) = tags(headers, &IF_NONE_MATCH) else { return false };
    tags.iter().any(|tag| tag == "*" || strong(tag).as_bytes() == now.as_bytes())
}

/// The tags of a header, as they are written: one or more with commas between them, or `*`.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Vec<String>>, Problem> {
    let mut all: Option<Vec<String>> = None;
    for value in headers.get_all(name) {
        let invalid = || {
            let message =
                format!("{name} is no list of ETags, such as \"1-0123456789abcdef\", nor *");
            Problem::new(400, "invalid_etag", message)
        };
        let text = value.to_str().map_err(|_| invalid())?;
        let tags = listed(text).ok_or_else(invalid)?;
        all.get_or_insert_default().extend(tags);
    }
    Ok(all)
}

/// The tags of a list, if it is one.
fn listed(text: &str) -> Option<Vec<String>> {
    let mut rest = text.trim();
    if rest == "*" {
        return Some(vec![rest.to_owned()]);
    }
    let mut tags = Vec::new();
    loop {
        let begin = if rest.starts_with("W/\"") { 3 } else { 1 };
        let quoted = rest.get(begin..).filter(|_| rest[begin - 1..].starts_with('"'))?;
        let end = begin + quoted.find('"')? + 1;
        if !rest[begin..end].bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        tags.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => return rest.is_empty().then_some(tags),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_tag_is_refused() {
        for (text, expected) in [
            ("*", Some(vec!["*"])),
            (" * ", Some(vec!["*"])),
            ("\"1-a\"", Some(vec!["\"1-a\""])),
            ("\"\"", Some(vec!["\"\""])),
            ("W/\"1-a\" ,\"b,c\"", Some(vec!["W/\"1-a\"", "\"b,c\""])),
            ("", None),
            ("\"", None),
            ("1-a", None),
            ("W/1", None),
            ("w/\"1\"", None),
            ("é", None),
            ("\"a\" \"b\"", None),
            ("\"a\",", None),
            ("\"a b\"", None),
            (",\"a\"", None),
            ("*, \"a\"", None),
        ] {
            let expected = expected.map(|tags| tags.into_iter().map(str::to_owned).collect());
            assert_eq!(listed(text), expected, "{text:?}");
        }
    }
}
