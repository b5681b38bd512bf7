//! Argument substitution, case by case (S01, 7).

use prowess_format::{Arguments, split_words};

/// Declared names are `issue` and `target-branch`.
fn substitute(typed: &str, body: &str) -> String {
    Arguments::new(typed)
        .with_names(["issue", "target-branch"])
        .with_variable("CLAUDE_SKILL_DIR", "/skills/x")
        .with_variable("CLAUDE_SESSION_ID", "$0")
        .substitute(body)
}

#[test]
fn table_of_cases() {
    let cases: &[(&str, &str, &str)] = &[
        // $ARGUMENTS is what was typed, as it was typed.
        ("a 'b c'", "<$ARGUMENTS>", "<a 'b c'>"),
        ("", "<$ARGUMENTS>", "<>"),
        ("x", "$ARGUMENTS,$ARGUMENTS", "x,x"),
        ("x", "$ARGUMENTS_MORE $ARGUMENTSX", "$ARGUMENTS_MORE $ARGUMENTSX\n\nARGUMENTS: x"),
        // Absent, it is appended; without arguments nothing is.
        ("x y", "Do it.", "Do it.\n\nARGUMENTS: x y"),
        ("x y", "Do it.\n", "Do it.\n\nARGUMENTS: x y"),
        ("x y", "Do it.\n\n", "Do it.\n\nARGUMENTS: x y"),
        ("x", "", "ARGUMENTS: x"),
        ("", "Do it.", "Do it."),
        ("  ", "Do it.", "Do it."),
        // Words count from 0, in shell quoting; a word that is not there stays as it is written.
        ("a 'b c'", "$0|$1|$2 $ARGUMENTS", "a|b c|$2 a 'b c'"),
        ("a b", "$ARGUMENTS[1]|$ARGUMENTS[0]|$ARGUMENTS[9]", "b|a|$ARGUMENTS[9]"),
        ("a", "$ARGUMENTS[x] $ARGUMENTS[] $ARGUMENTS[0", "a[x] a[] a[0"),
        ("a", "$0th $00 $ARGUMENTS", "$0th a a"),
        ("a", "$99999999999999999999 $ARGUMENTS", "$99999999999999999999 a"),
        ("a", "cost: $0.50 $ARGUMENTS", "cost: a.50 a"),
        // Declared names; without a word they are empty.
        ("7 main", "#$issue on $target-branch $ARGUMENTS", "#7 on main 7 main"),
        ("7", "[$issue|$target-branch] $ARGUMENTS", "[7|] 7"),
        ("", "[$issue|$target-branch]", "[|]"),
        ("7", "$issues $other $ARGUMENTS", "$issues $other 7"),
        // Escapes.
        ("a", r"\$0 \$ARGUMENTS \$issue $ARGUMENTS", "$0 $ARGUMENTS $issue a"),
        ("a", r"\\$0 $ARGUMENTS", r"\\a a"),
        ("a", r"\\\$0 $ARGUMENTS", r"\\$0 a"),
        ("a", r"\$other \$ \x $ARGUMENTS", r"\$other \$ \x a"),
        ("a", r"\$9 $ARGUMENTS", "$9 a"),
        ("a", r"only \$ARGUMENTS", "only $ARGUMENTS\n\nARGUMENTS: a"),
        // Variables: a backslash does not stop them, an unknown one stays.
        ("", "${CLAUDE_SKILL_DIR}/run.sh", "/skills/x/run.sh"),
        ("", r"\${CLAUDE_SKILL_DIR}", r"\/skills/x"),
        ("", "${CLAUDE_OTHER} ${CLAUDE_SKILL_DIR ${}", "${CLAUDE_OTHER} ${CLAUDE_SKILL_DIR ${}"),
        // One pass: what is put in is not looked at again.
        ("a", "${CLAUDE_SESSION_ID} $ARGUMENTS", "$0 a"),
        ("'$1' b", "$0 $ARGUMENTS[1]", "$1 b"),
        // A dollar that means nothing here.
        ("a", "$ $$ $PATH $-x $ARGUMENTS $", "$ $$ $PATH $-x a $"),
        ("ü ö", "$1 $ARGUMENTS ä", "ö ü ö ä"),
    ];
    for (typed, body, expected) in cases {
        assert_eq!(substitute(typed, body), *expected, "typed {typed:?}, body {body:?}");
    }
}

#[test]
fn the_longest_declared_name_wins() {
    let arguments = Arguments::new("1 2").with_names(["a", "a-b"]);
    assert_eq!(arguments.substitute("$a $a-b $ARGUMENTS"), "1 2 1 2");
}

#[test]
fn words_split_as_in_a_shell() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("  a   b ", &["a", "b"]),
        ("'a b' \"c d\" e\\ f", &["a b", "c d", "e f"]),
        ("a'b'\"c\"", &["abc"]),
        ("\"a \\\" \\\\ \\n\"", &["a \" \\ \\n"]),
        ("'a \\' b'", &["a \\", "b'"]),
        ("''", &[""]),
        ("#123 a#b", &["#123", "a#b"]),
        ("it's fine", &["it's", "fine"]),
        ("a\\", &["a\\"]),
        ("a\nb\tc", &["a", "b", "c"]),
    ];
    for (text, expected) in cases {
        assert_eq!(split_words(text), *expected, "{text:?}");
    }
}
