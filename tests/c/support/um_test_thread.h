/* Whether a thread of the test waits, in the kernel or in a loop: one that is only kept from a processor by others
 * makes no progress either. Asking orders nothing between the two threads, which matters to the thread sanitizer. For
 * tests that go on when another thread is blocked. */
#ifndef UM_SUPPORT_TEST_THREAD_H
#define UM_SUPPORT_TEST_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int um_test_thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* What the kernel says of the thread there; empty when it says nothing. */
static inline void um_test_thread_file(int tid, const char *name, char text[512])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    FILE *file = fopen(path, "r");
    size_t got = file != NULL ? fread(text, 1, 511, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    text[got] = '\0';
}

static inline bool um_test_thread_sleeps(int tid)
{
    char text[512];
    um_test_thread_file(tid, "stat", text);
    const char *end = strrchr(text, ')'); /* of the name */
    return end != NULL && end[1] == ' ' && end[2] == 'S';
}

/* The time for which it has had a processor. */
static inline uint64_t um_test_thread_ran_ns(int tid)
{
    char text[512];
    unsigned long long ns = 0;
    um_test_thread_file(tid, "schedstat", text);
    return sscanf(text, "%llu", &ns) == 1 ? ns : 0;
}

#endif
