/* Control objects: the page with which a receiving context shows itself, and on
 * whose futex LBT-IPC sleeps. Called by the thread that owns the object. */
#define _GNU_SOURCE
#include "transport/shm/um_shm_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_random.h"

static const char *const control_magic[] = {[UM_SHM_IPC] = "UMIPS\0\0\1", [UM_SHM_SMX] = "UMSXS\0\0\1"};

static int map_control(struct um_shm_control_object *object)
{
    object->map = um_shm_map(object->fd, 0, sizeof *object->map, PROT_READ | PROT_WRITE);
    return object->map != NULL ? 0 : um_error_os(errno, "Core-5688-651", "%s: mapping", object->path);
}

static void discard_control(struct um_shm_control_object *object)
{
    if (object->map != NULL) {
        munmap(object->map, sizeof *object->map);
    }
    if (object->fd >= 0) {
        um_fd_close(object->fd);
    }
    object->map = NULL;
    object->fd = -1;
}

static int build_control(struct um_shm_control_object *object, enum um_shm_kind kind, bool named)
{
    if (um_shm_set_owner(object->fd, object->path) != 0 ||
        um_shm_reserve(object->fd, sizeof *object->map, object->path) != 0 ||
        um_shm_identify(object->fd, object->path, &object->dev, &object->ino) != 0 || map_control(object) != 0) {
        return -1;
    }
    object->map->version = UM_SHM_VERSION;
    object->map->pid = (uint32_t)getpid();
    object->map->start_time = um_shm_start_time(object->map->pid);
    memcpy(object->map->magic, control_magic[kind], sizeof object->map->magic);
    if (um_shm_lock_op(object->fd, F_OFD_SETLK, F_WRLCK, UM_SHM_LOCK_SOURCE, NULL) != 0 ||
        (!named && um_shm_give_name(object->fd, object->path) != 0)) {
        return um_error_os(errno, "Core-5688-653", "%s: cannot be named", object->path);
    }
    return 0;
}

int um_shm_control_create(struct um_shm_control_object *object, enum um_shm_kind kind)
{
    memset(object, 0, sizeof *object);
    object->fd = -1;
    object->is_owner = true;
    um_shm_reclaim_dead(kind);
    object->session_id = um_random_u32_nonzero();
    um_shm_make_path(object->path, sizeof object->path, kind, object->session_id, 0);
    bool named;
    object->fd = um_shm_open_unnamed(object->path, &named);
    if (object->fd < 0) {
        return um_error_os(errno, "Core-5688-651", "%s: cannot be created", object->path);
    }
    if (build_control(object, kind, named) != 0) {
        if (named) {
            (void)unlink(object->path);
        }
        discard_control(object);
        return -1;
    }
    return 0;
}

int um_shm_control_attach(struct um_shm_control_object *object, enum um_shm_kind kind, uint32_t session_id)
{
    struct stat st;
    memset(object, 0, sizeof *object);
    object->session_id = session_id;
    um_shm_make_path(object->path, sizeof object->path, kind, session_id, 0);
    object->fd = um_fd_own(open(object->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (object->fd < 0 || fstat(object->fd, &st) != 0) {
        int saved = errno;
        discard_control(object);
        return um_error_os(saved, "Core-5688-651", "%s: cannot be opened", object->path);
    }
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof *object->map || map_control(object) != 0 ||
        memcmp(object->map->magic, control_magic[kind], sizeof object->map->magic) != 0) {
        discard_control(object);
        return um_error(UM_EINVAL, "Core-5688-651", "%s: not a control object of libum", object->path);
    }
    return 0;
}

void um_shm_control_close(struct um_shm_control_object *object)
{
    if (object->map == NULL) {
        return;
    }
    if (object->is_owner) {
        um_shm_unlink_if_same(object->path, object->dev, object->ino);
    }
    discard_control(object);
}
