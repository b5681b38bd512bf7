//! Namespaces with a root of their own, by `bwrap`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use super::order::Order;
use crate::executor::Network;

/// Where the supervisor itself is inside.
pub(crate) const SUPERVISOR: &str = "/run/prowess/supervisor";

/// What a command may read of `/etc`: nothing that is secret, nothing about the people here.
const ETC: [&str; 22] = [
    "alternatives",
    "ca-certificates",
    "debian_version",
    "fonts",
    "host.conf",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "perl",
    "pki",
    "protocols",
    "python3",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];

/// What names on the network need.
const ETC_NETWORK: [&str; 3] = ["hosts", "resolv.conf", "gai.conf"];

/// What a command may read of `/etc`.
pub(crate) fn etc(network: Network) -> impl Iterator<Item = &'static str> {
    let more = ETC_NETWORK.iter().filter(move |_| network == Network::Host);
    ETC.iter().chain(more).copied()
}

/// The folders of programs, whether real ones or links into `/usr`.
pub(crate) const PROGRAMS: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Who there is inside, as `/etc/passwd` and `/etc/group` say it.
pub(crate) fn people(order: &Order) -> [(&'static str, String); 2] {
    let own = || (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let (uid, gid) = order.identity.map_or_else(own, |it| (it.uid, it.gid));
    let home = order.inside.join("work");
    let passwd = format!("skill:x:{uid}:{gid}::{}:/bin/bash\n", home.display());
    [("/etc/passwd", passwd), ("/etc/group", format!("skill:x:{gid}:\n"))]
}

/// The arguments of `bwrap` for this order. The texts of some files are in open descriptors.
pub(crate) fn arguments(
    order: &Order,
    supervisor: &Path,
    texts: &[(&str, RawFd)],
) -> Vec<OsString> {
    let mut words = Words::default();
    let is_root = order.identity.is_some();
    match is_root {
        // It can do without a user namespace, and becomes somebody else inside.
        true => words.add(["--cap-drop", "ALL"]).add(
            ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"]
                .into_iter()
                .flat_map(|it| ["--cap-add", it]),
        ),
        false => words.add(["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]),
    };
    words.add(["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]);
    words.add(["--hostname", "prowess", "--die-with-parent", "--new-session"]);
    if order.network == Network::None {
        words.add(["--unshare-net"]);
    }
    words.bind("--ro-bind", Path::new("/usr"), Path::new("/usr"));
    for name in PROGRAMS {
        let path = Path::new("/").join(name);
        match std::fs::read_link(&path) {
            Ok(target) => {
                words.add([OsStr::new("--symlink"), target.as_os_str(), path.as_os_str()]);
            }
            Err(_) if path.is_dir() => {
                words.bind("--ro-bind", &path, &path);
            }
            Err(_) => {}
        }
    }
    for name in etc(order.network) {
        let path = Path::new("/etc").join(name);
        if path.exists() {
            words.bind("--ro-bind", &path, &path);
        }
    }
    for (path, text) in texts {
        words.add(["--perms", "0644", "--ro-bind-data", &text.to_string(), path]);
    }
    let size = order.limits.disk_bytes.to_string();
    words.add(["--proc", "/proc", "--dev", "/dev"]);
    words.add(["--size", &size, "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
    words.add(["--size", &size, "--perms", "1777", "--tmpfs", "/tmp"]);
    for path in &order.readable {
        words.bind("--ro-bind-try", path, path);
    }
    words.bind("--ro-bind", supervisor, Path::new(SUPERVISOR));
    words.bind("--ro-bind", &order.workspace.join("skills"), &order.inside.join("skills"));
    for name in &order.writable {
        words.bind("--bind", &order.workspace.join(name), &order.inside.join(name));
    }
    words.add(["--remount-ro", "/"]);
    words.words
}

#[derive(Default)]
struct Words {
    words: Vec<OsString>,
    /// The folders that are there.
    folders: BTreeSet<PathBuf>,
}

impl Words {
    fn add<W: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = W>) -> &mut Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        // By itself it would make folders that only root can enter.
        let above: Vec<&Path> = to.ancestors().skip(1).collect();
        for folder in above.into_iter().rev().skip(1) {
            if self.folders.insert(folder.to_owned()) {
                self.add(["--perms", "0755", "--dir"]).add([folder]);
            }
        }
        self.folders.insert(to.to_owned());
        self.add([OsStr::new(how), from.as_os_str(), to.as_os_str()]);
    }
}
