/* The table of options and what they rule, in rows (F25): option_reach_*_test.c.
 *
 *     REACHES(context, resolver_datagram_max_size, "1111", context_only, seen.tr.source_datagram_max, 1111);
 *
 * sets the option to a value other than its default through the attribute calls, makes the objects that it takes
 * (context_only() and its kin below), and compares what arrived where the option rules. Each row is a test case named
 * f25_<scope>_<option>. tools/mutate_options.py lets the library read the default instead, and each row must then fail;
 * tests/python/test_tools.py checks that every option that acts has a row.
 * Include after um_test_net.h and um_test_rcv.h. */
#ifndef UM_SUPPORT_TEST_OPTIONS_H
#define UM_SUPPORT_TEST_OPTIONS_H

#include <time.h>

#include "core/um_context.h"
#include "core/um_rcv_private.h"
#include "core/um_source.h"
#include "option_seams.h"
#include "transport/tcp/um_tcp_src_session.h"
#include "transport/session/um_src_batch.h"
#include "transport/udp/um_udp_src_session.h"

struct world {
    lbm_context_attr_t *context;
    lbm_src_topic_attr_t *source;
    lbm_rcv_topic_attr_t *receiver;
    lbm_wildcard_rcv_attr_t *wildcard_receiver;
    lbm_event_queue_attr_t *event_queue;
    lbm_xsp_attr_t *xsp;
    lbm_hfx_attr_t *hfx;
    lbm_context_t *ctx;
    lbm_xsp_t *made_xsp;
    lbm_src_t *src, *second; /* the second is on another topic */
    lbm_ssrc_t *smart;
    lbm_rcv_t *rcv, *second_rcv;
    lbm_wildcard_rcv_t *wildcard;
    lbm_event_queue_t *evq;
    struct recorder recorder;
};

/* By the name of the scope, as the members of struct world. */
#define SET_context(w, name, text) MUST(lbm_context_attr_str_setopt((w)->context, name, text))
#define SET_source(w, name, text) MUST(lbm_src_topic_attr_str_setopt((w)->source, name, text))
#define SET_receiver(w, name, text) MUST(lbm_rcv_topic_attr_str_setopt((w)->receiver, name, text))
#define SET_wildcard_receiver(w, name, text) MUST(lbm_wildcard_rcv_attr_str_setopt((w)->wildcard_receiver, name, text))
#define SET_xsp(w, name, text) MUST(lbm_xsp_attr_str_setopt((w)->xsp, name, text))
#define SET_hfx(w, name, text) MUST(lbm_hfx_attr_str_setopt((w)->hfx, name, text))
#define SET_event_queue(w, name, text) MUST(lbm_event_queue_attr_str_setopt((w)->event_queue, name, text))

#define NEEDS_PRIVATE_NET() TEST_NEEDS_NET()

/* `expression` may use w (struct world *) and seen. */
#define REACHES(scope, option, value, make, expression, wanted)                                                        \
    TEST(f25_##scope##_##option)                                                                                       \
    {                                                                                                                  \
        NEEDS_PRIVATE_NET();                                                                                           \
        struct world the_world, *w = world_open(&the_world);                                                           \
        SET_##scope(w, #option, value);                                                                                \
        make(w);                                                                                                       \
        long long has = (long long)(expression);                                                                       \
        world_close(w);                                                                                                \
        CHECK_EQ(has, (long long)(wanted));                                                                            \
    }                                                                                                                  \
    _Static_assert(1, "a row ends with a semicolon")

/* For options that text cannot set: `make` sets them. */
#define REACHES_BINARY(scope, option, make, expression, wanted)                                                        \
    TEST(f25_##scope##_##option)                                                                                       \
    {                                                                                                                  \
        NEEDS_PRIVATE_NET();                                                                                           \
        struct world the_world, *w = world_open(&the_world);                                                           \
        make(w);                                                                                                       \
        long long has = (long long)(expression);                                                                       \
        world_close(w);                                                                                                \
        CHECK_EQ(has, (long long)(wanted));                                                                            \
    }                                                                                                                  \
    _Static_assert(1, "a row ends with a semicolon")

static inline struct world *world_open(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->recorder = (struct recorder)RECORDER_INIT;
    seams_forget();
    w->context = net_context_attr();
    MUST(lbm_context_attr_str_setopt(w->context, "transport_tcp_port_low", "24371"));
    MUST(lbm_context_attr_str_setopt(w->context, "transport_tcp_port_high", "24390"));
    MUST(lbm_src_topic_attr_create(&w->source));
    MUST(lbm_rcv_topic_attr_create(&w->receiver));
    MUST(lbm_wildcard_rcv_attr_create(&w->wildcard_receiver));
    MUST(lbm_event_queue_attr_create(&w->event_queue));
    MUST(lbm_xsp_attr_create(&w->xsp));
    MUST(lbm_hfx_attr_create(&w->hfx));
    return w;
}

static inline void world_close(struct world *w)
{
    if (w->wildcard != NULL) {
        MUST(lbm_wildcard_rcv_delete(w->wildcard));
    }
    if (w->rcv != NULL) {
        MUST(lbm_rcv_delete(w->rcv));
    }
    if (w->second_rcv != NULL) {
        MUST(lbm_rcv_delete(w->second_rcv));
    }
    if (w->src != NULL) {
        MUST(lbm_src_delete(w->src));
    }
    if (w->second != NULL) {
        MUST(lbm_src_delete(w->second));
    }
    if (w->smart != NULL) {
        MUST(lbm_ssrc_delete(w->smart));
    }
    if (w->evq != NULL) {
        MUST(lbm_event_queue_delete(w->evq));
    }
    if (w->made_xsp != NULL) {
        MUST(lbm_xsp_delete(w->made_xsp));
    }
    if (w->ctx != NULL) {
        MUST(lbm_context_delete(w->ctx));
    }
    MUST(lbm_context_attr_delete(w->context));
    MUST(lbm_src_topic_attr_delete(w->source));
    MUST(lbm_rcv_topic_attr_delete(w->receiver));
    MUST(lbm_wildcard_rcv_attr_delete(w->wildcard_receiver));
    MUST(lbm_event_queue_attr_delete(w->event_queue));
    MUST(lbm_xsp_attr_delete(w->xsp));
    MUST(lbm_hfx_attr_delete(w->hfx));
}

/* What the loop began before this call is finished when it returns. */
static inline void world_settle(struct world *w)
{
    char text[256];
    size_t len = sizeof text;
    MUST(lbm_context_str_getopt(w->ctx, "operational_mode", text, &len));
}

/* Until *number is at least `count`; gives up after HANG_SECONDS, and the row then fails by what it compares. */
static inline void world_wait(struct world *w, atomic_int *number, int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(number) < count; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    world_settle(w);
}

static inline void context_only(struct world *w)
{
    MUST(lbm_context_create(&w->ctx, w->context, NULL, NULL));
}

static inline lbm_src_t *world_source(struct world *w, const char *name)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, w->ctx, name, w->source));
    MUST(lbm_src_create(&src, w->ctx, topic, NULL, NULL, NULL));
    return src;
}

/* A context with a source, of the kind the attribute object has, or named here. */
static inline void any_source(struct world *w)
{
    context_only(w);
    w->src = world_source(w, "option");
}

static inline void source_on(struct world *w, const char *transport)
{
    SET_source(w, "transport", transport);
    any_source(w);
}

static inline void tcp_source(struct world *w)
{
    source_on(w, "tcp");
}

static inline void rm_source(struct world *w)
{
    source_on(w, "lbt-rm");
}

static inline void ru_source(struct world *w)
{
    source_on(w, "lbt-ru");
}

static inline void ipc_source(struct world *w)
{
    source_on(w, "lbt-ipc");
}

static inline void smx_source(struct world *w)
{
    source_on(w, "lbt-smx");
}

static inline void second_source(struct world *w)
{
    w->second = world_source(w, "option.second");
}

static inline bool same_session(const struct world *w)
{
    return w->src->stream.session == w->second->stream.session;
}

static inline lbm_rcv_t *world_receiver(struct world *w, const char *name)
{
    return net_receiver(w->ctx, name, w->receiver, recorder_cb, &w->recorder, NULL);
}

static inline void receiver_only(struct world *w)
{
    w->rcv = world_receiver(w, "option");
    world_settle(w);
}

/* The receiver has found the source, and its session has been begun. */
static inline void receiver_joined(struct world *w)
{
    receiver_only(w);
    world_wait(w, &seen.dc_made, 1);
}

static inline void receiver_on(struct world *w, const char *transport)
{
    source_on(w, transport);
    receiver_joined(w);
}

/* Its pattern has been given to topic resolution. */
static inline void wildcard_on(struct world *w, const char *pattern)
{
    if (w->ctx == NULL) {
        context_only(w);
    }
    MUST(lbm_wildcard_rcv_create(&w->wildcard, w->ctx, (char *)pattern, w->receiver, w->wildcard_receiver, recorder_cb,
                                 &w->recorder, NULL));
    world_wait(w, &seen.patterns_made, 1);
}

static inline void second_receiver_joined(struct world *w)
{
    w->second_rcv = world_receiver(w, "option.second");
    world_wait(w, &seen.dc_made, 2);
}

static inline void tcp_receiver(struct world *w)
{
    receiver_on(w, "tcp");
}

static inline void rm_receiver(struct world *w)
{
    receiver_on(w, "lbt-rm");
}

static inline void ru_receiver(struct world *w)
{
    receiver_on(w, "lbt-ru");
}

static inline void ipc_receiver(struct world *w)
{
    receiver_on(w, "lbt-ipc");
}

static inline void smx_receiver(struct world *w)
{
    receiver_on(w, "lbt-smx");
}

static inline bool wait_bos(struct world *w)
{
    return recorder_wait(&w->recorder, LBM_MSG_BOS, 1);
}

/* One message has come through. */
static inline void message_through(struct world *w)
{
    wait_bos(w);
    net_send(w->src, "x");
    recorder_wait(&w->recorder, LBM_MSG_DATA, 1);
    world_settle(w);
}

static inline struct um_tcp_src_session *tcp_session(const lbm_src_t *src)
{
    return UM_CONTAINER_OF(src->stream.session, struct um_tcp_src_session, base);
}

static inline lbm_transport_source_info_t source_info(const lbm_src_t *src)
{
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&src->stream, &info);
    return info;
}

#define MS(value) ((value)*UM_NS_PER_MS)

#endif
