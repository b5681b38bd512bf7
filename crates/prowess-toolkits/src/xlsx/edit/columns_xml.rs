//! The columns of a sheet exchanged in its XML.

use quick_xml::events::{BytesStart, Event};

use super::super::error::XlsxError;
use super::super::splice::{Pieces, tag};
use super::super::xml::attribute;

/// A `<col>` with its first and last column.
pub(super) type ColumnTag = (u32, u32, BytesStart<'static>);

/// The columns that a sheet describes.
pub(super) fn columns(
    pieces: &mut Pieces<'_>,
    is_empty: bool,
) -> Result<Vec<ColumnTag>, XlsxError> {
    let mut columns = Vec::new();
    if is_empty {
        return Ok(columns);
    }
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Start(it) | Event::Empty(it) if it.local_name().as_ref() == "col" => {
                let number = |name| attribute(it, name).and_then(|it| it.parse().ok());
                if let (Some(min), Some(max)) = (number("min"), number("max")) {
                    columns.push((min, max, it.clone().into_owned()));
                }
            }
            Event::End(it) if it.local_name().as_ref() == "cols" => break,
            _ => {}
        }
    }
    Ok(columns)
}

/// The columns with other widths.
pub(super) fn widened(mut columns: Vec<ColumnTag>, widths: &[(u32, u32, f64)]) -> String {
    for &(first, last, width) in widths {
        let width = width.to_string();
        let changes = [("width", Some(width.as_str())), ("customWidth", Some("1"))];
        let mut next = Vec::new();
        let mut open = first;
        columns.sort_by_key(|(min, ..)| *min);
        for (min, max, element) in columns {
            if max < first || min > last {
                next.push((min, max, element));
                continue;
            }
            let (from, to) = (min.max(first), max.min(last));
            if min < first {
                next.push((min, first - 1, element.clone()));
            }
            if open < from {
                next.push((open, from - 1, new_column(&changes)));
            }
            let mut inside = BytesStart::new("col");
            let text = tag(&element, &changes, true);
            // The tag was just written: it is read again as one.
            if let Some(content) = text.strip_prefix('<').and_then(|it| it.strip_suffix("/>")) {
                inside = BytesStart::from_content(content.to_owned(), 3);
            }
            next.push((from, to, inside));
            if max > last {
                next.push((last.saturating_add(1), max, element));
            }
            open = to.saturating_add(1);
        }
        if open <= last {
            next.push((open, last, new_column(&changes)));
        }
        columns = next;
    }
    columns.sort_by_key(|(min, ..)| *min);
    let mut out = String::from("<cols>");
    for (min, max, element) in columns {
        let (min, max) = (min.to_string(), max.to_string());
        out.push_str(&tag(&element, &[("min", Some(&min)), ("max", Some(&max))], true));
    }
    out.push_str("</cols>");
    out
}

fn new_column(changes: &[(&str, Option<&str>)]) -> BytesStart<'static> {
    let mut element = BytesStart::new("col");
    for (name, value) in changes {
        element.push_attribute((*name, value.unwrap_or_default()));
    }
    element.into_owned()
}
