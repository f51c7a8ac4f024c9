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

/* Values of one property: that of row i is `size` bytes at values + i * stride, or, of texts, those between ends[i] and
 * ends[i + 1]. A stride of 0 is one value for all rows. */
typedef struct um_py_column_stct {
    const char *name;
    int type;
    size_t size, stride;
    const char *values;
    const uint64_t *ends;
    const uint8_t *there; /* whether row i has one; NULL: all have */
} um_py_column_t;

/* What messages have beside payload and number, by row. Python's, which has checked it. */
typedef struct um_py_columns_stct {
    size_t count;
    const um_py_column_t *columns; /* or: */
    lbm_msg_properties_t **rows;   /* at i * rows_stride; NULL in it: none */
    size_t rows_stride;
    const int64_t *channels; /* -1: none; NULL: */
    int64_t channel;         /* that of all */
} um_py_columns_t;

/* What is made of columns while messages are sent. */
typedef struct um_py_row_stct {
    const um_py_columns_t *columns;
    lbm_msg_properties_t *properties; /* of the last row; NULL: there are no columns of properties */
    unsigned char *set;               /* which columns are in it */
    size_t set_count;
    lbm_src_channel_info_t *channel; /* NULL: none yet */
    int64_t number;                  /* of it */
} um_py_row_t;

static int um_py_row_begin(um_py_row_t *row, const um_py_columns_t *columns)
{
    *row = (um_py_row_t){.columns = columns};
    if (columns == NULL || columns->columns == NULL)
        return 0;
    row->set = calloc(columns->count + 1, 1);
    if (row->set == NULL) {
        lbm_seterr(LBM_ENOMEM, "no memory for columns of properties");
        return -1;
    }
    return lbm_msg_properties_create(&row->properties);
}

static void um_py_row_end(um_py_row_t *row)
{
    if (row->properties != NULL)
        lbm_msg_properties_delete(row->properties);
    if (row->channel != NULL)
        lbm_src_channel_delete(row->channel);
    free(row->set);
}

static int um_py_row_property(um_py_row_t *row, size_t which, size_t at)
{
    const um_py_column_t *column = &row->columns->columns[which];
    if (column->there != NULL && !column->there[at]) {
        if (row->set[which] && lbm_msg_properties_clear(row->properties, column->name) != 0)
            return -1;
        row->set_count -= row->set[which];
        row->set[which] = 0;
        return 0;
    }
    if (column->stride == 0 && row->set[which])
        return 0;
    size_t place = column->stride == 0 ? 0 : at;
    const char *value = column->values + (column->ends != NULL ? column->ends[place] : place * column->stride);
    size_t size = column->ends != NULL ? column->ends[place + 1] - column->ends[place] : column->size;
    if (lbm_msg_properties_set(row->properties, column->name, value, column->type, size) != 0)
        return -1;
    row->set_count += !row->set[which];
    row->set[which] = 1;
    return 0;
}

/* What the message of row `at` has. 0, or -1 as the calls of the library. */
static int um_py_row_fill(um_py_row_t *row, lbm_src_t *src, size_t at, um_py_extras_t *extras)
{
    const um_py_columns_t *columns = row->columns;
    if (columns == NULL)
        return 0;
    if (columns->rows != NULL)
        extras->properties = columns->rows[at * columns->rows_stride];
    for (size_t i = 0; row->properties != NULL && i < columns->count; i++) {
        if (um_py_row_property(row, i, at) != 0)
            return -1;
    }
    if (row->properties != NULL)
        extras->properties = row->set_count > 0 ? row->properties : NULL;
    int64_t number = columns->channels != NULL ? columns->channels[at] : columns->channel;
    if (number >= 0 && (row->channel == NULL || row->number != number)) {
        if (row->channel != NULL)
            lbm_src_channel_delete(row->channel);
        row->channel = NULL;
        if (lbm_src_channel_create(&row->channel, src, (lbm_uint32_t)number) != 0)
            return -1;
        row->number = number;
    }
    extras->channel = number >= 0 ? row->channel : NULL;
    return 0;
}

/*
 * As um_py_send_many() with offsets. Of hot failover, where extras->hf_flags says so and how wide: the i-th message has
 * the number numbers[i], or, where numbers is NULL, extras->hf_number + i. With columns (NULL: none) it has what they
 * say for the row first + i. Threads of the application; with numbers one at a time for each source, so that they keep
 * their order.
 */
static int um_py_send_rows(um_py_source_t *state, const char *base, const uint64_t *offsets, const uint32_t *lengths,
                           const uint64_t *numbers, size_t count, int flags, const um_py_extras_t *extras,
                           um_py_row_t *row, size_t first, int slice_ms, size_t *sent)
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
        int result = um_py_send_turn(state), turn = result == 0;
        for (; *sent < count && result == 0 && *sent - before < UM_PY_NUMBERED_RUN; *sent += result == 0) {
            const char *data = base + offsets[*sent];
            int how = LBM_SRC_NONBLOCK | (*sent + 1 == count ? flags : 0);
            result = um_py_row_fill(row, src, first + *sent, &one);
            if (result != 0)
                break;
            um_py_extras_fill(&info, &one);
            one.hf_number = numbers != NULL ? numbers[*sent] : extras->hf_number + *sent;
            result = one.hf_flags != 0 ? um_py_send_numbered(src, data, lengths[*sent], NULL, 0, how, &info, &one)
                                       : lbm_src_send_ex(src, data, lengths[*sent], how, &info);
        }
        if (turn)
            um_py_send_over(state);
        um_py_source_leave(state);
        spins = *sent > before ? 0 : spins;
        if (result != 0 && (lbm_errnum() != LBM_EWOULDBLOCK || !um_py_await_room(state, seen, &deadline, &spins)))
            return result;
    }
    return 0;
}

static int um_py_send_many_with(um_py_source_t *state, const char *base, const uint64_t *offsets,
                                const uint32_t *lengths, const uint64_t *numbers, size_t count, int flags,
                                const um_py_extras_t *extras, const um_py_columns_t *columns, size_t first,
                                int slice_ms, size_t *sent)
{
    um_py_row_t row;
    int result = um_py_row_begin(&row, columns);
    if (result == 0)
        result =
            um_py_send_rows(state, base, offsets, lengths, numbers, count, flags, extras, &row, first, slice_ms, sent);
    um_py_row_end(&row);
    return result;
}
