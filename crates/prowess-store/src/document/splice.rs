//! Changes frontmatter where it changes, and leaves the rest of its text alone.

use std::ops::Range;

use prowess_format::yaml::{self, Limits, Mapping};

/// The text of frontmatter that reads as `new`, where the text in `range` reads as `old`: entries
/// that are the same keep their text, comments and blank lines between entries stay. `None` if it
/// is not written one entry a line, so that this cannot be done.
pub(super) fn splice(
    text: &str,
    range: Range<usize>,
    old: &Mapping,
    new: &Mapping,
) -> Option<String> {
    let mut starts = Vec::with_capacity(old.len() + 1);
    for entry in old {
        let start = entry.key_range.as_usize().start;
        let begins_line = start == range.start || text[..start].ends_with('\n');
        if !begins_line || !range.contains(&start) || starts.last() >= Some(&start) {
            return None;
        }
        starts.push(start);
    }
    starts.push(range.end);
    let mut out = text[range.start..starts[0]].to_owned();
    for (entry, ends) in old.iter().zip(starts.windows(2)) {
        let part = &text[ends[0]..ends[1]];
        match new.get(&entry.key) {
            Some(value) if *value == entry.value => out.push_str(part),
            Some(value) => {
                out.push_str(&written(&entry.key, value.value.clone()));
                out.push_str(remarks_behind(part));
            }
            None => out.push_str(remarks_behind(part)),
        }
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    for entry in new.iter().filter(|entry| old.get(&entry.key).is_none()) {
        out.push_str(&written(&entry.key, entry.value.value.clone()));
    }
    let reading = yaml::read(&out, 0, &Limits::default()).ok()?;
    (reading.mapping == *new).then_some(out)
}

fn written(key: &str, value: yaml::Value) -> String {
    let mut mapping = Mapping::new();
    mapping.set(key, value);
    yaml::write(&mapping)
}

/// The blank lines and comments at the end of an entry, which belong to what follows it.
fn remarks_behind(part: &str) -> &str {
    let mut at = part.len();
    for line in part.split_inclusive('\n').rev() {
        if !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
        at -= line.len();
    }
    &part[at..]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn spliced(text: &str, change: impl Fn(&mut Mapping)) -> Option<String> {
        let old = yaml::read(text, 0, &Limits::default()).unwrap().mapping;
        let mut new = old.clone();
        change(&mut new);
        splice(text, 0..text.len(), &old, &new)
    }

    #[test]
    fn only_what_changes_is_written_anew() {
        let text = "# top\nname:   x # why\nversion: 1.10\n\n# about us\nauthor: 'us'\n";
        let changed = spliced(text, |new| {
            new.set("version", "2.0");
            new.set("category", "a");
        });
        let expected =
            "# top\nname:   x # why\nversion: \"2.0\"\n\n# about us\nauthor: 'us'\ncategory: a\n";
        assert_eq!(changed.as_deref(), Some(expected));
        let removed = spliced(text, |new| drop(new.remove("version")));
        let expected = "# top\nname:   x # why\n\n# about us\nauthor: 'us'\n";
        assert_eq!(removed.as_deref(), Some(expected));
    }

    #[test]
    fn other_forms_are_left_to_the_writer() {
        for text in ["{name: x, version: 1}", "name: &a x\nversion: *a\n"] {
            let changed = spliced(text, |new| new.set("name", "y"));
            assert_eq!(changed, None, "{text}");
        }
    }
}
