/* Datagrams of topic resolution over real sockets: one agent for multicast, one
 * for unicast through lbmrd. Created, used and closed by um_resolver.c on the
 * context's loop. */
#ifndef UM_RESOLVER_TR_AGENT_H
#define UM_RESOLVER_TR_AGENT_H

#include "config/um_options.h"
#include "net/um_loop.h"
#include "resolver/um_tr_engine.h"

#define UM_TR_BATCH 4        /* datagrams per receive call */
#define UM_TR_DATAGRAM 65536 /* largest that UDP can carry */

/* Buffers of one batched receive, shared by the sockets of a resolver. */
struct um_tr_inbox;
struct um_tr_inbox *um_tr_inbox_create(void); /* NULL + error */
void um_tr_inbox_free(struct um_tr_inbox *inbox);
/* Reads what the socket holds, up to a bound per call; each datagram goes to fn. */
void um_tr_inbox_read(struct um_tr_inbox *inbox, int fd, uint64_t now_ns,
                      void (*fn)(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, uint32_t from_ip,
                                 uint16_t from_port),
                      void *arg);

/* Sends to ip:port (ip network order, port host order); retries once when the buffer is full. */
enum um_tr_sent um_tr_send_to(int fd, uint32_t ip, uint16_t port, const uint8_t *data, size_t len);

struct um_tr_multicast;
/* NULL + error that names the option and the way without multicast. */
struct um_tr_multicast *um_tr_multicast_create(struct um_loop *loop, const struct um_context_options *opts,
                                               struct um_tr_inbox *inbox, struct um_tr_engine *engine);
enum um_tr_sent um_tr_multicast_send(struct um_tr_multicast *agent, const uint8_t *data, size_t len);
void um_tr_multicast_in_force(const struct um_tr_multicast *agent, struct um_context_options *out);
void um_tr_multicast_close(struct um_tr_multicast *agent);

struct um_tr_lbmrd;
bool um_tr_lbmrd_configured(const struct um_context_options *opts);
struct um_tr_lbmrd *um_tr_lbmrd_create(struct um_loop *loop, const struct um_context_options *opts,
                                       struct um_tr_inbox *inbox, struct um_tr_engine *engine);
enum um_tr_sent um_tr_lbmrd_send(struct um_tr_lbmrd *agent, const uint8_t *data, size_t len);
void um_tr_lbmrd_start(struct um_tr_lbmrd *agent); /* the context has something to resolve */
void um_tr_lbmrd_in_force(const struct um_tr_lbmrd *agent, struct um_context_options *out);
void um_tr_lbmrd_close(struct um_tr_lbmrd *agent);

#endif
