//! Events in the log. Alone in its process: who listens to a place in the code is decided once.

mod support;

use std::sync::{Arc, Mutex};

use serde_json::json;
use support::{Plan, skill};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;
    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

#[tokio::test]
async fn events_are_in_the_log_with_spans_and_without_text_of_skills() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world =
        Plan::new().file("a/SKILL.md", skill("a", "A.", "The secret text of the skill.")).build();
    world.load("a").await;
    world.load("nope").await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("INFO") && text.contains("Skill 'a' loaded (0 resources discovered)"));
    assert!(text.contains("WARN") && text.contains("Tool 'load_skill' failed: skill_not_found"));
    let span = r#"prowess.step{gen_ai.conversation.id="test" gen_ai.agent.name=main prowess.step.calls=1}"#;
    assert!(text.contains(span), "{text}");
    assert!(!text.contains("secret text"));
    // Nobody writes a line of their own.
    let before = text.lines().count();
    world.load("x\nERROR forged\u{1b}[2J").await;
    world.call(&format!("y\nERROR forged {}", "z".repeat(100)), json!({})).await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let new: Vec<&str> = text.lines().skip(before).collect();
    assert_eq!(new.len(), 2, "{text}");
    assert!(
        new.iter().all(|line| !line.starts_with("ERROR") && !line.contains('\u{1b}')),
        "{text}"
    );
    let cut = format!("Tool 'y\\nERROR forged {}' failed", "z".repeat(80 - 15));
    assert!(new[1].contains(&cut), "{}", new[1]);
}
