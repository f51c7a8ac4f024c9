/* Entries of datagrams that go to the same clients, gathered by lbmrd into fewer datagrams. Owned by um_lbmrd_engine
 * and called by its thread only. What is full, or has to keep the order, leaves through the callback. No clock, no
 * sockets.
 *
 * Questions share datagrams with questions, advertisements with advertisements, of senders whose trailers differ in the
 * source ID alone; that option is left out where senders share. What each sender asked, and what it advertised, stays
 * in its order. */
#ifndef UM_RESOLVER_UM_LBMRD_GATHER_H
#define UM_RESOLVER_UM_LBMRD_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/um_lbmr.h"

#define UM_LBMRD_SHARED_MAX 1472   /* bytes of a datagram that is shared: one frame of an Ethernet */
#define UM_LBMRD_SHARED_TRAILER 64 /* a longer trailer is not shared */
#define UM_LBMRD_BUNDLES 8

/* What a datagram brings. Points into it. */
struct um_lbmrd_entries {
    const uint8_t *bytes, *trailer;
    size_t len, trailer_len;
    uint8_t common[UM_LBMRD_SHARED_TRAILER]; /* the trailer without source ID and length */
    size_t common_len;
    uint8_t head;        /* first byte of the datagram */
    unsigned tqrs, tirs; /* one of them is 0 */
    uint32_t ip;         /* of the sender, network order */
    uint16_t port;
    bool alone; /* shares with others of its address only */
    bool newcomer;
};

struct um_lbmrd_bundle {
    uint32_t number;               /* they are numbered as they begin; 0: empty */
    struct um_lbmrd_entries first; /* without what it points to */
    unsigned datagrams, newcomers, tqrs, tirs;
    bool several_trailers;
    uint8_t trailer[UM_LBMRD_SHARED_TRAILER];
    size_t len; /* of head and entries */
    uint8_t bytes[UM_LBMRD_SHARED_MAX];
};

/* Where a sender's latest entries wait: numbers of bundles. Zeroed for a new sender. */
struct um_lbmrd_waiting {
    uint32_t questions, advertisements;
};

struct um_lbmrd_gather {
    uint32_t last_number;
    unsigned count; /* bundles that are not empty */
    void (*send)(void *arg, uint64_t now_ns, struct um_lbmrd_bundle *bundle);
    void *arg;
    struct um_lbmrd_bundle bundles[UM_LBMRD_BUNDLES];
};

/* Can this valid datagram of `len` bytes share one with others? */
bool um_lbmrd_entries_of(const struct um_lbmr_msg *msg, size_t len, struct um_lbmrd_entries *out);
/* Takes a copy. */
void um_lbmrd_gather_add(struct um_lbmrd_gather *gather, uint64_t now_ns, const struct um_lbmrd_entries *entries,
                         struct um_lbmrd_waiting *sender);
/* Sends what waits of this sender, before something of it that is not gathered. */
void um_lbmrd_gather_send_of(struct um_lbmrd_gather *gather, uint64_t now_ns, const struct um_lbmrd_waiting *sender);
/* Sends everything. */
void um_lbmrd_gather_send(struct um_lbmrd_gather *gather, uint64_t now_ns);

/* For the callback: completes the datagram in bundle->bytes and returns its length. */
size_t um_lbmrd_bundle_finish(struct um_lbmrd_bundle *bundle);

#endif
