/* Fault injection: the n-th allocation of the library, or the n-th system call made while armed, fails. The libc
 * functions are defined here and so take the place of libc's in the test program; include this in one file only.
 * Arm and disarm in the thread of the test; any thread may run into the fault. */
#ifndef UM_SUPPORT_TEST_TORTURE_H
#define UM_SUPPORT_TEST_TORTURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lbm/lbm.h>

#include "base/um_mem.h"
#include "um_test.h"

#define FAULT_WIDTH_MAX 4

enum fault_kind { FAULT_MEMORY, FAULT_SYSTEM };

static struct {
    atomic_bool armed;
    enum fault_kind kind;
    int flavour; /* which of the plausible errno values of a call */
    long at;
    int width;        /* how many candidates fail, one after the other */
    atomic_long seen; /* candidates so far */
    atomic_int waits;
    atomic_bool hit;
    int reported;                /* failures returned by calls of the API */
    int errors[FAULT_WIDTH_MAX]; /* lock */
    pthread_mutex_t lock;
    char what[64]; /* lock */
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread bool fault_suspended; /* the test's own calls */

/* The next candidate: true when it is the one to fail. */
static bool fault_now(enum fault_kind kind, const char *what, int error)
{
    if (!atomic_load(&fault.armed) || fault_suspended || fault.kind != kind) {
        return false;
    }
    long number = atomic_fetch_add(&fault.seen, 1);
    if (number < fault.at || number >= fault.at + fault.width) {
        return false;
    }
    pthread_mutex_lock(&fault.lock);
    snprintf(fault.what, sizeof fault.what, "%s", what);
    fault.errors[number - fault.at] = error;
    pthread_mutex_unlock(&fault.lock);
    atomic_store(&fault.hit, true);
    return true;
}

static bool fault_memory(size_t size)
{
    char what[64];
    snprintf(what, sizeof what, "allocation of %zu bytes", size);
    return fault_now(FAULT_MEMORY, what, ENOMEM);
}

static void fault_arm(enum fault_kind kind, long at, int width, int flavour)
{
    fault.kind = kind;
    fault.at = at;
    fault.width = at < 0 ? 0 : width;
    fault.flavour = flavour;
    fault.reported = 0;
    fault.what[0] = '\0';
    memset(fault.errors, 0, sizeof fault.errors);
    atomic_store(&fault.seen, 0);
    atomic_store(&fault.waits, 0);
    atomic_store(&fault.hit, false);
    um_mem_set_fail_hook(fault_memory);
    atomic_store(&fault.armed, true);
}

/* True when the fault happened. */
static bool fault_disarm(void)
{
    atomic_store(&fault.armed, false);
    um_mem_set_fail_hook(NULL);
    return atomic_load(&fault.hit);
}

/* ---- the libc functions that the library calls ---- */

static bool fault_call(const char *name, const int errors[3])
{
    int error = errors[fault.flavour % 3];
    if (error == 0 || !fault_now(FAULT_SYSTEM, name, error)) {
        return false;
    }
    errno = error;
    return true;
}

#define FAULT_WAITS 8

/* Waiting for events is all alike: only the first few waits are candidates. */
static bool fault_wait(const char *name)
{
    return atomic_load(&fault.waits) < FAULT_WAITS && atomic_fetch_add(&fault.waits, 1) < FAULT_WAITS &&
           fault_call(name, (const int[3]){EINTR, 0, 0});
}

/* What a call fails with, by flavour. 0: not with this flavour. */
#define FAULT_ERRORS(...) ((const int[3]){__VA_ARGS__})

/* The function that is hidden by the one of this name here; any thread may be the first to ask. */
static void *fault_real(_Atomic(void *) *known, const char *name)
{
    void *real = atomic_load_explicit(known, memory_order_acquire);
    if (real == NULL) {
        real = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(known, real, memory_order_release);
    }
    return real;
}

#define FAULT_DEFINE(type, name, parameters, arguments, ...)                                                           \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static _Atomic(void *) known;                                                                                  \
        type(*real) parameters = (type(*) parameters)fault_real(&known, #name);                                        \
        return fault_call(#name, FAULT_ERRORS(__VA_ARGS__)) ? (type)-1 : real arguments;                               \
    }

FAULT_DEFINE(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, ENOBUFS, ENFILE)
FAULT_DEFINE(int, bind, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len), EADDRINUSE, EACCES,
             ENOMEM)
FAULT_DEFINE(int, listen, (int fd, int backlog), (fd, backlog), EADDRINUSE, 0, 0)
FAULT_DEFINE(int, accept, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len), EMFILE, ECONNABORTED, EINTR)
FAULT_DEFINE(int, accept4, (int fd, struct sockaddr *addr, socklen_t *len, int flags), (fd, addr, len, flags), EMFILE,
             ECONNABORTED, EINTR)
FAULT_DEFINE(int, connect, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len), ENETUNREACH,
             ECONNREFUSED, EADDRNOTAVAIL)
FAULT_DEFINE(int, epoll_create1, (int flags), (flags), EMFILE, ENOMEM, ENFILE)
FAULT_DEFINE(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE, ENOMEM, ENFILE)
FAULT_DEFINE(ssize_t, recv, (int fd, void *data, size_t len, int flags), (fd, data, len, flags), ECONNRESET, EINTR,
             EAGAIN)
FAULT_DEFINE(int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),
             (fd, messages, count, flags, timeout), ENOMEM, EINTR, EAGAIN)
FAULT_DEFINE(ssize_t, send, (int fd, const void *data, size_t len, int flags), (fd, data, len, flags), ECONNRESET,
             EINTR, EAGAIN)
FAULT_DEFINE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), EPIPE, EINTR,
             EAGAIN)
FAULT_DEFINE(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags), (fd, messages, count, flags),
             ENOBUFS, EINTR, EAGAIN)
FAULT_DEFINE(ssize_t, sendto,
             (int fd, const void *data, size_t len, int flags, const struct sockaddr *to, socklen_t to_len),
             (fd, data, len, flags, to, to_len), ENOBUFS, EINTR, EAGAIN)
FAULT_DEFINE(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
             (fd, level, name, value, len), ENOBUFS, ENOMEM, EPERM)
FAULT_DEFINE(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len), (fd, level, name, value, len),
             ENOBUFS, 0, 0)
FAULT_DEFINE(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len), ENOBUFS, 0, 0)
FAULT_DEFINE(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len), ENOTCONN, 0, 0)
FAULT_DEFINE(int, getifaddrs, (struct ifaddrs * *out), (out), ENOMEM, EMFILE, 0)
FAULT_DEFINE(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), EINTR, ENOMEM, 0)
FAULT_DEFINE(ssize_t, read, (int fd, void *data, size_t len), (fd, data, len), EINTR, 0, 0)
FAULT_DEFINE(ssize_t, write, (int fd, const void *data, size_t len), (fd, data, len), EINTR, 0, 0)
FAULT_DEFINE(ssize_t, getrandom, (void *out, size_t len, unsigned flags), (out, len, flags), EINTR, ENOSYS, 0)

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    if (op != EPOLL_CTL_DEL && fault_call("epoll_ctl", FAULT_ERRORS(ENOMEM, ENOSPC, 0))) {
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    static _Atomic(void *) known;
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))fault_real(&known, "pthread_create");
    return fault_call("pthread_create", FAULT_ERRORS(EAGAIN, EAGAIN, EAGAIN)) ? EAGAIN : real(thread, attr, fn, arg);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(args, int) : 0;
    va_end(args);
    return fault_call("open", FAULT_ERRORS(EMFILE, ENFILE, ENOMEM))
               ? -1
               : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int ms)
{
    static _Atomic(void *) known;
    int (*real)(int, struct epoll_event *, int, int) =
        (int (*)(int, struct epoll_event *, int, int))fault_real(&known, "epoll_wait");
    return fault_wait("epoll_wait") ? -1 : real(epfd, events, max, ms);
}

/* The library calls epoll_pwait2 in this way. */
long syscall(long number, ...)
{
    static _Atomic(void *) known;
    long (*real)(long, ...) = (long (*)(long, ...))fault_real(&known, "syscall");
    va_list args;
    va_start(args, number);
    long a[6];
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(args, long);
    }
    va_end(args);
    if (number == SYS_epoll_pwait2 && fault_wait("epoll_pwait2")) {
        return -1;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- what must hold ---- */

static int open_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

/* The memory that nothing points to; 0 without the leak sanitizer. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
static bool leaks_found(void)
{
    return __lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check() != 0;
}

static const char *torture_name;

static void on_hang(int signo)
{
    char text[256];
    int len = snprintf(text, sizeof text, "HANG: %s, fault %ld (%s)\n", torture_name, fault.at, fault.what);
    if (syscall(SYS_write, STDERR_FILENO, text, (size_t)len) >= 0) {
        abort();
    }
}

/* Seconds after which the test is stopped; 0 for none. */
static void hang_guard(unsigned seconds)
{
    signal(SIGALRM, on_hang);
    alarm(seconds);
}

#endif
