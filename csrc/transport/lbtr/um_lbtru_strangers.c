/* Strangers of an LBT-RU source. See um_lbtru_strangers.h. */
#include "transport/lbtr/um_lbtru_strangers.h"

#include <string.h>

#include "base/um_timer.h"

#define WAITING_INITIAL 64u

static void forget_waiting(struct um_lbtru_strangers *strangers)
{
    if (strangers->has_waiting) {
        um_lbtr_numbers_free(&strangers->waiting);
        strangers->has_waiting = false;
    }
}

void um_lbtru_strangers_free(struct um_lbtru_strangers *strangers)
{
    forget_waiting(strangers);
}

struct um_lbtru_stranger *um_lbtru_strangers_find(struct um_lbtru_strangers *strangers,
                                                  const struct um_lbtru_address *address)
{
    for (size_t i = 0; i < strangers->count; i++) {
        struct um_lbtru_stranger *stranger = &strangers->items[i];
        if (stranger->address.ip == address->ip && stranger->address.port == address->port) {
            return stranger;
        }
    }
    return NULL;
}

struct um_lbtru_stranger *um_lbtru_strangers_add(struct um_lbtru_strangers *strangers, uint64_t now_ns,
                                                 const struct um_lbtru_address *address)
{
    size_t same_ip = 0;
    um_lbtru_strangers_expire(strangers, now_ns);
    for (size_t i = 0; i < strangers->count; i++) {
        same_ip += strangers->items[i].address.ip == address->ip;
    }
    if (strangers->count == UM_LBTRU_STRANGERS_MAX || same_ip >= UM_LBTRU_STRANGERS_PER_IP) {
        return NULL;
    }
    struct um_lbtru_stranger *stranger = &strangers->items[strangers->count++];
    *stranger = (struct um_lbtru_stranger){.address = *address, .since_ns = now_ns};
    return stranger;
}

void um_lbtru_strangers_remove(struct um_lbtru_strangers *strangers, struct um_lbtru_stranger *stranger)
{
    struct um_lbtru_stranger *end = strangers->items + strangers->count--;
    memmove(stranger, stranger + 1, (size_t)(end - stranger - 1) * sizeof *stranger);
    if (strangers->count == 0) {
        forget_waiting(strangers);
    }
}

uint64_t um_lbtru_strangers_expire(struct um_lbtru_strangers *strangers, uint64_t now_ns)
{
    while (strangers->count > 0 && now_ns >= strangers->items[0].since_ns + UM_LBTRU_STRANGER_NS) {
        strangers->expired++;
        um_lbtru_strangers_remove(strangers, &strangers->items[0]);
        if (strangers->count > 0 && strangers->has_waiting) {
            um_lbtr_numbers_trim(&strangers->waiting, strangers->items[0].from_index);
        }
    }
    return strangers->count > 0 ? strangers->items[0].since_ns + UM_LBTRU_STRANGER_NS : UM_NEVER;
}

void um_lbtru_strangers_keep(struct um_lbtru_strangers *strangers, struct um_lbtr_slot *slot, uint64_t window_first)
{
    if (!strangers->has_waiting && !um_lbtr_numbers_init(&strangers->waiting, WAITING_INITIAL, 0)) {
        return; /* without memory they begin later */
    }
    strangers->has_waiting = true;
    um_lbtr_numbers_add(&strangers->waiting, slot);
    if (strangers->waiting.next - strangers->waiting.trail > UM_LBTRU_WAITING_MAX) {
        strangers->waiting.trail++;
    }
    strangers->waiting.unsent = strangers->waiting.next;
    um_lbtr_numbers_trim(&strangers->waiting, window_first);
}

/* The oldest number whose datagram has this index or a higher one. */
static uint32_t first_from(const struct um_lbtr_numbers *numbers, uint64_t index)
{
    uint32_t low = numbers->trail, high = numbers->next;
    while (low != high) {
        uint32_t mid = low + (high - low) / 2;
        if (um_lbtr_numbers_at(numbers, mid)->index < index) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

void um_lbtru_strangers_hand_over(const struct um_lbtru_strangers *strangers, const struct um_lbtru_stranger *stranger,
                                  uint64_t window_first, struct um_lbtr_numbers *numbers)
{
    uint64_t from = stranger->from_index > window_first ? stranger->from_index : window_first;
    if (!strangers->has_waiting) {
        return;
    }
    for (uint32_t n = first_from(&strangers->waiting, from); n != strangers->waiting.next; n++) {
        um_lbtr_numbers_add(numbers, um_lbtr_numbers_at(&strangers->waiting, n)->slot);
    }
}
