/* LBT-RM source session without I/O: numbers and sends datagrams within the rate limits,
 * keeps them in the transmission window, answers NAKs, announces itself with session
 * messages. Any thread, one at a time (the session lock); times are given by the caller. */
#ifndef UM_TRANSPORT_LBTRM_SOURCE_H
#define UM_TRANSPORT_LBTRM_SOURCE_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_limiter.h"
#include "transport/lbtr/um_lbtr_answer.h"
#include "wire/um_lbtrm.h"

struct um_lbtrm_source;

struct um_lbtrm_source_config {
    struct um_lbtrm_session session; /* id not 0 */
    uint32_t tgsz;                   /* option value, a power of two */
    size_t datagram_max;             /* whole UDP payload */
    size_t window_size, window_limit;
    uint64_t ignore_ns, sm_min_ns, sm_max_ns;
    uint32_t first_sqn; /* 0; tests of the wrap start elsewhere */
};

/* Outputs. A datagram goes to the group: `head` is valid during the call, `body` until the datagram leaves the window
 * (they are adjacent for DATA); `body` may be empty. */
struct um_lbtrm_source_ops {
    void (*send)(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len);
    void (*set_timer)(void *io, uint64_t due_ns); /* replaces the earlier one */
    /* May be called by another session's thread, with locks held: have on_timer() called soon. */
    void (*kick)(void *io);
    /* After um_lbtrm_source_may_send() said no: ask again. From on_timer(). */
    void (*relieved)(void *io);
    /* May be NULL. Does the socket take no more for now? Then data and repairs wait as they do for the rate limit; call
     * on_timer() when there is room again. */
    bool (*full)(void *io);
};

struct um_lbtrm_source *um_lbtrm_source_create(const struct um_lbtrm_source_config *config,
                                               struct um_lbtr_limiter *limiter, const struct um_lbtrm_source_ops *ops,
                                               void *io);
void um_lbtrm_source_destroy(struct um_lbtrm_source *source);

/* Where the next datagram's payload is to be written, and how much fits. NULL: out of memory. */
uint8_t *um_lbtrm_source_acquire(struct um_lbtrm_source *source, size_t *capacity);
/* The payload is complete. Accepted always: callers ask may_send() first, except for what must not be refused. */
enum um_lbtr_commit um_lbtrm_source_commit(struct um_lbtrm_source *source, uint64_t now_ns, size_t len,
                                           size_t user_bytes);
/* False: a session of this context and transport holds datagrams back. With `tell`, relieved() follows. */
bool um_lbtrm_source_may_send(struct um_lbtrm_source *source, bool tell);

/* Datagrams from this index (um_lbtr_slot_index()) on stay in the window: their bodies are still to be sent.
 * UINT64_MAX: none. */
void um_lbtrm_source_pin(struct um_lbtrm_source *source, uint64_t index);

void um_lbtrm_source_on_packet(struct um_lbtrm_source *source, uint64_t now_ns, const uint8_t *data, size_t len);
void um_lbtrm_source_on_timer(struct um_lbtrm_source *source, uint64_t now_ns);

void um_lbtrm_source_stats(const struct um_lbtrm_source *source, lbm_src_transport_stats_lbtrm_t *out);
void um_lbtrm_source_stats_reset(struct um_lbtrm_source *source);
const struct um_lbtr_source_counters *um_lbtrm_source_counters(const struct um_lbtrm_source *source);

#endif
