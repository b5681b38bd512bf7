//! Finding skills, against the floor of reading them and against others who find them.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use prowess_catalog::{Blocking, Catalog, DirectorySource};
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

/// A project with `count` skills of 3 KB with two scripts and two references each, in
/// `.claude/skills`. Only the fields that every peer reads.
pub(crate) fn project(count: usize) -> Result<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-skills");
    fs::create_dir_all(&target)?;
    let project = target.canonicalize()?.join(count.to_string());
    if project.join(".complete").exists() {
        return Ok(project);
    }
    let _ = fs::remove_dir_all(&project);
    for at in 0..count {
        let name = format!("skill-{at:05}");
        let folder = project.join(".claude/skills").join(&name);
        for inside in ["scripts", "references"] {
            fs::create_dir_all(folder.join(inside))?;
        }
        let mut text = format!(
            "---\nname: {name}\ndescription: Handles job number {at} from start to end, with all its steps and \
             checks. Use this skill when the user asks for job {at}, wants it explained, repeated or undone.\n\
             license: Apache-2.0\ncompatibility: Needs python3 and a network\n\
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
    fs::write(project.join(".complete"), "")?;
    Ok(project)
}

/// As the command line reads a folder.
fn source(root: &Path) -> DirectorySource {
    DirectorySource::new(root).with_blocking(Blocking::Here)
}

/// The floor: one thread, readdir, open, read, sha256.
fn floor(root: &Path) -> Result<usize> {
    let paths = fs::read_dir(root)?.map(|entry| Ok(entry?.path().join("SKILL.md")));
    read_and_hash(paths)
}

/// What two threads make of the floor: nobody who uses both cores can be faster.
fn split_floor(root: &Path) -> Result<()> {
    let paths: Vec<PathBuf> = fs::read_dir(root)?
        .map(|entry| Ok(entry?.path().join("SKILL.md")))
        .collect::<Result<_>>()?;
    let (here, there) = paths.split_at(paths.len() / 2);
    let half = |paths: &[PathBuf]| read_and_hash(paths.iter().map(|path| Ok(path.clone())));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| half(there));
        half(here)?;
        other.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        Ok(())
    })
}

fn read_and_hash(paths: impl Iterator<Item = Result<PathBuf>>) -> Result<usize> {
    let mut count = 0;
    let mut buffer = Vec::new();
    for path in paths {
        let Ok(mut file) = fs::File::open(path?) else { continue };
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

/// A peer: what runs it, how it is called there, how often it is run at the largest size, and how
/// many times slower it must be.
struct Peer {
    what: &'static str,
    variable: &'static str,
    script: Option<&'static str>,
    name: &'static str,
    rounds: usize,
    least: f64,
}

const PYTHON: Option<&str> = Some("peers/python/discovery.py");

const PEERS: [Peer; 8] = [
    Peer {
        what: "deepagents 0.7.32",
        variable: "PROWESS_PEERS_DEEPAGENTS",
        script: PYTHON,
        name: "deepagents",
        rounds: 3,
        least: 40.0,
    },
    Peer {
        what: "deepagents 0.7.32 with PyYAML's C loader",
        variable: "PROWESS_PEERS_DEEPAGENTS",
        script: PYTHON,
        name: "deepagents-c",
        rounds: 3,
        least: 8.0,
    },
    Peer {
        what: "skills-ref 0.1.1",
        variable: "PROWESS_PEERS_PYTHON",
        script: PYTHON,
        name: "skills-ref",
        rounds: 1,
        least: 100.0,
    },
    Peer {
        what: "agent-skills 0.3.0",
        variable: "PROWESS_PEERS_RUST",
        script: None,
        name: "agent-skills",
        rounds: 9,
        least: 2.0,
    },
    Peer {
        what: "adk-skill 2.3.0",
        variable: "PROWESS_PEERS_RUST",
        script: None,
        name: "adk-skill",
        rounds: 9,
        least: 2.0,
    },
    Peer {
        what: "skm-core 0.1.0",
        variable: "PROWESS_PEERS_RUST",
        script: None,
        name: "skm-core",
        rounds: 9,
        least: 2.0,
    },
    Peer {
        what: "Eino 0.7.36",
        variable: "PROWESS_PEERS_GO",
        script: None,
        name: "eino",
        rounds: 9,
        least: 3.0,
    },
    Peer {
        what: "trpc-agent-go 1.10.0",
        variable: "PROWESS_PEERS_GO",
        script: None,
        name: "trpc",
        rounds: 9,
        least: 3.0,
    },
];

impl Peer {
    /// Its median wall seconds for a project.
    fn measure(&self, project: &Path, count: usize) -> Result<f64> {
        let program = std::env::var(self.variable)
            .with_context(|| format!("{} is not set", self.variable))?;
        let mut command = Command::new(program);
        if let Some(script) = self.script {
            command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script));
        }
        // The Rust harness needs the project, because one of the crates does.
        let folder = match self.variable {
            "PROWESS_PEERS_RUST" => project.to_owned(),
            _ => project.join(".claude/skills"),
        };
        let rounds = if count > 1_000 { self.rounds } else { self.rounds * 3 };
        let output = command
            .arg(self.name)
            .arg(folder)
            .args([count, rounds].map(|n| n.to_string()))
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    }
}

fn ms(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut rows = Vec::new();
    let mut walls = Vec::new();
    for count in SIZES {
        let project = project(count)?;
        let root = project.join(".claude/skills");
        let discover = || -> Result<()> {
            let catalog = Catalog::builder().source(source(&root)).build();
            let snapshot = runtime.block_on(catalog.refresh());
            ensure!(snapshot.skills().len() == count, "found {}", snapshot.skills().len());
            ensure!(snapshot.diagnostics().is_empty(), "{:?}", snapshot.diagnostics());
            Ok(())
        };
        let command = || -> Result<()> {
            let arguments = ["list", "--no-default-roots", "--source"];
            let output = Command::new(prowess()?).args(arguments).arg(&root).output()?;
            let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
            ensure!(lines == count + 1, "prowess list printed {lines} lines");
            Ok(())
        };
        let rounds = if count > 1_000 { 15 } else { 51 };
        let start = || -> Result<()> {
            ensure!(Command::new(prowess()?).arg("--version").output()?.status.success());
            Ok(())
        };
        let [floor, split, ours, list, start] = medians(
            rounds,
            [
                &mut || {
                    let found = floor(&root)?;
                    ensure!(found == count, "the floor found {found}");
                    Ok(())
                },
                &mut || split_floor(&root),
                &mut || discover(),
                &mut || command(),
                &mut || start(),
            ],
        )?;
        walls.push(ours.wall);
        let detail = |ours: f64, other: f64| format!("{} to {}", ms(ours), ms(other));
        let what = format!("{count} skills: discovery with full validation to the floor, CPU");
        rows.push(Row::at_most(&what, ours.cpu / floor.cpu, 2.0, &detail(ours.cpu, floor.cpu)));
        let what = format!("{count} skills: discovery with full validation to the floor, wall");
        rows.push(Row::at_most(&what, ours.wall / floor.wall, 1.0, &detail(ours.wall, floor.wall)));
        let what = format!("{count} skills: `prowess list`, start to exit, to the floor, wall");
        rows.push(Row::at_most(&what, list.wall / floor.wall, 2.5, &detail(list.wall, floor.wall)));
        let what = format!("{count} skills: the floor on two threads to the floor, wall");
        rows.push(Row::bound(&what, split.wall / floor.wall, &detail(split.wall, floor.wall)));
        let what =
            format!("{count} skills: `prowess --version`, start to exit, to the floor, wall");
        rows.push(Row::bound(&what, start.wall / floor.wall, &detail(start.wall, floor.wall)));
        rows.push(refresh_row(&runtime, &root, count, rounds)?);
        for peer in &PEERS {
            let what = format!("{count} skills: {} to discovery, wall", peer.what);
            match peer.measure(&project, count) {
                Ok(theirs) => {
                    let ratio = theirs / ours.wall;
                    rows.push(Row::at_least(&what, ratio, peer.least, &detail(theirs, ours.wall)));
                }
                Err(error) => {
                    let why = format!("{error:#}").replace('\n', " ");
                    rows.push(Row::not_measured(&what, &format!("≥ {}×", peer.least), &why));
                }
            }
        }
    }
    rows.push(memory_row(&runtime)?);
    let growth = walls[2] / walls[1] / 10.0;
    let what = "growth from 1,000 to 10,000 skills, to linear, wall";
    rows.push(Row::at_most(what, growth, 1.25, &format!("{} to {}", ms(walls[2]), ms(walls[1]))));
    Ok(rows)
}

fn refresh_row(
    runtime: &tokio::runtime::Runtime,
    root: &Path,
    count: usize,
    rounds: usize,
) -> Result<Row> {
    let catalog = Catalog::builder().source(source(root)).build();
    runtime.block_on(catalog.refresh());
    let first = runtime.block_on(catalog.refresh());
    let mut paths: Vec<PathBuf> =
        (0..count).map(|at| root.join(format!("skill-{at:05}/SKILL.md"))).collect();
    paths.push(root.to_owned());
    let [stats, again] = medians(
        rounds,
        [&mut || stat_floor(&paths), &mut || {
            ensure!(runtime.block_on(catalog.refresh()).is_same(&first), "a new snapshot");
            Ok(())
        }],
    )?;
    let what = format!("{count} skills: refresh with nothing changed to a stat loop, wall");
    let detail = format!("{} to {}", ms(again.wall), ms(stats.wall));
    Ok(Row::at_most(&what, again.wall / stats.wall, 1.2, &detail))
}

/// The binary of the command line beside this one.
pub(crate) fn prowess() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.parent().context("no folder")?.join("prowess");
    ensure!(path.exists(), "{} is not built", path.display());
    Ok(path)
}

/// What a snapshot of 10,000 skills keeps in memory, per skill.
fn memory_row(runtime: &tokio::runtime::Runtime) -> Result<Row> {
    let count = SIZES[2];
    let root = project(count)?.join(".claude/skills");
    let resident = || -> Result<f64> {
        let status = fs::read_to_string("/proc/self/smaps_rollup")?;
        let line = status.lines().find(|line| line.starts_with("Rss:")).context("no Rss")?;
        Ok(line.split_whitespace().nth(1).context("no number")?.parse::<f64>()? * 1024.0)
    };
    // Let the allocator take what it reuses: only what is kept shall count.
    let mut kept = Vec::new();
    let mut marks = vec![];
    for _ in 0..3 {
        let catalog = Catalog::builder().source(source(&root)).build();
        kept.push((runtime.block_on(catalog.refresh()), catalog));
        marks.push(resident()?);
    }
    let per_skill = (marks[2] - marks[1]) / count as f64;
    drop(kept);
    let what = "resident memory per skill, of 10,000, to 2 KiB";
    Ok(Row::at_most(what, per_skill / 2048.0, 1.0, &format!("{per_skill:.0} bytes")))
}
