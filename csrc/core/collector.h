/* Collectors: messages gathered for a thread that takes them in batches. Context
 * threads append, one thread takes, any thread releases. Receivers reach theirs
 * through a link, one per collector and context, which also brings the news back
 * to the context that there is room again. */
#ifndef UM_CORE_COLLECTOR_H
#define UM_CORE_COLLECTOR_H

#include <stdbool.h>

#include <lbm/um.h>

struct um_collector_link;
struct um_rcv_source;

/* Behind the functions of um.h with the same names; arguments are checked here. */
int um_collector_open(um_collector_t **out, size_t max_bytes);
int um_collector_check(const um_collector_t *collector, const char *api); /* 0, or -1 + UM_EINVAL */
int um_collector_close(um_collector_t *collector);
void um_collector_append(um_collector_t *collector, lbm_rcv_t *rcv, const lbm_msg_t *msg); /* [loop] of the receiver */
int um_collector_take_batch(um_collector_t *collector, size_t max_messages, int timeout_ms, um_batch_t **out);
void um_collector_interrupt(um_collector_t *collector);
int um_collector_descriptor(um_collector_t *collector); /* -1 + error */
void um_collector_counts(um_collector_t *collector, um_collector_stats_t *out);

/* A receiver is created with this callback: 0 and *linkp, NULL when it is another callback; or -1 + error. [loop] */
int um_collector_attach(lbm_rcv_cb_proc proc, void *clientd, lbm_context_t *ctx, struct um_collector_link **linkp);
void um_collector_detach(struct um_collector_link *link); /* NULL: nothing. [loop] */
/* 0, or -1 + UM_EINVAL: the callback is um_collector_rcv_cb and the other arguments do not go with it. */
int um_collector_check_receiver(lbm_rcv_cb_proc proc, void *clientd, const lbm_event_queue_t *evq, const char *api);
void um_collector_read_end(struct um_collector_link *link); /* what was appended is worth waking the taker. [loop] */

/* Sessions left unread for a full collector; implemented in core/rcv_source.c. [loop] */
bool um_rcv_source_can_hold(const struct um_rcv_source *source);
void um_rcv_source_hold(struct um_rcv_source *source);
void um_rcv_sources_release(lbm_context_t *ctx); /* those whose receivers' collectors all have room again */
bool um_collector_full(const struct um_collector_link *link);

#endif
