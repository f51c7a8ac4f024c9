/* The two halves of the UIM layer, glued together by um_uim.c: the incoming side
 * (request port) and the outgoing side (connection cache). Everything is [loop]. */
#ifndef UM_TRANSPORT_UIM_PARTS_H
#define UM_TRANSPORT_UIM_PARTS_H

#include "transport/um_uim.h"

struct um_uim_incoming;
struct um_uim_outgoing;

struct um_uim_incoming_config {
    struct um_loop *loop;
    const uint8_t *ctxinst;
    const struct um_uim_events *events;
    void *user;
    unsigned keepalive_ms; /* 0 = off */
    struct um_uim_stats *stats;
};

/* Takes over the listening descriptor, also on failure (NULL + error). */
struct um_uim_incoming *um_uim_incoming_create(const struct um_uim_incoming_config *config, int listen_fd);
void um_uim_incoming_destroy(struct um_uim_incoming *incoming);

struct um_uim_outgoing_config {
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
    struct um_uim_stats *stats;
};

struct um_uim_outgoing *um_uim_outgoing_create(const struct um_uim_outgoing_config *config);
void um_uim_outgoing_destroy(struct um_uim_outgoing *outgoing);
int um_uim_outgoing_send(struct um_uim_outgoing *outgoing, uint32_t ip, uint16_t port, const uint8_t *message,
                         size_t len);
int um_uim_outgoing_send_control(struct um_uim_outgoing *outgoing, uint32_t ip, uint16_t port, uint8_t first_header,
                                 const uint8_t *record, size_t len);
void um_uim_outgoing_on_reconnect(struct um_uim_outgoing *outgoing, void (*fn)(void *user, uint32_t ip, uint16_t port),
                                  void *user);

#endif
