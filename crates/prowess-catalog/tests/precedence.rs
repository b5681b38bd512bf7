//! Who hides whom (S02, 2 and 3).

mod support;

use prowess_catalog::{
    Catalog, CatalogBuilder, CatalogSkill, DirectorySource, LookupError, MemorySource, Precedence,
    Snapshot, SourceInfo, Trust,
};
use support::{codes, names, text};

fn source(label: &str, skills: &[&str], trust: Trust) -> MemorySource {
    let info = SourceInfo::new(label, format!("memory:{label}")).with_trust(trust);
    skills.iter().fold(MemorySource::new(label).with_info(info), |source, name| {
        source.with_skill(*name, text(name).replace("A test", label))
    })
}

fn trusted(label: &str, skills: &[&str]) -> MemorySource {
    source(label, skills, Trust::Trusted)
}

async fn merged(precedence: Precedence, sources: Vec<MemorySource>) -> Snapshot {
    let builder = Catalog::builder().precedence(precedence);
    sources.into_iter().fold(builder, CatalogBuilder::source).build().refresh().await
}

fn from<'a>(snapshot: &'a Snapshot, name: &str) -> &'a str {
    snapshot.get(name).map_or("refused", CatalogSkill::source_id)
}

#[tokio::test]
async fn table_of_precedence() {
    use Precedence::{FirstWins, LastWins, RefuseAmbiguous};
    use Trust::{Trusted, Untrusted};
    for (precedence, a, b, winner) in [
        (LastWins, Trusted, Trusted, "b"),
        (LastWins, Untrusted, Trusted, "b"),
        (LastWins, Trusted, Untrusted, "a"),
        (LastWins, Untrusted, Untrusted, "b"),
        (FirstWins, Trusted, Trusted, "a"),
        (FirstWins, Untrusted, Trusted, "b"),
        (FirstWins, Trusted, Untrusted, "a"),
        (FirstWins, Untrusted, Untrusted, "a"),
        (RefuseAmbiguous, Trusted, Trusted, "refused"),
        (RefuseAmbiguous, Untrusted, Trusted, "b"),
        (RefuseAmbiguous, Trusted, Untrusted, "a"),
        (RefuseAmbiguous, Untrusted, Untrusted, "refused"),
    ] {
        let sources = vec![source("a", &["x"], a), source("b", &["x"], b)];
        let snapshot = merged(precedence, sources).await;
        let case = format!("{precedence:?} {a:?} {b:?}");
        assert_eq!(from(&snapshot, "x"), winner, "{case}");
        // Whoever is hidden is reported and can be reached.
        let expected: &[&str] = match winner {
            "refused" => &["ambiguous-name", "ambiguous-name"],
            _ => &["shadowed-skill"],
        };
        assert_eq!(codes(&snapshot), expected, "{case}");
        assert_eq!((from(&snapshot, "x@a"), from(&snapshot, "x@b")), ("a", "b"), "{case}");
    }
}

#[tokio::test]
async fn an_ambiguous_name_names_its_candidates() {
    let sources = vec![trusted("a", &["x", "y"]), trusted("b", &["x"])];
    let snapshot = merged(Precedence::RefuseAmbiguous, sources).await;
    assert_eq!(names(&snapshot), ["y"]);
    let error = snapshot.get("x").unwrap_err();
    let LookupError::Ambiguous { candidates, .. } = &error else { panic!("{error}") };
    assert_eq!(candidates, &["x@a", "x@b"]);
}

#[tokio::test]
async fn unknown_names_suggest_the_nearest() {
    let snapshot = merged(Precedence::LastWins, vec![trusted("a", &["deploy-service"])]).await;
    let error = snapshot.get("deploy-servce").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no skill 'deploy-servce'; did you mean 'deploy-service'?"
    );
    assert_eq!(snapshot.get("x@nowhere").unwrap_err().to_string(), "there is no skill 'x@nowhere'");
}

#[tokio::test]
async fn names_that_differ_in_case_or_form_collide() {
    let sources = vec![
        trusted("own", &["deploy", "caf\u{e9}"]),
        source("net", &["Deploy", "cafe\u{301}", "ｄｅｐｌｏｙ"], Trust::Untrusted),
    ];
    let snapshot = merged(Precedence::LastWins, sources).await;
    // The skill of the untrusted source is not offered beside the one that it resembles.
    assert_eq!(names(&snapshot), ["café", "deploy"]);
    assert!(snapshot.skills().iter().all(|skill| skill.source_id() == "own"));
    let hidden = codes(&snapshot).into_iter().filter(|code| *code == "shadowed-skill").count();
    assert_eq!(hidden, 3);
}

#[tokio::test]
async fn every_hidden_skill_can_be_reached_by_the_name_that_is_told() {
    let twice = |label: &str, folders: &[&str]| {
        folders.iter().fold(MemorySource::new(label), |source, folder| {
            source.with_skill(*folder, text("same").replace("A test", &format!("{label}/{folder}")))
        })
    };
    let sources = || vec![twice("a", &["x", "y", "a@b"]), twice("b", &["x"])];
    for precedence in [Precedence::LastWins, Precedence::FirstWins, Precedence::RefuseAmbiguous] {
        let snapshot = merged(precedence, sources()).await;
        let everyone = snapshot.skills().iter().chain(snapshot.ambiguous());
        let everyone: Vec<&CatalogSkill> =
            everyone.flat_map(|skill| std::iter::once(skill).chain(skill.shadows())).collect();
        assert_eq!(everyone.len(), 4);
        for skill in everyone {
            let name = skill.qualified_name();
            let reached = snapshot.get(&name).unwrap();
            assert_eq!(reached.found().folder, skill.found().folder, "{name}");
            assert_eq!(reached.source_id(), skill.source_id(), "{name}");
            let told = snapshot.diagnostics().iter().any(|found| {
                let help = found.help.as_deref().unwrap_or_default();
                help.contains(&format!("'{name}'")) || found.message.contains(&name)
            });
            assert!(told || snapshot.get("same").is_ok(), "{name} is told nowhere");
        }
    }
}

#[tokio::test]
async fn the_same_file_by_two_ways_is_one_skill() {
    let tree = support::Tree::new();
    tree.skill("real/skills/foo");
    tree.link(tree.at("real/skills/foo"), "linked/skills/foo");
    for precedence in [Precedence::LastWins, Precedence::FirstWins, Precedence::RefuseAmbiguous] {
        let catalog = Catalog::builder()
            .precedence(precedence)
            .source(DirectorySource::new(tree.at("real/skills")))
            .source(DirectorySource::new(tree.at("linked/skills")))
            .source(DirectorySource::new(tree.at("real/skills")))
            .build();
        let snapshot = catalog.refresh().await;
        assert_eq!((names(&snapshot), codes(&snapshot)), (vec!["foo"], vec![]), "{precedence:?}");
    }
}

#[tokio::test]
async fn ids_of_sources_are_unique_whatever_they_are_called() {
    let sources = ["A", "a", "a-2", "a"].map(|label| trusted(label, &["k"])).to_vec();
    let snapshot = merged(Precedence::LastWins, sources).await;
    let ids: Vec<&str> = snapshot.sources().iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["a", "a-2", "a-2-2", "a-3"]);
    for id in ids {
        assert_eq!(from(&snapshot, &format!("k@{id}")), id);
    }
}

#[tokio::test]
async fn a_name_in_another_case_leads_to_the_skill_that_counts() {
    let sources = vec![trusted("a", &["deploy"]), trusted("b", &["Deploy"])];
    let snapshot = merged(Precedence::LastWins, sources).await;
    assert_eq!(from(&snapshot, "deploy"), "b");
    assert_eq!(from(&snapshot, "Deploy"), "b");
    assert_eq!(from(&snapshot, "deploy@a"), "a");
}

#[tokio::test]
async fn who_has_no_visible_rival_is_not_ambiguous() {
    let sources = vec![trusted("a", &["n"]), trusted("b", &["n"])];
    let snapshot = merged(Precedence::RefuseAmbiguous, sources).await;
    let visible = snapshot.visible(|skill| skill.source_id() == "a");
    assert_eq!(from(&visible, "n"), "a");
    assert!(visible.get("n@b").is_err());
}

#[tokio::test]
async fn sources_of_one_label_are_told_apart() {
    let sources = vec![trusted("Claude", &["x"]), trusted("Claude", &["x"])];
    let snapshot = merged(Precedence::LastWins, sources).await;
    assert_eq!(from(&snapshot, "x"), "claude-2");
    assert_eq!(from(&snapshot, "x@claude"), "claude");
    assert_eq!(snapshot.get("x").unwrap().shadows().len(), 1);
}

#[tokio::test]
async fn a_hidden_skill_answers_like_an_unknown_one() {
    let sources = vec![trusted("a", &["x", "secret"]), trusted("b", &["secret"])];
    let snapshot = merged(Precedence::LastWins, sources).await;
    let visible = snapshot.visible(|skill| skill.name() != "secret");
    assert_eq!(names(&visible), ["x"]);
    for name in ["secret", "secret@a", "secret@b"] {
        let error = visible.get(name).unwrap_err();
        assert!(matches!(error, LookupError::Unknown { .. }), "{name}");
        let unknown = visible.get(&name.replace("secret", "absent")).unwrap_err();
        assert_eq!(error.to_string().replace("secret", "absent"), unknown.to_string());
    }
    assert!(visible.diagnostics().is_empty());
    // One who may see one of the two sees nothing of the other.
    let partly = snapshot.visible(|skill| skill.source_id() != "a");
    assert!(partly.get("secret").unwrap().shadows().is_empty());
}

#[tokio::test]
async fn a_skill_that_was_hidden_by_an_invisible_one_comes_out() {
    let sources = vec![trusted("a", &["x"]), trusted("b", &["x"])];
    let snapshot = merged(Precedence::LastWins, sources).await;
    let visible = snapshot.visible(|skill| skill.source_id() != "b");
    assert_eq!(from(&visible, "x"), "a");
}

#[tokio::test]
async fn the_remedy_depends_on_trust() {
    let help = async |a: Trust, b: Trust| {
        let sources = vec![source("a", &["x"], a), source("b", &["x"], b)];
        let snapshot = merged(Precedence::LastWins, sources).await;
        snapshot.diagnostics()[0].help.clone().unwrap()
    };
    let untrusted = "an untrusted source never hides a trusted one; rename the skill";
    assert!(help(Trust::Trusted, Trust::Untrusted).await.starts_with(untrusted));
    assert!(help(Trust::Untrusted, Trust::Trusted).await.starts_with(untrusted));
    let equal = "rename one of the two, or remove it";
    assert!(help(Trust::Trusted, Trust::Trusted).await.starts_with(equal));
}

#[tokio::test]
async fn capitals_alone_make_no_other_name() {
    let sources = vec![trusted("a", &["deploy"]), trusted("b", &["DEPLOY"])];
    let snapshot = merged(Precedence::LastWins, sources).await;
    assert_eq!(names(&snapshot), ["DEPLOY"]);
    assert_eq!(from(&snapshot, "deploy"), "b");
}
