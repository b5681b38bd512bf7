//! What a source is called, from its path.

use std::path::Path;

/// The label of a source at a path, as `DeepAgents` derives it: the folder above `skills`, without
/// dots, in title case.
///
/// ```
/// use prowess_catalog::label_of;
///
/// assert_eq!(label_of("/home/me/.claude/skills".as_ref()), "Claude");
/// assert_eq!(label_of("/opt/my_team-tools/skills/".as_ref()), "My Team Tools");
/// assert_eq!(label_of("/opt/built_in_skills".as_ref()), "Built-in");
/// assert_eq!(label_of("/srv/kitchen".as_ref()), "Kitchen");
/// assert_eq!(label_of("/".as_ref()), "Unnamed");
/// ```
pub fn label_of(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let mut names = text.split('/').filter(|name| !name.is_empty() && *name != ".").rev();
    let label = match names.next() {
        None => return "Unnamed".to_owned(),
        Some("built_in_skills") => return "Built-in".to_owned(),
        Some("skills") => title_case(names.next().unwrap_or_default()),
        Some(leaf) => capitalize(leaf),
    };
    if label.is_empty() { "Unnamed".to_owned() } else { label }
}

fn title_case(name: &str) -> String {
    let words = name.replace('.', "").replace(['_', '-'], " ");
    words.split_whitespace().map(capitalize).collect::<Vec<_>>().join(" ")
}

/// First letter large, the rest small.
fn capitalize(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters.flat_map(char::to_lowercase)).collect()
}
