//! Tables.

use serde_json::Value;

use super::{Writer, content, kind};

/// Columns that a table may have, whatever it says.
const WIDEST: usize = 50;

impl Writer {
    /// A table, with the first row as its head if all of its cells are.
    pub(super) fn table(&mut self, node: &Value, depth: usize) -> String {
        if depth > self.depth {
            self.is_too_deep = true;
            return "[nested too deep]".to_owned();
        }
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (at, row) in content(node).iter().enumerate() {
            if self.is_full(&content(node)[at..]) {
                break;
            }
            let row = self.row(row, depth + 1);
            if !row.is_empty() {
                rows.push(row);
            }
            self.left = self.left.saturating_sub(1);
        }
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        if width == 0 {
            return String::new();
        }
        let first = content(node).first().map(content).unwrap_or_default();
        let has_head = first.iter().all(|cell| kind(cell) == "tableHeader");
        if !has_head {
            rows.insert(0, Vec::new());
        }
        let line = |row: &[String]| {
            let cells = (0..width).map(|at| row.get(at).map_or("", String::as_str));
            let cells = cells.map(|cell| format!(" {cell} |").replace("   |", "  |"));
            format!("|{}", cells.collect::<String>())
        };
        let mut lines: Vec<String> = rows.iter().map(|row| line(row)).collect();
        lines.insert(1, format!("|{}", " --- |".repeat(width)));
        lines.join("\n")
    }

    fn row(&mut self, row: &Value, depth: usize) -> Vec<String> {
        let mut cells = Vec::new();
        for (at, cell) in content(row).iter().enumerate() {
            if self.is_full(&content(row)[at..]) {
                break;
            }
            let text = self.joined(content(cell), depth + 1, "\n");
            let text = text.replace("\\\n", "<br>").replace('\n', "<br>").replace('|', "\\|");
            cells.push(text);
            self.left = self.left.saturating_sub(3);
            let span = cell["attrs"]["colspan"].as_u64().unwrap_or(1);
            let span = usize::try_from(span).unwrap_or(WIDEST).min(WIDEST);
            cells.extend((1..span).map(|_| String::new()));
            if cells.len() > WIDEST {
                cells.truncate(WIDEST);
                self.is_cut = true;
            }
        }
        cells
    }
}
