/* Order map on the uint32 hash map: which numbers are absent is known from the
 * gap list, so held fragments need no order of their own. */
#include "delivery/um_order_map.h"

#include "base/um_mem.h"

void um_order_map_init(struct um_order_map *order)
{
    um_u32_map_init(&order->map);
}

void um_order_map_free(struct um_held *taken)
{
    um_held_release(taken);
    um_free(taken);
}

void um_order_map_clear(struct um_order_map *order)
{
    size_t cursor = 0;
    uint32_t sqn;
    void *held;
    while (um_u32_map_next(&order->map, &cursor, &sqn, &held)) {
        um_order_map_free(held);
    }
    um_u32_map_clear(&order->map);
}

bool um_order_map_hold(struct um_order_map *order, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    struct um_held *held = um_malloc(sizeof *held);
    if (held == NULL) {
        return false;
    }
    if (!um_held_keep(held, msg, buf)) {
        um_free(held);
        return false;
    }
    if (um_u32_map_put(&order->map, msg->sqn, held) != 0) {
        um_order_map_free(held);
        return false;
    }
    return true;
}

struct um_held *um_order_map_take(struct um_order_map *order, uint32_t sqn)
{
    return um_u32_map_remove(&order->map, sqn);
}
