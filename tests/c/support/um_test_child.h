/* Children of a test that execute the test program again in a role. A child of a process with threads may do nothing
 * else: the locks of its allocator and of the library may be held by threads it does not have. Usage:
 *
 *     ROLE(receiver) { struct report *report = shared; sscanf(text, "%63s", topic); ...; return 0; }
 *     pid_t pid = um_test_child("receiver", &memory, 0, "%s", topic);
 *
 * `text` is what the parent wrote, `shared` the memory both see (NULL without). What a role returns is the exit status.
 */
#ifndef UM_SUPPORT_TEST_CHILD_H
#define UM_SUPPORT_TEST_CHILD_H

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "um_test.h"

/* Memory that a test shares with its children. */
struct um_test_shared {
    int fd;
    size_t size;
    void *memory;
};

static inline struct um_test_shared um_test_shared_make(size_t size)
{
    struct um_test_shared s = {.fd = memfd_create("um-test", MFD_CLOEXEC), .size = size};
    if (s.fd < 0 || ftruncate(s.fd, (off_t)size) != 0) {
        abort();
    }
    s.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
    if (s.memory == MAP_FAILED) {
        abort();
    }
    return s;
}

static inline void um_test_shared_drop(struct um_test_shared *s)
{
    munmap(s->memory, s->size);
    close(s->fd);
}

/* Between fork and exec: only what signal handlers may call. */
static inline void um_test_child_exec(pid_t parent, const struct um_test_shared *shared, uid_t uid, char *const *argv)
{
    if (shared != NULL && fcntl(shared->fd, F_SETFD, 0) != 0) {
        _exit(5);
    }
    if (uid != 0 && (setgid(uid) != 0 || setuid(uid) != 0)) {
        _exit(3);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the child does not outlive the thread that starts it; setuid() undoes it */
    if (getppid() != parent) {
        _exit(4);
    }
    execv("/proc/self/exe", argv);
    _exit(2);
}

/* uid 0: as the user of the test. */
__attribute__((format(printf, 4, 5))) static inline pid_t
um_test_child(const char *role, const struct um_test_shared *shared, uid_t uid, const char *format, ...)
{
    char text[256], fd[16] = "-1", size[24] = "0";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (shared != NULL) {
        snprintf(fd, sizeof fd, "%d", shared->fd);
        snprintf(size, sizeof size, "%zu", shared->size);
    }
    char *const argv[] = {"child", UM_TEST_ROLE_ARGUMENT, (char *)role, text, fd, size, NULL};
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        um_test_child_exec(parent, shared, uid, argv);
    }
    if (pid < 0) {
        abort();
    }
    return pid;
}

/* Exit status; 128 + signal when a signal ended it. */
static inline int um_test_child_end(pid_t pid)
{
    int status = -1;
    if (waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void um_test_child_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    um_test_child_end(pid);
}

#endif
