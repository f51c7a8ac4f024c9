/* See um_join_retries.h. Entries are grouped by transport session: a session is
 * tried once for all topics that wait for it. */
#include "core/um_join_retries.h"

#include <string.h>

#include "base/um_map.h"
#include "base/um_mem.h"

/* A transport session that topics wait for. */
struct group {
    struct um_join_retries *retries;
    lbm_transport_source_info_t key; /* without topic index */
    struct um_list entries;          /* um_join_retry.group_node */
    struct um_timer timer;           /* armed: waits for its time */
    struct um_list line_node;        /* retries->line: its time has come, but too many others are under way */
    uint64_t interval_ns, started_ns;
    unsigned under_way; /* entries */
    bool proved;        /* something was received from it once: it need not stand in line */
    bool running;       /* counted in retries->running */
    bool starting;      /* start() is on the stack */
};

struct um_join_retry {
    struct group *group;
    struct um_list group_node;
    struct um_list topic_node;
    struct um_join_retry_topic *topic;
    lbm_transport_source_info_t info;
    uint64_t heard_ns;
    bool proved;
    bool under_way;
};

struct um_join_retries {
    struct um_timer_wheel *wheel;
    struct um_join_retry_ops ops;
    struct um_map entries;   /* struct entry_key -> um_join_retry */
    struct um_map groups;    /* group.key -> group */
    struct um_map addresses; /* network-order address -> number of groups, as a pointer */
    struct um_list line;     /* group.line_node */
    unsigned running;        /* groups with entries under way */
    struct um_join_retries_stats stats;
};

/* What tells sources apart, without padding and without what advertisements leave open. */
static lbm_transport_source_info_t identity(const lbm_transport_source_info_t *info, bool with_topic)
{
    lbm_transport_source_info_t key;
    memset(&key, 0, sizeof key);
    key.type = info->type;
    key.src_ip = info->src_ip;
    key.src_port = info->src_port;
    key.dest_port = info->dest_port;
    key.mc_group = info->mc_group;
    key.transport_id = info->transport_id;
    key.session_id = info->session_id;
    key.topic_idx = with_topic ? info->topic_idx : 0;
    return key;
}

struct entry_key {
    const struct um_join_retry_topic *topic;
    lbm_transport_source_info_t info;
};

static struct entry_key key_of(const struct um_join_retry_topic *topic, const lbm_transport_source_info_t *info)
{
    struct entry_key key;
    memset(&key, 0, sizeof key);
    key.topic = topic;
    key.info = identity(info, true);
    return key;
}

struct um_join_retry *um_join_retries_find(struct um_join_retries *retries, const struct um_join_retry_topic *topic,
                                           const lbm_transport_source_info_t *info)
{
    if (topic->count == 0) {
        return NULL;
    }
    struct entry_key key = key_of(topic, info);
    return um_map_get(&retries->entries, &key, sizeof key);
}

/* ---- groups ---- */

static uintptr_t sessions_at(const struct um_join_retries *retries, uint32_t ip)
{
    return (uintptr_t)um_map_get(&retries->addresses, &ip, sizeof ip);
}

static int count_session(struct um_join_retries *retries, uint32_t ip, int by)
{
    uintptr_t count = sessions_at(retries, ip) + (uintptr_t)by;
    if (count == 0) {
        um_map_remove(&retries->addresses, &ip, sizeof ip);
        return 0;
    }
    return um_map_put(&retries->addresses, &ip, sizeof ip, (void *)count);
}

static void free_group(struct group *group)
{
    struct um_join_retries *retries = group->retries;
    um_timer_cancel(retries->wheel, &group->timer);
    um_list_remove(&group->line_node);
    um_map_remove(&retries->groups, &group->key, sizeof group->key);
    count_session(retries, group->key.src_ip, -1);
    um_free(group);
}

static void next_in_line(struct um_join_retries *retries, uint64_t now_ns)
{
    struct um_list *node = um_list_first(&retries->line);
    if (node != NULL && retries->running < UM_JOIN_RETRIES_UNDER_WAY_MAX) {
        struct group *group = UM_CONTAINER_OF(node, struct group, line_node);
        um_list_remove(node);
        um_timer_arm(retries->wheel, &group->timer, now_ns);
    }
}

/* Nothing is under way any more, or nothing is left. The group may be freed. */
static void settle(struct group *group, uint64_t now_ns)
{
    struct um_join_retries *retries = group->retries;
    if (group->under_way != 0 || group->starting) {
        return;
    }
    if (group->running) {
        group->running = false;
        retries->running--;
        uint64_t due_ns = group->started_ns + group->interval_ns;
        um_timer_arm(retries->wheel, &group->timer, due_ns > now_ns ? due_ns : now_ns + UM_JOIN_RETRY_PAUSE_NS);
    }
    if (um_list_empty(&group->entries)) {
        free_group(group);
    }
    next_in_line(retries, now_ns);
}

static void remove_entry(struct um_join_retry *retry)
{
    struct um_join_retries *retries = retry->group->retries;
    struct entry_key key = key_of(retry->topic, &retry->info);
    um_map_remove(&retries->entries, &key, sizeof key);
    um_list_remove(&retry->group_node);
    um_list_remove(&retry->topic_node);
    retry->topic->count--;
    retries->stats.waiting--;
    retry->group->under_way -= retry->under_way;
    um_free(retry);
}

static void give_up(struct um_join_retry *retry, const char *why, uint64_t now_ns)
{
    struct um_join_retries *retries = retry->group->retries;
    struct um_join_retry_topic *topic = retry->topic;
    lbm_transport_source_info_t info = retry->info;
    remove_entry(retry);
    retries->ops.given_up(topic, &info, why, now_ns);
}

static void start(struct group *group, uint64_t now_ns)
{
    struct um_list *node, *next;
    group->started_ns = now_ns;
    group->interval_ns = 2 * group->interval_ns < UM_JOIN_RETRY_MAX_NS ? 2 * group->interval_ns : UM_JOIN_RETRY_MAX_NS;
    group->running = true;
    group->retries->running++;
    group->starting = true;
    UM_LIST_FOREACH_SAFE(node, next, &group->entries)
    {
        struct um_join_retry *retry = UM_CONTAINER_OF(node, struct um_join_retry, group_node);
        if (now_ns - retry->heard_ns >= UM_JOIN_RETRY_KEPT_NS) {
            give_up(retry, "it was not heard of for two hours", now_ns);
            continue;
        }
        retry->under_way = true;
        group->under_way++;
        group->retries->ops.attempt(retry->topic, retry, &retry->info, now_ns);
    }
    group->starting = false;
    settle(group, now_ns);
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct group *group = UM_CONTAINER_OF(timer, struct group, timer);
    if (!group->proved && group->retries->running >= UM_JOIN_RETRIES_UNDER_WAY_MAX) {
        um_list_push_back(&group->retries->line, &group->line_node);
    } else {
        start(group, now_ns);
        /* `group` may be gone. */
    }
}

/* The bound is for what only advertisements tell of: anybody may name the address of a genuine source in them. */
static struct group *group_of(struct um_join_retries *retries, const lbm_transport_source_info_t *info, bool proved,
                              uint64_t now_ns)
{
    lbm_transport_source_info_t key = identity(info, false);
    struct group *group = um_map_get(&retries->groups, &key, sizeof key);
    if (group != NULL || (!proved && sessions_at(retries, key.src_ip) >= UM_JOIN_RETRIES_ADDRESS_MAX)) {
        return group;
    }
    group = um_calloc(1, sizeof *group);
    if (group == NULL || um_map_put(&retries->groups, &key, sizeof key, group) != 0) {
        um_free(group);
        return NULL;
    }
    if (count_session(retries, key.src_ip, 1) != 0) {
        um_map_remove(&retries->groups, &key, sizeof key);
        um_free(group);
        return NULL;
    }
    group->retries = retries;
    group->key = key;
    group->interval_ns = UM_JOIN_RETRY_FIRST_NS;
    um_list_init(&group->entries);
    um_list_init(&group->line_node);
    um_timer_init(&group->timer, on_timer);
    um_timer_arm(retries->wheel, &group->timer, now_ns + UM_JOIN_RETRY_FIRST_NS);
    return group;
}

/* ---- entries ---- */

/* The source of this topic that was not heard of for the longest time, of those that never sent anything. */
static struct um_join_retry *dispensable(const struct um_join_retry_topic *topic)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->list)
    {
        struct um_join_retry *retry = UM_CONTAINER_OF(node, struct um_join_retry, topic_node);
        if (!retry->proved && !retry->under_way) {
            return retry;
        }
    }
    return NULL;
}

/* What proved itself is bounded by the sessions that there were: it is kept, however much others have forged. */
static bool make_room(struct um_join_retries *retries, struct um_join_retry_topic *topic, bool proved, uint64_t now_ns)
{
    if (topic->count < UM_JOIN_RETRIES_TOPIC_MAX && retries->stats.waiting < UM_JOIN_RETRIES_MAX) {
        return true;
    }
    struct um_join_retry *retry = dispensable(topic);
    if (retry == NULL) {
        return proved;
    }
    struct group *group = retry->group;
    retries->stats.refused++;
    give_up(retry, "others need its place in the list of failed joins", now_ns);
    settle(group, now_ns);
    return true;
}

static struct um_join_retry *new_entry(struct um_join_retries *retries, struct um_join_retry_topic *topic,
                                       const lbm_transport_source_info_t *info, bool proved, uint64_t now_ns)
{
    struct group *group = group_of(retries, info, proved, now_ns);
    if (group == NULL) {
        return NULL;
    }
    struct um_join_retry *retry = um_calloc(1, sizeof *retry);
    struct entry_key key = key_of(topic, info);
    if (retry == NULL || um_map_put(&retries->entries, &key, sizeof key, retry) != 0) {
        um_free(retry);
        settle(group, now_ns);
        return NULL;
    }
    retry->group = group;
    retry->topic = topic;
    retry->info = *info;
    um_list_push_back(&group->entries, &retry->group_node);
    um_list_init(&retry->topic_node);
    topic->count++;
    retries->stats.waiting++;
    return retry;
}

bool um_join_retries_keep(struct um_join_retries *retries, struct um_join_retry_topic *topic,
                          const lbm_transport_source_info_t *info, bool proved, uint64_t now_ns)
{
    struct um_join_retry *retry = um_join_retries_find(retries, topic, info);
    if (retry == NULL) {
        retry = make_room(retries, topic, proved, now_ns) ? new_entry(retries, topic, info, proved, now_ns) : NULL;
        if (retry == NULL) {
            retries->stats.refused++;
            return false;
        }
    }
    retry->proved |= proved;
    retry->group->proved |= proved;
    um_join_retry_heard(retry, now_ns);
    return true;
}

void um_join_retries_count_failure(struct um_join_retries *retries)
{
    retries->stats.failed++;
}

void um_join_retry_heard(struct um_join_retry *retry, uint64_t now_ns)
{
    retry->heard_ns = now_ns;
    um_list_remove(&retry->topic_node);
    um_list_push_back(&retry->topic->list, &retry->topic_node);
}

void um_join_retry_failed(struct um_join_retry *retry, uint64_t now_ns)
{
    struct group *group = retry->group;
    group->under_way -= retry->under_way;
    retry->under_way = false;
    settle(group, now_ns);
}

void um_join_retry_forget(struct um_join_retry *retry, bool answered, uint64_t now_ns)
{
    struct group *group = retry->group;
    remove_entry(retry);
    if (answered) {
        group->interval_ns = UM_JOIN_RETRY_FIRST_NS;
        group->started_ns = now_ns - UM_JOIN_RETRY_FIRST_NS;
        if (um_timer_armed(&group->timer)) {
            um_timer_arm(group->retries->wheel, &group->timer, now_ns);
        }
    }
    settle(group, now_ns);
}

void um_join_retry_topic_init(struct um_join_retry_topic *topic)
{
    um_list_init(&topic->list);
    topic->count = 0;
}

void um_join_retries_forget_topic(struct um_join_retries *retries, struct um_join_retry_topic *topic, uint64_t now_ns)
{
    struct um_list *node;
    while ((node = um_list_first(&topic->list)) != NULL) {
        um_join_retry_forget(UM_CONTAINER_OF(node, struct um_join_retry, topic_node), false, now_ns);
    }
}

/* ---- the whole ---- */

struct um_join_retries *um_join_retries_create(struct um_timer_wheel *wheel, const struct um_join_retry_ops *ops)
{
    struct um_join_retries *retries = um_calloc(1, sizeof *retries);
    if (retries == NULL) {
        return NULL;
    }
    retries->wheel = wheel;
    retries->ops = *ops;
    um_map_init(&retries->entries, NULL);
    um_map_init(&retries->groups, NULL);
    um_map_init(&retries->addresses, NULL);
    um_list_init(&retries->line);
    return retries;
}

void um_join_retries_destroy(struct um_join_retries *retries)
{
    if (retries == NULL) {
        return;
    }
    um_map_clear(&retries->entries);
    um_map_clear(&retries->groups);
    um_map_clear(&retries->addresses);
    um_free(retries);
}

void um_join_retries_stats(const struct um_join_retries *retries, struct um_join_retries_stats *out)
{
    *out = retries->stats;
}
