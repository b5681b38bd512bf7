//! The environment of a command: what a call may set, and what the host passes by name.

use std::collections::{BTreeMap, BTreeSet};

use crate::policy::is_posix;

/// Why a call may not set a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidVariable {
    #[error(
        "'env.{name}' is no name of a variable; names have letters, digits and _, and no digit \
         first"
    )]
    Name { name: String },
    #[error("'env.{name}' is set by the runtime; leave it out")]
    Own { name: String },
    #[error("'env.{name}' changes how programs are loaded; leave it out")]
    Loading { name: String },
    #[error("'env.{name}' holds a NUL; no variable can")]
    Nul { name: String },
    #[error("'editor_text' sets {name}; leave 'env.{name}' or 'editor_text' out")]
    Editor { name: &'static str },
}

/// Variables that make a program load code, or a shell behave otherwise, before the command is
/// run: no call may set them.
const REFUSED: [&str; 18] = [
    "BASH_ENV",
    "BASHOPTS",
    "CDPATH",
    "ENV",
    "GLOBIGNORE",
    "IFS",
    "NODE_OPTIONS",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "GCONV_PATH",
];

/// The same, by how they begin.
const REFUSED_BEGINNINGS: [&str; 4] = ["LD_", "DYLD_", "BASH_FUNC_", "GLIBC_"];

/// Variables that every run has.
const OWN: [&str; 6] =
    ["OUTPUT_DIR", "RUN_DIR", "SKILLS_DIR", "SKILL_NAME", "WORKSPACE_DIR", "WORK_DIR"];

/// Whether a call may set these variables; else why not.
pub(crate) fn check(env: &BTreeMap<String, String>) -> Result<(), InvalidVariable> {
    for (name, value) in env {
        let own = || name.clone();
        if !is_posix(name) {
            return Err(InvalidVariable::Name { name: own() });
        }
        if OWN.contains(&name.as_str()) {
            return Err(InvalidVariable::Own { name: own() });
        }
        if is_refused(name) {
            return Err(InvalidVariable::Loading { name: own() });
        }
        if value.contains('\0') {
            return Err(InvalidVariable::Nul { name: own() });
        }
    }
    Ok(())
}

fn is_refused(name: &str) -> bool {
    REFUSED.contains(&name) || REFUSED_BEGINNINGS.iter().any(|start| name.starts_with(start))
}

/// The environment of a run: what the call sets, and what the host declares by name and has. What
/// is declared but not there is returned as well.
pub(crate) fn complete(
    mut env: BTreeMap<String, String>,
    skill: &str,
    declared: &BTreeSet<String>,
    host: impl Fn(&str) -> Option<String>,
) -> (BTreeMap<String, String>, Vec<String>) {
    env.insert("SKILL_NAME".to_owned(), skill.to_owned());
    let mut missing = Vec::new();
    for name in declared {
        if env.contains_key(name) {
            continue;
        }
        match host(name) {
            Some(value) => {
                env.insert(name.clone(), value);
            }
            None => missing.push(name.clone()),
        }
    }
    (env, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str) -> BTreeMap<String, String> {
        [(name.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn ordinary_variables_may_be_set() {
        for name in ["A", "_a1", "PATH", "HOME", "PYTHONPATH", "LANG", "ENVIRONMENT", "LDFLAGS"] {
            assert_eq!(check(&one(name, "x")), Ok(()), "{name}");
        }
    }

    #[test]
    fn variables_that_load_code_or_are_no_names_are_refused() {
        let loading = REFUSED.into_iter().chain([
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "BASH_FUNC_ls",
            "GLIBC_TUNABLES",
        ]);
        for name in loading {
            let refused = check(&one(name, "x")).unwrap_err().to_string();
            assert!(refused.contains("how programs are loaded"), "{name}: {refused}");
        }
        for name in OWN {
            let refused = check(&one(name, "x")).unwrap_err().to_string();
            assert!(refused.contains("set by the runtime"), "{name}: {refused}");
        }
        for name in ["", "1A", "A-B", "A=B", "A B", "Ä", "BASH_FUNC_x%%"] {
            let refused = check(&one(name, "x")).unwrap_err().to_string();
            assert!(refused.contains("is no name of a variable"), "{name}: {refused}");
        }
        assert!(check(&one("A", "x\0y")).unwrap_err().to_string().contains("NUL"));
    }

    #[test]
    fn only_declared_variables_of_the_host_are_passed_and_a_call_wins() {
        let host = |name: &str| match name {
            "TOKEN" => Some("secret".to_owned()),
            "OTHER" => Some("not declared".to_owned()),
            "REGION" => Some("host".to_owned()),
            _ => None,
        };
        let declared = ["TOKEN", "REGION", "ABSENT"].map(str::to_owned).into();
        let (env, missing) = complete(one("REGION", "call"), "demo", &declared, host);
        let expected = [("REGION", "call"), ("SKILL_NAME", "demo"), ("TOKEN", "secret")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(env, expected.into());
        assert_eq!(missing, ["ABSENT"]);
    }
}
