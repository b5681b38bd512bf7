//! A real PostgreSQL server for tests: private, in a temporary folder, on a socket that only files
//! lead to, unless a test asks for more.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{Connection, PgConnection};

/// Names the folder of the programs; else they are searched where Debian puts them, and in `PATH`.
const PROGRAMS: &str = "PROWESS_TEST_POSTGRES";
/// The server refuses to be root. This user has nothing.
const NOBODY: u32 = 65534;

/// Waits until whoever holds the other end of its input is gone, however that comes, and leaves
/// nothing behind. The server may be stopped or paused by then.
const KEEPER: &str = r#"
    read -r _
    if pid=$(head -n 1 "$1/data/postmaster.pid"); then
        kill -CONT "$pid" $(cat "/proc/$pid/task/$pid/children")
        "$2/pg_ctl" -D "$1/data" -m immediate stop
    fi
    rm -rf "$1"
"#;

/// What a server does before it acknowledges something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// It writes to the disk, as it must where that matters.
    Disk,
    /// Nothing: it is faster.
    None,
}

/// A server that is ended when this is dropped, or when the process is gone.
pub(crate) struct PostgresServer {
    folder: PathBuf,
    programs: PathBuf,
    sync: Sync,
    reach: Reach,
    keeper: Child,
}

/// Where a server is reached besides its socket.
#[derive(Clone, Default)]
pub(crate) struct Reach {
    /// What a command begins with that runs where the server is, if that is elsewhere.
    pub(crate) through: Vec<String>,
    /// The addresses at which it listens, with commas between them.
    pub(crate) addresses: String,
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The folder of the programs, if there is one.
fn programs() -> Option<PathBuf> {
    let has_server = |folder: &PathBuf| folder.join("initdb").exists();
    if let Some(folder) = std::env::var_os(PROGRAMS) {
        return Some(folder.into()).filter(has_server);
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|version| version.path()).max_by_key(number);
    let newest = newest.map(|version| version.join("bin")).filter(has_server);
    newest.or_else(|| std::env::split_paths(&std::env::var_os("PATH")?).find(has_server))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// A program that is not run by root.
fn command(program: impl AsRef<OsStr>) -> Command {
    command_through(&[], program)
}

/// The same, started by another program, which becomes it.
fn command_through(through: &[String], program: impl AsRef<OsStr>) -> Command {
    let mut words: Vec<OsString> = through.iter().map(OsString::from).collect();
    if is_root() {
        let user = format!("--reuid={NOBODY}");
        let group = format!("--regid={NOBODY}");
        words.extend(["setpriv", &user, &group, "--clear-groups", "--"].map(OsString::from));
    }
    words.push(program.as_ref().to_owned());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir("/").stdin(Stdio::null());
    command
}

fn succeed(command: &mut Command) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(status.success(), "{command:?}: {}{}", text(&stdout), text(&stderr));
}

impl PostgresServer {
    /// A server without databases; `None` if there is no program for it.
    fn make(sync: Sync, reach: Reach) -> Option<Self> {
        let server = Self::empty(programs()?, sync, reach);
        succeed(
            command(server.programs.join("initdb"))
                .args(["-U", "prowess", "-A", "trust", "-E", "UTF8", "--no-sync", "-D"])
                .arg(server.data()),
        );
        let mut allowed = OpenOptions::new().append(true).open(server.data().join("pg_hba.conf"));
        let everybody = "host all all all trust\n";
        allowed.as_mut().unwrap().write_all(everybody.as_bytes()).unwrap();
        server.begin();
        Some(server)
    }

    /// A folder for a server, and somebody who removes it.
    fn empty(programs: PathBuf, sync: Sync, reach: Reach) -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        if is_root() {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let keeper = command("sh")
            .args(["-c", KEEPER, "keeper"])
            .args([&folder, &programs])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { folder, programs, sync, reach, keeper }
    }

    /// A server of one's own; `None` if there is no program for it, which is told.
    pub(crate) fn start(test: &str, sync: Sync) -> Option<Self> {
        Self::start_at(test, sync, Reach::default())
    }

    /// The same, which is reached from elsewhere.
    pub(crate) fn start_at(test: &str, sync: Sync, reach: Reach) -> Option<Self> {
        let server = Self::make(sync, reach);
        if server.is_none() {
            tell_that_there_is_none(test);
        }
        server
    }

    /// Another server, which follows this one. From now on nothing is acknowledged that it does not
    /// have.
    pub(crate) fn follower(&self) -> Self {
        let (programs, sync) = (self.programs.clone(), self.sync);
        let other = Self::empty(programs, sync, Reach::default());
        succeed(
            command(other.programs.join("pg_basebackup"))
                .args(["-U", "prowess", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-h"])
                .args([&self.folder, Path::new("-D"), &other.data()]),
        );
        other.begin();
        self.set("synchronous_standby_names = '*'");
        other
    }

    /// Changes a setting of the server while it runs.
    pub(crate) fn set(&self, setting: &str) {
        for sql in [&*format!("ALTER SYSTEM SET {setting}"), "SELECT pg_reload_conf()"] {
            succeed(
                command(self.programs.join("psql"))
                    .env("PGOPTIONS", "-c default_transaction_read_only=off")
                    .args(["-U", "prowess", "-d", "postgres", "-c", sql, "-h"])
                    .arg(&self.folder),
            );
        }
    }

    /// It follows nobody any more, and writes.
    pub(crate) fn promote(&self) {
        self.control(&["promote"]);
    }

    /// The file that leads to it.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn control(&self, action: &[&str]) {
        let mut control = command_through(&self.reach.through, self.programs.join("pg_ctl"));
        control.arg("-D").arg(self.data()).args(["-w", "-t", "120"]).args(action);
        // What it starts would hold a pipe open.
        let log = std::fs::File::create(self.folder.join("control.log")).unwrap();
        let status = control.stdout(log.try_clone().unwrap()).stderr(log).status().unwrap();
        let log = std::fs::read_to_string(self.folder.join("control.log")).unwrap_or_default();
        assert!(status.success(), "{action:?}: {log}");
    }

    /// Starts it, again.
    pub(crate) fn begin(&self) {
        let fsync = if self.sync == Sync::Disk { "on" } else { "off" };
        let options = format!(
            "-k {} -c listen_addresses='{}' -c fsync={fsync} -c max_connections=300",
            self.folder.display(),
            self.reach.addresses
        );
        let log = self.folder.join("server.log").display().to_string();
        self.control(&["-l", &log, "-o", &options, "start"]);
    }

    /// Stops it: `fast` as an administrator does, `immediate` as a crash would.
    pub(crate) fn stop(&self, mode: &str) {
        self.control(&["-m", mode, "stop"]);
    }

    /// Stops all its processes where they are.
    pub(crate) fn pause(&self) {
        self.signal("-STOP").unwrap();
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT").unwrap();
    }

    fn signal(&self, signal: &str) -> io::Result<()> {
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid"))?;
        let pid = pid.lines().next().unwrap_or_default().to_owned();
        // First the one that makes the others.
        for _ in 0..2 {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
            let mut kill = Command::new("kill");
            kill.args([signal, &pid]).args(children.split_whitespace());
            // One of them may have ended meanwhile.
            kill.stderr(Stdio::null()).status()?;
        }
        Ok(())
    }

    pub(crate) fn url(&self, database: &str) -> String {
        url(&self.folder, database)
    }

    /// A new database.
    pub(crate) async fn database(&self) -> Database {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let name = format!("test_{}", LAST.fetch_add(1, Ordering::Relaxed));
        run(&self.folder, &format!("CREATE DATABASE {name}")).await.unwrap();
        Database { folder: self.folder.clone(), name }
    }
}

fn url(folder: &Path, database: &str) -> String {
    format!("postgres://prowess@localhost/{database}?host={}", folder.display())
}

async fn run(folder: &Path, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(&url(folder, "postgres")).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await?;
    Ok(())
}

fn tell_that_there_is_none(test: &str) {
    let why = "there is no PostgreSQL; install it, or name the folder of initdb in";
    super::skip(test, &format!("{why} {PROGRAMS}"));
}

/// The server of this process, started when the first test needs it.
pub(crate) fn shared(test: &str) -> Option<&'static PostgresServer> {
    static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
    let server = SERVER.get_or_init(|| PostgresServer::make(Sync::None, Reach::default()));
    if server.is_none() {
        tell_that_there_is_none(test);
    }
    server.as_ref()
}

/// A database that is gone when this is.
pub(crate) struct Database {
    folder: PathBuf,
    name: String,
}

impl Database {
    pub(crate) fn url(&self) -> String {
        url(&self.folder, &self.name)
    }

    /// A connection past the store.
    pub(crate) async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (folder, name) = (self.folder.clone(), self.name.clone());
        let drop = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let sql = format!("DROP DATABASE {name} WITH (FORCE)");
            // Without it, it goes with the server.
            runtime.map(|runtime| runtime.block_on(run(&folder, &sql)).is_ok())
        });
        let _ = drop.join();
    }
}
