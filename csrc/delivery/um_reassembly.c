/* Reassembly: each partial message is one growing buffer and the sorted ranges
 * received so far. In-order arrival extends a single range, so the usual cost
 * is one copy per byte. */
#include "delivery/um_reassembly.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"

#define EAGER_BYTES (64u * 1024u)        /* messages up to this size get their whole buffer at once */
#define HOLE_SLACK_BYTES (1024u * 1024u) /* how far beyond twice the received bytes a fragment may lie */
#define RANGES_MAX 4096u

enum partial_state { PARTIAL_FILLING, PARTIAL_GIVEN_UP };

struct range {
    uint32_t from, to;
};

struct partial {
    struct um_list node;
    enum partial_state state;
    uint32_t first_sqn;
    uint32_t highest_sqn;    /* of the fragments received */
    uint32_t highest_offset; /* offset of that fragment */
    uint32_t len;
    uint32_t received;
    uint16_t batch_flags;
    uint8_t chain_len;
    uint8_t *chain; /* of application headers, from the first fragment that had one; NULL: none had */
    struct um_buf *buf;
    struct range *ranges; /* sorted, disjoint, not touching; &single until a hole appears */
    uint32_t range_count, range_capacity;
    struct range single;
};

void um_reassembly_init(struct um_reassembly *r)
{
    um_list_init(&r->partials);
    r->count = 0;
    r->bytes = 0;
}

static void drop_data(struct um_reassembly *r, struct partial *p)
{
    um_free(p->chain);
    p->chain = NULL;
    if (p->buf != NULL) {
        r->bytes -= p->buf->capacity;
        um_buf_unref(p->buf);
        p->buf = NULL;
    }
    if (p->ranges != &p->single) {
        um_free(p->ranges);
        p->ranges = &p->single;
    }
}

static void remove_partial(struct um_reassembly *r, struct partial *p)
{
    drop_data(r, p);
    um_list_remove(&p->node);
    r->count--;
    um_free(p);
}

void um_reassembly_clear(struct um_reassembly *r)
{
    struct um_list *node;
    while ((node = um_list_first(&r->partials)) != NULL) {
        remove_partial(r, UM_CONTAINER_OF(node, struct partial, node));
    }
}

bool um_reassembly_frag_valid(const struct um_lbmc_msg *msg)
{
    uint32_t index = msg->sqn - msg->frag.first_sqn;
    return !um_sqn_older(msg->sqn, msg->frag.first_sqn) && msg->frag.len != 0 && msg->payload.len != 0 &&
           msg->frag.offset < msg->frag.len && msg->payload.len <= msg->frag.len - msg->frag.offset &&
           (index == 0) == (msg->frag.offset == 0) && index <= msg->frag.offset;
}

static struct partial *find(const struct um_reassembly *r, uint32_t first_sqn)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &r->partials)
    {
        struct partial *p = UM_CONTAINER_OF(node, struct partial, node);
        if (p->first_sqn == first_sqn) {
            return p;
        }
    }
    return NULL;
}

bool um_reassembly_has(const struct um_reassembly *r, uint32_t first_sqn)
{
    return find(r, first_sqn) != NULL;
}

/* Keeps the entry, so that later fragments of the message are recognised. */
static void give_up(struct um_reassembly *r, struct partial *p)
{
    drop_data(r, p);
    p->state = PARTIAL_GIVEN_UP;
}

/* Make room: forget a message given up earlier, else the least recently used. */
static void evict(struct um_reassembly *r, uint32_t *evicted, bool *has_evicted)
{
    struct partial *victim = UM_CONTAINER_OF(r->partials.prev, struct partial, node);
    for (struct um_list *node = r->partials.prev; node != &r->partials; node = node->prev) {
        struct partial *p = UM_CONTAINER_OF(node, struct partial, node);
        if (p->state == PARTIAL_GIVEN_UP) {
            victim = p;
            break;
        }
    }
    if (victim->state == PARTIAL_FILLING) {
        *evicted = victim->first_sqn;
        *has_evicted = true;
    }
    remove_partial(r, victim);
}

static struct partial *start(struct um_reassembly *r, const struct um_lbmc_msg *msg, uint32_t *evicted,
                             bool *has_evicted)
{
    if (r->count >= UM_REASSEMBLY_PARTIALS) {
        evict(r, evicted, has_evicted);
    }
    struct partial *p = um_calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->first_sqn = msg->frag.first_sqn;
    p->highest_sqn = msg->sqn;
    p->highest_offset = msg->frag.offset;
    p->len = msg->frag.len;
    p->ranges = &p->single;
    p->range_capacity = 1;
    um_list_push_front(&r->partials, &p->node);
    r->count++;
    return p;
}

/* Room for bytes [0, needed). False: out of memory, or more than the bytes received justify. */
static bool grow(struct um_reassembly *r, struct partial *p, uint32_t needed, size_t arriving)
{
    uint32_t capacity = p->buf == NULL ? 0 : p->buf->capacity;
    if (needed <= capacity) {
        return true;
    }
    if (needed > 2 * ((uint64_t)p->received + arriving) + HOLE_SLACK_BYTES) {
        return false;
    }
    uint64_t wanted = 2 * (uint64_t)needed;
    if (wanted < EAGER_BYTES) {
        wanted = EAGER_BYTES;
    }
    if (wanted > p->len) {
        wanted = p->len;
    }
    if (p->buf == NULL) {
        p->buf = um_buf_alloc((size_t)wanted);
        if (p->buf == NULL) {
            return false;
        }
    } else { /* ours alone and without a pool: one heap block */
        struct um_buf *buf = um_realloc(p->buf, sizeof *buf + (size_t)wanted);
        if (buf == NULL) {
            return false;
        }
        buf->capacity = (uint32_t)wanted;
        p->buf = buf;
    }
    r->bytes += p->buf->capacity - capacity;
    return true;
}

static bool more_ranges(struct partial *p)
{
    if (p->range_count < p->range_capacity) {
        return true;
    }
    if (p->range_count >= RANGES_MAX) {
        return false;
    }
    uint32_t capacity = p->range_capacity == 1 ? 8 : p->range_capacity * 2;
    struct range *ranges = um_malloc(capacity * sizeof *ranges);
    if (ranges == NULL) {
        return false;
    }
    memcpy(ranges, p->ranges, p->range_count * sizeof *ranges);
    if (p->ranges != &p->single) {
        um_free(p->ranges);
    }
    p->ranges = ranges;
    p->range_capacity = capacity;
    return true;
}

enum range_rc { RANGE_ADDED, RANGE_REPEATED, RANGE_NO_ROOM };

/* Add [from, to) to the sorted ranges, merging with touching neighbours. */
static enum range_rc add_range(struct partial *p, uint32_t from, uint32_t to)
{
    uint32_t at = p->range_count; /* index of the first range beyond `from`; searched from the new end */
    while (at > 0 && p->ranges[at - 1].from > from) {
        at--;
    }
    struct range *before = at > 0 ? &p->ranges[at - 1] : NULL;
    struct range *after = at < p->range_count ? &p->ranges[at] : NULL;
    if ((before != NULL && before->to > from) || (after != NULL && after->from < to)) {
        return RANGE_REPEATED;
    }
    bool joins_before = before != NULL && before->to == from;
    bool joins_after = after != NULL && after->from == to;
    if (joins_before && joins_after) {
        before->to = after->to;
        memmove(after, after + 1, (p->range_count - at - 1) * sizeof *after);
        p->range_count--;
    } else if (joins_before) {
        before->to = to;
    } else if (joins_after) {
        after->from = from;
    } else {
        if (!more_ranges(p)) {
            return RANGE_NO_ROOM;
        }
        memmove(&p->ranges[at + 1], &p->ranges[at], (p->range_count - at) * sizeof *p->ranges);
        p->ranges[at] = (struct range){from, to};
        p->range_count++;
    }
    return RANGE_ADDED;
}

/* Every fragment may have it; senders put it on all. False: no memory. */
static bool keep_chain(struct partial *p, const struct um_lbmc_msg *msg)
{
    if ((msg->present & UM_LBMC_HAS_APPHDR_CHAIN) == 0 || p->chain != NULL) {
        return true;
    }
    p->chain = um_malloc(msg->apphdr_chain.len);
    if (p->chain == NULL) {
        return false;
    }
    p->chain_len = (uint8_t)msg->apphdr_chain.len; /* of a header, which is shorter than 256 */
    memcpy(p->chain, msg->apphdr_chain.ptr, p->chain_len);
    return true;
}

static void finish(struct um_reassembly *r, struct partial *p, const struct um_lbmc_msg *msg,
                   struct um_reassembled *done)
{
    done->chain_len = 0;
    if (p->chain != NULL && (msg->present & UM_LBMC_HAS_APPHDR_CHAIN) == 0) {
        done->chain_len = p->chain_len;
        memcpy(done->chain, p->chain, p->chain_len);
    }
    done->buf = p->buf;
    done->len = p->len;
    done->first_sqn = p->first_sqn;
    done->last_sqn = p->highest_sqn;
    done->last_offset = p->highest_offset;
    done->batch_flags = p->batch_flags;
    r->bytes -= p->buf->capacity;
    p->buf = NULL;
    remove_partial(r, p);
}

enum um_reassembly_rc um_reassembly_add(struct um_reassembly *r, size_t size_max, const struct um_lbmc_msg *msg,
                                        struct um_reassembled *done, uint32_t *evicted, bool *has_evicted)
{
    *has_evicted = false;
    struct partial *p = find(r, msg->frag.first_sqn);
    if (p == NULL && (p = start(r, msg, evicted, has_evicted)) == NULL) {
        return UM_REASSEMBLY_GIVEN_UP;
    }
    if (p->state == PARTIAL_GIVEN_UP) {
        return UM_REASSEMBLY_IGNORED;
    }
    uint32_t from = msg->frag.offset, to = from + (uint32_t)msg->payload.len;
    if (msg->frag.len != p->len || p->len > size_max || !grow(r, p, to, msg->payload.len) || !keep_chain(p, msg)) {
        give_up(r, p);
        return UM_REASSEMBLY_GIVEN_UP;
    }
    switch (add_range(p, from, to)) {
    case RANGE_REPEATED:
        return UM_REASSEMBLY_IGNORED;
    case RANGE_NO_ROOM:
        give_up(r, p);
        return UM_REASSEMBLY_GIVEN_UP;
    case RANGE_ADDED:
        break;
    }
    memcpy(p->buf->data + from, msg->payload.ptr, msg->payload.len);
    p->received += (uint32_t)msg->payload.len;
    if (msg->present & UM_LBMC_HAS_BATCH) {
        p->batch_flags |= msg->batch_flags;
    }
    if (um_sqn_newer(msg->sqn, p->highest_sqn)) {
        p->highest_sqn = msg->sqn;
        p->highest_offset = from;
    }
    if (p->node.prev != &r->partials) {
        um_list_remove(&p->node);
        um_list_push_front(&r->partials, &p->node);
    }
    if (p->received == p->len) {
        finish(r, p, msg, done);
        return UM_REASSEMBLY_COMPLETE;
    }
    return UM_REASSEMBLY_PENDING;
}

void um_reassembly_lost(struct um_reassembly *r, uint32_t sqn)
{
    struct partial *owner = NULL;
    struct um_list *node;
    UM_LIST_FOREACH(node, &r->partials)
    {
        struct partial *p = UM_CONTAINER_OF(node, struct partial, node);
        if (!um_sqn_newer(p->first_sqn, sqn) && (owner == NULL || um_sqn_newer(p->first_sqn, owner->first_sqn))) {
            owner = p;
        }
    }
    if (owner == NULL || owner->state == PARTIAL_GIVEN_UP) {
        return;
    }
    /* Between its fragments, or where its next fragment would be. Anything further may be of another message. */
    bool tail_missing = owner->ranges[owner->range_count - 1].to != owner->len;
    if (!um_sqn_newer(sqn, owner->highest_sqn) || (tail_missing && sqn == owner->highest_sqn + 1)) {
        give_up(r, owner);
    }
}

bool um_reassembly_unfinished(const struct um_reassembly *r, uint32_t *first_sqn)
{
    struct um_list *node = um_list_first(&r->partials);
    if (node == NULL) {
        return false;
    }
    struct partial *p = UM_CONTAINER_OF(node, struct partial, node);
    *first_sqn = p->first_sqn;
    return p->state == PARTIAL_FILLING;
}

bool um_reassembly_abandon(struct um_reassembly *r, uint32_t *first_sqn)
{
    while (!um_list_empty(&r->partials)) {
        struct partial *p = UM_CONTAINER_OF(r->partials.prev, struct partial, node);
        bool unfinished = p->state == PARTIAL_FILLING;
        *first_sqn = p->first_sqn;
        remove_partial(r, p);
        if (unfinished) {
            return true;
        }
    }
    return false;
}
