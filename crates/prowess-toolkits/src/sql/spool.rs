//! A result as a file: comma-separated values.

use std::fs::File;
#[cfg(test)]
use std::io::Read;
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;
use uuid::Uuid;

use super::result::Flow;

/// A file without a name that holds a result, and no more of it than it may.
#[derive(Debug)]
pub(crate) struct Spool {
    file: BufWriter<File>,
    written: u64,
    most: u64,
    /// How many rows it holds, without the names of the columns.
    rows: u64,
}

impl Spool {
    /// A file in a folder, with the names of the columns.
    pub(crate) fn new<'a>(
        folder: &Path,
        most: u64,
        names: impl Iterator<Item = &'a str>,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!(".sql-{}", Uuid::now_v7().simple()));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // It goes with its last user, whatever happens.
        std::fs::remove_file(&path)?;
        let file = BufWriter::with_capacity(64 << 10, file);
        let mut spool = Self { file, written: 0, most, rows: 0 };
        let header: Vec<Value> = names.map(|name| Value::String(name.to_owned())).collect();
        spool.line(&header)?;
        Ok(spool)
    }

    /// How many rows it holds.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row, if there is room for it.
    pub(crate) fn row(&mut self, row: &[Value]) -> io::Result<Flow> {
        let flow = self.line(row)?;
        self.rows += u64::from(flow == Flow::More);
        Ok(flow)
    }

    fn line(&mut self, row: &[Value]) -> io::Result<Flow> {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            if at > 0 {
                line.push(',');
            }
            match cell {
                Value::Null => {}
                Value::String(text) => push_field(&mut line, text),
                other => push_field(&mut line, &other.to_string()),
            }
        }
        line.push_str("\r\n");
        let after = self.written + line.len() as u64;
        if after > self.most {
            return Ok(Flow::Enough);
        }
        self.file.write_all(line.as_bytes())?;
        self.written = after;
        Ok(Flow::More)
    }

    /// The file, from its beginning.
    pub(crate) fn into_file(self) -> io::Result<File> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    }

    /// What it holds.
    #[cfg(test)]
    pub(crate) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        self.file.flush()?;
        let mut file = self.file.get_ref().try_clone()?;
        file.rewind()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// An empty text is told from nothing by its quotes.
fn push_field(line: &mut String, text: &str) {
    if !text.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        line.push_str(text);
        return;
    }
    line.push('"');
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}
