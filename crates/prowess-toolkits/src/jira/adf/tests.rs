#![allow(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LIMITS: AdfLimits = AdfLimits { bytes: 32 << 10, depth: 32 };

fn markdown(document: &Value) -> String {
    to_markdown(document, LIMITS).text
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn marked(text: &str, marks: Value) -> Value {
    json!({"type": "text", "text": text, "marks": marks})
}

fn paragraph(content: Value) -> Value {
    json!({"type": "paragraph", "content": content})
}

fn node(kind: &str, content: Value) -> Value {
    json!({"type": kind, "content": content})
}

fn item_of(words: &str) -> Value {
    node("listItem", json!([paragraph(json!([text(words)]))]))
}

#[test]
fn documents_become_markdown() {
    let nested = node(
        "listItem",
        json!([
            paragraph(json!([text("two")])),
            node("orderedList", json!([item_of("two a"), item_of("two b")])),
        ]),
    );
    let cell = |kind: &str, words: &str| node(kind, json!([paragraph(json!([text(words)]))]));
    let table = [
        (
            "paragraphs",
            node(
                "doc",
                json!([
                    paragraph(json!([text("one")])),
                    paragraph(json!([])),
                    paragraph(json!([text("two"), {"type": "hardBreak"}, text("three")]))
                ]),
            ),
        ),
        (
            "headings",
            json!([{"type": "heading", "attrs": {"level": 2}, "content": [text("Title")]},
            {"type": "heading", "attrs": {"level": 99}, "content": [text("Deep")]}]),
        ),
        (
            "marks",
            paragraph(json!([
                marked("bold ", json!([{"type": "strong"}])),
                marked("italic", json!([{"type": "em"}])),
                text(" "),
                marked("gone", json!([{"type": "strike"}])),
                text(" "),
                marked("under", json!([{"type": "underline"}])),
                text(" "),
                marked("a`b", json!([{"type": "code"}])),
                text(" H"),
                marked("2", json!([{"type": "subsup", "attrs": {"type": "sub"}}])),
                text("O "),
                marked("red", json!([{"type": "textColor", "attrs": {"color": "#f00"}}])),
                text(" "),
                marked(
                    "all",
                    json!([{"type": "strong"}, {"type": "em"}, {"type": "link", "attrs": {"href": "https://example.com/a b"}}])
                ),
            ])),
        ),
        (
            "links",
            paragraph(json!([
                marked("a ] b", json!([{"type": "link", "attrs": {"href": "https://example.com/x)(y"}}])), text(" "),
                marked("https://example.com", json!([{"type": "link", "attrs": {"href": "https://example.com"}}])), text(" "),
                {"type": "inlineCard", "attrs": {"url": "https://example.com/PROJ-1"}},
            ])),
        ),
        ("lists", node("bulletList", json!([item_of("one"), nested, item_of("three")]))),
        (
            "ordered",
            json!([{"type": "orderedList", "attrs": {"order": 9}, "content": [item_of("nine"),
            node("listItem", json!([paragraph(json!([text("ten")])), {"type": "codeBlock", "content": [text("x\ny")]}]))]}]),
        ),
        (
            "tasks",
            node(
                "taskList",
                json!([
                    {"type": "taskItem", "attrs": {"state": "DONE"}, "content": [text("done")]},
                    {"type": "taskItem", "attrs": {"state": "TODO"}, "content": [text("open")]},
                    {"type": "taskList", "content": [{"type": "taskItem", "attrs": {"state": "TODO"}, "content": [text("below")]}]},
                ]),
            ),
        ),
        (
            "decisions",
            node(
                "decisionList",
                json!([{"type": "decisionItem", "attrs": {"state": "DECIDED"}, "content": [text("We do it")]}]),
            ),
        ),
        (
            "code",
            json!([{"type": "codeBlock", "attrs": {"language": "rust`\n"}, "content": [text("let a = \"```\";\n")]}]),
        ),
        (
            "quote",
            node(
                "blockquote",
                json!([paragraph(json!([text("said")])), paragraph(json!([text("more")]))]),
            ),
        ),
        (
            "panel",
            json!([{"type": "panel", "attrs": {"panelType": "warning"}, "content": [paragraph(json!([text("Careful")])), paragraph(json!([text("really")]))]}]),
        ),
        (
            "table",
            node(
                "table",
                json!([
                    node("tableRow", json!([cell("tableHeader", "A"), cell("tableHeader", "B|C")])),
                    node(
                        "tableRow",
                        json!([
                            cell("tableCell", "1"),
                            node(
                                "tableCell",
                                json!([
                                    paragraph(json!([text("x")])),
                                    paragraph(json!([text("y")]))
                                ])
                            )
                        ])
                    ),
                    node(
                        "tableRow",
                        json!([{"type": "tableCell", "attrs": {"colspan": 2}, "content": [paragraph(json!([text("wide")]))]}])
                    ),
                ]),
            ),
        ),
        (
            "table without a head",
            node(
                "table",
                json!([node("tableRow", json!([cell("tableCell", "1"), cell("tableCell", "2")]))]),
            ),
        ),
        (
            "people",
            paragraph(json!([
                {"type": "mention", "attrs": {"id": "5b1", "text": "@Jane Doe"}}, text(" "), {"type": "mention", "attrs": {"id": "5b2"}}, text(" "),
                {"type": "emoji", "attrs": {"shortName": ":smile:", "text": "😄"}}, text(" "), {"type": "emoji", "attrs": {"shortName": ":ship:"}}, text(" "),
                {"type": "status", "attrs": {"text": "IN PROGRESS", "color": "blue"}}, text(" "), {"type": "date", "attrs": {"timestamp": "1704067200000"}},
                text(" "), {"type": "placeholder", "attrs": {"text": "Type here"}},
            ])),
        ),
        (
            "media",
            json!([
                {"type": "mediaSingle", "content": [{"type": "media", "attrs": {"type": "file", "id": "abc", "alt": "screen.png"}}, {"type": "caption", "content": [text("A picture")]}]},
                {"type": "mediaGroup", "content": [{"type": "media", "attrs": {"id": "def"}}]},
                paragraph(json!([text("see "), {"type": "mediaInline", "attrs": {"id": "ghi"}}])),
            ]),
        ),
        (
            "expand",
            json!([{"type": "expand", "attrs": {"title": "More"}, "content": [paragraph(json!([text("inside")]))]}, {"type": "rule"},
            {"type": "layoutSection", "content": [{"type": "layoutColumn", "content": [paragraph(json!([text("left")]))]}, {"type": "layoutColumn", "content": [paragraph(json!([text("right")]))]}]}]),
        ),
        (
            "cards",
            json!([{"type": "blockCard", "attrs": {"url": "https://example.com"}}, {"type": "embedCard", "attrs": {"data": {"url": "https://example.com/>x"}}}, {"type": "blockCard"}]),
        ),
        (
            "extensions",
            json!([{"type": "extension", "attrs": {"extensionKey": "toc", "text": "Contents"}}, {"type": "bodiedExtension", "attrs": {"extensionKey": "x'] y"}, "content": [paragraph(json!([text("body")]))]}]),
        ),
        (
            "unknown",
            json!([{"type": "hologram", "content": [paragraph(json!([text("kept")]))]}, {"type": "ghost", "text": "boo"}, {"no": "type"}, text("loose"), 7, null,
            paragraph(json!([text("a "), {"type": "sparkle", "attrs": {"text": "✨"}}]))]),
        ),
        ("wiki text", json!("h1. Title\n* {{code}} [link|https://example.com]")),
        ("nothing", Value::Null),
    ];
    let all: Vec<String> = table
        .iter()
        .map(|(name, document)| format!("=== {name}\n{}", markdown(document)))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_limit_of_bytes_holds_at_the_edge() {
    let document = json!("x".repeat(100));
    let of = |bytes| to_markdown(&document, AdfLimits { bytes, depth: 32 });
    assert!(!of(100).is_cut);
    let cut = of(99);
    assert!(cut.is_cut && cut.text.len() == 99);
    // Not in the middle of a letter, and the same for documents.
    let document = paragraph(json!([text("ééé"), text("more")]));
    let cut = to_markdown(&document, AdfLimits { bytes: 4, depth: 32 });
    assert_eq!((cut.text.as_str(), cut.is_cut), ("é", true));
    let empty = to_markdown(&document, AdfLimits { bytes: 0, depth: 32 });
    assert_eq!((empty.text.as_str(), empty.is_cut), ("", true));
}

#[test]
fn the_limit_of_depth_holds_at_the_edge() {
    let nested = |depth: usize| {
        (0..depth)
            .fold(paragraph(json!([text("core")])), |inner, _| node("blockquote", json!([inner])))
    };
    let of = |depth| to_markdown(&nested(depth), AdfLimits { bytes: 1 << 20, depth: 8 });
    let fits = of(8);
    assert!(fits.text.contains("core") && !fits.is_too_deep, "{}", fits.text);
    let deep = of(9);
    assert!(deep.text.ends_with("[nested too deep]") && deep.is_too_deep, "{}", deep.text);
}

/// Any JSON that looks somewhat like a document.
fn documents() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "doc",
        "paragraph",
        "heading",
        "bulletList",
        "orderedList",
        "listItem",
        "taskList",
        "taskItem",
        "decisionList",
        "decisionItem",
        "codeBlock",
        "blockquote",
        "panel",
        "expand",
        "rule",
        "table",
        "tableRow",
        "tableCell",
        "tableHeader",
        "media",
        "mediaSingle",
        "text",
        "hardBreak",
        "mention",
        "emoji",
        "status",
        "date",
        "inlineCard",
        "extension",
        "layoutSection",
        "caption",
        "x",
        "",
    ]);
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::String),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(12, 120, 6, move |inner| {
        let marks = prop::sample::select(vec!["code", "strong", "em", "link", "subsup", "strike", "y"]);
        let object = (
            kinds.clone(),
            prop::collection::vec(inner.clone(), 0..6),
            any::<String>(),
            any::<u64>(),
            marks,
        );
        prop_oneof![
            object.prop_map(|(kind, content, text, number, mark)| json!({
                "type": kind, "content": content, "text": text,
                "marks": [{"type": mark, "attrs": {"href": text}}],
                "attrs": {"text": text, "level": number, "order": number, "colspan": number,
                    "title": text, "url": text, "timestamp": number, "language": text, "panelType": text},
            })),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("type|content|text|attrs", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_becomes_a_bounded_text(document in documents(), bytes in 0_usize..2000) {
        let written = to_markdown(&document, AdfLimits { bytes, depth: 6 });
        // What is around the text: markers, prefixes and fences of a bounded depth.
        prop_assert!(written.text.len() <= 1000 * bytes + 4096, "{} of {bytes}", written.text.len());
        let plain = document.as_str().map(str::len);
        if let Some(length) = plain {
            prop_assert_eq!(written.is_cut, length > bytes);
        }
    }
}
