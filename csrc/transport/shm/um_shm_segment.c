/* The life of a shared-memory segment: built complete before it gets its name,
 * attached to after its header was checked, closed. Used by the transports, on the
 * loop. */
#include "transport/shm/um_shm_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "base/um_random.h"

#define CREATE_TRIES 8

/* ---- creation ---- */

static void set_pointers(struct um_shm_segment *segment, void *base)
{
    segment->header = base;
    segment->slots = (struct um_shm_slot *)((uint8_t *)base + UM_SHM_POOL_OFF);
}

/* Reserve, fill and lock the file behind segment->fd. */
static int build(struct um_shm_segment *segment, const struct um_shm_header *plan)
{
    if (um_shm_set_owner(segment->fd, segment->path) != 0 ||
        um_shm_reserve(segment->fd, plan->total_len, segment->path) != 0 ||
        um_shm_identify(segment->fd, segment->path, &segment->dev, &segment->ino) != 0) {
        return -1;
    }
    void *base = um_shm_map(segment->fd, 0, plan->total_len, PROT_READ | PROT_WRITE);
    if (base == NULL) {
        return um_error_os(errno, "Core-5688-616", "%s: mapping %llu bytes", segment->path,
                           (unsigned long long)plan->total_len);
    }
    if (um_shm_huge_pages(plan->ring_len)) {
        (void)madvise((uint8_t *)base + plan->ring_off, plan->ring_len, MADV_HUGEPAGE);
    }
    um_shm_adopt_geometry(segment, plan);
    set_pointers(segment, base);
    segment->ring = (uint8_t *)base + plan->ring_off;
    memcpy(base, plan, offsetof(struct um_shm_header, pad0));
    if (!um_shm_lock_try(segment, UM_SHM_LOCK_SOURCE)) {
        return um_error_os(errno, "Core-6976-143", "%s: source lock", segment->path);
    }
    um_shm_set_state(segment->header, UM_SHM_READY);
    return 0;
}

static void discard(struct um_shm_segment *segment)
{
    if (segment->header != NULL) {
        munmap(segment->header, segment->total_len);
    }
    if (segment->fd >= 0) {
        um_fd_close(segment->fd);
    }
    segment->fd = -1;
    segment->header = NULL;
}

enum create_result { CREATED, CREATE_AGAIN, CREATE_FAILED };

static enum create_result create_once(struct um_shm_segment *segment, const struct um_shm_spec *spec)
{
    struct um_shm_header *plan = um_calloc(1, sizeof *plan);
    bool named = false;
    enum create_result result = CREATE_FAILED;
    if (plan == NULL) {
        um_error_nomem("segment header", sizeof *plan);
        return CREATE_FAILED;
    }
    um_shm_describe(plan, spec, um_random_u32_nonzero());
    um_shm_make_path(segment->path, sizeof segment->path, spec->kind, plan->session_id, spec->transport_id);
    segment->fd = um_shm_open_unnamed(segment->path, &named);
    if (segment->fd < 0) {
        result = errno == EEXIST ? CREATE_AGAIN : CREATE_FAILED;
        um_error_os(errno, "Core-5688-617", "%s: cannot be created in %s", segment->path, um_shm_directory());
    } else if (build(segment, plan) == 0) {
        result = CREATED;
        /* A named file may have been taken for a leftover before it was locked. */
        if (named ? !um_shm_has_name(segment->path, segment->dev, segment->ino)
                  : um_shm_give_name(segment->fd, segment->path) != 0) {
            result = named || errno == EEXIST ? CREATE_AGAIN : CREATE_FAILED;
            um_error_os(named ? EEXIST : errno, "Core-5688-617", "%s: cannot be named", segment->path);
        }
    }
    if (result != CREATED) {
        if (named && segment->fd >= 0) {
            um_shm_unlink_if_same(segment->path, segment->dev, segment->ino);
        }
        discard(segment);
    }
    um_free(plan);
    return result;
}

int um_shm_check_window(const char *option, uint64_t bytes)
{
    return bytes <= UM_SHM_WINDOW_MAX ? 0
                                      : um_error(UM_EINVAL, "CoreApi-6976-15", "%s %llu: must be at most %llu", option,
                                                 (unsigned long long)bytes, UM_SHM_WINDOW_MAX);
}

int um_shm_create(struct um_shm_segment *segment, const struct um_shm_spec *spec)
{
    memset(segment, 0, sizeof *segment);
    segment->fd = -1;
    segment->kind = spec->kind;
    segment->is_source = true;
    um_shm_reclaim_dead(spec->kind);
    for (int i = 0; i < CREATE_TRIES; i++) {
        enum create_result result = create_once(segment, spec);
        if (result == CREATED) {
            return 0;
        }
        if (result == CREATE_FAILED) {
            return -1;
        }
    }
    return -1;
}

/* ---- attaching ---- */

static int open_existing(struct um_shm_segment *segment, struct stat *st)
{
    segment->fd = um_fd_own(open(segment->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (segment->fd < 0) {
        return um_error_os(errno, "Core-6976-129", "%s: cannot be opened", segment->path);
    }
    if (fstat(segment->fd, st) != 0 || !S_ISREG(st->st_mode) || st->st_size < 8192) {
        return um_error(UM_EINVAL, "Core-6976-130", "%s: not a segment (no regular file of two pages or more)",
                        segment->path);
    }
    const char *same_uid = getenv("UM_SHM_SAME_UID");
    if (same_uid != NULL && same_uid[0] == '1' && st->st_uid != geteuid()) {
        return um_error(UM_EINVAL, "Core-6976-131", "%s: owned by user %u, UM_SHM_SAME_UID allows only %u",
                        segment->path, (unsigned)st->st_uid, (unsigned)geteuid());
    }
    segment->dev = st->st_dev;
    segment->ino = st->st_ino;
    return 0;
}

/* Read with a system call first: a file that shrinks meanwhile cannot fault here. */
static int read_header(struct um_shm_segment *segment, uint64_t file_len)
{
    struct um_shm_header header;
    if (pread(segment->fd, &header, sizeof header, 0) != (ssize_t)sizeof header) {
        return um_error(UM_EINVAL, "Core-6976-130", "%s: header cannot be read", segment->path);
    }
    if (um_shm_check_header(segment, &header, file_len) != 0) {
        return -1;
    }
    if (atomic_load_explicit(&header.state, memory_order_relaxed) != UM_SHM_READY) {
        return um_shm_refuse(segment, "state", atomic_load_explicit(&header.state, memory_order_relaxed));
    }
    if (!um_shm_source_alive(segment)) {
        return um_error(UM_EINVAL, "Core-6976-132", "%s: its source (process %u) is gone: not joined", segment->path,
                        header.src_pid);
    }
    um_shm_adopt_geometry(segment, &header);
    return 0;
}

bool um_shm_exists(enum um_shm_kind kind, uint32_t session_id, uint16_t transport_id)
{
    struct um_shm_segment segment;
    struct stat st;
    um_shm_make_path(segment.path, sizeof segment.path, kind, session_id, transport_id);
    return stat(segment.path, &st) == 0 || errno != ENOENT;
}

int um_shm_attach(struct um_shm_segment *segment, enum um_shm_kind kind, uint32_t session_id, uint16_t transport_id)
{
    struct stat st;
    memset(segment, 0, sizeof *segment);
    segment->kind = kind;
    segment->session_id = session_id;
    segment->transport_id = transport_id;
    um_shm_make_path(segment->path, sizeof segment->path, kind, session_id, transport_id);
    if (open_existing(segment, &st) != 0 || read_header(segment, (uint64_t)st.st_size) != 0) {
        discard(segment);
        return -1;
    }
    void *front = um_shm_map(segment->fd, 0, segment->ring_off, PROT_READ | PROT_WRITE);
    void *ring = front == NULL ? NULL : um_shm_map(segment->fd, segment->ring_off, segment->ring_len, PROT_READ);
    if (ring == NULL) {
        um_error_os(errno, "Core-6976-134", "%s: mapping %llu bytes", segment->path,
                    (unsigned long long)segment->total_len);
        if (front != NULL) {
            munmap(front, segment->ring_off);
        }
        discard(segment);
        return -1;
    }
    set_pointers(segment, front);
    segment->ring = ring;
    return 0;
}

/* ---- the end ---- */

void um_shm_unlink(const struct um_shm_segment *segment)
{
    um_shm_unlink_if_same(segment->path, segment->dev, segment->ino);
}

void um_shm_close(struct um_shm_segment *segment)
{
    if (segment->header == NULL) {
        return;
    }
    if (segment->is_source) {
        um_shm_set_state(segment->header, UM_SHM_CLOSED);
        um_shm_show_activity(segment->header);
        um_shm_unlink(segment);
        munmap(segment->header, segment->total_len);
    } else {
        munmap(segment->ring, segment->ring_len);
        munmap(segment->header, segment->ring_off);
    }
    if (segment->fd >= 0) {
        um_fd_close(segment->fd);
    }
    segment->fd = -1;
    segment->header = NULL;
    segment->slots = NULL;
    segment->ring = NULL;
}
