/* A received LBT-RU session without I/O: connects, keeps the connection alive with
 * acknowledgements, and otherwise does what an LBT-RM receiver does. What is not here is
 * in um_lbtr_rcv_engine.h. */
#ifndef UM_TRANSPORT_LBTR_LBTRU_RCV_ENGINE_H
#define UM_TRANSPORT_LBTR_LBTRU_RCV_ENGINE_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_rcv_engine.h"
#include "wire/um_lbtru.h"

struct um_lbtru_rcv_engine_config {
    uint32_t source_ip;   /* network order */
    uint16_t source_port; /* host order */
    uint32_t session_id;  /* 0: the session has none */
    struct um_lbtr_nak_config naks;
    uint64_t connect_ns;
    uint64_t connect_attempts;
    uint64_t ack_ns;
    uint64_t activity_ns;
};

/* Sends the first connection request. NULL: no memory. */
struct um_lbtr_rcv_engine *um_lbtru_rcv_engine_create(const struct um_lbtru_rcv_engine_config *config,
                                                      struct um_rng *rng, const struct um_lbtr_rcv_outputs *out,
                                                      void *io, uint64_t now_ns);
void um_lbtru_rcv_engine_on_packet(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                                   uint32_t from_ip, uint16_t from_port);
/* The longest time between two of its acknowledgements: a source drops those that are silent for too long. */
uint64_t um_lbtru_rcv_engine_pause_ns(const struct um_lbtr_rcv_engine *engine, uint64_t now_ns);
void um_lbtru_rcv_engine_stats(const struct um_lbtr_rcv_engine *engine, lbm_rcv_transport_stats_lbtru_t *out);

#endif
