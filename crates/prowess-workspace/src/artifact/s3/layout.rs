//! Which object holds what. Pure: keys, and what a list of them means.

use std::collections::BTreeMap;

use crate::artifact::ArtifactScope;
use crate::artifact::name::is_of_user;
use crate::key::key;

/// What the markers of a name are below.
const ENDED: &str = "ended";

/// The folder of what belongs to a user whatever the session.
pub(super) fn user_folder(scope: &ArtifactScope) -> String {
    let (app, user) = (key(&scope.app, &[&scope.app]), key(&scope.user, &[&scope.user]));
    format!("{app}/{user}/user")
}

/// The folder of what belongs to a session.
pub(super) fn session_folder(scope: &ArtifactScope) -> String {
    let (app, user) = (key(&scope.app, &[&scope.app]), key(&scope.user, &[&scope.user]));
    format!("{app}/{user}/session_{}", key(&scope.session, &[&scope.session]))
}

/// The folder of a name.
pub(super) fn name_folder(scope: &ArtifactScope, name: &str) -> String {
    let folder = if is_of_user(name) { user_folder(scope) } else { session_folder(scope) };
    format!("{folder}/{}", key(name, &[name]))
}

/// The folder of the markers of a name.
pub(super) fn ended_folder(name_folder: &str) -> String {
    format!("{name_folder}/{ENDED}")
}

/// The marker that ends a generation.
pub(super) fn ended_key(name_folder: &str, generation: u64) -> String {
    format!("{name_folder}/{ENDED}/{generation}")
}

/// The object that holds a version.
pub(super) fn version_key(name_folder: &str, generation: u64, version: u64) -> String {
    format!("{name_folder}/{generation}/{version}")
}

/// What the objects of a name say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The generation that versions are saved into: the one behind the last that was ended.
    pub(super) generation: u64,
    /// The versions of that generation, in order.
    pub(super) versions: Vec<u64>,
    /// Objects of generations that were ended, and markers that a later one stands for. Nobody
    /// needs them.
    pub(super) dead: Vec<String>,
}

impl Known {
    /// What keys below the folder of a name say; each is what follows that folder.
    pub(super) fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut generation = 0;
        let (mut versions, mut markers) = (Vec::new(), Vec::new());
        for key in keys {
            let Some((first, second)) = key.split_once('/') else { continue };
            match (number(first), number(second)) {
                (Some(first), Some(version)) => versions.push((first, version)),
                (None, Some(ended)) if first == ENDED => {
                    generation = generation.max(ended.saturating_add(1));
                    markers.push(ended);
                }
                // It is not ours.
                _ => {}
            }
        }
        versions.sort_unstable();
        markers.sort_unstable();
        let dead_markers = markers.into_iter().filter(|ended| ended.saturating_add(1) < generation);
        let mut dead: Vec<String> = dead_markers.map(|it| format!("{ENDED}/{it}")).collect();
        let (old, current): (Vec<_>, Vec<_>) =
            versions.into_iter().partition(|(it, _)| *it < generation);
        dead.extend(old.into_iter().map(|(it, version)| format!("{it}/{version}")));
        let current = current.into_iter().filter(|(it, _)| *it == generation);
        Self { generation, versions: current.map(|(_, version)| version).collect(), dead }
    }

    /// The number behind the newest.
    pub(super) fn next(&self) -> u64 {
        self.versions.last().map_or(0, |last| last.saturating_add(1))
    }
}

/// What keys below a folder of names say, by the folder of each name.
pub(super) fn by_name<'a>(keys: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, Known> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in keys {
        if let Some((name, rest)) = key.split_once('/') {
            names.entry(name).or_default().push(rest);
        }
    }
    names.into_iter().map(|(name, keys)| (name, Known::of(keys))).collect()
}

/// A number as we write it.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys; then generation, versions, and what nobody needs.
    type Row<'a> = (&'a [&'a str], u64, &'a [u64], &'a [&'a str]);

    #[test]
    fn what_a_list_of_keys_means() {
        let table: [Row<'_>; 7] = [
            (&[], 0, &[], &[]),
            (&["0/0", "0/1", "0/10", "0/2"], 0, &[0, 1, 2, 10], &[]),
            (&["0/0", "0/1", "ended/0"], 1, &[], &["0/0", "0/1"]),
            (&["0/5", "1/0", "1/1", "ended/0"], 1, &[0, 1], &["0/5"]),
            (&["2/0", "ended/0", "ended/1"], 2, &[0], &["ended/0"]),
            // Nobody saves into a generation before the one in front of it has ended.
            (&["0/0", "7/0"], 0, &[0], &[]),
            (&["0/00", "0/+1", "0/x", "x/0", "ended/x", "ended", "0", "0/1/2"], 0, &[], &[]),
        ];
        for (keys, generation, versions, dead) in table {
            let known = Known::of(keys.iter().copied());
            assert_eq!(known.generation, generation, "{keys:?}");
            assert_eq!(known.versions, versions, "{keys:?}");
            assert_eq!(known.dead, dead, "{keys:?}");
        }
    }

    #[test]
    fn no_two_scopes_and_names_share_a_folder() {
        let scope = ArtifactScope::new;
        let mut folders = std::collections::BTreeSet::new();
        let scopes = [
            scope("a/b", "c", "s"),
            scope("a", "b/c", "s"),
            scope("a", "b", "c/s"),
            scope("a%2Fb", "c", "s"),
            scope("", "a/b/c", "s"),
            scope("..", "..", ".."),
            scope("A", "b/c", "s"),
            scope("a", "user", "s"),
            scope("a", "b/c/user", "user"),
        ];
        for scope in &scopes {
            for name in ["x", "X", "x/y", "x_y", "%2e%2e", "ä", "a\u{308}", "user:x", "ended", "0"]
            {
                let folder = name_folder(scope, name);
                assert_eq!(folder.split('/').count(), 4, "{folder}");
                assert!(folder.split('/').all(|part| !matches!(part, "" | "." | "..")), "{folder}");
                assert!(folder.is_ascii() && folder.len() < 400, "{folder}");
                assert!(folders.insert(folder.clone()), "{folder}");
            }
        }
    }
}
