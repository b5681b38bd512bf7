//! Two machines, as it were, with a wire between them that can be cut.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where the one that this thread is on is, and the other one.
const HERE: &str = "10.9.1.1/30";
pub(crate) const THERE: &str = "10.9.1.2";
/// Nobody has this one.
const NOBODY: &str = "02:00:00:00:00:99";

/// A network of its own, which lives as long as this.
struct Network(Child);

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Network {
    fn new() -> Option<Self> {
        let mut sleep = Command::new("unshare");
        sleep.args(["-n", "sleep", "600"]).stdin(Stdio::null()).stderr(Stdio::null());
        let mut network = Self(sleep.spawn().ok()?);
        let (path, own) = (network.path(), fs::read_link("/proc/self/ns/net").ok()?);
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && network.0.try_wait().ok()?.is_none() {
            if fs::read_link(&path).is_ok_and(|it| it != own) {
                return network.run("ip", &["link", "set", "lo", "up"]).then_some(network);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    /// What a command begins with that runs there.
    fn through(&self) -> Vec<String> {
        ["nsenter", "-t", &self.0.id().to_string(), "-n"].map(str::to_owned).to_vec()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let through = self.through();
        run(Command::new(&through[0]).args(&through[1..]).arg(program).args(arguments))
    }
}

fn run(command: &mut Command) -> bool {
    let output = command.stdin(Stdio::null()).output();
    output.is_ok_and(|output| {
        let is_done = output.status.success();
        if !is_done {
            eprintln!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        is_done
    })
}

/// Two networks and a wire. The thread that makes this is on one of them from then on, and so is
/// whatever it starts; nothing of it is seen outside.
pub(crate) struct Wire {
    there: Network,
    _here: Network,
}

impl Wire {
    /// `None` where such things may not be made.
    pub(crate) fn new() -> Option<Self> {
        let (here, there) = (Network::new()?, Network::new()?);
        let other = there.0.id().to_string();
        let pair = ["link", "add", "pw0", "type", "veth", "peer", "name", "pw1", "netns", &other];
        let address = format!("{THERE}/30");
        let is_made = here.run("ip", &pair)
            && here.run("ip", &["addr", "add", HERE, "dev", "pw0"])
            && here.run("ip", &["link", "set", "pw0", "up"])
            && there.run("ip", &["addr", "add", &address, "dev", "pw1"])
            && there.run("ip", &["link", "set", "pw1", "up"]);
        let file = File::open(here.path()).ok()?;
        let network = Some(LinkNameSpaceType::Network);
        let is_there = is_made && move_into_link_name_space(file.as_fd(), network).is_ok();
        is_there.then_some(Self { there, _here: here })
    }

    /// What a command begins with that runs at the other end.
    pub(crate) fn through(&self) -> Vec<String> {
        self.there.through()
    }

    /// Whatever is sent is lost, and nobody is told.
    pub(crate) fn cut(&self) {
        let neighbour = ["neigh", "replace", THERE, "lladdr", NOBODY, "dev", "pw0"];
        assert!(run(Command::new("ip").args(neighbour).args(["nud", "permanent"])));
    }

    pub(crate) fn heal(&self) {
        assert!(run(Command::new("ip").args(["neigh", "del", THERE, "dev", "pw0"])));
    }
}
