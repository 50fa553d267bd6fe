"""PostgreSQL's catalog over DuckDB's own: views and macros that stand beside the tables in the process of a query about
it. They show the tables and columns, types that clients look up, and empty catalogs of all that is not here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from styx.postgres.settings import VERSION
from styx.postgres.types import BY_OID, column_type
from styx.query.relations import SHIM

OWNER_OID: Final = 10
_SCHEMAS: Final = {"pg_catalog": 11, "information_schema": 13, "public": 2200}
DATABASE_OID: Final = 5
_SQL_NAMES: Final = {
    "bool": "boolean",
    "char": '"char"',
    "int8": "bigint",
    "int2": "smallint",
    "int4": "integer",
    "float4": "real",
    "float8": "double precision",
    "bpchar": "character",
    "varchar": "character varying",
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}
_CATEGORIES: Final = {
    "bool": "B",
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric", "oid"), "N"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), "S"),
    **dict.fromkeys(("date", "time", "timestamp", "timestamptz"), "D"),
    "interval": "T",
}


def literal(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''").replace("\0", "") + "'"


def _case(subject: str, pairs: Mapping[Any, str | int], other: str) -> str:
    def written(value: str | int) -> str:
        return literal(value) if isinstance(value, str) else str(value)

    whens = " ".join(f"WHEN {written(key)} THEN {written(value)}" for key, value in pairs.items())
    return f"CASE {subject} {whens} ELSE {other} END"


_FORMATS: Final = {each.oid: _SQL_NAMES.get(each.name, each.name) for each in BY_OID.values()} | {
    each.array: _SQL_NAMES.get(each.name, each.name) + "[]" for each in BY_OID.values()
}
_COLUMN_TYPES: Final = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "UTINYINT", "INTEGER", "USMALLINT", "BIGINT", "UINTEGER", "UBIGINT", "HUGEINT"),
    *("FLOAT", "DOUBLE", "DECIMAL(38,18)", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
    *("INTERVAL", "UUID", "JSON"),
)
_OIDS: Final = {name: column_type(name).oid for name in _COLUMN_TYPES}
_SIZES: Final = {each.oid: each.size for each in BY_OID.values()}


def _types() -> str:
    rows = []
    for each in BY_OID.values():
        category = _CATEGORIES.get(each.name, "U")
        rows.append((each.oid, each.name, each.size, category, 0, each.array, "b"))
        rows.append((each.array, f"_{each.name}", -1, "A", each.oid, 0, "b"))
    rows += [
        (705, "unknown", -2, "X", 0, 0, "p"),
        (2278, "void", 4, "P", 0, 0, "p"),
        (2249, "record", -1, "P", 0, 2287, "p"),
    ]
    return ", ".join(
        f"({oid}, {literal(name)}, {size}, {literal(category)}, {element}, {array}, {literal(kind)})"
        for oid, name, size, category, element, array, kind in rows
    )


# An empty catalog: its columns, those without a type are texts.
_EMPTY: Final = {
    "pg_inherits": "inhrelid oid, inhparent oid, inhseqno int, inhdetachpending bool",
    "pg_policy": "oid oid, polname, polrelid oid, polcmd, polpermissive bool, polroles oid[], polqual, polwithcheck",
    "pg_statistic_ext": "oid oid, stxrelid oid, stxname, stxnamespace oid, stxowner oid, stxkeys int[], "
    "stxkind text[], stxstattarget int",
    "pg_publication": "oid oid, pubname, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, "
    "pubdelete bool, pubtruncate bool, pubviaroot bool",
    "pg_publication_rel": "oid oid, prpubid oid, prrelid oid",
    "pg_publication_tables": "pubname, schemaname, tablename",
    "pg_subscription": "oid oid, subname, subowner oid, subenabled bool",
    "pg_trigger": "oid oid, tgrelid oid, tgname, tgfoid oid, tgtype int, tgenabled, tgisinternal bool, tgparentid oid, "
    "tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgconstrrelid oid",
    "pg_event_trigger": "oid oid, evtname, evtevent, evtowner oid, evtfoid oid, evtenabled, evttags text[]",
    "pg_rewrite": "oid oid, rulename, ev_class oid, ev_type, ev_enabled, is_instead bool",
    "pg_foreign_table": "ftrelid oid, ftserver oid, ftoptions text[]",
    "pg_foreign_server": "oid oid, srvname, srvowner oid, srvfdw oid, srvtype, srvversion, srvacl text[], "
    "srvoptions text[]",
    "pg_foreign_data_wrapper": "oid oid, fdwname, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl text[], "
    "fdwoptions text[]",
    "pg_attrdef": "oid oid, adrelid oid, adnum int, adbin",
    "pg_description": "objoid oid, classoid oid, objsubid int, description",
    "pg_shdescription": "objoid oid, classoid oid, description",
    "pg_seclabel": "objoid oid, classoid oid, objsubid int, provider, label",
    "pg_enum": "oid oid, enumtypid oid, enumsortorder float, enumlabel",
    "pg_range": "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical oid, "
    "rngsubdiff oid",
    "pg_sequence": "seqrelid oid, seqtypid oid, seqstart bigint, seqincrement bigint, seqmax bigint, seqmin bigint, "
    "seqcache bigint, seqcycle bool",
    "pg_sequences": "schemaname, sequencename, sequenceowner, data_type, start_value bigint, last_value bigint",
    "pg_depend": "classid oid, objid oid, objsubid int, refclassid oid, refobjid oid, refobjsubid int, deptype",
    "pg_extension": "oid oid, extname, extowner oid, extnamespace oid, extrelocatable bool, extversion",
    "pg_available_extensions": "name, default_version, installed_version, comment",
    "pg_auth_members": "roleid oid, member oid, grantor oid, admin_option bool",
    "pg_opclass": "oid oid, opcname, opcmethod oid, opcnamespace oid, opcfamily oid, opcintype oid, opcdefault bool",
    "pg_opfamily": "oid oid, opfname, opfmethod oid, opfnamespace oid",
    "pg_operator": "oid oid, oprname, oprnamespace oid, oprowner oid, oprkind, oprleft oid, oprright oid, "
    "oprresult oid, oprcode oid",
    "pg_aggregate": "aggfnoid oid, aggkind, aggnumdirectargs int, aggtransfn oid",
    "pg_cast": "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext, castmethod",
    "pg_conversion": "oid oid, conname, connamespace oid, conforencoding int, contoencoding int, condefault bool",
    "pg_ts_config": "oid oid, cfgname, cfgnamespace oid",
    "pg_ts_dict": "oid oid, dictname, dictnamespace oid",
    "pg_ts_parser": "oid oid, prsname, prsnamespace oid",
    "pg_ts_template": "oid oid, tmplname, tmplnamespace oid",
    "pg_default_acl": "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype, defaclacl text[]",
    "pg_db_role_setting": "setdatabase oid, setrole oid, setconfig text[]",
    "pg_largeobject_metadata": "oid oid, lomowner oid, lomacl text[]",
    "pg_matviews": "schemaname, matviewname, matviewowner, tablespace, hasindexes bool, ispopulated bool, definition",
    "pg_views": "schemaname, viewname, viewowner, definition",
    "pg_indexes": "schemaname, tablename, indexname, tablespace, indexdef",
    "pg_locks": "locktype, database oid, relation oid, pid int, mode, granted bool",
    "pg_stat_activity": "datid oid, datname, pid int, usename, application_name, client_addr, state, query",
    "pg_stat_user_tables": "relid oid, schemaname, relname, n_live_tup bigint",
    "pg_partitioned_table": "partrelid oid, partstrat, partnatts int, partdefid oid, partattrs int[]",
    "pg_prepared_statements": "name, statement, parameter_types text[], from_sql bool",
    "pg_cursors": "name, statement, is_holdable bool, is_scrollable bool",
    "pg_prepared_xacts": "gid, owner, database",
    "pg_proc": "oid oid, proname, pronamespace oid, proowner oid, prolang oid, prokind, prosecdef bool, "
    "proleakproof bool, proisstrict bool, proretset bool, provolatile, proparallel, pronargs int, prorettype oid, "
    "proargtypes oid[], proallargtypes oid[], proargmodes text[], proargnames text[], proargdefaults, proacl text[], "
    "prosrc, probin, proconfig text[]",
}


def _made(columns: str, values: Mapping[str, str], source: str) -> str:
    """A view of `source` with these columns: `values` has expressions, and the others are NULL."""
    parts = []
    for each in columns.split(", "):
        name, _, kind = each.partition(" ")
        # `types` tells UINTEGER as oid in queries about the catalog.
        sql_type = (kind or "VARCHAR").replace("oid", "UINTEGER")
        parts.append(f"({values.get(name, 'NULL')})::{sql_type} AS {name}")
    return f"SELECT {', '.join(parts)} FROM {source}"


def _empty(columns: str) -> str:
    return _made(columns, {}, "(SELECT 1) WHERE false")


# The primary keys of tables: DuckDB has no numbers for constraints, and no index in its catalog that stands for them.
_KEYS: Final = """(SELECT schema_name, schema_oid, table_name, table_oid, constraint_column_names AS names,
  list_transform(constraint_column_indexes, lambda number: number + 1) AS numbers, table_name || '_pkey' AS key_name
FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY')"""
_CONSTRAINT: Final = "table_oid + 1000000000"
_INDEX: Final = "table_oid + 2000000000"
_NAMED_KEY: Final = {
    "constraint_catalog": "current_database()",
    "constraint_schema": "schema_name",
    "constraint_name": "key_name",
    "table_catalog": "current_database()",
    "table_schema": "schema_name",
    "table_name": "table_name",
}
_PG_INDEX: Final = _made(
    "indexrelid oid, indrelid oid, indnatts int, indnkeyatts int, indisunique bool, indisprimary bool, "
    "indisexclusion bool, indimmediate bool, indisclustered bool, indisvalid bool, indcheckxmin bool, "
    "indisready bool, "
    "indislive bool, indisreplident bool, indkey int[], indcollation oid[], indclass oid[], indoption int[], indexprs, "
    "indpred",
    {
        **dict.fromkeys(
            ("indisunique", "indisprimary", "indimmediate", "indisvalid", "indisready", "indislive"), "true"
        ),
        **dict.fromkeys(("indisexclusion", "indisclustered", "indcheckxmin", "indisreplident"), "false"),
        **dict.fromkeys(("indnatts", "indnkeyatts"), "len(numbers)"),
        "indexrelid": _INDEX,
        "indrelid": "table_oid",
        "indkey": "numbers",
        "indoption": "list_transform(numbers, lambda number: 0)",
    },
    _KEYS,
)
_PG_CONSTRAINT: Final = _made(
    "oid oid, conname, connamespace oid, contype, condeferrable bool, condeferred bool, "
    "convalidated bool, conrelid oid, contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype, "
    "confdeltype, confmatchtype, conislocal bool, coninhcount int, connoinherit bool, conkey int[], confkey int[], "
    "conpfeqop oid[], conbin",
    {
        **dict.fromkeys(("condeferrable", "condeferred"), "false"),
        **dict.fromkeys(("convalidated", "conislocal", "connoinherit"), "true"),
        **dict.fromkeys(("contypid", "conparentid", "confrelid", "coninhcount"), "0"),
        "oid": _CONSTRAINT,
        "conname": "key_name",
        "connamespace": "schema_oid",
        "contype": "'p'",
        "conrelid": "table_oid",
        "conindid": _INDEX,
        "conkey": "numbers",
    },
    _KEYS,
)
_RELATIONS: Final = """
SELECT table_oid::UINTEGER AS oid, table_name AS relname, schema_oid::UINTEGER AS relnamespace, 'r' AS relkind,
  column_count AS relnatts
FROM duckdb_tables() WHERE NOT internal
"""
_FULL: Final = {
    "pg_namespace": f"""
SELECT oid::UINTEGER AS oid, nspname, {OWNER_OID}::UINTEGER AS nspowner, NULL::VARCHAR[] AS nspacl FROM (
  SELECT DISTINCT schema_oid AS oid, schema_name AS nspname FROM duckdb_tables() WHERE NOT internal
  UNION ALL VALUES {", ".join(f"({oid}, {literal(name)})" for name, oid in _SCHEMAS.items())})""",
    "pg_class": f"""
SELECT oid, relname, relnamespace, 0::UINTEGER AS reltype, 0::UINTEGER AS reloftype, {OWNER_OID}::UINTEGER AS relowner,
  2::UINTEGER AS relam, oid AS relfilenode, 0::UINTEGER AS reltablespace, 0 AS relpages, (-1)::FLOAT AS reltuples,
  0 AS relallvisible, 0::UINTEGER AS reltoastrelid, false AS relhasindex, false AS relisshared, 'p' AS relpersistence,
  relkind, relnatts::SMALLINT AS relnatts, 0::SMALLINT AS relchecks, false AS relhasrules, false AS relhastriggers,
  false AS relhassubclass, false AS relrowsecurity, false AS relforcerowsecurity, true AS relispopulated,
  'd' AS relreplident, false AS relispartition, 0::UINTEGER AS relrewrite, 0::UINTEGER AS relfrozenxid,
  0::UINTEGER AS relminmxid, NULL::VARCHAR[] AS relacl, NULL::VARCHAR[] AS reloptions, NULL AS relpartbound
FROM ({_RELATIONS})""",
    "pg_attribute": f"""
SELECT table_oid::UINTEGER AS attrelid, column_name AS attname, {SHIM}_type_of(data_type)::UINTEGER AS atttypid,
  -1 AS attstattarget,
  {_case(f"{SHIM}_type_of(data_type)", dict(_SIZES), "-1")} AS attlen, column_index::SMALLINT AS attnum, 0 AS attndims,
  -1 AS attcacheoff, -1 AS atttypmod, false AS attbyval, 'x' AS attstorage, 'i' AS attalign, '' AS attcompression,
  NOT is_nullable AS attnotnull, false AS atthasdef, false AS atthasmissing, '' AS attidentity, '' AS attgenerated,
  false AS attisdropped, true AS attislocal, 0 AS attinhcount, 0::UINTEGER AS attcollation, NULL::VARCHAR[] AS attacl,
  NULL::VARCHAR[] AS attoptions, NULL::VARCHAR[] AS attfdwoptions
FROM duckdb_columns() WHERE NOT internal AND schema_name <> '{SHIM}'""",
    "pg_type": f"""
SELECT oid::UINTEGER AS oid, typname, {_SCHEMAS["pg_catalog"]}::UINTEGER AS typnamespace,
  {OWNER_OID}::UINTEGER AS typowner,
  typlen::SMALLINT AS typlen, typlen BETWEEN 0 AND 8 AS typbyval, typtype, typcategory, false AS typispreferred,
  true AS typisdefined, ',' AS typdelim, 0::UINTEGER AS typrelid, typelem::UINTEGER AS typelem,
  typarray::UINTEGER AS typarray,
  'i' AS typalign, 'p' AS typstorage, false AS typnotnull, 0::UINTEGER AS typbasetype, -1 AS typtypmod, 0 AS typndims,
  0::UINTEGER AS typcollation, NULL::VARCHAR AS typdefault, NULL::VARCHAR AS typdefaultbin, NULL::VARCHAR[] AS typacl,
  typname || 'in' AS typinput, typname || 'out' AS typoutput, typname || 'recv' AS typreceive,
  typname || 'send' AS typsend, CASE WHEN typelem > 0 THEN 6179 ELSE 0 END::UINTEGER AS typsubscript
FROM (VALUES {_types()}) t(oid, typname, typlen, typcategory, typelem, typarray, typtype)""",
    "pg_index": _PG_INDEX,
    "pg_constraint": _PG_CONSTRAINT,
    "pg_am": "SELECT 2::UINTEGER AS oid, 'heap' AS amname, 3::UINTEGER AS amhandler, 't' AS amtype",
    "pg_collation": "SELECT 100::UINTEGER AS oid, 'default' AS collname, 11::UINTEGER AS collnamespace, "
    "10::UINTEGER AS collowner, 'd' AS collprovider, true AS collisdeterministic, -1 AS collencoding, "
    "'' AS collcollate, '' AS collctype, '' AS collversion",
    "pg_language": "SELECT 12::UINTEGER AS oid, 'internal' AS lanname, 10::UINTEGER AS lanowner, false AS lanispl, "
    "false AS lanpltrusted, NULL::VARCHAR[] AS lanacl",
    "pg_tablespace": "SELECT 1663::UINTEGER AS oid, 'pg_default' AS spcname, 10::UINTEGER AS spcowner, "
    "NULL::VARCHAR[] AS spcacl, NULL::VARCHAR[] AS spcoptions",
    "pg_tables": "SELECT schema_name AS schemaname, table_name AS tablename, current_user() AS tableowner, "
    "NULL::VARCHAR AS tablespace, false AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity "
    "FROM duckdb_tables() WHERE NOT internal",
}
_IN_SQL_STANDARD: Final = {
    "schemata": f"SELECT current_database() AS catalog_name, nspname AS schema_name, current_user() AS schema_owner "
    f"FROM {SHIM}.pg_namespace",
    "tables": "SELECT current_database() AS table_catalog, schema_name AS table_schema, table_name, "
    "'BASE TABLE' AS table_type, NULL::VARCHAR AS self_referencing_column_name, NULL::VARCHAR AS reference_generation, "
    "'NO' AS is_insertable_into, 'NO' AS is_typed FROM duckdb_tables() WHERE NOT internal",
    "columns": "SELECT current_database() AS table_catalog, schema_name AS table_schema, table_name, column_name, "
    "column_index AS ordinal_position, NULL::VARCHAR AS column_default, "
    "CASE WHEN is_nullable THEN 'YES' ELSE 'NO' END AS is_nullable, "
    f"format_type({SHIM}_type_of(data_type), NULL) AS data_type, NULL::INTEGER AS character_maximum_length, "
    "NULL::INTEGER AS numeric_precision, NULL::INTEGER AS numeric_scale, NULL::INTEGER AS datetime_precision, "
    "'pg_catalog' AS udt_schema, "
    f"{_case(f'{SHIM}_type_of(data_type)', {each.oid: each.name for each in BY_OID.values()}, 'NULL')} AS udt_name, "
    "'NO' AS is_identity, 'NEVER' AS is_generated, NULL::VARCHAR AS generation_expression, 'NO' AS is_updatable "
    f"FROM duckdb_columns() WHERE NOT internal AND schema_name <> '{SHIM}'",
    "views": _empty("table_catalog, table_schema, table_name, view_definition"),
    "table_constraints": _made(
        "constraint_catalog, constraint_schema, constraint_name, table_catalog, table_schema, "
        "table_name, constraint_type, is_deferrable, initially_deferred",
        {**_NAMED_KEY, "constraint_type": "'PRIMARY KEY'", "is_deferrable": "'NO'", "initially_deferred": "'NO'"},
        _KEYS,
    ),
    "key_column_usage": _made(
        "constraint_catalog, constraint_schema, constraint_name, table_catalog, table_schema, "
        "table_name, column_name, ordinal_position int, position_in_unique_constraint int",
        {**_NAMED_KEY, "column_name": "column_name", "ordinal_position": "ordinal_position"},
        f"(SELECT *, unnest(names) AS column_name, generate_subscripts(names, 1) AS ordinal_position FROM {_KEYS})",
    ),
    "referential_constraints": _empty(
        "constraint_catalog, constraint_schema, constraint_name, "
        "unique_constraint_catalog, unique_constraint_schema, unique_constraint_name, match_option, update_rule, "
        "delete_rule"
    ),
    "constraint_column_usage": _empty(
        "table_catalog, table_schema, table_name, column_name, constraint_catalog, constraint_schema, constraint_name"
    ),
    "routines": _empty(
        "specific_catalog, specific_schema, specific_name, routine_catalog, routine_schema, "
        "routine_name, routine_type, data_type"
    ),
    "sequences": _empty("sequence_catalog, sequence_schema, sequence_name, data_type"),
    "triggers": _empty("trigger_catalog, trigger_schema, trigger_name, event_object_schema, event_object_table"),
    "table_privileges": _empty("grantor, grantee, table_catalog, table_schema, table_name, privilege_type"),
}
STANDARD: Final = frozenset(_IN_SQL_STANDARD)
"""Views of `information_schema`; in the shim their names begin with `is_`."""
_OF_SESSION: Final = ("pg_database", "pg_roles", "pg_user", "pg_authid", "pg_settings", "pg_shadow", "pg_group")
VIEWS: Final = frozenset({*_EMPTY, *_FULL, *_OF_SESSION})


def _of_session(user: str, database: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The catalogs whose rows are the session's."""
    roles = (
        f"SELECT {OWNER_OID}::UINTEGER AS oid, {literal(user)} AS rolname, false AS rolsuper, true AS rolinherit, "
        "false AS rolcreaterole, false AS rolcreatedb, true AS rolcanlogin, false AS rolreplication, "
        "-1 AS rolconnlimit, NULL::VARCHAR AS rolpassword, NULL::TIMESTAMPTZ AS rolvaliduntil, false AS rolbypassrls, "
        "NULL::VARCHAR[] AS rolconfig"
    )
    users = (
        f"SELECT {literal(user)} AS usename, {OWNER_OID}::UINTEGER AS usesysid, false AS usecreatedb, "
        "false AS usesuper, false AS userepl, false AS usebypassrls, NULL::VARCHAR AS passwd, "
        "NULL::TIMESTAMPTZ AS valuntil, NULL::VARCHAR[] AS useconfig"
    )
    rows = ", ".join(f"({literal(name)}, {literal(value)})" for name, value in settings.items())
    return {
        "pg_roles": roles,
        "pg_authid": roles,
        "pg_user": users,
        "pg_shadow": users,
        "pg_group": "SELECT NULL::VARCHAR AS groname, NULL::UINTEGER AS grosysid, "
        "NULL::UINTEGER[] AS grolist WHERE false",
        "pg_database": f"SELECT {DATABASE_OID}::UINTEGER AS oid, {literal(database)} AS datname, "
        f"{OWNER_OID}::UINTEGER AS datdba, 6 AS encoding, 'c' AS datlocprovider, 'C' AS datcollate, 'C' AS datctype, "
        "NULL::VARCHAR AS daticulocale, false AS datistemplate, true AS datallowconn, -1 AS datconnlimit, "
        "0::UINTEGER AS datlastsysoid, 1663::UINTEGER AS dattablespace, NULL::VARCHAR[] AS datacl",
        "pg_settings": "SELECT name, setting, NULL::VARCHAR AS unit, 'Preset Options' AS category, '' AS short_desc, "
        "NULL::VARCHAR AS extra_desc, 'internal' AS context, 'string' AS vartype, 'default' AS source, "
        "NULL::VARCHAR AS min_val, NULL::VARCHAR AS max_val, NULL::VARCHAR[] AS enumvals, setting AS boot_val, "
        f"setting AS reset_val, NULL::VARCHAR AS sourcefile, false AS pending_restart FROM (VALUES {rows}) "
        "t(name, setting)",
    }


_NAMED: Final = {name.lower(): oid for oid, name in _FORMATS.items()} | {
    each.name: each.oid for each in BY_OID.values()
}
_TRUE: Final = (
    *("pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_operator_is_visible"),
    *("pg_collation_is_visible", "pg_opclass_is_visible", "pg_opfamily_is_visible", "pg_conversion_is_visible"),
    *("pg_statistics_obj_is_visible", "pg_ts_config_is_visible", "pg_ts_dict_is_visible", "pg_ts_parser_is_visible"),
    "pg_ts_template_is_visible",
)
_PRIVILEGES: Final = (
    *("has_table_privilege", "has_schema_privilege", "has_database_privilege", "has_any_column_privilege"),
    *("has_function_privilege", "has_sequence_privilege", "has_tablespace_privilege", "has_language_privilege"),
    *("has_server_privilege", "has_foreign_data_wrapper_privilege", "has_type_privilege", "pg_has_role"),
)
_CHANGES: Final = "'insert', 'update', 'delete', 'truncate', 'references', 'trigger', 'create', 'temporary', 'temp'"
_MACROS: Final = {
    **dict.fromkeys(_TRUE, "(a) AS true"),
    "format_type": f"(a, b) AS {_case('a', dict(_FORMATS), 'NULL')}",
    f"{SHIM}_type_of": f"(a) AS {_case('a', dict(_OIDS), '114')}",
    f"{SHIM}_oid_of": """(a) AS (SELECT min(t.table_oid)::UINTEGER FROM duckdb_tables() t WHERE NOT t.internal AND
lower(replace(a, '"', '')) IN (lower(t.table_name), lower(t.schema_name || '.' || t.table_name)))""",
    "to_regtype": f"(a) AS {_case('lower(a)', _NAMED, 'NULL')}::UINTEGER",
    "pg_char_to_encoding": "(a) AS 6",
    "to_regclass": f"(a) AS {SHIM}_oid_of(a)",
    "pg_get_userbyid": "(a) AS current_user()",
    "pg_get_expr": "(a, b) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR",
    "pg_get_constraintdef": "(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR",
    "pg_get_indexdef": "(a) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR",
    "pg_get_viewdef": "(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR",
    "pg_get_ruledef": "(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR",
    "pg_get_triggerdef": "(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR",
    "pg_get_functiondef": "(a) AS NULL::VARCHAR",
    "pg_get_function_result": "(a) AS NULL::VARCHAR",
    "pg_get_function_arguments": "(a) AS NULL::VARCHAR",
    "pg_get_function_identity_arguments": "(a) AS NULL::VARCHAR",
    "pg_get_function_sqlbody": "(a) AS NULL::VARCHAR",
    "pg_get_partkeydef": "(a) AS NULL::VARCHAR",
    "pg_get_statisticsobjdef_columns": "(a) AS NULL::VARCHAR",
    "pg_get_serial_sequence": "(a, b) AS NULL::VARCHAR",
    "pg_relation_is_publishable": "(a) AS false",
    "pg_relation_size": "(a) AS 0::BIGINT, (a, b) AS 0::BIGINT",
    "pg_table_size": "(a) AS 0::BIGINT",
    "pg_total_relation_size": "(a) AS 0::BIGINT",
    "pg_database_size": "(a) AS 0::BIGINT",
    "pg_tablespace_size": "(a) AS 0::BIGINT",
    "pg_tablespace_location": "(a) AS ''",
    "pg_encoding_to_char": "(a) AS 'UTF8'",
    "pg_is_in_recovery": "() AS true",
    "pg_indexes_size": "(a) AS 0::BIGINT",
    "obj_description": "(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR",
    "col_description": "(a, b) AS NULL::VARCHAR",
    "shobj_description": "(a, b) AS NULL::VARCHAR",
    "pg_options_to_table": "(a) AS TABLE "
    "SELECT NULL::VARCHAR AS option_name, NULL::VARCHAR AS option_value WHERE false",
    "array_to_string": "(a, b) AS list_aggregate(a, 'string_agg', b), (a, b, c) AS list_aggregate(a, 'string_agg', b)",
    "array_upper": "(a, b) AS len(a)",
    "array_lower": "(a, b) AS 1",
    "quote_ident": "(a) AS CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_]*') THEN a "
    "ELSE '\"' || replace(a, '\"', '\"\"') || '\"' END",
    "current_schemas": "(a) AS ['pg_catalog', 'public']",
    "current_schema": "() AS 'public'",
    **dict.fromkeys(
        _PRIVILEGES,
        f"(a, b) AS NOT list_contains([{_CHANGES}], lower(b)), (a, b, c) AS NOT list_contains([{_CHANGES}], lower(c))",
    ),
}
_OF_SESSION_MACROS: Final = ("current_user", "session_user", "current_database", "pg_backend_pid", "version")
ABOUT_CATALOG: Final = frozenset(
    {*_MACROS, *_OF_SESSION_MACROS, "information_schema", "current_setting", "regclass", "oid", "current_catalog"}
)


_ALWAYS: Final = (f"{SHIM}_type_of", f"{SHIM}_oid_of", "format_type")
_IN_VIEWS: Final = {"schemata": ("pg_namespace",)}
"""Views that others need."""


def prelude(words: Collection[str], user: str, database: str, pid: int, settings: Mapping[str, str]) -> Sequence[str]:
    """The statements that make what a query about the catalog needs: `words` are all in it, in small letters."""
    values = {
        "current_user": literal(user),
        "session_user": literal(user),
        "current_database": literal(database),
        "pg_backend_pid": str(pid),
        "version": literal(VERSION),
    }
    setting = _case("lower(a)", {name.lower(): value for name, value in settings.items()}, "NULL")
    wanted = {*words, *_ALWAYS, *(name for each in words for name in _IN_VIEWS.get(each, ()))}
    views = {name: _empty(columns) for name, columns in _EMPTY.items() if name in wanted}
    views |= {name: made for name, made in _FULL.items() if name in wanted}
    views |= {name: made for name, made in _of_session(user, database, settings).items() if name in wanted}
    views |= {f"is_{name}": made for name, made in _IN_SQL_STANDARD.items() if name in wanted}
    return (
        *(f"CREATE MACRO {name}() AS {value}" for name, value in values.items()),
        f"CREATE MACRO current_setting(a) AS {setting}, (a, b) AS {setting}",
        *(f"CREATE MACRO {name}{made}" for name, made in _MACROS.items() if name in wanted),
        f"CREATE SCHEMA {SHIM}",
        *(f"CREATE VIEW {SHIM}.{name} AS {made}" for name, made in views.items()),
    )
