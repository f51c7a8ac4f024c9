/* Client table and forwarding of lbmrd. Clients are kept in the order in which
 * they were last heard, so that reaping looks at the silent ones only. One thread. */
#include "resolver/um_lbmrd_engine.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "wire/um_lbmr.h"

#define LOG_INTERVAL_NS 10000000000ull /* the same complaint at most every ten seconds */
#define KEY_LEN 6
#define RECENT 256                        /* datagrams forwarded lately, by hash */
#define CIRCLING_INTERVAL_NS 100000000ull /* the same bytes from someone else within this time have circled */

struct client {
    struct um_list node; /* of engine->clients, least recently heard first */
    uint8_t key[KEY_LEN];
    uint32_t ip;
    uint16_t port;
    uint64_t heard_ns;
};

struct recent {
    uint64_t at_ns; /* 0: unused */
    uint32_t hash;
    uint32_t ip;
    uint16_t port;
};

struct um_lbmrd {
    struct um_lbmrd_config config;
    struct um_lbmrd_stats stats;
    struct um_list clients;
    struct um_map by_address;
    uint64_t next_check_ns;
    struct recent recent[RECENT];
    struct um_log_limit invalid_limit, send_limit, full_limit, self_limit;
};

struct um_lbmrd *um_lbmrd_create(const struct um_lbmrd_config *config, uint64_t now_ns)
{
    struct um_lbmrd *engine = um_calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return NULL;
    }
    engine->config = *config;
    um_list_init(&engine->clients);
    um_map_init(&engine->by_address, NULL);
    engine->next_check_ns = now_ns + config->activity_ns;
    return engine;
}

static void make_key(uint8_t key[KEY_LEN], uint32_t ip, uint16_t port)
{
    memcpy(key, &ip, sizeof(ip));
    memcpy(key + sizeof(ip), &port, sizeof(port));
}

static const char *ip_text(uint32_t ip, char out[INET_ADDRSTRLEN])
{
    struct in_addr addr = {ip};
    return inet_ntop(AF_INET, &addr, out, INET_ADDRSTRLEN);
}

static void remove_client(struct um_lbmrd *engine, struct client *client)
{
    um_list_remove(&client->node);
    um_map_remove(&engine->by_address, client->key, KEY_LEN);
    um_free(client);
}

void um_lbmrd_destroy(struct um_lbmrd *engine)
{
    struct um_list *it, *next;
    if (engine == NULL) {
        return;
    }
    UM_LIST_FOREACH_SAFE(it, next, &engine->clients)
    {
        remove_client(engine, UM_CONTAINER_OF(it, struct client, node));
    }
    um_map_clear(&engine->by_address);
    um_free(engine);
}

static void add_client(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip, uint16_t port)
{
    char text[INET_ADDRSTRLEN];
    struct client *client = NULL;
    if (um_map_count(&engine->by_address) < engine->config.max_clients) {
        client = um_calloc(1, sizeof(*client));
    }
    if (client != NULL) {
        make_key(client->key, ip, port);
    }
    if (client == NULL || um_map_put(&engine->by_address, client->key, KEY_LEN, client) != 0) {
        um_free(client);
        engine->stats.refused_clients++;
        um_log_limited(&engine->full_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Lbmrd-um-3",
                       "client %s:%u not added: %zu clients of at most %zu; it will not receive forwarded datagrams",
                       ip_text(ip, text), port, um_map_count(&engine->by_address), engine->config.max_clients);
        return;
    }
    client->ip = ip;
    client->port = port;
    client->heard_ns = now_ns;
    um_list_push_back(&engine->clients, &client->node);
    um_log(UM_LOG_INFO, "Lbmrd-um-1", "client %s:%u added, now %zu", ip_text(ip, text), port,
           um_map_count(&engine->by_address));
}

static void hear_client(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip, uint16_t port)
{
    uint8_t key[KEY_LEN];
    make_key(key, ip, port);
    struct client *client = um_map_get(&engine->by_address, key, KEY_LEN);
    if (client == NULL) {
        add_client(engine, now_ns, ip, port);
        return;
    }
    client->heard_ns = now_ns;
    um_list_remove(&client->node);
    um_list_push_back(&engine->clients, &client->node);
}

static void send_to(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip, uint16_t port, const uint8_t *data,
                    size_t len)
{
    char text[INET_ADDRSTRLEN];
    int error = engine->config.send(engine->config.arg, ip, port, data, len);
    if (error == 0) {
        engine->stats.forwarded++;
        return;
    }
    engine->stats.send_errors++;
    um_log_limited(&engine->send_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Lbmrd-5688-4676",
                   "error sending to client (%s.%d len %d)(%s)", ip_text(ip, text), (int)port, (int)len,
                   strerror(error));
}

static const char *fault_id(enum um_lbmr_fault fault)
{
    switch (fault) {
    case UM_LBMR_FAULT_EXT_TYPE:
        return "Lbmrd-5466-1";
    case UM_LBMR_FAULT_TQR:
        return "Lbmrd-5688-4674";
    case UM_LBMR_FAULT_TIR:
        return "Lbmrd-5688-4675";
    default:
        return um_lbmr_fault_id(fault);
    }
}

static void log_fault(struct um_lbmrd *engine, uint64_t now_ns, enum um_lbmr_fault fault, unsigned detail, uint32_t ip,
                      uint16_t port, size_t len)
{
    char address[INET_ADDRSTRLEN], text[256];
    um_lbmr_fault_text(fault, detail, ip_text(ip, address), port, len, text, sizeof(text));
    um_log_limited(&engine->invalid_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, fault_id(fault),
                   "%s Not forwarded.", text);
}

/* Two daemons that take each other for clients would send each other everything for ever, with copies for all clients.
 * What is dropped by mistake is a question that somebody else has just asked in the same words. */
static bool circles(struct um_lbmrd *engine, uint64_t now_ns, const uint8_t *data, size_t len, uint32_t ip,
                    uint16_t port)
{
    uint32_t hash = um_hash_murmur2(data, len);
    struct recent *recent = &engine->recent[hash % RECENT];
    if (recent->at_ns != 0 && recent->hash == hash && now_ns - recent->at_ns < CIRCLING_INTERVAL_NS &&
        (recent->ip != ip || recent->port != port)) {
        engine->stats.circling++;
        um_log_limited(&engine->self_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_INFO, "Lbmrd-um-5",
                       "datagram dropped: the same bytes were forwarded just now for another sender");
        return true;
    }
    *recent = (struct recent){.at_ns = now_ns != 0 ? now_ns : 1, .hash = hash, .ip = ip, .port = port};
    return false;
}

void um_lbmrd_on_datagram(struct um_lbmrd *engine, uint64_t now_ns, uint8_t *data, size_t len, uint32_t ip,
                          uint16_t port)
{
    static const uint8_t answer[UM_LBMR_HEADER_LEN] = {0, 0, 0, 0};
    struct um_lbmr_msg msg;
    struct um_list *it, *next;
    unsigned detail = 0;
    engine->stats.received++;
    if (ip == engine->config.own_ip && port == engine->config.own_port) {
        engine->stats.from_self++;
        um_log_limited(&engine->self_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Lbmrd-um-4",
                       "datagram that claims to come from this daemon itself dropped");
        return;
    }
    enum um_lbmr_fault fault = um_lbmr_validate(data, len, &detail);
    if (fault == UM_LBMR_OK) {
        fault = um_lbmr_parse(data, len, &msg, &detail);
    }
    if (fault != UM_LBMR_OK) {
        engine->stats.invalid++;
        log_fault(engine, now_ns, fault, detail, ip, port, len);
        return;
    }
    hear_client(engine, now_ns, ip, port);
    if (msg.type == UM_LBMR_UCAST_RCV_ALIVE || msg.type == UM_LBMR_UCAST_SRC_ALIVE) {
        engine->stats.keepalives++;
        send_to(engine, now_ns, ip, port, answer, sizeof(answer));
        return;
    }
    if (um_lbmr_is_keepalive(&msg)) {
        return; /* an empty message tells nobody anything */
    }
    um_lbmr_substitute_address(data, len, ip);
    if (circles(engine, now_ns, data, len, ip, port)) {
        return;
    }
    UM_LIST_FOREACH_SAFE(it, next, &engine->clients)
    {
        const struct client *client = UM_CONTAINER_OF(it, struct client, node);
        send_to(engine, now_ns, client->ip, client->port, data, len);
    }
}

void um_lbmrd_on_timer(struct um_lbmrd *engine, uint64_t now_ns)
{
    if (now_ns < engine->next_check_ns) {
        return;
    }
    engine->next_check_ns = now_ns + engine->config.activity_ns;
    for (struct um_list *first; (first = um_list_first(&engine->clients)) != NULL;) {
        struct client *client = UM_CONTAINER_OF(first, struct client, node);
        char text[INET_ADDRSTRLEN];
        if (now_ns - client->heard_ns <= engine->config.ttl_ns) {
            return; /* the others were heard later */
        }
        um_log(UM_LOG_INFO, "Lbmrd-um-2", "client %s:%u removed after %llu ms of silence", ip_text(client->ip, text),
               client->port, (unsigned long long)((now_ns - client->heard_ns) / 1000000));
        remove_client(engine, client);
    }
}

uint64_t um_lbmrd_next_timer(const struct um_lbmrd *engine)
{
    return engine->next_check_ns;
}

size_t um_lbmrd_clients(const struct um_lbmrd *engine)
{
    return um_map_count(&engine->by_address);
}

const struct um_lbmrd_stats *um_lbmrd_stats(const struct um_lbmrd *engine)
{
    return &engine->stats;
}
