//! `prowess serve`

use std::io::Write;
use std::sync::Arc;

use anstream::stdout;
use anyhow::Context;
use prowess_catalog::{Catalog, Precedence};
use prowess_runtime::Runtime;
use prowess_server::{Bound, Ended, Server, ServerSettings, SessionEvents};
use prowess_store::{Registry, Store, VersionSource};
use prowess_workspace::Tier;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::Outcome;
use crate::built_in;
use crate::cli::ServeArgs;
use crate::engine::{Parts, equip};
use crate::report::json_line;
use crate::telemetry::{Log, observe};
use crate::terminal::safe_line;
use crate::toolkits::{Ready, own_config};

pub(crate) fn run(arguments: &ServeArgs) -> anyhow::Result<Outcome> {
    let mut parts = Parts::open(&arguments.catalog, Some(&arguments.dialect))?;
    parts.toolkits.run_by(&arguments.executor, Tier::T2, Ready::AsSet);
    let settings = settings(arguments, &parts)?;
    let Parts { finder, home, catalog, dialect, settings: of_engine, toolkits, store } = parts;
    let precedence = finder.config.precedence;
    let imports = finder.imports()?;
    let observed = observe(&finder, &home, Log::StandardError)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        // Before anybody is told that there is a server to end.
        let (terminate, interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let open = store.open().await?;
        built_in::register(open.store.versions.as_ref()).await?;
        let registry = Arc::new(Registry::new(Arc::clone(&open.store.versions)));
        let catalog = with_registry(&catalog, precedence, &registry);
        let events = SessionEvents::new();
        let engine = equip(observed.give(Runtime::builder(catalog.clone())), toolkits, &open)
            .dialect(dialect)
            .settings(of_engine)
            .sink(Arc::new(events.clone()))
            .build()?;
        catalog.refresh().await;
        let Store { usage, keys, notices, caution, .. } = open.store;
        let server = Server::builder(engine, registry, usage, keys)
            .catalog(catalog)
            .events(events)
            .notices(notices)
            .imports(imports)
            .settings(settings);
        let bound = server.bind_as_set().await?;
        print(&bound, &store.shown(), caution, arguments.json)?;
        anyhow::Ok(serve(bound, terminate, interrupt).await)
    })?;
    // Nobody waits for what is left.
    runtime.shutdown_background();
    observed.end();
    if ended == Ended::BrokenOff {
        anstream::eprintln!("Warning: not everything that was begun is finished");
        return Ok(Outcome::Findings);
    }
    Ok(Outcome::Ok)
}

/// Serves until somebody says that it is enough; who says so twice does not wait.
async fn serve(bound: Bound, mut terminate: Signal, mut interrupt: Signal) -> Ended {
    let (stop, stopped) = oneshot::channel::<()>();
    let said_twice = async {
        either(&mut terminate, &mut interrupt).await;
        drop(stop);
        either(&mut terminate, &mut interrupt).await;
    };
    let serving = bound.serve(async {
        let _ = stopped.await;
    });
    tokio::select! {
        ended = serving => ended,
        () = said_twice => Ended::BrokenOff,
    }
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

/// The section `[server]` of the user's own `prowess.toml`, and what was typed.
fn settings(arguments: &ServeArgs, parts: &Parts) -> anyhow::Result<ServerSettings> {
    let own = own_config(&parts.finder, &parts.home, &["server"])?;
    let place = || own.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let mut settings = ServerSettings::from_table(own.server.clone()).with_context(place)?;
    settings.host = arguments.host.unwrap_or(settings.host);
    settings.port = arguments.port.unwrap_or(settings.port);
    Ok(settings)
}

/// The same sources, and above them the registry.
fn with_registry(catalog: &Catalog, precedence: Precedence, registry: &Arc<Registry>) -> Catalog {
    let source = Arc::new(VersionSource::new("registry", Arc::clone(registry)));
    let mut builder = Catalog::builder().precedence(precedence);
    if precedence == Precedence::FirstWins {
        builder = builder.shared_source(source.clone());
    }
    for other in catalog.sources() {
        builder = builder.shared_source(Arc::clone(other));
    }
    if precedence != Precedence::FirstWins {
        builder = builder.shared_source(source);
    }
    builder.build()
}

fn print(bound: &Bound, store: &str, caution: Option<&str>, json: bool) -> anyhow::Result<()> {
    let url = bound.url();
    let docs = format!("{url}/docs");
    let mut out = stdout().lock();
    if json {
        let mut line = json!({"url": url, "docs": docs, "store": store});
        if let Some(caution) = caution {
            line["caution"] = json!(caution);
        }
        out.write_all(&json_line(&line)?)?;
    } else {
        writeln!(out, "Prowess serves {url}")?;
        writeln!(out, "  documentation  {docs}")?;
        writeln!(out, "  store          {}", safe_line(store))?;
        if let Some(caution) = caution {
            writeln!(out, "  caution        {caution}")?;
        }
    }
    Ok(out.flush()?)
}
