/* The locks of segments (OFD locks: the kernel tells the living from the dead). Any
 * thread; each um_shm_segment is a holder of its own. A child of fork() shares them
 * with its parent through descriptors and mappings, and so keeps neither. */
#define _GNU_SOURCE
#include "transport/shm/um_shm_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/um_error.h"

#define LOCK_TRIES 100
#define LOCK_TRY_US 500

/* ---- locks ---- */

int um_shm_lock_op(int fd, int command, short type, unsigned byte, struct flock *out)
{
    struct flock request = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc;
    do {
        rc = fcntl(fd, command, &request);
    } while (rc < 0 && errno == EINTR);
    if (out != NULL) {
        *out = request;
    }
    return rc;
}

bool um_shm_lock_try(const struct um_shm_segment *segment, unsigned byte)
{
    return um_shm_lock_op(segment->fd, F_OFD_SETLK, F_WRLCK, byte, NULL) == 0;
}

/* Not for ever: a process may be stopped while it holds the lock. */
int um_shm_lock_wait(const struct um_shm_segment *segment, unsigned byte)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (um_shm_lock_try(segment, byte)) {
            return 0;
        }
        usleep(LOCK_TRY_US);
    }
    return um_error_os(errno, "Core-6976-140", "%s: lock %u is held by another process", segment->path, byte);
}

void um_shm_lock_give(const struct um_shm_segment *segment, unsigned byte)
{
    (void)um_shm_lock_op(segment->fd, F_OFD_SETLK, F_UNLCK, byte, NULL);
}

bool um_shm_held_elsewhere(int fd, unsigned byte)
{
    struct flock found;
    return um_shm_lock_op(fd, F_OFD_GETLK, F_WRLCK, byte, &found) == 0 && found.l_type != F_UNLCK;
}

bool um_shm_lock_held(const struct um_shm_segment *segment, unsigned byte)
{
    return um_shm_held_elsewhere(segment->fd, byte);
}
