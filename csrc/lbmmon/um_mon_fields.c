/* The counters of each record in the order in which CSV has them: one table drives writing and reading. Owns the
 * tables, which nobody changes. Any thread. */
#include "lbmmon/um_mon_fields.h"

#include <string.h>

#define FIELD(type, member)                                                                                            \
    {                                                                                                                  \
#member, (uint16_t)offsetof(type, member)                                                                      \
    }
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const struct um_mon_field rcv_tcp_fields[] = {
    FIELD(lbm_rcv_transport_stats_tcp_t, bytes_rcved),
    FIELD(lbm_rcv_transport_stats_tcp_t, lbm_msgs_rcved),
    FIELD(lbm_rcv_transport_stats_tcp_t, lbm_msgs_no_topic_rcved),
    FIELD(lbm_rcv_transport_stats_tcp_t, lbm_reqs_rcved),
};

static const struct um_mon_field rcv_lbtrm_fields[] = {
    FIELD(lbm_rcv_transport_stats_lbtrm_t, msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, bytes_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, nak_pckts_sent),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, naks_sent),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, lost),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, ncfs_ignored),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, ncfs_shed),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, ncfs_rx_delay),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, ncfs_unknown),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, nak_stm_min),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, nak_stm_mean),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, nak_stm_max),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, nak_tx_min),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, nak_tx_mean),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, nak_tx_max),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, duplicate_data),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, unrecovered_txw),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, unrecovered_tmo),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, lbm_msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, lbm_msgs_no_topic_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, lbm_reqs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, dgrams_dropped_size),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, dgrams_dropped_type),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, dgrams_dropped_version),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, dgrams_dropped_hdr),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, dgrams_dropped_other),
    FIELD(lbm_rcv_transport_stats_lbtrm_t, out_of_order),
};

static const struct um_mon_field rcv_lbtru_fields[] = {
    FIELD(lbm_rcv_transport_stats_lbtru_t, msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtru_t, bytes_rcved),
    FIELD(lbm_rcv_transport_stats_lbtru_t, nak_pckts_sent),
    FIELD(lbm_rcv_transport_stats_lbtru_t, naks_sent),
    FIELD(lbm_rcv_transport_stats_lbtru_t, lost),
    FIELD(lbm_rcv_transport_stats_lbtru_t, ncfs_ignored),
    FIELD(lbm_rcv_transport_stats_lbtru_t, ncfs_shed),
    FIELD(lbm_rcv_transport_stats_lbtru_t, ncfs_rx_delay),
    FIELD(lbm_rcv_transport_stats_lbtru_t, ncfs_unknown),
    FIELD(lbm_rcv_transport_stats_lbtru_t, nak_stm_min),
    FIELD(lbm_rcv_transport_stats_lbtru_t, nak_stm_mean),
    FIELD(lbm_rcv_transport_stats_lbtru_t, nak_stm_max),
    FIELD(lbm_rcv_transport_stats_lbtru_t, nak_tx_min),
    FIELD(lbm_rcv_transport_stats_lbtru_t, nak_tx_mean),
    FIELD(lbm_rcv_transport_stats_lbtru_t, nak_tx_max),
    FIELD(lbm_rcv_transport_stats_lbtru_t, duplicate_data),
    FIELD(lbm_rcv_transport_stats_lbtru_t, unrecovered_txw),
    FIELD(lbm_rcv_transport_stats_lbtru_t, unrecovered_tmo),
    FIELD(lbm_rcv_transport_stats_lbtru_t, lbm_msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtru_t, lbm_msgs_no_topic_rcved),
    FIELD(lbm_rcv_transport_stats_lbtru_t, lbm_reqs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtru_t, dgrams_dropped_size),
    FIELD(lbm_rcv_transport_stats_lbtru_t, dgrams_dropped_type),
    FIELD(lbm_rcv_transport_stats_lbtru_t, dgrams_dropped_version),
    FIELD(lbm_rcv_transport_stats_lbtru_t, dgrams_dropped_hdr),
    FIELD(lbm_rcv_transport_stats_lbtru_t, dgrams_dropped_sid),
    FIELD(lbm_rcv_transport_stats_lbtru_t, dgrams_dropped_other),
};

static const struct um_mon_field rcv_lbtipc_fields[] = {
    FIELD(lbm_rcv_transport_stats_lbtipc_t, msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtipc_t, bytes_rcved),
    FIELD(lbm_rcv_transport_stats_lbtipc_t, lbm_msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtipc_t, lbm_msgs_no_topic_rcved),
    FIELD(lbm_rcv_transport_stats_lbtipc_t, lbm_reqs_rcved),
};

static const struct um_mon_field rcv_lbtsmx_fields[] = {
    FIELD(lbm_rcv_transport_stats_lbtsmx_t, msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtsmx_t, bytes_rcved),
    FIELD(lbm_rcv_transport_stats_lbtsmx_t, lbm_msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtsmx_t, lbm_msgs_no_topic_rcved),
    FIELD(lbm_rcv_transport_stats_lbtsmx_t, reserved1),
};

static const struct um_mon_field rcv_lbtrdma_fields[] = {
    FIELD(lbm_rcv_transport_stats_lbtrdma_t, msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrdma_t, bytes_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrdma_t, lbm_msgs_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrdma_t, lbm_msgs_no_topic_rcved),
    FIELD(lbm_rcv_transport_stats_lbtrdma_t, lbm_reqs_rcved),
};

static const struct um_mon_field rcv_broker_fields[] = {
    FIELD(lbm_rcv_transport_stats_broker_t, msgs_rcved),
    FIELD(lbm_rcv_transport_stats_broker_t, bytes_rcved),
};

static const struct um_mon_field rcv_daemon_fields[] = {
    FIELD(lbm_rcv_transport_stats_daemon_t, bytes_rcved),
};

static const struct um_mon_field src_tcp_fields[] = {
    FIELD(lbm_src_transport_stats_tcp_t, num_clients),
    FIELD(lbm_src_transport_stats_tcp_t, bytes_buffered),
};

static const struct um_mon_field src_lbtrm_fields[] = {
    FIELD(lbm_src_transport_stats_lbtrm_t, msgs_sent),
    FIELD(lbm_src_transport_stats_lbtrm_t, bytes_sent),
    FIELD(lbm_src_transport_stats_lbtrm_t, txw_msgs),
    FIELD(lbm_src_transport_stats_lbtrm_t, txw_bytes),
    FIELD(lbm_src_transport_stats_lbtrm_t, nak_pckts_rcved),
    FIELD(lbm_src_transport_stats_lbtrm_t, naks_rcved),
    FIELD(lbm_src_transport_stats_lbtrm_t, naks_ignored),
    FIELD(lbm_src_transport_stats_lbtrm_t, naks_shed),
    FIELD(lbm_src_transport_stats_lbtrm_t, naks_rx_delay_ignored),
    FIELD(lbm_src_transport_stats_lbtrm_t, rxs_sent),
    FIELD(lbm_src_transport_stats_lbtrm_t, rctlr_data_msgs),
    FIELD(lbm_src_transport_stats_lbtrm_t, rctlr_rx_msgs),
    FIELD(lbm_src_transport_stats_lbtrm_t, rx_bytes_sent),
};

static const struct um_mon_field src_lbtru_fields[] = {
    FIELD(lbm_src_transport_stats_lbtru_t, msgs_sent),
    FIELD(lbm_src_transport_stats_lbtru_t, bytes_sent),
    FIELD(lbm_src_transport_stats_lbtru_t, nak_pckts_rcved),
    FIELD(lbm_src_transport_stats_lbtru_t, naks_rcved),
    FIELD(lbm_src_transport_stats_lbtru_t, naks_ignored),
    FIELD(lbm_src_transport_stats_lbtru_t, naks_shed),
    FIELD(lbm_src_transport_stats_lbtru_t, naks_rx_delay_ignored),
    FIELD(lbm_src_transport_stats_lbtru_t, rxs_sent),
    FIELD(lbm_src_transport_stats_lbtru_t, num_clients),
    FIELD(lbm_src_transport_stats_lbtru_t, rx_bytes_sent),
};

static const struct um_mon_field src_lbtipc_fields[] = {
    FIELD(lbm_src_transport_stats_lbtipc_t, num_clients),
    FIELD(lbm_src_transport_stats_lbtipc_t, msgs_sent),
    FIELD(lbm_src_transport_stats_lbtipc_t, bytes_sent),
};

static const struct um_mon_field src_lbtsmx_fields[] = {
    FIELD(lbm_src_transport_stats_lbtsmx_t, num_clients),
    FIELD(lbm_src_transport_stats_lbtsmx_t, msgs_sent),
    FIELD(lbm_src_transport_stats_lbtsmx_t, bytes_sent),
};

static const struct um_mon_field src_lbtrdma_fields[] = {
    FIELD(lbm_src_transport_stats_lbtrdma_t, num_clients),
    FIELD(lbm_src_transport_stats_lbtrdma_t, msgs_sent),
    FIELD(lbm_src_transport_stats_lbtrdma_t, bytes_sent),
};

static const struct um_mon_field src_broker_fields[] = {
    FIELD(lbm_src_transport_stats_broker_t, msgs_sent),
    FIELD(lbm_src_transport_stats_broker_t, bytes_sent),
};

static const struct um_mon_field src_daemon_fields[] = {
    FIELD(lbm_src_transport_stats_daemon_t, bytes_buffered),
};

static const struct um_mon_field context_fields[] = {
    FIELD(lbm_context_stats_t, tr_dgrams_sent),
    FIELD(lbm_context_stats_t, tr_bytes_sent),
    FIELD(lbm_context_stats_t, tr_dgrams_rcved),
    FIELD(lbm_context_stats_t, tr_bytes_rcved),
    FIELD(lbm_context_stats_t, tr_dgrams_dropped_ver),
    FIELD(lbm_context_stats_t, tr_dgrams_dropped_type),
    FIELD(lbm_context_stats_t, tr_dgrams_dropped_malformed),
    FIELD(lbm_context_stats_t, tr_dgrams_send_failed),
    FIELD(lbm_context_stats_t, tr_src_topics),
    FIELD(lbm_context_stats_t, tr_rcv_topics),
    FIELD(lbm_context_stats_t, tr_rcv_unresolved_topics),
    FIELD(lbm_context_stats_t, lbtrm_unknown_msgs_rcved),
    FIELD(lbm_context_stats_t, lbtru_unknown_msgs_rcved),
    FIELD(lbm_context_stats_t, send_blocked),
    FIELD(lbm_context_stats_t, send_would_block),
    FIELD(lbm_context_stats_t, resp_blocked),
    FIELD(lbm_context_stats_t, resp_would_block),
    FIELD(lbm_context_stats_t, uim_dup_msgs_rcved),
    FIELD(lbm_context_stats_t, uim_msgs_no_stream_rcved),
    FIELD(lbm_context_stats_t, fragments_lost),
    FIELD(lbm_context_stats_t, fragments_unrecoverably_lost),
    FIELD(lbm_context_stats_t, rcv_cb_svc_time_min),
    FIELD(lbm_context_stats_t, rcv_cb_svc_time_max),
    FIELD(lbm_context_stats_t, rcv_cb_svc_time_mean),
};

static const struct um_mon_field evq_fields[] = {
    FIELD(lbm_event_queue_stats_t, data_msgs),
    FIELD(lbm_event_queue_stats_t, data_msgs_tot),
    FIELD(lbm_event_queue_stats_t, data_msgs_svc_min),
    FIELD(lbm_event_queue_stats_t, data_msgs_svc_mean),
    FIELD(lbm_event_queue_stats_t, data_msgs_svc_max),
    FIELD(lbm_event_queue_stats_t, resp_msgs),
    FIELD(lbm_event_queue_stats_t, resp_msgs_tot),
    FIELD(lbm_event_queue_stats_t, resp_msgs_svc_min),
    FIELD(lbm_event_queue_stats_t, resp_msgs_svc_mean),
    FIELD(lbm_event_queue_stats_t, resp_msgs_svc_max),
    FIELD(lbm_event_queue_stats_t, topicless_im_msgs),
    FIELD(lbm_event_queue_stats_t, topicless_im_msgs_tot),
    FIELD(lbm_event_queue_stats_t, topicless_im_msgs_svc_min),
    FIELD(lbm_event_queue_stats_t, topicless_im_msgs_svc_mean),
    FIELD(lbm_event_queue_stats_t, topicless_im_msgs_svc_max),
    FIELD(lbm_event_queue_stats_t, wrcv_msgs),
    FIELD(lbm_event_queue_stats_t, wrcv_msgs_tot),
    FIELD(lbm_event_queue_stats_t, wrcv_msgs_svc_min),
    FIELD(lbm_event_queue_stats_t, wrcv_msgs_svc_mean),
    FIELD(lbm_event_queue_stats_t, wrcv_msgs_svc_max),
    FIELD(lbm_event_queue_stats_t, io_events),
    FIELD(lbm_event_queue_stats_t, io_events_tot),
    FIELD(lbm_event_queue_stats_t, io_events_svc_min),
    FIELD(lbm_event_queue_stats_t, io_events_svc_mean),
    FIELD(lbm_event_queue_stats_t, io_events_svc_max),
    FIELD(lbm_event_queue_stats_t, timer_events),
    FIELD(lbm_event_queue_stats_t, timer_events_tot),
    FIELD(lbm_event_queue_stats_t, timer_events_svc_min),
    FIELD(lbm_event_queue_stats_t, timer_events_svc_mean),
    FIELD(lbm_event_queue_stats_t, timer_events_svc_max),
    FIELD(lbm_event_queue_stats_t, source_events),
    FIELD(lbm_event_queue_stats_t, source_events_tot),
    FIELD(lbm_event_queue_stats_t, source_events_svc_min),
    FIELD(lbm_event_queue_stats_t, source_events_svc_mean),
    FIELD(lbm_event_queue_stats_t, source_events_svc_max),
    FIELD(lbm_event_queue_stats_t, unblock_events),
    FIELD(lbm_event_queue_stats_t, unblock_events_tot),
    FIELD(lbm_event_queue_stats_t, cancel_events),
    FIELD(lbm_event_queue_stats_t, cancel_events_tot),
    FIELD(lbm_event_queue_stats_t, cancel_events_svc_min),
    FIELD(lbm_event_queue_stats_t, cancel_events_svc_mean),
    FIELD(lbm_event_queue_stats_t, cancel_events_svc_max),
    FIELD(lbm_event_queue_stats_t, context_source_events),
    FIELD(lbm_event_queue_stats_t, context_source_events_tot),
    FIELD(lbm_event_queue_stats_t, context_source_events_svc_min),
    FIELD(lbm_event_queue_stats_t, context_source_events_svc_mean),
    FIELD(lbm_event_queue_stats_t, context_source_events_svc_max),
    FIELD(lbm_event_queue_stats_t, events),
    FIELD(lbm_event_queue_stats_t, events_tot),
    FIELD(lbm_event_queue_stats_t, age_min),
    FIELD(lbm_event_queue_stats_t, age_mean),
    FIELD(lbm_event_queue_stats_t, age_max),
    FIELD(lbm_event_queue_stats_t, callback_events),
    FIELD(lbm_event_queue_stats_t, callback_events_tot),
    FIELD(lbm_event_queue_stats_t, callback_events_svc_min),
    FIELD(lbm_event_queue_stats_t, callback_events_svc_mean),
    FIELD(lbm_event_queue_stats_t, callback_events_svc_max),
};

static const struct um_mon_record rcv_records[] = {
    {LBM_TRANSPORT_STAT_TCP, "TCP", rcv_tcp_fields, COUNT(rcv_tcp_fields)},
    {LBM_TRANSPORT_STAT_LBTRM, "LBTRM", rcv_lbtrm_fields, COUNT(rcv_lbtrm_fields)},
    {LBM_TRANSPORT_STAT_LBTRU, "LBTRU", rcv_lbtru_fields, COUNT(rcv_lbtru_fields)},
    {LBM_TRANSPORT_STAT_LBTIPC, "LBTIPC", rcv_lbtipc_fields, COUNT(rcv_lbtipc_fields)},
    {LBM_TRANSPORT_STAT_LBTSMX, "LBTSMX", rcv_lbtsmx_fields, COUNT(rcv_lbtsmx_fields)},
    {LBM_TRANSPORT_STAT_LBTRDMA, "LBTRDMA", rcv_lbtrdma_fields, COUNT(rcv_lbtrdma_fields)},
    {LBM_TRANSPORT_STAT_BROKER, "BROKER", rcv_broker_fields, COUNT(rcv_broker_fields)},
    {LBM_TRANSPORT_STAT_DAEMON, "DAEMON", rcv_daemon_fields, COUNT(rcv_daemon_fields)},
};

static const struct um_mon_record src_records[] = {
    {LBM_TRANSPORT_STAT_TCP, "TCP", src_tcp_fields, COUNT(src_tcp_fields)},
    {LBM_TRANSPORT_STAT_LBTRM, "LBTRM", src_lbtrm_fields, COUNT(src_lbtrm_fields)},
    {LBM_TRANSPORT_STAT_LBTRU, "LBTRU", src_lbtru_fields, COUNT(src_lbtru_fields)},
    {LBM_TRANSPORT_STAT_LBTIPC, "LBTIPC", src_lbtipc_fields, COUNT(src_lbtipc_fields)},
    {LBM_TRANSPORT_STAT_LBTSMX, "LBTSMX", src_lbtsmx_fields, COUNT(src_lbtsmx_fields)},
    {LBM_TRANSPORT_STAT_LBTRDMA, "LBTRDMA", src_lbtrdma_fields, COUNT(src_lbtrdma_fields)},
    {LBM_TRANSPORT_STAT_BROKER, "BROKER", src_broker_fields, COUNT(src_broker_fields)},
    {LBM_TRANSPORT_STAT_DAEMON, "DAEMON", src_daemon_fields, COUNT(src_daemon_fields)},
};

const struct um_mon_record um_mon_context_record = {0, "context", context_fields, COUNT(context_fields)};
const struct um_mon_record um_mon_evq_record = {0, "event queue", evq_fields, COUNT(evq_fields)};

static const struct um_mon_record *find(const struct um_mon_record *records, size_t count, int type)
{
    for (size_t i = 0; i < count; i++) {
        if (records[i].transport == type) {
            return &records[i];
        }
    }
    return NULL;
}

const struct um_mon_record *um_mon_rcv_record(int transport)
{
    return find(rcv_records, COUNT(rcv_records), transport);
}

const struct um_mon_record *um_mon_src_record(int transport)
{
    return find(src_records, COUNT(src_records), transport);
}

lbm_ulong_t um_mon_field_get(const struct um_mon_field *field, const void *counters)
{
    lbm_ulong_t value;
    memcpy(&value, (const char *)counters + field->offset, sizeof value);
    return value;
}

void um_mon_field_set(const struct um_mon_field *field, void *counters, lbm_ulong_t value)
{
    memcpy((char *)counters + field->offset, &value, sizeof value);
}
