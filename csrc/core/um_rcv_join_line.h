/* Sources that wait for their turn to be joined: a ring of those who advertise
 * and, for each of them, a ring of the addresses they name. Bounded: in a full
 * line the longest part makes room. Part of um_rcv_joins.h. Everything is [loop]. */
#ifndef UM_CORE_RCV_JOIN_LINE_H
#define UM_CORE_RCV_JOIN_LINE_H

#include "base/um_map.h"
#include "core/um_rcv_joins.h"

#define UM_RCV_JOIN_WAITING_MAX 8192u
#define UM_RCV_JOIN_WAITING_SHARE 2u /* the part of it that one who advertises may take */
#define UM_RCV_JOIN_CLASSES 14u      /* of lengths up to UM_RCV_JOIN_WAITING_MAX, by powers of two */

struct um_rcv_join_address;

struct um_rcv_join_waiting {
    struct um_list node;       /* address->line */
    struct um_list topic_node; /* topic->waiting */
    struct um_list age_node;   /* line->by_age */
    struct um_rcv_join_address *address;
    struct um_rcv_join_topic *topic;
    struct um_rcv_join_offer offer;
    enum um_rcv_join_kind kind;
    uint64_t heard_ns;
};

struct um_rcv_join_line {
    struct um_map tellers;                      /* ip -> struct teller */
    struct um_list ring;                        /* struct teller */
    struct um_list crowds[UM_RCV_JOIN_CLASSES]; /* the same, by how many wait */
    struct um_map entries;                      /* struct um_rcv_join_key -> um_rcv_join_waiting */
    struct um_list by_age;                      /* not heard of for the longest time first */
    unsigned of_kind[UM_RCV_JOIN_KINDS], count;
};

/* What tells sources of a topic apart, or with topic index 0, sessions; all words, no padding. */
struct um_rcv_join_key {
    const struct um_rcv_join_topic *topic;
    lbm_transport_source_info_t info;
};
struct um_rcv_join_key um_rcv_join_key(const struct um_rcv_join_topic *topic, const lbm_transport_source_info_t *info);

void um_rcv_join_line_init(struct um_rcv_join_line *line);
void um_rcv_join_line_clear(struct um_rcv_join_line *line); /* nobody waits by then */

struct um_rcv_join_waiting *um_rcv_join_line_find(const struct um_rcv_join_line *line,
                                                  const struct um_rcv_join_topic *topic,
                                                  const lbm_transport_source_info_t *info);
/* It was advertised again. */
void um_rcv_join_line_heard(struct um_rcv_join_line *line, struct um_rcv_join_waiting *waiting, uint64_t heard_ns);
/* Is it full for this one? `*crowded`: who is to make room for it, or NULL: nobody, so that it cannot wait. */
bool um_rcv_join_line_full(const struct um_rcv_join_line *line, const struct um_rcv_join_offer *offer,
                           struct um_rcv_join_waiting **crowded);
/* False: out of memory. */
bool um_rcv_join_line_add(struct um_rcv_join_line *line, struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                          const struct um_rcv_join_offer *offer, uint64_t heard_ns);
void um_rcv_join_line_remove(struct um_rcv_join_line *line, struct um_rcv_join_waiting *waiting);
/* Whose turn it is; he goes to the end. Somebody waits. */
struct um_rcv_join_waiting *um_rcv_join_line_next(struct um_rcv_join_line *line);
/* Who was not heard of for the longest time, or NULL. */
struct um_rcv_join_waiting *um_rcv_join_line_oldest(const struct um_rcv_join_line *line);

#endif
