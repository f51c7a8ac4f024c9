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
#include "transport/ipc/um_ipc_rcv_session.h"

#define DATAGRAM_MAX 65535u
#define RECORDS_PER_PASS 64
#define PUBLISH_EVERY 16 /* records, receiver-paced: how long the source is left in the dark about our position */

static struct um_ipc_rcv_session *rcv_of(const struct um_rcv_session *session)
{
    return um_ipc_rcv_session_of(um_shm_rcv_session_of(session));
}

/* ---- reading ---- */

/* Where the next record goes: behind those that retained messages refer to. NULL: no memory. */
static uint8_t *room(struct um_ipc_rcv_session *rcv)
{
    uint32_t wanted = (rcv->shm.segment.datagram_max + 7) / 8 * 8;
    if (rcv->buf != NULL && um_buf_is_ours(rcv->buf)) {
        rcv->used = 0;
    } else if (rcv->buf == NULL || rcv->buf->capacity - rcv->used < wanted) {
        struct um_buf *next = um_buf_get(um_ipc_receivers_of(&rcv->shm.poller->base)->pool);
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
static bool deliver(struct um_ipc_rcv_session *rcv, const uint8_t *at, size_t left, uint64_t now_ns)
{
    struct um_lbmc_msg msg;
    while (left > 0) {
        enum um_lbmc_rc rc = um_lbmc_decode(at, left, &msg);
        if (__builtin_expect(rc == UM_LBMC_OK, 1)) {
            if (!um_rcv_session_message(&rcv->shm.base, &msg, rcv->buf, now_ns)) {
                return false;
            }
        } else {
            um_log_limited(um_log_of(rcv->shm.base.source), now_ns, UM_LOG_WARNING, "Core-5688-657", "%s: dropped %s",
                           rcv->shm.base.source,
                           rc == UM_LBMC_BAD ? "a message with a malformed or unknown header"
                                             : "the rest of a datagram in which no message header was found");
            if (!um_rcv_session_malformed(&rcv->shm.base) || rc != UM_LBMC_BAD) {
                return rcv->shm.base.state != UM_RCV_ENDED;
            }
        }
        at += msg.msglen;
        left -= msg.msglen;
    }
    return true;
}

/* Tell the source how far we are. The fence pairs with that of a source between src_waiting and its look at us. */
static void publish_position(struct um_ipc_rcv_session *rcv)
{
    struct um_shm_header *header = rcv->shm.segment.header;
    um_ipc_release(&rcv->reader, &rcv->shm.segment.slots[rcv->shm.slot]);
    if (!rcv->waits) {
        return;
    }
    um_shm_fence_of_waker();
    if (atomic_load_explicit(&header->src_waiting, memory_order_relaxed) != 0) {
        um_shm_futex_bump(&header->space_futex);
        syscall(SYS_futex, &header->space_futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

static void lost(struct um_ipc_rcv_session *rcv, uint64_t now_ns, int level, const char *id, const char *why)
{
    um_log_limited(um_log_of(rcv->shm.base.source), now_ns, level, id, "%s: %s: session ended", rcv->shm.base.source,
                   why);
    um_rcv_session_lost(&rcv->shm.base, now_ns);
}

/* Told with the first record after it, which shows how much was missed. */
static void note_overruns(struct um_ipc_rcv_session *rcv, uint64_t now_ns)
{
    rcv->overruns_logged = rcv->reader.overruns;
    um_log_limited(
        um_log_of(rcv->shm.base.source), now_ns, UM_LOG_WARNING, "Core-5688-658",
        "%s: this receiver is too slow: the source came round and overwrote what was not read yet; %llu "
        "datagrams in %llu times so far (transport_lbtipc_transmission_window_size, transport_lbtipc_behavior)",
        rcv->shm.base.source, (unsigned long long)rcv->reader.datagrams_overrun,
        (unsigned long long)rcv->reader.overruns);
}

/* One record. False: nothing more to do here now. */
static bool read_record(struct um_ipc_rcv_session *rcv, uint64_t now_ns)
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
        rcv->shm.base.over = true;
        lost(rcv, now_ns, UM_LOG_ERR, "Core-5688-660", "the segment is damaged");
        return false;
    case UM_IPC_READ_DATA:
        rcv->datagrams++;
        rcv->shm.base.bytes_rcved += len;
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
    return rcv->shm.base.state != UM_RCV_ENDED;
}

static void greet(struct um_ipc_rcv_session *rcv)
{
    rcv->greeted = true;
    um_shm_slot_reading(&rcv->shm.segment.slots[rcv->shm.slot]);
    um_rcv_session_activity(&rcv->shm.base);
}

static bool is_closed(const struct um_ipc_rcv_session *rcv)
{
    return !um_shm_is_ready(rcv->shm.segment.header);
}

/* The source's last word; what it had published is read by then. */
static void check_closed(struct um_ipc_rcv_session *rcv, uint64_t now_ns)
{
    if (is_closed(rcv) && !um_ipc_readable(&rcv->reader)) {
        um_rcv_session_over(&rcv->shm.base, now_ns);
    }
}

void um_ipc_rcv_session_read(struct um_shm_rcv_session *session, uint64_t now_ns)
{
    struct um_ipc_rcv_session *rcv = um_ipc_rcv_session_of(session);
    um_rcv_session_begin(&rcv->shm.base);
    if (!rcv->greeted) {
        greet(rcv);
    }
    int records = 0;
    while (rcv->shm.base.state != UM_RCV_ENDED && records < RECORDS_PER_PASS && read_record(rcv, now_ns)) {
        if (++records % PUBLISH_EVERY == 0 && rcv->waits) {
            publish_position(rcv);
        }
    }
    if (rcv->shm.base.state != UM_RCV_ENDED) {
        publish_position(rcv);
        check_closed(rcv, now_ns);
    }
    um_rcv_session_end(&rcv->shm.base, now_ns);
}

/* ---- is the source there? ---- */

/* The source does not live. What it published, or said, just before is there by now, and comes first. */
static void end_of_source(struct um_ipc_rcv_session *rcv, uint64_t now_ns)
{
    if (um_ipc_readable(&rcv->reader)) {
        return;
    }
    rcv->shm.base.over = true;
    if (!is_closed(rcv)) {
        um_shm_unlink(&rcv->shm.segment);
        lost(rcv, now_ns, UM_LOG_NOTICE, "Core-5688-661", "its source is gone without closing");
        return;
    }
    um_rcv_session_lost(&rcv->shm.base, now_ns);
}

void um_ipc_rcv_session_check(struct um_shm_rcv_session *session, uint64_t now_ns)
{
    struct um_ipc_rcv_session *rcv = um_ipc_rcv_session_of(session);
    uint64_t activity = um_shm_activity(rcv->shm.segment.header);
    um_rcv_session_begin(&rcv->shm.base);
    if (activity != rcv->activity) {
        rcv->activity = activity;
        rcv->active_ns = now_ns;
    }
    if (um_ipc_readable(&rcv->reader)) {
        rcv->active_ns = now_ns; /* and what is there is read before anything else is decided */
    } else if (!um_shm_source_alive(&rcv->shm.segment)) {
        end_of_source(rcv, now_ns);
    } else if (rcv->timeout_ns != 0 && now_ns - rcv->active_ns >= rcv->timeout_ns) {
        lost(rcv, now_ns, UM_LOG_NOTICE, "Core-5688-662",
             "nothing from the source, also no session message (transport_lbtipc_activity_timeout)");
    }
    um_rcv_session_end(&rcv->shm.base, now_ns);
}

/* ---- operations of the generic session ---- */

static void op_destroy(struct um_rcv_session *session)
{
    struct um_ipc_rcv_session *rcv = rcv_of(session);
    if (rcv->buf != NULL) {
        um_buf_unref(rcv->buf);
    }
    um_shm_rcv_session_destroy(session);
}

static void op_start(struct um_rcv_session *session, uint64_t not_before_ns, uint64_t now_ns)
{
    struct um_ipc_rcv_session *rcv = rcv_of(session);
    rcv->active_ns = now_ns;
    um_shm_rcv_session_poll(&rcv->shm);
}

static void op_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTIPC;
    out->transport.lbtipc.msgs_rcved = rcv_of(session)->datagrams;
    out->transport.lbtipc.bytes_rcved = session->bytes_rcved;
    UM_RCV_LBM_COUNTS(session, out->transport.lbtipc);
}

static void op_reset_stats(struct um_rcv_session *session)
{
    rcv_of(session)->datagrams = 0;
}

static const struct um_rcv_session_ops ops = {.start = op_start,
                                              .stop = um_shm_rcv_session_stop,
                                              .destroy = op_destroy,
                                              .fill_stats = op_fill_stats,
                                              .reset_stats = op_reset_stats};

/* ---- joining ---- */

static int attach(struct um_ipc_rcv_session *rcv)
{
    bool busy = um_ipc_receivers_of(&rcv->shm.poller->base)->busy_wait;
    uint64_t start;
    if (rcv->shm.segment.datagram_max > DATAGRAM_MAX) {
        return um_error(UM_EINVAL, "Core-5688-622", "%s: datagrams of %u bytes: not a segment that can be joined",
                        rcv->shm.segment.path, rcv->shm.segment.datagram_max);
    }
    if (um_shm_rcv_session_take_slot(&rcv->shm, busy ? UM_SHM_SLOT_BUSY_WAIT : 0, &start) != 0) {
        return -1;
    }
    if (!um_ipc_reader_init(&rcv->reader, &rcv->shm.segment, start)) {
        return um_error(UM_EINVAL, "Core-5688-622", "%s: the end of its data, %llu, is nowhere: not joined",
                        rcv->shm.segment.path, (unsigned long long)start);
    }
    return 0;
}

/* Joining is tried again with every advertisement, so the reason is told now and then only. */
static void tell_refusal(void)
{
    um_log_limited(um_log_of_all(), um_clock_ns(), UM_LOG_WARNING, "Core-5688-602", "LBT-IPC: not joined: %s",
                   um_errmsg());
}

static struct um_rcv_session *join(struct um_rcv_transport *transport, const struct um_receiver_options *opts,
                                   const struct um_rcv_session_key *key)
{
    struct um_ipc_receivers *receivers = um_ipc_receivers_of(transport);
    if (um_ipc_receivers_start(receivers) != 0) {
        return NULL;
    }
    struct um_ipc_rcv_session *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL) {
        um_error_nomem("LBT-IPC receive session", sizeof *rcv);
        return NULL;
    }
    um_shm_rcv_session_init(&rcv->shm, &receivers->poller, &ops);
    if (um_shm_rcv_session_attach(&rcv->shm, key) != 0 || attach(rcv) != 0) {
        tell_refusal();
        op_destroy(&rcv->shm.base);
        return NULL;
    }
    rcv->waits = (rcv->shm.segment.flags & UM_SHM_FLAG_RECEIVER_PACED) != 0;
    rcv->timeout_ns = um_ms_ns(opts->transport_lbtipc_activity_timeout);
    rcv->activity = um_shm_activity(rcv->shm.segment.header);
    return &rcv->shm.base;
}

/* ---- operations of the transport ---- */

/* An application that receives by itself may call before there is a session. */
static bool wanted_at_once(const struct um_context_options *opts)
{
    return opts->transport_lbtipc_receiver_operational_mode == LBM_CTX_ATTR_OP_SEQUENTIAL;
}

static bool nobody_there(const struct um_rcv_session_key *key)
{
    return !um_shm_exists(UM_SHM_IPC, key->session_id, (uint16_t)key->transport_id);
}

/* What a router brings out of order. */
static uint64_t gap_timeout_ns(const struct um_receiver_options *opts)
{
    return um_ms_ns(opts->transport_lbtipc_dro_loss_recovery_timeout);
}

const struct um_rcv_transport_ops um_ipc_rcv_transport = {
    .type = LBM_TRANSPORT_TYPE_LBTIPC,
    .name = "LBT-IPC",
    .join_kind = UM_RCV_JOIN_MEMORY,
    .create = um_ipc_receivers_create,
    .destroy = um_shm_poller_destroy,
    .wanted_at_once = wanted_at_once,
    .key = um_rcv_key_by_transport_id,
    .join = join,
    .nobody_there = nobody_there,
    .gap_timeout_ns = gap_timeout_ns,
    .process = um_ipc_receivers_process,
    .unblock = um_ipc_receivers_unblock,
};
