/* LBT-IPC with a pending receive thread against what it is made of: a bare futex
 * ping-pong in shared memory, and one way a bare ring of batches with the same
 * sleeping rule. Two processes pinned to two cores; --spin lets both sides poll
 * (busy_wait). --batch is bytes (one way). */
#define _GNU_SOURCE
#include "bench_common.h"
#include "bench_um.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WINDOW (25165824u)
#define HEADER 12u /* what a message has in front of it in a batch, as in LBMC */
#define BATCH_MAX 65536u

static size_t batch_bytes(void)
{
    return bench_options.batch > 0 && bench_options.batch < BATCH_MAX ? bench_options.batch : 8192;
}

static void fill(char *out, uint64_t sequence, uint64_t kind)
{
    struct bench_header header = {sequence, kind};
    memcpy(out, &header, sizeof header);
}

/* ---- bare ---- */

struct mail {
    _Alignas(128) atomic_uint word; /* number of the newest message; futex */
    _Alignas(128) atomic_uint sleeping;
    _Alignas(128) char data[BATCH_MAX];
};

struct bare_ring {
    _Alignas(128) _Atomic uint64_t tail;
    _Alignas(128) _Atomic uint64_t head;
    _Alignas(128) atomic_uint futex;
    _Alignas(128) atomic_uint sleeping;
    _Alignas(128) unsigned char data[WINDOW];
};

static struct bare {
    struct mail mail[2]; /* [r]: to role r */
    struct bare_ring ring;
} * bare;

static void futex_wait(atomic_uint *word, unsigned seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void mail_put(struct mail *mail, const void *data)
{
    memcpy(mail->data, data, bench_options.size);
    atomic_fetch_add(&mail->word, 1);
    if (atomic_load(&mail->sleeping)) {
        futex_wake(&mail->word);
    }
}

static void mail_take(struct mail *mail, unsigned *seen, void *out)
{
    while (atomic_load(&mail->word) == *seen && !bench_finished()) {
        if (bench_options.spin) {
            bench_relax();
            continue;
        }
        atomic_store(&mail->sleeping, 1);
        futex_wait(&mail->word, *seen);
        atomic_store(&mail->sleeping, 0);
    }
    *seen = atomic_load(&mail->word);
    memcpy(out, mail->data, bench_options.size);
}

static void raw_pingpong(int role)
{
    static char message[BATCH_MAX];
    struct bench_pinger p;
    unsigned seen = 0;
    bench_pinger_init(&p);
    while (!bench_finished()) {
        if (role == 0) {
            p.sent_at = bench_now();
            fill(message, ++p.sequence, BENCH_MEASURED);
            mail_put(&bare->mail[1], message);
            mail_take(&bare->mail[0], &seen, message);
            if (!bench_finished()) {
                bench_pinger_reply(&p);
            }
        } else {
            mail_take(&bare->mail[1], &seen, message);
            mail_put(&bare->mail[0], message);
        }
    }
    mail_put(&bare->mail[1 - role], message); /* let the other side see that it is over */
}

struct batch {
    char data[BATCH_MAX];
    uint32_t len;
};

static void ring_put(struct bare_ring *r, const struct batch *b)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint64_t off = tail % WINDOW, size = (4 + (uint64_t)b->len + 31) / 32 * 32;
    uint64_t pad = off + size > WINDOW ? WINDOW - off : 0;
    while (tail + pad + size - atomic_load_explicit(&r->head, memory_order_acquire) > WINDOW && !bench_finished()) {
        bench_relax();
    }
    if (pad > 0) {
        memset(r->data + off, 0, 4);
        off = 0;
    }
    memcpy(r->data + off, &b->len, 4);
    memcpy(r->data + off + 4, b->data, b->len);
    atomic_store_explicit(&r->tail, tail + pad + size, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&r->sleeping, memory_order_relaxed) && atomic_exchange(&r->sleeping, 0)) {
        atomic_fetch_add(&r->futex, 1);
        futex_wake(&r->futex);
    }
}

static void ring_read(struct bare_ring *r, struct batch *b)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), off = head % WINDOW;
    memcpy(&b->len, r->data + off, 4);
    if (b->len == 0) {
        atomic_store_explicit(&r->head, head + WINDOW - off, memory_order_release);
        return;
    }
    memcpy(b->data, r->data + off + 4, b->len);
    for (uint32_t at = 0; at < b->len; at += HEADER + (uint32_t)bench_options.size) {
        bench_oneway_message(b->data + at + HEADER);
    }
    atomic_store_explicit(&r->head, head + (4 + (uint64_t)b->len + 31) / 32 * 32, memory_order_release);
}

static bool ring_empty(struct bare_ring *r)
{
    return atomic_load_explicit(&r->tail, memory_order_acquire) == atomic_load_explicit(&r->head, memory_order_relaxed);
}

static void ring_sleep(struct bare_ring *r)
{
    unsigned seen = atomic_load(&r->futex);
    atomic_store(&r->sleeping, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (ring_empty(r) && !bench_finished()) {
        static const struct timespec bound = {0, 100000000};
        syscall(SYS_futex, &r->futex, FUTEX_WAIT, seen, &bound, NULL, 0);
    }
    atomic_store(&r->sleeping, 0);
}

static void raw_oneway(int role)
{
    static struct batch b;
    static char message[BATCH_MAX];
    struct bench_pinger p;
    bench_pinger_init(&p);
    if (role == 1) {
        while (!bench_finished()) {
            if (!ring_empty(&bare->ring)) {
                ring_read(&bare->ring, &b);
            } else if (bench_options.spin) {
                bench_relax();
            } else {
                ring_sleep(&bare->ring);
            }
        }
        return;
    }
    bool over = false;
    for (uint64_t n = 0; !over && !bench_finished(); n++) {
        uint64_t now = n % 256 == 0 ? bench_now() : 0;
        over = now > p.end;
        fill(message, n, over ? BENCH_END : p.sequence);
        p.sequence = now > p.measure ? BENCH_MEASURED : p.sequence == 0 ? BENCH_WARM : p.sequence;
        memset(b.data + b.len, 0, HEADER);
        memcpy(b.data + b.len + HEADER, message, bench_options.size);
        b.len += HEADER + (uint32_t)bench_options.size;
        if (b.len >= batch_bytes() || b.len + HEADER + bench_options.size > BATCH_MAX || over) {
            ring_put(&bare->ring, &b);
            b.len = 0;
        }
        bench_shared->sent = n + 1;
    }
}

/* ---- libum ---- */

struct um_side {
    lbm_context_t *ctx;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    bool echoes;
    struct bench_pinger pinger;
};

static void um_ping(struct um_side *side)
{
    static char message[BATCH_MAX];
    side->pinger.sent_at = bench_now();
    fill(message, ++side->pinger.sequence, BENCH_MEASURED);
    um_check(lbm_src_send(side->src, message, bench_options.size, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK), "lbm_src_send");
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
        um_check(lbm_src_send(side->src, msg->data, msg->len, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK), "lbm_src_send");
    } else if (bench_pinger_reply(&side->pinger)) {
        um_ping(side);
    }
    return 0;
}

static lbm_context_t *um_context(void)
{
    lbm_context_attr_t *attr = um_context_attr("127.0.0.1");
    um_check(lbm_context_attr_str_setopt(attr, "transport_lbtipc_receiver_thread_behavior",
                                         bench_options.spin ? "busy_wait" : "pend"),
             "transport_lbtipc_receiver_thread_behavior");
    return um_context_of(attr);
}

static lbm_src_t *um_source(lbm_context_t *ctx, const char *name)
{
    char text[32];
    lbm_src_topic_attr_t *attr = um_source_attr("lbtipc");
    um_check(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_behavior", "receiver_paced"), "behavior");
    if (bench_options.batch > 0) {
        snprintf(text, sizeof text, "%zu", bench_options.batch);
        um_check(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_minimum_length", text), "batching");
    }
    return um_source_of(ctx, name, attr);
}

static void um_sender(struct um_side *side)
{
    static char message[BATCH_MAX];
    struct bench_pinger p;
    bench_pinger_init(&p);
    uint64_t kind = BENCH_WARM;
    bool over = false;
    for (uint64_t n = 0; !over && !bench_finished(); n++) {
        uint64_t now = n % 256 == 0 ? bench_now() : 0;
        over = now > p.end;
        kind = over ? BENCH_END : now > p.measure ? BENCH_MEASURED : kind;
        fill(message, n, kind);
        um_check(lbm_src_send(side->src, message, bench_options.size, over ? LBM_MSG_FLUSH : 0), "lbm_src_send");
        bench_shared->sent = n + 1;
    }
    lbm_src_flush(side->src);
}

static void um_wait(void)
{
    while (!bench_finished()) {
        bench_sleep_ms(1);
    }
}

static void um_run(int role)
{
    struct um_side side = {.ctx = um_context(), .echoes = role == 1};
    bool sends = role == 0 || !bench_oneway();
    if (sends) {
        side.src = um_source(side.ctx, role == 0 ? "bench/ping" : "bench/pong");
    }
    if (role == 1 || !bench_oneway()) {
        side.rcv = um_receiver(side.ctx, role == 0 ? "bench/pong" : "bench/ping", um_on_message, &side);
        um_check(um_rcv_wait_ready(side.rcv, 1, 15000), "um_rcv_wait_ready");
    }
    if (sends) {
        um_check(um_src_wait_receivers(side.src, 1, 15000), "um_src_wait_receivers");
    }
    if (!bench_meet()) {
        bench_die("the other side did not get ready");
    }
    if (role == 0 && bench_oneway()) {
        um_sender(&side);
    } else if (role == 0) {
        bench_pinger_init(&side.pinger);
        um_ping(&side);
    }
    um_wait();
    um_end(side.rcv, side.src, side.ctx);
}

static void side(int role)
{
    if (strcmp(bench_options.impl, "um") == 0) {
        um_run(role);
        return;
    }
    if (!bench_meet()) {
        bench_die("the other side did not get ready");
    }
    if (bench_oneway()) {
        raw_oneway(role);
    } else {
        raw_pingpong(role);
    }
}

int main(int argc, char **argv)
{
    bare = mmap(NULL, sizeof *bare, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (bare == MAP_FAILED) {
        return 3;
    }
    return bench_main(argc, argv, side);
}
