//! `If-Match` and `If-None-Match`.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use prowess_store::{Expected, SkillId, VersionError};

use crate::problem::Problem;

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

/// The tags of a header; our own have no commas.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Vec<String>>, Problem> {
    let mut all = None;
    for value in headers.get_all(name) {
        let invalid = |_| Problem::new(400, "invalid_etag", format!("{name} is no list of ETags"));
        let text = value.to_str().map_err(invalid)?;
        let tags = text.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty());
        all.get_or_insert_with(Vec::new).extend(tags);
    }
    Ok(all)
}
