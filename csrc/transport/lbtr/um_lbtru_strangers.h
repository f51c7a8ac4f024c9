/* Addresses that asked an LBT-RU source for a connection and have proved nothing yet: a request is easily sent in the
 * name of somebody else. The answer holds a number that only the owner of the address can repeat, in its first
 * acknowledgement; until then it gets no data. Nothing need be remembered for that. What is remembered, for a few of
 * them and for seconds, is since when datagrams wait for each. Owned by the source engine; its thread or lock. */
#ifndef UM_TRANSPORT_LBTRU_STRANGERS_H
#define UM_TRANSPORT_LBTRU_STRANGERS_H

#include "transport/lbtr/um_lbtr_numbers.h"
#include "transport/lbtr/um_lbtru_src_engine.h"

#define UM_LBTRU_STRANGERS_MAX 256u
#define UM_LBTRU_STRANGERS_PER_IP 32u
#define UM_LBTRU_STRANGER_NS (4 * UM_NS_PER_SEC) /* acknowledgements are sent at once and each half second */
#define UM_LBTRU_WAITING_MAX 65536u              /* datagrams that wait for strangers */

struct um_lbtru_stranger {
    struct um_lbtru_address address;
    uint32_t first_sqn; /* of its number space */
    uint32_t next_sm;
    uint64_t from_index; /* datagrams from here on wait for it */
    uint64_t since_ns;
    bool has_cid;
    uint32_t cid;
};

struct um_lbtru_strangers {
    struct um_lbtru_stranger items[UM_LBTRU_STRANGERS_MAX]; /* oldest first */
    size_t count;
    struct um_lbtr_numbers waiting; /* datagrams since the oldest of them; valid while has_waiting */
    bool has_waiting;
    uint64_t expired; /* since the creation of the source: never heard of again */
};

void um_lbtru_strangers_free(struct um_lbtru_strangers *strangers);
struct um_lbtru_stranger *um_lbtru_strangers_find(struct um_lbtru_strangers *strangers,
                                                  const struct um_lbtru_address *address);
/* NULL: as many as there may be, of this address or in all. */
struct um_lbtru_stranger *um_lbtru_strangers_add(struct um_lbtru_strangers *strangers, uint64_t now_ns,
                                                 const struct um_lbtru_address *address);
void um_lbtru_strangers_remove(struct um_lbtru_strangers *strangers, struct um_lbtru_stranger *stranger);
/* Forget those whose time is over. Returns when the next one's is; UM_NEVER. */
uint64_t um_lbtru_strangers_expire(struct um_lbtru_strangers *strangers, uint64_t now_ns);
/* A datagram that they would get; slots before `window_first` are gone. */
void um_lbtru_strangers_keep(struct um_lbtru_strangers *strangers, struct um_lbtr_slot *slot, uint64_t window_first);
/* Number for a client what waited for it. */
void um_lbtru_strangers_hand_over(const struct um_lbtru_strangers *strangers, const struct um_lbtru_stranger *stranger,
                                  uint64_t window_first, struct um_lbtr_numbers *numbers);

#endif
