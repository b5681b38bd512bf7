//! The registry over HTTP: the endpoints of seed 004, and what they promise beyond it.

mod support;

use prowess_store::Role;
use serde_json::{Value, json};
use support::{Answer, Running};

const API: &str = "/api/v1/skills";

fn document(id: &str, body: &str) -> Value {
    json!({
        "id": id, "name": "My Skill", "description": "Does something for tests.",
        "category": "custom", "core_content": body, "author": "ann", "version": "1.2.0",
        "resources": [{"name": "examples", "description": "Some", "content": "# Examples\n"}],
        "scripts": [{"name": "run.py", "description": "Runs", "language": "python", "content": "print(1)\n"}],
        "tool_configs": [{
            "name": "do_it", "description": "Does it", "method": "do_it",
            "args": [{"name": "n", "type": "integer", "description": "How often", "required": true, "default": 3}],
            "requires_skill_loaded": true
        }],
        "resource_configs": [{"name": "inline", "description": "Here", "content": "inline text"}],
    })
}

async fn create(server: &Running, id: &str) -> Answer {
    server.post(API, document(id, "Do it, and do it well.\n")).await
}

async fn put(server: &Running, id: &str, etag: &str, body: Value) -> Answer {
    server.send("PUT", &format!("{API}/{id}"), &[("if-match", etag)], Some(body)).await
}

async fn etag(server: &Running, id: &str) -> String {
    server.get(&format!("{API}/{id}")).await.header("etag").unwrap().to_owned()
}

#[tokio::test]
async fn a_skill_is_made_read_changed_and_deleted() {
    let server = Running::start().await;
    let made = create(&server, "my_skill").await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header("location"), Some("/api/v1/skills/my_skill"));
    let mut answer = made.json();
    let findings = answer["findings"].take();
    let is_info = |it: &Value| it["level"] == "info";
    assert!(findings.as_array().unwrap().iter().all(is_info), "{findings}");
    assert_eq!(
        answer,
        json!({
            "id": "my_skill", "skill_id": "my_skill", "name": "My Skill", "version_number": 1,
            "active_version": 1,
            "message": "Skill 'My Skill' created successfully", "findings": null,
        })
    );
    let got = server.get("/api/v1/skills/my_skill").await;
    assert_eq!((got.status, got.header("etag")), (200, made.header("etag")));
    let mut expected = document("my_skill", "Do it, and do it well.\n");
    expected["resources"][0]["path"] = json!("resources/examples");
    expected["scripts"][0]["path"] = json!("scripts/run.py");
    let info = got.json();
    for (key, value) in expected.as_object().unwrap() {
        if key == "resource_configs" {
            assert_eq!(info[key][0]["content"], "inline text");
        } else {
            assert_eq!(&info[key], value, "{key}");
        }
    }
    assert_eq!((&info["is_builtin"], &info["active_version"]), (&json!(false), &json!(1)));
    // Only what is named changes.
    let tag = got.header("etag").unwrap();
    let change = json!({"core_content": "Do it better now.\n", "change_summary": "better"});
    let changed = put(&server, "my_skill", tag, change).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(changed.json()["core_content"], "Do it better now.\n");
    assert_eq!(changed.json()["resources"], info["resources"]);
    assert_eq!(changed.json()["version_number"], 2);
    assert_ne!(changed.header("etag").unwrap(), tag);
    assert_eq!(etag(&server, "my_skill").await, changed.header("etag").unwrap());
    // An empty list clears.
    let tag = etag(&server, "my_skill").await;
    let cleared =
        put(&server, "my_skill", &tag, json!({"resources": [], "tool_configs": []})).await;
    assert_eq!(cleared.json()["resources"], json!([]));
    assert_eq!(cleared.json()["tool_configs"], json!([]));
    let gone = server.send("DELETE", "/api/v1/skills/my_skill", &[], None).await;
    assert_eq!((gone.status, gone.json()), (200, json!({"skill_id": "my_skill", "deleted": true})));
    assert_eq!(server.get("/api/v1/skills/my_skill").await.code(), "skill_not_found");
    assert_eq!(server.send("DELETE", "/api/v1/skills/my_skill", &[], None).await.status, 404);
    // Its history continues.
    assert_eq!(create(&server, "my_skill").await.json()["version_number"], 4);
}

#[tokio::test]
async fn conditions_are_kept() {
    let server = Running::start().await;
    create(&server, "a").await;
    let tag = etag(&server, "a").await;
    let get = |value: String| {
        let server = &server;
        async move { server.send("GET", "/api/v1/skills/a", &[("if-none-match", &value)], None).await }
    };
    let known = get(tag.clone()).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(get(format!("\"x\", W/{tag}")).await.status, 304);
    assert_eq!(get("\"0-0000000000000000\"".to_owned()).await.status, 200);
    let change = || json!({"core_content": "Something else entirely.\n"});
    let missing = server.send("PUT", "/api/v1/skills/a", &[], Some(change())).await;
    assert_eq!((missing.status, missing.code().as_str()), (428, "precondition_required"));
    assert_eq!(put(&server, "a", &tag, change()).await.status, 200);
    let stale = put(&server, "a", &tag, change()).await;
    assert_eq!((stale.status, stale.code().as_str()), (412, "stale"));
    assert_eq!(put(&server, "a", "\"1-0000000000000000\"", change()).await.status, 412);
    assert_eq!(put(&server, "a", "*", change()).await.status, 200);
    let stale = server.send("DELETE", "/api/v1/skills/a", &[("if-match", &tag)], None).await;
    assert_eq!(stale.status, 412);
    assert_eq!(put(&server, "b", "*", change()).await.status, 404);
    let twice = create(&server, "a").await;
    assert_eq!((twice.status, twice.code().as_str()), (409, "skill_exists"));
    assert_eq!(twice.json()["detail"], "Skill with ID 'a' already exists");
}

#[tokio::test]
async fn what_is_invalid_is_refused_and_every_place_is_named() {
    let server = Running::start().await;
    let mut wrong = document("a", "short");
    wrong["description"] = json!("brief");
    let refused = server.post(API, wrong).await;
    assert_eq!(refused.status, 422);
    let details = refused.json()["details"].clone();
    let places: Vec<&Value> = details.as_array().unwrap().iter().map(|it| &it["loc"]).collect();
    assert!(places.contains(&&json!(["body", "description"])), "{details}");
    assert!(places.contains(&&json!(["body", "core_content"])), "{details}");
    for id in ["../../etc", "", "A", "import", "new", "a b", &"x".repeat(65)] {
        let refused = server.post(API, document(id, "Do it, and do it well.\n")).await;
        assert_eq!(refused.status, 422, "{id}: {}", refused.text());
    }
    let mut nameless = document("a", "Do it, and do it well.\n");
    (nameless["name"], nameless["id"]) = (json!("日本"), Value::Null);
    assert_eq!(server.post(API, nameless).await.status, 422);
    let mut unknown = document("a", "Do it, and do it well.\n");
    unknown["descriptoin"] = json!("x");
    let refused = server.post(API, unknown).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("descriptoin"), "{}", refused.text());
    assert_eq!(server.get(API).await.json()["total"], 0);
    for path in ["/api/v1/skills/..%2f..%2fetc", "/api/v1/skills/A", "/api/v1/skills/nope"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn skills_are_listed_page_by_page_and_filtered() {
    let server = Running::start().await;
    for id in ["gamma", "alpha", "beta"] {
        create(&server, id).await;
    }
    let ids = |answer: &Answer| -> Vec<String> {
        let skills = answer.json()["skills"].clone();
        skills.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get(&format!("{API}?limit=2")).await;
    assert_eq!(
        (ids(&first), &first.json()["total"]),
        (vec!["alpha".into(), "beta".into()], &json!(3))
    );
    let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
    let second = server.get(&format!("{API}?limit=2&cursor={cursor}")).await;
    assert_eq!((ids(&second), &second.json()["next_cursor"]), (vec!["gamma".into()], &Value::Null));
    let one = &second.json()["skills"][0];
    for key in [
        "name",
        "description",
        "category",
        "version",
        "author",
        "is_builtin",
        "active_version",
        "version_count",
        "tool_count",
        "last_used",
    ] {
        assert!(one.get(key).is_some(), "{key}");
    }
    assert_eq!((&one["tool_count"], &one["last_used"]), (&json!(1), &Value::Null));
    for (query, found) in [
        ("q=ALPH", 1),
        ("q=custom", 3),
        ("q=nothing", 0),
        ("category=custom", 3),
        ("category=other", 0),
        ("origin=builtin", 0),
        ("origin=custom", 3),
    ] {
        assert_eq!(ids(&server.get(&format!("{API}?{query}")).await).len(), found, "{query}");
    }
    for query in ["limit=0", "limit=501", "limit=x", "origin=x"] {
        assert_eq!(server.get(&format!("{API}?{query}")).await.status, 422, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_are_counted_before_they_are_answered() {
    let server = std::sync::Arc::new(Running::start().await);
    create(&server, "a").await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..400 {
        let server = std::sync::Arc::clone(&server);
        tasks.spawn(async move {
            let session = json!({"session_id": format!("s{}", number % 50), "agent": "main"});
            let answer = server.post("/api/v1/skills/a/load", session).await;
            (answer.status != 200).then(|| (answer.status, answer.text()))
        });
    }
    let refused: Vec<(u16, String)> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(refused, []);
    let metrics = server.get("/api/v1/skills/a/metrics").await.json();
    assert_eq!((&metrics["total_loads"], &metrics["unique_sessions"]), (&json!(400), &json!(50)));
    assert_eq!(metrics["loads_by_version"], json!({"1": 400}));
    assert_eq!(metrics["by_agent"]["main"]["loads"], 400);
    assert_eq!(metrics["totals"]["tokens_disclosed"], 400 * 6);
    assert_eq!(metrics["totals"]["bytes_disclosed"], 400 * "Do it, and do it well.\n".len());
    let loaded = server.send("POST", "/api/v1/skills/a/load", &[], None).await;
    let text = loaded.json();
    assert_eq!((&text["skill_id"], &text["name"]), (&json!("a"), &json!("My Skill")));
    assert_eq!(text["content"], "Do it, and do it well.\n");
    assert_eq!(server.get("/api/v1/skills/a/metrics").await.json()["total_loads"], 401);
    assert!(!server.get(API).await.json()["skills"][0]["last_used"].is_null());
    let numbers = server.get("/metrics").await.text();
    let line = "prowess_skill_loads_total{skill=\"a\",version=\"1\"} 401\n";
    assert!(numbers.contains(line), "{numbers}");
    assert_eq!(server.post("/api/v1/skills/nope/load", json!({})).await.status, 404);
    let wrong = server.post("/api/v1/skills/a/load", json!({"session_id": ""})).await;
    assert_eq!(wrong.status, 422);
}

#[tokio::test]
async fn a_list_knows_every_load_of_this_server_and_within_a_second_those_of_others() {
    let server = Running::start().await;
    for id in ["a", "b", "c"] {
        create(&server, id).await;
    }
    let last = async || {
        let rows = server.get(API).await.json()["skills"].clone();
        [0, 1, 2].map(|at| {
            let text = rows[at]["last_used"].as_str();
            text.map(|text| text.parse::<jiff::Timestamp>().unwrap())
        })
    };
    assert_eq!(last().await, [None, None, None]);
    // By this way,
    server.post("/api/v1/skills/a/load", json!({})).await;
    let [first, None, None] = last().await else { panic!("{:?}", last().await) };
    assert!(first.is_some());
    // by a session,
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let call = json!({"calls": [{"id": "1", "name": "load_skill", "arguments": {"skill": "b"}}]});
    assert_eq!(server.post("/api/v1/sessions/s/calls", call).await.status, 200);
    let [a, second, None] = last().await else { panic!("{:?}", last().await) };
    assert!(a == first && second >= first, "{second:?}");
    // and by another process, which this one is not told of.
    let others = prowess_store::SqliteStore::open(server.folder.path().join("prowess.db")).unwrap();
    let elsewhere = prowess_store::Use::new(prowess_store::UsageKind::Load, "c");
    prowess_store::UsageStore::record(&others.usage(), vec![elsewhere]).await.unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while last().await[2].is_none() {
        assert!(std::time::Instant::now() < end);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // A new version has been loaded when its skill was.
    let before = last().await;
    let etag = server.get("/api/v1/skills/a").await.header("etag").unwrap().to_owned();
    let change = json!({"description": "Another one."});
    let changed =
        server.send("PUT", "/api/v1/skills/a", &[("If-Match", etag.as_str())], Some(change)).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(last().await, before);
}

#[tokio::test]
async fn resources_are_given_and_counted() {
    let server = Running::start().await;
    create(&server, "a").await;
    let get = |name: &str| format!("/api/v1/skills/a/resources/{name}");
    for (name, content) in [
        ("examples", "# Examples\n"),
        ("resources%2Fexamples", "# Examples\n"),
        ("run.py", "print(1)\n"),
        ("inline", "inline text"),
    ] {
        let answer = server.get(&get(name)).await;
        assert_eq!((answer.status, &answer.json()["content"]), (200, &json!(content)), "{name}");
    }
    let unknown = server.get(&get("nope")).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "resource_not_found"));
    assert!(unknown.text().contains("examples"), "{}", unknown.text());
    let listed = server.get("/api/v1/skills/a/resources").await.json();
    assert_eq!(listed["resources"].as_array().unwrap().len(), 2);
    let metrics = server.get("/api/v1/skills/a/metrics").await.json();
    assert_eq!(metrics["totals"]["details"], 4);
}

#[tokio::test]
async fn versions_are_listed_read_compared_and_activated() {
    let server = Running::start().await;
    create(&server, "a").await;
    let change = json!({
        "core_content": "Do it, and do it better.\n", "version": "1.3.0", "change_summary": "better",
        "resources": [{"name": "examples", "description": "Some", "content": "# Other\n"}],
    });
    put(&server, "a", "*", change).await;
    let listed = server.get("/api/v1/skills/a/versions").await.json();
    assert_eq!(
        (&listed["total"], &listed["limit"], &listed["offset"]),
        (&json!(2), &json!(20), &json!(0))
    );
    let newest = &listed["versions"][0];
    let expected = json!({"version_number": 2, "semantic_version": "1.3.0", "change_summary": "better",
        "is_active": true, "author": "local", "created_by": "local"});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&newest[key], value, "{key}");
    }
    let old = server.get("/api/v1/skills/a/versions/1").await.json();
    assert_eq!(old["core_content"], "Do it, and do it well.\n");
    assert_eq!(old["tool_configs"][0]["name"], "do_it");
    let missing = server.get("/api/v1/skills/a/versions/9").await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json()["detail"], "Version 9 not found for skill: a");
    let diff = server.get("/api/v1/skills/a/diff?from=1&to=2").await.json();
    assert_eq!(diff["total"], 2);
    let paths: Vec<&str> =
        diff["files"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["SKILL.md", "resources/examples"]);
    let hunks = diff["files"][0]["hunks"].as_str().unwrap();
    assert!(
        hunks.contains("-Do it, and do it well.") && hunks.contains("+Do it, and do it better.")
    );
    let page = server.get("/api/v1/skills/a/diff?from=1&to=2&limit=1").await.json();
    assert_eq!((&page["next_cursor"], page["files"].as_array().unwrap().len()), (&json!(1), 1));
    assert_eq!(server.get("/api/v1/skills/a/diff?from=1&to=7").await.status, 404);
    let back = server.send("POST", "/api/v1/skills/a/versions/1/activate", &[], None).await;
    assert_eq!(
        back.json(),
        json!({"skill_id": "a", "active_version": 1, "message": "Version 1 is now active"})
    );
    // From the next load on.
    let loaded = server.send("POST", "/api/v1/skills/a/load", &[], None).await.json();
    assert_eq!(loaded["content"], "Do it, and do it well.\n");
    assert_eq!(server.get("/api/v1/skills/a").await.json()["active_version"], 1);
    let log = server.get("/api/v1/audit").await.json();
    let actions: Vec<&str> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["skill.activate", "skill.update", "skill.create"]);
}

#[tokio::test]
async fn a_session_over_http_keeps_its_version_and_is_told_of_another() {
    let server = Running::start().await;
    create(&server, "a").await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let call = |id: &str| json!({"calls": [{"id": id, "name": "load_skill", "arguments": {"skill": "a"}}]});
    let loaded = server.post("/api/v1/sessions/s/calls", call("1")).await;
    assert!(loaded.text().contains("do it well"), "{}", loaded.text());
    put(&server, "a", "*", json!({"core_content": "Do it, and do it better.\n"})).await;
    let state = server.get("/api/v1/sessions/s").await.json();
    assert_eq!(state["loaded"][0]["update_available"], true);
    let again = server.post("/api/v1/sessions/s/calls", call("2")).await;
    assert!(!again.text().contains("better"), "{}", again.text());
    let metrics = server.get("/api/v1/skills/a/metrics").await.json();
    assert_eq!(metrics["loads_by_version"]["1"], 1);
}

#[tokio::test]
async fn a_session_is_told_of_a_version_in_which_only_files_beside_the_text_differ() {
    let server = Running::start().await;
    create(&server, "a").await;
    server.post("/api/v1/sessions", json!({"session_id": "s"})).await;
    let call = |id: &str| json!({"calls": [{"id": id, "name": "load_skill", "arguments": {"skill": "a"}}]});
    server.post("/api/v1/sessions/s/calls", call("1")).await;
    let told = async |id: &str| {
        let state = server.get("/api/v1/sessions/s").await.json();
        let again = server.post("/api/v1/sessions/s/calls", call(id)).await;
        let is_said = again.text().contains("A newer version is there");
        assert_eq!(state["loaded"][0]["update_available"], is_said, "{}", again.text());
        is_said
    };
    assert!(!told("2").await);
    let mut scripts = document("a", "")["scripts"].clone();
    scripts[0]["content"] = json!("print(2)\n");
    let changed = put(&server, "a", "*", json!({"scripts": scripts})).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert!(told("3").await);
}

#[tokio::test]
async fn an_editor_writes_and_a_publisher_decides() {
    let server = Running::start().await;
    let editor = format!("Bearer {}", server.key("eve", Role::Editor).await);
    let publisher = format!("Bearer {}", server.key("pat", Role::Publisher).await);
    let viewer = format!("Bearer {}", server.key("vic", Role::Viewer).await);
    let send = async |who: &str, method: &str, path: &str, body: Option<Value>| {
        let headers = [("authorization", who), ("if-match", "*")];
        server.send(method, &format!("{API}{path}"), &headers, body).await
    };
    let body = || Some(document("a", "Do it, and do it well.\n"));
    assert_eq!(send(&viewer, "POST", "", body()).await.code(), "forbidden");
    assert_eq!(send(&editor, "POST", "?activate=true", body()).await.code(), "forbidden");
    let made = send(&editor, "POST", "", body()).await;
    assert_eq!((made.status, &made.json()["active_version"]), (201, &Value::Null));
    // Nobody uses it; those who write find its versions.
    assert_eq!(send(&viewer, "GET", "/a", None).await.status, 404);
    assert_eq!(send(&viewer, "POST", "/a/load", None).await.status, 404);
    let listed = send(&editor, "GET", "/a/versions", None).await.json();
    assert_eq!((&listed["total"], &listed["versions"][0]["is_active"]), (&json!(1), &json!(false)));
    let changed = send(&editor, "PUT", "/a", Some(json!({"category": "other"}))).await;
    assert_eq!((changed.status, &changed.json()["version_number"]), (200, &json!(2)));
    assert_eq!(send(&editor, "POST", "/a/versions/2/activate", None).await.code(), "forbidden");
    assert_eq!(send(&publisher, "POST", "/a/versions/2/activate", None).await.status, 200);
    assert_eq!(send(&viewer, "GET", "/a", None).await.json()["category"], "other");
    // A second change that waits has the first one in it.
    send(&editor, "PUT", "/a", Some(json!({"core_content": "Something new here.\n"}))).await;
    let both =
        send(&editor, "PUT", "/a", Some(json!({"description": "Does something else."}))).await;
    assert_eq!(both.json()["core_content"], "Something new here.\n");
    assert_eq!(
        (&both.json()["active_version"], &both.json()["version_number"]),
        (&json!(2), &json!(4))
    );
    assert_eq!(
        send(&viewer, "GET", "/a", None).await.json()["core_content"],
        "Do it, and do it well.\n"
    );
    // What a publisher has taken back does not come back with the next change of an editor.
    assert_eq!(send(&publisher, "POST", "/a/versions/4/activate", None).await.status, 200);
    assert_eq!(send(&publisher, "POST", "/a/versions/2/activate", None).await.status, 200);
    let next = send(&editor, "PUT", "/a", Some(json!({"category": "third"}))).await.json();
    assert_eq!((&next["version_number"], &next["category"]), (&json!(5), &json!("third")));
    assert_eq!(next["core_content"], "Do it, and do it well.\n");
    // What a publisher has deleted stays so.
    assert_eq!(send(&editor, "DELETE", "/a", None).await.code(), "forbidden");
    assert_eq!(send(&publisher, "DELETE", "/a", None).await.status, 200);
    assert_eq!(send(&editor, "POST", "", body()).await.status, 201);
    assert_eq!(send(&viewer, "GET", "/a", None).await.status, 404);
    let log = server.get_as(editor.trim_start_matches("Bearer "), "/api/v1/audit").await;
    assert_eq!(log.code(), "forbidden");
}

#[tokio::test]
async fn what_is_wrong_whatever_is_there_is_told_before_what_is_stale() {
    let server = Running::start().await;
    let body = json!({"id": "a", "name": "A", "description": "Does something for tests.", "core_content": "Some text for tests."});
    assert_eq!(server.post("/api/v1/skills", body).await.status, 201);
    let put = async |tag: &str, change: Value| {
        let answer =
            server.send("PUT", "/api/v1/skills/a", &[("if-match", tag)], Some(change)).await;
        (answer.status, answer.code())
    };
    let (good, bad) = (json!({"category": "x"}), json!({"description": "short"}));
    let stale = "\"7-0123456789abcdef\"";
    assert_eq!(put(stale, good.clone()).await, (412, "stale".into()));
    assert_eq!(put(stale, bad).await, (422, "invalid_document".into()));
    for no_tag in ["", "1-a", "*, *", "\"a\",", "\"a b\""] {
        assert_eq!(put(no_tag, good.clone()).await, (400, "invalid_etag".into()), "{no_tag:?}");
        let headers = [("if-match", no_tag)];
        for (method, path) in [
            ("DELETE", "/api/v1/skills/a"),
            ("POST", "/api/v1/skills/a/reset"),
            ("POST", "/api/v1/skills/a/versions/1/activate"),
        ] {
            let refused = server.send(method, path, &headers, None).await;
            assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_etag"), "{path}");
        }
    }
    assert_eq!(server.get("/api/v1/skills/a/versions").await.json()["total"], 1);
}

#[tokio::test]
async fn the_description_says_what_calls_and_tags_are_like() {
    let server = Running::start().await;
    let description = server.get("/api/v1/openapi.json").await.json();
    let either = &description["components"]["schemas"]["NewCalls"]["allOf"][1]["anyOf"];
    assert_eq!(either[0]["properties"]["calls"]["minItems"], 1, "{either}");
    assert_eq!(either[0]["required"], json!(["calls"]));
    assert_eq!(either[1]["required"], json!(["message"]));
    let mut tagged = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            for it in parameters.iter().filter(|it| it["name"] == "If-Match") {
                let pattern = it["schema"]["pattern"].as_str().unwrap_or_default();
                assert!(pattern.starts_with("^(\\*|"), "{method} {path}: {it}");
                tagged.push(method.clone());
            }
        }
    }
    tagged.sort();
    assert_eq!(tagged, ["delete", "post", "post", "put"]);
}
