use std::sync::{Arc, Mutex};

use prowess_agent::{FinishReason, StopReason};
use prowess_runtime::{ToolCall, Usage};
use serde_json::json;

use super::*;

/// What was written, for both of a screen's places.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Without the styles, which are ours.
    fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.text()).to_string()
    }
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text { text: text.to_owned() }
}

fn answered(id: &str, code: &str, is_error: bool, content: &str) -> AgentEvent {
    let (call_id, tool) = (id.to_owned(), "tool".to_owned());
    let (code, content) = (code.to_owned(), content.to_owned());
    AgentEvent::ToolAnswered { call_id, tool, code, is_error, content }
}

fn turn() -> Vec<AgentEvent> {
    let load = ToolCall::new("1", "load_skill", json!({"skill": "deploy"}));
    let stop = StopReason::Answered(FinishReason::Stop);
    let mut usage = Usage::default();
    usage.input_tokens = 2_000;
    usage.output_tokens = 30;
    vec![
        text("There is a "),
        text("skill for that."),
        AgentEvent::ToolCalled { call: load },
        answered("1", "loaded", false, "# Deploy\n"),
        answered("2", "tool_not_allowed", true, "Error: Tool 'pay' is not allowed."),
        AgentEvent::Problem { message: "a skill asks for another model".to_owned() },
        text("Done.\n"),
        AgentEvent::Finished { stop, usage, steps: 2 },
    ]
}

#[test]
fn a_turn_looks_like_this() {
    let paper = Paper::default();
    let (voice, aside) = (Box::new(paper.clone()), Box::new(paper.clone()));
    let mut screen = Screen::new(voice, Reader::Terminal, aside, 80);
    for event in turn() {
        screen.event(&event).unwrap();
    }
    screen.end_turn().unwrap();
    let failure = Failure {
        code: "network".to_owned(),
        message: "the provider cannot be reached".to_owned(),
        hint: Some("is a server running there?".to_owned()),
    };
    screen.failed(&failure).unwrap();
    screen.note("The session is kept.").unwrap();
    insta::assert_snapshot!(paper.plain());
    assert_eq!(screen.folded().len(), 2);
}

#[test]
fn what_is_said_goes_to_one_place_and_the_rest_to_the_other() {
    let (voice, aside) = (Paper::default(), Paper::default());
    let (left, right) = (Box::new(voice.clone()), Box::new(aside.clone()));
    let mut screen = Screen::new(left, Reader::Program, right, 80);
    for event in turn() {
        screen.event(&event).unwrap();
    }
    screen.end_turn().unwrap();
    assert_eq!(voice.text(), "There is a skill for that.\nDone.\n");
    let aside = aside.plain();
    assert!(aside.starts_with("⏺ load_skill deploy … loaded (9 B)\n"), "{aside}");
    assert!(aside.ends_with("2,000 in, 30 out, 2 steps\n"), "{aside}");
}

/// What others write must not steer the terminal; a program gets it as it is, which shows that it
/// was there.
#[test]
fn nothing_from_others_steers_the_terminal() {
    const ATTACK: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r";
    let attacked = |reader| {
        let paper = Paper::default();
        let (voice, aside) = (Box::new(paper.clone()), Box::new(paper.clone()));
        let mut screen = Screen::new(voice, reader, aside, 200);
        let load = ToolCall::new(ATTACK, ATTACK, json!({"skill": ATTACK}));
        for event in [
            // Also where it comes in bits.
            text("\u{1b}"),
            text("[2J"),
            text(ATTACK),
            AgentEvent::ToolCalled { call: load },
            answered(ATTACK, ATTACK, false, ATTACK),
            answered("other", ATTACK, true, ATTACK),
            AgentEvent::Problem { message: ATTACK.to_owned() },
        ] {
            screen.event(&event).unwrap();
        }
        let (code, message) = (ATTACK.to_owned(), ATTACK.to_owned());
        screen.failed(&Failure { code, message, hint: Some(ATTACK.to_owned()) }).unwrap();
        screen.end_turn().unwrap();
        screen.answer(&super::super::fold::unfolded(screen.folded(), 9)).unwrap();
        paper.text()
    };
    assert!(attacked(Reader::Program).contains(ATTACK), "the control shows it");
    let shown = attacked(Reader::Terminal);
    let harmful = |c: char| prowess_format::is_deceptive(c) && c != '\n' && c != '\u{1b}';
    assert!(!shown.contains(harmful), "{shown:?}");
    // The only sequences are those of our styles.
    for rest in shown.split('\u{1b}').skip(1) {
        let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '[' | ';')).unwrap();
        assert!(rest.starts_with('[') && rest[end..].starts_with('m'), "{rest:?}");
    }
}
