/* NAKs by receiver. See um_udp_nakers.h. */
#include "transport/udp/um_udp_nakers.h"

#include <stdlib.h>
#include <string.h>

#include "base/um_mem.h"

static struct um_src_nak_count *find(struct um_udp_nakers *nakers, uint32_t ip, uint16_t port)
{
    for (uint32_t i = 0; i < nakers->count; i++) {
        if (nakers->list[i].ip == ip && nakers->list[i].port == port) {
            return &nakers->list[i];
        }
    }
    if (nakers->list == NULL) {
        nakers->list = um_calloc(UM_UDP_NAKERS, sizeof *nakers->list);
    }
    if (nakers->list == NULL || nakers->count == UM_UDP_NAKERS) {
        return &nakers->others;
    }
    struct um_src_nak_count *added = &nakers->list[nakers->count++];
    *added = (struct um_src_nak_count){.ip = ip, .port = port};
    return added;
}

void um_udp_nakers_note(struct um_udp_nakers *nakers, uint32_t ip, uint16_t port, uint64_t naks, uint64_t now_ns)
{
    struct um_src_nak_count *naker = find(nakers, ip, port);
    naker->packets++;
    naker->naks += naks;
    naker->last_ns = now_ns;
}

static int by_naks(const void *a, const void *b)
{
    uint64_t left = ((const struct um_src_nak_count *)a)->naks, right = ((const struct um_src_nak_count *)b)->naks;
    return left < right ? 1 : left > right ? -1 : 0;
}

int um_udp_nakers_list(const struct um_udp_nakers *nakers, struct um_src_nak_count *out, int max)
{
    struct um_src_nak_count sorted[UM_UDP_NAKERS + 1];
    int count = (int)nakers->count;
    if (count > 0) {
        memcpy(sorted, nakers->list, (size_t)count * sizeof *sorted);
        qsort(sorted, (size_t)count, sizeof *sorted, by_naks);
    }
    if (nakers->others.packets > 0) {
        sorted[count++] = nakers->others;
    }
    memcpy(out, sorted, (size_t)(count < max ? count : max) * sizeof *sorted);
    return count;
}

void um_udp_nakers_clear(struct um_udp_nakers *nakers)
{
    um_free(nakers->list);
    memset(nakers, 0, sizeof *nakers);
}
