/* Log lines by identifier and origin: what was told, what was left out. See um_log_limits.h. */
#include "base/um_log_limits.h"

#include <stdio.h>
#include <string.h>

#include "base/um_hash.h"
#include "base/um_mem.h"

#define ID_LEN 64
#define BUCKETS (sizeof(((struct um_log_limits *)NULL)->buckets) / sizeof(struct um_log_place *))

void um_log_limits_clear(struct um_log_limits *limits)
{
    memset(limits->buckets, 0, sizeof(limits->buckets));
    limits->id_count = limits->origin_count = 0;
    limits->free = NULL;
    um_list_init(&limits->told);
}

/* The clocks of callers may be a little behind each other; one that is far behind has begun anew. */
static bool is_over(const struct um_log_place *place, uint64_t now_ns)
{
    uint64_t apart = now_ns < place->begun_ns ? place->begun_ns - now_ns : now_ns - place->begun_ns;
    return apart >= UM_LOG_INTERVAL_NS;
}

static struct um_log_place **bucket_of(struct um_log_limits *limits, const char *id, uint64_t origin)
{
    struct {
        uint64_t origin;
        char id[ID_LEN];
    } key = {.origin = origin};
    size_t len = strnlen(id, ID_LEN);
    memcpy(key.id, id, len);
    return &limits->buckets[um_hash_bytes(&key, sizeof(key.origin) + len) % BUCKETS];
}

static struct um_log_place *find(struct um_log_limits *limits, const char *id, uint64_t origin)
{
    struct um_log_place *place = *bucket_of(limits, id, origin);
    while (place != NULL && (place->origin != origin || (place->id != id && strcmp(place->id, id) != 0))) {
        place = place->next;
    }
    return place;
}

static void link_place(struct um_log_limits *limits, struct um_log_place *place, const char *id, uint64_t origin)
{
    struct um_log_place **bucket = bucket_of(limits, id, origin);
    *place = (struct um_log_place){.id = id, .origin = origin, .next = *bucket, .bucket = bucket};
    um_list_init(&place->node);
    *bucket = place;
}

static void free_origin(struct um_log_limits *limits, struct um_log_place *place)
{
    struct um_log_place **at = place->bucket;
    while (*at != place) {
        at = &(*at)->next;
    }
    *at = place->next;
    place->all->origins--;
    place->id = NULL;
    place->next = limits->free;
    limits->free = place;
}

/* The place of an identifier for all origins that have none of their own; it stays. NULL: more than there are. */
static struct um_log_place *all_of(struct um_log_limits *limits, const char *id)
{
    struct um_log_place *place = find(limits, id, UM_LOG_ORIGIN_ALL);
    if (place == NULL && limits->id_count < UM_LOG_IDS) {
        place = &limits->ids[limits->id_count++];
        link_place(limits, place, id, UM_LOG_ORIGIN_ALL);
        place->all = place;
    }
    return place;
}

static struct um_log_place *origin_place(struct um_log_limits *limits)
{
    struct um_log_place *place = limits->free;
    if (place != NULL) {
        limits->free = place->next;
    } else if (limits->origin_count < UM_LOG_ORIGINS) {
        place = &limits->origins[limits->origin_count++];
    }
    return place;
}

/* Where a line of this origin is counted. NULL: nowhere yet. */
static struct um_log_place *place_of(struct um_log_limits *limits, const char *id, uint64_t origin)
{
    struct um_log_place *place = find(limits, id, origin), *all;
    if (place != NULL || (all = all_of(limits, id)) == NULL) {
        return place;
    }
    bool full = limits->free == NULL && limits->origin_count == UM_LOG_ORIGINS;
    return origin == UM_LOG_ORIGIN_ALL || full || all->origins >= UM_LOG_ORIGINS_EACH ? all : NULL;
}

bool um_log_limits_left_out(struct um_log_limits *limits, uint64_t now_ns, const char *id, uint64_t origin)
{
    struct um_log_place *place = place_of(limits, id, origin);
    if (place == NULL || um_list_empty(&place->node) || (is_over(place, now_ns) && place->left_out == 0)) {
        return false;
    }
    place->left_out++; /* also behind its time, when nobody has asked yet what is due */
    return true;
}

bool um_log_limits_take(struct um_log_limits *limits, uint64_t now_ns, const char *id, uint64_t origin, int level)
{
    if (um_log_limits_left_out(limits, now_ns, id, origin)) {
        return false;
    }
    struct um_log_place *place = place_of(limits, id, origin), *all = all_of(limits, id);
    if (all == NULL) {
        return true;
    }
    if (place == NULL) {
        place = origin_place(limits);
        link_place(limits, place, id, origin);
        place->all = all;
        all->origins++;
    }
    place->begun_ns = now_ns;
    place->level = level;
    place->words[0] = '\0';
    um_list_remove(&place->node);
    um_list_push_back(&limits->told, &place->node);
    return true;
}

void um_log_limits_words(struct um_log_limits *limits, const char *id, uint64_t origin, const char *words)
{
    struct um_log_place *place = place_of(limits, id, origin);
    if (place != NULL) {
        snprintf(place->words, sizeof(place->words), "%s", words);
    }
}

bool um_log_limits_next_due(struct um_log_limits *limits, uint64_t now_ns, struct um_log_left_out *out)
{
    struct um_list *first;
    while ((first = um_list_first(&limits->told)) != NULL) {
        struct um_log_place *place = UM_CONTAINER_OF(first, struct um_log_place, node);
        if (!is_over(place, now_ns)) {
            return false;
        }
        uint64_t count = place->left_out;
        if (count > 0) {
            *out = (struct um_log_left_out){.id = place->id, .level = place->level, .count = count};
            memcpy(out->words, place->words, sizeof(out->words));
        }
        place->left_out = 0;
        um_list_remove(&place->node);
        if (place != place->all) {
            free_origin(limits, place);
        }
        if (count > 0) {
            return true;
        }
    }
    return false;
}

uint64_t um_log_limits_due_ns(const struct um_log_limits *limits)
{
    const struct um_list *first = um_list_first(&limits->told);
    return first == NULL ? UINT64_MAX
                         : UM_CONTAINER_OF(first, struct um_log_place, node)->begun_ns + UM_LOG_INTERVAL_NS;
}
