//! Pieces of XML exchanged in their text: all other bytes stay.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::error::XlsxError;
use super::settings::XlsxSettings;
use super::xml::{check, escaped};

/// A piece of XML and where it is in the text.
pub(super) struct Piece<'a> {
    pub(super) event: Event<'a>,
    pub(super) from: usize,
    pub(super) to: usize,
    /// How many elements are around it.
    pub(super) depth: u64,
}

/// The pieces of a text, one after the other.
pub(super) struct Pieces<'a> {
    reader: Reader<&'a [u8]>,
    depth: u64,
    part: &'a str,
    max_depth: u64,
    done: bool,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(xml: &'a str, part: &'a str, limits: &XlsxSettings) -> Self {
        let reader = Reader::from_str(xml);
        Self { reader, depth: 0, part, max_depth: limits.max_xml_depth, done: false }
    }

    pub(super) fn next(&mut self) -> Result<Option<Piece<'a>>, XlsxError> {
        if self.done {
            return Ok(None);
        }
        let from = position(&self.reader);
        let event = self.reader.read_event().map_err(|why| XlsxError::malformed(self.part, why))?;
        let outside = self.depth;
        check(&event, &mut self.depth, self.max_depth, self.part)?;
        if matches!(event, Event::Eof) {
            self.done = true;
            return Ok(None);
        }
        let depth = outside.min(self.depth);
        Ok(Some(Piece { event, from, to: position(&self.reader), depth }))
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// A tag with some attributes changed, added, or taken away where the value is none.
pub(super) fn tag(
    element: &BytesStart<'_>,
    changes: &[(&str, Option<&str>)],
    is_empty: bool,
) -> String {
    let mut out = format!("<{}", element.name().0);
    let mut seen = Vec::new();
    let mut attributes = element.attributes();
    for attribute in attributes.with_checks(false).flatten() {
        let key = attribute.key.0;
        match changes.iter().find(|(name, _)| *name == key) {
            None => {
                let value = attribute.value.replace('"', "&quot;");
                out.push_str(&format!(" {key}=\"{value}\""));
            }
            Some((_, Some(value))) => {
                out.push_str(&format!(" {key}=\"{}\"", escaped(value)));
                seen.push(key.to_owned());
            }
            Some((_, None)) => seen.push(key.to_owned()),
        }
    }
    for (name, value) in changes {
        if let (Some(value), false) = (value, seen.iter().any(|it| it == name)) {
            out.push_str(&format!(" {name}=\"{}\"", escaped(value)));
        }
    }
    out.push_str(if is_empty { "/>" } else { ">" });
    out
}

/// The text with some of its pieces exchanged: from, to, and what comes there; in order.
pub(super) fn spliced(text: &str, mut pieces: Vec<(usize, usize, String)>) -> String {
    pieces.sort_by_key(|(from, to, _)| (*from, *to));
    let mut out = String::with_capacity(text.len() + pieces.len() * 32);
    let mut at = 0;
    for (from, to, new) in pieces {
        if from < at {
            continue;
        }
        out.push_str(&text[at..from]);
        out.push_str(&new);
        at = to;
    }
    out.push_str(&text[at..]);
    out
}

/// Whether the elements of a part have a prefix, as in `<x:row>`: these are not edited.
pub(super) fn refuse_prefix(element: &BytesStart<'_>, part: &str) -> Result<(), XlsxError> {
    match element.name().0.contains(':') {
        true => Err(XlsxError::Refused {
            at: part.to_owned(),
            reason: "prefixed_xml",
            why: "its elements have a prefix; open and save the file with Excel first".to_owned(),
        }),
        false => Ok(()),
    }
}
