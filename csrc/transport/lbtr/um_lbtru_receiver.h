/* A received LBT-RU session without I/O: connects, keeps the connection alive with
 * acknowledgements, and otherwise does what an LBT-RM receiver does. One thread; times
 * are given by the caller. */
#ifndef UM_TRANSPORT_LBTRU_RECEIVER_H
#define UM_TRANSPORT_LBTRU_RECEIVER_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_reception.h"
#include "wire/um_lbtru.h"

struct um_lbtru_receiver;

struct um_lbtru_receiver_config {
    uint32_t source_ip;   /* network order */
    uint16_t source_port; /* host order */
    uint32_t session_id;  /* 0: the session has none */
    struct um_lbtr_nak_config naks;
    uint64_t connect_ns;
    uint64_t connect_attempts;
    uint64_t ack_ns;
    uint64_t activity_ns;
};

/* Outputs. None may destroy the engine, except end(), which is the last call. */
struct um_lbtru_receiver_ops {
    void (*send)(void *io, const uint8_t *data, size_t len); /* to the source */
    void (*deliver)(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission);
    void (*lost)(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why);
    void (*begin)(void *io, uint64_t now_ns); /* connected: BOS */
    void (*end)(void *io, uint64_t now_ns, enum um_lbtr_end why);
    void (*set_timer)(void *io, uint64_t due_ns); /* replaces the earlier one */
};

/* Sends the first connection request. */
struct um_lbtru_receiver *um_lbtru_receiver_create(const struct um_lbtru_receiver_config *config, struct um_rng *rng,
                                                   const struct um_lbtru_receiver_ops *ops, void *io, uint64_t now_ns);
void um_lbtru_receiver_destroy(struct um_lbtru_receiver *receiver);
void um_lbtru_receiver_on_packet(struct um_lbtru_receiver *receiver, uint64_t now_ns, const uint8_t *data, size_t len,
                                 uint32_t from_ip, uint16_t from_port);
void um_lbtru_receiver_on_timer(struct um_lbtru_receiver *receiver, uint64_t now_ns);

/* Is nothing missing any more, or nothing to come, of the datagrams before `sqn`? */
bool um_lbtru_receiver_complete_before(const struct um_lbtru_receiver *receiver, uint32_t sqn);

/* The layer above adds to the three lbm_ counters. */
struct um_lbtr_receiver_counters *um_lbtru_receiver_counters(struct um_lbtru_receiver *receiver);
void um_lbtru_receiver_stats(const struct um_lbtru_receiver *receiver, lbm_rcv_transport_stats_lbtru_t *out);
void um_lbtru_receiver_stats_reset(struct um_lbtru_receiver *receiver);

#endif
