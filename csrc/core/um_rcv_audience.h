/* Who hears a topic: an immutable list of its receivers. The context's loop makes
 * a new one when receivers come and go, and hands it to every flow of the topic,
 * which walks its own without looking at anything that another loop changes. The
 * list holds its receivers: they exist as long as some flow may call them. */
#ifndef UM_CORE_RCV_AUDIENCE_H
#define UM_CORE_RCV_AUDIENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <lbm/lbm.h>

struct um_rcv_audience {
    atomic_uint refs; /* any thread */
    unsigned count, room;
    lbm_rcv_t *receivers[]; /* in order of their start; fixed when the list is handed to the first flow */
};

struct um_rcv_audience *um_rcv_audience_new(unsigned room); /* empty, one reference; NULL: out of memory */
struct um_rcv_audience *um_rcv_audience_nobody(void);       /* a reference on the one without receivers */
void um_rcv_audience_add(struct um_rcv_audience *audience, lbm_rcv_t *rcv);
bool um_rcv_audience_has(const struct um_rcv_audience *audience, const lbm_rcv_t *rcv);
void um_rcv_audience_ref(struct um_rcv_audience *audience);
void um_rcv_audience_unref(struct um_rcv_audience *audience); /* any thread */
/* Drops the caller's reference. The memory of what nobody else has is given back empty, for the next one; or NULL. */
struct um_rcv_audience *um_rcv_audience_recycle(struct um_rcv_audience *audience);

/* What changed from one list to the next: those that are only in `before`, then those only in `after`. Receivers start
 * at the end of the list, so both are in the same order. */
void um_rcv_audience_changes(const struct um_rcv_audience *before, const struct um_rcv_audience *after,
                             void (*left)(lbm_rcv_t *rcv, void *arg), void (*came)(lbm_rcv_t *rcv, void *arg),
                             void *arg);

#endif
