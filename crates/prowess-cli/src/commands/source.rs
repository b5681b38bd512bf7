//! `prowess source`

use std::io::Write;
use std::path::{Path, PathBuf};

use anstream::stdout;
use anyhow::Context;
use prowess_catalog::{
    CatalogSkill, Location, RemoteError, RemoteSource, Root, RootOrigin, Source, SourceStatus,
    Trust,
};
use serde_json::{Value, json};

use crate::Outcome;
use crate::cli::{CatalogArgs, SourceAddArgs, SourceCommand};
use crate::finder::{Finder, Form, complain, origin};
use crate::progress;
use crate::report::{self, counted};
use crate::source_file;
use crate::terminal::safe_line;

pub(crate) fn run(command: &SourceCommand) -> anyhow::Result<Outcome> {
    match command {
        SourceCommand::Add(arguments) => add(arguments),
        SourceCommand::List { catalog, json } => list(catalog, *json),
        SourceCommand::Refresh { locations, catalog, json } => refresh(locations, catalog, *json),
        SourceCommand::Remove { location, json } => remove(location, *json),
    }
}

/// Only what is named.
fn named_only() -> CatalogArgs {
    CatalogArgs { sources: Vec::new(), no_default_roots: true }
}

fn refused(error: &RemoteError, form: Form) -> anyhow::Result<Outcome> {
    complain(error.code(), &format!("{error}; {}", error.help()), form)?;
    Ok(Outcome::Findings)
}

fn add(arguments: &SourceAddArgs) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(arguments.json);
    let finder = Finder::new(&named_only())?;
    let text = &arguments.location;
    let location = match Location::parse(text) {
        Ok(location) => location,
        Err(error) => {
            complain("invalid_location", &error.to_string(), form)?;
            return Ok(Outcome::Usage);
        }
    };
    let folder = location.file().filter(|path| path.is_dir());
    if let (Some(_), true) = (folder, arguments.pin) {
        complain("invalid_location", "a folder cannot be pinned; pack it", form)?;
        return Ok(Outcome::Usage);
    }
    let mut written = written_form(&location)?;
    let trust = arguments.trust.then_some(Trust::Trusted);
    let mut root = Root::new(&written, RootOrigin::Configuration);
    root.trust = trust;
    let mut digest = None;
    if folder.is_none() {
        let Some(source) = finder.remote(&root)? else {
            complain("not_found", &format!("there is nothing at {text}"), form)?;
            return Ok(Outcome::Findings);
        };
        let status =
            progress::while_fetching("Fetching", &finder.latest, || finder.wait(source.refresh()));
        match status {
            Ok(status) => digest = Some(status.digest),
            Err(error) => return refused(&error, form),
        }
        if let (true, Some(digest)) = (arguments.pin, digest) {
            let pinned = location.clone().pinned(digest);
            // What was fetched without a pin is not needed under this name.
            finder.cache()?.forget(&location)?;
            written = written_form(&pinned)?;
            root.path = PathBuf::from(&written);
        }
    }
    // Found as every command will find it.
    let finder = finder.with_roots(vec![root]);
    let snapshot = finder.snapshot();
    if let Some(found) = snapshot.diagnostics().iter().find(|found| is_fatal(found)) {
        complain("source-unavailable", &found.message, form)?;
        return Ok(Outcome::Findings);
    }
    let file = match (arguments.here, &finder.config.path) {
        (true, _) => finder.folder.join("prowess.toml"),
        (false, Some(path)) => path.clone(),
        (false, None) => {
            let home = finder.home.as_ref().context("there is no home; set PROWESS_HOME")?;
            home.join("prowess.toml")
        }
    };
    let key = if arguments.trust { "trusted_sources" } else { "sources" };
    source_file::add(&file, key, &written)?;
    let trust = snapshot.sources().first().map(|entry| entry.info().trust);
    let skills: Vec<&str> = snapshot.skills().iter().map(CatalogSkill::name).collect();
    if arguments.json {
        report::print_json(&json!({
            "location": written, "config": file.display().to_string(), "digest": digest,
            "trust": trust, "skills": skills, "diagnostics": snapshot.diagnostics(),
        }))?;
        return Ok(Outcome::Ok);
    }
    let mut out = stdout().lock();
    let count = counted(skills.len(), "skill");
    let (shown, file) = (safe_line(&written), safe_line(&file.display().to_string()));
    writeln!(out, "added {shown} to {file}: {count}")?;
    if let (Some(Trust::Untrusted), Some(digest)) = (trust, digest) {
        writeln!(out, "not trusted; --pin pins it to #sha256={}", digest.hex())?;
    }
    for found in snapshot.diagnostics() {
        anstream::eprintln!("{}: {}", found.level, safe_line(&found.message));
    }
    Ok(Outcome::Ok)
}

fn is_fatal(found: &prowess_format::Diagnostic) -> bool {
    found.code == prowess_format::Code::SourceUnavailable
}

/// A source as it stands in `prowess.toml`: a URL as it is, a path from the root on.
fn written_form(location: &Location) -> anyhow::Result<String> {
    let shown = match location.file() {
        None => location.shown(),
        Some(path) => {
            let path = path.canonicalize().or_else(|_| std::path::absolute(path))?;
            path.to_str().context("the path is not UTF-8")?.to_owned()
        }
    };
    Ok(match location.pin() {
        Some(pin) => format!("{shown}#sha256={}", pin.hex()),
        None => shown,
    })
}

fn list(catalog: &CatalogArgs, json: bool) -> anyhow::Result<Outcome> {
    let finder =
        Finder::new(&CatalogArgs { no_default_roots: true, sources: catalog.sources.clone() })?;
    let mut values = Vec::new();
    for root in &finder.roots {
        let source = finder.remote(root)?;
        let status = source.as_ref().and_then(RemoteSource::status);
        let kind = if source.is_some() { "remote" } else { "folder" };
        let trust = source
            .as_ref()
            .map_or(root.trust.unwrap_or(Trust::Trusted), |source| source.info().trust);
        values.push(value_of(root, kind, trust, status.as_ref()));
    }
    if json {
        report::print_json(&json!({ "sources": values }))?;
        return Ok(Outcome::Ok);
    }
    if values.is_empty() {
        anstream::eprintln!("No sources. `prowess source add` adds one.");
        return Ok(Outcome::Ok);
    }
    let mut out = stdout().lock();
    for value in &values {
        let text = |key: &str| safe_line(value[key].as_str().unwrap_or_default());
        writeln!(out, "{}", text("location"))?;
        writeln!(out, "  {}, {}, from {}", text("kind"), text("trust"), text("origin"))?;
        if value["kind"] == "remote" {
            match value["digest"].as_str() {
                Some(digest) => {
                    writeln!(out, "  {digest}, asked {} ago", ago(&value["age_seconds"]))?;
                }
                None => writeln!(out, "  not fetched yet")?,
            }
        }
        if let Some(failure) = value["failure"].as_str() {
            writeln!(out, "  asking failed since: {}", safe_line(failure))?;
        }
    }
    Ok(Outcome::Ok)
}

fn ago(seconds: &Value) -> String {
    match seconds.as_u64().unwrap_or_default() {
        seconds @ 0..60 => counted(seconds as usize, "second"),
        seconds @ 60..3_600 => counted(seconds as usize / 60, "minute"),
        seconds @ 3_600..86_400 => counted(seconds as usize / 3_600, "hour"),
        seconds => counted(seconds as usize / 86_400, "day"),
    }
}

fn value_of(root: &Root, kind: &str, trust: Trust, status: Option<&SourceStatus>) -> Value {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    json!({
        "location": root.path.display().to_string(),
        "origin": origin(root),
        "kind": kind,
        "trust": trust,
        "digest": status.map(|status| status.digest),
        "age_seconds": status.map(|status| now.saturating_sub(status.checked)),
        "failure": status.and_then(|status| status.failure.clone()),
    })
}

fn refresh(locations: &[String], catalog: &CatalogArgs, json: bool) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(json);
    let finder =
        Finder::new(&CatalogArgs { no_default_roots: true, sources: catalog.sources.clone() })?;
    let mut outcome = Outcome::Ok;
    let mut values = Vec::new();
    for wanted in locations {
        if !finder.roots.iter().any(|root| is_meant(&root.path.to_string_lossy(), wanted)) {
            complain(
                "unknown_source",
                &format!("'{wanted}' is none of the sources; `prowess source list` shows them"),
                form,
            )?;
            return Ok(Outcome::Findings);
        }
    }
    for root in &finder.roots {
        let shown = root.path.to_string_lossy();
        if !locations.is_empty() && !locations.iter().any(|wanted| is_meant(&shown, wanted)) {
            continue;
        }
        let Some(source) = finder.remote(root)? else { continue };
        let before = source.status().map(|status| status.digest);
        let result =
            progress::while_fetching("Fetching", &finder.latest, || finder.wait(source.refresh()));
        let mut value = json!({ "location": shown });
        match result {
            Ok(status) => {
                let changed = before != Some(status.digest);
                value["digest"] = json!(status.digest);
                value["changed"] = json!(changed);
                if !json {
                    let word = if changed { "fetched" } else { "not changed" };
                    anstream::println!("{}: {word}, {}", safe_line(&shown), status.digest);
                }
            }
            Err(error) => {
                outcome = Outcome::Findings;
                value["error"] = json!({ "code": error.code(), "message": error.to_string() });
                if !json {
                    let (shown, message) = (safe_line(&shown), safe_line(&error.to_string()));
                    anstream::eprintln!("{shown}: {message} [{}]", error.code());
                }
            }
        }
        values.push(value);
    }
    if json {
        report::print_json(&json!({ "sources": values }))?;
    } else if values.is_empty() {
        anstream::eprintln!("No source is fetched from anywhere.");
    }
    Ok(outcome)
}

/// Whether two texts mean the same source, whatever the pin.
fn is_meant(source: &str, wanted: &str) -> bool {
    let plain = |text: &str| {
        let place = Location::parse(text).ok()?;
        Some(match place.file() {
            Some(path) => std::path::absolute(path).ok()?.display().to_string(),
            None => place.shown(),
        })
    };
    source == wanted || plain(source).is_some_and(|place| Some(place) == plain(wanted))
}

fn remove(location: &str, json: bool) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(json);
    let finder = Finder::new(&named_only())?;
    let file: Option<&Path> = finder.config.path.as_deref();
    let removed = match file {
        Some(file) => source_file::remove(file, |source| is_meant(source, location))?,
        None => Vec::new(),
    };
    let Some(file) = file.filter(|_| !removed.is_empty()) else {
        let message =
            format!("'{location}' is not in prowess.toml; `prowess source list` shows what is");
        complain("unknown_source", &message, form)?;
        return Ok(Outcome::Findings);
    };
    for source in &removed {
        if let Ok(location) = Location::parse(source) {
            finder.cache()?.forget(&location)?;
        }
    }
    let file = file.display().to_string();
    if json {
        report::print_json(&json!({ "removed": removed, "config": file }))?;
    } else {
        for source in &removed {
            anstream::println!("removed {} from {}", safe_line(source), safe_line(&file));
        }
    }
    Ok(Outcome::Ok)
}
