/* What an LBT-RU source session keeps of each client beside the engine: its name in
 * events, its number and topics in source-side filtering, and which events are still
 * to be reported. Private to csrc/transport/udp.
 * Peers are made and freed by the loop; "lock" = the session lock. */
#ifndef UM_TRANSPORT_LBTRU_PEERS_H
#define UM_TRANSPORT_LBTRU_PEERS_H

#include "base/um_map.h"
#include "transport/lbtr/um_lbtru_src_engine.h"
#include "transport/udp/um_udp_src_session.h"

enum um_lbtru_ssf { UM_LBTRU_SSF_NONE = 0, UM_LBTRU_SSF_INCLUSION = 1, UM_LBTRU_SSF_EXCLUSION = 2 };

struct um_lbtru_peer {
    struct um_list node;        /* [loop] peers->all */
    struct um_list change_node; /* lock: peers->changes */
    struct um_list greet_node;  /* lock: peers->ungreeted */
    struct um_lbtru_address address;
    uint32_t idx;             /* client_idx of source-side filtering: random, so that only the client knows it */
    char text[40];            /* "LBT-RU:ip:port" */
    struct um_u32_map topics; /* lock: topic indexes included or excluded */
    bool changed, gone;       /* lock: in peers->changes; left */
    uint64_t silent_ns;       /* lock: gone because nothing was heard of it for that time; 0: for another reason */
    bool unfiltered;          /* lock: for want of memory it gets everything from here on */
    bool announced;           /* [loop] CONNECT has been reported */
};

struct um_lbtru_peers {
    struct um_map by_address; /* lock */
    struct um_u32_map by_idx; /* lock */
    struct um_list all;       /* changed by the loop; those that are gone stay until that has been reported */
    struct um_list changes;   /* lock: coming or going is to be reported */
    struct um_list ungreeted; /* lock: are still to be told the last numbers */
    uint64_t no_memory;       /* lock: clients served without events, or without the filter they asked for */
};

void um_lbtru_peers_init(struct um_lbtru_peers *peers);
void um_lbtru_peers_free(struct um_lbtru_peers *peers); /* [loop] */
/* Lock. NULL: unknown. */
struct um_lbtru_peer *um_lbtru_peers_by_idx(const struct um_lbtru_peers *peers, uint32_t idx);
struct um_lbtru_peer *um_lbtru_peers_find(const struct um_lbtru_peers *peers, const struct um_lbtru_address *address);
bool um_lbtru_peers_add(struct um_lbtru_peers *peers, const struct um_lbtru_address *address); /* [loop] lock */
void um_lbtru_peers_remove(struct um_lbtru_peers *peers, const struct um_lbtru_address *address,
                           uint64_t silent_ns); /* lock */
/* Lock. The next one that has not been told the last numbers; NULL: none. Told: take it out of peers->ungreeted. */
struct um_lbtru_peer *um_lbtru_peers_ungreeted(const struct um_lbtru_peers *peers);
/* [loop] no lock: CONNECT and DISCONNECT to the streams of the session, except those that wait for their announcement.
 */
void um_lbtru_peers_report(struct um_lbtru_peers *peers, struct um_src_session *session);
void um_lbtru_peers_announce(struct um_lbtru_peers *peers, struct um_src_stream *stream); /* [loop] no lock */

#endif
