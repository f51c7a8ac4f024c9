/* The inside of a collector, shared by its parts: um_collector.c (life, the descriptor),
 * um_collector_gather.c (links and appending, on context threads), um_collector_take.c (batches, on the thread that
 * takes) and um_collector_drops.c (what goes when it is full, and how that is told). One short lock per collector,
 * under which nothing waits.
 *
 * Life of a byte: appended to `filling`; the taker swaps `filling` for an empty chunk when it has handed out all of
 * `draining`; batches are views of it. With UM_ON_FULL_CONFLATE messages wait one by one in `newest` instead. */
#ifndef UM_CORE_COLLECTOR_PARTS_H
#define UM_CORE_COLLECTOR_PARTS_H

#include <string.h>

#include "core/um_collector.h"
#include "core/um_collector_line.h"
#include "core/um_collector_store.h"
#include "core/um_collector_tally.h"
#include "core/um_rcv_private.h"
#include "net/um_loop.h"

#define UM_COLLECTOR_ROUTES 1024u           /* power of two */
#define UM_COLLECTOR_LOSS_ROOM (64u * 1024) /* beyond the bound, for events and the records of losses */

/* The indexes of a source seen before, by its number. */
struct um_collector_route {
    uint64_t source_id; /* 0: unused */
    uint32_t topic, source;
    bool dropping;  /* a record tells of the loss already */
    uint64_t turn;  /* it is in the chunk of this turn, */
    size_t told_at; /* there */
};

/* Where the one thread is that takes. */
enum um_taker {
    UM_TAKER_AWAY,
    UM_TAKER_INSIDE,
    UM_TAKER_SLEEPS /* inside, waits for records, and nobody has woken it yet */
};

struct um_collector_stct {
    /* What a message touches. */
    _Atomic uint32_t magic;   /* any thread reads, also while the object is deleted */
    unsigned fork_generation; /* fixed */
    struct um_lock lock;
    enum um_taker taker;        /* lock */
    size_t plain_max;           /* fixed: max_bytes; 0: not every message is one more record */
    bool sees_numbers;          /* fixed before there is a receiver: see um_collector_see_numbers() */
    struct um_chunk *filling;   /* lock */
    size_t queued_bytes;        /* lock; records and new names included */
    size_t queued_records;      /* lock */
    int fd;                     /* lock; -1: not asked for yet */
    bool signaled;              /* lock: the descriptor is readable */
    um_collector_stats_t stats; /* lock */
    /* The rest. */
    struct um_condition changed; /* with lock */
    size_t max_bytes;            /* fixed */
    int on_full;                 /* fixed */
    struct um_store *store;
    uint64_t turn;                  /* lock: counts the chunks that were filled */
    struct um_line newest;          /* lock: UM_ON_FULL_CONFLATE: what waits, instead of chunks */
    struct um_line gone;            /* lock: before all others: bursts for messages that had to go, and such events */
    struct um_waiting *telling;     /* lock: of `gone`, the burst of the record that went last; NULL: another turn */
    uint32_t telling_topic;         /* lock: of that record */
    uint32_t telling_source;        /* lock */
    uint64_t untold;                /* lock: dropped messages for whose record there was no room */
    int64_t untold_ns;              /* lock: when the last of these was dropped */
    bool full;                      /* lock: TCP sessions are left unread until half is taken */
    bool woken;                     /* lock: the running or next take returns 0 */
    bool deleting;                  /* lock */
    bool kept;                      /* lock: the descriptor is to be readable whatever waits */
    int users;                      /* lock: receivers */
    struct um_list links;           /* lock */
    struct um_chunk *draining;      /* lock: NULL when all of it is handed out, or had to go */
    size_t handed_out;              /* lock: records of draining */
    struct um_chunk *spare;         /* lock: becomes `filling` at the swap */
    struct um_tally tally;          /* lock: of stats.dropped, those of each source */
    struct um_collector_route last; /* lock */
    struct um_collector_route routes[UM_COLLECTOR_ROUTES]; /* lock */
};

struct um_collector_link {
    struct um_list node; /* collector->links */
    um_collector_t *collector;
    lbm_context_t *ctx;
    int uses;                  /* collector's lock */
    bool holding;              /* collector's lock: sessions of the context may be held since the last news */
    struct um_command release; /* runs on the context's loop */
};

/* What a message, or an event, becomes in a record: its payload, or of a burst the number of messages lost. */
struct um_arrival {
    const lbm_msg_t *msg;
    const struct um_rcv_flow *origin;
    struct um_collector_link *link;
    bool payload; /* it is a message */
    const void *data;
    size_t len;
    int tail_flags;        /* beside those of the message: what its tail has */
    um_record_tail_t tail; /* goes behind the payload */
    uint64_t lost;         /* of a burst */
    int64_t wall_ns;
};

/* ---- all with the lock ---- */

static inline bool um_collector_wants_notice(const um_collector_t *c)
{
    return c->taker == UM_TAKER_SLEEPS || (c->fd >= 0 && !c->signaled);
}

/* The card's or the kernel's time where it was asked for, else that of the read. */
static inline int64_t um_collector_arrival_ns(const lbm_msg_t *msg, int64_t wall_ns)
{
    const lbm_timespec_t *hr = &msg->hr_timestamp;
    return hr->tv_sec == 0 ? wall_ns : (int64_t)(hr->tv_sec * UM_NS_PER_SEC + hr->tv_nsec);
}

/* All of a record but its offset and indexes. */
static inline void um_collector_fill(um_record_t *record, const lbm_msg_t *msg, size_t len, int64_t wall_ns)
{
    bool precise = msg->hr_timestamp.tv_sec != 0;
    record->length = (uint32_t)len;
    record->sequence_number = msg->sequence_number;
    record->flags = msg->flags | (precise ? UM_MSG_FLAG_HR_TIMESTAMP : 0);
    record->type = msg->type;
    record->timestamp_ns = um_collector_arrival_ns(msg, wall_ns);
}

static inline um_record_t um_collector_record_of(const struct um_arrival *a, const struct um_collector_route *route)
{
    um_record_t record = {.topic = route->topic, .source = route->source};
    um_collector_fill(&record, a->msg, a->len, a->wall_ns);
    record.flags |= a->tail_flags;
    return record;
}

/* What it takes up of the bound, beside its record. */
static inline size_t um_collector_room_of(const struct um_arrival *a)
{
    return a->len + um_tail_len(a->msg->flags | a->tail_flags, &a->tail);
}

/* There is room. `tail` is read where the record's flags say that it has one. */
static inline void um_collector_write(um_collector_t *c, um_record_t record, const void *data,
                                      const um_record_tail_t *tail)
{
    struct um_chunk *chunk = c->filling;
    size_t len = record.length;
    record.offset = chunk->data_len;
    chunk->records[chunk->count++] = record;
    if (len > 0) {
        memcpy(chunk->data + chunk->data_len, data, len);
    }
    if (__builtin_expect((record.flags & UM_RECORD_TAIL) != 0, 0)) {
        um_tail_put(chunk->data + chunk->data_len + len, record.flags, tail);
        len += um_tail_len(record.flags, tail);
    }
    chunk->data_len += len;
    c->queued_records++;
    c->queued_bytes += len + sizeof record;
}

static inline bool um_collector_is_message(int type)
{
    return type == LBM_MSG_DATA || type == LBM_MSG_REQUEST;
}

/* How many lost messages a record of a loss tells of; 0: it is another event. */
static inline uint64_t um_collector_losses_of(int type, const void *data)
{
    uint64_t count = type == LBM_MSG_UNRECOVERABLE_LOSS;
    if (type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        memcpy(&count, data, sizeof count);
    }
    return count;
}

/* um_collector.c */
void um_collector_notify(um_collector_t *c); /* records wait: wakes the taker, makes the descriptor readable */
void um_collector_clear_descriptor(um_collector_t *c); /* not readable any more if nothing waits */

/* um_collector_gather.c */
void um_collector_tell_room(um_collector_t *c); /* contexts whose sessions are held read again */

/* um_collector_take.c */
bool um_collector_swap(um_collector_t *c);    /* what was gathered becomes `draining`; false: out of memory */
void um_collector_drained(um_collector_t *c); /* all of `draining` is handed out, or had to go */

/* um_collector_drops.c */
void um_collector_count_dropped(um_collector_t *c, const char *source); /* a message, or an event that is no loss */
/* What has come is dropped; `route` may be NULL. */
void um_collector_drop(um_collector_t *c, struct um_collector_route *route, const struct um_arrival *a);
/* So many messages are lost; burst NULL: one without names tells of them. */
void um_collector_add_lost(um_collector_t *c, struct um_waiting *burst, uint64_t count, int64_t wall_ns);
void um_collector_tell_untold(um_collector_t *c); /* one burst for what no other had room for */
/* Makes room for `len` bytes. False: that is not possible. */
bool um_collector_drop_oldest(um_collector_t *c, size_t len);
/* The message that waits longest goes, but not `newest`. */
void um_collector_give_up_topic(um_collector_t *c, const struct um_waiting *newest);

#endif
