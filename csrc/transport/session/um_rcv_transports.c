/* The set of transports of a loop's receive sessions. See um_rcv_transports.h. */
#include "transport/session/um_rcv_transports.h"

#include <stdatomic.h>

#include "base/um_error.h"
#include "base/um_mem.h"

static const struct um_rcv_transport_ops *const known[] = {
    &um_tcp_rcv_transport, &um_lbtrm_rcv_transport, &um_lbtru_rcv_transport,
    &um_smx_rcv_transport, &um_ipc_rcv_transport,
};

#define UM_TRANSPORTS (sizeof known / sizeof known[0])

struct um_rcv_transports {
    struct um_transport_env *env;
    /* NULL: no session has wanted it yet. Written on the loop, which for all but process and unblock is the reader. */
    _Atomic(struct um_rcv_transport *) made[UM_TRANSPORTS];
    bool nak_cutoff;
};

/* UM_TRANSPORTS: there is none. */
static size_t index_of(int type)
{
    size_t i = 0;
    while (i < UM_TRANSPORTS && known[i]->type != type) {
        i++;
    }
    return i;
}

static const struct um_rcv_transport_ops *ops_of(int type)
{
    size_t i = index_of(type);
    return i < UM_TRANSPORTS ? known[i] : NULL;
}

static struct um_rcv_transport *made(const struct um_rcv_transports *set, size_t i)
{
    return atomic_load_explicit(&set->made[i], memory_order_acquire);
}

/* ---- life ---- */

static struct um_rcv_transport *make(struct um_rcv_transports *set, size_t i)
{
    struct um_rcv_transport *transport = known[i]->create(set->env);
    if (transport == NULL) {
        return NULL;
    }
    transport->ops = known[i];
    transport->env = set->env;
    um_list_init(&transport->sessions);
    if (set->nak_cutoff && known[i]->set_nak_cutoff != NULL) {
        known[i]->set_nak_cutoff(transport, true);
    }
    atomic_store_explicit(&set->made[i], transport, memory_order_release);
    return transport;
}

struct um_rcv_transports *um_rcv_transports_create(struct um_transport_env *env)
{
    struct um_rcv_transports *set = um_calloc(1, sizeof *set);
    if (set == NULL) {
        um_error_nomem("receive transports", sizeof *set);
        return NULL;
    }
    set->env = env;
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->wanted_at_once != NULL && known[i]->wanted_at_once(env->opts) && make(set, i) == NULL) {
            um_rcv_transports_destroy(set);
            return NULL;
        }
    }
    return set;
}

void um_rcv_transports_destroy(struct um_rcv_transports *set)
{
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (made(set, i) != NULL) {
            known[i]->destroy(made(set, i));
        }
    }
    um_free(set);
}

bool um_rcv_transports_have(int type)
{
    return ops_of(type) != NULL;
}

struct um_rcv_transport *um_rcv_transports_get(struct um_rcv_transports *set, int type)
{
    size_t i = index_of(type);
    struct um_rcv_transport *transport = made(set, i);
    return transport != NULL ? transport : make(set, i);
}

/* ---- what tables answer ---- */

void um_rcv_key_by_address(const lbm_transport_source_info_t *info, struct um_rcv_session_key *key)
{
    key->ip = info->src_ip;
    key->port = info->src_port;
}

void um_rcv_key_by_transport_id(const lbm_transport_source_info_t *info, struct um_rcv_session_key *key)
{
    key->transport_id = info->transport_id;
}

struct um_rcv_session_key um_rcv_transports_key(const lbm_transport_source_info_t *info)
{
    struct um_rcv_session_key key = {.type = (uint32_t)info->type, .session_id = info->session_id};
    const struct um_rcv_transport_ops *ops = ops_of(info->type);
    if (ops != NULL) {
        ops->key(info, &key);
    }
    return key;
}

enum um_rcv_join_kind um_rcv_transport_join_kind(int type)
{
    const struct um_rcv_transport_ops *ops = ops_of(type);
    return ops != NULL ? ops->join_kind : UM_RCV_JOIN_MEMORY; /* none of ours: the join will fail at once */
}

uint64_t um_rcv_transport_gap_timeout_ns(int type, const struct um_receiver_options *opts)
{
    const struct um_rcv_transport_ops *ops = ops_of(type);
    return ops != NULL && ops->gap_timeout_ns != NULL ? ops->gap_timeout_ns(opts) : 0;
}

bool um_rcv_transports_nobody_there(const struct um_rcv_session_key *key)
{
    const struct um_rcv_transport_ops *ops = ops_of((int)key->type);
    return ops == NULL || (ops->nobody_there != NULL && ops->nobody_there(key));
}

void um_rcv_transports_in_force(const struct um_transport_env *env, struct um_receiver_options *out)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->in_force != NULL) {
            known[i]->in_force(env, out);
        }
    }
}

/* ---- what the state of a transport answers ---- */

enum um_rcv_join_kind um_rcv_transports_join_kind(const struct um_rcv_transports *set,
                                                  const struct um_rcv_session_key *key)
{
    size_t i = index_of((int)key->type);
    const struct um_rcv_transport *transport = i < UM_TRANSPORTS ? made(set, i) : NULL;
    if (transport != NULL && known[i]->place_heard != NULL && known[i]->place_heard(transport, key)) {
        return UM_RCV_JOIN_MEMORY;
    }
    return um_rcv_transport_join_kind((int)key->type);
}

void um_rcv_transports_set_nak_cutoff(struct um_rcv_transports *set, bool cutoff)
{
    set->nak_cutoff = cutoff;
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (made(set, i) != NULL && known[i]->set_nak_cutoff != NULL) {
            known[i]->set_nak_cutoff(made(set, i), cutoff);
        }
    }
}

void um_rcv_transports_add_counts(const struct um_rcv_transports *set, int type, struct um_rcv_datagram_counts *sum)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (made(set, i) != NULL && known[i]->counts != NULL && (type == UM_RCV_EVERY_TYPE || type == known[i]->type)) {
            known[i]->counts(made(set, i), sum);
        }
    }
}

void um_rcv_transports_counts_reset(struct um_rcv_transports *set)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (made(set, i) != NULL && known[i]->counts_reset != NULL) {
            known[i]->counts_reset(made(set, i));
        }
    }
}

/* ---- received by the application's thread ---- */

static int not_processed(int type)
{
    return um_error(UM_EINVAL, "Core-9002-10", "transport type 0x%x: an application cannot receive by itself",
                    (unsigned)type);
}

int um_rcv_transports_process(struct um_rcv_transports *set, int type, uint64_t wait_ms, uint64_t rounds)
{
    size_t i = index_of(type);
    return i < UM_TRANSPORTS && known[i]->process != NULL ? known[i]->process(made(set, i), wait_ms, rounds)
                                                          : not_processed(type);
}

int um_rcv_transports_unblock(struct um_rcv_transports *set, int type)
{
    size_t i = index_of(type);
    return i < UM_TRANSPORTS && known[i]->unblock != NULL ? known[i]->unblock(made(set, i)) : not_processed(type);
}
