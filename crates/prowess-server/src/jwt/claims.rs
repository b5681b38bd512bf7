//! What a token says about whoever shows it.

use prowess_store::Role;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// So many bytes of a name are kept as they are.
const MAX_NAME_BYTES: usize = 112;
/// So many are kept of one that is longer, before its sha256.
const KEPT_BYTES: usize = MAX_NAME_BYTES - 65;

/// The claim that is called so; or, if there is none, the one that the words between the dots lead
/// to. Names with dots (`https://example.com/roles`) are so found too.
pub(super) fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    if let Some(found) = claims.get(name) {
        return Some(found);
    }
    name.split('.').try_fold(claims, |value, word| value.as_object()?.get(word))
}

/// The highest role that a claim names: one word, or a list of words. Nothing else counts.
pub(super) fn role(claim: &Value) -> Option<Role> {
    let word = |value: &Value| value.as_str().and_then(|word| word.parse::<Role>().ok());
    match claim {
        Value::Array(all) => all.iter().filter_map(word).max(),
        one => word(one),
    }
}

/// A name as it is in sessions and in the log: short, without anything that means something there,
/// and never that of somebody else.
pub(super) fn plain_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@|+=:".contains(&byte);
    let mut plain = String::with_capacity(name.len());
    for byte in name.bytes() {
        match is_plain(byte) {
            true => plain.push(char::from(byte)),
            false => plain.push_str(&format!("%{byte:02X}")),
        }
    }
    if plain.len() <= MAX_NAME_BYTES {
        return plain;
    }
    // No plain name has a tilde.
    plain.truncate(KEPT_BYTES);
    let digest = Sha256::digest(name.as_bytes());
    plain.push('~');
    plain.extend(digest.iter().map(|byte| format!("{byte:02x}")));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use prowess_runtime::SessionKey;
    use serde_json::json;

    #[test]
    fn a_claim_is_found_by_its_name_and_inside_of_others() {
        let claims = json!({
            "role": "viewer",
            "realm_access": {"roles": ["editor"]},
            "https://example.com/roles": ["admin"],
            "a.b": 1, "a": {"b": 2, "c": {"d": 3}},
            "list": [{"x": 1}],
        });
        for (name, expected) in [
            ("role", Some(json!("viewer"))),
            ("realm_access.roles", Some(json!(["editor"]))),
            ("https://example.com/roles", Some(json!(["admin"]))),
            ("a.b", Some(json!(1))),
            ("a.c.d", Some(json!(3))),
            ("a.c.e", None),
            ("role.length", None),
            ("list.0", None),
            ("list.0.x", None),
            ("", None),
            (".", None),
        ] {
            assert_eq!(claim(&claims, name).cloned(), expected, "{name}");
        }
    }

    #[test]
    fn the_highest_role_of_a_list_counts_and_only_whole_words_are_roles() {
        for (claim, expected) in [
            (json!("viewer"), Some(Role::Viewer)),
            (json!("admin"), Some(Role::Admin)),
            (json!(["viewer", "publisher", "editor"]), Some(Role::Publisher)),
            (json!(["offline_access", "viewer", "uma"]), Some(Role::Viewer)),
            (json!([1, null, {"role": "admin"}, ["admin"], "viewer"]), Some(Role::Viewer)),
            (json!([]), None),
            (json!(""), None),
            (json!("Admin"), None),
            (json!("ADMIN"), None),
            (json!(" admin"), None),
            (json!("admin "), None),
            (json!("viewer admin"), None),
            (json!("viewer,admin"), None),
            (json!("admin\u{0}"), None),
            (json!("аdmin"), None), // The first letter is Cyrillic.
            (json!({"admin": true}), None),
            (json!([["admin"]]), None),
            (json!(3), None),
            (json!(true), None),
            (json!(null), None),
        ] {
            assert_eq!(role(&claim), expected, "{claim}");
        }
    }

    #[test]
    fn names_are_plain_and_stay_different() {
        for (name, expected) in [
            ("ada", "ada"),
            ("auth0|62a", "auth0|62a"),
            ("ada@example.com", "ada@example.com"),
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            ("a b", "a%20b"),
            ("a\nb", "a%0Ab"),
            ("\u{1b}[31m", "%1B%5B31m"),
            ("ä", "%C3%A4"),
            ("~", "%7E"),
        ] {
            assert_eq!(plain_name(name), expected);
        }
        let long = |end: char| plain_name(&format!("{}{end}", "a".repeat(112)));
        assert_eq!(plain_name(&"a".repeat(112)).len(), 112);
        assert_eq!(long('b').len(), 112);
        assert_ne!(long('b'), long('c'));
        assert!(long('b').starts_with(&format!("{}~", "a".repeat(47))), "{}", long('b'));
        for name in ["a/b", &"ä/".repeat(500), "\u{0}\r\n", ".", ".."] {
            let user = format!("jwt:{}", plain_name(name));
            assert!(SessionKey::new("app", &user, "s").is_ok(), "{user}");
        }
    }
}
