/* Records that wait in a collector one by one and not in a chunk, in order, and
 * found by a key: the newest message of each topic, and what tells of messages that had to go. Under the collector's
 * lock; called by core/um_collector_*.c. */
#ifndef UM_CORE_COLLECTOR_LINE_H
#define UM_CORE_COLLECTOR_LINE_H

#include <stdbool.h>

#include <lbm/um.h>

#include "base/um_list.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "core/um_collector_store.h"

struct um_waiting {
    struct um_list node;
    char *topic, *source; /* source is behind topic, in one piece */
    bool keyed;           /* by `topic`, or by both: um_line.by_source */
    um_record_t record;   /* offset, topic and source are filled in when it is moved into a chunk */
    unsigned char *data;
    size_t cap;
};

struct um_line {
    struct um_list waiting; /* um_waiting.node, the first to go first */
    struct um_map keys;     /* um_waiting; keyed hash: names come from the network */
    bool by_source;         /* keys are topic and source, else topic */
    size_t count, bytes;
};

void um_line_init(struct um_line *line, bool by_source);
void um_line_clear(struct um_line *line);

/* The record with this key, NULL: none. */
struct um_waiting *um_line_find(const struct um_line *line, const char *topic, const char *source);
/* A new one at the end, without data. NULL: out of memory. */
struct um_waiting *um_line_add(struct um_line *line, const char *topic, const char *source, bool keyed);
/* Replaces what it is; `tail` is read where the record's flags say that it has one. False: out of memory, it is as it
 * was. */
bool um_line_set(struct um_line *line, struct um_waiting *waiting, const um_record_t *record, const void *data,
                 const um_record_tail_t *tail);
/* Another source brings the topic now. False: out of memory, it is as it was. */
bool um_line_set_source(struct um_line *line, struct um_waiting *waiting, const char *source);
void um_line_remove(struct um_line *line, struct um_waiting *waiting);
/* From one line to the end of another, without its key. */
void um_line_pass(struct um_line *line, struct um_waiting *waiting, struct um_line *to);

static inline struct um_waiting *um_line_first(const struct um_line *line)
{
    struct um_list *node = um_list_first(&line->waiting);
    return node != NULL ? UM_CONTAINER_OF(node, struct um_waiting, node) : NULL;
}

/* Moves the first records into an empty chunk: up to `most`, a MiB or so of payload, all messages or all events.
 * Returns how many; 0: there are none, or there is no memory. */
size_t um_line_move(struct um_line *line, struct um_chunk *chunk, size_t most);

#endif
