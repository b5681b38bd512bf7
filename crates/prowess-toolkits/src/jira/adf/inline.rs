//! Text within a block: marks, mentions, links.

use jiff::Timestamp;
use serde_json::Value;

use super::{Writer, attribute, content, kind, longest_run};

impl Writer {
    /// Text of one paragraph. A break is a backslash at the end of a line.
    pub(super) fn inline(&mut self, nodes: &[Value], depth: usize) -> String {
        if depth > self.depth + 1 {
            self.is_too_deep = true;
            return "[nested too deep]".to_owned();
        }
        let mut text = String::new();
        for (at, node) in nodes.iter().enumerate() {
            if self.is_full(&nodes[at..]) {
                break;
            }
            self.left = self.left.saturating_sub(1);
            text.push_str(&self.inline_node(node, depth));
        }
        text
    }

    fn inline_node(&mut self, node: &Value, depth: usize) -> String {
        match kind(node) {
            "text" => self.text(node),
            "hardBreak" => "\\\n".to_owned(),
            "mention" => {
                let name = attribute(node, "text").or_else(|| attribute(node, "id"));
                let name = self.take_line(name.unwrap_or("somebody"));
                if name.starts_with('@') { name } else { format!("@{name}") }
            }
            "emoji" => {
                let emoji = attribute(node, "text").or_else(|| attribute(node, "shortName"));
                self.take_line(emoji.unwrap_or("[emoji]"))
            }
            "status" => {
                let status = self.name(attribute(node, "text").unwrap_or("status"));
                format!("[{status}]")
            }
            "date" => self.date(node),
            "inlineCard" => self.card(node),
            "placeholder" => {
                let text = self.name(attribute(node, "text").unwrap_or_default());
                format!("[placeholder: {text}]")
            }
            "media" | "mediaInline" => self.media(node),
            "inlineExtension" => {
                let name = self.name(attribute(node, "extensionKey").unwrap_or("unnamed"));
                self.named(&format!("[extension '{name}']"), node, depth + 1)
            }
            // A block where none should be: its text stays.
            _ => self.block(node, depth),
        }
    }

    fn date(&mut self, node: &Value) -> String {
        let stamp = &node["attrs"]["timestamp"];
        let millis = stamp.as_i64().or_else(|| stamp.as_str()?.parse().ok());
        let date = millis.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        match date {
            Some(date) => date.strftime("%Y-%m-%d").to_string(),
            None => "[date]".to_owned(),
        }
    }

    /// A text with its marks, from the innermost to the outermost.
    fn text(&mut self, node: &Value) -> String {
        let text = self.take(node["text"].as_str().unwrap_or_default());
        let marks = node["marks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has = |name: &str| marks.iter().any(|mark| kind(mark) == name);
        if text.trim().is_empty() {
            return text.to_owned();
        }
        // Marks stand at letters, not at spaces.
        let inner = text.trim();
        let before = &text[..text.len() - text.trim_start().len()];
        let after = &text[text.trim_end().len()..];
        let mut marked = match has("code") {
            true => {
                let ticks = "`".repeat(longest_run(inner, '`') + 1);
                let pad = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
                format!("{ticks}{pad}{inner}{pad}{ticks}")
            }
            false => inner.to_owned(),
        };
        let wraps = [
            ("em", "*", "*"),
            ("strong", "**", "**"),
            ("strike", "~~", "~~"),
            ("underline", "<u>", "</u>"),
        ];
        for (name, open, close) in wraps {
            if has(name) {
                marked = format!("{open}{marked}{close}");
            }
        }
        if let Some(mark) = marks.iter().find(|mark| kind(mark) == "subsup") {
            let tag = if attribute(mark, "type") == Some("sup") { "sup" } else { "sub" };
            marked = format!("<{tag}>{marked}</{tag}>");
        }
        if let Some(mark) = marks.iter().find(|mark| kind(mark) == "link") {
            let href = attribute(mark, "href").unwrap_or_default();
            if href != inner {
                let href = self.address(href);
                let label = marked.replace('[', "\\[").replace(']', "\\]");
                marked = format!("[{label}]({href})");
            }
        }
        format!("{before}{marked}{after}")
    }

    /// An address that cannot end the place that it stands in.
    pub(super) fn address(&mut self, url: &str) -> String {
        let mut out = String::new();
        for character in self.take(url).chars() {
            match character {
                ' ' | '<' | '>' | '(' | ')' | '`' | '\\' | '|' => {
                    out.push_str(&format!("%{:02X}", u32::from(character)));
                }
                c if c.is_control() || c.is_whitespace() => {}
                c => out.push(c),
            }
        }
        out
    }

    pub(super) fn wrapped(&mut self, mark: &str, node: &Value, depth: usize) -> String {
        match self.inline(content(node), depth) {
            text if text.trim().is_empty() => String::new(),
            text => format!("{mark}{}{mark}", text.trim()),
        }
    }
}
