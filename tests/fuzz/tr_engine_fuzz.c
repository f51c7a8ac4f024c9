/* Fuzz target: topic resolution of a context with sources, receivers and patterns. A row of datagrams, each behind a
 * byte for its sender and two for its length; a length of 0 lets time pass. What it sends is always valid. */
#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_log.h"
#include "base/um_timer.h"
#include "resolver/um_tr_engine.h"
#include "wire/um_lbmr.h"

#define SENT_MAX 4000u /* datagrams that one input may cause */

static uint64_t due_ns, sent;

static enum um_tr_sent on_send(void *io, const uint8_t *data, size_t len)
{
    if (um_lbmr_validate(data, len, NULL) != UM_LBMR_OK || ++sent > SENT_MAX) {
        abort();
    }
    return UM_TR_SENT;
}

static void set_timer(void *io, uint64_t when_ns)
{
    due_ns = when_ns;
}

static void on_source(void *topic_user, const struct um_tr_source *source)
{
    if (strlen(source->topic) > 255) {
        abort();
    }
}

static void on_no_source(void *topic_user, bool internal)
{
}

static int on_pattern_match(void *pattern_user, const char *topic)
{
    return 0;
}

static bool begins_with_t(void *pattern_user, const char *topic)
{
    return topic[0] == 't';
}

static int discard(int level, const char *message, void *clientd)
{
    return 0;
}

static const struct um_tr_timing timing = {.min_initial_ns = 50 * UM_NS_PER_MS,
                                           .max_initial_ns = 500 * UM_NS_PER_MS,
                                           .initial_duration_ns = UM_NS_PER_SEC,
                                           .sustain_ns = UM_NS_PER_SEC,
                                           .sustain_duration_ns = 10 * UM_NS_PER_SEC,
                                           .first_at_once = true};

static struct um_tr_engine *create(uint64_t now_ns)
{
    static const struct um_tr_ops ops = {.send = on_send, .set_timer = set_timer};
    static const struct um_resolver_events events = {.on_source = on_source,
                                                     .on_source_gone = on_source,
                                                     .on_no_source = on_no_source,
                                                     .on_pattern_match = on_pattern_match,
                                                     .on_any_source = on_source};
    struct um_tr_config config = {.cache = true,
                                  .cache_max = 100,
                                  .extended_options = true,
                                  .queries_possible = true,
                                  .source_datagram_max = 1400,
                                  .receiver_datagram_max = 1400};
    for (int lane = 0; lane < UM_TR_LANE_COUNT; lane++) {
        config.rates[lane].bits_per_second = 1000000;
    }
    return um_tr_engine_create(&config, &ops, NULL, &events, NULL, now_ns);
}

static void populate(struct um_tr_engine *engine, uint64_t now_ns)
{
    struct um_tr_advert_options advert = {.timing = timing, .immediate_response = true};
    struct um_tr_query_options query = {.timing = timing, .sources_threshold = 2, .no_source_threshold = 3};
    struct um_tr_advert_spec spec = {.topic = "topic"};
    spec.info.type = LBM_TRANSPORT_TYPE_TCP;
    spec.info.src_port = 14371;
    spec.info.session_id = 7;
    spec.info.topic_idx = 3;
    if (um_tr_engine_advertise(engine, now_ns, &spec, &advert) == NULL ||
        um_tr_engine_subscribe(engine, now_ns, "topic", &query, false, NULL) == NULL ||
        um_tr_engine_subscribe(engine, now_ns, "t", &query, false, NULL) == NULL ||
        um_tr_engine_subscribe_pattern(engine, now_ns, "^t", LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE, &timing, begins_with_t,
                                       NULL) == NULL ||
        um_tr_engine_set_context_info(engine, "context", 0x0100007f, 14391) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t now_ns = UM_NS_PER_SEC;
    um_log_set_proc(discard, NULL);
    due_ns = UM_NEVER;
    sent = 0;
    struct um_tr_engine *engine = create(now_ns);
    if (engine == NULL) {
        abort();
    }
    populate(engine, now_ns);
    while (size >= 3) {
        size_t len = um_get16(data + 1) % 2048;
        len = len < size - 3 ? len : size - 3;
        uint64_t until = now_ns + UM_NS_PER_MS + (data[0] >> 5) * 20 * (uint64_t)UM_NS_PER_MS;
        for (int turns = 0; due_ns <= until && turns < 50; turns++) {
            now_ns = due_ns > now_ns ? due_ns : now_ns;
            due_ns = UM_NEVER;
            um_tr_engine_on_timer(engine, now_ns);
        }
        now_ns = until;
        if (len > 0) {
            uint8_t *datagram = malloc(len); /* of exact size */
            if (datagram == NULL) {
                abort();
            }
            memcpy(datagram, data + 3, len);
            um_tr_engine_on_packet(engine, now_ns, datagram, len, 0x0a00000au | (uint32_t)(data[0] & 3) << 24,
                                   (uint16_t)(12965 + (data[0] >> 2 & 7)));
            free(datagram);
        }
        data += 3 + len;
        size -= 3 + len;
    }
    um_tr_engine_destroy(engine);
    return 0;
}
