/* Retention: what a source sent, kept for late joiners and for recovery. An engine:
 * messages and time come in, no I/O and no clock. Not thread-safe: its owner locks.
 * Oldest messages go first, and whole ones: all of their fragments. In memory:
 * what is counted, half as much for the index while that grows, two chunks, and one
 * that is being read. */
#ifndef UM_DELIVERY_RETENTION_H
#define UM_DELIVERY_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UM_RETENTION_OVERHEAD 64u /* counted for each message, or fragment, beside its bytes */
/* From the oldest to the newest number: what a receiver can be told of at once. */
#define UM_RETENTION_SPAN_MAX (1u << 28)
#define UM_RETENTION_RECORDS_MAX (1u << 20) /* whose memory is reserved */

/* The oldest message goes when more than size_threshold bytes and more than message_threshold messages are kept and it
 * is older than age_ns (each of them true when 0), and whenever more than size_limit are kept (0: no limit). The newest
 * message stays. */
struct um_retention_config {
    size_t size_threshold, size_limit, message_threshold;
    uint64_t age_ns;
    /* Not 0: instead of all that, the newest so many messages, or fragments, of up to record_max bytes, whose memory is
     * there from the beginning and stays. Only a message of more fragments, or longer ones, asks for more. */
    size_t records, record_max;
};

/* One message, or fragment, as it was sent. */
struct um_retained {
    uint64_t sent_ns;
    uint32_t sqn;
    uint32_t place; /* in its chunk */
    uint16_t len;
    bool begins; /* not a later fragment */
    uint8_t message[];
};

struct um_retention;
struct um_retention *um_retention_create(const struct um_retention_config *config); /* NULL: no memory */
void um_retention_destroy(struct um_retention *retention);
/* Goes out now, newer than all before: an LBMC message. False: no memory, it is not kept. */
bool um_retention_keep(struct um_retention *retention, uint64_t now_ns, uint32_t sqn, const uint8_t *message,
                       size_t len);
void um_retention_expire(struct um_retention *retention, uint64_t now_ns); /* what age alone makes go */
/* Valid until the next call that changes something. NULL: not kept, or not any more. */
const struct um_retained *um_retention_find(const struct um_retention *retention, uint32_t sqn);
/* What lies behind a message that was found, one behind the other: its reader, of which there is one, has it without
 * the owner's lock. It stays while the run is open, be it kept any more or not: one chunk of memory at most. */
struct um_retention_run {
    const uint8_t *next, *end; /* of the reader */
};
/* Finds, and opens the run behind it, if there is any, in place of the one before. */
const struct um_retained *um_retention_open_run(struct um_retention *retention, uint32_t sqn,
                                                struct um_retention_run *run);
void um_retention_close_run(struct um_retention *retention, struct um_retention_run *run);
/* Not the owner's lock. NULL: it is not the next of the run. */
const struct um_retained *um_retention_run_next(struct um_retention_run *run, uint32_t sqn);
/* The oldest and the newest number kept. False: nothing was sent yet. */
bool um_retention_range(const struct um_retention *retention, uint32_t *low, uint32_t *high);

size_t um_retention_count(const struct um_retention *retention);
size_t um_retention_size(const struct um_retention *retention);     /* as counted */
size_t um_retention_memory(const struct um_retention *retention);   /* allocated */
uint64_t um_retention_missed(const struct um_retention *retention); /* not kept for want of memory */

#endif
