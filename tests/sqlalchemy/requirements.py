"""The requirements of SQLAlchemy's suite for each database, and which of its tests are left out, and why."""

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

P, M, S = "postgresql", "mariadb", "sqlite"
EVERY = (P, M, S)

#: The requirements that are asked only where a database is said to meet them, and each does.
HAVE = (
    "aggregate_order_by",
    "autocommit",
    "boolean_col_expressions",
    "check_constraint_reflection",
    "computed_columns",
    "computed_columns_reflect_persisted",
    "computed_columns_stored",
    "computed_columns_virtual",
    "create_table_as",
    "create_temp_table_as",
    "ctes",
    "date_historic",
    "datetime_historic",
    "datetime_literals",
    "except_",
    "expression_server_defaults",
    "fetch_offset_with_options",
    "fk_constraint_option_reflection_ondelete_noaction",
    "foreign_key_constraint_name_reflection",
    "foreign_key_constraint_option_reflection_ondelete",
    "foreign_key_constraint_option_reflection_onupdate",
    "has_temp_table",
    "index_ddl_if_exists",
    "indexes_check_column_order",
    "intersect",
    "isolation_level",
    "json_type",
    "legacy_unconditional_json_extract",
    "mod_operator_as_percent_sign",
    "order_by_label_with_expression",
    "percent_schema_names",
    "precision_numerics_retains_significant_digits",
    "reflect_indexes_with_ascdesc",
    "reflect_table_options",
    "regexp_match",
    "savepoints",
    "server_defaults",
    "skip_autocommit_rollback",
    "supports_bitwise_and",
    "supports_bitwise_or",
    "supports_bitwise_shift",
    "supports_bitwise_xor",
    "table_ddl_if_exists",
    "tuple_in",
    "unicode_ddl",
    "update_from",
    "views",
    "window_functions",
    "window_range",
    "window_range_numeric",
)
#: The requirements that only these meet, and why not the others; by SQLAlchemy's own dialects, too.
SOME: dict[str, tuple[tuple[str, ...], str]] = {
    "array_type": ((P,), "only PostgreSQL has arrays"),
    "column_collation_reflection": ((P,), "SQLAlchemy reads collations out of PostgreSQL's catalogue alone"),
    "comment_reflection": ((P, M), "SQLite has no comments"),
    "comment_reflection_full_unicode": (
        (P,),
        "SQLite has no comments, and those of MariaDB have no characters of four bytes",
    ),
    "computed_columns_default_persisted": ((), "a column is virtual unless it says STORED"),
    "constraint_comment_reflection": ((P,), "only PostgreSQL has comments on constraints"),
    "create_or_replace_view": ((P, M), "SQLite has no OR REPLACE"),
    "cross_schema_fk_reflection": ((P, M), "a foreign key of SQLite stays in its file"),
    "ctes_on_dml": ((P, S), "MariaDB has WITH before SELECT alone"),
    "ctes_with_update_delete": ((P, S), "MariaDB has WITH before SELECT alone"),
    "ctes_with_values": ((P, S), "MariaDB cuts parameters in VALUES, which is refused"),
    "datetime_interval": ((P,), "only PostgreSQL has intervals"),
    "datetime_microseconds": ((P, S), "DATETIME of MariaDB has seconds unless it asks for more"),
    "datetime_timezone": ((P,), "only PostgreSQL has a type with a time zone"),
    "datetime_timezone_historic": ((P,), "only PostgreSQL has a type with a time zone"),
    "dbapi_lastrowid": ((M, S), "PostgreSQL has RETURNING instead"),
    "default_schema_name_switch": ((P,), "only PostgreSQL has a search_path"),
    "deferrable_fks": ((P, S), "MariaDB checks a foreign key at once"),
    "delete_from": ((P, M), "SQLite has no DELETE over several tables"),
    "denormalized_names": ((), "no name is in capital letters because it has no quotes"),
    "emulated_lastrowid": ((M, S), "PostgreSQL has RETURNING instead"),
    "fetch_expression": ((P, S), "a limit of MariaDB is a number, and no expression"),
    "fetch_first": ((P, M), "SQLite has LIMIT alone"),
    "fetch_no_order_by": ((P, M), "SQLite has LIMIT alone"),
    "fetch_percent": ((), "none has FETCH ... PERCENT"),
    "fetch_ties": ((P, M), "SQLite has LIMIT alone"),
    "fk_constraint_option_reflection_ondelete_restrict": ((P, S), "MariaDB does not tell of RESTRICT, its default"),
    "fk_constraint_option_reflection_onupdate_restrict": ((P, S), "MariaDB does not tell of RESTRICT, its default"),
    "float_or_double_precision_behaves_generically": ((P, S), "MariaDB's FLOAT has 24 bits"),
    "foreign_keys_reflect_as_index": ((M,), "only MariaDB makes an index for a foreign key"),
    "identity_columns": ((P,), "only PostgreSQL has GENERATED AS IDENTITY"),
    "identity_columns_standard": ((P,), "only PostgreSQL has GENERATED AS IDENTITY"),
    "implicit_default_schema": ((P,), "only PostgreSQL has a schema that every database begins with"),
    "implicitly_named_constraints": ((P, M), "a constraint of SQLite has the name that it was given, or none"),
    "independent_connections": ((P, M), "what the suite attaches to its own connections of SQLite, others do not have"),
    "index_reflects_included_columns": ((P,), "only PostgreSQL has INCLUDE"),
    "indexes_with_expressions": ((P, S), "an index of MariaDB is over columns"),
    "infinity_floats": ((P, S), "MariaDB's floats are finite"),
    "inline_check_constraint_reflection": ((P, S), "SQLAlchemy reads of MariaDB no CHECK that stands within a column"),
    "json_deserializer_binary": ((), "JSON arrives as text"),
    "materialized_views": ((P,), "only PostgreSQL has materialized views"),
    "materialized_views_reflect_pk": ((), "a materialized view has no primary key"),
    "nullsordering": ((P, S), "MariaDB has no NULLS FIRST"),
    "nvarchar_types": ((M, S), "PostgreSQL has no NVARCHAR"),
    "parens_in_union_contained_select_w_limit_offset": ((P, M), "SQLite has no parentheses around a SELECT of a UNION"),
    "parens_in_union_contained_select_wo_limit_offset": (
        (P, M),
        "SQLite has no parentheses around a SELECT of a UNION",
    ),
    "precision_generic_float_type": ((P, S), "MariaDB's FLOAT has 24 bits"),
    "precision_numerics_enotation_small": ((P, M), "SQLite's numbers are floats, of 17 digits"),
    "precision_numerics_many_significant_digits": ((P, M), "SQLite's numbers are floats, of 17 digits"),
    "reflect_indexes_with_ascdesc_as_expression": ((), "none reflects an index that descends as an expression"),
    "reflect_indexes_with_expressions": ((P,), "SQLAlchemy leaves SQLite's out, and MariaDB has none"),
    "reflect_tables_no_columns": ((P,), "a table of the others has a column"),
    "reflects_pk_names": ((P, S), "MariaDB calls each primary key PRIMARY"),
    "regexp_replace": ((P, M), "SQLite has no function that replaces by an expression"),
    "repeated_column_foreign_keys": ((P, S), "MariaDB refuses a column that is twice in a foreign key"),
    "repeated_remote_col_foreign_keys": ((S,), "PostgreSQL and MariaDB refuse a key that refers to a column twice"),
    "schema_create_delete": ((P, M), "a schema of SQLite is a file"),
    "sql_expression_limit_offset": ((P, S), "a limit of MariaDB is a number, and no expression"),
    "supports_bitwise_not": ((P, S), "MariaDB's ~ gives an unsigned number of 64 bits"),
    "supports_distinct_on": ((P,), "only PostgreSQL has DISTINCT ON"),
    "table_value_constructor": ((P,), "only PostgreSQL names the columns of VALUES"),
    "temp_table_comment_reflection": ((P, M), "SQLite has no comments"),
    "temp_table_names": ((P, S), "MariaDB does not list temporary tables"),
    "temporary_views": ((P, S), "MariaDB has no temporary views"),
    "time_microseconds": ((P, S), "TIME of MariaDB has seconds unless it asks for more"),
    "time_timezone": ((P,), "only PostgreSQL has a type with a time zone"),
    "timestamp_microseconds": ((P, S), "TIMESTAMP of MariaDB has seconds unless it asks for more"),
    "unbounded_varchar": ((P, S), "VARCHAR of MariaDB has a length"),
    "unique_constraints_reflect_as_index": ((P, M), "SQLite makes the index of a constraint, and does not list it"),
    "unique_index_reflect_as_unique_constraints": ((M,), "only MariaDB has one thing for both"),
    "uuid_data_type": ((P, M), "SQLite has no type of UUIDs"),
    "window_range_non_numeric": ((P,), "only PostgreSQL has intervals"),
}
#: The tests left out although the database may pass them: the databases that are asked, and why the others are not.
OURS: dict[str, tuple[tuple[str, ...], str]] = {
    "date_coerces_from_datetime": ((M, S), "a time of day is not dropped without a word"),
}
COLLATIONS = {P: "C", M: "utf8mb4_bin"}


class Requirements(SuiteRequirements):
    """The requirements of the suite."""

    def get_order_by_collation(self, config: Any) -> str:
        """Give a collation that the database has."""
        return COLLATIONS.get(config.db.name, "NOCASE")


def _require(name: str, rule: Any) -> None:
    setattr(Requirements, name, property(lambda _self: rule))


for _name in HAVE:
    _require(_name, exclusions.only_on(list(EVERY)))
for _name, (_databases, _reason) in SOME.items():
    _require(_name, exclusions.skip_if(lambda config, having=_databases: config.db.name not in having, _reason))
for _name, (_databases, _reason) in OURS.items():
    _require(_name, exclusions.skip_if(lambda config, asked=_databases: config.db.name not in asked, _reason))
