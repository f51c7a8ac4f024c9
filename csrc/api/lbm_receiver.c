/* lbm_rcv_*: argument checks and statistics in front of core/um_receiver.c. The
 * header says per call which threads may use it. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_receiver.h"

#undef lbm_rcv_retrieve_all_transport_stats

/* A pointer argument that must be given; names it in the error. */
static int check_given(const void *arg, const char *api, const char *name)
{
    if (arg == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20206-1", "%s: %s: must not be NULL", api, name);
    }
    return 0;
}

int lbm_rcv_topic_lookup(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol, const lbm_rcv_topic_attr_t *attr)
{
    return um_receiver_topic_lookup(topicp, ctx, symbol, attr);
}

int lbm_rcv_create(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq)
{
    return um_receiver_create(rcvp, ctx, topic, proc, clientd, evq, NULL, "lbm_rcv_create");
}

/* That of a hot failover receiver goes with it. */
static int delete_plain(lbm_rcv_t *rcv, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    if (um_receiver_check(rcv, api) == 0 && um_receiver_is_inner(rcv)) {
        return um_error(UM_EINVAL, "CoreApi-20206-3",
                        "%s: rcv belongs to a hot failover receiver or an HFX receiver: delete that instead", api);
    }
    return um_receiver_delete(rcv, cbinfo, api);
}

int lbm_rcv_delete(lbm_rcv_t *rcv)
{
    return delete_plain(rcv, NULL, "lbm_rcv_delete");
}

int lbm_rcv_delete_ex(lbm_rcv_t *rcv, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return delete_plain(rcv, cbinfo, "lbm_rcv_delete_ex");
}

lbm_context_t *lbm_context_from_rcv(lbm_rcv_t *rcv)
{
    return um_receiver_check(rcv, "lbm_context_from_rcv") == 0 ? um_receiver_context(rcv) : NULL;
}

lbm_event_queue_t *lbm_event_queue_from_rcv(lbm_rcv_t *rcv)
{
    return um_receiver_check(rcv, "lbm_event_queue_from_rcv") == 0 ? um_receiver_event_queue(rcv) : NULL;
}

int lbm_rcv_msg_source_clientd(lbm_rcv_t *rcv, const char *source, void *source_clientd)
{
    static const char api[] = "lbm_rcv_msg_source_clientd";
    if (um_receiver_check(rcv, api) != 0 || check_given(source, api, "source") != 0) {
        return -1;
    }
    return um_receiver_set_source_clientd(rcv, source, source_clientd);
}

/* ---- options ---- */

int lbm_rcv_setopt(lbm_rcv_t *rcv, const char *optname, const void *optval, size_t optlen)
{
    static const char api[] = "lbm_rcv_setopt";
    if (um_receiver_check(rcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0) {
        return -1;
    }
    return um_receiver_setopt(rcv, optname, optval, optlen, NULL);
}

int lbm_rcv_str_setopt(lbm_rcv_t *rcv, const char *optname, const char *optval)
{
    static const char api[] = "lbm_rcv_str_setopt";
    if (um_receiver_check(rcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0) {
        return -1;
    }
    return um_receiver_setopt(rcv, optname, NULL, 0, optval);
}

int lbm_rcv_getopt(lbm_rcv_t *rcv, const char *optname, void *optval, size_t *optlen)
{
    static const char api[] = "lbm_rcv_getopt";
    if (um_receiver_check(rcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0 || check_given(optlen, api, "optlen") != 0) {
        return -1;
    }
    return um_receiver_getopt(rcv, optname, optval, optlen);
}

int lbm_rcv_str_getopt(lbm_rcv_t *rcv, const char *optname, char *optval, size_t *optlen)
{
    static const char api[] = "lbm_rcv_str_getopt";
    if (um_receiver_check(rcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0 || check_given(optlen, api, "optlen") != 0) {
        return -1;
    }
    return um_receiver_str_getopt(rcv, optname, optval, optlen);
}

int lbm_rcv_topic_dump(lbm_rcv_t *rcv, int *size, lbm_config_option_t *opts)
{
    static const char api[] = "lbm_rcv_topic_dump";
    if (um_receiver_check(rcv, api) != 0 || check_given(size, api, "size") != 0 ||
        check_given(opts, api, "opts") != 0) {
        return -1;
    }
    return um_receiver_dump(rcv, size, opts);
}

/* ---- transport statistics ---- */

int lbm_rcv_retrieve_transport_stats(lbm_rcv_t *rcv, const char *source, lbm_rcv_transport_stats_t *stats)
{
    static const char api[] = "lbm_rcv_retrieve_transport_stats";
    if (um_receiver_check(rcv, api) != 0 || check_given(source, api, "source") != 0 ||
        check_given(stats, api, "stats") != 0) {
        return -1;
    }
    return um_receiver_stats(rcv, source, stats);
}

int lbm_rcv_reset_transport_stats(lbm_rcv_t *rcv, const char *source)
{
    static const char api[] = "lbm_rcv_reset_transport_stats";
    if (um_receiver_check(rcv, api) != 0 || check_given(source, api, "source") != 0) {
        return -1;
    }
    return um_receiver_stats(rcv, source, NULL);
}

int lbm_rcv_retrieve_all_transport_stats_ex(lbm_rcv_t *rcv, int *num, int size, lbm_rcv_transport_stats_t *stats)
{
    static const char api[] = "lbm_rcv_retrieve_all_transport_stats";
    if (um_receiver_check(rcv, api) != 0 || check_given(num, api, "num") != 0 ||
        (*num > 0 && check_given(stats, api, "stats") != 0)) {
        return -1;
    }
    if (size <= 0 || *num < 0) {
        return um_error(UM_EINVAL, "CoreApi-20206-2", "%s: size %d, num %d: size must be above 0, num not below", api,
                        size, *num);
    }
    return um_receiver_stats_all(rcv, num, size, stats);
}

int lbm_rcv_retrieve_all_transport_stats(lbm_rcv_t *rcv, int *num, lbm_rcv_transport_stats_t *stats)
{
    return lbm_rcv_retrieve_all_transport_stats_ex(rcv, num, (int)sizeof *stats, stats);
}

int lbm_rcv_reset_all_transport_stats(lbm_rcv_t *rcv)
{
    return um_receiver_check(rcv, "lbm_rcv_reset_all_transport_stats") == 0 ? um_receiver_stats_reset_all(rcv) : -1;
}
