/* Every segment and control object of the host: the list for the resource managers,
 * and the removal of what dead owners left. Any thread. */
#define _GNU_SOURCE
#include "transport/shm/um_shm_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"

static void inspect(struct um_shm_entry *entry)
{
    uint32_t pid = 0;
    int fd = open(entry->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        entry->alive = true; /* another user's: nothing can be said, so nothing is touched */
        return;
    }
    off_t at = entry->transport_id == 0 ? (off_t)offsetof(struct um_shm_control, pid)
                                        : (off_t)offsetof(struct um_shm_header, src_pid);
    if (pread(fd, &pid, sizeof pid, at) == (ssize_t)sizeof pid) {
        entry->pid = pid;
    }
    entry->alive = um_shm_held_elsewhere(fd, UM_SHM_LOCK_SOURCE);
    close(fd);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct um_shm_entry *)a)->path, ((const struct um_shm_entry *)b)->path);
}

static int grow(struct um_shm_entry **entries, int count)
{
    if (count % 16 != 0) {
        return 0;
    }
    struct um_shm_entry *more = um_realloc(*entries, (size_t)(count + 16) * sizeof *more);
    if (more == NULL) {
        return um_error_nomem("list of segments", (unsigned long)(count + 16) * sizeof *more);
    }
    *entries = more;
    return 0;
}

int um_shm_list(enum um_shm_kind kind, struct um_shm_entry **out)
{
    DIR *directory = opendir(um_shm_directory());
    int count = 0;
    *out = NULL;
    if (directory == NULL) {
        return um_error_os(errno, "Core-6976-135", "%s: cannot be read", um_shm_directory());
    }
    struct dirent *item;
    struct um_shm_entry entry;
    while ((item = readdir(directory)) != NULL) {
        if (!um_shm_parse_name(kind, item->d_name, &entry)) {
            continue;
        }
        if (grow(out, count) != 0) {
            closedir(directory);
            um_free(*out);
            *out = NULL;
            return -1;
        }
        inspect(&entry);
        (*out)[count++] = entry;
    }
    closedir(directory);
    if (count > 1) {
        qsort(*out, (size_t)count, sizeof **out, by_path);
    }
    return count;
}

/* The lock is kept until the name is gone, so that nobody can take the object for a living one. */
int um_shm_reclaim(const struct um_shm_entry *entry)
{
    struct stat st;
    int fd = open(entry->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? 0 : um_error_os(errno, "Core-6976-136", "%s: cannot be opened", entry->path);
    }
    int rc = 0;
    if (um_shm_lock_op(fd, F_OFD_SETLK, F_WRLCK, UM_SHM_LOCK_SOURCE, NULL) != 0) {
        rc = 1;
    } else if (fstat(fd, &st) == 0 && st.st_nlink > 0 && unlink(entry->path) != 0 && errno != ENOENT) {
        rc = um_error_os(errno, "Core-6976-137", "%s: cannot be removed", entry->path);
    }
    close(fd);
    return rc;
}

int um_shm_reclaim_dead(enum um_shm_kind kind)
{
    struct um_shm_entry *entries;
    int count = um_shm_list(kind, &entries);
    int removed = 0;
    for (int i = 0; i < count; i++) {
        if (!entries[i].alive && um_shm_reclaim(&entries[i]) == 0) {
            removed++;
            um_log(UM_LOG_NOTICE, "Core-6976-138", "%s: left by process %u, which is gone: removed", entries[i].path,
                   entries[i].pid);
        }
    }
    um_free(entries);
    return removed;
}
