/* The set of transports of a context's sources. See um_src_transport.h. */
#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_onload.h"
#include "transport/um_src_transport.h"

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
            known[i]->destroy(set->made[i]);
        }
    }
    um_free(set);
}

int um_src_transports_attach(struct um_src_transports *set, const struct um_source_options *opts, const char *topic,
                             struct um_src_stream *stream)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (known[i]->type != opts->transport) {
            continue;
        }
        if (set->made[i] == NULL && (set->made[i] = known[i]->create(set->env)) == NULL) {
            return -1;
        }
        const char *stack = set->env->opts->onload_acceleration_stack_name; /* comes before that of the source */
        bool onload = um_onload_enter(stack != NULL ? stack : opts->onload_acceleration_stack_name);
        int rc = known[i]->attach(set->made[i], opts, topic, stream);
        um_onload_leave(onload);
        return rc;
    }
    return um_error(UM_EOPNOTSUPP, "CoreApi-5688-3251",
                    "source \"%s\": transport %s is not implemented in this version", topic,
                    um_src_transports_name(opts->transport));
}

bool um_src_transports_on_ssf_creq(struct um_src_transports *set, const struct um_lbmc_ssf_creq *creq)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL && known[i]->on_ssf_creq != NULL && known[i]->on_ssf_creq(set->made[i], creq)) {
            return true;
        }
    }
    return false;
}

int um_src_transports_stats(struct um_src_transports *set, lbm_src_transport_stats_t *out, int max)
{
    int count = 0;
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            int filled = count < max ? count : max;
            count += known[i]->stats(set->made[i], out + filled, max - filled);
        }
    }
    return count;
}

void um_src_transports_stats_reset(struct um_src_transports *set)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            known[i]->stats_reset(set->made[i]);
        }
    }
}

void um_src_transports_flush(struct um_src_transports *set)
{
    for (size_t i = 0; i < UM_TRANSPORTS; i++) {
        if (set->made[i] != NULL) {
            known[i]->flush(set->made[i]);
        }
    }
}
