/* LBT-RU source engine. See um_lbtru_source.h. */
#include "transport/lbtr/um_lbtru_source.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtru_clients.h"

#define RESETS 64u                   /* places where they are remembered */
#define RESET_AGAIN_NS UM_NS_PER_SEC /* to the same address */
#define SM_SCANS 20u                 /* per minimum interval: session messages are as late as that, not later */

struct um_lbtru_source {
    struct um_lbtru_source_config config;
    struct um_lbtr_limiter *limiter;
    const struct um_lbtru_source_ops *ops;
    void *io;
    uint32_t header_len;
    struct um_lbtr_window window;
    struct um_lbtru_clients clients;
    struct um_lbtr_answer answer;
    struct um_lbtr_turn turn;
    atomic_bool relief_due; /* set by the turn's function */
    bool relief_wanted;
    bool insist;         /* nothing held went out since the last timer */
    bool repairs_wait;   /* for the rate limit */
    uint64_t pinned;     /* index: the oldest datagram whose body is still to be sent by the socket */
    uint64_t sm_scan_ns; /* when session messages are looked at */
    uint64_t armed_ns;
    uint64_t reset_ns[RESETS]; /* when one was sent, by a hash of the address */
    struct um_lbtr_source_counters counters;
};

#define FOREACH_CLIENT(it, tmp, source) UM_LIST_FOREACH_SAFE(it, tmp, &(source)->clients.all)

static struct um_lbtru_client *client_of(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_lbtru_client, node);
}

static void on_turn(struct um_lbtr_turn *turn)
{
    struct um_lbtru_source *source = UM_CONTAINER_OF(turn, struct um_lbtru_source, turn);
    atomic_store_explicit(&source->relief_due, true, memory_order_release);
    source->ops->kick(source->io);
}

struct um_lbtru_source *um_lbtru_source_create(const struct um_lbtru_source_config *config,
                                               struct um_lbtr_limiter *limiter, const struct um_lbtru_source_ops *ops,
                                               void *io)
{
    struct um_lbtru_source *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        return NULL;
    }
    source->config = *config;
    if (source->config.datagram_max > UM_LBTR_DATAGRAM_MAX) {
        source->config.datagram_max = UM_LBTR_DATAGRAM_MAX;
    }
    source->limiter = limiter;
    source->ops = ops;
    source->io = io;
    source->header_len = config->session_id != 0 ? UM_LBTRU_DATA_HDR_MAX : UM_LBTRU_DATA_HDR_MAX - UM_LBTRU_OPTION_LEN;
    source->armed_ns = source->sm_scan_ns = UM_NEVER;
    source->pinned = UINT64_MAX;
    um_lbtr_window_init(&source->window, config->window_size, config->window_limit);
    um_lbtr_answer_init(&source->answer, config->ignore_ns, UM_LBTRU_LIST_MAX, UM_LBTRU_NCF_HDR_MAX);
    um_lbtr_turn_init(&source->turn, on_turn);
    if (!um_lbtru_clients_init(&source->clients, config->client_map_size,
                               config->clients_max != 0 ? config->clients_max : UM_LBTRU_CLIENTS_MAX)) {
        um_free(source);
        return NULL;
    }
    return source;
}

void um_lbtru_source_destroy(struct um_lbtru_source *source)
{
    struct um_list *it, *tmp;
    um_lbtr_turn_leave(source->limiter, &source->turn);
    FOREACH_CLIENT(it, tmp, source)
    {
        um_lbtr_limiter_rx_waits_not(source->limiter, client_of(it)->numbers.queue_bytes);
    }
    um_lbtru_clients_free(&source->clients);
    um_lbtr_window_free(&source->window);
    um_free(source);
}

static void arm(struct um_lbtru_source *source, uint64_t due_ns)
{
    if (due_ns < source->armed_ns) {
        source->armed_ns = due_ns;
        source->ops->set_timer(source->io, due_ns);
    }
}

/* ---- sending ---- */

static void send_control(struct um_lbtru_source *source, const struct um_lbtru_address *to, const uint8_t *packet,
                         size_t len)
{
    source->ops->send(source->io, to, packet, len, NULL, 0);
}

static bool is_full(const struct um_lbtru_source *source)
{
    return source->ops->full != NULL && source->ops->full(source->io);
}

static void send_data(struct um_lbtru_client *client, uint32_t sqn, struct um_lbtr_slot *slot, bool retransmission)
{
    struct um_lbtru_source *source = client->source;
    uint8_t *head = slot->data - source->header_len; /* rewritten for each client */
    um_lbtru_put_data(head, source->config.session_id, sqn, client->numbers.trail, retransmission);
    source->ops->send(source->io, &client->address, head, source->header_len, slot->data, slot->len);
}

static void sm_restart(struct um_lbtru_client *client, uint64_t now_ns)
{
    struct um_lbtru_source *source = client->source;
    um_lbtr_sm_restart(&client->sm, now_ns);
    if (client->sm.due_ns < source->sm_scan_ns) {
        source->sm_scan_ns = client->sm.due_ns;
    }
}

/* The oldest datagram that has not gone out to this client. False: the limit does not allow it now. */
static bool send_next(struct um_lbtru_client *client, uint64_t now_ns, bool insist)
{
    struct um_lbtru_source *source = client->source;
    struct um_lbtr_slot *slot = um_lbtr_numbers_at(&client->numbers, client->numbers.unsent)->slot;
    uint32_t bytes = source->header_len + slot->len;
    if (is_full(source) || !um_lbtr_limiter_take_data(source->limiter, now_ns, bytes, &source->turn, insist)) {
        return false;
    }
    source->counters.msgs_sent++;
    source->counters.bytes_sent += bytes;
    sm_restart(client, now_ns);
    send_data(client, client->numbers.unsent++, slot, false);
    source->insist = false;
    return true;
}

static void comes_first(struct um_lbtru_source *source, struct um_lbtru_client *client)
{
    um_list_remove(&source->clients.all); /* the head of the ring moves */
    um_list_insert_before(&client->node, &source->clients.all);
}

/* Client after client, a datagram each, until all have all. False: the limit stopped it; that client comes first next
 * time. */
static bool send_held(struct um_lbtru_source *source, uint64_t now_ns, bool insist)
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
    if (source->turn.kind == UM_LBTR_TURN_DATA) {
        um_lbtr_turn_leave(source->limiter, &source->turn);
        atomic_store_explicit(&source->relief_due, true, memory_order_relaxed);
    }
    return true;
}

/* Index of the oldest datagram that some client has not been sent: it must stay. */
static uint64_t oldest_held(struct um_lbtru_source *source)
{
    uint64_t oldest = source->pinned < source->window.end ? source->pinned : source->window.end;
    struct um_list *it, *tmp;
    if (source->turn.kind != UM_LBTR_TURN_DATA) {
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

uint8_t *um_lbtru_source_acquire(struct um_lbtru_source *source, size_t *capacity)
{
    *capacity = source->config.datagram_max - source->header_len;
    struct um_lbtr_slot *slot = um_lbtr_window_acquire(&source->window, *capacity);
    return slot != NULL ? slot->data : NULL;
}

static bool wanted(struct um_lbtru_source *source, const struct um_lbtru_client *client,
                   const struct um_lbtr_slot *slot)
{
    return source->ops->wanted == NULL || source->ops->wanted(source->io, &client->address, slot->data, slot->len);
}

/* Number the datagram for every client that wants it. */
static void give_numbers(struct um_lbtru_source *source, struct um_lbtr_slot *slot)
{
    struct um_list *it, *tmp;
    FOREACH_CLIENT(it, tmp, source)
    {
        struct um_lbtru_client *client = client_of(it);
        if (wanted(source, client, slot)) {
            um_lbtr_numbers_add(&client->numbers, slot);
        }
        uint32_t before = client->numbers.queue_bytes;
        um_lbtr_numbers_trim(&client->numbers, source->window.first);
        um_lbtr_limiter_rx_waits_not(source->limiter, before - client->numbers.queue_bytes);
    }
}

enum um_lbtr_commit um_lbtru_source_commit(struct um_lbtru_source *source, uint64_t now_ns, size_t len,
                                           size_t user_bytes)
{
    if (source->clients.count == 0) {
        return UM_LBTR_SENT; /* to nobody; the open slot is written again */
    }
    struct um_lbtr_slot *slot = um_lbtr_window_commit(&source->window, len, user_bytes, oldest_held(source));
    give_numbers(source, slot);
    if (source->turn.kind != UM_LBTR_TURN_DATA && send_held(source, now_ns, false)) {
        arm(source, source->sm_scan_ns);
        return UM_LBTR_SENT;
    }
    if (source->turn.kind != UM_LBTR_TURN_DATA) {
        um_lbtr_turn_join(source->limiter, &source->turn, UM_LBTR_TURN_DATA);
    }
    arm(source, um_lbtr_limiter_next_interval(source->limiter, now_ns));
    return UM_LBTR_HELD;
}

bool um_lbtru_source_may_send(struct um_lbtru_source *source, bool tell)
{
    return um_lbtr_turn_may_send(source->limiter, &source->turn, tell ? &source->relief_wanted : NULL);
}

/* ---- what clients send ---- */

static void send_sm(struct um_lbtru_client *client, bool syn)
{
    struct um_lbtru_source *source = client->source;
    uint8_t packet[UM_LBTRU_SM_MAX];
    send_control(source, &client->address, packet,
                 um_lbtru_put_sm(packet, source->config.session_id, syn, client->sm.next_sqn++,
                                 client->numbers.unsent - 1, client->numbers.trail));
}

static void remove_client(struct um_lbtru_source *source, struct um_lbtru_client *client)
{
    struct um_lbtru_address address = client->address;
    um_lbtr_limiter_rx_waits_not(source->limiter, client->numbers.queue_bytes);
    um_lbtru_clients_remove(&source->clients, client);
    source->ops->disconnected(source->io, &address);
}

static void add_client(struct um_lbtru_source *source, uint64_t now_ns, const struct um_lbtru_packet *packet,
                       const struct um_lbtru_address *from)
{
    struct um_lbtru_client *client = um_lbtru_clients_add(&source->clients, from, source->config.first_sqn);
    if (client == NULL) {
        source->counters.packets_ignored++; /* it asks again */
        return;
    }
    client->source = source;
    client->has_cid = packet->has_cid;
    client->cid = packet->cid;
    um_lbtr_sm_init(&client->sm, source->config.sm_min_ns, source->config.sm_max_ns);
    um_lbtru_clients_heard(&source->clients, client, now_ns);
    send_sm(client, true);
    sm_restart(client, now_ns);
    source->ops->connected(source->io, from);
}

static void on_request(struct um_lbtru_source *source, uint64_t now_ns, const struct um_lbtru_packet *packet,
                       struct um_lbtru_client *client, const struct um_lbtru_address *from)
{
    if (packet->code != UM_LBTRU_REQUEST_SYN) {
        source->counters.packets_ignored++;
        if (source->ops->unknown_request != NULL) {
            source->ops->unknown_request(source->io, from, packet->code);
        }
        return;
    }
    if (client != NULL && packet->has_cid && client->has_cid && packet->cid != client->cid) {
        remove_client(source, client); /* it was started again */
        client = NULL;
    }
    if (client == NULL) {
        add_client(source, now_ns, packet, from);
    } else {
        um_lbtru_clients_heard(&source->clients, client, now_ns);
        send_sm(client, true);
    }
}

/* Somebody we do not know, or not any more: it had better connect again. Once a second for each address, and for all
 * that share its place: whatever addresses are forged, no more than RESETS go out in a second. */
static void reset(struct um_lbtru_source *source, uint64_t now_ns, const struct um_lbtru_address *to)
{
    unsigned place = (to->ip ^ to->ip >> 16 ^ to->port) % RESETS;
    uint64_t at_ns = source->reset_ns[place];
    if (at_ns != 0 && now_ns < at_ns + RESET_AGAIN_NS) {
        source->counters.packets_ignored++;
        return;
    }
    source->reset_ns[place] = now_ns;
    uint8_t packet[UM_LBTRU_RST_LEN];
    send_control(source, to, packet, um_lbtru_put_rst(packet));
}

static void send_repair(void *user, uint32_t sqn, struct um_lbtr_sent *sent)
{
    struct um_lbtru_client *client = user;
    client->source->counters.rxs_sent++;
    client->source->counters.rx_bytes_sent += client->source->header_len + sent->len;
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
    return is_full(((struct um_lbtru_client *)user)->source);
}

static const struct um_lbtr_answer_ops answer_ops = {send_repair, send_ncf, repairs_blocked};

void um_lbtru_source_pin(struct um_lbtru_source *source, uint64_t index)
{
    source->pinned = index;
}

static void on_nak(struct um_lbtru_source *source, uint64_t now_ns, const struct um_lbtru_packet *packet,
                   struct um_lbtru_client *client)
{
    um_lbtr_answer_naks(&source->answer, &client->numbers, source->limiter, &source->counters, now_ns, &packet->list,
                        source->header_len, &answer_ops, client);
    if (client->numbers.queue_count > 0) {
        source->repairs_wait = true;
        arm(source, um_lbtr_limiter_next_interval(source->limiter, now_ns));
    }
}

static bool for_this_session(const struct um_lbtru_source *source, const struct um_lbtru_packet *packet)
{
    if (packet->type != UM_LBTRU_CREQ && packet->type != UM_LBTRU_ACK && packet->type != UM_LBTRU_NAK) {
        return false;
    }
    return source->config.session_id == 0 || (packet->has_sid && packet->sid == source->config.session_id);
}

static void arm_clients(struct um_lbtru_source *source)
{
    struct um_lbtru_client *quietest = um_lbtru_clients_quietest(&source->clients);
    if (quietest != NULL) {
        arm(source, quietest->last_heard_ns + source->config.client_activity_ns);
        arm(source, source->sm_scan_ns);
    }
}

void um_lbtru_source_on_packet(struct um_lbtru_source *source, uint64_t now_ns, const uint8_t *data, size_t len,
                               const struct um_lbtru_address *from)
{
    struct um_lbtru_packet packet;
    if (um_lbtru_decode(data, len, &packet) != UM_LBTR_OK || !for_this_session(source, &packet) || from->port == 0) {
        source->counters.packets_ignored++;
        return;
    }
    struct um_lbtru_client *client = um_lbtru_clients_find(&source->clients, from);
    if (packet.type == UM_LBTRU_CREQ) {
        on_request(source, now_ns, &packet, client, from);
    } else if (client == NULL) {
        reset(source, now_ns, from);
    } else {
        um_lbtru_clients_heard(&source->clients, client, now_ns);
        if (packet.type == UM_LBTRU_NAK) {
            on_nak(source, now_ns, &packet, client);
        }
    }
    arm_clients(source);
}

/* ---- timer ---- */

static void drop_silent_clients(struct um_lbtru_source *source, uint64_t now_ns)
{
    struct um_lbtru_client *quietest;
    while ((quietest = um_lbtru_clients_quietest(&source->clients)) != NULL &&
           now_ns >= quietest->last_heard_ns + source->config.client_activity_ns) {
        remove_client(source, quietest);
    }
}

static void send_session_messages(struct um_lbtru_source *source, uint64_t now_ns)
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
static bool drain_repairs(struct um_lbtru_source *source, uint64_t now_ns)
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
            if (!um_lbtr_answer_drain_one(&client->numbers, source->limiter, now_ns, source->header_len, &answer_ops,
                                          client)) {
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
static bool send_waiting(struct um_lbtru_source *source, uint64_t now_ns)
{
    bool insist = source->insist;
    source->insist = source->turn.kind == UM_LBTR_TURN_DATA;
    if (insist) {
        send_held(source, now_ns, true);
    }
    bool repaired = drain_repairs(source, now_ns);
    return send_held(source, now_ns, false) && repaired;
}

void um_lbtru_source_on_timer(struct um_lbtru_source *source, uint64_t now_ns)
{
    source->armed_ns = UM_NEVER;
    drop_silent_clients(source, now_ns);
    if (!send_waiting(source, now_ns)) {
        arm(source, um_lbtr_limiter_next_interval(source->limiter, now_ns));
    }
    send_session_messages(source, now_ns);
    arm_clients(source);
    if (atomic_exchange_explicit(&source->relief_due, false, memory_order_acquire) && source->relief_wanted &&
        um_lbtru_source_may_send(source, true)) {
        source->relief_wanted = false;
        source->ops->relieved(source->io);
    }
}

/* ---- statistics ---- */

size_t um_lbtru_source_held(const struct um_lbtru_source *source)
{
    struct um_list *it;
    size_t held = 0;
    UM_LIST_FOREACH(it, &source->clients.all)
    {
        const struct um_lbtr_numbers *numbers = &client_of(it)->numbers;
        held += numbers->next - numbers->unsent;
    }
    return held;
}

size_t um_lbtru_source_clients(const struct um_lbtru_source *source)
{
    return source->clients.count;
}

void um_lbtru_source_stats(const struct um_lbtru_source *source, lbm_src_transport_stats_lbtru_t *out)
{
    const struct um_lbtr_source_counters *c = &source->counters;
    *out = (lbm_src_transport_stats_lbtru_t){
        .msgs_sent = c->msgs_sent,
        .bytes_sent = c->bytes_sent,
        .nak_pckts_rcved = c->nak_pckts_rcved,
        .naks_rcved = c->naks_rcved,
        .naks_ignored = c->naks_ignored,
        .naks_shed = c->naks_shed,
        .naks_rx_delay_ignored = c->naks_rx_delay_ignored,
        .rxs_sent = c->rxs_sent,
        .num_clients = source->clients.count,
        .rx_bytes_sent = c->rx_bytes_sent,
    };
}

void um_lbtru_source_stats_reset(struct um_lbtru_source *source)
{
    memset(&source->counters, 0, sizeof source->counters);
}

const struct um_lbtr_source_counters *um_lbtru_source_counters(const struct um_lbtru_source *source)
{
    return &source->counters;
}
