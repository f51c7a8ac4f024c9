/* Options of multicast immediate messages, and of who hears immediate messages, reach what they rule (F25). See
 * um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <arpa/inet.h>

#include "um_test_options.h"

static void send_one(struct world *w)
{
    MUST(lbm_multicast_immediate_message(w->ctx, NULL, "x", 1, LBM_SRC_BLOCK));
}

/* A session to send on. */
static void mim_sender(struct world *w)
{
    context_only(w);
    send_one(w);
    world_settle(w);
}

/* And one that was joined for what was sent. */
static void mim_receiver(struct world *w)
{
    SET_context(w, "mim_incoming_address", "224.10.10.21");
    mim_sender(w);
    world_wait(w, &seen.dc_made, 1);
}

static bool sends_to(struct world *w, const char *place)
{
    lbm_src_transport_stats_t stats;
    int num = 1;
    MUST(lbm_context_retrieve_im_src_transport_stats(w->ctx, &num, sizeof stats, &stats));
    return num == 1 && strstr(stats.source, place) != NULL;
}

static bool listens_on(const char *group, uint16_t port)
{
    return seen.group.addr == inet_addr(group) && seen.group.port == port;
}

static void listening(struct world *w)
{
    SET_context(w, "mim_incoming_address", "224.10.10.21");
    context_only(w);
}

static void listening_sender(struct world *w)
{
    listening(w);
    send_one(w);
    world_settle(w);
}

/* ---- where ---- */

REACHES(context, mim_destination_port, "24403", listening_sender,
        sends_to(w, ":224.10.10.21:24403") && listens_on("224.10.10.21", 24403), true);
REACHES(context, mim_incoming_address, "224.10.10.87", context_only, listens_on("224.10.10.87", 14401), true);
REACHES(context, mim_incoming_destination_port, "24404", listening, listens_on("224.10.10.21", 24404), true);
REACHES(context, mim_outgoing_address, "224.10.10.86", mim_sender, sends_to(w, ":224.10.10.86:14401"), true);
REACHES(context, mim_outgoing_destination_port, "24405", mim_sender, sends_to(w, ":224.10.10.21:24405"), true);

/* ---- the session of the sender ---- */

#define RM seen.rm_source
REACHES(context, mim_ignore_interval, "7040", mim_sender, RM.ignore_ns, MS(7040));
REACHES(context, mim_sm_maximum_interval, "7041", mim_sender, RM.sm_max_ns, MS(7041));
REACHES(context, mim_sm_minimum_interval, "742", mim_sender, RM.sm_min_ns, MS(742));
REACHES(context, mim_src_deletion_timeout, "777000", mim_sender, seams_timer(777000), true);
REACHES(context, mim_tgsz, "16", mim_sender, RM.tgsz, 16);
REACHES(context, mim_transmission_window_limit, "7770040", mim_sender,
        RM.window_limit == 7770040 && seen.window_limit == 7770040, true);
REACHES(context, mim_transmission_window_size, "7770041", mim_sender,
        RM.window_size == 7770041 && seen.window_size == 7770041, true);

/* ---- the sessions of the receiver ---- */

#define RM_NAKS seen.rm_receiver.naks
REACHES(context, mim_activity_timeout, "17042", mim_receiver, seen.rm_receiver.activity_ns, MS(17042));
REACHES(context, mim_nak_backoff_interval, "7043", mim_receiver, RM_NAKS.backoff_ns, MS(7043));
REACHES(context, mim_nak_generation_interval, "17044", mim_receiver,
        RM_NAKS.generation_ns == MS(17044) && seen.dc.gap_timeout_ns == MS(17044), true);
REACHES(context, mim_nak_initial_backoff_interval, "7045", mim_receiver, RM_NAKS.initial_ns, MS(7045));
REACHES(context, mim_nak_suppress_interval, "7046", mim_receiver, RM_NAKS.suppress_ns, MS(7046));
REACHES(context, mim_send_naks, "0", mim_receiver, RM_NAKS.send_naks, false);

/* ---- delivery ---- */

REACHES(context, mim_delivery_control_activity_check_interval, "777001", mim_receiver, seams_timer(777001), true);
REACHES(context, mim_delivery_control_activity_timeout, "7047", mim_receiver, seen.mim_flow.idle_ns, MS(7047));
REACHES(context, mim_delivery_control_loss_check_interval, "7048", mim_receiver, seen.dc.loss_check_interval_ns,
        MS(7048));
REACHES(context, mim_ordered_delivery, "0", mim_receiver, seen.dc.ordered_delivery, 0);
REACHES(context, mim_sqn_window_increment, "4096", mim_receiver, seen.mim_flow.window_step, 4096);
REACHES(context, mim_sqn_window_size, "32768", mim_receiver, seen.mim_flow.window_size, 32768);

/* ---- functions ---- */

static atomic_int calls;

static int on_loss(const char *source, lbm_uint_t sqn, void *clientd)
{
    atomic_fetch_add(&calls, clientd == &calls);
    return 0;
}

/* Some datagrams are lost and nobody asks for them. */
static void mim_loser(struct world *w)
{
    const lbm_mim_unrecloss_func_t function = {.func = on_loss, .clientd = &calls};
    atomic_store(&calls, 0);
    MUST(lbm_context_attr_setopt(w->context, "mim_unrecoverable_loss_function", (void *)&function, sizeof function));
    SET_context(w, "mim_send_naks", "0");
    SET_context(w, "mim_nak_generation_interval", "20");
    mim_receiver(w);
    for (int i = 0; i < HANG_SECONDS * 200 && atomic_load(&calls) == 0; i++) {
        lbm_set_lbtrm_loss_rate(i % 20 == 10 ? 0 : 100);
        send_one(w);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    lbm_set_lbtrm_loss_rate(0);
}

static int on_immediate(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    atomic_fetch_add(&calls, clientd == &calls && (msg->flags & LBM_MSG_FLAG_IMMEDIATE) != 0);
    return 0;
}

/* What nobody else receives goes to the function of the option. */
static void mim_heard(struct world *w, const char *option, const char *topic)
{
    const lbm_context_rcv_immediate_msgs_func_t function = {.func = on_immediate, .clientd = &calls};
    atomic_store(&calls, 0);
    MUST(lbm_context_attr_setopt(w->context, option, (void *)&function, sizeof function));
    listening(w);
    MUST(lbm_multicast_immediate_message(w->ctx, topic, "x", 1, LBM_SRC_BLOCK));
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&calls) == 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

static void mim_topicless(struct world *w)
{
    mim_heard(w, "immediate_message_receiver_function", NULL);
}

static void mim_of_a_topic(struct world *w)
{
    mim_heard(w, "immediate_message_topic_receiver_function", "option");
}

static int on_event(lbm_context_t *ctx, int event, void *ed, void *clientd)
{
    atomic_fetch_add(&calls, event == LBM_SRC_EVENT_WAKEUP && clientd == &calls);
    return 0;
}

static void mim_refused(struct world *w)
{
    static const char data[2000];
    const lbm_context_src_event_func_t function = {.func = on_event, .clientd = &calls};
    atomic_store(&calls, 0);
    MUST(lbm_context_attr_setopt(w->context, "source_event_function", (void *)&function, sizeof function));
    SET_context(w, "transport_lbtrm_data_rate_limit", "100000");
    context_only(w);
    while (lbm_multicast_immediate_message(w->ctx, NULL, data, sizeof data, LBM_SRC_NONBLOCK) == 0) {
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&calls) == 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

REACHES_BINARY(context, immediate_message_receiver_function, mim_topicless, atomic_load(&calls), 1);
REACHES_BINARY(context, immediate_message_topic_receiver_function, mim_of_a_topic, atomic_load(&calls), 1);
REACHES_BINARY(context, mim_unrecoverable_loss_function, mim_loser, atomic_load(&calls) > 0, true);
REACHES_BINARY(context, source_event_function, mim_refused, atomic_load(&calls) > 0, true);
