//! The formats of `TEXT` that the engine knows.

/// Whether the engine formats as Excel does: numbers of `0` and `#`, dates and times.
pub(super) fn is_known_format(format: &str) -> bool {
    if format.eq_ignore_ascii_case("general") || format == "@" {
        return true;
    }
    let Some(sections) = sections(format) else { return false };
    sections.len() <= 3 && sections.iter().all(|it| is_known_section(it))
}

/// The sections of a format without their texts and colours: what is left decides. A text is one
/// blank. None if it has brackets that mean something else than a colour or a time that passed.
fn sections(format: &str) -> Option<Vec<String>> {
    let mut sections = vec![String::new()];
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        let last = sections.last_mut()?;
        match c {
            ';' => sections.push(String::new()),
            '"' => {
                chars.by_ref().find(|it| *it == '"');
                last.push(' ');
            }
            '\\' => {
                chars.next();
                last.push(' ');
            }
            '[' => {
                let tag: String = chars.by_ref().take_while(|it| *it != ']').collect();
                let tag = tag.to_ascii_lowercase();
                let is_passed = ["h", "hh", "m", "mm", "s", "ss"].contains(&tag.as_str());
                match is_passed {
                    true => last.push_str(&tag),
                    false if is_colour(&tag) => {}
                    false => return None,
                }
            }
            c => last.push(c.to_ascii_lowercase()),
        }
    }
    Some(sections)
}

fn is_colour(tag: &str) -> bool {
    let colours = ["black", "blue", "cyan", "green", "magenta", "red", "white", "yellow"];
    colours.contains(&tag)
}

fn is_known_section(section: &str) -> bool {
    if section.contains(['?', '*', '_', '@']) {
        return false;
    }
    let bare = section.replace("am/pm", "").replace("a/p", "");
    if bare.contains(['y', 'm', 'd', 'h', 's']) {
        // Of dates, the engine does not know eras and other calendars.
        return !bare.contains(['e', 'g', 'b']) && !bare.contains("general");
    }
    let (Some(first), Some(last)) = (bare.find(['0', '#']), bare.rfind(['0', '#'])) else {
        return !bare.contains(['e', 'g', 'b', 'n', '/']);
    };
    // Nothing stands between the digits but the point and the thousands, and no fraction ends them.
    let is_plain = bare[first..=last].chars().all(|it| "0#.,".contains(it));
    is_plain && !bare[last + 1..].contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_the_engine_simplifies_are_doubtful() {
        for format in [
            "0",
            "0.00",
            "#,##0",
            "#,##0.0#",
            "$#,##0.00;($#,##0.00)",
            "0%",
            "0.0#%",
            "[Red]-0",
            "00000",
            "0;-0;\"zero\"",
            "0 \"units\"",
            "0\\k",
            "#,##0,,\"M\"",
            "yyyy-mm-dd",
            "d mmm yy",
            "[h]:mm:ss",
            "h:mm AM/PM",
            "m/d/yyyy",
            "mm:ss.0",
            "dddd, mmmm dd, yyyy",
            "General",
            "@",
            "",
            "€0.00",
            "0;;",
            "yyyy\"-Q1\"",
            "\"no. \"0",
            "+0;-0",
        ] {
            assert!(is_known_format(format), "{format}");
        }
        for format in [
            "# ?/?",
            "# ??/??",
            "0/4",
            "0/0",
            "@@",
            "0.0E+0",
            "0.00e+00",
            "##0.0E+0",
            "?.??",
            "0.0_)",
            "_(0_)",
            "0*x",
            "[>3]0.0;0",
            "000-00-0000",
            "(000) 000-0000",
            "# ##0",
            "[$€-407]#,##0",
            "0;0;0;@",
            "e",
            "ggge",
            "[Color5]0",
        ] {
            assert!(!is_known_format(format), "{format}");
        }
    }
}
