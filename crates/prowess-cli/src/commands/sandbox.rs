//! `prowess sandbox`

use anstream::println;
use anstyle::{AnsiColor, Style};
use prowess_toolkits::{ExecSettings, ExecutorChoice};
use prowess_workspace::{Capability, Enforcement, Isolation, SandboxReport, Tier};

use crate::Outcome;
use crate::cli::{CatalogArgs, SandboxCheckArgs, SandboxCommand};
use crate::finder::Finder;
use crate::progress::while_showing;
use crate::report;
use crate::toolkits::{Ready, choose, container, exec_settings, local};

pub(crate) fn run(command: &SandboxCommand) -> anyhow::Result<Outcome> {
    match command {
        SandboxCommand::Check(arguments) => check(arguments),
    }
}

fn check(arguments: &SandboxCheckArgs) -> anyhow::Result<Outcome> {
    let tokio = tokio::runtime::Builder::new_current_thread().build()?;
    let finder = Finder::new(&CatalogArgs::default())?;
    let mut settings = match &finder.home {
        Some(home) => exec_settings(&finder, home)?,
        None => ExecSettings::default(),
    };
    let report = match choose(&mut settings, &arguments.executor) {
        ExecutorChoice::Local => {
            let executor = local(arguments.sandbox.best());
            while_showing("Trying to break out", || tokio.block_on(executor.check()))
        }
        ExecutorChoice::Container => {
            let executor = container(&settings.container, Ready::No);
            while_showing("Trying to break out of a container", || tokio.block_on(executor.check()))
        }
    }?;
    match arguments.json {
        true => report::print_json(&serde_json::to_value(&report)?)?,
        false => print(&report),
    }
    Ok(if report.isolation.tier == Tier::T0 { Outcome::Findings } else { Outcome::Ok })
}

fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::T0 => "tier 0, no sandbox",
        Tier::T1 => "tier 1, rules of the kernel for the processes themselves",
        Tier::T2 => "tier 2, namespaces of its own",
        Tier::T3 => "tier 3, a container",
    }
}

fn print(report: &SandboxReport) {
    println!("Commands of skills run in {}.\n", name(report.isolation.tier));
    table(&report.isolation);
    for tried in &report.tried {
        if let Some(cause) = &tried.cause {
            println!("\nNot used: {}: {cause}", name(tried.tier));
        }
    }
    if report.isolation.tier == Tier::T0 {
        println!(
            "\nNothing runs here unless allow_unsandboxed is set, and only from trusted sources."
        );
    }
}

fn table(isolation: &Isolation) {
    for capability in Capability::ALL {
        let Some(protection) = isolation.protections.get(&capability) else { continue };
        let (word, colour) = match protection.state {
            Enforcement::Enforced => ("enforced", AnsiColor::Green),
            Enforcement::Partial => ("partial", AnsiColor::Yellow),
            Enforcement::Granted => ("granted", AnsiColor::Yellow),
            Enforcement::None => ("NOT ENFORCED", AnsiColor::Red),
        };
        let style = Style::new().fg_color(Some(colour.into()));
        println!("  {:<13} {style}{word:<13}{style:#} {}", capability.as_str(), protection.by);
    }
}
