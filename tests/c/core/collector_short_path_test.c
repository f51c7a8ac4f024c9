/* The short path of collectors: a message of a known source for which there is room is gathered with fewer steps. The
 * record is the one that the long path makes, which a conflating collector takes for every message. */
#include "um_test_rcv.h"

#define WAIT_MS (HANG_SECONDS * 1000)

enum { SHORT, LONG, PATHS };

struct gatherer {
    um_collector_t *collector;
    lbm_rcv_t *rcv;
    um_batch_t *batch; /* one record */
};

static void gatherer_open(struct gatherer *g, lbm_context_t *ctx, int on_full)
{
    *g = (struct gatherer){0};
    MUST(um_collector_create_ex(&g->collector, 0, on_full));
    g->rcv = net_receiver(ctx, "paths", NULL, um_collector_rcv_cb, g->collector, NULL);
    MUST(um_rcv_wait_ready(g->rcv, 1, WAIT_MS));
}

static void gatherer_close(struct gatherer *g)
{
    MUST(lbm_rcv_delete(g->rcv));
    MUST(um_collector_delete(g->collector));
}

/* The next one that is of this type. */
static bool gatherer_next(struct gatherer *g, int type)
{
    while (um_collector_take(g->collector, 1, WAIT_MS, &g->batch) == 1) {
        if (g->batch->count == 1 && g->batch->records[0].type == type) {
            return true;
        }
        um_batch_release(g->batch);
    }
    return false;
}

static bool same(const um_batch_t *a, const um_batch_t *b)
{
    const um_record_t *x = a->records, *y = b->records;
    return x->length == y->length && x->sequence_number == y->sequence_number && x->flags == y->flags &&
           x->timestamp_ns > 0 && y->timestamp_ns > 0 && strcmp(a->topics[x->topic], b->topics[y->topic]) == 0 &&
           strcmp(a->sources[x->source], b->sources[y->source]) == 0 &&
           memcmp(a->data + x->offset, b->data + y->offset, x->length) == 0;
}

TEST(the_short_path_makes_the_records_of_the_long_one)
{
    TEST_NEEDS_NET();
    static const size_t lengths[] = {1, 64, 1, 1000, 9000, 100000, 2, 300000, 1};
    static char data[300000];
    struct gatherer g[PATHS];
    lbm_context_t *here = net_context(), *there = net_context();
    lbm_src_t *src = net_source(there, "paths");
    gatherer_open(&g[SHORT], here, UM_ON_FULL_PAUSE);
    gatherer_open(&g[LONG], here, UM_ON_FULL_CONFLATE);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memset(data, 'a' + (int)i, lengths[i]);
        MUST(lbm_src_send(src, data, lengths[i], LBM_SRC_BLOCK | LBM_MSG_FLUSH));
        CHECK(gatherer_next(&g[SHORT], LBM_MSG_DATA));
        CHECK(gatherer_next(&g[LONG], LBM_MSG_DATA));
        const um_record_t *record = g[SHORT].batch->records;
        CHECK_EQ(record->length, lengths[i]);
        CHECK(memcmp(g[SHORT].batch->data + record->offset, data, lengths[i]) == 0);
        CHECK(same(g[SHORT].batch, g[LONG].batch));
        um_batch_release(g[SHORT].batch);
        um_batch_release(g[LONG].batch);
    }
    um_collector_stats_t stats[PATHS];
    for (int i = 0; i < PATHS; i++) {
        MUST(um_collector_stats(g[i].collector, &stats[i]));
    }
    CHECK_EQ(stats[SHORT].messages, stats[LONG].messages);
    CHECK_EQ(stats[SHORT].bytes, stats[LONG].bytes);
    CHECK_EQ(stats[SHORT].dropped + stats[LONG].conflated, 0);
    for (int i = 0; i < PATHS; i++) {
        gatherer_close(&g[i]);
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(here));
    MUST(lbm_context_delete(there));
}
