/* Channels that receivers have subscribed to: a table by number, of a receiver or
 * of all receivers of a wildcard, and what becomes of a message with or without a
 * channel. The context's loop changes the table; every loop that delivers reads
 * it without a lock. A channel that has been taken out is freed when no loop
 * looks at the table of before any more and none of its messages is queued. */
#ifndef UM_CORE_RCV_CHANNELS_H
#define UM_CORE_RCV_CHANNELS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "core/um_message.h"

struct um_rcv_channel {
    _Atomic(struct um_rcv_channel *) next; /* of its bucket */
    lbm_uint32_t number;                   /* fixed, as all before `refs` */
    lbm_rcv_cb_proc proc;                  /* NULL: the receiver's, with its clientd */
    void *clientd;
    atomic_int refs;                            /* any thread: one of the table, one of each queued message */
    atomic_bool closed;                         /* any thread: what is queued is not delivered any more */
    lbm_event_queue_cancel_cb_proc cancel_proc; /* fixed when closed; NULL: nobody waits for the last message */
    void *cancel_clientd;
};

struct um_rcv_channels {
    size_t buckets;
    atomic_uint count; /* 0: as if there was no table */
    _Atomic(struct um_rcv_channel *) heads[];
};

struct um_rcv_channels *um_rcv_channels_new(size_t buckets); /* NULL: out of memory (no error set) */
void um_rcv_channels_free(struct um_rcv_channels *channels); /* nothing with NULL; nobody looks at it any more */
struct um_rcv_channel *um_rcv_channel_find(struct um_rcv_channels *channels, lbm_uint32_t number); /* NULL: none */
/* [loop] of the context. The channel is not there yet. false: no memory. */
bool um_rcv_channels_add(struct um_rcv_channels *channels, lbm_uint32_t number, lbm_rcv_cb_proc proc, void *clientd);
/* [loop] of the context. The table's hold on it is the caller's. NULL: it is not there. */
struct um_rcv_channel *um_rcv_channels_take_out(struct um_rcv_channels *channels, lbm_uint32_t number);
/* Any thread. `dispatching`: in lbm_event_dispatch. The last one calls who waits for it. */
void um_rcv_channel_unref(struct um_rcv_channel *channel, bool dispatching);

/* Values of null_channel_behavior and unrecognized_channel_behavior, before it starts. */
void um_rcv_channels_want(lbm_rcv_t *rcv, int null_channel, int unrecognized);

/* What the receiver is to be given of a message. [loop] of its flow */
enum um_rcv_channel_fate {
    UM_RCV_TO_RECEIVER, /* its callback */
    UM_RCV_TO_CHANNEL,  /* that of *channel */
    UM_RCV_UNWANTED     /* nothing: the options say so */
};
enum um_rcv_channel_fate um_rcv_channel_fate(const lbm_rcv_t *rcv, const struct um_msg *msg,
                                             struct um_rcv_channel **channel, bool *shown);

/* Behind lbm_rcv_*subscribe_channel* and lbm_wildcard_rcv_*subscribe_channel*; of the two, `wrcv` is checked and `rcv`
 * is not. Not in callbacks of a loop. */
struct um_channel_call {
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wrcv; /* NULL: it is for `rcv` */
    lbm_uint32_t number;
    const char *api;
};
int um_rcv_subscribe_channel(const struct um_channel_call *call, lbm_rcv_cb_proc proc, void *clientd);
/* Those of the list, before any loop knows the receiver. 0, or -1 + UM_EINVAL (named by call->api), UM_ENOMEM; what has
 * been subscribed by then goes with the receiver. */
struct um_channel_list {
    const um_channel_subscription_t *channels;
    size_t count;
};
int um_rcv_channels_begin(struct um_channel_call *call, const struct um_channel_list *list);
int um_rcv_unsubscribe_channel(const struct um_channel_call *call, const lbm_event_queue_cancel_cb_info_t *cbinfo);

#endif
