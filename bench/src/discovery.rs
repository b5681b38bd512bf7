//! Finding skills, against the floor of reading them and against others who find them.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use prowess_catalog::{Catalog, DirectorySource};
use prowess_format::Digest;
use rustix::time::{ClockId, clock_gettime};

use crate::results::Row;

const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// Wall and CPU seconds of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    wall: f64,
    cpu: f64,
}

fn cost(work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let cpu_seconds = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let (cpu, wall) = (cpu_seconds(), Instant::now());
    work()?;
    Ok(Cost { wall: wall.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu })
}

/// The median of each kind of cost, contenders taking turns.
fn medians<const N: usize>(
    rounds: usize,
    mut contenders: [&mut dyn FnMut() -> Result<()>; N],
) -> Result<[Cost; N]> {
    let mut samples: [Vec<Cost>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..rounds {
        for (samples, contender) in samples.iter_mut().zip(&mut contenders) {
            samples.push(cost(&mut **contender)?);
        }
    }
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Ok(samples.map(|samples| Cost {
        wall: middle(samples.iter().map(|cost| cost.wall).collect()),
        cpu: middle(samples.iter().map(|cost| cost.cpu).collect()),
    }))
}

/// `count` skills of 3 KB with two scripts and two references each.
fn skills(count: usize) -> Result<PathBuf> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../target/bench-skills/{count}"));
    if root.join(".complete").exists() {
        return Ok(root);
    }
    let _ = fs::remove_dir_all(&root);
    for at in 0..count {
        let name = format!("skill-{at:05}");
        let folder = root.join(&name);
        for inside in ["scripts", "references"] {
            fs::create_dir_all(folder.join(inside))?;
        }
        let mut text = format!(
            "---\nname: {name}\ndescription: Handles job number {at} from start to end, with all its steps and \
             checks. Use this skill when the user asks for job {at}, wants it explained, repeated or undone.\n\
             license: Apache-2.0\ncompatibility: Needs python3\nallowed-tools: Read Write Bash(python3 *)\n\
             metadata:\n  author: bench\n  version: \"1.0.{at}\"\n---\n\n# Job {at}\n\n"
        );
        let mut line = 0;
        while text.len() < 3_000 {
            line += 1;
            writeln!(
                text,
                "{line}. Do step {line} of job {at} with care, and look at the result twice."
            )?;
        }
        text.truncate(3_000);
        fs::write(folder.join("SKILL.md"), text)?;
        for file in ["scripts/run.py", "scripts/check.sh", "references/api.md", "references/faq.md"]
        {
            fs::write(folder.join(file), format!("# {file} of {name}\n").repeat(20))?;
        }
    }
    fs::write(root.join(".complete"), "")?;
    Ok(root)
}

/// The floor: one thread, readdir, open, read, sha256.
fn floor(root: &Path) -> Result<usize> {
    let mut count = 0;
    let mut buffer = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path().join("SKILL.md");
        let Ok(mut file) = fs::File::open(&path) else { continue };
        buffer.clear();
        file.read_to_end(&mut buffer)?;
        std::hint::black_box(Digest::of(&buffer));
        count += 1;
    }
    Ok(count)
}

/// The floor of a refresh: one thread, stat.
fn stat_floor(paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        std::hint::black_box(fs::metadata(path)?);
    }
    Ok(())
}

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut rows = Vec::new();
    for count in SIZES {
        let root = skills(count)?;
        let discover = || -> Result<()> {
            let catalog = Catalog::builder().source(DirectorySource::new(&root)).build();
            let snapshot = runtime.block_on(catalog.refresh());
            ensure!(snapshot.skills().len() == count, "found {}", snapshot.skills().len());
            ensure!(snapshot.diagnostics().is_empty(), "{:?}", snapshot.diagnostics());
            Ok(())
        };
        let rounds = if count > 1_000 { 9 } else { 31 };
        let [floor, ours] = medians(
            rounds,
            [
                &mut || {
                    let found = floor(&root)?;
                    ensure!(found == count, "the floor found {found}");
                    Ok(())
                },
                &mut || discover(),
            ],
        )?;
        let detail =
            |ours: f64, floor: f64| format!("{:.2} ms to {:.2} ms", ours * 1e3, floor * 1e3);
        let what = format!("{count} skills: discovery with full validation, CPU, to the floor");
        rows.push(Row::at_most(&what, ours.cpu / floor.cpu, 2.0, &detail(ours.cpu, floor.cpu)));
        let what = format!("{count} skills: discovery with full validation, wall, to the floor");
        rows.push(Row::at_most(&what, ours.wall / floor.wall, 1.0, &detail(ours.wall, floor.wall)));

        let catalog = Catalog::builder().source(DirectorySource::new(&root)).build();
        runtime.block_on(catalog.refresh());
        let first = runtime.block_on(catalog.refresh());
        let mut paths: Vec<PathBuf> =
            (0..count).map(|at| root.join(format!("skill-{at:05}/SKILL.md"))).collect();
        paths.push(root.clone());
        let [stats, again] = medians(
            rounds,
            [&mut || stat_floor(&paths), &mut || {
                ensure!(runtime.block_on(catalog.refresh()).is_same(&first), "a new snapshot");
                Ok(())
            }],
        )?;
        let what = format!("{count} skills: refresh with nothing changed, wall, to a stat loop");
        rows.push(Row::at_most(
            &what,
            again.wall / stats.wall,
            1.2,
            &detail(again.wall, stats.wall),
        ));
    }
    Ok(rows)
}
