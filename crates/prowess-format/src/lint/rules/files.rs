//! Files that the frontmatter names are there.

use crate::configs::read_file_entries;
use crate::lint::{Checker, Code, Document};

pub(crate) fn check(document: &Document<'_>, checker: &mut Checker<'_>) {
    let Some(file_exists) = document.file_exists else { return };
    for list in ["resources", "scripts"] {
        let Some(node) = document.mapping.get(list) else { continue };
        // What is wrong with an entry is said elsewhere.
        for entry in read_file_entries(node, list, &mut |_, _, _| {}) {
            let path = entry.file.unwrap_or_else(|| format!("{list}/{}", entry.name));
            let path = path.strip_prefix("./").unwrap_or(&path);
            if file_exists(path) {
                continue;
            }
            let (name, path) = (entry.name.escape_debug(), path.escape_debug());
            checker.report_with_help(
                Code::MissingFile,
                node.range,
                format!("'{name}' in {list} is the file '{path}', which the skill does not have"),
                "add the file, or leave out the entry",
            );
        }
    }
}
