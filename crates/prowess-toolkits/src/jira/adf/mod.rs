//! Atlassian's document format as Markdown.
//!
//! What it does not know keeps its text and is named. How deep and how long a text becomes is
//! limited, and what is left out is said.

mod inline;
mod table;
#[cfg(test)]
mod tests;

use serde_json::Value;

/// Markers of lists and fences of code are no longer than this, whatever a document says.
const LONGEST_NAME: usize = 60;

/// How much of a document is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdfLimits {
    /// Bytes of its text.
    pub(super) bytes: usize,
    /// How deep it is nested.
    pub(super) depth: usize,
}

/// A document as Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Markdown {
    pub(super) text: String,
    /// Whether there is more text than the limit allows.
    pub(super) is_cut: bool,
    /// Whether something is nested deeper than the limit allows.
    pub(super) is_too_deep: bool,
}

/// The text of a field: a document, or the text that older versions of Jira give.
pub(super) fn to_markdown(document: &Value, limits: AdfLimits) -> Markdown {
    let mut writer =
        Writer { left: limits.bytes, depth: limits.depth, is_cut: false, is_too_deep: false };
    let text = match document {
        Value::Null => String::new(),
        Value::String(text) => writer.take(text).to_owned(),
        Value::Array(nodes) => writer.blocks(nodes, 0),
        Value::Object(_) => writer.blocks(std::slice::from_ref(document), 0),
        other => writer.take(&other.to_string()).to_owned(),
    };
    Markdown { text, is_cut: writer.is_cut, is_too_deep: writer.is_too_deep }
}

/// Writes a document, as long as there is room.
struct Writer {
    /// Bytes of text that may still be written.
    left: usize,
    /// How deep it may be.
    depth: usize,
    is_cut: bool,
    is_too_deep: bool,
}

/// What a node is.
fn kind(node: &Value) -> &str {
    node["type"].as_str().unwrap_or_default()
}

/// What it contains.
fn content(node: &Value) -> &[Value] {
    node["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What it says about itself.
fn attribute<'a>(node: &'a Value, name: &str) -> Option<&'a str> {
    node["attrs"][name].as_str().filter(|text| !text.is_empty())
}

fn is_inline(node: &Value) -> bool {
    matches!(
        kind(node),
        "text"
            | "hardBreak"
            | "mention"
            | "emoji"
            | "inlineCard"
            | "status"
            | "date"
            | "placeholder"
            | "mediaInline"
            | "inlineExtension"
    )
}

/// Every line but the first one behind so many spaces; all behind the marker.
fn item(marker: &str, text: &str) -> String {
    let indent = " ".repeat(marker.len());
    let mut lines = text.split('\n');
    let first = format!("{marker}{}", lines.next().unwrap_or_default());
    let rest =
        lines.map(|line| if line.is_empty() { String::new() } else { format!("{indent}{line}") });
    std::iter::once(first.trim_end().to_owned()).chain(rest).collect::<Vec<_>>().join("\n")
}

fn behind(prefix: &str, text: &str) -> String {
    let lines = text.split('\n').map(|line| format!("{prefix} {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// The longest run of a character.
fn longest_run(text: &str, of: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == of { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

impl Writer {
    /// As much of the text as there is room for.
    fn take<'t>(&mut self, text: &'t str) -> &'t str {
        let kept = &text[..text.floor_char_boundary(self.left)];
        self.left -= kept.len();
        if kept.len() < text.len() {
            self.is_cut = true;
            self.left = 0;
        }
        kept
    }

    /// A short text on one line.
    fn take_line(&mut self, text: &str) -> String {
        self.take(text).replace(['\n', '\r'], " ")
    }

    /// The name of something, as it is said between brackets.
    fn name(&mut self, text: &str) -> String {
        let short = &text[..text.floor_char_boundary(LONGEST_NAME)];
        self.take_line(short).replace(['[', ']', '\''], "_")
    }

    /// Whether there is room for more.
    fn is_full(&mut self, rest: &[Value]) -> bool {
        if self.left == 0 && !rest.is_empty() {
            self.is_cut = true;
        }
        self.left == 0
    }

    /// Blocks with an empty line between them. What stands between them and is none becomes one.
    fn blocks(&mut self, nodes: &[Value], depth: usize) -> String {
        self.joined(nodes, depth, "\n\n")
    }

    fn joined(&mut self, nodes: &[Value], depth: usize, between: &str) -> String {
        if depth > self.depth {
            self.is_too_deep = true;
            return "[nested too deep]".to_owned();
        }
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < nodes.len() && !self.is_full(&nodes[at..]) {
            let run = nodes[at..].iter().take_while(|node| is_inline(node)).count();
            let block = match run {
                0 => self.block(&nodes[at], depth),
                run => self.inline(&nodes[at..at + run], depth),
            };
            at += run.max(1);
            if !block.is_empty() {
                blocks.push(block);
            }
            // Even what has no text takes its place.
            self.left = self.left.saturating_sub(between.len());
        }
        blocks.join(between)
    }

    fn block(&mut self, node: &Value, depth: usize) -> String {
        let inner = depth + 1;
        match kind(node) {
            "doc" | "layoutSection" | "layoutColumn" | "mediaSingle" | "mediaGroup" => {
                self.blocks(content(node), inner)
            }
            "paragraph" => self.inline(content(node), inner),
            "caption" => self.wrapped("*", node, inner),
            "heading" => {
                let level = node["attrs"]["level"].as_u64().unwrap_or(1).clamp(1, 6);
                let hashes = "#".repeat(usize::try_from(level).unwrap_or(1));
                let text = self.inline(content(node), inner).replace('\n', " ");
                format!("{hashes} {text}")
            }
            "bulletList" => self.list(node, inner, |_| "- ".to_owned()),
            "orderedList" => {
                let first = node["attrs"]["order"].as_u64().unwrap_or(1).min(1_000_000);
                self.list(node, inner, |at| format!("{}. ", first + at))
            }
            "taskList" | "decisionList" => self.tasks(node, inner),
            "listItem" => item("- ", &self.joined(content(node), inner, "\n")),
            "codeBlock" => self.code(node),
            "blockquote" => behind(">", &self.blocks(content(node), inner)),
            "panel" => {
                let name = self.name(attribute(node, "panelType").unwrap_or("info"));
                let text = self.blocks(content(node), inner);
                behind(">", &format!("**[{name}]**\n{text}"))
            }
            "expand" | "nestedExpand" => {
                let title = attribute(node, "title").unwrap_or("Details");
                let title = self.take_line(title);
                let text = self.blocks(content(node), inner);
                format!("**{title}**\n\n{text}")
            }
            "rule" => "---".to_owned(),
            "table" => self.table(node, inner),
            "media" => self.media(node),
            "blockCard" | "embedCard" => self.card(node),
            "extension" | "bodiedExtension" => {
                let name = self.name(attribute(node, "extensionKey").unwrap_or("unnamed"));
                self.named(&format!("[extension '{name}']"), node, inner)
            }
            "blockTaskItem" | "taskItem" | "decisionItem" => self.task(node, inner),
            unknown => {
                let name = self.name(if unknown.is_empty() { "untyped" } else { unknown });
                self.named(&format!("[unknown node '{name}']"), node, inner)
            }
        }
    }

    /// Something that we do not know, by its name, and the text that it has.
    fn named(&mut self, name: &str, node: &Value, depth: usize) -> String {
        let own = node["text"].as_str().or_else(|| attribute(node, "text")).unwrap_or_default();
        let own = self.take(own).to_owned();
        let inner = self.blocks(content(node), depth);
        let parts = [name, &own, &inner].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" ")
    }

    fn list(&mut self, node: &Value, depth: usize, marker: impl Fn(u64) -> String) -> String {
        if depth > self.depth {
            self.is_too_deep = true;
            return "[nested too deep]".to_owned();
        }
        let mut lines = Vec::new();
        for (at, entry) in (0..).zip(content(node)) {
            if self.is_full(&content(node)[lines.len()..]) {
                break;
            }
            let text = match kind(entry) {
                "listItem" => self.joined(content(entry), depth + 1, "\n"),
                _ => self.joined(std::slice::from_ref(entry), depth + 1, "\n"),
            };
            self.left = self.left.saturating_sub(1);
            lines.push(item(&marker(at), &text));
        }
        lines.join("\n")
    }

    fn tasks(&mut self, node: &Value, depth: usize) -> String {
        if depth > self.depth {
            self.is_too_deep = true;
            return "[nested too deep]".to_owned();
        }
        let mut lines = Vec::new();
        for entry in content(node) {
            if self.is_full(&content(node)[lines.len()..]) {
                break;
            }
            lines.push(match kind(entry) {
                // A list of its own belongs to the task before it.
                "taskList" | "decisionList" => item("  ", &self.tasks(entry, depth + 1)),
                _ => self.block(entry, depth + 1),
            });
            self.left = self.left.saturating_sub(1);
        }
        lines.join("\n")
    }

    fn task(&mut self, node: &Value, depth: usize) -> String {
        let marker = match (kind(node), attribute(node, "state")) {
            ("decisionItem", _) => "- [decision] ",
            (_, Some("DONE")) => "- [x] ",
            _ => "- [ ] ",
        };
        item(marker, &self.joined(content(node), depth, "\n"))
    }

    fn code(&mut self, node: &Value) -> String {
        let mut text = String::new();
        for part in content(node) {
            if self.is_full(std::slice::from_ref(part)) {
                break;
            }
            text.push_str(self.take(part["text"].as_str().unwrap_or_default()));
        }
        let fence = "`".repeat((longest_run(&text, '`') + 1).max(3));
        let language = attribute(node, "language").unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+#-_.".contains(c);
        let language: String = language.chars().filter(|c| is_plain(*c)).take(30).collect();
        format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
    }

    fn media(&mut self, node: &Value) -> String {
        let names = ["alt", "__fileName", "id", "url"];
        let name = names.into_iter().find_map(|name| attribute(node, name)).unwrap_or("unnamed");
        format!("[media: {}]", self.name(name))
    }

    fn card(&mut self, node: &Value) -> String {
        let data = &node["attrs"]["data"];
        let url = attribute(node, "url").or_else(|| data["url"].as_str());
        match url {
            Some(url) => format!("<{}>", self.address(url)),
            None => "[card]".to_owned(),
        }
    }
}
