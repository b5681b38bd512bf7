//! What must hold for every statement. The fuzz target calls this on inputs that it invents, the tests
//! call it on the inputs that were found and kept in `corpus/`.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use prowess_toolkits::{SqlDialect, SqlGuard, TableScope};

/// Whatever passes is a query, and passes again as it would be run. A list of tables lets nothing pass
/// that does not pass without it.
pub fn guard(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for dialect in SqlDialect::ALL {
        let guard = SqlGuard::new(dialect).with_max_tokens(400);
        let listed =
            guard.clone().with_tables(TableScope::new(dialect, [], ["customers".to_owned()]));
        match guard.check(text) {
            Ok(reading) => {
                let kinds = ["select", "explain", "show", "describe", "desc"];
                assert!(kinds.contains(&reading.kind.as_str()), "{dialect}: {text:?}: {reading:?}");
                assert_eq!(
                    guard.check(&reading.text).as_ref(),
                    Ok(&reading),
                    "{dialect}: {text:?}"
                );
            }
            Err(refusal) => {
                assert!(!refusal.to_string().is_empty() && !refusal.code().is_empty());
                assert!(listed.check(text).is_err(), "{dialect}: {text:?}");
            }
        }
    }
}
