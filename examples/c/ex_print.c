/* Output of the example programs; the formats are the contract with scripts
 * that read them. Callers and threads: see ex_print.h. */
#include "ex_print.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ex_options.h"
#include "ex_verify.h"

char ex_scale_rate(double *value)
{
    static const char letters[] = {' ', 'K', 'M', 'G'};
    size_t i = 0;
    while (*value >= 1000 && i + 1 < sizeof(letters)) {
        *value /= 1000;
        i++;
    }
    return letters[i];
}

void ex_print_source_rate(double seconds, double messages, double bytes)
{
    if (seconds <= 0) {
        return;
    }
    double rate = messages / seconds, bits = bytes * 8 / seconds;
    char rate_letter = ex_scale_rate(&rate), bits_letter = ex_scale_rate(&bits);
    printf("%.04g secs. %.04g %cmsgs/sec. %.04g %cbps\n", seconds, rate, rate_letter, bits, bits_letter);
    fflush(stdout);
}

void ex_print_summary(double seconds, unsigned long messages, unsigned long long bytes)
{
    double per_second = seconds > 0 ? seconds : 1e-9;
    printf("\nTotal time        : %-5.4g sec\n", seconds);
    printf("Messages received : %u\n", (unsigned)messages);
    printf("Bytes received    : %lld\n", (long long)bytes);
    printf("Avg. throughput   : %-5.4g Kmsgs/sec, %-5.4g Mbps\n\n", (double)messages / 1000.0 / per_second,
           (double)bytes * 8 / 1000000.0 / per_second);
    fflush(stdout);
}

void ex_print_source_stats(const lbm_src_transport_stats_t *stats)
{
    switch (stats->type) {
    case LBM_TRANSPORT_STAT_TCP:
        printf("TCP, buffered %lu, clients %lu\n", stats->transport.tcp.bytes_buffered,
               stats->transport.tcp.num_clients);
        break;
    case LBM_TRANSPORT_STAT_LBTRM: {
        const lbm_src_transport_stats_lbtrm_t *s = &stats->transport.lbtrm;
        printf("LBT-RM, sent %lu/%lu, txw %lu/%lu, naks %lu/%lu, ignored %lu/%lu, shed %lu, rxs %lu, rctlr %lu/%lu\n",
               s->msgs_sent, s->bytes_sent, s->txw_msgs, s->txw_bytes, s->naks_rcved, s->nak_pckts_rcved,
               s->naks_ignored, s->naks_rx_delay_ignored, s->naks_shed, s->rxs_sent, s->rctlr_data_msgs,
               s->rctlr_rx_msgs);
        break;
    }
    case LBM_TRANSPORT_STAT_LBTRU: {
        const lbm_src_transport_stats_lbtru_t *s = &stats->transport.lbtru;
        printf("LBT-RU, clients %lu, sent %lu/%lu, naks %lu/%lu, ignored %lu/%lu, shed %lu, rxs %lu\n", s->num_clients,
               s->msgs_sent, s->bytes_sent, s->naks_rcved, s->nak_pckts_rcved, s->naks_ignored,
               s->naks_rx_delay_ignored, s->naks_shed, s->rxs_sent);
        break;
    }
    case LBM_TRANSPORT_STAT_LBTIPC:
        printf("LBT-IPC, clients %lu, sent %lu/%lu\n", stats->transport.lbtipc.num_clients,
               stats->transport.lbtipc.msgs_sent, stats->transport.lbtipc.bytes_sent);
        break;
    case LBM_TRANSPORT_STAT_LBTSMX:
        printf("LBT-SMX, clients %lu, sent %lu/%lu\n", stats->transport.lbtsmx.num_clients,
               stats->transport.lbtsmx.msgs_sent, stats->transport.lbtsmx.bytes_sent);
        break;
    default:
        printf("transport %d\n", stats->type);
        break;
    }
    fflush(stdout);
}

/* The NAK-based transports share their counters' names, not their types. */
struct ex_nak_stats {
    unsigned long msgs, bytes, dups, lost, txw, tmo, naks, nak_packets, ignored, shed, rx_delay, unknown;
    unsigned long stm_min, stm_mean, stm_max, tx_min, tx_mean, tx_max, lbm, no_topic, requests;
};

#define EX_COPY_NAK_STATS(from)                                                                                        \
    {                                                                                                                  \
        (from).msgs_rcved, (from).bytes_rcved, (from).duplicate_data, (from).lost, (from).unrecovered_txw,             \
            (from).unrecovered_tmo, (from).naks_sent, (from).nak_pckts_sent, (from).ncfs_ignored, (from).ncfs_shed,    \
            (from).ncfs_rx_delay, (from).ncfs_unknown, (from).nak_stm_min, (from).nak_stm_mean, (from).nak_stm_max,    \
            (from).nak_tx_min, (from).nak_tx_mean, (from).nak_tx_max, (from).lbm_msgs_rcved,                           \
            (from).lbm_msgs_no_topic_rcved, (from).lbm_reqs_rcved                                                      \
    }

static void ex_print_nak_long(const char *source, const struct ex_nak_stats *s)
{
    char recovery[96] = "", per_nak[96] = "";
    if (s->tx_max > 0) {
        snprintf(recovery, sizeof(recovery), "Recovery time: %lu min/%lu mean/%lu max. ", s->stm_min, s->stm_mean,
                 s->stm_max);
        snprintf(per_nak, sizeof(per_nak), "Tx per NAK: %lu min/%lu mean/%lu max. ", s->tx_min, s->tx_mean, s->tx_max);
    }
    printf(" [%s] Received %lu msgs/%lu bytes/%lu dups/%lu lost. Unrecovered: %lu (window advance) + %lu (timeout). "
           "%sNAKs: %lu (%lu packets). ",
           source, s->msgs, s->bytes, s->dups, s->lost, s->txw, s->tmo, recovery, s->naks, s->nak_packets);
    printf("%sNCFs: %lu ignored/%lu shed/%lu rx delay/%lu unknown. %lu LBM msgs, %lu no topics, %lu requests.\n",
           per_nak, s->ignored, s->shed, s->rx_delay, s->unknown, s->lbm, s->no_topic, s->requests);
}

static void ex_print_nak_short(const char *source, const struct ex_nak_stats *s, bool unicast)
{
    char lbm[80] = "", recovery[80] = "", per_nak[80] = "";
    if (unicast) {
        snprintf(lbm, sizeof(lbm), " LBM %lu/%lu/%lu,", s->lbm, s->no_topic, s->requests);
    }
    if (s->tx_max > 0) {
        snprintf(recovery, sizeof(recovery), ", nak stm %lu/%lu/%lu", s->stm_min, s->stm_mean, s->stm_max);
        snprintf(per_nak, sizeof(per_nak), ", nak tx %lu/%lu/%lu", s->tx_min, s->tx_mean, s->tx_max);
    }
    printf(" [%s],%s received %lu/%lu, dups %lu, loss %lu, naks %lu/%lu, ncfs %lu-%lu-%lu-%lu, unrec %lu/%lu%s%s\n",
           source, lbm, s->msgs, s->bytes, s->dups, s->lost, s->naks, s->nak_packets, s->ignored, s->shed, s->rx_delay,
           s->unknown, s->txw, s->tmo, recovery, per_nak);
}

static void ex_print_memory_stats(const lbm_rcv_transport_stats_t *stats)
{
    if (stats->type == LBM_TRANSPORT_STAT_LBTSMX) {
        const lbm_rcv_transport_stats_lbtsmx_t *s = &stats->transport.lbtsmx;
        printf(" [%s] Received %lu msgs/%lu bytes. %lu LBM msgs, %lu no topics.\n", stats->source, s->msgs_rcved,
               s->bytes_rcved, s->lbm_msgs_rcved, s->lbm_msgs_no_topic_rcved);
        return;
    }
    const lbm_rcv_transport_stats_lbtipc_t *s = &stats->transport.lbtipc;
    printf(" [%s] Received %lu msgs/%lu bytes. %lu LBM msgs, %lu no topics, %lu requests.\n", stats->source,
           s->msgs_rcved, s->bytes_rcved, s->lbm_msgs_rcved, s->lbm_msgs_no_topic_rcved, s->lbm_reqs_rcved);
}

static bool ex_nak_stats_of(const lbm_rcv_transport_stats_t *stats, struct ex_nak_stats *out)
{
    if (stats->type == LBM_TRANSPORT_STAT_LBTRM) {
        *out = (struct ex_nak_stats)EX_COPY_NAK_STATS(stats->transport.lbtrm);
        return true;
    }
    if (stats->type == LBM_TRANSPORT_STAT_LBTRU) {
        *out = (struct ex_nak_stats)EX_COPY_NAK_STATS(stats->transport.lbtru);
        return true;
    }
    return false;
}

void ex_print_receiver_stats_long(const lbm_rcv_transport_stats_t *stats)
{
    struct ex_nak_stats nak;
    const lbm_rcv_transport_stats_tcp_t *tcp = &stats->transport.tcp;
    if (ex_nak_stats_of(stats, &nak)) {
        ex_print_nak_long(stats->source, &nak);
    } else if (stats->type == LBM_TRANSPORT_STAT_TCP) {
        printf(" [%s] received %lu msgs/%lu bytes, %lu no topics, %lu requests\n", stats->source, tcp->lbm_msgs_rcved,
               tcp->bytes_rcved, tcp->lbm_msgs_no_topic_rcved, tcp->lbm_reqs_rcved);
    } else {
        ex_print_memory_stats(stats);
    }
    fflush(stdout);
}

void ex_print_receiver_stats_short(const lbm_rcv_transport_stats_t *stats)
{
    struct ex_nak_stats nak;
    const lbm_rcv_transport_stats_tcp_t *tcp = &stats->transport.tcp;
    if (ex_nak_stats_of(stats, &nak)) {
        ex_print_nak_short(stats->source, &nak, stats->type == LBM_TRANSPORT_STAT_LBTRU);
    } else if (stats->type == LBM_TRANSPORT_STAT_TCP) {
        printf(" [%s], received %lu, LBM %lu/%lu/%lu\n", stats->source, tcp->bytes_rcved, tcp->lbm_msgs_rcved,
               tcp->lbm_msgs_no_topic_rcved, tcp->lbm_reqs_rcved);
    } else {
        ex_print_memory_stats(stats);
    }
    fflush(stdout);
}

unsigned long ex_lost_packets(const lbm_rcv_transport_stats_t *stats)
{
    struct ex_nak_stats nak;
    return ex_nak_stats_of(stats, &nak) ? nak.lost : 0;
}

void ex_dump(const char *data, size_t length)
{
    /* One row more than needed when the length is a multiple of 16: that is the format. */
    for (size_t row = 0; row <= length; row += 16) {
        char text[17];
        memset(text, ' ', 16);
        text[16] = '\0';
        for (size_t column = 0; column < 16; column++) {
            if (row + column >= length) {
                fputs("   ", stdout);
                continue;
            }
            unsigned char byte = (unsigned char)data[row + column];
            printf("%02x ", byte);
            text[column] = byte >= 0x20 && byte <= 0x7e ? (char)byte : '.';
        }
        printf("\t%s\n", text);
    }
}

static void ex_print_property(const lbm_msg_properties_iter_t *it)
{
    printf("name[%s] type[%d] size[%lu]", it->name, it->type, (unsigned long)it->size);
    switch (it->type) {
    case LBM_MSG_PROPERTY_BOOLEAN:
        printf(" data[%s]\n", *it->data ? "true" : "false");
        break;
    case LBM_MSG_PROPERTY_BYTE:
        printf(" data[%" PRId8 "]\n", *(int8_t *)it->data);
        break;
    case LBM_MSG_PROPERTY_SHORT:
        printf(" data[%" PRId16 "]\n", *(int16_t *)it->data);
        break;
    case LBM_MSG_PROPERTY_INT:
        printf(" data[%" PRId32 "]\n", *(int32_t *)it->data);
        break;
    case LBM_MSG_PROPERTY_LONG:
        printf(" data[%" PRId64 "]\n", *(int64_t *)it->data);
        break;
    case LBM_MSG_PROPERTY_FLOAT:
        printf(" data[%f]\n", (double)*(float *)it->data);
        break;
    case LBM_MSG_PROPERTY_DOUBLE:
        printf(" data[%f]\n", *(double *)it->data);
        break;
    case LBM_MSG_PROPERTY_STRING:
        printf(" data[%s]\n", it->data);
        break;
    default:
        printf(" INVALID TYPE\n");
        break;
    }
}

static void ex_print_properties(lbm_msg_properties_t *properties)
{
    lbm_msg_properties_iter_t *it;
    if (properties == NULL || lbm_msg_properties_iter_create(&it) == LBM_FAILURE) {
        return;
    }
    if (lbm_msg_properties_iter_first(it, properties) != LBM_FAILURE) {
        do {
            ex_print_property(it);
        } while (lbm_msg_properties_iter_next(it) != LBM_FAILURE);
    }
    lbm_msg_properties_iter_delete(it);
}

int ex_on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    switch (event) {
    case LBM_SRC_EVENT_CONNECT:
        printf("Receiver connect [%s]\n", (const char *)ed);
        break;
    case LBM_SRC_EVENT_DISCONNECT:
        printf("Receiver disconnect [%s]\n", (const char *)ed);
        break;
    case LBM_SRC_EVENT_WAKEUP:
        if (clientd != NULL) {
            atomic_store((atomic_int *)clientd, 0);
        }
        break;
    case LBM_SRC_EVENT_TIMESTAMP:
    case LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO:
        break;
    default:
        printf("Unhandled source event [%d].\n", event);
        break;
    }
    fflush(stdout);
    return 0;
}

/* The number of a message as its program shows it. */
static uint64_t ex_number_of(const struct ex_receive *receive, const lbm_msg_t *msg)
{
    bool wide = receive->style == EX_STYLE_WILDCARD && (msg->flags & LBM_MSG_FLAG_HF_64);
    return wide ? msg->hf_sequence_number.u64 : msg->sequence_number;
}

static void ex_print_flags(const struct ex_receive *receive, const lbm_msg_t *msg)
{
    int flags = msg->flags;
    switch (receive->style) {
    case EX_STYLE_FULL:
        printf("%s%s%s%s", flags & LBM_MSG_FLAG_RETRANSMIT ? "-RX-" : "",
               flags & LBM_MSG_FLAG_HF_DUPLICATE ? "-HFDUP-" : "", flags & LBM_MSG_FLAG_HF_PASS_THROUGH ? "-PASS-" : "",
               flags & LBM_MSG_FLAG_OTR ? "-OTR-" : "");
        break;
    case EX_STYLE_SHORT:
        printf("%s%s", flags & LBM_MSG_FLAG_RETRANSMIT ? "-RX-" : "", flags & LBM_MSG_FLAG_OTR ? "-OTR-" : "");
        break;
    case EX_STYLE_FAILOVER:
        printf("%s%s%s%s", flags & LBM_MSG_FLAG_RETRANSMIT ? "-RX-" : "", flags & LBM_MSG_FLAG_OTR ? "-OTR-" : "",
               flags & LBM_MSG_FLAG_HF_DUPLICATE ? "-HFDUP-" : "",
               flags & LBM_MSG_FLAG_HF_PASS_THROUGH ? "-PASS-" : "");
        break;
    case EX_STYLE_WILDCARD:
        printf("%s%s%s%s%s%s%s", flags & LBM_MSG_FLAG_RETRANSMIT ? "-RX" : "", flags & LBM_MSG_FLAG_OTR ? "-OTR" : "",
               flags & LBM_MSG_FLAG_HF_64 ? "-HF64" : "", flags & LBM_MSG_FLAG_HF_32 ? "-HF32" : "",
               flags & LBM_MSG_FLAG_HF_DUPLICATE ? "-HFDUP" : "", flags & LBM_MSG_FLAG_HF_PASS_THROUGH ? "-PASS" : "",
               flags & LBM_MSG_FLAG_HF_OPTIONAL ? "-HFOPT" : "");
        break;
    }
}

static void ex_print_data_line(const struct ex_receive *receive, const lbm_msg_t *msg)
{
    if (msg->hr_timestamp.tv_sec != 0 || msg->hr_timestamp.tv_nsec != 0) {
        printf("HR[@%ld.%09ld]", (long)msg->hr_timestamp.tv_sec, (long)msg->hr_timestamp.tv_nsec);
    }
    if (msg->tsp.tv_sec != 0) {
        printf("[@%ld.%06ld]", (long)msg->tsp.tv_sec, (long)msg->tsp.tv_usec);
    }
    bool shows_channel = receive->style == EX_STYLE_FULL || receive->style == EX_STYLE_WILDCARD;
    if (shows_channel && msg->channel_info != NULL) {
        printf("[%s:%u][%s][%" PRIu64 "]", msg->topic_name, msg->channel_info->channel_number, msg->source,
               ex_number_of(receive, msg));
    } else {
        printf("[%s][%s][%" PRIu64 "]", msg->topic_name, msg->source, ex_number_of(receive, msg));
    }
    if (receive->style != EX_STYLE_WILDCARD || msg->channel_info == NULL) { /* lbmwrcv shows one or the other */
        ex_print_flags(receive, msg);
    }
    printf(", %lu bytes\n", (unsigned long)msg->len);
    if (receive->verbose > 1) {
        ex_dump(msg->data, msg->len);
        ex_print_properties(msg->properties);
    }
}

static void ex_verify_message(const struct ex_receive *receive, const lbm_msg_t *msg)
{
    static const char *const formats[] = {
        [EX_VERIFY_HEX] = "%" PRIx64, [EX_VERIFY_0X] = "0x%" PRIx64, [EX_VERIFY_DECIMAL] = "%" PRIu64};
    char number[24];
    snprintf(number, sizeof(number), formats[receive->verify_number], ex_number_of(receive, msg));
    switch (ex_verify_check(msg->data, msg->len, receive->verbose)) {
    case EX_GOOD:
        if (receive->verbose) {
            printf("Message sqn %s verifies\n", number);
        }
        break;
    case EX_BAD:
        printf("Message sqn %s does not verify!\n", number);
        break;
    case EX_NOT_VERIFIABLE:
        fprintf(stderr, "Message sqn %s is not a verifiable message.\n", number);
        break;
    }
}

static void ex_count_message(struct ex_receive *receive, const lbm_msg_t *msg)
{
    double now = ex_now();
    double never = 0;
    atomic_compare_exchange_strong(&receive->first, &never, now);
    atomic_store(&receive->last, now);
    receive->messages++;
    receive->bytes += msg->len;
    receive->total_messages++;
    receive->total_bytes += msg->len;
    if (msg->flags & LBM_MSG_FLAG_OTR) {
        receive->off_transport++;
    } else if (msg->flags & LBM_MSG_FLAG_RETRANSMIT) {
        receive->repaired++;
    }
}

static void ex_check_order(struct ex_receive *receive, const lbm_msg_t *msg)
{
    lbm_uint_t expected = (lbm_uint_t)receive->next_number;
    if (receive->number_known && msg->sequence_number != expected) {
        printf("*** Warning - misordered seq num %d %d\n", (int)expected, (int)msg->sequence_number);
    }
    receive->next_number = (unsigned long)(lbm_uint_t)(msg->sequence_number + 1);
    receive->number_known = true;
}

static void ex_stop_when_enough(struct ex_receive *receive)
{
    if (receive->stop_after != 0 && receive->total_messages >= receive->stop_after) {
        if (receive->done_text != NULL) {
            printf("Quitting.... received %u messages%s\n", (unsigned)receive->total_messages, receive->done_text);
        }
        receive->done = 1;
    }
}

static void ex_on_data(struct ex_receive *receive, const lbm_msg_t *msg)
{
    if (receive->stop_after != 0 && receive->total_messages >= receive->stop_after) {
        return; /* counted as done; what still arrives is not part of the run */
    }
    ex_count_message(receive, msg);
    if (receive->ascii) {
        fwrite(msg->data, 1, msg->len, stdout);
        if (receive->ascii > 1) {
            putchar('\n');
        }
    } else if (receive->verbose) {
        ex_print_data_line(receive, msg);
    }
    if (receive->order_checks) {
        ex_check_order(receive, msg);
    }
    if (receive->verify) {
        ex_verify_message(receive, msg);
    }
    ex_stop_when_enough(receive);
}

static void ex_on_loss(struct ex_receive *receive)
{
    receive->unrecovered++;
    unsigned long lost = ++receive->total_unrecovered, got = receive->total_messages;
    if (receive->loss_percent > 0 && got > 0 && 100 * lost / got >= (unsigned long)receive->loss_percent &&
        !receive->done) {
        printf("Quitting.... %d msgs unrecovered, %d msgs received (losslev %d%%)\n", (int)lost, (int)got,
               receive->loss_percent);
        receive->done = 1;
    }
}

static void ex_on_event(struct ex_receive *receive, const lbm_msg_t *msg)
{
    switch (msg->type) {
    case LBM_MSG_DATA:
        ex_on_data(receive, msg);
        return; /* data lines are left to stdio's buffer: this is the fast path */
    case LBM_MSG_REQUEST:
        ex_count_message(receive, msg);
        printf("[%s][%s][%u], Request\n", msg->topic_name, msg->source, msg->sequence_number);
        ex_stop_when_enough(receive);
        break;
    case LBM_MSG_BOS:
        if (receive->announce_topics) {
            printf("new topic [%s], source [%s]\n", msg->topic_name, msg->source);
        }
        printf("[%s][%s], Beginning of Transport Session\n", msg->topic_name, msg->source);
        break;
    case LBM_MSG_EOS:
        printf("[%s][%s], End of Transport Session\n", msg->topic_name, msg->source);
        receive->number_known = false;
        if (receive->stop_at_eos) {
            receive->done = 1;
        }
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        if (receive->verbose) {
            printf("[%s][%s][%" PRIu64 "], LOST\n", msg->topic_name, msg->source, ex_number_of(receive, msg));
        }
        ex_on_loss(receive);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        receive->bursts++;
        receive->total_bursts++;
        printf("[%s][%s][%" PRIu64 "], %s\n", msg->topic_name, msg->source, ex_number_of(receive, msg),
               receive->burst_word);
        break;
    case LBM_MSG_NO_SOURCE_NOTIFICATION:
        printf("[%s], no sources found for topic\n", msg->topic_name);
        break;
    case LBM_MSG_HF_RESET:
        printf("[%s][%s][%" PRIu64 "]%s%s%s%s-RESET\n", msg->topic_name, msg->source,
               msg->flags & LBM_MSG_FLAG_HF_64 ? (uint64_t)msg->hf_sequence_number.u64 : msg->hf_sequence_number.u32,
               msg->flags & LBM_MSG_FLAG_RETRANSMIT ? "-RX" : "", msg->flags & LBM_MSG_FLAG_OTR ? "-OTR" : "",
               msg->flags & LBM_MSG_FLAG_HF_64 ? "-HF64" : "", msg->flags & LBM_MSG_FLAG_HF_32 ? "-HF32" : "");
        break;
    default:
        printf("Unhandled receiver event [%d] from source [%s] with topic [%s].\n", msg->type, msg->source,
               msg->topic_name);
        break;
    }
    fflush(stdout);
}

int ex_on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    flockfile(stdout); /* a line made of several pieces stays whole */
    struct ex_receive *receive = clientd;
    bool pauses = receive->pause_ms > 0 && msg->type == LBM_MSG_DATA && !receive->done;
    ex_on_event(receive, msg);
    if (pauses) {
        fflush(stdout);
    }
    funlockfile(stdout);
    if (pauses) {
        ex_sleep_ms(receive->pause_ms);
    }
    return 0;
}

static void ex_on_immediate_event(struct ex_receive *receive, const lbm_msg_t *msg)
{
    if (msg->type != LBM_MSG_DATA && msg->type != LBM_MSG_REQUEST) {
        printf("Unhandled receiver event [%d] for immediate_msg from source [%s].\n", msg->type, msg->source);
        fflush(stdout);
        return;
    }
    ex_count_message(receive, msg);
    if (receive->verbose > 0) {
        printf("IM%s [%s][%u], %lu bytes\n", msg->type == LBM_MSG_REQUEST ? " Request" : "", msg->source,
               msg->sequence_number, (unsigned long)msg->len);
        if (receive->verbose > 1) {
            ex_dump(msg->data, msg->len);
        }
    }
    ex_stop_when_enough(receive);
    fflush(stdout);
}

int ex_on_immediate(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    flockfile(stdout);
    ex_on_immediate_event(clientd, msg);
    funlockfile(stdout);
    return 0;
}

void ex_print_interval(struct ex_receive *receive, double seconds, const char *first_format, const char *burst_label,
                       unsigned long lost)
{
    unsigned long messages = atomic_exchange(&receive->messages, 0), bytes = atomic_exchange(&receive->bytes, 0);
    unsigned long repaired = atomic_exchange(&receive->repaired, 0),
                  other = atomic_exchange(&receive->off_transport, 0);
    unsigned long unrecovered = atomic_exchange(&receive->unrecovered, 0),
                  bursts = atomic_exchange(&receive->bursts, 0);
    if (seconds <= 0) {
        return;
    }
    double rate = (double)messages / seconds, bits = (double)bytes * 8 / seconds;
    char rate_letter = ex_scale_rate(&rate), bits_letter = ex_scale_rate(&bits);
    flockfile(stdout);
    printf(repaired || other ? "%-6.4g secs.  " : first_format, seconds);
    printf("%-5.4g %cmsgs/sec.  %-5.4g %cbps", rate, rate_letter, bits, bits_letter);
    if (repaired || other) {
        printf(" [RX: %d][OTR: %d]", (int)repaired, (int)other);
    }
    if (lost || unrecovered || bursts) {
        printf(" [%lu pkts lost, %u msgs unrecovered, %d %s]", lost, (unsigned)unrecovered, (int)bursts, burst_label);
    }
    putchar('\n');
    fflush(stdout);
    funlockfile(stdout);
}

int ex_on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    struct ex_responses *responses = clientd;
    (void)req;
    if (msg->type != LBM_MSG_RESPONSE) {
        printf("Unknown message type %d from [%s]\n", msg->type, msg->source);
        return 0;
    }
    atomic_fetch_add(&responses->count, 1);
    atomic_fetch_add(&responses->bytes, msg->len);
    if (responses->verbose > 0) {
        printf("Response [%s][%u], %lu bytes\n", msg->source, msg->sequence_number, (unsigned long)msg->len);
        if (responses->verbose > 1) {
            ex_dump(msg->data, msg->len);
        }
        fflush(stdout);
    }
    return 0;
}

void ex_print_immediate_target(lbm_context_t *ctx)
{
    char bind[256], port[256], address[256];
    size_t bind_len = sizeof(bind), port_len = sizeof(port), address_len = sizeof(address);
    EX_TRY(lbm_context_str_getopt, ctx, "request_tcp_bind_request_port", bind, &bind_len);
    EX_TRY(lbm_context_str_getopt, ctx, "request_tcp_port", port, &port_len);
    EX_TRY(lbm_context_str_getopt, ctx, "request_tcp_interface", address, &address_len);
    if (strcmp(bind, "0") == 0) {
        printf("Request port binding disabled, no immediate messaging target.\n");
    } else {
        address[strcspn(address, "/")] = '\0';
        printf("Immediate messaging target: TCP:%s:%s\n", address, port);
    }
    fflush(stdout);
}
