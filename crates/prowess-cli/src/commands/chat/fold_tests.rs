use prowess_runtime::Message;
use serde_json::json;

use super::*;

fn call(id: &str, name: &str, arguments: Value) -> AgentEvent {
    AgentEvent::ToolCalled { call: ToolCall::new(id, name, arguments) }
}

fn answer(id: &str, code: &str, is_error: bool, content: &str) -> AgentEvent {
    let (call_id, tool) = (id.to_owned(), "tool".to_owned());
    let (code, content) = (code.to_owned(), content.to_owned());
    AgentEvent::ToolAnswered { call_id, tool, code, is_error, content }
}

fn usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Usage {
    let mut usage = Usage::default();
    usage.input_tokens = input;
    usage.cached_input_tokens = cached;
    usage.output_tokens = output;
    usage.reasoning_tokens = reasoning;
    usage
}

fn finished(stop: StopReason, usage: Usage) -> AgentEvent {
    AgentEvent::Finished { stop, usage, steps: 1 }
}

fn stopped(reason: FinishReason) -> StopReason {
    StopReason::Answered(reason)
}

#[test]
fn a_call_is_one_line() {
    let skill = json!({"skill": "release-notes"});
    let run = json!({"skill": "python-math", "command": "python3 scripts/fib.py 10"});
    let table = [
        ("load_skill", skill.clone(), "loaded", false, "x".repeat(1_234)),
        ("load_skill", skill, "skill_not_found", true, "Error: Skill 'x' not found.\nMore.".into()),
        ("skill_run", run.clone(), "ok", false, r#"{"exit_code": 2, "stdout": ""}"#.into()),
        ("skill_run", run, "call_cancelled", true, String::new()),
        ("list_loaded_skills", json!({}), "ok", false, "none".into()),
        ("write", json!({"todos": [{"a": 1}], "n": 2}), "ok", false, String::new()),
        ("odd", json!("no object"), "ok", false, "b".into()),
        ("read_file", json!({"path": "long/".repeat(40)}), "ok", false, "c".into()),
    ];
    let mut out = String::new();
    for (tool, arguments, code, is_error, content) in table {
        let mut fold = Fold::new(80);
        fold.take(&call("1", tool, arguments));
        for shown in fold.take(&answer("1", code, is_error, &content)) {
            let (Shown::Called(line) | Shown::Failed(line)) = &shown else { panic!("{shown:?}") };
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line.lines().count(), 1);
            out += &format!("{line}\n");
        }
    }
    insta::assert_snapshot!(out);
}

#[test]
fn every_event_has_its_place() {
    let bit = |text: &str| AgentEvent::Text { text: text.to_owned() };
    let thought = |text: &str| AgentEvent::Reasoning { text: text.to_owned() };
    let message = Message::assistant("Hello");
    let mut fold = Fold::new(60);
    let mut all = Vec::new();
    for event in [
        AgentEvent::TurnBegan { turn: 1 },
        AgentEvent::Problem { message: "a\nproblem".to_owned() },
        AgentEvent::ModelCalled { step: 1, model: "openai:test".to_owned() },
        thought("Hm"),
        thought("m."),
        bit("Hel"),
        bit("lo"),
        AgentEvent::ModelAnswered { step: 1, message, usage: None },
        call("1", "load_skill", json!({"skill": "deploy"})),
        call("2", "ls", json!({})),
        answer("1", "loaded", false, "# Deploy"),
        answer("2", "ok", false, ""),
        finished(stopped(FinishReason::Stop), usage(1_234, 1_024, 56, 7)),
    ] {
        all.extend(fold.take(&event).into_iter().map(|shown| format!("{shown:?}")));
    }
    insta::assert_snapshot!(all.join("\n"));
    assert_eq!(fold.folded().len(), 3);
}

#[test]
fn a_turn_that_is_not_finished_says_why() {
    let table = [
        (stopped(FinishReason::Stop), None),
        (StopReason::Ended, None),
        (stopped(FinishReason::Length), Some("the answer is as long as it may be")),
        (stopped(FinishReason::ContentFilter), Some("the provider has ended the answer")),
        (stopped(FinishReason::Other("\u{1b}[2J".into())), Some("the answer ended: \\u{1b}[2J")),
        (StopReason::StepLimit, Some("the turn has as many steps as it may have")),
        (StopReason::TokenLimit, Some("the turn has as many tokens as it may have")),
        (StopReason::Cancelled, Some("cancelled")),
    ];
    for (stop, expected) in table {
        assert_eq!(unfinished(&stop).as_deref(), expected);
        let shown = Fold::new(80).take(&finished(stop, usage(1, 0, 2, 0)));
        let figures = "1 in, 2 out, 1 step";
        let expected = match expected {
            Some(why) => Shown::Warning(format!("{why}; {figures}")),
            None => Shown::Aside(figures.to_owned()),
        };
        assert_eq!(shown, [expected]);
    }
}

#[test]
fn what_is_unfolded_is_bounded_and_cannot_steer_the_terminal() {
    let mut fold = Fold::new(80);
    let lines = |count: usize| vec!["line"; count].join("\n");
    for (at, content) in
        [lines(MOST_LINES), lines(MOST_LINES + 2), "\u{1b}[2Jgone\u{202e}".to_owned()]
            .iter()
            .enumerate()
    {
        let id = at.to_string();
        fold.take(&call(&id, "tool\u{7}", json!({"at": at})));
        fold.take(&answer(&id, "ok", false, content));
    }
    let folded = fold.folded();
    assert_eq!(unfolded(&folded, 1), "⏺ tool\\u{7} 2\n  \\u{1b}[2Jgone\\u{202e}");
    let two = unfolded(&folded, 2);
    assert_eq!(two.lines().filter(|line| *line == "  line").count(), MOST_LINES);
    assert!(two.contains("  … 2 lines more"), "{two}");
    let all = unfolded(&folded, 99);
    assert_eq!(all.matches('⏺').count(), 3);
    assert_eq!(all.matches("more").count(), 1);
    assert_eq!(unfolded(&[], 1), "Nothing of the last turn is folded.");
    let long = [Folded { title: "t".into(), text: "x".repeat(MOST_CHARACTERS + 1) }];
    assert_eq!(unfolded(&long, 1).lines().last().unwrap().chars().count(), MOST_CHARACTERS + 2);
}

#[test]
fn only_the_last_things_are_kept() {
    let mut fold = Fold::new(80);
    for at in 0..=MOST_FOLDED {
        fold.take(&answer(&at.to_string(), "ok", false, &at.to_string()));
    }
    let folded = fold.folded();
    assert_eq!(folded.len(), MOST_FOLDED);
    assert_eq!(folded[0].text, "1");
}

#[test]
fn a_sub_agent_shows_its_calls_and_not_its_words() {
    let inside = |agent: &str, event: AgentEvent| AgentEvent::SubAgent {
        call_id: "1".to_owned(),
        agent: agent.to_owned(),
        event: Box::new(event),
    };
    let mut fold = Fold::new(80);
    let mut take = |event: AgentEvent| fold.take(&event);
    let report = "main>report~1a2b3c4d";
    assert_eq!(take(inside(report, AgentEvent::Text { text: "Words.".to_owned() })), []);
    assert_eq!(
        take(inside(report, AgentEvent::ModelCalled { step: 1, model: "m".to_owned() })),
        [Shown::Busy("report: thinking".to_owned())]
    );
    take(inside(report, call("7", "skill_run", json!({"command": "ls"}))));
    assert_eq!(
        take(inside(report, answer("7", "ok", false, "abc"))),
        [Shown::Called("⏺ report › skill_run ls … ok (3 B)".to_owned())]
    );
    let deeper = inside("main>task~0", AgentEvent::Problem { message: "no\u{1b}[2J".to_owned() });
    let [Shown::Warning(line)] = &take(inside(report, deeper))[..] else { panic!() };
    assert!(line.starts_with("report › task: no") && !line.contains('\u{1b}'), "{line}");
    assert_eq!(
        take(AgentEvent::Compacted { messages: 12 }),
        [Shown::Aside("summed up: the first 12 messages".to_owned())]
    );
}
