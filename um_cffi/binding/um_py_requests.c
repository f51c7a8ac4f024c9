/*
 * Requests and responses of Python. Messages that the library's threads bring are retained and put into a bounded
 * inbox, from which Python takes many at a time: responses of the requests whose inbox it is, or requests of a
 * responder. Compiled into um_cffi.binding._native behind um_py_bridge.c by build.py.
 */

/* A message that waits, or that Python has taken: um_py_letters_free() gives it back. */
typedef struct um_py_letter_stct {
    uint64_t owner; /* number of the request; 0: it is a request itself */
    void *msg;      /* lbm_msg_t, retained */
    const char *data, *source, *topic;
    size_t len;
    uint32_t sequence_number;
    int64_t timestamp_ns;
} um_py_letter_t;

typedef struct um_py_envelope_stct {
    struct um_py_envelope_stct *next;
    lbm_msg_t *msg;
    uint64_t owner;
} um_py_envelope_t;

struct um_py_request_stct;

typedef struct um_py_inbox_stct {
    atomic_int refs; /* Python's, until it deletes the inbox, and one of each request or receiver that puts here */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    um_py_envelope_t *head, *tail;     /* lock */
    size_t bytes, limit;               /* lock */
    uint64_t dropped;                  /* lock: for want of room or memory */
    int fd;                            /* lock; -1: nobody polls */
    int closed;                        /* lock: nothing is put any more */
    struct um_py_request_stct *graves; /* lock: deleted inside a callback that may still use them */
} um_py_inbox_t;

/* Of one request that was sent. */
typedef struct um_py_request_stct {
    struct um_py_request_stct *next; /* inbox->graves */
    um_py_inbox_t *inbox;
    lbm_request_t *req;
    uint64_t owner;
} um_py_request_t;

static um_py_inbox_t *um_py_inbox_create(size_t limit)
{
    um_py_inbox_t *inbox = calloc(1, sizeof *inbox);
    if (inbox == NULL)
        return NULL;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&inbox->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&inbox->lock, NULL);
    atomic_init(&inbox->refs, 1);
    inbox->limit = limit;
    inbox->fd = -1;
    return inbox;
}

static void um_py_inbox_unref(um_py_inbox_t *inbox)
{
    if (atomic_fetch_sub(&inbox->refs, 1) != 1)
        return;
    um_py_request_t *grave;
    while ((grave = inbox->graves) != NULL) {
        inbox->graves = grave->next;
        free(grave);
    }
    pthread_cond_destroy(&inbox->changed);
    pthread_mutex_destroy(&inbox->lock);
    free(inbox);
}

/* Python's part: what waits is thrown away, nothing comes any more. */
static void um_py_inbox_delete(um_py_inbox_t *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    um_py_envelope_t *each = inbox->head;
    inbox->head = inbox->tail = NULL;
    inbox->closed = 1;
    int fd = inbox->fd;
    inbox->fd = -1;
    pthread_cond_broadcast(&inbox->changed);
    pthread_mutex_unlock(&inbox->lock);
    while (each != NULL) {
        um_py_envelope_t *next = each->next;
        lbm_msg_delete(each->msg);
        free(each);
        each = next;
    }
    if (fd >= 0)
        close(fd);
    um_py_inbox_unref(inbox);
}

/* A descriptor that is readable while messages wait; -1: there can be none. */
static int um_py_inbox_fd(um_py_inbox_t *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    if (inbox->fd < 0 && !inbox->closed) {
        inbox->fd = eventfd(inbox->head != NULL, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    int fd = inbox->fd;
    pthread_mutex_unlock(&inbox->lock);
    return fd;
}

static uint64_t um_py_inbox_dropped(um_py_inbox_t *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    uint64_t dropped = inbox->dropped;
    pthread_mutex_unlock(&inbox->lock);
    return dropped;
}

static void um_py_inbox_wake(um_py_inbox_t *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    pthread_cond_broadcast(&inbox->changed);
    pthread_mutex_unlock(&inbox->lock);
}

/* A thread of the library. The newest is dropped when there is no room. */
static void um_py_inbox_put(um_py_inbox_t *inbox, lbm_msg_t *msg, uint64_t owner)
{
    const uint64_t one = 1;
    um_py_envelope_t *envelope = malloc(sizeof *envelope);
    pthread_mutex_lock(&inbox->lock);
    int room = envelope != NULL && !inbox->closed && (inbox->head == NULL || inbox->bytes + msg->len <= inbox->limit);
    if (!room || lbm_msg_retain(msg) != 0) {
        inbox->dropped += !inbox->closed;
        pthread_mutex_unlock(&inbox->lock);
        free(envelope);
        return;
    }
    *envelope = (um_py_envelope_t){NULL, msg, owner};
    int first = inbox->head == NULL;
    if (first)
        inbox->head = envelope;
    else
        inbox->tail->next = envelope;
    inbox->tail = envelope;
    inbox->bytes += msg->len;
    if (first && inbox->fd >= 0 && write(inbox->fd, &one, sizeof one) < 0) {
        /* full: readable already */
    }
    if (first)
        pthread_cond_broadcast(&inbox->changed);
    pthread_mutex_unlock(&inbox->lock);
}

static void um_py_letter_fill(um_py_letter_t *letter, const um_py_envelope_t *envelope)
{
    lbm_msg_t *msg = envelope->msg;
    *letter = (um_py_letter_t){.owner = envelope->owner,
                               .msg = msg,
                               .data = msg->data,
                               .source = msg->source,
                               .topic = msg->topic_name,
                               .len = msg->len,
                               .sequence_number = msg->sequence_number,
                               .timestamp_ns = (int64_t)msg->tsp.tv_sec * 1000000000 + msg->tsp.tv_usec * 1000};
}

/* Up to `max` messages, in order of arrival, waiting so many milliseconds for the first. Returns how many. */
static int um_py_inbox_take(um_py_inbox_t *inbox, um_py_letter_t *letters, int max, int wait_ms)
{
    uint64_t value;
    int taken = 0;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&inbox->lock);
    if (inbox->head == NULL && wait_ms > 0 && !inbox->closed)
        pthread_cond_timedwait(&inbox->changed, &inbox->lock, &until);
    um_py_envelope_t *done = inbox->head, *end = done;
    while (end != NULL && taken < max) {
        um_py_letter_fill(&letters[taken++], end);
        inbox->bytes -= end->msg->len;
        end = end->next;
    }
    inbox->head = end;
    if (end == NULL) {
        inbox->tail = NULL;
        if (inbox->fd >= 0 && read(inbox->fd, &value, sizeof value) < 0) {
            /* not readable: nothing to clear */
        }
    }
    pthread_mutex_unlock(&inbox->lock);
    while (done != end) {
        um_py_envelope_t *next = done->next;
        free(done);
        done = next;
    }
    return taken;
}

static void um_py_letters_free(const um_py_letter_t *letters, int count)
{
    for (int i = 0; i < count; i++)
        lbm_msg_delete(letters[i].msg);
}

static void um_py_message_free(void *msg)
{
    lbm_msg_delete(msg);
}

/* The bytes of the properties of a message, which they are part of; 0: it has none. */
static int um_py_request_properties(void *msg, const void **where, size_t *len)
{
    lbm_msg_properties_t *properties = ((lbm_msg_t *)msg)->properties;
    return properties != NULL && um_msg_properties_bytes(properties, where, len) == 0;
}

/* ---- requesters ---- */

static int um_py_on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    um_py_request_t *request = clientd;
    if (msg->type == LBM_MSG_RESPONSE)
        um_py_inbox_put(request->inbox, msg, request->owner);
    return 0;
}

static int um_py_request_try(um_py_source_t *state, um_py_request_t *request, const char *data, size_t len, int flags,
                             const um_py_extras_t *extras)
{
    uint64_t wakeups;
    lbm_src_t *src = um_py_source_enter(state, &wakeups);
    if (src == NULL)
        return -1;
    int result = um_py_send_turn(state);
    if (result == 0) {
        lbm_src_send_ex_info_t info;
        flags |= LBM_SRC_NONBLOCK;
        if (extras == NULL) {
            result = lbm_send_request(&request->req, src, data, len, um_py_on_response, request, NULL, flags);
        } else {
            um_py_extras_fill(&info, extras);
            result = lbm_send_request_ex(&request->req, src, data, len, um_py_on_response, request, NULL, flags, &info);
        }
        um_py_send_over(state);
    }
    um_py_source_leave(state);
    return result;
}

/*
 * Sends a request whose responses go to the inbox, waiting up to slice_ms milliseconds for room. NULL with
 * LBM_EWOULDBLOCK: call again; otherwise as lbm_send_request(). `extras` NULL: nothing goes with it.
 */
static um_py_request_t *um_py_request_send(um_py_source_t *state, um_py_inbox_t *inbox, uint64_t owner,
                                           const char *data, size_t len, int flags, const um_py_extras_t *extras,
                                           int slice_ms)
{
    struct timespec deadline;
    unsigned spins = 0;
    um_py_request_t *request = calloc(1, sizeof *request);
    if (request == NULL) {
        lbm_seterr(LBM_ENOMEM, "no memory for a request");
        return NULL;
    }
    request->inbox = inbox;
    request->owner = owner;
    um_py_deadline(&deadline, slice_ms);
    for (;;) {
        uint64_t seen;
        if (um_py_source_enter(state, &seen) == NULL)
            break;
        um_py_source_leave(state);
        if (um_py_request_try(state, request, data, len, flags, extras) == 0) {
            atomic_fetch_add(&inbox->refs, 1);
            return request;
        }
        if (lbm_errnum() != LBM_EWOULDBLOCK || slice_ms == 0 || !um_py_await_room(state, seen, &deadline, &spins))
            break;
    }
    free(request);
    return NULL;
}

/* The same of a buffer of a smart source, which waits for nothing but the kernel. NULL as lbm_ssrc_send_request_ex().
 */
static um_py_request_t *um_py_slot_request(lbm_ssrc_t *ssrc, um_py_inbox_t *inbox, uint64_t owner, const char *buffer,
                                           size_t len, lbm_ssrc_send_ex_info_t *info)
{
    um_py_request_t *request = calloc(1, sizeof *request);
    if (request == NULL) {
        lbm_seterr(LBM_ENOMEM, "no memory for a request");
        return NULL;
    }
    request->inbox = inbox;
    request->owner = owner;
    if (lbm_ssrc_send_request_ex(&request->req, ssrc, buffer, len, um_py_on_response, request, NULL, 0, info) != 0) {
        free(request);
        return NULL;
    }
    atomic_fetch_add(&inbox->refs, 1);
    return request;
}

/* Nothing is put into the inbox for it any more, unless this is inside a callback on a thread of the library. */
static void um_py_request_delete(um_py_request_t *request)
{
    um_py_inbox_t *inbox = request->inbox;
    int inside = um_py_in_callback(NULL);
    lbm_request_delete(request->req);
    if (inside) {
        pthread_mutex_lock(&inbox->lock);
        request->next = inbox->graves;
        inbox->graves = request;
        pthread_mutex_unlock(&inbox->lock);
    } else {
        free(request);
    }
    um_py_inbox_unref(inbox);
}

/* ---- responders ---- */

static int um_py_on_request(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_REQUEST)
        um_py_inbox_put(clientd, msg, 0);
    return 0;
}

static lbm_rcv_cb_proc um_py_responder_proc(void)
{
    return um_py_on_request;
}

/* The receiver with this callback and clientd exists, or does no more. */
static void um_py_inbox_ref(um_py_inbox_t *inbox)
{
    atomic_fetch_add(&inbox->refs, 1);
}

/* Never waits. */
static int um_py_respond(void *msg, const char *data, size_t len)
{
    lbm_response_t *resp = ((lbm_msg_t *)msg)->response;
    if (resp == NULL)
        return lbm_seterr(LBM_EINVAL, "the request came without a way back"), -1;
    return lbm_send_response(resp, data, len, LBM_SRC_NONBLOCK) == -1 ? -1 : 0;
}
