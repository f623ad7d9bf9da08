//! The library through Rust's driver manager, over SQLite.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adbc_core::error::Status;
use adbc_core::options::{
    AdbcVersion, InfoCode, IngestMode, ObjectDepth, OptionConnection, OptionDatabase, OptionStatement,
    OptionValue,
};
use adbc_core::{Connection as _, Database as _, Driver as _, Optionable as _, Statement as _};
use adbc_driver_manager::{ManagedConnection, ManagedDriver};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchReader};

/// The library that was built last, the wheel's or cargo's own: cargo builds none for a test, but `make test-rust` has one built.
fn library() -> PathBuf {
    let wheel = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/longshore"));
    let test = std::env::current_exe().unwrap();
    let name = format!("{}longshore_adbc{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let both = [wheel, test.ancestors().nth(2).unwrap().to_owned()].map(|folder| folder.join(&name));
    let built = |library: &PathBuf| library.metadata().and_then(|metadata| metadata.modified()).ok();
    both.into_iter().max_by_key(built).unwrap()
}

fn connect(uri: &str) -> adbc_core::error::Result<ManagedConnection> {
    let entrypoint = Some(b"AdbcDriverInit".as_slice());
    let mut driver = ManagedDriver::load_dynamic_from_filename(library(), entrypoint, AdbcVersion::V110)?;
    driver.new_database_with_opts([(OptionDatabase::Uri, uri.into())])?.new_connection()
}

fn numbers(values: Vec<i64>) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from(values));
    RecordBatch::try_from_iter([("id", values)]).unwrap()
}

fn all(reader: impl RecordBatchReader) -> Vec<i64> {
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn query(connection: &mut ManagedConnection, text: &str) -> Vec<i64> {
    let mut statement = connection.new_statement().unwrap();
    statement.set_sql_query(text).unwrap();
    all(statement.execute().unwrap())
}

#[test]
fn rows_go_in_and_come_out() {
    let mut connection = connect("sqlite:///:memory:").unwrap();
    let mut statement = connection.new_statement().unwrap();
    statement.set_option(OptionStatement::TargetTable, "t".into()).unwrap();
    for (mode, rows) in [
        (IngestMode::Create, 3),
        (IngestMode::Append, 6),
        (IngestMode::CreateAppend, 9),
        (IngestMode::Replace, 3),
    ] {
        statement.set_option(OptionStatement::IngestMode, mode.into()).unwrap();
        statement.bind(numbers(vec![1, 2, 3])).unwrap();
        assert_eq!(statement.execute_update().unwrap(), Some(3));
        assert_eq!(query(&mut connection, "SELECT count(*) AS n FROM t"), [rows]);
    }
    let mut bound = connection.new_statement().unwrap();
    bound.set_sql_query("SELECT id FROM t WHERE id >= ? ORDER BY id DESC").unwrap();
    bound.bind(numbers(vec![2, 3])).unwrap();
    assert_eq!(all(bound.execute().unwrap()), [3, 2, 3]);
    bound.bind(numbers(vec![2])).unwrap();
    assert_eq!(bound.execute_schema().unwrap().field(0).name(), "id");
    assert_eq!(bound.set_substrait_plan([1]).unwrap_err().status, Status::NotImplemented);
}

#[test]
fn a_transaction_is_undone() {
    let mut connection = connect("sqlite:///:memory:").unwrap();
    query(&mut connection, "CREATE TABLE t (id INTEGER)");
    assert_eq!(connection.commit().unwrap_err().status, Status::InvalidState);
    connection.set_option(OptionConnection::AutoCommit, "false".into()).unwrap();
    query(&mut connection, "INSERT INTO t VALUES (1)");
    connection.rollback().unwrap();
    assert_eq!(query(&mut connection, "SELECT count(*) AS n FROM t"), [0]);
    connection.set_option(OptionConnection::AutoCommit, "true".into()).unwrap();
    assert_eq!(connection.get_option_string(OptionConnection::AutoCommit).unwrap(), "true");
}

#[test]
fn a_statement_is_cancelled_from_another_thread() {
    let mut connection = connect("sqlite:///:memory:").unwrap();
    let mut statement = connection.new_statement().unwrap();
    let endless =
        "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) AS n FROM r";
    statement.set_sql_query(endless).unwrap();
    let handle = statement.get_cancel_handle();
    let stops = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        handle.try_cancel().unwrap();
    });
    let error = statement.execute().err().unwrap();
    let state: Vec<u8> = error.sqlstate.iter().flat_map(|byte| byte.to_ne_bytes()).collect();
    assert_eq!((error.status, state.as_slice()), (Status::Cancelled, b"57014".as_slice()));
    stops.join().unwrap();
    assert_eq!(query(&mut connection, "SELECT 1 AS n"), [1]);
}

#[test]
fn errors_and_the_catalogue_are_told() {
    let mut connection = connect("sqlite:///:memory:").unwrap();
    query(&mut connection, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let mut statement = connection.new_statement().unwrap();
    statement.set_sql_query("SELECT * FROM no_such_table").unwrap();
    let error = statement.execute().err().unwrap();
    assert!(error.message.contains("no_such_table"), "{error}");
    let details = error.details.unwrap();
    assert!(details.contains(&("longshore.vendor_code".into(), b"1".to_vec())), "{details:?}");
    let objects = connection.get_objects(ObjectDepth::All, None, None, Some("t"), None, None).unwrap();
    assert_eq!(objects.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1);
    let codes = [InfoCode::DriverName].into();
    let info = connection.get_info(Some(codes)).unwrap().next().unwrap().unwrap();
    assert_eq!(info.num_rows(), 1);
    let schema = connection.get_table_schema(None, None, "t").unwrap();
    assert_eq!(schema.field(0).name(), "id");
}

#[test]
fn what_is_not_here_is_said() {
    let entrypoint = Some(b"AdbcDriverInit".as_slice());
    assert!(ManagedDriver::load_dynamic_from_filename(library(), entrypoint, AdbcVersion::V100).is_err());
    for (uri, status) in [("duckdb:///a.db", Status::NotImplemented), ("a", Status::InvalidArguments)] {
        assert_eq!(connect(uri).err().unwrap().status, status);
    }
    let mut connection = connect("sqlite:///:memory:").unwrap();
    let unknown = OptionConnection::Other("no_such_option".into());
    let error = connection.set_option(unknown, OptionValue::Int(1)).unwrap_err();
    assert_eq!(error.status, Status::NotImplemented);
}
