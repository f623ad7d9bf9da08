//! Locks on ranges of one file, which end with whoever holds them.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use libc::{F_RDLCK, F_UNLCK, F_WRLCK};
use longshore_core::{Deadline, Error, Process, Result};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use xxhash_rust::xxh3::xxh3_64;

/// The byte that writers share while they make files, and that who removes files without an owner has alone.
const WRITING: i64 = 0;
/// The byte that readers share while they begin, and that who forgets versions has alone.
const BEGINNING: i64 = 1;
/// Where the bytes of tables begin: one for each hash of a name.
const TABLES: i64 = 1 << 40;
/// Where the bytes of versions begin.
const VERSIONS: i64 = 1 << 41;

const PAUSE: Duration = Duration::from_millis(2);

/// The file of a store's locks.
pub(crate) struct Locks(PathBuf);

/// A lock, until it is dropped.
pub(crate) struct Guard {
    file: File,
    process: Process,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A child that was forked has the file open, too, and would keep the lock; but the lock is not its own to end.
        if self.process.is_current() {
            let _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&range(F_UNLCK, 0, 0)));
        }
    }
}

impl Locks {
    pub(crate) fn new(root: &Path) -> Self {
        Self(root.join("lock"))
    }

    /// Says that a writer makes files.
    pub(crate) fn writing(&self, deadline: &Deadline) -> Result<Guard> {
        self.wait(WRITING, F_RDLCK, deadline)
    }

    /// Keeps writers from beginning to make files; `None` while one does.
    pub(crate) fn without_writers(&self) -> Result<Option<Guard>> {
        self.take(WRITING, F_WRLCK)
    }

    /// Keeps versions from being forgotten while a reader looks whether its version is there, and locks it.
    pub(crate) fn beginning(&self) -> Result<Guard> {
        self.wait(BEGINNING, F_RDLCK, &Deadline::never())
    }

    /// Keeps readers from beginning.
    pub(crate) fn forgetting(&self) -> Result<Guard> {
        self.wait(BEGINNING, F_WRLCK, &Deadline::never())
    }

    /// The lock of a table's writer, by the table's folded name.
    pub(crate) fn table(&self, name: &str, deadline: &Deadline) -> Result<Guard> {
        let at = TABLES + i64::from_ne_bytes((xxh3_64(name.as_bytes()) >> 24).to_ne_bytes());
        self.wait(at, F_WRLCK, deadline).map_err(|error| error.within(format!("the table {name:?}")))
    }

    /// Keeps a version's files from being removed.
    pub(crate) fn version(&self, version: i64) -> Result<Guard> {
        self.wait(VERSIONS + version, F_RDLCK, &Deadline::never())
    }

    /// The versions up to `newest` that have readers.
    pub(crate) fn versions(&self, newest: i64) -> Result<Vec<i64>> {
        let (file, mut found, mut ranges) = (self.open()?, Vec::new(), vec![(0, newest)]);
        // The kernel names any lock of a range, not the first: both sides of it are asked for again.
        while let Some((from, to)) = ranges.pop() {
            if from > to {
                continue;
            }
            let mut range = range(F_WRLCK, VERSIONS + from, to - from + 1);
            fcntl(&file, FcntlArg::F_OFD_GETLK(&mut range)).map_err(|error| self.failure(&error))?;
            if i32::from(range.l_type) != F_UNLCK {
                let version = range.l_start - VERSIONS;
                found.push(version);
                ranges.extend([(from, version - 1), (version + 1, to)]);
            }
        }
        Ok(found)
    }

    fn wait(&self, at: i64, kind: i32, deadline: &Deadline) -> Result<Guard> {
        loop {
            if let Some(guard) = self.take(at, kind)? {
                return Ok(guard);
            }
            if deadline.remaining().is_some_and(|left| left.is_zero()) {
                return Err(Error::operational("another writer has it, and did not end within the time")
                    .with_sqlstate("55P03")
                    .with_hint("repeat it, or give the store a longer timeout"));
            }
            deadline.check()?;
            thread::sleep(PAUSE);
        }
    }

    fn take(&self, at: i64, kind: i32) -> Result<Option<Guard>> {
        let file = self.open()?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&range(kind, at, 1))) {
            Ok(_) => Ok(Some(Guard { file, process: Process::current() })),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn open(&self) -> Result<File> {
        let writable = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.0);
        // A reader of a store that it must not write has shared locks alone.
        writable.or_else(|_| File::open(&self.0)).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &dyn std::fmt::Display) -> Error {
        Error::operational(format!("the store's locks, {}: {error}", self.0.display()))
    }
}

// The constants are small numbers that the fields are too narrow for by type alone.
#[allow(clippy::cast_possible_truncation)]
fn range(kind: i32, start: i64, length: i64) -> libc::flock {
    let (l_type, l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    libc::flock { l_type, l_whence, l_start: start, l_len: length, l_pid: 0 }
}

/// The magic numbers of file systems that other machines share, of which locks and maps are not to be trusted.
const SHARED: [(u64, &str); 8] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0102_1997, "9P"),
];

/// Refuses a directory on a network's file system.
pub(crate) fn refuse_network(root: &Path) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| Error::operational(format!("{}: {error}", root.display()));
    let file = File::open(root).map_err(|error| failed(&error))?;
    let system = nix::sys::statfs::fstatfs(&file).map_err(|error| failed(&error))?;
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, clippy::unnecessary_cast)]
    let kind = u64::from(system.filesystem_type().0 as u32);
    let Some((_, name)) = SHARED.iter().find(|(magic, _)| *magic == kind) else { return Ok(()) };
    Err(Error::operational(format!("{} is on a network's file system, {name}", root.display()))
        .with_hint("keep a store on a disk of this machine: locks and maps over a network may be lost"))
}
