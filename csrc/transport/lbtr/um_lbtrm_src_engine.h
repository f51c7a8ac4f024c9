/* LBT-RM source session without I/O: numbers and sends datagrams within the rate limits,
 * keeps them in the transmission window, answers NAKs, announces itself with session
 * messages. What is not here is in um_lbtr_src_engine.h. */
#ifndef UM_TRANSPORT_LBTR_LBTRM_SRC_ENGINE_H
#define UM_TRANSPORT_LBTR_LBTRM_SRC_ENGINE_H

#include <lbm/lbm.h>

#include "transport/lbtr/um_lbtr_src_engine.h"
#include "wire/um_lbtrm.h"

struct um_lbtrm_src_engine_config {
    struct um_lbtrm_session session; /* id not 0 */
    uint32_t tgsz;                   /* option value, a power of two */
    size_t datagram_max;             /* whole UDP payload */
    size_t window_size, window_limit;
    uint64_t ignore_ns, sm_min_ns, sm_max_ns;
    uint32_t first_sqn; /* 0; tests of the wrap start elsewhere */
    uint32_t buffers;   /* not 0: the window holds so many datagrams, and their memory is there from the beginning */
};

/* Outputs. A datagram goes to the group: `head` is valid during the call, `body` until the datagram leaves the window
 * (they are adjacent for DATA); `body` may be empty. */
struct um_lbtrm_src_engine_ops {
    void (*send)(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len);
    struct um_lbtr_src_outputs common;
};

struct um_lbtr_src_engine *um_lbtrm_src_engine_create(const struct um_lbtrm_src_engine_config *config,
                                                      struct um_lbtr_limiter *limiter,
                                                      const struct um_lbtrm_src_engine_ops *ops, void *io);
void um_lbtrm_src_engine_on_packet(struct um_lbtr_src_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len);
void um_lbtrm_src_engine_stats(const struct um_lbtr_src_engine *engine, lbm_src_transport_stats_lbtrm_t *out);

#endif
