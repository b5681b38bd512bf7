//! What stands above the body of the skill when it is loaded: the database as it is now.

use std::fmt::Write as _;

use prowess_runtime::{ToolOutcome, estimate_tokens};

use super::inspect::lines;
use super::render;
use super::schema::Catalogue;
use super::toolkit::{Connection, Inner};

impl Inner {
    /// The database, its tables and its schema, within `schema_tokens`.
    pub(super) async fn opening(&self) -> ToolOutcome {
        let mut text = "## SQL Skill Activated\n\n### Database Information\n".to_owned();
        let Some(connection) = self.connections.get(&self.settings.default_connection) else {
            text.push_str("- There is no database.\n");
            return ToolOutcome::text(text);
        };
        let _ = writeln!(text, "- Dialect: {}", connection.dialect());
        let catalogue = connection.catalogue().await;
        let mut left = self.settings.schema_tokens;
        match &catalogue {
            Ok(catalogue) => self.tables(&mut text, catalogue, &mut left),
            Err(error) => {
                let _ = writeln!(text, "- Available Tables: unknown, because {error}");
            }
        }
        if self.connections.len() > 1 {
            let all: Vec<String> = self.connections.values().map(|it| told(it)).collect();
            let _ = writeln!(text, "- Connections: {}", all.join(", "));
            let _ = writeln!(
                text,
                "- Default Connection: {} (name another one with the argument `connection`)",
                connection.name
            );
        }
        if let Ok(catalogue) = &catalogue {
            text.push_str("\n### Database Schema\n");
            schema(&mut text, catalogue, left);
        }
        if connection.is_read_only() {
            text.push_str(
                "\n### Read-Only Mode\n\
                 This database is in READ-ONLY mode. Only SELECT queries are allowed.\n\
                 INSERT, UPDATE, DELETE, and other write operations will be rejected.\n",
            );
        } else {
            text.push_str(
                "\n### Write Mode\n\
                 Statements that write are run one by one, each after the host has approved it.\n",
            );
        }
        match connection.findings().await {
            Ok([]) => {}
            Ok(findings) => {
                let _ = writeln!(
                    text,
                    "\nWarning: the role of this connection can write ({}). Statements that write \
                     are rejected all the same; the host should use a role that can only read.",
                    findings.join("; ")
                );
            }
            Err(error) => {
                let _ = writeln!(text, "\nWarning: what the role may do is unknown: {error}");
            }
        }
        ToolOutcome::text(text.trim_end())
    }

    /// The names, in at most half of what is left of the budget.
    fn tables(&self, text: &mut String, catalogue: &Catalogue, left: &mut usize) {
        let mut half = *left / 2;
        for (label, views) in [("Available Tables", false), ("Available Views", true)] {
            let names = catalogue.names(views);
            if names.is_empty() && views {
                continue;
            }
            let (shown, missing) = within(&names, half);
            let more = match missing {
                0 => String::new(),
                missing => format!(" and {missing} more: sql_list_tables names them all"),
            };
            let none = if names.is_empty() { "none" } else { "" };
            let line = format!("- {label}: {none}{shown}{more}\n");
            let used = estimate_tokens(&line);
            (half, *left) = (half.saturating_sub(used), left.saturating_sub(used));
            text.push_str(&line);
        }
    }
}

/// All of the schema, if it is within what is left of the budget.
fn schema(text: &mut String, catalogue: &Catalogue, left: usize) {
    let all: Vec<String> = catalogue.tables.iter().map(|it| lines(&it.create)).collect();
    let all = all.join("\n\n");
    if estimate_tokens(&all) <= left {
        text.push_str(&all);
        text.push('\n');
        return;
    }
    let _ = writeln!(
        text,
        "The schema of {} tables is too long to be shown here. Use sql_describe_table for the \
         tables that you need.",
        catalogue.tables.len()
    );
}

/// As many names as fit, and how many do not.
fn within(names: &[String], tokens: usize) -> (String, usize) {
    let mut shown = String::new();
    for (at, name) in names.iter().enumerate() {
        let name = render::shown(name);
        let next = if at == 0 { name } else { format!(", {name}") };
        let before = shown.len();
        shown.push_str(&next);
        if estimate_tokens(&shown) > tokens {
            shown.truncate(before);
            return (shown, names.len() - at);
        }
    }
    (shown, 0)
}

fn told(connection: &Connection) -> String {
    let mode = if connection.is_read_only() { "read-only" } else { "read-write" };
    format!("{} ({}, {mode})", connection.name, connection.dialect())
}
