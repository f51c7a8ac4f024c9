/* Messages as applications hold them (lbm_msg_t is the first member). The
 * library has one hold on a message while it delivers it; every lbm_msg_retain
 * adds one of the application. The last hold gone frees it, from any thread,
 * and the message knows nothing of its context. */
#ifndef UM_CORE_MESSAGE_H
#define UM_CORE_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "core/um_event_queue.h"

struct um_immediate_handler;
struct um_msg_extras;
struct um_rcv_channel;
struct um_rcv_flow;

#define UM_MSG_MAGIC 0x554d4d53u      /* "UMMS" */
#define UM_MSG_LIBRARY_HOLD (1 << 30) /* in `holds`: the library's own */

enum um_msg_mark {
    UM_MSG_TEMPLATE = 1,   /* of a delivery controller: handed over when retained */
    UM_MSG_DELIVERING = 2, /* a callback may hold the template now */
    UM_MSG_FRAGMENT = 4,
    UM_MSG_BUF_HELD = 8 /* the reference on buf is ours */
};

struct um_msg {
    lbm_msg_t pub;
    _Atomic uint32_t magic; /* any thread reads */
    atomic_int holds;       /* any thread */
    /* From here to `origin`: of the thread that delivers, until the last hold is gone; then of whoever drops it. */
    uint8_t marks;              /* enum um_msg_mark */
    uint8_t slot;               /* of a template: its place among those of its lane */
    uint32_t lost;              /* of a burst: how many sequence numbers; 0: not known, or another message */
    struct um_buf *buf;         /* holds pub.data; NULL for events */
    struct um_rcv_flow *origin; /* of a template; NULL once it is handed over */
    struct um_msg *replacement; /* made by the first retain of a template; becomes the next template */
    uint64_t wall_ns;           /* of a template: the time in pub.tsp */
    lbm_msg_fragment_info_t frag;
    lbm_msg_channel_info_t channel; /* flags 0: it has none; pub.channel_info, for receivers that are to see it */
    struct um_msg_extras *extras;   /* um_msg_extras.h: behind pub.properties and the like; NULL: there was none yet */
    struct um_event event;          /* on an event queue */
    struct um_rcv_channel *taker;   /* with rcv: a hold on the channel that takes it; NULL: the receiver does */
    union {
        lbm_rcv_t *rcv;                       /* with event: a reference on the receiver */
        struct um_immediate_handler *handler; /* or, of an immediate message without one, whom to call instead */
    };
};

static inline bool um_msg_is(const struct um_msg *msg, enum um_msg_mark mark)
{
    return (msg->marks & mark) != 0;
}

static inline void um_msg_mark(struct um_msg *msg, enum um_msg_mark mark, bool on)
{
    msg->marks = (uint8_t)(on ? msg->marks | mark : msg->marks & ~mark);
}

/* How many sequence numbers a loss or burst tells of; 0: it is something else. A burst of which it is not known counts
 * as one. */
static inline uint64_t um_msg_losses(const struct um_msg *msg)
{
    if (msg->pub.type == LBM_MSG_UNRECOVERABLE_LOSS_BURST && msg->lost > 0) {
        return msg->lost;
    }
    return msg->pub.type == LBM_MSG_UNRECOVERABLE_LOSS || msg->pub.type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
}

/* Library hold only; public fields zero except source and topic. NULL: out of memory (no error set). */
struct um_msg *um_msg_create(const char *source, const char *topic);
/* Independent copy for a queue: same fields, own buffer reference, own response of a request. NULL: out of memory (no
 * error set). */
struct um_msg *um_msg_clone(const struct um_msg *msg);
/* The same for what may wait for long: it keeps no receive buffer of which it needs only a small part, but a copy of
 * that. um_msg_kept_size() tells before how much memory it will have. */
struct um_msg *um_msg_clone_kept(const struct um_msg *msg);
size_t um_msg_kept_size(const struct um_msg *msg);
void um_msg_set_topic(struct um_msg *msg, const char *topic);
void um_msg_release(struct um_msg *msg); /* drops the library hold */
/* The template for the next delivery: `msg` itself, or what replaces it after the application retained it. */
struct um_msg *um_msg_template_next(struct um_msg *msg);
int um_msg_retain(struct um_msg *msg); /* 0, or -1 + UM_ENOMEM, UM_EINVAL */
int um_msg_delete(struct um_msg *msg); /* 0, or -1 + UM_EINVAL: not retained */

#endif
