/* Fuzz: datagrams of an LBT-RM group from bytes to streams: finding the session,
 * the engine, the messages inside, streams that begin, leave and join again, time.
 * The socket is real, and unused: datagrams are put where a read leaves them. */
#include <stdlib.h>
#include <string.h>

#include "transport/udp/um_lbtrm_channel.c" /* for on_datagram() */

#define GROUP 0xe0000a63u /* 224.0.10.99 */
#define PORT 24499
#define SESSIONS 2
#define TOPICS 3
#define ANCHOR_MS (1000ul * 1000 * 1000) /* eleven days */

static volatile uint8_t sink;
static struct um_rcv_sessions *sessions;
static struct um_context_options context_opts;
static struct um_receiver_options receiver_opts;
static struct um_transport_env env;

struct fuzz_stream {
    struct um_rcv_stream stream;
    unsigned messages;
};

static struct fuzz_stream anchor; /* keeps the socket open from one input to the next */
static uint64_t anchor_due_ns;    /* when it joins anew: its source is silent, and a million inputs last for decades */

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    struct fuzz_stream *fuzz = (struct fuzz_stream *)stream;
    for (size_t i = 0; i < msg->payload.len; i++) { /* touch every byte */
        sink ^= msg->payload.ptr[i];
    }
    if (stream->tidx != 0) {
        um_rcv_stream_watch(stream, !um_rcv_stream_complete_before(stream, um_rcv_stream_position(stream)));
    }
    if (fuzz != &anchor && ++fuzz->messages % 16 == 15) {
        um_rcv_stream_leave(stream);
    }
}

static void on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
    sink ^= (uint8_t)last_sqn;
}

static void on_progress(struct um_rcv_stream *stream, uint64_t now)
{
    struct fuzz_stream *fuzz = (struct fuzz_stream *)stream;
    if (um_rcv_stream_complete_before(stream, 0) || ++fuzz->messages % 16 == 15) {
        um_rcv_stream_watch(stream, false);
    }
}

static void on_event(struct um_rcv_stream *stream)
{
    sink ^= (uint8_t)stream->tidx;
}

static const struct um_rcv_stream_events fuzz_events = {
    .on_data = on_data, .on_tsni = on_tsni, .on_progress = on_progress, .on_bos = on_event, .on_eos = on_event};

static struct fuzz_stream streams[SESSIONS][TOPICS];
static uint64_t now_ns = UM_NS_PER_SEC;

static int discard(int level, const char *message, void *clientd)
{
    (void)level, (void)message, (void)clientd;
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    um_log_set_proc(discard, NULL);
    if (um_context_options_resolve(NULL, &context_opts) != 0 ||
        um_receiver_options_resolve(NULL, NULL, 0, "topic", &receiver_opts) != 0) {
        abort();
    }
    context_opts.default_interface.addr = htonl(INADDR_LOOPBACK);
    context_opts.default_interface.bits = 32;
    context_opts.transport_lbtrm_receiver_socket_buffer = 0;
    receiver_opts.transport_lbtrm_send_naks = 1;
    env.opts = &context_opts;
    return 0;
}

static void join(struct fuzz_stream *fuzz, uint32_t session_id, uint32_t tidx)
{
    lbm_transport_source_info_t info = {.type = LBM_TRANSPORT_TYPE_LBTRM,
                                        .src_ip = htonl(INADDR_LOOPBACK),
                                        .src_port = 9,
                                        .session_id = session_id,
                                        .mc_group = htonl(GROUP),
                                        .dest_port = PORT};
    memset(&fuzz->stream, 0, sizeof fuzz->stream);
    fuzz->stream.events = &fuzz_events;
    fuzz->stream.tidx = tidx;
    if (um_rcv_sessions_join(sessions, &info, &receiver_opts, &fuzz->stream) != 0) {
        abort();
    }
}

static void join_missing(void)
{
    for (uint32_t s = 0; s < SESSIONS; s++) {
        for (uint32_t t = 0; t < TOPICS; t++) {
            if (streams[s][t].stream.session == NULL) {
                join(&streams[s][t], s + 1, t);
            }
        }
    }
}

static void join_anchor(void)
{
    lbm_ulong_t timeout = receiver_opts.transport_lbtrm_activity_timeout;
    receiver_opts.transport_lbtrm_activity_timeout = ANCHOR_MS;
    um_rcv_stream_leave(&anchor.stream);
    join(&anchor, 0x7fffffff, 0);
    receiver_opts.transport_lbtrm_activity_timeout = timeout;
    anchor_due_ns = now_ns + (uint64_t)ANCHOR_MS / 2 * UM_NS_PER_MS; /* an input lasts for hours */
}

static void open_world(void)
{
    env.loop = um_loop_create(false, UM_LOOP_PEND, "fuzz");
    sessions = env.loop == NULL ? NULL : um_rcv_sessions_create(&env, NULL);
    if (sessions == NULL) {
        abort();
    }
}

/* One step: the first byte says what happens. */
static size_t step(struct um_udp_receivers *receivers, const uint8_t *data, size_t size)
{
    uint8_t what = data[0];
    now_ns += (uint64_t)(what >> 4) * (what & 8 ? 500 : 1) * UM_NS_PER_MS;
    um_loop_run_once(env.loop, 0, now_ns);
    if ((what & 7) == 7 || size < 3) {
        join_missing();
        return 1;
    }
    struct um_lbtrm_channel *channel =
        UM_CONTAINER_OF(um_list_first(&receivers->channels), struct um_lbtrm_channel, node);
    size_t len = um_get16(data + 1) % 2048;
    len = len < size - 3 ? len : size - 3;
    struct um_buf *buf = um_buf_alloc(len);
    if (buf == NULL) {
        abort();
    }
    memcpy(buf->data, data + 3, len);
    if ((what & 4) != 0 && len >= 8) { /* a session that is known, else what the bytes say */
        um_put16(buf->data + 2, 9);
        um_put32(buf->data + 4, 1u + (what & 1));
    }
    receivers->datagram = (struct um_udp_datagram){.data = buf->data,
                                                   .len = len,
                                                   .from_ip = htonl(INADDR_LOOPBACK),
                                                   .from_port = 9,
                                                   .stamp_ns = (what & 2) != 0 ? now_ns : 0,
                                                   .buf = buf};
    on_datagram(channel, now_ns);
    um_udp_rcv_sessions_end_pass(receivers, now_ns);
    um_buf_unref(buf);
    return 3 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (sessions == NULL) {
        open_world();
    }
    now_ns += UM_NS_PER_SEC;
    um_loop_run_once(env.loop, 0, now_ns);
    if (now_ns >= anchor_due_ns) {
        join_anchor();
    }
    join_missing();
    struct um_udp_receivers *receivers = um_udp_rcv_session_of(anchor.stream.session)->owner;
    for (size_t at = 0; at < size;) {
        at += step(receivers, data + at, size - at);
    }
    for (int i = 0; i < SESSIONS * TOPICS; i++) {
        struct fuzz_stream *fuzz = &streams[i / TOPICS][i % TOPICS];
        um_rcv_stream_leave(&fuzz->stream);
        fuzz->messages = 0;
    }
    return 0;
}
