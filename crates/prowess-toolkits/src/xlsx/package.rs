//! The ZIP file that a workbook is: opened within limits, and written with some parts exchanged.

use std::collections::BTreeMap;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write};

use zip::{ZipArchive, ZipWriter};

use super::error::{XlsxError, shown};
use super::settings::XlsxSettings;

/// Where the bytes of a workbook are.
pub(super) trait Bytes: Read + Seek + Send {}
impl<T: Read + Seek + Send> Bytes for T {}

/// An opened workbook.
pub(super) struct Package {
    archive: ZipArchive<BufReader<Box<dyn Bytes>>>,
    parts: BTreeMap<String, Part>,
    pub(super) size_bytes: u64,
}

/// A file inside a workbook.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    index: usize,
    pub(super) bytes: u64,
    checksum: u32,
}

/// What exchanges parts: by name, the new content, or none if the part goes away.
pub(super) type Changes = BTreeMap<String, Option<Vec<u8>>>;

/// Below this a part may shrink as much as it likes.
const SMALL: u64 = 1 << 20;

impl Package {
    /// Opens a workbook, if it is one and within the limits.
    pub(super) fn open(
        mut bytes: Box<dyn Bytes>,
        limits: &XlsxSettings,
    ) -> Result<Self, XlsxError> {
        let size_bytes = bytes.seek(SeekFrom::End(0))?;
        if size_bytes > limits.max_file_bytes {
            let (limit, most) = ("max_file_bytes", limits.max_file_bytes);
            return Err(XlsxError::limit("its bytes", size_bytes, limit, most));
        }
        bytes.seek(SeekFrom::Start(0))?;
        let mut head = Vec::new();
        bytes.by_ref().take(8).read_to_end(&mut head)?;
        bytes.seek(SeekFrom::Start(0))?;
        if head.starts_with(&[0xD0, 0xCF, 0x11, 0xE0]) {
            return Err(match holds(&mut bytes, &utf16("EncryptedPackage"))? {
                true => XlsxError::Encrypted,
                false => XlsxError::Format { what: "a workbook of Excel 97 to 2003 (.xls)" },
            });
        }
        if !head.starts_with(b"PK") {
            let why = if head.is_empty() { "it is empty" } else { "it is no ZIP file" };
            return Err(XlsxError::NotAWorkbook { why: why.to_owned() });
        }
        // Before the directory is read: it may have more entries than there is room for.
        let declared = entries(&mut bytes, size_bytes)?;
        if declared > limits.max_parts {
            return Err(XlsxError::limit("its parts", declared, "max_parts", limits.max_parts));
        }
        bytes.seek(SeekFrom::Start(0))?;
        let damaged = |why: zip::result::ZipError| XlsxError::malformed("(ZIP)", why);
        let mut archive = ZipArchive::new(BufReader::new(bytes)).map_err(damaged)?;
        let count = archive.len() as u64;
        if count > limits.max_parts {
            return Err(XlsxError::limit("its parts", count, "max_parts", limits.max_parts));
        }
        if archive.has_overlapping_files().map_err(damaged)? {
            return Err(XlsxError::malformed("(ZIP)", "parts overlap"));
        }
        let mut parts = BTreeMap::new();
        let mut total = 0_u64;
        for index in 0..archive.len() {
            let file = archive.by_index_raw(index).map_err(damaged)?;
            let name = file.name().map_err(damaged)?.into_owned();
            admit(&name, file.size(), file.compressed_size(), limits)?;
            if file.encrypted() {
                return Err(XlsxError::Encrypted);
            }
            total = total.saturating_add(file.size());
            if total > limits.max_expanded_bytes {
                let (limit, most) = ("max_expanded_bytes", limits.max_expanded_bytes);
                return Err(XlsxError::limit("its unpacked bytes", total, limit, most));
            }
            if !file.is_dir() {
                let (bytes, checksum) = (file.size(), file.crc32());
                parts.insert(name, Part { index, bytes, checksum });
            }
        }
        let package = Self { archive, parts, size_bytes };
        package.check_kind()?;
        Ok(package)
    }

    fn check_kind(&self) -> Result<(), XlsxError> {
        if self.has("xl/workbook.bin") {
            return Err(XlsxError::Format { what: "a binary workbook (.xlsb)" });
        }
        if self.has("mimetype") && self.has("content.xml") {
            return Err(XlsxError::Format { what: "a document of LibreOffice (.ods)" });
        }
        if !self.has("[Content_Types].xml") || !self.parts.keys().any(|it| it.starts_with("xl/")) {
            let why = "it is a ZIP file without a workbook".to_owned();
            return Err(XlsxError::NotAWorkbook { why });
        }
        Ok(())
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.parts.contains_key(part)
    }

    /// The parts, in the order of names.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&str, Part)> {
        self.parts.iter().map(|(name, part)| (name.as_str(), *part))
    }

    /// A part as a stream, which is no longer than it says.
    pub(super) fn stream(&mut self, name: &str) -> Result<impl Read, XlsxError> {
        let Some(part) = self.parts.get(name).copied() else {
            return Err(XlsxError::malformed(name, "it is missing"));
        };
        let file = self.archive.by_index(part.index);
        let file = file.map_err(|why| XlsxError::malformed(name, why))?;
        Ok(Exact { inner: file, left: part.bytes })
    }

    /// A whole part that is to be edited.
    pub(super) fn read(&mut self, name: &str, limits: &XlsxSettings) -> Result<Vec<u8>, XlsxError> {
        let size = self.parts.get(name).map_or(0, |part| part.bytes);
        if size > limits.max_edited_bytes {
            let what = format!("the bytes of {}", shown(name));
            let (limit, most) = ("max_edited_bytes", limits.max_edited_bytes);
            return Err(XlsxError::limit(what, size, limit, most));
        }
        let mut bytes = Vec::new();
        let mut stream = self.stream(name)?;
        stream.read_to_end(&mut bytes).map_err(|why| XlsxError::malformed(name, why))?;
        Ok(bytes)
    }

    /// The text of a part that is to be edited; a mark of its byte order is left out.
    pub(super) fn text(&mut self, name: &str, limits: &XlsxSettings) -> Result<String, XlsxError> {
        text_of(self.read(name, limits)?, name)
    }

    /// By the name of a part, how long it is and its checksum.
    pub(super) fn marks(&self) -> BTreeMap<String, (u64, u32)> {
        self.parts.iter().map(|(name, it)| (name.clone(), (it.bytes, it.checksum))).collect()
    }

    /// The workbook with some parts exchanged, in their places; new ones come last. Every other
    /// part is copied as it is packed.
    pub(super) fn write(&mut self, changes: &Changes) -> Result<Vec<u8>, XlsxError> {
        let failed = |why: zip::result::ZipError| XlsxError::Io { why: why.to_string() };
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default());
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for index in 0..self.archive.len() {
            let file = self.archive.by_index_raw(index).map_err(failed)?;
            let name = file.name().map_err(failed)?.into_owned();
            match changes.get(&name) {
                None => writer.raw_copy_file(file).map_err(failed)?,
                Some(None) => {}
                Some(Some(bytes)) => {
                    writer.start_file(name, options).map_err(failed)?;
                    writer.write_all(bytes)?;
                }
            }
        }
        for (name, bytes) in changes {
            if let (Some(bytes), false) = (bytes, self.parts.contains_key(name)) {
                writer.start_file(name.as_str(), options).map_err(failed)?;
                writer.write_all(bytes)?;
            }
        }
        Ok(writer.finish().map_err(failed)?.into_inner())
    }
}

/// The text of a part; a mark of its byte order is left out.
pub(super) fn text_of(bytes: Vec<u8>, part: &str) -> Result<String, XlsxError> {
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| XlsxError::malformed(part, "it is not in UTF-8"))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// How many parts the end of a ZIP file declares; none if it has no end.
fn entries(bytes: &mut dyn Bytes, size: u64) -> Result<u64, XlsxError> {
    const RECORD: usize = 22;
    const LOCATOR: usize = 20;
    let from = size.saturating_sub((RECORD + LOCATOR + usize::from(u16::MAX)) as u64);
    bytes.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    bytes.take(size - from).read_to_end(&mut tail)?;
    let Some(at) = tail.windows(4).rposition(|it| it == b"PK\x05\x06") else { return Ok(0) };
    let declared = tail.get(at + 10..at + 12).map_or(0, number);
    if declared != u64::from(u16::MAX) {
        return Ok(declared);
    }
    // A larger number stands in a record of its own, which another one before this leads to.
    let locator = at.checked_sub(LOCATOR).and_then(|it| tail.get(it..at));
    let Some(locator) = locator.filter(|it| it.starts_with(b"PK\x06\x07")) else {
        return Ok(declared);
    };
    bytes.seek(SeekFrom::Start(number(&locator[8..16])))?;
    let mut record = Vec::new();
    bytes.take(56).read_to_end(&mut record)?;
    Ok(record.get(32..40).map_or(declared, number))
}

/// The number that bytes stand for, the last first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, it| sum << 8 | u64::from(*it))
}

/// Whether a part may be looked at.
fn admit(name: &str, bytes: u64, packed: u64, limits: &XlsxSettings) -> Result<(), XlsxError> {
    let leads_out = name.split('/').any(|it| it == "..") || name.starts_with('/');
    if leads_out || name.contains('\\') || name.contains('\0') {
        return Err(XlsxError::malformed(name, "its name leads out of the workbook"));
    }
    if bytes > limits.max_part_bytes {
        let what = format!("the bytes of {}", shown(name));
        return Err(XlsxError::limit(what, bytes, "max_part_bytes", limits.max_part_bytes));
    }
    let ratio = bytes / packed.max(1);
    if bytes > SMALL && ratio > limits.max_ratio {
        let what = format!("unpacked to packed bytes of {}", shown(name));
        return Err(XlsxError::limit(what, ratio, "max_ratio", limits.max_ratio));
    }
    Ok(())
}

/// A stream that is an error where it goes on after its end.
struct Exact<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(std::io::Error::other("it is longer than it says")),
        }
        Ok(read)
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Whether a stream holds some bytes.
fn holds(bytes: &mut dyn Bytes, wanted: &[u8]) -> Result<bool, XlsxError> {
    let mut window = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let read = bytes.read(&mut chunk)?;
        if read == 0 {
            return Ok(false);
        }
        window.extend_from_slice(&chunk[..read]);
        if window.windows(wanted.len()).any(|it| it == wanted) {
            return Ok(true);
        }
        let kept = window.len().saturating_sub(wanted.len());
        window.drain(..kept);
    }
}
