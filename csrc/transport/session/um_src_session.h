/* Source side of a transport session: batching, fragmentation and the topics
 * (streams) that share it. Transports plug in below through an operations
 * table; core/um_source.c sits above.
 *
 * Threads: um_src_stream_send() and um_src_stream_flush() run in the caller's
 * thread under the session lock, down to the system call. Everything marked
 * [loop] runs on the context's loop. No lock is held while events are reported. */
#ifndef UM_TRANSPORT_SESSION_SRC_SESSION_H
#define UM_TRANSPORT_SESSION_SRC_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

#include <lbm/lbm.h>

#include "base/um_list.h"
#include "base/um_timer.h"
#include "config/um_options.h"
#include "net/um_loop.h"
#include "net/um_stream.h"
#include "transport/stream/um_stream_filters.h"
#include "wire/um_lbmc.h"

struct um_src_session;
struct um_src_stream;

/* What a transport needs of its context; lives as long as the context. */
struct um_transport_env {
    struct um_loop *loop;
    const struct um_context_options *opts;
    const uint8_t *ctxinst;                     /* 8 bytes */
    uint16_t request_port;                      /* host order, 0 = request port not bound */
    struct in_addr request_ip;                  /* 0.0.0.0 when not bound to an interface */
    struct um_list threads;                     /* um_shm_thread.node: receivers of shared memory [loop] */
    struct um_link_watch *links;                /* of the sessions over UDP; NULL before the first [loop] */
    const struct um_stream_layer *stream_layer; /* covers the byte streams of TCP sessions; NULL: plain TCP; fixed */
    const struct um_stream_settings *stream_settings; /* of that layer; NULL: plain TCP; fixed */
};

/* Events of a stream, on the loop. CONNECT and DISCONNECT come once per client. */
struct um_src_stream_events {
    void (*on_connect)(struct um_src_stream *stream, const char *client);
    void (*on_disconnect)(struct um_src_stream *stream, const char *client);
    void (*on_wakeup)(struct um_src_stream *stream); /* after a non-blocking send was refused */
    /* When the datagram left in which message `sqn` was the first; may be NULL. */
    void (*on_timestamp)(struct um_src_stream *stream, const struct timespec *time, uint32_t sqn);
    /* The one that is not on the loop: in the call of that name, which is about to fail with UM_EWOULDBLOCK. Only
     * where the transport has buffers (um_src_buffers), and keeps the error. */
    void (*on_no_buffer)(struct um_src_stream *stream, int flags, const char *call);
};

/* Why a send on a stream leaves the fast path. */
enum um_src_stream_special {
    UM_STREAM_EXPLICIT_BATCH = 1u << 0, /* between START_BATCH and END_BATCH: messages are held */
    UM_STREAM_CLOSING = 1u << 1,        /* being detached: waiting senders return -1/UM_EINVAL */
    UM_STREAM_IN_MESSAGE = 1u << 2,     /* a thread is between two fragments of a message */
    UM_STREAM_TSNI_QUIET = 1u << 3,     /* active threshold passed: data restarts the TSNI timer */
    UM_STREAM_KEPT = 1u << 4            /* it has a keeper */
};

/* Buffers of a session that messages are written into where they will be read: the calls of the same names in lbm.h.
 * The callers of a session take turns by themselves. Hot path: what api returns is what they return. -1 + error. */
struct um_src_buffers {
    int (*acquire)(struct um_src_stream *stream, void **buffer, size_t len, int flags);
    void (*complete)(struct um_src_stream *stream);
    int (*complete_and_acquire)(struct um_src_stream *stream, void **buffer, size_t len, int flags);
    void (*cancel)(struct um_src_stream *stream);
};

/* Who keeps what a stream sends: retention for late join. Called for each message, or fragment, as it goes into a
 * datagram, under the session lock: it must not wait nor call the stream. `message` has `len` bytes, headers included.
 */
struct um_src_keeper {
    void (*keep)(struct um_src_keeper *keeper, struct um_src_stream *stream, uint32_t sqn, const uint8_t *message,
                 size_t headers, size_t len);
};

/* One topic's stream on a session; embedded in the source object. The caller of attach sets `events`, `tidx` and the
 * two TSNI times; everything else belongs to the session. */
struct um_src_stream {
    struct um_src_session *session;       /* set by attach, cleared by detach */
    void *writer;                         /* session->writer, as long as attached */
    const struct um_src_buffers *buffers; /* that of the transport, as long as attached; NULL: it has none */
    const struct um_src_stream_events *events;
    bool smart; /* of a smart source: on a session of these; set by the caller of attach */
    uint32_t tidx;
    uint32_t next_sqn; /* session lock; um_src_numbers.h alone looks at it */
    _Atomic uint64_t messages_sent,
        bytes_sent;                            /* accepted, payload; the sender, see um_src_count(); any thread reads */
    unsigned special;                          /* enum um_src_stream_special; session lock */
    uint64_t last_data_ns;                     /* start of the batch that took the last message; session lock */
    uint64_t tsni_interval_ns, tsni_active_ns; /* 0 = off / never stop */
    bool wakeup_wanted;                        /* a non-blocking send was refused; session lock */
    bool tsni_resume;                          /* timer to be armed by the loop; session lock */
    int waiters;                               /* threads waiting in a send or inside a run; session lock */
    struct um_list explicit_batch;             /* held records; session lock */
    struct um_src_keeper *keeper;              /* NULL: what is sent is not kept; session lock */
    bool numbered;                             /* a message was sent with a number that was brought; session lock */
    struct um_list node;                       /* session->streams; changed by the loop under the session lock */
    bool announce_pending;                     /* [loop] CONNECT of the clients already there is still to come */
    bool tsni_due;                             /* [loop] collected for the next TSNI message */
    struct um_timer tsni_timer;                /* [loop] */
};

/* A message was accepted. Senders take turns (session lock, or the rules of lbm_src_buff_acquire()). */
static inline void um_src_count(struct um_src_stream *stream, size_t len)
{
    uint64_t messages = atomic_load_explicit(&stream->messages_sent, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&stream->bytes_sent, memory_order_relaxed);
    atomic_store_explicit(&stream->messages_sent, messages + 1, memory_order_relaxed);
    atomic_store_explicit(&stream->bytes_sent, bytes + len, memory_order_relaxed);
}

/* A message to send. The extension headers the caller wants (REQUEST, APPHDR_CHAIN, ...) come ready-made. */
struct um_send {
    const struct iovec *iov; /* payload */
    int iovcnt;
    size_t len;        /* sum of the iovecs; at most INT32_MAX */
    size_t beside_len; /* of it, what does not fill a batch: properties of a message that has more than them */
    int flags;         /* LBM_MSG_START_BATCH .. LBM_MSG_FLUSH, LBM_SRC_NONBLOCK */
    const uint8_t
        *headers; /* well-formed chain of extension headers, before BATCH and FRAG (CTXINSTR, REQUEST), or NULL */
    size_t headers_len;
    uint8_t first_header; /* code of headers[0], or 0 */
    uint8_t chain_len;
    const uint8_t *chain; /* APPHDR_CHAIN (struct um_chain_writer), behind BATCH and FRAG, or NULL */
    bool unconditional;   /* part of a group whose first message was accepted: never refused */
    bool leads;           /* the first of such a group: does not slip into the batch while that is held back */
    bool brings_number;   /* `number` is that of the message, or of its first fragment: routers, stores */
    uint32_t number;
    uint32_t first_sqn, last_sqn; /* out */
    bool waited;                  /* out: the call had to wait */
};

/* 0, or -1 with UM_EWOULDBLOCK (non-blocking refused, or blocking in a callback of the context), UM_EINVAL (stream
 * deleted while waiting), UM_ENOMEM, UM_EOP (END without START), UM_EINVAL (a number that goes back or too far ahead).
 * A non-blocking send is taken whole or not at all. */
int um_src_stream_send(struct um_src_stream *stream, struct um_send *send);
/* The same for a message without extension headers, and the fast path: one lock, one copy, no clock, no allocation. */
int um_src_stream_send_plain(struct um_src_stream *stream, const void *data, size_t len, int flags, bool *waited);
/* A short message with a chain of elements (or without: 0 bytes) in front of its payload, and with one more piece
 * behind that, properties. True: it was sent, as fast as a plain one. False: nothing has happened; it is to be sent by
 * um_src_stream_send(), because it needs fragments, waits, or belongs to an explicit batch. */
struct um_src_parts {
    const uint8_t *chain; /* as um_send.chain */
    size_t chain_len;
    const void *data;
    size_t len;
    const void *behind;
    size_t behind_len;
    size_t beside_len; /* as um_send.beside_len */
};
bool um_src_stream_send_parts(struct um_src_stream *stream, const struct um_src_parts *parts, int flags);
/* The same of a message with one element of 4 bytes. */
bool um_src_stream_send_single(struct um_src_stream *stream, const uint8_t chain[UM_CHAIN_SINGLE_U32], const void *data,
                               size_t len, int flags);
/* And with something behind the payload that is not counted as payload when there is some. */
bool um_src_stream_send_beside(struct um_src_stream *stream, const uint8_t chain[UM_CHAIN_SINGLE_U32],
                               struct um_slice data, struct um_slice beside, int flags);
/* Many messages without extension headers, from one buffer. */
struct um_send_run {
    const uint8_t *base;
    const uint64_t *offsets; /* NULL: message i begins at base + i * stride */
    const uint32_t *lengths; /* NULL: each has `length` bytes */
    size_t stride, length;
    size_t count;
    int flags;   /* as for one message; the batch marks and the flush go to the ends */
    size_t sent; /* out: accepted */
    bool waited; /* out */
};
/* As um_src_stream_send_plain() for one after the other, up to the first that fails; one lock for many. */
int um_src_stream_send_run(struct um_src_stream *stream, struct um_send_run *run);

/* ---- smart sources: um_src_smart.c ---- */

/* Room in their datagrams for the headers of a message, or for a TSNI of many topics. */
#define UM_SRC_SMART_HEADERS 288u
/* Integer properties have names of 1 to 7 characters. */
#define UM_SRC_SMART_NAME_MAX 7u
/* Bytes of the integer properties of a message, as many and as long as the source may have; 0: it has none. */
size_t um_src_smart_properties_room(const struct um_source_options *opts);
/* Bytes of a message with all its properties. */
size_t um_src_smart_message_max(const struct um_source_options *opts);
/* A power of two, at least `wanted` and at most `max`; a warning with this id tells if it is another number. 0 +
 * UM_EINVAL: so many of `each` bytes are more than half of the machine's memory. */
uint32_t um_src_smart_count(uint32_t wanted, uint32_t max, size_t each, const char *option, const char *id,
                            const char *topic);
uint32_t um_src_smart_power(uint32_t wanted, uint32_t max);
size_t um_src_stream_whole_max(const struct um_src_stream *stream); /* bytes of payload that need no fragments */
/* Is the caller the thread whose sends the session takes, or the first that asks? Any thread. */
bool um_src_stream_own_thread(struct um_src_stream *stream);

/* From now on; NULL: nobody. Attached; any thread. -1 + UM_EOPNOTSUPP: the transport gives its buffers away. */
int um_src_stream_set_keeper(struct um_src_stream *stream, struct um_src_keeper *keeper);
/* What is held by an explicit batch, then the session's batch. Never waits. */
void um_src_stream_flush(struct um_src_stream *stream);

/* Threads that wait in a send of the stream, or are about to, return -1/UM_EINVAL. [loop] Before the detachment, where
 * the stream cannot go before they have returned. */
void um_src_stream_end_sends(struct um_src_stream *stream);
/* Flushes without waiting, wakes blocked senders, reports nothing more; ends the session with its last stream. */
void um_src_stream_detach(struct um_src_stream *stream);
/* Facts about the session of a stream; [loop] or any thread where noted. */
void um_src_stream_source_info(const struct um_src_stream *stream,
                               lbm_transport_source_info_t *out); /* any thread; ip 0 when INADDR_ANY */
/* [loop] Overwrites in `out`, the options of the source, what is in force instead: decided by the first source of the
 * session, chosen, or rounded. Strings and lists stay. */
void um_src_stream_in_force(const struct um_src_stream *stream, struct um_source_options *out);
int um_src_stream_stats(struct um_src_stream *stream, lbm_src_transport_stats_t *out); /* any thread */
void um_src_stream_stats_reset(struct um_src_stream *stream);
/* Live setopt of implicit_batching_* (last value set counts for the session). */
void um_src_stream_set_batching(struct um_src_stream *stream, uint64_t interval_ns, size_t minimum_length,
                                bool adaptive);
/* What did not reach a connected client of the session: every discard is counted here and reported in the log. */
struct um_src_drops {
    uint64_t datagrams, bytes;     /* taken out of or kept from the queues of slow clients */
    uint64_t unsent_bytes;         /* queued for a client when its connection ended */
    uint64_t ignored_from_clients; /* messages a client sent that a source has no use for */
    uint64_t filtered_bytes;       /* not wanted by a client (source-side filtering); no loss */
    uint64_t unheard_bytes;        /* sent while no client was connected; no loss */
    uint64_t refused;              /* datagrams the system did not send: no route, interface down, no room; receivers
                                      ask for them again */
    uint64_t unopened;  /* TCP: connections whose streams did not open: handshakes that failed or took too long */
    uint64_t strangers; /* LBT-RU: requests answered whose senders had proved nothing */
};
void um_src_stream_drops(const struct um_src_stream *stream, struct um_src_drops *out); /* any thread */
struct um_src_counts {
    uint64_t messages, bytes;  /* of this stream: accepted by its sends, payload */
    int clients;               /* of the session, now */
    struct um_src_drops drops; /* of the session */
    uint32_t blocked_by;       /* shared memory: process whose receiver holds the session up now; 0: none */
    uint64_t blocked_ns;       /* shared memory: waiting of senders of the session for receivers */
    uint64_t receivers_lost;   /* shared memory: receivers that died, or wrote what no receiver writes */
};
void um_src_stream_counts(const struct um_src_stream *stream, struct um_src_counts *out); /* any thread; consistent */
/* Repairs a receiver asked for. */
struct um_src_nak_count {
    uint32_t ip;   /* network order; 0: of several receivers together */
    uint16_t port; /* host order: of the socket it sends NAKs from */
    uint64_t packets, naks;
    uint64_t last_ns; /* clock of um_clock_ns() */
};
/* By receiver, most first: returns how many there are, fills up to max. Any thread. 0 for transports without NAKs. */
int um_src_stream_naks(const struct um_src_stream *stream, struct um_src_nak_count *out, int max);
/* Does its transport carry messages only, without requests, properties and other extension headers? */
bool um_src_stream_plain_only(const struct um_src_stream *stream);
/* Blocked/connected facts for readiness: number of clients now. */
int um_src_stream_clients(const struct um_src_stream *stream);

#endif
