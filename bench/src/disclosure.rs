//! What progressive disclosure saves, and what a listing costs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use prowess_catalog::{Blocking, Catalog, DirectorySource};
use prowess_runtime::{AgentName, PromptRequest, Runtime, SessionKey, TurnRequest};
use serde_json::Value;

use crate::discovery::{project, prowess};
use crate::measure::medians;
use crate::results::Row;

const SKILLS: usize = 10_000;

pub(crate) fn run() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let corpus = std::env::var("PROWESS_CORPUS").unwrap_or_else(|_| "../shared/corpus".to_owned());
    if Path::new(&corpus).is_dir() {
        let (tokens, cache) = (report("tokens", &corpus)?, report("cache", &corpus)?);
        rows.extend(token_rows(&tokens)?);
        rows.extend(cache_rows(&cache)?);
    } else {
        let why = format!("there is no corpus at {corpus}; set PROWESS_CORPUS");
        rows.push(Row::not_measured("tokens and cache of scripted conversations", "", &why));
    }
    rows.extend(listing_rows()?);
    Ok(rows)
}

/// What `prowess tokens` or `prowess cache` says.
fn report(command: &str, corpus: &str) -> Result<Vec<Value>> {
    let output = Command::new(prowess()?).args([command, "--json", "--corpus", corpus]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    Ok(report["scenarios"].as_array().context("no scenarios")?.clone())
}

/// A number of a layout in a scenario.
fn number(scenario: &Value, layout: &str, key: &str) -> Result<f64> {
    let layouts = scenario["layouts"].as_array().context("no layouts")?;
    let found = layouts.iter().find(|it| it["layout"] == layout);
    let found = found.with_context(|| format!("no layout '{layout}'"))?;
    found[key].as_f64().with_context(|| format!("no {key}"))
}

fn token_rows(scenarios: &[Value]) -> Result<Vec<Row>> {
    let own = &scenarios[0]["layouts"][0]["first_request"];
    let (tools, guidance) = (own["tools"].as_f64(), own["guidance"].as_f64());
    let (tools, guidance) = (tools.context("no tools")?, guidance.context("no guidance")?);
    let what = "tools and guidance of the load tools, to 550 tokens";
    let detail = format!("{tools} + {guidance} tokens");
    let mut rows = vec![Row::at_most(what, (tools + guidance) / 550.0, 1.0, &detail)];
    let six = scenarios.iter().find(|it| it["name"] == "brand landing page");
    let six = six.context("no six-call scenario")?;
    let ours = number(six, "tool_result session", "total")?;
    let theirs = number(six, "trpc-agent-go, system", "total")?;
    let detail = format!("{ours} to {theirs} tokens");
    let what = "six-call scenario: total to trpc-agent-go's layout";
    rows.push(Row::at_most(what, ours / theirs, 0.8, &detail));
    for key in ["everything, bodies only", "everything, with docs"] {
        let all = number(six, key, "total")?;
        let what = format!("six-call scenario: total to {key}");
        rows.push(Row::bound(&what, ours / all, &format!("{ours} to {all} tokens")));
    }
    Ok(rows)
}

fn cache_rows(scenarios: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for scenario in scenarios {
        let name = scenario["name"].as_str().unwrap_or_default();
        let ours = number(scenario, "tool_result session", "uncached")?;
        let system = number(scenario, "trpc-agent-go, system", "uncached")?;
        let results = number(scenario, "trpc-agent-go, tool results", "uncached")?;
        let better = system.min(results);
        let goal = if name == "late docs" { 0.75 } else { 1.0 };
        let what = format!("{name}: uncached tokens to trpc-agent-go's better mode");
        let detail = format!("{ours} to {better} tokens");
        rows.push(Row::at_most(&what, ours / better, goal, &detail));
    }
    Ok(rows)
}

/// The listing of 10,000 skills against what deepagents spends on every call.
fn listing_rows() -> Result<Vec<Row>> {
    let first = "listing of 10,000 skills, first, to what deepagents spends on every call";
    let again = "listing of 10,000 skills, again, to what deepagents spends on every call";
    let root = project(SKILLS)?.join(".claude/skills");
    let theirs = match peer(&root) {
        Ok(seconds) => seconds,
        Err(error) => {
            let why = format!("{error:#}").replace('\n', " ");
            return Ok(vec![
                Row::not_measured(first, "≤ 0.2×", &why),
                Row::not_measured(again, "≤ 0.001×", &why),
            ]);
        }
    };
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let source = DirectorySource::new(&root).with_blocking(Blocking::Here);
    let catalog = Catalog::builder().source(source).build();
    tokio.block_on(catalog.refresh());
    let runtime = Runtime::builder(catalog).build()?;
    let (session, agent) = (SessionKey::new("bench", "listing", "1")?, AgentName::default());
    tokio.block_on(runtime.begin_turn(&session, &agent, TurnRequest::new()))?;
    let shown = tokio.block_on(runtime.listing(&session, &agent))?;
    ensure!(shown.shown.len() + shown.named.len() + shown.counted.len() == SKILLS, "some are lost");
    let [fresh, frozen] = medians([
        &|| drop(std::hint::black_box(tokio.block_on(runtime.listing(&session, &agent)))),
        &|| {
            let prompt = runtime.prompt(&session, &agent, PromptRequest::new());
            drop(std::hint::black_box(tokio.block_on(prompt)));
        },
    ]);
    let detail = |ours: f64| format!("{:.1} µs to {:.1} ms", ours * 1e6, theirs * 1e3);
    Ok(vec![
        Row::at_most(first, fresh / theirs, 0.2, &detail(fresh)),
        Row::at_most_fine(again, frozen / theirs, 0.001, &detail(frozen)),
    ])
}

/// The seconds that deepagents takes to write its section of the prompt, every time.
fn peer(root: &Path) -> Result<f64> {
    let python =
        std::env::var("PROWESS_PEERS_DEEPAGENTS").context("PROWESS_PEERS_DEEPAGENTS is not set")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/python/listing.py");
    let output = Command::new(python).arg(script).arg(root).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
