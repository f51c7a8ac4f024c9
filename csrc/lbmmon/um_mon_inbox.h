/* Packets that have come and were not taken yet: bounded in bytes and number, the newest are dropped and counted. One
 * lock of its own; threads of contexts put, the receive thread takes. */
#ifndef UM_LBMMON_INBOX_H
#define UM_LBMMON_INBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_list.h"

struct um_mon_inbox {
    pthread_mutex_t lock;
    pthread_cond_t arrived;      /* lock */
    struct um_list packets;      /* lock */
    size_t bytes, count;         /* lock */
    size_t bytes_max, count_max; /* fixed */
    uint64_t dropped;            /* lock */
};

void um_mon_inbox_init(struct um_mon_inbox *inbox, size_t bytes_max, size_t count_max);
void um_mon_inbox_clear(struct um_mon_inbox *inbox, void (*forget)(void *tag)); /* `forget` NULL: tags are nothing */
/* A copy. False: dropped. `tag` comes out with it. */
bool um_mon_inbox_put(struct um_mon_inbox *inbox, const void *bytes, size_t len, void *tag);
/* 0: *len has become the length; 1: none came within the time; -1: it did not fit, and is gone. */
int um_mon_inbox_take(struct um_mon_inbox *inbox, void *out, size_t *len, unsigned timeout_ms, void **tag);
uint64_t um_mon_inbox_dropped(struct um_mon_inbox *inbox);

#endif
