//! The questions that catalogues are asked.

/// Kind, name, table, SQL of tables, views and indexes.
pub(super) const SQLITE: &str = "\
SELECT type, name, tbl_name, sql FROM sqlite_master
WHERE type IN ('table', 'view', 'index') AND (type = 'index' OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\')
  AND tbl_name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
ORDER BY type = 'index', name";

/// Schema (empty for the first in the search path), table, kind, column, type, what else.
pub(super) const POSTGRESQL_COLUMNS: &str = "\
SELECT CASE WHEN n.nspname = current_schema() THEN '' ELSE n.nspname END,
       c.relname,
       CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END,
       a.attname,
       format_type(a.atttypid, a.atttypmod),
       concat_ws(' ', CASE WHEN a.attnotnull THEN 'NOT NULL' END,
                 CASE WHEN d.adbin IS NOT NULL AND a.attgenerated = ''
                      THEN 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) END)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname, a.attnum";

/// Schema, table, constraint.
pub(super) const POSTGRESQL_CONSTRAINTS: &str = "\
SELECT CASE WHEN n.nspname = current_schema() THEN '' ELSE n.nspname END, c.relname,
       pg_get_constraintdef(k.oid)
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype IN ('p', 'u', 'f', 'c')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY n.nspname, c.relname, position(k.contype::text in 'pufc'), k.conname";

/// Schema, table, index.
pub(super) const POSTGRESQL_INDEXES: &str = "\
SELECT CASE WHEN schemaname = current_schema() THEN '' ELSE schemaname END, tablename, indexdef
FROM pg_indexes
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname NOT LIKE 'pg\\_%'
ORDER BY schemaname, tablename, indexname";

/// As for PostgreSQL; the schema is always that of the connection.
pub(super) const MYSQL_COLUMNS: &str = "\
SELECT '', c.TABLE_NAME, CASE WHEN t.TABLE_TYPE LIKE '%VIEW' THEN 'view' ELSE 'table' END,
       c.COLUMN_NAME, c.COLUMN_TYPE,
       CONCAT_WS(' ', IF(c.IS_NULLABLE = 'NO', 'NOT NULL', NULL),
                 IF(c.COLUMN_DEFAULT IS NULL OR c.COLUMN_DEFAULT = 'NULL', NULL,
                    CONCAT('DEFAULT ', c.COLUMN_DEFAULT)),
                 NULLIF(UPPER(c.EXTRA), ''))
FROM information_schema.COLUMNS c
JOIN information_schema.TABLES t
  ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
WHERE c.TABLE_SCHEMA = DATABASE() AND t.TABLE_TYPE <> 'SEQUENCE'
ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION";

/// Schema, table, constraint.
pub(super) const MYSQL_CONSTRAINTS: &str = "\
SELECT '', k.TABLE_NAME,
       CASE t.CONSTRAINT_TYPE
         WHEN 'FOREIGN KEY' THEN CONCAT('FOREIGN KEY (',
              GROUP_CONCAT(k.COLUMN_NAME ORDER BY k.ORDINAL_POSITION SEPARATOR ', '),
              ') REFERENCES ', MAX(k.REFERENCED_TABLE_NAME), ' (',
              GROUP_CONCAT(k.REFERENCED_COLUMN_NAME ORDER BY k.ORDINAL_POSITION SEPARATOR ', '), ')')
         ELSE CONCAT(t.CONSTRAINT_TYPE, ' (',
              GROUP_CONCAT(k.COLUMN_NAME ORDER BY k.ORDINAL_POSITION SEPARATOR ', '), ')')
       END
FROM information_schema.KEY_COLUMN_USAGE k
JOIN information_schema.TABLE_CONSTRAINTS t
  ON t.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND t.TABLE_NAME = k.TABLE_NAME
 AND t.CONSTRAINT_NAME = k.CONSTRAINT_NAME
WHERE k.TABLE_SCHEMA = DATABASE()
GROUP BY k.TABLE_NAME, t.CONSTRAINT_NAME, t.CONSTRAINT_TYPE
ORDER BY k.TABLE_NAME, FIELD(t.CONSTRAINT_TYPE, 'PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY'),
         t.CONSTRAINT_NAME";

/// Schema, table, index.
pub(super) const MYSQL_INDEXES: &str = "\
SELECT '', TABLE_NAME,
       CONCAT(IF(MIN(NON_UNIQUE) = 0, 'UNIQUE INDEX ', 'INDEX '), INDEX_NAME, ' (',
              GROUP_CONCAT(COALESCE(COLUMN_NAME, '?') ORDER BY SEQ_IN_INDEX SEPARATOR ', '), ')')
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = DATABASE()
GROUP BY TABLE_NAME, INDEX_NAME
ORDER BY TABLE_NAME, INDEX_NAME";

/// Views that run as who made them, and their definitions.
pub(crate) const MYSQL_DEFINER_VIEWS: &str = "\
SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS
WHERE TABLE_SCHEMA = DATABASE() AND SECURITY_TYPE = 'DEFINER'
ORDER BY TABLE_NAME";

/// What a role of PostgreSQL can write, one line each.
pub(crate) const POSTGRESQL_PRIVILEGES: &str = "\
WITH own AS (
  SELECT c.oid, n.nspname || '.' || c.relname AS name, c.relkind, c.relowner
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
)
SELECT 'it is a superuser' FROM pg_roles WHERE rolname = current_user AND rolsuper
UNION ALL SELECT 'it can make roles' FROM pg_roles WHERE rolname = current_user AND rolcreaterole
UNION ALL SELECT 'it can make databases' FROM pg_roles WHERE rolname = current_user AND rolcreatedb
UNION ALL SELECT 'it can replicate' FROM pg_roles WHERE rolname = current_user AND rolreplication
UNION ALL SELECT 'it can become the role ' || min(r.rolname::text) FROM pg_roles r
  WHERE r.rolname <> current_user AND pg_has_role(r.oid, 'MEMBER')
    AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
    AND (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication
         OR (NOT pg_has_role(r.oid, 'USAGE') AND r.rolname NOT IN
             ('pg_read_all_data', 'pg_read_all_settings', 'pg_read_all_stats', 'pg_monitor')))
  HAVING count(*) > 0
UNION ALL SELECT 'it owns ' || min(CASE WHEN d.dbid IN (0, me.oid)
                 THEN pg_describe_object(d.classid, d.objid, 0)
                 ELSE 'something in another database' END) || CASE count(*) WHEN 1 THEN ''
                 ELSE ' and ' || (count(*) - 1) || ' more' END
  FROM pg_shdepend d, pg_database me
  WHERE me.datname = current_database() AND d.refclassid = 'pg_authid'::regclass
    AND d.deptype = 'o' AND pg_has_role(d.refobjid, 'MEMBER')
  HAVING count(*) > 0
UNION ALL SELECT 'it has the role ' || rolname FROM pg_roles
  WHERE rolname IN ('pg_write_all_data', 'pg_execute_server_program', 'pg_write_server_files',
                    'pg_maintain', 'pg_signal_backend', 'pg_checkpoint', 'pg_create_subscription')
    AND pg_has_role(oid, 'MEMBER')
UNION ALL SELECT 'it can write the table ' || min(name) || CASE count(*) WHEN 1 THEN ''
                 ELSE ' and ' || (count(*) - 1) || ' more' END
  FROM own WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
    AND (has_table_privilege(oid, 'INSERT') OR has_table_privilege(oid, 'UPDATE')
         OR has_table_privilege(oid, 'DELETE') OR has_table_privilege(oid, 'TRUNCATE')
         OR has_table_privilege(oid, 'TRIGGER')
         OR has_any_column_privilege(oid, 'INSERT') OR has_any_column_privilege(oid, 'UPDATE')
         OR pg_has_role(relowner, 'USAGE'))
  HAVING count(*) > 0
UNION ALL SELECT 'it can advance the sequence ' || min(name) FROM own
  WHERE relkind = 'S' AND (has_sequence_privilege(oid, 'USAGE') OR has_sequence_privilege(oid, 'UPDATE'))
  HAVING count(*) > 0
UNION ALL SELECT 'it can make things in the schema ' || min(nspname) FROM pg_namespace
  WHERE nspname NOT LIKE 'pg\\_temp%' AND nspname NOT LIKE 'pg\\_toast%' AND has_schema_privilege(oid, 'CREATE')
  HAVING count(*) > 0
UNION ALL SELECT 'it can make schemas' WHERE has_database_privilege(current_database(), 'CREATE')
UNION ALL SELECT 'it can call ' || min(n.nspname || '.' || p.proname) || ', which runs as its owner'
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE p.prosecdef AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')
  HAVING count(*) > 0";

/// What everybody can write in PostgreSQL until it is revoked.
pub(crate) const POSTGRESQL_LARGE_OBJECTS: &str = "\
SELECT 'it can make large objects: revoke the right to execute ' || min(p.proname)
FROM pg_proc p
WHERE p.pronamespace = 'pg_catalog'::regnamespace
  AND p.proname IN ('lo_create', 'lo_creat', 'lo_from_bytea', 'lo_import')
  AND has_function_privilege(p.oid, 'EXECUTE')
HAVING count(*) > 0";
