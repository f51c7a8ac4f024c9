/* A world of LBT-RM engines on the virtual network: one source with its application, any
 * number of receivers, and what must hold at every step. Scenarios create one, let time
 * pass, interfere, and judge. Names begin with rm_. One thread. */
#ifndef SIM_LBTRM_H
#define SIM_LBTRM_H

#include "sim_lbtr.h"
#include "sim_net.h"
#include "transport/lbtr/um_lbtrm_rcv_engine.h"
#include "transport/lbtr/um_lbtrm_src_engine.h"

#define RM_GROUP 0
#define RM_SOURCE_IP 0x0100000au

struct rm_options {
    int receivers;
    unsigned count;    /* datagrams the application sends */
    uint64_t every_ns; /* one each */
    size_t len;        /* payload */
    uint64_t data_bps, rx_bps;
    size_t window;
    uint32_t first_sqn;
    struct sim_impairment net; /* delay_min_ns is used for both when nothing is reordered */
    struct um_lbtr_nak_config naks;
    uint64_t ignore_ns; /* 0: the default, or twice the back-off if that is less */
    uint64_t activity_ns;
    bool hostile; /* others send packets with right identities, or clocks jump */
};

struct rm_world;

enum rm_fate { RM_UNKNOWN, RM_DELIVERED, RM_LOST };

struct rm_receiver {
    struct rm_world *world;
    int node;
    struct um_lbtr_rcv_engine *engine;
    bool begun, ended;
    uint8_t *fate; /* by number since first_sqn */
    uint64_t *delivered_ns;
    struct sim_lbtr_asked asked;
    uint32_t origin; /* first one delivered, counted from first_sqn */
    bool any;
    uint64_t delivered, lost, late, naks;
    uint64_t nak_numbers;
    uint64_t worst_ns; /* from sending to delivery */
    uint64_t last_delivery_ns;
};

struct rm_world {
    struct rm_options options;
    const char *name;
    uint64_t seed;
    struct sim *sim;
    struct um_rng rng; /* of the engines */
    struct um_lbtr_limiter limiter;
    struct um_lbtr_src_engine *source;
    struct um_lbtrm_session session;
    int source_node, stranger_node;
    struct rm_receiver *receivers;
    struct sim_lbtr_stream stream;
    struct sim_lbtr_timing timing;
    uint64_t engine_due, app_due;
    unsigned handed;          /* datagrams committed */
    unsigned backlog;         /* wanted by the application, refused by the limit */
    uint64_t lose_until_ns;   /* everything is lost until then ... */
    bool lose_originals_only; /* ... or originals only */
    uint64_t *sent_ns;        /* by number */
    struct sim_lbtr_rates rates;
    uint64_t nak_packets, nak_numbers, ncf_packets, ncf_bytes, repairs, repair_bytes;
    bool quiet; /* rm_finish() prints nothing: for tests of the world itself */
    const char *broken;
};

struct rm_options rm_plain(void);
struct rm_world *rm_create(const char *name, uint64_t seed, const struct rm_options *options);
/* Report and destroy; true: nothing was broken. */
bool rm_finish(struct rm_world *w);
void rm_broken(struct rm_world *w, const char *what);
/* Make options.net effective. */
void rm_impair(struct rm_world *w);
bool rm_run(struct rm_world *w, uint64_t ns);
void rm_join(struct rm_receiver *r);
void rm_leave(struct rm_receiver *r);
/* Another source in the place of the first one, with another session id, from its beginning. */
void rm_restart_source(struct rm_world *w);
/* Everything from the first number a receiver saw was delivered or reported lost, and the counters say the same; with
 * `all`, delivered. */
bool rm_settled(struct rm_world *w, bool all);
/* Send everything, let the network recover, wait until repairs are over, judge. */
bool rm_scenario(const char *name, uint64_t seed, const struct rm_options *options, bool all);

#define EACH_SEED(count) for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(count); seed++)
#define EACH_SEED_OF_CROWD(count) for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed_of_crowd(count); seed++)

#endif
