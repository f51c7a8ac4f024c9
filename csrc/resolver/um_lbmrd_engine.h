/* The lbmrd daemon without its socket: client table, budgets, forwarding, reaping.
 * Owned and called by one thread; time and datagrams are given to it, sends
 * leave through the operations table. Logs through um_log(). */
#ifndef UM_RESOLVER_UM_LBMRD_ENGINE_H
#define UM_RESOLVER_UM_LBMRD_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "resolver/um_lbmrd_nat.h"

/* Nothing in the protocol proves that a sender has the address it claims. So every address has a bound, and what it may
 * have sent to others has a budget; whoever is new shares one more budget with all others that are. */
#define UM_LBMRD_MAX_CLIENTS 16384        /* default bound; a forged sender can fill the table, not the memory */
#define UM_LBMRD_MAX_ADDRESS_CLIENTS 1024 /* default bound of clients (ports) with one address */
#define UM_LBMRD_OUTPUT_RATE (16u << 20)  /* default budget: bytes a second of what an address sends, copies too */
#define UM_LBMRD_OUTPUT_BURST (32u << 20)
#define UM_LBMRD_DATAGRAM_MAX 65536
#define UM_LBMRD_TIME_RATE 100000000u /* default: nanoseconds of processor time a second for what newcomers send */
#define UM_LBMRD_TIME_BURST 500000000u
/* What a datagram costs grows with the clients, and so does what those that have been here for a while may send. */
#define UM_LBMRD_MAX_OUTPUT_RATE (512ull << 20) /* default: no address gets more, however many clients there are */
#define UM_LBMRD_START_BURST (32ull << 30)      /* default: for all that are there when the daemon starts, together */

/* What several senders say within this time of the last thing forwarded shares datagrams. */
#define UM_LBMRD_GATHER_CLIENTS 10       /* default: with fewer, everything is forwarded as it comes */
#define UM_LBMRD_GATHER_CLIENT_NS 100000 /* default: for each client */
#define UM_LBMRD_GATHER_MOST_NS 10000000 /* the shortest tick of contexts */

/* A client that a datagram goes to: ip in network order, port in host order. */
struct um_lbmrd_peer {
    uint32_t ip;
    uint16_t port;
};

#define UM_LBMRD_PEERS 64 /* at most, in one call of send */

struct um_lbmrd_config {
    uint64_t ttl_ns;      /* a client unheard for longer is removed */
    uint64_t activity_ns; /* how often that is checked */
    size_t max_clients, max_address_clients;
    uint64_t output_rate, output_burst; /* bytes a second, bytes: of each address, and of the newcomers together */
    uint64_t max_output_rate;           /* bytes a second that the budget of an address grows to; 0: it does not grow */
    uint64_t start_burst; /* bytes: what newcomers may have sent in the first seconds of the daemon, beside that */
    uint64_t time_rate,
        time_burst;            /* nanoseconds a second, nanoseconds: of processor time, for the newcomers together */
    size_t gather_clients;     /* from so many on, what is forwarded is gathered ... */
    uint64_t gather_client_ns; /* ... for so long, times the clients; 0: never */
    uint32_t own_ip; /* network order; a datagram that claims to come from here is dropped, it would circle for ever */
    uint16_t own_port;
    const struct um_lbmrd_nat *nat; /* outlives the engine; NULL: nothing is translated */
    uint64_t (*cpu_ns)(void *arg);  /* time used by this thread; NULL: newcomers have a budget of bytes only */
    uint64_t (*had_ns)(void *arg);  /* time that it has had, used or idle, not kept from it; NULL: all that passes */
    /* Send one datagram to each of these; errors[i] gets 0 or an errno value. */
    void (*send)(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                 int *errors);
    void *arg;
};

struct um_lbmrd_stats {
    uint64_t translated; /* pairs of address and port replaced in copies for other domains */
    uint64_t received, keepalives, forwarded, send_errors, invalid, from_self, refused_clients;
    uint64_t evicted_clients; /* silent for a while when the table was full and somebody new came */
    uint64_t over_budget;     /* datagrams not forwarded: their address, or the newcomers, had used up their budget */
    uint64_t newcomers_ns;    /* processor time used for what newcomers sent */
    uint64_t gathered;        /* datagrams that shared one with others on their way out */
    uint64_t circling; /* came back from another daemon that had been made a client (a forged address does that) */
};

struct um_lbmrd;

struct um_lbmrd *um_lbmrd_create(const struct um_lbmrd_config *config, uint64_t now_ns); /* NULL: out of memory */
void um_lbmrd_destroy(struct um_lbmrd *engine);

/* A datagram of at most UM_LBMRD_DATAGRAM_MAX bytes, as received; 0.0.0.0 addresses inside are replaced in place. */
void um_lbmrd_on_datagram(struct um_lbmrd *engine, uint64_t now_ns, uint8_t *data, size_t len, uint32_t ip,
                          uint16_t port);
/* To be called at or after um_lbmrd_next_timer(); sends what was gathered and removes clients that have been silent. */
void um_lbmrd_on_timer(struct um_lbmrd *engine, uint64_t now_ns);
uint64_t um_lbmrd_next_timer(const struct um_lbmrd *engine);

size_t um_lbmrd_clients(const struct um_lbmrd *engine);
const struct um_lbmrd_stats *um_lbmrd_stats(const struct um_lbmrd *engine);

#endif
