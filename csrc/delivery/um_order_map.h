/* Order map: fragments newer than the next expected one, held by sequence
 * number with a reference on their receive buffer. Used by um_dc.c only; same
 * thread as the engine. */
#ifndef UM_DELIVERY_ORDER_MAP_H
#define UM_DELIVERY_ORDER_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_buf.h"
#include "base/um_map.h"
#include "delivery/um_held.h"

struct um_order_map {
    struct um_u32_map map;
};

void um_order_map_init(struct um_order_map *order);
void um_order_map_clear(struct um_order_map *order); /* drops everything held and frees the table */
/* False: out of memory, nothing held. */
bool um_order_map_hold(struct um_order_map *order, const struct um_lbmc_msg *msg, struct um_buf *buf);
struct um_held *um_order_map_take(struct um_order_map *order, uint32_t sqn); /* NULL when not held */
void um_order_map_free(struct um_held *taken);

static inline size_t um_order_map_count(const struct um_order_map *order)
{
    return order->map.count;
}

static inline size_t um_order_map_bytes(const struct um_order_map *order)
{
    return order->map.capacity * (sizeof *order->map.keys + sizeof *order->map.values) +
           order->map.count * sizeof(struct um_held);
}

#endif
