//! Databases that are read and not written: the skill `write_sql`.

mod address;
mod connection;
mod demo;
mod dialect;
mod environment;
mod error;
mod guard;
mod hidden;
mod inspect;
mod invalid;
mod layers;
mod opening;
mod privileges;
mod query;
mod render;
mod result;
mod schema;
mod settings;
mod spool;
mod toolkit;
mod write;

use prowess_runtime::{Invocation, ToolOutcome};

pub use address::InvalidAddress;
pub use demo::DEMO_CUSTOMERS;
pub use dialect::SqlDialect;
use error::SqlError;
pub use guard::{Reading, SqlGuard, SqlRefusal, TableScope};
pub use invalid::InvalidSqlSettings;
pub use layers::{Layer, Layers};
pub use settings::{SqlConnectionSettings, SqlMode, SqlPrivileges, SqlSettings, SqlSuperuser};
pub use toolkit::SqlToolkit;
pub use write::{ApprovalError, PendingWrite, SqlApprover};

/// An argument that must be given.
fn argument<'a>(invocation: Invocation<'a>, name: &str) -> Result<&'a str, ToolOutcome> {
    let value = invocation.call.arguments.get(name).and_then(|it| it.as_str());
    value.ok_or_else(|| invocation.invalid_arguments(format!("{name} is required")))
}

/// Something failed, said with these words before it, and with no more of the database's words than
/// so many bytes.
fn failure(start: &str, error: &SqlError, most: usize) -> ToolOutcome {
    if let SqlError::Refused(refusal) = error {
        return query::refused(refusal, most);
    }
    let text = render::brief(&error.to_string(), most);
    let text = match error {
        SqlError::ReadOnly(_) => {
            format!("Error: The database refused it in read-only mode: {text}")
        }
        _ => format!("{start}{text}"),
    };
    let outcome = ToolOutcome::error(error.code(), text);
    match error.hint() {
        Some(hint) => outcome.with_hint(render::brief(&hint, most)),
        None => outcome,
    }
}
