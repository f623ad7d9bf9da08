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
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};

/// The time of a change is only told so exactly: a copy of a file that has changed within it could be of two states.
const TICK: Duration = Duration::from_millis(50);
/// How often a file is copied that changes meanwhile.
const TRIES: usize = 100;

/// The characters that are escaped in the path of a URI.
const NOT_OF_PATHS: AsciiSet = NON_ALPHANUMERIC.remove(b'/');

/// Which file a copy is of.
#[derive(Debug)]
pub(crate) struct Copied {
    path: PathBuf,
    state: State,
}

/// The state of a file, another one once it has changed.
#[derive(Debug, PartialEq, Eq)]
struct State {
    file: u64,
    bytes: u64,
    modified: SystemTime,
}

impl Copied {
    /// Copies a catalogue; `None` while someone has it open, whose files next to it serve SQLite.
    pub(crate) fn of(path: &Path) -> Result<Option<(Connection, Self)>> {
        for _ in 0..TRIES {
            if has_log(path) {
                return Ok(None);
            }
            let before = State::of(path)?;
            if !before.modified.elapsed().is_ok_and(|age| age <= TICK) {
                let copy = copy(path);
                if !has_log(path) && State::of(path)? == before {
                    return Ok(Some((copy?, Self { path: path.to_owned(), state: before })));
                }
            }
            thread::sleep(TICK / 2);
        }
        Err(Error::operational(format!("{} changes while it is read", path.display()))
            .with_hint("open the store again, once less is written"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the copy is of the file as it is now.
    pub(crate) fn is_current(&self) -> Result<bool> {
        Ok(!has_log(&self.path) && State::of(&self.path)? == self.state)
    }
}

impl State {
    fn of(path: &Path) -> Result<Self> {
        let told = fs::metadata(path).and_then(|data| Ok((data.ino(), data.len(), data.modified()?)));
        let (file, bytes, modified) =
            told.map_err(|error| Error::operational(format!("{}: {error}", path.display())))?;
        Ok(Self { file, bytes, modified })
    }
}

/// Whether the file has a log of changes that it does not have itself.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).exists()
}

fn copy(path: &Path) -> Result<Connection> {
    let failed = |error: rusqlite::Error| Error::operational(format!("the store's catalogue: {error}"));
    // SQLite reads it: a file that we closed would end the locks of its other connections.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let uri = percent_encode(path.as_os_str().as_encoded_bytes(), &NOT_OF_PATHS);
    let file = Connection::open_with_flags(format!("file:{uri}?immutable=1"), flags);
    let mut image =
        file.and_then(|mut file| file.serialize("main").map(|image| image.to_vec())).map_err(failed)?;
    // In memory there is no log (sqlite.org/c3ref/deserialize.html).
    if let Some(versions) = image.get_mut(18..20) {
        versions.fill(1);
    }
    let mut memory = Connection::open_in_memory().map_err(failed)?;
    memory.deserialize_read_exact("main", image.as_slice(), image.len(), true).map_err(failed)?;
    Ok(memory)
}
