/* Places of joining sessions, and who takes the next. See um_rcv_joins.h. */
#include "core/um_rcv_joins.h"

#include <string.h>

#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "core/um_rcv_join_line.h"

#define TICK_NS (100 * UM_NS_PER_MS) /* while somebody waits */
#define LATE_TICKS_MAX 10u           /* that count as a stop of the process; beyond, it is a loop that is always late */
#define EXAMINE_MAX 1024u            /* of those who wait, at a time */
#define KEPT_NS (60 * UM_NS_PER_SEC) /* in the line, after the last advertisement */
#define SESSION_SOURCES_MAX 1024u    /* sources of one topic on one session */

/* How many may be under way: in all, of one who advertises, of one topic, at one address; each less than the one
 * before, so that somebody else always finds a place. hold_ns: what a join has before it must yield to those who wait.
 */
struct limits {
    unsigned all, teller, topic, address;
    uint64_t hold_ns;
};

static const struct limits LIMITS[UM_RCV_JOIN_KINDS] = {
    /* A descriptor each; answered within round-trip times. */
    [UM_RCV_JOIN_ASKS] = {256, 192, 224, 64, 400 * UM_NS_PER_MS},
    /* A descriptor each; an idle source is heard every 10 s by default. */
    [UM_RCV_JOIN_GROUP] = {128, 96, 112, 64, 12 * UM_NS_PER_SEC},
    [UM_RCV_JOIN_MEMORY] = {4096, 3072, 3584, 2048, 12 * UM_NS_PER_SEC},
};

struct um_rcv_join_place {
    struct um_list node;             /* joins->by_start, oldest first */
    struct um_list holders;          /* um_rcv_join_hold.node */
    struct um_rcv_join_topic *topic; /* of the one that took it; NULL: that one left */
    struct um_rcv_join_offer offer;
    enum um_rcv_join_kind kind;
    uint64_t since_ns; /* as on_time() has it */
    bool yielding;     /* its holders are leaving one by one */
};

struct um_rcv_joins {
    struct um_timer_wheel *wheel;
    struct um_rcv_join_ops ops;
    struct um_timer timer;  /* armed while somebody waits */
    uint64_t waiting_ns;    /* since when, as on_time() has it */
    uint64_t late_ns;       /* by which the timer was late, in all */
    unsigned late_ticks;    /* one after the other */
    struct um_map sessions; /* session -> um_rcv_join_place */
    struct um_map groups;   /* multicast group and port -> um_rcv_join_place */
    struct um_list by_start[UM_RCV_JOIN_KINDS];
    unsigned taken[UM_RCV_JOIN_KINDS];
    struct um_rcv_join_line line;
    struct um_map begun;  /* struct um_rcv_join_key -> um_rcv_joining, but for um_rcv_join_topic.only */
    struct um_map counts; /* struct crowd_key, or of sources on a session um_rcv_join_key -> number, as a pointer; those
                             sources that are in `begun` */
    const struct um_rcv_join_waiting *turn; /* looks for a place: it is his turn; not in the line any more */
    struct um_rcv_joins_stats stats;
};

/* ---- keys and counts ---- */

struct crowd_key {
    uint32_t named; /* 0: the address of who advertises, 1: the address that is named */
    uint32_t ip;
    uint32_t kind;
};

static lbm_transport_source_info_t session_of(const lbm_transport_source_info_t *info)
{
    lbm_transport_source_info_t session = *info;
    session.topic_idx = 0;
    session.transport_idx = 0;
    return session;
}

/* What a place is for: a session, or a group that was opened for sessions of which none has proved itself. */
static lbm_transport_source_info_t place_key(enum um_rcv_join_kind kind, const lbm_transport_source_info_t *info)
{
    if (kind != UM_RCV_JOIN_GROUP) {
        return session_of(info);
    }
    lbm_transport_source_info_t group;
    memset(&group, 0, sizeof group);
    group.type = info->type;
    group.mc_group = info->mc_group;
    group.dest_port = info->dest_port;
    return group;
}

static struct um_rcv_join_key session_key(const struct um_rcv_join_topic *topic,
                                          const lbm_transport_source_info_t *info)
{
    struct um_rcv_join_key key = um_rcv_join_key(topic, info);
    key.info.topic_idx = 0;
    return key;
}

static uintptr_t count_of(const struct um_rcv_joins *joins, const void *key, size_t len)
{
    return (uintptr_t)um_map_get(&joins->counts, key, len);
}

static int count_up(struct um_rcv_joins *joins, const void *key, size_t len)
{
    return um_map_put(&joins->counts, key, len, (void *)(count_of(joins, key, len) + 1));
}

/* Never allocates: the key is there. */
static void count_down(struct um_rcv_joins *joins, const void *key, size_t len)
{
    uintptr_t count = count_of(joins, key, len) - 1;
    if (count == 0) {
        um_map_remove(&joins->counts, key, len);
    } else {
        um_map_put(&joins->counts, key, len, (void *)count);
    }
}

static struct crowd_key crowd_key(const struct um_rcv_join_offer *offer, bool named, enum um_rcv_join_kind kind)
{
    return (struct crowd_key){.named = named, .ip = named ? offer->info.src_ip : offer->told_by, .kind = kind};
}

/* ---- places ---- */

/* The kind of the place that a session takes; one on a new group takes a place for the group as well. */
static enum um_rcv_join_kind session_kind(enum um_rcv_join_kind kind)
{
    return kind == UM_RCV_JOIN_GROUP ? UM_RCV_JOIN_MEMORY : kind;
}

static struct um_map *places_of(struct um_rcv_joins *joins, enum um_rcv_join_kind kind)
{
    return kind == UM_RCV_JOIN_GROUP ? &joins->groups : &joins->sessions;
}

static struct um_rcv_join_place *place_of(struct um_rcv_joins *joins, enum um_rcv_join_kind kind,
                                          const lbm_transport_source_info_t *info)
{
    lbm_transport_source_info_t key = place_key(kind, info);
    return um_map_get(places_of(joins, kind), &key, sizeof key);
}

/* NULL: none. */
static struct um_rcv_join_hold *hold_of(struct um_rcv_joining *joining, enum um_rcv_join_kind kind)
{
    return kind != UM_RCV_JOIN_GROUP ? &joining->session : joining->group != NULL ? &joining->group->hold : NULL;
}

static struct um_rcv_joining *holder_of(const struct um_rcv_join_place *place, struct um_list *node)
{
    return place->kind == UM_RCV_JOIN_GROUP ? UM_CONTAINER_OF(node, struct um_rcv_join_group, hold.node)->joining
                                            : UM_CONTAINER_OF(node, struct um_rcv_joining, session.node);
}

static void end_hold(struct um_rcv_joining *joining, enum um_rcv_join_kind kind)
{
    struct um_rcv_join_hold *hold = hold_of(joining, kind);
    hold->place = NULL;
    um_list_remove(&hold->node);
    if (kind == UM_RCV_JOIN_GROUP) {
        um_free(joining->group);
        joining->group = NULL;
    }
}

static bool room(const struct um_rcv_joins *joins, const struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                 const struct um_rcv_join_offer *offer)
{
    const struct limits *most = &LIMITS[kind];
    struct crowd_key teller = crowd_key(offer, false, kind), address = crowd_key(offer, true, kind);
    return joins->taken[kind] < most->all && topic->places[kind] < most->topic &&
           count_of(joins, &teller, sizeof teller) < most->teller &&
           count_of(joins, &address, sizeof address) < most->address;
}

/* The time without that in which this process did not run: an answer may be there all the same, and unread. */
static uint64_t on_time(const struct um_rcv_joins *joins, uint64_t now_ns)
{
    return now_ns - joins->late_ns;
}

static void soon(struct um_rcv_joins *joins, uint64_t now_ns)
{
    if (joins->line.count > 0 && (!um_timer_armed(&joins->timer) || joins->timer.due_ns > now_ns)) {
        um_timer_arm(joins->wheel, &joins->timer, now_ns);
    }
}

static struct um_rcv_join_place *take(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic,
                                      enum um_rcv_join_kind kind, const struct um_rcv_join_offer *offer,
                                      uint64_t now_ns)
{
    lbm_transport_source_info_t key = place_key(kind, &offer->info);
    struct crowd_key teller = crowd_key(offer, false, kind), address = crowd_key(offer, true, kind);
    struct um_rcv_join_place *place = um_calloc(1, sizeof *place);
    if (place == NULL || um_map_put(places_of(joins, kind), &key, sizeof key, place) != 0) {
        um_free(place);
        return NULL;
    }
    int told = count_up(joins, &teller, sizeof teller);
    if (told != 0 || count_up(joins, &address, sizeof address) != 0) {
        if (told == 0) {
            count_down(joins, &teller, sizeof teller);
        }
        um_map_remove(places_of(joins, kind), &key, sizeof key);
        um_free(place);
        return NULL;
    }
    um_list_init(&place->holders);
    um_list_push_back(&joins->by_start[kind], &place->node);
    place->topic = topic;
    place->offer = *offer;
    place->kind = kind;
    place->since_ns = on_time(joins, now_ns);
    topic->places[kind]++;
    joins->taken[kind]++;
    joins->stats.under_way += kind != UM_RCV_JOIN_GROUP;
    return place;
}

static void disown(struct um_rcv_join_place *place)
{
    if (place->topic != NULL) {
        place->topic->places[place->kind]--;
        place->topic = NULL;
    }
}

static void give_back(struct um_rcv_joins *joins, struct um_rcv_join_place *place, uint64_t now_ns)
{
    lbm_transport_source_info_t key = place_key(place->kind, &place->offer.info);
    struct crowd_key teller = crowd_key(&place->offer, false, place->kind);
    struct crowd_key address = crowd_key(&place->offer, true, place->kind);
    struct um_list *node;
    while ((node = um_list_first(&place->holders)) != NULL) {
        end_hold(holder_of(place, node), place->kind);
    }
    disown(place);
    count_down(joins, &teller, sizeof teller);
    count_down(joins, &address, sizeof address);
    um_map_remove(places_of(joins, place->kind), &key, sizeof key);
    um_list_remove(&place->node);
    joins->taken[place->kind]--;
    joins->stats.under_way -= place->kind != UM_RCV_JOIN_GROUP;
    um_free(place);
    soon(joins, now_ns);
}

/* Hold the place that is there, or if one is needed, a new one. 0, or -1 out of memory. */
static int hold(struct um_rcv_joins *joins, struct um_rcv_joining *joining, enum um_rcv_join_kind kind, bool needed,
                uint64_t now_ns)
{
    struct um_rcv_join_place *place = place_of(joins, kind, &joining->offer.info);
    if (place == NULL && !needed) {
        return 0;
    }
    if (kind == UM_RCV_JOIN_GROUP && (joining->group = um_calloc(1, sizeof *joining->group)) == NULL) {
        return -1;
    }
    if (place == NULL && (place = take(joins, joining->topic, kind, &joining->offer, now_ns)) == NULL) {
        if (kind == UM_RCV_JOIN_GROUP) {
            um_free(joining->group);
            joining->group = NULL;
        }
        return -1;
    }
    if (kind == UM_RCV_JOIN_GROUP) {
        joining->group->joining = joining;
    }
    struct um_rcv_join_hold *hold = hold_of(joining, kind);
    hold->place = place;
    um_list_push_back(&place->holders, &hold->node);
    return 0;
}

static void let_go(struct um_rcv_joins *joins, struct um_rcv_joining *joining, enum um_rcv_join_kind kind,
                   uint64_t now_ns)
{
    const struct um_rcv_join_hold *hold = hold_of(joining, kind);
    struct um_rcv_join_place *place = hold == NULL ? NULL : hold->place;
    if (place == NULL) {
        return;
    }
    end_hold(joining, kind);
    if (place->topic == joining->topic) {
        disown(place);
    }
    if (um_list_empty(&place->holders) && !place->yielding) {
        give_back(joins, place, now_ns);
    }
}

/* ---- the line ---- */

/* It ends here; others see to it. */
static void hand_on(struct um_rcv_joins *joins, struct um_rcv_join_waiting *waiting, uint64_t now_ns)
{
    struct um_rcv_join_topic *topic = waiting->topic;
    struct um_rcv_join_offer offer = waiting->offer;
    joins->stats.forgotten++;
    um_rcv_join_line_remove(&joins->line, waiting);
    joins->ops.unheard(topic, &offer, now_ns);
}

/* Without memory it is as if the advertisement had been lost. */
static void wait_in_line(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                         const struct um_rcv_join_offer *offer, uint64_t heard_ns, uint64_t now_ns)
{
    struct um_rcv_join_waiting *waiting = um_rcv_join_line_find(&joins->line, topic, &offer->info), *crowded;
    if (waiting != NULL) {
        um_rcv_join_line_heard(&joins->line, waiting, heard_ns);
        return;
    }
    if (um_rcv_join_line_full(&joins->line, offer, &crowded)) {
        if (crowded == NULL) {
            joins->stats.forgotten++;
            joins->ops.unheard(topic, offer, now_ns);
            return;
        }
        hand_on(joins, crowded, now_ns);
    }
    if (!um_rcv_join_line_add(&joins->line, topic, kind, offer, heard_ns)) {
        return;
    }
    joins->stats.deferred++;
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_NOTICE, "Core-20209-1",
                   "%llu sources are being joined, %llu wait for their turn (%llu so far): are advertisements forged?",
                   (unsigned long long)joins->stats.under_way, (unsigned long long)joins->line.count,
                   (unsigned long long)joins->stats.deferred);
    if (!um_timer_armed(&joins->timer)) {
        joins->waiting_ns = on_time(joins, now_ns);
        um_timer_arm(joins->wheel, &joins->timer, joins->taken[kind] < LIMITS[kind].all ? now_ns : now_ns + TICK_NS);
    }
}

/* ---- turns ---- */

static void expire(struct um_rcv_joins *joins, uint64_t now_ns)
{
    struct um_rcv_join_waiting *waiting;
    while ((waiting = um_rcv_join_line_oldest(&joins->line)) != NULL && now_ns - waiting->heard_ns >= KEPT_NS) {
        hand_on(joins, waiting, now_ns);
    }
}

static void yield(struct um_rcv_joins *joins, struct um_rcv_join_place *place, uint64_t now_ns)
{
    struct um_list *node;
    joins->stats.yielded++;
    place->yielding = true;
    while ((node = um_list_first(&place->holders)) != NULL) {
        struct um_rcv_joining *joining = holder_of(place, node);
        struct um_rcv_join_topic *topic = joining->topic;
        struct um_rcv_join_offer offer = joining->offer;
        uint64_t heard_ns = joining->heard_ns;
        bool withdrawn = joining->withdrawn;
        joins->ops.yield(joining, now_ns);
        if (withdrawn) {
            continue;
        }
        if (now_ns - heard_ns < KEPT_NS) {
            wait_in_line(joins, topic, place->kind, &offer, heard_ns, now_ns);
        } else {
            joins->stats.forgotten++;
            joins->ops.unheard(topic, &offer, now_ns);
        }
    }
    give_back(joins, place, now_ns);
}

/* Joins that have brought nothing make room, as many as there are waiting: once what had come by then was read, which a
 * whole tick in time makes sure of. */
static void yield_old(struct um_rcv_joins *joins, enum um_rcv_join_kind kind, uint64_t now_ns)
{
    struct um_list *node;
    for (unsigned most = joins->line.of_kind[kind]; most > 0 && (node = um_list_first(&joins->by_start[kind])) != NULL;
         most--) {
        struct um_rcv_join_place *place = UM_CONTAINER_OF(node, struct um_rcv_join_place, node);
        if (on_time(joins, now_ns) - place->since_ns < LIMITS[kind].hold_ns) {
            return;
        }
        yield(joins, place, now_ns);
    }
}

static bool any_room(const struct um_rcv_joins *joins)
{
    for (int kind = 0; kind < UM_RCV_JOIN_KINDS; kind++) {
        if (joins->line.of_kind[kind] > 0 && joins->taken[kind] < LIMITS[kind].all) {
            return true;
        }
    }
    return false;
}

static void admit(struct um_rcv_joins *joins, uint64_t now_ns)
{
    uint64_t misses = 0;
    for (unsigned i = 0; i < EXAMINE_MAX && any_room(joins) && misses < joins->line.count; i++) {
        struct um_rcv_join_waiting *waiting = um_rcv_join_line_next(&joins->line);
        if (place_of(joins, waiting->kind, &waiting->offer.info) == NULL &&
            !room(joins, waiting->topic, waiting->kind, &waiting->offer)) {
            misses++;
            continue;
        }
        struct um_rcv_join_waiting offered = *waiting;
        misses = 0;
        um_rcv_join_line_remove(&joins->line, waiting);
        joins->turn = &offered;
        joins->ops.again(offered.topic, &offered.offer, now_ns);
        joins->turn = NULL;
    }
}

/* The process was stopped for so long. What was read before the timer ran has begun by the clock of before. */
static void was_late(struct um_rcv_joins *joins, uint64_t late_ns, uint64_t now_ns)
{
    joins->late_ns += late_ns;
    uint64_t on_time_ns = on_time(joins, now_ns);
    if (joins->waiting_ns > on_time_ns) {
        joins->waiting_ns = on_time_ns;
    }
    for (int kind = 0; kind < UM_RCV_JOIN_KINDS; kind++) {
        const struct um_list *places = &joins->by_start[kind];
        for (struct um_list *node = places->prev; node != places; node = node->prev) {
            struct um_rcv_join_place *place = UM_CONTAINER_OF(node, struct um_rcv_join_place, node);
            if (place->since_ns <= on_time_ns) {
                break;
            }
            place->since_ns = on_time_ns;
        }
    }
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_joins *joins = UM_CONTAINER_OF(timer, struct um_rcv_joins, timer);
    uint64_t late_ns = now_ns - timer->due_ns;
    joins->late_ticks = late_ns > TICK_NS ? joins->late_ticks + 1 : 0;
    bool late = joins->late_ticks > 0 && joins->late_ticks <= LATE_TICKS_MAX;
    if (late) {
        was_late(joins, late_ns, now_ns);
    }
    expire(joins, now_ns);
    bool may_yield = !late && on_time(joins, now_ns) - joins->waiting_ns >= TICK_NS;
    for (int kind = 0; may_yield && kind < UM_RCV_JOIN_KINDS; kind++) {
        yield_old(joins, (enum um_rcv_join_kind)kind, now_ns);
    }
    admit(joins, now_ns);
    um_timer_cancel(joins->wheel, timer);
    if (joins->line.count > 0) {
        um_timer_arm(joins->wheel, timer, now_ns + TICK_NS);
    }
}

/* ---- the joins ---- */

struct um_rcv_joining *um_rcv_joins_find(const struct um_rcv_joins *joins, const struct um_rcv_join_topic *topic,
                                         const lbm_transport_source_info_t *info)
{
    struct um_rcv_join_key key = um_rcv_join_key(topic, info);
    if (topic->only != NULL) {
        struct um_rcv_join_key only = um_rcv_join_key(topic, &topic->only->offer.info);
        return memcmp(&key, &only, sizeof key) == 0 ? topic->only : NULL;
    }
    return topic->begun == 0 ? NULL : um_map_get(&joins->begun, &key, sizeof key);
}

/* 0, or -1: out of memory. */
static int enter_tables(struct um_rcv_joins *joins, struct um_rcv_joining *joining)
{
    struct um_rcv_join_key session = session_key(joining->topic, &joining->offer.info);
    struct um_rcv_join_key key = um_rcv_join_key(joining->topic, &joining->offer.info);
    if (count_up(joins, &session, sizeof session) != 0) {
        return -1;
    }
    if (um_map_put(&joins->begun, &key, sizeof key, joining) != 0) {
        count_down(joins, &session, sizeof session);
        return -1;
    }
    return 0;
}

/* 0, or -1: out of memory. */
static int enter_topic(struct um_rcv_joins *joins, struct um_rcv_joining *joining)
{
    struct um_rcv_join_topic *topic = joining->topic;
    if (topic->only != NULL) {
        if (enter_tables(joins, topic->only) != 0) {
            return -1;
        }
        topic->only = NULL;
    }
    if (topic->begun == 0) {
        topic->only = joining;
    } else if (enter_tables(joins, joining) != 0) {
        return -1;
    }
    topic->begun++;
    return 0;
}

static void leave_topic(struct um_rcv_joins *joins, struct um_rcv_joining *joining)
{
    struct um_rcv_join_topic *topic = joining->topic;
    topic->begun--;
    if (topic->only == joining) {
        topic->only = NULL;
        return;
    }
    struct um_rcv_join_key session = session_key(topic, &joining->offer.info);
    struct um_rcv_join_key key = um_rcv_join_key(topic, &joining->offer.info);
    um_map_remove(&joins->begun, &key, sizeof key);
    count_down(joins, &session, sizeof session);
}

/* Of this topic, on the session of this source. */
static uintptr_t sources_on_session(const struct um_rcv_joins *joins, const struct um_rcv_join_topic *topic,
                                    const lbm_transport_source_info_t *info)
{
    struct um_rcv_join_key session = session_key(topic, info);
    return topic->begun < SESSION_SOURCES_MAX ? 0 : count_of(joins, &session, sizeof session);
}

static bool lacks(struct um_rcv_joins *joins, const struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                  const struct um_rcv_join_offer *offer)
{
    return place_of(joins, kind, &offer->info) == NULL &&
           ((joins->turn == NULL && joins->line.of_kind[kind] > 0) || !room(joins, topic, kind, offer));
}

bool um_rcv_joins_may(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                      const struct um_rcv_join_offer *offer, uint64_t now_ns)
{
    if (sources_on_session(joins, topic, &offer->info) >= SESSION_SOURCES_MAX) {
        joins->stats.refused++;
        return false;
    }
    if (kind == UM_RCV_JOIN_FREE) {
        return true;
    }
    enum um_rcv_join_kind lacking = kind;
    if (!lacks(joins, topic, kind, offer)) {
        lacking = session_kind(kind);
        if (lacking == kind || !lacks(joins, topic, lacking, offer)) {
            return true;
        }
    }
    wait_in_line(joins, topic, lacking, offer, joins->turn != NULL ? joins->turn->heard_ns : now_ns, now_ns);
    return false;
}

int um_rcv_joins_begin(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                       const struct um_rcv_join_offer *offer, struct um_rcv_joining *joining, uint64_t now_ns)
{
    if (um_rcv_joins_find(joins, topic, &offer->info) != NULL) {
        return -1;
    }
    memset(joining, 0, sizeof *joining);
    um_list_init(&joining->session.node);
    joining->topic = topic;
    joining->offer = *offer;
    if (enter_topic(joins, joining) != 0) {
        return -1;
    }
    joining->heard_ns = joins->turn != NULL ? joins->turn->heard_ns : now_ns;
    if (hold(joins, joining, session_kind(kind), kind != UM_RCV_JOIN_FREE, now_ns) != 0 ||
        (um_rcv_transport_join_kind(offer->info.type) == UM_RCV_JOIN_GROUP &&
         hold(joins, joining, UM_RCV_JOIN_GROUP, kind == UM_RCV_JOIN_GROUP, now_ns) != 0)) {
        um_rcv_joins_end(joins, joining, now_ns);
        return -1;
    }
    um_rcv_joins_forget(joins, topic, &offer->info);
    return 0;
}

void um_rcv_joins_heard(struct um_rcv_joins *joins, struct um_rcv_joining *joining, uint64_t now_ns)
{
    if (joining->session.place != NULL && !joining->session.place->yielding) {
        give_back(joins, joining->session.place, now_ns);
    }
    if (joining->group != NULL && !joining->group->hold.place->yielding) {
        give_back(joins, joining->group->hold.place, now_ns);
    }
}

void um_rcv_joins_end(struct um_rcv_joins *joins, struct um_rcv_joining *joining, uint64_t now_ns)
{
    leave_topic(joins, joining);
    let_go(joins, joining, UM_RCV_JOIN_MEMORY, now_ns);
    let_go(joins, joining, UM_RCV_JOIN_GROUP, now_ns);
}

bool um_rcv_joins_forget(struct um_rcv_joins *joins, const struct um_rcv_join_topic *topic,
                         const lbm_transport_source_info_t *info)
{
    struct um_rcv_join_waiting *waiting = um_rcv_join_line_find(&joins->line, topic, info);
    if (waiting != NULL) {
        um_rcv_join_line_remove(&joins->line, waiting);
    }
    return waiting != NULL;
}

void um_rcv_join_topic_init(struct um_rcv_join_topic *topic)
{
    memset(topic, 0, sizeof *topic);
    um_list_init(&topic->waiting);
}

void um_rcv_joins_forget_topic(struct um_rcv_joins *joins, struct um_rcv_join_topic *topic)
{
    struct um_list *node;
    while ((node = um_list_first(&topic->waiting)) != NULL) {
        um_rcv_join_line_remove(&joins->line, UM_CONTAINER_OF(node, struct um_rcv_join_waiting, topic_node));
    }
}

/* ---- the whole ---- */

struct um_rcv_joins *um_rcv_joins_create(struct um_timer_wheel *wheel, const struct um_rcv_join_ops *ops)
{
    struct um_rcv_joins *joins = um_calloc(1, sizeof *joins);
    if (joins == NULL) {
        return NULL;
    }
    joins->wheel = wheel;
    joins->ops = *ops;
    um_timer_init(&joins->timer, on_timer);
    um_map_init(&joins->sessions, NULL);
    um_map_init(&joins->groups, NULL);
    um_map_init(&joins->begun, NULL);
    um_map_init(&joins->counts, NULL);
    um_rcv_join_line_init(&joins->line);
    for (int kind = 0; kind < UM_RCV_JOIN_KINDS; kind++) {
        um_list_init(&joins->by_start[kind]);
    }
    return joins;
}

void um_rcv_joins_destroy(struct um_rcv_joins *joins)
{
    if (joins == NULL) {
        return;
    }
    um_timer_cancel(joins->wheel, &joins->timer);
    um_map_clear(&joins->sessions);
    um_map_clear(&joins->groups);
    um_map_clear(&joins->begun);
    um_map_clear(&joins->counts);
    um_rcv_join_line_clear(&joins->line);
    um_free(joins);
}

void um_rcv_joins_stats(const struct um_rcv_joins *joins, struct um_rcv_joins_stats *out)
{
    *out = joins->stats;
    out->waiting = joins->line.count;
}
