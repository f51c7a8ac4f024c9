/* The set of transports of a context's sources. See um_src_transport.h. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_onload.h"
#include "transport/session/um_src_pool.h"

static const struct um_src_transport_ops *const known[] = {
    &um_tcp_src_transport, &um_lbtrm_src_transport, &um_lbtru_src_transport,
    &um_smx_src_transport, &um_ipc_src_transport,
};

#define UM_TRANSPORTS (sizeof known / sizeof known[0])

struct um_src_transports {
    struct um_transport_env *env;
    struct um_src_transport *made[UM_TRANSPORTS]; /* NULL: no source has wanted it yet */
};

static const struct {
    int type;
    const char *name;
} names[] = {
    {LBM_SRC_TOPIC_ATTR_TRANSPORT_TCP, "tcp"},        {LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRM, "lbt-rm"},
    {LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRU, "lbt-ru"},   {LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTIPC, "lbt-ipc"},
    {LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTSMX, "lbt-smx"}, {LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRDMA, "lbt-rdma"},
    {LBM_SRC_TOPIC_ATTR_TRANSPORT_BROKER, "broker"},
};

const char *um_src_transports_name(int type)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].type == type) {
            return names[i].name;
        }
    }
    return "unknown";
}

bool um_src_transports_have(int type)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->type == type) {
            return true;
        }
    }
    return false;
}

static const struct um_src_transport_ops *find(int type)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->type == type) {
            return known[i];
        }
    }
    return NULL;
}

bool um_src_transports_retains(int type)
{
    const struct um_src_transport_ops *ops = find(type);
    return ops != NULL && ops->retains;
}

size_t um_src_transports_retention_least(int type)
{
    const struct um_src_transport_ops *ops = find(type);
    return ops != NULL ? ops->retention_least : 0;
}

bool um_src_transports_smart(int type)
{
    const struct um_src_transport_ops *ops = find(type);
    return ops != NULL && ops->smart;
}

bool um_src_transports_msg_buffs(int type)
{
    const struct um_src_transport_ops *ops = find(type);
    return ops != NULL && ops->msg_buffs;
}

unsigned um_src_transports_index(int type)
{
    unsigned i = 0;
    while (i + 1 < UM_TRANSPORTS && known[i]->type != type) {
        i++;
    }
    return i;
}

static_assert(UM_TRANSPORTS <= UM_SRC_TRANSPORTS_MAX, "each has a place");

void um_src_transports_retransmit_limits(const struct um_context_options *opts, uint64_t out[UM_SRC_TRANSPORTS_MAX])
{
    memset(out, 0, UM_SRC_TRANSPORTS_MAX * sizeof *out);
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        out[i] = known[i]->retransmit_limit != NULL ? known[i]->retransmit_limit(opts) : 0;
    }
}

void um_src_transports_notices(const struct um_source_options *opts, const char *topic)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->type == opts->transport && known[i]->notices != NULL) {
            known[i]->notices(opts, topic);
        }
    }
}

struct um_src_transports *um_src_transports_create(struct um_transport_env *env)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->check != NULL && known[i]->check(env->opts) != 0) {
            return NULL;
        }
    }
    struct um_src_transports *set = um_calloc(1, sizeof *set);
    if (set == NULL) {
        um_error_nomem("source transports", sizeof *set);
        return NULL;
    }
    set->env = env;
    return set;
}

void um_src_transports_destroy(struct um_src_transports *set)
{
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            um_src_pool_destroy(set->made[i]);
        }
    }
    um_free(set);
}

/* What is to be encrypted or compressed is not sent otherwise. */
static int check_settings(const struct um_src_transports *set, const struct um_src_transport_ops *ops,
                          const char *topic)
{
    const struct um_stream_settings *settings = set->env->stream_settings;
    char what[LBM_MSG_MAX_TOPIC_LEN + 16];
    if (settings == NULL || um_stream_settings_plain(settings) || ops->streams) {
        return 0;
    }
    snprintf(what, sizeof what, "source \"%s\"", topic);
    return um_stream_settings_allow(settings, what, um_src_transports_name(ops->type));
}

typedef int attach_fn(struct um_src_transport *pool, const struct um_source_options *opts, const char *topic,
                      struct um_src_stream *stream);

static int attach(struct um_src_transports *set, const struct um_source_options *opts, const char *topic,
                  struct um_src_stream *stream, attach_fn *how)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->type != opts->transport) {
            continue;
        }
        if (check_settings(set, known[i], topic) != 0) {
            return -1;
        }
        if (set->made[i] == NULL && (set->made[i] = um_src_pool_create(known[i], set->env)) == NULL) {
            return -1;
        }
        const char *stack = set->env->opts->onload_acceleration_stack_name; /* comes before that of the source */
        bool onload = um_onload_enter(stack != NULL ? stack : opts->onload_acceleration_stack_name);
        int rc = how(set->made[i], opts, topic, stream);
        um_onload_leave(onload);
        return rc;
    }
    return um_error(UM_EOPNOTSUPP, "CoreApi-5688-3251",
                    "source \"%s\": transport %s is not implemented in this version", topic,
                    um_src_transports_name(opts->transport));
}

int um_src_transports_attach(struct um_src_transports *set, const struct um_source_options *opts, const char *topic,
                             struct um_src_stream *stream)
{
    return attach(set, opts, topic, stream, um_src_pool_attach);
}

int um_src_transports_attach_apart(struct um_src_transports *set, const struct um_source_options *opts,
                                   const char *name, struct um_src_stream *stream)
{
    return attach(set, opts, name, stream, um_src_pool_attach_apart);
}

bool um_src_transports_on_ssf_creq(struct um_src_transports *set, const struct um_lbmc_ssf_creq *creq, uint32_t from_ip)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL && known[i]->on_ssf_creq != NULL &&
            known[i]->on_ssf_creq(set->made[i], creq, from_ip)) {
            return true;
        }
    }
    return false;
}

static int stats_of(struct um_src_transports *set,
                    int (*of)(struct um_src_transport *pool, lbm_src_transport_stats_t *out, int max),
                    lbm_src_transport_stats_t *out, int max)
{
    int count = 0;
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            int filled = count < max ? count : max;
            count += of(set->made[i], out + filled, max - filled);
        }
    }
    return count;
}

int um_src_transports_stats(struct um_src_transports *set, lbm_src_transport_stats_t *out, int max)
{
    return stats_of(set, um_src_pool_stats, out, max);
}

int um_src_transports_apart_stats(struct um_src_transports *set, lbm_src_transport_stats_t *out, int max)
{
    return stats_of(set, um_src_pool_apart_stats, out, max);
}

void um_src_transports_stats_reset(struct um_src_transports *set)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            um_src_pool_stats_reset(set->made[i]);
        }
    }
}

void um_src_transports_apart_stats_reset(struct um_src_transports *set)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            um_src_pool_apart_stats_reset(set->made[i]);
        }
    }
}

void um_src_transports_flush(struct um_src_transports *set)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            um_src_pool_flush(set->made[i]);
        }
    }
}
