/* A directory of its own for the segments of a test program (UM_SHM_DIR), so that
 * what others leave or remove does not matter. Made before main(), removed at
 * exit. Children find it through the environment. */
#ifndef UM_SUPPORT_TEST_SHM_H
#define UM_SUPPORT_TEST_SHM_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Built with a sanitizer that makes everything slow: fewer rounds then. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UM_TEST_SANITIZED 1
#endif
#endif
#if !defined(UM_TEST_SANITIZED) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define UM_TEST_SANITIZED 1
#endif
#ifndef UM_TEST_SANITIZED
#define UM_TEST_SANITIZED 0
#endif

/* A process that comes after a killed one is up within a second, and so long do the survivors wait at most. The tests
 * print the time and hold it to ten times that, because the machine may be busy. */
#define SURVIVOR_MS (UM_TEST_SANITIZED ? 100000ull : 10000ull)

/* Full counts instead of those for every day. */
static inline bool um_test_soak(void)
{
    const char *value = getenv("UM_SOAK");
    return value != NULL && strcmp(value, "1") == 0;
}

static char um_test_shm_dir[64];
static pid_t um_test_shm_owner;

/* Segments and control objects there now. */
static inline int um_test_shm_count(void)
{
    DIR *directory = opendir(getenv("UM_SHM_DIR"));
    int count = 0;
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
        count += strncmp(e->d_name, "LBT", 3) == 0;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count;
}

static void um_test_shm_remove(void)
{
    DIR *directory = getpid() == um_test_shm_owner ? opendir(um_test_shm_dir) : NULL;
    char path[400];
    if (directory == NULL) {
        return;
    }
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", um_test_shm_dir, e->d_name);
        unlink(path);
    }
    closedir(directory);
    rmdir(um_test_shm_dir);
}

__attribute__((constructor)) static void um_test_shm_make(void)
{
    if (getenv("UM_TEST_SHM_OWNED") != NULL) {
        return; /* a child of the test, see um_test_child.h */
    }
    um_test_shm_owner = getpid();
    snprintf(um_test_shm_dir, sizeof um_test_shm_dir, "/dev/shm/um-test-%d", (int)getpid());
    if (mkdir(um_test_shm_dir, 0700) == 0) {
        setenv("UM_SHM_DIR", um_test_shm_dir, 1);
        setenv("UM_TEST_SHM_OWNED", "1", 1);
        atexit(um_test_shm_remove);
    }
}

#endif
