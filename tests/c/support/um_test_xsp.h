/* Contexts that map their sessions to XSPs, sources for them, and which thread runs what; for the tests of XSPs. */
#ifndef UM_TEST_XSP_H
#define UM_TEST_XSP_H

#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "um_test_net.h"
#include "um_test_rcv.h"

#include <lbm/um.h>

#define XSPS_MAX 8

static inline bool wait_above(atomic_int *value, int least)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(value) < least; i++) {
        sleep_ms(1);
    }
    return atomic_load(value) >= least;
}

static inline bool wait_sem(sem_t *sem)
{
    for (int i = 0; i < HANG_SECONDS * 1000; i++) {
        if (sem_trywait(sem) == 0) {
            return true;
        }
        sleep_ms(1);
    }
    return false;
}

/* ---- a context that maps its sessions round robin ---- */

struct mapper {
    lbm_xsp_t *xsps[XSPS_MAX];
    int count; /* 0: the context */
    atomic_int calls;
    pthread_t thread;
    char source[128];
    int topic_idx;
};

static inline lbm_xsp_t *map(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    struct mapper *m = clientd;
    m->thread = pthread_self();
    m->topic_idx = (int)info->src_info.topic_idx;
    memcpy(m->source, info->source, sizeof m->source);
    int call = atomic_fetch_add(&m->calls, 1);
    return m->count == 0 ? NULL : m->xsps[call % m->count];
}

static inline lbm_context_attr_t *mapping_attr(lbm_transport_mapping_cb_proc proc, void *clientd)
{
    lbm_context_attr_t *attr = net_context_attr();
    lbm_transport_mapping_func_t func = {proc, clientd};
    MUST(lbm_context_attr_setopt(attr, "transport_mapping_function", &func, sizeof func));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "um_profile", "low_latency"));
    return attr;
}

static inline lbm_xsp_t *xsp_with(lbm_context_t *ctx, const char *mode, lbm_xsp_zero_transports_cb_proc zero,
                                  void *clientd)
{
    lbm_xsp_attr_t *attr;
    lbm_xsp_t *xsp;
    lbm_xsp_zero_transports_func_t func = {zero, clientd};
    MUST(lbm_xsp_attr_create(&attr));
    MUST(lbm_xsp_attr_str_setopt(attr, "operational_mode", mode));
    MUST(lbm_xsp_attr_setopt(attr, "zero_transports_function", &func, sizeof func));
    MUST(lbm_xsp_create(&xsp, ctx, NULL, attr));
    lbm_xsp_attr_delete(attr);
    return xsp;
}

static inline lbm_context_t *world(struct mapper *m, int xsps)
{
    lbm_context_t *ctx = net_context_with(mapping_attr(map, m));
    for (m->count = 0; m->count < xsps; m->count++) {
        m->xsps[m->count] = xsp_with(ctx, "embedded", NULL, NULL);
    }
    return ctx;
}

static inline void end_world(lbm_context_t *ctx, struct mapper *m)
{
    for (int i = 0; i < m->count; i++) {
        MUST(lbm_xsp_delete(m->xsps[i]));
    }
    MUST(lbm_context_delete(ctx));
}

static inline lbm_context_t *sending_context(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "um_profile", "low_latency"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_bind_request_port", "0"));
    return net_context_with(attr);
}

static inline lbm_src_t *source_over(lbm_context_t *ctx, const char *name, const char *transport, const char *group)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    if (group != NULL) {
        MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_multicast_address", group));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

/* Which thread runs the callbacks of descriptors, or of timers. */
struct probe {
    int fds[2];
    sem_t ran;
    pthread_t thread;
};

static inline int on_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, void *clientd)
{
    struct probe *p = clientd;
    char byte;
    if (read(handle, &byte, 1) == 1) {
        p->thread = pthread_self();
        sem_post(&p->ran);
    }
    return 0;
}

static inline pthread_t thread_of_xsp(lbm_xsp_t *xsp)
{
    struct probe p;
    sem_init(&p.ran, 0, 0);
    REQUIRE(pipe(p.fds) == 0);
    MUST(lbm_xsp_register_fd(xsp, p.fds[0], on_fd, &p, NULL, LBM_FD_EVENT_READ));
    REQUIRE(write(p.fds[1], "x", 1) == 1);
    REQUIRE(wait_sem(&p.ran));
    MUST(lbm_xsp_cancel_fd(xsp, p.fds[0], LBM_FD_EVENT_READ));
    REQUIRE(lbm_xsp_cancel_fd(xsp, p.fds[0], LBM_FD_EVENT_READ) == -1);
    close(p.fds[0]);
    close(p.fds[1]);
    return p.thread;
}

static inline int on_timer(lbm_context_t *ctx, const void *clientd)
{
    struct probe *p = (struct probe *)(uintptr_t)clientd;
    p->thread = pthread_self();
    sem_post(&p->ran);
    return 0;
}

static inline pthread_t thread_of_context(lbm_context_t *ctx)
{
    struct probe p;
    sem_init(&p.ran, 0, 0);
    REQUIRE(lbm_schedule_timer(ctx, on_timer, &p, NULL, 0) != -1);
    REQUIRE(wait_sem(&p.ran));
    return p.thread;
}

#endif
