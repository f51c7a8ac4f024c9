/*
 * Sends of messages that have more than a payload. Any thread, without the GIL. Compiled into um_cffi.binding._native
 * behind um_py_bridge.c by build.py.
 */

/* Messages sent between two looks whether the source is being closed. */
#define UM_PY_NUMBERED_RUN 1024

/* What goes with a message. The properties are only read: they have been asked for their bytes before. */
typedef struct um_py_extras_stct {
    lbm_msg_properties_t *properties; /* NULL: none */
    int hf_flags;                     /* LBM_SRC_SEND_EX_FLAG_HF_*; 0: no number of hot failover */
    int hf_reset;                     /* it is a reset to that number */
    uint64_t hf_number;
    lbm_src_channel_info_t *channel; /* NULL: none */
} um_py_extras_t;

/* What every kind of send has. */
static void um_py_extras_fill(lbm_src_send_ex_info_t *info, const um_py_extras_t *extras)
{
    *info = (lbm_src_send_ex_info_t){.flags = 0};
    if (extras->properties != NULL) {
        info->flags |= LBM_SRC_SEND_EX_FLAG_PROPERTIES;
        info->properties = extras->properties;
    }
    if (extras->channel != NULL) {
        info->flags |= LBM_SRC_SEND_EX_FLAG_CHANNEL;
        info->channel_info = extras->channel;
    }
}

static int um_py_send_numbered(lbm_src_t *src, const char *data, size_t len, const lbm_iovec_t *iov, int num, int flags,
                               lbm_src_send_ex_info_t *info, const um_py_extras_t *extras)
{
    info->flags |= extras->hf_flags;
    if (extras->hf_flags & LBM_SRC_SEND_EX_FLAG_HF_64)
        info->hf_sqn.u64 = extras->hf_number;
    else
        info->hf_sqn.u32 = (lbm_uint32_t)extras->hf_number;
    if (extras->hf_reset)
        return lbm_hf_src_send_rcv_reset(src, flags, info);
    return iov != NULL ? lbm_hf_src_sendv_ex(src, iov, num, 0, flags | LBM_MSG_IOV_GATHER, info)
                       : lbm_hf_src_send_ex(src, data, len, 0, flags, info);
}

static int um_py_try_send_with(um_py_source_t *state, const char *data, size_t len, const lbm_iovec_t *iov, int num,
                               int flags, const um_py_extras_t *extras)
{
    uint64_t wakeups;
    lbm_src_t *src = um_py_source_enter(state, &wakeups);
    if (src == NULL)
        return -1;
    lbm_src_send_ex_info_t info;
    um_py_extras_fill(&info, extras);
    flags |= LBM_SRC_NONBLOCK;
    int result = um_py_send_turn(state);
    if (result == 0) {
        result = extras->hf_flags != 0 ? um_py_send_numbered(src, data, len, iov, num, flags, &info, extras)
                 : iov != NULL         ? lbm_src_sendv_ex(src, iov, num, flags | LBM_MSG_IOV_GATHER, &info)
                                       : lbm_src_send_ex(src, data, len, flags, &info);
        um_py_send_over(state);
    }
    um_py_source_leave(state);
    return result;
}

/* As um_py_send(), with what else the message has. Without slice_ms one attempt. */
static int um_py_send_with(um_py_source_t *state, const char *data, size_t len, const lbm_iovec_t *iov, int num,
                           int flags, const um_py_extras_t *extras, int slice_ms)
{
    struct timespec deadline;
    unsigned spins = 0;
    um_py_deadline(&deadline, slice_ms);
    for (;;) {
        uint64_t seen;
        if (um_py_source_enter(state, &seen) == NULL)
            return -1;
        um_py_source_leave(state);
        int result = um_py_try_send_with(state, data, len, iov, num, flags, extras);
        if (result == 0 || slice_ms == 0 || lbm_errnum() != LBM_EWOULDBLOCK ||
            !um_py_await_room(state, seen, &deadline, &spins))
            return result;
    }
}

/*
 * As um_py_send_many() with offsets, of messages of hot failover: the i-th has the number numbers[i], or, where numbers
 * is NULL, extras->hf_number + i. extras->hf_flags says how wide they are. Threads of the application, one at a time
 * for each source, so that the numbers keep their order.
 */
static int um_py_send_many_numbered(um_py_source_t *state, const char *base, const uint64_t *offsets,
                                    const uint32_t *lengths, const uint64_t *numbers, size_t count, int flags,
                                    const um_py_extras_t *extras, int slice_ms, size_t *sent)
{
    um_py_extras_t one = *extras;
    lbm_src_send_ex_info_t info;
    struct timespec deadline;
    unsigned spins = 0;
    um_py_deadline(&deadline, slice_ms);
    while (*sent < count) {
        uint64_t seen;
        lbm_src_t *src = um_py_source_enter(state, &seen);
        if (src == NULL)
            return -1;
        size_t before = *sent;
        int result = 0;
        for (; *sent < count && result == 0 && *sent - before < UM_PY_NUMBERED_RUN; *sent += result == 0) {
            um_py_extras_fill(&info, extras);
            one.hf_number = numbers != NULL ? numbers[*sent] : extras->hf_number + *sent;
            int how = LBM_SRC_NONBLOCK | (*sent + 1 == count ? flags : 0);
            result = um_py_send_numbered(src, base + offsets[*sent], lengths[*sent], NULL, 0, how, &info, &one);
        }
        um_py_source_leave(state);
        if (result != 0 && (lbm_errnum() != LBM_EWOULDBLOCK || !um_py_await_room(state, seen, &deadline, &spins)))
            return result;
    }
    return 0;
}
