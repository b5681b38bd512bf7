//! `prowess rules`

use std::io::Write;

use anstream::stdout;
use prowess_format::{Code, Level, Profile};
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::cli::RulesArgs;
use crate::report;
use crate::terminal::safe_line;

pub(crate) fn run(arguments: &RulesArgs) -> anyhow::Result<Outcome> {
    let codes: Vec<Code> = match &arguments.code {
        None => Code::ALL.to_vec(),
        Some(name) => {
            let Some(code) = Code::ALL.iter().find(|code| code.as_str() == name) else {
                let name = safe_line(name);
                anstream::eprintln!("Error: there is no rule '{name}'; see `prowess rules`");
                return Ok(Outcome::Usage);
            };
            vec![*code]
        }
    };
    if arguments.json {
        let rules: Vec<Value> = codes.iter().map(|code| rule_json(*code)).collect();
        report::print_json(&json!({"rules": rules}))?;
        return Ok(Outcome::Ok);
    }
    let mut out = stdout().lock();
    if arguments.code.is_some() {
        for code in codes {
            writeln!(out, "{code}: {}", code.about())?;
            for profile in Profile::ALL {
                let level = code.level(profile).map_or("not checked", Level::as_str);
                writeln!(out, "  under {profile}: {level}")?;
            }
        }
        return Ok(Outcome::Ok);
    }
    let width = codes.iter().map(|code| code.as_str().len()).max().unwrap_or(0);
    write!(out, "{:width$}", "")?;
    for profile in Profile::ALL {
        write!(out, "  {:column$}", profile.as_str(), column = column(profile))?;
    }
    writeln!(out)?;
    for code in codes {
        write!(out, "{:width$}", code.as_str())?;
        for profile in Profile::ALL {
            let level = code.level(profile).map_or("-", Level::as_str);
            write!(out, "  {level:column$}", column = column(profile))?;
        }
        writeln!(out, "  {}", code.about())?;
    }
    Ok(Outcome::Ok)
}

/// As wide as its name and its widest level.
fn column(profile: Profile) -> usize {
    profile.as_str().len().max("warning".len())
}

fn rule_json(code: Code) -> Value {
    let levels: Map<String, Value> = Profile::ALL
        .into_iter()
        .map(|profile| (profile.as_str().to_owned(), json!(code.level(profile))))
        .collect();
    json!({"code": code.as_str(), "about": code.about(), "levels": levels})
}
