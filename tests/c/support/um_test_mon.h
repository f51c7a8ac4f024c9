/* What the tests of monitoring share: a receive controller that keeps the last record of each kind and counts them, and
 * the options that keep the contexts for records on the loopback network. Include after um_test_rcv.h. */
#ifndef UM_SUPPORT_TEST_MON_H
#define UM_SUPPORT_TEST_MON_H

#include <lbm/lbmmon.h>

#include "um_test_rcv.h"

#define MON_NET "context|default_interface=127.0.0.1/32;context|resolver_multicast_interface=127.0.0.1/32"

struct mon_seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int sources, receivers, event_queues, contexts, topics, patterns, passed; /* records */
    lbm_src_transport_stats_t source;
    lbm_rcv_transport_stats_t receiver;
    lbm_event_queue_stats_t event_queue;
    lbm_context_stats_t context;
    lbm_rcv_topic_stats_t topic;
    lbm_wildcard_rcv_stats_t pattern;
    lbmmon_packet_attributes_t attributes; /* of the last record */
    int passed_type;
    char passed_data[4096];
    size_t passed_len;
    lbmmon_rctl_t *control;
};

#define MON_SEEN_INIT                                                                                                  \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

/* A callback of one kind: keeps the record and its attributes, counts. */
#define MON_CALLBACK(function, type, member, counter)                                                                  \
    static inline void function(const void *block, const type *stats, void *clientd)                                   \
    {                                                                                                                  \
        struct mon_seen *seen = clientd;                                                                               \
        pthread_mutex_lock(&seen->lock);                                                                               \
        seen->member = *stats;                                                                                         \
        memcpy(&seen->attributes, block, sizeof seen->attributes);                                                     \
        seen->counter++;                                                                                               \
        pthread_cond_broadcast(&seen->changed);                                                                        \
        pthread_mutex_unlock(&seen->lock);                                                                             \
    }

MON_CALLBACK(mon_on_source, lbm_src_transport_stats_t, source, sources)
MON_CALLBACK(mon_on_receiver, lbm_rcv_transport_stats_t, receiver, receivers)
MON_CALLBACK(mon_on_event_queue, lbm_event_queue_stats_t, event_queue, event_queues)
MON_CALLBACK(mon_on_context, lbm_context_stats_t, context, contexts)
MON_CALLBACK(mon_on_topic, lbm_rcv_topic_stats_t, topic, topics)
MON_CALLBACK(mon_on_pattern, lbm_wildcard_rcv_stats_t, pattern, patterns)

static inline void mon_on_passed(const lbmmon_packet_hdr_t *head, lbmmon_packet_attributes_t *attributes, void *block,
                                 void *data, size_t len, void *clientd)
{
    struct mon_seen *seen = clientd;
    pthread_mutex_lock(&seen->lock);
    seen->passed++;
    seen->passed_type = head->mType >> 8 | (head->mType & 0xff) << 8;
    seen->attributes = *attributes;
    seen->passed_len = len < sizeof seen->passed_data ? len : sizeof seen->passed_data;
    memcpy(seen->passed_data, data, seen->passed_len);
    pthread_cond_broadcast(&seen->changed);
    pthread_mutex_unlock(&seen->lock);
}

static inline void mon_must(int rc, const char *what)
{
    if (rc == -1) {
        fprintf(stderr, "%s: %s\n", what, lbmmon_errmsg());
        abort();
    }
}
#define MON_MUST(call) mon_must((call), #call)

static inline void mon_set(lbmmon_rctl_attr_t *attr, int option, void (*callback)(void))
{
    MON_MUST(lbmmon_rctl_attr_setopt(attr, option, &callback, sizeof callback));
}

static inline void mon_listen(struct mon_seen *seen, const lbmmon_format_func_t *format, const char *format_opts,
                              const lbmmon_transport_func_t *transport, const char *transport_opts)
{
    lbmmon_rctl_attr_t *attr;
    MON_MUST(lbmmon_rctl_attr_create(&attr));
    mon_set(attr, LBMMON_RCTL_SOURCE_CALLBACK, (void (*)(void))mon_on_source);
    mon_set(attr, LBMMON_RCTL_RECEIVER_CALLBACK, (void (*)(void))mon_on_receiver);
    mon_set(attr, LBMMON_RCTL_EVENT_QUEUE_CALLBACK, (void (*)(void))mon_on_event_queue);
    mon_set(attr, LBMMON_RCTL_CONTEXT_CALLBACK, (void (*)(void))mon_on_context);
    mon_set(attr, LBMMON_RCTL_RECEIVER_TOPIC_CALLBACK, (void (*)(void))mon_on_topic);
    mon_set(attr, LBMMON_RCTL_WILDCARD_RECEIVER_CALLBACK, (void (*)(void))mon_on_pattern);
    mon_set(attr, LBMMON_RCTL_PASSTHROUGH_CALLBACK, (void (*)(void))mon_on_passed);
    MON_MUST(lbmmon_rctl_create(&seen->control, format, format_opts, transport, transport_opts, attr, seen));
    MON_MUST(lbmmon_rctl_attr_delete(attr));
}

/* At least so many records of a kind; false after HANG_SECONDS. */
static inline bool mon_wait(struct mon_seen *seen, const int *count, int least)
{
    pthread_mutex_lock(&seen->lock);
    bool ok = wait_for_count(&seen->changed, &seen->lock, count, least);
    pthread_mutex_unlock(&seen->lock);
    return ok;
}

/* A copy of what has been told, to be read while more comes. Its lock is not to be used. */
static inline struct mon_seen mon_now(struct mon_seen *seen)
{
    pthread_mutex_lock(&seen->lock);
    struct mon_seen copy = *seen;
    pthread_mutex_unlock(&seen->lock);
    return copy;
}

static inline int mon_count(struct mon_seen *seen, const int *count)
{
    pthread_mutex_lock(&seen->lock);
    int now = *count;
    pthread_mutex_unlock(&seen->lock);
    return now;
}

#endif
