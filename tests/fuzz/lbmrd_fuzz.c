/* Fuzz target: the resolution daemon, with address translation. A row of datagrams, each behind a byte for its sender
 * and two for its length; a length of 0 lets time pass. Clients stay within their bound; a sender gets no more back
 * than it sent, unless what others sent meanwhile is gathered; what is forwarded is valid, translated or not. */
#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_log.h"
#include "base/um_timer.h"
#include "resolver/um_lbmrd_engine.h"
#include "wire/um_lbmr.h"

#define CLIENTS 8u
#define ADDRESS_CLIENTS 4u

struct world {
    uint32_t from_ip;
    uint16_t from_port;
    size_t from_len;
    bool gathers;
    uint64_t sent;
};

static volatile uint8_t sink;

static int on_send(void *arg, uint32_t ip, uint16_t port, const uint8_t *data, size_t len)
{
    struct world *world = arg;
    if (!world->gathers && ip == world->from_ip && port == world->from_port && len > world->from_len) {
        abort();
    }
    for (size_t i = 0; i < len; i++) { /* touch every byte */
        sink ^= data[i];
    }
    if (um_lbmr_validate(data, len, NULL) != UM_LBMR_OK) {
        abort();
    }
    return ++world->sent % 7 == 0 ? 11 : 0;
}

static void on_send_all(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                        int *errors)
{
    for (size_t i = 0; i < count; i++) {
        errors[i] = on_send(arg, peers[i].ip, peers[i].port, data, len);
    }
}

static int discard(int level, const char *message, void *clientd)
{
    return 0;
}

/* Senders are 10.0.0.10 to 10.0.0.13 and their like in 11/8 and so on; two of them are in domains of their own. */
static struct um_lbmrd_nat *make_nat(void)
{
    static const struct um_lbmrd_rule rules[] = {
        {0x0a00000a, 0x0101a8c0, UM_LBMRD_ANY_PORT, UM_LBMRD_ANY_PORT},
        {0x00000000, 0x0201a8c0, UM_LBMRD_ANY_PORT, 0xffff},
        {0x0101a8c0, 0x0a00000a, 0, UM_LBMRD_ANY_PORT},
    };
    struct um_lbmrd_nat *nat = um_lbmrd_nat_create();
    for (int domain = 0; nat != NULL && domain < 3; domain++) {
        um_lbmrd_nat_add_domain(nat);
    }
    if (nat == NULL || um_lbmrd_nat_add_network(nat, 0, 0x0a00000a, 8) != 0 ||
        um_lbmrd_nat_add_network(nat, 1, 0x0a00000b, 32) != 0 || um_lbmrd_nat_add_network(nat, 2, 0, 0) != 0) {
        abort();
    }
    for (int i = 0; i < 9; i++) {
        if (um_lbmrd_nat_add_rule(nat, i % 3, (i / 3 + i) % 3, &rules[i % 3]) != 0) {
            abort();
        }
    }
    if (um_lbmrd_nat_ready(nat) != 0) {
        abort();
    }
    return nat;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {.gathers = size % 2 != 0};
    struct um_lbmrd_nat *nat = make_nat();
    struct um_lbmrd_config config = {.ttl_ns = 5 * UM_NS_PER_SEC,
                                     .activity_ns = UM_NS_PER_SEC,
                                     .max_clients = CLIENTS,
                                     .max_address_clients = ADDRESS_CLIENTS,
                                     .output_rate = 100000,
                                     .output_burst = 200000,
                                     .gather_clients = 1,
                                     .gather_client_ns = world.gathers ? UM_NS_PER_MS : 0,
                                     .own_ip = 0x0100007f,
                                     .own_port = 15380,
                                     .nat = nat,
                                     .send = on_send_all,
                                     .arg = &world};
    uint64_t now_ns = UM_NS_PER_SEC;
    um_log_set_proc(discard, NULL);
    struct um_lbmrd *engine = um_lbmrd_create(&config, now_ns);
    if (engine == NULL) {
        abort();
    }
    while (size >= 3) {
        size_t len = um_get16(data + 1) % 2048;
        world.from_ip = 0x0a00000au | (uint32_t)(data[0] & 3) << 24;
        world.from_port = (uint16_t)(15380 + (data[0] >> 2 & 15));
        len = len < size - 3 ? len : size - 3;
        world.from_len = len;
        now_ns += UM_NS_PER_MS + (data[0] >> 6) * (uint64_t)UM_NS_PER_SEC;
        while (um_lbmrd_next_timer(engine) <= now_ns) {
            um_lbmrd_on_timer(engine, now_ns);
        }
        if (len > 0) {
            uint8_t *datagram = malloc(len); /* of exact size */
            if (datagram == NULL) {
                abort();
            }
            memcpy(datagram, data + 3, len);
            um_lbmrd_on_datagram(engine, now_ns, datagram, len, world.from_ip, world.from_port);
            free(datagram);
        }
        if (um_lbmrd_clients(engine) > CLIENTS) {
            abort();
        }
        data += 3 + len;
        size -= 3 + len;
    }
    um_lbmrd_destroy(engine);
    um_lbmrd_nat_destroy(nat);
    return 0;
}
