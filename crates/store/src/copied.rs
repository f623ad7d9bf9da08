//! A copy of the catalogue in memory, for a reader who may not write next to it.
//!
//! With a write-ahead log, SQLite needs two files next to a catalogue, and makes them. While someone has it open they are
//! there. Otherwise all is in the one file: a reader who may make none copies it, and does so again once it has changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use longshore_core::{Error, Result};
use rusqlite::Connection;

/// The time of a change is only told so exactly: a copy of a file that has changed within it could be of two states.
const TICK: Duration = Duration::from_millis(50);
/// How often a file is copied that changes meanwhile.
const TRIES: usize = 100;

/// The state of a file, another one once it has changed: its number, its bytes, and the time of its last change.
type State = (u64, u64, SystemTime);

/// Which file a copy is of.
pub(crate) struct Copied {
    pub(crate) path: PathBuf,
    state: State,
}

impl Copied {
    /// Copies a catalogue; `None` while someone has it open, whose files next to it serve SQLite.
    pub(crate) fn of(path: &Path) -> Result<Option<(Connection, Self)>> {
        for _ in 0..TRIES {
            if has_log(path) {
                return Ok(None);
            }
            let before = state(path)?;
            if !before.2.elapsed().is_ok_and(|age| age <= TICK) {
                let copy = copy(path);
                if !has_log(path) && state(path)? == before {
                    return Ok(Some((copy?, Self { path: path.to_owned(), state: before })));
                }
            }
            thread::sleep(TICK / 2);
        }
        Err(Error::operational(format!("{} changes while it is read", path.display()))
            .with_hint("open the store again, once less is written"))
    }

    /// Whether the copy is of the file as it is now.
    pub(crate) fn is_current(&self) -> Result<bool> {
        Ok(!has_log(&self.path) && state(&self.path)? == self.state)
    }
}

fn state(path: &Path) -> Result<State> {
    let state = fs::metadata(path).and_then(|data| Ok((data.ino(), data.len(), data.modified()?)));
    state.map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::operational(format!("{}: {error}", path.display()))
}

/// Whether the file has a log of changes that it does not have itself.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).exists()
}

fn copy(path: &Path) -> Result<Connection> {
    // To close it ends no lock: ours belong to an open file, and another library's need the files that are not there.
    let mut image = fs::read(path).map_err(|error| unreadable(path, &error))?;
    // In memory there is no log (sqlite.org/c3ref/deserialize.html).
    if let Some(versions) = image.get_mut(18..20) {
        versions.fill(1);
    }
    let opened = Connection::open_in_memory().and_then(|mut memory| {
        memory.deserialize_read_exact("main", image.as_slice(), image.len(), true)?;
        Ok(memory)
    });
    opened.map_err(|error| unreadable(path, &error))
}
