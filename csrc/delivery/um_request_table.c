/* Open requests and unfinished responses. See um_request_table.h: a response is taken
 * only for an index that is open, and what strangers can make it remember is bounded
 * in number, bytes and time. */
#include "delivery/um_request_table.h"

#include <string.h>

#include "base/um_mem.h"
#include "delivery/um_reassembly.h"

/* What one responder has sent of responses to one request that are not complete. */
struct um_response_partial {
    struct um_list node;       /* table->partials */
    struct um_list of_request; /* entry->partial */
    struct um_response_sender from;
    uint64_t touched_ns;
    struct um_reassembly reassembly;
};

void um_request_table_init(struct um_request_table *table, atomic_uint *next_index)
{
    memset(table, 0, sizeof *table);
    table->next_index = next_index;
    um_u32_map_init(&table->open);
    um_list_init(&table->partials);
}

/* ---- unfinished responses ---- */

static void forget(struct um_request_table *table, struct um_response_partial *partial)
{
    um_list_remove(&partial->node);
    um_list_remove(&partial->of_request);
    table->partial_count--;
    table->partial_bytes -= partial->reassembly.bytes;
    um_reassembly_clear(&partial->reassembly);
    um_free(partial);
}

static void give_up(struct um_request_table *table, struct um_response_partial *partial)
{
    size_t before = partial->reassembly.bytes;
    uint32_t first_sqn;
    while (um_reassembly_abandon(&partial->reassembly, &first_sqn)) {
        table->counts.unfinished++;
    }
    table->partial_bytes -= before - partial->reassembly.bytes;
    forget(table, partial);
}

static struct um_response_partial *oldest(struct um_request_table *table)
{
    struct um_list *node = um_list_first(&table->partials);
    return node == NULL ? NULL : UM_CONTAINER_OF(node, struct um_response_partial, node);
}

static struct um_response_partial *find(struct um_request_entry *entry, const struct um_response_sender *from)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &entry->partial)
    {
        struct um_response_partial *partial = UM_CONTAINER_OF(node, struct um_response_partial, of_request);
        if (memcmp(&partial->from, from, sizeof *from) == 0) {
            return partial;
        }
    }
    return NULL;
}

/* The sender's, made if need be. NULL: out of memory. */
static struct um_response_partial *partial_of(struct um_request_table *table, struct um_request_entry *entry,
                                              const struct um_response_sender *from)
{
    struct um_response_partial *partial = find(entry, from);
    if (partial != NULL) {
        return partial;
    }
    if (table->partial_count >= UM_RESPONSE_PARTIALS_MAX) {
        give_up(table, oldest(table));
    }
    partial = um_calloc(1, sizeof *partial);
    if (partial == NULL) {
        return NULL;
    }
    partial->from = *from;
    um_reassembly_init(&partial->reassembly);
    um_list_push_back(&table->partials, &partial->node);
    um_list_push_back(&entry->partial, &partial->of_request);
    table->partial_count++;
    return partial;
}

/* The one just touched is the last to go. */
static void make_room(struct um_request_table *table, const struct um_response_partial *touched)
{
    while (table->partial_bytes > UM_RESPONSE_PARTIAL_BYTES_MAX && oldest(table) != touched) {
        give_up(table, oldest(table));
    }
}

static enum um_response_rc add_fragment(struct um_request_table *table, struct um_request_entry *entry, uint64_t now_ns,
                                        const struct um_lbmc_msg *msg, const struct um_response_sender *from,
                                        struct um_response *out)
{
    struct um_response_partial *partial = um_reassembly_frag_valid(msg) ? partial_of(table, entry, from) : NULL;
    if (partial == NULL) {
        table->counts.malformed++;
        return UM_RESPONSE_DROPPED;
    }
    struct um_reassembly *reassembly = &partial->reassembly;
    struct um_reassembled done;
    uint32_t evicted;
    bool has_evicted = false;
    size_t before = reassembly->bytes;
    enum um_reassembly_rc rc = um_reassembly_add(reassembly, UM_RESPONSE_SIZE_MAX, msg, &done, &evicted, &has_evicted);
    table->partial_bytes += reassembly->bytes - before;
    table->counts.unfinished += has_evicted + (rc == UM_REASSEMBLY_GIVEN_UP);
    partial->touched_ns = now_ns;
    um_list_remove(&partial->node);
    um_list_push_back(&table->partials, &partial->node);
    if (rc == UM_REASSEMBLY_COMPLETE) {
        *out = (struct um_response){entry, done.buf->data, done.len, done.first_sqn, done.buf, true};
    }
    uint32_t first_sqn;
    if (!um_reassembly_unfinished(reassembly, &first_sqn)) {
        forget(table, partial);
    } else {
        make_room(table, partial);
    }
    switch (rc) {
    case UM_REASSEMBLY_COMPLETE:
        return UM_RESPONSE_COMPLETE;
    case UM_REASSEMBLY_PENDING:
        return UM_RESPONSE_PENDING;
    default:
        table->counts.malformed += rc == UM_REASSEMBLY_IGNORED;
        return UM_RESPONSE_DROPPED;
    }
}

enum um_response_rc um_request_table_on_response(struct um_request_table *table, uint64_t now_ns,
                                                 const struct um_lbmc_msg *msg, struct um_buf *buf,
                                                 const struct um_response_sender *from, struct um_response *out)
{
    struct um_request_entry *entry = um_u32_map_get(&table->open, msg->tidx);
    if (entry == NULL) {
        table->counts.unknown++;
        return UM_RESPONSE_UNKNOWN;
    }
    enum um_response_rc rc = UM_RESPONSE_COMPLETE;
    if ((msg->present & UM_LBMC_HAS_FRAG) != 0) {
        rc = add_fragment(table, entry, now_ns, msg, from, out);
    } else {
        *out = (struct um_response){entry, msg->payload.ptr, msg->payload.len, msg->sqn, buf, false};
    }
    table->counts.delivered += rc == UM_RESPONSE_COMPLETE;
    return rc;
}

void um_request_table_expire(struct um_request_table *table, uint64_t now_ns)
{
    struct um_response_partial *partial;
    while ((partial = oldest(table)) != NULL && now_ns >= partial->touched_ns + UM_RESPONSE_EXPIRY_NS) {
        give_up(table, partial);
    }
}

uint64_t um_request_table_next_ns(const struct um_request_table *table)
{
    const struct um_list *node = um_list_first(&table->partials);
    return node == NULL ? UINT64_MAX
                        : UM_CONTAINER_OF(node, struct um_response_partial, node)->touched_ns + UM_RESPONSE_EXPIRY_NS;
}

/* ---- requests ---- */

int um_request_table_open(struct um_request_table *table, struct um_request_entry *entry)
{
    uint32_t index;
    do {
        index = atomic_fetch_add_explicit(table->next_index, 1, memory_order_relaxed);
    } while (index == 0 || um_u32_map_get(&table->open, index) != NULL);
    if (um_u32_map_put(&table->open, index, entry) != 0) {
        return -1;
    }
    entry->index = index;
    um_list_init(&entry->partial);
    return 0;
}

void um_request_table_close(struct um_request_table *table, struct um_request_entry *entry)
{
    struct um_list *node;
    if (entry->index == 0) {
        return;
    }
    while ((node = um_list_first(&entry->partial)) != NULL) {
        forget(table, UM_CONTAINER_OF(node, struct um_response_partial, of_request));
    }
    um_u32_map_remove(&table->open, entry->index);
    entry->index = 0;
}

void um_request_table_fini(struct um_request_table *table)
{
    size_t cursor = 0;
    uint32_t index;
    void *value;
    while (um_u32_map_next(&table->open, &cursor, &index, &value)) {
        struct um_request_entry *entry = value;
        struct um_list *node;
        while ((node = um_list_first(&entry->partial)) != NULL) {
            forget(table, UM_CONTAINER_OF(node, struct um_response_partial, of_request));
        }
        entry->index = 0;
    }
    um_u32_map_clear(&table->open);
}
