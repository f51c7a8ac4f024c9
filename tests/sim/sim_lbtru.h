/* A world of LBT-RU engines on the virtual network: one source with its application, any
 * number of receivers that connect to it, and what must hold at every step. Names begin
 * with ru_. One thread. */
#ifndef SIM_LBTRU_H
#define SIM_LBTRU_H

#include "sim_lbtr.h"
#include "sim_net.h"
#include "transport/lbtr/um_lbtru_rcv_engine.h"
#include "transport/lbtr/um_lbtru_src_engine.h"

#define RU_SOURCE_IP 0x0100000au
#define RU_SOURCE_PORT 14380
#define RU_SID 0x263170a3u

struct ru_options {
    int receivers;
    unsigned count;
    uint64_t every_ns;
    size_t len;
    uint64_t data_bps, rx_bps;
    size_t window;
    uint32_t first_sqn, sid;
    struct sim_impairment net; /* delay_min_ns is used for both when nothing is reordered */
    struct um_lbtr_nak_config naks;
    uint64_t connect_attempts;
    bool hostile; /* others send packets with right identities, or clocks jump */
};

struct ru_world;

struct ru_receiver {
    struct ru_world *world;
    int node;
    struct um_lbtr_rcv_engine *engine;
    bool begun;
    unsigned begins, ends;
    enum um_lbtr_end why;
    uint8_t *fate; /* by number of the application: how often delivered */
    uint64_t delivered, lost, naks, nak_numbers, acks, requests;
    uint64_t worst_ns, last_delivery_ns;
    struct sim_lbtr_stream stream; /* what the source sends to this client */
    struct sim_lbtr_asked asked;
};

struct ru_world {
    struct ru_options options;
    const char *name;
    uint64_t seed;
    struct sim *sim;
    struct um_rng rng;
    struct um_lbtr_limiter limiter;
    struct um_lbtr_src_engine *source;
    int source_node, stranger_node;
    struct ru_receiver *receivers;
    struct sim_lbtr_timing timing;
    uint64_t engine_due, app_due;
    unsigned handed, backlog, connects, disconnects;
    uint64_t *sent_ns; /* by number of the application */
    struct sim_lbtr_rates rates;
    uint64_t resets, repair_bytes, ncf_bytes, to_strangers, bytes_to_strangers;
    uint32_t first_sqn; /* of every client of this source */
    bool deaf;          /* the source hears nothing */
    const char *broken;
};

struct ru_options ru_plain(void);
struct ru_world *ru_create(const char *name, uint64_t seed, const struct ru_options *options);
bool ru_finish(struct ru_world *w);
void ru_broken(struct ru_world *w, const char *what);
void ru_impair(struct ru_world *w);
bool ru_run(struct ru_world *w, uint64_t ns);
/* The receiver starts anew, as it does after a reset. */
void ru_rejoin(struct ru_receiver *r);
void ru_restart_source(struct ru_world *w);
struct um_lbtru_address ru_address(int node);
/* Every receiver connected once and got everything, and the statistics say so. */
void ru_all_delivered(struct ru_world *w);
/* The same, also of what was reported lost before it came. */
void ru_all_delivered_late(struct ru_world *w);
/* Send everything, let the network recover, wait until repairs are over, judge. */
bool ru_scenario(const char *name, uint64_t seed, const struct ru_options *options);

#define EACH_SEED(count) for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(count); seed++)

#endif
