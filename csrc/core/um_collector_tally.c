/* Messages dropped of each source: a keyed hash table beside a list in the order of the last drop, whose first goes
 * when there are too many. What belongs to whom, and on which thread: the header. */
#include "core/um_collector_tally.h"

#include <string.h>

#include "base/um_mem.h"

struct um_tally_source {
    struct um_list node; /* um_tally.order */
    uint64_t count;
    size_t len;
    char name[];
};

void um_tally_init(struct um_tally *tally)
{
    um_map_init(&tally->sources, NULL);
    um_list_init(&tally->order);
}

static struct um_tally_source *source_at(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_tally_source, node);
}

static void forget(struct um_tally *tally, struct um_tally_source *source)
{
    um_map_remove(&tally->sources, source->name, source->len);
    um_list_remove(&source->node);
    um_free(source);
}

void um_tally_clear(struct um_tally *tally)
{
    struct um_list *node;
    while ((node = um_list_first(&tally->order)) != NULL) {
        forget(tally, source_at(node));
    }
    um_map_clear(&tally->sources);
}

/* NULL: out of memory. */
static struct um_tally_source *remember(struct um_tally *tally, const char *name, size_t len)
{
    struct um_tally_source *source = um_malloc(sizeof *source + len + 1);
    if (source == NULL) {
        return NULL;
    }
    if (um_map_count(&tally->sources) >= UM_TALLY_SOURCES_MAX) {
        forget(tally, source_at(um_list_first(&tally->order)));
    }
    source->count = 0;
    source->len = len;
    memcpy(source->name, name, len + 1);
    if (um_map_put(&tally->sources, name, len, source) != 0) {
        um_free(source);
        return NULL;
    }
    um_list_push_back(&tally->order, &source->node);
    return source;
}

/* Drops come in rows: the last source is looked at before the table. */
static struct um_tally_source *find(const struct um_tally *tally, const char *name, size_t len)
{
    struct um_list *last = tally->order.prev;
    if (last != &tally->order && strcmp(source_at(last)->name, name) == 0) {
        return source_at(last);
    }
    return um_map_get(&tally->sources, name, len);
}

void um_tally_add(struct um_tally *tally, const char *name)
{
    size_t len = strlen(name);
    struct um_tally_source *source = find(tally, name, len);
    if (source == NULL && (source = remember(tally, name, len)) == NULL) {
        return;
    }
    source->count++;
    if (tally->order.prev != &source->node) {
        um_list_remove(&source->node);
        um_list_push_back(&tally->order, &source->node);
    }
}

uint64_t um_tally_of(const struct um_tally *tally, const char *name)
{
    const struct um_tally_source *source = find(tally, name, strlen(name));
    return source != NULL ? source->count : 0;
}
