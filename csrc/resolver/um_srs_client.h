/* One connection of a context to a resolution server (SRS), without its socket:
 * connecting, registering, telling what the journal has, hearing of sources,
 * keepalives, coming back after every end. Time and bytes are given to it, what it
 * wants goes out through the operations table.
 * Confined to the context's loop. Callbacks run inside the calls below and may
 * change the journal, but not end the connection. */
#ifndef UM_RESOLVER_SRS_CLIENT_H
#define UM_RESOLVER_SRS_CLIENT_H

#include <netinet/in.h>

#include "base/um_timer.h"
#include "resolver/um_srs_journal.h"
#include "resolver/um_srs_records.h"

#define UM_SRS_CONNECT_NS (5 * UM_NS_PER_SEC) /* for the connection; and again for the answer to the registration */
#define UM_SRS_KEEPALIVE_NS (5 * UM_NS_PER_SEC)
#define UM_SRS_LIFETIME_NS (20 * UM_NS_PER_SEC) /* without any frame */
#define UM_SRS_BACKOFF_FIRST_NS UM_NS_PER_SEC   /* half of it to one and a half */
/* The longest time between two attempts, a quarter more or less: who was away for hours is found within 5 seconds. */
#define UM_SRS_BACKOFF_MOST_NS (3200 * UM_NS_PER_MS)
#define UM_SRS_STEADY_NS (10 * UM_NS_PER_SEC) /* a connection that lasted so long begins again with the first delay */
#define UM_SRS_GATHER_NS (10 * UM_NS_PER_MS)  /* news within this time of the last are told together */
#define UM_SRS_CREDIT 128u                    /* frames the server may send before it is given more */
#define UM_SRS_CREDIT_STEP 64u

enum um_srs_state { UM_SRS_IDLE, UM_SRS_CONNECTING, UM_SRS_REGISTERING, UM_SRS_ACTIVE, UM_SRS_BACKOFF };

struct um_srs_client;

struct um_srs_client_ops {
    /* Begin to connect; um_srs_client_connected() or _closed() follows, later. -1 + error: cannot even begin. */
    int (*connect)(void *io);
    /* At once, after as much of the last bytes as the socket takes; no more calls about this connection. */
    void (*disconnect)(void *io, const uint8_t *last, size_t len);
    void (*has_output)(void *io); /* something waits to be sent: call um_srs_client_output(), but not from inside */
    void (*on_active)(void *io, uint32_t domain_id); /* registered; domain_id of the answer, 0: none */
    void (*on_lost)(void *io);                       /* no longer registered */
    void (*on_attempt_failed)(void *io);
    void (*on_source)(void *io, const struct um_tr_source *source); /* cost below 0: it has ended */
};

struct um_srs_client_config {
    struct um_srs_journal *journal;
    unsigned reader;                /* of the journal */
    const struct um_srs_self *self; /* as long as the client */
    struct in_addr service_ip;
    uint16_t service_port; /* host order */
    uint32_t context_id;   /* for log lines */
    uint64_t seed;
};

struct um_srs_link_stats {
    uint64_t connections;   /* registered */
    uint64_t lost;          /* of these */
    uint64_t failed;        /* attempts that came to nothing */
    uint64_t records_sent;  /* of all kinds */
    uint64_t sources, ends; /* SIR and SER taken */
    uint64_t ignored;       /* records of no use to a context, and sources of another world */
    uint64_t invalid;       /* frames, records and sources that make no sense */
};

struct um_srs_client *um_srs_client_create(const struct um_srs_client_config *config,
                                           const struct um_srs_client_ops *ops, void *io); /* NULL + error */
void um_srs_client_destroy(struct um_srs_client *client);                                  /* says nothing to anybody */
void um_srs_client_start(struct um_srs_client *client, uint64_t now_ns);

/* ip in network order, port in host order, of this end. */
void um_srs_client_connected(struct um_srs_client *client, uint64_t now_ns, struct in_addr ip, uint16_t port);
void um_srs_client_closed(struct um_srs_client *client, uint64_t now_ns, const char *why);
void um_srs_client_received(struct um_srs_client *client, uint64_t now_ns, const uint8_t *data, size_t len);
/* The next bytes to send, 0: none. Those not sent are there the next time. */
size_t um_srs_client_output(struct um_srs_client *client, uint64_t now_ns, const uint8_t **data);
void um_srs_client_sent(struct um_srs_client *client, size_t len);
/* There is news in the journal. They are output at once after a silence, else with what comes in the next moment: look
 * at um_srs_client_due(). */
void um_srs_client_changed(struct um_srs_client *client, uint64_t now_ns);
/* The context is deleted: the request for sources is taken back after what the journal has. Then output is sent as far
 * as it goes, and the client destroyed. */
void um_srs_client_finish(struct um_srs_client *client);

void um_srs_client_on_timer(struct um_srs_client *client, uint64_t now_ns);
uint64_t um_srs_client_due(const struct um_srs_client *client); /* UM_NEVER: no timer wanted */

enum um_srs_state um_srs_client_state(const struct um_srs_client *client);
void um_srs_client_get_stats(const struct um_srs_client *client, struct um_srs_link_stats *out);
void um_srs_client_reset_stats(struct um_srs_client *client);

#endif
