//! What a statement may do, as SQLite asks it part by part.

use rusqlite::hooks::{AuthAction, AuthContext};

use crate::sql::dialect::SqlDialect;
use crate::sql::guard::{TableScope, is_known_function};

/// Functions that reach beyond the database.
pub(super) fn is_harmful(function: &str) -> bool {
    let names = ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"];
    names.iter().any(|name| name.eq_ignore_ascii_case(function))
}

/// What a statement that reads may do.
pub(super) fn is_reading(
    context: &AuthContext<'_>,
    tables: Option<&TableScope>,
    functions: &[String],
) -> bool {
    let is_open = tables.is_none_or(TableScope::is_open);
    // They tell of all tables, also of those that are not to be read.
    let tells = |pragma: &str| {
        let is_named = |it: &String| it.strip_prefix("pragma_") == Some(pragma);
        is_told_by(pragma) && (is_open || functions.iter().any(is_named))
    };
    match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        // What a view reads is the view's business.
        AuthAction::Read { table_name, .. } if table_name.eq_ignore_ascii_case("sqlite_dbpage") => {
            false
        }
        AuthAction::Read { table_name, .. } => {
            let name = table_name.to_ascii_lowercase();
            tables.is_none_or(|tables| is_open || tables.allows(&[table_name]))
                || context.accessor.is_some()
                || name.is_empty()
                || matches!(name.as_str(), "json_each" | "json_tree" | "jsonb_each" | "jsonb_tree")
                || name.strip_prefix("pragma_").is_some_and(tells)
        }
        AuthAction::Function { function_name } => {
            let name = function_name.to_ascii_lowercase();
            is_known_function(SqlDialect::Sqlite, &name) || functions.contains(&name)
        }
        // Full-text search asks for the first, whether others wrote.
        AuthAction::Pragma { pragma_name, pragma_value } => {
            (pragma_name == "data_version" && pragma_value.is_none())
                || tells(&pragma_name.to_ascii_lowercase())
        }
        _ => false,
    }
}

/// What can be asked about tables and changes nothing.
fn is_told_by(pragma: &str) -> bool {
    let told = [
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
        "function_list",
        "collation_list",
    ];
    told.iter().any(|name| name.eq_ignore_ascii_case(pragma))
}
