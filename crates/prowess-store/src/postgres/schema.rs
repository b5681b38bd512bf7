//! The tables, and how they came to be.

use sqlx::PgConnection;

use crate::open::OpenError;

/// Each step brings a database from one version to the next.
const STEPS: &[&str] = &[
    r#"
    CREATE SEQUENCE session_ids;
    -- A number is never given twice.
    CREATE SEQUENCE fences;
    -- Sessions, and who works on them. One at revision 0 is not there: somebody has taken it, and
    -- nothing was committed yet.
    CREATE TABLE sessions (
        id bigint PRIMARY KEY DEFAULT nextval('session_ids'),
        app text COLLATE "C" NOT NULL,
        user_name text COLLATE "C" NOT NULL,
        session text COLLATE "C" NOT NULL,
        revision bigint NOT NULL,
        -- Not jsonb: it comes back as it was.
        state text NOT NULL,
        created bigint NOT NULL,
        updated bigint NOT NULL,
        expires bigint,
        fence bigint,
        holder text,
        lease_expires bigint,
        UNIQUE (app, user_name, session)
    );
    CREATE INDEX sessions_by_expiry ON sessions (expires) WHERE expires IS NOT NULL;
    CREATE INDEX sessions_to_be ON sessions (lease_expires) WHERE revision = 0;
    CREATE TABLE messages (
        session_id bigint NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        agent text COLLATE "C" NOT NULL,
        place bigint NOT NULL,
        message text NOT NULL,
        PRIMARY KEY (session_id, agent, place)
    );
    CREATE TABLE events (
        session_id bigint NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        place bigint NOT NULL,
        revision bigint NOT NULL,
        event text NOT NULL,
        PRIMARY KEY (session_id, place)
    );
    -- Files of versions, by what they hold.
    CREATE TABLE files (
        digest bytea PRIMARY KEY,
        bytes bytea NOT NULL
    );
    CREATE TABLE skills (
        id text COLLATE "C" PRIMARY KEY,
        origin text NOT NULL,
        revision bigint NOT NULL,
        -- None as long as nobody has activated one.
        active_version bigint,
        version_count bigint NOT NULL,
        -- The version that the program shipped last.
        shipped bigint,
        created bigint NOT NULL,
        updated bigint NOT NULL,
        -- Set when it was deleted: its versions stay.
        deleted bigint
    );
    CREATE TABLE versions (
        skill text COLLATE "C" NOT NULL REFERENCES skills (id),
        number bigint NOT NULL,
        tree_digest text NOT NULL,
        digest bytea NOT NULL,
        about text NOT NULL,
        manifest text NOT NULL,
        created bigint NOT NULL,
        created_by text NOT NULL,
        -- As JSON: it may have characters that a text here cannot have.
        change_summary text,
        PRIMARY KEY (skill, number)
    );
    CREATE INDEX versions_by_tree ON versions (skill, tree_digest);
    -- Whoever adds to it has the lock of the registry: places are seen in their order.
    CREATE TABLE audit (
        place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        time bigint NOT NULL,
        actor text NOT NULL,
        action text NOT NULL,
        subject text COLLATE "C" NOT NULL,
        detail text NOT NULL
    );
    -- What skills were used for, counted. An empty agent or code is none; version -1 is unknown.
    CREATE TABLE usage (
        skill text COLLATE "C" NOT NULL,
        day text COLLATE "C" NOT NULL,
        kind text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        agent text COLLATE "C" NOT NULL,
        code text COLLATE "C" NOT NULL,
        count bigint NOT NULL,
        errors bigint NOT NULL,
        elapsed_us bigint NOT NULL,
        bytes bigint NOT NULL,
        tokens bigint NOT NULL,
        last bigint NOT NULL,
        PRIMARY KEY (skill, day, kind, version, agent, code)
    );
    CREATE INDEX usage_by_last ON usage (skill, kind, last);
    -- The agents that are counted apart.
    CREATE TABLE usage_agents (
        skill text COLLATE "C" NOT NULL,
        day text COLLATE "C" NOT NULL,
        agent text COLLATE "C" NOT NULL,
        PRIMARY KEY (skill, day, agent)
    );
    CREATE TABLE usage_sessions (
        skill text COLLATE "C" NOT NULL,
        day text COLLATE "C" NOT NULL,
        session text COLLATE "C" NOT NULL,
        PRIMARY KEY (skill, session, day)
    );
    CREATE TABLE keys (
        id text COLLATE "C" PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,
        role text NOT NULL,
        hash bytea NOT NULL,
        created bigint NOT NULL,
        expires bigint,
        revoked bigint
    );
    -- Bytes that sessions refer to, and when somebody put them last.
    CREATE TABLE content (
        digest bytea PRIMARY KEY,
        bytes bytea NOT NULL,
        put timestamptz NOT NULL
    );
"#,
    "
    -- The version that waits to be activated.
    ALTER TABLE skills ADD COLUMN pending bigint;
    UPDATE skills SET pending = (SELECT max(number) FROM versions WHERE skill = id)
    WHERE active_version IS NULL;
",
    "
    -- The name of a key that was revoked may be given again.
    ALTER TABLE keys DROP CONSTRAINT keys_name_key;
    CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked IS NULL;
",
];

/// Who takes this lock brings the tables to the newest version, alone. That may take longer than
/// what is asked later.
const BEGIN: &str = "
    BEGIN;
    SET LOCAL statement_timeout = '60s';
    SELECT pg_advisory_xact_lock(5786364013569);
    CREATE TABLE IF NOT EXISTS prowess_schema (version bigint NOT NULL)
";

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Unreachable(error.to_string())
    }
}

/// Brings a database to the newest version. A database that is not ours is left as it is.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<(), OpenError> {
    if version(connection).await? == STEPS.len() {
        return Ok(());
    }
    sqlx::raw_sql(BEGIN).execute(&mut *connection).await?;
    // Somebody else may have done it meanwhile.
    for step in &STEPS[version(connection).await?..] {
        sqlx::raw_sql(*step).execute(&mut *connection).await?;
    }
    sqlx::raw_sql("DELETE FROM prowess_schema").execute(&mut *connection).await?;
    sqlx::query("INSERT INTO prowess_schema (version) VALUES ($1)")
        .bind(i64::try_from(STEPS.len()).unwrap_or(i64::MAX))
        .execute(&mut *connection)
        .await?;
    sqlx::raw_sql("COMMIT").execute(&mut *connection).await?;
    Ok(())
}

/// The version of a database that is ours, or nobody's yet.
async fn version(connection: &mut PgConnection) -> Result<usize, OpenError> {
    let (is_ours, is_taken): (bool, bool) = sqlx::query_as(
        "SELECT to_regclass('prowess_schema') IS NOT NULL, to_regclass('sessions') IS NOT NULL",
    )
    .fetch_one(&mut *connection)
    .await?;
    let version: Option<i64> = match is_ours {
        true => {
            let sql = "SELECT max(version) FROM prowess_schema";
            sqlx::query_scalar(sql).fetch_one(connection).await?
        }
        false => None,
    };
    let known = STEPS.len();
    match version.map(usize::try_from) {
        None if is_taken => Err(OpenError::Foreign),
        None => Ok(0),
        Some(Ok(version)) if version <= known => Ok(version),
        Some(Ok(version)) => Err(OpenError::Newer { version, known }),
        Some(Err(_)) => Err(OpenError::Foreign),
    }
}
