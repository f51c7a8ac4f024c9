/* LBT-RU source session without I/O: knows its clients, numbers datagrams for each of
 * them, sends within the rate limits, answers NAKs, announces itself with session
 * messages. Any thread, one at a time (the session lock); times are given by the caller. */
#ifndef UM_TRANSPORT_LBTRU_SOURCE_H
#define UM_TRANSPORT_LBTRU_SOURCE_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_answer.h"
#include "transport/lbtr/um_lbtr_limiter.h"
#include "wire/um_lbtru.h"

struct um_lbtru_source;

struct um_lbtru_source_config {
    uint32_t session_id; /* 0: none is used */
    size_t datagram_max; /* whole UDP payload */
    size_t window_size, window_limit;
    uint64_t ignore_ns, sm_min_ns, sm_max_ns, client_activity_ns;
    size_t client_map_size; /* buckets */
    size_t clients_max;     /* 0: UM_LBTRU_CLIENTS_MAX */
    uint32_t first_sqn;     /* 0; tests of the wrap start elsewhere */
};

#define UM_LBTRU_CLIENTS_MAX 10000u

struct um_lbtru_address {
    uint32_t ip;   /* network order */
    uint16_t port; /* host order */
};

/* Outputs. `head` is valid during the call, `body` until the datagram leaves the window; `body` may be empty. */
struct um_lbtru_source_ops {
    void (*send)(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len, const uint8_t *body,
                 size_t body_len);
    void (*set_timer)(void *io, uint64_t due_ns); /* replaces the earlier one */
    /* May be called by another session's thread, with locks held: have on_timer() called soon. */
    void (*kick)(void *io);
    /* After um_lbtru_source_may_send() said no: ask again. From on_timer(). */
    void (*relieved)(void *io);
    void (*connected)(void *io, const struct um_lbtru_address *client);
    void (*disconnected)(void *io, const struct um_lbtru_address *client);
    /* Does this client want the datagram (source-side filtering)? NULL: every one. */
    bool (*wanted)(void *io, const struct um_lbtru_address *client, const uint8_t *payload, size_t len);
    /* May be NULL. Does the socket take no more for now? Then data and repairs wait as they do for the rate limit; call
     * on_timer() when there is room again. */
    bool (*full)(void *io);
    /* A connection request with a code that means nothing; ignored and counted. NULL: not told. */
    void (*unknown_request)(void *io, const struct um_lbtru_address *from, uint16_t code);
};

struct um_lbtru_source *um_lbtru_source_create(const struct um_lbtru_source_config *config,
                                               struct um_lbtr_limiter *limiter, const struct um_lbtru_source_ops *ops,
                                               void *io);
void um_lbtru_source_destroy(struct um_lbtru_source *source);

/* As for LBT-RM. Without clients the datagram goes nowhere and is not kept. */
uint8_t *um_lbtru_source_acquire(struct um_lbtru_source *source, size_t *capacity);
enum um_lbtr_commit um_lbtru_source_commit(struct um_lbtru_source *source, uint64_t now_ns, size_t len,
                                           size_t user_bytes);
bool um_lbtru_source_may_send(struct um_lbtru_source *source, bool tell);

/* Datagrams from this index (um_lbtr_slot_index()) on stay in the window: their bodies are still to be sent.
 * UINT64_MAX: none. */
void um_lbtru_source_pin(struct um_lbtru_source *source, uint64_t index);

void um_lbtru_source_on_packet(struct um_lbtru_source *source, uint64_t now_ns, const uint8_t *data, size_t len,
                               const struct um_lbtru_address *from);
void um_lbtru_source_on_timer(struct um_lbtru_source *source, uint64_t now_ns);

size_t um_lbtru_source_held(const struct um_lbtru_source *source); /* datagrams not sent yet, of all clients */
size_t um_lbtru_source_clients(const struct um_lbtru_source *source);
void um_lbtru_source_stats(const struct um_lbtru_source *source, lbm_src_transport_stats_lbtru_t *out);
void um_lbtru_source_stats_reset(struct um_lbtru_source *source);
const struct um_lbtr_source_counters *um_lbtru_source_counters(const struct um_lbtru_source *source);

#endif
