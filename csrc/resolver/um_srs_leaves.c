/* See um_srs_leaves.h. */
#include "resolver/um_srs_leaves.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_hash.h"
#include "base/um_mem.h"

struct leave {
    struct um_table_link link; /* by OTID */
    struct um_list node;       /* leaves->told, while nothing is due */
    struct um_timer timer;     /* when it is to be told, or forgotten */
    struct um_srs_leaves *leaves;
    struct um_tr_source source; /* its topic is `topic` */
    uint64_t told_ns, interval_ns;
    uint8_t readers; /* to be told */
    char topic[];
};

struct um_srs_leaves {
    struct um_srs_journal *journal;
    struct um_timer_wheel *wheel;
    void (*changed)(void *user);
    void *user;
    struct um_table table;
    struct um_list told; /* leave.node, told longest ago first */
};

struct um_srs_leaves *um_srs_leaves_create(struct um_srs_journal *journal, struct um_timer_wheel *wheel,
                                           void (*changed)(void *user), void *user)
{
    struct um_srs_leaves *leaves = um_calloc(1, sizeof *leaves);
    if (leaves == NULL) {
        um_error_nomem("sources left", sizeof *leaves);
        return NULL;
    }
    leaves->journal = journal;
    leaves->wheel = wheel;
    leaves->changed = changed;
    leaves->user = user;
    um_list_init(&leaves->told);
    return leaves;
}

size_t um_srs_leaves_count(const struct um_srs_leaves *leaves)
{
    return leaves->table.count;
}

static void forget(struct leave *leave)
{
    struct um_srs_leaves *leaves = leave->leaves;
    um_timer_cancel(leaves->wheel, &leave->timer);
    um_list_remove(&leave->node);
    um_table_remove(&leaves->table, &leave->link);
    um_free(leave);
}

void um_srs_leaves_destroy(struct um_srs_leaves *leaves)
{
    if (leaves == NULL) {
        return;
    }
    for (size_t i = 0; i < leaves->table.capacity; i++) {
        while (leaves->table.buckets[i] != NULL) {
            forget(UM_CONTAINER_OF(leaves->table.buckets[i], struct leave, link));
        }
    }
    um_table_free(&leaves->table);
    um_free(leaves);
}

/* One without memory for the journal is told a second later. */
static void tell(struct leave *leave, uint64_t now_ns)
{
    struct um_srs_leaves *leaves = leave->leaves;
    if (um_srs_journal_leave(leaves->journal, &leave->source, leave->readers) != 0) {
        um_timer_arm(leaves->wheel, &leave->timer, now_ns + UM_SRS_LEAVE_FIRST_NS);
        return;
    }
    uint64_t next_ns = leave->interval_ns == 0 ? UM_SRS_LEAVE_FIRST_NS : 2 * leave->interval_ns;
    leave->interval_ns = next_ns < UM_SRS_LEAVE_MOST_NS ? next_ns : UM_SRS_LEAVE_MOST_NS;
    leave->readers = 0;
    leave->told_ns = now_ns;
    um_list_push_back(&leaves->told, &leave->node);
    um_timer_arm(leaves->wheel, &leave->timer, now_ns + UM_SRS_LEAVE_KEPT_NS);
    leaves->changed(leaves->user);
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct leave *leave = UM_CONTAINER_OF(timer, struct leave, timer);
    if (leave->readers != 0) {
        tell(leave, now_ns);
    } else {
        forget(leave);
    }
}

static struct leave *find(const struct um_srs_leaves *leaves, uint32_t hash, const struct um_tr_source *source)
{
    struct um_table_link *link = um_table_find(&leaves->table, hash);
    for (; link != NULL; link = um_table_find_next(link)) {
        struct leave *leave = UM_CONTAINER_OF(link, struct leave, link);
        if (memcmp(leave->source.otid, source->otid, sizeof source->otid) == 0 &&
            strcmp(leave->topic, source->topic) == 0) {
            return leave;
        }
    }
    return NULL;
}

/* NULL: no room, or out of memory. */
static struct leave *add(struct um_srs_leaves *leaves, uint32_t hash, const struct um_tr_source *source)
{
    struct um_list *oldest = um_list_first(&leaves->told);
    if (leaves->table.count >= UM_SRS_LEAVES_MAX) {
        if (oldest == NULL) {
            return NULL;
        }
        forget(UM_CONTAINER_OF(oldest, struct leave, node));
    }
    size_t len = strlen(source->topic);
    struct leave *leave = um_calloc(1, sizeof *leave + len + 1);
    if (leave == NULL || um_table_add(&leaves->table, &leave->link, hash) != 0) {
        um_free(leave);
        return NULL;
    }
    memcpy(leave->topic, source->topic, len);
    leave->leaves = leaves;
    um_list_init(&leave->node);
    um_timer_init(&leave->timer, on_timer);
    return leave;
}

void um_srs_leaves_ended(struct um_srs_leaves *leaves, uint64_t now_ns, const struct um_tr_source *source,
                         unsigned reader)
{
    uint32_t hash = um_hash_bytes(source->otid, sizeof source->otid);
    struct leave *leave = find(leaves, hash, source);
    if (leave == NULL && (leave = add(leaves, hash, source)) == NULL) {
        um_srs_journal_leave(leaves->journal, source, (uint8_t)(1u << reader)); /* at once, or what brings it back is
                                                                                   the next registration */
        leaves->changed(leaves->user);
        return;
    }
    if (leave->readers == 0) { /* several servers may list it, and are all told */
        uint64_t may_ns = leave->told_ns + leave->interval_ns;
        um_list_remove(&leave->node);
        um_timer_arm(leaves->wheel, &leave->timer, may_ns > now_ns ? may_ns : now_ns);
    }
    leave->source = *source;
    leave->source.topic = leave->topic;
    leave->readers |= (uint8_t)(1u << reader);
}
