//! What keys are called.
//!
//! All keys of one script have one hash tag, so that a cluster keeps them on one node: a session's
//! `prefix:{s:app/user/session}…`, the registry's `prefix:{registry}…`, and each content for itself.

use prowess_format::Digest;
use prowess_runtime::SessionKey;

/// So many characters has the longest prefix.
const PREFIX_CHARACTERS: usize = 64;

/// The names of all keys with one prefix.
#[derive(Clone, Debug)]
pub(super) struct Names {
    prefix: String,
    /// What all keys of the registry begin with.
    pub(super) registry: String,
    /// Where changes are told.
    pub(super) channel: String,
}

/// Whether keys may begin so: a brace would decide where a cluster keeps them, and others have a
/// meaning in patterns.
pub(super) fn is_prefix(prefix: &str) -> bool {
    let is_kept = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-' | b':');
    (1..=PREFIX_CHARACTERS).contains(&prefix.len()) && prefix.bytes().all(is_kept)
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            registry: format!("{prefix}:{{registry}}"),
            channel: format!("{prefix}:notices"),
        }
    }

    /// What matches all keys.
    pub(super) fn pattern(&self) -> String {
        format!("{}:*", self.prefix)
    }

    /// Whether this program makes keys like this one.
    pub(super) fn is_ours(&self, key: &str) -> bool {
        let rest = key.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_prefix(":{"));
        rest.is_some_and(|rest| ["s:", "c:", "registry}"].iter().any(|it| rest.starts_with(it)))
    }

    /// A key of the registry.
    pub(super) fn of_registry(&self, part: &str) -> String {
        format!("{}{part}", self.registry)
    }

    /// What all keys of a session begin with.
    pub(super) fn session(&self, key: &SessionKey) -> String {
        let mut name = format!("{}:{{s:", self.prefix);
        for c in key.to_string().chars() {
            match c {
                // A brace would end the tag.
                '{' => name.push_str("%7B"),
                '}' => name.push_str("%7D"),
                '%' => name.push_str("%25"),
                c => name.push(c),
            }
        }
        name.push('}');
        name
    }

    /// Content.
    pub(super) fn content(&self, digest: &Digest) -> String {
        format!("{}:{{c:{}}}", self.prefix, digest.hex())
    }
}

/// A session in the list of sessions: in the order of bytes, these are in the order of keys.
pub(super) fn member(key: &SessionKey) -> String {
    [key.app(), key.user(), key.session()].join("\0")
}

/// The session of such a text.
pub(super) fn session_of(member: &str) -> Option<SessionKey> {
    let mut names = member.split('\0');
    let (app, user, session) = (names.next()?, names.next()?, names.next()?);
    SessionKey::new(app, user, session).ok().filter(|_| names.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_different_sessions_differ_and_have_one_tag() {
        let names = Names::new("prowess");
        let key = |user: &str| names.session(&SessionKey::new("a", user, "s").unwrap());
        assert_eq!(key("u"), "prowess:{s:a/u/s}");
        assert_eq!(key("}{%"), "prowess:{s:a/%7D%7B%25/s}");
        assert_ne!(key("}"), key("%7D"));
    }

    #[test]
    fn keys_of_other_programs_are_told_apart() {
        let names = Names::new("prowess");
        let session = names.session(&SessionKey::new("a", "u", "s").unwrap());
        let content = names.content(&Digest::of(b""));
        for ours in [session + ":meta", content, names.of_registry(":layout")] {
            assert!(names.is_ours(&ours), "{ours}");
        }
        for other in ["prowess:x", "prowess:{x}", "prowess:{registry", "other:{registry}", ""] {
            assert!(!names.is_ours(other), "{other}");
        }
    }

    #[test]
    fn a_member_of_the_list_is_a_session_again() {
        let key = SessionKey::new("a b", "ü", "{s}").unwrap();
        assert_eq!(session_of(&member(&key)), Some(key));
        for bad in ["", "a", "a\0b", "a\0b\0c\0d", "a\0\0c"] {
            assert_eq!(session_of(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn prefixes_are_checked_at_their_edges() {
        for good in ["p", "prowess", "team:a-1_x.y", &"a".repeat(64)] {
            assert!(is_prefix(good), "{good}");
        }
        for bad in ["", "a{b", "a}", "a*", "a b", "é", &"a".repeat(65)] {
            assert!(!is_prefix(bad), "{bad}");
        }
    }
}
