/* Fuzz target: LBT-RU packets, decoded and given to both engines. The input is a row of
 * packets, each behind its length (1 byte; 0: time passes instead), from one of four
 * addresses chosen by the upper half of the second byte, which is cleared. */
#include <stdlib.h>
#include <string.h>

#include "transport/lbtr/um_lbtru_receiver.h"
#include "transport/lbtr/um_lbtru_source.h"

#define SID 0x263170a3u

static const uint32_t source_ip = 0x0100000a;
static uint64_t due_rcv, due_src;

static void touch(const uint8_t *data, size_t len)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < len; i++) {
        sum = (uint8_t)(sum + data[i]);
    }
}

static void on_receiver_send(void *io, const uint8_t *data, size_t len)
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

static void on_send(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len,
                    const uint8_t *body, size_t body_len)
{
    touch(head, head_len);
    touch(body, body_len);
}

static void on_kick(void *io)
{
    *(uint64_t *)io = 0;
}

static void on_client(void *io, const struct um_lbtru_address *client)
{
}

static const struct um_lbtru_receiver_ops receiver_ops = {on_receiver_send, on_deliver, on_lost,
                                                          on_begin,         on_end,     set_timer};
static const struct um_lbtru_source_ops source_ops = {on_send, set_timer, on_kick, on_kick, on_client, on_client, NULL};

static void send_some(struct um_lbtru_source *source, uint64_t now)
{
    size_t room;
    uint8_t *payload = um_lbtru_source_acquire(source, &room);
    if (payload != NULL) {
        memset(payload, 1, 100);
        um_lbtru_source_commit(source, now, 100, 88);
    }
}

static void run_packets(struct um_lbtru_source *source, struct um_lbtru_receiver *receiver, const uint8_t *data,
                        size_t len)
{
    uint64_t now = UM_NS_PER_SEC;
    while (len > 0) {
        size_t size = data[0] < len ? data[0] : len - 1;
        struct um_lbtru_address from = {0x0200000a, 14360};
        now += size == 0 ? 60 * UM_NS_PER_MS : UM_NS_PER_MS / 10;
        if (size == 0) {
            um_lbtru_receiver_on_timer(receiver, now);
            um_lbtru_source_on_timer(source, now);
            send_some(source, now);
        }
        uint8_t *packet = malloc(size + 1);
        memcpy(packet, data + 1, size);
        if (size > 1) {
            from.port = (uint16_t)(from.port + (packet[1] >> 6));
            packet[1] &= 0x0f;
        }
        um_lbtru_receiver_on_packet(receiver, now, packet, size, source_ip, 14380);
        um_lbtru_source_on_packet(source, now, packet, size, &from);
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
    um_lbtr_limiter_init(&limiter, &(struct um_lbtr_limiter_config){1000000, 500000, 100 * UM_NS_PER_MS, false});
    struct um_lbtru_source *source = um_lbtru_source_create(
        &(struct um_lbtru_source_config){SID, 8192, 65536, 0, 500 * UM_NS_PER_MS, 200 * UM_NS_PER_MS,
                                         10 * UM_NS_PER_SEC, 10 * UM_NS_PER_SEC, 7, 3, 0},
        &limiter, &source_ops, &due_src);
    struct um_lbtru_receiver *receiver = um_lbtru_receiver_create(
        &(struct um_lbtru_receiver_config){source_ip,
                                           14380,
                                           SID,
                                           {0, 200 * UM_NS_PER_MS, UM_NS_PER_SEC, 10 * UM_NS_PER_SEC, true, 0},
                                           100 * UM_NS_PER_MS,
                                           600,
                                           500 * UM_NS_PER_MS,
                                           60 * UM_NS_PER_SEC},
        &rng, &receiver_ops, &due_rcv, UM_NS_PER_SEC);
    if (source == NULL || receiver == NULL) {
        abort();
    }
    run_packets(source, receiver, data, len);
    um_lbtru_source_destroy(source);
    um_lbtru_receiver_destroy(receiver);
    return 0;
}
