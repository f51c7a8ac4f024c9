/* Answers to late joiners and to recovery: what a context's sources have retained.
 * An engine: requests and time come in, messages go out through a table of
 * callbacks. No socket, clock or lock; [loop] of the context in production.
 *
 * Who asks over a connection has proved the address it comes from, and is answered
 * there. An answer that is to go elsewhere may be ten times as long as the request
 * at most, as for all strangers, so nobody is flooded in another's name. Each
 * address has a budget of processor time, and all together have one.
 *
 * Where retransmissions have a rate limit, requests beyond it wait in a line, and
 * are answered in turn. The line is shorter than the interval after which receivers
 * ask again; when it is full, who has the most in it gives way to who has less. */
#ifndef UM_DELIVERY_RETRANSMITTER_H
#define UM_DELIVERY_RETRANSMITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/um_lbmc.h"

#define UM_RETRANSMITTER_WORK_NS 600000000u  /* in a second, for all */
#define UM_RETRANSMITTER_SHARE_NS 400000000u /* and for one address (or some that share a place in the table) */
#define UM_RETRANSMITTER_PLACES 256u
#define UM_RETRANSMITTER_AMPLIFICATION 10u
#define UM_RETRANSMITTER_PACES 16u
/* A line for a pace: what may be sent in this time, and so many requests. */
#define UM_RETRANSMITTER_LINE_MS 400u
#define UM_RETRANSMITTER_LINE_MAX 4096u

/* Who asks. */
struct um_retransmitter_asker {
    uint32_t ip;             /* network order: of the connection the request came on */
    size_t len;              /* of the request on that connection */
    const uint8_t *instance; /* 8 bytes: its context; NULL: unknown */
    bool begins;             /* it asks what there is, not for a message */
    bool tsni;               /* it asks which number was last */
};

struct um_retransmitter_answer {
    uint32_t ip;   /* network order */
    uint16_t port; /* host order */
    const uint8_t *instance;
};

enum um_retransmitter_drop {
    UM_RETRANSMITTER_NO_PORT,   /* the answer has nowhere to go */
    UM_RETRANSMITTER_NO_SOURCE, /* forged, of a source that is gone, or of one without late join */
    UM_RETRANSMITTER_NOT_KEPT,  /* not any more */
    UM_RETRANSMITTER_UNPROVED,  /* too long for an address that proved nothing */
    UM_RETRANSMITTER_OVER_BUDGET,
    UM_RETRANSMITTER_OVER_PACE, /* the line for the rate limit is full; asked for again in time */
    UM_RETRANSMITTER_BLOCKED,   /* the connection to who asks is full, or cannot be had */
    UM_RETRANSMITTER_DROPS
};

#define UM_RETRANSMITTER_NO_TOPIC SIZE_MAX

struct um_retransmitter_ops {
    /* What is retained of a topic; high is low - 1 when nothing was sent. False: nothing is, ever. */
    bool (*range)(void *user, uint32_t topic_idx, uint32_t *low, uint32_t *high);
    /* A copy of the message as it was sent, in `out` (UM_LBMC_MAX_MSGLEN bytes), and whose pace holds for it. 0: not
     * kept; UM_RETRANSMITTER_NO_TOPIC: nothing is, ever. */
    size_t (*copy)(void *user, uint32_t topic_idx, uint32_t sqn, uint8_t *out, unsigned *pace);
    /* One LBMC message, without what the connection puts in front. False: it cannot be sent now. */
    bool (*send)(void *user, const struct um_retransmitter_answer *to, const uint8_t *message, size_t len);
    void (*set_timer)(void *user,
                      uint64_t due_ns); /* um_retransmitter_on_timer() then; NULL where there are no paces */
    void (*dropped)(void *user, enum um_retransmitter_drop why, const struct um_retransmitter_asker *asker,
                    uint32_t topic_idx, uint64_t now_ns);
};

struct um_retransmitter_stats {
    uint64_t requests, informed, retransmitted, bytes;
    uint64_t waited;  /* requests that had to wait for the pace */
    uint64_t waiting; /* of these now */
    uint64_t drops[UM_RETRANSMITTER_DROPS];
};

struct um_retransmitter;
/* pace_bps: bits in a second for each pace; 0: not limited. NULL: no memory. */
struct um_retransmitter *um_retransmitter_create(const uint64_t pace_bps[UM_RETRANSMITTER_PACES],
                                                 const struct um_retransmitter_ops *ops, void *user);
void um_retransmitter_destroy(struct um_retransmitter *retransmitter);
void um_retransmitter_on_lji_req(struct um_retransmitter *retransmitter, uint64_t now_ns,
                                 const struct um_lbmc_lji_req *req, const struct um_retransmitter_asker *asker);
void um_retransmitter_on_rxreq(struct um_retransmitter *retransmitter, uint64_t now_ns, const struct um_lbmc_rxreq *req,
                               const struct um_retransmitter_asker *asker);
/* What the last request took; who asks pays for it. */
void um_retransmitter_worked(struct um_retransmitter *retransmitter, uint32_t ip, uint64_t took_ns);
void um_retransmitter_on_timer(struct um_retransmitter *retransmitter, uint64_t now_ns);
struct um_retransmitter_stats um_retransmitter_stats(const struct um_retransmitter *retransmitter);

#endif
