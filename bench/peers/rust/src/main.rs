//! Times how long a Rust crate takes to discover the skills of a folder.
//!
//! Usage: `prowess-bench-peers agent-skills|adk-skill|skm-core FOLDER COUNT ROUNDS`, where the skills
//! are in `FOLDER/.claude/skills`. Prints the median of wall seconds.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, folder, count, rounds] = arguments.as_slice() else {
        bail!("usage: PEER FOLDER COUNT ROUNDS");
    };
    let (count, rounds): (usize, usize) = (count.parse()?, rounds.parse()?);
    let (project, skills) = (Path::new(folder), Path::new(folder).join(".claude/skills"));
    let runtime = tokio::runtime::Runtime::new()?;
    let discover = || -> Result<usize> {
        match peer.as_str() {
            "agent-skills" => {
                let mut loaded = Vec::with_capacity(count);
                for entry in std::fs::read_dir(&skills)? {
                    let path = entry?.path();
                    if path.is_dir() {
                        loaded.push(agent_skills::SkillDirectory::load(&path)?);
                    }
                }
                Ok(loaded.len())
            }
            "adk-skill" => Ok(adk_skill::load_skill_index(project)?.skills().len()),
            "skm-core" => runtime.block_on(async {
                let registry = skm_core::SkillRegistry::new(&[&skills]).await?;
                Ok(registry.len().await)
            }),
            other => bail!("unknown peer {other}"),
        }
    };
    let mut samples = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        let found = discover()?;
        samples.push(start.elapsed().as_secs_f64());
        ensure!(found == count, "{peer} found {found} of {count} skills");
    }
    samples.sort_by(f64::total_cmp);
    println!("{}", samples.get(rounds / 2).context("no rounds")?);
    Ok(())
}
