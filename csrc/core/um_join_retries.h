/* Joins that brought nothing, and when each is tried again: both sides of topic
 * resolution may be quiescent by the time the cause ends, so nobody else would
 * ask. An engine: time comes in, attempts go out by callback; the loop's timer
 * wheel or a test's drives it. Forged advertisements make entries too, so their
 * number is bounded, and so is the time an entry is kept; the bounds never keep
 * out a source that something was received from. Everything is [loop]. */
#ifndef UM_CORE_JOIN_RETRIES_H
#define UM_CORE_JOIN_RETRIES_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_list.h"
#include "base/um_timer.h"

#define UM_JOIN_RETRY_FIRST_NS UM_NS_PER_SEC     /* from the first failure to the second attempt */
#define UM_JOIN_RETRY_MAX_NS (5 * UM_NS_PER_SEC) /* between the starts of two attempts, at most */
/* From the last sign of a source (an advertisement, something received) to its end here. */
#define UM_JOIN_RETRY_KEPT_NS (2 * 3600 * UM_NS_PER_SEC)
#define UM_JOIN_RETRIES_MAX 65536u                  /* entries of a context */
#define UM_JOIN_RETRIES_TOPIC_MAX 1024u             /* entries of a topic */
#define UM_JOIN_RETRIES_ADDRESS_MAX 1024u           /* transport sessions at one address */
#define UM_JOIN_RETRIES_UNDER_WAY_MAX 128u          /* transport sessions being tried at a time; others stand in line */
#define UM_JOIN_RETRY_PAUSE_NS (UM_NS_PER_SEC / 10) /* after an attempt that took longer than the interval */

struct um_join_retries;
struct um_join_retry; /* one topic of one source */

/* Part of whatever stands for a topic. */
struct um_join_retry_topic {
    struct um_list list; /* um_join_retry.topic_node, the one heard of longest ago first */
    unsigned count;
};

struct um_join_retry_ops {
    /* Join. One of um_join_retry_failed() and um_join_retry_forget() follows, from inside or later. */
    void (*attempt)(struct um_join_retry_topic *topic, struct um_join_retry *retry,
                    const lbm_transport_source_info_t *info, uint64_t now_ns);
    /* The entry is gone: not heard of for too long, or others needed the room. `why` is for a log line. */
    void (*given_up)(struct um_join_retry_topic *topic, const lbm_transport_source_info_t *info, const char *why,
                     uint64_t now_ns);
};

struct um_join_retries_stats {
    uint64_t failed;  /* joins, first ones and retries, that brought nothing */
    uint64_t refused; /* sources that are not tried again because a bound is reached */
    unsigned waiting; /* entries now */
};

struct um_join_retries *um_join_retries_create(struct um_timer_wheel *wheel, const struct um_join_retry_ops *ops);
void um_join_retries_destroy(struct um_join_retries *retries); /* no topic has entries any more */

void um_join_retry_topic_init(struct um_join_retry_topic *topic);
void um_join_retries_forget_topic(struct um_join_retries *retries, struct um_join_retry_topic *topic, uint64_t now_ns);

/* A join that belongs to no entry brought nothing (failed), or a session that did bring something was lost. `proved`:
 * something was received from this source once, so it is kept beyond all bounds and tried in preference. False: a bound
 * is reached, or there is no memory. */
bool um_join_retries_keep(struct um_join_retries *retries, struct um_join_retry_topic *topic,
                          const lbm_transport_source_info_t *info, bool proved, uint64_t now_ns);
/* A join, first one or retry, brought nothing. */
void um_join_retries_count_failure(struct um_join_retries *retries);
struct um_join_retry *um_join_retries_find(struct um_join_retries *retries, const struct um_join_retry_topic *topic,
                                           const lbm_transport_source_info_t *info);
/* It was advertised. */
void um_join_retry_heard(struct um_join_retry *retry, uint64_t now_ns);
/* The attempt brought nothing: there will be another one. */
void um_join_retry_failed(struct um_join_retry *retry, uint64_t now_ns);
/* It succeeded, or is wanted no more. `answered`: whatever else waits for the same transport session is tried at once.
 */
void um_join_retry_forget(struct um_join_retry *retry, bool answered, uint64_t now_ns);

void um_join_retries_stats(const struct um_join_retries *retries, struct um_join_retries_stats *out);

#endif
