//! XML read as a stream, within limits and without entities of its own.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::error::XlsxError;
use super::settings::XlsxSettings;

/// XML as a stream.
pub(super) struct Xml<R> {
    reader: Reader<Guarded<BufReader<R>>>,
    buffer: Vec<u8>,
    depth: u64,
    part: String,
    max_depth: u64,
}

impl<R: Read> Xml<R> {
    pub(super) fn new(stream: R, part: &str, limits: &XlsxSettings) -> Self {
        let guarded = Guarded {
            inner: BufReader::with_capacity(64 << 10, stream),
            used: 0,
            most: limits.max_token_bytes,
        };
        Self {
            reader: Reader::from_reader(guarded),
            buffer: Vec::new(),
            depth: 0,
            part: part.to_owned(),
            max_depth: limits.max_xml_depth,
        }
    }

    /// What comes next. There is no document type, no element too deep, and no end too early.
    pub(super) fn next(&mut self) -> Result<Event<'_>, XlsxError> {
        self.buffer.clear();
        self.reader.get_mut().used = 0;
        let event = self.reader.read_event_into(&mut self.buffer);
        let event = event.map_err(|why| too_long(&self.part, &why))?;
        check(&event, &mut self.depth, self.max_depth, &self.part)?;
        Ok(event)
    }
}

/// Whether an event may come at this depth.
pub(super) fn check(
    event: &Event<'_>,
    depth: &mut u64,
    max_depth: u64,
    part: &str,
) -> Result<(), XlsxError> {
    match event {
        Event::Start(_) => {
            *depth += 1;
            if *depth > max_depth {
                let what = format!("elements one inside the other in {part}");
                return Err(XlsxError::limit(what, *depth, "max_xml_depth", max_depth));
            }
        }
        Event::End(_) => *depth = depth.saturating_sub(1),
        Event::DocType(_) => {
            return Err(XlsxError::malformed(part, "it declares a document type"));
        }
        Event::Eof if *depth > 0 => {
            return Err(XlsxError::malformed(part, "it ends too early"));
        }
        _ => {}
    }
    Ok(())
}

/// The limit of a token speaks through an error of reading.
fn too_long(part: &str, why: &quick_xml::Error) -> XlsxError {
    if let quick_xml::Error::Io(cause) = why
        && let Some(TooLong { used, most }) = cause.get_ref().and_then(|it| it.downcast_ref())
    {
        let what = format!("the bytes of a tag or text in {part}");
        return XlsxError::limit(what, *used, "max_token_bytes", *most);
    }
    XlsxError::malformed(part, why)
}

/// Adds what an event has of text. All of it together is no longer than one token may be.
pub(super) fn push_text(
    text: &mut String,
    event: &Event<'_>,
    part: &str,
    limits: &XlsxSettings,
) -> Result<(), XlsxError> {
    match event {
        Event::Text(it) => text.push_str(&it.xml10_content()),
        Event::CData(it) => text.push_str(&it.xml10_content()),
        Event::GeneralRef(it) => {
            let damaged = |why: quick_xml::Error| XlsxError::malformed(part, why);
            let c = match it.resolve_char_ref().map_err(damaged)? {
                Some(c) => c,
                None => match it.xml10_content().as_ref() {
                    "lt" => '<',
                    "gt" => '>',
                    "amp" => '&',
                    "quot" => '"',
                    "apos" => '\'',
                    _ => return Err(XlsxError::malformed(part, "it has an unknown entity")),
                },
            };
            text.push(c);
        }
        _ => {}
    }
    match text.len() as u64 > limits.max_token_bytes {
        true => {
            let what = format!("the bytes of a text in {part}");
            let (limit, most) = ("max_token_bytes", limits.max_token_bytes);
            Err(XlsxError::limit(what, text.len() as u64, limit, most))
        }
        false => Ok(()),
    }
}

/// An attribute, by its name with its prefix.
pub(super) fn attribute<'a>(element: &'a BytesStart<'_>, name: &str) -> Option<Cow<'a, str>> {
    let mut attributes = element.attributes();
    let found = attributes.with_checks(false).flatten().find(|it| it.key.0 == name)?;
    match found.value.contains(['&', '\n', '\t', '\r']) {
        false => Some(found.value),
        true => found.normalized_value(XmlVersion::Implicit1_0).ok(),
    }
}

/// An attribute, by its name without its prefix.
pub(super) fn local_attribute<'a>(element: &'a BytesStart<'_>, name: &str) -> Option<Cow<'a, str>> {
    let mut attributes = element.attributes();
    let found = attributes
        .with_checks(false)
        .flatten()
        .find(|it| it.key.0.rsplit(':').next() == Some(name))?;
    found.normalized_value(XmlVersion::Implicit1_0).ok()
}

/// Whether an attribute says yes.
pub(super) fn is_on(element: &BytesStart<'_>, name: &str) -> bool {
    attribute(element, name).is_some_and(|it| matches!(it.as_ref(), "1" | "true" | "on"))
}

/// Text as an element or an attribute holds it. What XML cannot hold is left out.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            c if (c as u32) < 0x20 || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// A reader of which so much is read for one token.
struct Guarded<R> {
    inner: R,
    used: u64,
    most: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("{used} bytes exceed {most}")]
struct TooLong {
    used: u64,
    most: u64,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl<R: BufRead> BufRead for Guarded<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        match self.used > self.most {
            true => Err(std::io::Error::other(TooLong { used: self.used, most: self.most })),
            false => self.inner.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        self.used += amount as u64;
        self.inner.consume(amount);
    }
}
