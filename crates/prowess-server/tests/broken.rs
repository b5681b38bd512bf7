//! What a server does when its database is damaged or in use.

mod support;

use rusqlite::Connection;
use serde_json::json;
use support::Running;

/// The server's database, as another program sees it.
fn database(server: &Running) -> Connection {
    Connection::open(server.folder.path().join("prowess.db")).unwrap()
}

async fn create(server: &Running, id: &str) {
    let body = json!({"id": id, "name": id, "description": "Something for tests.", "core_content": "Some text for tests."});
    let made = server.post("/api/v1/skills", body).await;
    assert_eq!(made.status, 201, "{}", made.text());
}

#[tokio::test]
async fn a_skill_that_cannot_be_read_does_not_hurt_the_others() {
    let server = Running::start().await;
    create(&server, "good").await;
    create(&server, "bad").await;
    assert_eq!(server.get("/ready").await.json().get("warnings"), None);
    let sql = "UPDATE versions SET about = '{' WHERE skill = 'bad'";
    assert_eq!(database(&server).execute(sql, []).unwrap(), 1);
    // A server that begins with it, and one that hears of another change of it.
    let copy = tempfile::tempdir().unwrap();
    let target = copy.path().join("prowess.db");
    database(&server).execute("VACUUM INTO ?1", [target.to_str().unwrap()]).unwrap();
    let change = "INSERT INTO audit (time, actor, action, subject, detail)
                  VALUES (0, 'local', 'skill.update', 'bad', '{}')";
    database(&server).execute(change, []).unwrap();
    for server in [server, Running::at(copy, |_| {}).await] {
        let ready = server.get("/ready").await;
        assert_eq!(ready.status, 200);
        let warning = ready.json()["warnings"][0].as_str().unwrap_or_default().to_owned();
        assert!(warning.starts_with("1 skills cannot be read"), "{warning:?}");
        let listed = server.get("/api/v1/skills").await.json();
        assert_eq!((&listed["total"], &listed["skills"][0]["id"]), (&json!(1), &json!("good")));
        assert_eq!(server.get("/api/v1/skills/good").await.status, 200);
        assert_eq!(server.get("/api/v1/skills/bad").await.status, 404);
    }
}

#[tokio::test]
async fn a_skill_whose_text_is_lost_does_not_hurt_the_others() {
    let server = Running::start().await;
    for id in ["aa", "bb", "cc"] {
        create(&server, id).await;
    }
    let sql = "DELETE FROM files WHERE digest = (SELECT digest FROM versions WHERE skill = 'bb')";
    assert_eq!(database(&server).execute(sql, []).unwrap(), 1);
    let copy = tempfile::tempdir().unwrap();
    let target = copy.path().join("prowess.db");
    database(&server).execute("VACUUM INTO ?1", [target.to_str().unwrap()]).unwrap();
    let server = Running::at(copy, |_| {}).await;
    let warnings = server.get("/ready").await.json()["warnings"].clone();
    let warning = warnings[0].as_str().unwrap_or_default();
    assert!(warning.starts_with("1 skills cannot be read"), "{warnings}");
    let broken = server.get("/api/v1/skills/bb").await;
    assert_eq!((broken.status, broken.code().as_str()), (500, "corrupt"));
    let detail = broken.json()["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.starts_with("what is stored of 'bb' cannot be read: the file "), "{detail}");
    let session = server.post("/api/v1/sessions", json!({})).await.json();
    let calls = format!("/api/v1/sessions/{}/calls", session["session_id"].as_str().unwrap());
    let load = async |name: &str| {
        let call = json!({"id": name, "name": "load_skill", "arguments": {"skill": name}});
        server.post(&calls, json!({"calls": [call]})).await.json().to_string()
    };
    for name in ["aa", "cc", "greet"] {
        let loaded = load(name).await;
        assert!(loaded.contains(r#""is_error":false"#), "{name}: {loaded}");
    }
    assert!(load("bb").await.contains("aa, cc, greet"), "{}", load("bb").await);
}

#[tokio::test]
async fn skills_that_were_never_read_are_not_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prowess.db");
    drop(prowess_store::SqliteStore::open(&path).unwrap());
    Connection::open(&path).unwrap().execute_batch("ALTER TABLE audit RENAME TO hidden").unwrap();
    let server = Running::at(folder, |_| {}).await;
    for path in ["/api/v1/skills", "/api/v1/skills/demo"] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.code().as_str()), (503, "registry_not_ready"), "{path}");
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(server.get("/ready").await.status, 503);
    database(&server).execute_batch("ALTER TABLE hidden RENAME TO audit").unwrap();
    assert_eq!(server.get("/ready").await.status, 200);
    assert_eq!(server.get("/api/v1/skills").await.json()["total"], 0);
    assert_eq!(server.get("/api/v1/skills/demo").await.status, 404);
}

/// Longer than one answer of the store counts for all who ask whether the server is ready.
const FRESH: std::time::Duration = std::time::Duration::from_millis(250);

#[tokio::test]
async fn what_the_store_refuses_is_not_done_and_nobody_sees_it() {
    let server = Running::start().await;
    create(&server, "a").await;
    let put = async |text: &str| {
        let change = json!({"core_content": text});
        server.send("PUT", "/api/v1/skills/a", &[("if-match", "*")], Some(change)).await
    };
    assert_eq!(put("The second text for tests.").await.status, 200, "the control");
    let get = async || {
        let got = server.get("/api/v1/skills/a").await;
        (got.header("etag").unwrap().to_owned(), got.text())
    };
    let before = get().await;
    let refuse = |table: &str, what: &str| {
        let sql = format!(
            "CREATE TRIGGER refuse_{table} BEFORE {what} ON {table}
             BEGIN SELECT RAISE(FAIL, 'the disk is full'); END"
        );
        database(&server).execute_batch(&sql).unwrap();
    };
    refuse("versions", "INSERT");
    refuse("skills", "UPDATE");
    let failed = [
        put("The third text for tests.").await,
        server.send("POST", "/api/v1/skills/a/versions/1/activate", &[], None).await,
        server.send("DELETE", "/api/v1/skills/a", &[], None).await,
    ];
    for answer in failed {
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_eq!(answer.code(), "store_unavailable");
        assert!(answer.header("retry-after").is_some());
        assert_eq!(get().await, before);
    }
    let versions = server.get("/api/v1/skills/a/versions").await.json();
    assert_eq!(versions["total"], 2);
    database(&server)
        .execute_batch("DROP TRIGGER refuse_versions; DROP TRIGGER refuse_skills")
        .unwrap();
    assert_eq!(put("The third text for tests.").await.json()["version_number"], 3);
}

#[tokio::test]
async fn a_server_that_cannot_write_is_not_ready() {
    let server = Running::start().await;
    assert_eq!(server.get("/ready").await.status, 200);
    let other = database(&server);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    tokio::time::sleep(FRESH).await;
    let answer = server.get("/ready").await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "store_busy"));
    assert_eq!(server.get("/health").await.status, 200);
    other.execute_batch("ROLLBACK").unwrap();
    tokio::time::sleep(FRESH).await;
    assert_eq!(server.get("/ready").await.status, 200);
}
