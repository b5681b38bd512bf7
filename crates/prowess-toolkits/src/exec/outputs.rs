//! What is brought out of the workspace after a run, and what becomes of it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use prowess_runtime::{ArtifactRef, SessionKey};
use prowess_workspace::{
    ArtifactStore, CollectLimits, Collected, CollectedFile, Workspace, WorkspaceError,
};

use super::arguments::RunArguments;
use super::run_folder::RunFolder;
use super::settings::ExecSettings;
use crate::session::scope_of;

/// So many files of `out/` are looked at when nobody asked for any.
const LOOKED_AT: u64 = 20;

/// What is collected when nobody says what.
const EVERYTHING: &str = "$OUTPUT_DIR/**";

/// What a call wants of the files that its command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) globs: Vec<String>,
    pub(crate) limits: CollectLimits,
    /// Whether the result names the files; else they only are looked at for a primary output.
    pub(crate) listed: bool,
    /// Whether the result shows what text files hold.
    pub(crate) inline: bool,
    /// Whether they are kept as artifacts, and how.
    pub(crate) save: Option<Save>,
    /// What was asked for and is not done.
    pub(crate) warnings: Vec<String>,
}

/// How files are kept as artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Save {
    /// What stands before their names.
    pub(crate) prefix: String,
    /// The parameter that asked for it.
    pub(crate) asked_by: &'static str,
}

impl Wanted {
    /// What a call wants.
    pub(crate) fn of(arguments: &RunArguments, settings: &ExecSettings) -> Self {
        let mut warnings = Vec::new();
        let mut limits = settings.collect_limits();
        let asked = arguments.outputs.as_ref();
        let mut cap = |name: &str, limit: &mut u64, asked: Option<u64>| match asked {
            Some(asked) if asked > *limit => {
                warnings.push(format!("outputs.{name} is limited to {limit} by the host"));
            }
            Some(asked) => *limit = asked,
            None => {}
        };
        cap("max_files", &mut limits.max_files, asked.and_then(|it| it.max_files));
        cap("max_file_bytes", &mut limits.max_file_bytes, asked.and_then(|it| it.max_file_bytes));
        cap(
            "max_total_bytes",
            &mut limits.max_total_bytes,
            asked.and_then(|it| it.max_total_bytes),
        );
        let mut globs = asked.map(|it| it.globs.clone()).unwrap_or_default();
        globs.extend(arguments.output_files.iter().cloned());
        let listed = asked.is_some() || !globs.is_empty();
        let save = match asked {
            Some(outputs) if outputs.save => {
                Some(Save { prefix: outputs.name_template.clone(), asked_by: "outputs.save" })
            }
            _ if arguments.save_as_artifacts && listed => Some(Save {
                prefix: arguments.artifact_prefix.clone(),
                asked_by: "save_as_artifacts",
            }),
            _ => None,
        };
        if arguments.save_as_artifacts && !listed {
            let why = "no output_files are named";
            warnings.push(not_persisted("save_as_artifacts", why));
        }
        if !listed {
            limits.max_files = LOOKED_AT;
            limits.max_file_bytes = settings.primary_output_bytes as u64;
        }
        if globs.is_empty() {
            globs.push(EVERYTHING.to_owned());
        }
        let inline = asked.is_some_and(|it| it.inline) || !arguments.output_files.is_empty();
        let inline = inline && !arguments.omit_inline_content;
        Self { globs, limits, listed, inline, save, warnings }
    }

    /// Collects what is wanted. Files that nobody asked for count if they were written in this run.
    /// Blocks.
    pub(crate) fn collect(
        &self,
        workspace: &Workspace,
        run: &RunFolder,
    ) -> Result<Collected, WorkspaceError> {
        let mut collected = workspace.collect(&self.globs, Some(run.path()), &self.limits)?;
        if !self.listed {
            let root = workspace.path();
            collected.files.retain(|file| changed(&root.join(&file.name)) >= run.began());
            // Nobody asked: nothing is missed.
            collected.refused.clear();
            collected.limits_hit.clear();
        }
        Ok(collected)
    }
}

/// When a file was written or renamed last, as the disk tells it.
pub(crate) fn changed(path: &Path) -> Option<(i64, i64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.ctime(), metadata.ctime_nsec()))
}

/// Something was to be kept and is not.
fn not_persisted(asked_by: &str, why: &str) -> String {
    format!("{asked_by} requested but {why}; outputs are not persisted")
}

/// Keeps files as artifacts; what cannot be kept is said.
pub(crate) async fn save(
    store: Option<&dyn ArtifactStore>,
    session: &SessionKey,
    save: &Save,
    files: &[CollectedFile],
    warnings: &mut Vec<String>,
) -> Vec<ArtifactRef> {
    let Some(store) = store else {
        warnings.push(not_persisted(save.asked_by, "no artifact store is configured"));
        return Vec::new();
    };
    let scope = scope_of(session);
    let mut kept = Vec::new();
    for file in files {
        if file.truncated {
            warnings.push(format!("'{}' is too large and was not saved", file.name));
            continue;
        }
        let name = format!("{}{}", save.prefix, file.name);
        let bytes = file.bytes.as_slice().into();
        match store.save(&scope, &name, &file.mime_type, bytes).await {
            Ok(version) => kept.push(ArtifactRef { name, version }),
            Err(error) => warnings.push(format!("'{}' was not saved: {error}", file.name)),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(more: &serde_json::Value) -> Wanted {
        let mut arguments = json!({"skill": "demo", "command": "ls"});
        if let (Some(all), Some(more)) = (arguments.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        let settings = ExecSettings::default().with_max_output_files(10);
        Wanted::of(&RunArguments::parse(&arguments).unwrap(), &settings)
    }

    #[test]
    fn what_is_listed_shown_and_kept() {
        let none = json!({});
        let files = json!({"output_files": ["out/*"]});
        let quiet = json!({"output_files": ["out/*"], "omit_inline_content": true});
        let inline = json!({"outputs": {"globs": ["out/*"], "inline": true}});
        let named = json!({"outputs": {"globs": ["out/*"]}});
        let omitted =
            json!({"outputs": {"globs": ["out/*"], "inline": true}, "omit_inline_content": true});
        // Call, listed, inline.
        let table = [
            (none, false, false),
            (files, true, true),
            (quiet, true, false),
            (inline, true, true),
            (named, true, false),
            (omitted, true, false),
        ];
        for (call, listed, inline) in table {
            let wanted = wanted(&call);
            assert_eq!((wanted.listed, wanted.inline), (listed, inline), "{call}");
        }
    }

    #[test]
    fn both_ways_to_keep_files_have_their_own_prefix() {
        let call = json!({"outputs": {"globs": ["a"], "save": true, "name_template": "n/"}});
        let expected = Save { prefix: "n/".into(), asked_by: "outputs.save" };
        assert_eq!(wanted(&call).save, Some(expected));
        let call = json!({
            "output_files": ["a"], "save_as_artifacts": true, "artifact_prefix": "pref/",
        });
        let expected = Save { prefix: "pref/".into(), asked_by: "save_as_artifacts" };
        assert_eq!(wanted(&call).save, Some(expected));
        assert_eq!(wanted(&json!({"output_files": ["a"], "artifact_prefix": "p/"})).save, None);
        let nothing = wanted(&json!({"save_as_artifacts": true}));
        assert_eq!(nothing.save, None);
        assert_eq!(nothing.warnings.len(), 1);
    }

    #[test]
    fn globs_of_both_styles_are_collected_together() {
        let both = wanted(&json!({"outputs": {"globs": ["a"]}, "output_files": ["b"]}));
        assert_eq!(both.globs, ["a", "b"]);
        let none = wanted(&json!({"outputs": {"inline": true}}));
        assert_eq!((none.globs, none.listed), (vec![EVERYTHING.to_owned()], true));
    }

    #[test]
    fn a_call_may_ask_for_less_but_not_for_more_than_the_host_allows() {
        let less = wanted(&json!({"outputs": {"globs": ["a"], "max_files": 10}}));
        assert_eq!((less.limits.max_files, less.warnings.len()), (10, 0));
        let less = wanted(&json!({"outputs": {"globs": ["a"], "MaxFiles": 1}}));
        assert_eq!((less.limits.max_files, less.warnings.len()), (1, 0));
        let more = wanted(&json!({"outputs": {"globs": ["a"], "max_files": 11}}));
        assert_eq!(more.limits.max_files, 10);
        assert_eq!(more.warnings, ["outputs.max_files is limited to 10 by the host"]);
        let bytes = wanted(&json!({"outputs": {"max_file_bytes": 7, "MaxTotalBytes": 9}}));
        assert_eq!((bytes.limits.max_file_bytes, bytes.limits.max_total_bytes), (7, 9));
    }
}
