/* Sources that are joined on hearsay: advertised on a session, and nothing of
 * their own was received yet. An advertisement that names a genuine session costs
 * its forger nothing more, so their number is bounded: of one topic on one session,
 * on one session, in all. The oldest one makes way for a new one. An engine: the
 * loop's timer wheel or a test's drives it. Everything is [loop]. */
#ifndef UM_CORE_RCV_HEARSAY_H
#define UM_CORE_RCV_HEARSAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_list.h"
#include "base/um_timer.h"

#define UM_RCV_HEARSAY_TOPIC_MAX 512u /* of one topic on one session: half of what it may have there */
#define UM_RCV_HEARSAY_SESSION_MAX 4096u
#define UM_RCV_HEARSAY_MAX 16384u

struct um_rcv_hearsay;
struct um_rcv_crowd; /* those of one topic on one session, or of one session */

/* Part of whatever stands for one topic of one source. */
struct um_rcv_hearer {
    struct um_list node; /* of all, or of those that make way */
    struct um_list session_node, topic_node;
    struct um_rcv_crowd *session; /* NULL: not counted there */
    union {
        struct um_rcv_crowd *topic;            /* NULL: not counted there */
        struct um_rcv_hearsay_topic *alone_on; /* alone */
    };
    bool alone;   /* the only one of its topic, so far */
    bool counted; /* false: not in the table, or making way */
};

/* Part of whatever stands for a topic; zeroed memory is ready for use. Most topics have one source, which needs no
 * crowd. */
struct um_rcv_hearsay_topic {
    struct um_rcv_hearer
        *alone; /* NULL: it has none yet; um_rcv_hearsay.c has a mark for those that have had several */
};

struct um_rcv_hearsay_ops {
    /* Leave the session: others need the room. From the timer, never from inside the calls below. It is out of the
     * table. */
    void (*make_way)(struct um_rcv_hearer *hearer, uint64_t now_ns);
};

struct um_rcv_hearsay_stats {
    uint64_t displaced; /* those that made way */
    unsigned count;     /* now */
};

struct um_rcv_hearsay *um_rcv_hearsay_create(struct um_timer_wheel *wheel,
                                             const struct um_rcv_hearsay_ops *ops); /* or NULL */
void um_rcv_hearsay_destroy(struct um_rcv_hearsay *hearsay);                        /* nothing is in it by then */

void um_rcv_hearer_init(struct um_rcv_hearer *hearer);
/* It is on this session; `session` only tells one from another. Without memory it is bounded in all only. */
void um_rcv_hearsay_add(struct um_rcv_hearsay *hearsay, struct um_rcv_hearsay_topic *topic, const void *session,
                        struct um_rcv_hearer *hearer, uint64_t now_ns);
/* Something of it was received, or it left. Harmless when it is not in the table. */
void um_rcv_hearsay_remove(struct um_rcv_hearsay *hearsay, struct um_rcv_hearer *hearer);
void um_rcv_hearsay_stats(const struct um_rcv_hearsay *hearsay, struct um_rcv_hearsay_stats *out);

#endif
