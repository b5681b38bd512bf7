//! `prowess source`, and sources that are fetched (S08, 1 and 5).

mod support;

#[path = "../../prowess-catalog/tests/support/packed.rs"]
mod packed;
#[path = "../../prowess-catalog/tests/support/server.rs"]
mod server;

use std::fs;
use std::process::Command;

use packed::{tgz_of, zip_of_skills};
use prowess_format::Digest;
use server::{Answer, Server};
use support::{Run, Sandbox, minimal};

/// Runs `prowess` with a home of its own.
fn prowess(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.args(arguments).env("HOME", sandbox.path().join("home"));
    for name in [
        "PROWESS_HOME",
        "PROWESS_SKILLS",
        "PROWESS_CACHE_DIR",
        "PROWESS_PRIVATE_ADDRESSES",
        "SKILLS_ROOT",
        "SKILLS_CACHE_DIR",
        "XDG_CONFIG_HOME",
    ] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    sandbox.run(command, b"")
}

const ALLOWED: (&str, &str) = ("PROWESS_PRIVATE_ADDRESSES", "127.0.0.1");

fn names(run: &Run) -> Vec<String> {
    let json = run.json();
    let skills = json["skills"].as_array().unwrap().iter();
    skills.map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
}

fn codes(run: &Run) -> Vec<String> {
    let json = run.json();
    let found = json["diagnostics"].as_array().unwrap().iter();
    found.map(|found| found["code"].as_str().unwrap().to_owned()).collect()
}

/// A text without what differs from run to run.
fn stable(run: &Run, server: Option<&Server>, sandbox: &Sandbox) -> String {
    let mut text = run.text().replace(&sandbox.path().display().to_string(), "[SANDBOX]");
    if let Some(server) = server {
        text = text.replace(&server.port().to_string(), "[PORT]");
    }
    let mut out = String::new();
    let mut rest = text.as_str();
    // Digests depend on the time in the archives.
    while let Some(at) = rest.find("sha256") {
        let (before, digest) = rest.split_at(at + 7);
        out.push_str(before);
        out.push_str("[DIGEST]");
        rest = digest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out.push_str(rest);
    out
}

#[test]
fn a_source_is_added_listed_refreshed_and_removed() {
    let sandbox = Sandbox::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["one", "two"], "old")));
    let url = server.url("skills.zip");
    let added = prowess(&sandbox, &[ALLOWED], &["source", "add", &url]);
    insta::assert_snapshot!("source_add", stable(&added, Some(&server), &sandbox));
    let config = sandbox.path().join("home/.prowess/prowess.toml");
    assert_eq!(fs::read_to_string(&config).unwrap(), format!("[skills]\nsources = [\"{url}\"]\n"));
    // From the cache: nobody is asked, no switch is needed.
    let asked = server.requests();
    let list = prowess(&sandbox, &[], &["list", "--json"]);
    assert_eq!(names(&list), ["one", "two"]);
    assert_eq!(list.json()["skills"][0]["trust"], "untrusted");
    assert_eq!(list.json()["skills"][0]["path"], format!("{url}/one/SKILL.md"));
    assert_eq!(server.requests(), asked);
    let read = prowess(&sandbox, &[], &["read", "one"]);
    assert!(read.stdout.contains("old"), "{read:?}");
    let listed = prowess(&sandbox, &[], &["source", "list"]);
    let text = stable(&listed, Some(&server), &sandbox);
    let seconds = text.find("asked ").unwrap() + 6;
    assert!(text[seconds..].starts_with(|c: char| c.is_ascii_digit()));
    let json = prowess(&sandbox, &[], &["source", "ls", "--json"]).json();
    assert_eq!(json["sources"][0]["location"], url);
    assert_eq!(json["sources"][0]["trust"], "untrusted");
    // A new version.
    server.answer(|_| Answer::ok(zip_of_skills(&["three"], "new")));
    let refreshed = prowess(&sandbox, &[ALLOWED], &["source", "refresh", "--json"]).json();
    assert_eq!(refreshed["sources"][0]["changed"], true);
    assert_eq!(names(&prowess(&sandbox, &[], &["list", "--json"])), ["three"]);
    let refreshed = prowess(&sandbox, &[ALLOWED], &["source", "refresh", &url]);
    assert!(refreshed.stdout.contains("not changed"), "{refreshed:?}");
    // The server is gone.
    server.answer(|_| Answer::status(503));
    let failed = prowess(&sandbox, &[ALLOWED], &["source", "refresh"]);
    assert_eq!(failed.code, 1);
    insta::assert_snapshot!("source_refresh_fails", stable(&failed, Some(&server), &sandbox));
    assert_eq!(names(&prowess(&sandbox, &[], &["list", "--json"])), ["three"]);
    let unknown = prowess(&sandbox, &[], &["source", "refresh", "https://example.com/x.zip"]);
    assert_eq!(unknown.code, 1);
    let removed = prowess(&sandbox, &[], &["source", "remove", &url]);
    insta::assert_snapshot!("source_remove", stable(&removed, Some(&server), &sandbox));
    assert_eq!(fs::read_dir(sandbox.path().join("home/.prowess/cache/trees")).unwrap().count(), 0);
    assert!(names(&prowess(&sandbox, &[], &["list", "--json"])).is_empty());
    let again = prowess(&sandbox, &[], &["source", "rm", &url, "--json"]);
    assert_eq!((again.code, &again.json()["error"]["code"]), (1, &"unknown_source".into()));
}

#[test]
fn a_pin_is_written_and_holds() {
    let sandbox = Sandbox::new();
    let bytes = zip_of_skills(&["one"], "old");
    let hex = Digest::of(&bytes).hex();
    let server = Server::of(Answer::ok(bytes));
    let url = server.url("skills.zip");
    let added = prowess(&sandbox, &[ALLOWED], &["source", "add", "--pin", "--json", &url]).json();
    assert_eq!(added["location"], format!("{url}#sha256={hex}"));
    assert_eq!((&added["trust"], &added["skills"][0]), (&"trusted".into(), &"one".into()));
    let list = prowess(&sandbox, &[], &["list", "--json"]);
    assert_eq!((names(&list), codes(&list)), (vec!["one".to_owned()], vec![]));
    // Somebody changes it, and the cache is lost.
    server.answer(|_| Answer::ok(zip_of_skills(&["one"], "hostile")));
    fs::remove_dir_all(sandbox.path().join("home/.prowess/cache")).unwrap();
    let list = prowess(&sandbox, &[ALLOWED], &["list", "--json"]);
    assert_eq!((names(&list).len(), codes(&list)), (0, vec!["source-unavailable".to_owned()]));
    let wrong = format!("{url}#sha256={}", "0".repeat(64));
    let run = prowess(&sandbox, &[ALLOWED], &["source", "add", &wrong]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("[digest_mismatch]"), "{run:?}");
    // By its place alone it is removed, whatever the pin.
    assert_eq!(prowess(&sandbox, &[], &["source", "remove", &url]).code, 0);
}

#[test]
fn loopback_is_refused_without_the_switch_and_a_project_cannot_turn_it_on() {
    let sandbox = Sandbox::new();
    let server = Server::of(Answer::ok(zip_of_skills(&["inside"], "secret")));
    let url = server.url("skills.zip");
    let run = prowess(&sandbox, &[], &["source", "add", &url]);
    insta::assert_snapshot!("source_add_loopback", stable(&run, Some(&server), &sandbox));
    assert!(!sandbox.path().join("home/.prowess/prowess.toml").exists());
    sandbox.write("prowess.toml", format!("[skills]\nsources = [\"{url}\"]\n"));
    let list = prowess(&sandbox, &[], &["list", "--json"]);
    assert_eq!((names(&list).len(), codes(&list)), (0, vec!["source-unavailable".to_owned()]));
    assert_eq!(server.requests(), 0);
    for line in ["private_addresses = \"allow\"", "reach = \"any\""] {
        sandbox
            .write("prowess.toml", format!("[skills]\nsources = [\"{url}\"]\n[remote]\n{line}\n"));
        assert_eq!(prowess(&sandbox, &[], &["list"]).code, 2, "{line}");
    }
    sandbox.write("prowess.toml", "");
    // The control: the user says so.
    let variables = [ALLOWED, ("SKILLS_ROOT", url.as_str())];
    assert_eq!(names(&prowess(&sandbox, &variables, &["list", "--json"])), ["inside"]);
    let wrong = prowess(&sandbox, &[("PROWESS_PRIVATE_ADDRESSES", "yes")], &["list"]);
    assert_eq!(wrong.code, 2);
}

#[test]
fn skills_root_may_be_a_url_and_the_cache_is_where_it_was_put() {
    let sandbox = Sandbox::new();
    let server = Server::of(Answer::ok(tgz_of(&[("one/SKILL.md", &minimal("one"))])));
    let url = server.url("skills.tar.gz");
    let own = sandbox.path().join("own").display().to_string();
    let theirs = sandbox.path().join("theirs").display().to_string();
    for (variables, folder) in [
        (vec![], "home/.prowess/cache"),
        (vec![("SKILLS_CACHE_DIR", theirs.as_str())], "theirs"),
        (vec![("SKILLS_CACHE_DIR", theirs.as_str()), ("PROWESS_CACHE_DIR", own.as_str())], "own"),
    ] {
        let mut variables = variables;
        variables.extend([ALLOWED, ("SKILLS_ROOT", url.as_str())]);
        let list = prowess(&sandbox, &variables, &["list", "--json"]);
        assert_eq!(names(&list), ["one"], "{list:?}");
        assert_eq!(fs::read_dir(sandbox.path().join(folder).join("trees")).unwrap().count(), 1);
    }
    // Among paths too, with its port.
    sandbox.write("plain/two/SKILL.md", minimal("two"));
    let paths = format!("plain:{url}:file://{}/plain", sandbox.path().display());
    let variables = [ALLOWED, ("PROWESS_SKILLS", paths.as_str())];
    assert_eq!(names(&prowess(&sandbox, &variables, &["list", "--json"])), ["one", "two"]);
}

/// A server that speaks TLS, with a certificate that this authority has signed.
fn tls_server(authority: &rcgen::CertifiedIssuer<'_, rcgen::KeyPair>, content: Vec<u8>) -> u16 {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned()];
    let signed = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, authority).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], key.into())
        .unwrap();
    let config = std::sync::Arc::new(config);
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let connection = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            let mut request = [0; 4096];
            // Whoever does not believe the certificate asks nothing.
            if std::io::Read::read(&mut stream, &mut request).is_ok() {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
                let _ =
                    std::io::Write::write_all(&mut stream, &[head.as_bytes(), &content].concat());
                let _ = std::io::Write::flush(&mut stream);
            }
        }
    });
    port
}

#[test]
fn https_is_spoken_and_certificates_are_verified() {
    let sandbox = Sandbox::new();
    let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap();
    let port = tls_server(&authority, zip_of_skills(&["one"], "text"));
    let url = format!("https://127.0.0.1:{port}/skills.zip");
    let list = |variables: &[(&str, &str)]| {
        let variables = [&[ALLOWED, ("SKILLS_ROOT", url.as_str())], variables].concat();
        prowess(&sandbox, &variables, &["list", "--json"])
    };
    let unknown = list(&[]);
    assert_eq!(
        (names(&unknown).len(), codes(&unknown)),
        (0, vec!["source-unavailable".to_owned()])
    );
    let text = unknown.json()["diagnostics"][0]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("certificate"), "{text}");
    let file = sandbox.write("authority.pem", authority.pem());
    let known = list(&[("SSL_CERT_FILE", file.to_str().unwrap())]);
    assert_eq!((names(&known), codes(&known)), (vec!["one".to_owned()], vec![]));
}

#[test]
fn archives_on_this_machine_are_sources() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("team/skills.zip", zip_of_skills(&["one"], "text"));
    let file_url = format!("file://{}", path.display());
    for location in ["team/skills.zip", "./team/skills.zip", &file_url] {
        let list = prowess(&sandbox, &[], &["list", "--json", "--source", location]);
        assert_eq!(names(&list), ["one"], "{location} {list:?}");
    }
    let list = prowess(&sandbox, &[], &["list", "--json", "--source", "missing.zip"]);
    assert_eq!(codes(&list), ["unreadable-file"]);
    // A wrong source hurts no other.
    sandbox.write(
        "prowess.toml",
        "# mine\n[skills]\nsources = [\"ftp://x/y.zip\", \"team/skills.zip\"] # two\n",
    );
    let list = prowess(&sandbox, &[], &["list", "--json"]);
    assert_eq!(
        (names(&list), codes(&list)),
        (vec!["one".to_owned()], vec!["source-unavailable".to_owned()])
    );
    let doctor = prowess(&sandbox, &[], &["doctor"]);
    insta::assert_snapshot!("doctor_wrong_source", stable(&doctor, None, &sandbox));
    // What is written keeps everything else in the file.
    let other = sandbox.write("other.zip", zip_of_skills(&["two"], "text"));
    let run = prowess(&sandbox, &[], &["source", "add", "other.zip", "--trust"]);
    assert_eq!(run.code, 0, "{run:?}");
    let text = fs::read_to_string(sandbox.path().join("prowess.toml")).unwrap();
    let other = other.canonicalize().unwrap();
    assert_eq!(
        text,
        format!(
            "# mine\n[skills]\nsources = [\"ftp://x/y.zip\", \"team/skills.zip\"] # two\ntrusted_sources = [\"{}\"]\n",
            other.display()
        )
    );
    let json = prowess(&sandbox, &[], &["list", "--json"]).json();
    let trust: Vec<_> =
        json["skills"].as_array().unwrap().iter().map(|skill| skill["trust"].clone()).collect();
    assert_eq!(trust, ["untrusted", "trusted"]);
    for (location, code) in [("ftp://x/y.zip", 2), ("nothing.zip", 1), ("https://me:pw@x/y.zip", 2)]
    {
        assert_eq!(prowess(&sandbox, &[], &["source", "add", location]).code, code, "{location}");
    }
}

#[test]
fn limits_are_read_from_prowess_toml() {
    let sandbox = Sandbox::new();
    sandbox.write("skills.zip", zip_of_skills(&["one", "two"], "text"));
    let all = [
        "download_bytes",
        "entry_bytes",
        "total_bytes",
        "entries",
        "ratio",
        "ratio_from",
        "extension_bytes",
        "index_bytes",
        "index_skills",
        "redirects",
        "connect_seconds",
        "idle_seconds",
        "fetch_seconds",
        "fresh_seconds",
        "retry_seconds",
        "unused_seconds",
    ];
    let text: String = all.iter().map(|name| format!("{name} = 100000\n")).collect();
    sandbox
        .write("prowess.toml", format!("[skills]\nsources = [\"skills.zip\"]\n[remote]\n{text}"));
    assert_eq!(names(&prowess(&sandbox, &[], &["list", "--json"])), ["one", "two"]);
    sandbox.write("prowess.toml", "[skills]\nsources = [\"skills.zip\"]\n[remote]\nentries = 3\n");
    let list = prowess(&sandbox, &[], &["list", "--json"]);
    assert_eq!((names(&list).len(), codes(&list)), (0, vec!["source-unavailable".to_owned()]));
    assert!(list.json()["diagnostics"][0]["message"].as_str().unwrap().contains("`entries` = 3"));
}

#[test]
fn help_is_there() {
    let sandbox = Sandbox::new();
    let mut text = String::new();
    for command in ["add", "list", "refresh", "remove"] {
        text.push_str(&prowess(&sandbox, &[], &["source", command, "--help"]).text());
    }
    insta::assert_snapshot!("source_help", text);
}
