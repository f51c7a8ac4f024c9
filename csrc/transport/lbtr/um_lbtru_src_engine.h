/* LBT-RU source session without I/O: knows its clients, numbers datagrams for each of
 * them, sends within the rate limits, answers NAKs, announces itself with session
 * messages. What is not here is in um_lbtr_src_engine.h. */
#ifndef UM_TRANSPORT_LBTR_LBTRU_SRC_ENGINE_H
#define UM_TRANSPORT_LBTR_LBTRU_SRC_ENGINE_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_src_engine.h"
#include "wire/um_lbtru.h"

struct um_lbtru_src_engine_config {
    uint32_t session_id; /* 0: none is used */
    size_t datagram_max; /* whole UDP payload */
    size_t window_size, window_limit;
    uint64_t ignore_ns, sm_min_ns, sm_max_ns, client_activity_ns;
    size_t client_map_size; /* buckets */
    size_t clients_max;     /* 0: UM_LBTRU_CLIENTS_MAX */
    uint32_t first_sqn;     /* of each client, without first_number() */
    uint32_t buffers; /* not 0: the window holds so many datagrams, and their memory is there from the beginning */
};

#define UM_LBTRU_CLIENTS_MAX 10000u
#define UM_LBTRU_EPOCH_NS (2 * UM_NS_PER_SEC)

struct um_lbtru_address {
    uint32_t ip;   /* network order */
    uint16_t port; /* host order */
};

/* Outputs. `head` is valid during the call, `body` until the datagram leaves the window; `body` may be empty. */
struct um_lbtru_src_engine_ops {
    void (*send)(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len, const uint8_t *body,
                 size_t body_len);
    struct um_lbtr_src_outputs common;
    /* A client begins with what comes next: what is batched goes out to the others. NULL: nothing is batched. */
    void (*boundary)(void *io);
    /* The client has shown that it is where its request came from. */
    void (*connected)(void *io, const struct um_lbtru_address *client);
    /* `silent_ns` 0: it was started again; else it is dropped, as nothing was heard of it for that time. */
    void (*disconnected)(void *io, const struct um_lbtru_address *client, uint64_t silent_ns);
    /* Does this client want the datagram (source-side filtering)? NULL: every one. `client` NULL: would one that is not
     * connected yet? */
    bool (*wanted)(void *io, const struct um_lbtru_address *client, const uint8_t *payload, size_t len);
    /* A connection request with a code that means nothing; ignored and counted. NULL: not told. */
    void (*unknown_request)(void *io, const struct um_lbtru_address *from, uint16_t code);
    /* The first number for a client in this epoch: always the same, and nobody else can guess it. It is told in the
     * answer to its request, and repeated in its acknowledgement. NULL: config.first_sqn, for tests. */
    uint32_t (*first_number)(void *io, const struct um_lbtru_address *client, uint64_t epoch);
};

struct um_lbtr_src_engine *um_lbtru_src_engine_create(const struct um_lbtru_src_engine_config *config,
                                                      struct um_lbtr_limiter *limiter,
                                                      const struct um_lbtru_src_engine_ops *ops, void *io);
void um_lbtru_src_engine_on_packet(struct um_lbtr_src_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                                   const struct um_lbtru_address *from);

size_t um_lbtru_src_engine_clients(const struct um_lbtr_src_engine *engine);
/* Requests from addresses that had proved nothing. */
struct um_lbtru_stranger_counts {
    uint64_t answered;
    uint64_t expired; /* of the addresses that were remembered: not heard of again */
};
struct um_lbtru_stranger_counts um_lbtru_src_engine_strangers(const struct um_lbtr_src_engine *engine);
void um_lbtru_src_engine_stats(const struct um_lbtr_src_engine *engine, lbm_src_transport_stats_lbtru_t *out);

#endif
