/* What the tests of sessions in shared memory share (LBT-IPC, LBT-SMX; the includer
 * defines SHM_TRANSPORT): a log that can be searched, sources, a source and a
 * receiver that know each other, and a receiver that stands still. */
#ifndef UM_SUPPORT_TEST_SHM_SESSION_H
#define UM_SUPPORT_TEST_SHM_SESSION_H

#include <stdatomic.h>

#include "um_test_rcv.h"
#include "um_test_shm.h"
#include "um_test_thread.h"

/* ---- what is logged ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char logged[65536]; /* log_lock */

static inline int keep_log(int level, const char *message, void *clientd)
{
    pthread_mutex_lock(&log_lock);
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
    pthread_mutex_unlock(&log_lock);
    return 0;
}

static inline void log_start(void)
{
    pthread_mutex_lock(&log_lock);
    logged[0] = '\0';
    pthread_mutex_unlock(&log_lock);
    lbm_log(keep_log, NULL);
}

static inline bool was_logged(const char *part)
{
    pthread_mutex_lock(&log_lock);
    bool found = strstr(logged, part) != NULL;
    pthread_mutex_unlock(&log_lock);
    return found;
}

/* ---- sources ---- */

static inline lbm_src_topic_attr_t *shm_attr(void)
{
    lbm_src_topic_attr_t *attr;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", SHM_TRANSPORT));
    return attr;
}

/* From twice the bound on: a window of a terabyte may well be possible, and nobody wants a test to find out. `option`:
 * that of the size. */
static inline void check_windows_beyond_reason_are_refused(const char *option)
{
    static const char *const sizes[] = {"2199023255552", "9223372036854775808", "9223372036854775809",
                                        "18446744073709551615"};
    lbm_context_t *ctx = net_context();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        lbm_src_topic_attr_t *attr = shm_attr();
        lbm_topic_t *topic;
        lbm_src_t *src = NULL;
        MUST(lbm_src_topic_attr_str_setopt(attr, option, sizes[i]));
        MUST(lbm_src_topic_alloc(&topic, ctx, "window/f19", attr));
        CHECK_EQ(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), -1);
        CHECK_EQ(lbm_errnum(), LBM_EINVAL);
        CHECK_CONTAINS(lbm_errmsg(), option);
        CHECK_CONTAINS(lbm_errmsg(), sizes[i]);
        lbm_src_topic_attr_delete(attr);
    }
    MUST(lbm_context_delete(ctx));
}

/* Deletes the attributes. */
static inline lbm_src_t *shm_source_with(lbm_context_t *ctx, const char *name, lbm_src_topic_attr_t *attr,
                                         lbm_src_cb_proc proc, void *clientd)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, proc, clientd, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static inline lbm_src_t *shm_source(lbm_context_t *ctx, const char *name)
{
    return shm_source_with(ctx, name, shm_attr(), NULL, NULL);
}

static inline lbm_src_t *shm_source_option(lbm_context_t *ctx, const char *name, const char *option, const char *value)
{
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, option, value));
    return shm_source_with(ctx, name, attr, NULL, NULL);
}

/* ---- two that know each other ---- */

/* Delete a receiver, a source and the contexts of both; NULL: deleted before. */
static inline void shm_end(lbm_rcv_t *rcv, lbm_src_t *src, lbm_context_t *rctx, lbm_context_t *sctx)
{
    if (rcv != NULL) {
        MUST(lbm_rcv_delete(rcv));
    }
    if (src != NULL) {
        MUST(lbm_src_delete(src));
    }
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
}

struct pair {
    lbm_context_t *sctx, *rctx;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    struct recorder rec;
};

static inline void pair_open_with(struct pair *p, lbm_context_t *sctx, lbm_context_t *rctx, const char *name,
                                  lbm_src_topic_attr_t *attr)
{
    p->rec = (struct recorder)RECORDER_INIT;
    p->sctx = sctx;
    p->rctx = rctx;
    p->src = shm_source_with(p->sctx, name, attr, NULL, NULL);
    p->rcv = net_recording_receiver(p->rctx, name, &p->rec);
    MUST(um_src_wait_receivers(p->src, 1, HANG_SECONDS * 1000));
}

static inline void pair_open(struct pair *p, const char *name)
{
    pair_open_with(p, net_context(), net_context(), name, shm_attr());
}

static inline void pair_close(struct pair *p)
{
    shm_end(p->rcv, p->src, p->rctx, p->sctx);
}

/* ---- receivers that stand still ---- */

/* The callback waits until it is let go: the source's ring fills up meanwhile. Messages say their number. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    unsigned next;                      /* sequence number expected */
    int data, lost, bursts, bad, wrong; /* bad: contents; wrong: out of order */
};

#define GATE_INIT                                                                                                      \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

#define MESSAGE 1500

UM_TEST_OWN_BYTES static inline void fill(char *bytes, size_t len, unsigned n)
{
    memcpy(bytes, &n, sizeof n);
    for (size_t i = sizeof n; i < len; i++) {
        bytes[i] = (char)(n * 7 + i);
    }
}

static inline bool is_filled(const char *bytes, size_t len, unsigned n)
{
    char expected[MESSAGE];
    if (len > sizeof expected) {
        return false;
    }
    fill(expected, len, n);
    return memcmp(bytes, expected, len) == 0;
}

static inline int gated(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct gate *g = clientd;
    pthread_mutex_lock(&g->lock);
    if (msg->type == LBM_MSG_DATA) {
        g->data++;
        g->bad += !is_filled(msg->data, msg->len, msg->sequence_number);
        g->wrong += msg->sequence_number < g->next;
        g->next = msg->sequence_number + 1;
        while (!g->open) {
            pthread_cond_wait(&g->changed, &g->lock);
        }
    }
    g->lost += msg->type == LBM_MSG_UNRECOVERABLE_LOSS;
    g->bursts += msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return 0;
}

static inline void gate_open(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static inline bool gate_wait(struct gate *g, unsigned next)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_SECONDS;
    int rc = 0;
    pthread_mutex_lock(&g->lock);
    while (g->next < next && rc == 0) {
        rc = pthread_cond_timedwait(&g->changed, &g->lock, &until);
    }
    bool ok = g->next >= next;
    pthread_mutex_unlock(&g->lock);
    return ok;
}

static inline bool gate_entered(struct gate *g)
{
    for (int i = 0; i < HANG_SECONDS * 1000; i++) {
        pthread_mutex_lock(&g->lock);
        bool in = g->data > 0;
        pthread_mutex_unlock(&g->lock);
        if (in) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

/* A thread that sends, waiting for room. */
struct sender {
    lbm_src_t *src;
    unsigned count;
    atomic_uint sent;
    atomic_int tid; /* of its thread */
    int rc, errnum;
};

static inline void *send_all(void *arg)
{
    struct sender *s = arg;
    char bytes[MESSAGE];
    atomic_store_explicit(&s->tid, um_test_thread_id(), memory_order_relaxed);
    for (unsigned n = 0; n < s->count && s->rc == 0; n++) {
        fill(bytes, sizeof bytes, n);
        s->rc = lbm_src_send(s->src, bytes, sizeof bytes, LBM_SRC_BLOCK);
        s->errnum = s->rc != 0 ? lbm_errnum() : 0;
        atomic_fetch_add(&s->sent, s->rc == 0);
    }
    if (s->rc == 0) {
        lbm_src_flush(s->src);
    }
    return NULL;
}

/* Until it has sent something and waits for room, asleep or looking again and again: then it runs for many times what a
 * send takes without another one. It and the caller are in no order by that. */
static inline void wait_until_it_waits(struct sender *s)
{
    unsigned before = 0, sent = 0;
    uint64_t ran_ns = 0;
    for (bool waits = false; !waits;) {
        usleep(20000);
        int tid = atomic_load_explicit(&s->tid, memory_order_relaxed);
        uint64_t now_ns = um_test_thread_ran_ns(tid);
        sent = atomic_load_explicit(&s->sent, memory_order_relaxed);
        if (sent == 0 || sent != before) {
            before = sent;
            ran_ns = now_ns;
        } else {
            waits = um_test_thread_sleeps(tid) || now_ns - ran_ns > 10 * 1000000ull;
        }
    }
}

#endif
