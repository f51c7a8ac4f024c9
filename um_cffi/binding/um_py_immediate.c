/*
 * Immediate messages of Python: sent by a context without a source, and those that come in, on their way into a
 * collector or to a direct callback; and the way back that a record of a request brings. Calls on a context go through
 * its gate, which does not make them wait for each other: one that waits for the context's thread must not keep out a
 * callback there. Compiled into um_cffi.binding._native behind um_py_requests.c by build.py.
 */

typedef struct um_py_gate_stct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* users */
    lbm_context_t *ctx;     /* lock; NULL: closed */
    int users;              /* lock: inside a call on ctx */
} um_py_gate_t;

static um_py_gate_t *um_py_gate_create(lbm_context_t *ctx)
{
    um_py_gate_t *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return NULL;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&gate->lock, NULL);
    gate->ctx = ctx;
    return gate;
}

/* The context could not be deleted after all. */
static void um_py_gate_open(um_py_gate_t *gate, lbm_context_t *ctx)
{
    pthread_mutex_lock(&gate->lock);
    gate->ctx = ctx;
    pthread_mutex_unlock(&gate->lock);
}

/* Nobody calls any more, and nobody is inside when it returns. */
static void um_py_gate_close(um_py_gate_t *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->ctx = NULL;
    while (gate->users > 0)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void um_py_gate_delete(um_py_gate_t *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

static lbm_context_t *um_py_gate_enter(um_py_gate_t *gate)
{
    pthread_mutex_lock(&gate->lock);
    lbm_context_t *ctx = gate->ctx;
    gate->users += ctx != NULL;
    pthread_mutex_unlock(&gate->lock);
    if (ctx == NULL)
        lbm_seterr(LBM_EINVAL, "the context is closed");
    return ctx;
}

static void um_py_gate_leave(um_py_gate_t *gate)
{
    pthread_mutex_lock(&gate->lock);
    if (--gate->users == 0 && gate->ctx == NULL)
        pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

/* ---- sending; target NULL: by multicast, topic NULL: without one. None of it waits for room. ---- */

static int um_py_immediate_send(um_py_gate_t *gate, const char *target, const char *topic, const char *data, size_t len,
                                int flags)
{
    lbm_context_t *ctx = um_py_gate_enter(gate);
    int result = -1;
    if (ctx == NULL)
        return -1;
    flags |= LBM_SRC_NONBLOCK;
    if (target != NULL)
        result = lbm_unicast_immediate_message(ctx, target, topic, data, len, flags);
    else
        result = lbm_multicast_immediate_message(ctx, topic, data, len, flags);
    um_py_gate_leave(gate);
    return result;
}

/* A request whose responses go to the inbox; NULL as when the message could not be sent. */
static um_py_request_t *um_py_immediate_request(um_py_gate_t *gate, um_py_inbox_t *inbox, uint64_t owner,
                                                const char *target, const char *topic, const char *data, size_t len,
                                                int flags)
{
    um_py_request_t *request = calloc(1, sizeof *request);
    if (request == NULL) {
        lbm_seterr(LBM_ENOMEM, "no memory for a request");
        return NULL;
    }
    lbm_context_t *ctx = um_py_gate_enter(gate);
    int result = -1;
    request->inbox = inbox;
    request->owner = owner;
    flags |= LBM_SRC_NONBLOCK;
    if (ctx != NULL && target != NULL)
        result = lbm_unicast_immediate_request(&request->req, ctx, target, topic, data, len, um_py_on_response, request,
                                               NULL, flags);
    else if (ctx != NULL)
        result = lbm_multicast_immediate_request(&request->req, ctx, topic, data, len, um_py_on_response, request, NULL,
                                                 flags);
    if (ctx != NULL)
        um_py_gate_leave(gate);
    if (result != 0) {
        free(request);
        return NULL;
    }
    atomic_fetch_add(&inbox->refs, 1);
    return request;
}

/* ---- receiving ---- */

static int um_py_on_immediate_direct(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    return um_py_on_direct(NULL, msg, clientd);
}

/*
 * From now on the collector, or the Direct, gets the messages without a topic, with `others` those to topics that
 * nobody here receives, and what is lost of multicast ones. 0; -1 with an error and nothing is changed.
 */
static int um_py_immediate_receive(lbm_context_t *ctx, void *clientd, int direct, int others)
{
    lbm_immediate_msg_cb_proc proc = direct ? um_py_on_immediate_direct : um_collector_immediate_cb;
    if (lbm_context_rcv_immediate_msgs(ctx, proc, clientd, NULL) != 0)
        return -1;
    if (!others || lbm_context_rcv_immediate_topic_msgs(ctx, proc, clientd, NULL) == 0) {
        if (um_immediate_loss(ctx, proc, clientd) == 0)
            return 0;
        if (others)
            lbm_context_rcv_immediate_topic_msgs(ctx, NULL, NULL, NULL);
    }
    lbm_context_rcv_immediate_msgs(ctx, NULL, NULL, NULL);
    return -1;
}

/* Nobody gets them any more. */
static int um_py_immediate_ignore(lbm_context_t *ctx, int others)
{
    if (um_immediate_loss(ctx, NULL, NULL) != 0 ||
        (others && lbm_context_rcv_immediate_topic_msgs(ctx, NULL, NULL, NULL) != 0))
        return -1;
    return lbm_context_rcv_immediate_msgs(ctx, NULL, NULL, NULL);
}

/* ---- answering requests whose way back came with a record ---- */

/* To be freed with um_py_answer_free(), also when the context is gone. NULL with an error. */
static lbm_response_t *um_py_answer_open(um_py_gate_t *gate, const char *bytes)
{
    lbm_serialized_response_t way_back;
    lbm_context_t *ctx = um_py_gate_enter(gate);
    if (ctx == NULL)
        return NULL;
    memcpy(&way_back, bytes, sizeof way_back);
    lbm_response_t *answer = lbm_deserialize_response(ctx, &way_back);
    um_py_gate_leave(gate);
    return answer;
}

/* Never waits. */
static int um_py_answer_send(lbm_response_t *answer, const char *data, size_t len)
{
    return lbm_send_response(answer, data, len, LBM_SRC_NONBLOCK) == -1 ? -1 : 0;
}

static void um_py_answer_free(void *answer)
{
    lbm_response_delete(answer);
}
