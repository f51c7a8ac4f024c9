/* A received LBT-RM session without I/O: passes datagrams up as they come, finds what
 * is missing, asks for it, reports what will not come, and tells the beginning and the
 * end of the session. One thread; times are given by the caller. */
#ifndef UM_TRANSPORT_LBTRM_RECEIVER_H
#define UM_TRANSPORT_LBTRM_RECEIVER_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_reception.h"
#include "wire/um_lbtrm.h"

struct um_lbtrm_receiver;

struct um_lbtrm_receiver_config {
    uint32_t source_ip; /* network order; packets from elsewhere are ignored */
    struct um_lbtrm_session session;
    struct um_lbtr_nak_config naks;
    uint64_t activity_ns;
    uint64_t preactivity_ns; /* 0: as activity_ns */
};

/* Outputs. None may destroy the engine, except end(), which is the last call. */
struct um_lbtrm_receiver_ops {
    void (*nak)(void *io, const uint8_t *data, size_t len); /* to source_ip : ucast_port */
    void (*deliver)(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission);
    void (*lost)(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why);
    void (*begin)(void *io, uint64_t now_ns); /* BOS, once, before the first delivery */
    void (*end)(void *io, uint64_t now_ns, enum um_lbtr_end why);
    void (*set_timer)(void *io, uint64_t due_ns); /* replaces the earlier one */
};

struct um_lbtrm_receiver *um_lbtrm_receiver_create(const struct um_lbtrm_receiver_config *config, struct um_rng *rng,
                                                   const struct um_lbtrm_receiver_ops *ops, void *io, uint64_t now_ns);
void um_lbtrm_receiver_destroy(struct um_lbtrm_receiver *receiver);
void um_lbtrm_receiver_on_packet(struct um_lbtrm_receiver *receiver, uint64_t now_ns, const uint8_t *data, size_t len,
                                 uint32_t from_ip);
void um_lbtrm_receiver_on_timer(struct um_lbtrm_receiver *receiver, uint64_t now_ns);
/* lbm_context_set_nak_cutoff() */
void um_lbtrm_receiver_set_nak_cutoff(struct um_lbtrm_receiver *receiver, uint64_t now_ns, bool cutoff);

/* Is nothing missing any more, or nothing to come, of the datagrams before `sqn`? */
bool um_lbtrm_receiver_complete_before(const struct um_lbtrm_receiver *receiver, uint32_t sqn);

/* The layer above adds to the three lbm_ counters. */
struct um_lbtr_receiver_counters *um_lbtrm_receiver_counters(struct um_lbtrm_receiver *receiver);
void um_lbtrm_receiver_stats(const struct um_lbtrm_receiver *receiver, lbm_rcv_transport_stats_lbtrm_t *out);
void um_lbtrm_receiver_stats_reset(struct um_lbtrm_receiver *receiver);

#endif
