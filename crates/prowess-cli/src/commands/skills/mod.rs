//! `prowess skills`: the registry of skills, here or with a server.

mod desk;
mod diff;
mod import;
mod list;
mod local;
mod pull;
mod push;
mod remote;

use prowess_store::SkillId;
use serde_json::json;

use self::desk::{Desk, DeskError};
use self::local::Local;
use self::remote::Remote;
use crate::Outcome;
use crate::cli::{CatalogArgs, RegistryArgs, SkillsArgs, SkillsCommand};
use crate::finder::{Finder, Form, complain};
use crate::report;
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &SkillsArgs) -> anyhow::Result<Outcome> {
    let form = Form::of_flag(arguments.command.json());
    let finder = Finder::new(&CatalogArgs { sources: Vec::new(), no_default_roots: true })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(carry_out(arguments, &finder, form)) {
        Err(error) => match error.downcast_ref::<DeskError>() {
            Some(error) => {
                complain(error.code(), &error.to_string(), form)?;
                Ok(Outcome::Findings)
            }
            None => Err(error),
        },
        outcome => outcome,
    }
}

async fn carry_out(arguments: &SkillsArgs, finder: &Finder, form: Form) -> anyhow::Result<Outcome> {
    let desk = open(finder, &arguments.place).await?;
    match &arguments.command {
        SkillsCommand::List { .. } => list::skills(&desk, form).await,
        SkillsCommand::Push(push) => push::run(&desk, push, finder).await,
        SkillsCommand::Pull(pull) => pull::run(&desk, pull).await,
        SkillsCommand::Versions { name, .. } => list::versions(&desk, &id(name)?, form).await,
        SkillsCommand::Diff(diff) => diff::run(&desk, diff).await,
        SkillsCommand::ImportRedis(import) => import::run(&desk, import).await,
        SkillsCommand::Activate { name, number, .. } => {
            let skill = id(name)?;
            desk.activate(&skill, *number).await?;
            used(&skill, *number, form)
        }
        SkillsCommand::Reset { name, .. } => {
            let skill = id(name)?;
            let version = desk.reset(&skill).await?;
            used(&skill, version, form)
        }
        SkillsCommand::Delete { name, .. } => {
            let skill = id(name)?;
            desk.delete(&skill).await?;
            match form {
                Form::Json => report::print_json(&json!({"skill_id": skill, "deleted": true}))?,
                Form::Text => anstream::println!(
                    "Skill '{skill}' is not used any more. Its versions stay; a skill that is \
                     pushed with this id continues them"
                ),
            }
            Ok(Outcome::Ok)
        }
    }
}

/// The registry that is meant.
async fn open(finder: &Finder, place: &RegistryArgs) -> anyhow::Result<Desk> {
    match place.server.as_deref().map(str::trim).filter(|server| !server.is_empty()) {
        Some(server) => {
            let remote = Remote::new(server, place.key.as_ref(), finder.config.remote)?;
            Ok(Desk::Remote(Box::new(remote)))
        }
        None => Ok(Desk::Local(Local::open(finder).await?)),
    }
}

fn id(name: &str) -> Result<SkillId, DeskError> {
    Ok(name.parse::<SkillId>()?)
}

/// Says which version is used now.
fn used(skill: &SkillId, version: u64, form: Form) -> anyhow::Result<Outcome> {
    match form {
        Form::Json => {
            report::print_json(&json!({"skill_id": skill, "active_version": version}))?;
        }
        Form::Text => {
            let skill = safe_line(skill.as_str());
            anstream::println!("Version {version} of '{skill}' is used from now on");
        }
    }
    Ok(Outcome::Ok)
}
