/* Records the system calls that change files below a folder, in their order: a library to preload (LD_PRELOAD).

LEXENT_RECORD_ROOT: the folder. LEXENT_RECORD_LOG: the file that the record is appended to, outside of the folder.
A record is a head (struct head), a path, another path or nothing, and the data of a write. Calls that fail are left out.
What is written by other ways (mmap, sendfile) is not recorded: a replay that differs from the folder shows that. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct head {
    char kind[8];
    uint64_t inode, offset, path, other, data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_length;
static int out = -1;

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int inside(const char *path) {
    return out >= 0 && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

/* The whole path of a name that may be relative to an open folder or to the current one; whether it is in the root. */
static int located(int folder, const char *name, char *path) {
    char link[64], base[PATH_MAX];
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return inside(path);
    }
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return 0;
    base[length] = 0;
    if (snprintf(path, PATH_MAX, "%s/%s", base, name) >= PATH_MAX) abort();
    return inside(path);
}

static int held(int file) {
    char path[PATH_MAX];
    struct stat about;
    if (out < 0 || file == out || fstat(file, &about) || !(S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) return 0;
    target[length] = 0;
    return inside(target);
}

static void put(const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    const char *at = data;
    while (size) {
        ssize_t written = real(out, at, size);
        if (written <= 0) abort();
        at += written;
        size -= written;
    }
}

static void note(const char *kind, uint64_t inode, uint64_t offset, const char *path, const char *other,
                 const void *data, size_t size) {
    int before = errno;
    struct head head = {.inode = inode, .offset = offset, .path = strlen(path), .other = strlen(other), .data = size};
    strncpy(head.kind, kind, sizeof head.kind);
    put(&head, sizeof head);
    put(path, head.path);
    put(other, head.other);
    put(data, size);
    errno = before;
}

static uint64_t inode_at(const char *path) {
    struct stat about;
    return lstat(path, &about) ? 0 : about.st_ino;
}

static uint64_t inode_of(int file) {
    struct stat about;
    return fstat(file, &about) ? 0 : about.st_ino;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LEXENT_RECORD_LOG");
    root = getenv("LEXENT_RECORD_ROOT");
    if (!root || !path) return;
    root_length = strlen(root);
    int low = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    out = fcntl(low, F_DUPFD_CLOEXEC, 900);
    close(low);
    if (out < 0) abort();
    note("root", inode_at(root), 0, root, "", "", 0);
}

/* For tests to say where they are. */
void record_mark(const char *text) {
    pthread_mutex_lock(&lock);
    note("mark", 0, 0, text, "", "", 0);
    pthread_mutex_unlock(&lock);
}

static int opened(int folder, const char *name, int flags, mode_t mode) {
    REAL(int, "openat", int, const char *, int, ...);
    char path[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !located(folder, name, path))
        return real(folder, name, flags, mode);
    pthread_mutex_lock(&lock);
    int there = inode_at(path) != 0;
    int file = real(folder, name, flags, mode);
    if (file >= 0 && !there) note("create", inode_of(file), 0, path, "", "", 0);
    if (file >= 0 && there && flags & O_TRUNC) note("cut", inode_of(file), 0, "", "", "", 0);
    pthread_mutex_unlock(&lock);
    return file;
}

#define MODE \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest)

int open(const char *name, int flags, ...) { MODE; return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE; return opened(AT_FDCWD, name, flags | O_LARGEFILE, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE; return opened(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE; return opened(folder, name, flags | O_LARGEFILE, mode); }

ssize_t write(int file, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!held(file)) return real(file, data, size);
    pthread_mutex_lock(&lock);
    ssize_t written = real(file, data, size);
    if (written > 0) note("write", inode_of(file), lseek(file, 0, SEEK_CUR) - written, "", "", data, written);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (!held(file)) return real(file, parts, count);
    ssize_t total = 0;
    for (int part = 0; part < count; part++) { /* one write each: no reader looks between them */
        ssize_t written = write(file, parts[part].iov_base, parts[part].iov_len);
        if (written < 0) return total ? total : written;
        total += written;
    }
    return total;
}

static ssize_t written_at(const char *name, int file, const void *data, size_t size, off_t offset) {
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
    if (!held(file)) return real(file, data, size, offset);
    pthread_mutex_lock(&lock);
    ssize_t written = real(file, data, size, offset);
    if (written > 0) note("write", inode_of(file), offset, "", "", data, written);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
    return written_at("pwrite", file, data, size, offset);
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t offset) {
    return written_at("pwrite64", file, data, size, offset);
}

static int cut(int file, off_t size) {
    REAL(int, "ftruncate", int, off_t);
    if (!held(file)) return real(file, size);
    pthread_mutex_lock(&lock);
    int failed = real(file, size);
    if (!failed) note("cut", inode_of(file), size, "", "", "", 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int ftruncate(int file, off_t size) { return cut(file, size); }
int ftruncate64(int file, off_t size) { return cut(file, size); }

static int synced(const char *name, int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    if (!held(file)) return real(file);
    pthread_mutex_lock(&lock);
    int failed = real(file);
    if (!failed) note("fsync", inode_of(file), 0, "", "", "", 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int fsync(int file) { return synced("fsync", file); }
int fdatasync(int file) { return synced("fdatasync", file); }

static int renamed(int folder, const char *name, int other_folder, const char *other) {
    REAL(int, "renameat", int, const char *, int, const char *);
    char path[PATH_MAX], other_path[PATH_MAX];
    if (located(folder, name, path) + located(other_folder, other, other_path) == 0)
        return real(folder, name, other_folder, other);
    pthread_mutex_lock(&lock);
    int failed = real(folder, name, other_folder, other);
    if (!failed) note("rename", 0, 0, path, other_path, "", 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int rename(const char *name, const char *other) { return renamed(AT_FDCWD, name, AT_FDCWD, other); }
int renameat(int folder, const char *name, int to, const char *other) { return renamed(folder, name, to, other); }

static int removed(int folder, const char *name, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    char path[PATH_MAX];
    if (!located(folder, name, path)) return real(folder, name, flags);
    pthread_mutex_lock(&lock);
    int failed = real(folder, name, flags);
    if (!failed) note("remove", 0, 0, path, "", "", 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char *name, int flags) { return removed(folder, name, flags); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }

static int made(int folder, const char *name, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    char path[PATH_MAX];
    if (!located(folder, name, path)) return real(folder, name, mode);
    pthread_mutex_lock(&lock);
    int failed = real(folder, name, mode);
    if (!failed) note("mkdir", inode_at(path), 0, path, "", "", 0);
    pthread_mutex_unlock(&lock);
    return failed;
}

int mkdir(const char *name, mode_t mode) { return made(AT_FDCWD, name, mode); }
int mkdirat(int folder, const char *name, mode_t mode) { return made(folder, name, mode); }
