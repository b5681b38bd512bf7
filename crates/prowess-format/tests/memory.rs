//! No input takes more than a few MiB (S01, 6). A process of its own, so that the high-water
//! mark is ours.

#![cfg(target_os = "linux")]

use prowess_format::{Options, Skill};

const MOST_KIB: u64 = 8 * 1024;

fn high_water_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn hostile_frontmatter_takes_a_few_mebibytes_at_most() {
    let limit = 64 * 1024 - 100;
    let fill = |piece: &str| piece.repeat(limit / piece.len());
    let nested_anchors: String = (0..30).map(|at| format!("&n{at} [")).collect();
    let hostile = [
        format!("k: [{}]", fill("a,")),
        format!("k: [{}]", fill("&a a,")),
        format!("k: [{}]", fill("{},")),
        format!("k: {{{}}}", fill("? a,")),
        format!("k: {nested_anchors}{}{}", fill("a,"), "]".repeat(30)),
        format!("a: &a {}\nk: [{}]", "x".repeat(1000), fill("*a,").split_at(60_000).0),
        fill("- "),
        fill("["),
        fill("? "),
        fill("k: 'x': "),
        (0..limit / 8).map(|at| format!("k{at}:\n")).collect(),
        format!("description: {}", fill("a: ")),
        format!("description: \"{}\"", fill("\\u0041")),
        format!("k: |\n{}", fill(" x\n")),
    ];
    let texts: Vec<String> =
        hostile.iter().map(|frontmatter| format!("---\n{frontmatter}\n---\nbody\n")).collect();
    let before = high_water_kib();
    for text in &texts {
        // Twice: what the first call leaves behind must not pile up.
        for _ in 0..2 {
            let parsed = Skill::parse(text, &Options::new());
            assert!(!parsed.diagnostics.is_empty());
        }
    }
    let taken = high_water_kib() - before;
    assert!(taken <= MOST_KIB, "{taken} KiB");

    // The control: the same count sees an allocation of that size.
    let control = vec![1_u8; usize::try_from(MOST_KIB + 4096).unwrap() * 1024];
    std::hint::black_box(&control);
    assert!(high_water_kib() - before > MOST_KIB, "the measurement does not measure");
}
