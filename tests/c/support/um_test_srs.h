/* Clients of an SRS engine without sockets: what they send is encoded by the codec, what they get is decoded and
 * counted. Time is a plain integer. */
#ifndef UM_SUPPORT_TEST_SRS_H
#define UM_SUPPORT_TEST_SRS_H

#include <stdio.h>

#include "base/um_timer.h"
#include "resolver/um_srs_engine.h"
#include "um_test.h"
#include "wire/um_lbmsrs.h"
#include "wire/um_rsocket.h"

struct test_srs {
    struct um_srs_engine *engine;
    uint64_t now;
};

struct test_client {
    struct test_srs *srs;
    struct um_srs_peer *peer; /* NULL: closed */
    uint32_t session, next_stream, error;
    bool blocked;
    unsigned frames, records, sirs, sers, rirs, rers, wirs, wers, keepalives, consumed;
    uint64_t client_id;
    char last_topic[256], last_source[256];
};

static inline void test_client_record(struct test_client *client, const struct um_lbmsrs_record *record)
{
    client->records++;
    client->sirs += record->id == UM_LBMSRS_SIR && record->cost >= 0;
    client->sers += um_lbmsrs_is_end(record);
    client->rirs += record->id == UM_LBMSRS_RIR;
    client->rers += record->id == UM_LBMSRS_RER;
    client->wirs += record->id == UM_LBMSRS_WIR;
    client->wers += record->id == UM_LBMSRS_WER;
    snprintf(client->last_topic, sizeof(client->last_topic), "%s", (const char *)record->topic.ptr);
    if (record->source.len > 0) {
        snprintf(client->last_source, sizeof(client->last_source), "%s", (const char *)record->source.ptr);
    }
}

static inline void test_client_frame(struct test_client *client, const struct um_rsocket_frame *frame)
{
    struct um_lbmsrs_response response;
    struct um_lbmsrs_record record;
    struct um_slice batch = frame->data;
    client->frames++;
    client->keepalives += frame->type == UM_RSOCKET_KEEPALIVE;
    if (frame->type == UM_RSOCKET_ERROR) {
        client->error = frame->error;
    } else if (frame->type == UM_RSOCKET_PAYLOAD && um_lbmsrs_decode_response(frame->data, &response)) {
        client->client_id = response.client_id;
    } else if (frame->type == UM_RSOCKET_PAYLOAD) {
        client->consumed++;
        enum um_lbmsrs_rc rc;
        while ((rc = um_lbmsrs_next(&batch, &record)) == UM_LBMSRS_OK) {
            test_client_record(client, &record);
        }
        if (rc != UM_LBMSRS_DONE) {
            fprintf(stderr, "the SRS has sent a batch that does not decode\n");
            abort();
        }
    }
}

static inline bool test_srs_send(void *arg, void *handle, const uint8_t *bytes, size_t len)
{
    struct test_client *client = handle;
    struct um_rsocket_frame frame;
    if (!um_rsocket_decode(bytes + 3, len - 3, &frame)) {
        fprintf(stderr, "the SRS has sent a frame that does not decode\n");
        abort();
    }
    test_client_frame(client, &frame);
    return !client->blocked;
}

static inline void test_srs_closed(void *arg, void *handle)
{
    ((struct test_client *)handle)->peer = NULL;
}

static inline void test_srs_start(struct test_srs *srs, void (*change)(struct um_srs_config *))
{
    struct um_srs_config config;
    um_srs_config_default(&config);
    config.send = test_srs_send;
    config.close = test_srs_closed;
    if (change != NULL) {
        change(&config);
    }
    srs->now = 1000 * UM_NS_PER_SEC;
    srs->engine = um_srs_engine_create(&config, srs->now);
}

static inline void test_client_send(struct test_client *client, const struct um_rsocket_frame *frame)
{
    static uint8_t bytes[300000];
    size_t len = um_rsocket_encode(frame, bytes, sizeof(bytes));
    if (client->peer != NULL) {
        um_srs_peer_on_bytes(client->peer, client->srs->now, bytes, len);
    }
}

static inline void test_client_connect(struct test_client *client, struct test_srs *srs, uint32_t session)
{
    static const uint8_t address[4] = {10, 1, 1, 5};
    uint32_t ip;
    memcpy(&ip, address, 4);
    client->srs = srs;
    client->session = session;
    client->next_stream = 1;
    client->consumed = 0;
    client->error = 0;
    client->peer = um_srs_engine_connect(srs->engine, srs->now, client, ip, 40000);
}

static inline void test_client_setup(struct test_client *client)
{
    struct um_rsocket_frame frame;
    um_rsocket_setup(&frame, 5000, 20000);
    test_client_send(client, &frame);
}

static inline void test_client_register(struct test_client *client, uint8_t app_type, uint8_t mode)
{
    struct um_lbmsrs_request request = {
        .app_type = app_type, .session_id = client->session, .protocol_version = 1, .interest_mode = mode};
    uint8_t data[UM_LBMSRS_REQUEST_LEN];
    um_lbmsrs_put_request(data, &request);
    struct um_rsocket_frame frame = {
        .type = UM_RSOCKET_REQUEST_RESPONSE, .stream = client->next_stream, .data = {data, sizeof(data)}};
    client->next_stream += 2;
    test_client_send(client, &frame);
}

static inline void test_client_stream(struct test_client *client, uint32_t request_n)
{
    uint8_t data[UM_LBMSRS_STREAM_REQUEST_LEN];
    um_lbmsrs_put_stream_request(data);
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_REQUEST_STREAM,
                                     .stream = client->next_stream,
                                     .request_n = request_n,
                                     .data = {data, sizeof(data)}};
    client->next_stream += 2;
    test_client_send(client, &frame);
}

/* As a context does it: connected, registered, with its stream. */
static inline void test_client_join(struct test_client *client, struct test_srs *srs, uint32_t session, uint8_t mode)
{
    test_client_connect(client, srs, session);
    test_client_setup(client);
    test_client_register(client, mode > UM_LBMSRS_FILTER ? UM_LBMSRS_ROUTER : UM_LBMSRS_APPLICATION, mode);
    test_client_stream(client, 128);
}

static inline void test_client_leave(struct test_client *client)
{
    if (client->peer != NULL) {
        um_srs_peer_on_disconnect(client->peer, client->srs->now);
        client->peer = NULL;
    }
}

static inline void test_client_batch(struct test_client *client, const uint8_t *data, size_t len)
{
    struct um_rsocket_frame frame = {
        .type = UM_RSOCKET_REQUEST_FNF, .stream = client->next_stream, .data = {data, len}};
    client->next_stream += 2;
    test_client_send(client, &frame);
}

static inline void test_client_put(struct test_client *client, const struct um_lbmsrs_record *record)
{
    uint8_t data[UM_LBMSRS_RECORD_MAX];
    test_client_batch(client, data, um_lbmsrs_put(record, data, sizeof(data)));
}

static inline void test_otid(uint8_t *otid, uint32_t session, uint32_t number)
{
    memset(otid, 0, UM_LBMSRS_OTID_LEN);
    um_put32(otid, session);
    um_put32(otid + 4, number);
}

/* The records a context with this session would send; `otid` and `instance` are filled and pointed to. */
static inline struct um_lbmsrs_record test_record(uint16_t id, uint32_t session, uint32_t number, const char *topic,
                                                  const char *source, uint8_t *otid, uint8_t *instance)
{
    test_otid(otid, session, number);
    memset(instance, 0, UM_LBMSRS_INSTANCE_LEN);
    um_put32(instance, session);
    return (struct um_lbmsrs_record){.id = id,
                                     .otid = otid,
                                     .topic = {(const uint8_t *)topic, strlen(topic)},
                                     .source = {(const uint8_t *)source, strlen(source)},
                                     .topic_index = number,
                                     .host_id = session,
                                     .context_instance = instance};
}

static inline void test_client_say(struct test_client *client, uint16_t id, uint32_t number, const char *topic,
                                   const char *source)
{
    uint8_t otid[UM_LBMSRS_OTID_LEN], instance[UM_LBMSRS_INSTANCE_LEN];
    struct um_lbmsrs_record record = test_record(id, client->session, number, topic, source, otid, instance);
    test_client_put(client, &record);
}

#define TEST_SOURCE "TCP:10.1.1.5:14371:5eed0001"

static inline void test_client_sir(struct test_client *client, uint32_t number, const char *topic)
{
    test_client_say(client, UM_LBMSRS_SIR, number, topic, TEST_SOURCE);
}

static inline void test_client_keepalive(struct test_client *client)
{
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_KEEPALIVE, .flags = UM_RSOCKET_RESPOND};
    test_client_send(client, &frame);
}

static inline void test_client_grant(struct test_client *client, uint32_t count)
{
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_REQUEST_N, .stream = 3, .request_n = count};
    test_client_send(client, &frame);
}

/* Lets time go on, in which the engine does what is due. */
static inline void test_srs_run(struct test_srs *srs, uint64_t ns)
{
    uint64_t until = srs->now + ns, due;
    while ((due = um_srs_engine_next_timer(srs->engine)) <= until) {
        srs->now = due > srs->now ? due : srs->now;
        um_srs_engine_on_timer(srs->engine, srs->now);
    }
    srs->now = until;
    um_srs_engine_on_timer(srs->engine, srs->now);
}

#define MS UM_NS_PER_MS
#define SECONDS UM_NS_PER_SEC

#endif
