//! What commands answer. All texts are safe for a terminal.

use std::borrow::Cow;

use prowess_runtime::{SessionKey, SessionState, SessionSummary};

use super::line::COMMANDS;
use crate::report::counted;
use crate::terminal::safe_line;
use crate::words::{cut, grouped};

/// The widest that the names of skills stand apart from what they do.
const NAMES: usize = 36;
/// So many sessions are listed.
const SESSIONS: usize = 20;

/// `/help`
pub(super) fn help() -> String {
    let written =
        |name: &str, arguments: &str| format!("/{name} {arguments}").trim_end().to_owned();
    let skill = (
        "NAME [ARGUMENTS]",
        "",
        "begin a turn with a skill; /skill:NAME if a command has its name",
    );
    let rows = COMMANDS.iter().chain([&skill]);
    let lines: Vec<String> = rows
        .map(|(name, arguments, what)| format!("  {:26}{what}", written(name, arguments)))
        .collect();
    format!(
        "{}\n\nA line that ends with \\ goes on; a paste may have many lines. Tab completes, ↑ brings \
         back.\nCtrl-C ends a turn and keeps the session, Ctrl-D leaves.",
        lines.join("\n")
    )
}

/// Whether a skill is in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    No,
    Loaded,
    /// It comes with the next message.
    Coming,
}

/// Who can start a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Everybody,
    People,
    Model,
    Nobody,
}

/// A skill in a list.
#[derive(Clone, Debug)]
pub(super) struct SkillRow {
    pub(super) name: String,
    pub(super) hint: Option<String>,
    pub(super) description: String,
    pub(super) mark: Mark,
    pub(super) who: Who,
}

/// `/skills`
pub(super) fn skills(rows: &[SkillRow], filter: &str, width: usize) -> String {
    let wanted = filter.to_lowercase();
    let is_wanted = |row: &&SkillRow| {
        row.name.to_lowercase().contains(&wanted)
            || row.description.to_lowercase().contains(&wanted)
    };
    let shown: Vec<&SkillRow> = rows.iter().filter(is_wanted).collect();
    match (rows.is_empty(), shown.is_empty()) {
        (true, _) => {
            return "No skills are there; `prowess doctor` shows where they are looked for."
                .to_owned();
        }
        (_, true) => return format!("No skill has '{}' in it.", safe_line(filter)),
        _ => {}
    }
    let names: Vec<String> = shown
        .iter()
        .map(|row| {
            let slash = if matches!(row.who, Who::Everybody | Who::People) { "/" } else { "" };
            let hint = row.hint.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
            cut(&safe_line(&format!("{slash}{}{hint}", row.name)), NAMES)
        })
        .collect();
    let wide = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (row, name) in shown.iter().zip(&names) {
        let mark = match row.mark {
            Mark::No => " ",
            Mark::Loaded => "●",
            Mark::Coming => "+",
        };
        let who = match row.who {
            Who::Everybody => "",
            Who::People => "(only you) ",
            Who::Model => "(only the model) ",
            Who::Nobody => "(nobody) ",
        };
        let words: Vec<&str> = row.description.split_whitespace().collect();
        let line = format!("{mark} {name:wide$}  {who}{}", safe_line(&words.join(" ")));
        lines.push(cut(&line, width).trim_end().to_owned());
    }
    let of = match shown.len() == rows.len() {
        true => String::new(),
        false => format!(" of {}", rows.len()),
    };
    let count = counted(shown.len(), "skill");
    lines.push(format!("{count}{of}; ● loaded, + comes with your next message"));
    lines.join("\n")
}

/// What a request costs, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) system: usize,
    pub(super) listing: usize,
    pub(super) tools: usize,
    pub(super) tool_count: usize,
    pub(super) messages: usize,
    pub(super) message_count: usize,
    /// Skills that come with the next message, and are not counted.
    pub(super) coming: usize,
}

/// `/tokens`
pub(super) fn tokens(cost: Cost) -> String {
    let Cost { system, listing, tools, tool_count, messages, message_count, coming } = cost;
    let row = |name: &str, tokens: usize, what: &str| {
        format!("  {name:10}{:>9}  {what}", grouped(tokens as u64)).trim_end().to_owned()
    };
    let mut lines = vec![
        row("system", system, ""),
        row("listing", listing, "names and descriptions of skills"),
        row("tools", tools, &counted(tool_count, "tool")),
        row("messages", messages, &counted(message_count, "message")),
        row("together", system + listing + tools + messages, "and your next message"),
    ];
    if coming > 0 {
        let count = counted(coming, "skill");
        lines.push(format!("Not counted: {count} to be loaded with your next message."));
    }
    lines.push("Counted as o200k_base; providers count a little differently.".to_owned());
    lines.join("\n")
}

/// A session as it is typed.
pub(super) fn short(key: &SessionKey) -> String {
    let is_own = (key.app(), key.user()) == (SessionKey::DEFAULT_APP, SessionKey::DEFAULT_USER);
    safe_line(&if is_own { key.session().to_owned() } else { key.to_string() })
}

/// What goes on with a session in another process.
pub(super) fn again(key: &SessionKey) -> String {
    let name = short(key);
    // No name holds what cannot be quoted.
    let quoted = shlex::try_quote(&name).map_or_else(|_| name.clone(), Cow::into_owned);
    format!("prowess chat --session {quoted}")
}

/// `/session`
pub(super) fn session(
    key: &SessionKey,
    state: &SessionState,
    messages: usize,
    model: &str,
) -> String {
    let loaded = match state.loaded_names().as_slice() {
        [] => "nothing".to_owned(),
        names => safe_line(&names.join(", ")),
    };
    format!(
        "  session   {}\n  model     {}\n  so far    {}, {}\n  loaded    {loaded}",
        short(key),
        safe_line(model),
        counted(usize::try_from(state.turn).unwrap_or(usize::MAX), "turn"),
        counted(messages, "message"),
    )
}

/// `/session list`
pub(super) fn sessions(all: &[SessionSummary], here: &SessionKey) -> String {
    if all.is_empty() {
        return "No session is stored yet.".to_owned();
    }
    let mut latest: Vec<&SessionSummary> = all.iter().collect();
    latest.sort_by_key(|session| std::cmp::Reverse(session.updated));
    let shown: Vec<&SessionSummary> = latest.iter().take(SESSIONS).copied().collect();
    let names: Vec<String> = shown.iter().map(|session| short(&session.key)).collect();
    let wide = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut lines: Vec<String> = shown
        .iter()
        .zip(&names)
        .map(|(session, name)| {
            let mark = if session.key == *here { "●" } else { " " };
            let updated = session.updated.strftime("%Y-%m-%d %H:%M:%S UTC");
            format!("{mark} {name:wide$}  {updated}")
        })
        .collect();
    if latest.len() > shown.len() {
        lines
            .push(format!("… {} more; `prowess session list` has all", latest.len() - shown.len()));
    }
    lines.join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use prowess_runtime::Revision;

    use super::*;

    fn row(name: &str, hint: Option<&str>, mark: Mark, who: Who, description: &str) -> SkillRow {
        let (name, description) = (name.to_owned(), description.to_owned());
        SkillRow { name, hint: hint.map(str::to_owned), description, mark, who }
    }

    fn rows() -> Vec<SkillRow> {
        let long =
            "Writes release notes from the commits since the last tag. Use it for a release.";
        vec![
            row("deploy", Some("<env>"), Mark::Loaded, Who::People, "Deploys.\nUse with care."),
            row("house-style", None, Mark::No, Who::Model, "How we write."),
            row("release-notes", Some("[since] [until]"), Mark::Coming, Who::Everybody, long),
            row("ruse", None, Mark::No, Who::Everybody, "\u{1b}[2JClears your screen\u{202e}."),
            row("sealed", None, Mark::No, Who::Nobody, "For nobody."),
        ]
    }

    #[test]
    fn help_names_everything() {
        insta::assert_snapshot!(help());
        assert!(help().lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn skills_are_listed_within_the_width() {
        for width in [60, 100] {
            let text = skills(&rows(), "", width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            insta::assert_snapshot!(format!("skills_{width}"), text);
        }
    }

    #[test]
    fn skills_can_be_looked_for() {
        let last = |text: &str| skills(&rows(), text, 80).lines().last().unwrap().to_owned();
        assert_eq!(last("RELEASE"), "1 skill of 5; ● loaded, + comes with your next message");
        assert_eq!(last("we write"), "1 skill of 5; ● loaded, + comes with your next message");
        assert_eq!(last("\u{1b}x"), "No skill has '\\u{1b}x' in it.");
        assert!(skills(&[], "", 80).starts_with("No skills are there"));
    }

    #[test]
    fn tokens_are_added_up() {
        let cost = Cost {
            system: 420,
            listing: 88,
            tools: 1_204,
            tool_count: 9,
            messages: 3_120,
            message_count: 1,
            coming: 0,
        };
        insta::assert_snapshot!(tokens(cost));
        insta::assert_snapshot!("coming", tokens(Cost { coming: 2, ..cost }));
    }

    #[test]
    fn a_session_is_named_so_that_a_shell_takes_it() {
        for (key, expected) in [
            ("work", "prowess chat --session work"),
            ("prowess/local/work", "prowess chat --session work"),
            ("shop/alice/42", "prowess chat --session shop/alice/42"),
            ("a b; c", "prowess chat --session 'a b; c'"),
        ] {
            assert_eq!(again(&key.parse().unwrap()), expected);
        }
    }

    #[test]
    fn sessions_are_listed_from_the_last_one_on() {
        let at = |minute: i64| {
            let day: jiff::Timestamp = "2026-01-02T03:00:00Z".parse().unwrap();
            day + jiff::SignedDuration::from_mins(minute)
        };
        let summary = |name: &str, minute: i64| {
            SessionSummary::new(name.parse().unwrap(), Revision(1), at(0), at(minute))
        };
        let here = "work".parse().unwrap();
        let few = [summary("chat-1", 1), summary("work", 9), summary("shop/alice/42", 5)];
        insta::assert_snapshot!(sessions(&few, &here));
        let many: Vec<SessionSummary> = (0..22).map(|at| summary(&format!("s{at}"), at)).collect();
        let text = sessions(&many, &here);
        assert_eq!(text.lines().count(), SESSIONS + 1);
        assert!(text.starts_with("  s21") && text.contains("… 2 more"), "{text}");
        assert_eq!(sessions(&[], &here), "No session is stored yet.");
    }
}
