//! The toolkit: connections, and the methods that the skill binds its tools to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prowess_format::ArgumentKind;
use prowess_runtime::{
    Handler, Handlers, Invocation, Parameter, Tool, ToolDeclaration, ToolFuture, ToolOutcome,
    Toolkit,
};
use prowess_workspace::ArtifactStore;
use tokio::sync::OnceCell;

use super::address::Address;
use super::connection::{Database, Terms};
use super::dialect::SqlDialect;
use super::error::SqlError;
use super::guard::{SqlGuard, TableScope};
use super::invalid::InvalidSqlSettings;
use super::layers::{Layer, Layers};
use super::privileges::{self, Look};
use super::result::{Collector, Rest, ResultLimits};
use super::schema::Catalogue;
use super::settings::{SqlConnectionSettings, SqlMode, SqlPrivileges, SqlSettings};
use super::write::{ApprovalError, Approvals, PendingWrite, SqlApprover};

/// The skill that the methods are for.
pub(super) const SKILL: &str = "write_sql";

/// Bytes of a name that somebody made up, and that is repeated.
pub(super) const LONGEST_NAME: usize = 500;

/// What the skill `write_sql` binds its tools to: `execute_query`, `list_tables`, `describe_table`,
/// `explain_query`, `validate_query` and `get_sample_rows`, and what stands above its body when it is
/// loaded.
///
/// Databases are read and not written. Three layers see to that, each of them alone: what the
/// statement says ([`SqlGuard`]), a session that cannot write, and what the role may do. A connection
/// of mode `rw` runs writes that the host [approved](SqlToolkit::approve), each of them once.
///
/// ```no_run
/// # fn example() -> Result<(), prowess_toolkits::InvalidSqlSettings> {
/// use std::sync::Arc;
///
/// use prowess_catalog::Catalog;
/// use prowess_runtime::Runtime;
/// use prowess_toolkits::{SqlSettings, SqlToolkit};
///
/// let settings = SqlSettings::default().with_environment(|name| std::env::var_os(name))?;
/// let sql = SqlToolkit::new(settings, "/var/lib/prowess")?;
/// let runtime = Runtime::builder(Catalog::builder().build()).toolkit(Arc::new(sql)).build();
/// # let _ = runtime;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqlToolkit {
    pub(super) inner: Arc<Inner>,
}

/// What all methods work with.
#[derive(Clone)]
pub(super) struct Inner {
    pub(super) settings: SqlSettings,
    pub(super) connections: BTreeMap<String, Arc<Connection>>,
    pub(super) artifacts: Option<Arc<dyn ArtifactStore>>,
    pub(super) scratch: PathBuf,
    pub(super) approvals: Arc<Approvals>,
    pub(super) approver: SqlApprover,
}

/// A connection with what is known about it.
pub(super) struct Connection {
    pub(super) name: String,
    pub(super) settings: SqlConnectionSettings,
    pub(super) guard: SqlGuard,
    pub(super) scope: TableScope,
    pub(super) database: Database,
    pub(super) layers: Layers,
    /// What its role can write.
    findings: OnceCell<Vec<String>>,
}

impl SqlToolkit {
    /// The databases of these settings. Files are below `home` unless their addresses say otherwise.
    /// Nothing is opened before it is needed.
    pub fn new(settings: SqlSettings, home: impl AsRef<Path>) -> Result<Self, InvalidSqlSettings> {
        Self::with_layers(settings, home, Layers::ALL)
    }

    /// The same with some layers off, for tests that show what each does alone.
    #[doc(hidden)]
    pub fn with_layers(
        settings: SqlSettings,
        home: impl AsRef<Path>,
        layers: Layers,
    ) -> Result<Self, InvalidSqlSettings> {
        let home = home.as_ref();
        let mut connections = BTreeMap::new();
        for (name, own) in &settings.connections {
            let connection = Connection::new(name, own, home, layers)?;
            connections.insert(name.clone(), Arc::new(connection));
        }
        let lifetime = Duration::from_secs(settings.approval_seconds);
        let approvals = Approvals::new(lifetime, settings.max_pending_approvals);
        let inner = Inner {
            settings,
            connections,
            artifacts: None,
            scratch: std::env::temp_dir(),
            approvals: Arc::new(approvals),
            approver: SqlApprover::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// Where whole results are kept that are too large to be shown. Without it the rest is not read.
    pub fn with_artifacts(self, artifacts: Arc<dyn ArtifactStore>) -> Self {
        self.change(|inner| inner.artifacts = Some(artifacts))
    }

    /// The folder where such results are written first: files without a name, which go with the call.
    pub fn with_scratch(self, folder: impl Into<PathBuf>) -> Self {
        self.change(|inner| inner.scratch = folder.into())
    }

    /// Whether somebody approves writes. A host that calls [`SqlToolkit::approve`] says so here.
    pub fn with_approver(self, approver: SqlApprover) -> Self {
        self.change(|inner| inner.approver = approver)
    }

    /// Approves a write by its id: the same call, of the same session, of the exact statement on the
    /// same connection, runs it once, if it comes within `approval_seconds`.
    pub fn approve(&self, id: &str) -> Result<PendingWrite, ApprovalError> {
        self.inner.approvals.approve(id)
    }

    /// Takes a write back that waits for an approval, or that has it and did not run.
    pub fn reject(&self, id: &str) -> Result<PendingWrite, ApprovalError> {
        self.inner.approvals.reject(id)
    }

    /// The writes that wait for an approval.
    pub fn pending_writes(&self) -> Vec<PendingWrite> {
        self.inner.approvals.pending()
    }
}

impl std::fmt::Debug for SqlToolkit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SqlToolkit")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

impl Connection {
    fn new(
        name: &str,
        settings: &SqlConnectionSettings,
        home: &Path,
        layers: Layers,
    ) -> Result<Self, InvalidSqlSettings> {
        let address = Address::parse(&settings.url, home).map_err(|cause| {
            InvalidSqlSettings::Address { place: format!("[sql.connections.{name}]"), cause }
        })?;
        let dialect = address.dialect();
        let (schemas, tables) = (settings.schemas.clone(), settings.tables.clone());
        let scope = TableScope::new(dialect, schemas, tables);
        let scope = match &address {
            Address::Sqlite(_) => scope,
            Address::Postgresql(_) => {
                let first = settings.schemas.first().map_or("public", String::as_str);
                scope.with_default_schema(first)
            }
            Address::Mysql(options) => {
                scope.with_default_schema(options.get_database().unwrap_or_default())
            }
        };
        let guard = SqlGuard::new(dialect)
            .with_functions(settings.functions.clone())
            .with_tables(scope.clone())
            .with_max_bytes(settings.max_statement_bytes)
            .with_max_tokens(settings.max_statement_tokens);
        let mut terms = Terms::of(name, settings, layers);
        terms.tables = scope.clone();
        Ok(Self {
            name: name.to_owned(),
            settings: settings.clone(),
            guard,
            scope,
            database: Database::new(address, terms),
            layers,
            findings: OnceCell::new(),
        })
    }

    pub(super) fn dialect(&self) -> SqlDialect {
        self.database.dialect()
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.settings.mode == SqlMode::Ro
    }

    /// What its role can write although it should not.
    pub(super) async fn findings(&self) -> Result<&[String], SqlError> {
        let look = match self.settings.privileges {
            _ if self.layers.role == Layer::Off || !self.is_read_only() => return Ok(&[]),
            SqlPrivileges::Ignore => return Ok(&[]),
            SqlPrivileges::Warn => Look::AtGrants,
            SqlPrivileges::Enforce => Look::AtAll,
        };
        let found = self.findings.get_or_try_init(async || {
            let found = privileges::findings(&self.database, look).await?;
            for finding in &found {
                tracing::warn!(connection = self.name, finding, "the role of a database can write");
            }
            Ok::<_, SqlError>(found)
        });
        Ok(found.await?)
    }

    /// Refuses a role that can write, if that is wanted.
    pub(super) async fn check_role(&self) -> Result<(), SqlError> {
        if self.settings.privileges != SqlPrivileges::Enforce {
            return Ok(());
        }
        match self.findings().await? {
            [] => Ok(()),
            findings => Err(SqlError::RoleCanWrite {
                connection: self.name.clone(),
                findings: findings.to_vec(),
            }),
        }
    }

    /// Something failed, said with these words before it.
    pub(super) fn failure(&self, start: &str, error: &SqlError) -> ToolOutcome {
        super::failure(start, error, self.settings.max_cell_bytes)
    }

    pub(super) async fn catalogue(&self) -> Result<Catalogue, SqlError> {
        self.check_role().await?;
        Catalogue::read(&self.database, &self.scope).await
    }

    pub(super) fn collector(&self, rest: Rest) -> Collector {
        let limits = ResultLimits {
            rows: self.settings.max_rows,
            bytes: self.settings.max_bytes,
            cell_bytes: self.settings.max_cell_bytes,
            artifact_bytes: self.settings.max_artifact_bytes,
        };
        Collector::new(limits, rest)
    }
}

impl Inner {
    /// The connection that a call means.
    pub(super) fn connection(
        &self,
        invocation: Invocation<'_>,
    ) -> Result<&Connection, ToolOutcome> {
        let named = invocation.call.arguments.get("connection").and_then(|it| it.as_str());
        let name = named.filter(|name| !name.is_empty());
        let name = name.unwrap_or(&self.settings.default_connection);
        self.connections.get(name).map(AsRef::as_ref).ok_or_else(|| {
            let known = self.connections.keys().cloned().collect();
            let error = SqlError::UnknownConnection { name: name.to_owned(), known };
            super::failure("Error: ", &error, LONGEST_NAME)
        })
    }

    /// What becomes of rows that are not shown.
    pub(super) fn rest(&self) -> Rest {
        match &self.artifacts {
            Some(_) => Rest::Kept(self.scratch.clone()),
            None => Rest::Lost,
        }
    }
}

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Query,
    List,
    Describe,
    Explain,
    Validate,
    Samples,
    Opening,
}

struct SqlMethod {
    inner: Arc<Inner>,
    method: Method,
    parameters: Vec<Parameter>,
}

impl Handler for SqlMethod {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let inner = &self.inner;
            let outcome = match self.method {
                Method::Query => inner.execute_query(invocation).await,
                Method::List => inner.list_tables(invocation).await,
                Method::Describe => inner.describe_table(invocation).await,
                Method::Explain => inner.explain_query(invocation).await,
                Method::Validate => inner.validate_query(invocation).await,
                Method::Samples => inner.sample_rows(invocation).await,
                Method::Opening => Ok(inner.opening().await),
            };
            outcome.unwrap_or_else(|refusal| refusal)
        })
    }
}

/// A method as a tool that no skill opens.
struct BareTool {
    declaration: ToolDeclaration,
    method: SqlMethod,
}

impl Tool for BareTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        self.method.call(invocation)
    }
}

impl SqlToolkit {
    /// The methods as tools that no skill opens, for tests and measurements: `sql_query`,
    /// `sql_list_tables`, `sql_describe_table`, `sql_explain_query`, `sql_validate_query`,
    /// `sql_get_samples`, and `sql_opening`.
    #[doc(hidden)]
    pub fn bare_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = [
            ("sql_query", Method::Query),
            ("sql_list_tables", Method::List),
            ("sql_describe_table", Method::Describe),
            ("sql_explain_query", Method::Explain),
            ("sql_validate_query", Method::Validate),
            ("sql_get_samples", Method::Samples),
            ("sql_opening", Method::Opening),
        ];
        let tool = |(name, method)| -> Arc<dyn Tool> {
            let schema = serde_json::json!({"type": "object"});
            let inner = Arc::clone(&self.inner);
            Arc::new(BareTool {
                declaration: ToolDeclaration::new(name, name, schema),
                method: SqlMethod { inner, method, parameters: Vec::new() },
            })
        };
        tools.map(tool).to_vec()
    }
}

impl Toolkit for SqlToolkit {
    fn handlers(&self) -> Vec<Handlers> {
        let query = || Some(Parameter::required("query", ArgumentKind::String));
        let table = || Some(Parameter::required("table_name", ArgumentKind::String));
        let method = |method: Method, own: Option<Parameter>| -> Arc<dyn Handler> {
            let connection = Parameter::optional("connection", ArgumentKind::String);
            let parameters = match method {
                Method::Opening => Vec::new(),
                _ => own.into_iter().chain([connection]).collect(),
            };
            Arc::new(SqlMethod { inner: Arc::clone(&self.inner), method, parameters })
        };
        let handlers = Handlers::for_skill(SKILL)
            .handler("execute_query", method(Method::Query, query()))
            .handler("list_tables", method(Method::List, None))
            .handler("describe_table", method(Method::Describe, table()))
            .handler("explain_query", method(Method::Explain, query()))
            .handler("validate_query", method(Method::Validate, query()))
            .handler("get_sample_rows", method(Method::Samples, None))
            .opening_by(method(Method::Opening, None));
        vec![handlers]
    }
}
