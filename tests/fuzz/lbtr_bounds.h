/* What no input may make the engines of LBT-RM and LBT-RU exceed: output of a receiver and
 * of a source in any 10 ms, and memory. Used by the fuzz targets of both. Aborts. */
#ifndef LBTR_BOUNDS_H
#define LBTR_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/lbtr/um_lbtr_limiter.h"
#include "wire/um_lbtr.h"

#define MEMORY_MAX                                                                                                     \
    (24u << 20) /* of both engines together; 65,536 ranges of a receiver are 4 MB, twice while they grow */
#define SPAN_NS 10000000u
#define INPUT_MAX 1500u          /* bytes looked at: longer inputs only take longer */
#define TIMERS_MAX 40            /* that fire in one step of time */
#define NAK_PACKETS_PER_SPAN 60u /* spans of the engine begin at any time: two may share one of these */

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

struct bounds {
    uint64_t now_ns, begin_ns;
    uint64_t span, nak_packets;
    uint64_t interval, data_bytes, repair_bytes; /* of the limiter's interval */
    uint64_t ncf_bytes, resets, lost;
    size_t memory;     /* before the engines */
    uint32_t datagram; /* the number of the one that the receiver is given */
    bool given;        /* one is */
    uint32_t row_lost; /* the longest loss before a row */
};

static inline void bounds_fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static inline void bounds_begin(struct bounds *bounds, uint64_t now_ns)
{
    *bounds = (struct bounds){.now_ns = now_ns, .begin_ns = now_ns};
    bounds->memory = __sanitizer_get_current_allocated_bytes != NULL ? __sanitizer_get_current_allocated_bytes() : 0;
}

static inline void bounds_memory(const struct bounds *bounds)
{
    if (__sanitizer_get_current_allocated_bytes != NULL &&
        __sanitizer_get_current_allocated_bytes() > bounds->memory + MEMORY_MAX) {
        bounds_fail("too much memory");
    }
}

static inline void bounds_nak(struct bounds *bounds)
{
    if (bounds->now_ns / SPAN_NS != bounds->span) {
        bounds->span = bounds->now_ns / SPAN_NS;
        bounds->nak_packets = 0;
    }
    if (++bounds->nak_packets > NAK_PACKETS_PER_SPAN) {
        bounds_fail("too many NAK packets");
    }
}

static inline void bounds_data(struct bounds *bounds, const struct um_lbtr_limiter *limiter, size_t len, bool repair)
{
    uint64_t interval = bounds->now_ns / limiter->data.interval_ns;
    if (interval != bounds->interval) {
        bounds->interval = interval;
        bounds->data_bytes = bounds->repair_bytes = 0;
    }
    bounds->data_bytes += repair && !limiter->retransmissions_count ? 0 : len;
    bounds->repair_bytes += repair ? len : 0;
    if (bounds->data_bytes > limiter->data.allowance || bounds->repair_bytes > limiter->rx.allowance) {
        bounds_fail("more data than the limits allow");
    }
}

static inline void bounds_ncf(struct bounds *bounds, const struct um_lbtr_limiter *limiter, size_t len)
{
    uint64_t seconds = (bounds->now_ns - bounds->begin_ns) / UINT64_C(1000000000) + 2;
    bounds->ncf_bytes += len;
    if (bounds->ncf_bytes > seconds * limiter->ncf.allowance) {
        bounds_fail("more NCFs than allowed");
    }
}

/* A row of datagrams from any distance is believed, and everything before its last one is lost; where another row leads
 * back into that, a part of it is looked for, and lost, once more. Claims do not reach so far, so that nothing else
 * may. */
static inline void bounds_loss(struct bounds *bounds, uint32_t first, uint32_t count)
{
    if (bounds->given && first + count == bounds->datagram && count > bounds->row_lost) {
        bounds->row_lost = count;
    }
    if (count == 0 || count >= 1u << 31 || (count > 1u << 22 && count > bounds->row_lost)) {
        bounds_fail("an impossible loss");
    }
}

/* The sanitizer checks what is copied. */
static inline void bounds_touch(const uint8_t *data, size_t len)
{
    static uint8_t sink[UM_LBTR_DATAGRAM_MAX];
    if (len > 0) {
        memcpy(sink, data, len);
    }
}

#endif
