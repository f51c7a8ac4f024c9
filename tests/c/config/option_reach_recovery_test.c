/* Options of retention, late join and off-transport recovery reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include "um_test_options.h"

static void late_source(struct world *w)
{
    SET_source(w, "late_join", "1");
    tcp_source(w);
}

static void late_receiver(struct world *w)
{
    SET_source(w, "late_join", "1");
    tcp_receiver(w);
}

static void recovering_receiver(struct world *w)
{
    SET_receiver(w, "use_otr", "1");
    late_receiver(w);
}

/* ---- sources ---- */

REACHES(source, late_join, "1", tcp_source, seen.retentions_made, 1);
REACHES(source, retransmit_retention_age_threshold, "77", late_source, seen.retention.age_ns, 77 * UM_NS_PER_SEC);
REACHES(source, retransmit_retention_size_limit, "777777", late_source, seen.retention.size_limit, 777777);
REACHES(source, retransmit_retention_size_threshold, "77777", late_source, seen.retention.size_threshold, 77777);

REACHES(source, um_retransmit_retention_message_threshold, "77", late_source, seen.retention.message_threshold, 77);

/* ---- late join ---- */

REACHES(receiver, late_join_info_request_interval, "777", late_receiver, seen.recovery.info_interval_ns, MS(777));
REACHES(receiver, late_join_info_request_maximum, "77", late_receiver, seen.recovery.info_maximum, 77);
REACHES(receiver, retransmit_initial_sequence_number_request, "0", late_receiver, seen.recovery.ask_last, false);
REACHES(receiver, retransmit_message_caching_proximity, "777", late_receiver, seen.dc.caching_proximity, 777);
REACHES(receiver, retransmit_request_interval, "77", late_receiver, seen.recovery.request_interval_ns, MS(77));
REACHES(receiver, retransmit_request_maximum, "77", late_receiver, seen.recovery.request_maximum, 77);
REACHES(receiver, retransmit_request_message_timeout, "7777", late_receiver, seen.recovery.request_timeout_ns,
        MS(7777));
REACHES(receiver, retransmit_request_outstanding_maximum, "77", late_receiver, seen.recovery.request_outstanding, 77);
REACHES(receiver, transport_topic_sequence_number_info_request_interval, "777", late_receiver,
        seen.recovery.last_interval_ns, MS(777));
REACHES(receiver, transport_topic_sequence_number_info_request_maximum, "77", late_receiver, seen.recovery.last_maximum,
        77);
REACHES(receiver, use_late_join, "0", recovering_receiver, seen.recovery.late_join, false);

static atomic_int chosen;

static int choose(lbm_ume_rcv_recovery_info_ex_func_info_t *info, void *clientd)
{
    (void)info;
    atomic_fetch_add((atomic_int *)clientd, 1);
    return 0;
}

static void choosing_receiver(struct world *w)
{
    lbm_ume_rcv_recovery_info_ex_func_t function = {choose, &chosen};
    atomic_store(&chosen, 0);
    SET_source(w, "late_join", "1");
    MUST(lbm_rcv_topic_attr_setopt(w->receiver, "ume_recovery_sequence_number_info_function", &function,
                                   sizeof function));
    tcp_source(w);
    MUST(lbm_src_send(w->src, "a", 1, LBM_MSG_FLUSH));
    receiver_only(w);
    world_wait(w, &chosen, 1);
}

REACHES_BINARY(receiver, ume_recovery_sequence_number_info_function, choosing_receiver, atomic_load(&chosen), 1);

/* ---- off-transport recovery ---- */

REACHES(receiver, use_otr, "1", late_receiver, seen.recovery.off_transport, true);
REACHES(receiver, otr_message_caching_threshold, "7777", recovering_receiver, seen.recovery.otr_entries_threshold,
        7777);
REACHES(receiver, otr_request_initial_delay, "777", recovering_receiver, seen.recovery.otr_delay_ns, MS(777));
REACHES(receiver, otr_request_log_alert_cooldown, "77", recovering_receiver, seen.recovery.otr_alert_cooldown_ns,
        77 * UM_NS_PER_SEC);
REACHES(receiver, otr_request_maximum_interval, "7777", recovering_receiver, seen.recovery.otr_interval_max_ns,
        MS(7777));
REACHES(receiver, otr_request_message_timeout, "7777", recovering_receiver, seen.recovery.otr_timeout_ns, MS(7777));
REACHES(receiver, otr_request_minimum_interval, "777", recovering_receiver, seen.recovery.otr_interval_ns, MS(777));
REACHES(receiver, otr_request_outstanding_maximum, "77", recovering_receiver, seen.recovery.otr_outstanding, 77);
