/* lbmmondata: monitoring records as CSV on the standard output, counters in decimal. A line
 * of titles stands before each run of records of one kind. At the end it tells on the
 * standard error how many came. The receive controller's thread prints. */
#include <stdlib.h>
#include <string.h>

#include "ex_mon_csv.h"
#include "ex_options.h"

static const char *topic;

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'t', "topic", EX_TEXT, &topic, "TOPIC", "topic of the statistics (/29west/statistics)"},
    EX_END,
};

static const struct ex_program program = {"Writes monitoring records as CSV.", "", 0, options};

#define NAKS_SENT "\"NAK Packets Sent\",\"NAKs Sent\","
#define NCFS                                                                                                           \
    "\"NCFs Received: Ignored\",\"NCFs Received: Shed\",\"NCFs Received: Retransmit Delay\",\"NCFs Received: "         \
    "Unknown\","                                                                                                       \
    "\"Minimum Loss Recovery Time\",\"Mean Loss Recovery Time\",\"Maximum Loss Recovery Time\","                       \
    "\"Minimum Transmissions per NAK\",\"Mean Transmissions per NAK\",\"Maximum Transmissions per NAK\","
#define UNRECOVERABLE "\"Unrecoverable Messages: Window Advance\",\"Unrecoverable Messages: NAK Generation Expired\","
#define LBM_RECEIVED                                                                                                   \
    "\"LBM Messages Received\",\"LBM Messages Received with Uninteresting Topic\",\"Requests Received\","
#define DROPPED                                                                                                        \
    "\"Datagrams Dropped (Size)\",\"Datagrams Dropped (Type)\",\"Datagrams Dropped (Version)\","                       \
    "\"Datagrams Dropped (Header)\","
#define NAKS_RECEIVED                                                                                                  \
    "\"NAK Packets Received\",\"NAKs Received\",\"NAKs Ignored\",\"NAKs Shed\","                                       \
    "\"NAKs Ignored due to Retransmit Delay\",\"Retransmission Datagrams Sent\","
#define CLIENTS "\"Clients\",\"Messages Sent\",\"Bytes Sent\""
#define RECEIVED(interest)                                                                                             \
    "\"Messages Received\",\"Bytes Received\",\"LBM Messages Received\",\"Messages Received with " interest            \
    " Topic\",\"Requests Received\""
#define ENQUEUED(what, titled, served)                                                                                 \
    "\"" titled " enqueued\",\"Total " what " enqueued\",\"" served " service minimum time\",\"" served                \
    " service mean time\",\"" served " service maximum time\","

#define RM_SOURCE                                                                                                      \
    "\"Messages Sent\",\"Bytes Sent\",\"Messages in Transmission Window\",\"Bytes in Transmission "                    \
    "Window\"," NAKS_RECEIVED                                                                                          \
    "\"Data Messages Queued by Rate Control\",\"Retransmission Messages Queued by Rate Control\","                     \
    "\"Retransmission Bytes Sent\""
#define RM_RECEIVER                                                                                                    \
    "\"LBT-RM Datagrams Received\",\"LBT-RM Bytes Received\"," NAKS_SENT "\"Lost Messages\"," NCFS                     \
    "\"Duplicate Datagrams Received\"," UNRECOVERABLE LBM_RECEIVED DROPPED                                             \
    "\"Datagrams Dropped (Other)\",\"Datagrams Received Out Of Order\""

/* By ex_mon_csv_kind(). */
static const char *const titles[19] = {
    [1] = "\"Clients\",\"Bytes Buffered\"",
    [2] = "\"Bytes Received\",\"Messages Received\",\"Messages Received with No Topic\",\"Requests Received\"",
    [3] = RM_SOURCE,
    [4] = RM_RECEIVER,
    [5] = "\"Messages Sent\",\"Bytes Sent\"," NAKS_RECEIVED "\"Clients\",\"Retransmission Bytes Sent\"",
    [6] = "\"LBT-RU Datagrams Received\",\"LBT-RU Bytes Received\"," NAKS_SENT "\"Lost Datagrams\"," NCFS
          "\"Duplicate Datagrams Received\"," UNRECOVERABLE LBM_RECEIVED DROPPED
          "\"Datagrams Dropped (SID)\",\"Datagrams Dropped (Other)\"",
    [7] = ENQUEUED("data messages", "Data messages", "Data message") ENQUEUED(
        "responses", "Responses",
        "Request") ENQUEUED("topicless immediate messages", "Topicless immediate messages",
                            "Topicless immediate message") ENQUEUED("wildcard messages", "Wildcard messages",
                                                                    "Wildcard message") ENQUEUED("I/O events",
                                                                                                 "I/O events",
                                                                                                 "I/O event")
        ENQUEUED("timer events", "Timer events", "Timer event") ENQUEUED(
            "source events", "Source events",
            "Source event") "\"Unblock events enqueued\",\"Total unblock events enqueued\"," ENQUEUED("cancel events",
                                                                                                      "Cancel events",
                                                                                                      "Cancel event")
            ENQUEUED("context source events", "Context source events",
                     "Context source event") "\"Events enqueued\",\"Total events enqueued\",\"Event latency minimum "
                                             "time\",\"Event latency mean time\","
                                             "\"Event latency maximum time\"",
    [8] = "\"Topic resolution datagrams sent\",\"Topic resolution bytes sent\",\"Topic resolution datagrams received\","
          "\"Topic resolution bytes received\",\"Topic resolution datagrams dropped (version)\","
          "\"Topic resolution datagrams dropped (type)\",\"Topic resolution datagrams dropped (malformed)\","
          "\"Topic resolution datagram send failures\",\"Source topics\",\"Receive topics\","
          "\"Unresolved receive topics\",\"Unknown LBT-RM datagrams received\",\"Unknown LBT-RU datagrams received\","
          "\"Message sends which blocked\",\"Message sends which would block\",\"Response sends which blocked\","
          "\"Response sends which would block\",\"Duplicate UIM messages received\","
          "\"UIM messages received without stream\"",
    [9] = RM_SOURCE,
    [10] = RM_RECEIVER,
    [11] = CLIENTS,
    [12] = RECEIVED("Uninteresting"),
    [13] = CLIENTS,
    [14] = RECEIVED("No"),
    [15] = CLIENTS,
    [16] = RECEIVED("No"),
    [17] = "\"Messages Sent\",\"Bytes Sent\"",
    [18] = "\"Messages Received\",\"Bytes Received\"",
};

static unsigned counts[19]; /* written by the controller's thread, read when it has ended */

static void on_record(const struct ex_mon_record *record, void *clientd)
{
    static int before;
    int kind = ex_mon_csv_kind(record);
    if (kind == 0) {
        return;
    }
    counts[kind]++;
    if (kind != before) {
        printf("\"Timestamp\",\"Address\",\"ApplicationID\",\"Source\",%s\n", titles[kind]);
        before = kind;
    }
    ex_mon_csv_about(stdout, record);
    ex_mon_csv_counters(stdout, record, false);
    fflush(stdout);
}

static void print_counts(void)
{
    static const char *const whose[] = {"Source", "Receiver"};
    for (int n = 0; n < 2; n++) {
        fprintf(stderr,
                "%s stats received... TCP: %u, LBTRU: %u, LBTRM: %u, LBTIPC: %u, LBTSMX: %u, LBTRDMA: %u BROKER: %u\n",
                whose[n], counts[1 + n], counts[5 + n], counts[3 + n], counts[11 + n], counts[15 + n], counts[13 + n],
                counts[17 + n]);
    }
    fprintf(stderr, "Event queue stats received: %u\nContext stats received: %u\n", counts[7], counts[8]);
    fprintf(stderr, "Context IM source stats received... LBTRM: %u\n", counts[9]);
    fprintf(stderr, "Context IM receiver stats received... LBTRM: %u\n", counts[10]);
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    sigset_t ends = ex_mon_ends();
    char transport[300] = "";
    if (topic != NULL) {
        snprintf(transport, sizeof(transport), "topic=%s", topic);
    }
    const struct ex_mon_options receive = {.transport_opts = transport};
    lbmmon_rctl_t *controller = ex_mon_start(&receive, on_record, NULL);
    int signal;
    sigwait(&ends, &signal);
    if (lbmmon_rctl_destroy(controller) != 0) {
        ex_mon_fail("lbmmon_rctl_destroy");
    }
    print_counts();
    return 0;
}
