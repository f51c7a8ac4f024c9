/* The clients of an LBT-RU source: found by address, in order of their last sign of
 * life, bounded in number. Owned by the source engine; its thread or lock. */
#ifndef UM_TRANSPORT_LBTRU_CLIENTS_H
#define UM_TRANSPORT_LBTRU_CLIENTS_H

#include "base/um_list.h"
#include "transport/lbtr/um_lbtr_numbers.h"
#include "transport/lbtr/um_lbtr_sm.h"
#include "transport/lbtr/um_lbtru_src_engine.h"

struct um_lbtru_src_engine;

struct um_lbtru_client {
    struct um_list node;     /* clients->all */
    struct um_list activity; /* clients->by_activity: the longest silent first */
    struct um_lbtru_client *next_in_bucket;
    struct um_lbtru_src_engine *source; /* the engine, for itself */
    struct um_lbtru_address address;
    struct um_lbtr_numbers numbers;
    struct um_lbtr_sm sm;
    uint64_t last_heard_ns;
    bool has_cid;
    uint32_t cid;
};

struct um_lbtru_clients {
    struct um_lbtru_client **buckets;
    size_t bucket_count, count, max;
    uint32_t numbers_initial; /* room of a client's number space when it is added */
    struct um_list all, by_activity;
};

/* `numbers` 0: number spaces begin small. */
bool um_lbtru_clients_init(struct um_lbtru_clients *clients, size_t buckets, size_t max, uint32_t numbers);
void um_lbtru_clients_free(struct um_lbtru_clients *clients);
struct um_lbtru_client *um_lbtru_clients_find(const struct um_lbtru_clients *clients,
                                              const struct um_lbtru_address *address);
/* NULL: out of memory, or as many as there may be. */
struct um_lbtru_client *um_lbtru_clients_add(struct um_lbtru_clients *clients, const struct um_lbtru_address *address,
                                             uint32_t first_sqn);
void um_lbtru_clients_remove(struct um_lbtru_clients *clients, struct um_lbtru_client *client); /* frees it */
void um_lbtru_clients_heard(struct um_lbtru_clients *clients, struct um_lbtru_client *client, uint64_t now_ns);
struct um_lbtru_client *um_lbtru_clients_quietest(const struct um_lbtru_clients *clients);

#endif
