/* What the tests of options look at (option_reach_*_test.c): the seams at which values of options are handed to the
 * parts they rule. The linker lets calls of the functions that option_seams.c wraps go through its
 * recorder, which notes the arguments and calls the real function.
 * The context's loop records, the test reads: `lock` is held by either. */
#ifndef UM_CONFIG_OPTION_SEAMS_H
#define UM_CONFIG_OPTION_SEAMS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "delivery/um_dc.h"
#include "delivery/um_hf.h"
#include "delivery/um_mim_flow.h"
#include "delivery/um_recovery.h"
#include "delivery/um_retention.h"
#include "net/um_loop.h"
#include "net/um_lz4_stream.h"
#include "net/um_tls.h"
#include "net/um_udp.h"
#include "resolver/um_tr_engine.h"
#include "resolver/um_tr_unicast.h"
#include "transport/ipc/um_ipc_rcv_session.h"
#include "transport/lbtr/um_lbtr_limiter.h"
#include "transport/lbtr/um_lbtrm_rcv_engine.h"
#include "transport/lbtr/um_lbtrm_src_engine.h"
#include "transport/lbtr/um_lbtru_rcv_engine.h"
#include "transport/lbtr/um_lbtru_src_engine.h"
#include "transport/shm/um_shm_segment.h"
#include "transport/udp/um_udp_src_session.h"
#include "transport/unicast/um_unicast_parts.h"

enum seam_udp { SEAM_RM_SOURCE, SEAM_RU_SOURCE, SEAM_RM_RECEIVER, SEAM_RU_RECEIVER, SEAM_UDP_COUNT };
enum seam_limits { SEAM_RM, SEAM_RU };

#define SEAM_MAX 4096 /* records of one kind; later ones take the place of the oldest */

struct seam_named {
    const char *option; /* as the library names it */
    long long value;
};

struct seam_bind {
    uint32_t addr; /* network order */
    uint16_t port; /* host order */
};

struct option_seams {
    pthread_mutex_t lock;
    /* topic resolution */
    struct um_tr_config tr;
    char context_name[128];
    struct um_tr_unicast_config unicast;
    size_t daemons;
    struct um_tr_advert_options advert;
    struct um_tr_query_options query;
    struct um_tr_timing pattern;
    int pattern_type;
    uint64_t sources_threshold, no_source_threshold; /* of the last change */
    struct seam_bind sent_to;                        /* the last datagram of topic resolution */
    int packets;                                     /* given to the engine */
    /* delivery and engines of transports: the last that was made */
    struct um_dc_config dc;
    struct um_mim_flow_config mim_flow;
    struct um_recovery_config recovery;
    struct um_hf_config hf;
    int merges_made;
    struct um_retention_config retention;
    int retentions_made;
    struct um_lbtrm_src_engine_config rm_source;
    struct um_lbtrm_rcv_engine_config rm_receiver;
    struct um_lbtru_src_engine_config ru_source;
    struct um_lbtru_rcv_engine_config ru_receiver;
    struct um_lbtr_limiter_config limits[2]; /* enum seam_limits */
    struct um_shm_spec shm;
    struct um_ipc_receivers *ipc_receivers;
    struct um_unicast_in_config unicast_in;
    struct um_unicast_out_config unicast_out;
    /* sockets */
    struct um_udp_config udp[SEAM_UDP_COUNT];
    struct seam_bind udp_low[SEAM_UDP_COUNT];
    struct seam_bind group; /* joined by LBT-RM */
    uint16_t udp_high[SEAM_UDP_COUNT];
    struct {
        unsigned batch;
        size_t datagram_max;
        bool offload;
    } readers[16];
    int reader_count;
    int outs, outs_segmenting;        /* UDP senders made; of them with segmentation offload */
    size_t window_size, window_limit; /* of the last UDP source session, beside those of its engine */
    int stamps;                       /* UDP senders that report when datagrams left */
    struct {
        struct in_addr addr;
        uint16_t port, high;
        int backlog;
        bool reuse;
    } listen;
    struct in_addr connected_from;
    int lz4_streams; /* covered with compression */
    struct {
        uint16_t port;
        int interest_mode;
    } service;             /* last resolution server */
    unsigned keepalive_ms; /* last of a TCP connection */
    struct seam_bind binds[64];
    int bind_count;
    int default_interfaces; /* how often no option named the interface of multicast */
    /* the rest */
    bool loop_embedded;
    enum um_loop_wait loop_wait;
    struct um_tls_config tls; /* of the last context with encryption: the strings below */
    char tls_texts[5][64];    /* certificate, key, password, trusted, suites */
    char stacks[8][32];       /* Onload: names of stacks that were entered */
    int stack_count;
    size_t pool_keep_least;
    struct seam_named named[64]; /* socket buffers and processors, by option */
    int named_count;
    uint64_t delays[SEAM_MAX]; /* of timers that were armed: nanoseconds from then */
    unsigned delay_count;
    atomic_int dc_made, patterns_made, datagrams_sent; /* dc: delivery controllers; datagrams: of topic resolution */
};

extern struct option_seams seen;

void seams_forget(void);
long long seams_named(const char *option); /* last value given; -1000: none */
bool seams_bound(const char *ip, uint16_t port);
int seams_stack(const char *name); /* how often it was entered */
int seams_readers(unsigned batch); /* UDP readers of that many datagrams */
bool seams_timer(uint64_t ms);     /* one was armed with this delay, give or take two seconds */

#endif
