/* Collectors: their life, and the descriptor that tells when records wait. See um_collector_parts.h. Any thread, unless
 * noted. */
#include "core/um_collector_parts.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "core/um_object_counts.h"

#define COLLECTOR_MAGIC 0x554d434cu /* "UMCL" */
#define DEFAULT_MAX_BYTES (64u << 20)

/* ---- life ---- */

int um_collector_open(um_collector_t **out, size_t max_bytes, int on_full)
{
    if (on_full < UM_ON_FULL_PAUSE || on_full > UM_ON_FULL_CONFLATE) {
        return um_error(UM_EINVAL, "CoreApi-20207-8",
                        "um_collector_create_ex: on_full %d: must be UM_ON_FULL_PAUSE, _DROP_NEWEST, _DROP_OLDEST or "
                        "_CONFLATE",
                        on_full);
    }
    um_collector_t *c = um_calloc(1, sizeof *c);
    if (c == NULL || (c->store = um_store_create()) == NULL || (c->filling = um_chunk_get(c->store)) == NULL) {
        if (c != NULL && c->store != NULL) {
            um_store_unref(c->store);
        }
        um_free(c);
        return um_error_nomem("um_collector_create: collector", sizeof *c);
    }
    c->magic = COLLECTOR_MAGIC;
    c->fork_generation = um_fork_generation();
    c->max_bytes = max_bytes != 0 ? max_bytes : DEFAULT_MAX_BYTES;
    c->on_full = on_full;
    c->plain_max = on_full != UM_ON_FULL_CONFLATE ? c->max_bytes : 0;
    c->fd = -1;
    um_line_init(&c->newest, false);
    um_line_init(&c->gone, true);
    um_tally_init(&c->tally);
    um_chunk_begin(c->store, c->filling);
    um_list_init(&c->links);
    um_object_count(UM_OBJECT_COLLECTOR, 1);
    *out = c;
    return 0;
}

int um_collector_check(const um_collector_t *c, const char *api)
{
    if (c == NULL || c->magic != COLLECTOR_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20209-1", "%s: collector %p: must be a live collector", api,
                        (const void *)c);
    }
    if (c->fork_generation != um_fork_generation()) {
        return um_error(UM_EINVAL, "CoreApi-20209-7",
                        "%s: the collector was inherited through fork; create a new one in the child", api);
    }
    return 0;
}

static void free_chunk(um_collector_t *c, struct um_chunk *chunk)
{
    if (chunk != NULL) {
        um_chunk_unref(c->store, chunk);
    }
}

int um_collector_close(um_collector_t *c)
{
    um_lock_take(&c->lock);
    if (c->users > 0) {
        int users = c->users;
        um_lock_give(&c->lock);
        return um_error(UM_EOP, "CoreApi-20207-2", "um_collector_delete: %d receivers still use it; delete them first",
                        users);
    }
    c->deleting = true;
    um_condition_signal_all(&c->changed);
    while (c->taker != UM_TAKER_AWAY) {
        um_condition_wait(&c->changed, &c->lock);
    }
    c->magic = 0;
    um_lock_give(&c->lock);
    free_chunk(c, c->filling);
    free_chunk(c, c->draining);
    free_chunk(c, c->spare);
    um_line_clear(&c->newest);
    um_line_clear(&c->gone);
    um_tally_clear(&c->tally);
    um_store_unref(c->store);
    if (c->fd >= 0) {
        um_fd_close(c->fd);
    }
    um_free(c);
    um_object_count(UM_OBJECT_COLLECTOR, -1);
    return 0;
}

/* ---- who is told that records wait ---- */

/* Lock. Records wait: wake the taker if it sleeps, make the descriptor readable if somebody asked for it. */
void um_collector_notify(um_collector_t *c)
{
    if (c->taker == UM_TAKER_SLEEPS) {
        c->taker = UM_TAKER_INSIDE;
        um_condition_signal_all(&c->changed);
    }
    if (c->fd >= 0 && !c->signaled) {
        uint64_t one = 1;
        c->signaled = write(c->fd, &one, sizeof one) == sizeof one;
    }
}

/* Lock. Nothing waits any more: the descriptor is not readable until it does again. */
void um_collector_clear_descriptor(um_collector_t *c)
{
    if (c->queued_records == 0 && !c->kept && c->signaled) {
        uint64_t writes;
        c->signaled = read(c->fd, &writes, sizeof writes) < 0 && errno != EAGAIN;
    }
}

void um_collector_read_end(struct um_collector_link *link)
{
    um_collector_t *c = link->collector;
    um_lock_take(&c->lock);
    if (c->queued_records > 0 && um_collector_wants_notice(c)) {
        um_collector_notify(c);
    }
    um_lock_give(&c->lock);
}

void um_collector_interrupt(um_collector_t *c)
{
    um_lock_take(&c->lock);
    c->woken = true;
    um_condition_signal_all(&c->changed);
    um_lock_give(&c->lock);
}

int um_collector_descriptor(um_collector_t *c)
{
    um_lock_take(&c->lock);
    if (c->fd < 0) {
        c->fd = um_fd_own(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
        if (c->fd >= 0 && (c->queued_records > 0 || c->kept)) {
            um_collector_notify(c);
        }
    }
    int fd = c->fd;
    int err = errno;
    um_lock_give(&c->lock);
    if (fd < 0) {
        return um_error(UM_EOS, "CoreApi-20207-7", "um_collector_fd: eventfd: %s", strerror(err));
    }
    return fd;
}

void um_collector_keep(um_collector_t *c, bool keep)
{
    um_lock_take(&c->lock);
    c->kept = keep;
    if (keep && c->fd >= 0 && !c->signaled) {
        um_collector_notify(c);
    }
    um_collector_clear_descriptor(c);
    um_lock_give(&c->lock);
}

void um_collector_counts(um_collector_t *c, um_collector_stats_t *out)
{
    um_lock_take(&c->lock);
    *out = c->stats;
    out->queued_messages = c->queued_records;
    out->queued_bytes = c->queued_bytes;
    um_lock_give(&c->lock);
}

uint64_t um_collector_tally_of(um_collector_t *c, const char *source)
{
    um_lock_take(&c->lock);
    uint64_t count = um_tally_of(&c->tally, source);
    um_lock_give(&c->lock);
    return count;
}
