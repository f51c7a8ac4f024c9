/* A small virtual network for engines without I/O: virtual clock, nodes with
 * packet and timer callbacks, links that lose (one by one or in bursts), duplicate,
 * delay, reorder, corrupt, carry only so much and partition under a seed. Nodes whose
 * clocks jump. Multicast groups and unicast.
 *
 *     struct sim *sim = sim_create(seed);
 *     int n = sim_add_node(sim, on_packet, on_timer, arg);
 *     sim_join(sim, group, n); sim_multicast(sim, group, n, bytes, len);
 *     sim_run(sim, until_ns);
 *
 * One thread. A run is a function of its seed. Memory failure aborts the test. */
#ifndef SIM_NET_H
#define SIM_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_random.h"

#define SIM_MS 1000000ull
#define SIM_SEC 1000000000ull

struct sim;

typedef void (*sim_packet_fn)(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from);
typedef void (*sim_timer_fn)(void *arg, uint64_t now_ns);
/* After every event; false fails the run (sim_failed). */
typedef bool (*sim_invariant_fn)(void *arg, uint64_t now_ns);
/* Sees each datagram as it is sent, before impairment: for counting and schedules. */
typedef void (*sim_tap_fn)(void *arg, uint64_t now_ns, int from, const uint8_t *data, size_t len);

struct sim_impairment {
    double loss;        /* probabilities per datagram and destination */
    double shared_loss; /* per datagram: nobody gets it */
    double duplication;
    double corruption;  /* one random byte changes */
    double reordering;  /* delayed by an additional delay_max */
    double burst_begin; /* per datagram: the link goes bad and loses all ... */
    double burst_end;   /* ... until, per datagram, this happens */
    uint64_t delay_min_ns;
    uint64_t delay_max_ns;
    uint64_t rate_bps;    /* of the link to each node; 0: not limited */
    size_t queue_bytes;   /* that wait for the rate; more are lost */
    uint64_t packet_ns;   /* the host takes so long for each packet; 0: no time */
    size_t queue_packets; /* that wait for the host; more are lost */
};

struct sim *sim_create(uint64_t seed);
void sim_destroy(struct sim *sim);
uint64_t sim_now(const struct sim *sim);
/* The clock of a node: simulated time and its offset. Callbacks get it, timers are set by it. */
uint64_t sim_node_now(const struct sim *sim, int node);
/* The node's clock jumps; timers that are due by the new time fire at once. */
void sim_jump_clock(struct sim *sim, int node, int64_t by_ns);
struct um_rng *sim_rng(struct sim *sim); /* for the scenario's own choices */

int sim_add_node(struct sim *sim, sim_packet_fn on_packet, sim_timer_fn on_timer, void *arg);
/* One timer per node; replaces the earlier one. UINT64_MAX: none. */
void sim_set_timer(struct sim *sim, int node, uint64_t due_ns);
void sim_join(struct sim *sim, int group, int node); /* groups 0..15 */
void sim_multicast(struct sim *sim, int group, int from, const uint8_t *data,
                   size_t len); /* the sender too, if joined */
void sim_unicast(struct sim *sim, int from, int to, const uint8_t *data, size_t len);

void sim_impair(struct sim *sim, const struct sim_impairment *impairment);
/* The link to one node. NULL: as all others. */
void sim_impair_node(struct sim *sim, int node, const struct sim_impairment *impairment);
/* Nodes of different islands do not hear each other; all start in island 0. */
void sim_island(struct sim *sim, int node, int island);
void sim_stop_node(struct sim *sim, int node, bool stopped); /* neither receives nor sends nor fires timers */

void sim_tap(struct sim *sim, sim_tap_fn tap, void *arg);
void sim_invariant(struct sim *sim, sim_invariant_fn invariant, void *arg);
/* Runs events up to and including until_ns; the clock then stands there. False when an invariant failed. */
bool sim_run(struct sim *sim, uint64_t until_ns);
bool sim_failed(const struct sim *sim);
uint64_t sim_datagrams(const struct sim *sim); /* sent */
uint64_t sim_bytes(const struct sim *sim);

/* Seeds of a scenario: UM_SIM_SEED or `--seed N` on the command line gives exactly one; else UM_SIM_SEEDS of them
 * (default as given; of the given number UM_SIM_PART = 20 leaves a twentieth), beginning behind UM_SIM_BASE (0). Use:
 * for (uint64_t s = sim_first_seed(); s <= sim_last_seed(5); s++). */
uint64_t sim_first_seed(void);
uint64_t sim_last_seed(uint64_t count);
/* For scenarios with a thousand nodes: a hundredth of UM_SIM_SEEDS. */
uint64_t sim_last_seed_of_crowd(uint64_t count);
/* Prints how to replay; returns false for use in conditions. */
bool sim_report(const char *scenario, uint64_t seed);

#endif
