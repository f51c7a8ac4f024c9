/* The parts of the unicast layer, put together by um_unicast.c: the incoming side
 * (request port, [loop]) and the outgoing side with its destinations (peers). "lock" is
 * that of the outgoing side: any thread. */
#ifndef UM_TRANSPORT_UNICAST_UNICAST_PARTS_H
#define UM_TRANSPORT_UNICAST_UNICAST_PARTS_H

#include <stdatomic.h>

#include "base/um_lock.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "transport/stream/um_datagram_queue.h"
#include "transport/unicast/um_unicast.h"

/* um_unicast_stats, as both sides count it. Any thread. */
struct um_unicast_counters {
    _Atomic uint64_t msgs_rcved, msgs_malformed, msgs_foreign, corrupt_connections;
    _Atomic uint64_t msgs_duplicate, msgs_no_stream;
    _Atomic uint64_t accepted, refused, displaced, expired;
    _Atomic uint64_t msgs_sent, msgs_dropped, destinations_refused;
    _Atomic uint64_t incoming, outgoing;
};

/* ---- um_unicast_in.c ---- */

struct um_unicast_in;

struct um_unicast_in_config {
    struct um_loop *loop;
    const uint8_t *ctxinst;
    /* Every message that is for this context. */
    um_unicast_handler on_message;
    void *user;
    unsigned keepalive_ms; /* 0 = off */
    const struct um_stream_layer *layer;
    struct um_unicast_counters *counters;
};

/* Takes over the listening descriptor, also on failure (NULL + error). */
struct um_unicast_in *um_unicast_in_create(const struct um_unicast_in_config *config, int listen_fd);
void um_unicast_in_destroy(struct um_unicast_in *incoming);
void um_unicast_in_set_layer(struct um_unicast_in *incoming, const struct um_stream_layer *layer);

/* ---- um_unicast_out.c ---- */

struct um_unicast_out_config {
    struct um_loop *loop;
    struct in_addr local_addr;   /* connections start here; INADDR_ANY: the kernel chooses */
    struct in_addr request_addr; /* originator in DESTINATION; INADDR_ANY: the local address of the connection */
    uint16_t request_port;       /* host order */
    uint8_t ctxinst[8];
    size_t queue_limit; /* bytes */
    size_t send_buffer; /* SO_SNDBUF, 0 = OS */
    uint64_t deletion_timeout_ns;
    unsigned keepalive_ms; /* 0 = off */
    bool nodelay;
    const struct um_stream_layer *layer;
    struct um_unicast_counters *counters;
};

struct um_unicast_out {
    struct um_unicast_out_config config;
    struct um_lock lock;
    struct um_map by_address;       /* lock: struct um_unicast_address -> peer, those that live */
    struct um_unicast_peer *latest; /* lock: found last; NULL: none of those that live */
    struct um_list peers;           /* lock: um_unicast_peer.node, unused for the longest time first */
    struct um_list dead;            /* lock: given up, freed by the loop when no thread waits in them */
    struct um_list dirty;           /* lock: um_unicast_peer.dirty_node, something is the loop's to do */
    struct um_list graves;          /* lock: um_unicast_link.node, to be closed by the loop */
    struct um_list listeners;       /* lock */
    struct um_list wakers;          /* lock: those that have asked */
    struct um_list ringing;         /* lock: those being told */
    uint32_t next_stream_id;        /* lock */
    bool wake_due;                  /* lock */
    bool closing;                   /* lock */
    int waiters;                    /* lock: threads waiting in a send */
    struct um_condition changed;    /* with lock */
    struct um_command command;      /* the loop's share; posted by any thread */
};

struct um_unicast_out *um_unicast_out_create(const struct um_unicast_out_config *config);
void um_unicast_out_close(struct um_unicast_out *out);   /* [loop] */
void um_unicast_out_destroy(struct um_unicast_out *out); /* [loop] */
int um_unicast_out_send(struct um_unicast_out *out, const struct um_unicast_send *send);
int um_unicast_out_hold(struct um_unicast_out *out, uint32_t ip, uint16_t port, struct um_unicast_hold *hold);
void um_unicast_out_release(struct um_unicast_out *out, struct um_unicast_hold *hold);
void um_unicast_out_listen(struct um_unicast_out *out, struct um_unicast_listener *listener);
void um_unicast_out_unlisten(struct um_unicast_out *out, struct um_unicast_listener *listener);
void um_unicast_out_cancel_waker(struct um_unicast_out *out, struct um_unicast_waker *waker);

/* ---- um_unicast_peer.c ---- */

struct um_unicast_address {
    uint32_t ip; /* network order */
    uint32_t port;
    uint32_t from; /* where the connection starts; 0: config.local_addr */
};

enum um_unicast_peer_state {
    UM_PEER_CONNECTING,
    UM_PEER_CONNECTED,
    UM_PEER_WAITING, /* lost or never reached: tried again at retry_ns */
    UM_PEER_DEAD     /* given up: no longer found by its address */
};

/* A connection, and what the loop knows of it. Made by any thread, closed by the loop alone, which watches it. */
struct um_unicast_link {
    struct um_list node; /* lock: out->graves */
    struct um_unicast_out *out;
    struct um_unicast_peer *peer; /* lock; NULL: lost, in its grave */
    struct um_stream stream;      /* lock */
    struct um_fd ufd;             /* [loop] */
    bool sized;                   /* [loop] its send buffer is set */
    uint64_t negotiates_ns;       /* lock: the stream's filter is being opened since then; 0: not yet */
};

/* What the loop is to say about a peer. */
enum um_unicast_news { UM_PEER_NO_NEWS, UM_PEER_UNREACHED, UM_PEER_LOST, UM_PEER_GIVEN_UP };

/* A destination. */
struct um_unicast_peer {
    struct um_list node, dirty_node; /* lock */
    struct um_unicast_out *out;
    struct um_unicast_address address;
    enum um_unicast_peer_state state;        /* lock */
    struct um_unicast_link *link;            /* lock; NULL while WAITING or DEAD */
    uint64_t retry_ns, last_used_ns;         /* lock */
    uint64_t down_ns;                        /* lock: without a connection since then */
    uint64_t waits_ns;                       /* lock: something is queued since then */
    uint64_t moved_ns;                       /* lock: CONNECTED: something of it was taken then, or it was first */
    bool gathers;                            /* what is queued is written in the next pass of the loop */
    uint64_t row_pass_ns;                    /* lock: the pass of the loop in which a row of messages goes on */
    uint64_t row_ns;                         /* lock: when one of them was written, and those before it */
    bool lost;                               /* lock: a connection failed or broke since the last success */
    bool refused;                            /* lock: a send was refused since there was room */
    uint32_t local_ip;                       /* lock */
    uint32_t stream_id, stream_sqn;          /* lock */
    uint32_t message_sqn;                    /* lock: of the next message that is numbered */
    struct um_datagram_queue queue;          /* lock: of struct um_unicast_message */
    struct um_list holds;                    /* lock */
    struct um_list line;                     /* lock: senders that wait, the first to go first */
    int waiters;                             /* lock */
    bool polling;                            /* lock: one of them sleeps in poll() */
    int wake_fd;                             /* lock: makes it return; -1 before the first waited */
    enum um_unicast_news news;               /* lock */
    char reason[160];                        /* lock: of the news */
    size_t dropped_bytes;                    /* lock: of the news */
    struct um_timer retry_timer, idle_timer; /* [loop] */
};

/* Queued messages, one or several that gathered: each with room for a heading, filled in for the connection it goes out
 * on. Lock. */
struct um_unicast_message {
    struct um_datagram datagram; /* all of them */
    enum um_unicast_heading heading;
    uint32_t domain;
    uint32_t capacity, count; /* bytes of `data`; messages in it */
    uint8_t data[];
};

/* um_unicast_message.c */
struct um_unicast_message *um_unicast_message_create(const struct um_unicast_send *send); /* NULL + error. No lock */
/* One more behind those in it; its bytes, or 0: it does not go there. */
size_t um_unicast_message_append(struct um_unicast_message *message, const struct um_unicast_send *send);
/* So many of `count` messages of the same type, first header and length, one behind the other, and fills in what
 * depends on the connection, if there is one. */
uint32_t um_unicast_message_append_run(struct um_unicast_peer *peer, struct um_unicast_message *message,
                                       const struct um_unicast_send *send, const uint8_t *bodies, uint32_t count);
/* Fills in what depends on the connection, in the messages from this offset on. */
void um_unicast_message_stamp(struct um_unicast_peer *peer, struct um_unicast_message *message, size_t from);

/* um_unicast_peer.c */
/* All with the lock held. */
struct um_unicast_peer *um_unicast_peer_create(struct um_unicast_out *out, const struct um_unicast_address *address,
                                               uint64_t now_ns); /* NULL + error */
/* Queues the message, which is the peer's then, and writes what can be. False + error: out of memory, still the
 * caller's. */
bool um_unicast_peer_put(struct um_unicast_peer *peer, struct um_unicast_message *message, bool gathers,
                         uint64_t now_ns);
/* The message goes to the newest of the queue that gathers. False: it does not. */
bool um_unicast_peer_join(struct um_unicast_peer *peer, const struct um_unicast_send *send, uint64_t now_ns);
/* The same for some of `count` messages of the same type, first header and length, one behind the other: how many. */
uint32_t um_unicast_peer_join_run(struct um_unicast_peer *peer, const struct um_unicast_send *send,
                                  const uint8_t *bodies, uint32_t count, uint64_t now_ns);
/* In a callback on the loop, in the pass of `pass_ns`: does a message of a row, of `len` bytes, gather now? The first
 * is written at once; those that follow in the same pass together, again and again while the callbacks take their time.
 */
bool um_unicast_peer_gathers_row(struct um_unicast_peer *peer, size_t len, uint64_t pass_ns);
/* Goes on with whatever can go on: connecting, writing, giving up. `ready`: UM_FD_READ if there is something to read.
 */
void um_unicast_peer_service(struct um_unicast_peer *peer, uint32_t ready, uint64_t now_ns);
void um_unicast_peer_die(struct um_unicast_peer *peer, const char *reason);
void um_unicast_peer_used(struct um_unicast_peer *peer, uint64_t now_ns);
bool um_unicast_peer_full(const struct um_unicast_peer *peer);     /* sends are refused or wait */
bool um_unicast_peer_relieved(const struct um_unicast_peer *peer); /* those that wait may go on */
void um_unicast_peer_interrupt(struct um_unicast_peer *peer);      /* the thread inside poll() returns */
uint64_t um_unicast_peer_give_up_ns(
    const struct um_unicast_peer *peer); /* when it dies if not connected, or nothing is taken, by then */
void um_unicast_peer_mark(struct um_unicast_peer *peer); /* something is the loop's to do */
/* [loop] without the lock */
void um_unicast_serve(struct um_unicast_out *out);
void um_unicast_peer_free(struct um_unicast_peer *peer); /* DEAD, nobody waits */
void um_unicast_link_free(struct um_unicast_link *link);

#endif
