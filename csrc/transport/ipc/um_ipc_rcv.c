/* One LBT-IPC receive session: attaching to the segment, taking records out of the
 * ring into buffers of our own, and noticing that the source has closed, died or
 * fallen silent. Runs on the loop or in the poller that has its turn. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/ipc/um_ipc_rcv.h"

#define DATAGRAM_MAX 65535u
#define RECORDS_PER_PASS 64
#define PUBLISH_EVERY 16 /* records, receiver-paced: how long the source is left in the dark about our position */
#define LOG_INTERVAL_NS UM_NS_PER_SEC

static struct um_ipc_rcv *rcv_of(const struct um_rcv_session *session)
{
    return UM_CONTAINER_OF((struct um_rcv_session *)session, struct um_ipc_rcv, base);
}

/* ---- reading ---- */

/* Where the next record goes: behind those that retained messages refer to. NULL: no memory. */
static uint8_t *room(struct um_ipc_rcv *rcv)
{
    uint32_t wanted = (rcv->segment.datagram_max + 7) / 8 * 8;
    if (rcv->buf != NULL && atomic_load_explicit(&rcv->buf->refs, memory_order_acquire) == 1) {
        rcv->used = 0;
    } else if (rcv->buf == NULL || rcv->buf->capacity - rcv->used < wanted) {
        struct um_buf *next = um_buf_get(rcv->receivers->pool);
        if (next == NULL) {
            return NULL;
        }
        if (rcv->buf != NULL) {
            um_buf_unref(rcv->buf);
        }
        rcv->buf = next;
        rcv->used = 0;
    }
    return rcv->buf->data + rcv->used;
}

/* False: the session has ended. */
static bool deliver(struct um_ipc_rcv *rcv, const uint8_t *at, size_t left, uint64_t now_ns)
{
    struct um_lbmc_msg msg;
    while (left > 0) {
        enum um_lbmc_rc rc = um_lbmc_decode(at, left, &msg);
        if (__builtin_expect(rc == UM_LBMC_OK, 1)) {
            if (!um_rcv_session_message(&rcv->base, &msg, rcv->buf, now_ns)) {
                return false;
            }
        } else {
            um_log_limited(&rcv->malformed_log, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-5688-657",
                           "%s: dropped %s", rcv->base.source,
                           rc == UM_LBMC_BAD ? "a message with a malformed or unknown header"
                                             : "the rest of a datagram in which no message header was found");
            if (!um_rcv_session_malformed(&rcv->base) || rc != UM_LBMC_BAD) {
                return rcv->base.state != UM_RCV_ENDED;
            }
        }
        at += msg.msglen;
        left -= msg.msglen;
    }
    return true;
}

/* Tell the source how far we are. The fence pairs with that of a source between src_waiting and its look at us. */
static void publish_position(struct um_ipc_rcv *rcv)
{
    struct um_shm_header *header = rcv->segment.header;
    /* Release: what was read was read before. */
    atomic_store_explicit(&rcv->segment.slots[rcv->slot].read_pos, rcv->reader.pos, memory_order_release);
    if (!rcv->waits) {
        return;
    }
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&header->src_waiting, memory_order_relaxed) != 0) {
        atomic_fetch_add_explicit(&header->space_futex, 1, memory_order_seq_cst);
        syscall(SYS_futex, &header->space_futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

static void lost(struct um_ipc_rcv *rcv, uint64_t now_ns, int level, const char *id, const char *why)
{
    um_log(level, id, "%s: %s: session ended", rcv->base.source, why);
    um_rcv_session_lost(&rcv->base, now_ns);
}

/* Told with the first record after it, which shows how much was missed. */
static void note_overruns(struct um_ipc_rcv *rcv, uint64_t now_ns)
{
    rcv->overruns_logged = rcv->reader.overruns;
    um_log_limited(
        &rcv->overrun_log, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-5688-658",
        "%s: this receiver is too slow: the source came round and overwrote what was not read yet; %llu "
        "datagrams in %llu times so far (transport_lbtipc_transmission_window_size, transport_lbtipc_behavior)",
        rcv->base.source, (unsigned long long)rcv->reader.datagrams_overrun, (unsigned long long)rcv->reader.overruns);
}

/* One record. False: nothing more to do here now. */
static bool read_record(struct um_ipc_rcv *rcv, uint64_t now_ns)
{
    uint32_t len = 0;
    uint8_t *out = room(rcv);
    if (out == NULL) {
        lost(rcv, now_ns, UM_LOG_ERR, "Core-5688-659", "out of memory for a receive buffer");
        return false;
    }
    switch (um_ipc_read(&rcv->reader, out, &len)) {
    case UM_IPC_READ_IDLE:
        return false;
    case UM_IPC_READ_CONTROL:
    case UM_IPC_READ_OVERRUN:
        break;
    case UM_IPC_READ_CORRUPT:
        lost(rcv, now_ns, UM_LOG_ERR, "Core-5688-660", "the segment is damaged");
        return false;
    case UM_IPC_READ_DATA:
        rcv->datagrams++;
        rcv->base.bytes_rcved += len;
        rcv->used += (len + 7) / 8 * 8;
        if (rcv->reader.overruns != rcv->overruns_logged) {
            note_overruns(rcv, now_ns);
        }
        if (!deliver(rcv, out, len, now_ns)) {
            return false;
        }
        break;
    }
    rcv->active_ns = now_ns;
    return rcv->base.state != UM_RCV_ENDED;
}

static void greet(struct um_ipc_rcv *rcv)
{
    rcv->greeted = true;
    atomic_store_explicit(&rcv->segment.slots[rcv->slot].in_use, UM_SHM_SLOT_READING, memory_order_release);
    um_rcv_session_activity(&rcv->base);
}

static bool is_closed(const struct um_ipc_rcv *rcv)
{
    return atomic_load_explicit(&rcv->segment.header->state, memory_order_acquire) != UM_SHM_READY;
}

/* The source's last word; what it had published is read by then. */
static void check_closed(struct um_ipc_rcv *rcv, uint64_t now_ns)
{
    if (is_closed(rcv) && !um_ipc_readable(&rcv->reader)) {
        um_rcv_session_lost(&rcv->base, now_ns);
    }
}

void um_ipc_rcv_read(struct um_ipc_rcv *rcv, uint64_t now_ns)
{
    um_rcv_session_begin(&rcv->base);
    if (!rcv->greeted) {
        greet(rcv);
    }
    int records = 0;
    while (rcv->base.state != UM_RCV_ENDED && records < RECORDS_PER_PASS && read_record(rcv, now_ns)) {
        if (++records % PUBLISH_EVERY == 0 && rcv->waits) {
            publish_position(rcv);
        }
    }
    if (rcv->base.state != UM_RCV_ENDED) {
        publish_position(rcv);
        check_closed(rcv, now_ns);
    }
    um_rcv_session_end(&rcv->base, now_ns);
}

/* ---- is the source there? ---- */

/* The source does not live. What it published, or said, just before is there by now, and comes first. */
static void end_of_source(struct um_ipc_rcv *rcv, uint64_t now_ns)
{
    if (um_ipc_readable(&rcv->reader)) {
        return;
    }
    if (!is_closed(rcv)) {
        um_shm_unlink(&rcv->segment);
        lost(rcv, now_ns, UM_LOG_NOTICE, "Core-5688-661", "its source is gone without closing");
        return;
    }
    um_rcv_session_lost(&rcv->base, now_ns);
}

void um_ipc_rcv_check(struct um_ipc_rcv *rcv, uint64_t now_ns)
{
    uint64_t activity = atomic_load_explicit(&rcv->segment.header->activity, memory_order_acquire);
    um_rcv_session_begin(&rcv->base);
    if (activity != rcv->activity) {
        rcv->activity = activity;
        rcv->active_ns = now_ns;
    }
    if (um_ipc_readable(&rcv->reader)) {
        rcv->active_ns = now_ns; /* and what is there is read before anything else is decided */
    } else if (!um_shm_source_alive(&rcv->segment)) {
        end_of_source(rcv, now_ns);
    } else if (rcv->timeout_ns != 0 && now_ns - rcv->active_ns >= rcv->timeout_ns) {
        lost(rcv, now_ns, UM_LOG_NOTICE, "Core-5688-662",
             "nothing from the source, also no session message (transport_lbtipc_activity_timeout)");
    }
    um_rcv_session_end(&rcv->base, now_ns);
}

/* ---- operations of the generic session ---- */

static void op_stop(struct um_rcv_session *session)
{
    struct um_ipc_rcv *rcv = rcv_of(session);
    um_ipc_receivers_remove(rcv);
    if (rcv->slot >= 0) {
        um_shm_slot_leave(&rcv->segment, rcv->slot);
        rcv->slot = -1;
    }
    um_shm_close(&rcv->segment);
}

static void op_destroy(struct um_rcv_session *session)
{
    struct um_ipc_rcv *rcv = rcv_of(session);
    op_stop(session);
    if (rcv->buf != NULL) {
        um_buf_unref(rcv->buf);
    }
    um_free(rcv);
}

static void op_start(struct um_rcv_session *session, uint64_t not_before_ns, uint64_t now_ns)
{
    struct um_ipc_rcv *rcv = rcv_of(session);
    rcv->active_ns = now_ns;
    um_ipc_receivers_add(rcv);
}

static void op_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTIPC;
    out->transport.lbtipc.msgs_rcved = rcv_of(session)->datagrams;
    out->transport.lbtipc.bytes_rcved = session->bytes_rcved;
    out->transport.lbtipc.lbm_msgs_rcved = session->msgs_rcved;
    out->transport.lbtipc.lbm_msgs_no_topic_rcved = session->msgs_no_topic;
    out->transport.lbtipc.lbm_reqs_rcved = session->reqs_rcved;
}

static void op_reset_stats(struct um_rcv_session *session)
{
    rcv_of(session)->datagrams = 0;
}

static const struct um_rcv_transport_ops ops = {.start = op_start,
                                                .stop = op_stop,
                                                .destroy = op_destroy,
                                                .fill_stats = op_fill_stats,
                                                .reset_stats = op_reset_stats};

/* ---- joining ---- */

static int join(struct um_ipc_rcv *rcv)
{
    struct um_ipc_receivers *receivers = rcv->receivers;
    uint64_t start;
    if (rcv->segment.datagram_max > DATAGRAM_MAX) {
        return um_error(UM_EINVAL, "Core-5688-622", "%s: datagrams of %u bytes: not a segment that can be joined",
                        rcv->segment.path, rcv->segment.datagram_max);
    }
    rcv->slot = um_shm_slot_take(&rcv->segment, receivers->busy_wait ? UM_SHM_SLOT_BUSY_WAIT : 0,
                                 receivers->signal.session_id, &start);
    if (rcv->slot < 0) {
        return -1;
    }
    if (!um_ipc_reader_init(&rcv->reader, &rcv->segment, start)) {
        return um_error(UM_EINVAL, "Core-5688-622", "%s: the end of its data, %llu, is nowhere: not joined",
                        rcv->segment.path, (unsigned long long)start);
    }
    return 0;
}

/* Joining is tried again with every advertisement, so the reason is told now and then only. */
static void tell_refusal(void)
{
    static struct um_log_limit limit;
    um_log_limited(&limit, um_clock_ns(), LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-5688-602", "LBT-IPC: not joined: %s",
                   um_errmsg());
}

struct um_rcv_session *um_ipc_receiver_create(struct um_ipc_receivers *receivers,
                                              const struct um_receiver_options *opts,
                                              const struct um_rcv_session_key *key)
{
    if (um_ipc_receivers_start(receivers) != 0) {
        return NULL;
    }
    struct um_ipc_rcv *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL) {
        um_error_nomem("LBT-IPC receive session", sizeof *rcv);
        return NULL;
    }
    rcv->base.ops = &ops;
    rcv->receivers = receivers;
    rcv->slot = -1;
    um_list_init(&rcv->node);
    if (um_shm_attach(&rcv->segment, UM_SHM_IPC, key->session_id, (uint16_t)key->transport_id) != 0 || join(rcv) != 0) {
        tell_refusal();
        op_destroy(&rcv->base);
        return NULL;
    }
    rcv->waits = (rcv->segment.flags & UM_SHM_FLAG_RECEIVER_PACED) != 0;
    rcv->timeout_ns = opts->transport_lbtipc_activity_timeout * UM_NS_PER_MS;
    rcv->activity = atomic_load_explicit(&rcv->segment.header->activity, memory_order_acquire);
    return &rcv->base;
}
