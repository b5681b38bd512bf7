use std::sync::Arc;

use prowess_workspace::OutputStream::{Stderr, Stdout};

use super::super::hint::Kind;
use super::*;

const LIMITS: LineLimits = LineLimits { lines: 100, line_bytes: 1000, bytes: 10_000 };
const WANT: Want = Want { offset: None, lines: 40, bytes: 1000 };

fn screen() -> Screen {
    Screen::new(LIMITS, 10)
}

#[test]
fn characters_are_whole_though_they_come_in_parts_and_of_two_streams() {
    let screen = screen();
    let euro = "€".as_bytes();
    screen.show(Stdout, &euro[..1]);
    screen.show(Stderr, b"[err]");
    screen.show(Stdout, &euro[1..]);
    assert_eq!(screen.view(WANT).page.text, "[err]€");
    // What is no character is shown as such, and hides nothing behind it.
    screen.show(Stdout, b"\xff\xfeab\xe2\x82");
    assert_eq!(screen.view(WANT).page.text, "\u{fffd}\u{fffd}ab");
    let gone = Box::new(ToolOutcome::error("lost", "lost"));
    screen.end(Err(gone), Instant::now());
    assert_eq!(screen.view(WANT).page.text, "\u{fffd}");
}

#[test]
fn escapes_are_kept_as_they_are() {
    let screen = screen();
    screen.show(Stdout, b"\x1b[31mred\x1b[0m\x07\n");
    assert_eq!(screen.view(WANT).page.text, "\u{1b}[31mred\u{1b}[0m\u{7}\n");
}

#[test]
fn a_prompt_is_seen_until_it_is_answered() {
    let screen = screen();
    screen.show(Stdout, b"Name: ");
    for text in ["Name: ", ""] {
        let view = screen.view(WANT);
        assert_eq!(view.page.text, text);
        assert_eq!(view.interaction.unwrap().kind, Kind::Prompt);
    }
    screen.show(Stdout, b"\nthanks\n");
    assert_eq!(screen.view(WANT).interaction, None);
}

#[test]
fn nobody_is_asked_while_there_is_more_to_read() {
    let screen = screen();
    screen.show(Stdout, b"a\nb\nName: ");
    let want = Want { lines: 1, ..WANT };
    assert_eq!(screen.view(want).interaction, None);
    assert!(screen.view(WANT).interaction.is_some());
}

#[test]
fn the_whole_keeps_both_ends() {
    let screen = screen();
    screen.show(Stdout, b"0123456789");
    let whole = screen.whole(10);
    assert_eq!((whole.text.as_str(), whole.is_cut), ("0123456789", false));
    screen.show(Stdout, b"x");
    let whole = screen.whole(10);
    assert_eq!(whole.text, "01234\n...[output truncated]...\n6789x");
    assert_eq!((whole.total_bytes, whole.is_cut), (11, true));
    // Also when the beginning is not kept any more.
    for _ in 0..200 {
        screen.show(Stdout, b"line\n");
    }
    let whole = screen.whole(10);
    assert_eq!(whole.text, "01234\n...[output truncated]...\nline\n");
    assert_eq!(whole.total_bytes, 11 + 1000);
}

#[tokio::test]
async fn waiting_ends_with_the_command_with_quiet_or_with_the_time() {
    let screen = Arc::new(screen());
    // With the time.
    screen.settle(0, Some(Instant::now() + Duration::from_millis(20))).await;
    // With quiet after something was written, however long the time.
    screen.show(Stdout, b"a");
    let begun = Instant::now();
    screen.settle(0, None).await;
    assert!(begun.elapsed() >= Duration::from_millis(50), "{:?}", begun.elapsed());
    // What was written before does not count.
    let until = Instant::now() + Duration::from_millis(150);
    screen.settle(screen.writes(), Some(until)).await;
    assert!(Instant::now() >= until);
    // With the command.
    let other = Arc::clone(&screen);
    let waiting = tokio::spawn(async move {
        other.settle(other.writes(), None).await;
        other.finish().await
    });
    let gone = Box::new(ToolOutcome::error("lost", "lost"));
    screen.end(Err(gone), Instant::now());
    assert!(waiting.await.unwrap().exit.is_err());
}
