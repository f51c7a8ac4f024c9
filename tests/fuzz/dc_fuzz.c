/* Fuzz: a byte string drives the delivery controller with arbitrary headers,
 * TSNIs, time, beginnings that are waited for and a recovery that expects,
 * brings and abandons what it likes. Looks for memory errors, unbounded work and
 * memory, and holds deliveries in order to their order. */
#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_log.h"
#include "base/um_sqn.h"
#include "delivery/um_dc.h"

struct fuzz {
    struct um_dc_config config;
    struct um_dc *dc;
    uint64_t now;
    bool repairing, watched, wants;
    bool any;
    uint32_t newest; /* delivered */
};

static volatile uint8_t sink;

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    (void)now_ns;
    struct fuzz *fuzz = user;
    if (fuzz->config.ordered_delivery == 1 && fuzz->any && !um_sqn_newer(d->sqn, fuzz->newest)) {
        abort();
    }
    fuzz->any = true;
    fuzz->newest = d->sqn;
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
    (void)first, (void)now_ns;
    struct fuzz *fuzz = user;
    fuzz->any = fuzz->any && count <= UM_DC_BURST_MAX; /* after many jumps no comparison holds */
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    (void)user, (void)due_ns;
}

static uint32_t on_position(void *user)
{
    return (uint32_t)((struct fuzz *)user)->now;
}

static bool on_complete_before(void *user, uint32_t position)
{
    (void)position;
    return !((struct fuzz *)user)->repairing;
}

static void on_opening(void *user, bool on)
{
    struct fuzz *fuzz = user;
    if (fuzz->watched == on) {
        abort();
    }
    fuzz->watched = on;
}

static void on_opening_cut(void *user, size_t messages, size_t bytes, uint64_t now_ns)
{
    (void)user, (void)messages, (void)bytes, (void)now_ns;
}

static bool on_recovery_wanted(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)first, (void)count, (void)now_ns;
    return ((struct fuzz *)user)->wants;
}

static int discard(int level, const char *message, void *clientd)
{
    (void)level, (void)message, (void)clientd;
    return 0;
}

/* What the transport and recovery say, chosen by p[6]. */
static void tell(struct fuzz *fuzz, const uint8_t *p, uint32_t sqn)
{
    struct um_dc_range range;
    uint32_t count = (p[0] & 0x40) ? um_get32(p + 8) : p[8];
    switch (p[6] & 7) {
    case 1:
        um_dc_on_progress(fuzz->dc, fuzz->now);
        break;
    case 2:
        um_dc_expect(fuzz->dc, fuzz->now, sqn, count);
        break;
    case 3:
        um_dc_abandon(fuzz->dc, fuzz->now, sqn, count, (p[7] & 1) ? UM_DC_LOST : UM_DC_SKIPPED);
        break;
    case 4:
        um_dc_await_recovery(fuzz->dc);
        break;
    case 5:
        fuzz->repairing = (p[7] & 1) != 0;
        fuzz->wants = (p[7] & 2) != 0;
        break;
    case 6:
        if (um_dc_next_missing(fuzz->dc, sqn, &range) &&
            (range.count == 0 || um_sqn_older(range.first, um_dc_due(fuzz->dc)))) {
            abort();
        }
        break;
    default:
        um_dc_on_timer(fuzz->dc, fuzz->now);
        break;
    }
}

static void put(struct fuzz *fuzz, const uint8_t *p, uint32_t sqn, struct um_buf *buf)
{
    struct um_lbmc_msg msg = {.sqn = sqn, .payload = {buf->data, p[6]}};
    if (p[0] & 1) {
        msg.present = UM_LBMC_HAS_FRAG;
        msg.frag.first_sqn = sqn - p[7];
        msg.frag.offset = (p[0] & 0x40) ? um_get32(p + 8) : (uint32_t)p[8] * 4;
        msg.frag.len = (p[0] & 0x20) ? um_get32(p + 8) ^ 0xFFFFu : (uint32_t)p[9] * 8;
    }
    if (p[0] & 8) {
        msg.present |= UM_LBMC_LATE_JOINED;
    }
    um_dc_on_data(fuzz->dc, fuzz->now, &msg, buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct um_dc_ops ops = {.deliver = on_deliver,
                                         .loss = on_loss,
                                         .burst_loss = on_burst,
                                         .set_timer = on_set_timer,
                                         .position = on_position,
                                         .complete_before = on_complete_before,
                                         .opening = on_opening,
                                         .opening_cut = on_opening_cut,
                                         .recovery_wanted = on_recovery_wanted};
    if (size < 4) {
        return 0;
    }
    um_log_set_proc(discard, NULL);
    struct fuzz fuzz = {.config = {.ordered_delivery = (int)(data[0] % 3) - 1,
                                   .maximum_burst_loss = 2 + data[1] * 8u,
                                   .gap_timeout_ns = data[2],
                                   .loss_check_interval_ns = data[2] & 3,
                                   .map_entries_max = data[3],
                                   .reassembly_size_max = 1u << 22,
                                   .recovery_timeout_ns = (data[0] & 0x10) ? 1000 : 0,
                                   .caching_proximity = (data[0] & 0x20) ? 20 : 0,
                                   .recovery_entries_max = (data[0] & 0x40) ? 10 : 0},
                        .repairing = (data[0] & 0x80) != 0,
                        .wants = (data[1] & 1) != 0};
    fuzz.dc = um_dc_create(&fuzz.config, &ops, &fuzz);
    struct um_buf *buf = um_buf_alloc(256);
    if (fuzz.dc == NULL || buf == NULL) {
        abort();
    }
    memset(buf->data, 0x5A, 256);
    for (size_t at = 4; at + 12 <= size; at += 12) {
        const uint8_t *p = data + at;
        fuzz.now += p[1];
        /* small numbers most of the time, so that gaps fill and fragments meet */
        uint32_t sqn = (p[0] & 0x80) ? um_get32(p + 2) : p[2];
        if ((p[0] & 7) == 7) {
            um_dc_on_tsni(fuzz.dc, fuzz.now, sqn);
        } else if ((p[0] & 7) == 6) {
            tell(&fuzz, p, sqn);
        } else {
            put(&fuzz, p, sqn, buf);
        }
        if (fuzz.config.map_entries_max != 0 && um_dc_held(fuzz.dc) > fuzz.config.map_entries_max) {
            abort();
        }
    }
    um_dc_end(fuzz.dc, fuzz.now);
    if (um_dc_held(fuzz.dc) != 0 || um_dc_reassembly_bytes(fuzz.dc) != 0 || fuzz.watched) {
        abort();
    }
    um_dc_destroy(fuzz.dc);
    if (atomic_load(&buf->refs) != 1) {
        abort();
    }
    um_buf_unref(buf);
    return 0;
}
