/* The source controller: its modules, its entries, its sampling thread. Made by lbmmon_sctl_create(), and by automatic
 * monitoring. */
#ifndef UM_LBMMON_SCTL_H
#define UM_LBMMON_SCTL_H

#include <stdatomic.h>

#include "base/um_log.h"
#include "lbmmon/um_mon_sample.h"

/* What a controller has done; each counted by its sampling thread, read by any. */
struct um_mon_sending {
    atomic_ullong packets;     /* given to the transport */
    atomic_ullong not_read;    /* samples: the statistics could not be had */
    atomic_ullong not_written; /* records: the format module refused them */
    atomic_ullong not_sent;    /* packets: the transport module refused them */
    atomic_ullong filtered;    /* records: a filter of the format module keeps them back */
};

/* What the thread is asked to do beside its intervals. */
struct um_mon_request {
    uint64_t asked, begun, done; /* samples of all objects */
    bool has_appid;
    char appid[UM_MON_APPID_MAX + 1];
};

struct lbmmon_sctl_t_stct {
    unsigned fork_generation;                 /* fixed */
    const lbmmon_format_func_t *format;       /* fixed */
    const lbmmon_transport_func_t *transport; /* fixed */
    char *format_opts, *transport_opts;       /* fixed; of a controller whose thread starts its modules */
    bool deferred;                            /* fixed: it does */
    bool detached;                            /* um_mon_lock: its thread frees it at the end */
    void *format_data, *transport_data;       /* sampling thread once it runs */
    pthread_t thread;
    pthread_cond_t wake;           /* um_mon_lock */
    struct um_list entries;        /* um_mon_lock */
    uint64_t soonest_ns;           /* um_mon_lock: when an entry is due; UINT64_MAX: none */
    bool stop;                     /* um_mon_lock */
    unsigned callers;              /* um_mon_lock: threads that wait for a sample */
    struct um_mon_request request; /* um_mon_lock */
    uint64_t pass;                 /* sampling thread */
    uint64_t commanded_second;     /* sampling thread: in which `commanded` samples were asked for by commands */
    unsigned commanded;            /* sampling thread */
    uint32_t ip;                   /* sampling thread: of objects without a context */
    struct um_mon_sample sample;   /* sampling thread */
    uint8_t *packet;               /* sampling thread */
    bool tells_log;                /* fixed: lines of the log go with the records */
    uint64_t log_told;             /* sampling thread: number of the last one */
    struct um_mon_sending counts;
};

/* Without or with its modules begun (`deferred`: its thread does that, and copies of the options are kept). NULL +
 * error of lbmmon. */
lbmmon_sctl_t *um_mon_sctl_new(const lbmmon_format_func_t *format, const void *format_opts,
                               const lbmmon_transport_func_t *transport, const void *transport_opts, bool deferred);
/* Its thread ends: and it is freed here, or, where nobody may wait, by the thread. Entries go with it. */
void um_mon_sctl_end(lbmmon_sctl_t *control, bool may_wait);
/* With um_mon_lock: another entry. `appid` NULL or empty: the name of the program. -1: out of memory. */
int um_mon_sctl_add(lbmmon_sctl_t *control, void *handle, enum um_mon_what what, const char *appid, unsigned seconds);

/* Some of the entries, to be sampled now. */
struct um_mon_selection {
    unsigned whats;         /* bits: 1 << enum um_mon_what */
    const char *only_appid; /* NULL: all */
    const char *appid;      /* that the records are to have; NULL: the entry's own */
};
bool um_mon_selected(const struct um_mon_selection *selection, const struct um_mon_entry *entry);
/* Sampling thread, um_mon_lock held and given up in between: every entry once that is selected, or with NULL that is
 * due, also while others come and go. */
void um_mon_sctl_pass(lbmmon_sctl_t *control, const struct um_mon_selection *selection);

/* um_mon_control.c: commands to this process that have come. False: none can. Sampling thread, no lock held. */
bool um_mon_control_serve(lbmmon_sctl_t *control);

/* um_mon_send.c: the records of a sample, through the modules. Sampling thread. */
void um_mon_send_sample(lbmmon_sctl_t *control, const struct um_mon_sample *sample);
void um_mon_complain(lbmmon_sctl_t *control, const char *what, const char *(*errmsg)(void));
/* Head and attributes before the data, which lie at UM_MON_DATA_AT of control->packet; sends, and counts. */
void um_mon_send_packet(lbmmon_sctl_t *control, unsigned type, const lbmmon_packet_attributes_t *attributes,
                        size_t data_len);
enum { UM_MON_DATA_AT = UM_MON_HEAD_LEN + UM_MON_ATTRIBUTES_MAX };

/* um_mon_log.c: what the process has logged since the controller told of it last. Sampling thread. */
void um_mon_send_log(lbmmon_sctl_t *control, const struct um_mon_sample *sample);
/* Whether it does: with the built-in formats, unless their options have log=off. */
bool um_mon_tells_log(const lbmmon_format_func_t *format, const char *format_opts);
enum { UM_MON_PACKET_ROOM = UM_MON_HEAD_LEN + UM_MON_ATTRIBUTES_MAX + UM_MON_PART_MAX };

#endif
