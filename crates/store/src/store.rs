//! A store: a directory with a catalogue, locks and files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use longshore_core::{Deadline, Error, Kind, Process, Result, lock};

use crate::cache::Cache;
use crate::catalogue::{Catalogue, Change, fold};
use crate::lock::{Guard, Locks, refuse_network};
use crate::transaction::{Snapshot, Transaction};

/// The access that a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is read and written.
    Write,
    /// As `Write`, and made where there is none.
    Create,
}

/// An open store.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    root: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) access: Access,
    pub(crate) locks: Locks,
    catalogue: Mutex<Catalogue>,
    pub(crate) cache: Cache,
    /// Which has opened it.
    pub(crate) process: Process,
    /// After a commit of which it is not known whether the log has it: keeps the files that it names.
    broken: Mutex<Option<Vec<Guard>>>,
}

impl Store {
    /// Opens the store in the directory `root`.
    pub fn open(root: &Path, access: Access) -> Result<Self> {
        let data = root.join("data");
        let catalogue = root.join("catalogue.db");
        let has_files = fs::read_dir(&data).is_ok_and(|mut files| files.next().is_some());
        if access == Access::Create && !catalogue.exists() {
            if has_files {
                return Err(Error::operational(format!(
                    "the catalogue of the store {} is gone",
                    root.display()
                ))
                .with_hint("its files are there: restore catalogue.db from a copy of the store"));
            }
            make(root, &data)?;
        } else if !catalogue.exists() {
            return Err(Error::operational(format!("there is no store in {}", root.display()))
                .with_hint("longshore.open(path) makes one"));
        }
        refuse_network(root)?;
        // No crash leaves files without a catalogue.
        let of_catalogue = if has_files && access == Access::Create { Access::Write } else { access };
        let opened =
            Catalogue::open(&catalogue, of_catalogue).map_err(|error| error.within(root.display()))?;
        if access != Access::Read {
            // The names of the catalogue and of its log, too, have to outlast a loss of power.
            sync_directory(root)?;
        }
        let store = Self(Arc::new(Shared {
            root: root.to_owned(),
            data,
            access,
            locks: Locks::new(root),
            catalogue: Mutex::new(opened),
            cache: Cache::default(),
            process: Process::current(),
            broken: Mutex::new(None),
        }));
        if access != Access::Read {
            store.remove_garbage()?;
        }
        Ok(store)
    }

    /// Whether it is only read.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.access == Access::Read
    }

    /// Begins a transaction, which sees one version.
    pub fn begin(&self, snapshot: Snapshot) -> Result<Transaction> {
        Transaction::begin(self.0.clone(), snapshot)
    }

    /// The changes of a table, or of all: the oldest first.
    pub fn versions(&self, table: Option<&str>) -> Result<Vec<Change>> {
        self.0.with(|catalogue| catalogue.changes(table.map(fold).as_deref()))
    }
}

impl Shared {
    /// Works with the catalogue.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Catalogue) -> Result<T>) -> Result<T> {
        self.process.check("store")?;
        if lock(&self.broken).is_some() {
            return Err(Error::operational(
                "a commit of the store failed, and it is not known whether it will be there",
            )
            .with_hint(
                "open the store again, once its disk is sound: it is as before, or has the whole commit",
            ));
        }
        let mut catalogue = lock(&self.catalogue);
        catalogue.refresh().and_then(|()| work(&catalogue)).map_err(|error| match error.kind() {
            Kind::Operational if error.sqlstate().is_none() => error.within(self.root.display()),
            _ => error,
        })
    }

    /// Ends all work: a commit failed, and could not be made void.
    pub(crate) fn give_up(&self, writing: Option<Guard>) {
        *lock(&self.broken) = Some(writing.into_iter().collect());
    }

    /// The lock of a table's writer.
    pub(crate) fn lock_table(&self, folded: &str, deadline: &Deadline) -> Result<Guard> {
        if self.access == Access::Read {
            return Err(Error::not_supported("the store was opened to be read only")
                .with_sqlstate("25006")
                .with_hint("open it without read_only"));
        }
        self.process.check("store")?;
        self.locks.table(folded, deadline)
    }
}

/// Makes the directories of a store, whose names have reached the disk afterwards.
fn make(root: &Path, data: &Path) -> Result<()> {
    let failed =
        |error: std::io::Error| Error::operational(format!("making the store {}: {error}", root.display()));
    // Another process may be making it at the same time.
    let is_ours = |name: &str| name == "data" || name == "lock" || name.starts_with("catalogue.db");
    let is_foreign = |entry: fs::DirEntry| !entry.file_name().to_str().is_some_and(is_ours);
    if fs::read_dir(root).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_foreign))) {
        return Err(Error::operational(format!("{} is not empty, and is not a store", root.display()))
            .with_hint("give a directory of its own"));
    }
    let missing: Vec<PathBuf> =
        data.ancestors().take_while(|path| !path.exists()).map(Path::to_owned).collect();
    fs::create_dir_all(data).map_err(failed)?;
    refuse_network(root)?;
    for path in missing {
        sync_directory(path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Has the names in a directory reach the disk.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Error::operational(format!("syncing {}: {error}", path.display())))
}
