//! How much a scan really reads, as the system counts it: alone in its process (S02, 1).

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use prowess_catalog::{Catalog, DirectorySource, ScanLimits};
use support::{Tree, codes, text};

/// So many skills are worth several threads.
const SKILLS: u64 = 256;

/// The length of each.
const BYTES: u64 = 64 << 10;

/// What a process reads besides: the counter itself, the number of cores.
const ASIDE: u64 = BYTES / 2;

/// What this process has read so far, whoever asked for it.
fn bytes_read() -> u64 {
    let counters = fs::read_to_string("/proc/self/io").unwrap();
    let count = counters.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_limit_on_bytes_bounds_what_is_really_read() {
    let tree = Tree::new();
    for at in 0..SKILLS {
        let name = format!("skill-{at:03}");
        let mut whole = text(&name).into_bytes();
        whole.resize(usize::try_from(BYTES).unwrap(), b'x');
        tree.write(&format!("{name}/SKILL.md"), whole);
    }
    let look = async |limits: ScanLimits| {
        let source = DirectorySource::new(tree.path()).with_limits(limits);
        let catalog = Catalog::builder().source(source).build();
        let mut looks = Vec::new();
        for _ in 0..3 {
            let before = bytes_read();
            let found = catalog.refresh().await;
            looks.push((found, bytes_read() - before));
        }
        looks
    };
    // The control: without a limit that is hit, everything is read, and the system counts it.
    let (found, read) = look(ScanLimits::default()).await.swap_remove(0);
    assert_eq!(found.skills().len() as u64, SKILLS);
    assert!((SKILLS * BYTES..SKILLS * BYTES + ASIDE).contains(&read), "{read}");
    for taken in [0, 1, 10, 100] {
        let limit = taken * BYTES;
        for (found, read) in look(ScanLimits::default().with_bytes(limit)).await {
            assert_eq!((found.skills().len() as u64, codes(&found)), (taken, vec!["scan-limit"]));
            // Threads read as much again, at most, before it is known who comes first.
            assert!(read <= 2 * limit + ASIDE, "{read} bytes for a limit of {limit}");
        }
    }
}
