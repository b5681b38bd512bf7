//! Imports as forms, and how much one of them may hold.

mod support;

use prowess_catalog::{ContentFile, ResourcePath, SkillContents, pack};
use prowess_store::Role;
use serde_json::{Value, json};
use support::{Answer, Running, read_answer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const IMPORT: &str = "/api/v1/skills/import";
const KIND: &str = "multipart/form-data; boundary=x";

fn text(id: &str) -> String {
    format!("---\nname: {id}\ndescription: Does something for tests.\n---\nDo it.\n")
}

fn part(name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n");
    [head.as_bytes(), content, b"\r\n"].concat()
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), b"--x--\r\n".to_vec()].concat()
}

async fn import(server: &Running, query: &str, body: &[u8]) -> Answer {
    server.send_bytes(&format!("{IMPORT}{query}"), KIND, body).await
}

/// An archive with a skill whose files have so many bytes.
fn archive(id: &str, bytes: usize) -> Vec<u8> {
    let text = text(id).into_bytes();
    let rest = vec![0; bytes - text.len()];
    let file =
        |path: &str, bytes| ContentFile::new(ResourcePath::parse(path).unwrap(), false, bytes);
    pack(&SkillContents::of(vec![file("SKILL.md", text), file("zeros", rest)]), id).unwrap()
}

#[tokio::test]
async fn all_archives_of_a_form_have_one_room_to_its_last_byte() {
    // Eight times this may be unpacked.
    let server = Running::with(|it| it.max_body_bytes = 100_000).await;
    let both =
        |bytes: usize| form(&[part("a", &archive("a", 400_000)), part("b", &archive("b", bytes))]);
    let one = form(&[part("b", &archive("b", 400_001))]);
    assert_eq!(import(&server, "?dry_run=true", &one).await.status, 200, "the control");
    let over = import(&server, "", &both(400_001)).await;
    assert_eq!((over.status, over.code().as_str()), (422, "invalid_archive"));
    assert!(over.text().contains("total_bytes"), "{}", over.text());
    assert_eq!(server.get("/api/v1/skills").await.json()["total"], 0);
    let fits = import(&server, "", &both(400_000)).await;
    assert_eq!(fits.status, 201, "{}", fits.text());
}

#[tokio::test]
async fn a_form_has_as_many_parts_and_skills_as_may_be_and_not_one_more() {
    let server = Running::start().await;
    let summaries = |count| vec![part("change_summary", b"why"); count];
    let with = |count| form(&[summaries(count), vec![part("f", text("a").as_bytes())]].concat());
    assert_eq!(import(&server, "?dry_run=true", &with(999)).await.status, 200);
    let over = import(&server, "?dry_run=true", &with(1000)).await;
    assert_eq!((over.status, over.code().as_str()), (422, "too_many_parts"));
    // Of skills there may be more in one part.
    let one = |number: usize| part("f", text(&format!("s{number}")).as_bytes());
    let most: Vec<_> = (0..1000).map(one).collect();
    let all = import(&server, "?dry_run=true", &form(&most)).await;
    assert_eq!(
        (all.status, &all.json()["message"]),
        (200, &json!("1000 of 1000 would be imported"))
    );
    let mut more = most[1..].to_vec();
    let file = |path: String, id: &str| {
        ContentFile::new(ResourcePath::parse(&path).unwrap(), false, text(id))
    };
    let two = vec![file("x/SKILL.md".into(), "x"), file("y/SKILL.md".into(), "y")];
    more.push(part("f", &pack(&SkillContents::of(two), "both").unwrap()));
    let over = import(&server, "?dry_run=true", &form(&more)).await;
    assert_eq!((over.status, over.code().as_str()), (422, "too_many_skills"), "{}", over.text());
}

#[tokio::test]
async fn a_form_that_is_too_large_or_too_slow_is_told_so_as_all_others_are() {
    let server = Running::with(|it| (it.max_body_bytes, it.body_seconds) = (1000, 1)).await;
    let head = format!(
        "POST {IMPORT} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {KIND}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let body = form(&[part("f", &[b'-'; 1500])]);
    let chunk = format!("{:x}\r\n{}\r\n0\r\n\r\n", body.len(), String::from_utf8(body).unwrap());
    let large = server.raw(format!("{head}{chunk}").as_bytes()).await;
    assert_eq!((large.status, large.code().as_str()), (413, "body_too_large"));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(format!("{head}3\r\n--x\r\n").as_bytes()).await.unwrap();
    let slow = read_answer(&mut stream).await;
    assert_eq!((slow.status, slow.code().as_str()), (408, "slow_body"));
}

#[tokio::test]
async fn how_to_import_is_said_in_the_address_in_json_or_in_the_form() {
    let server = Running::start().await;
    let status = |answer: &Answer| answer.json()["skills"][0]["status"].clone();
    let content = text("a");
    let dry = server.post(IMPORT, json!({"content": content, "dry_run": true})).await;
    assert_eq!((dry.status, &dry.json()["dry_run"]), (200, &json!(true)));
    let field = |name: &str, value: &str| {
        form(&[part(name, value.as_bytes()), part("f", text("a").as_bytes())])
    };
    let dry = import(&server, "", &field("dry_run", "True")).await;
    assert_eq!((dry.status, &dry.json()["dry_run"]), (200, &json!(true)), "{}", dry.text());
    let dry = import(&server, "?dry_run=TRUE", &field("dry_run", "false")).await;
    assert_eq!(dry.json()["dry_run"], true, "the address counts");
    assert_eq!(server.get("/api/v1/skills/a").await.status, 404);
    let waiting = server.post(IMPORT, json!({"content": content, "activate": false})).await;
    assert_eq!(waiting.status, 201, "{}", waiting.text());
    assert_eq!(server.get("/api/v1/skills/a").await.json()["active_version"], Value::Null);
    assert_eq!(import(&server, "", &field("conflict", "error")).await.code(), "skill_exists");
    assert_eq!(status(&import(&server, "", &field("conflict", "skip")).await), "skipped");
    for policy in ["version", "new_version", "overwrite", "replace"] {
        let body = json!({"content": content, "conflict": policy, "dry_run": true});
        assert_eq!(status(&server.post(IMPORT, body).await), "updated", "{policy}");
        let path = format!("{IMPORT}?dry_run=true&conflict={policy}");
        assert_eq!(status(&server.post(&path, json!({"content": content})).await), "updated");
    }
    let wrong = import(&server, "", &field("conflict", "perhaps")).await;
    assert_eq!(wrong.status, 422);
    assert_eq!(wrong.json()["details"][0]["loc"], json!(["body", "conflict"]));
    // What an editor may not say in the address they may not say elsewhere.
    let editor = server.key("eve", Role::Editor).await;
    let header = [("x-api-key", editor.as_str())];
    let body = Some(json!({"content": content, "conflict": "version", "activate": true}));
    assert_eq!(server.send("POST", IMPORT, &header, body).await.code(), "forbidden");
}

#[tokio::test]
async fn an_import_sees_what_waits_and_what_others_have_just_made() {
    let server = Running::start().await;
    let waiting = json!({"content": text("a"), "activate": false});
    assert_eq!(server.post(IMPORT, waiting).await.status, 201);
    // Another process, which this one has not heard of.
    let other = support::parts(&server.folder).1;
    let contents = SkillContents::of(vec![ContentFile::new(
        ResourcePath::parse("SKILL.md").unwrap(),
        false,
        text("b"),
    )]);
    let reading = prowess_store::SkillReading::of(&contents).unwrap();
    let new = prowess_store::NewVersion::new(
        reading.id,
        contents.into(),
        reading.about,
        prowess_store::Actor::local(),
    );
    prowess_store::VersionStore::append(&other.versions(), new).await.unwrap();
    for (id, status) in [("b", "unchanged"), ("a", "updated")] {
        let send = async |query: &str| {
            server.post(&format!("{IMPORT}{query}"), json!({"content": text(id)})).await
        };
        let planned = send("?conflict=version&dry_run=true").await;
        assert_eq!(planned.json()["skills"][0]["status"], status, "{id}");
        for query in ["?conflict=skip&dry_run=true", "?conflict=skip"] {
            let skipped = send(query).await;
            assert_eq!(skipped.status, 200, "{id}: {}", skipped.text());
            assert_eq!(skipped.json()["skills"][0]["status"], "skipped", "{id}");
        }
        for query in ["?dry_run=true", ""] {
            assert_eq!(send(query).await.code(), "skill_exists", "{id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_skips_what_is_there_never_meets_a_conflict() {
    let server = std::sync::Arc::new(Running::start().await);
    for round in 0..5 {
        let mut imports = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let server = std::sync::Arc::clone(&server);
            let (one, two) = (text(&format!("one-{round}")), text(&format!("two-{round}")));
            let both = form(&[part("f", one.as_bytes()), part("f", two.as_bytes())]);
            imports.spawn(async move { import(&server, "?conflict=skip", &both).await.status });
        }
        let mut statuses = imports.join_all().await;
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    }
}
