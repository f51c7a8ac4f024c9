/* Eclipse Cyclone DDS over multicast on a veth cable: reliable, keep all, with WriteBatch when --batch is given (its
 * value is the largest datagram, bytes). Blocks in a wait set, or polls the reader with --spin. */
#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench_veth.h"
#include "blob.h"
#include "peer_sides.h"

enum { TAKE = 64, CABLE_MTU = 9500 };

struct dds_side {
    dds_entity_t participant, writer, reader, wait_set;
};

static int must(int code, const char *what)
{
    if (code < 0) {
        bench_die("%s: %s", what, dds_strretcode(-code));
    }
    return code;
}

static void configure(void)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"" BENCH_VETH_DEVICE
             "\" multicast=\"true\"/></Interfaces><AllowMulticast>true</AllowMulticast>"
             "<MaxMessageSize>%zuB</MaxMessageSize><FragmentSize>%zuB</FragmentSize></General>"
             "<Internal><SocketReceiveBufferSize min=\"4MB\"/><WriteBatch>%s</WriteBatch></Internal>"
             "</Domain></CycloneDDS>",
             bench_options.batch != 0 ? bench_options.batch : 14720,
             bench_options.batch != 0 ? bench_options.batch - 500 : 1344, bench_options.batch != 0 ? "true" : "false");
    setenv("CYCLONEDDS_URI", text, 1);
}

static void *dds_side_open(int role, bool both)
{
    struct dds_side *side = calloc(1, sizeof *side);
    configure();
    dds_write_set_batch(bench_options.batch != 0);
    side->participant = must(dds_create_participant(77, NULL, NULL), "participant");
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    dds_qset_resource_limits(qos, 20000, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
    dds_entity_t topics[2];
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "bench0" : "bench1";
        topics[i] = must(dds_create_topic(side->participant, &bench_Blob_desc, name, NULL, NULL), "topic");
    }
    if (both || role == 0) {
        side->writer = must(dds_create_writer(side->participant, topics[role], qos, NULL), "writer");
    }
    if (both || role == 1) {
        side->reader = must(dds_create_reader(side->participant, topics[1 - role], qos, NULL), "reader");
        side->wait_set = must(dds_create_waitset(side->participant), "wait set");
        dds_entity_t condition = must(dds_create_readcondition(side->reader, DDS_ANY_STATE), "condition");
        must(dds_waitset_attach(side->wait_set, condition, 1), "attach");
    }
    dds_delete_qos(qos);
    return side;
}

static void dds_side_send(void *peer_side, const void *data, size_t len)
{
    struct dds_side *side = peer_side;
    bench_Blob message = {
        .data = {._buffer = (void *)(uintptr_t)data, ._length = (uint32_t)len, ._maximum = (uint32_t)len}};
    must(dds_write(side->writer, &message), "write");
}

static void dds_side_flush(void *peer_side)
{
    struct dds_side *side = peer_side;
    if (bench_options.batch != 0) {
        dds_write_flush(side->writer);
    }
}

static int take(struct dds_side *side, void (*on_message)(const void *data))
{
    void *messages[TAKE] = {NULL};
    dds_sample_info_t infos[TAKE];
    int count = dds_take(side->reader, messages, infos, TAKE, TAKE);
    for (int i = 0; i < count; i++) {
        if (infos[i].valid_data) {
            on_message(((const bench_Blob *)messages[i])->data._buffer);
        }
    }
    if (count > 0) {
        dds_return_loan(side->reader, messages, count);
    }
    return count;
}

static void dds_side_poll(void *peer_side, void (*on_message)(const void *data), int timeout_ms)
{
    struct dds_side *side = peer_side;
    uint64_t end = bench_now() + (uint64_t)timeout_ms * 1000000u;
    while (take(side, on_message) <= 0) {
        dds_attach_t triggered[1];
        bool late = bench_options.spin ? bench_now() > end
                                       : dds_waitset_wait(side->wait_set, triggered, 1, DDS_MSECS(timeout_ms)) <= 0;
        if (late) {
            return;
        }
    }
}

static void side(int role)
{
    static const struct peer peer = {dds_side_open, dds_side_send, dds_side_flush, dds_side_poll};
    bench_veth(role, CABLE_MTU);
    peer_run(&peer, role);
}

int main(int argc, char **argv)
{
    bench_options.impl = "dds";
    return bench_main(argc, argv, side);
}
