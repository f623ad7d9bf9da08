//! SQL over a store by a libduckdb that the caller names: SELECT over views of mapped rows.
#![allow(unsafe_code)]

mod library;
mod rows;
mod scan;

use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_schema::SchemaRef;
use longshore_core::{Deadline, Error, Params, Query, Result, Value, lock};
use longshore_duckdb::error_of;
use longshore_source::sql::{DUCKDB, positional};
use longshore_store::{Scanner, Table, Transaction};

use self::library::{Handle, Library, RawResult, library, text};
use self::scan::{Connection, Tables};
use crate::statement::refusal;

pub(crate) use self::rows::EngineRows;

/// The table function over a store's tables.
const FUNCTION: &str = "longshore_scan";
/// `DUCKDB_TYPE_BIGINT`.
const BIGINT: u32 = 5;
/// The first words of statements that only read.
const READING: [&str; 12] = [
    "select",
    "with",
    "from",
    "values",
    "table",
    "describe",
    "show",
    "summarize",
    "explain",
    "pivot",
    "unpivot",
    "(",
];
const CHANGED: &str =
    "SQL reads here: rows are changed by ingestion, or by longshore.open(path).sql in Python";

/// An engine with views of a store's tables.
pub(crate) struct Engine {
    library: &'static Library,
    database: Connection,
    connection: Connection,
    tables: Arc<Tables>,
    /// The tables that have views, in the order of their numbers.
    shown: Mutex<Vec<Shown>>,
}

const COLUMNS: &str = "SELECT column_name, data_type, generation_expression FROM duckdb_columns() \
    WHERE database_name = 'memory' AND schema_name = 'main' AND table_name = $1 ORDER BY column_index";

/// The items of a SELECT, of rows of [`COLUMNS`].
fn items(columns: &RecordBatch) -> Vec<String> {
    let text = |at: usize| columns.column(at).as_string_opt::<i32>();
    let (Some(names), Some(kinds), Some(computed)) = (text(0), text(1), text(2)) else { return Vec::new() };
    let item = |((name, kind), computed): ((Option<&str>, Option<&str>), Option<&str>)| {
        let name = DUCKDB.quoted_name(name.unwrap_or_default());
        format!("CAST({} AS {}) AS {name}", computed.unwrap_or(&name), kind.unwrap_or_default())
    };
    names.iter().zip(kinds).zip(computed).map(item).collect()
}

/// The definition of a view.
#[derive(Clone, PartialEq)]
struct Shown {
    name: String,
    schema: SchemaRef,
    definition: Option<String>,
}

impl Shown {
    fn of(table: &Table) -> Self {
        Self { name: table.name.clone(), schema: table.schema(), definition: table.definition.clone() }
    }
}

impl Engine {
    /// Starts the engine of a library.
    pub(crate) fn start(path: &Path, verify: bool) -> Result<Arc<Self>> {
        let library = library(path)?;
        let (mut database, mut connection, mut config) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let mut message: *mut c_char = ptr::null_mut();
        // SAFETY: each function gets what the one before has made; the message is freed once.
        unsafe {
            (library.create_config)(&raw mut config);
            // Without it, integers of 128 bits wrap, and times lose their offset.
            (library.set_config)(config, c"arrow_lossless_conversion".as_ptr(), c"true".as_ptr());
            let state = (library.open_ext)(c":memory:".as_ptr(), &raw mut database, config, &raw mut message);
            (library.destroy_config)(&raw mut config);
            if state != 0 {
                let told = text(message);
                (library.free)(message.cast());
                return Err(error_of(&told));
            }
            if (library.connect)(database, &raw mut connection) != 0 {
                (library.close)(&raw mut database);
                return Err(Error::operational("the SQL engine gives no connection"));
            }
        }
        let tables =
            Arc::new(Tables { connection: Connection(connection), scanners: Mutex::default(), verify });
        let engine = Self {
            library,
            database: Connection(database),
            connection: Connection(connection),
            tables,
            shown: Mutex::default(),
        };
        engine.register()?;
        // A library may be without time zones. The optimiser makes an anti-join of LEFT JOIN ... IS NULL, and loses rows.
        for setting in
            ["SET GLOBAL TimeZone = 'UTC'", "SET GLOBAL disabled_optimizers = 'outer_join_simplification'"]
        {
            let _ = engine.run(setting);
        }
        Ok(Arc::new(engine))
    }

    fn register(&self) -> Result<()> {
        let (library, name) = (self.library, CString::new(FUNCTION).unwrap_or_default());
        // SAFETY: the function is made, filled and freed here; the engine keeps a copy, and the tables until it is closed.
        let state = unsafe {
            let (mut function, mut kind) =
                ((library.create_table_function)(), (library.create_logical_type)(BIGINT));
            (library.table_function_set_name)(function, name.as_ptr());
            (library.table_function_add_parameter)(function, kind);
            (library.destroy_logical_type)(&raw mut kind);
            let tables = scan::into_pointer(self.tables.clone());
            (library.table_function_set_extra_info)(function, tables, scan::delete::<Arc<Tables>>);
            (library.table_function_set_bind)(function, scan::bind);
            (library.table_function_set_init)(function, scan::init);
            (library.table_function_set_function)(function, scan::fill);
            (library.table_function_supports_projection_pushdown)(function, true);
            let state = (library.register_table_function)(self.connection.0, function);
            (library.destroy_table_function)(&raw mut function);
            state
        };
        if state == 0 {
            Ok(())
        } else {
            Err(Error::operational("the SQL engine does not take a table function"))
        }
    }

    /// Runs a statement of our own, and gives the texts of its rows' columns.
    fn run(&self, statement: &str) -> Result<()> {
        let statement = zero_ended(statement)?;
        let mut result = RawResult::none();
        // SAFETY: the connection is live, and the result is freed once.
        unsafe {
            let state = (self.library.query)(self.connection.0, statement.as_ptr(), &raw mut result);
            let message = text((self.library.result_error)(&raw mut result));
            (self.library.destroy_result)(&raw mut result);
            if state == 0 { Ok(()) } else { Err(error_of(&message)) }
        }
    }

    /// Has views of the tables that a transaction sees.
    pub(crate) fn show(self: &Arc<Self>, transaction: &mut Transaction) -> Result<()> {
        let mut scanners = Vec::new();
        for name in transaction.tables()? {
            scanners.extend(transaction.scanner(&name)?.map(Arc::new));
        }
        let wanted: Vec<Shown> =
            scanners.iter().map(|scanner: &Arc<Scanner>| Shown::of(&scanner.table)).collect();
        *lock(&self.tables.scanners) = scanners;
        let mut shown = lock(&self.shown);
        if *shown == wanted {
            return Ok(());
        }
        for table in shown.drain(..) {
            self.run(&format!("DROP VIEW IF EXISTS {}", DUCKDB.quoted_name(&table.name)))?;
        }
        for (number, table) in wanted.iter().enumerate() {
            let (name, columns) = (DUCKDB.quoted_name(&table.name), self.columns(table)?);
            self.run(&format!(
                "CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM {FUNCTION}({number})"
            ))?;
        }
        *shown = wanted;
        Ok(())
    }

    /// The columns of a view: as they are stored, or as the statement has them that SQL has made the table with.
    fn columns(self: &Arc<Self>, table: &Shown) -> Result<String> {
        let Some(definition) = &table.definition else { return Ok("*".to_owned()) };
        self.run("BEGIN")?;
        let told = self.run(definition).and_then(|()| {
            let query = Query {
                text: COLUMNS.to_owned(),
                params: Params::Positional(vec![Value::Text(table.name.clone())]),
            };
            let rows = self.query(&query, &Deadline::never(), usize::MAX)?;
            rows.map(|batch| batch.map(|batch| items(&batch))).collect::<Result<Vec<Vec<String>>>>()
        });
        self.run("ROLLBACK")?;
        Ok(told?.concat().join(", "))
    }

    /// Prepares a query with its parameters.
    fn prepare(&self, query: &Query) -> Result<Prepared> {
        let tokens = DUCKDB.tokens(&query.text);
        let reads = tokens
            .first()
            .is_some_and(|first| READING.iter().any(|word| first.is_word(word) || first.is_mark(word)));
        if !reads {
            return Err(not_a_query());
        }
        let numbered = positional(&DUCKDB, &query.text, &query.params)?;
        let statement = zero_ended(&numbered.text)?;
        let mut prepared = Prepared { library: self.library, handle: ptr::null_mut() };
        // SAFETY: the connection is live; what was prepared is freed with `prepared`, though it has failed.
        unsafe {
            if (self.library.prepare)(self.connection.0, statement.as_ptr(), &raw mut prepared.handle) != 0 {
                let message = text((self.library.prepare_error)(prepared.handle));
                // What follows a WITH or an EXPLAIN may be no query either.
                return Err(if is_of_views(&message) { not_a_query() } else { error_of(&message) });
            }
            let (wanted, given) = ((self.library.nparams)(prepared.handle), numbered.values.len() as u64);
            if wanted != given {
                return Err(Error::programming(format!(
                    "the statement has {wanted} parameters, and params {given}"
                )));
            }
        }
        if query.params != Params::None {
            for (number, value) in (1..).zip(&numbered.values) {
                prepared.bind(number, value)?;
            }
        }
        Ok(prepared)
    }

    /// The columns of a query, which is not run.
    pub(crate) fn describe(self: &Arc<Self>, query: &Query) -> Result<SchemaRef> {
        rows::describe(self, &self.prepare(query)?)
    }

    /// Runs a query.
    pub(crate) fn query(
        self: &Arc<Self>,
        query: &Query,
        deadline: &Deadline,
        most: usize,
    ) -> Result<EngineRows> {
        EngineRows::open(self, self.prepare(query)?, deadline, most)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: both are this one's own, and no result of them is left: each keeps the engine.
        unsafe {
            (self.library.disconnect)(&raw mut self.connection.0);
            (self.library.close)(&raw mut self.database.0);
        }
    }
}

fn zero_ended(statement: &str) -> Result<CString> {
    CString::new(statement).map_err(|_| Error::programming("the statement holds a zero byte"))
}

/// A prepared statement.
struct Prepared {
    library: &'static Library,
    handle: Handle,
}

// SAFETY: it is used by one thread at a time.
unsafe impl Send for Prepared {}

impl Prepared {
    fn bind(&self, number: u64, value: &Value) -> Result<()> {
        let library = self.library;
        // SAFETY: texts and bytes are as long as is said; the value is freed once.
        unsafe {
            let mut bound = match value {
                Value::Null => (library.create_null_value)(),
                Value::Bool(value) => (library.create_bool)(*value),
                Value::Int(value) => match i64::try_from(*value) {
                    Ok(value) => (library.create_int64)(value),
                    Err(_) => (library.create_hugeint)((*value).into()),
                },
                Value::Float(value) => (library.create_double)(*value),
                Value::Text(text) => (library.create_varchar_length)(text.as_ptr().cast(), text.len() as u64),
                Value::Bytes(bytes) => (library.create_blob)(bytes.as_ptr(), bytes.len() as u64),
                Value::Date(days) => (library.create_date)(*days),
                Value::Time(time, None) => (library.create_time)(*time),
                Value::Timestamp(time) => (library.create_timestamp)(*time),
                Value::TimestampTz(time) => (library.create_timestamp_tz)(*time),
                _ => {
                    return Err(refusal(
                        "a parameter of this type is not bound: write it as text, and cast it",
                    ));
                }
            };
            let state = (library.bind_value)(self.handle, number, bound);
            (library.destroy_value)(&raw mut bound);
            if state == 0 { Ok(()) } else { Err(error_of(&text((library.prepare_error)(self.handle)))) }
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: it is this one's own.
        unsafe { (self.library.destroy_prepare)(&raw mut self.handle) };
    }
}

/// Interrupts the engine once a deadline has passed while it works.
struct Watch {
    busy: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn begin(engine: &Arc<Engine>, deadline: &Deadline) -> Result<Self> {
        let (busy, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (engine, deadline) = (engine.clone(), deadline.clone());
        let (working, over) = (busy.clone(), ended.clone());
        let watch = move || {
            while !over.load(Ordering::Acquire) {
                if working.load(Ordering::Acquire) && deadline.check().is_err() {
                    // SAFETY: the engine is kept, and may be interrupted from any thread.
                    unsafe { (engine.library.interrupt)(engine.connection.0) };
                }
                thread::park_timeout(deadline.slice());
            }
        };
        let thread = thread::Builder::new().name("longshore-watch".into()).spawn(watch);
        let thread = thread.map_err(|error| Error::operational(format!("no thread: {error}")))?;
        Ok(Self { busy, ended, thread: Some(thread) })
    }

    /// Does work of the engine's.
    fn over<T>(&self, work: impl FnOnce() -> T) -> T {
        self.busy.store(true, Ordering::Release);
        let done = work();
        self.busy.store(false, Ordering::Release);
        done
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Whether the engine says that a statement would change a view, as all tables are here.
fn is_of_views(message: &str) -> bool {
    message.ends_with(" is not an table")
        || message.starts_with("Binder Error: Can only ") && message.contains("base table")
}

fn not_a_query() -> Error {
    Error::not_supported("the statement is not a query").with_sqlstate("0A000").with_hint(CHANGED)
}
