//! A real MariaDB server for tests: private, in a temporary folder, on a free port of this machine.

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Names the program; else it is searched in `PATH` and where administrators have theirs.
const PROGRAM: &str = "PROWESS_TEST_MARIADB";
/// The server refuses to be root. This user has nothing.
const NOBODY: u32 = 65534;
/// The one who may do everything, from everywhere.
const EVERYBODY: &str = "CREATE USER 'prowess'@'%';
GRANT ALL PRIVILEGES ON *.* TO 'prowess'@'%' WITH GRANT OPTION;
";

/// Waits until whoever holds the other end of its input is gone, however that comes, and leaves
/// nothing behind.
const KEEPER: &str = r#"
    read -r _
    if pid=$(cat "$1/pid"); then
        kill -KILL "$pid"
        while kill -0 "$pid"; do sleep 0.05; done
    fi
    rm -rf "$1"
"#;

/// A server that is ended when this is dropped, or when the process is gone.
pub(crate) struct MariadbServer {
    folder: PathBuf,
    port: u16,
    keeper: Child,
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn program() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return Some(PathBuf::from(program)).filter(|program| program.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("mariadbd")).find(|program| program.exists())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// A program that is not run by root.
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        let user = format!("--reuid={NOBODY}");
        command.args([&user, &format!("--regid={NOBODY}"), "--clear-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/").stdin(Stdio::null());
    command
}

impl MariadbServer {
    /// A server without databases; `None` if there is no program for it, which is told.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let server = Self::make();
        if server.is_none() {
            tell_that_there_is_none(test);
        }
        server
    }

    fn make() -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap().keep();
        if is_root() {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let keeper = command("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { folder, port: 0, keeper };
        let data = server.option("datadir", "data");
        // One that starts removes the temporary tables of all others in the folder for them.
        let Output { status, stdout, stderr } = command("mariadb-install-db")
            .env("TMPDIR", &server.folder)
            .args(["--no-defaults", "--auth-root-authentication-method=normal"])
            .args(["--skip-test-db", "--cross-bootstrap", &data])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(status.success(), "mariadb-install-db: {}{}", text(&stdout), text(&stderr));
        std::fs::write(server.folder.join("first.sql"), EVERYBODY).unwrap();
        // Another process may take the port in between; then the next one is tried.
        for _ in 0..20 {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            server.port = listener.local_addr().unwrap().port();
            drop(listener);
            if server.begin(&program) {
                return Some(server);
            }
        }
        let log = std::fs::read_to_string(server.folder.join("log")).unwrap_or_default();
        panic!("MariaDB does not start: {log}");
    }

    fn option(&self, name: &str, file: &str) -> String {
        format!("--{name}={}", self.folder.join(file).display())
    }

    /// Whether it was started and answers.
    fn begin(&self, program: &Path) -> bool {
        let log = std::fs::File::create(self.folder.join("log")).unwrap();
        // What it may write it may write anywhere: the tests see whether it does.
        let mut child = command(program)
            .env("TMPDIR", &self.folder)
            .args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args([format!("--port={}", self.port), self.option("datadir", "data")])
            .args([self.option("socket", "socket"), self.option("pid-file", "pid")])
            .args([self.option("init-file", "first.sql"), "--secure-file-priv=".to_owned()])
            .args(["--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0"])
            .args(["--max-connections=300", "--aria-sync-log-dir=NEVER"])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while !self.answers() {
            let ended = child.try_wait().unwrap().is_some();
            if ended || begin.elapsed() > Duration::from_secs(120) {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // The keeper ends it; somebody has to hear of that.
        std::thread::spawn(move || child.wait());
        true
    }

    /// Whether it greets who connects. By then it has read its first commands.
    fn answers(&self) -> bool {
        // The file names its process when the port is its own.
        let Ok(true) = self.folder.join("pid").try_exists() else { return false };
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else {
            return false;
        };
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        stream.read_exact(&mut [0; 4]).is_ok()
    }

    /// What leads to a database as this user, who has no password unless one is here.
    pub(crate) fn url(&self, user: &str, database: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{}/{database}", self.port)
    }
}

fn tell_that_there_is_none(test: &str) {
    super::skip(test, &format!("there is no MariaDB; install it, or name mariadbd in {PROGRAM}"));
}

/// The server of this process, started when the first test needs it.
pub(crate) fn shared(test: &str) -> Option<&'static MariadbServer> {
    static SERVER: OnceLock<Option<MariadbServer>> = OnceLock::new();
    let server = SERVER.get_or_init(MariadbServer::make);
    if server.is_none() {
        tell_that_there_is_none(test);
    }
    server.as_ref()
}
