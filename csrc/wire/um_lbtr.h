/* What the wire formats of LBT-RM and LBT-RU share: results of decoding, lists of
 * sequence numbers in NAK and NCF packets, NCF reasons. Pure functions on bytes;
 * any thread. */
#ifndef UM_WIRE_LBTR_H
#define UM_WIRE_LBTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"

enum um_lbtr_rc {
    UM_LBTR_OK,
    UM_LBTR_SIZE,    /* too short for its type */
    UM_LBTR_TYPE,    /* undefined packet type */
    UM_LBTR_VERSION, /* version not 0 */
    UM_LBTR_HEADER,  /* broken option chain, or an option that must be known */
    UM_LBTR_OTHER    /* a field with a value that has no meaning here */
};

enum um_lbtr_reason {
    UM_LBTR_DO_NOT_RETRY = 0,
    UM_LBTR_NAK_IGNORED = 1,
    UM_LBTR_RX_DELAY = 2,
    UM_LBTR_NAK_SHED = 3 /* 4..15: unknown */
};
#define UM_LBTR_REASONS 4

#define UM_LBTR_OPTION_HEADER 4u
#define UM_LBTR_OPTION_IGNORABLE 0x8000u
#define UM_LBTR_DATAGRAM_MAX 65507u /* longest UDP payload over IPv4 */
#define UM_LBTR_LIST_BYTES_MAX 1472u

/* Sequence numbers as they stand in the packet: count numbers of 4 bytes, big-endian. */
struct um_lbtr_list {
    const uint8_t *bytes;
    size_t count;
};

static inline uint32_t um_lbtr_list_at(const struct um_lbtr_list *list, size_t index)
{
    return um_get32(list->bytes + 4 * index);
}

static inline void um_lbtr_put_list(uint8_t *out, const uint32_t *sqns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        um_put32(out + 4 * i, sqns[i]);
    }
}

#endif
