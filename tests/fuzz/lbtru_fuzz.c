/* Fuzz target: LBT-RU packets, decoded and given to both engines. The input is a row of
 * packets, each behind its length (1 byte); 0: time passes instead, as many half
 * milliseconds as the square of the next byte says, and the application sends. Packets
 * come from one of four addresses, chosen by the upper half of their first byte, which is
 * cleared. */
#include <string.h>

#include "lbtr_bounds.h"
#include "transport/lbtr/um_lbtru_rcv_engine.h"
#include "transport/lbtr/um_lbtru_src_engine.h"

#define SID 0x263170a3u
#define SOURCE_PORT 14380
#define RESETS_PER_SECOND 64u

static const uint32_t source_ip = 0x0100000a;

struct engines {
    struct um_lbtr_src_engine *source;
    struct um_lbtr_rcv_engine *receiver;
    struct um_lbtr_limiter limiter;
    struct bounds bounds;
    uint64_t source_due, receiver_due;
    bool begun;
    uint64_t clients;
};

static void on_receiver_send(void *io, const uint8_t *data, size_t len)
{
    struct engines *e = io;
    bounds_touch(data, len);
    if ((data[0] & 0x0f) == UM_LBTRU_NAK) {
        bounds_nak(&e->bounds);
    }
}

static void on_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    bounds_touch(payload->ptr, payload->len);
    if (!((struct engines *)io)->begun) {
        bounds_fail("delivered before the beginning");
    }
}

static void on_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    bounds_loss(&((struct engines *)io)->bounds, first, count);
}

static void on_begin(void *io, uint64_t now_ns)
{
    ((struct engines *)io)->begun = true;
}

static void on_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
}

static void set_receiver_timer(void *io, uint64_t due_ns)
{
    ((struct engines *)io)->receiver_due = due_ns;
}

static void set_source_timer(void *io, uint64_t due_ns)
{
    ((struct engines *)io)->source_due = due_ns;
}

static void on_send(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len,
                    const uint8_t *body, size_t body_len)
{
    struct engines *e = io;
    bounds_touch(head, head_len);
    bounds_touch(body, body_len);
    switch (head[0] & 0x0f) {
    case UM_LBTRU_DATA:
        bounds_data(&e->bounds, &e->limiter, head_len + body_len,
                    (um_get16(head + 2) & UM_LBTRU_FLAG_RETRANSMISSION) != 0);
        break;
    case UM_LBTRU_NCF:
        bounds_ncf(&e->bounds, &e->limiter, head_len);
        break;
    case UM_LBTRU_RST:
        if (++e->bounds.resets > RESETS_PER_SECOND * ((e->bounds.now_ns - e->bounds.begin_ns) / UM_NS_PER_SEC + 2)) {
            bounds_fail("too many resets");
        }
        break;
    default:
        break;
    }
}

static void on_kick(void *io)
{
    ((struct engines *)io)->source_due = 0;
}

static void on_relieved(void *io)
{
}

static void on_connected(void *io, const struct um_lbtru_address *client)
{
    if (++((struct engines *)io)->clients > 3) {
        bounds_fail("more clients than there may be");
    }
}

static void on_disconnected(void *io, const struct um_lbtru_address *client, uint64_t silent_ns)
{
    if (((struct engines *)io)->clients-- == 0) {
        bounds_fail("a client that was not there went");
    }
}

static const struct um_lbtr_rcv_outputs receiver_ops = {.send = on_receiver_send,
                                                        .deliver = on_deliver,
                                                        .lost = on_lost,
                                                        .begin = on_begin,
                                                        .end = on_end,
                                                        .set_timer = set_receiver_timer};
static const struct um_lbtru_src_engine_ops source_ops = {.send = on_send,
                                                          .common.set_timer = set_source_timer,
                                                          .common.kick = on_kick,
                                                          .common.relieved = on_relieved,
                                                          .connected = on_connected,
                                                          .disconnected = on_disconnected};

static void send_one(struct engines *e)
{
    size_t room;
    uint8_t *payload =
        um_lbtr_src_engine_may_send(e->source, true) ? um_lbtr_src_engine_acquire(e->source, &room) : NULL;
    if (payload != NULL) {
        memset(payload, 7, 900);
        um_lbtr_src_engine_commit(e->source, e->bounds.now_ns, 900, 888);
    }
}

/* Timers fire when they are due, as a context would have them. */
static void pass_time(struct engines *e, uint64_t ns)
{
    uint64_t until = e->bounds.now_ns + ns;
    for (int i = 0; i < TIMERS_MAX; i++) {
        uint64_t due = e->source_due < e->receiver_due ? e->source_due : e->receiver_due;
        if (due > until) {
            break;
        }
        e->bounds.now_ns = due > e->bounds.now_ns ? due : e->bounds.now_ns;
        if (e->source_due <= e->bounds.now_ns) {
            e->source_due = UM_NEVER;
            um_lbtr_src_engine_on_timer(e->source, e->bounds.now_ns);
        }
        if (e->receiver_due <= e->bounds.now_ns) {
            e->receiver_due = UM_NEVER;
            um_lbtr_rcv_engine_on_timer(e->receiver, e->bounds.now_ns);
        }
    }
    e->bounds.now_ns = until;
}

static void run_packet(struct engines *e, const uint8_t *data, size_t len)
{
    struct um_lbtru_address from = {0x0200000a, (uint16_t)(14360 + (data[0] >> 6))};
    uint8_t *packet = malloc(len + 1);
    memcpy(packet, data, len);
    packet[0] &= 0x0f;
    struct um_lbtru_packet decoded;
    e->bounds.given = um_lbtru_decode(packet, len, &decoded) == UM_LBTR_OK && decoded.type == UM_LBTRU_DATA;
    e->bounds.datagram = e->bounds.given ? decoded.sqn : 0;
    um_lbtru_rcv_engine_on_packet(e->receiver, e->bounds.now_ns, packet, len, source_ip, SOURCE_PORT);
    e->bounds.given = false;
    um_lbtru_src_engine_on_packet(e->source, e->bounds.now_ns, packet, len, &from);
    free(packet);
}

static void run_input(struct engines *e, const uint8_t *data, size_t len)
{
    while (len > 0) {
        size_t size = data[0] < len ? data[0] : len - 1;
        if (size == 0) {
            uint64_t step = len > 1 ? data[1] : 0;
            size = len > 1;
            pass_time(e, step * step * (UM_NS_PER_MS / 2));
            send_one(e);
        } else {
            e->bounds.now_ns += 10000;
            run_packet(e, data + 1, size);
        }
        bounds_memory(&e->bounds);
        data += size + 1;
        len -= size + 1;
    }
}

static void create(struct engines *e, struct um_rng *rng)
{
    struct um_lbtru_src_engine_config source = {.session_id = SID,
                                                .datagram_max = 8192,
                                                .window_size = 65536,
                                                .ignore_ns = 500 * UM_NS_PER_MS,
                                                .sm_min_ns = 200 * UM_NS_PER_MS,
                                                .sm_max_ns = 10 * UM_NS_PER_SEC,
                                                .client_activity_ns = 10 * UM_NS_PER_SEC,
                                                .client_map_size = 7,
                                                .clients_max = 3,
                                                .first_sqn = 0xfffffff8u}; /* wraps soon */
    struct um_lbtru_rcv_engine_config receiver = {
        .source_ip = source_ip,
        .source_port = SOURCE_PORT,
        .session_id = SID,
        .naks = {0, 200 * UM_NS_PER_MS, UM_NS_PER_SEC, 10 * UM_NS_PER_SEC, true, 0},
        .connect_ns = 100 * UM_NS_PER_MS,
        .connect_attempts = 600,
        .ack_ns = 500 * UM_NS_PER_MS,
        .activity_ns = 60 * UM_NS_PER_SEC};
    e->source = um_lbtru_src_engine_create(&source, &e->limiter, &source_ops, e);
    e->receiver = um_lbtru_rcv_engine_create(&receiver, rng, &receiver_ops, e, e->bounds.now_ns);
    if (e->source == NULL || e->receiver == NULL) {
        bounds_fail("no memory");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct um_rng rng;
    struct engines e = {.source_due = UM_NEVER, .receiver_due = UM_NEVER};
    um_rng_seed(&rng, len);
    um_lbtr_limiter_init(&e.limiter, &(struct um_lbtr_limiter_config){10000000, 5000000, 100 * UM_NS_PER_MS, false});
    bounds_begin(&e.bounds, UM_NS_PER_SEC);
    create(&e, &rng);
    run_input(&e, data, len < INPUT_MAX ? len : INPUT_MAX);
    um_lbtr_src_engine_destroy(e.source);
    um_lbtr_rcv_engine_destroy(e.receiver);
    return 0;
}
