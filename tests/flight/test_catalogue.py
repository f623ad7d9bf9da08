"""What Apache's example servers tell of their tables, in the form of ADBC."""

import longshore
from tests.servers import GoFlight


def tables(objects: list[dict]) -> dict[str, dict]:  # type: ignore[type-arg]
    """Return the tables of `adbc_get_objects` by name."""
    schemas = [schema for catalog in objects for schema in catalog["catalog_db_schemas"] or []]
    return {table["table_name"]: table for schema in schemas for table in schema["db_schema_tables"] or []}


def test_objects_are_listed(go_flight: GoFlight) -> None:
    with longshore.connect(go_flight.url()) as connection:
        found = tables(connection.adbc_get_objects().read_all().to_pylist())
        assert {"intTable", "foreignTable"} <= set(found)
        columns = [(column["column_name"], column["xdbc_type_name"]) for column in found["intTable"]["table_columns"]]
        assert [name for name, _ in columns] == ["id", "keyName", "value", "foreignId"]
        keys = {each["constraint_type"]: each for each in found["intTable"]["table_constraints"]}
        assert keys["PRIMARY KEY"]["constraint_column_names"] == ["id"]
        assert keys["FOREIGN KEY"]["constraint_column_usage"][0]["fk_table"] == "foreignTable"
        assert "table" in connection.adbc_get_table_types()
        assert connection.adbc_get_info()["vendor_name"] == "db_name"
