//! Workbooks: made, read, edited, recalculated and checked, without any other program.

mod address;
mod arguments;
mod book;
mod cells;
mod check;
mod circles;
mod create;
mod csv;
mod doubt;
mod edit;
mod engine;
mod error;
mod findings;
mod formula;
mod functions;
mod given;
mod ground;
mod guard;
mod inspect;
mod package;
mod plain;
mod read_range;
mod recalc;
mod render;
mod settings;
mod sheet;
mod spell;
mod splice;
mod strings;
mod styles;
mod tables;
mod value;
mod xml;

use std::sync::Arc;

use prowess_format::ArgumentKind;
use prowess_runtime::{Handler, Handlers, Invocation, Parameter, ToolFuture, ToolOutcome, Toolkit};
use prowess_workspace::{ArtifactStore, Workspaces};

#[doc(hidden)]
pub use engine::kept_bytes;
pub use error::XlsxError;
use ground::Ground;
#[doc(hidden)]
pub use recalc::PlainWorkbook;
pub use recalc::{RecalcErrors, RecalcReport, RecalcStatus, recalculate};
pub use settings::{InvalidXlsxSettings, XlsxSettings};

/// The skill that these functions are for.
pub const XLSX_SKILL: &str = "xlsx";

/// What a workbook is, to whoever stores one.
const MIME_TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// What the tools of the skill `xlsx` are bound to: `create`, `inspect`, `read_range`, `edit`,
/// `recalc`, `check` and `export_csv`. Files come from and go to the session's workspace and its
/// artifacts. Nothing is run: neither macros nor another program.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use prowess_catalog::Catalog;
/// use prowess_runtime::Runtime;
/// use prowess_toolkits::XlsxToolkit;
/// use prowess_workspace::Workspaces;
///
/// let xlsx = XlsxToolkit::new(Workspaces::new("/var/lib/prowess/workspaces"));
/// let runtime = Runtime::builder(Catalog::builder().build()).toolkit(Arc::new(xlsx)).build();
/// # let _ = runtime;
/// ```
#[derive(Clone)]
pub struct XlsxToolkit {
    xlsx: Xlsx,
}

/// What all functions work with.
#[derive(Clone)]
struct Xlsx {
    ground: Ground,
    settings: Arc<XlsxSettings>,
}

impl XlsxToolkit {
    /// Works in the workspaces of sessions.
    pub fn new(workspaces: Workspaces) -> Self {
        let ground = Ground { workspaces, artifacts: None };
        Self { xlsx: Xlsx { ground, settings: Arc::default() } }
    }

    /// Where artifacts are read from and kept.
    pub fn with_artifacts(mut self, artifacts: Arc<dyn ArtifactStore>) -> Self {
        self.xlsx.ground.artifacts = Some(artifacts);
        self
    }

    /// Other settings than the default ones.
    pub fn with_settings(mut self, settings: XlsxSettings) -> Self {
        self.xlsx.settings = Arc::new(settings);
        self
    }
}

impl std::fmt::Debug for XlsxToolkit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("XlsxToolkit")
            .field("settings", &self.xlsx.settings)
            .finish_non_exhaustive()
    }
}

impl Toolkit for XlsxToolkit {
    fn handlers(&self) -> Vec<Handlers> {
        let mut handlers = Handlers::for_skill(XLSX_SKILL)
            .opening(|_| async { ToolOutcome::text("## XLSX Skill Activated") });
        for method in Method::ALL {
            let (xlsx, parameters) = (self.xlsx.clone(), method.parameters());
            let handler = Arc::new(XlsxHandler { xlsx, method, parameters });
            handlers = handlers.handler(method.as_str(), handler);
        }
        vec![handlers]
    }
}

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Create,
    Inspect,
    ReadRange,
    Edit,
    Recalc,
    Check,
    ExportCsv,
}

impl Method {
    const ALL: [Self; 7] = [
        Self::Create,
        Self::Inspect,
        Self::ReadRange,
        Self::Edit,
        Self::Recalc,
        Self::Check,
        Self::ExportCsv,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Inspect => "inspect",
            Self::ReadRange => "read_range",
            Self::Edit => "edit",
            Self::Recalc => "recalc",
            Self::Check => "check",
            Self::ExportCsv => "export_csv",
        }
    }

    fn parameters(self) -> Vec<Parameter> {
        let text = |name| Parameter::optional(name, ArgumentKind::String);
        let flag = |name| Parameter::optional(name, ArgumentKind::Boolean);
        let mut all = vec![Parameter::required("path", ArgumentKind::String)];
        all.extend(match self {
            Self::Create => vec![
                Parameter::required("sheets", LIST),
                Parameter::optional("names", LIST),
                flag("overwrite"),
                flag("allow_stale"),
            ],
            Self::Inspect => vec![],
            Self::ReadRange => vec![text("sheet"), text("range"), text("show")],
            Self::Edit => vec![
                Parameter::required("operations", LIST),
                text("output"),
                flag("overwrite"),
                flag("allow_stale"),
            ],
            Self::Recalc => vec![text("output"), flag("overwrite")],
            Self::Check => vec![text("sheet")],
            Self::ExportCsv => vec![
                text("output"),
                text("sheet"),
                text("range"),
                text("formula_injection"),
                flag("overwrite"),
            ],
        });
        all
    }
}

/// The kind of an argument that is a list. A text that holds the list as JSON is taken as well.
const LIST: ArgumentKind = ArgumentKind::Array;

struct XlsxHandler {
    xlsx: Xlsx,
    method: Method,
    parameters: Vec<Parameter>,
}

impl Handler for XlsxHandler {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn call<'a>(&'a self, invocation: Invocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let xlsx = &self.xlsx;
            let outcome = match self.method {
                Method::Create => xlsx.create(invocation).await,
                Method::Inspect => xlsx.inspect(invocation).await,
                Method::ReadRange => xlsx.read_range(invocation).await,
                Method::Edit => xlsx.edit(invocation).await,
                Method::Recalc => xlsx.recalc(invocation).await,
                Method::Check => xlsx.check(invocation).await,
                Method::ExportCsv => xlsx.export_csv(invocation).await,
            };
            outcome.unwrap_or_else(|refusal| refusal)
        })
    }
}
