//! The upkeep of a store, small and sound: vacuum, check, and the removal of what a crash has left.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use longshore_core::{Error, Result};

use crate::chunk::{ChunkFile, Mapped};
use crate::store::Store;

impl Store {
    /// Forgets the versions that were replaced more than `older_than` microseconds ago, and removes the files that only they have, but for
    /// what is being read. Gives how many files and bytes.
    pub fn vacuum(&self, older_than: u64) -> Result<(u64, u64)> {
        // For its error where the store is only read.
        drop(self.0.lock_table("", &longshore_core::Deadline::never())?);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
        let until = i64::try_from(now.saturating_sub(older_than.into())).unwrap_or(i64::MAX);
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
        let known = self.0.with(|catalogue| catalogue.files())?;
        let known: HashSet<String> =
            known.iter().flat_map(ChunkFile::all).map(|file| file.name.clone()).collect();
        let (mut files, mut bytes) = (0, 0);
        let failed =
            |error: std::io::Error| Error::operational(format!("{}: {error}", self.0.data().display()));
        for entry in fs::read_dir(self.0.data()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // What is not a file is not ours.
            if !entry.file_type().map_err(failed)?.is_file() {
                continue;
            }
            let is_ours = Path::new(&name).extension().is_some_and(|extension| extension == "arrow");
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
        let (mut found, files) = self.0.with(|catalogue| Ok((catalogue.check()?, catalogue.files()?)))?;
        let mut seen = HashSet::new();
        for file in files.iter().flat_map(ChunkFile::all) {
            if !seen.insert(file.name.clone()) {
                continue;
            }
            let checked = Mapped::open(self.0.data(), file, false)
                .and_then(|mapped| mapped.verify(file).and_then(|()| mapped.validate()));
            if let Err(error) = checked {
                found.push(error.message().to_owned());
            }
        }
        Ok(found)
    }
}
