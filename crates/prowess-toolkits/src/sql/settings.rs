//! What a host can set: the section `[sql]` of `prowess.toml`, and two variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::invalid::InvalidSqlSettings;

/// The connection that `DATABASE_URL` names, or the demo where there is none.
pub(crate) const DEFAULT_CONNECTION: &str = "default";
/// The address of the demo: a file below the host's own folder.
pub(crate) const DEMO_URL: &str = "sqlite:///demo.db";

/// Which databases there are: the section `[sql]` of `prowess.toml`.
///
/// ```toml
/// [sql]
/// default_connection = "default"   # that is used if a call names none
/// schema_tokens = 4000             # of the schema that is shown when the skill is loaded
/// sample_tables = 5                # that samples are shown of
/// sample_rows = 3                  # of each
/// approval_seconds = 300           # that a write may be approved, and run after that
/// max_pending_approvals = 100
/// masked_columns = ["*email*", "*phone*", "*mobile*", "*password*", "*passwd*", "*secret*", "*token*", "*api_key*", "*apikey*", "*ssn*", "*social_security*", "*card*", "*iban*", "*cvv*", "*salary*", "*birth*", "*address*"]
///
/// [sql.connections.sales]
/// url = "postgresql://reader@db.example.com/sales"
/// url_env = ""                     # a variable that holds the address, instead of `url`
/// mode = "ro"                      # or "rw": writes that the host approved one by one
/// superuser = "refuse"             # or "drop": reads step down to pg_read_all_data (PostgreSQL)
/// privileges = "warn"              # or "enforce": a role that can write is not used; or "ignore"
/// max_rows = 200                   # that one result shows
/// max_bytes = 65536
/// max_cell_bytes = 2000            # of one value
/// max_artifact_bytes = 67108864    # of a whole result, as a file
/// max_statement_bytes = 65536
/// max_statement_tokens = 10000
/// timeout_seconds = 15
/// connect_seconds = 10
/// max_connections = 4              # to a server, at a time
/// max_value_bytes = 4194304        # of one value; of SQLite also of one that is made on the way
/// max_columns = 256                # of one result (SQLite)
/// max_lost_threads = 4             # with queries that cannot be stopped (SQLite)
/// schemas = []                     # those that may be read, as the database has them; all if empty
/// tables = []                      # the same
/// functions = []                   # that may be called beside those that are known to read
/// ```
///
/// `DATABASE_URL` is the connection `default`; where neither names a database, that is a demo below
/// the host's own folder. `SQL_READ_ONLY` is a clear yes or no: with no, that connection may write
/// unless its own `mode` says otherwise, and with yes none may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SqlSettings {
    /// The connection that is used if a call names none.
    pub default_connection: String,
    /// Tokens of the schema that is shown when the skill is loaded.
    pub schema_tokens: usize,
    /// Tables that samples are shown of.
    pub sample_tables: usize,
    /// Rows that are shown of each.
    pub sample_rows: usize,
    /// Seconds in which a write may be approved, and in which it may be run after that.
    pub approval_seconds: u64,
    /// Writes that wait for an approval, of all sessions.
    pub max_pending_approvals: usize,
    /// Columns whose values samples do not show, by patterns with `*`.
    pub masked_columns: Vec<String>,
    /// The connections, by their names.
    pub connections: BTreeMap<String, SqlConnectionSettings>,
    /// Those whose mode somebody wrote down.
    #[serde(skip)]
    pub(super) decided: BTreeSet<String>,
    #[serde(skip)]
    pub(super) warnings: Vec<String>,
}

/// A connection: a section `[sql.connections.NAME]`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SqlConnectionSettings {
    /// The address of the database. It may hold a password, and is never shown.
    pub url: String,
    /// The variable that holds it instead.
    pub url_env: String,
    /// Whether writes can be approved.
    pub mode: SqlMode,
    /// What becomes of a superuser of PostgreSQL, and of roles that can reach the files or the programs
    /// of the server: a session that cannot write does not keep them from that.
    pub superuser: SqlSuperuser,
    /// What becomes of a role that can write.
    pub privileges: SqlPrivileges,
    /// Rows that one result shows.
    pub max_rows: usize,
    /// Bytes of values that one result shows.
    pub max_bytes: usize,
    /// Bytes of one value that are shown.
    pub max_cell_bytes: usize,
    /// Bytes of a whole result that are kept as an artifact.
    pub max_artifact_bytes: u64,
    /// Bytes of a statement.
    pub max_statement_bytes: usize,
    /// Words, signs and values of a statement.
    pub max_statement_tokens: usize,
    /// Seconds that a statement may take.
    pub timeout_seconds: u64,
    /// Seconds that it may take to connect.
    pub connect_seconds: u64,
    /// Statements that run at a time on a server; more of them wait.
    pub max_connections: usize,
    /// Bytes of one value as a server sends it, or as SQLite makes it on the way to a result.
    pub max_value_bytes: usize,
    /// Columns of one result of SQLite.
    pub max_columns: usize,
    /// Threads with queries of SQLite that cannot be stopped; then nothing more is asked.
    pub max_lost_threads: usize,
    /// The schemas that may be read, as the database has them; all if empty.
    pub schemas: BTreeSet<String>,
    /// The tables that may be read, `name` or `schema.name`; all if empty.
    pub tables: BTreeSet<String>,
    /// Functions that may be called beside those that are known to read.
    pub functions: BTreeSet<String>,
}

/// Whether a connection can write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlMode {
    /// It only reads.
    #[default]
    Ro,
    /// It runs writes that the host approved one by one.
    Rw,
}

/// What becomes of a connection as somebody whom a read-only session does not keep from everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlSuperuser {
    /// It is not used.
    #[default]
    Refuse,
    /// It steps down to a role that can only read, for every statement.
    Drop,
}

/// What becomes of a connection whose role can write although it should only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SqlPrivileges {
    /// It is used, and that is told.
    #[default]
    Warn,
    /// It is not used.
    Enforce,
    /// It is used, and nobody looks.
    Ignore,
}

impl Default for SqlSettings {
    fn default() -> Self {
        let masked = [
            "*email*",
            "*phone*",
            "*mobile*",
            "*password*",
            "*passwd*",
            "*secret*",
            "*token*",
            "*api_key*",
            "*apikey*",
            "*ssn*",
            "*social_security*",
            "*card*",
            "*iban*",
            "*cvv*",
            "*salary*",
            "*birth*",
            "*address*",
        ];
        Self {
            default_connection: DEFAULT_CONNECTION.to_owned(),
            schema_tokens: 4000,
            sample_tables: 5,
            sample_rows: 3,
            approval_seconds: 300,
            max_pending_approvals: 100,
            masked_columns: masked.map(str::to_owned).to_vec(),
            connections: BTreeMap::new(),
            decided: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }
}

impl Default for SqlConnectionSettings {
    fn default() -> Self {
        Self {
            url: String::new(),
            url_env: String::new(),
            mode: SqlMode::Ro,
            superuser: SqlSuperuser::Refuse,
            privileges: SqlPrivileges::Warn,
            max_rows: 200,
            max_bytes: 64 << 10,
            max_cell_bytes: 2000,
            max_artifact_bytes: 64 << 20,
            max_statement_bytes: 64 << 10,
            max_statement_tokens: 10_000,
            timeout_seconds: 15,
            connect_seconds: 10,
            max_connections: 4,
            max_value_bytes: 4 << 20,
            max_columns: 256,
            max_lost_threads: 4,
            schemas: BTreeSet::new(),
            tables: BTreeSet::new(),
            functions: BTreeSet::new(),
        }
    }
}

impl fmt::Debug for SqlConnectionSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SqlConnectionSettings")
            .field("mode", &self.mode)
            .field("privileges", &self.privileges)
            .field("max_rows", &self.max_rows)
            .field("max_bytes", &self.max_bytes)
            .field("timeout_seconds", &self.timeout_seconds)
            .finish_non_exhaustive()
    }
}

impl SqlConnectionSettings {
    /// A connection to the database at this address, that only reads.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

impl SqlSettings {
    /// The settings in a section `[sql]`.
    pub fn from_table(table: toml::Table) -> Result<Self, InvalidSqlSettings> {
        let connections = table.get("connections").and_then(toml::Value::as_table);
        let has_mode = |own: &toml::Value| own.get("mode").is_some();
        let decided = connections.into_iter().flatten().filter(|(_, own)| has_mode(own));
        let decided = decided.map(|(name, _)| name.clone()).collect();
        let settings: Self =
            table.try_into().map_err(|error| InvalidSqlSettings::Section(Box::new(error)))?;
        settings.check()?;
        Ok(Self { decided, ..settings })
    }

    /// Adds a connection, in the place of one of the same name. The first one is the default.
    pub fn with_connection(
        mut self,
        name: impl Into<String>,
        connection: SqlConnectionSettings,
    ) -> Self {
        let name = name.into();
        if self.connections.is_empty() {
            self.default_connection.clone_from(&name);
        }
        self.decided.insert(name.clone());
        self.connections.insert(name, connection);
        self
    }

    /// What the host should tell: variables that say something and change nothing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn check(&self) -> Result<(), InvalidSqlSettings> {
        let limit = |place: &str, key: &'static str, value: u64, most: u64| match value {
            value if (1..=most).contains(&value) => Ok(()),
            value => Err(InvalidSqlSettings::Limit { place: place.to_owned(), key, value, most }),
        };
        let of = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        limit("[sql]", "approval_seconds", self.approval_seconds, 86_400)?;
        limit("[sql]", "max_pending_approvals", of(self.max_pending_approvals), 100_000)?;
        for (name, own) in &self.connections {
            let place = format!("[sql.connections.{name}]");
            if own.url.is_empty() == own.url_env.is_empty() {
                return Err(InvalidSqlSettings::Url { connection: name.clone() });
            }
            limit(&place, "max_rows", of(own.max_rows), 100_000)?;
            limit(&place, "max_bytes", of(own.max_bytes), 16 << 20)?;
            limit(&place, "max_cell_bytes", of(own.max_cell_bytes), 16 << 20)?;
            limit(&place, "max_artifact_bytes", own.max_artifact_bytes, 4 << 30)?;
            limit(&place, "max_statement_bytes", of(own.max_statement_bytes), 1 << 20)?;
            limit(&place, "max_statement_tokens", of(own.max_statement_tokens), 20_000)?;
            limit(&place, "timeout_seconds", own.timeout_seconds, 86_400)?;
            limit(&place, "connect_seconds", own.connect_seconds, 3_600)?;
            limit(&place, "max_connections", of(own.max_connections), 1_000)?;
            limit(&place, "max_value_bytes", of(own.max_value_bytes), 1 << 30)?;
            limit(&place, "max_columns", of(own.max_columns), 2_000)?;
            limit(&place, "max_lost_threads", of(own.max_lost_threads), 1_000)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
