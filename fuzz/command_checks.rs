//! What must hold for every command that a host lists. The fuzz target calls this on inputs that it
//! invents, the tests call it on the inputs that were found and kept in `corpus/`.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use prowess_toolkits::CommandPolicy;
use prowess_workspace::Command;

/// Whatever is accepted has no syntax in it, means the same words to another reader, and means them
/// again when they are put into quotes.
pub fn command(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let lists = [
        (names(&["x", "sed", "tar"]), names(&[])),
        (names(&[]), names(&["rm"])),
        (names(&["x", "env"]), names(&["rm"])),
    ];
    for (allowed, denied) in lists {
        let policy = CommandPolicy::new(&allowed, &denied).expect("the lists are fine");
        for text in [text.to_owned(), format!("x {text}"), format!("sed {text}")] {
            check(&policy, &text);
        }
    }
}

fn check(policy: &CommandPolicy, text: &str) {
    let Some(words) = words(policy, text) else {
        return;
    };
    assert!(!text.contains([';', '&', '|', '<', '>', '`', '\n', '\r', '\0']), "{text:?}");
    assert!(!words.is_empty() && !words[0].is_empty(), "{text:?}");
    assert!(words[0].is_ascii() && !words[0].contains(char::is_whitespace), "{text:?}");
    assert_eq!(shlex::split(text).as_ref(), Some(&words), "{text:?}");
    let quoted: Vec<String> =
        words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    assert_eq!(self::words(policy, &quoted.join(" ")), Some(words), "{text:?}");
}

fn words(policy: &CommandPolicy, text: &str) -> Option<Vec<String>> {
    match policy.command(text) {
        Ok(Command::Installed { words, .. }) => Some(words),
        Ok(other) => panic!("{text:?}: {other:?}"),
        Err(error) => {
            assert!(matches!(error.code(), "command_not_allowed" | "invalid_arguments"));
            assert!(!error.to_string().is_empty());
            None
        }
    }
}
