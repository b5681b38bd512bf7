//! How a database is opened.

use std::sync::Barrier;

use prowess_store::SqliteSessions;

#[test]
fn many_make_one_database_at_the_same_time() {
    for round in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prowess.db");
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            let openers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        SqliteSessions::open(&path).map(|_| ())
                    })
                })
                .collect();
            for opener in openers {
                opener.join().unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
        });
    }
}
