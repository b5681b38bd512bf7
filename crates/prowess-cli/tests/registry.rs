//! What `prowess skills` says of skills that nobody uses yet, of those that come with the program,
//! and of those that come from elsewhere.

#[path = "../../prowess-store/tests/redis_server/mod.rs"]
mod redis_server;
mod support;

use prowess_store::interop::langchain_docker::{FetchLimits, fetch};
use prowess_store::{Activation, Actor, NewVersion, SkillReading, SqliteStore, VersionStore};
use redis_server::RedisServer;
use serde_json::{Value, json};
use support::chat::command;
use support::typist::{Serving, Typist, custom, skill};
use support::{Sandbox, skip};

/// A skill of which no version is used, from its first push on.
fn waits(typist: &Typist<'_>, push: &[&str]) {
    let sandbox = typist.sandbox;
    let text = |body: &str| skill("draft", "1.0.0", &format!("# Draft\n{body}\n"));
    sandbox.write("work/draft/SKILL.md", text("One."));
    let first = typist.ok(&[push, &["work/draft"]].concat());
    let told = "created    draft  version 1 (waits until a publisher activates it)\n";
    assert_eq!(first.stdout, told, "{first:?}");
    sandbox.write("work/draft/SKILL.md", text("Two."));
    let second = typist.json(&[push, &["work/draft"]].concat());
    let row = &second["skills"][0];
    assert_eq!((&row["version_number"], &row["active_version"]), (&json!(2), &Value::Null));
    let list = custom(typist);
    let row = list.first().unwrap();
    assert_eq!((&row["active_version"], &row["pending_version"]), (&Value::Null, &json!(2)));
    let shown = typist.ok(&["list"]).stdout;
    let line = shown.lines().find(|line| line.starts_with("draft ")).unwrap();
    assert_eq!(line.split_whitespace().take(3).collect::<Vec<_>>(), ["draft", "-", "2"], "{shown}");
    let shown = typist.ok(&["versions", "draft"]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("2 waits  1.0.0")), "{shown}");
    let versions = typist.json(&["versions", "draft"]);
    let rows: Vec<_> = versions["versions"].as_array().unwrap().iter().collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["is_active"] == false), "{versions}");
    assert_eq!((&rows[0]["is_pending"], &rows[1]["is_pending"]), (&json!(true), &json!(false)));
    let diff = typist.ok(&["diff", "draft"]).stdout;
    assert!(diff.contains("\n-One.\n+Two.\n"), "{diff}");
    let pulled = typist.json(&["pull", "draft", "--to", "out"]);
    assert_eq!(pulled["version_number"], 2, "the one that waits");
}

#[test]
fn a_skill_that_waits_can_be_looked_at_here() {
    let sandbox = Sandbox::new();
    let typist = Typist::here(&sandbox);
    waits(&typist, &["push", "--no-activate"]);
    typist.ok(&["activate", "draft", "1"]);
    let pulled = typist.json(&["pull", "draft", "--to", "used"]);
    assert_eq!(pulled["version_number"], 1);
    assert_eq!(custom(&typist)[0]["active_version"], 1);
}

#[test]
fn a_skill_that_an_editor_has_pushed_waits_with_a_server() {
    let sandbox = Sandbox::new();
    let key = |name: &str, role: &str| {
        let made = sandbox.run(command(&sandbox, &["keys", "create", name, "--role", role]), b"");
        made.stdout.trim().to_owned()
    };
    let (editor, publisher) = (key("eve", "editor"), key("pat", "publisher"));
    let server = Serving::start(&sandbox);
    let with = |key| Typist { sandbox: &sandbox, server: Some(&server.url), key: Some(key) };
    waits(&with(&editor), &["push"]);
    with(&publisher).ok(&["activate", "draft", "2"]);
    assert_eq!(custom(&with(&editor))[0]["active_version"], 2);
}

#[test]
fn what_comes_with_the_program_is_there_before_anything_is_served() {
    let sandbox = Sandbox::new();
    let typist = Typist::here(&sandbox);
    let reset = typist.json(&["reset", "write_sql"]);
    assert_eq!(reset, json!({"skill_id": "write_sql", "active_version": 1}));
    // What is pushed under its name is a change of it.
    sandbox.write("work/xlsx/SKILL.md", skill("xlsx", "9.0.0", "# Sheets\n"));
    assert_eq!(typist.json(&["push", "work"])["skills"][0]["status"], "updated");
    let count = |name: &str| {
        let versions = typist.json(&["versions", name]);
        versions["versions"].as_array().unwrap().len()
    };
    assert_eq!((count("xlsx"), count("write_sql"), count("jira")), (2, 2, 1));
    let server = Serving::start(&sandbox);
    let list = Typist { server: Some(&server.url), ..Typist::here(&sandbox) }.json(&["list"]);
    let of = |id: &str| list["skills"].as_array().unwrap().iter().find(|it| it["id"] == id);
    let xlsx = of("xlsx").unwrap();
    assert_eq!((&xlsx["is_builtin"], &xlsx["version"]), (&json!(true), &json!("9.0.0")));
    typist.ok(&["reset", "xlsx"]);
    assert_ne!(typist.json(&["versions", "xlsx"])["versions"][0]["semantic_version"], "9.0.0");
}

/// What langchain-docker keeps of a skill with three versions, of which the second is used.
fn put_skill(redis: &RedisServer, id: &str) {
    let mut connection = redis.connection();
    let mut put = |key: &str, value: Value| {
        redis::cmd("SET").arg(key).arg(value.to_string()).exec(&mut connection).unwrap();
    };
    put(
        &format!("skill:meta:{id}"),
        json!({"skill_id": id, "is_builtin": false,
        "active_version": 2, "created_at": "2025-01-02T03:04:05", "updated_at": "2025-01-03T00:00:00"}),
    );
    for (number, body) in
        [(1, "# First\n\nDo.\n"), (2, "# Second\n\nDo.\n"), (3, "# Second\n\nDo.\n")]
    {
        put(
            &format!("skill:version:{id}:{number}"),
            json!({
                "version_number": number, "semantic_version": format!("1.{number}.0"),
                "name": "My Skill", "description": "Does what I want it to do.", "category": "custom",
                "author": "me", "core_content": body, "resources": [], "scripts": [],
                "tool_configs": [], "resource_configs": [], "mcp_tool_configs": [],
                "created_at": "2025-01-02T03:04:05", "change_summary": format!("Change {number}"),
            }),
        );
    }
    put(
        &format!("skill:metrics:{id}"),
        json!({"total_loads": 7, "unique_sessions": 2,
        "last_loaded_at": null, "loads_by_version": {"1": 7}}),
    );
    for number in 1..=3 {
        let mut add = redis::cmd("ZADD");
        add.arg(format!("skill:versions:{id}"))
            .arg(number)
            .arg(number)
            .exec(&mut connection)
            .unwrap();
    }
    redis::cmd("SADD").arg("skills:custom:index").arg(id).exec(&mut connection).unwrap();
}

#[test]
fn skills_of_langchain_docker_are_brought_with_all_their_versions() {
    let Some(redis) = RedisServer::start("skills_of_langchain_docker_are_brought") else { return };
    put_skill(&redis, "my_skill");
    let sandbox = Sandbox::new();
    let typist = Typist::here(&sandbox);
    let url = redis.url();
    let dry = typist.json(&["import-redis", &url, "--dry-run"]);
    assert_eq!((&dry["skills"][0]["status"], &dry["problems"]), (&json!("new"), &json!([])));
    assert!(custom(&typist).is_empty());
    let run = typist.ok(&["import-redis", &url]);
    assert_eq!(run.stdout, "imported  my_skill  3 versions, version 2 is used\n");
    assert!(run.stderr.contains("Metrics are not carried over"), "{run:?}");
    let versions = typist.json(&["versions", "my_skill"]);
    let rows = versions["versions"].as_array().unwrap();
    let told: Vec<_> = rows
        .iter()
        .map(|it| {
            (
                it["version_number"].as_u64(),
                it["change_summary"].as_str(),
                it["is_active"].as_bool(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some(3), Some("Change 3"), Some(false)),
            (Some(2), Some("Change 2"), Some(true)),
            (Some(1), Some("Change 1"), Some(false)),
        ]
    );
    assert!(rows.iter().all(|it| it["author"] == "local" && it["created_by"] == "local"));
    // Whom they name as their author stands in their text.
    for number in ["1", "2", "3"] {
        typist.ok(&["pull", "my_skill", "--version", number, "--to", number]);
        let path = sandbox.path().join(number).join("my_skill/SKILL.md");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("\nauthor: me\n"), "{text}");
    }
    let again = typist.json(&["import-redis", &url]);
    assert_eq!(again["skills"][0]["status"], "skipped");
    drop(redis);
    assert_eq!(typist.code(&["import-redis", &url]), "redis_unavailable");
    assert_eq!(typist.code(&["import-redis", "nonsense"]), "invalid_address");
}

/// The registry of a sandbox, past the command line.
fn store(sandbox: &Sandbox) -> SqliteStore {
    SqliteStore::open(sandbox.path().join("home/prowess.db")).unwrap()
}

/// Does what an import does that is killed when it has made so many versions of a skill.
fn begin_import(sandbox: &Sandbox, address: &str, id: &str, count: usize) {
    let imported = fetch(address, &FetchLimits::default()).unwrap().import();
    let skill = imported.skills.iter().find(|skill| skill.id.as_str() == id).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for version in &skill.versions[..count] {
        let contents = version.document.contents(&skill.id).unwrap();
        let about = SkillReading::of(&contents).unwrap().about;
        let mut new = NewVersion::new(skill.id.clone(), contents.into(), about, Actor::local())
            .because(version.change_summary.clone());
        (new.activation, new.created) = (Activation::Later, version.created);
        runtime.block_on(store(sandbox).versions().append(new)).unwrap();
    }
}

#[test]
fn an_import_that_was_interrupted_is_completed_and_nothing_stops_the_others() {
    let test = "an_import_that_was_interrupted_is_completed";
    let Some(redis) = RedisServer::start(test) else { return };
    let sandbox = Sandbox::new();
    let (typist, url) = (Typist::here(&sandbox), redis.url());
    for id in ["begun", "broken", "elsewhere", "made", "other"] {
        put_skill(&redis, id);
    }
    // One was killed in the middle, one at the end; one waits that somebody else has made.
    sandbox.write("work/elsewhere/SKILL.md", skill("elsewhere", "1.0.0", "# Mine\n"));
    sandbox.write("work/broken/SKILL.md", skill("broken", "1.0.0", "# Mine\n"));
    typist.ok(&["push", "work", "--no-activate"]);
    typist.ok(&["activate", "broken", "1"]);
    begin_import(&sandbox, &url, "begun", 1);
    begin_import(&sandbox, &url, "made", 3);
    let database = rusqlite::Connection::open(sandbox.path().join("home/prowess.db")).unwrap();
    let spoil = "UPDATE versions SET about = 'no JSON ' || about WHERE skill = 'broken'";
    database.execute(spoil, []).unwrap();

    let run = typist.skills(&["import-redis", &url]);
    assert_eq!(run.code, 1, "{run:?}");
    let told: Vec<&str> = run.stdout.lines().collect();
    let expected = [
        "imported  begun  3 versions, version 2 is used",
        "skipped   elsewhere  it is in the registry already",
        "imported  made  3 versions, version 2 is used",
        "imported  other  3 versions, version 2 is used",
    ];
    assert_eq!(told, expected, "{run:?}");
    assert!(run.stderr.contains("failed    broken  error[corrupt]: "), "{run:?}");
    for id in ["begun", "made", "other"] {
        let versions = typist.json(&["versions", id]);
        let rows = versions["versions"].as_array().unwrap();
        let told: Vec<_> = rows
            .iter()
            .map(|it| (it["change_summary"].as_str().unwrap(), it["is_active"] == true))
            .collect();
        assert_eq!(told, [("Change 3", false), ("Change 2", true), ("Change 1", false)], "{id}");
    }
    // Again: only what is not there is brought.
    let mend = "UPDATE versions SET about = substr(about, 9) WHERE skill = 'broken'";
    database.execute(mend, []).unwrap();
    let again = typist.json(&["import-redis", &url]);
    let rows = again["skills"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row["status"] == "skipped" && row["error"].is_null()), "{again}");
}
