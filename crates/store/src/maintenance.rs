//! The upkeep of a store, small and sound: vacuum, check, and the removal of what a crash has left.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use longshore_core::{Error, Result};

use crate::catalogue::{Catalogue, now};
use crate::chunk::{ChunkFile, Mapped};
use crate::store::Store;

impl Store {
    /// Forgets the versions that were replaced more than `older_than` microseconds ago, and removes the files that only they have, but for
    /// what is being read. Gives how many files and bytes.
    pub fn vacuum(&self, older_than: u64) -> Result<(u64, u64)> {
        // For its error where the store is only read.
        drop(self.0.lock_table("", &longshore_core::Deadline::never())?);
        let until = now().saturating_sub_unsigned(older_than);
        self.0.cache.clear();
        let forgetting = self.0.locks.forgetting()?;
        self.0.with(|catalogue| {
            let newest = catalogue.newest()?;
            let oldest = catalogue.version_at(until)?.unwrap_or(0);
            let read = self.0.locks.versions(newest)?;
            catalogue.forget(oldest, &read)
        })?;
        drop(forgetting);
        self.remove_garbage()
    }

    /// Removes the files that no version has, unless a transaction is making some: they are what a crash has left. Gives how many
    /// files and bytes.
    pub(crate) fn remove_garbage(&self) -> Result<(u64, u64)> {
        // Who begins to write waits until this is done.
        let Some(_alone) = self.0.locks.without_writers()? else { return Ok((0, 0)) };
        let known = self.known_files()?;
        let (mut files, mut bytes) = (0, 0);
        let failed =
            |error: std::io::Error| Error::operational(format!("{}: {error}", self.0.data.display()));
        for entry in fs::read_dir(&self.0.data).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let is_file = entry.file_type().map_err(failed)?.is_file();
            let is_ours = is_file && Path::new(&name).extension().is_some_and(|end| end == "arrow");
            if is_ours && !name.to_str().is_some_and(|name| known.contains(name)) {
                bytes += entry.metadata().map_or(0, |metadata| metadata.len());
                fs::remove_file(entry.path()).map_err(|error| {
                    Error::operational(format!("removing {}: {error}", entry.path().display()))
                })?;
                files += 1;
            }
        }
        Ok((files, bytes))
    }

    /// Reads every file of every version, and tells which are not as they were written.
    pub fn check(&self) -> Result<Vec<String>> {
        let (found, files) = self.0.with(|catalogue| Ok((catalogue.check()?, catalogue.files()?)))?;
        Ok([found, self.find_damage(&files)?].concat())
    }

    fn find_damage(&self, files: &[ChunkFile]) -> Result<Vec<String>> {
        let mut seen = HashSet::new();
        let files = files.iter().flat_map(ChunkFile::all).filter(|file| seen.insert(&file.name));
        let checked = files.map(|file| {
            let mapped = Mapped::open(&self.0.data, file, false);
            (&file.name, mapped.and_then(|mapped| mapped.verify(file).and_then(|()| mapped.validate())))
        });
        let failed: Vec<_> = checked.filter_map(|(name, result)| Some((name, result.err()?))).collect();
        // A vacuum may have removed some meanwhile.
        let known = if failed.is_empty() { HashSet::new() } else { self.known_files()? };
        let damaged = failed.into_iter().filter(|(name, _)| known.contains(*name));
        Ok(damaged.map(|(_, error)| error.message().to_owned()).collect())
    }

    fn known_files(&self) -> Result<HashSet<String>> {
        let files = self.0.with(Catalogue::files)?;
        Ok(files.iter().flat_map(ChunkFile::all).map(|file| file.name.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use longshore_core::Frame;

    use super::*;
    use crate::{Access, Definition, Snapshot};

    #[test]
    fn a_file_that_a_vacuum_removes_during_a_check_is_not_damaged() {
        let folder = std::env::temp_dir().join(format!("longshore-check-{}", std::process::id()));
        let store = Store::open(&folder, Access::Create).unwrap();
        let write = || {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
            let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
            let mut transaction = store.begin(Snapshot::Newest).unwrap();
            let definition = Definition { schema: batch.schema(), key: Vec::new(), text: None };
            transaction.create("t", &definition, true).unwrap();
            let (schema, batches) = (batch.schema(), Box::new(std::iter::once(Ok(batch))));
            transaction.append("t", Frame { schema, batches }, "append").unwrap();
            transaction.commit().unwrap();
        };
        write();
        let before = store.0.with(Catalogue::files).unwrap();
        write();
        assert_eq!(store.vacuum(0).unwrap().0, 1);
        assert_eq!(store.find_damage(&before).unwrap(), Vec::<String>::new());
        let now = store.0.with(Catalogue::files).unwrap();
        fs::remove_file(store.0.data.join(&now[0].name)).unwrap();
        assert_eq!(store.check().unwrap().len(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
