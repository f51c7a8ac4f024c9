/* The transport module `lbm`: its two ends, and what they share. Used by lbmmon_lbm.c, by the alias lbmsnmp, and by the
 * receive controller, which asks what was dropped. */
#ifndef UM_LBMMON_LBM_H
#define UM_LBMMON_LBM_H

#include <stdatomic.h>

#include <lbm/lbmmon.h>

#include "lbmmon/um_mon_inbox.h"

#define UM_MON_LBM_TOPIC "/29west/statistics"

/* What an option string asks for: attributes of the objects to be made, which belong to it. */
struct um_mon_lbm_options {
    lbm_context_attr_t *context;
    lbm_src_topic_attr_t *source;
    lbm_rcv_topic_attr_t *receiver;
    lbm_wildcard_rcv_attr_t *wildcard;
    char topic[256], pattern[256]; /* pattern empty: a plain receiver */
    bool allow_debug;
};

/* 0, or -1 + the text of the module. */
int um_mon_lbm_options_read(struct um_mon_lbm_options *out, const char *text);
void um_mon_lbm_options_clear(struct um_mon_lbm_options *options);

/* Of TransportClientData of a receiving end: packets that found no room. */
uint64_t um_mon_lbm_dropped(void *client_data);

#endif
