//! Commands that somebody talks to: `skill_exec` and its family.

mod answer;
mod arguments;
mod declaration;
mod hint;
mod lines;
mod screen;
mod session;
mod sessions;
mod settings;
mod tools;

use std::sync::Arc;

use prowess_runtime::Tool;

pub(crate) use answer::{add_exit, answer, outcome};
pub(crate) use arguments::{Look, TTY};
pub(crate) use declaration::{flag, object, text};
pub(crate) use screen::Want;
pub(crate) use session::{AfterInput, Beginning, Family, Owner, Session};
pub(crate) use sessions::{Forget, Sessions};
pub use settings::SessionSettings;
pub(crate) use tools::{Act, SkillExec, Talk, check_input, too_many};

use super::plan::Runner;

/// `skill_exec`, and what its sessions are talked to with.
pub(crate) fn tools(runner: &Runner, sessions: &Arc<Sessions>) -> Vec<Arc<dyn Tool>> {
    let talk = |act| -> Arc<dyn Tool> {
        Arc::new(Talk::new(act, Family::Skill, runner.clone(), Arc::clone(sessions)))
    };
    vec![
        Arc::new(SkillExec::new(runner.clone(), Arc::clone(sessions))),
        talk(Act::Write),
        talk(Act::Poll),
        talk(Act::Kill),
    ]
}
