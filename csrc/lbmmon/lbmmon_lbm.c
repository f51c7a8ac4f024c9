/* The transport module `lbm`: packets as messages of a topic, on a context of its own. Owns that context. The sending
 * end is used by a sampling thread, the receiving end by a receive thread and its context's. */
#include <string.h>
#include <time.h>

#include "base/um_clock.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_lbm.h"
#include "lbmmon/um_mon_lbm_control.h"

enum {
    INBOX_BYTES = 16 << 20,
    INBOX_PACKETS = 65536,
    PATIENCE_MS = 250 /* that a packet waits for room; one only, until packets are accepted again */
};

struct sender {
    lbm_context_t *ctx;
    lbm_src_t *src;
    bool impatient; /* sampling thread: the last packet waited in vain */
    struct um_mon_lbm_control *control;
};

struct receiver {
    lbm_context_t *ctx;
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wrcv;
    struct um_mon_inbox inbox;
};

static int fail_lbm(const char *what)
{
    return um_mon_module_error(UM_MON_LBM, "%s: %s", what, lbm_errmsg());
}

/* ---- sending ---- */

static int on_source_event(lbm_src_t *src, int event, void *data, void *clientd)
{
    return 0;
}

static int open_sender(struct sender *sender, const struct um_mon_lbm_options *options)
{
    lbm_topic_t *topic;
    if (lbm_context_create(&sender->ctx, options->context, NULL, NULL) != 0) {
        return fail_lbm("lbm_context_create");
    }
    if (lbm_src_topic_alloc(&topic, sender->ctx, options->topic, options->source) != 0) {
        return fail_lbm("lbm_src_topic_alloc");
    }
    if (lbm_src_create(&sender->src, sender->ctx, topic, on_source_event, NULL, NULL) != 0) {
        return fail_lbm("lbm_src_create");
    }
    sender->control = um_mon_lbm_control_open(sender->ctx, options);
    return sender->control != NULL ? 0 : -1;
}

static void close_sender(struct sender *sender)
{
    if (sender->src != NULL) {
        lbm_src_delete(sender->src);
    }
    um_mon_lbm_control_close(sender->control); /* before its context, whose responses it may hold */
    if (sender->ctx != NULL) {
        lbm_context_delete(sender->ctx);
    }
    um_free(sender);
}

int lbmmon_transport_lbm_initsrc(void **TransportClientData, const void *TransportOptions)
{
    struct um_mon_lbm_options options;
    if (TransportClientData == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData: must not be NULL", __func__);
    }
    if (um_mon_lbm_options_read(&options, TransportOptions) != 0) {
        return -1;
    }
    struct sender *sender = um_calloc(1, sizeof *sender);
    int rc =
        sender != NULL ? open_sender(sender, &options) : um_mon_module_error(UM_MON_LBM, "%s: out of memory", __func__);
    um_mon_lbm_options_clear(&options);
    if (rc == 0) {
        *TransportClientData = sender;
    } else if (sender != NULL) {
        close_sender(sender);
    }
    return rc;
}

/* A packet waits for room for a while, where the one before was accepted; so a transport that has stopped costs each
 * sample a moment, not a moment for each record. */
int lbmmon_transport_lbm_send(const char *Data, size_t Length, void *TransportClientData)
{
    struct sender *sender = TransportClientData;
    if (sender == NULL || Data == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData and Data: must not be NULL", __func__);
    }
    uint64_t until_ns = um_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    while (lbm_src_send(sender->src, Data, Length, LBM_SRC_NONBLOCK) != 0) {
        if (lbm_errnum() != LBM_EWOULDBLOCK || sender->impatient || um_clock_ns() > until_ns) {
            sender->impatient = lbm_errnum() == LBM_EWOULDBLOCK;
            return fail_lbm("a packet is dropped");
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    sender->impatient = false;
    return 0;
}

int lbmmon_transport_lbm_src_finish(void *TransportClientData)
{
    if (TransportClientData == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData: must not be NULL", __func__);
    }
    close_sender(TransportClientData);
    return 0;
}

/* ---- receiving ---- */

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct receiver *receiver = clientd;
    if (msg->type == LBM_MSG_DATA && !um_mon_inbox_put(&receiver->inbox, msg->data, msg->len, NULL)) {
        um_log_limited(um_log_of_all(), um_clock_ns(), UM_LOG_WARNING, "OpenUM-9060-5",
                       "monitoring: packets come faster than they are taken and are dropped");
    } else if (msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        bool burst = msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
        um_log_limited(um_log_of(msg->source), um_clock_ns(), UM_LOG_WARNING,
                       burst ? "Core-10995-143" : "Core-10995-142", "monitoring: %s of records from %s was lost",
                       burst ? "a burst" : "one or more", msg->source);
    }
    return 0;
}

static int open_receiver(struct receiver *receiver, const struct um_mon_lbm_options *options)
{
    lbm_topic_t *topic;
    if (lbm_context_create(&receiver->ctx, options->context, NULL, NULL) != 0) {
        return fail_lbm("lbm_context_create");
    }
    if (options->pattern[0] != '\0') {
        return lbm_wildcard_rcv_create(&receiver->wrcv, receiver->ctx, options->pattern, options->receiver,
                                       options->wildcard, on_message, receiver, NULL) == 0
                   ? 0
                   : fail_lbm("lbm_wildcard_rcv_create");
    }
    if (lbm_rcv_topic_lookup(&topic, receiver->ctx, options->topic, options->receiver) != 0) {
        return fail_lbm("lbm_rcv_topic_lookup");
    }
    return lbm_rcv_create(&receiver->rcv, receiver->ctx, topic, on_message, receiver, NULL) == 0
               ? 0
               : fail_lbm("lbm_rcv_create");
}

static void close_receiver(struct receiver *receiver)
{
    if (receiver->rcv != NULL) {
        lbm_rcv_delete(receiver->rcv);
    }
    if (receiver->wrcv != NULL) {
        lbm_wildcard_rcv_delete(receiver->wrcv);
    }
    if (receiver->ctx != NULL) {
        lbm_context_delete(receiver->ctx);
    }
    um_mon_inbox_clear(&receiver->inbox, NULL);
    um_free(receiver);
}

int lbmmon_transport_lbm_initrcv(void **TransportClientData, const void *TransportOptions)
{
    struct um_mon_lbm_options options;
    if (TransportClientData == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData: must not be NULL", __func__);
    }
    if (um_mon_lbm_options_read(&options, TransportOptions) != 0) {
        return -1;
    }
    struct receiver *receiver = um_calloc(1, sizeof *receiver);
    int rc = -1;
    if (receiver != NULL) {
        um_mon_inbox_init(&receiver->inbox, INBOX_BYTES, INBOX_PACKETS);
        rc = open_receiver(receiver, &options);
    } else {
        um_mon_module_error(UM_MON_LBM, "%s: out of memory", __func__);
    }
    um_mon_lbm_options_clear(&options);
    if (rc == 0) {
        *TransportClientData = receiver;
    } else if (receiver != NULL) {
        close_receiver(receiver);
    }
    return rc;
}

int lbmmon_transport_lbm_receive(char *Data, size_t *Length, unsigned int TimeoutMS, void *TransportClientData)
{
    struct receiver *receiver = TransportClientData;
    if (receiver == NULL || Data == NULL || Length == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData, Data and Length: must not be NULL", __func__);
    }
    size_t room = *Length;
    int rc = um_mon_inbox_take(&receiver->inbox, Data, Length, TimeoutMS, NULL);
    return rc >= 0 ? rc
                   : um_mon_module_error(UM_MON_LBM, "%s: a packet of %zu bytes: Length %zu is too small", __func__,
                                         *Length, room);
}

int lbmmon_transport_lbm_rcv_finish(void *TransportClientData)
{
    if (TransportClientData == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData: must not be NULL", __func__);
    }
    close_receiver(TransportClientData);
    return 0;
}

uint64_t um_mon_lbm_dropped(void *client_data)
{
    struct receiver *receiver = client_data;
    return um_mon_inbox_dropped(&receiver->inbox);
}

/* ---- control messages: um_mon_lbm_control.c ---- */

int lbmmon_transport_allow_debug(void *TransportClientData)
{
    struct sender *sender = TransportClientData;
    return sender != NULL && um_mon_lbm_control_allows_debug(sender->control);
}

int lbmmon_transport_lbm_ctrlmsg_receive(char *Data, size_t *Length, void *TransportClientData)
{
    struct sender *sender = TransportClientData;
    if (sender == NULL || Data == NULL || Length == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData, Data and Length: must not be NULL", __func__);
    }
    return um_mon_lbm_control_receive(sender->control, Data, Length);
}

int lbmmon_transport_lbm_ctrlmsg_response(const char *Data, size_t Length, void *TransportClientData)
{
    struct sender *sender = TransportClientData;
    if (sender == NULL || Data == NULL) {
        return um_mon_module_error(UM_MON_LBM, "%s: TransportClientData and Data: must not be NULL", __func__);
    }
    return um_mon_lbm_control_respond(sender->control, Data, Length);
}

const char *lbmmon_transport_lbm_errmsg(void)
{
    return um_mon_module_errmsg(UM_MON_LBM);
}

const lbmmon_transport_func_t *lbmmon_transport_lbm_module(void)
{
    static const lbmmon_transport_func_t table = {
        .mInitSource = lbmmon_transport_lbm_initsrc,
        .mInitReceiver = lbmmon_transport_lbm_initrcv,
        .mSend = lbmmon_transport_lbm_send,
        .mReceive = lbmmon_transport_lbm_receive,
        .mFinishSource = lbmmon_transport_lbm_src_finish,
        .mFinishReceiver = lbmmon_transport_lbm_rcv_finish,
        .mErrorMessage = lbmmon_transport_lbm_errmsg,
        .mControlMessageTarget = lbmmon_transport_lbm_ctrlmsgtarget,
        .mControlMessageReceive = lbmmon_transport_lbm_ctrlmsg_receive,
        .mControlMessageResponse = lbmmon_transport_lbm_ctrlmsg_response,
        .mAllowDebug = lbmmon_transport_allow_debug,
    };
    return &table;
}
