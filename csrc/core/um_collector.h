/* Collectors: messages gathered for a thread that takes them in batches. Context
 * threads append, one thread takes, any thread releases. Receivers reach theirs
 * through a link, one per collector and context, which also brings the news back
 * to the context that there is room again. */
#ifndef UM_CORE_COLLECTOR_H
#define UM_CORE_COLLECTOR_H

#include <stdbool.h>

#include <lbm/um.h>

struct um_collector_link;
struct um_rcv_flow;

/* Behind the functions of um.h with the same names; arguments are checked here. */
int um_collector_open(um_collector_t **out, size_t max_bytes, int on_full);
int um_collector_check(const um_collector_t *collector, const char *api); /* 0, or -1 + UM_EINVAL */
int um_collector_close(um_collector_t *collector);
void um_collector_append(um_collector_t *collector, lbm_rcv_t *rcv, const lbm_msg_t *msg); /* [loop] of the receiver */
int um_collector_take_batch(um_collector_t *collector, size_t max_messages, int timeout_ms, um_batch_t **out);
void um_collector_interrupt(um_collector_t *collector);
int um_collector_descriptor(um_collector_t *collector); /* -1 + error */
void um_collector_keep(um_collector_t *collector, bool keep);
void um_collector_look_for_numbers(um_collector_t *c); /* before it has a receiver */
void um_collector_counts(um_collector_t *collector, um_collector_stats_t *out);
uint64_t um_collector_tally_of(um_collector_t *collector, const char *source);

/* A receiver is created with this callback: 0 and *linkp, NULL when it is another callback; or -1 + error. [loop] */
int um_collector_attach(lbm_rcv_cb_proc proc, void *clientd, lbm_context_t *ctx, struct um_collector_link **linkp);
void um_collector_detach(struct um_collector_link *link); /* NULL: nothing. [loop] */
/* 0, or -1 + UM_EINVAL: the callback is um_collector_rcv_cb and the other arguments do not go with it. */
int um_collector_check_receiver(lbm_rcv_cb_proc proc, void *clientd, const lbm_event_queue_t *evq, const char *api);
void um_collector_read_end(struct um_collector_link *link); /* what was appended is worth waking the taker. [loop] */

/* Flows left unread for full collectors are read again if all their receivers' collectors have room; implemented in
 * core/um_rcv_source.c. [loop] */
void um_rcv_sources_release(lbm_context_t *ctx);
/* True: the collector is full, and um_rcv_sources_release() comes to the link's context when half of it is taken. */
bool um_collector_await_room(struct um_collector_link *link);

#endif
