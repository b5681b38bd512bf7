//! Attacks from inside of a sandbox. Each one first succeeds without it.

mod ends;
mod files;
mod limits;
mod processes;
mod reach;

use prowess_workspace::Tier;

use crate::support::{Ground, said, tiers};

/// Runs a line without a sandbox, where it must print `broken`, and in every sandbox, where it must
/// not, though it must get to its end.
async fn attack(ground: &Ground, line: &str) {
    attack_on(ground, line, &tiers()).await;
}

async fn attack_on(ground: &Ground, line: &str, tiers: &[Tier]) {
    let line = format!("{line}\necho end");
    let control = ground.unprotected(&line);
    let text = String::from_utf8_lossy(&control.stdout);
    let errors = String::from_utf8_lossy(&control.stderr);
    assert!(text.contains("broken"), "the control must succeed: {line}\n{text}{errors}");
    for tier in tiers {
        let outcome = ground.run(*tier, &line).await;
        let text = said(&outcome);
        assert!(!text.contains("broken"), "{tier:?}: {line}\n{text}");
        assert!(text.contains("end"), "{tier:?}: {line}\n{text}");
    }
}

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    crate::support::repeat_as_a_user(&["--skip", "all_of_this_holds_for_an_ordinary_user"]);
}
