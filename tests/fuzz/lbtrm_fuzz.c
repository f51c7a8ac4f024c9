/* Fuzz target: LBT-RM packets, decoded and given to both engines. The input is a row of
 * packets, each behind its length (1 byte, in units of 1; 0: time passes instead). Their
 * identity is made right, so that the engines look further. */
#include <stdlib.h>
#include <string.h>

#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtrm_receiver.h"
#include "transport/lbtr/um_lbtrm_source.h"

static const struct um_lbtrm_session session = {14390, 0xe0679abb};
static const uint32_t source_ip = 0x0100000a;
static uint64_t due_rcv, due_src;

static void touch(const uint8_t *data, size_t len)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < len; i++) {
        sum = (uint8_t)(sum + data[i]);
    }
}

static void on_nak(void *io, const uint8_t *data, size_t len)
{
    touch(data, len);
}

static void on_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    touch(payload->ptr, payload->len);
}

static void on_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    if (count == 0) {
        abort();
    }
}

static void on_begin(void *io, uint64_t now_ns)
{
}

static void on_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
}

static void set_timer(void *io, uint64_t due_ns)
{
    *(uint64_t *)io = due_ns;
}

static void on_send(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    touch(head, head_len);
    touch(body, body_len);
}

static void on_kick(void *io)
{
    *(uint64_t *)io = 0;
}

static const struct um_lbtrm_receiver_ops receiver_ops = {on_nak, on_deliver, on_lost, on_begin, on_end, set_timer};
static const struct um_lbtrm_source_ops source_ops = {on_send, set_timer, on_kick, on_kick};

static void run_packets(struct um_lbtrm_source *source, struct um_lbtrm_receiver *receiver, const uint8_t *data,
                        size_t len)
{
    uint64_t now = UM_NS_PER_SEC;
    while (len > 0) {
        size_t size = data[0] < len ? data[0] : len - 1;
        now += size == 0 ? 60 * UM_NS_PER_MS : UM_NS_PER_MS / 10;
        if (size == 0) {
            um_lbtrm_receiver_on_timer(receiver, now);
            um_lbtrm_source_on_timer(source, now);
        }
        uint8_t *packet = malloc(size + 1);
        memcpy(packet, data + 1, size);
        if (size >= UM_LBTRM_COMMON_HDR) {
            um_put16(packet + 2, session.ucast_port);
            um_put32(packet + 4, session.session_id);
        }
        um_lbtrm_receiver_on_packet(receiver, now, packet, size, source_ip);
        um_lbtrm_source_on_packet(source, now, packet, size);
        free(packet);
        data += size + 1;
        len -= size + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct um_rng rng;
    struct um_lbtr_limiter limiter;
    um_rng_seed(&rng, len);
    um_lbtr_limiter_init(&limiter, &(struct um_lbtr_limiter_config){1000000, 500000, 10 * UM_NS_PER_MS, true});
    struct um_lbtrm_source *source =
        um_lbtrm_source_create(&(struct um_lbtrm_source_config){session, 8, 8192, 65536, 0, 500 * UM_NS_PER_MS,
                                                                200 * UM_NS_PER_MS, 10 * UM_NS_PER_SEC, 0},
                               &limiter, &source_ops, &due_src);
    struct um_lbtrm_receiver *receiver =
        um_lbtrm_receiver_create(&(struct um_lbtrm_receiver_config){source_ip,
                                                                    session,
                                                                    {50 * UM_NS_PER_MS, 200 * UM_NS_PER_MS,
                                                                     UM_NS_PER_SEC, 10 * UM_NS_PER_SEC, true, 0},
                                                                    60 * UM_NS_PER_SEC,
                                                                    0},
                                 &rng, &receiver_ops, &due_rcv, UM_NS_PER_SEC);
    if (source == NULL || receiver == NULL) {
        abort();
    }
    for (int i = 0; i < 40; i++) {
        size_t room;
        memset(um_lbtrm_source_acquire(source, &room), i, 100);
        um_lbtrm_source_commit(source, UM_NS_PER_SEC, 100, 88);
    }
    run_packets(source, receiver, data, len);
    um_lbtrm_source_destroy(source);
    um_lbtrm_receiver_destroy(receiver);
    return 0;
}
