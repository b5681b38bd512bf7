//! A runtime with the skill `xlsx`, and workbooks taken apart.

#![allow(dead_code, reason = "every test file uses some of it")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prowess_catalog::{Catalog, DirectorySource};
use prowess_runtime::{AgentName, Runtime, SessionKey, ToolCall, ToolOutcome};
use prowess_toolkits::{XlsxSettings, XlsxToolkit};
use prowess_workspace::{ArtifactStore, MemoryArtifacts, WorkspaceId, Workspaces};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
    workspaces: Workspaces,
    session: SessionKey,
    calls: AtomicUsize,
}

/// The skills of this repository.
pub(crate) fn skills() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills")
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(XlsxSettings::default()).await
    }

    /// A world in which the skill is loaded.
    pub(crate) async fn with(settings: XlsxSettings) -> Self {
        let world = Self::shut(settings);
        let loaded = world.call("load_skill", json!({"skill": "xlsx"})).await;
        assert!(!loaded.is_error, "{}", loaded.content);
        world
    }

    /// A world in which it is not.
    pub(crate) fn shut(settings: XlsxSettings) -> Self {
        let folder = TempDir::new().unwrap();
        let workspaces = Workspaces::new(folder.path().join("workspaces"));
        let artifacts = Arc::new(MemoryArtifacts::new());
        let xlsx = XlsxToolkit::new(workspaces.clone())
            .with_artifacts(Arc::clone(&artifacts) as Arc<dyn ArtifactStore>)
            .with_settings(settings);
        let source = DirectorySource::new(skills()).with_label("built-in");
        let catalog = Catalog::builder().source(source).build();
        let runtime = Runtime::builder(catalog).toolkit(Arc::new(xlsx)).build().unwrap();
        Self {
            folder,
            runtime,
            artifacts,
            workspaces,
            session: "test".parse().unwrap(),
            calls: AtomicUsize::new(0),
        }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let call = ToolCall::new(format!("call-{number}"), tool, arguments);
        self.runtime.dispatch(&self.session, &AgentName::default(), call).await.unwrap()
    }

    /// A call that succeeds: its data.
    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let outcome = self.call(tool, arguments).await;
        assert!(!outcome.is_error, "{}: {}", outcome.code, outcome.content);
        outcome.data
    }

    /// A call that fails: its code and what is said.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> (String, String) {
        let outcome = self.call(tool, arguments).await;
        assert!(outcome.is_error, "not refused: {}", outcome.content);
        (outcome.code.into_owned(), outcome.content)
    }

    /// Makes `work/book.xlsx` of one sheet `Data`.
    pub(crate) async fn book(&self, rows: Value) {
        let sheets = json!([{"name": "Data", "rows": rows}]);
        self.ok("xlsx_create", json!({"path": "work/book.xlsx", "sheets": sheets})).await;
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let key = &self.session;
        let id = WorkspaceId::new(key.app(), key.user(), key.session());
        self.workspaces.open(&id).unwrap().path().join(path)
    }

    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).unwrap()
    }

    pub(crate) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(path), bytes).unwrap();
    }

    /// The value of one cell.
    pub(crate) async fn value(&self, path: &str, cell: &str) -> Value {
        self.ok("xlsx_read_range", json!({"path": path, "range": cell})).await["rows"][0][0].clone()
    }

    /// The formula of one cell.
    pub(crate) async fn formula(&self, path: &str, cell: &str) -> Value {
        let bare = cell.rsplit('!').next().unwrap();
        let read = self.ok("xlsx_read_range", json!({"path": path, "range": cell})).await;
        read["formulas"][bare].clone()
    }
}

/// The parts of a workbook.
pub(crate) fn parts(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut parts = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        parts.insert(file.name().unwrap().into_owned(), content);
    }
    parts
}

/// The packed bytes of parts, as they stand in the file.
pub(crate) fn packed(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut parts = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index_raw(index).unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        parts.insert(file.name().unwrap().into_owned(), content);
    }
    parts
}

pub(crate) fn pack(parts: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in parts {
        writer.start_file(name.as_str(), options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A workbook with a part changed by hand.
pub(crate) fn with_part(
    bytes: &[u8],
    name: &str,
    change: impl FnOnce(String) -> String,
) -> Vec<u8> {
    let mut parts = parts(bytes);
    let old = parts.remove(name).unwrap_or_default();
    parts.insert(name.to_owned(), change(String::from_utf8(old).unwrap()).into_bytes());
    pack(&parts)
}

/// A workbook with one of everything: a table, names, rules, a chart, formulas.
pub(crate) fn rich() -> Value {
    json!({
        "path": "work/rich.xlsx",
        "sheets": [
            {"name": "Orders", "header": true, "freeze": "A2",
             "rows": [["Item", "Count", "Price", "Sum"],
                      ["a", 2, 1.5, "=B2*C2"], ["b", 3, 2.5, "=B3*C3"], ["c", 4, 3.5, "=B4*C4"]],
             "tables": [{"range": "A1:D4", "name": "Orders"}],
             "columns": [{"column": "C", "format": "0.00", "width": 12}],
             "validations": [{"range": "B2:B99", "type": "whole", "min": 0, "max": 500}],
             "conditional_formats": [{"range": "B2:B9", "type": "cell", "rule": ">", "value": 3}],
             "charts": [{"type": "column", "title": "Counts", "at": "F2",
                         "series": [{"categories": "A2:A4", "values": "B2:B4"}]}]},
            {"name": "My totals", "rows": [["Total", "=SUM(Orders!D2:D4)"], ["Tax", "=B1*Rate"],
                                           ["Rate", {"value": 0.2, "format": "0%"}]]}
        ],
        "names": [{"name": "Rate", "refers_to": "'My totals'!$B$3"}],
    })
}
