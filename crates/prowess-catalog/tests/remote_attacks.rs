//! Servers that attack (S08, 4). Each attack first succeeds against a client that believes what it
//! is told, and then fails against ours.

#[path = "support/packed.rs"]
mod packed;
#[path = "support/server.rs"]
mod server;
mod support;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packed::zip_of_skills;
use prowess_catalog::{
    Location, Lookup, Reach, RemoteCache, RemoteError, RemoteLimits, RemoteSource,
};
use server::{Answer, Manner, Server};
use support::Tree;

fn source(tree: &Tree, location: &str) -> RemoteSource {
    let location = Location::parse(location).unwrap();
    let limits = RemoteLimits::default().with_connect_seconds(2).with_fetch_seconds(10);
    RemoteSource::new(location, RemoteCache::new(tree.at("cache"))).with_limits(limits)
}

async fn refused(source: RemoteSource) -> RemoteError {
    source.refresh().await.map(|status| panic!("{status:?}")).unwrap_err()
}

fn archive() -> Answer {
    Answer::ok(zip_of_skills(&["secret"], "secret"))
}

/// Names that the test decides on, one answer after the other; the last one stays.
fn names(answers: Vec<Vec<IpAddr>>) -> (Lookup, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let lookup: Lookup = Arc::new(move |_| {
        let at = counter.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
        let answer = answers[at].clone();
        Box::pin(async move { Ok(answer) })
    });
    (lookup, asked)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The control: connects to wherever the system takes the text for, and follows redirects.
fn naive_get(host: &str, port: u16) -> bool {
    let Ok(mut addresses) = (host, port).to_socket_addrs() else { return false };
    addresses.any(|address| {
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(1)) else {
            return false;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let _ = write!(stream, "GET /s.zip HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer.starts_with(b"HTTP/1.1 200")
    })
}

#[test]
fn only_public_addresses_are_public() {
    for address in [
        "8.8.8.8",
        "1.1.1.1",
        "93.184.216.34",
        "172.15.255.255",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "169.253.1.1",
        "192.167.1.1",
        "198.17.1.1",
        "198.20.0.1",
        "223.255.255.255",
        "11.0.0.1",
        "126.255.255.255",
        "128.0.0.1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "2001:4860:4860::8888",
        "64:ff9b::8.8.8.8",
        "::ffff:8.8.8.8",
    ] {
        assert!(Reach::Public.includes(ip(address)), "{address}");
    }
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:0a00:1::",
        "3fff::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "5f00::1",
    ] {
        assert!(!Reach::Public.includes(ip(address)), "{address}");
        assert!(Reach::Any.includes(ip(address)));
    }
    let one = Reach::PublicAnd(vec![ip("10.1.2.3")]);
    for (address, expected) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("10.1.2.4", false),
        ("127.0.0.1", false),
        ("8.8.8.8", true),
    ] {
        assert_eq!(one.includes(ip(address)), expected, "{address}");
    }
    assert_eq!("allow".parse::<Reach>(), Ok(Reach::Any));
    assert_eq!("10.1.2.3, ::1".parse(), Ok(Reach::PublicAnd(vec![ip("10.1.2.3"), ip("::1")])));
    for wrong in ["", "yes", "10.0.0.0/8", "10.1.2.3;10.1.2.4"] {
        assert!(wrong.parse::<Reach>().is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn loopback_is_refused_however_it_is_written() {
    let server = Server::of(archive());
    let port = server.port();
    let tree = Tree::new();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "%31%32%37.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
    ] {
        let url = format!("http://{host}:{port}/s.zip");
        let before = server.requests();
        // The control is a client that connects to any address: ours, with the switch.
        let reached = source(&tree, &url).with_reach(Reach::Any).refresh().await;
        if let Err(error) = &reached {
            assert!(host == "localhost." || host.contains("::"), "{host}: {error}");
        } else {
            assert!(server.requests() > before, "{host} reaches nobody: no attack");
        }
        let before = server.requests();
        let error = refused(source(&tree, &url)).await;
        let code = error.code();
        assert!(
            code == "address_refused" || (code == "unreachable" && reached.is_err()),
            "{host}: {error}"
        );
        assert_eq!(server.requests(), before, "{host}: nobody was connected to");
    }
    assert!(naive_get("127.1", port) && naive_get("localhost", port), "the system agrees");
}

#[tokio::test]
async fn addresses_of_version_6_are_vetted() {
    let tree = Tree::new();
    let server = std::panic::catch_unwind(|| Server::start_at(ip("::1"), 0, |_| archive()));
    let Ok(server) = server else {
        return support::skip("addresses_of_version_6_are_vetted", "there is no ::1");
    };
    assert!(naive_get("::1", server.port()), "control");
    for host in ["[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]"] {
        let before = server.requests();
        let url = format!("http://{host}:{}/s.zip", server.port());
        assert_eq!(refused(source(&tree, &url)).await.code(), "address_refused", "{host}");
        assert_eq!(server.requests(), before);
        let allowed = Reach::PublicAnd(vec![ip("::1")]);
        assert!(source(&tree, &url).with_reach(allowed).refresh().await.is_ok());
    }
}

#[tokio::test]
async fn private_addresses_are_refused_without_asking_them() {
    let tree = Tree::new();
    for host in [
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::a00:1]",
        "[2002:a00:1::]",
    ] {
        let begin = Instant::now();
        let error = refused(source(&tree, &format!("http://{host}/latest/meta-data/s.zip"))).await;
        assert_eq!(error.code(), "address_refused", "{host}: {error}");
        assert!(begin.elapsed() < Duration::from_secs(1), "nobody waits for an answer");
    }
}

#[tokio::test]
async fn a_redirect_leads_nowhere_else() {
    let tree = Tree::new();
    // The inner server is at an address that is not allowed, the outer one at one that is.
    let inner = Server::of(archive());
    let allowed = Reach::PublicAnd(vec![ip("127.0.0.2")]);
    for target in [
        format!("http://127.0.0.1:{}/s.zip", inner.port()),
        format!("http://2130706433:{}/s.zip", inner.port()),
        format!("http://[::ffff:127.0.0.1]:{}/s.zip", inner.port()),
        format!("http://localhost:{}/s.zip", inner.port()),
        format!("//127.0.0.1:{}/s.zip", inner.port()),
    ] {
        let to = target.clone();
        let outer = Server::start_at(ip("127.0.0.2"), 0, move |_| Answer::redirect(&to));
        // The control follows.
        let control = source(&tree, &outer.url("s.zip")).with_reach(Reach::Any).refresh().await;
        if !target.contains("::") {
            assert!(control.is_ok() && inner.requests() > 0, "{target}: {control:?}");
        }
        let before = inner.requests();
        let remote = source(&tree, &outer.url("s.zip")).with_reach(allowed.clone());
        assert_eq!(refused(remote).await.code(), "address_refused", "{target}");
        assert_eq!(inner.requests(), before, "{target}");
    }
    for target in [
        "file:///etc/passwd",
        "ftp://127.0.0.2/x",
        "gopher://127.0.0.2/x",
        "http://me:secret@127.0.0.2/x",
        "http://",
        "",
    ] {
        let outer = Server::start_at(ip("127.0.0.2"), 0, move |_| Answer::redirect(target));
        let remote = source(&tree, &outer.url("s.zip")).with_reach(allowed.clone());
        assert_eq!(refused(remote).await.code(), "redirect_refused", "{target}");
    }
    // As often as the limit says, and not once more.
    let bytes = zip_of_skills(&["a"], "text");
    let chain = Server::start_at(ip("127.0.0.2"), 0, move |request| {
        match request.path.trim_start_matches('/').trim_end_matches(".zip").parse::<usize>() {
            Ok(0) => Answer::ok(bytes.clone()),
            Ok(left) => Answer::redirect(&format!("/{}.zip", left - 1)),
            Err(_) => Answer::redirect("/loop.zip"),
        }
    });
    let remote = source(&tree, &chain.url("5.zip")).with_reach(allowed.clone());
    assert!(remote.refresh().await.is_ok());
    for path in ["6.zip", "loop.zip"] {
        let remote = source(&tree, &chain.url(path)).with_reach(allowed.clone());
        assert_eq!(refused(remote).await.code(), "redirect_refused", "{path}");
    }
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_what_was_vetted_is_connected_to() {
    let tree = Tree::new();
    // Two servers on one port: the honest one, and the one that nobody may reach.
    let inner = Server::of(archive());
    let port = inner.port();
    let honest =
        Server::start_at(ip("127.0.0.2"), port, |_| Answer::ok(zip_of_skills(&["honest"], "text")));
    let allowed = Reach::PublicAnd(vec![ip("127.0.0.2")]);
    let rebinding = || names(vec![vec![ip("127.0.0.2")], vec![ip("127.0.0.1")]]);
    // The control: vets what it looks up, then connects by name, which looks up again.
    let (lookup, _) = rebinding();
    let vetted = lookup("rebind.example".into()).await.unwrap();
    assert!(vetted.iter().all(|address| allowed.includes(*address)));
    let connected = lookup("rebind.example".into()).await.unwrap();
    assert!(naive_get(&connected[0].to_string(), port), "the control is led inside");
    let before = inner.requests();
    let (lookup, asked) = rebinding();
    let url = format!("http://rebind.example:{port}/s.zip");
    let remote = source(&tree, &url).with_reach(allowed.clone()).with_lookup(lookup.clone());
    remote.refresh().await.unwrap();
    assert_eq!((honest.requests(), inner.requests()), (1, before));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "one connection, one look");
    // The next time the name leads inside.
    let remote = source(&tree, &url).with_reach(allowed.clone()).with_lookup(lookup);
    assert_eq!(refused(remote).await.code(), "address_refused");
    // Both at once, in either order.
    for answer in [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]] {
        let (lookup, _) = names(vec![answer.map(ip).to_vec()]);
        let remote = source(&tree, &url).with_reach(allowed.clone()).with_lookup(lookup);
        assert_eq!(refused(remote).await.code(), "address_refused", "{answer:?}");
    }
    // A redirect to a name that leads inside.
    let target = format!("http://inside.example:{port}/s.zip");
    let outer = Server::start_at(ip("127.0.0.2"), 0, move |_| Answer::redirect(&target));
    let lookup: Lookup = Arc::new(|_| Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) }));
    let remote = source(&tree, &outer.url("s.zip")).with_reach(allowed).with_lookup(lookup);
    assert_eq!(refused(remote).await.code(), "address_refused");
    assert_eq!(inner.requests(), before, "nobody was inside");
}

#[tokio::test]
async fn endless_and_slow_bodies_are_cut_off() {
    let tree = Tree::new();
    let limits = || {
        RemoteLimits::default()
            .with_download_bytes(1 << 20)
            .with_idle_seconds(1)
            .with_fetch_seconds(2)
    };
    let endless = Server::of(Answer::ok("").in_manner(Manner::Endless));
    // The control reads on: more than the limit comes.
    let mut stream = TcpStream::connect(("127.0.0.1", endless.port())).unwrap();
    write!(stream, "GET / HTTP/1.1\r\n\r\n").unwrap();
    let read = std::io::copy(&mut stream.take(4 << 20), &mut std::io::sink()).unwrap();
    assert_eq!(read, 4 << 20);
    let slow = Server::of(archive().in_manner(Manner::Slow(Duration::from_millis(100))));
    let silent = Server::of(Answer::ok("").in_manner(Manner::Silent));
    let stuck = Server::of(
        Answer::ok("x")
            .with("Content-Length", "1000")
            .in_manner(Manner::Slow(Duration::from_secs(3))),
    );
    let lying = Server::of(Answer::ok("x").with("Content-Length", "99999999999"));
    for (server, code) in [
        (&endless, "too_large"),
        (&lying, "too_large"),
        (&slow, "too_slow"),
        (&silent, "too_slow"),
        (&stuck, "too_slow"),
    ] {
        let begin = Instant::now();
        let remote =
            source(&tree, &server.url("s.zip")).with_reach(Reach::Any).with_limits(limits());
        let error = refused(remote).await;
        assert_eq!(error.code(), code, "{error}");
        assert!(begin.elapsed() < Duration::from_secs(4), "{error}: {:?}", begin.elapsed());
    }
    let left = std::fs::read_dir(tree.at("cache"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".new-"));
    assert_eq!(left.count(), 0, "nothing of it stays");
}

#[test]
fn locations_are_what_they_should_be() {
    let code = |text: &str| Location::parse(text).map_err(|error| RemoteError::from(error).code());
    for text in [
        "ftp://example.com/x.zip",
        "git://example.com/x",
        "javascript://alert",
        "https://me@example.com/x.zip",
        "https://me:secret@example.com/x.zip",
        "https://example.com/x.zip#main",
        "https://example.com/x.zip#sha256=1234",
        "https://example.com/x.zip#sha512=1234",
        "http://",
        "https://[::1/x.zip",
        "file://elsewhere/x.zip",
        "x.zip#sha256=12",
    ] {
        assert_eq!(code(text), Err("invalid_location"), "{text}");
    }
    let pin = "a".repeat(64);
    for (text, shown) in [
        ("https://example.com/x.zip", "https://example.com/x.zip"),
        ("HTTPS://EXAMPLE.com/x.zip", "https://example.com/x.zip"),
        ("https://example.com", "https://example.com/.well-known/agent-skills/index.json"),
        (
            "https://example.com/d/.well-known/skills/",
            "https://example.com/d/.well-known/skills/index.json",
        ),
        ("file:///a%20b/x.zip", "/a b/x.zip"),
        ("./x.zip", "./x.zip"),
    ] {
        for pinned in ["".to_owned(), format!("#sha256={pin}")] {
            let location = Location::parse(&format!("{text}{pinned}")).unwrap();
            assert_eq!(location.shown(), shown);
            assert_eq!(location.pin().is_some(), !pinned.is_empty());
        }
    }
}
