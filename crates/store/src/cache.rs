//! The cache of the newest version, from one statement to the next: its tables, and the files that have been read. To map a
//! file again costs more than to read it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use longshore_core::{Result, lock};

use crate::chunk::{ChunkFile, Mapped};
use crate::table::Table;

#[derive(Default)]
pub(crate) struct Cache(Mutex<State>);

#[derive(Default)]
struct State {
    version: i64,
    /// By their versions and folded names.
    tables: HashMap<(i64, String), Arc<Table>>,
    /// By their names.
    files: HashMap<String, Arc<Mapped>>,
}

impl Cache {
    /// A table of a version, which is looked up where it is not known.
    pub(crate) fn table(
        &self,
        version: i64,
        folded: &str,
        look_up: impl FnOnce() -> Result<Option<Table>>,
    ) -> Result<Option<Arc<Table>>> {
        let key = (version, folded.to_owned());
        if let Some(known) = lock(&self.0).tables.get(&key) {
            return Ok(Some(known.clone()));
        }
        let table = look_up()?.map(Arc::new);
        if let Some(table) = &table {
            lock(&self.0).tables.insert(key, table.clone());
        }
        Ok(table)
    }

    /// A file, mapped now or before.
    pub(crate) fn open(&self, directory: &Path, file: &ChunkFile) -> Result<Arc<Mapped>> {
        let known = lock(&self.0).files.get(&file.name).cloned();
        // One that was cut would end the process when it is read.
        if let Some(known) = known
            && fs::metadata(directory.join(&file.name)).is_ok_and(|found| found.len() == file.bytes)
        {
            return Ok(known);
        }
        let mapped = Arc::new(Mapped::open(directory, file, false)?);
        mapped.prepare()?;
        lock(&self.0).files.insert(file.name.clone(), mapped.clone());
        Ok(mapped)
    }

    /// Goes on to a version, with those of the files that it has.
    pub(crate) fn follow(&self, version: i64, names: impl FnOnce() -> Result<HashSet<String>>) -> Result<()> {
        let has_files = {
            let state = lock(&self.0);
            if state.version >= version {
                return Ok(());
            }
            !state.files.is_empty()
        };
        let names = if has_files { names()? } else { HashSet::new() };
        let mut state = lock(&self.0);
        state.files.retain(|name, _| names.contains(name));
        state.tables.clear();
        state.version = version;
        Ok(())
    }

    /// Lets go of all files: one that is mapped takes its place on the disk after it is removed.
    pub(crate) fn clear(&self) {
        lock(&self.0).files.clear();
    }
}
