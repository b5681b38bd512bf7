//! What a query gives: rows that are shown, and the whole as a file.

use std::io;

use serde_json::{Value, json};

use super::render;
use super::spool::Spool;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its type, as the database calls it.
    pub(crate) kind: String,
}

/// How much of a result is shown and kept.
#[derive(Clone, Debug)]
pub(crate) struct ResultLimits {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) cell_bytes: usize,
    pub(crate) artifact_bytes: u64,
}

/// What becomes of rows that are not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The whole result goes into a file in this folder.
    Kept(std::path::PathBuf),
    /// They are not read.
    Lost,
}

/// Whether more rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    Enough,
}

/// Takes the rows of a result one by one, and holds no more of them than are shown.
#[derive(Debug)]
pub(crate) struct Collector {
    limits: ResultLimits,
    rest: Rest,
    pub(crate) columns: Vec<Column>,
    /// Their names as they are shown.
    pub(crate) header: Vec<String>,
    /// What is shown.
    pub(crate) rows: Vec<Vec<Value>>,
    /// Bytes of the table that is shown.
    bytes: usize,
    /// How many there were.
    pub(crate) count: u64,
    /// Whether something is not shown.
    pub(crate) truncated: bool,
    /// Whether there may be more than was read.
    pub(crate) is_open: bool,
    full: bool,
    pub(crate) spool: Option<Spool>,
}

impl Collector {
    pub(crate) fn new(limits: ResultLimits, rest: Rest) -> Self {
        Self {
            limits,
            rest,
            columns: Vec::new(),
            header: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
            count: 0,
            truncated: false,
            is_open: false,
            full: false,
            spool: None,
        }
    }

    /// Takes everything: for what a catalogue says, within reason.
    pub(crate) fn of_catalogue() -> Self {
        let limits =
            ResultLimits { rows: 200_000, bytes: 64 << 20, cell_bytes: 1 << 20, artifact_bytes: 0 };
        Self::new(limits, Rest::Lost)
    }

    pub(crate) fn begin(&mut self, columns: Vec<Column>) {
        let names = columns.iter().map(|column| column.name.as_str());
        let ResultLimits { cell_bytes, bytes, .. } = self.limits;
        let (header, is_whole) = render::header(names, cell_bytes, bytes);
        self.bytes = render::header_bytes(&header);
        self.truncated |= !is_whole;
        (self.columns, self.header) = (columns, header);
    }

    /// Takes a row, and says whether there should be more.
    pub(crate) fn row(&mut self, row: Vec<Value>) -> io::Result<Flow> {
        let is_room = !self.full && self.rows.len() < self.limits.rows;
        let size = if is_room { render::row_bytes(&row, self.limits.cell_bytes) } else { 0 };
        let fits = is_room && self.bytes.saturating_add(size) <= self.limits.bytes;
        if !fits {
            self.full = true;
            self.truncated = true;
            if self.rest == Rest::Lost {
                self.is_open = true;
                return Ok(Flow::Enough);
            }
        }
        self.count += 1;
        let has_long = row.iter().any(|cell| size_of(cell) > self.limits.cell_bytes);
        if (has_long || !fits) && self.spool.is_none() {
            self.truncated = true;
            if let Rest::Kept(folder) = &self.rest {
                let names = self.columns.iter().map(|column| column.name.as_str());
                let mut spool = Spool::new(folder, self.limits.artifact_bytes, names)?;
                for row in &self.rows {
                    spool.row(row)?;
                }
                self.spool = Some(spool);
            }
        }
        let mut flow = Flow::More;
        if let Some(spool) = &mut self.spool {
            flow = spool.row(&row)?;
            self.is_open = flow == Flow::Enough;
        }
        if fits {
            self.bytes += size;
            let most = self.limits.cell_bytes;
            self.rows.push(row.into_iter().map(|cell| cut(cell, most)).collect());
        }
        Ok(flow)
    }

    /// The structured result, with the rows, which go into it.
    pub(crate) fn data(&mut self, elapsed_ms: u64) -> Value {
        let column = |column: &Column| {
            let name = cut(column.name.as_str().into(), self.limits.cell_bytes);
            json!({"name": name, "type": column.kind})
        };
        let columns = self.columns.iter().map(column).collect();
        let mut data = json!({
            "columns": null,
            "rows": null,
            "row_count": self.count,
            "truncated": self.truncated,
            "elapsed_ms": elapsed_ms,
        });
        // Moved: the macro would copy them.
        data["columns"] = Value::Array(columns);
        data["rows"] = std::mem::take(&mut self.rows).into_iter().map(Value::Array).collect();
        data
    }
}

fn size_of(cell: &Value) -> usize {
    match cell {
        Value::String(text) => text.len(),
        _ => 8,
    }
}

/// No more of a value than is shown, with what is missing.
fn cut(cell: Value, most: usize) -> Value {
    match cell {
        Value::String(text) if text.len() > most => {
            let end = text.floor_char_boundary(most);
            Value::String(format!("{}{}", &text[..end], render::missing(text.len())))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(rows: usize, bytes: usize, rest: Rest) -> Collector {
        let limits = ResultLimits { rows, bytes, cell_bytes: 10, artifact_bytes: 1000 };
        let mut collector = Collector::new(limits, rest);
        collector.begin(vec![Column { name: "a".into(), kind: "text".into() }]);
        collector
    }

    fn text(length: usize) -> Vec<Value> {
        vec![Value::String("x".repeat(length))]
    }

    #[test]
    fn rows_and_bytes_are_limited_at_the_edge() {
        let mut exact = collector(2, 1000, Rest::Lost);
        assert_eq!(exact.row(text(1)).unwrap(), Flow::More);
        assert_eq!(exact.row(text(1)).unwrap(), Flow::More);
        assert!(!exact.truncated);
        assert_eq!(exact.row(text(1)).unwrap(), Flow::Enough);
        assert!(exact.truncated && exact.is_open);
        assert_eq!((exact.rows.len(), exact.count), (2, 2));

        // Two lines above the rows, and two rows with their signs.
        let mut exact = collector(100, 14 + 2 * 10, Rest::Lost);
        assert_eq!(exact.row(text(5)).unwrap(), Flow::More);
        assert_eq!(exact.row(text(5)).unwrap(), Flow::More);
        assert!(!exact.truncated);
        assert_eq!(render::bare_table(&exact.header, &exact.rows).len(), 34);
        assert_eq!(exact.row(text(1)).unwrap(), Flow::Enough);
        assert!(exact.truncated);
        // What is written in more bytes than it has counts as it is written.
        let mut wide = collector(100, 14 + 10, Rest::Lost);
        assert_eq!(wide.row(vec!["<<".into()]).unwrap(), Flow::Enough);
        assert!(wide.rows.is_empty() && wide.truncated);
    }

    #[test]
    fn long_names_of_columns_are_cut_and_that_is_said() {
        let mut long = Collector::new(
            ResultLimits { rows: 10, bytes: 200, cell_bytes: 100, artifact_bytes: 0 },
            Rest::Lost,
        );
        let column = |_| Column { name: "n".repeat(5000), kind: "text".into() };
        long.begin((0..4).map(column).collect());
        assert!(long.truncated && render::header_bytes(&long.header) <= 100);
        assert!(long.data(0)["columns"][0]["name"].as_str().is_some_and(|it| it.len() < 130));
    }

    #[test]
    fn a_long_value_is_cut_and_that_is_said() {
        let mut cut = collector(10, 1000, Rest::Lost);
        cut.row(text(10)).unwrap();
        assert!(!cut.truncated);
        cut.row(text(11)).unwrap();
        assert!(cut.truncated);
        assert_eq!(cut.rows[1][0], Value::String("xxxxxxxxxx… (11 bytes in all)".into()));
    }

    #[test]
    fn the_whole_is_kept_in_a_file_of_limited_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = collector(1, 1000, Rest::Kept(folder.path().into()));
        kept.row(vec![json!("a,\"b")]).unwrap();
        assert!(kept.spool.is_none());
        kept.row(vec![json!(null)]).unwrap();
        kept.row(vec![json!(7)]).unwrap();
        let bytes = kept.spool.as_mut().unwrap().bytes().unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "a\r\n\"a,\"\"b\"\r\n\r\n7\r\n");
        assert_eq!((kept.rows.len(), kept.count, kept.truncated), (1, 3, true));
        let mut flow = Flow::More;
        while flow == Flow::More {
            flow = kept.row(vec![json!("123456789")]).unwrap();
        }
        assert!(kept.is_open);
        assert!(kept.spool.as_mut().unwrap().bytes().unwrap().len() <= 1000);
        // Nothing is left where it was.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
