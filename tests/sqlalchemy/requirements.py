"""What SQLAlchemy's suite may ask of each database, and which of its tests are left out, each with its reason."""

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

P, M, S = "postgresql", "mariadb", "sqlite"
EVERY = (P, M, S)

#: What the suite asks for only where a database is said to have it.
HAVE: dict[str, tuple[str, ...]] = {
    "aggregate_order_by": (P, M, S),
    "array_type": (P,),
    "autocommit": EVERY,
    "boolean_col_expressions": EVERY,
    "check_constraint_reflection": EVERY,
    "column_collation_reflection": (P,),
    "comment_reflection": (P, M),
    "comment_reflection_full_unicode": (P,),
    "computed_columns": EVERY,
    "computed_columns_default_persisted": (),
    "computed_columns_reflect_persisted": EVERY,
    "computed_columns_stored": EVERY,
    "computed_columns_virtual": (M, S),
    "constraint_comment_reflection": (P,),
    "create_or_replace_view": (P, M),
    "create_table_as": EVERY,
    "create_temp_table_as": EVERY,
    "cross_schema_fk_reflection": (P, M),
    "ctes": EVERY,
    "ctes_on_dml": (P, S),
    "ctes_with_update_delete": (P, S),
    "ctes_with_values": (P,),
    "date_historic": (P, S),
    "datetime_historic": (P, S),
    "datetime_interval": (P,),
    "datetime_microseconds": (P, S),
    "datetime_literals": EVERY,
    "datetime_timezone": (P,),
    "datetime_timezone_historic": (P,),
    "dbapi_lastrowid": (M, S),
    "default_schema_name_switch": (P,),
    "deferrable_fks": (P, S),
    "delete_from": (P, M),
    "emulated_lastrowid": (M, S),
    "except_": EVERY,
    "expression_server_defaults": EVERY,
    "fetch_expression": (P,),
    "fetch_first": (P, M),
    "fetch_no_order_by": (P, M),
    "fetch_offset_with_options": (P,),
    "fetch_ties": (P, M),
    "float_or_double_precision_behaves_generically": (P, S),
    "fk_constraint_option_reflection_ondelete_noaction": (P, S),
    "fk_constraint_option_reflection_ondelete_restrict": (P, S),
    "fk_constraint_option_reflection_onupdate_restrict": (P, S),
    "foreign_key_constraint_name_reflection": EVERY,
    "foreign_key_constraint_option_reflection_ondelete": EVERY,
    "foreign_key_constraint_option_reflection_onupdate": EVERY,
    "foreign_keys_reflect_as_index": (M,),
    "has_temp_table": EVERY,
    "identity_columns": (P,),
    "identity_columns_standard": (P,),
    "implicit_default_schema": (P,),
    "implicitly_named_constraints": (P, M),
    # Of SQLite: what the suite attaches to its own connections, others do not have.
    "independent_connections": (P, M),
    "index_ddl_if_exists": EVERY,
    "index_reflects_included_columns": (P,),
    "indexes_check_column_order": EVERY,
    "indexes_with_expressions": (P, S),
    "infinity_floats": (P, S),
    "inline_check_constraint_reflection": (P, S),
    "intersect": EVERY,
    "isolation_level": EVERY,
    "json_type": EVERY,
    "legacy_unconditional_json_extract": EVERY,
    "materialized_views": (P,),
    "mod_operator_as_percent_sign": EVERY,
    "nullsordering": (P, S),
    "order_by_label_with_expression": EVERY,
    "percent_schema_names": EVERY,
    "parens_in_union_contained_select_w_limit_offset": (P, M),
    "parens_in_union_contained_select_wo_limit_offset": (P, M),
    # MariaDB's FLOAT has 24 bits.
    "precision_generic_float_type": (P, S),
    "precision_numerics_enotation_small": (P, M),
    "precision_numerics_many_significant_digits": (P, M),
    "precision_numerics_retains_significant_digits": (P, M),
    "reflect_indexes_with_ascdesc": (P, M),
    "reflect_indexes_with_expressions": (P,),
    "reflect_table_options": EVERY,
    "reflect_tables_no_columns": (P,),
    "repeated_column_foreign_keys": (P, S),
    "reflects_pk_names": (P, S),
    "regexp_replace": (P, M),
    "sql_expression_limit_offset": (P, S),
    "unbounded_varchar": (P, S),
    "savepoints": EVERY,
    "schema_create_delete": (P,),
    "server_defaults": EVERY,
    "skip_autocommit_rollback": EVERY,
    "supports_bitwise_and": EVERY,
    "supports_bitwise_not": (P, S),
    "supports_bitwise_or": EVERY,
    "supports_bitwise_shift": EVERY,
    "supports_bitwise_xor": (P, M),
    "supports_distinct_on": (P,),
    "table_ddl_if_exists": EVERY,
    "table_value_constructor": (P,),
    "temp_table_comment_reflection": (P, M),
    "temp_table_names": (P, S),
    "temporary_views": (P, S),
    "time_microseconds": (P, S),
    "time_timezone": (P,),
    "timestamp_microseconds": (P, S),
    "tuple_in": EVERY,
    "unicode_ddl": EVERY,
    "unique_constraints_reflect_as_index": (P, M),
    "unique_index_reflect_as_unique_constraints": (M,),
    "update_from": EVERY,
    "uuid_data_type": (P, M),
    "views": EVERY,
    "window_functions": EVERY,
    "window_range": EVERY,
    "window_range_non_numeric": (P,),
    "window_range_numeric": (P,),
}
#: What is left out although the database may have it: the databases that are asked, and why the others are not.
OURS: dict[str, tuple[tuple[str, ...], str]] = {
    "date_coerces_from_datetime": ((M, S), "a time of day is not dropped without a word"),
    "regexp_match": ((P, M), "SQLite has REGEXP only with a function of Python's, which cannot be added"),
}
COLLATIONS = {P: "C", M: "utf8mb4_bin"}


class Requirements(SuiteRequirements):
    """What the suite asks."""

    def get_order_by_collation(self, config: Any) -> str:
        """Give a collation that the database has."""
        return COLLATIONS.get(config.db.name, "NOCASE")


def _require(name: str, rule: Any) -> None:
    setattr(Requirements, name, property(lambda _self: rule))


for _name, _databases in HAVE.items():
    _require(_name, exclusions.only_on(list(_databases)) if _databases else exclusions.closed())
for _name, (_databases, _reason) in OURS.items():
    _require(_name, exclusions.skip_if(lambda config, asked=_databases: config.db.name not in asked, _reason))
