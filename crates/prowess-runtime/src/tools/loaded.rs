//! `list_loaded_skills`

use serde_json::{Value, json};

use crate::outcome::ToolOutcome;
use crate::tool::Invocation;

pub(super) async fn list(invocation: Invocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
    let skills: Vec<Value> = invocation
        .state
        .loaded
        .iter()
        .map(|skill| {
            json!({
                "name": skill.name,
                "load_count": skill.load_count,
                "version": skill.version,
                "digest": skill.digest,
                "docs": skill.docs.paths(),
            })
        })
        .collect();
    Ok(ToolOutcome::coded("loaded_skills", json!({"skills": skills})))
}
