/* lbm_wildcard_rcv_*: argument checks in front of core/um_wildcard.c. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_receiver.h"

static int check_given(const void *arg, const char *api, const char *name)
{
    if (arg == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20207-1", "%s: %s: must not be NULL", api, name);
    }
    return 0;
}

int lbm_wildcard_rcv_create(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                            const lbm_rcv_topic_attr_t *tattr, const lbm_wildcard_rcv_attr_t *wattr,
                            lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq)
{
    return um_wildcard_create(wrcvp, ctx, pattern, tattr, wattr, proc, clientd, evq, NULL, "lbm_wildcard_rcv_create");
}

int lbm_wildcard_rcv_delete(lbm_wildcard_rcv_t *wrcv)
{
    return um_wildcard_delete(wrcv, NULL, "lbm_wildcard_rcv_delete");
}

int lbm_wildcard_rcv_delete_ex(lbm_wildcard_rcv_t *wrcv, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_wildcard_delete(wrcv, cbinfo, "lbm_wildcard_rcv_delete_ex");
}

lbm_context_t *lbm_context_from_wildcard_rcv(lbm_wildcard_rcv_t *wrcv)
{
    return um_wildcard_check(wrcv, "lbm_context_from_wildcard_rcv") == 0 ? um_wildcard_context(wrcv) : NULL;
}

lbm_event_queue_t *lbm_event_queue_from_wildcard_rcv(lbm_wildcard_rcv_t *wrcv)
{
    return um_wildcard_check(wrcv, "lbm_event_queue_from_wildcard_rcv") == 0 ? um_wildcard_event_queue(wrcv) : NULL;
}

int lbm_wildcard_rcv_setopt(lbm_wildcard_rcv_t *wrcv, const char *optname, const void *optval, size_t optlen)
{
    static const char api[] = "lbm_wildcard_rcv_setopt";
    if (um_wildcard_check(wrcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0) {
        return -1;
    }
    return um_wildcard_setopt(wrcv, optname, optval, optlen, NULL);
}

int lbm_wildcard_rcv_str_setopt(lbm_wildcard_rcv_t *wrcv, const char *optname, const char *optval)
{
    static const char api[] = "lbm_wildcard_rcv_str_setopt";
    if (um_wildcard_check(wrcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0) {
        return -1;
    }
    return um_wildcard_setopt(wrcv, optname, NULL, 0, optval);
}

int lbm_wildcard_rcv_getopt(lbm_wildcard_rcv_t *wrcv, const char *optname, void *optval, size_t *optlen)
{
    static const char api[] = "lbm_wildcard_rcv_getopt";
    if (um_wildcard_check(wrcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0 || check_given(optlen, api, "optlen") != 0) {
        return -1;
    }
    return um_wildcard_getopt(wrcv, optname, optval, optlen);
}

int lbm_wildcard_rcv_str_getopt(lbm_wildcard_rcv_t *wrcv, const char *optname, char *optval, size_t *optlen)
{
    static const char api[] = "lbm_wildcard_rcv_str_getopt";
    if (um_wildcard_check(wrcv, api) != 0 || check_given(optname, api, "optname") != 0 ||
        check_given(optval, api, "optval") != 0 || check_given(optlen, api, "optlen") != 0) {
        return -1;
    }
    return um_wildcard_str_getopt(wrcv, optname, optval, optlen);
}

int lbm_wildcard_rcv_dump(lbm_wildcard_rcv_t *wrcv, int *size, lbm_config_option_t *opts)
{
    static const char api[] = "lbm_wildcard_rcv_dump";
    if (um_wildcard_check(wrcv, api) != 0 || check_given(size, api, "size") != 0 ||
        check_given(opts, api, "opts") != 0) {
        return -1;
    }
    return um_wildcard_dump(wrcv, size, opts);
}
