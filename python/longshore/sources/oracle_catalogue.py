"""Oracle's catalogue: the queries of its dictionary views, whose columns are texts under the core's names.

A schema is a user. Those that Oracle has made are left out, but for the session's own, and so is the recycle bin.
"""

_CURRENT = "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')"
_OWN = f"(SELECT username FROM all_users WHERE oracle_maintained = 'N' OR username = {_CURRENT})"  # noqa: S608
_NO_CATALOG = 'CAST(NULL AS VARCHAR2(1)) AS "catalog_name"'


def _place(of: str, table: str = "table_name") -> str:
    return f'{_NO_CATALOG}, {of}.owner AS "db_schema_name", {of}.{table} AS "table_name"'


#: A type with what was declared of it; other names hold their digits.
_TYPE = (
    "CASE WHEN c.data_type = 'NUMBER' AND COALESCE(c.data_precision, c.data_scale) IS NOT NULL "
    "THEN 'NUMBER(' || COALESCE(c.data_precision, 38) || ',' || COALESCE(c.data_scale, 0) || ')' "
    "WHEN c.data_type = 'FLOAT' THEN 'FLOAT(' || c.data_precision || ')' "
    "WHEN c.data_type IN ('CHAR', 'NCHAR', 'VARCHAR2', 'NVARCHAR2') THEN c.data_type || '(' || c.char_length || ')' "
    "WHEN c.data_type = 'RAW' THEN 'RAW(' || c.data_length || ')' ELSE c.data_type END"
)
_TABLES = (
    "dropped = 'NO' AND nested = 'NO' AND secondary = 'N' AND (iot_type IS NULL OR iot_type = 'IOT') "
    f"AND t.owner IN {_OWN}"
)

CATALOGUE = {
    "current": f"""SELECT {_NO_CATALOG}, {_CURRENT} AS "db_schema_name", 'Oracle' AS "vendor_name",
        (SELECT MAX(version) FROM product_component_version WHERE product LIKE 'Oracle%') AS "vendor_version"
        FROM dual""",  # noqa: S608
    "schemas": f'SELECT {_NO_CATALOG}, username AS "db_schema_name" FROM all_users '  # noqa: S608
    f"WHERE username IN {_OWN} ORDER BY 2",
    "tables": f"""SELECT {_place("t")}, 'table' AS "table_type" FROM all_tables t WHERE {_TABLES}
        UNION ALL SELECT {_place("v", "view_name")}, 'view' AS "table_type" FROM all_views v WHERE v.owner IN {_OWN}
        ORDER BY 2, 3""",  # noqa: S608
    # The default is a LONG, which stands in no expression.
    "columns": f"""SELECT {_place("c")}, c.column_name AS "column_name",
        CAST(c.column_id AS VARCHAR2(10)) AS "ordinal_position", {_TYPE} AS "type_name",
        CASE c.nullable WHEN 'N' THEN 'NO' ELSE 'YES' END AS "is_nullable", c.data_default AS "column_default",
        r.comments AS "remarks", c.identity_column AS "is_autoincrement", c.virtual_column AS "is_generated"
        FROM all_tab_cols c LEFT JOIN all_col_comments r
        ON r.owner = c.owner AND r.table_name = c.table_name AND r.column_name = c.column_name
        WHERE c.hidden_column = 'NO' AND c.owner IN {_OWN} ORDER BY c.owner, c.table_name, c.column_id""",  # noqa: S608
    "constraints": f"""SELECT {_place("c")}, c.constraint_name AS "constraint_key",
        c.constraint_name AS "constraint_name", CASE c.constraint_type WHEN 'P' THEN 'PRIMARY KEY'
        WHEN 'U' THEN 'UNIQUE' WHEN 'R' THEN 'FOREIGN KEY' ELSE 'CHECK' END AS "constraint_type",
        k.column_name AS "column_name", CAST(NULL AS VARCHAR2(1)) AS "fk_catalog", f.owner AS "fk_db_schema",
        f.table_name AS "fk_table", f.column_name AS "fk_column_name" FROM all_constraints c
        LEFT JOIN all_cons_columns k ON k.owner = c.owner AND k.constraint_name = c.constraint_name
        LEFT JOIN all_cons_columns f ON f.owner = c.r_owner AND f.constraint_name = c.r_constraint_name
        AND f.position = k.position
        WHERE (c.constraint_type IN ('P', 'U', 'R')
        OR c.constraint_type = 'C' AND c.search_condition_vc NOT LIKE '%IS NOT NULL')
        AND c.owner IN {_OWN} ORDER BY c.owner, c.table_name, c.constraint_name, k.position""",  # noqa: S608
    "statistics": f"""SELECT {_place("t")}, CAST(NULL AS VARCHAR2(1)) AS "column_name", '6' AS "statistic_key",
        CAST(t.num_rows AS VARCHAR2(40)) AS "statistic_value" FROM all_tables t
        WHERE t.num_rows IS NOT NULL AND {_TABLES}
        UNION ALL SELECT {_place("c")}, c.column_name, '1', CAST(c.num_distinct AS VARCHAR2(40))
        FROM all_tab_col_statistics c WHERE c.num_distinct IS NOT NULL AND c.owner IN {_OWN}""",  # noqa: S608
    "table_types": "table, view",
    "use_schema": "ALTER SESSION SET CURRENT_SCHEMA = {}",
}
