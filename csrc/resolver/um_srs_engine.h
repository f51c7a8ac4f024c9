/* The SRS without its sockets: connections by handle, sessions, sources, interest
 * and patterns, and what is told to whom. Owned and called by one thread; time
 * and bytes are given to it, frames leave through the operations table. Logs
 * through um_log(). */
#ifndef UM_RESOLVER_UM_SRS_ENGINE_H
#define UM_RESOLVER_UM_SRS_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds. A connection proves its address, nothing else: what it can create has a bound for each address and in all. */
#define UM_SRS_MAX_CONNECTIONS 16384
#define UM_SRS_MAX_ADDRESS_CONNECTIONS 4096
#define UM_SRS_MAX_UNREGISTERED 4096         /* connections that have not registered, of all addresses */
#define UM_SRS_MAX_ADDRESS_UNREGISTERED 1024 /* a host may start that many contexts at once */
#define UM_SRS_MAX_QUEUE 1048576             /* changes that wait for one slow client: 8 MiB */
#define UM_SRS_MAX_STATE_BYTES (4ull << 30)  /* records of all addresses, at their charge: see docs/srs.md */
#define UM_SRS_MAX_ADDRESS_BYTES (1ull << 30)
#define UM_SRS_MAX_SESSIONS 131072 /* with those that are away and have not expired */
#define UM_SRS_MAX_ADDRESS_SESSIONS 32768
#define UM_SRS_MAX_PATTERNS 4096 /* different ones: each is matched with every new topic */
#define UM_SRS_MAX_ADDRESS_PATTERNS 2048
#define UM_SRS_MAX_SESSION_PATTERNS 1024
#define UM_SRS_MAX_LEAVES 4096 /* source leaves of one client that wait for their answer */

struct um_srs_config {
    uint64_t source_lifetime_ns, interest_lifetime_ns; /* of records whose client is away; 0: for ever */
    uint64_t leave_backoff_ns;                         /* from a source leave to its answer */
    uint64_t service_interval_ns;                      /* how long a record may wait for others in its batch */
    uint32_t batch_records, batch_bytes;               /* bounds of a batch; the bytes with the frame around it */
    uint32_t turn_batches;                             /* batches to one client before others have their turn */
    uint64_t register_ns;                              /* time to set up and register after connecting */
    size_t max_connections, max_address_connections, max_unregistered, max_address_unregistered;
    size_t max_queue, max_sessions, max_address_sessions, max_patterns, max_address_patterns, max_session_patterns,
        max_leaves;
    uint64_t max_state_bytes, max_address_bytes;
    uint32_t domain_id; /* told to clients; 0: unknown */
    /* Takes the frame, whole. False: no more until um_srs_peer_on_writable(). */
    bool (*send)(void *arg, void *handle, const uint8_t *frame, size_t len);
    /* Processor time this thread has used; NULL: matching patterns has no budget. */
    uint64_t (*cpu_ns)(void *arg);
    /* The engine has done with the connection and calls nothing with this handle again: send what was taken, close. */
    void (*close)(void *arg, void *handle);
    /* May be NULL. What a client did, for monitoring: "UM_CLIENT_CONNECT", "SIR", ... `topic` and `source` are C
     * strings or NULL. */
    void (*event)(void *arg, const char *type, uint32_t ip, uint16_t port, uint32_t session_id, const char *topic,
                  const char *source);
    void *arg;
};

/* The values of config with defaults, bounds included; `send`, `close` and `arg` are the caller's to fill in. */
void um_srs_config_default(struct um_srs_config *config);

struct um_srs_stats {
    uint64_t next_client_id, active_clients, connects, disconnects, max_concurrent;
    uint64_t active_sources, active_interest, active_patterns;
    uint64_t inactive_sources, inactive_interest, inactive_patterns;
    uint64_t expired_sources, expired_interest, expired_patterns;
    uint64_t delete_of_inactive_source, leave_unknown_otid;
    /* errors of clients */
    uint64_t duplicate_sources, duplicate_interest, duplicate_patterns;
    uint64_t delete_unknown_topic, delete_unknown_otid, delete_of_others, leave_unknown_topic;
    /* bounds */
    uint64_t refused_connections; /* too many, of their address or in all */
    uint64_t refused_records;     /* no room for their state, or a pattern that does not compile */
    uint64_t refused_clients;     /* registration or set-up that is not acceptable */
    uint64_t bad_frames;          /* connections closed because of what came */
    uint64_t late_registrations;  /* closed because they had not registered in time */
    uint64_t silent_clients;      /* closed because nothing came for their lifetime */
    uint64_t slow_clients;        /* closed because more changes waited for them than their bound */
    uint64_t held_back_lines;     /* log lines beyond the bound */
};

/* Of one client: counts of records by kind, in the words of the monitoring. */
struct um_srs_client_stats {
    uint64_t sir_sent, ser_sent, rir_sent, rer_sent, wir_sent, wer_sent;
    uint64_t sir_received, sdr_received, rir_received, rdr_received, wir_received, wdr_received, slr_received;
    uint64_t duplicate_rir, duplicate_wir, invalid_messages, invalid_sdr;
    uint64_t active_sources, max_sources, queue_depth;
};

struct um_srs_engine;
struct um_srs_peer; /* a connection */

struct um_srs_engine *um_srs_engine_create(const struct um_srs_config *config, uint64_t now_ns); /* NULL: no memory */
void um_srs_engine_destroy(struct um_srs_engine *engine); /* closes nothing: forgets */

/* A connection was accepted; ip in network order. NULL: refused, close it. */
struct um_srs_peer *um_srs_engine_connect(struct um_srs_engine *engine, uint64_t now_ns, void *handle, uint32_t ip,
                                          uint16_t port);
/* What came. The peer may be closed by it: then close() has been called, and the peer is no more. */
void um_srs_peer_on_bytes(struct um_srs_peer *peer, uint64_t now_ns, const uint8_t *data, size_t len);
void um_srs_peer_on_writable(struct um_srs_peer *peer, uint64_t now_ns);
/* The connection has ended by itself; close() is not called. */
void um_srs_peer_on_disconnect(struct um_srs_peer *peer, uint64_t now_ns);

uint64_t um_srs_engine_next_timer(const struct um_srs_engine *engine);
void um_srs_engine_on_timer(struct um_srs_engine *engine, uint64_t now_ns);

/* Ends every connection in order, for a clean shutdown. */
void um_srs_engine_close_all(struct um_srs_engine *engine, uint64_t now_ns);

const struct um_srs_stats *um_srs_engine_stats(const struct um_srs_engine *engine);
uint64_t um_srs_engine_bytes(const struct um_srs_engine *engine); /* charged for state */
size_t um_srs_engine_topics(const struct um_srs_engine *engine);
/* Registered clients one after the other; start with NULL. */
struct um_srs_peer *um_srs_engine_next_client(const struct um_srs_engine *engine, const struct um_srs_peer *after);
void um_srs_peer_stats(const struct um_srs_peer *peer, struct um_srs_client_stats *out);
uint64_t um_srs_peer_id(const struct um_srs_peer *peer); /* of the registration: never used again */
uint32_t um_srs_peer_ip(const struct um_srs_peer *peer); /* network order */
uint16_t um_srs_peer_port(const struct um_srs_peer *peer);
uint32_t um_srs_peer_session(const struct um_srs_peer *peer);

#endif
