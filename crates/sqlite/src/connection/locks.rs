//! File locks that another SQLite in this process neither breaks nor overlooks.
//!
//! POSIX locks belong to a process and a file (sqlite.org/howtocorrupt.html, section 2.2): two copies of SQLite in one
//! process, such as Python's own and this one, do not see each other's locks, an unlock by one drops the other's, and so does
//! the closing of any descriptor of the file. So this copy takes its locks with `F_OFD_SETLK` (fcntl(2), "Open file
//! description locks"), which conflict with POSIX locks of the same process too, and are dropped by no other. And it
//! closes no descriptor of a file that another library in this process has open: such a one is parked until none has.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, Once, PoisonError};

use libsqlite3_sys as ffi;
use longshore_core::Process;

/// A file, by its device and number.
type File = (u64, u64);

/// The files that this copy of SQLite has open.
#[derive(Default)]
struct Table {
    /// The file of each descriptor.
    open: HashMap<c_int, File>,
    /// The descriptor that has the locks of a file: SQLite takes and drops them by any of the file's descriptors.
    holders: HashMap<File, c_int>,
    /// Descriptors that are done with.
    parked: HashMap<c_int, File>,
    /// The process that this table is of.
    process: Option<Process>,
    /// The files that were open when this process was forked from another.
    inherited: HashSet<File>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(|| {
    // SAFETY: the three are functions of this library, which is never unloaded (pthread_atfork(3)).
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    Mutex::default()
});

/// Called as the library is loaded: a child that is forked while another thread makes the table would wait for that thread.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static AT_LOAD: extern "C" fn() = make_table;

extern "C" fn make_table() {
    LazyLock::force(&TABLE);
}

thread_local! {
    /// The table, while this thread forks.
    static HELD: RefCell<Option<MutexGuard<'static, Table>>> = const { RefCell::new(None) };
}

/// Takes the table, so that no other thread has it in the child, where that thread is not.
extern "C" fn before_fork() {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(table));
}

extern "C" fn after_fork() {
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}

fn table() -> MutexGuard<'static, Table> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = Some(Process::current());
    if table.process != process {
        // A forked child shares the descriptions of its parent, and so its locks: it must use none of them.
        let before = std::mem::take(&mut *table);
        let inherited = before.inherited.into_iter().chain(before.open.into_values()).collect();
        *table = Table { process, inherited, ..Table::default() };
    }
    table
}

/// Whether the file `path` was open here when this process was forked: SQLite's own memory then says of locks what is true of
/// the parent alone.
pub(super) fn is_inherited(path: &str) -> bool {
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| table().inherited.contains(&(found.dev(), found.ino())))
}

/// Fills `buffer` with the start of the file `path`, whose locks stay what they are; false where it cannot be read or is
/// shorter.
pub(super) fn read_start(path: &Path, buffer: &mut [u8]) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let file = (found.dev(), found.ino());
    let pread = |descriptor: c_int, buffer: &mut [u8]| {
        // SAFETY: the buffer has so many bytes, and lives for the call.
        let read = unsafe { libc::pread(descriptor, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        usize::try_from(read).is_ok_and(|read| read == buffer.len())
    };
    {
        let table = table();
        let is_it = |(descriptor, of): (&c_int, &File)| (*of == file).then_some(*descriptor);
        if let Some(descriptor) = table.open.iter().chain(&table.parked).find_map(is_it) {
            return pread(descriptor, buffer);
        }
    }
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let descriptor = open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK, 0);
    if descriptor < 0 {
        return false;
    }
    let is_filled = pread(descriptor, buffer);
    close(descriptor);
    is_filled
}

/// Has SQLite call the functions of this file, before it opens its first: one that was opened without them is another
/// library's here. Does something once only.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default VFS of Unix has system calls that can be set (sqlite.org/c3ref/vfs.html); the functions
        // have the types that SQLite calls them by: on 64-bit Linux a variadic function's integers and pointers come in
        // the same registers as any other's.
        unsafe {
            let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
            let Some(set) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall) else { return };
            let call = |function: *const ()| {
                Some(std::mem::transmute::<*const (), unsafe extern "C" fn()>(function))
            };
            set(vfs, c"open".as_ptr(), call(open as *const ()));
            set(vfs, c"close".as_ptr(), call(close as *const ()));
            set(vfs, c"fcntl".as_ptr(), call(fcntl as *const ()));
        }
    });
}

extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // Until it is in the table, a thread that closes would take it for another library's.
    let mut table = table();
    if let Some(descriptor) = table.reuse(path, flags) {
        return descriptor;
    }
    // SAFETY: SQLite's own arguments to open(2).
    let descriptor = unsafe { libc::open(path, flags, mode) };
    if let Some(file) = file_of(descriptor) {
        table.open.insert(descriptor, file);
    }
    descriptor
}

extern "C" fn close(descriptor: c_int) -> c_int {
    let mut table = table();
    if let Some(file) = table.open.remove(&descriptor) {
        if !table.open.values().any(|other| *other == file)
            && let Some(holder) = table.holders.remove(&file)
        {
            table.parked.insert(holder, file);
        }
        table.parked.insert(descriptor, file);
        table.sweep();
        return 0;
    }
    drop(table);
    // SAFETY: a descriptor of SQLite's own.
    unsafe { libc::close(descriptor) }
}

extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: *mut c_void) -> c_int {
    let own = match command {
        libc::F_SETLK => libc::F_OFD_SETLK,
        libc::F_GETLK => libc::F_OFD_GETLK,
        // SAFETY: SQLite's own arguments to fcntl(2).
        _ => return unsafe { libc::fcntl(descriptor, command, argument) },
    };
    let holder = table().holder(descriptor);
    // SAFETY: with these commands the argument is a `flock`, whose `l_pid` has to be zero.
    unsafe {
        (*argument.cast::<libc::flock>()).l_pid = 0;
        libc::fcntl(holder, own, argument)
    }
}

impl Table {
    /// The descriptor that has the locks of the file that `descriptor` is of.
    fn holder(&mut self, descriptor: c_int) -> c_int {
        let Some(file) = self.open.get(&descriptor).copied() else { return descriptor };
        if let Some(holder) = self.holders.get(&file) {
            return *holder;
        }
        let path = CString::new(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
        // Whoever reads first: a later one may write, and a write lock needs a descriptor that can.
        let opened = [libc::O_RDWR, libc::O_RDONLY].into_iter().find_map(|access| {
            let holder = self.unpark(file, access).unwrap_or_else(|| reopen(&path, access));
            (holder >= 0).then_some(holder)
        });
        let Some(holder) = opened else { return descriptor };
        self.holders.insert(file, holder);
        holder
    }

    /// A parked descriptor of the file `path` for an open with `flags`: else each read would park another one for as long as
    /// the file is open elsewhere in this process.
    fn reuse(&mut self, path: *const c_char, flags: c_int) -> Option<c_int> {
        if self.parked.is_empty() || flags & (libc::O_EXCL | libc::O_TRUNC) != 0 {
            return None;
        }
        let file = file_at(path)?;
        let descriptor = self.unpark(file, flags & libc::O_ACCMODE)?;
        self.open.insert(descriptor, file);
        Some(descriptor)
    }

    /// A descriptor of `file` that was parked, opened with this `access`. SQLite has given up its locks, but for the one that
    /// says of a -shm file that it is in use: whoever opens that again takes it again.
    fn unpark(&mut self, file: File, access: c_int) -> Option<c_int> {
        let fits = |(descriptor, of): (&c_int, &File)| {
            (*of == file && access_of(*descriptor) == access).then_some(*descriptor)
        };
        let found = self.parked.iter().find_map(fits)?;
        self.parked.remove(&found);
        Some(found)
    }

    /// Closes what is parked and whose file no other library in this process has open.
    fn sweep(&mut self) {
        let ours: HashSet<c_int> =
            self.open.keys().chain(self.holders.values()).chain(self.parked.keys()).copied().collect();
        let wanted: HashSet<File> = self.parked.values().copied().collect();
        let Some(foreign) = foreign_files(&ours, &wanted) else { return };
        self.parked.retain(|descriptor, file| {
            if foreign.contains(file) {
                return true;
            }
            // SAFETY: nothing refers to it any more but this table.
            unsafe { libc::close(*descriptor) };
            false
        });
    }
}

fn reopen(path: &CStr, access: c_int) -> c_int {
    // SAFETY: a path that ends with a zero byte.
    unsafe { libc::open(path.as_ptr(), access | libc::O_CLOEXEC) }
}

/// Those of `wanted` that descriptors of this process other than `ours` are of; `None` where that cannot be told.
fn foreign_files(ours: &HashSet<c_int>, wanted: &HashSet<File>) -> Option<HashSet<File>> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    let descriptors = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<c_int>().ok());
    let foreign = descriptors.filter(|descriptor| !ours.contains(descriptor)).filter_map(file_of);
    Some(foreign.filter(|file| wanted.contains(file)).collect())
}

/// Whether a descriptor reads, writes, or both.
fn access_of(descriptor: c_int) -> c_int {
    // SAFETY: fcntl(2) asks for the flags of any number, and gives -1 for what is not open.
    unsafe { libc::fcntl(descriptor, libc::F_GETFL) & libc::O_ACCMODE }
}

/// The file that `path` names, which ends with a zero byte.
fn file_at(path: *const c_char) -> Option<File> {
    // SAFETY: all zeros are a `stat`, which stat(2) fills; the path is SQLite's own argument to open(2).
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::stat(path, &raw mut found) == 0).then_some((found.st_dev, found.st_ino))
    }
}

fn file_of(descriptor: c_int) -> Option<File> {
    // SAFETY: all zeros are a `stat`, which fstat(2) fills for any descriptor that is open.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut found) == 0).then_some((found.st_dev, found.st_ino))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use longshore_core::{Deadline, Process};

    use super::table;
    use crate::connection::{Connection, Open};

    /// Forks a child that only does `work`, and returns how it ended; one that waits for long is ended by a signal.
    fn fork(work: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child does nothing else, and ends without a word.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(5);
                libc::_exit(i32::from(!work()));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            status
        }
    }

    #[test]
    fn a_child_does_not_wait_for_a_thread_that_its_parent_has() {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _table = table();
                    let _ = std::hint::black_box(std::fs::metadata("/"));
                }
            });
            let ends: Vec<i32> =
                (0..20).map(|_| fork(|| table().process == Some(Process::current()))).collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(ends, [0; 20]);
        });
    }

    #[test]
    fn a_forked_child_opens_nothing_that_its_parent_has_open() {
        let path = std::env::temp_dir().join(format!("longshore-{}.db", std::process::id()));
        let name = path.to_str().unwrap().to_owned();
        let open = Open {
            name,
            read_only: false,
            create: true,
            busy_timeout: std::time::Duration::ZERO,
            attach: true,
        };
        let parent = Connection::open(&open, &Deadline::never()).unwrap();
        let (mut statement, _) = parent.prepare("CREATE TABLE t (a)").unwrap();
        assert!(!statement.as_mut().unwrap().step().unwrap());
        let is_refused = || {
            Connection::open(&open, &Deadline::never()).is_err_and(|error| error.to_string().contains("fork"))
        };
        assert_eq!(fork(is_refused), 0);
        drop(statement);
        drop(parent);
        assert!(Connection::open(&open, &Deadline::never()).is_ok());
        std::fs::remove_file(path).unwrap();
    }
}
