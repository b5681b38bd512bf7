//! Indexes of skills at well-known places (S08, 3).

#[path = "support/packed.rs"]
mod packed;
#[path = "support/server.rs"]
mod server;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use packed::{tgz_of, zip_of};
use prowess_catalog::{
    Catalog, Location, Reach, RemoteCache, RemoteLimits, RemoteSource, ResourcePath, Snapshot,
    Trust,
};
use prowess_format::Digest;
use serde_json::{Value, json};
use server::{Answer, Server};
use support::{Tree, names};

const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
const INDEX: &str = "/.well-known/agent-skills/index.json";
const OLD_INDEX: &str = "/.well-known/skills/index.json";

/// A site: what is at which path, and what was asked for.
#[derive(Clone, Default)]
struct Site {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn put(&self, path: &str, content: impl Into<Vec<u8>>) -> Digest {
        let content = content.into();
        let digest = Digest::of(&content);
        self.files.lock().unwrap().insert(path.to_owned(), content);
        digest
    }

    fn remove(&self, path: &str) {
        self.files.lock().unwrap().remove(path);
    }

    fn index(&self, skills: &Value) {
        self.put(INDEX, json!({ "$schema": SCHEMA, "skills": skills }).to_string());
    }

    fn serve(&self) -> Server {
        let site = self.clone();
        Server::start(move |request| {
            site.asked.lock().unwrap().push(request.path.clone());
            match site.files.lock().unwrap().get(&request.path) {
                Some(content) => {
                    let tag = format!("\"{}\"", Digest::of(content).hex());
                    match request.headers.get("if-none-match") == Some(&tag) {
                        true => Answer::status(304),
                        false => Answer::ok(content.clone()).with("ETag", &tag),
                    }
                }
                None => Answer::status(404),
            }
        })
    }

    /// What was asked for since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn entry(name: &str, kind: &str, url: &str, digest: Digest) -> Value {
    json!({ "name": name, "type": kind, "description": "D", "url": url, "digest": digest })
}

fn source(tree: &Tree, location: &str) -> RemoteSource {
    RemoteSource::new(Location::parse(location).unwrap(), RemoteCache::new(tree.at("cache")))
        .with_reach(Reach::Any)
        .with_limits(RemoteLimits::default().with_fresh_seconds(0).with_retry_seconds(0))
}

async fn listed(source: RemoteSource) -> Snapshot {
    Catalog::builder().source(source).build().refresh().await
}

fn problems(snapshot: &Snapshot) -> Vec<String> {
    let found = snapshot.diagnostics().iter();
    found
        .filter(|found| found.code.as_str() != "source-not-encrypted")
        .map(|found| format!("{}: {}", found.code, found.message))
        .collect()
}

#[tokio::test]
async fn an_index_is_a_source() {
    let (tree, site) = (Tree::new(), Site::default());
    let text = support::text("text");
    let (zipped, packed) = (support::text("zipped"), support::text("packed"));
    let one = site.put("/skills/text.md", text.clone());
    let two = site.put(
        "/.well-known/agent-skills/zipped.zip",
        zip_of(&[("SKILL.md", zipped.as_str()), ("scripts/run.sh", "run")]),
    );
    let three = site.put("/packed.tar.gz", tgz_of(&[("SKILL.md", packed.as_str())]));
    site.index(&json!([
        entry("text", "skill-md", "/skills/text.md", one),
        entry("zipped", "archive", "zipped.zip", two),
        entry("packed", "archive", "../../packed.tar.gz", three),
    ]));
    let server = site.serve();
    for location in ["", ".well-known/agent-skills", ".well-known/agent-skills/index.json"] {
        let snapshot = listed(source(&tree, &server.url(location))).await;
        assert_eq!(names(&snapshot), ["packed", "text", "zipped"], "{:?}", problems(&snapshot));
        assert_eq!(problems(&snapshot), Vec::<String>::new());
        let skill = snapshot.get("zipped").unwrap();
        assert_eq!(skill.trust(), Trust::Untrusted);
        let run = ResourcePath::parse("scripts/run.sh").unwrap();
        assert_eq!(skill.read_resource(&run).await.unwrap(), b"run");
    }
    // Not changed: one question.
    site.asked();
    listed(source(&tree, &server.url(""))).await;
    assert_eq!(site.asked(), [INDEX]);
    // One skill has changed: one more.
    let changed = text.replace("Body", "New body");
    let one = site.put("/skills/text.md", changed.clone());
    site.index(&json!([
        entry("text", "skill-md", "/skills/text.md", one),
        entry("zipped", "archive", "zipped.zip", two),
    ]));
    let snapshot = listed(source(&tree, &server.url(""))).await;
    assert_eq!(site.asked(), [INDEX, "/skills/text.md"]);
    assert_eq!(names(&snapshot), ["text", "zipped"]);
    assert_eq!(snapshot.get("text").unwrap().read().await.unwrap(), changed.as_bytes());
    assert_eq!(fs::read_dir(tree.at("cache/trees")).unwrap().count(), 1);
    // What was copied is what was fetched.
    let run = ResourcePath::parse("scripts/run.sh").unwrap();
    assert_eq!(snapshot.get("zipped").unwrap().read_resource(&run).await.unwrap(), b"run");
}

#[tokio::test]
async fn digests_are_verified_and_one_bad_entry_hurts_no_other() {
    let (tree, site) = (Tree::new(), Site::default());
    let good = site.put("/good.md", support::text("good"));
    let wrong = Digest::of(b"something else");
    site.put("/wrong.md", support::text("wrong"));
    let slip = site.put("/slip.zip", zip_of(&[("../SKILL.md", "x")]));
    let deep = site.put("/deep.zip", zip_of(&[("deep/SKILL.md", &support::text("deep"))]));
    site.index(&json!([
        entry("good", "skill-md", "/good.md", good),
        entry("wrong", "skill-md", "/wrong.md", wrong),
        entry("slip", "archive", "/slip.zip", slip),
        entry("deep", "archive", "/deep.zip", deep),
        entry("gone", "skill-md", "/gone.md", good),
        entry("good", "skill-md", "/good.md", good),
        entry("../up", "skill-md", "/good.md", good),
        entry("a/b", "skill-md", "/good.md", good),
        entry("", "skill-md", "/good.md", good),
        entry("wasm", "wasm-module", "/good.md", good),
        entry("scheme", "skill-md", "file:///etc/passwd", good),
        entry("user", "skill-md", "http://me:pw@127.0.0.1/x", good),
        entry("far", "skill-md", "http://127.0.0.9/x.md", good),
        entry("rar", "archive", "/x.rar", good),
        json!({ "name": "bare" }),
        json!({ "name": "short", "type": "skill-md", "url": "/good.md", "digest": "sha256:12" }),
        json!({ "name": "md5", "type": "skill-md", "url": "/good.md", "digest": "md5:12" }),
        json!("text"),
    ]));
    let server = site.serve();
    let snapshot = listed(source(&tree, &server.url(""))).await;
    assert_eq!(names(&snapshot), ["good"]);
    let problems = problems(&snapshot);
    assert_eq!(problems.len(), 17, "{problems:#?}");
    for word in [
        "'wrong' is left out: the content is not the expected one",
        "'slip' is left out: the entry '../SKILL.md'",
        "no SKILL.md at its root",
        "'gone' is left out",
        "there twice",
        "its type 'wasm-module' is not known",
        "'file' URLs are not fetched",
        "not in `index_origins`",
        "neither .zip nor .tar.gz",
        "has no url",
    ] {
        assert!(problems.iter().any(|problem| problem.contains(word)), "{word}: {problems:#?}");
    }
    // The same problems without asking, from what was fetched.
    let fresh = source(&tree, &server.url("")).with_limits(RemoteLimits::default());
    site.asked();
    assert_eq!(problems_of(&listed(fresh).await), problems);
    assert!(site.asked().is_empty());
}

fn problems_of(snapshot: &Snapshot) -> Vec<String> {
    problems(snapshot)
}

#[tokio::test]
async fn a_skill_that_cannot_be_had_stays_what_it_was() {
    let (tree, site) = (Tree::new(), Site::default());
    let old = site.put("/a.md", support::text("a"));
    site.index(&json!([entry("a", "skill-md", "/a.md", old)]));
    let server = site.serve();
    assert_eq!(names(&listed(source(&tree, &server.url(""))).await), ["a"]);
    site.index(&json!([entry("a", "skill-md", "/a.md", Digest::of(b"new"))]));
    let snapshot = listed(source(&tree, &server.url(""))).await;
    assert_eq!(snapshot.get("a").unwrap().read().await.unwrap(), support::text("a").as_bytes());
    assert!(problems(&snapshot)[0].contains("'a' stays as it was"), "{:?}", problems(&snapshot));
    // An index that is broken as a whole leaves everything as it was.
    for broken in ["", "[]", "{}", "<html>", r#"{"$schema": "https://x/9", "skills": []}"#] {
        site.put(INDEX, broken);
        let snapshot = listed(source(&tree, &server.url(""))).await;
        assert_eq!(names(&snapshot), ["a"], "{broken}");
        assert!(problems(&snapshot)[0].starts_with("source-offline"), "{:?}", problems(&snapshot));
    }
}

#[tokio::test]
async fn another_origin_must_be_named() {
    let (tree, site, cdn) = (Tree::new(), Site::default(), Site::default());
    let digest = cdn.put("/far.md", support::text("far"));
    let cdn_server = cdn.serve();
    site.index(&json!([entry("far", "skill-md", &cdn_server.url("far.md"), digest)]));
    let server = site.serve();
    let snapshot = listed(source(&tree, &server.url(""))).await;
    assert_eq!((names(&snapshot).len(), cdn_server.requests()), (0, 0));
    let origin = cdn_server.url("").trim_end_matches('/').to_owned();
    let snapshot = listed(source(&tree, &server.url("")).with_origins([origin])).await;
    assert_eq!(names(&snapshot), ["far"]);
}

#[tokio::test]
async fn the_older_form_is_a_source_too() {
    let (tree, site) = (Tree::new(), Site::default());
    site.put("/.well-known/skills/old/SKILL.md", support::text("old"));
    site.put("/.well-known/skills/old/references/a%20b%3F.md", "A");
    let digest = site.put("/.well-known/skills/sure/SKILL.md", support::text("sure"));
    site.put("/.well-known/skills/unsure/SKILL.md", support::text("unsure"));
    site.put(
        OLD_INDEX,
        json!({ "skills": [
            { "name": "old", "description": "D", "files": ["SKILL.md", "references/a b?.md"] },
            { "name": "sure", "files": [{ "path": "SKILL.md", "digest": digest }] },
            { "name": "unsure", "files": [{ "path": "SKILL.md", "digest": Digest::of(b"") }] },
            { "name": "up", "files": ["SKILL.md", "../../x"] },
            { "name": "none", "files": ["README.md"] },
        ] })
        .to_string(),
    );
    let server = site.serve();
    for location in ["", ".well-known/skills/index.json"] {
        site.asked();
        let snapshot = listed(source(&tree, &server.url(location))).await;
        assert_eq!(names(&snapshot), ["old", "sure"], "{:?}", problems(&snapshot));
        let problems = problems(&snapshot);
        assert_eq!(problems.len(), 4, "{problems:#?}");
        assert!(problems.iter().any(|problem| problem.contains("cannot be verified")));
        let doc = ResourcePath::parse("references/a b?.md").unwrap();
        assert_eq!(snapshot.get("old").unwrap().read_resource(&doc).await.unwrap(), b"A");
        assert!(!site.asked().iter().any(|path| path.contains("..")));
    }
    // What has no digests cannot be pinned: the index would be, and nothing else.
    let pin = Digest::of(&site.files.lock().unwrap()[OLD_INDEX]).hex();
    let location = format!("{}#sha256={pin}", server.url(".well-known/skills/index.json"));
    let snapshot = listed(source(&tree, &location)).await;
    assert!(names(&snapshot).is_empty());
    assert!(problems(&snapshot)[0].contains("no digests"), "{:?}", problems(&snapshot));
}

#[tokio::test]
async fn an_index_that_is_pinned_is_trusted_with_all_that_it_names() {
    let (tree, site) = (Tree::new(), Site::default());
    let digest = site.put("/a.md", support::text("a"));
    site.index(&json!([entry("a", "skill-md", "/a.md", digest)]));
    let pin = Digest::of(&site.files.lock().unwrap()[INDEX]).hex();
    let server = site.serve();
    let location = format!("{}#sha256={pin}", server.url(""));
    let snapshot = listed(source(&tree, &location)).await;
    assert_eq!(snapshot.get("a").unwrap().trust(), Trust::Trusted, "{:?}", problems(&snapshot));
    fs::remove_dir_all(tree.at("cache")).unwrap();
    site.index(&json!([]));
    let snapshot = listed(source(&tree, &location)).await;
    assert!(problems(&snapshot)[0].contains("digest_mismatch"), "{:?}", problems(&snapshot));
}

#[tokio::test]
async fn limits_hold_for_all_skills_together() {
    let (tree, site) = (Tree::new(), Site::default());
    let entries: Vec<Value> = ["a", "b", "c"]
        .map(|name| {
            let digest = site.put(&format!("/{name}.md"), support::text(name));
            entry(name, "skill-md", &format!("/{name}.md"), digest)
        })
        .to_vec();
    site.index(&json!(entries));
    let length = support::text("a").len() as u64;
    let index_length = site.files.lock().unwrap()[INDEX].len() as u64;
    let server = site.serve();
    let limits = || RemoteLimits::default().with_fresh_seconds(0).with_retry_seconds(0);
    for (limits, expected) in [
        (limits().with_index_skills(3), 3),
        (limits().with_index_skills(2), 2),
        (limits().with_total_bytes(3 * length), 3),
        (limits().with_total_bytes(3 * length - 1), 2),
        // A folder and a file each.
        (limits().with_entries(6), 3),
        (limits().with_entries(5), 2),
        (limits().with_index_bytes(index_length), 3),
        (limits().with_index_bytes(index_length - 1), 0),
    ] {
        let _ = fs::remove_dir_all(tree.at("cache"));
        let snapshot = listed(source(&tree, &server.url("")).with_limits(limits)).await;
        assert_eq!(names(&snapshot).len(), expected, "{limits:?} {:?}", problems(&snapshot));
        assert_eq!(problems(&snapshot).is_empty(), expected == 3);
    }
    site.remove(INDEX);
    fs::remove_dir_all(tree.at("cache")).unwrap();
    let snapshot = listed(source(&tree, &server.url(""))).await;
    assert!(problems(&snapshot)[0].contains("404"), "{:?}", problems(&snapshot));
}
