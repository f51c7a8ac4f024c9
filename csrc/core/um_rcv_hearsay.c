/* Sources joined on hearsay, each in three lists in order of addition. See um_rcv_hearsay.h. */
#include "core/um_rcv_hearsay.h"

#include <string.h>

#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"

/* All pointers, no padding. */
struct crowd_key {
    const void *topic; /* NULL: all topics of the session */
    const void *session;
};

struct um_rcv_crowd {
    struct crowd_key key;
    struct um_list list; /* oldest first */
    unsigned count;
};

struct um_rcv_hearsay {
    struct um_timer_wheel *wheel;
    struct um_rcv_hearsay_ops ops;
    struct um_timer timer;  /* armed while somebody makes way */
    struct um_map crowds;   /* struct crowd_key -> um_rcv_crowd */
    struct um_list all;     /* um_rcv_hearer.node, oldest first */
    struct um_list leaving; /* the same, of those that make way */
    struct um_rcv_hearsay_stats stats;
};

static struct um_rcv_crowd *enter(struct um_rcv_hearsay *hearsay, const void *topic, const void *session,
                                  struct um_list *node)
{
    struct crowd_key key = {topic, session};
    struct um_rcv_crowd *crowd = um_map_get(&hearsay->crowds, &key, sizeof key);
    if (crowd == NULL) {
        crowd = um_calloc(1, sizeof *crowd);
        if (crowd == NULL || um_map_put(&hearsay->crowds, &key, sizeof key, crowd) != 0) {
            um_free(crowd);
            return NULL;
        }
        crowd->key = key;
        um_list_init(&crowd->list);
    }
    um_list_push_back(&crowd->list, node);
    crowd->count++;
    return crowd;
}

static void leave(struct um_rcv_hearsay *hearsay, struct um_rcv_crowd **crowd, struct um_list *node)
{
    if (*crowd == NULL) {
        return;
    }
    um_list_remove(node);
    if (--(*crowd)->count == 0) {
        um_map_remove(&hearsay->crowds, &(*crowd)->key, sizeof(*crowd)->key);
        um_free(*crowd);
    }
    *crowd = NULL;
}

/* In place of the only one, in a topic that has had several. */
static struct um_rcv_hearer crowded;

static void enter_topic(struct um_rcv_hearsay *hearsay, struct um_rcv_hearsay_topic *topic, const void *session,
                        struct um_rcv_hearer *hearer)
{
    struct um_rcv_hearer *first = topic->alone;
    if (first == NULL) {
        topic->alone = hearer;
        hearer->alone = true;
        hearer->alone_on = topic;
        return;
    }
    if (first != &crowded) {
        topic->alone = &crowded;
        first->alone = false;
        first->topic =
            first->session == NULL ? NULL : enter(hearsay, topic, first->session->key.session, &first->topic_node);
    }
    hearer->topic = enter(hearsay, topic, session, &hearer->topic_node);
}

static void leave_topic(struct um_rcv_hearsay *hearsay, struct um_rcv_hearer *hearer)
{
    if (!hearer->alone) {
        leave(hearsay, &hearer->topic, &hearer->topic_node);
        return;
    }
    hearer->alone_on->alone = NULL;
    hearer->alone = false;
    hearer->topic = NULL;
}

void um_rcv_hearsay_remove(struct um_rcv_hearsay *hearsay, struct um_rcv_hearer *hearer)
{
    if (hearer->counted) {
        hearer->counted = false;
        hearsay->stats.count--;
        leave(hearsay, &hearer->session, &hearer->session_node);
        leave_topic(hearsay, hearer);
    }
    um_list_remove(&hearer->node);
}

/* Later: the caller may be in the midst of a walk, and an application is told of the end. */
static void displace(struct um_rcv_hearsay *hearsay, struct um_rcv_hearer *hearer, uint64_t now_ns)
{
    um_rcv_hearsay_remove(hearsay, hearer);
    um_list_push_back(&hearsay->leaving, &hearer->node);
    hearsay->stats.displaced++;
    um_timer_arm(hearsay->wheel, &hearsay->timer, now_ns);
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_WARNING, "Core-20210-1",
                   "%u sources are joined of which nothing was received: the oldest make way for new ones (%llu so "
                   "far); are advertisements forged?",
                   hearsay->stats.count, (unsigned long long)hearsay->stats.displaced);
}

void um_rcv_hearsay_add(struct um_rcv_hearsay *hearsay, struct um_rcv_hearsay_topic *topic, const void *session,
                        struct um_rcv_hearer *hearer, uint64_t now_ns)
{
    um_list_push_back(&hearsay->all, &hearer->node);
    hearer->counted = true;
    hearer->session = enter(hearsay, NULL, session, &hearer->session_node);
    enter_topic(hearsay, topic, session, hearer);
    hearsay->stats.count++;
    struct um_list *oldest = NULL;
    if (!hearer->alone && hearer->topic != NULL && hearer->topic->count > UM_RCV_HEARSAY_TOPIC_MAX) {
        oldest = &UM_CONTAINER_OF(um_list_first(&hearer->topic->list), struct um_rcv_hearer, topic_node)->node;
    } else if (hearer->session != NULL && hearer->session->count > UM_RCV_HEARSAY_SESSION_MAX) {
        oldest = &UM_CONTAINER_OF(um_list_first(&hearer->session->list), struct um_rcv_hearer, session_node)->node;
    } else if (hearsay->stats.count > UM_RCV_HEARSAY_MAX) {
        oldest = um_list_first(&hearsay->all);
    }
    if (oldest != NULL) {
        displace(hearsay, UM_CONTAINER_OF(oldest, struct um_rcv_hearer, node), now_ns);
    }
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_hearsay *hearsay = UM_CONTAINER_OF(timer, struct um_rcv_hearsay, timer);
    struct um_list *node;
    while ((node = um_list_first(&hearsay->leaving)) != NULL) {
        um_list_remove(node);
        hearsay->ops.make_way(UM_CONTAINER_OF(node, struct um_rcv_hearer, node), now_ns);
    }
}

void um_rcv_hearer_init(struct um_rcv_hearer *hearer)
{
    memset(hearer, 0, sizeof *hearer);
    um_list_init(&hearer->node);
    um_list_init(&hearer->session_node);
    um_list_init(&hearer->topic_node);
}

struct um_rcv_hearsay *um_rcv_hearsay_create(struct um_timer_wheel *wheel, const struct um_rcv_hearsay_ops *ops)
{
    struct um_rcv_hearsay *hearsay = um_calloc(1, sizeof *hearsay);
    if (hearsay == NULL) {
        return NULL;
    }
    hearsay->wheel = wheel;
    hearsay->ops = *ops;
    um_timer_init(&hearsay->timer, on_timer);
    um_map_init(&hearsay->crowds, NULL);
    um_list_init(&hearsay->all);
    um_list_init(&hearsay->leaving);
    return hearsay;
}

void um_rcv_hearsay_destroy(struct um_rcv_hearsay *hearsay)
{
    if (hearsay == NULL) {
        return;
    }
    um_timer_cancel(hearsay->wheel, &hearsay->timer);
    um_map_clear(&hearsay->crowds);
    um_free(hearsay);
}

void um_rcv_hearsay_stats(const struct um_rcv_hearsay *hearsay, struct um_rcv_hearsay_stats *out)
{
    *out = hearsay->stats;
}
