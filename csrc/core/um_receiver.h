/* Receivers, receiver topics and wildcard receivers, for core/um_context.c, the
 * resolver's events (both [loop]) and the api layer (any thread). */
#ifndef UM_CORE_RECEIVER_H
#define UM_CORE_RECEIVER_H

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_buf.h"
#include "core/um_context.h"

struct um_channel_list;

/* Called by core/um_context.c [loop]. */
int um_receivers_init(lbm_context_t *ctx);     /* maps and lists; fills nothing else */
void um_receivers_destroy(lbm_context_t *ctx); /* frees cached receiver topics; no receivers are left by then */

/* Receivers, behind lbm_rcv_*; `api` names the call in error texts. Not [loop]: any thread except where refused. */
int um_receiver_check(const lbm_rcv_t *rcv, const char *api); /* 0, or -1 + UM_EINVAL */
int um_receiver_topic_lookup(lbm_topic_t **topicp, lbm_context_t *ctx, const char *name,
                             const lbm_rcv_topic_attr_t *attr);
/* `channels`: what it is subscribed to before its first message, so also for wildcard receivers; NULL: nothing. */
int um_receiver_create(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc, void *clientd,
                       lbm_event_queue_t *evq, const struct um_channel_list *channels, const char *api);
/* Those that merge their sources by hot failover numbers; the receiver inside one is an ordinary one otherwise. */
int um_receiver_create_hf(lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                          void *clientd, lbm_event_queue_t *evq, const struct um_channel_list *channels,
                          const char *api);
/* Those of an HFX, with its callback and queue: `*out` is set before the first callback. */
int um_receiver_create_hfx(lbm_hfx_rcv_t **out, lbm_hfx_t *hfx, lbm_context_t *ctx, lbm_topic_t *topic, void *clientd);
bool um_receiver_is_inner(const lbm_rcv_t *rcv); /* of a hot failover receiver or an HFX, with which it goes */
int um_receiver_check_hf(const lbm_hf_rcv_t *hf, const char *api); /* 0, or -1 + UM_EINVAL */
lbm_hf_rcv_t *um_receiver_hf(const lbm_rcv_t *rcv);                /* NULL: it is none, or of an HFX */
lbm_rcv_t *um_receiver_of_hf(const lbm_hf_rcv_t *hf);
int um_receiver_delete(lbm_rcv_t *rcv, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);
lbm_context_t *um_receiver_context(const lbm_rcv_t *rcv);
lbm_event_queue_t *um_receiver_event_queue(const lbm_rcv_t *rcv);
int um_receiver_set_source_clientd(lbm_rcv_t *rcv, const char *source, void *source_clientd);

/* Live options of the receiver's topic: exactly one of `value` and `text` is given. */
int um_receiver_setopt(lbm_rcv_t *rcv, const char *name, const void *value, size_t len, const char *text);
int um_receiver_getopt(lbm_rcv_t *rcv, const char *name, void *value, size_t *len);
int um_receiver_str_getopt(lbm_rcv_t *rcv, const char *name, char *text, size_t *len);
int um_receiver_dump(lbm_rcv_t *rcv, int *count, lbm_config_option_t *out);

/* Transport statistics of the session named `source` (with or without "[index]"). stats NULL: reset. */
int um_receiver_stats(lbm_rcv_t *rcv, const char *source, lbm_rcv_transport_stats_t *stats);
/* Of all sessions of the receiver; `stride` is the caller's element size. *num: room, then count. */
int um_receiver_stats_all(lbm_rcv_t *rcv, int *num, int stride, lbm_rcv_transport_stats_t *stats);
int um_receiver_stats_reset_all(lbm_rcv_t *rcv);

/* Counts since the receiver was created; with `source`, of that source's session alone since it was joined. Any thread
 * but the loop's in a callback. */
int um_receiver_counts(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *out);
int um_wildcard_counts(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *out);

/* Sources of the receiver's topic whose session is active (BOS seen). Any thread. */
int um_receiver_ready_sources(lbm_rcv_t *rcv);
/* Wait for at least `sources` of them; timeout_ms < 0: without bound. 0, or -1 + UM_ETIMEDOUT. Not on the loop. */
int um_receiver_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms);
int um_wildcard_ready_sources(lbm_wildcard_rcv_t *w); /* -1 + error */
int um_wildcard_wait_ready(lbm_wildcard_rcv_t *w, int sources, int timeout_ms);
int um_wildcard_stats_all(lbm_wildcard_rcv_t *w, int *num, lbm_rcv_transport_stats_t *stats);

/* Wildcard receivers, behind lbm_wildcard_rcv_*. */
int um_wildcard_check(const lbm_wildcard_rcv_t *wrcv, const char *api);
int um_wildcard_create(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                       const lbm_rcv_topic_attr_t *tattr, const lbm_wildcard_rcv_attr_t *wattr, lbm_rcv_cb_proc proc,
                       void *clientd, lbm_event_queue_t *evq, const struct um_channel_list *channels, const char *api);
int um_wildcard_delete(lbm_wildcard_rcv_t *wrcv, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);
/* The same for its owner, who is told when the last callback has returned, with any queue. */
int um_wildcard_delete_told(lbm_wildcard_rcv_t *wrcv, lbm_event_queue_cancel_cb_proc told, void *arg, const char *api);
lbm_context_t *um_wildcard_context(const lbm_wildcard_rcv_t *wrcv);
lbm_event_queue_t *um_wildcard_event_queue(const lbm_wildcard_rcv_t *wrcv);
int um_wildcard_setopt(lbm_wildcard_rcv_t *wrcv, const char *name, const void *value, size_t len, const char *text);
int um_wildcard_getopt(lbm_wildcard_rcv_t *wrcv, const char *name, void *value, size_t *len);
int um_wildcard_str_getopt(lbm_wildcard_rcv_t *wrcv, const char *name, char *text, size_t *len);
int um_wildcard_dump(lbm_wildcard_rcv_t *wrcv, int *count, lbm_config_option_t *out);

/* The receiver half of the resolver's events [loop]. */
void um_receivers_on_source(void *topic_user, const struct um_tr_source *source);
void um_receivers_on_source_gone(void *topic_user, const struct um_tr_source *source);
void um_receivers_on_no_source(void *topic_user, bool internal);
int um_wildcard_on_pattern_match(void *pattern_user, const char *topic);
void um_wildcard_on_pattern_incomplete(void *pattern_user);

#endif
