/* The bounded queue between a context's thread and a controller's. Owns the copies in it. See um_mon_inbox.h. */
#include "lbmmon/um_mon_inbox.h"

#include <string.h>

#include "base/um_clock.h"
#include "base/um_mem.h"
#include "base/um_wait.h"

struct packet {
    struct um_list node;
    void *tag;
    size_t len;
    unsigned char bytes[];
};

void um_mon_inbox_init(struct um_mon_inbox *inbox, size_t bytes_max, size_t count_max)
{
    memset(inbox, 0, sizeof *inbox);
    pthread_mutex_init(&inbox->lock, NULL);
    um_cond_init(&inbox->arrived);
    um_list_init(&inbox->packets);
    inbox->bytes_max = bytes_max;
    inbox->count_max = count_max;
}

void um_mon_inbox_clear(struct um_mon_inbox *inbox, void (*forget)(void *tag))
{
    struct um_list *node;
    while ((node = um_list_first(&inbox->packets)) != NULL) {
        struct packet *packet = UM_CONTAINER_OF(node, struct packet, node);
        if (forget != NULL) {
            forget(packet->tag);
        }
        um_list_remove(node);
        um_free(packet);
    }
    pthread_cond_destroy(&inbox->arrived);
    pthread_mutex_destroy(&inbox->lock);
}

bool um_mon_inbox_put(struct um_mon_inbox *inbox, const void *bytes, size_t len, void *tag)
{
    struct packet *packet = um_malloc(sizeof *packet + len);
    if (packet != NULL) {
        packet->tag = tag;
        packet->len = len;
        memcpy(packet->bytes, bytes, len);
    }
    pthread_mutex_lock(&inbox->lock);
    bool room = packet != NULL && inbox->count < inbox->count_max && len <= inbox->bytes_max - inbox->bytes;
    if (room) {
        um_list_push_back(&inbox->packets, &packet->node);
        inbox->count++;
        inbox->bytes += len;
        pthread_cond_signal(&inbox->arrived);
    } else {
        inbox->dropped++;
    }
    pthread_mutex_unlock(&inbox->lock);
    if (!room) {
        um_free(packet);
    }
    return room;
}

static struct packet *take_first(struct um_mon_inbox *inbox, unsigned timeout_ms)
{
    uint64_t until_ns = um_clock_ns() + timeout_ms * UINT64_C(1000000);
    struct um_list *node;
    while ((node = um_list_first(&inbox->packets)) == NULL && um_clock_ns() < until_ns) {
        um_cond_wait_until(&inbox->arrived, &inbox->lock, until_ns);
    }
    if (node == NULL) {
        return NULL;
    }
    struct packet *packet = UM_CONTAINER_OF(node, struct packet, node);
    um_list_remove(node);
    inbox->count--;
    inbox->bytes -= packet->len;
    return packet;
}

int um_mon_inbox_take(struct um_mon_inbox *inbox, void *out, size_t *len, unsigned timeout_ms, void **tag)
{
    pthread_mutex_lock(&inbox->lock);
    struct packet *packet = take_first(inbox, timeout_ms);
    pthread_mutex_unlock(&inbox->lock);
    if (packet == NULL) {
        return 1;
    }
    bool fits = packet->len <= *len;
    if (fits) {
        memcpy(out, packet->bytes, packet->len);
    }
    *len = packet->len;
    if (tag != NULL) {
        *tag = packet->tag;
    }
    um_free(packet);
    return fits ? 0 : -1;
}

uint64_t um_mon_inbox_dropped(struct um_mon_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    uint64_t dropped = inbox->dropped;
    pthread_mutex_unlock(&inbox->lock);
    return dropped;
}
