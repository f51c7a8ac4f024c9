/* What the end-to-end tests of receivers share: contexts on a private loopback
 * network, sources, and a recorder of everything a receiver callback sees.
 * Include after um_test_net.h. */
#ifndef UM_SUPPORT_TEST_RCV_H
#define UM_SUPPORT_TEST_RCV_H

#include <pthread.h>
#include <time.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test.h"
#include "um_test_net.h"

#define HANG_SECONDS 30 /* only catches hangs */

/* Everything seen, as text: "BOS 0=a 1=b LOST2 EOS ". Any thread. */
struct recorder {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[8192];
    int counts[64]; /* by LBM_MSG_* */
    unsigned long bytes;
    char source[128];
    char topic[256];
    const void *source_clientd;
    int flags;
    unsigned sqn;
    pthread_t thread;
};

#define RECORDER_INIT                                                                                                  \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static inline void recorder_note(struct recorder *r, const lbm_msg_t *msg)
{
    size_t used = strlen(r->text), room = sizeof r->text - used;
    switch (msg->type) {
    case LBM_MSG_BOS:
        snprintf(r->text + used, room, "BOS ");
        break;
    case LBM_MSG_EOS:
        snprintf(r->text + used, room, "EOS ");
        break;
    case LBM_MSG_DATA:
        snprintf(r->text + used, room, "%u=%.*s ", msg->sequence_number, (int)(msg->len < 8 ? msg->len : 8), msg->data);
        break;
    case LBM_MSG_NO_SOURCE_NOTIFICATION:
        snprintf(r->text + used, room, "NOSRC ");
        break;
    default:
        snprintf(r->text + used, room, "type%d ", msg->type);
        break;
    }
}

static inline int recorder_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct recorder *r = clientd;
    pthread_mutex_lock(&r->lock);
    recorder_note(r, msg);
    r->counts[msg->type & 63]++;
    r->bytes += msg->len;
    memcpy(r->source, msg->source, sizeof r->source);
    memcpy(r->topic, msg->topic_name, sizeof r->topic);
    r->source_clientd = msg->source_clientd;
    r->flags = msg->flags;
    r->sqn = msg->sequence_number;
    r->thread = pthread_self();
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

/* With the lock of what counts, given up while waiting; false after HANG_SECONDS. */
static inline bool wait_for_count(pthread_cond_t *changed, pthread_mutex_t *lock, const int *count, int least)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_SECONDS;
    int rc = 0;
    while (*count < least && rc == 0) {
        rc = pthread_cond_timedwait(changed, lock, &until);
    }
    return *count >= least;
}

/* At least `count` messages of the type; false after HANG_SECONDS. */
static inline bool recorder_wait(struct recorder *r, int type, int count)
{
    pthread_mutex_lock(&r->lock);
    bool ok = wait_for_count(&r->changed, &r->lock, &r->counts[type & 63], count);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

static inline int recorder_count(struct recorder *r, int type)
{
    pthread_mutex_lock(&r->lock);
    int count = r->counts[type & 63];
    pthread_mutex_unlock(&r->lock);
    return count;
}

/* Under the lock: what is still to come is not ordered after what the test has read when it comes through memory. */
static inline bool recorder_reads(struct recorder *r, const char *text)
{
    pthread_mutex_lock(&r->lock);
    bool same = strcmp(r->text, text) == 0;
    if (!same) {
        fprintf(stderr, "recorded: %s\n", r->text);
    }
    pthread_mutex_unlock(&r->lock);
    return same;
}

/* Serve the queue until the recorder has `count` messages of the type. */
static inline bool recorder_dispatch(struct recorder *r, lbm_event_queue_t *evq, int type, int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && recorder_count(r, type) < count; i++) {
        while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0 && recorder_count(r, type) < count) {
        }
        if (recorder_count(r, type) < count) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
    return recorder_count(r, type) >= count;
}

static inline void must(int rc, const char *what)
{
    if (rc == -1) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        abort();
    }
}
#define MUST(call) must((call), #call)
/* Where a test cannot fail: in callbacks, and in what returns something. */
#define REQUIRE(cond) must((cond) ? 0 : -1, #cond)

static inline void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* UM_TEST_STREAMS has tls, lz4 or both: then every context of the test is encrypted, or compresses, or both
 * (tests/python/test_streams_matrix.py). */
static inline void net_streams(lbm_context_attr_t *attr)
{
    const char *streams = getenv("UM_TEST_STREAMS");
    if (streams != NULL && strstr(streams, "tls") != NULL) {
        MUST(lbm_context_attr_str_setopt(attr, "use_tls", "1"));
        MUST(lbm_context_attr_str_setopt(attr, "tls_certificate", "../tests/certificates/host.pem"));
        MUST(lbm_context_attr_str_setopt(attr, "tls_certificate_key", "../tests/certificates/host.key"));
        MUST(lbm_context_attr_str_setopt(attr, "tls_trusted_certificates", "../tests/certificates/ca.pem"));
    }
    if (streams != NULL && strstr(streams, "lz4") != NULL) {
        MUST(lbm_context_attr_str_setopt(attr, "compression", "lz4"));
    }
}

static inline lbm_context_attr_t *net_context_attr(void)
{
    lbm_context_attr_t *attr;
    MUST(lbm_context_attr_create(&attr));
    net_streams(attr);
    MUST(lbm_context_attr_str_setopt(attr, "default_interface", "127.0.0.1/32"));
    MUST(lbm_context_attr_str_setopt(attr, "resolver_multicast_interface", "127.0.0.1/32"));
    return attr;
}

static inline lbm_context_t *net_context_with(lbm_context_attr_t *attr)
{
    lbm_context_t *ctx;
    MUST(lbm_context_create(&ctx, attr, NULL, NULL));
    lbm_context_attr_delete(attr);
    return ctx;
}

static inline lbm_context_t *net_context(void)
{
    return net_context_with(net_context_attr());
}

/* The test decides when it gets on. */
static inline lbm_context_t *net_sequential_context(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    return net_context_with(attr);
}

/* Without a request port, of which a host has few, and without a line about its socket buffer. */
static inline lbm_context_t *net_lean_context(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_bind_request_port", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "resolver_multicast_receiver_socket_buffer", "0"));
    return net_context_with(attr);
}

static inline lbm_src_t *net_source(lbm_context_t *ctx, const char *name)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, name, NULL));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

/* Its end is advertised. */
static inline lbm_src_t *net_withdrawn_source(lbm_context_t *ctx, const char *name, const char *transport)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "resolver_send_final_advertisements", "1"));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static inline lbm_rcv_t *net_receiver(lbm_context_t *ctx, const char *name, const lbm_rcv_topic_attr_t *attr,
                                      lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, name, attr));
    MUST(lbm_rcv_create(&rcv, ctx, topic, proc, clientd, evq));
    return rcv;
}

static inline lbm_rcv_t *net_recording_receiver(lbm_context_t *ctx, const char *name, struct recorder *r)
{
    return net_receiver(ctx, name, NULL, recorder_cb, r, NULL);
}

static inline void net_send(lbm_src_t *src, const char *text)
{
    MUST(lbm_src_send(src, text, strlen(text), LBM_MSG_FLUSH | LBM_SRC_BLOCK));
}

#endif
