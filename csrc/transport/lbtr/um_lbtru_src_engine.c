/* LBT-RU source engine. See um_lbtru_src_engine.h. */
#include "transport/lbtr/um_lbtru_src_engine.h"

#include <string.h>

#include "base/um_hash.h"
#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtru_clients.h"
#include "transport/lbtr/um_lbtru_strangers.h"

#define RESETS 64u                   /* places where they are remembered */
#define RESET_AGAIN_NS UM_NS_PER_SEC /* to the same address */
#define SM_SCANS 20u                 /* per minimum interval: session messages are as late as that, not later */

struct um_lbtru_src_engine {
    struct um_lbtr_src_engine common;
    struct um_lbtru_src_engine_config config;
    const struct um_lbtru_src_engine_ops *ops;
    struct um_lbtru_clients clients;
    struct um_lbtru_strangers strangers;
    uint64_t strangers_answered;
    bool repairs_wait;         /* for the rate limit */
    uint64_t sm_scan_ns;       /* when session messages are looked at */
    uint64_t reset_ns[RESETS]; /* when one was sent, by a hash of the address */
};

static struct um_lbtru_src_engine *ru_of(const struct um_lbtr_src_engine *engine)
{
    return UM_CONTAINER_OF((struct um_lbtr_src_engine *)engine, struct um_lbtru_src_engine, common);
}

#define FOREACH_CLIENT(it, tmp, source) UM_LIST_FOREACH_SAFE(it, tmp, &(source)->clients.all)

static struct um_lbtru_client *client_of(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_lbtru_client, node);
}

static void fini(struct um_lbtr_src_engine *engine)
{
    struct um_lbtru_src_engine *source = ru_of(engine);
    struct um_list *it, *tmp;
    FOREACH_CLIENT(it, tmp, source)
    {
        um_lbtr_limiter_rx_waits_not(engine->limiter, client_of(it)->numbers.queue_bytes);
    }
    um_lbtru_clients_free(&source->clients);
    um_lbtru_strangers_free(&source->strangers);
}

static void arm(struct um_lbtru_src_engine *source, uint64_t due_ns)
{
    um_lbtr_src_engine_arm(&source->common, due_ns);
}

/* ---- sending ---- */

static void send_control(struct um_lbtru_src_engine *source, const struct um_lbtru_address *to, const uint8_t *packet,
                         size_t len)
{
    source->ops->send(source->common.io, to, packet, len, NULL, 0);
}

static void send_data(struct um_lbtru_client *client, uint32_t sqn, struct um_lbtr_slot *slot, bool retransmission)
{
    struct um_lbtru_src_engine *source = client->source;
    uint8_t *head = slot->data - source->common.header_len; /* rewritten for each client */
    um_lbtru_put_data(head, source->config.session_id, sqn, client->numbers.trail, retransmission);
    source->ops->send(source->common.io, &client->address, head, source->common.header_len, slot->data, slot->len);
}

static void sm_restart(struct um_lbtru_client *client, uint64_t now_ns)
{
    struct um_lbtru_src_engine *source = client->source;
    um_lbtr_sm_restart(&client->sm, now_ns);
    if (client->sm.due_ns < source->sm_scan_ns) {
        source->sm_scan_ns = client->sm.due_ns;
    }
}

/* The oldest datagram that has not gone out to this client. False: the limit does not allow it now. */
static bool send_next(struct um_lbtru_client *client, uint64_t now_ns, bool insist)
{
    struct um_lbtru_src_engine *source = client->source;
    struct um_lbtr_slot *slot = um_lbtr_numbers_at(&client->numbers, client->numbers.unsent)->slot;
    uint32_t bytes = source->common.header_len + slot->len;
    if (!um_lbtr_src_engine_take(&source->common, now_ns, bytes, insist)) {
        return false;
    }
    source->common.counters.msgs_sent++;
    source->common.counters.bytes_sent += bytes;
    sm_restart(client, now_ns);
    send_data(client, client->numbers.unsent++, slot, false);
    source->common.insist = false;
    return true;
}

static void comes_first(struct um_lbtru_src_engine *source, struct um_lbtru_client *client)
{
    um_list_remove(&source->clients.all); /* the head of the ring moves */
    um_list_insert_before(&client->node, &source->clients.all);
}

/* Client after client, a datagram each, until all have all. False: the limit stopped it; that client comes first next
 * time. */
static bool send_held(struct um_lbtru_src_engine *source, uint64_t now_ns, bool insist)
{
    bool more = true;
    while (more) {
        struct um_list *it, *tmp;
        more = false;
        FOREACH_CLIENT(it, tmp, source)
        {
            struct um_lbtru_client *client = client_of(it);
            if (client->numbers.unsent == client->numbers.next) {
                continue;
            }
            if (!send_next(client, now_ns, insist)) {
                comes_first(source, client);
                return false;
            }
            insist = false;
            more = more || client->numbers.unsent != client->numbers.next;
        }
    }
    um_lbtr_src_engine_caught_up(&source->common);
    return true;
}

/* Index of the oldest datagram that some client has not been sent: it must stay. */
static uint64_t oldest_held(struct um_lbtru_src_engine *source)
{
    uint64_t oldest =
        source->common.pinned < source->common.window.end ? source->common.pinned : source->common.window.end;
    struct um_list *it, *tmp;
    if (source->common.turn.kind != UM_LBTR_TURN_DATA) {
        return oldest;
    }
    FOREACH_CLIENT(it, tmp, source)
    {
        struct um_lbtr_numbers *numbers = &client_of(it)->numbers;
        if (numbers->unsent != numbers->next && um_lbtr_numbers_at(numbers, numbers->unsent)->index < oldest) {
            oldest = um_lbtr_numbers_at(numbers, numbers->unsent)->index;
        }
    }
    return oldest;
}

/* NULL: a client that is not connected yet. */
static bool wanted(struct um_lbtru_src_engine *source, const struct um_lbtru_client *client,
                   const struct um_lbtr_slot *slot)
{
    return source->ops->wanted == NULL ||
           source->ops->wanted(source->common.io, client != NULL ? &client->address : NULL, slot->data, slot->len);
}

/* Number the datagram for every client that wants it. */
static void give_numbers(struct um_lbtru_src_engine *source, struct um_lbtr_slot *slot)
{
    struct um_list *it, *tmp;
    if (source->strangers.count > 0 && wanted(source, NULL, slot)) {
        um_lbtru_strangers_keep(&source->strangers, slot, source->common.window.first);
    }
    FOREACH_CLIENT(it, tmp, source)
    {
        struct um_lbtru_client *client = client_of(it);
        if (wanted(source, client, slot)) {
            um_lbtr_numbers_add(&client->numbers, slot);
        }
        uint32_t before = client->numbers.queue_bytes;
        um_lbtr_numbers_trim(&client->numbers, source->common.window.first);
        um_lbtr_limiter_rx_waits_not(source->common.limiter, before - client->numbers.queue_bytes);
    }
}

/* Send what has been numbered, or hold it back. */
static enum um_lbtr_commit send_or_hold(struct um_lbtru_src_engine *source, uint64_t now_ns)
{
    if (source->common.turn.kind != UM_LBTR_TURN_DATA && send_held(source, now_ns, false)) {
        arm(source, source->sm_scan_ns);
        return UM_LBTR_SENT;
    }
    return um_lbtr_src_engine_hold(&source->common, now_ns);
}

static enum um_lbtr_commit commit(struct um_lbtr_src_engine *engine, uint64_t now_ns, size_t len, size_t user_bytes)
{
    struct um_lbtru_src_engine *source = ru_of(engine);
    if (source->clients.count == 0 && source->strangers.count == 0) {
        return UM_LBTR_SENT; /* to nobody; the open slot is written again */
    }
    struct um_lbtr_slot *slot = um_lbtr_window_commit(&source->common.window, len, user_bytes, oldest_held(source));
    give_numbers(source, slot);
    return send_or_hold(source, now_ns);
}

/* ---- what clients send ---- */

static void send_sm(struct um_lbtru_client *client, bool syn)
{
    struct um_lbtru_src_engine *source = client->source;
    uint8_t packet[UM_LBTRU_SM_MAX];
    send_control(source, &client->address, packet,
                 um_lbtru_put_sm(packet, source->config.session_id, syn, client->sm.next_sqn++,
                                 client->numbers.unsent - 1, client->numbers.trail));
}

static void remove_client(struct um_lbtru_src_engine *source, struct um_lbtru_client *client, uint64_t silent_ns)
{
    struct um_lbtru_address address = client->address;
    um_lbtr_limiter_rx_waits_not(source->common.limiter, client->numbers.queue_bytes);
    um_lbtru_clients_remove(&source->clients, client);
    source->ops->disconnected(source->common.io, &address, silent_ns);
}

/* ---- requests and proofs ---- */

static uint64_t epoch_of(uint64_t now_ns)
{
    return now_ns / UM_LBTRU_EPOCH_NS;
}

static uint32_t first_number(const struct um_lbtru_src_engine *source, const struct um_lbtru_address *address,
                             uint64_t epoch)
{
    return source->ops->first_number != NULL ? source->ops->first_number(source->common.io, address, epoch)
                                             : source->config.first_sqn;
}

static void begin_datagram(struct um_lbtru_src_engine *source)
{
    if (source->ops->boundary != NULL) {
        source->ops->boundary(source->common.io);
    }
}

/* Somebody asks in the name of this address, which may know nothing of it: it gets the number, and no more. */
static void answer_stranger(struct um_lbtru_src_engine *source, uint64_t now_ns, const struct um_lbtru_packet *packet,
                            const struct um_lbtru_address *from)
{
    struct um_lbtru_stranger *stranger = um_lbtru_strangers_find(&source->strangers, from);
    uint32_t first = first_number(source, from, epoch_of(now_ns)), sm = 0;
    uint8_t answer[UM_LBTRU_SM_MAX];
    if (stranger == NULL) {
        stranger = um_lbtru_strangers_add(&source->strangers, now_ns, from);
        if (stranger != NULL) {
            begin_datagram(source);
            stranger->first_sqn = first;
            stranger->from_index = source->common.window.end;
            stranger->has_cid = packet->has_cid;
            stranger->cid = packet->cid;
        }
    }
    if (stranger != NULL) {
        first = stranger->first_sqn;
        sm = stranger->next_sm++;
    }
    source->strangers_answered++;
    send_control(source, from, answer, um_lbtru_put_sm(answer, source->config.session_id, true, sm, first - 1, first));
}

static void add_client(struct um_lbtru_src_engine *source, uint64_t now_ns, const struct um_lbtru_stranger *proven)
{
    struct um_lbtru_client *client = um_lbtru_clients_add(&source->clients, &proven->address, proven->first_sqn);
    if (client == NULL) {
        source->common.counters.packets_ignored++; /* it asks again */
        return;
    }
    client->source = source;
    client->has_cid = proven->has_cid;
    client->cid = proven->cid;
    um_lbtr_sm_init(&client->sm, source->config.sm_min_ns, source->config.sm_max_ns);
    client->sm.next_sqn = proven->next_sm;
    um_lbtru_clients_heard(&source->clients, client, now_ns);
    um_lbtru_strangers_hand_over(&source->strangers, proven, source->common.window.first, &client->numbers);
    sm_restart(client, now_ns);
    send_or_hold(source, now_ns);
    source->ops->connected(source->common.io, &proven->address);
}

/* Before any data an acknowledgement bears the lead of the answer. */
static bool repeats(uint32_t ack, uint32_t first)
{
    return ack == first - 1;
}

/* An acknowledgement from an address without a client, or from one that was started again. True: the sender has got our
 * answer, and is a client now. */
static bool is_proof(struct um_lbtru_src_engine *source, uint64_t now_ns, const struct um_lbtru_packet *packet,
                     struct um_lbtru_client *client, const struct um_lbtru_address *from)
{
    struct um_lbtru_stranger *known = um_lbtru_strangers_find(&source->strangers, from);
    struct um_lbtru_stranger proven = {.address = *from, .from_index = source->common.window.end, .next_sm = 1};
    uint64_t epoch = epoch_of(now_ns);
    if (known != NULL && repeats(packet->sqn, known->first_sqn)) {
        proven = *known;
    } else if (client != NULL) {
        return false; /* one that was started again asks again */
    } else if (repeats(packet->sqn, first_number(source, from, epoch))) {
        proven.first_sqn = first_number(source, from, epoch);
    } else if (repeats(packet->sqn, first_number(source, from, epoch - 1))) {
        proven.first_sqn = first_number(source, from, epoch - 1);
    } else {
        return false;
    }
    if (client != NULL) {
        remove_client(source, client, 0);
    }
    if (known == NULL) {
        begin_datagram(source);
        proven.from_index = source->common.window.end;
    }
    add_client(source, now_ns, &proven);
    if (known != NULL) {
        um_lbtru_strangers_remove(&source->strangers, known);
    }
    return true;
}

static void on_request(struct um_lbtru_src_engine *source, uint64_t now_ns, const struct um_lbtru_packet *packet,
                       struct um_lbtru_client *client, const struct um_lbtru_address *from)
{
    if (packet->code != UM_LBTRU_REQUEST_SYN) {
        source->common.counters.packets_ignored++;
        if (source->ops->unknown_request != NULL) {
            source->ops->unknown_request(source->common.io, from, packet->code);
        }
        return;
    }
    bool started_again = client != NULL && packet->has_cid && client->has_cid && packet->cid != client->cid;
    if (client == NULL || started_again) {
        answer_stranger(source, now_ns, packet, from);
    } else {
        um_lbtru_clients_heard(&source->clients, client, now_ns);
        send_sm(client, true);
    }
}

/* Somebody we do not know, or not any more: it had better connect again. Once a second for each address, and for all
 * that share its place: whatever addresses are forged, no more than RESETS go out in a second. */
static void reset(struct um_lbtru_src_engine *source, uint64_t now_ns, const struct um_lbtru_address *to)
{
    unsigned place = um_hash_u32(to->ip ^ um_hash_u32(to->port)) % RESETS;
    uint64_t at_ns = source->reset_ns[place];
    if (at_ns != 0 && now_ns < at_ns + RESET_AGAIN_NS) {
        source->common.counters.packets_ignored++;
        return;
    }
    source->reset_ns[place] = now_ns;
    uint8_t packet[UM_LBTRU_RST_LEN];
    send_control(source, to, packet, um_lbtru_put_rst(packet));
}

static void send_repair(void *user, uint32_t sqn, struct um_lbtr_sent *sent)
{
    struct um_lbtru_client *client = user;
    client->source->common.counters.rxs_sent++;
    client->source->common.counters.rx_bytes_sent += client->source->common.header_len + sent->len;
    send_data(client, sqn, sent->slot, true);
}

static void send_ncf(void *user, enum um_lbtr_reason reason, const uint32_t *sqns, size_t count)
{
    struct um_lbtru_client *client = user;
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    send_control(
        client->source, &client->address, packet,
        um_lbtru_put_ncf(packet, client->source->config.session_id, client->numbers.trail, reason, sqns, count));
}

static bool repairs_blocked(void *user)
{
    return um_lbtr_src_engine_is_full(&((struct um_lbtru_client *)user)->source->common);
}

static const struct um_lbtr_answer_ops answer_ops = {send_repair, send_ncf, repairs_blocked};

static void on_nak(struct um_lbtru_src_engine *source, uint64_t now_ns, const struct um_lbtru_packet *packet,
                   struct um_lbtru_client *client)
{
    um_lbtr_answer_naks(&source->common.answer, &client->numbers, source->common.limiter, &source->common.counters,
                        now_ns, &packet->list, source->common.header_len, &answer_ops, client);
    if (client->numbers.queue_count > 0) {
        source->repairs_wait = true;
        arm(source, um_lbtr_limiter_next_interval(source->common.limiter, now_ns));
    }
}

static bool for_this_session(const struct um_lbtru_src_engine *source, const struct um_lbtru_packet *packet)
{
    if (packet->type != UM_LBTRU_CREQ && packet->type != UM_LBTRU_ACK && packet->type != UM_LBTRU_NAK) {
        return false;
    }
    return source->config.session_id == 0 || (packet->has_sid && packet->sid == source->config.session_id);
}

static void arm_clients(struct um_lbtru_src_engine *source, uint64_t now_ns)
{
    struct um_lbtru_client *quietest = um_lbtru_clients_quietest(&source->clients);
    if (quietest != NULL) {
        arm(source, quietest->last_heard_ns + source->config.client_activity_ns);
        arm(source, source->sm_scan_ns);
    }
    arm(source, um_lbtru_strangers_expire(&source->strangers, now_ns));
}

void um_lbtru_src_engine_on_packet(struct um_lbtr_src_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                                   const struct um_lbtru_address *from)
{
    struct um_lbtru_src_engine *source = ru_of(engine);
    struct um_lbtru_packet packet;
    if (um_lbtru_decode(data, len, &packet) != UM_LBTR_OK || !for_this_session(source, &packet) || from->port == 0) {
        source->common.counters.packets_ignored++;
        return;
    }
    um_lbtru_strangers_expire(&source->strangers, now_ns);
    struct um_lbtru_client *client = um_lbtru_clients_find(&source->clients, from);
    if (packet.type == UM_LBTRU_CREQ) {
        on_request(source, now_ns, &packet, client, from);
    } else if (packet.type == UM_LBTRU_ACK && (client == NULL || source->strangers.count > 0) &&
               is_proof(source, now_ns, &packet, client, from)) {
        /* a client now */
    } else if (client == NULL && um_lbtru_strangers_find(&source->strangers, from) != NULL) {
        source->common.counters.packets_ignored++; /* the owner of the address knows better */
    } else if (client == NULL) {
        reset(source, now_ns, from);
    } else {
        um_lbtru_clients_heard(&source->clients, client, now_ns);
        if (packet.type == UM_LBTRU_NAK) {
            on_nak(source, now_ns, &packet, client);
        }
    }
    arm_clients(source, now_ns);
}

/* ---- timer ---- */

static void drop_silent_clients(struct um_lbtru_src_engine *source, uint64_t now_ns)
{
    struct um_lbtru_client *quietest;
    while ((quietest = um_lbtru_clients_quietest(&source->clients)) != NULL &&
           now_ns >= quietest->last_heard_ns + source->config.client_activity_ns) {
        remove_client(source, quietest, now_ns - quietest->last_heard_ns);
    }
}

static void send_session_messages(struct um_lbtru_src_engine *source, uint64_t now_ns)
{
    struct um_list *it, *tmp;
    uint64_t next = UM_NEVER, soonest = now_ns + source->config.sm_min_ns / SM_SCANS;
    if (now_ns < source->sm_scan_ns) {
        return;
    }
    FOREACH_CLIENT(it, tmp, source)
    {
        struct um_lbtru_client *client = client_of(it);
        if (um_lbtr_sm_take(&client->sm, now_ns)) {
            send_sm(client, false);
        }
        next = client->sm.due_ns < next ? client->sm.due_ns : next;
    }
    source->sm_scan_ns = next > soonest ? next : soonest;
}

/* Client after client, a repair each: one that lost much does not keep the others waiting. */
static bool drain_repairs(struct um_lbtru_src_engine *source, uint64_t now_ns)
{
    struct um_list *it, *tmp;
    if (!source->repairs_wait) {
        return true;
    }
    for (bool more = true; more;) {
        more = false;
        FOREACH_CLIENT(it, tmp, source)
        {
            struct um_lbtru_client *client = client_of(it);
            if (client->numbers.queue_count == 0) {
                continue;
            }
            if (!um_lbtr_answer_drain_one(&client->numbers, source->common.limiter, now_ns, source->common.header_len,
                                          &answer_ops, client)) {
                comes_first(source, client);
                return false;
            }
            more = more || client->numbers.queue_count > 0;
        }
    }
    source->repairs_wait = false;
    return true;
}

/* Repairs come first; original data that found no room beside them in the last interval comes before them. */
static bool send_waiting(struct um_lbtru_src_engine *source, uint64_t now_ns)
{
    bool insist = source->common.insist;
    source->common.insist = source->common.turn.kind == UM_LBTR_TURN_DATA;
    if (insist) {
        send_held(source, now_ns, true);
    }
    bool repaired = drain_repairs(source, now_ns);
    return send_held(source, now_ns, false) && repaired;
}

static void on_timer(struct um_lbtr_src_engine *engine, uint64_t now_ns)
{
    struct um_lbtru_src_engine *source = ru_of(engine);
    drop_silent_clients(source, now_ns);
    if (!send_waiting(source, now_ns)) {
        arm(source, um_lbtr_limiter_next_interval(engine->limiter, now_ns));
    }
    send_session_messages(source, now_ns);
    arm_clients(source, now_ns);
}

/* ---- statistics ---- */

static size_t held(const struct um_lbtr_src_engine *engine)
{
    struct um_list *it;
    size_t held = 0;
    UM_LIST_FOREACH(it, &ru_of(engine)->clients.all)
    {
        const struct um_lbtr_numbers *numbers = &client_of(it)->numbers;
        held += numbers->next - numbers->unsent;
    }
    return held;
}

struct um_lbtru_stranger_counts um_lbtru_src_engine_strangers(const struct um_lbtr_src_engine *engine)
{
    const struct um_lbtru_src_engine *source = ru_of(engine);
    return (struct um_lbtru_stranger_counts){source->strangers_answered, source->strangers.expired};
}

size_t um_lbtru_src_engine_clients(const struct um_lbtr_src_engine *engine)
{
    return ru_of(engine)->clients.count;
}

void um_lbtru_src_engine_stats(const struct um_lbtr_src_engine *engine, lbm_src_transport_stats_lbtru_t *out)
{
    *out = (lbm_src_transport_stats_lbtru_t){UM_LBTR_SOURCE_STATS(&engine->counters),
                                             .num_clients = um_lbtru_src_engine_clients(engine)};
}

/* ---- life ---- */

static const struct um_lbtr_src_protocol protocol = {
    .commit = commit, .on_timer = on_timer, .held = held, .fini = fini};

struct um_lbtr_src_engine *um_lbtru_src_engine_create(const struct um_lbtru_src_engine_config *config,
                                                      struct um_lbtr_limiter *limiter,
                                                      const struct um_lbtru_src_engine_ops *ops, void *io)
{
    struct um_lbtru_src_engine *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        return NULL;
    }
    source->config = *config;
    source->ops = ops;
    source->sm_scan_ns = UM_NEVER;
    um_lbtr_src_engine_init(&source->common, &protocol, &ops->common, io, limiter,
                            config->session_id != 0 ? UM_LBTRU_DATA_HDR_MAX
                                                    : UM_LBTRU_DATA_HDR_MAX - UM_LBTRU_OPTION_LEN,
                            config->datagram_max);
    um_lbtr_answer_init(&source->common.answer, config->ignore_ns, UM_LBTRU_LIST_MAX, UM_LBTRU_NCF_HDR_MAX);
    if (!um_lbtru_clients_init(&source->clients, config->client_map_size,
                               config->clients_max != 0 ? config->clients_max : UM_LBTRU_CLIENTS_MAX,
                               config->buffers != 0 ? um_lbtr_src_engine_numbers(config->buffers) : 0)) {
        um_free(source);
        return NULL;
    }
    if (!um_lbtr_src_engine_window(&source->common, config->buffers, config->window_size, config->window_limit)) {
        um_lbtru_clients_free(&source->clients);
        um_free(source);
        return NULL;
    }
    return &source->common;
}
