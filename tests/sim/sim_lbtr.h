/* What any correct sender and receiver of LBT-RM or LBT-RU keeps to, watched from outside
 * on the virtual network: numbering, trails, repairs, confirmations, the timing of NAKs.
 * Each check returns NULL or says what was wrong. One thread. */
#ifndef SIM_LBTR_H
#define SIM_LBTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim_net.h"
#include "transport/lbtr/um_lbtr_limiter.h"
#include "transport/lbtr/um_lbtr_reception.h"
#include "wire/um_lbtr.h"

struct sim_lbtr_timing {
    uint64_t ignore_ns, sm_min_ns;                   /* of the source */
    uint64_t backoff_ns, suppress_ns, generation_ns; /* of the receivers */
    uint64_t slack_ns;                               /* for a generation interval to be noticed */
};

/* One number space, as its source fills it. */
struct sim_lbtr_stream {
    uint32_t first, next, trail, next_sm;
    size_t capacity; /* originals at most */
    uint64_t last_data_ns;
    struct sim_lbtr_sent *sent; /* by number since `first` */
};

/* What one receiver asked for. */
struct sim_lbtr_asked {
    struct sim_lbtr_number *numbers; /* by number since the stream's first */
    size_t capacity;
    uint64_t span, span_packets; /* of 10 ms */
};

void sim_lbtr_stream_init(struct sim_lbtr_stream *stream, uint32_t first, size_t capacity);
void sim_lbtr_stream_free(struct sim_lbtr_stream *stream);
const char *sim_lbtr_data(struct sim_lbtr_stream *stream, const struct sim_lbtr_timing *timing, uint64_t now_ns,
                          uint32_t sqn, uint32_t trail, bool retransmission, const uint8_t *payload, size_t len);
const char *sim_lbtr_sm(struct sim_lbtr_stream *stream, const struct sim_lbtr_timing *timing, uint64_t now_ns,
                        uint32_t sm_sqn, uint32_t lead, uint32_t trail, bool syn);
const char *sim_lbtr_ncf(struct sim_lbtr_stream *stream, const struct sim_lbtr_timing *timing, uint64_t now_ns,
                         uint32_t trail, uint8_t reason, const struct um_lbtr_list *list);

void sim_lbtr_asked_init(struct sim_lbtr_asked *asked, size_t capacity);
void sim_lbtr_asked_free(struct sim_lbtr_asked *asked);
/* `hostile`: others claim numbers, so a receiver may ask for what was never sent. */
const char *sim_lbtr_nak(struct sim_lbtr_asked *asked, const struct sim_lbtr_stream *stream,
                         const struct sim_lbtr_timing *timing, uint64_t now_ns, const struct um_lbtr_list *list,
                         bool hostile);
/* The receiver got the datagram, or a refusal. */
void sim_lbtr_arrived(struct sim_lbtr_asked *asked, const struct sim_lbtr_stream *stream, uint32_t sqn);
void sim_lbtr_refused(struct sim_lbtr_asked *asked, const struct sim_lbtr_stream *stream,
                      const struct sim_lbtr_timing *timing, uint64_t now_ns, const struct um_lbtr_list *list);

/* What was sent in one interval of the rate limiter stays within its limits. */
struct sim_lbtr_rates {
    uint64_t interval, bytes, rx_bytes;
};
const char *sim_lbtr_rated(struct sim_lbtr_rates *rates, const struct um_lbtr_limiter *limiter, uint64_t now_ns,
                           size_t len, bool retransmission);
/* The statistics of a receiver say what was delivered and lost, and how many NAKs it sent in how many packets. */
const char *sim_lbtr_counted(const struct um_lbtr_receiver_counters *counters, uint64_t delivered, uint64_t lost,
                             uint64_t naks, uint64_t nak_packets);

/* Not a check: what somebody who knows the identity of a session puts into datagrams. */
enum sim_lbtr_lie {
    SIM_LIE_NUMBER,     /* raised by up to a million */
    SIM_LIE_BOTH,       /* and the trail with it */
    SIM_LIE_RUN,        /* a few dozen in a row, somewhere ahead */
    SIM_LIE_RUN_BOTH,   /* and their trails with them */
    SIM_LIE_FAR_STREAM, /* 16 of them two million ahead */
    SIM_LIE_REPAIR,     /* retransmissions of what was never sent */
    SIM_LIE_MIXED,      /* several of these */
    SIM_LIES
};
#define SIM_FORGED 0xf0f0f0f0u /* payload of forged datagrams, and all of it */
struct sim_lbtr_forged {
    uint32_t sqn, trail;
    bool retransmission;
};
#define SIM_FORGED_MAX 128
/* Datagrams that tell the lie of a source whose window is from `trail` to `lead`. Returns how many. None bears a number
 * that the source will use within the next `spare`: that would take the place of one datagram, whatever receivers do.
 */
size_t sim_lbtr_forge(struct um_rng *rng, enum sim_lbtr_lie lie, uint32_t trail, uint32_t lead, uint32_t spare,
                      struct sim_lbtr_forged *out);

/* Not a check: make an impairment effective. `delay_min_ns` is the delay, and no packet takes longer: with reordering
 * some take less, down to half of it. */
void sim_lbtr_impair(struct sim *sim, const struct sim_impairment *net);

/* A node that only sends, in the name of others. */
int sim_lbtr_add_stranger(struct sim *sim);

#endif
