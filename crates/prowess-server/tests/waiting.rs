//! Skills that wait for a publisher: those who make versions see them, others do not.

mod support;

use prowess_store::Role;
use serde_json::{Value, json};
use support::{Answer, Running};

const API: &str = "/api/v1/skills";

fn document() -> Value {
    json!({
        "id": "a", "name": "A", "description": "Does something for tests.",
        "core_content": "Do it, and do it well.\n",
        "resources": [{"name": "examples", "content": "# Examples\n"}],
    })
}

#[tokio::test]
async fn whoever_made_a_skill_finds_it_where_the_answer_says() {
    let server = Running::start().await;
    let mut keys = Vec::new();
    for role in Role::ALL {
        keys.push((role, server.key(role.as_str(), role).await));
    }
    let send = async |role: Role, method: &str, path: &str, body: Option<Value>| -> Answer {
        let key = &keys.iter().find(|it| it.0 == role).unwrap().1;
        server.send(method, path, &[("x-api-key", key), ("if-match", "*")], body).await
    };
    let made = send(Role::Editor, "POST", API, Some(document())).await;
    assert_eq!((made.status, made.header("location")), (201, Some("/api/v1/skills/a")));
    let got = send(Role::Editor, "GET", "/api/v1/skills/a", None).await;
    assert_eq!((got.status, got.header("etag")), (200, made.header("etag")), "{}", got.text());
    assert_eq!(got.json()["active_version"], Value::Null);
    assert_eq!(got.json()["core_content"], "Do it, and do it well.\n");
    let known = [("x-api-key", keys[1].1.as_str()), ("if-none-match", got.header("etag").unwrap())];
    assert_eq!(server.send("GET", "/api/v1/skills/a", &known, None).await.status, 304);
    // What it says can be changed by its tag.
    let if_match = [("x-api-key", keys[1].1.as_str()), ("if-match", got.header("etag").unwrap())];
    let change = Some(json!({"category": "other"}));
    assert_eq!(server.send("PUT", "/api/v1/skills/a", &if_match, change).await.status, 200);
    let places = [
        "/a",
        "/a/export",
        "/a/export?version=1",
        "/a/resources",
        "/a/resources/examples",
        "/a/versions",
        "/a/versions/1",
        "/a/diff?from=1&to=2",
        "/a/metrics",
    ];
    for role in Role::ALL {
        let expected = if role == Role::Viewer { 404 } else { 200 };
        for place in places {
            let answer = send(role, "GET", &format!("{API}{place}"), None).await;
            assert_eq!(answer.status, expected, "{role} {place}: {}", answer.text());
        }
        // Nobody uses it.
        assert_eq!(send(role, "POST", "/api/v1/skills/a/load", None).await.status, 404);
    }
    let newest = send(Role::Editor, "GET", "/api/v1/skills/a", None).await.json();
    assert_eq!((&newest["version_number"], &newest["category"]), (&json!(2), &json!("other")));
    let path = "/api/v1/skills/a/versions/2/activate";
    assert_eq!(send(Role::Publisher, "POST", path, None).await.status, 200);
    for place in places {
        let answer = send(Role::Viewer, "GET", &format!("{API}{place}"), None).await;
        assert_eq!(answer.status, 200, "{place}: {}", answer.text());
    }
}

/// A server, and somebody of each role.
struct Team {
    server: Running,
    keys: Vec<(Role, String)>,
}

impl Team {
    async fn start() -> Self {
        let server = Running::start().await;
        let mut keys = Vec::new();
        for role in Role::ALL {
            keys.push((role, server.key(role.as_str(), role).await));
        }
        Self { server, keys }
    }

    async fn send(&self, role: Role, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.matching(role, method, path, "*", body).await
    }

    async fn get(&self, role: Role, path: &str) -> Answer {
        self.send(role, "GET", path, None).await
    }

    async fn matching(
        &self,
        role: Role,
        method: &str,
        path: &str,
        tag: &str,
        body: Option<Value>,
    ) -> Answer {
        let key = &self.keys.iter().find(|it| it.0 == role).unwrap().1;
        let headers = [("x-api-key", key.as_str()), ("if-match", tag)];
        self.server.send(method, path, &headers, body).await
    }

    /// The ids in a list, and how many it says there are.
    async fn listed(&self, role: Role, query: &str) -> (Vec<String>, Value) {
        let list = self.get(role, &format!("{API}{query}")).await.json();
        let ids = list["skills"].as_array().unwrap().iter();
        let ids = ids.map(|it| it["id"].as_str().unwrap().to_owned()).collect();
        (ids, list["total"].clone())
    }
}

fn named(id: &str) -> Option<Value> {
    let mut document = document();
    (document["id"], document["name"]) = (json!(id), json!(id));
    Some(document)
}

#[tokio::test]
async fn a_publisher_finds_what_waits() {
    let team = Team::start().await;
    for (role, id) in [(Role::Publisher, "b"), (Role::Editor, "c"), (Role::Publisher, "d")] {
        assert_eq!(team.send(role, "POST", API, named(id)).await.status, 201);
    }
    let change = Some(json!({"category": "changed"}));
    assert_eq!(team.send(Role::Editor, "PUT", "/api/v1/skills/b", change).await.status, 200);
    for role in [Role::Editor, Role::Publisher, Role::Admin] {
        let all = |ids: &[&str]| (ids.iter().map(ToString::to_string).collect(), json!(ids.len()));
        assert_eq!(team.listed(role, "").await, all(&["b", "c", "d"]));
        assert_eq!(team.listed(role, "?status=waiting").await, all(&["b", "c"]));
        assert_eq!(team.listed(role, "?status=used").await, all(&["b", "d"]));
        assert_eq!(
            team.listed(role, "?q=SOMETHING&status=waiting&origin=custom").await,
            all(&["b", "c"])
        );
        assert_eq!(team.listed(role, "?q=examples").await, all(&[]));
        assert_eq!(team.listed(role, "?category=general").await, all(&["b", "c", "d"]));
        // Page by page.
        let first = team.get(role, &format!("{API}?limit=2")).await.json();
        assert_eq!((&first["next_cursor"], &first["total"]), (&json!("c"), &json!(3)));
        assert_eq!(team.listed(role, "?limit=2&cursor=c").await, (vec!["d".into()], json!(3)));
        let numbers = |it: &Value| (it["active_version"].clone(), it["pending_version"].clone());
        let list = team.get(role, API).await.json();
        let expected = [(json!(1), json!(2)), (json!(null), json!(1)), (json!(1), json!(null))];
        for (at, (id, expected)) in ["b", "c", "d"].iter().zip(expected).enumerate() {
            assert_eq!(numbers(&list["skills"][at]), expected, "{id}");
            let got = team.get(role, &format!("{API}/{id}")).await.json();
            assert_eq!(numbers(&got), expected, "{id}");
        }
        let versions = team.get(role, "/api/v1/skills/b/versions").await.json()["versions"].clone();
        let marks =
            |at: usize| (versions[at]["is_active"].clone(), versions[at]["is_pending"].clone());
        assert_eq!(
            (marks(0), marks(1)),
            ((json!(false), json!(true)), (json!(true), json!(false)))
        );
    }
    let seen = team.listed(Role::Viewer, "").await;
    assert_eq!(seen, (vec!["b".into(), "d".into()], json!(2)));
    assert_eq!(team.listed(Role::Viewer, "?status=used").await, seen);
    let list = team.get(Role::Viewer, API).await.json();
    assert_eq!(list["skills"][0]["pending_version"], Value::Null);
    let refused = team.get(Role::Viewer, &format!("{API}?status=waiting")).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));
    // Once it is decided, nothing waits.
    let path = "/api/v1/skills/b/versions/2/activate";
    assert_eq!(team.send(Role::Publisher, "POST", path, None).await.status, 200);
    assert_eq!(team.listed(Role::Editor, "?status=waiting").await, (vec!["c".into()], json!(1)));
    assert_eq!(
        team.get(Role::Editor, "/api/v1/skills/b").await.json()["pending_version"],
        json!(null)
    );
}

#[tokio::test]
async fn whoever_only_reads_sees_the_versions_up_to_the_one_that_is_used() {
    let team = Team::start().await;
    assert_eq!(team.send(Role::Publisher, "POST", API, Some(document())).await.status, 201);
    let path = "/api/v1/skills/a";
    for category in ["second", "third"] {
        let change = Some(json!({"category": category}));
        assert_eq!(team.send(Role::Editor, "PUT", path, change).await.status, 200);
    }
    let places = [
        "/versions/2",
        "/versions/3",
        "/export?version=3",
        "/resources?version=2",
        "/diff?from=1&to=3",
    ];
    for place in places {
        let (viewer, editor) = (Role::Viewer, Role::Editor);
        let answer = team.get(viewer, &format!("{path}{place}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "version_not_found"), "{place}");
        assert_eq!(team.get(editor, &format!("{path}{place}")).await.status, 200, "{place}");
    }
    let numbers = async |role: Role, query: &str| {
        let list = team.get(role, &format!("{path}/versions{query}")).await.json();
        let numbers = list["versions"].as_array().unwrap().iter();
        (numbers.map(|it| it["version_number"].clone()).collect::<Vec<_>>(), list["total"].clone())
    };
    assert_eq!(numbers(Role::Viewer, "").await, (vec![json!(1)], json!(1)));
    assert_eq!(numbers(Role::Editor, "").await.1, json!(3));
    assert_eq!(team.get(Role::Viewer, path).await.json()["pending_version"], Value::Null);
    let used = format!("{path}/versions/2/activate");
    assert_eq!(team.send(Role::Publisher, "POST", &used, None).await.status, 200);
    assert_eq!(numbers(Role::Viewer, "").await, (vec![json!(2), json!(1)], json!(2)));
    assert_eq!(numbers(Role::Viewer, "?offset=1&limit=1").await, (vec![json!(1)], json!(2)));
    assert_eq!(team.get(Role::Viewer, &format!("{path}/versions/3")).await.status, 404);
}

#[tokio::test]
async fn what_one_editor_lets_wait_no_other_one_loses() {
    let team = Team::start().await;
    assert_eq!(team.send(Role::Publisher, "POST", API, Some(document())).await.status, 201);
    let path = "/api/v1/skills/a";
    let tag = async |query: &str| {
        let got = team.get(Role::Editor, &format!("{path}{query}")).await;
        (got.header("etag").unwrap().to_owned(), got.json())
    };
    let (first, _) = tag("").await;
    let text = Some(json!({"core_content": "What the first editor has written.
"}));
    let put = team.matching(Role::Editor, "PUT", path, &first, text).await;
    assert_eq!(put.status, 200, "{}", put.text());
    // The second one reads what is used, changes it, and sends all of it.
    let (used, mut whole) = tag("").await;
    assert_ne!(used, first);
    whole["description"] = json!("Does something else for tests.");
    let put_whole = async |tag: &str, whole: &Value| {
        team.matching(Role::Editor, "PUT", path, tag, Some(whole.clone())).await
    };
    let refused = put_whole(&used, &whole).await;
    assert_eq!((refused.status, refused.code().as_str()), (412, "something_waits"));
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("GET /api/v1/skills/a?status=waiting"), "{detail}");
    // As it is told.
    let (waiting, mut whole) = tag("?status=waiting").await;
    assert_eq!(Some(waiting.as_str()), put.header("etag"), "whoever made it has its tag already");
    assert_eq!((&whole["version_number"], &whole["active_version"]), (&json!(2), &json!(1)));
    assert_eq!(
        whole["core_content"],
        "What the first editor has written.
"
    );
    whole["description"] = json!("Does something else for tests.");
    let taken = put_whole(&waiting, &whole).await;
    assert_eq!(taken.status, 200, "{}", taken.text());
    assert_eq!(put_whole(&waiting, &whole).await.code(), "stale", "it is another one by now");
    let (_, head) = tag("?status=waiting").await;
    assert_eq!(
        head["core_content"],
        "What the first editor has written.
"
    );
    assert_eq!(head["description"], "Does something else for tests.");
    // A publisher who changes what waits, or activates it, names what was read.
    let (waiting, _) = tag("?status=waiting").await;
    let change = Some(json!({"category": "published"}));
    let put = team.matching(Role::Publisher, "PUT", path, &waiting, change).await.json();
    assert_eq!((&put["active_version"], &put["pending_version"]), (&json!(4), &json!(null)));
    assert_eq!(
        put["core_content"],
        "What the first editor has written.
"
    );
    // Then nothing waits, and the tag of what is used is the one to name.
    let none = team.get(Role::Editor, &format!("{path}?status=waiting")).await;
    assert_eq!((none.status, none.code().as_str()), (404, "nothing_waits"));
    assert_eq!(team.get(Role::Viewer, &format!("{path}?status=waiting")).await.status, 403);
    let (used, whole) = tag("?status=used").await;
    assert_eq!(put_whole(&used, &whole).await.status, 200);
}

#[tokio::test]
async fn nobody_makes_a_version_in_the_name_of_another() {
    let team = Team::start().await;
    assert_eq!(team.send(Role::Publisher, "POST", API, Some(document())).await.status, 201);
    let change = Some(json!({"author": "forged", "created_by": "key:admin"}));
    let path = "/api/v1/skills/a";
    let put = team.send(Role::Editor, "PUT", path, change).await.json();
    assert_eq!((&put["author"], &put["created_by"]), (&json!("forged"), &json!("key:editor")));
    let list = team.get(Role::Editor, "/api/v1/skills/a/versions").await.json();
    let version = team.get(Role::Editor, "/api/v1/skills/a/versions/2").await.json();
    for made in [&list["versions"][0], &version] {
        assert_eq!(
            (&made["author"], &made["created_by"]),
            (&json!("key:editor"), &json!("key:editor"))
        );
    }
    assert_eq!(list["versions"][1]["author"], "key:publisher");
    // The text says what it says.
    let text = team.get(Role::Editor, "/api/v1/skills/a/export?format=md&version=2").await.text();
    assert!(text.contains("\nauthor: forged\n"), "{text}");
    let waiting = team.get(Role::Editor, "/api/v1/skills/a?status=waiting").await.json();
    assert_eq!(waiting["author"], "forged");
}

#[tokio::test]
async fn whoever_decides_names_what_is_used_or_what_waits() {
    let team = Team::start().await;
    assert_eq!(team.send(Role::Publisher, "POST", API, Some(document())).await.status, 201);
    let path = "/api/v1/skills/a";
    for query in ["", "?status=waiting"] {
        let change = Some(json!({"category": format!("for {query:?}")}));
        let made = team.send(Role::Editor, "PUT", path, change).await.json();
        let got = team.get(Role::Publisher, &format!("{path}{query}")).await;
        let activate = format!("{path}/versions/{}/activate", made["version_number"]);
        let tag = got.header("etag").unwrap();
        let answer = team.matching(Role::Publisher, "POST", &activate, tag, None).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        let again = team.matching(Role::Publisher, "POST", &activate, tag, None).await;
        assert_eq!((again.status, again.code().as_str()), (412, "stale"));
    }
}
