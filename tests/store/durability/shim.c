/* Records what a process does to the files below a directory, and has one of its calls fail. Preloaded; not for threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, SYNC, WRITE };

static char root[PATH_MAX], failed[PATH_MAX];
static int trace = -1, lasts, code, fired;
static enum kind failing;
static long left;

void shim_watch(const char *directory, const char *path) {
    snprintf(root, sizeof root, "%s", directory);
    trace = *path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600) : -1;
}

/* The n-th call of a kind fails from now on, and all later ones if it lasts. */
void shim_fail(int kind, long nth, int stays, int error) {
    failing = kind, left = nth, lasts = stays, code = error, fired = 0;
}

/* The file of the first call that has failed, or nothing. */
const char *shim_failed(void) { return fired ? failed : ""; }

static int fails(enum kind kind, const char *path) {
    if (failing != kind || (left > 0 && --left > 0)) return 0;
    if (!lasts) failing = NONE;
    if (!fired++) snprintf(failed, sizeof failed, "%s", path);
    errno = code;
    return 1;
}

static void record(const char *what, const char *path, long long offset, const void *data, size_t size) {
    char line[PATH_MAX + 100];
    if (trace < 0) return;
    int length = snprintf(line, sizeof line, "%s %lld %zu %s\n", what, offset, size, path);
    struct iovec parts[2] = {{line, (size_t)length}, {(void *)data, size}};
    if (syscall(SYS_writev, trace, parts, 2) != (long)(length + size)) _exit(99);
}

void shim_note(const char *text) { record("note", text, 0, NULL, 0); }

/* The file of the catalogue's shared memory holds nothing that a crash leaves. */
static int is_watched(const char *path) {
    size_t length = strlen(root), end = strlen(path);
    return length > 0 && strncmp(path, root, length) == 0 && (end < 4 || strcmp(path + end - 4, "-shm") != 0);
}

static int watched(int fd, char path[PATH_MAX]) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_watched(path);
}

static int opened(const char *path, int flags, mode_t mode) {
    struct stat found;
    int is_new = (flags & O_CREAT) && is_watched(path) && stat(path, &found) != 0;
    if (is_new && fails(WRITE, path)) return -1;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && is_new) record("create", path, 0, NULL, 0);
    if (fd >= 0 && !is_new && (flags & O_TRUNC) && is_watched(path)) record("truncate", path, 0, NULL, 0);
    return fd;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(path, flags, mode);
}

/* Of a disk that stays full, the first write that fails writes half of its bytes, if they are more than a sector. */
static ssize_t written(int fd, const void *data, size_t size, long long offset, int moves) {
    char path[PATH_MAX];
    int is_ours = watched(fd, path);
    if (moves && is_ours) offset = lseek(fd, 0, SEEK_CUR);
    if (is_ours && fails(WRITE, path)) {
        if (size <= 512 || !lasts || fired > 1) return -1;
        size /= 2;
    }
    ssize_t count = moves ? syscall(SYS_write, fd, data, size) : syscall(SYS_pwrite64, fd, data, size, offset);
    if (count > 0 && is_ours) record("write", path, offset, data, (size_t)count);
    return count;
}

ssize_t write(int fd, const void *data, size_t size) { return written(fd, data, size, 0, 1); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return written(fd, data, size, offset, 0); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return written(fd, data, size, offset, 0); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    for (int at = 0; at < count; at++) {
        if (parts[at].iov_len > 0) return written(fd, parts[at].iov_base, parts[at].iov_len, 0, 1);
    }
    return 0;
}

int ftruncate64(int fd, off64_t size) {
    char path[PATH_MAX];
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (result == 0 && watched(fd, path)) record("truncate", path, size, NULL, 0);
    return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int synced(int fd, long call) {
    char path[PATH_MAX];
    if (!watched(fd, path)) return (int)syscall(call, fd);
    if (fails(SYNC, path)) return -1;
    /* The model of a disk is what it must survive, not this machine's. */
    record("sync", path, 0, NULL, 0);
    return 0;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

/* The environment may say that all files are on another file system, by its number. */
int fstatfs64(int fd, struct statfs64 *system) {
    const char *kind = getenv("SHIM_FILE_SYSTEM");
    int result = (int)syscall(SYS_fstatfs, fd, system);
    if (result == 0 && kind) system->f_type = strtol(kind, NULL, 16);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    if (is_watched(path) && fails(WRITE, path)) return -1;
    int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (result == 0 && is_watched(path)) record("mkdir", path, 0, NULL, 0);
    return result;
}

int unlink(const char *path) {
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (result == 0 && is_watched(path)) record("unlink", path, 0, NULL, 0);
    return result;
}

int rename(const char *path, const char *to) {
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, to, 0);
    if (result == 0 && is_watched(path)) record("rename", path, 0, to, strlen(to));
    return result;
}
