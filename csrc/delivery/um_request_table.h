/* The requests of a context that wait for responses: their indexes, and responses
 * that come in several fragments. No I/O and no lock: core/um_request.c, whose lock
 * it is, calls it with time and messages. */
#ifndef UM_DELIVERY_REQUEST_TABLE_H
#define UM_DELIVERY_REQUEST_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_buf.h"
#include "base/um_list.h"
#include "base/um_map.h"
#include "wire/um_lbmc.h"

/* The largest response; the bytes of all unfinished ones; how many of them, by responder and request. The one that got
 * nothing for the longest time gives way. */
#define UM_RESPONSE_SIZE_MAX ((size_t)256 << 20)
#define UM_RESPONSE_PARTIAL_BYTES_MAX ((size_t)512 << 20)
#define UM_RESPONSE_PARTIALS_MAX 1024u
/* An unfinished response that gets no fragment for so long is given up. */
#define UM_RESPONSE_EXPIRY_NS 60000000000ull

struct um_response_partial;

/* Part of whoever waits for responses. */
struct um_request_entry {
    uint32_t index;         /* 0: not open */
    struct um_list partial; /* um_response_partial.of_request */
};

struct um_request_counts {
    uint64_t delivered;  /* responses handed on */
    uint64_t unknown;    /* messages for an index that is not open: late, or forged */
    uint64_t malformed;  /* fragments that fit nothing */
    uint64_t unfinished; /* responses given up: expired, made room, or larger than may be */
};

struct um_request_table {
    atomic_uint *next_index; /* of the context: one space for all its requests; any thread */
    struct um_u32_map open;  /* index -> um_request_entry */
    struct um_list partials; /* um_response_partial.node, the longest untouched first */
    unsigned partial_count;
    size_t partial_bytes;
    struct um_request_counts counts;
};

void um_request_table_init(struct um_request_table *table, atomic_uint *next_index);
void um_request_table_fini(struct um_request_table *table); /* entries that are open are so no more */

/* Gives the entry an index that no open request has; never 0. 0, or -1 out of memory (no error text set). */
int um_request_table_open(struct um_request_table *table, struct um_request_entry *entry);
void um_request_table_close(struct um_request_table *table, struct um_request_entry *entry); /* open or not */

/* Who responds: the instance of its context, or its address where it tells none. */
struct um_response_sender {
    uint8_t id[8];
};

enum um_response_rc {
    UM_RESPONSE_COMPLETE, /* *out is filled */
    UM_RESPONSE_PENDING,  /* a fragment; more must come */
    UM_RESPONSE_UNKNOWN,  /* nobody waits for it */
    UM_RESPONSE_DROPPED   /* malformed, or no room */
};

struct um_response {
    struct um_request_entry *entry;
    const uint8_t *data;
    size_t len;
    uint32_t sqn;       /* of the first fragment */
    struct um_buf *buf; /* holds the data: the message's, or when `owned` the caller's to release */
    bool owned;
};

/* A message whose index is msg->tidx and whose bytes lie in `buf`. */
enum um_response_rc um_request_table_on_response(struct um_request_table *table, uint64_t now_ns,
                                                 const struct um_lbmc_msg *msg, struct um_buf *buf,
                                                 const struct um_response_sender *from, struct um_response *out);
void um_request_table_expire(struct um_request_table *table, uint64_t now_ns);
/* When to call um_request_table_expire(). UINT64_MAX: not needed. */
uint64_t um_request_table_next_ns(const struct um_request_table *table);

#endif
