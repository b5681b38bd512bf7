use super::*;

const LIMITS: LineLimits = LineLimits { lines: 4, line_bytes: 8, bytes: 20 };

fn lines(text: &str) -> Lines {
    let mut lines = Lines::new(LIMITS);
    lines.push(text);
    lines
}

/// The text, where it begins and ends, what is missing before and left behind.
fn read(lines: &Lines, from: Cursor, most: u64) -> (String, u64, u64, u64, u64) {
    let page = lines.read(from, most, 1000);
    (page.text, page.offset, page.next.line, page.dropped, page.remaining)
}

#[test]
fn lines_are_read_page_by_page_and_nothing_twice() {
    let mut lines = lines("a\nb\r\nc");
    let first = lines.read(Cursor::default(), 1, 1000);
    assert_eq!((first.text.as_str(), first.offset, first.next.line), ("a\n", 0, 1));
    assert_eq!(first.remaining, 2);
    let second = lines.read(first.next, 40, 1000);
    assert_eq!((second.text.as_str(), second.offset, second.next.line), ("b\nc", 1, 2));
    assert_eq!(second.remaining, 0);
    // What goes on, goes on where it was.
    lines.push("d\n");
    assert_eq!(read(&lines, second.next, 40), ("d\n".into(), 2, 3, 0, 0));
    // A line can be read again as a whole.
    assert_eq!(read(&lines, Cursor::at(2), 40), ("cd\n".into(), 2, 3, 0, 0));
    // Behind the end there is nothing yet.
    assert_eq!(read(&lines, Cursor::at(99), 40), (String::new(), 3, 3, 0, 0));
    lines.push("\n");
    assert_eq!(read(&lines, Cursor::at(3), 40), ("\n".into(), 3, 4, 0, 0));
}

#[test]
fn of_too_many_lines_the_first_are_dropped_and_counted() {
    let at_the_edge = lines("1\n2\n3\n4\n");
    assert_eq!(read(&at_the_edge, Cursor::default(), 40), ("1\n2\n3\n4\n".into(), 0, 4, 0, 0));
    let beyond = lines("1\n2\n3\n4\n5\n6");
    assert_eq!(read(&beyond, Cursor::default(), 40), ("3\n4\n5\n6".into(), 2, 5, 2, 0));
    assert_eq!(read(&beyond, Cursor::at(3), 1), ("4\n".into(), 3, 4, 0, 2));
    assert_eq!(beyond.total_bytes(), 11);
}

#[test]
fn a_line_without_an_end_is_bounded_and_stays_one_text() {
    let mut long = lines(&"x".repeat(8));
    assert_eq!(read(&long, Cursor::default(), 40), ("xxxxxxxx".into(), 0, 0, 0, 0));
    long.push("yz\n");
    assert_eq!(read(&long, Cursor::default(), 40), ("xxxxxxxxyz\n".into(), 0, 2, 0, 0));
    // Bytes are bounded, too: twenty of them.
    for _ in 0..1000 {
        long.push("abcdefgh");
        assert!(long.bytes <= 20, "{}", long.bytes);
    }
    assert_eq!(long.total_bytes(), 8 + 3 + 8000);
    let page = long.read(Cursor::default(), 40, 1000);
    assert_eq!((page.text.len(), page.dropped), (16, 1000));
    // Characters stay whole.
    let wide = lines("€€€€");
    assert_eq!(read(&wide, Cursor::default(), 40).0, "€€€€");
}

#[test]
fn a_page_has_no_more_bytes_than_asked_for() {
    let lines = lines("€uro\nb\n");
    let mut cursor = Cursor::default();
    let mut text = String::new();
    for _ in 0..20 {
        let page = lines.read(cursor, 40, 3);
        assert!(page.text.len() <= 4, "{page:?}");
        text.push_str(&page.text);
        cursor = page.next;
    }
    assert_eq!(text, "€uro\nb\n");
}

#[test]
fn carriage_returns_of_terminals_go_and_others_stay() {
    let mut lines = lines("10%\r20%\r");
    lines.push("\n\n\r\n");
    assert_eq!(lines.read(Cursor::default(), 40, 1000).text, "10%\r20%\n\n\n");
    assert_eq!(lines.last(3), ["10%\r20%"]);
}
