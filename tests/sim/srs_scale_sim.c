/* The SRS engine with many contexts, topics and sources: everybody is told what it wants, and what a source takes has
 * its bound. With UM_SOAK the counts of the requirements: 200 contexts and 100,000 topics; 1,000,000 sources. */
#include <malloc.h>
#include <time.h>

#include "base/um_log.h"
#include "um_test_srs.h"

#define BYTES_PER_SOURCE 600 /* with a topic and an interest of its own; measured: docs/srs.md */

static int quiet(int level, const char *message, void *clientd)
{
    return 0;
}

static bool soak(void)
{
    return getenv("UM_SOAK") != NULL;
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

struct batch {
    uint8_t data[65000];
    size_t len;
};

static void flush(struct test_client *client, struct batch *batch)
{
    if (batch->len > 0) {
        test_client_batch(client, batch->data, batch->len);
        batch->len = 0;
    }
}

static void add(struct test_client *client, struct batch *batch, uint16_t id, uint32_t number, uint32_t topic)
{
    uint8_t otid[UM_LBMSRS_OTID_LEN], instance[UM_LBMSRS_INSTANCE_LEN];
    char name[48], source[64];
    snprintf(name, sizeof(name), "market.data.%u", topic);
    snprintf(source, sizeof(source), "TCP:10.1.1.5:%u:%08x", 14371 + number % 10, client->session * 16 + number % 10);
    struct um_lbmsrs_record record = test_record(id, client->session, number, name, source, otid, instance);
    size_t len = um_lbmsrs_put(&record, batch->data + batch->len, sizeof(batch->data) - batch->len);
    if (len == 0) {
        flush(client, batch);
        len = um_lbmsrs_put(&record, batch->data, sizeof(batch->data));
    }
    batch->len += len;
}

struct crowd {
    struct test_srs srs;
    struct test_client *clients;
    unsigned count, each; /* clients, sources of each */
};

static void gather(struct crowd *crowd, unsigned count, unsigned each)
{
    crowd->count = count;
    crowd->each = each;
    crowd->clients = calloc(count, sizeof(*crowd->clients));
    um_log_set_proc(quiet, NULL);
    test_srs_start(&crowd->srs, NULL);
    for (unsigned i = 0; i < count; i++) {
        test_client_join(&crowd->clients[i], &crowd->srs, i + 1, UM_LBMSRS_FILTER);
        test_client_grant(&crowd->clients[i], UM_RSOCKET_STREAM_MAX);
    }
}

/* Client i tells the sources of its own topics and, if asked, wants those of the client after it. */
static void upload(struct crowd *crowd, bool interest)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    for (unsigned i = 0; i < crowd->count; i++) {
        for (unsigned n = 0; n < crowd->each; n++) {
            add(&crowd->clients[i], batch, UM_LBMSRS_SIR, n, i * crowd->each + n);
        }
        flush(&crowd->clients[i], batch);
        for (unsigned n = 0; interest && n < crowd->each; n++) {
            add(&crowd->clients[i], batch, UM_LBMSRS_RIR, n, (i + 1) % crowd->count * crowd->each + n);
        }
        flush(&crowd->clients[i], batch);
        test_srs_run(&crowd->srs, 1 * MS);
    }
    free(batch);
}

static void disperse(struct crowd *crowd)
{
    um_srs_engine_destroy(crowd->srs.engine);
    free(crowd->clients);
}

TEST(every_context_of_a_crowd_is_told_of_each_source_it_wants_once)
{
    struct crowd crowd;
    gather(&crowd, soak() ? 200 : 40, 500);
    double start = seconds();
    upload(&crowd, true);
    test_srs_run(&crowd.srs, 100 * MS);
    unsigned frames = 0;
    for (unsigned i = 0; i < crowd.count; i++) {
        CHECK_EQ(crowd.clients[i].sirs, crowd.each);
        frames += crowd.clients[i].frames;
    }
    printf("     %u contexts, %u topics: %.2f s of the processor, %u frames to the clients\n", crowd.count,
           crowd.count * crowd.each, seconds() - start, frames);
    CHECK(frames < crowd.count * crowd.each / 10);
    disperse(&crowd);
}

TEST(a_source_with_a_topic_and_an_interest_of_its_own_takes_little)
{
    struct crowd crowd;
    size_t before = heap_bytes();
    gather(&crowd, 100, soak() ? 10000 : 200);
    upload(&crowd, true);
    test_srs_run(&crowd.srs, 1 * SECONDS);
    size_t sources = (size_t)crowd.count * crowd.each, bytes = heap_bytes() - before;
    CHECK_EQ(um_srs_engine_stats(crowd.srs.engine)->active_sources, sources);
    CHECK_EQ(um_srs_engine_stats(crowd.srs.engine)->active_interest, sources);
    printf("     %zu sources, topics and interests: %zu bytes each\n", sources, bytes / sources);
    CHECK(bytes / sources < BYTES_PER_SOURCE);
    disperse(&crowd);
}

TEST(a_new_context_with_many_interests_and_a_pattern_is_told_of_all)
{
    struct crowd crowd;
    struct test_client late = {0}, wild = {0};
    struct batch *batch = calloc(1, sizeof(*batch));
    gather(&crowd, 100, soak() ? 10000 : 200);
    upload(&crowd, false);
    unsigned sources = crowd.count * crowd.each, wanted = soak() ? 10000 : 1000;
    double start = seconds();
    test_client_join(&late, &crowd.srs, 5000, UM_LBMSRS_FILTER);
    test_client_grant(&late, UM_RSOCKET_STREAM_MAX);
    for (unsigned n = 0; n < wanted; n++) {
        add(&late, batch, UM_LBMSRS_RIR, n, n * (sources / wanted));
    }
    flush(&late, batch);
    test_srs_run(&crowd.srs, 1 * SECONDS);
    CHECK_EQ(late.sirs, wanted);
    printf("     %u interests among %u sources: %.2f s of the processor\n", wanted, sources, seconds() - start);
    start = seconds();
    test_client_join(&wild, &crowd.srs, 5001, UM_LBMSRS_FILTER);
    test_client_grant(&wild, UM_RSOCKET_STREAM_MAX);
    test_client_say(&wild, UM_LBMSRS_WIR, 0, "^market\\.data\\.[0-9]*7$", "");
    test_srs_run(&crowd.srs, 10 * SECONDS);
    CHECK_EQ(wild.sirs, sources / 10);
    printf("     a pattern among them: %.2f s of the processor\n", seconds() - start);
    free(batch);
    disperse(&crowd);
}
