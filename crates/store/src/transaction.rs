//! A transaction: one version, and what is changed in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{Field, Schema, SchemaRef};
use longshore_core::{Deadline, Error, Result};

use crate::catalogue::{Catalogue, Changed, Done, conflict, fold};
use crate::chunk::{FIELD_ID, field_id};
use crate::loader::unique;
use crate::lock::Guard;
use crate::rows::{Adding, null, refuse_nulls};
use crate::store::{Shared, sync_directory};
use crate::table::{Form, Scan, Scanner, Table, Wanted};

/// How the names of tables begin that SQL's statements need.
const RESERVED: &str = "longshore_";

/// How long a transaction that has a table to itself waits for another.
const HELD: Duration = Duration::from_secs(10);

/// Which version a transaction sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The newest, which it may change.
    Newest,
    /// One by its number.
    Version(i64),
    /// The newest at a time, in microseconds since 1970, UTC.
    Time(i64),
}

/// The definition of a table.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its columns; those that are not nullable take no NULL.
    pub schema: SchemaRef,
    /// The columns of its primary key.
    pub key: Vec<String>,
    /// A text that its creator keeps with it.
    pub text: Option<String>,
}

/// The operation on a table, as the list of versions calls it.
pub type Operation = &'static str;

type Tables = BTreeMap<String, Option<Arc<Table>>>;

/// A transaction, which is undone when it is dropped.
pub struct Transaction {
    pub(crate) shared: Arc<Shared>,
    version: i64,
    is_newest: bool,
    /// Whether someone knows which version it is: it cannot move to a newer one then.
    is_told: bool,
    pub(crate) deadline: Deadline,
    /// Keeps the version's files.
    reading: Guard,
    /// Keeps files that no version has.
    pub(crate) writing: Option<Guard>,
    locks: HashMap<String, Guard>,
    /// The tables of the version that have been looked at.
    seen: HashMap<String, Option<Arc<Table>>>,
    changed: Tables,
    done: Vec<Done>,
    marks: Vec<(Tables, usize)>,
    /// The files that it has written.
    pub(crate) new_files: Vec<String>,
    /// Rows that are pushed to a table.
    pub(crate) appending: Option<Adding>,
}

impl Transaction {
    pub(crate) fn begin(shared: Arc<Shared>, snapshot: Snapshot) -> Result<Self> {
        let (version, reading) = version(&shared, snapshot)?;
        Ok(Self {
            shared,
            version,
            is_newest: snapshot == Snapshot::Newest,
            is_told: false,
            deadline: Deadline::never(),
            reading,
            writing: None,
            locks: HashMap::new(),
            seen: HashMap::new(),
            changed: Tables::new(),
            done: Vec::new(),
            marks: Vec::new(),
            new_files: Vec::new(),
            appending: None,
        })
    }

    /// The version that it sees.
    #[must_use]
    pub fn version(&mut self) -> i64 {
        self.is_told = true;
        self.version
    }

    /// From here on, every wait looks at `deadline`.
    pub fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    /// The names of its tables, in order.
    pub fn tables(&mut self) -> Result<Vec<String>> {
        self.is_told = true;
        let names = self.shared.with(|catalogue| catalogue.names(self.version))?;
        let mut names: Vec<String> =
            names.into_iter().filter(|name| !self.changed.contains_key(&fold(name))).collect();
        names.extend(self.changed.values().flatten().map(|table| table.name.clone()));
        names.sort_unstable();
        Ok(names)
    }

    /// A table; `None` where there is none.
    pub fn table(&mut self, name: &str) -> Result<Option<Arc<Table>>> {
        let folded = fold(name);
        if let Some(table) = self.changed.get(&folded) {
            return Ok(table.clone());
        }
        if let Some(table) = self.seen.get(&folded) {
            return Ok(table.clone());
        }
        let table = self.look_up(&folded)?;
        self.seen.insert(folded, table.clone());
        Ok(table)
    }

    fn look_up(&self, folded: &str) -> Result<Option<Arc<Table>>> {
        let look_up = || self.shared.with(|catalogue| catalogue.table(folded, self.version));
        if !self.is_newest {
            return Ok(look_up()?.map(Arc::new));
        }
        let cache = &self.shared.cache;
        cache
            .follow(self.version, || self.shared.with(|catalogue| catalogue.names_of_files(self.version)))?;
        cache.table(self.version, folded, look_up)
    }

    fn existing(&mut self, name: &str) -> Result<Arc<Table>> {
        self.table(name)?.ok_or_else(|| {
            Error::programming(format!("there is no table {name:?}"))
                .with_sqlstate("42P01")
                .with_hint("list(store) names those that there are; if_exists=\"fail\" makes it")
        })
    }

    /// The rows of a table.
    pub fn scan(&mut self, name: &str, wanted: &Wanted) -> Result<Scan> {
        let table = self.existing(name)?;
        let cache = (wanted.form == Form::Encoded && self.is_newest).then_some(&self.shared.cache);
        table.scan(&self.shared.data, cache, wanted)
    }

    /// A scanner of a table, on any thread; `None` where there is none.
    pub fn scanner(&mut self, name: &str) -> Result<Option<Scanner>> {
        let directory = self.shared.data.clone();
        Ok(self.table(name)?.map(|table| Scanner { table, directory }))
    }

    /// The paths of a table's files, which hold its rows and columns and no others.
    pub fn files(&mut self, name: &str) -> Result<Vec<std::path::PathBuf>> {
        let table = self.existing(name)?;
        let held = if table.chunks.iter().any(|chunk| !chunk.deleted.is_empty()) {
            "deleted rows"
        } else if table.files_are_current(&self.shared.data)? {
            return Ok(table.chunks.iter().map(|chunk| self.shared.data.join(&chunk.file.name)).collect());
        } else {
            "earlier columns"
        };
        Err(Error::not_supported(format!("files of the table {name:?} hold {held}"))
            .with_hint("store.compact() writes them again without these; or read the table"))
    }

    /// Has the table to itself, for a change: waits for another writer. A transaction that has not looked at anything sees the
    /// newest version then; else a table that has changed since it began is a conflict.
    pub fn lock(&mut self, name: &str) -> Result<()> {
        if !self.is_newest {
            return Err(Error::not_supported("an older version is only read")
                .with_sqlstate("25006")
                .with_hint("write to the newest: leave version and at out"));
        }
        let folded = fold(name);
        if self.locks.contains_key(&folded) {
            return Ok(());
        }
        // Two that have what the other waits for would wait for ever.
        let deadline =
            if self.locks.is_empty() { self.deadline.clone() } else { self.deadline.at_most(HELD) };
        let guard = self.shared.lock_table(&folded, &deadline)?;
        if self.shared.with(|catalogue| catalogue.last_change(&folded))? > self.version {
            if self.is_told || !self.seen.is_empty() || !self.locks.is_empty() {
                return Err(conflict(name));
            }
            (self.version, self.reading) = version(&self.shared, Snapshot::Newest)?;
        }
        self.locks.insert(folded, guard);
        Ok(())
    }

    pub(crate) fn edit(&mut self, name: &str) -> Result<Table> {
        self.lock(name)?;
        Ok(self.existing(name)?.as_ref().clone())
    }

    fn refuse_known(&mut self, name: &str, hint: &str) -> Result<()> {
        match self.table(name)? {
            None => Ok(()),
            Some(_) => Err(Error::programming(format!("the table {name:?} is there already"))
                .with_sqlstate("42P07")
                .with_hint(hint)),
        }
    }

    fn note(&mut self, table: &Table, operation: Operation, rows: u64) {
        self.done.push(Done { name: table.name.clone(), operation, rows });
    }

    pub(crate) fn change(&mut self, table: Table, operation: Operation, rows: u64) {
        self.note(&table, operation, rows);
        self.changed.insert(fold(&table.name), Some(Arc::new(table)));
    }

    /// Makes a table without rows; one of its name must not be there, unless it `replaces` it.
    pub fn create(&mut self, name: &str, definition: &Definition, replaces: bool) -> Result<()> {
        self.lock(name)?;
        if !replaces {
            self.refuse_known(name, "if_exists=\"append\" adds to it, \"replace\" makes another")?;
        }
        if definition.schema.fields().is_empty() {
            return Err(
                Error::programming(format!("the table {name:?} would have no column")).with_sqlstate("42P16")
            );
        }
        refuse_reserved(name)?;
        let none = Table {
            // A part of it is as good as unique, and a number of SQLite's.
            id: i64::try_from(unique()? >> 65).unwrap_or(i64::MAX),
            name: name.to_owned(),
            schema: Arc::new(Schema::empty()),
            key: Vec::new(),
            definition: None,
            next_field: 0,
            chunks: Vec::new(),
        };
        let table = self.altered_table(&none, definition, &vec![None; definition.schema.fields().len()])?;
        self.change(table, if replaces { "replace" } else { "create" }, 0);
        Ok(())
    }

    /// Drops a table.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        let table = self.edit(name)?;
        self.note(&table, "drop", table.rows());
        self.changed.insert(fold(name), None);
        Ok(())
    }

    /// Gives a table another name.
    pub fn rename(&mut self, name: &str, to: &str) -> Result<()> {
        let mut table = self.edit(name)?;
        refuse_reserved(to)?;
        self.lock(to)?;
        if fold(name) != fold(to) {
            self.refuse_known(to, "drop it, or take another name")?;
        }
        self.note(&table, "rename", 0);
        self.changed.insert(fold(name), None);
        to.clone_into(&mut table.name);
        self.change(table, "rename", 0);
        Ok(())
    }

    /// Gives a table other columns: each is one that it has, by its old name, or a new one, which is NULL in all rows.
    pub fn alter(&mut self, name: &str, definition: &Definition, old_names: &[Option<String>]) -> Result<()> {
        let before = self.edit(name)?;
        let after = self.altered_table(&before, definition, old_names)?;
        self.change(after, "alter", 0);
        Ok(())
    }

    fn altered_table(
        &self,
        before: &Table,
        definition: &Definition,
        old_names: &[Option<String>],
    ) -> Result<Table> {
        refuse_doubled_names(&before.name, &definition.schema)?;
        let mut after = before.clone();
        let mut fields = Vec::new();
        for (field, old) in definition.schema.fields().iter().zip(old_names) {
            let is_key = definition.key.iter().any(|name| fold(name) == fold(field.name()));
            let is_required = is_key || !field.is_nullable();
            let id = if let Some(old) = old {
                let known = before.schema.field(before.position(old)?);
                let (kind, wanted) = (known.data_type(), field.data_type());
                if kind != wanted {
                    return Err(Error::internal(format!("{old:?} is {kind}, not {wanted}")));
                }
                if known.is_nullable() && is_required {
                    self.refuse_nulls_of(before, known)?;
                }
                field_id(known).ok_or_else(|| Error::internal("a column without a number"))?
            } else {
                if is_required && before.rows() > 0 {
                    return Err(null(field.name(), 0, "a new column is NULL in the rows that are there"));
                }
                after.next_field += 1;
                after.next_field - 1
            };
            let mut metadata = field.metadata().clone();
            metadata.insert(FIELD_ID.to_owned(), id.to_string());
            fields.push(field.as_ref().clone().with_nullable(!is_required).with_metadata(metadata));
        }
        after.schema = Arc::new(Schema::new_with_metadata(fields, definition.schema.metadata().clone()));
        after.key = key_of(&after, &definition.key)?;
        after.definition.clone_from(&definition.text);
        if after.key_ids() != before.key_ids() {
            self.refuse_doubled_rows(&after)?;
        }
        Ok(after)
    }

    fn refuse_nulls_of(&self, table: &Table, field: &Field) -> Result<()> {
        let columns = Some(vec![field.name().clone()]);
        let mut before = 0;
        for batch in table.scan(&self.shared.data, None, &Wanted { columns, ..Wanted::default() })? {
            let batch = batch?;
            refuse_nulls(batch.column(0), field.name(), before)?;
            before += batch.num_rows() as u64;
        }
        Ok(())
    }

    /// Remembers what has been changed so far.
    pub fn mark(&mut self) -> usize {
        self.marks.push((self.changed.clone(), self.done.len()));
        self.marks.len() - 1
    }

    /// Undoes what has been changed since a mark, which stays.
    pub fn undo_to(&mut self, mark: usize) -> Result<()> {
        self.appending = None;
        self.marks.truncate(mark + 1);
        let (changed, done) = self.marks.get(mark).ok_or_else(|| Error::internal("there is no such mark"))?;
        self.changed = changed.clone();
        self.done.truncate(*done);
        Ok(())
    }

    /// Makes a version of the changes, which is on the disk then. Gives its number.
    pub fn commit(mut self) -> Result<i64> {
        if self.changed.is_empty() {
            return Ok(self.version);
        }
        sync_directory(&self.shared.data)?;
        let mut changed = Vec::new();
        for (name, after) in &self.changed {
            let before = self.seen.get(name).map_or_else(|| self.look_up(name), |table| Ok(table.clone()))?;
            changed.push((name.as_str(), Changed { before, after: after.clone() }));
        }
        let committed = self.shared.with(|catalogue| catalogue.commit(self.version, &changed, &self.done));
        match &committed {
            Ok(_) => {
                let chunks = self.changed.values().flatten().flat_map(|table| &table.chunks);
                let used: HashSet<&String> =
                    chunks.flat_map(|chunk| chunk.file.all()).map(|file| &file.name).collect();
                self.new_files.retain(|name| !used.contains(name));
            }
            // A conflict has written nothing, nor has one who did not get the catalogue.
            Err(error) if matches!(error.sqlstate(), Some("40001" | "55P03")) => {}
            Err(_) => {
                if self.shared.with(Catalogue::void_failed).is_err() {
                    self.new_files.clear();
                    self.shared.give_up(self.writing.take());
                }
            }
        }
        committed
    }

    /// Undoes the changes.
    pub fn rollback(self) {
        drop(self);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // In a forked child, they are its parent's.
        if !self.shared.process.is_current() {
            return;
        }
        for name in self.new_files.drain(..) {
            // What cannot be removed now is removed by an open.
            let _ = fs::remove_file(self.shared.data.join(name));
        }
    }
}

/// A version, and a lock that keeps its files.
fn version(shared: &Shared, snapshot: Snapshot) -> Result<(i64, Guard)> {
    let _beginning = shared.locks.beginning()?;
    let kept = shared.with(Catalogue::versions)?;
    let version = match snapshot {
        Snapshot::Newest => *kept.end(),
        Snapshot::Version(version) => version,
        Snapshot::Time(at) => shared
            .with(|catalogue| catalogue.version_at(at))?
            .ok_or_else(|| Error::programming("the store has no version of that time"))?,
    };
    if kept.contains(&version) {
        return Ok((version, shared.locks.version(version)?));
    }
    let (oldest, newest) = kept.into_inner();
    Err(Error::programming(format!("the store has no version {version}"))
        .with_hint(format!("it keeps those from {oldest} to {newest}; store.versions() lists them")))
}

/// The key by the names that the table's columns have.
fn key_of(table: &Table, key: &[String]) -> Result<Vec<String>> {
    let names = key
        .iter()
        .map(|name| Ok(table.schema.field(table.position(name)?).name().clone()))
        .collect::<Result<Vec<String>>>()?;
    let distinct: HashSet<&String> = names.iter().collect();
    if distinct.len() < names.len() {
        return Err(Error::programming("the primary key names a column twice").with_sqlstate("42701"));
    }
    Ok(names)
}

fn refuse_reserved(name: &str) -> Result<()> {
    // The catalogue compares names as far as a NUL.
    if name.is_empty() || name.contains('\0') || fold(name).starts_with(RESERVED) {
        return Err(Error::programming(format!("a table cannot be called {name:?}")).with_sqlstate("42939"));
    }
    Ok(())
}

fn refuse_doubled_names(table: &str, schema: &Schema) -> Result<()> {
    let mut names = HashSet::new();
    let doubled = schema.fields().iter().find(|field| !names.insert(fold(field.name())));
    doubled.map_or(Ok(()), |field| {
        Err(Error::programming(format!("the table {table:?} would have two columns {:?}", field.name()))
            .with_sqlstate("42701")
            .with_hint("rename one of them: upper and lower case are the same"))
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the form of map_err")]
pub(crate) fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::internal(error.to_string())
}
