/* Records that wait one by one: the newest message of each topic, and what tells
 * of messages that had to go. A record exists as long as it waits, so what strangers can fill is bounded by the bound
 * of the collector. Under the collector's lock. */
#include "core/um_collector_line.h"

#include <string.h>

#include "base/um_mem.h"

#define MOVE_BYTES (1u << 20) /* payload that is copied under one lock */

void um_line_init(struct um_line *line, bool by_source)
{
    um_list_init(&line->waiting);
    um_map_init(&line->keys, NULL);
    line->by_source = by_source;
    line->count = 0;
    line->bytes = 0;
}

/* The names lie one behind the other with their zeros, so a key is the beginning of them or all of them. */
static size_t key_len(const struct um_line *line, const struct um_waiting *waiting)
{
    size_t topic = strlen(waiting->topic) + 1;
    return line->by_source ? topic + strlen(waiting->source) + 1 : topic;
}

/* What a record counts for in the bound: itself, its payload, and its names. */
static size_t cost(const struct um_waiting *waiting)
{
    return sizeof waiting->record + um_record_room(&waiting->record, waiting->data) + strlen(waiting->topic) +
           strlen(waiting->source) + UM_NAME_COST;
}

static void waiting_free(struct um_waiting *waiting)
{
    um_free(waiting->topic);
    um_free(waiting->data);
    um_free(waiting);
}

static void forget_key(struct um_line *line, struct um_waiting *waiting)
{
    if (waiting->keyed) {
        um_map_remove(&line->keys, waiting->topic, key_len(line, waiting));
        waiting->keyed = false;
    }
}

static void take_out(struct um_line *line, struct um_waiting *waiting)
{
    forget_key(line, waiting);
    um_list_remove(&waiting->node);
    line->count--;
    line->bytes -= cost(waiting);
}

static void put_in(struct um_line *line, struct um_waiting *waiting)
{
    um_list_push_back(&line->waiting, &waiting->node);
    line->count++;
    line->bytes += cost(waiting);
}

void um_line_remove(struct um_line *line, struct um_waiting *waiting)
{
    take_out(line, waiting);
    waiting_free(waiting);
}

void um_line_pass(struct um_line *line, struct um_waiting *waiting, struct um_line *to)
{
    take_out(line, waiting);
    put_in(to, waiting);
}

void um_line_clear(struct um_line *line)
{
    struct um_waiting *waiting;
    while ((waiting = um_line_first(line)) != NULL) {
        um_line_remove(line, waiting);
    }
    um_map_clear(&line->keys);
}

/* Both names in one piece, zeros included. NULL: out of memory. */
static char *join(const char *topic, const char *source, char **second)
{
    size_t topic_len = strlen(topic) + 1, source_len = strlen(source) + 1;
    char *names = um_malloc(topic_len + source_len);
    if (names != NULL) {
        memcpy(names, topic, topic_len);
        memcpy(names + topic_len, source, source_len);
        *second = names + topic_len;
    }
    return names;
}

struct um_waiting *um_line_find(const struct um_line *line, const char *topic, const char *source)
{
    char key[LBM_MSG_MAX_TOPIC_LEN + LBM_MSG_MAX_SOURCE_LEN + 2];
    size_t len = strlen(topic) + 1;
    if (!line->by_source) {
        return um_map_get(&line->keys, topic, len);
    }
    size_t source_len = strlen(source) + 1;
    if (len + source_len > sizeof key) {
        return NULL;
    }
    memcpy(key, topic, len);
    memcpy(key + len, source, source_len);
    return um_map_get(&line->keys, key, len + source_len);
}

struct um_waiting *um_line_add(struct um_line *line, const char *topic, const char *source, bool keyed)
{
    struct um_waiting *waiting = um_calloc(1, sizeof *waiting);
    if (waiting == NULL || (waiting->topic = join(topic, source, &waiting->source)) == NULL) {
        um_free(waiting);
        return NULL;
    }
    if (keyed && um_map_put(&line->keys, waiting->topic, key_len(line, waiting), waiting) != 0) {
        waiting_free(waiting);
        return NULL;
    }
    waiting->keyed = keyed;
    put_in(line, waiting);
    return waiting;
}

bool um_line_set(struct um_line *line, struct um_waiting *waiting, const um_record_t *record, const void *data,
                 const um_record_tail_t *tail)
{
    size_t before = um_record_room(&waiting->record, waiting->data);
    size_t room = record->length;
    if ((record->flags & UM_RECORD_TAIL) != 0) {
        room += um_tail_len(record->flags, tail);
    }
    if (room > waiting->cap) {
        unsigned char *larger = um_realloc(waiting->data, room);
        if (larger == NULL) {
            return false;
        }
        waiting->data = larger;
        waiting->cap = room;
    }
    line->bytes += room;
    line->bytes -= before;
    waiting->record = *record;
    if (record->length > 0) {
        memcpy(waiting->data, data, record->length);
    }
    if (room > record->length) {
        um_tail_put(waiting->data + record->length, record->flags, tail);
    }
    return true;
}

bool um_line_set_source(struct um_line *line, struct um_waiting *waiting, const char *source)
{
    char *second;
    if (strcmp(waiting->source, source) == 0) {
        return true;
    }
    char *names = join(waiting->topic, source, &second);
    if (names == NULL) {
        return false;
    }
    line->bytes -= cost(waiting);
    um_free(waiting->topic);
    waiting->topic = names;
    waiting->source = second;
    line->bytes += cost(waiting);
    return true;
}

static bool is_message(const struct um_waiting *waiting)
{
    return waiting->record.type == LBM_MSG_DATA || waiting->record.type == LBM_MSG_REQUEST;
}

/* False: out of memory. */
static bool copy_out(const struct um_waiting *waiting, struct um_chunk *chunk)
{
    um_record_t record = waiting->record;
    struct um_book *book = chunk->book;
    size_t room = um_record_room(&record, waiting->data);
    if ((!um_chunk_has_room(chunk, room) && !um_chunk_grow(chunk, room)) ||
        !um_names_index(&book->topics, waiting->topic, &record.topic, &chunk->name_bytes) ||
        !um_names_index(&book->sources, waiting->source, &record.source, &chunk->name_bytes)) {
        return false;
    }
    record.offset = chunk->data_len;
    if (room > 0) {
        memcpy(chunk->data + chunk->data_len, waiting->data, room);
        chunk->data_len += room;
    }
    chunk->records[chunk->count++] = record;
    return true;
}

size_t um_line_move(struct um_line *line, struct um_chunk *chunk, size_t most)
{
    struct um_waiting *waiting = um_line_first(line);
    bool messages = waiting != NULL && is_message(waiting);
    while (waiting != NULL && is_message(waiting) == messages && chunk->count < most && chunk->data_len < MOVE_BYTES &&
           copy_out(waiting, chunk)) {
        um_line_remove(line, waiting);
        waiting = um_line_first(line);
    }
    return chunk->count;
}
