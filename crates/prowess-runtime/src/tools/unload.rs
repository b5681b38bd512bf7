//! `unload_skill`

use serde_json::json;

use super::arguments::CallArguments;
use crate::outcome::ToolOutcome;
use crate::session::Change;
use crate::tool::Invocation;

pub(super) async fn unload(
    invocation: Invocation<'_>,
    mut arguments: CallArguments<'_>,
) -> Result<ToolOutcome, ToolOutcome> {
    let loaded = invocation.loaded(&arguments.skill()?)?;
    let data = json!({"skill": loaded.name});
    if loaded.pinned {
        return Err(ToolOutcome::failed("skill_pinned", data).about(&loaded.name));
    }
    Ok(ToolOutcome::coded("unloaded", data)
        .with_change(Change::Unload { skill: loaded.name.clone() })
        .about(&loaded.name))
}
