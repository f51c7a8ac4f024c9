/* Client table, budgets and forwarding of lbmrd. Clients are kept in the order in
 * which they were last heard, so that reaping looks at the silent ones only. One
 * thread. */
#include "resolver/um_lbmrd_engine.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "resolver/um_lbmrd_gather.h"
#include "wire/um_lbmr.h"

#define KEY_LEN 6
#define RECENT 256                        /* datagrams forwarded lately, by hash */
#define CIRCLING_INTERVAL_NS 100000000ull /* the same bytes from someone else within this time have circled */
#define COPY_COST 256                     /* bytes that a copy costs beside its own: headers, and the time to send it */
/* A context says something every half second, older ones every five. */
#define KNOWN_NS (10 * UM_NS_PER_SEC) /* an address that is heard for so long is no newcomer any more */
#define CLIENT_RATE 20 /* datagrams a second, of MAX_DATAGRAM bytes, that an address may send for each client */
#define MAX_DATAGRAM 1500
#define BURST_SECONDS 2
#define START_DATAGRAMS                                                                                                \
    64 /* that an address may send for each client while all are new: its initial phase, and then some */
#define SILENT_NS (15 * UM_NS_PER_SEC) /* a client that was not heard for so long makes room in a full table */

/* What may be sent to others, or the time that may be spent on it. May be overdrawn by one datagram, so that any
 * datagram can be paid. */
struct budget {
    int64_t left; /* bytes or nanoseconds */
    uint64_t filled_ns;
};

/* The clients with one address. */
struct address {
    uint32_t ip;
    uint32_t clients;     /* 0: about to be removed */
    uint32_t established; /* of those, heard for KNOWN_NS */
    uint64_t since_ns;
    uint64_t start_datagrams; /* sent at the expense of engine->start_bytes */
    struct budget budget;     /* from KNOWN_NS on */
};

struct client {
    struct um_list node;       /* of engine->clients, least recently heard first */
    struct um_list group_node; /* of those that get the same bytes */
    struct address *address;
    uint8_t key[KEY_LEN];
    uint32_t ip;
    uint16_t port;
    bool established; /* counted by its address */
    uint64_t since_ns, heard_ns;
    struct um_lbmrd_waiting waiting;
};

/* What goes to all clients. */
struct outgoing {
    const uint8_t *data;
    size_t len;
    uint32_t ip; /* of its sender, or of the first of several */
    uint16_t port;
    unsigned datagrams, newcomers; /* that it is made of; those that newcomers sent */
};

struct recent {
    uint64_t at_ns; /* 0: unused */
    uint64_t hash;
    uint32_t ip;
    uint16_t port;
};

struct um_lbmrd {
    struct um_lbmrd_config config;
    struct um_lbmrd_stats stats;
    struct um_list clients;
    struct um_list *groups; /* of clients: [0] for which nothing is translated, [1 + domain] for the others */
    size_t group_count;
    uint8_t *translated;      /* UM_LBMRD_DATAGRAM_MAX bytes; NULL without translation */
    struct um_map by_address; /* struct client by address and port */
    struct um_map addresses;  /* struct address; each has clients */
    struct budget newcomers, newcomers_time;
    uint64_t created_ns;
    int64_t start_bytes; /* left of config.start_burst */
    uint64_t next_check_ns;
    struct recent recent[RECENT];
    struct um_lbmrd_gather gather;
    uint64_t sent_ns; /* when something was forwarded, or what was gathered was sent */
};

/* ---- budgets ---- */

static struct budget full_budget(const struct um_lbmrd *engine, uint64_t now_ns)
{
    return (struct budget){.left = (int64_t)engine->config.output_burst, .filled_ns = now_ns};
}

static void refill(struct budget *budget, uint64_t now_ns, uint64_t rate, uint64_t burst)
{
    uint64_t passed_ns = now_ns - budget->filled_ns;
    uint64_t most_ns = 3600 * UM_NS_PER_SEC; /* keeps the product small */
    passed_ns = passed_ns < most_ns ? passed_ns : most_ns;
    int64_t more = (int64_t)((double)rate * (double)passed_ns / (double)UM_NS_PER_SEC);
    if (more > 0) {
        budget->filled_ns = now_ns;
        budget->left += more;
    }
    if (budget->left > (int64_t)burst) {
        budget->left = (int64_t)burst;
    }
}

static bool spend(struct budget *budget, int64_t cost)
{
    if (budget->left <= 0) {
        return false;
    }
    budget->left -= cost;
    return true;
}

/* Others that come, forged ones too, make each datagram dearer; they must not silence those that are here. */
static void refill_address(const struct um_lbmrd *engine, struct address *address, uint64_t now_ns)
{
    const struct um_lbmrd_config *config = &engine->config;
    uint64_t own = address->established > 0 ? address->established : 1;
    uint64_t rate = own * CLIENT_RATE * um_map_count(&engine->by_address) * (MAX_DATAGRAM + COPY_COST);
    rate = rate < config->max_output_rate ? rate : config->max_output_rate;
    rate = rate > config->output_rate ? rate : config->output_rate;
    uint64_t burst = rate * BURST_SECONDS;
    refill(&address->budget, now_ns, rate, burst > config->output_burst ? burst : config->output_burst);
}

/* When the daemon has started, all are new and say at once what there is to say. */
static bool pay_as_starter(struct um_lbmrd *engine, struct address *address, int64_t cost)
{
    if (address->since_ns - engine->created_ns >= KNOWN_NS || engine->start_bytes <= 0 ||
        address->start_datagrams >= (uint64_t)address->clients * START_DATAGRAMS) {
        return false;
    }
    address->start_datagrams++;
    engine->start_bytes -= cost;
    return true;
}

/* Who pays for what is forwarded. */
enum payer { PAYER_NOBODY, PAYER_ADDRESS, PAYER_START, PAYER_NEWCOMERS };

/* Their budget of processor time is a share of what the daemon has: on a busy machine, which gives it less than that
 * share of a core, newcomers would have all of it otherwise, and nobody else an answer. */
static uint64_t had_ns(const struct um_lbmrd_config *config, uint64_t now_ns)
{
    return config->had_ns != NULL ? config->had_ns(config->arg) : now_ns;
}

static enum payer pay_as_newcomer(struct um_lbmrd *engine, uint64_t now_ns, int64_t cost)
{
    const struct um_lbmrd_config *config = &engine->config;
    refill(&engine->newcomers, now_ns, config->output_rate, config->output_burst);
    refill(&engine->newcomers_time, had_ns(config, now_ns), config->time_rate, config->time_burst);
    if (config->cpu_ns != NULL && engine->newcomers_time.left <= 0) {
        return PAYER_NOBODY;
    }
    return spend(&engine->newcomers, cost) ? PAYER_NEWCOMERS : PAYER_NOBODY;
}

/* May this be forwarded? Then it is paid by its address, or, as long as that is new, by all newcomers together: a
 * sender that takes a new address for each datagram has no more than one that keeps its own. */
static enum payer pay(struct um_lbmrd *engine, struct address *address, uint64_t now_ns, size_t len)
{
    int64_t cost = (int64_t)(um_map_count(&engine->by_address) * (len + COPY_COST));
    if (address != NULL && now_ns - address->since_ns >= KNOWN_NS) {
        refill_address(engine, address, now_ns);
        return spend(&address->budget, cost) ? PAYER_ADDRESS : PAYER_NOBODY;
    }
    if (address != NULL && pay_as_starter(engine, address, cost)) {
        return PAYER_START;
    }
    return pay_as_newcomer(engine, now_ns, cost);
}

/* ---- clients ---- */

static void send_gathered(void *arg, uint64_t now_ns, struct um_lbmrd_bundle *bundle);

static bool make_groups(struct um_lbmrd *engine)
{
    const struct um_lbmrd_nat *nat = engine->config.nat;
    engine->group_count = 1 + (nat == NULL ? 0 : (size_t)um_lbmrd_nat_domains(nat));
    engine->groups = um_calloc(engine->group_count, sizeof *engine->groups);
    engine->translated = nat == NULL ? NULL : um_malloc(UM_LBMRD_DATAGRAM_MAX);
    if (engine->groups == NULL || (nat != NULL && engine->translated == NULL)) {
        return false;
    }
    for (size_t i = 0; i < engine->group_count; i++) {
        um_list_init(&engine->groups[i]);
    }
    return true;
}

struct um_lbmrd *um_lbmrd_create(const struct um_lbmrd_config *config, uint64_t now_ns)
{
    struct um_lbmrd *engine = um_calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return NULL;
    }
    engine->config = *config;
    um_list_init(&engine->clients);
    um_map_init(&engine->by_address, NULL);
    um_map_init(&engine->addresses, NULL);
    if (!make_groups(engine)) {
        um_lbmrd_destroy(engine);
        return NULL;
    }
    engine->gather.send = send_gathered;
    engine->gather.arg = engine;
    engine->newcomers = full_budget(engine, now_ns);
    engine->newcomers_time = (struct budget){.left = (int64_t)config->time_burst, .filled_ns = had_ns(config, now_ns)};
    engine->created_ns = now_ns;
    engine->start_bytes = (int64_t)config->start_burst;
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
    struct address *address = client->address;
    um_list_remove(&client->node);
    um_list_remove(&client->group_node);
    um_map_remove(&engine->by_address, client->key, KEY_LEN);
    address->established -= client->established;
    um_free(client);
    if (--address->clients == 0) {
        um_map_remove(&engine->addresses, &address->ip, sizeof(address->ip));
        um_free(address);
    }
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
    um_map_clear(&engine->addresses);
    um_free(engine->groups);
    um_free(engine->translated);
    um_free(engine);
}

static struct address *find_address(const struct um_lbmrd *engine, uint32_t ip)
{
    return um_map_get(&engine->addresses, &ip, sizeof(ip));
}

/* NULL: out of memory. */
static struct address *new_address(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip)
{
    struct address *address = um_calloc(1, sizeof(*address));
    if (address == NULL) {
        return NULL;
    }
    *address = (struct address){.ip = ip, .since_ns = now_ns, .budget = full_budget(engine, now_ns)};
    if (um_map_put(&engine->addresses, &address->ip, sizeof(address->ip), address) != 0) {
        um_free(address);
        return NULL;
    }
    return address;
}

/* Is there room, if need be that of a client that has not been heard for a while? */
static bool make_room(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip)
{
    const struct address *address = find_address(engine, ip);
    if (address != NULL && address->clients >= engine->config.max_address_clients) {
        return false;
    }
    if (um_map_count(&engine->by_address) < engine->config.max_clients) {
        return true;
    }
    struct um_list *first = um_list_first(&engine->clients);
    struct client *oldest = first == NULL ? NULL : UM_CONTAINER_OF(first, struct client, node);
    if (oldest == NULL || now_ns - oldest->heard_ns < SILENT_NS) {
        return false;
    }
    engine->stats.evicted_clients++;
    remove_client(engine, oldest);
    return true;
}

/* Those that get the same bytes as a client of this address. */
static struct um_list *group_of(struct um_lbmrd *engine, uint32_t ip)
{
    const struct um_lbmrd_nat *nat = engine->config.nat;
    int domain = nat == NULL ? UM_LBMRD_NO_DOMAIN : um_lbmrd_nat_domain_of(nat, ip);
    bool translates = nat != NULL && um_lbmrd_nat_translates_for(nat, domain);
    return &engine->groups[translates ? 1 + domain : 0];
}

/* NULL: out of memory. */
static struct client *new_client(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip, uint16_t port)
{
    struct client *client = um_calloc(1, sizeof(*client));
    if (client == NULL) {
        return NULL;
    }
    struct address *address = find_address(engine, ip);
    make_key(client->key, ip, port);
    client->ip = ip;
    client->port = port;
    client->since_ns = client->heard_ns = now_ns;
    client->address = address != NULL ? address : new_address(engine, now_ns, ip);
    if (client->address == NULL) {
        um_free(client);
        return NULL;
    }
    client->address->clients++;
    um_list_push_back(&engine->clients, &client->node);
    um_list_push_back(group_of(engine, ip), &client->group_node);
    if (um_map_put(&engine->by_address, client->key, KEY_LEN, client) != 0) {
        remove_client(engine, client);
        return NULL;
    }
    return client;
}

/* NULL: no room. */
static struct client *add_client(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip, uint16_t port)
{
    char text[INET_ADDRSTRLEN];
    struct client *client = make_room(engine, now_ns, ip) ? new_client(engine, now_ns, ip, port) : NULL;
    if (client == NULL) {
        engine->stats.refused_clients++;
        um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_WARNING, "Lbmrd-um-3",
                       "client %s:%u not added: %zu clients of at most %zu, at most %zu of one address; it will not "
                       "receive forwarded datagrams",
                       ip_text(ip, text), port, um_map_count(&engine->by_address), engine->config.max_clients,
                       engine->config.max_address_clients);
        return NULL;
    }
    um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_INFO, "Lbmrd-um-1", "client %s:%u added, now %zu",
                   ip_text(ip, text), port, um_map_count(&engine->by_address));
    return client;
}

/* NULL: it is none, there is no room. */
static struct client *hear_client(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip, uint16_t port)
{
    uint8_t key[KEY_LEN];
    make_key(key, ip, port);
    struct client *client = um_map_get(&engine->by_address, key, KEY_LEN);
    if (client == NULL) {
        return add_client(engine, now_ns, ip, port);
    }
    client->heard_ns = now_ns;
    if (!client->established && now_ns - client->since_ns >= KNOWN_NS) {
        client->established = true;
        client->address->established++;
    }
    um_list_remove(&client->node);
    um_list_push_back(&engine->clients, &client->node);
    return client;
}

/* ---- forwarding ---- */

static void send_to(struct um_lbmrd *engine, uint64_t now_ns, const struct um_lbmrd_peer *peers, size_t count,
                    const uint8_t *data, size_t len)
{
    int errors[UM_LBMRD_PEERS];
    char text[INET_ADDRSTRLEN];
    engine->config.send(engine->config.arg, peers, count, data, len, errors);
    for (size_t i = 0; i < count; i++) {
        if (errors[i] == 0) {
            engine->stats.forwarded++;
            continue;
        }
        engine->stats.send_errors++;
        um_log_limited(um_log_of_ip(peers[i].ip), now_ns, UM_LOG_WARNING, "Lbmrd-5688-4676",
                       "error sending to client (%s.%d len %d)(%s)", ip_text(peers[i].ip, text), (int)peers[i].port,
                       (int)len, strerror(errors[i]));
    }
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
    um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_WARNING, fault_id(fault), "%s Not forwarded.", text);
}

static void remember(struct um_lbmrd *engine, uint64_t now_ns, uint64_t hash, uint32_t ip, uint16_t port)
{
    engine->recent[hash % RECENT] =
        (struct recent){.at_ns = now_ns != 0 ? now_ns : 1, .hash = hash, .ip = ip, .port = port};
}

/* Two daemons that take each other for clients would send each other everything for ever, with copies for all clients.
 * What is dropped by mistake is a question that somebody else has just asked in the same words. */
static bool circles(struct um_lbmrd *engine, uint64_t now_ns, const uint8_t *data, size_t len, uint32_t ip,
                    uint16_t port)
{
    uint64_t hash = um_hash64_bytes(data, len);
    const struct recent *recent = &engine->recent[hash % RECENT];
    if (recent->at_ns != 0 && recent->hash == hash && now_ns - recent->at_ns < CIRCLING_INTERVAL_NS &&
        (recent->ip != ip || recent->port != port)) {
        engine->stats.circling++;
        um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_INFO, "Lbmrd-um-9",
                       "datagram dropped: the same bytes were forwarded just now for another sender");
        return true;
    }
    remember(engine, now_ns, hash, ip, port);
    return false;
}

/* The copy for this domain in engine->translated, remembered as well: another daemon among the clients sends that one
 * back. */
static void translate(struct um_lbmrd *engine, uint64_t now_ns, int domain, const struct outgoing *out)
{
    memcpy(engine->translated, out->data, out->len);
    size_t changed = um_lbmrd_nat_rewrite(engine->config.nat, domain, out->ip, engine->translated, out->len);
    engine->stats.translated += changed;
    if (changed > 0) {
        remember(engine, now_ns, um_hash64_bytes(engine->translated, out->len), out->ip, out->port);
    }
}

/* To all clients, their sender among them; translated once for each domain. */
static void forward(struct um_lbmrd *engine, uint64_t now_ns, const struct outgoing *out)
{
    for (size_t i = 0; i < engine->group_count; i++) {
        struct um_list *group = &engine->groups[i], *it, *next;
        const uint8_t *bytes = out->data;
        if (um_list_first(group) == NULL) {
            continue;
        }
        if (i > 0 && out->len <= UM_LBMRD_DATAGRAM_MAX) {
            translate(engine, now_ns, (int)i - 1, out);
            bytes = engine->translated;
        }
        struct um_lbmrd_peer peers[UM_LBMRD_PEERS];
        size_t count = 0;
        UM_LIST_FOREACH_SAFE(it, next, group)
        {
            const struct client *client = UM_CONTAINER_OF(it, struct client, group_node);
            peers[count++] = (struct um_lbmrd_peer){client->ip, client->port};
            if (count == UM_LBMRD_PEERS || next == group) {
                send_to(engine, now_ns, peers, count, bytes, out->len);
                count = 0;
            }
        }
    }
}

/* Newcomers pay for their share of the time that it takes. */
static void forward_paid(struct um_lbmrd *engine, uint64_t now_ns, const struct outgoing *out)
{
    if (out->newcomers == 0 || engine->config.cpu_ns == NULL) {
        forward(engine, now_ns, out);
        return;
    }
    uint64_t begin_ns = engine->config.cpu_ns(engine->config.arg);
    forward(engine, now_ns, out);
    uint64_t used_ns = (engine->config.cpu_ns(engine->config.arg) - begin_ns) * out->newcomers / out->datagrams;
    engine->newcomers_time.left -= (int64_t)used_ns;
    engine->stats.newcomers_ns += used_ns;
}

/* Of several senders it is this daemon's own, and must not come back. */
static void send_gathered(void *arg, uint64_t now_ns, struct um_lbmrd_bundle *bundle)
{
    struct um_lbmrd *engine = arg;
    struct outgoing out = {.data = bundle->bytes,
                           .len = um_lbmrd_bundle_finish(bundle),
                           .ip = bundle->first.ip,
                           .port = bundle->first.port,
                           .datagrams = bundle->datagrams,
                           .newcomers = bundle->newcomers};
    if (bundle->datagrams > 1) {
        remember(engine, now_ns, um_hash64_bytes(out.data, out.len), engine->config.own_ip, engine->config.own_port);
        engine->stats.gathered += bundle->datagrams;
    }
    forward_paid(engine, now_ns, &out);
}

/* What is forwarded costs a datagram to each client. Where these are many, what comes soon after shares the next one:
 * within a time that grows with the clients, and that nobody feels beside the ticks of contexts. */
static uint64_t gather_ns(const struct um_lbmrd *engine)
{
    const struct um_lbmrd_config *config = &engine->config;
    size_t clients = um_map_count(&engine->by_address);
    uint64_t time_ns = clients < config->gather_clients ? 0 : clients * config->gather_client_ns;
    return time_ns < UM_LBMRD_GATHER_MOST_NS ? time_ns : UM_LBMRD_GATHER_MOST_NS;
}

/* Where nothing was forwarded for a while nothing waits either. */
static bool gathers(const struct um_lbmrd *engine, uint64_t now_ns)
{
    return engine->gather.count > 0 || now_ns - engine->sent_ns < gather_ns(engine);
}

static void send_what_is_due(struct um_lbmrd *engine, uint64_t now_ns)
{
    if (engine->gather.count > 0 && now_ns - engine->sent_ns >= gather_ns(engine)) {
        engine->sent_ns = now_ns;
        um_lbmrd_gather_send(&engine->gather, now_ns);
    }
}

/* Paid for: to all clients, now or with what others send in the next moment. */
static void pass_on(struct um_lbmrd *engine, uint64_t now_ns, struct client *client, const struct um_lbmr_msg *msg,
                    const struct outgoing *out)
{
    struct um_lbmrd_entries entries;
    if (client != NULL && gathers(engine, now_ns) && um_lbmrd_entries_of(msg, out->len, &entries)) {
        entries.ip = out->ip;
        entries.port = out->port;
        entries.newcomer = out->newcomers > 0;
        entries.alone = engine->config.nat != NULL && entries.tirs > 0; /* the sender's address may decide */
        um_lbmrd_gather_add(&engine->gather, now_ns, &entries, &client->waiting);
        return;
    }
    if (client != NULL) {
        um_lbmrd_gather_send_of(&engine->gather, now_ns, &client->waiting);
    }
    if (engine->gather.count == 0) {
        engine->sent_ns = now_ns;
    }
    forward_paid(engine, now_ns, out);
}

static void refuse_over_budget(struct um_lbmrd *engine, uint64_t now_ns, uint32_t ip, uint16_t port)
{
    char text[INET_ADDRSTRLEN];
    engine->stats.over_budget++;
    um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_WARNING, "Lbmrd-um-10",
                   "datagram of %s:%u not forwarded: that address, or what is new here, has used up its budget of "
                   "bytes sent to %zu clients",
                   ip_text(ip, text), port, um_map_count(&engine->by_address));
}

void um_lbmrd_on_datagram(struct um_lbmrd *engine, uint64_t now_ns, uint8_t *data, size_t len, uint32_t ip,
                          uint16_t port)
{
    static const uint8_t answer[UM_LBMR_HEADER_LEN] = {0, 0, 0, 0};
    struct um_lbmr_msg msg;
    unsigned detail = 0;
    engine->stats.received++;
    send_what_is_due(engine, now_ns);
    if (ip == engine->config.own_ip && port == engine->config.own_port) {
        engine->stats.from_self++;
        um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_WARNING, "Lbmrd-um-4",
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
    struct client *client = hear_client(engine, now_ns, ip, port);
    if (msg.type == UM_LBMR_UCAST_RCV_ALIVE || msg.type == UM_LBMR_UCAST_SRC_ALIVE) {
        engine->stats.keepalives++;
        send_to(engine, now_ns, &(struct um_lbmrd_peer){ip, port}, 1, answer, sizeof(answer));
        return;
    }
    if (um_lbmr_is_keepalive(&msg)) {
        return; /* an empty message tells nobody anything */
    }
    um_lbmr_substitute_address(data, len, ip);
    if (circles(engine, now_ns, data, len, ip, port)) {
        return;
    }
    enum payer payer = pay(engine, find_address(engine, ip), now_ns, len);
    if (payer == PAYER_NOBODY) {
        refuse_over_budget(engine, now_ns, ip, port);
        return;
    }
    struct outgoing out = {data, len, ip, port, .datagrams = 1, .newcomers = payer == PAYER_NEWCOMERS};
    pass_on(engine, now_ns, client, &msg, &out);
}

void um_lbmrd_on_timer(struct um_lbmrd *engine, uint64_t now_ns)
{
    send_what_is_due(engine, now_ns);
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
        um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_INFO, "Lbmrd-um-2",
                       "client %s:%u removed after %llu ms of silence, now %zu", ip_text(client->ip, text),
                       client->port, (unsigned long long)((now_ns - client->heard_ns) / 1000000),
                       um_map_count(&engine->by_address) - 1);
        remove_client(engine, client);
    }
}

uint64_t um_lbmrd_next_timer(const struct um_lbmrd *engine)
{
    uint64_t due_ns = engine->sent_ns + gather_ns(engine);
    return engine->gather.count > 0 && due_ns < engine->next_check_ns ? due_ns : engine->next_check_ns;
}

size_t um_lbmrd_clients(const struct um_lbmrd *engine)
{
    return um_map_count(&engine->by_address);
}

const struct um_lbmrd_stats *um_lbmrd_stats(const struct um_lbmrd *engine)
{
    return &engine->stats;
}
