/* LBT-SMX against a bare slot ring, whose commit word lies in the slot: one way
 * and ping-pong, two processes pinned to two cores, both spinning, both reading
 * in place, both windows of 8 MiB. `um` uses lbm_src_buff_acquire() and
 * lbm_src_buffs_complete(), `umsend` lbm_src_send(). --batch counts messages. */
#define _GNU_SOURCE
#include "bench_common.h"
#include "bench_um.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW (8u << 20)
#define GIVE_BACK 64 /* slots read before their room is given back */

static size_t batch(void)
{
    return bench_options.batch > 0 ? bench_options.batch : 1;
}

/* ---- what both do: a sender that fills buffers, a pinger ---- */

struct sending {
    uint64_t sequence, kind, measure, end;
    size_t in_batch;
};

static void sending_init(struct sending *s)
{
    uint64_t start = bench_now();
    *s = (struct sending){.measure = start + (uint64_t)(bench_options.warm_seconds * 1e9), .kind = BENCH_WARM};
    s->end = s->measure + (uint64_t)(bench_options.seconds * 1e9);
}

/* Every 256 messages; false: over. */
static bool sending_goes_on(struct sending *s)
{
    uint64_t now = bench_now();
    s->kind = now < s->measure ? BENCH_WARM : BENCH_MEASURED;
    return now < s->end && !bench_finished();
}

static inline void fill(void *buffer, uint64_t sequence, uint64_t kind)
{
    struct bench_header header = {sequence, kind};
    memcpy(buffer, &header, sizeof header);
    memset((char *)buffer + sizeof header, 0, bench_options.size - sizeof header);
}

/* ---- the bare slot ring ---- */

struct ring {
    _Alignas(128) _Atomic uint64_t read;
    _Alignas(128) unsigned char data[WINDOW];
};

struct ring_end {
    struct ring *ring;
    uint64_t head, read, mask, first;
    size_t stride, pending;
};

static struct ring *rings; /* shared: A to B, B to A */

static void ring_end_init(struct ring_end *e, int index)
{
    *e = (struct ring_end){.ring = &rings[index], .stride = (8 + bench_options.size + 7) & ~(size_t)7};
    uint64_t slots = 1;
    while (slots * 2 * e->stride <= WINDOW) {
        slots *= 2;
    }
    e->mask = slots - 1;
}

static inline _Atomic uint64_t *slot_word(const struct ring_end *e, uint64_t position)
{
    return (_Atomic uint64_t *)(void *)(e->ring->data + (position & e->mask) * e->stride);
}

static inline void *ring_slot(struct ring_end *e)
{
    while (e->head - e->read > e->mask) {
        e->read = atomic_load_explicit(&e->ring->read, memory_order_acquire);
    }
    return slot_word(e, e->head) + 1;
}

/* The slot is filled: publish it, or the batch with its first slot last. */
static inline void ring_commit(struct ring_end *e)
{
    if (batch() == 1) {
        atomic_store_explicit(slot_word(e, e->head), e->head + 1, memory_order_release);
        e->head++;
        return;
    }
    if (e->pending++ == 0) {
        e->first = e->head;
    } else {
        atomic_store_explicit(slot_word(e, e->head), e->head + 1, memory_order_relaxed);
    }
    e->head++;
    if (e->pending == batch()) {
        atomic_store_explicit(slot_word(e, e->first), e->first + 1, memory_order_release);
        e->pending = 0;
    }
}

static inline const void *ring_next(struct ring_end *e)
{
    return atomic_load_explicit(slot_word(e, e->head), memory_order_acquire) == e->head + 1 ? slot_word(e, e->head) + 1
                                                                                            : NULL;
}

static inline void ring_done(struct ring_end *e)
{
    if ((++e->head & (GIVE_BACK - 1)) == 0) {
        atomic_store_explicit(&e->ring->read, e->head, memory_order_release);
    }
}

static void raw_oneway(int role)
{
    struct ring_end e;
    ring_end_init(&e, 0);
    if (role == 0) {
        struct sending s;
        sending_init(&s);
        while (sending_goes_on(&s)) {
            for (int i = 0; i < 256; i++) {
                fill(ring_slot(&e), s.sequence++, s.kind);
                ring_commit(&e);
            }
        }
        bench_shared->sent = s.sequence;
        for (size_t i = 0; i < batch(); i++) {
            fill(ring_slot(&e), s.sequence++, BENCH_END);
            ring_commit(&e);
        }
        return;
    }
    while (!bench_finished()) {
        const void *data = ring_next(&e);
        if (data != NULL) {
            bench_oneway_message(data);
            ring_done(&e);
        } else {
            bench_relax();
        }
    }
}

static void raw_pingpong(int role)
{
    struct ring_end out, in;
    struct bench_pinger p;
    ring_end_init(&out, role);
    ring_end_init(&in, 1 - role);
    bench_pinger_init(&p);
    if (role == 0) {
        p.sent_at = bench_now();
        fill(ring_slot(&out), ++p.sequence, BENCH_MEASURED);
        ring_commit(&out);
    }
    while (!bench_finished()) {
        const void *data = ring_next(&in);
        if (data == NULL) {
            bench_relax();
            continue;
        }
        if (role == 1) {
            memcpy(ring_slot(&out), data, bench_options.size);
            ring_commit(&out);
        } else if (bench_pinger_reply(&p)) {
            p.sent_at = bench_now();
            fill(ring_slot(&out), ++p.sequence, BENCH_MEASURED);
            ring_commit(&out);
        }
        ring_done(&in);
    }
}

/* ---- libum ---- */

struct um_side {
    lbm_context_t *ctx;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    bool echoes;
    void *buffer; /* acquired for the next message, together with the publication of the last */
    struct bench_pinger pinger;
};

static void um_acquire(struct um_side *side)
{
    um_check(lbm_src_buff_acquire(side->src, &side->buffer, bench_options.size, 0), "lbm_src_buff_acquire");
}

static void um_publish(struct um_side *side)
{
    um_check(lbm_src_buffs_complete_and_acquire(side->src, &side->buffer, bench_options.size, 0),
             "lbm_src_buffs_complete_and_acquire");
}

static void um_ping(struct um_side *side)
{
    side->pinger.sent_at = bench_now();
    fill(side->buffer, ++side->pinger.sequence, BENCH_MEASURED);
    um_publish(side);
}

static int um_on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *cd)
{
    struct um_side *side = cd;
    (void)rcv;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    if (side->src == NULL) {
        bench_oneway_message(msg->data);
    } else if (side->echoes) {
        memcpy(side->buffer, msg->data, bench_options.size);
        um_publish(side);
    } else if (bench_pinger_reply(&side->pinger)) {
        um_ping(side);
    }
    return 0;
}

static lbm_src_t *um_source(lbm_context_t *ctx, const char *name)
{
    lbm_src_topic_attr_t *attr = um_source_attr("lbtsmx");
    char text[32];
    snprintf(text, sizeof text, "%u", WINDOW);
    um_check(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_transmission_window_size", text), "window");
    return um_source_of(ctx, name, attr);
}

/* A buffer is asked for together with the publication of the batch before. */
static void um_send_natively(lbm_src_t *src, struct sending *s, size_t count)
{
    void *buffer;
    for (size_t i = 0; i < count; i++) {
        int rc;
        if (s->in_batch == batch()) {
            rc = lbm_src_buffs_complete_and_acquire(src, &buffer, bench_options.size, 0);
            s->in_batch = 0;
        } else {
            rc = lbm_src_buff_acquire(src, &buffer, bench_options.size, 0);
        }
        if (rc != 0) {
            bench_die("a buffer of %zu bytes: %s", bench_options.size, lbm_errmsg());
        }
        fill(buffer, s->sequence++, s->kind);
        s->in_batch++;
    }
}

static void um_send_plainly(lbm_src_t *src, struct sending *s, size_t count)
{
    static char message[65536];
    for (size_t i = 0; i < count; i++) {
        fill(message, s->sequence++, s->kind);
        if (lbm_src_send(src, message, bench_options.size, 0) != 0) {
            bench_die("lbm_src_send: %s", lbm_errmsg());
        }
    }
}

static void um_sender(struct um_side *side)
{
    bool plain = strcmp(bench_options.impl, "umsend") == 0;
    struct sending s;
    um_check(um_src_wait_receivers(side->src, 1, 15000), "um_src_wait_receivers");
    sending_init(&s);
    while (sending_goes_on(&s)) {
        if (plain) {
            um_send_plainly(side->src, &s, 256);
        } else {
            um_send_natively(side->src, &s, 256);
        }
    }
    bench_shared->sent = s.sequence;
    lbm_src_buffs_complete(side->src);
    s.kind = BENCH_END;
    um_send_plainly(side->src, &s, 1);
}

static void um_side_run(int role)
{
    static struct um_side side;
    side.ctx = um_context_of(um_context_attr("127.0.0.1"));
    if (bench_oneway()) {
        if (role == 0) {
            side.src = um_source(side.ctx, "bench/smx/a");
        } else {
            side.rcv = um_receiver(side.ctx, "bench/smx/a", um_on_message, &side);
        }
        bench_meet();
        if (role == 0) {
            um_sender(&side);
        }
    } else {
        side.echoes = role == 1;
        side.src = um_source(side.ctx, role == 0 ? "bench/smx/a" : "bench/smx/b");
        side.rcv = um_receiver(side.ctx, role == 0 ? "bench/smx/b" : "bench/smx/a", um_on_message, &side);
        bench_meet();
        um_check(um_src_wait_receivers(side.src, 1, 15000), "um_src_wait_receivers");
        um_check(um_rcv_wait_ready(side.rcv, 1, 15000), "um_rcv_wait_ready");
        um_acquire(&side);
        bench_meet();
        bench_pinger_init(&side.pinger);
        if (role == 0) {
            um_ping(&side);
        }
    }
    while (!bench_finished()) {
        bench_sleep_ms(5);
    }
    if (side.buffer != NULL) {
        lbm_src_buffs_cancel(side.src);
    }
    um_end(side.rcv, side.src, side.ctx);
}

static void side(int role)
{
    if (strcmp(bench_options.impl, "raw") != 0) {
        um_side_run(role);
    } else if (bench_oneway()) {
        raw_oneway(role);
    } else {
        raw_pingpong(role);
    }
}

/* The round trips as an HDR histogram is printed: value in us, percentile, count up to it, 1 / (1 - percentile). The
 * samples are sorted by then. Coordinated omission cannot hide anything: the next ping waits for the reply by design.
 */
static void write_histogram(const char *path)
{
    FILE *file = fopen(path, "w");
    uint64_t n = bench_shared->sample_count;
    if (file == NULL) {
        bench_die("%s: cannot be written", path);
    }
    fprintf(file, "Value Percentile TotalCount 1/(1-Percentile)\n");
    for (double rest = 1.0; n > 0 && rest * (double)n >= 1.0; rest *= 0.9) {
        uint64_t upto = (uint64_t)((double)n * (1.0 - rest));
        fprintf(file, "%.3f %.9f %llu %.2f\n", bench_shared->samples[upto < n ? upto : n - 1] / 1e3, 1.0 - rest,
                (unsigned long long)upto, 1.0 / rest);
    }
    if (n > 0) {
        fprintf(file, "%.3f 1.0 %llu inf\n", bench_shared->samples[n - 1] / 1e3, (unsigned long long)n);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    rings = mmap(NULL, 2 * sizeof *rings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (rings == MAP_FAILED) {
        return 3;
    }
    int rc = bench_main(argc, argv, side);
    if (rc == 0 && getenv("UM_BENCH_HISTOGRAM") != NULL) {
        write_histogram(getenv("UM_BENCH_HISTOGRAM"));
    }
    return rc;
}
