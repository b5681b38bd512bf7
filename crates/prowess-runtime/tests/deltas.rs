//! Deltas merge in the order of calls, each once, whatever order they complete in.

use proptest::prelude::*;
use prowess_format::Digest;
use prowess_runtime::{
    Caps, Change, DocMode, DocSelection, LoadedSkill, REMEMBERED_CALLS, Refusal, Reset,
    SelectedDoc, SessionState, StateDelta, WhenFull,
};
use serde_json::json;

fn load(name: &str) -> Change {
    let skill = LoadedSkill::new(name, Digest::of(name.as_bytes()));
    Change::Load { skill: Box::new(skill), model: None }
}

fn delta(index: usize, changes: Vec<Change>) -> StateDelta {
    StateDelta::new(index, format!("call-{index}"), changes)
}

fn caps(max: usize, when_full: WhenFull) -> Caps {
    let mut caps = Caps::default();
    caps.max_loaded_skills = max;
    caps.when_full = when_full;
    caps
}

fn change() -> impl Strategy<Value = Change> {
    let name = prop::sample::select(vec!["a", "b", "c", "d", "e"]);
    let docs = prop::collection::vec(prop::sample::select(vec!["x.md", "y.md", "z.md"]), 0..3);
    let mode = prop::sample::select(vec![DocMode::Add, DocMode::Replace, DocMode::Clear]);
    prop_oneof![
        4 => name.clone().prop_map(load),
        1 => name.clone().prop_map(|name| Change::Unload { skill: name.to_owned() }),
        1 => name.clone().prop_map(|name| Change::Touch { skill: name.to_owned() }),
        2 => (name.clone(), docs, mode, any::<bool>()).prop_map(|(name, paths, mode, all)| {
            let mut docs = DocSelection::default();
            docs.all = all;
            docs.docs = paths
                .iter()
                .map(|path| SelectedDoc::new(*path, Some(Digest::of(path.as_bytes()))))
                .collect();
            Change::SelectDocs { skill: name.to_owned(), mode, docs }
        }),
        1 => (name, any::<u8>()).prop_map(|(name, value)| Change::SetContext {
            skill: name.to_owned(),
            value: json!(value),
        }),
    ]
}

/// A step of calls, and an order in which they complete, some of them twice.
fn step() -> impl Strategy<Value = (Vec<StateDelta>, Vec<StateDelta>)> {
    let calls = prop::collection::vec(prop::collection::vec(change(), 0..3), 1..6);
    calls.prop_flat_map(|calls| {
        let deltas: Vec<StateDelta> =
            calls.into_iter().enumerate().map(|(at, changes)| delta(at, changes)).collect();
        let twice: Vec<StateDelta> = deltas.iter().chain(&deltas).cloned().collect();
        (Just(deltas), Just(twice).prop_shuffle())
    })
}

fn any_caps() -> impl Strategy<Value = Caps> {
    let when_full = prop::sample::select(vec![WhenFull::Refuse, WhenFull::Evict]);
    (0usize..4, when_full).prop_map(|(max, when_full)| caps(max, when_full))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_completion_order_with_duplicates_gives_the_same_state(
        steps in prop::collection::vec(step(), 1..4),
        caps in any_caps(),
    ) {
        let (mut in_order, mut shuffled) = (SessionState::default(), SessionState::default());
        for (at, (deltas, twice)) in steps.into_iter().enumerate() {
            // Ids name a call once within a session.
            let named = |deltas: Vec<StateDelta>| -> Vec<StateDelta> {
                let name = |mut delta: StateDelta| {
                    delta.call_id = format!("{at}-{}", delta.call_id);
                    delta
                };
                deltas.into_iter().map(name).collect()
            };
            let (deltas, twice) = (named(deltas), named(twice));
            let one = in_order.apply(&deltas, &caps);
            let other = shuffled.apply(&twice, &caps);
            prop_assert_eq!(one, other);
            prop_assert_eq!(&in_order, &shuffled);
        }
    }

    #[test]
    fn delivering_a_step_again_changes_nothing(
        (deltas, twice) in step(),
        caps in any_caps(),
    ) {
        let mut state = SessionState::default();
        state.apply(&deltas, &caps);
        let before = state.clone();
        state.apply(&twice, &caps);
        prop_assert_eq!(state, before);
    }

    #[test]
    fn caps_hold_and_a_refused_call_leaves_no_trace(
        (deltas, _) in step(),
        caps in any_caps(),
    ) {
        let mut state = SessionState::default();
        for delta in deltas {
            let before = state.clone();
            let outcome = state.apply(std::slice::from_ref(&delta), &caps).remove(0).1;
            prop_assert!(state.loaded.len() <= caps.max_loaded_skills.max(before.loaded.len()));
            if outcome.refused.is_some() {
                prop_assert_eq!(&state.loaded, &before.loaded);
                prop_assert_eq!(&state.context, &before.context);
            }
        }
    }

    #[test]
    fn a_state_reads_back_from_its_json((deltas, _) in step(), caps in any_caps()) {
        let mut state = SessionState::default();
        state.apply(&deltas, &caps);
        let json = serde_json::to_string(&state).unwrap();
        prop_assert_eq!(serde_json::from_str::<SessionState>(&json).unwrap(), state);
    }
}

#[test]
fn all_orders_of_four_loads_under_a_cap_of_two_load_the_first_two() {
    let deltas: Vec<StateDelta> = ["a", "b", "c", "d"]
        .iter()
        .enumerate()
        .map(|(at, name)| delta(at, vec![load(name)]))
        .collect();
    let mut orders = vec![vec![]];
    for _ in 0..deltas.len() {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..4)
                    .filter(|at| !order.contains(at))
                    .map(|at| [order.clone(), vec![at]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    assert_eq!(orders.len(), 24);
    for order in orders {
        let shuffled: Vec<StateDelta> = order.iter().map(|at| deltas[*at].clone()).collect();
        let mut state = SessionState::default();
        let outcomes = state.apply(&shuffled, &caps(2, WhenFull::Refuse));
        assert_eq!(state.loaded_names(), ["a", "b"]);
        let refused: Vec<&str> = outcomes
            .iter()
            .filter(|(_, applied)| applied.refused.is_some())
            .map(|(call, _)| call.as_str())
            .collect();
        assert_eq!(refused, ["call-2", "call-3"]);
        let loaded = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(outcomes[2].1.refused, Some(Refusal::LimitReached { limit: 2, loaded }));
    }
}

#[test]
fn the_least_recently_used_skill_is_evicted_and_a_pinned_one_never() {
    let caps = caps(2, WhenFull::Evict);
    let mut pinned = LoadedSkill::new("pinned", Digest::of(b"p"));
    pinned.pinned = true;
    let mut state = SessionState::default();
    let pin = Change::Load { skill: Box::new(pinned), model: None };
    state.apply(&[delta(0, vec![pin])], &caps);
    state.apply(&[delta(1, vec![load("a")])], &caps);
    let outcome = state.apply(&[delta(2, vec![load("b")])], &caps).remove(0).1;
    assert_eq!((outcome.evicted, outcome.refused), (vec!["a".to_owned()], None));
    assert_eq!(state.loaded_names(), ["pinned", "b"]);
    // With nothing to evict the load is refused.
    let mut one = caps;
    one.max_loaded_skills = 1;
    let mut full = SessionState::default();
    let mut pinned = LoadedSkill::new("pinned", Digest::of(b"p"));
    pinned.pinned = true;
    full.apply(&[delta(0, vec![Change::Load { skill: Box::new(pinned), model: None }])], &one);
    let refused = full.apply(&[delta(1, vec![load("a")])], &one).remove(0).1.refused;
    assert!(matches!(refused, Some(Refusal::LimitReached { limit: 1, .. })));
}

#[test]
fn a_touch_saves_a_skill_from_eviction() {
    let caps = caps(2, WhenFull::Evict);
    let mut state = SessionState::default();
    state.apply(&[delta(0, vec![load("a")]), delta(1, vec![load("b")])], &caps);
    state.apply(&[delta(2, vec![Change::Touch { skill: "a".to_owned() }])], &caps);
    state.apply(&[delta(3, vec![load("c")])], &caps);
    assert_eq!(state.loaded_names(), ["a", "c"]);
    assert_eq!(state.touch_order(), ["a", "c"]);
}

#[test]
fn a_turn_that_clears_takes_the_model_along() {
    let mut state = SessionState::default();
    let skill = Box::new(LoadedSkill::new("a", Digest::of(b"a")));
    let change = Change::Load { skill, model: Some("opus".to_owned()) };
    state.apply(&[delta(0, vec![change])], &Caps::default());
    assert_eq!(state.model.as_ref().map(|model| model.model.as_str()), Some("opus"));
    let begin = |reset| delta(1, vec![Change::BeginTurn { reset }]);
    let mut kept = state.clone();
    kept.apply(&[begin(Reset::Keep)], &Caps::default());
    assert_eq!((kept.turn, kept.loaded_names()), (1, vec!["a"]));
    state.apply(&[begin(Reset::Clear)], &Caps::default());
    assert_eq!((state.turn, state.loaded.len(), state.model), (1, 0, None));
}

#[test]
fn an_unloaded_skill_takes_its_model_and_its_context_along() {
    let mut state = SessionState::default();
    let skill = Box::new(LoadedSkill::new("a", Digest::of(b"a")));
    let changes = vec![
        Change::Load { skill, model: Some("opus".to_owned()) },
        Change::SetContext { skill: "a".to_owned(), value: json!({"rows": 3}) },
    ];
    state.apply(&[delta(0, changes)], &Caps::default());
    assert_eq!(state.context["a"], json!({"rows": 3}));
    state.apply(&[delta(1, vec![Change::Unload { skill: "a".to_owned() }])], &Caps::default());
    assert!(state.model.is_none() && state.context.is_empty() && state.loaded.is_empty());
}

#[test]
fn the_ids_of_the_last_calls_are_remembered_up_to_the_limit() {
    let mut state = SessionState::default();
    for at in 0..=REMEMBERED_CALLS {
        state.apply(&[delta(at, vec![])], &Caps::default());
    }
    assert!(!state.has_call("call-0"), "the oldest one is forgotten");
    assert!(state.has_call("call-1") && state.has_call(&format!("call-{REMEMBERED_CALLS}")));
    // A step with more calls than the limit is remembered as a whole.
    let many: Vec<StateDelta> =
        (1000..1000 + 2 * REMEMBERED_CALLS).map(|at| delta(at, vec![])).collect();
    state.apply(&many, &Caps::default());
    assert!(many.iter().all(|delta| state.has_call(&delta.call_id)));
}

#[test]
fn docs_are_added_replaced_and_cleared() {
    let docs = |paths: &[&str]| {
        let mut docs = DocSelection::default();
        docs.docs = paths
            .iter()
            .map(|path| SelectedDoc::new(*path, Some(Digest::of(path.as_bytes()))))
            .collect();
        docs
    };
    let select = |index, mode, paths: &[&str]| {
        let change = Change::SelectDocs { skill: "a".to_owned(), mode, docs: docs(paths) };
        delta(index, vec![change])
    };
    let caps = Caps::default();
    let mut state = SessionState::default();
    state.apply(&[delta(0, vec![load("a")])], &caps);
    let paths = |state: &SessionState| -> Vec<String> {
        state.loaded("a").unwrap().docs.paths().into_iter().map(str::to_owned).collect()
    };
    state.apply(&[select(1, DocMode::Add, &["z.md", "x.md"])], &caps);
    state.apply(&[select(2, DocMode::Add, &["y.md", "z.md"])], &caps);
    assert_eq!(paths(&state), ["z.md", "x.md", "y.md"], "the order of selection, no duplicates");
    // A doc stays in the result that gave it.
    let call = |state: &SessionState, path: &str| {
        state.loaded("a").unwrap().docs.get(path).unwrap().call.clone().unwrap()
    };
    assert_eq!((call(&state, "z.md"), call(&state, "y.md")), ("call-1".into(), "call-2".into()));
    state.apply(&[select(3, DocMode::Replace, &["y.md"])], &caps);
    assert_eq!((paths(&state), call(&state, "y.md")), (vec!["y.md".to_owned()], "call-2".into()));
    state.apply(&[select(4, DocMode::Clear, &[])], &caps);
    assert!(paths(&state).is_empty());
}
