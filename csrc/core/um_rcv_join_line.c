/* The line of sources that wait to be joined. See um_rcv_join_line.h. */
#include "core/um_rcv_join_line.h"

#include <string.h>

#include "base/um_mem.h"

#define CLASSES UM_RCV_JOIN_CLASSES
#define TELLER_MAX (UM_RCV_JOIN_WAITING_MAX / UM_RCV_JOIN_WAITING_SHARE)

/* One who advertises, while something of his waits. */
struct teller {
    struct um_list node;            /* line->ring */
    struct um_list class_node;      /* line->crowds */
    struct um_list ring;            /* um_rcv_join_address.node */
    struct um_list crowds[CLASSES]; /* the same, by how many wait */
    struct um_map addresses;
    uint32_t ip;
    unsigned waiting;
};

/* An address that he names. */
struct um_rcv_join_address {
    struct um_list node;       /* teller->ring */
    struct um_list class_node; /* teller->crowds */
    struct um_list line;       /* struct um_rcv_join_waiting */
    struct teller *teller;
    uint32_t ip;
    unsigned waiting;
};

struct um_rcv_join_key um_rcv_join_key(const struct um_rcv_join_topic *topic, const lbm_transport_source_info_t *info)
{
    struct um_rcv_join_key key;
    memset(&key, 0, sizeof key);
    key.topic = topic;
    key.info = *info;
    key.info.transport_idx = 0;
    return key;
}

static struct um_rcv_join_waiting *waiting_of(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_rcv_join_waiting, node);
}

/* ---- who has the most: found by class, so that neither a change nor a question walks through a crowd ---- */

static unsigned class_of(unsigned waiting)
{
    unsigned class = 0;
    while (waiting >>= 1) {
        class ++;
    }
    return class;
}

static void init_crowds(struct um_list crowds[CLASSES])
{
    for (unsigned class = 0; class < CLASSES; class ++) {
        um_list_init(&crowds[class]);
    }
}

static void file(struct um_list crowds[CLASSES], struct um_list *class_node, unsigned waiting)
{
    um_list_remove(class_node);
    if (waiting > 0) {
        um_list_push_back(&crowds[class_of(waiting)], class_node);
    }
}

/* One of the highest class; somebody waits. */
static struct um_list *most_crowded(const struct um_list crowds[CLASSES])
{
    unsigned class = CLASSES - 1;
    while (um_list_empty(&crowds[class])) {
        class --;
    }
    return um_list_first(&crowds[class]);
}

static void count(struct um_rcv_join_line *line, const struct um_rcv_join_waiting *waiting, int by)
{
    struct um_rcv_join_address *address = waiting->address;
    struct teller *teller = address->teller;
    address->waiting += (unsigned)by;
    teller->waiting += (unsigned)by;
    line->of_kind[waiting->kind] += (unsigned)by;
    line->count += (unsigned)by;
    file(teller->crowds, &address->class_node, address->waiting);
    file(line->crowds, &teller->class_node, teller->waiting);
}

bool um_rcv_join_line_full(const struct um_rcv_join_line *line, const struct um_rcv_join_offer *offer,
                           struct um_rcv_join_waiting **crowded)
{
    uint32_t ip = offer->info.src_ip;
    struct teller *own = um_map_get(&line->tellers, &offer->told_by, sizeof offer->told_by);
    unsigned told = own == NULL ? 0 : own->waiting;
    *crowded = NULL;
    if (told < TELLER_MAX && line->count < UM_RCV_JOIN_WAITING_MAX) {
        return false;
    }
    struct teller *teller = UM_CONTAINER_OF(most_crowded(line->crowds), struct teller, class_node);
    if (told >= TELLER_MAX || class_of(teller->waiting) <= class_of(told + 1)) {
        teller = own; /* nobody has more: among themselves */
    }
    if (teller == NULL) {
        return true;
    }
    struct um_rcv_join_address *address =
        UM_CONTAINER_OF(most_crowded(teller->crowds), struct um_rcv_join_address, class_node);
    struct um_rcv_join_address *same = um_map_get(&teller->addresses, &ip, sizeof ip);
    if (teller != own || class_of(address->waiting) > class_of(same == NULL ? 1 : same->waiting + 1)) {
        *crowded = waiting_of(address->line.prev); /* whose turn is farthest */
    }
    return true;
}

/* ---- entries ---- */

static void release_empty(struct um_rcv_join_line *line, struct teller *teller, struct um_rcv_join_address *address)
{
    if (address != NULL && um_list_empty(&address->line)) {
        um_list_remove(&address->node);
        um_map_remove(&teller->addresses, &address->ip, sizeof address->ip);
        um_free(address);
    }
    if (um_list_empty(&teller->ring)) {
        um_list_remove(&teller->node);
        um_map_clear(&teller->addresses);
        um_map_remove(&line->tellers, &teller->ip, sizeof teller->ip);
        um_free(teller);
    }
}

static struct teller *teller_get(struct um_rcv_join_line *line, uint32_t ip)
{
    struct teller *teller = um_map_get(&line->tellers, &ip, sizeof ip);
    if (teller != NULL) {
        return teller;
    }
    teller = um_calloc(1, sizeof *teller);
    if (teller == NULL || um_map_put(&line->tellers, &ip, sizeof ip, teller) != 0) {
        um_free(teller);
        return NULL;
    }
    teller->ip = ip;
    um_list_init(&teller->class_node);
    um_list_init(&teller->ring);
    init_crowds(teller->crowds);
    um_map_init(&teller->addresses, NULL);
    um_list_push_back(&line->ring, &teller->node);
    return teller;
}

static struct um_rcv_join_address *address_get(struct um_rcv_join_line *line, const struct um_rcv_join_offer *offer)
{
    uint32_t ip = offer->info.src_ip;
    struct teller *teller = teller_get(line, offer->told_by);
    struct um_rcv_join_address *address = teller == NULL ? NULL : um_map_get(&teller->addresses, &ip, sizeof ip);
    if (teller == NULL || address != NULL) {
        return address;
    }
    address = um_calloc(1, sizeof *address);
    if (address == NULL || um_map_put(&teller->addresses, &ip, sizeof ip, address) != 0) {
        um_free(address);
        release_empty(line, teller, NULL);
        return NULL;
    }
    address->teller = teller;
    address->ip = ip;
    um_list_init(&address->class_node);
    um_list_init(&address->line);
    um_list_push_back(&teller->ring, &address->node);
    return address;
}

struct um_rcv_join_waiting *um_rcv_join_line_find(const struct um_rcv_join_line *line,
                                                  const struct um_rcv_join_topic *topic,
                                                  const lbm_transport_source_info_t *info)
{
    struct um_rcv_join_key key = um_rcv_join_key(topic, info);
    return um_map_get(&line->entries, &key, sizeof key);
}

void um_rcv_join_line_heard(struct um_rcv_join_line *line, struct um_rcv_join_waiting *waiting, uint64_t heard_ns)
{
    waiting->heard_ns = heard_ns;
    um_list_remove(&waiting->age_node);
    um_list_push_back(&line->by_age, &waiting->age_node);
}

bool um_rcv_join_line_add(struct um_rcv_join_line *line, struct um_rcv_join_topic *topic, enum um_rcv_join_kind kind,
                          const struct um_rcv_join_offer *offer, uint64_t heard_ns)
{
    struct um_rcv_join_key key = um_rcv_join_key(topic, &offer->info);
    struct um_rcv_join_address *address = address_get(line, offer);
    if (address == NULL) {
        return false;
    }
    struct um_rcv_join_waiting *waiting = um_calloc(1, sizeof *waiting);
    if (waiting == NULL || um_map_put(&line->entries, &key, sizeof key, waiting) != 0) {
        um_free(waiting);
        release_empty(line, address->teller, address);
        return false;
    }
    waiting->address = address;
    waiting->topic = topic;
    waiting->offer = *offer;
    waiting->kind = kind;
    waiting->heard_ns = heard_ns;
    um_list_push_back(&address->line, &waiting->node);
    um_list_push_back(&topic->waiting, &waiting->topic_node);
    um_list_push_back(&line->by_age, &waiting->age_node);
    count(line, waiting, 1);
    return true;
}

void um_rcv_join_line_remove(struct um_rcv_join_line *line, struct um_rcv_join_waiting *waiting)
{
    struct um_rcv_join_key key = um_rcv_join_key(waiting->topic, &waiting->offer.info);
    struct um_rcv_join_address *address = waiting->address;
    um_map_remove(&line->entries, &key, sizeof key);
    um_list_remove(&waiting->node);
    um_list_remove(&waiting->topic_node);
    um_list_remove(&waiting->age_node);
    count(line, waiting, -1);
    um_free(waiting);
    release_empty(line, address->teller, address);
}

/* ---- turns ---- */

struct um_rcv_join_waiting *um_rcv_join_line_next(struct um_rcv_join_line *line)
{
    struct teller *teller = UM_CONTAINER_OF(um_list_first(&line->ring), struct teller, node);
    struct um_rcv_join_address *address =
        UM_CONTAINER_OF(um_list_first(&teller->ring), struct um_rcv_join_address, node);
    struct um_rcv_join_waiting *waiting = waiting_of(um_list_first(&address->line));
    um_list_remove(&teller->node);
    um_list_push_back(&line->ring, &teller->node);
    um_list_remove(&address->node);
    um_list_push_back(&teller->ring, &address->node);
    um_list_remove(&waiting->node);
    um_list_push_back(&address->line, &waiting->node);
    return waiting;
}

struct um_rcv_join_waiting *um_rcv_join_line_oldest(const struct um_rcv_join_line *line)
{
    struct um_list *node = um_list_first(&line->by_age);
    return node == NULL ? NULL : UM_CONTAINER_OF(node, struct um_rcv_join_waiting, age_node);
}

/* ---- the whole ---- */

void um_rcv_join_line_init(struct um_rcv_join_line *line)
{
    memset(line, 0, sizeof *line);
    um_map_init(&line->tellers, NULL);
    um_map_init(&line->entries, NULL);
    um_list_init(&line->ring);
    um_list_init(&line->by_age);
    init_crowds(line->crowds);
}

void um_rcv_join_line_clear(struct um_rcv_join_line *line)
{
    um_map_clear(&line->tellers);
    um_map_clear(&line->entries);
}
