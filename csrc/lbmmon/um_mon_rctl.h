/* The receive controller: its callbacks, its modules, its receive thread, and what it has counted. */
#ifndef UM_LBMMON_RCTL_H
#define UM_LBMMON_RCTL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/um_log.h"
#include "lbmmon/um_mon_packet.h"

struct lbmmon_rctl_attr_t_stct {
    lbmmon_rcv_statistics_cb receiver;
    lbmmon_src_statistics_cb source;
    lbmmon_evq_statistics_cb event_queue;
    lbmmon_ctx_statistics_cb context;
    lbmmon_rcv_topic_statistics_cb topic;
    lbmmon_wildcard_rcv_statistics_cb wildcard;
    lbmmon_umestore_statistics_cb store;
    lbmmon_gateway_statistics_cb gateway;
    lbmmon_passthrough_statistics_cb passthrough;
};

/* Each counted by the receive thread, read by any. */
struct um_mon_receiving {
    atomic_ullong packets;     /* that came */
    atomic_ullong malformed;   /* head or attributes make no sense */
    atomic_ullong unknown;     /* of a type that this version does not know, or that its format has no call for */
    atomic_ullong undecodable; /* refused by the format module */
    atomic_ullong failures;    /* of the transport module to receive */
};

/* A format module that was begun; `data` is the module's. */
struct um_mon_format {
    const lbmmon_format_func_t *calls; /* NULL: none */
    void *data;
    bool tried;
};

enum { UM_MON_TOPIC_ROOM = 64 };

struct lbmmon_rctl_t_stct {
    unsigned fork_generation;                 /* fixed */
    struct lbmmon_rctl_attr_t_stct callbacks; /* fixed */
    void *clientd;                            /* fixed */
    struct um_mon_format format;              /* fixed */
    struct um_mon_format other;               /* receive thread: the other built-in format, begun when it is met */
    char *format_opts;                        /* fixed; for that one */
    int passthrough;                          /* fixed: LBMMON_FORMAT_PASSTHROUGH_* of the options */
    const lbmmon_transport_func_t *transport; /* fixed */
    void *transport_data;                     /* receive thread */
    pthread_t thread;
    atomic_bool stop;
    char *packet;                  /* receive thread */
    char *converted;               /* receive thread: room for a record in another format; NULL: not needed yet */
    lbm_rcv_topic_stats_t *topics; /* receive thread */
    size_t topic_room;
    struct um_mon_receiving counts;
};

/* um_mon_deliver.c: one packet, to the callbacks. Receive thread. */
void um_mon_deliver(lbmmon_rctl_t *control, const char *bytes, size_t len);

#endif
