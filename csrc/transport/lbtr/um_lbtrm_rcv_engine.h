/* A received LBT-RM session without I/O: passes datagrams up as they come, finds what
 * is missing, asks for it, reports what will not come, and tells the beginning and the
 * end of the session. What is not here is in um_lbtr_rcv_engine.h. */
#ifndef UM_TRANSPORT_LBTR_LBTRM_RCV_ENGINE_H
#define UM_TRANSPORT_LBTR_LBTRM_RCV_ENGINE_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_rcv_engine.h"
#include "wire/um_lbtrm.h"

struct um_lbtrm_rcv_engine_config {
    uint32_t source_ip; /* network order; packets from elsewhere are ignored */
    struct um_lbtrm_session session;
    struct um_lbtr_nak_config naks;
    uint64_t activity_ns;
    uint64_t preactivity_ns; /* 0: as activity_ns */
};

/* Joins; nothing is sent. NULL: no memory. */
struct um_lbtr_rcv_engine *um_lbtrm_rcv_engine_create(const struct um_lbtrm_rcv_engine_config *config,
                                                      struct um_rng *rng, const struct um_lbtr_rcv_outputs *out,
                                                      void *io, uint64_t now_ns);
/* Before anything came: the session began while its receiver listened. When the first packet shows that the source
 * still has everything since number 0, and that is not more than UM_LBTRM_START_MAX datagrams, what came before is
 * asked for.
 */
#define UM_LBTRM_START_MAX 1024u
void um_lbtrm_rcv_engine_from_start(struct um_lbtr_rcv_engine *engine);
void um_lbtrm_rcv_engine_on_packet(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                                   uint32_t from_ip);
void um_lbtrm_rcv_engine_stats(const struct um_lbtr_rcv_engine *engine, lbm_rcv_transport_stats_lbtrm_t *out);

#endif
