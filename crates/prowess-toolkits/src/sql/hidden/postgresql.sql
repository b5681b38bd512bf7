-- What PostgreSQL would call for a statement that does not say so. Given are the words of the
-- statement ($1), those after a dot ($2), those before a bracket ($3) and those that could be types
-- ($4). Each row is a kind, a name, and the schema and the name of a function behind it.
WITH RECURSIVE
-- Functions that are not known to read: those of the server and of extensions if they are volatile,
-- and all others, whatever they are called.
suspect AS (
  SELECT p.oid, p.proname::text AS name, n.nspname::text AS schema, p.pronargs, p.pronargdefaults,
         p.proargtypes, p.oid < 16384 AS is_servers,
         n.nspname = ANY (pg_catalog.current_schemas(true)) AS is_found
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE p.provolatile = 'v'
     OR p.oid >= 16384 AND NOT EXISTS (
          SELECT 1 FROM pg_catalog.pg_depend e
          WHERE e.classid = 'pg_catalog.pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
),
-- Tables and views, and those behind the rules of views and the policies of tables.
relation(root, oid) AS (
  SELECT c.relname::text, c.oid FROM pg_catalog.pg_class c
  WHERE c.relname = ANY ($1::name[]) AND c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v', 'f')
  UNION
  SELECT relation.root, c.oid
  FROM relation
  JOIN (SELECT 'pg_catalog.pg_rewrite'::regclass AS class, oid, ev_class AS of
        FROM pg_catalog.pg_rewrite
        UNION ALL
        SELECT 'pg_catalog.pg_policy'::regclass, oid, polrelid
        FROM pg_catalog.pg_policy) part ON part.of = relation.oid
  JOIN pg_catalog.pg_depend d ON d.classid = part.class AND d.objid = part.oid
   AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid >= 16384
  JOIN pg_catalog.pg_class c ON c.oid = d.refobjid AND c.relkind IN ('r', 'p', 'v', 'f')
),
rule AS (
  SELECT relation.root, 'pg_catalog.pg_rewrite'::regclass AS class, r.oid, r.ev_action::text AS tree
  FROM relation JOIN pg_catalog.pg_rewrite r ON r.ev_class = relation.oid AND r.ev_type = '1'
  UNION ALL
  SELECT relation.root, 'pg_catalog.pg_policy'::regclass, p.oid, p.polqual::text
  FROM relation
  JOIN pg_catalog.pg_class c ON c.oid = relation.oid AND c.relrowsecurity
  JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
),
-- Types that the statement or these make values of, and those that they are made of.
type(kind, root, oid) AS (
  SELECT made.kind, made.root, made.oid
  FROM (SELECT 'type' AS kind, t.typname::text AS root, t.oid FROM pg_catalog.pg_type t
        WHERE t.typname = ANY ($4::name[])
        UNION ALL
        SELECT 'relation', rule.root, d.refobjid
        FROM rule JOIN pg_catalog.pg_depend d ON d.classid = rule.class AND d.objid = rule.oid
         AND d.refclassid = 'pg_catalog.pg_type'::regclass) made
  WHERE made.oid >= 16384
  UNION
  SELECT type.kind, type.root, part.oid
  FROM type
  JOIN (SELECT oid AS of, typbasetype AS oid FROM pg_catalog.pg_type
        UNION ALL SELECT oid, typelem FROM pg_catalog.pg_type
        UNION ALL SELECT rngtypid, rngsubtype FROM pg_catalog.pg_range
        UNION ALL SELECT t.oid, a.atttypid
                  FROM pg_catalog.pg_type t
                  JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
                  WHERE a.attnum > 0 AND NOT a.attisdropped) part
    ON part.of = type.oid AND part.oid >= 16384
),
expression AS (
  SELECT 'relation' AS kind, root, class, oid, tree FROM rule
  UNION ALL
  SELECT type.kind, type.root, 'pg_catalog.pg_constraint'::regclass, k.oid, k.conbin::text
  FROM type JOIN pg_catalog.pg_constraint k ON k.contypid = type.oid
),
-- Functions of the server stand only in the trees of expressions; on others they depend.
called AS (
  SELECT e.kind, e.root, found.id[1]::oid AS oid
  FROM expression e, pg_catalog.regexp_matches(e.tree, ':funcid (\d+)', 'g') AS found(id)
  UNION
  SELECT e.kind, e.root, coalesce(o.oprcode::oid, d.refobjid)
  FROM expression e
  JOIN pg_catalog.pg_depend d ON d.classid = e.class AND d.objid = e.oid
   AND d.refclassid IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass)
  LEFT JOIN pg_catalog.pg_operator o
    ON o.oid = d.refobjid AND d.refclassid = 'pg_catalog.pg_operator'::regclass
)
SELECT called.kind, called.root, s.schema, s.name
FROM called JOIN suspect s ON s.oid = called.oid
UNION
-- `row.name` is name(row).
SELECT 'field', s.name, s.schema, s.name FROM suspect s
WHERE s.name = ANY ($2::text[]) AND s.is_found
  AND s.pronargs >= 1 AND s.pronargs - s.pronargdefaults <= 1
  AND s.proargtypes[0] <> 'pg_catalog.internal'::regtype
UNION
-- A function beside one of the server that has the same name.
SELECT 'call', s.name, s.schema, s.name FROM suspect s
WHERE s.name = ANY ($3::text[]) AND s.is_found AND NOT s.is_servers
UNION
SELECT 'operator', o.oprname::text, s.schema, s.name
FROM pg_catalog.pg_operator o JOIN suspect s ON s.oid = o.oprcode::oid
WHERE o.oid >= 16384
UNION
-- A cast that is implicit needs no type, and one to JSON is what to_json and its like use.
SELECT 'cast', t.typname::text, s.schema, s.name
FROM pg_catalog.pg_cast k
JOIN pg_catalog.pg_type t ON t.oid = k.casttarget
JOIN suspect s ON s.oid = k.castfunc
WHERE k.oid >= 16384
  AND (k.castcontext = 'i' OR t.typname = ANY ($4::name[])
       OR k.casttarget IN ('pg_catalog.json'::regtype, 'pg_catalog.jsonb'::regtype))
ORDER BY 1, 2, 3, 4
