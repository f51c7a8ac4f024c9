/* The labels under which the counters of monitoring records are shown: one table for each
 * kind and transport, in the order of the lines. Constant. */
#include <stddef.h>

#include "ex_mon.h"

static const struct ex_mon_label receiver_tcp_labels[] = {
    {"LBT-TCP bytes received                                    ", ""},
    {"LBM messages received                                     ", ""},
    {"LBM messages received with uninteresting topic            ", ""},
    {"LBM requests received                                     ", ""},
};

static const struct ex_mon_label receiver_lbtrm_labels[] = {
    {"LBT-RM datagrams received                                 ", ""},
    {"LBT-RM datagram bytes received                            ", ""},
    {"LBT-RM NAK packets sent                                   ", ""},
    {"LBT-RM NAKs sent                                          ", ""},
    {"Lost LBT-RM datagrams detected                            ", ""},
    {"NCFs received (ignored)                                   ", ""},
    {"NCFs received (shed)                                      ", ""},
    {"NCFs received (retransmit delay)                          ", ""},
    {"NCFs received (unknown)                                   ", ""},
    {"Loss recovery minimum time                                ", "ms"},
    {"Loss recovery mean time                                   ", "ms"},
    {"Loss recovery maximum time                                ", "ms"},
    {"Minimum transmissions per individual NAK                  ", ""},
    {"Mean transmissions per individual NAK                     ", ""},
    {"Maximum transmissions per individual NAK                  ", ""},
    {"Duplicate LBT-RM datagrams received                       ", ""},
    {"LBT-RM datagrams unrecoverable (window advance)           ", ""},
    {"LBT-RM datagrams unrecoverable (NAK generation expiration)", ""},
    {"LBT-RM LBM messages received                              ", ""},
    {"LBT-RM LBM messages received with uninteresting topic     ", ""},
    {"LBT-RM LBM requests received                              ", ""},
    {"LBT-RM datagrams dropped (size)                           ", ""},
    {"LBT-RM datagrams dropped (type)                           ", ""},
    {"LBT-RM datagrams dropped (version)                        ", ""},
    {"LBT-RM datagrams dropped (hdr)                            ", ""},
    {"LBT-RM datagrams dropped (other)                          ", ""},
    {"LBT-RM datagrams received out of order                    ", ""},
};

static const struct ex_mon_label receiver_lbtru_labels[] = {
    {"LBT-RU datagrams received                                 ", ""},
    {"LBT-RU datagram bytes received                            ", ""},
    {"LBT-RU NAK packets sent                                   ", ""},
    {"LBT-RU NAKs sent                                          ", ""},
    {"Lost LBT-RU datagrams detected                            ", ""},
    {"NCFs received (ignored)                                   ", ""},
    {"NCFs received (shed)                                      ", ""},
    {"NCFs received (retransmit delay)                          ", ""},
    {"NCFs received (unknown)                                   ", ""},
    {"Loss recovery minimum time                                ", "ms"},
    {"Loss recovery mean time                                   ", "ms"},
    {"Loss recovery maximum time                                ", "ms"},
    {"Minimum transmissions per individual NAK                  ", ""},
    {"Mean transmissions per individual NAK                     ", ""},
    {"Maximum transmissions per individual NAK                  ", ""},
    {"Duplicate LBT-RU datagrams received                       ", ""},
    {"LBT-RU datagrams unrecoverable (window advance)           ", ""},
    {"LBT-RU datagrams unrecoverable (NAK generation expiration)", ""},
    {"LBT-RU LBM messages received                              ", ""},
    {"LBT-RU LBM messages received with uninteresting topic     ", ""},
    {"LBT-RU LBM requests received                              ", ""},
    {"LBT-RU datagrams dropped (size)                           ", ""},
    {"LBT-RU datagrams dropped (type)                           ", ""},
    {"LBT-RU datagrams dropped (version)                        ", ""},
    {"LBT-RU datagrams dropped (hdr)                            ", ""},
    {"LBT-RU datagrams dropped (SID)                            ", ""},
    {"LBT-RU datagrams dropped (other)                          ", ""},
};

static const struct ex_mon_label receiver_lbtipc_labels[] = {
    {"LBT-IPC datagrams received                                ", ""},
    {"LBT-IPC datagram bytes received                           ", ""},
    {"LBT-IPC LBM messages received                             ", ""},
    {"LBT-IPC LBM messages received with uninteresting topic    ", ""},
    {"LBT-IPC LBM requests received                             ", ""},
};

static const struct ex_mon_label receiver_lbtsmx_labels[] = {
    {"LBT-SMX datagrams received                                ", ""},
    {"LBT-SMX datagram bytes received                           ", ""},
    {"LBT-SMX LBM messages received                             ", ""},
    {"LBT-SMX LBM messages received with uninteresting topic    ", ""},
};

static const struct ex_mon_label receiver_lbtrdma_labels[] = {
    {"LBT-RDMA datagrams received              ", ""}, {"LBT-RDMA datagram bytes received         ", ""},
    {"LBT-RDMA LBM messages received           ", ""}, {"LBT-RDMA LBM messages received (no topic)", ""},
    {"LBT-RDMA LBM requests received           ", ""},
};

static const struct ex_mon_label receiver_broker_labels[] = {
    {"BROKER messages received              ", ""},
    {"BROKER bytes received                 ", ""},
};

static const struct ex_mon_label source_tcp_labels[] = {
    {"Clients       ", ""},
    {"Bytes buffered", ""},
};

static const struct ex_mon_label source_lbtrm_labels[] = {
    {"LBT-RM datagrams sent                                 ", ""},
    {"LBT-RM datagram bytes sent                            ", ""},
    {"LBT-RM datagrams in transmission window               ", ""},
    {"LBT-RM datagram bytes in transmission window          ", ""},
    {"LBT-RM NAK packets received                           ", ""},
    {"LBT-RM NAKs received                                  ", ""},
    {"LBT-RM NAKs ignored                                   ", ""},
    {"LBT-RM NAKs shed                                      ", ""},
    {"LBT-RM NAKs ignored (retransmit delay)                ", ""},
    {"LBT-RM retransmission datagrams sent                  ", ""},
    {"LBT-RM datagrams queued by rate control               ", ""},
    {"LBT-RM retransmission datagrams queued by rate control", ""},
    {"LBT-RM retransmission datagram bytes sent             ", ""},
};

static const struct ex_mon_label source_lbtru_labels[] = {
    {"LBT-RU datagrams sent                    ", ""}, {"LBT-RU datagram bytes sent               ", ""},
    {"LBT-RU NAK packets received              ", ""}, {"LBT-RU NAKs received                     ", ""},
    {"LBT-RU NAKs ignored                      ", ""}, {"LBT-RU NAKs shed                         ", ""},
    {"LBT-RU NAKs ignored (retransmit delay)   ", ""}, {"LBT-RU retransmission datagrams sent     ", ""},
    {"Clients                                  ", ""}, {"LBT-RU retransmission datagram bytes sent", ""},
};

static const struct ex_mon_label source_lbtipc_labels[] = {
    {"Clients                    ", ""},
    {"LBT-IPC datagrams sent     ", ""},
    {"LBT-IPC datagram bytes sent", ""},
};

static const struct ex_mon_label source_lbtsmx_labels[] = {
    {"Clients                   ", ""},
    {"LBT-SMX datagrams sent     ", ""},
    {"LBT-SMX datagram bytes sent", ""},
};

static const struct ex_mon_label source_lbtrdma_labels[] = {
    {"Clients                    ", ""},
    {"LBT-RDMA datagrams sent     ", ""},
    {"LBT-RDMA datagram bytes sent", ""},
};

static const struct ex_mon_label source_broker_labels[] = {
    {"BROKER messages sent               ", ""},
    {"BROKER bytes sent                  ", ""},
};

static const struct ex_mon_label queue_labels[] = {
    {"Data messages currently enqueued                ", ""},
    {"Total data messages enqueued                    ", ""},
    {"Data message service minimum time               ", "us"},
    {"Data message service mean time                  ", "us"},
    {"Data message service maximum time               ", "us"},
    {"Responses currently enqueued                    ", ""},
    {"Total responses enqueued                        ", ""},
    {"Response service minimum time                   ", "us"},
    {"Response service mean time                      ", "us"},
    {"Response service maximum time                   ", "us"},
    {"Topicless immediate messages currently enqueued ", ""},
    {"Total topicless immediate messages enqueued     ", ""},
    {"Topicless immediate message service minimum time", "us"},
    {"Topicless immediate message service mean time   ", "us"},
    {"Topicless immediate message service maximum time", "us"},
    {"Wildcard messages currently enqueued            ", ""},
    {"Total wildcard messages enqueued                ", ""},
    {"Wildcard message service minimum time           ", "us"},
    {"Wildcard message service mean time              ", "us"},
    {"Wildcard message service maximum time           ", "us"},
    {"I/O events currently enqueued                   ", ""},
    {"Total I/O events enqueued                       ", ""},
    {"I/O event service minimum time                  ", "us"},
    {"I/O event service mean time                     ", "us"},
    {"I/O event service maximum time                  ", "us"},
    {"Timer events currently enqueued                 ", ""},
    {"Total timer events enqueued                     ", ""},
    {"Timer event service minimum time                ", "us"},
    {"Timer event service mean time                   ", "us"},
    {"Timer event service maximum time                ", "us"},
    {"Source events currently enqueued                ", ""},
    {"Total source events enqueued                    ", ""},
    {"Source event service minimum time               ", "us"},
    {"Source event service mean time                  ", "us"},
    {"Source event service maximum time               ", "us"},
    {"Unblock events currently enqueued               ", ""},
    {"Total unblock events enqueued                   ", ""},
    {"Cancel events currently enqueued                ", ""},
    {"Total cancel events enqueued                    ", ""},
    {"Cancel event service minimum time               ", "us"},
    {"Cancel event service mean time                  ", "us"},
    {"Cancel event service maximum time               ", "us"},
    {"Callback events currently enqueued              ", ""},
    {"Total callback events enqueued                  ", ""},
    {"Callback event service minimum time             ", "us"},
    {"Callback event service mean time                ", "us"},
    {"Callback event service maximum time             ", "us"},
    {"Context source events currently enqueued        ", ""},
    {"Total context source events enqueued            ", ""},
    {"Context source event service minimum time       ", "us"},
    {"Context source event service mean time          ", "us"},
    {"Context source event service maximum time       ", "us"},
    {"Events currently enqueued                       ", ""},
    {"Total events enqueued                           ", ""},
    {"Event latency minimum time                      ", "us"},
    {"Event latency mean time                         ", "us"},
    {"Event latency maximum time                      ", "us"},
};

static const struct ex_mon_label context_labels[] = {
    {"Topic resolution datagrams sent                    ", ""},
    {"Topic resolution datagram bytes sent               ", ""},
    {"Topic resolution datagrams received                ", ""},
    {"Topic resolution datagram bytes received           ", ""},
    {"Topic resolution datagrams dropped (version)       ", ""},
    {"Topic resolution datagrams dropped (type)          ", ""},
    {"Topic resolution datagrams dropped (malformed)     ", ""},
    {"Topic resolution send failures                     ", ""},
    {"Topics in source topic map                         ", ""},
    {"Topics in receiver topic map                       ", ""},
    {"Unresolved topics in receiver topic map            ", ""},
    {"Unknown LBT-RM datagrams received                  ", ""},
    {"Unknown LBT-RU datagrams received                  ", ""},
    {"Number of times message send blocked               ", ""},
    {"Number of times message send returned EWOULDBLOCK  ", ""},
    {"Number of times response send blocked              ", ""},
    {"Number of times response send returned EWOULDBLOCK ", ""},
    {"Number of duplicate UIM messages dropped           ", ""},
    {"Number of UIM messages received without stream info", ""},
    {"Number of data message fragments lost              ", ""},
    {"Number of data message fragments unrecoverably lost", ""},
    {"Receiver callbacks min service time (microseconds) ", ""},
    {"Receiver callbacks max service time (microseconds) ", ""},
    {"Receiver callbacks mean service time (microseconds)", ""},
};
/* Callback events are the last counters of the structure and stand before those of context sources. */
static const unsigned char queue_order[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18,
                                            19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37,
                                            38, 39, 40, 41, 52, 53, 54, 55, 56, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51};

#define TABLE(name) name##_labels, sizeof(name##_labels) / sizeof((name##_labels)[0])

static const struct {
    int type, transport;
    struct ex_mon_labels labels;
} tables[] = {
    {LBMMON_PACKET_TYPE_SOURCE, LBM_TRANSPORT_STAT_TCP, {"TCP", TABLE(source_tcp), NULL}},
    {LBMMON_PACKET_TYPE_SOURCE, LBM_TRANSPORT_STAT_LBTRM, {"LBT-RM", TABLE(source_lbtrm), NULL}},
    {LBMMON_PACKET_TYPE_SOURCE, LBM_TRANSPORT_STAT_LBTRU, {"LBT-RU", TABLE(source_lbtru), NULL}},
    {LBMMON_PACKET_TYPE_SOURCE, LBM_TRANSPORT_STAT_LBTIPC, {"LBT-IPC", TABLE(source_lbtipc), NULL}},
    {LBMMON_PACKET_TYPE_SOURCE, LBM_TRANSPORT_STAT_LBTSMX, {"LBT-SMX", TABLE(source_lbtsmx), NULL}},
    {LBMMON_PACKET_TYPE_SOURCE, LBM_TRANSPORT_STAT_LBTRDMA, {"LBT-RDMA", TABLE(source_lbtrdma), NULL}},
    {LBMMON_PACKET_TYPE_SOURCE, LBM_TRANSPORT_STAT_BROKER, {"BROKER", TABLE(source_broker), NULL}},
    {LBMMON_PACKET_TYPE_RECEIVER, LBM_TRANSPORT_STAT_TCP, {"TCP", TABLE(receiver_tcp), NULL}},
    {LBMMON_PACKET_TYPE_RECEIVER, LBM_TRANSPORT_STAT_LBTRM, {"LBT-RM", TABLE(receiver_lbtrm), NULL}},
    {LBMMON_PACKET_TYPE_RECEIVER, LBM_TRANSPORT_STAT_LBTRU, {"LBT-RU", TABLE(receiver_lbtru), NULL}},
    {LBMMON_PACKET_TYPE_RECEIVER, LBM_TRANSPORT_STAT_LBTIPC, {"LBT-IPC", TABLE(receiver_lbtipc), NULL}},
    {LBMMON_PACKET_TYPE_RECEIVER, LBM_TRANSPORT_STAT_LBTSMX, {"LBT-SMX", TABLE(receiver_lbtsmx), NULL}},
    {LBMMON_PACKET_TYPE_RECEIVER, LBM_TRANSPORT_STAT_LBTRDMA, {"LBT-RDMA", TABLE(receiver_lbtrdma), NULL}},
    {LBMMON_PACKET_TYPE_RECEIVER, LBM_TRANSPORT_STAT_BROKER, {"BROKER", TABLE(receiver_broker), NULL}},
    {LBMMON_PACKET_TYPE_EVENT_QUEUE, -1, {NULL, TABLE(queue), queue_order}},
    {LBMMON_PACKET_TYPE_CONTEXT, -1, {NULL, TABLE(context), NULL}},
};

const struct ex_mon_labels *ex_mon_labels(int type, int transport)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (tables[i].type == type && tables[i].transport == transport) {
            return &tables[i].labels;
        }
    }
    return NULL;
}
