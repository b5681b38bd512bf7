//! Archives for tests.

#![allow(dead_code)]

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;

/// A zip archive of files.
pub(crate) fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A tar archive of files, in gzip.
pub(crate) fn tgz_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// A tar archive of files.
pub(crate) fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
    use std::io::Read;
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(&tgz_of(files)[..]).read_to_end(&mut out).unwrap();
    out
}

/// Skills of these names, with a body.
pub(crate) fn skills(names: &[&str], body: &str) -> Vec<(String, String)> {
    let file = |name: &&str| {
        let text = format!("---\nname: {name}\ndescription: A test skill\n---\n{body}\n");
        (format!("{name}/SKILL.md"), text)
    };
    names.iter().map(file).collect()
}

/// A zip archive of skills of these names.
pub(crate) fn zip_of_skills(names: &[&str], body: &str) -> Vec<u8> {
    let files = skills(names, body);
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    zip_of(&files)
}
