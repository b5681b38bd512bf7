//! Real databases for tests: SQLite files, private PostgreSQL and MariaDB servers, all with the same
//! tables, and dumps of all that is in them.
//!
//! ```ignore
//! mod sql_servers;
//! let Some(database) = Database::new("the test", Kind::Postgresql).await else { return };
//! let before = database.dump().await;
//! // … something that must not write, on `database.url(Role::Owner)` …
//! assert_eq!(database.dump().await, before);
//! ```

#![allow(dead_code, reason = "every test file uses some of it")]

pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod mariadb_server;
#[path = "../../../prowess-store/tests/support/postgres_server.rs"]
pub(crate) mod postgres_server;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mariadb_server::MariadbServer;
use postgres_server::{PostgresServer, Sync};
use sqlx::{Connection, MySqlConnection, PgConnection};
use tempfile::TempDir;

/// Says that a test could not run here, and why. `./dev test` counts and prints it.
pub(crate) fn skip(test: &str, why: &str) {
    use std::io::Write;
    println!("SKIPPED {test}: {why}");
    if let Ok(log) = std::env::var("PROWESS_SKIP_LOG") {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgresql,
    /// MariaDB.
    Mysql,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Sqlite, Self::Postgresql, Self::Mysql];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
        }
    }
}

/// Who asks. In SQLite all are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// To whom the tables belong.
    Owner,
    /// Who can only read them.
    Reader,
    /// Who can do everything.
    Superuser,
}

/// A server of its own, or that of all tests of the process.
#[derive(Clone)]
enum Server {
    None,
    Postgres(&'static PostgresServer),
    OwnPostgres(Arc<PostgresServer>),
    Mariadb(&'static MariadbServer),
    OwnMariadb(Arc<MariadbServer>),
}

/// A database with the tables of [`demo`], and a folder that the server can write to.
pub(crate) struct Database {
    pub(crate) kind: Kind,
    name: String,
    folder: TempDir,
    server: Server,
}

impl Database {
    /// A new one on the server that all tests of the process share. `None` if there is no program
    /// for it, which is told.
    pub(crate) async fn new(test: &str, kind: Kind) -> Option<Self> {
        let server = match kind {
            Kind::Sqlite => Server::None,
            Kind::Postgresql => Server::Postgres(postgres_server::shared(test)?),
            Kind::Mysql => Server::Mariadb(mariadb_server::shared(test)?),
        };
        Some(Self::made(kind, server).await)
    }

    /// The same on a server of its own, for what would disturb others.
    pub(crate) async fn alone(test: &str, kind: Kind) -> Option<Self> {
        let server = match kind {
            Kind::Sqlite => Server::None,
            Kind::Postgresql => {
                Server::OwnPostgres(Arc::new(PostgresServer::start(test, Sync::None)?))
            }
            Kind::Mysql => Server::OwnMariadb(Arc::new(MariadbServer::start(test)?)),
        };
        Some(Self::made(kind, server).await)
    }

    /// One more on the server of this one.
    pub(crate) async fn another(&self) -> Self {
        Self::made(self.kind, self.server.clone()).await
    }

    async fn made(kind: Kind, server: Server) -> Self {
        use std::os::unix::fs::PermissionsExt;
        static LAST: AtomicU64 = AtomicU64::new(0);
        // `test_0` belongs to others.
        let name = format!("test_sql_{}_", LAST.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        // The server is another user.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let database = Self { kind, name, folder, server };
        match kind {
            Kind::Sqlite => {
                let script =
                    format!("PRAGMA synchronous = OFF; BEGIN; {}; COMMIT", demo::script(kind));
                database.sqlite().execute_batch(&script).unwrap();
            }
            Kind::Postgresql => database.make_postgresql().await,
            Kind::Mysql => database.make_mysql().await,
        }
        database
    }

    async fn make_postgresql(&self) {
        let name = &self.name;
        self.run_in("postgres", Role::Superuser, &format!("CREATE DATABASE {name}")).await.unwrap();
        let (owner, reader) = (self.user(Role::Owner), self.user(Role::Reader));
        let script = demo::script(self.kind);
        // Whoever may read may not write elsewhere either: everybody can make large objects and
        // temporary tables, unless told otherwise, and can change their own settings.
        let sql = format!(
            "CREATE ROLE {owner} LOGIN; CREATE ROLE {reader} LOGIN;
             ALTER ROLE {reader} SET default_transaction_read_only = on;
             REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT ALL ON SCHEMA public TO {owner};
             REVOKE ALL ON DATABASE {name} FROM PUBLIC;
             GRANT CONNECT ON DATABASE {name} TO {reader}; GRANT ALL ON DATABASE {name} TO {owner};
             REVOKE EXECUTE ON FUNCTION lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) TO {owner};
             DO $$ BEGIN CREATE EXTENSION dblink; EXCEPTION WHEN OTHERS THEN NULL; END $$;
             SET ROLE {owner};
             {script}
             SELECT lo_from_bytea(4242, 'a large object');
             RESET ROLE;
             GRANT USAGE ON SCHEMA public TO {reader};
             GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader};
             ANALYZE"
        );
        for sql in [sql.as_str(), "ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()"] {
            self.run(Role::Superuser, sql).await.unwrap();
        }
    }

    async fn make_mysql(&self) {
        let name = &self.name;
        self.run_in(
            "mysql",
            Role::Superuser,
            &format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"),
        )
        .await
        .unwrap();
        let (owner, reader) = (self.user(Role::Owner), self.user(Role::Reader));
        let script = demo::script(self.kind);
        let sql = format!(
            "CREATE USER '{owner}'@'%'; GRANT ALL PRIVILEGES ON {name}.* TO '{owner}'@'%';
             CREATE USER '{reader}'@'%'; GRANT SELECT, SHOW VIEW ON {name}.* TO '{reader}'@'%'"
        );
        self.run(Role::Superuser, &sql).await.unwrap();
        self.run(Role::Owner, &script).await.unwrap();
    }

    /// What leads to it as one of the three.
    pub(crate) fn url(&self, role: Role) -> String {
        match self.kind {
            Kind::Sqlite => format!("sqlite://{}", self.file().display()),
            _ => self.url_in(&self.name, role),
        }
    }

    fn url_in(&self, database: &str, role: Role) -> String {
        let user = self.user(role);
        let postgres = |server: &PostgresServer| {
            server.url(database).replacen("prowess@", &format!("{user}@"), 1)
        };
        match &self.server {
            Server::None => unreachable!("a file has no server"),
            Server::Postgres(server) => postgres(server),
            Server::OwnPostgres(server) => postgres(server),
            Server::Mariadb(server) => server.url(&user, database),
            Server::OwnMariadb(server) => server.url(&user, database),
        }
    }

    /// What one of the three is called.
    pub(crate) fn user(&self, role: Role) -> String {
        match role {
            Role::Owner => format!("{}owner", self.name),
            Role::Reader => format!("{}reader", self.name),
            Role::Superuser => "prowess".to_owned(),
        }
    }

    /// Its name on the server.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file of a SQLite database.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("demo.db")
    }

    /// A folder that the server can write to. What is in it is part of the dump.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// A connection past everything.
    pub(crate) fn sqlite(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }

    /// A connection past everything.
    pub(crate) async fn postgresql(&self, role: Role) -> PgConnection {
        PgConnection::connect(&self.url(role)).await.unwrap()
    }

    /// A connection past everything.
    pub(crate) async fn mysql(&self, role: Role) -> MySqlConnection {
        MySqlConnection::connect(&self.url(role)).await.unwrap()
    }

    /// A statement with the names of this database in it: `{dir}` is [`Self::folder`], `{db}` its
    /// name, `{owner}` and `{reader}` are users.
    pub(crate) fn place(&self, sql: &str) -> String {
        sql.replace("{dir}", &self.folder().display().to_string())
            .replace("{db}", &self.name)
            .replace("{owner}", &self.user(Role::Owner))
            .replace("{reader}", &self.user(Role::Reader))
    }

    /// Runs statements past everything, as many as there are.
    pub(crate) async fn run(&self, role: Role, sql: &str) -> Result<(), String> {
        if self.kind == Kind::Sqlite {
            return self.sqlite().execute_batch(sql).map_err(|error| error.to_string());
        }
        self.run_in(&self.name, role, sql).await.map_err(|error| error.to_string())
    }

    async fn run_in(&self, database: &str, role: Role, sql: &str) -> Result<(), sqlx::Error> {
        let url = self.url_in(database, role);
        let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
        if self.kind == Kind::Postgresql {
            let mut connection = PgConnection::connect(&url).await?;
            sql.execute(&mut connection).await?;
            // What it did not end it gives up.
            let _ = connection.close().await;
        } else {
            let mut connection = MySqlConnection::connect(&url).await?;
            sql.execute(&mut connection).await?;
            let _ = connection.close().await;
        }
        Ok(())
    }

    /// Whether it was dropped.
    pub(crate) async fn gone(&self) -> bool {
        self.kind != Kind::Sqlite && self.run(Role::Superuser, "SELECT 1").await.is_err()
    }

    /// What the dump would be after a statement of the superuser, which is then taken back. `None`
    /// if it fails, or does anything that cannot be taken back.
    pub(crate) async fn dump_after(&self, sql: &str) -> Option<String> {
        dump::after(self, sql).await
    }

    /// Everything that is in it, in its folder and in the settings of its server, as text that is
    /// the same if and only if these are.
    pub(crate) async fn dump(&self) -> String {
        dump::of(self).await
    }
}
