/* A library to preload: it fails, or ends the process, at the n-th call that writes below a folder.
 *
 * The folder is that of FAULT_FOLDER. Calls are counted over all threads and forked processes, in
 * memory that they share. `fault_set` chooses n and what happens there; 0 means never, so that the
 * calls are only listed. `fault_calls` and `fault_name` say what was counted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ONCE, FULL, KILL };
enum { NAMED = 4096, NAME = 160 };

struct shared {
    int at, kind, calls;
    char names[NAMED][NAME];
};
static struct shared *shared;
static char folder[PATH_MAX];

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("FAULT_FOLDER");
    if (given) snprintf(folder, sizeof folder, "%s/", given);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) abort();
}

void fault_set(int at, int kind) {
    memset(shared, 0, sizeof *shared);
    shared->at = at;
    shared->kind = kind;
}
int fault_calls(void) { return shared->calls; }
const char *fault_name(int number) { return shared->names[number - 1]; }

/* The absolute path of a name relative to a descriptor of a folder, or of the descriptor itself. */
static void path_of(char *out, int at, const char *name) {
    char link[64], base[PATH_MAX] = "";
    ssize_t length;
    if (name && name[0] == '/') {
        snprintf(out, PATH_MAX, "%s", name);
        return;
    }
    if (at == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    length = readlink(link, base, sizeof base - 1);
    base[length < 0 ? 0 : length] = 0;
    if (!name) snprintf(out, PATH_MAX, "%s", base);
    else if (snprintf(out, PATH_MAX, "%s/%s", base, name) < 0) out[0] = 0;
}

/* Count a call; the error with which it fails, or 0. A call that frees space works on a full disk. */
static int fault(const char *call, int at, const char *name, int frees) {
    char path[PATH_MAX];
    int before = errno, number;
    if (!folder[0]) return 0;
    path_of(path, at, name);
    errno = before;
    if (strncmp(path, folder, strlen(folder) - 1)) return 0;
    number = __atomic_add_fetch(&shared->calls, 1, __ATOMIC_SEQ_CST);
    if (number <= NAMED)
        snprintf(shared->names[number - 1], NAME, "%s %.130s", call,
                 strlen(path) < strlen(folder) ? "." : path + strlen(folder));
    if (!shared->at || number < shared->at) return 0;
    if (shared->kind == KILL) return number == shared->at ? -1 : 0;
    if (shared->kind == FULL) return frees ? 0 : ENOSPC;
    return number == shared->at ? EIO : 0;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
#define FAIL(call, at, path, frees) \
    do { \
        int error = fault(call, at, path, frees); \
        if (error < 0) kill(getpid(), SIGKILL); \
        if (error) return errno = error, -1; \
    } while (0)
/* A write that is interrupted by the end of the process may have happened in part. */
#define FAIL_WRITE(half) \
    do { \
        int error = fault("write", fd, NULL, 0); \
        if (error < 0) { half; kill(getpid(), SIGKILL); } \
        if (error) return errno = error, -1; \
    } while (0)

#define OPEN(name, parameters, at, arguments) \
    int name parameters { \
        REAL(name) \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (flags & (O_WRONLY | O_RDWR)) FAIL("open", at, path, !(flags & O_CREAT)); \
        return real arguments; \
    }
OPEN(open, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))
OPEN(openat64, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))

#define CALL(name, parameters, arguments, call, at, path, frees) \
    int name parameters { \
        REAL(name) \
        FAIL(call, at, path, frees); \
        return real arguments; \
    }
CALL(fsync, (int fd), (fd), "sync", fd, NULL, 0)
CALL(fdatasync, (int fd), (fd), "sync", fd, NULL, 0)
CALL(ftruncate, (int fd, off_t size), (fd, size), "truncate", fd, NULL, 1)
CALL(ftruncate64, (int fd, off64_t size), (fd, size), "truncate", fd, NULL, 1)
CALL(rename, (const char *old, const char *new), (old, new), "rename", AT_FDCWD, new, 1)
CALL(renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), "rename", to, new, 1)
CALL(renameat2, (int from, const char *old, int to, const char *new, unsigned flags),
     (from, old, to, new, flags), "rename", to, new, 1)
CALL(link, (const char *old, const char *new), (old, new), "link", AT_FDCWD, new, 1)
CALL(linkat, (int from, const char *old, int to, const char *new, int flags),
     (from, old, to, new, flags), "link", to, new, 1)
CALL(unlink, (const char *path), (path), "unlink", AT_FDCWD, path, 1)
CALL(unlinkat, (int at, const char *path, int flags), (at, path, flags), "unlink", at, path, 1)
CALL(rmdir, (const char *path), (path), "rmdir", AT_FDCWD, path, 1)
CALL(mkdir, (const char *path, mode_t mode), (path, mode), "mkdir", AT_FDCWD, path, 0)
CALL(mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), "mkdir", at, path, 0)

int posix_fallocate(int fd, off_t at, off_t size) {
    REAL(posix_fallocate)
    int error = fault("allocate", fd, NULL, 0);
    if (error < 0) kill(getpid(), SIGKILL);
    return error ? error : real(fd, at, size);
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write)
    FAIL_WRITE((void)!real(fd, data, size / 2));
    return real(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite)
    FAIL_WRITE((void)!real(fd, data, size / 2, at));
    return real(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64)
    FAIL_WRITE((void)!real(fd, data, size / 2, at));
    return real(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev)
    FAIL_WRITE((void)!real(fd, parts, count / 2));
    return real(fd, parts, count);
}
ssize_t copy_file_range(int from, off64_t *start, int fd, off64_t *at, size_t size, unsigned flags) {
    REAL(copy_file_range)
    FAIL_WRITE((void)!real(from, start, fd, at, size / 2, flags));
    return real(from, start, fd, at, size, flags);
}
