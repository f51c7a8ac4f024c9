/* The locks of segments (OFD locks: the kernel tells the living from the dead), and
 * what becomes of them in the child of a fork. Any thread; each um_shm_segment is
 * a holder of its own. */
#define _GNU_SOURCE
#include "transport/shm/um_shm_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_mem.h"

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

/* ---- forks ---- */

/* A lock belongs to the open file description, which a child shares through descriptors and mappings. Its copies of the
 * descriptors are closed, and mappings are not inherited, so that a child does not keep the locks of a dead parent. */

static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static struct um_list fork_segments = {&fork_segments, &fork_segments}; /* fork_lock */
static struct um_list fork_controls = {&fork_controls, &fork_controls}; /* fork_lock */

static void before_fork(void)
{
    pthread_mutex_lock(&fork_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&fork_lock);
}

static void after_fork_in_child(void)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &fork_segments)
    {
        close(UM_CONTAINER_OF(it, struct um_shm_segment, fork_node)->fd);
        UM_CONTAINER_OF(it, struct um_shm_segment, fork_node)->fd = -1;
    }
    UM_LIST_FOREACH(it, &fork_controls)
    {
        close(UM_CONTAINER_OF(it, struct um_shm_control_object, fork_node)->fd);
        UM_CONTAINER_OF(it, struct um_shm_control_object, fork_node)->fd = -1;
    }
    pthread_mutex_unlock(&fork_lock);
}

static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void fork_add(struct um_list *list, struct um_list *node)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
    pthread_mutex_lock(&fork_lock);
    um_list_push_back(list, node);
    pthread_mutex_unlock(&fork_lock);
}

void um_shm_fork_add_segment(struct um_shm_segment *segment)
{
    fork_add(&fork_segments, &segment->fork_node);
}

void um_shm_fork_add_control(struct um_shm_control_object *object)
{
    fork_add(&fork_controls, &object->fork_node);
}

void um_shm_fork_remove(struct um_list *node)
{
    pthread_mutex_lock(&fork_lock);
    um_list_remove(node);
    pthread_mutex_unlock(&fork_lock);
}
