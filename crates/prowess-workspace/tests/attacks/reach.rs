//! What is beyond files: variables, descriptors, the network, sockets.

use std::net::TcpListener;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use prowess_workspace::{Command, Network, Run, Tier};

use super::attack;
use crate::support::{Ground, said, set_mode, tiers};

/// Trap 1: what `bwrap --clearenv` leaves in its first process, and what our own process has.
#[tokio::test]
async fn the_environment_cannot_be_seen() {
    let ground = Ground::new();
    let naive = std::process::Command::new("bwrap")
        .args(["--clearenv", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc"])
        .args(["cat", "/proc/1/environ"])
        .env("PASSWORD", "hunter2")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&naive.stdout).contains("hunter2"), "the control must succeed");
    // Cargo sets this variable for tests.
    let line = "for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $f; done 2>/dev/null | grep -q ^CARGO_MANIFEST_DIR && echo broken";
    attack(&ground, line).await;
    attack(&ground, "env | grep -q ^CARGO_MANIFEST_DIR && echo broken").await;
    // Nor where things are on this machine.
    let place = ground.folder.path().display().to_string();
    let line =
        "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done; cat /proc/self/mountinfo";
    for tier in tiers().into_iter().filter(|tier| *tier >= Tier::T2) {
        let text = ground.run(tier, line).await.stdout.text(1 << 20);
        let is_told = |line: &str| !line.contains("/dev/") && line.contains(&place);
        assert!(!text.lines().any(is_told), "{tier:?} {text}");
    }
}

/// Trap 2.
#[tokio::test]
async fn open_descriptors_are_not_passed_on() {
    let ground = Ground::new();
    let file = std::fs::File::open(ground.at("outside/secret")).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let line = format!("grep -q hunter2 <&{} && echo broken", file.as_raw_fd());
    attack(&ground, &line).await;
}

#[tokio::test]
async fn the_network_cannot_be_reached() {
    let ground = Ground::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    attack(&ground, &format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo broken")).await;
    let six = TcpListener::bind("[::1]:0");
    if let Ok(six) = six {
        let port = six.local_addr().unwrap().port();
        attack(&ground, &format!("exec 3<>/dev/tcp/::1/{port} && echo broken")).await;
    }
    // Whether a datagram went out is seen where it arrives.
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let line = format!("echo hunter2 > /dev/udp/127.0.0.1/{}", udp.local_addr().unwrap().port());
    ground.unprotected(&line);
    assert!(udp.recv(&mut [0; 16]).is_ok(), "the control must succeed");
    for tier in tiers() {
        ground.run(tier, &line).await;
        assert!(udp.recv(&mut [0; 16]).is_err(), "{tier:?}");
    }
}

#[tokio::test]
async fn odd_sockets_cannot_be_made() {
    let ground = Ground::new();
    let make = |family: i32, kind: i32| {
        format!(
            "python3 -c 'import socket; socket.socket({family}, {kind})' 2>/dev/null && echo broken"
        )
    };
    // Netlink, vsock, alg; packet sockets need rights that nobody has.
    attack(&ground, &make(libc::AF_NETLINK, libc::SOCK_RAW)).await;
    for (family, kind) in [
        (libc::AF_VSOCK, libc::SOCK_STREAM),
        (libc::AF_ALG, libc::SOCK_SEQPACKET),
        (libc::AF_PACKET, libc::SOCK_RAW),
        (libc::AF_BLUETOOTH, libc::SOCK_RAW),
        (libc::AF_TIPC, libc::SOCK_STREAM),
    ] {
        for tier in tiers() {
            let outcome = ground.run(tier, &make(family, kind)).await;
            assert!(!said(&outcome).contains("broken"), "{tier:?} {family}");
        }
    }
    // What programs need among themselves stays.
    for tier in tiers() {
        let outcome = ground.run(tier, "python3 -c 'import socket; socket.socketpair()'").await;
        assert_eq!(outcome.exit_code, 0, "{tier:?} {}", said(&outcome));
    }
}

/// Trap 3.
#[tokio::test]
async fn sockets_of_other_programs_cannot_be_reached() {
    let ground = Ground::new();
    let path = ground.at("outside/engine.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    set_mode(&path, 0o777);
    let connect = |address: &str| {
        format!(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect({address})' 2>/dev/null && echo broken"
        )
    };
    attack(&ground, &connect(&format!("\"{}\"", path.display()))).await;
    let name = format!("prowess-test-{}", std::process::id());
    let _hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    attack(&ground, &connect(&format!("b\"\\0{name}\""))).await;
    // Not with the network of the machine either.
    for tier in tiers() {
        let line = connect(&format!("b\"\\0{name}\""));
        let outcome =
            ground.run_with(tier, &line, |run| run.network = Network::Host).await.unwrap();
        assert!(!said(&outcome).contains("broken"), "{tier:?}");
    }
}

#[tokio::test]
async fn a_granted_network_is_there_and_recorded() {
    let ground = Ground::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let line =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached", tcp.local_addr().unwrap().port());
    for tier in tiers() {
        let outcome =
            ground.run_with(tier, &line, |run| run.network = Network::Host).await.unwrap();
        assert!(said(&outcome).contains("reached"), "{tier:?} {}", said(&outcome));
        let record = serde_json::to_value(&outcome.isolation).unwrap();
        assert_eq!(record["net"]["state"], "granted");
    }
}

#[tokio::test]
async fn what_was_granted_to_one_run_is_not_granted_to_the_next() {
    let ground = Ground::new();
    let workspace = ground.workspace();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let line =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached", tcp.local_addr().unwrap().port());
    for tier in tiers() {
        // Nobody else takes the supervisor that waits for a run like the last one.
        let executor = crate::support::new_executor(tier);
        for network in [Network::Host, Network::None, Network::None, Network::Host] {
            let mut run = Run::new(&workspace, Command::Shell(line.clone()));
            run.network = network;
            let outcome = executor.run(run).await.unwrap();
            let is_reached = said(&outcome).contains("reached");
            assert_eq!(is_reached, network == Network::Host, "{tier:?} {}", said(&outcome));
        }
    }
}
