/* How many transport sessions may be joining at a time, and whose turn it is.
 * Advertisements can be forged by the thousand; each one believed costs a
 * descriptor or memory until it proves to be nothing. A join takes a place; where
 * none is free the source waits, in a ring of those who advertise and, for each of
 * them, a ring of the addresses they name, so that nobody's flood keeps others
 * out. An engine: time comes in, joins go out by callback; the loop's timer wheel
 * or a test's drives it. Everything is [loop]. */
#ifndef UM_CORE_RCV_JOINS_H
#define UM_CORE_RCV_JOINS_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_list.h"
#include "base/um_timer.h"
#include "transport/session/um_rcv_session.h"

struct um_rcv_joins;
struct um_rcv_join_place; /* taken by a session that is joining */

/* Part of whatever stands for a topic. */
struct um_rcv_join_topic {
    struct um_list waiting;
    unsigned places[UM_RCV_JOIN_KINDS];
    unsigned begun;              /* joins of it */
    struct um_rcv_joining *only; /* the first and only one of them, which is in no table; most topics have one source */
};

/* What an advertisement said. */
struct um_rcv_join_offer {
    lbm_transport_source_info_t info;
    int32_t cost;
    uint32_t told_by; /* address of who advertised it, network order */
};

struct um_rcv_join_hold {
    struct um_list node;             /* place->holders */
    struct um_rcv_join_place *place; /* NULL: has proved itself, or never needed one */
};

/* Of the group of an LBT-RM session, as long as it is held. */
struct um_rcv_join_group {
    struct um_rcv_join_hold hold;
    struct um_rcv_joining *joining;
};

/* Part of whatever stands for one topic of one source, from um_rcv_joins_begin() to um_rcv_joins_end(). */
struct um_rcv_joining {
    struct um_rcv_join_hold session;
    struct um_rcv_join_group *group; /* NULL: holds none */
    struct um_rcv_join_topic *topic;
    struct um_rcv_join_offer offer;
    uint64_t heard_ns; /* last advertisement; the owner moves it on */
    bool withdrawn;    /* set by the owner: its source is gone, so that it will not wait for another turn */
};

struct um_rcv_join_ops {
    /* A source that waited: look at it again, as if it were advertised now. There is a place for it. */
    void (*again)(struct um_rcv_join_topic *topic, const struct um_rcv_join_offer *offer, uint64_t now_ns);
    /* Others wait, and this one has brought nothing: leave the session, with um_rcv_joins_end(). It waits, too,
     * unless it was withdrawn. */
    void (*yield)(struct um_rcv_joining *joining, uint64_t now_ns);
    /* A source that waited was not advertised any more, or found the line full, and is out of it: others see to it
     * from here on. */
    void (*unheard)(struct um_rcv_join_topic *topic, const struct um_rcv_join_offer *offer, uint64_t now_ns);
};

struct um_rcv_joins_stats {
    uint64_t deferred;           /* sources that had to wait */
    uint64_t forgotten;          /* of those, the ones that lost their place in the line */
    uint64_t yielded;            /* joins under way that were broken off for others */
    uint64_t refused;            /* sources of a topic beyond the number that one session may have */
    uint64_t waiting, under_way; /* now: sources, sessions */
};

struct um_rcv_joins *um_rcv_joins_create(struct um_timer_wheel *wheel, const struct um_rcv_join_ops *ops); /* or NULL */
void um_rcv_joins_destroy(struct um_rcv_joins *joins); /* nothing is joining by then */
void um_rcv_join_topic_init(struct um_rcv_join_topic *topic);
void um_rcv_joins_forget_topic(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic); /* none of it is joining */

/* The one that began with this source, or NULL. */
struct um_rcv_joining *um_rcv_joins_find(const struct um_rcv_joins *joins, const struct um_rcv_join_topic *topic,
                                         const lbm_transport_source_info_t *info);
/* May this source be joined now? If not, it waits for its turn as long as it is advertised; ops.unheard is called for
 * whoever finds no room in the line. */
bool um_rcv_joins_may(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                      const struct um_rcv_join_offer *offer, uint64_t now_ns);
/* It is being joined, which may have been allowed, and waits no more. 0, or -1: out of memory, or begun already. */
int um_rcv_joins_begin(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                       const struct um_rcv_join_offer *offer, struct um_rcv_joining *joining, uint64_t now_ns);
/* Something was received: the session needs its place no more. */
void um_rcv_joins_heard(struct um_rcv_joins *joins, struct um_rcv_joining *joining, uint64_t now_ns);
void um_rcv_joins_end(struct um_rcv_joins *joins, struct um_rcv_joining *joining, uint64_t now_ns);
/* It was withdrawn: it waits no more. False: it did not wait. */
bool um_rcv_joins_forget(struct um_rcv_joins *joins, const struct um_rcv_join_topic *topic,
                         const lbm_transport_source_info_t *info);
void um_rcv_joins_stats(const struct um_rcv_joins *joins, struct um_rcv_joins_stats *out);

#endif
