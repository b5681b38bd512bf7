//! Skills as files over HTTP: export, import, and nothing lost in between.

mod support;

use prowess_catalog::{ContentFile, ResourcePath, SkillContents, pack, read_archive};
use serde_json::{Value, json};
use support::{Answer, Running};

const IMPORT: &str = "/api/v1/skills/import";

const TEXT: &str = "---\n# A comment stays.\nname: tables\ndescription: Makes tables of things, for tests.\nversion: 2.0\nx-own: [1, two]\n---\nMake a table.\n";

async fn send(server: &Running, path: &str, kind: &str, body: &[u8]) -> Answer {
    server.send_bytes(path, kind, body).await
}

fn contents() -> SkillContents {
    let file = |path: &str, bytes: &[u8], executable| {
        ContentFile::new(ResourcePath::parse(path).unwrap(), executable, bytes)
    };
    SkillContents::of(vec![
        file("SKILL.md", TEXT.as_bytes(), false),
        file("scripts/make.sh", b"#!/bin/sh\necho hi\n", true),
        file("assets/logo.bin", &[0, 159, 146, 150, 255], false),
    ])
}

#[tokio::test]
async fn what_is_imported_is_exported_byte_for_byte() {
    let server = Running::start().await;
    let zip = pack(&contents(), "tables").unwrap();
    let report = send(&server, IMPORT, "application/zip", &zip).await;
    assert_eq!(report.status, 201, "{}", report.text());
    let report = report.json();
    assert_eq!(
        (&report["skill_id"], &report["skills"][0]["status"]),
        (&json!("tables"), &json!("created"))
    );
    let text = server.get("/api/v1/skills/tables/export").await.json();
    assert_eq!((&text["format"], &text["content"]), (&json!("skill.md"), &json!(TEXT)));
    let text = server.get("/api/v1/skills/tables/export?format=md").await;
    assert_eq!(
        (text.header("content-type"), text.text().as_str()),
        (Some("text/markdown; charset=utf-8"), TEXT)
    );
    for other in ["markdown", "skill.md"] {
        let same = server.get(&format!("/api/v1/skills/tables/export?format={other}")).await;
        assert_eq!(
            (same.header("content-type"), &same.body),
            (text.header("content-type"), &text.body)
        );
    }
    for (accept, kind) in [
        ("application/zip", "application/zip"),
        ("text/markdown", "text/markdown; charset=utf-8"),
        ("*/*", "application/json"),
    ] {
        let path = "/api/v1/skills/tables/export";
        let given = server.send("GET", path, &[("accept", accept)], None).await;
        assert_eq!(given.header("content-type"), Some(kind), "{accept}");
    }
    let zip = server.get("/api/v1/skills/tables/export?format=zip").await;
    assert_eq!(zip.header("content-type"), Some("application/zip"));
    let back = read_archive(&zip.body, &prowess_catalog::RemoteLimits::default()).unwrap();
    assert_eq!(back.skills[0].contents.tree_digest, contents().tree_digest);
    // And what is exported is imported as the same.
    let again =
        send(&server, &format!("{IMPORT}?conflict=version"), "application/zip", &zip.body).await;
    assert_eq!((again.status, &again.json()["skills"][0]["status"]), (200, &json!("unchanged")));
    let info = server.get("/api/v1/skills/tables").await.json();
    assert_eq!((&info["version"], &info["version_count"]), (&json!("2.0"), &json!(1)));
}

#[tokio::test]
async fn a_document_goes_through_files_and_back() {
    let server = Running::start().await;
    let document = json!({
        "id": "sql", "name": "SQL: \"Expert\"", "description": "Writes SQL: SELECT and # more.",
        "category": "database", "version": "2.0", "core_content": "---\nnot frontmatter\n---\nBody\n",
        "tool_configs": [{"name": "sql_query", "description": "d", "method": "run",
            "args": [{"name": "query", "type": "string", "description": "", "required": true, "default": null}],
            "requires_skill_loaded": false}],
    });
    assert_eq!(server.post("/api/v1/skills", document).await.status, 201);
    let before = server.get("/api/v1/skills/sql").await.json();
    let zip = server.get("/api/v1/skills/sql/export?format=zip").await.body;
    let other = Running::start().await;
    assert_eq!(send(&other, IMPORT, "application/zip", &zip).await.status, 201);
    let after = other.get("/api/v1/skills/sql").await.json();
    for key in [
        "id",
        "name",
        "description",
        "category",
        "version",
        "author",
        "core_content",
        "resources",
        "scripts",
        "tool_configs",
        "resource_configs",
        "tree_digest",
    ] {
        assert_eq!(before[key], after[key], "{key}");
    }
}

#[tokio::test]
async fn a_text_can_be_sent_in_every_way() {
    let server = Running::start().await;
    let dry =
        send(&server, &format!("{IMPORT}?dry_run=true"), "text/markdown", TEXT.as_bytes()).await;
    assert_eq!((dry.status, &dry.json()["skills"][0]["status"]), (200, &json!("created")));
    assert_eq!(server.get("/api/v1/skills/tables").await.status, 404);
    assert_eq!(send(&server, IMPORT, "text/markdown", TEXT.as_bytes()).await.status, 201);
    let twice = send(&server, IMPORT, "text/markdown", TEXT.as_bytes()).await;
    assert_eq!((twice.status, twice.code().as_str()), (409, "skill_exists"));
    let skipped =
        send(&server, &format!("{IMPORT}?conflict=skip"), "text/markdown", TEXT.as_bytes()).await;
    assert_eq!(skipped.json()["skills"][0]["status"], "skipped");
    let other = TEXT.replace("Make a table.", "Make two tables.");
    let body = json!({"content": other, "change_summary": "two"});
    let newer = server.post(&format!("{IMPORT}?conflict=version"), body).await;
    assert_eq!((newer.status, &newer.json()["skills"][0]["version_number"]), (201, &json!(2)));
    let form = format!(
        "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"SKILL.md\"\r\n\r\n{}\r\n--x--\r\n",
        TEXT.replace("tables", "forms")
    );
    let sent = send(&server, IMPORT, "multipart/form-data; boundary=x", form.as_bytes()).await;
    assert_eq!((sent.status, &sent.json()["skill_id"]), (201, &json!("forms")), "{}", sent.text());
}

#[tokio::test]
async fn what_is_no_skill_is_refused_with_lines() {
    let server = Running::start().await;
    let table: [(&str, &[u8], u16, &str); 6] = [
        ("text/markdown", b"no frontmatter", 422, "unreadable_skill"),
        ("text/markdown", b"---\nname: x\n---\nno description\n", 422, "unreadable_skill"),
        ("text/markdown", b"---\nname: ../../etc\ndescription: d d d d d d\n---\nx\n", 422, ""),
        ("application/zip", b"PK no archive", 422, "invalid_archive"),
        ("application/json", b"{}", 422, "invalid_request"),
        ("image/png", b"x", 415, "unsupported_media_type"),
    ];
    for (kind, body, status, code) in table {
        let refused = send(&server, IMPORT, kind, body).await;
        assert_eq!(refused.status, status, "{kind}: {}", refused.text());
        assert!(code.is_empty() || refused.code() == code, "{}", refused.text());
    }
    let text = b"---\nname: x\ndescription: [a, b\n---\nbody\n";
    let refused = send(&server, IMPORT, "text/markdown", text).await.json();
    let details = refused["details"].as_array().unwrap();
    assert!(details.iter().any(|it| it["line"].is_u64()), "{refused}");
    let url = server.post(IMPORT, json!({"url": "https://127.0.0.1/x.zip"})).await;
    assert_eq!((url.status, url.code().as_str()), (409, "no_imports"));
    assert_eq!(server.get("/api/v1/skills").await.json()["total"], Value::from(0));
}

#[tokio::test]
async fn an_import_takes_all_or_nothing_and_nothing_too_large() {
    let server = Running::start().await;
    let part = |text: &str| {
        format!(
            "--x\r\ncontent-disposition: form-data; name=\"f\"; filename=\"SKILL.md\"\r\n\r\n{text}\r\n"
        )
    };
    let twice = format!("{}{}--x--\r\n", part(TEXT), part(&TEXT.replace("Make a", "Make no")));
    let refused = send(&server, IMPORT, "multipart/form-data; boundary=x", twice.as_bytes()).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "sent_twice"));
    assert_eq!(send(&server, IMPORT, "text/markdown", TEXT.as_bytes()).await.status, 201);
    let other = part(&TEXT.replace("tables", "another"));
    let both = format!("{other}{}--x--\r\n", part(TEXT));
    let refused = send(&server, IMPORT, "multipart/form-data; boundary=x", both.as_bytes()).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "skill_exists"));
    assert_eq!(server.get("/api/v1/skills/another").await.status, 404);
    let path = ResourcePath::parse("assets/noise.bin").unwrap();
    // It compresses well, so that it is small on the way.
    let noise: Vec<u8> = (0..11_000_000_u32).map(|at| (at / 64 % 251) as u8).collect();
    let text = TEXT.replace("tables", "large").into_bytes();
    let skill = ResourcePath::parse("SKILL.md").unwrap();
    let files = vec![ContentFile::new(skill, false, text), ContentFile::new(path, false, noise)];
    let zip = pack(&SkillContents::of(files), "large").unwrap();
    assert!(zip.len() < 5_000_000, "{}", zip.len());
    let refused = send(&server, IMPORT, "application/zip", &zip).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "skill_too_large"));
}

/// A skill with files that its text names, and files that it does not.
fn with_files() -> Value {
    json!({
        "id": "a", "name": "A", "description": "Does something for tests.",
        "core_content": "Do it, and do it well.\n",
        "resources": [
            {"name": "examples", "content": "# Examples\n"},
            {"name": "logo.bin", "path": "assets/logo.bin", "content": "AJ+Slv8=", "encoding": "base64"},
        ],
        "scripts": [{"name": "scripts/run.sh", "path": "scripts/run.sh", "content": "ls\n", "executable": true}],
    })
}

#[tokio::test]
async fn a_text_that_was_exported_comes_back_without_losing_files() {
    let server = Running::start().await;
    assert_eq!(server.post("/api/v1/skills", with_files()).await.status, 201);
    let before = server.get("/api/v1/skills/a").await.json();
    let text = server.get("/api/v1/skills/a/export?format=md").await.text();
    let path = format!("{IMPORT}?conflict=version");
    let same = send(&server, &path, "text/markdown", text.as_bytes()).await;
    assert_eq!((same.status, &same.json()["skills"][0]["status"]), (200, &json!("unchanged")));
    // With another text, and in every way that a text is sent.
    let other = |word: &str| text.replace("do it well", word);
    let form = format!(
        "--b\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\n{}\r\n--b--\r\n",
        other("in a form")
    );
    let answers = [
        send(&server, &path, "text/markdown", other("as text").as_bytes()).await,
        server.post(&path, json!({"content": other("in json")})).await,
        send(&server, &path, "multipart/form-data; boundary=b", form.as_bytes()).await,
    ];
    for (answer, word) in answers.iter().zip(["as text", "in json", "in a form"]) {
        assert_eq!(answer.status, 201, "{}", answer.text());
        let skill = &answer.json()["skills"][0];
        let number = &skill["version_number"];
        let version = server.get(&format!("/api/v1/skills/a/versions/{number}")).await.json();
        assert!(version["core_content"].as_str().unwrap().contains(word), "{version}");
        assert_eq!(
            (&version["resources"], &version["scripts"]),
            (&before["resources"], &before["scripts"])
        );
        let kept =
            skill["findings"].as_array().unwrap().iter().find(|it| it["code"] == "kept-files");
        let message = kept.unwrap()["message"].as_str().unwrap();
        assert!(message.starts_with("only the text was sent: 3 other files stay"), "{message}");
    }
    // An archive has all files there are.
    let alone = SkillContents::of(vec![ContentFile::new(
        ResourcePath::parse("SKILL.md").unwrap(),
        false,
        text.as_bytes(),
    )]);
    let zip = pack(&alone, "a").unwrap();
    let report = send(&server, &path, "application/zip", &zip).await;
    assert_eq!(report.status, 201, "{}", report.text());
    let findings = report.json()["skills"][0]["findings"].clone();
    let missing = findings.as_array().unwrap().iter().find(|it| it["code"] == "missing-file");
    let message = missing.unwrap()["message"].as_str().unwrap();
    assert_eq!(
        message,
        "'examples' in resources is the file 'resources/examples', which the skill does not have"
    );
    assert_eq!(server.get("/api/v1/skills/a").await.json()["resources"][0]["content"], json!(null));
}

#[tokio::test]
async fn a_file_that_is_named_without_its_content_stays() {
    let server = Running::start().await;
    assert_eq!(server.post("/api/v1/skills", with_files()).await.status, 201);
    let before = server.get("/api/v1/skills/a").await.json();
    let mut body = before.clone();
    for list in ["resources", "scripts"] {
        for file in body[list].as_array_mut().unwrap() {
            file.as_object_mut().unwrap().remove("content");
        }
    }
    body["resources"][0]["description"] = json!("Some of them");
    let put = async |body: Value| {
        let answer = server.send("PUT", "/api/v1/skills/a", &[("if-match", "*")], Some(body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let mut expected = before["resources"].clone();
    expected[0]["description"] = json!("Some of them");
    let after = put(body).await;
    assert_eq!((&after["resources"], &after["scripts"]), (&expected, &before["scripts"]));
    // What is not named is gone, and what is nowhere is only named.
    let after = put(json!({"resources": [{"name": "examples"}, {"name": "nowhere"}]})).await;
    assert_eq!(after["resources"][0]["content"], "# Examples\n");
    assert_eq!(after["resources"][1]["content"], json!(null));
    assert_eq!(after["resources"].as_array().unwrap().len(), 2);
    assert_eq!(after["scripts"], before["scripts"]);
}

#[tokio::test]
async fn a_file_in_a_folder_is_had_by_its_path() {
    let server = Running::start().await;
    let mut document = with_files();
    let deep = json!({"name": "deep", "path": "docs/a/b c.md", "content": "Deep.\n"});
    document["resources"].as_array_mut().unwrap().push(deep);
    assert_eq!(server.post("/api/v1/skills", document).await.status, 201);
    let get = async |name: &str| server.get(&format!("/api/v1/skills/a/resources/{name}")).await;
    for name in [
        "deep",
        "docs/a/b%20c.md",
        "docs%2Fa%2Fb%20c.md",
        "docs/a%2Fb%20c.md",
        "docs/a/b%20c.md?version=1",
    ] {
        let given = get(name).await;
        assert_eq!((given.status, &given.json()["content"]), (200, &json!("Deep.\n")), "{name}");
    }
    let script = get("scripts/run.sh?session_id=s").await.json();
    assert_eq!(
        (&script["resource_name"], &script["path"]),
        (&json!("scripts/run.sh"), &json!("scripts/run.sh"))
    );
    for (name, code) in [
        ("docs/a/none.md", (404, "resource_not_found")),
        ("docs/../SKILL.md", (404, "resource_not_found")),
        ("docs/a/b%20c.md?versoin=1", (422, "invalid_request")),
        ("docs/a/b%20c.md?session_id=", (422, "invalid_request")),
    ] {
        let refused = get(name).await;
        assert_eq!((refused.status, refused.code().as_str()), code, "{name}");
    }
    let metrics = server.get("/api/v1/skills/a/metrics").await.json();
    assert_eq!(metrics["totals"]["details"], 6, "{metrics}");
}

#[tokio::test]
async fn a_text_goes_on_from_what_waits_if_it_waits_itself() {
    let server = Running::start().await;
    assert_eq!(server.post("/api/v1/skills", with_files()).await.status, 201);
    let change = json!({"resources": [{"name": "examples", "content": "What waits.\n"}]});
    let path = "/api/v1/skills/a?activate=false";
    assert_eq!(server.send("PUT", path, &[("if-match", "*")], Some(change)).await.status, 200);
    let text = server.get("/api/v1/skills/a/export?format=md&version=2").await.text();
    let text = text.replace("do it well", "do it better");
    for (activate, expected) in [("false", "What waits.\n"), ("true", "# Examples\n")] {
        let path = format!("{IMPORT}?conflict=version&activate={activate}");
        let report = send(&server, &path, "text/markdown", text.as_bytes()).await.json();
        let number = &report["skills"][0]["version_number"];
        let version = server.get(&format!("/api/v1/skills/a/versions/{number}")).await.json();
        assert_eq!(version["resources"][0]["content"], expected, "{report}");
    }
}
