//! JSON as the reference library prints it: two spaces, ASCII only.

use std::io::{self, Write};

use prowess_catalog::{ReadError, TreeDigest};
use prowess_format::Level;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use serde_json::{Value, json};

use super::{Identity, Report};

pub(super) fn print(report: &Report) -> anyhow::Result<()> {
    let diagnostics: Vec<_> = report.diagnostics().collect();
    let skills: Vec<Value> = report.identities.iter().map(identity_json).collect();
    print_json(&json!({
        "diagnostics": diagnostics,
        "skills": skills,
        "summary": {
            "skills": report.skills,
            "errors": report.count(Level::Error),
            "warnings": report.count(Level::Warning),
            "infos": report.count(Level::Info),
        },
    }))
}

fn identity_json(identity: &Identity) -> Value {
    let Identity { path, digest, tree_digest } = identity;
    let mut value = json!({"path": path, "digest": digest, "tree_digest": null});
    if let Some(tree_digest) = tree_digest {
        set_tree_digest(&mut value, tree_digest);
    }
    value
}

/// Sets `tree_digest`; where there is none, it is null and `tree_digest_error` says why.
pub(crate) fn set_tree_digest(value: &mut Value, tree_digest: &Result<TreeDigest, ReadError>) {
    value["tree_digest"] = json!(tree_digest.as_ref().ok());
    if let Err(error) = tree_digest {
        value["tree_digest_error"] = json!({"code": error.code(), "message": error.to_string()});
    }
}

/// Prints a value and a line break.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let out = in_ascii(value, PrettyFormatter::with_indent(b"  "))?;
    io::stdout().write_all(&out)?;
    Ok(())
}

/// A value on one line, with its line break.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    in_ascii(value, CompactFormatter)
}

fn in_ascii(value: &impl Serialize, layout: impl Formatter) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, AsciiFormatter { layout }))?;
    out.push(b'\n');
    Ok(out)
}

/// JSON in which nothing but printable ASCII appears.
struct AsciiFormatter<F> {
    layout: F,
}

macro_rules! delegate {
    ($($method:ident ($($argument:ident: $kind:ty),*);)+) => {
        $(fn $method<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $kind)*)
            -> io::Result<()> { self.layout.$method(writer $(, $argument)*) })+
    };
}

impl<F: Formatter> Formatter for AsciiFormatter<F> {
    delegate! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for character in fragment.chars() {
            if character.is_ascii() && character != '\u{7f}' {
                writer.write_all(&[character as u8])?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}
