//! Why a statement is not run.

/// Why a statement is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SqlRefusal {
    /// There is none.
    #[error("the query is empty")]
    Empty,
    /// It is longer than it may be.
    #[error("the query is too long: {limit_name} is {limit}")]
    TooLong {
        /// The limit.
        limit_name: &'static str,
        /// How much it allows.
        limit: usize,
    },
    /// It could not be read.
    #[error("{message}")]
    Syntax {
        /// Where, and what was expected.
        message: String,
    },
    /// Databases would read it in different ways.
    #[error("{what} can be read in two ways, and is not allowed")]
    Ambiguous {
        /// What is in it.
        what: &'static str,
    },
    /// There is more than one.
    #[error("one statement is run at a time, and there are more")]
    Several,
    /// It writes.
    #[error(
        "{keyword} operations not allowed in read-only mode. \
         Only SELECT queries are permitted."
    )]
    Write {
        /// What it does: `DELETE`, `PRAGMA`, `SELECT INTO` …
        keyword: String,
    },
    /// It begins as one that writes, and could not be read.
    #[error(
        "{keyword} operations not allowed in read-only mode. \
         Only SELECT queries are permitted."
    )]
    Unread {
        /// What it begins with.
        keyword: String,
        /// Where it could not be read, and what was expected.
        message: String,
    },
    /// A function in it is not known to be harmless.
    #[error("the function {name} is not allowed in read-only mode")]
    Function {
        /// What it is called.
        name: String,
    },
    /// The database calls such a function for it, although it does not say so.
    #[error("the function {function}, which {name} calls, is not allowed in read-only mode")]
    Hidden {
        /// What it is behind: a view, a table with a policy, an operator, a type …
        name: String,
        /// What it is called.
        function: String,
    },
    /// What the database would call for it cannot be seen.
    #[error(
        "the view {name}, of which it cannot be seen what it calls, is not allowed in read-only mode"
    )]
    Unseen {
        /// What the view is called.
        name: String,
    },
    /// Something else in it is not allowed.
    #[error("{what} is not allowed in read-only mode")]
    Construct {
        /// What it is.
        what: &'static str,
    },
    /// It changes more than rows, over a connection that is limited to some tables.
    #[error(
        "this connection is limited to some tables, and over it only rows of these can be changed"
    )]
    Listed,
    /// A table in it is not one of those that this connection may read.
    #[error("the table {name} may not be read over this connection")]
    Table {
        /// What it is called.
        name: String,
    },
}

pub(super) use SqlRefusal as Refusal;

impl SqlRefusal {
    /// The stable name: `read_only` for what could write, `table_not_allowed`, `query_too_long`, or
    /// `query_error` for what could not be read.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty | Self::Syntax { .. } => "query_error",
            Self::TooLong { .. } => "query_too_long",
            Self::Table { .. } | Self::Listed => "table_not_allowed",
            _ => "read_only",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Function { .. } | Self::Hidden { .. } => Some(
                "Only functions that are known to read are allowed; the host can allow more with \
                 `functions` of the connection.",
            ),
            Self::Unseen { .. } => Some("The host can grant SHOW VIEW to the role."),
            Self::Several => Some("Send the statements one by one."),
            Self::Ambiguous { .. } => Some("Write the query without it."),
            Self::Table { .. } => Some("sql_list_tables names the tables."),
            Self::TooLong { .. } => Some("Write a shorter query."),
            _ => None,
        }
    }
}
