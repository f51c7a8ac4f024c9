/* Unicast connections of a context: the request port, and one connection to each request
 * port of another context that something is sent to. Requests, responses, immediate
 * messages, source-side filtering, late join and stores share them. A connection carries
 * LBMC messages one way; what is larger than UM_UNICAST_MAX_MESSAGE the caller fragments.
 *
 * Threads: sends come from any thread; what arrives, and everything marked [loop], is on
 * the context's loop. One lock for the layer, which nobody holds while a handler,
 * listener or waker is called. */
#ifndef UM_TRANSPORT_UNICAST_UNICAST_H
#define UM_TRANSPORT_UNICAST_UNICAST_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/um_buf.h"
#include "base/um_list.h"
#include "config/um_options.h"
#include "net/um_loop.h"
#include "net/um_stream.h"
#include "wire/um_lbmc.h"

/* Connections accepted at the request port at one time, and at most half of the descriptors that the process may have
 * when the port is bound: whoever connects leaves the rest to others. When all are taken, the address with the most of
 * them gives one up for another one; else the one that has brought nothing for the longest time goes, if that is long
 * enough; else the new one is refused. */
#define UM_UNICAST_MAX_INCOMING 1024u
#define UM_UNICAST_SILENCE_NS (30 * UM_NS_PER_SEC)
/* A connection that brings no message in its first minute is closed; one whose stream does not open, sooner. */
#define UM_UNICAST_EXPIRY_NS (60 * UM_NS_PER_SEC)
#define UM_UNICAST_OPENING_NS (5 * UM_NS_PER_SEC)
/* Incoming connections whose streams are not open yet (handshakes of filters); beyond, the oldest of the address that
 * has the most of them gives way. */
#define UM_UNICAST_MAX_OPENING 64u
/* Destinations at one time. Beyond, the one unused for the longest time gives way, or there is an error. */
#define UM_UNICAST_MAX_OUTGOING 1024u
/* The longest LBMC message that goes with a heading. */
#define UM_UNICAST_MAX_MESSAGE (UM_LBMC_MAX_MSGLEN - UM_LBMC_STREAM_HDR_LEN - UM_LBMC_DESTINATION_HDR_LEN)

struct um_unicast;

/* ---- creation ---- */

struct um_unicast_events {
    /* A message arrived at the request port for which no handler is registered; its bytes are valid during the call.
     * [loop] */
    void (*on_message)(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from, uint64_t now_ns);
};

/* Binds the request port when request_tcp_bind_request_port is 1 (error when the range is exhausted). [loop] */
struct um_unicast *um_unicast_create(struct um_loop *loop, const struct um_context_options *opts,
                                     const uint8_t ctxinst[8], const struct um_unicast_events *events, void *user);
/* Covers all byte streams to come, in and out. Before the first of them. [loop] */
void um_unicast_set_layer(struct um_unicast *unicast, const struct um_stream_layer *layer);
/* From here on sends and holds fail with UM_EINVAL, waiting senders return so, and nothing is held; for those who call
 * from other threads and must be waited for before the destruction. [loop] */
void um_unicast_close(struct um_unicast *unicast);
/* Waiting senders return -1/UM_EINVAL; the call waits until they have. Queued messages are dropped, nothing is
 * reported. [loop] */
void um_unicast_destroy(struct um_unicast *unicast);
uint16_t um_unicast_port(const struct um_unicast *unicast); /* host order; 0 = not bound; any thread */
struct in_addr um_unicast_addr(
    const struct um_unicast *unicast); /* address the request port is bound to, INADDR_ANY: all; any thread */

/* Writes the port and the addresses that were chosen; any thread. */
void um_unicast_in_force(const struct um_unicast *unicast, struct um_context_options *out);

/* ---- receiving [loop] ---- */

/* The message lies in `buf`: who refers to that may keep it. */
typedef void (*um_unicast_handler)(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf,
                                   const struct sockaddr_in *from, uint64_t now_ns);
/* Who gets the control messages whose first header after the addressing ones is `header` (SSF_CREQ, late-join and
 * retransmission requests, registrations); one for each. NULL: nobody any more. */
void um_unicast_on_control(struct um_unicast *unicast, uint8_t header, um_unicast_handler fn, void *user);
/* Who gets the messages of a type that carries data: MESSAGE (immediate messages, requests, responses), RETRANS, PRORX.
 */
void um_unicast_on_data(struct um_unicast *unicast, enum um_lbmc_type type, um_unicast_handler fn, void *user);

/* ---- sending, any thread ---- */

/* What the layer puts in front of a message's own headers. */
enum um_unicast_heading {
    UM_UNICAST_BARE,       /* nothing: source-side filtering requests */
    UM_UNICAST_TO_ADDRESS, /* STREAM, DESTINATION */
    UM_UNICAST_TO_INSTANCE /* STREAM, CTXINSTD: for answers to a context that has told its instance */
};

/* Embedded in whoever wants to know when refused sends may be tried again; zeroed before the first use. */
struct um_unicast_waker {
    struct um_list node; /* layer */
    bool asked;          /* layer */
    /* Once after refusals: a destination that has refused something has room again or was given up; which one is not
     * told, and the next send may be refused too. [loop] */
    void (*fn)(struct um_unicast_waker *waker);
};
void um_unicast_waker_cancel(struct um_unicast *unicast,
                             struct um_unicast_waker *waker); /* [loop] before it is freed */

struct um_unicast_send {
    uint32_t ip;      /* network order */
    uint16_t port;    /* host order */
    uint32_t from_ip; /* the connection starts there, by which its receiver knows us; 0: where the options say */
    enum um_unicast_heading heading;
    uint32_t domain;         /* TO_ADDRESS: topic resolution domain; 0: this one */
    const uint8_t *instance; /* TO_INSTANCE: 8 bytes */
    const struct iovec *iov; /* one LBMC message; the first piece holds its fixed header */
    int iovcnt;
    bool several; /* complete LBMC messages one behind the other, in one piece, which must gather */
    bool nonblocking;
    bool gathers;       /* more may follow at once: written with that, in the loop's next pass at the latest */
    bool in_a_row;      /* gathers only behind others of the same pass of an embedded loop, and not for long */
    bool unconditional; /* part of a group whose first message was accepted: never refused for want of room */
    bool numbered;      /* its sequence number is the next of the destination's: 0 for the first while it is known */
    struct um_unicast_waker *waker; /* told after a refusal; may be NULL */
};
/* Queues a message, or writes it at once if nothing is before it; connects when needed. 0: accepted, which survives the
 * loss of the connection but not the end of the destination: that is given up when no connection was possible for
 * response_tcp_deletion_timeout (at least 5 s), or a connection took nothing of what is queued for that time (at least
 * UM_UNICAST_EXPIRY_NS).
 * With response_session_maximum_buffer bytes queued it waits until half of that is left; -1 + UM_EWOULDBLOCK instead
 * when `nonblocking` or in a callback on a loop of its context. Also -1 + UM_EINVAL (senseless arguments; the layer is
 * being destroyed), UM_EOS (the destination was given up while the call waited, or a connect failed at once),
 * UM_ENOMEM. */
int um_unicast_send(struct um_unicast *unicast, const struct um_unicast_send *send);
/* One control record (a chain of headers ending in 0xFF whose first code is `first_header`) with the heading
 * TO_ADDRESS. Never waits. */
int um_unicast_send_control(struct um_unicast *unicast, uint32_t ip, uint16_t port, uint8_t first_header,
                            const uint8_t *record, size_t record_len);
/* A complete LBMC message without a heading. Never waits. */
int um_unicast_send_bare(struct um_unicast *unicast, uint32_t from_ip, uint32_t ip, uint16_t port,
                         const uint8_t *message, size_t len);

/* Keeps the connection to a destination while it is held: of a request not answered yet. Embedded; zeroed before. */
struct um_unicast_hold {
    struct um_list node;          /* layer */
    struct um_unicast_peer *peer; /* layer; NULL: none, or the destination was given up meanwhile */
};
/* Connects ahead of the first message and holds. 0, or -1 + error: nothing is held. Any thread. */
int um_unicast_hold(struct um_unicast *unicast, uint32_t ip, uint16_t port, struct um_unicast_hold *hold);
/* The deletion timeout starts anew. No effect when nothing is held. Any thread. */
void um_unicast_release(struct um_unicast *unicast, struct um_unicast_hold *hold);

/* ---- connections made again ---- */

/* Told each time a connection was made again after a loss, so that state can be sent again. As long as there is a
 * listener, destinations in use are connected again even if nothing is queued for them. */
struct um_unicast_listener {
    struct um_loop *loop;                                                         /* set by the owner: where fn runs */
    void (*fn)(struct um_unicast_listener *listener, uint32_t ip, uint16_t port); /* ip 0: some, too many to name */
    /* layer */
    struct um_list node;
    struct um_unicast_out *out;
    struct um_command command;
    struct {
        uint32_t ip;
        uint16_t port;
    } due[16];
    int due_count;
    bool overflow;
};
void um_unicast_listen(struct um_unicast *unicast, struct um_unicast_listener *listener);   /* any thread */
void um_unicast_unlisten(struct um_unicast *unicast, struct um_unicast_listener *listener); /* on listener->loop */

/* ---- counters, cumulative ---- */

struct um_unicast_stats {
    uint64_t msgs_rcved, msgs_malformed, msgs_foreign, corrupt_connections;
    uint64_t msgs_duplicate,
        msgs_no_stream;               /* of type MESSAGE: its stream was further already; dropped, or not in one */
    uint64_t accepted, refused;       /* incoming connections; those without a place */
    uint64_t displaced, expired;      /* incoming connections: gave way to others; brought no message in time */
    uint64_t msgs_sent, msgs_dropped; /* outgoing */
    uint64_t destinations_refused;    /* over UM_UNICAST_MAX_OUTGOING */
    uint64_t incoming, outgoing;      /* connections now */
};
void um_unicast_stats(const struct um_unicast *unicast, struct um_unicast_stats *out); /* any thread */

#endif
