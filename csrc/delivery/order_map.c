/* Order map on the uint32 hash map: which numbers are absent is known from the
 * gap list, so held fragments need no order of their own. */
#include "delivery/order_map.h"

#include <string.h>

#include "base/um_mem.h"

void um_order_map_init(struct um_order_map *order)
{
    um_u32_map_init(&order->map);
}

void um_held_free(struct um_held *held)
{
    um_buf_unref(held->buf);
    um_free(held);
}

void um_order_map_clear(struct um_order_map *order)
{
    size_t cursor = 0;
    uint32_t sqn;
    void *held;
    while (um_u32_map_next(&order->map, &cursor, &sqn, &held)) {
        um_held_free(held);
    }
    um_u32_map_clear(&order->map);
}

/* The bytes lie in shared memory and are gone when this returns. Of the headers only those of plain data refer to them.
 */
static bool copy_payload(struct um_held *held, const struct um_lbmc_msg *msg)
{
    held->buf = um_buf_alloc(msg->payload.len);
    if (held->buf == NULL) {
        return false;
    }
    if (msg->payload.len > 0) {
        memcpy(held->buf->data, msg->payload.ptr, msg->payload.len);
    }
    held->msg.payload.ptr = held->buf->data;
    return true;
}

bool um_order_map_hold(struct um_order_map *order, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    struct um_held *held = um_malloc(sizeof *held);
    if (held == NULL) {
        return false;
    }
    held->msg = *msg;
    held->buf = buf;
    if (buf != NULL) {
        um_buf_ref(buf);
    } else if (!copy_payload(held, msg)) {
        um_free(held);
        return false;
    }
    if (um_u32_map_put(&order->map, msg->sqn, held) != 0) {
        um_held_free(held);
        return false;
    }
    return true;
}

struct um_held *um_order_map_take(struct um_order_map *order, uint32_t sqn)
{
    return um_u32_map_remove(&order->map, sqn);
}
