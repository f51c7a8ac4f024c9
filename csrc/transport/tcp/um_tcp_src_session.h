/* TCP source sessions, private to csrc/transport/tcp: the sessions
 * with their listening sockets, and the clients with their output queues.
 * "lock" = the session lock is held; [loop] = on the context's loop. */
#ifndef UM_TRANSPORT_TCP_TCP_SRC_SESSION_H
#define UM_TRANSPORT_TCP_TCP_SRC_SESSION_H

#include <netinet/in.h>

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_random.h"
#include "net/um_stream_listener.h"
#include "transport/session/um_src_batch.h"
#include "transport/session/um_src_pool.h"
#include "transport/stream/um_datagram_queue.h"

#define UM_TCP_CLIENT_IN 256 /* a client's messages longer than this are stepped over without being looked at */
/* Connections of a session whose streams are not open yet (handshakes of filters), and how long each may take. */
#define UM_TCP_OPENING_MAX 64
#define UM_TCP_OPENING_NS (5 * UM_NS_PER_SEC)

/* A connected receiver. Created and freed by the loop. */
struct um_tcp_client {
    struct um_fd ufd;
    struct um_stream stream; /* lock, once it is open; [loop] before */
    struct um_list node;     /* [loop] session->opening, until the stream is open */
    struct um_timer timer;   /* [loop] gives up a stream that does not open */
    struct um_tcp_src_session *session;
    uint32_t ip;                    /* network order */
    uint32_t idx;                   /* client_idx of source-side filtering: random, so that only the client knows it */
    char text[32];                  /* "TCP:ip:port" */
    struct um_datagram_queue queue; /* lock */
    bool dead;                      /* lock: the socket failed; the loop closes it */
    bool write_wanted;              /* lock: the loop writes (or has been asked to) when the socket has room */
    bool written_continues;         /* lock: the last datagram that left ended inside a fragmented message */
    bool tail_continues;            /* lock: so did the last one meant for this client */
    bool skipping;                  /* lock: the rest of a dropped message is kept out too */
    bool full;                      /* lock: the queue has reached the limit and not fallen below it by being read, */
    bool cut;                       /* lock: or, since messages were dropped meanwhile, to half of it */
    struct um_u32_map topics;       /* lock: topic indexes included or excluded by this client */
    uint8_t in[UM_TCP_CLIENT_IN];   /* [loop] start of a message that is not complete yet */
    size_t in_len, in_skip;         /* [loop] */
};

enum um_tcp_ssf { UM_TCP_SSF_NONE = 0, UM_TCP_SSF_INCLUSION = 1, UM_TCP_SSF_EXCLUSION = 2 };

struct um_tcp_src_session {
    struct um_src_session base;
    /* fixed after creation */
    uint16_t port;   /* host order */
    bool reports_id; /* transport_tcp_use_session_id */
    uint32_t session_id;
    uint32_t transport_idx; /* of source-side filtering: random */
    struct in_addr addr;    /* listened on, and told to receivers */
    struct in_addr shown;   /* in source strings: as addr, but never INADDR_ANY if the host has any address */
    int behavior;           /* LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_* */
    enum um_tcp_ssf ssf;
    size_t limit; /* transport_session_maximum_buffer, at least 1 */
    size_t sndbuf;
    bool nodelay, random_order;
    unsigned keepalive_ms;
    /* clients */
    struct um_tcp_client **clients; /* changed by the loop under the lock */
    int clients_size;
    int *order;          /* lock: permutation for random order */
    size_t queued_bytes; /* lock: all clients */
    struct um_rng rng;   /* lock */
    int wake_fd;         /* eventfd: makes the polling sender return */
    /* lock: told to the loop, which logs without the lock */
    uint64_t dropped_told, unsent_told;
    uint64_t dropped_new, no_memory; /* datagrams nothing could make room for; clients given up for lack of memory */
    bool report_wanted;
    /* [loop] */
    struct um_stream_listener listener;
    struct um_list opening; /* clients whose streams are not open yet: nobody else knows them */
    int opening_count;
};

void um_tcp_src_session_text(const struct um_tcp_src_session *session, char *out,
                             size_t size);                                   /* source string without index */
bool um_tcp_client_wants(const struct um_tcp_client *client, uint32_t tidx); /* lock */
struct um_tcp_client *um_tcp_src_session_client(struct um_tcp_src_session *session,
                                                uint32_t idx); /* [loop] NULL: none */

/* Something is still to be written: queued, or held back by the stream. Lock. */
static inline bool um_tcp_client_has_output(const struct um_tcp_client *client)
{
    return client->queue.count > 0 || client->stream.unsent;
}

/* um_tcp_queue.c, lock */
void um_tcp_transmit(struct um_src_session *base, struct um_datagram *datagram);
void um_tcp_client_put(struct um_tcp_client *client, struct um_datagram *datagram); /* shares the datagram */
void um_tcp_client_write(struct um_tcp_client *client);
void um_tcp_client_fail_no_memory(struct um_tcp_client *client); /* the same, and reports the reason */
void um_tcp_client_fail(struct um_tcp_client *client);           /* drops the queue; the loop will see the socket end */
void um_tcp_client_drop_queue(struct um_tcp_client *client);
void um_tcp_pressure(struct um_tcp_src_session *session);
void um_tcp_ask_loop_to_write(struct um_tcp_client *client);
void um_tcp_wait(struct um_src_session *base);
void um_tcp_resume(struct um_src_session *base);
void um_tcp_interrupt(struct um_src_session *base);
bool um_tcp_relieved(const struct um_src_session *base);
void um_tcp_report_drops(struct um_tcp_src_session *session, uint64_t now_ns); /* [loop], no lock */

#endif
