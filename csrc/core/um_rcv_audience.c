/* Immutable lists of receivers. See um_rcv_audience.h. */
#include "core/um_rcv_audience.h"

#include "base/um_mem.h"
#include "core/um_rcv_private.h"

struct um_rcv_audience *um_rcv_audience_new(unsigned room)
{
    struct um_rcv_audience *audience = um_malloc(sizeof *audience + room * sizeof audience->receivers[0]);
    if (audience != NULL) {
        atomic_init(&audience->refs, 1);
        audience->count = 0;
        audience->room = room;
    }
    return audience;
}

/* One for all, never freed. */
struct um_rcv_audience *um_rcv_audience_nobody(void)
{
    static struct um_rcv_audience nobody = {.refs = 1};
    um_rcv_audience_ref(&nobody);
    return &nobody;
}

void um_rcv_audience_add(struct um_rcv_audience *audience, lbm_rcv_t *rcv)
{
    atomic_fetch_add_explicit(&rcv->refs, 1, memory_order_relaxed);
    audience->receivers[audience->count++] = rcv;
}

bool um_rcv_audience_has(const struct um_rcv_audience *audience, const lbm_rcv_t *rcv)
{
    for (unsigned i = 0; audience != NULL && i < audience->count; i++) {
        if (audience->receivers[i] == rcv) {
            return true;
        }
    }
    return false;
}

void um_rcv_audience_ref(struct um_rcv_audience *audience)
{
    atomic_fetch_add_explicit(&audience->refs, 1, memory_order_relaxed);
}

struct um_rcv_audience *um_rcv_audience_recycle(struct um_rcv_audience *audience)
{
    if (audience == NULL || atomic_fetch_sub_explicit(&audience->refs, 1, memory_order_acq_rel) != 1) {
        return NULL;
    }
    for (unsigned i = 0; i < audience->count; i++) {
        um_rcv_unref(audience->receivers[i]);
    }
    audience->count = 0;
    atomic_init(&audience->refs, 1);
    return audience;
}

void um_rcv_audience_unref(struct um_rcv_audience *audience)
{
    um_free(um_rcv_audience_recycle(audience));
}

void um_rcv_audience_changes(const struct um_rcv_audience *before, const struct um_rcv_audience *after,
                             void (*left)(lbm_rcv_t *rcv, void *arg), void (*came)(lbm_rcv_t *rcv, void *arg),
                             void *arg)
{
    unsigned next = 0;
    for (unsigned i = 0; before != NULL && i < before->count; i++) {
        if (after != NULL && next < after->count && after->receivers[next] == before->receivers[i]) {
            next++;
        } else {
            left(before->receivers[i], arg);
        }
    }
    for (; after != NULL && next < after->count; next++) {
        came(after->receivers[next], arg);
    }
}
