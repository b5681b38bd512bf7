//! Hooks: events that exist, in the shape that Claude Code documents.

use crate::lint::{Checker, Code, Document};
use crate::name::LONGEST_TYPO;
use crate::yaml::{Entry, Node};

/// Every event of the hooks protocol.
const EVENTS: &[&str] = &[
    "SessionStart",
    "Setup",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "PreToolUse",
    "PermissionRequest",
    "PermissionDenied",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "MessageDisplay",
    "SubagentStart",
    "SubagentStop",
    "TaskCreated",
    "TaskCompleted",
    "Stop",
    "StopFailure",
    "TeammateIdle",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "FileChanged",
    "WorktreeCreate",
    "WorktreeRemove",
    "PreCompact",
    "PostCompact",
    "Elicitation",
    "ElicitationResult",
    "SessionEnd",
];

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let hooks = document.mapping.get("hooks").and_then(Node::as_mapping);
    for entry in hooks.into_iter().flatten() {
        if !EVENTS.contains(&entry.key.as_str()) {
            report_unknown(entry, checker);
        }
        let groups = entry.value.as_sequence();
        let well_formed = groups.is_some_and(|groups| groups.iter().all(is_group));
        if !well_formed {
            checker.report_with_help(
                Code::WrongType,
                entry.key_range.to(entry.value.range),
                format!(
                    "Field 'hooks.{}' must be a list of mappings with a list 'hooks'",
                    entry.key
                ),
                "write `- matcher: Bash`, then `hooks:`, then `- type: command`",
            );
        }
    }
}

fn is_group(group: &Node) -> bool {
    group.as_mapping().and_then(|group| group.get("hooks")).is_some_and(|handlers| {
        handlers
            .as_sequence()
            .is_some_and(|handlers| handlers.iter().all(|handler| handler.as_mapping().is_some()))
    })
}

fn report_unknown(entry: &Entry, checker: &mut Checker<'_>) {
    // A key of any length costs no more than a long one.
    let key: String = entry.key.chars().take(LONGEST_TYPO).collect();
    let nearest = EVENTS
        .iter()
        .min_by_key(|event| strsim::osa_distance(event, &key))
        .copied()
        .unwrap_or_default();
    checker.report_with_help(
        Code::UnknownHookEvent,
        entry.key_range,
        format!("There is no hook event '{}'", entry.key),
        format!("the nearest is '{nearest}'"),
    );
}
