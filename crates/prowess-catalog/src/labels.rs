//! What a source is called, from its path.

use std::path::Path;

/// The label of a source at a path, as `DeepAgents` derives it: the folder above `skills`, without
/// leading dots, in title case; else the folder itself.
///
/// ```
/// use prowess_catalog::label_of;
///
/// assert_eq!(label_of("/home/me/.claude/skills".as_ref()), "Claude");
/// assert_eq!(label_of("/opt/my_team-tools/skills/".as_ref()), "My Team Tools");
/// assert_eq!(label_of("/opt/built_in_skills".as_ref()), "Built-in");
/// assert_eq!(label_of("/srv/kitchen".as_ref()), "Kitchen");
/// assert_eq!(label_of("/skills".as_ref()), "Skills");
/// assert_eq!(label_of("/".as_ref()), "Unnamed");
/// ```
pub fn label_of(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let mut names = text.split('/').filter(|name| !name.is_empty() && *name != ".").rev();
    let Some(leaf) = names.next() else { return "Unnamed".to_owned() };
    if leaf.eq_ignore_ascii_case("built_in_skills") {
        return "Built-in".to_owned();
    }
    let above = names.next().unwrap_or_default().trim_start_matches('.');
    match leaf.eq_ignore_ascii_case("skills") && !above.is_empty() {
        true => title_case(&above.replace(['_', '-'], " ")),
        false => capitalize(leaf),
    }
}

/// Every letter behind something that is no letter is large, all others are small.
fn title_case(text: &str) -> String {
    let mut after_letter = false;
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match after_letter {
            true => out.extend(character.to_lowercase()),
            false => out.extend(character.to_uppercase()),
        }
        after_letter = character.is_alphabetic();
    }
    out
}

/// First letter large, the rest small.
fn capitalize(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters.flat_map(char::to_lowercase)).collect()
}
