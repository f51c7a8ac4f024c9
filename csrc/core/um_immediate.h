/* Immediate messages that came in, unicast or multicast: who in this context gets
 * them. Receivers of the topic, else wildcard receivers whose patterns match, else the
 * application's function for such messages; those without a topic have a function of
 * their own. Everything is [loop] of the context unless noted. */
#ifndef UM_CORE_IMMEDIATE_H
#define UM_CORE_IMMEDIATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "wire/um_lbmc.h"

struct um_immediates;

/* One whole message, or with `is_fragment` a piece of one. All of it is the caller's and valid during the call. */
struct um_immediate {
    const char *source;                      /* source string of whoever sent it */
    const uint8_t *topic;                    /* as it came, unchecked; NULL: without a topic */
    size_t topic_len;                        /* without a NUL at its end */
    const uint8_t *data;                     /* in `buf` */
    size_t len;                              /* bytes at data */
    struct um_buf *buf;                      /* who retains the message refers to it */
    uint32_t sqn;                            /* of the (last) fragment */
    int flags;                               /* LBM_MSG_FLAG_* besides IMMEDIATE and TOPICLESS */
    lbm_timespec_t arrival;                  /* of the network card or the kernel; zero: unknown */
    const lbm_msg_fragment_info_t *fragment; /* NULL: it was sent in one piece */
    bool is_fragment;
    const struct um_lbmc_msg *request; /* with a REQUEST header; NULL: none */
    uint32_t from_ip;                  /* of a request: where it came from, network order */
};

/* What became of it. */
enum um_immediate_fate {
    UM_IMMEDIATE_TO_RECEIVERS,
    UM_IMMEDIATE_TO_WILDCARDS,
    UM_IMMEDIATE_TO_FUNCTION,
    UM_IMMEDIATE_NOBODY,    /* nobody here asked for it: dropped */
    UM_IMMEDIATE_MALFORMED, /* its topic cannot be one: dropped */
    UM_IMMEDIATE_NO_MEMORY, /* dropped */
    UM_IMMEDIATE_FATES
};

/* NULL + error. Functions of the application are those of the context's options. */
struct um_immediates *um_immediates_create(lbm_context_t *ctx);
/* Functions are called no more; what is in event queues for them is purged as the queues' options say. */
void um_immediates_destroy(struct um_immediates *immediates);

enum um_immediate_fate um_immediate_deliver(struct um_immediates *immediates, const struct um_immediate *immediate);

/* Multicast messages of this source string are lost for good: `count` sequence numbers from `sqn` on, as one burst
 * where `burst` says so. For UM_IMMEDIATE_LOSS. */
void um_immediate_lost(struct um_immediates *immediates, const char *source, uint32_t sqn, uint32_t count, bool burst);

/* Which of the functions: for messages without a topic, for those to topics that nobody here receives, for losses. The
 * last has no event queue. */
enum um_immediate_function { UM_IMMEDIATE_TOPICLESS, UM_IMMEDIATE_TOPIC, UM_IMMEDIATE_LOSS, UM_IMMEDIATE_FUNCTIONS };
/* Replaces the function, also from inside itself; func NULL: none. -1 + UM_ENOMEM: the one before stays. */
int um_immediate_set_function(struct um_immediates *immediates, enum um_immediate_function which,
                              const lbm_context_rcv_immediate_msgs_func_t *function);

uint64_t um_immediate_dropped(const struct um_immediates *immediates); /* those that nobody got; any thread */
/* How many came to each fate; any thread. */
void um_immediate_counts(const struct um_immediates *immediates, uint64_t out[UM_IMMEDIATE_FATES]);

#endif
