/* Fuzz: a byte string drives the delivery controller with arbitrary headers,
 * TSNIs and time. Looks for memory errors, unbounded work and memory. */
#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_log.h"
#include "delivery/um_dc.h"

static volatile uint8_t sink;

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    (void)user, (void)now_ns;
    for (size_t i = 0; i < d->len; i++) { /* touch every byte delivered */
        sink ^= d->data[i];
    }
}

static void on_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    (void)user, (void)sqn, (void)now_ns;
}

static void on_burst(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)user, (void)first, (void)count, (void)now_ns;
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    (void)user, (void)due_ns;
}

static int discard(int level, const char *message, void *clientd)
{
    (void)level, (void)message, (void)clientd;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct um_dc_ops ops = {on_deliver, on_loss, on_burst, on_set_timer, NULL, NULL};
    if (size < 4) {
        return 0;
    }
    um_log_set_proc(discard, NULL);
    struct um_dc_config config = {.ordered_delivery = (int)(data[0] % 3) - 1,
                                  .maximum_burst_loss = 2 + data[1] * 8u,
                                  .gap_timeout_ns = data[2],
                                  .loss_check_interval_ns = data[2] & 3,
                                  .map_entries_max = data[3],
                                  .reassembly_size_max = 1u << 22};
    struct um_dc *dc = um_dc_create(&config, &ops, NULL);
    struct um_buf *buf = um_buf_alloc(256);
    if (dc == NULL || buf == NULL) {
        abort();
    }
    memset(buf->data, 0x5A, 256);
    uint64_t now = 0;
    for (size_t at = 4; at + 12 <= size; at += 12) {
        const uint8_t *p = data + at;
        now += p[1];
        /* small numbers most of the time, so that gaps fill and fragments meet */
        uint32_t sqn = (p[0] & 0x80) ? um_get32(p + 2) : p[2];
        if ((p[0] & 7) == 7) {
            um_dc_on_tsni(dc, now, sqn);
        } else if ((p[0] & 7) == 6) {
            um_dc_on_timer(dc, now);
        } else {
            struct um_lbmc_msg msg = {.sqn = sqn, .payload = {buf->data, p[6]}};
            if (p[0] & 1) {
                msg.present = UM_LBMC_HAS_FRAG;
                msg.frag.first_sqn = sqn - p[7];
                msg.frag.offset = (p[0] & 0x40) ? um_get32(p + 8) : (uint32_t)p[8] * 4;
                msg.frag.len = (p[0] & 0x20) ? um_get32(p + 8) ^ 0xFFFFu : (uint32_t)p[9] * 8;
            }
            um_dc_on_data(dc, now, &msg, buf);
        }
        if (config.map_entries_max != 0 && um_dc_held(dc) > config.map_entries_max) {
            abort();
        }
    }
    um_dc_destroy(dc);
    if (atomic_load(&buf->refs) != 1) {
        abort();
    }
    um_buf_unref(buf);
    return 0;
}
