//! What a call of `skill_run` answers.

use prowess_runtime::ArtifactRef;
use prowess_workspace::{Capability, Captured, CollectedFile, Enforcement, Isolation, RefusedFile};
use serde_json::{Map, Value, json};

use super::settings::ExecSettings;

/// All that there is to say of a run.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) exit_code: i32,
    pub(crate) timed_out: bool,
    pub(crate) duration_ms: u64,
    pub(crate) stdout: &'a Captured,
    pub(crate) stderr: &'a Captured,
    pub(crate) isolation: &'a Isolation,
    /// The names of limits at which something was stopped or left out.
    pub(crate) limits_hit: Vec<Value>,
    /// What was collected, in the order of names.
    pub(crate) files: &'a [CollectedFile],
    pub(crate) listed: bool,
    pub(crate) inline: bool,
    /// Whether the primary output is only named.
    pub(crate) omit_content: bool,
    pub(crate) refused: &'a [RefusedFile],
    pub(crate) artifacts: &'a [ArtifactRef],
    pub(crate) warnings: Vec<String>,
}

/// What a program gets, and what a model reads.
#[derive(Debug, PartialEq)]
pub(crate) struct Written {
    /// Everything.
    pub(crate) data: Value,
    /// Nothing twice, and nothing that goes without saying.
    pub(crate) shown: Value,
}

impl Answer<'_> {
    /// Writes it down.
    pub(crate) fn write(mut self, settings: &ExecSettings) -> Written {
        let _span = tracing::info_span!("workspace.inline", files = self.files.len()).entered();
        let limit = settings.shown_output_bytes;
        let mut fields = Map::new();
        for (name, captured) in [("stdout", self.stdout), ("stderr", self.stderr)] {
            let text = captured.text(limit);
            if captured.total_bytes > limit as u64 || captured.is_cut() {
                let total = captured.total_bytes;
                self.warnings.push(format!("{name} truncated ({total} bytes)"));
            }
            fields.insert(name.to_owned(), json!(text));
        }
        fields.insert("exit_code".to_owned(), json!(self.exit_code));
        fields.insert("timed_out".to_owned(), json!(self.timed_out));
        fields.insert("duration_ms".to_owned(), json!(self.duration_ms));
        let listed = self.listed_files(settings.max_inline_bytes);
        fields.insert("output_files".to_owned(), json!(listed));
        let primary = self.primary(settings.primary_output_bytes);
        let artifacts: Vec<Value> = (self.artifacts.iter())
            .map(|it| json!({"name": it.name, "version": it.version}))
            .collect();
        let refused: Vec<Value> = (self.refused.iter())
            .map(|it| json!({"name": it.name, "reason": it.reason.as_str()}))
            .collect();
        let mut data = fields.clone();
        let mut shown = fields;
        if let Some(primary) = primary {
            // What stands in the list need not stand here again.
            let is_shown = |file: &&Value| file["name"] == primary["name"];
            let twice = listed.iter().find(is_shown).is_some_and(|it| it.get("content").is_some());
            let mut brief = primary.clone();
            if let (true, Some(fields)) = (twice, brief.as_object_mut()) {
                fields.retain(|name, _| matches!(name.as_str(), "name" | "ref"));
            }
            data.insert("primary_output".to_owned(), primary);
            shown.insert("primary_output".to_owned(), brief);
        }
        let lists = [
            ("artifact_files", json!(artifacts)),
            ("refused_files", json!(refused)),
            ("limits_hit", json!(self.limits_hit)),
            ("warnings", json!(self.warnings)),
        ];
        for (name, list) in lists {
            if list.as_array().is_some_and(|list| !list.is_empty()) {
                data.insert(name.to_owned(), list.clone());
                shown.insert(name.to_owned(), list);
            }
        }
        data.insert("isolation".to_owned(), json!(self.isolation));
        shown.insert("isolation".to_owned(), brief_isolation(self.isolation));
        Written { data: Value::Object(data), shown: Value::Object(shown) }
    }

    /// The files that were asked for, with what they hold as long as there is room.
    fn listed_files(&mut self, mut room: usize) -> Vec<Value> {
        if !self.listed {
            return Vec::new();
        }
        let mut no_room = 0;
        let mut listed = Vec::with_capacity(self.files.len());
        for file in self.files {
            let text = file.text().filter(|_| self.inline);
            let shown = text.filter(|text| text.len() <= room);
            room -= shown.map_or(0, str::len);
            no_room += usize::from(text.is_some() && shown.is_none());
            listed.push(described(file, shown));
        }
        if no_room > 0 {
            self.warnings.push(format!(
                "content of {no_room} output_files omitted (max_inline_bytes); use their ref with \
                 read_file"
            ));
        }
        listed
    }

    /// The first text file that is not blank and not too long.
    fn primary(&self, limit: usize) -> Option<Value> {
        let is_good = |text: &&str| text.len() <= limit && !text.trim().is_empty();
        let mut texts = self.files.iter().filter(|file| !file.truncated).filter_map(|file| {
            let text = file.text().filter(is_good)?;
            Some((file, text))
        });
        let (file, text) = texts.next()?;
        Some(described(file, Some(text).filter(|_| !self.omit_content)))
    }
}

/// A file as results show it.
fn described(file: &CollectedFile, content: Option<&str>) -> Value {
    let mut fields = json!({
        "name": file.name,
        "ref": format!("workspace://{}", file.name),
        "mime_type": file.mime_type,
        "size_bytes": file.size_bytes,
        "truncated": file.truncated,
    });
    if let Some(content) = content {
        fields["content"] = json!(content);
    }
    fields
}

/// What a model should know of the sandbox: which one, and what it does not enforce.
pub(crate) fn brief_isolation(isolation: &Isolation) -> Value {
    let having = |state: Enforcement| -> Vec<&str> {
        let all = Capability::ALL.into_iter();
        all.filter(|it| isolation.of(*it) == state).map(Capability::as_str).collect()
    };
    let mut brief = json!({"tier": isolation.tier});
    let lists = [
        ("granted", Enforcement::Granted),
        ("partial", Enforcement::Partial),
        ("not_enforced", Enforcement::None),
    ];
    for (name, state) in lists {
        let list = having(state);
        if !list.is_empty() {
            brief[name] = json!(list);
        }
    }
    brief
}

/// Leaves out empty files of a command that failed: they are what it did not get to write.
pub(crate) fn without_empty(files: &mut Vec<CollectedFile>, warnings: &mut Vec<String>) {
    let before = files.len();
    files.retain(|file| file.size_bytes > 0);
    if files.len() < before {
        let why = "empty output_files omitted because command failed; see stderr and exit_code";
        warnings.push(why.to_owned());
    }
}
