//! Tool lists: `allowed-tools` and `disallowed-tools`.

use std::fmt;

use crate::yaml::{Node, Value};

/// One entry of a tool list: a tool, and which of its calls.
///
/// ```
/// use prowess_format::ToolPattern;
///
/// let pattern = ToolPattern::parse("Bash(git add *)");
/// assert_eq!(pattern.tool, "Bash");
/// assert_eq!(pattern.scope.as_deref(), Some("git add *"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToolPattern {
    /// The name of the tool, such as `Read` or `mcp__server__tool`.
    pub tool: String,
    /// What stands in the parentheses.
    pub scope: Option<String>,
}

impl ToolPattern {
    /// Reads one entry. Without a closed pair of parentheses the whole text is the tool's name.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        // Authors who quote each entry of a string do not mean the quotes.
        let unquoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
        let text = unquoted('"').or_else(|| unquoted('\'')).unwrap_or(text);
        let parts = text.strip_suffix(')').and_then(|open| open.split_once('('));
        match parts.filter(|(tool, _)| !tool.is_empty()) {
            Some((tool, scope)) => {
                Self { tool: tool.trim_end().to_owned(), scope: Some(scope.to_owned()) }
            }
            None => Self { tool: text.to_owned(), scope: None },
        }
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(formatter, "{}({scope})", self.tool),
            None => formatter.write_str(&self.tool),
        }
    }
}

/// Splits a tool list at blanks and commas outside of parentheses. If parentheses are
/// unbalanced, they bind nothing.
///
/// ```
/// use prowess_format::split_tools;
///
/// assert_eq!(split_tools("Bash(git add *) Read"), ["Bash(git add *)", "Read"]);
/// assert_eq!(split_tools("Read, Grep"), ["Read", "Grep"]);
/// ```
pub fn split_tools(text: &str) -> Vec<&str> {
    let binds = is_balanced(text);
    let mut depth = 0_usize;
    text.split(|character: char| {
        match character {
            '(' if binds => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (character.is_whitespace() || character == ',')
    })
    .filter(|entry| !entry.is_empty())
    .collect()
}

/// Whether every parenthesis has its partner.
pub(crate) fn is_balanced(text: &str) -> bool {
    let mut depth = 0_i64;
    for byte in text.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

/// The entries of a tool list, written as a string or as a list of strings.
pub(crate) fn read_tools(node: &Node) -> Vec<ToolPattern> {
    let patterns = |text: &str| -> Vec<ToolPattern> {
        split_tools(text).into_iter().map(ToolPattern::parse).collect()
    };
    match &node.value {
        Value::String(text) => patterns(text),
        Value::Sequence(items) => {
            items.iter().filter_map(Node::as_str).flat_map(patterns).collect()
        }
        _ => Vec::new(),
    }
}
