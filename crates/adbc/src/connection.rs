//! A connection: its transactions, its catalogue, and the statements on it.

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::error::{Result, Status};
use adbc_core::options::{InfoCode, ObjectDepth, OptionConnection, OptionValue};
use adbc_core::schemas::{GET_STATISTIC_NAMES_SCHEMA, GET_TABLE_TYPES_SCHEMA};
use arrow_array::{Int16Array, RecordBatch, StringArray};
use arrow_schema::Schema;
use longshore_core::{
    Connection as CoreConnection, Current, Deadline, Decimals, Depth, Direct, ObjectFilter, ReadOptions,
    STATISTIC_NAMES, TableName, Transaction,
};

use crate::Reader;
use crate::bind::reader_of;
use crate::call_lock::CallLock;
use crate::error::{adbc_error, catch_panic, not_supported, refusal};
use crate::info;
use crate::options::{self, flag, optionable, text, unknown, untold};
use crate::rows::{Cancel, Rows, live};
use crate::statement::Statement;

/// The state that a connection shares with its statements.
pub(crate) struct Shared {
    pub(crate) core: Arc<CoreConnection>,
    pub(crate) call_lock: CallLock,
}

impl Shared {
    /// Asks the catalogue. Where no transaction was open, none is open afterwards: in MySQL one would keep tables from being made.
    pub(crate) fn catalogue<T>(
        &self,
        deadline: &Deadline,
        ask: impl FnOnce(&Arc<CoreConnection>, &Deadline) -> longshore_core::Result<T>,
    ) -> Result<T> {
        let was_free = self.core.transaction() == Some(Transaction::None);
        let answer = ask(&self.core, deadline);
        if was_free {
            let ended = self.core.undo();
            return answer.and_then(|answer| ended.map(|()| answer)).map_err(adbc_error);
        }
        answer.map_err(adbc_error)
    }

    /// Where the session is.
    pub(crate) fn current(&self, deadline: &Deadline) -> Result<Current> {
        self.catalogue(deadline, |core, deadline| longshore_core::current(core, deadline))
    }

    /// Fails for another catalog than the current one, which no name of a table can have.
    pub(crate) fn check_catalog(&self, catalog: Option<&str>, deadline: &Deadline) -> Result<()> {
        let Some(catalog) = catalog else { return Ok(()) };
        if self.current(deadline)?.catalog.as_deref().unwrap_or_default() == catalog {
            return Ok(());
        }
        Err(not_supported(format!(
            "the catalog {catalog:?} is not the current one, and no other can be named"
        )))
    }
}

/// One connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    cancel: Cancel,
}

/// Stops whatever call is under way on a connection.
struct CancelAll {
    shared: Arc<Shared>,
    cancel: Cancel,
}

impl adbc_core::CancelHandle for CancelAll {
    fn try_cancel(&self) -> Result<()> {
        catch_panic(|| {
            self.cancel.try_cancel()?;
            self.shared.core.cancel();
            Ok(())
        })
    }
}

impl Connection {
    pub(crate) fn open(source: Arc<Direct>) -> Result<Self> {
        let core = CoreConnection::open(source, true, &Deadline::never()).map_err(adbc_error)?;
        Ok(Self {
            shared: Arc::new(Shared { core, call_lock: CallLock::default() }),
            cancel: Cancel::default(),
        })
    }

    /// Makes a call once the connection is free; the wait for that can be stopped, too.
    fn locked_call<T>(&self, work: impl FnOnce(&Deadline) -> Result<T>) -> Result<T> {
        catch_panic(|| {
            let deadline = self.cancel.deadline(None);
            let _guard = self.shared.call_lock.take(&deadline)?;
            work(&deadline)
        })
    }

    fn call<T>(
        &self,
        work: impl FnOnce(&Arc<CoreConnection>, &Deadline) -> longshore_core::Result<T>,
    ) -> Result<T> {
        self.locked_call(|deadline| work(&self.shared.core, deadline).map_err(adbc_error))
    }

    /// Asks the catalogue once the connection is free.
    fn catalogue<T>(
        &self,
        ask: impl FnOnce(&Arc<CoreConnection>, &Deadline) -> longshore_core::Result<T>,
    ) -> Result<T> {
        self.locked_call(|deadline| self.shared.catalogue(deadline, ask))
    }

    pub(crate) fn set(&mut self, key: &str, value: &OptionValue) -> Result<()> {
        match OptionConnection::from(key) {
            OptionConnection::AutoCommit => self.set_autocommit(flag(key, value)?),
            OptionConnection::CurrentSchema => {
                let schema = text(key, value)?;
                self.call(|core, deadline| longshore_core::use_schema(core, &schema, deadline))
            }
            OptionConnection::CurrentCatalog => {
                let catalog = text(key, value)?;
                self.locked_call(|deadline| self.shared.check_catalog(Some(&catalog), deadline))
            }
            OptionConnection::ReadOnly if !flag(key, value)? => Ok(()),
            OptionConnection::ReadOnly => {
                Err(not_supported("a connection is read-only by the URL or by the account's rights"))
            }
            OptionConnection::IsolationLevel
                if text(key, value)? == "adbc.connection.transaction.isolation.default" =>
            {
                Ok(())
            }
            OptionConnection::IsolationLevel => {
                Err(not_supported("an isolation level is set by the database's own statement"))
            }
            _ => Err(unknown(key)),
        }
    }

    fn set_autocommit(&self, autocommit: bool) -> Result<()> {
        self.call(|core, deadline| {
            // A transaction that is open ends well, as ADBC has it.
            if autocommit && !core.commits_each() {
                core.commit(deadline)?;
            }
            core.set_autocommit(autocommit)
        })
    }

    fn option(&self, key: &str) -> Result<OptionValue> {
        match OptionConnection::from(key) {
            OptionConnection::AutoCommit => Ok(self.shared.core.commits_each().to_string().into()),
            OptionConnection::ReadOnly => Ok("false".into()),
            OptionConnection::CurrentCatalog | OptionConnection::CurrentSchema => {
                let Current { catalog, schema, .. } =
                    self.catalogue(|core, deadline| longshore_core::current(core, deadline))?;
                let is_catalog = key == OptionConnection::CurrentCatalog.as_ref();
                let name = if is_catalog { catalog } else { schema };
                name.map(OptionValue::String).ok_or_else(|| untold(key))
            }
            OptionConnection::IsolationLevel => Err(untold(key)),
            _ => Err(unknown(key)),
        }
    }

    /// Ends a transaction, which there is always without autocommit.
    fn end(&self, end: fn(&Arc<CoreConnection>, &Deadline) -> longshore_core::Result<()>) -> Result<()> {
        if self.shared.core.commits_each() && self.shared.core.transaction() == Some(Transaction::None) {
            return Err(refusal(
                Status::InvalidState,
                "no transaction is open: each statement commits itself",
            ));
        }
        self.call(end)
    }
}

optionable!(Connection, OptionConnection);

impl adbc_core::Connection for Connection {
    type StatementType = Statement;

    fn new_statement(&mut self) -> Result<Statement> {
        Ok(Statement::new(self.shared.clone()))
    }

    fn get_cancel_handle(&self) -> Box<dyn adbc_core::CancelHandle> {
        Box::new(CancelAll { shared: self.shared.clone(), cancel: self.cancel.clone() })
    }

    fn get_info(&self, codes: Option<HashSet<InfoCode>>) -> Result<Reader> {
        let current = self.catalogue(|core, deadline| longshore_core::current(core, deadline))?;
        catch_panic(|| info::table(&current, codes.as_ref()).map(reader_of))
    }

    fn get_objects(
        &self,
        depth: ObjectDepth,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        table_type: Option<Vec<&str>>,
        column_name: Option<&str>,
    ) -> Result<Reader> {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let filter = ObjectFilter {
            depth: match depth {
                ObjectDepth::Catalogs => Depth::Catalogs,
                ObjectDepth::Schemas => Depth::Schemas,
                ObjectDepth::Tables => Depth::Tables,
                ObjectDepth::Columns | ObjectDepth::All => Depth::Columns,
            },
            catalog: owned(catalog),
            schema: owned(db_schema),
            table: owned(table_name),
            table_types: table_type.map(|types| types.into_iter().map(str::to_owned).collect()),
            column: owned(column_name),
        };
        self.catalogue(|core, deadline| longshore_core::objects(core, &filter, deadline)).map(reader_of)
    }

    fn get_table_schema(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: &str,
    ) -> Result<Schema> {
        self.locked_call(|deadline| self.shared.check_catalog(catalog, deadline))?;
        let table = TableName { schema: db_schema.map(str::to_owned), table: table_name.to_owned() };
        let options = ReadOptions { decimals: Decimals::Streamed, ..ReadOptions::default() };
        // Asked for what is not there, PostgreSQL would end the transaction.
        let schema = self.catalogue(|core, deadline| {
            if longshore_core::lacks_table(core, &table, deadline)? {
                return Ok(None);
            }
            longshore_core::table_schema(core, &table, &options, deadline).map(Some)
        })?;
        let schema = schema.ok_or_else(|| refusal(Status::NotFound, format!("there is no table {table}")))?;
        Ok(schema.as_ref().clone())
    }

    fn get_table_types(&self) -> Result<Reader> {
        let types = self.catalogue(|core, deadline| longshore_core::table_types(core, deadline))?;
        let types = Arc::new(StringArray::from(types));
        Ok(reader_of(RecordBatch::try_new(GET_TABLE_TYPES_SCHEMA.clone(), vec![types])?))
    }

    fn get_statistic_names(&self) -> Result<Reader> {
        let (names, keys): (Vec<&str>, Vec<i16>) = STATISTIC_NAMES.into_iter().unzip();
        let columns: Vec<arrow_array::ArrayRef> =
            vec![Arc::new(StringArray::from(names)), Arc::new(Int16Array::from(keys))];
        Ok(reader_of(RecordBatch::try_new(GET_STATISTIC_NAMES_SCHEMA.clone(), columns)?))
    }

    fn get_statistics(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        approximate: bool,
    ) -> Result<Reader> {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let filter = ObjectFilter {
            catalog: owned(catalog),
            schema: owned(db_schema),
            table: owned(table_name),
            ..ObjectFilter::default()
        };
        self.catalogue(|core, deadline| longshore_core::statistics(core, &filter, approximate, deadline))
            .map(reader_of)
    }

    fn commit(&mut self) -> Result<()> {
        self.end(CoreConnection::commit)
    }

    fn rollback(&mut self) -> Result<()> {
        self.end(CoreConnection::rollback)
    }

    fn read_partition(&self, partition: impl AsRef<[u8]>) -> Result<Reader> {
        self.locked_call(|deadline| {
            let options = ReadOptions { decimals: Decimals::Streamed, ..ReadOptions::default() };
            let opened =
                longshore_core::read_partition(&self.shared.core, partition.as_ref(), &options, deadline);
            let (live, _) = live(opened.map_err(adbc_error)?, deadline.clone());
            Ok(Box::new(Rows::live(live)) as Reader)
        })
    }
}
