/* Fuzz target: five clients of the SRS engine, driven by three bytes a step: what, who, a number; some steps take raw
 * bytes as frames or batches. State stays within its bound, and when all have left, nothing is left. */
#include "base/um_hash.h"
#include "base/um_log.h"
#include "um_test_srs.h"

#define CLIENTS 5
#define STATE_MAX 30000

struct input {
    const uint8_t *at;
    size_t len;
};

static int quiet(int level, const char *message, void *clientd)
{
    return 0;
}

static void narrow(struct um_srs_config *config)
{
    config->max_connections = 8;
    config->max_queue = 20;
    config->max_state_bytes = STATE_MAX;
    config->max_leaves = 3;
    config->source_lifetime_ns = config->interest_lifetime_ns = 2 * SECONDS;
    config->batch_records = 3;
    config->turn_batches = 2;
}

/* A copy of exact size, so that a read beyond it is seen. */
static struct um_slice cut(struct input *input, uint8_t wanted)
{
    size_t len = wanted < input->len ? wanted : input->len;
    uint8_t *copy = malloc(len + 1);
    memcpy(copy, input->at, len);
    input->at += len;
    input->len -= len;
    return (struct um_slice){copy, len};
}

static void leave_of(struct test_client *client, uint32_t session, uint32_t number, const char *topic)
{
    uint8_t otid[UM_LBMSRS_OTID_LEN], instance[UM_LBMSRS_INSTANCE_LEN];
    struct um_lbmsrs_record record = test_record(UM_LBMSRS_SLR, session, number, topic, TEST_SOURCE, otid, instance);
    test_client_put(client, &record);
}

static void raw(struct test_client *client, struct input *input, uint8_t wanted, bool batch)
{
    struct um_slice bytes = cut(input, wanted);
    if (batch) {
        test_client_batch(client, bytes.ptr, bytes.len);
    } else {
        um_srs_peer_on_bytes(client->peer, client->srs->now, bytes.ptr, bytes.len);
    }
    free((void *)bytes.ptr);
}

static void say(struct test_client *client, uint8_t what, uint8_t number)
{
    static const uint16_t records[] = {UM_LBMSRS_SIR, UM_LBMSRS_SIR, UM_LBMSRS_SDR, UM_LBMSRS_RIR,
                                       UM_LBMSRS_RDR, UM_LBMSRS_WIR, UM_LBMSRS_WDR};
    uint16_t id = records[what % 7];
    char text[16];
    bool pattern = id == UM_LBMSRS_WIR || id == UM_LBMSRS_WDR;
    snprintf(text, sizeof(text), !pattern ? "t%u" : (number % 3 ? "^t%u" : ".*%u"), number % (pattern ? 4 : 6));
    test_client_say(client, id, number % 9, text,
                    id == UM_LBMSRS_SIR ? (what & 64 ? TEST_SOURCE : "TCP:1.1.1.1:1:2") : "");
}

static void step(struct test_client *client, struct input *input, uint8_t what, uint8_t number)
{
    char topic[16];
    snprintf(topic, sizeof(topic), "t%u", number % 6);
    switch (what % 15) {
    case 7:
        test_client_leave(client);
        break;
    case 8:
        leave_of(client, 1 + what % 6, number % 9, topic);
        break;
    case 9:
        test_client_grant(client, 1 + number % 4);
        break;
    case 10:
        client->blocked = !client->blocked;
        if (!client->blocked) {
            um_srs_peer_on_writable(client->peer, client->srs->now);
        }
        break;
    case 11:
    case 12:
        raw(client, input, number, what % 15 == 12);
        break;
    case 13:
        test_srs_run(client->srs, (uint64_t)number * 20 * MS);
        break;
    case 14:
        test_client_send(client, &(struct um_rsocket_frame){.type = UM_RSOCKET_CANCEL, .stream = 3});
        break;
    default:
        say(client, what % 15 | (what & 64), number);
    }
}

static bool nothing_is_left(struct test_srs *srs)
{
    const struct um_srs_stats *stats = um_srs_engine_stats(srs->engine);
    return um_srs_engine_bytes(srs->engine) == 0 && um_srs_engine_topics(srs->engine) == 0 &&
           stats->active_sources + stats->inactive_sources == 0 &&
           stats->active_interest + stats->inactive_interest == 0 &&
           stats->active_patterns + stats->inactive_patterns == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct test_srs srs;
    struct test_client clients[CLIENTS] = {0};
    struct input input = {data, len};
    um_log_set_proc(quiet, NULL);
    um_hash_set_key(1, 2);
    test_srs_start(&srs, narrow);
    while (input.len >= 3) {
        uint8_t what = input.at[0], number = input.at[2];
        struct test_client *client = &clients[input.at[1] % CLIENTS];
        input.at += 3;
        input.len -= 3;
        if (client->peer == NULL) {
            test_client_join(client, &srs, 1 + number % 6, number >> 6);
        } else {
            step(client, &input, what, number);
        }
        if (um_srs_engine_bytes(srs.engine) > STATE_MAX) {
            abort();
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        test_client_leave(&clients[i]);
    }
    test_srs_run(&srs, 10 * SECONDS);
    if (!nothing_is_left(&srs)) {
        abort();
    }
    um_srs_engine_destroy(srs.engine);
    return 0;
}
