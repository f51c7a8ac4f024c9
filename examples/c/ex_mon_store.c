/* The lines of the records of stores. */
#include "ex_mon.h"
#include "ex_mon_lines.h"

static const struct line stats_lines[] = {
    {"Store index                          ", "store_idx", 0},
    {"Retransmission request receive count ", "ume_retx_req_rcv_count", 0},
    {"Retransmission request serviced count", "ume_retx_req_serviced_count", 0},
    {"Retransmission request drop count    ", "ume_retx_req_drop_count", 0},
    {"Retransmission request total dropped ", "ume_retx_req_total_dropped", 0},
    {"Retransmission statistics interval   ", "ume_retx_stat_interval", 0},
    {NULL, NULL, 0},
};

static const struct line heap_lines[] = {
    {"Page size       ", "pageSize", 0},
    {"Pool count      ", "poolcount", 0},
    {"Pool size       ", "poolsize", 0},
    {"Small block size", "smallBlockSize", 0},
    {NULL, NULL, 0},
};

static const struct line repository_lines[] = {
    {"Last activity timestamp     ", "last_activity_timestamp_sec", 0},
    {"Source registration ID      ", "src_regid", 0},
    {"Topic name                  ", "topic_name", 0},
    {"Session ID                  ", "src_session_id", 0},
    {"Contiguous sqn              ", "contig_sqn", 0},
    {"Synchronization complete sqn", "sync_complete_sqn", 0},
    {"Trail sqn                   ", "trail_sqn", 0},
    {"Flags                       ", "flags", 0},
    {"High ULB sqn                ", "high_ulb_sqn", 0},
    {"Size limit drops            ", "sz_limit_drops", 0},
    {"Map intentional drops       ", "map_intentional_drops", 0},
    {"Memory size                 ", "memory_sz", 0},
    {"Memory trail sqn            ", "mem_trail_sqn", 0},
    {"Message map size            ", "message_map_sz", 0},
    {"RPP memory size             ", "rpp_memory_sz", 0},
    {"ULB count                   ", "ulbs", 0},
    {"UL count                    ", "uls", 0},
    {"Receiver count              ", "rcvr_count", 0},
    {NULL, NULL, 0},
};

static const struct line disk_lines[] = {
    {"Starting offset           ", "start_offset", 0},         {"Current offset            ", "offset", 0},
    {"Maximum offset            ", "max_offset", 0},           {"Number of IOs pending     ", "num_ios_pending", 0},
    {"Number of read IOs pending", "num_read_ios_pending", 0}, {NULL, NULL, 0},
};

static const struct line receiver_lines[] = {
    {"Last activity timestamp ", "last_activity_timestamp_sec", 0},
    {"Receiver registration ID", "rcv_regid", 0},
    {"High ACK Sequence Number", "high_ack_sqn", 0},
    {"Flags                   ", "flags", 0},
    {"Session ID              ", "rcv_session_id", 0},
    {NULL, NULL, 0},
};

static const struct line configuration_lines[] = {
    {"Store index                       ", "store_idx", 0},
    {"Store name                        ", "store_name", 0},
    {"LBM version                       ", "lbm_version", 0},
    {"Smart heap version                ", "smartheap_version", 0},
    {"Context ID                        ", "context_id", 0},
    {"Disk cache directory              ", "disk_cache_dir_name", 0},
    {"Disk state directory              ", "disk_state_dir_name", 0},
    {"IP address                        ", "ip_addr", 'i'},
    {"Port                              ", "port", 0},
    {"Max retransmission Processing rate", "max_retransmission_processing_rate", 0},
    {"Number of sources                 ", "src_count", 0},
    {NULL, NULL, 0},
};

static const struct line pattern_lines[] = {
    {"Pattern", "pattern", 0},
    {"Type   ", "topic_type", 0},
    {NULL, NULL, 0},
};

static const struct line topic_lines[] = {
    {"Dmon topic index", "dmon_topic_idx", 0},
    {"Topic name      ", "topic_name", 0},
    {NULL, NULL, 0},
};

static const struct line repository_configuration_lines[] = {
    {"Source registration ID                ", "src_regid", 0},
    {"Source session ID                     ", "src_session_id", 0},
    {"Source string                         ", "source_string", 0},
    {"Source domain ID                      ", "src_domain_id", 0},
    {"Repository type                       ", "repository_type", 0},
    {"Age threshold                         ", "age_threshold", 0},
    {"Allow ACK on reception                ", "allow_ack_on_reception", 0},
    {"Disk asynchronous IO Buffer length    ", "disk_aio_buffer_len", 0},
    {"Disk maximum read asynch IO callbacks ", "disk_max_read_aiocbs", 0},
    {"Disk maximum write asynch IO callbacks", "disk_max_write_aiocbs", 0},
    {"Dmon topic index                      ", "dmon_topic_idx", 0},
    {"Originating transport ID              ", "otid", 0},
    {"Repository disk size limit            ", "repo_disk_sz_limit", 0},
    {"Disk write delay                      ", "repo_disk_write_delay", 0},
    {"Repository size limit                 ", "repo_sz_limit", 0},
    {"Repository size threshold             ", "repo_sz_threshold", 0},
    {"Source flight size bytes              ", "src_flightsz_bytes", 0},
    {NULL, NULL, 0},
};

static const struct line receiver_configuration_lines[] = {
    {"Receiver session ID     ", "rcv_session_id", 0}, {"Receiver registration ID", "rcv_regid", 0},
    {"Source registration ID  ", "src_regid", 0},      {"Dmon topic index        ", "dmon_topic_idx", 0},
    {"IP address              ", "ip_addr", 'i'},      {"Port                    ", "port", 0},
    {"Domain ID               ", "domain_id", 0},      {"Transport index         ", "transport_idx", 0},
    {"Topic index             ", "topic_idx", 0},      {NULL, NULL, 0},
};

static const struct line event_lines[] = {
    {"Event type             ", "event_type", 0},
    {"Store index            ", "store_idx", 0},
    {"Timestamp seconds      ", "timestamp_sec", 0},
    {"Timestamp microseconds ", "timestamp_usec", 0},
    {"Lead sequence number   ", "lead_sqn", 0},
    {"Low sequence number    ", "low_sqn", 0},
    {"High sequence number   ", "high_sqn", 0},
    {"Source registration ID ", "src_regid", 0},
    {"Receive registration ID", "rcv_regid", 0},
    {"Deletion reason code   ", "deletion_reason_code", 0},
    {"Topic name             ", "topic_name", 0},
    {"Dmon topic index       ", "dmon_topic_idx", 0},
    {NULL, NULL, 0},
};

static void print_statistics(FILE *out, const Lbmmon__UMPMonMsg__Stats *stats)
{
    fprintf(out, "\tStore statistics:\n");
    ex_mon_lines(out, "\t", stats_lines, stats);
    if (stats->smart_heap_stat != NULL) {
        fprintf(out, "\tSmart Heap statistics:\n");
        ex_mon_lines(out, "\t\t", heap_lines, stats->smart_heap_stat);
    }
    for (size_t i = 0; i < stats->n_src_repo_stats; i++) {
        const Lbmmon__UMPMonMsg__Stats__SrcRepoStat *repository = stats->src_repo_stats[i];
        fprintf(out, "\tRepository statistics:\n");
        ex_mon_lines(out, "\t\t", repository_lines, repository);
        if (repository->src_disk_stat != NULL) {
            fprintf(out, "\tDisk statistics:\n");
            ex_mon_lines(out, "\t\t", disk_lines, repository->src_disk_stat);
        }
        for (size_t n = 0; n < repository->n_rcv_stats; n++) {
            fprintf(out, "\tReceiver %zu statistics:\n", n);
            ex_mon_lines(out, "\t\t", receiver_lines, repository->rcv_stats[n]);
        }
    }
}

static void print_repository_configuration(FILE *out, size_t number,
                                           const Lbmmon__UMPMonMsg__Configs__TopicConfig__RepoConfig *config)
{
    fprintf(out, "\tRepository configuration %zu\n", number);
    ex_mon_lines(out, "\t\t", repository_configuration_lines, config);
    for (size_t i = 0; i < config->n_rcv_configs; i++) {
        fprintf(out, "\tReceiver configuration %zu\n", i);
        ex_mon_lines(out, "\t\t", receiver_configuration_lines, config->rcv_configs[i]);
    }
}

static void print_configuration(FILE *out, const Lbmmon__UMPMonMsg__Configs *configs)
{
    ex_mon_lines(out, "\t", configuration_lines, configs);
    for (size_t i = 0; i < configs->n_pattern_configs; i++) {
        fprintf(out, "\tPattern configuration %zu\n", i);
        ex_mon_lines(out, "\t\t", pattern_lines, configs->pattern_configs[i]);
    }
    for (size_t i = 0; i < configs->n_topic_configs; i++) {
        const Lbmmon__UMPMonMsg__Configs__TopicConfig *topic = configs->topic_configs[i];
        fprintf(out, "\tTopic configuration %zu\n", i);
        ex_mon_lines(out, "\t\t", topic_lines, topic);
        for (size_t n = 0; n < topic->n_repo_configs; n++) {
            print_repository_configuration(out, n, topic->repo_configs[n]);
        }
    }
}

void ex_mon_print_store(FILE *out, const Lbmmon__UMPMonMsg *message)
{
    if (message->stats != NULL) {
        print_statistics(out, message->stats);
    }
    if (message->configs != NULL) {
        print_configuration(out, message->configs);
    }
    for (size_t i = 0; message->events != NULL && i < message->events->n_events; i++) {
        fprintf(out, "\tEvent number: %zu\n", i);
        ex_mon_lines(out, "\t\t", event_lines, message->events->events[i]);
    }
}
