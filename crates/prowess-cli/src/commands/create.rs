//! `prowess create`

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anstream::{eprintln, stdout};
use anyhow::Context;
use prowess_format::yaml::{Mapping, write};
use prowess_format::{Level, Options, Profile, Skill};
use serde_json::json;

use crate::Outcome;
use crate::cli::CreateArgs;
use crate::report;
use crate::terminal::{safe, safe_line};

const SCRIPT: &str = include_str!("../../scaffold/scripts/check.sh");
const REFERENCE: &str = include_str!("../../scaffold/references/details.md");
const ASSET: &str = include_str!("../../scaffold/assets/template.md");
const BODY: &str = include_str!("../../scaffold/body.md");

pub(crate) fn run(arguments: &CreateArgs) -> anyhow::Result<Outcome> {
    let name = &arguments.name;
    let description = arguments.description.clone().unwrap_or_else(|| {
        "Say what this skill does. Say when to use it, with the words that a user would say."
            .to_owned()
    });
    let text = skill_text(name, &description);
    // What is refused later is refused before anything is written.
    let options = Options::new().in_folder(name).with_profile(Profile::Spec);
    let parsed = Skill::parse(&text, &options);
    let findings: Vec<_> =
        parsed.diagnostics.iter().filter(|found| found.level != Level::Info).collect();
    if !findings.is_empty() {
        for found in findings {
            let help = found.help.as_deref().unwrap_or_default();
            eprintln!("Error: {}\n  help: {}", safe(&found.message), safe(help));
        }
        return Ok(Outcome::Usage);
    }
    let target = match arguments.path.as_os_str() == "." {
        true => PathBuf::from(name),
        false => arguments.path.join(name),
    };
    if fs::symlink_metadata(&target).is_ok() {
        anyhow::bail!("{} already exists; nothing was changed", target.display());
    }
    write_skill(&arguments.path, &target, &text)
        .with_context(|| format!("cannot create {}", target.display()))?;
    let files = ["SKILL.md", "scripts/check.sh", "references/details.md", "assets/template.md"];
    if arguments.json {
        let path = target.display().to_string();
        report::print_json(&json!({"name": name, "path": path, "files": files}))?;
        return Ok(Outcome::Ok);
    }
    let shown = safe_line(&target.display().to_string());
    let mut out = stdout().lock();
    writeln!(out, "Created {shown}")?;
    for file in files {
        writeln!(out, "  {file}")?;
    }
    writeln!(out, "Next: edit {shown}/SKILL.md, then run `prowess lint {shown}`")?;
    Ok(Outcome::Ok)
}

fn skill_text(name: &str, description: &str) -> String {
    let mut frontmatter = Mapping::new();
    frontmatter.set("name", name);
    frontmatter.set("description", description);
    let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
    let title = format!("{}{}", first.to_uppercase(), rest.replace('-', " "));
    format!("---\n{}---\n\n{}", write(&frontmatter), BODY.replace("{{title}}", &title))
}

/// Writes the folder beside its place and moves it there: it is whole or not there at all.
fn write_skill(parent: &Path, target: &Path, text: &str) -> anyhow::Result<()> {
    fs::create_dir_all(parent)?;
    let staging = tempfile::Builder::new().prefix(".prowess-create-").tempdir_in(parent)?;
    let root = staging.path();
    for folder in ["scripts", "references", "assets"] {
        fs::create_dir(root.join(folder))?;
    }
    fs::write(root.join("SKILL.md"), text)?;
    fs::write(root.join("references/details.md"), REFERENCE)?;
    fs::write(root.join("assets/template.md"), ASSET)?;
    let script = root.join("scripts/check.sh");
    fs::write(&script, SCRIPT)?;
    make_executable(&script)?;
    make_listable(root)?;
    fs::rename(root, target)?;
    // It lives under its own name now.
    let _ = staging.keep();
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// A temporary folder is closed to others; a skill is not.
#[cfg(unix)]
fn make_listable(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let inside = fs::metadata(folder.join("scripts"))?.permissions().mode();
    fs::set_permissions(folder, fs::Permissions::from_mode(inside))
}

#[cfg(not(unix))]
fn make_listable(_: &Path) -> std::io::Result<()> {
    Ok(())
}
