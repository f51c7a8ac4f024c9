/* A small resolution server for tests of its clients: registration, sources to
 * whoever wants their topic, ends of them, leaves answered at once, keepalives. It
 * keeps nothing of clients that are gone, so that a restart and the end of their
 * lifetime are the same. One thread calls test_srs_step() now and then. It can be
 * killed, restarted on its port, and frozen (which is what SIGSTOP does). */
#ifndef UM_SUPPORT_TEST_SMALL_SRS_H
#define UM_SUPPORT_TEST_SMALL_SRS_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_pattern.h"
#include "net/um_socket.h"
#include "wire/um_lbmsrs.h"
#include "wire/um_rsocket.h"

#define TEST_SRS_CLIENTS 64
#define TEST_SRS_RECORDS 512

/* A source of a client (its whole record), or a topic or pattern it wants (the text). */
struct test_srs_record {
    uint16_t id; /* 0: free */
    int client;
    size_t len;
    uint8_t bytes[UM_LBMSRS_RECORD_MAX];
};

struct test_srs_client {
    int fd; /* 0: none */
    struct um_rsocket_reader reader;
    struct um_lbmsrs_request registration;
    bool registered, streaming;
    uint32_t credit;
};

struct test_srs {
    int listen_fd; /* -1: down */
    uint16_t port;
    bool frozen;
    bool silent;        /* takes connections and answers nothing */
    uint32_t domain_id; /* told at registration */
    struct test_srs_client clients[TEST_SRS_CLIENTS];
    struct test_srs_record records[TEST_SRS_RECORDS];
    unsigned got[UM_LBMSRS_RTER + 1]; /* records by id */
    unsigned sent, registrations, keepalives, cancels, grants, connections;
};

static inline void test_srs_send(struct test_srs *srs, int client, const void *bytes, size_t len)
{
    srs->sent++;
    if (srs->clients[client].fd > 0) {
        ssize_t done = send(srs->clients[client].fd, bytes, len, MSG_NOSIGNAL);
        (void)done; /* what a test sends fits into the socket */
    }
}

static inline void test_srs_send_frame(struct test_srs *srs, int client, const struct um_rsocket_frame *frame)
{
    uint8_t bytes[2048];
    test_srs_send(srs, client, bytes, um_rsocket_encode(frame, bytes, sizeof bytes));
}

/* A source record, or with `end` what tells of its end. */
static inline void test_srs_send_source(struct test_srs *srs, int client, const struct test_srs_record *record,
                                        bool end)
{
    uint8_t bytes[UM_LBMSRS_RECORD_MAX];
    memcpy(bytes, record->bytes, record->len);
    if (end) {
        um_put32(bytes + record->len - 4, UINT32_MAX);
    }
    struct um_rsocket_frame frame = {
        .type = UM_RSOCKET_PAYLOAD, .flags = UM_RSOCKET_NEXT, .stream = 3, .data = {bytes, record->len}};
    if (srs->clients[client].streaming && srs->clients[client].credit > 0) {
        srs->clients[client].credit--;
        test_srs_send_frame(srs, client, &frame);
    }
}

static inline struct um_slice test_srs_topic(const struct test_srs_record *record)
{
    struct um_slice batch = {record->bytes, record->len};
    struct um_lbmsrs_record decoded;
    um_lbmsrs_next(&batch, &decoded);
    return decoded.topic;
}

static inline bool test_srs_matches(const struct test_srs_record *wish, struct um_slice topic)
{
    if (wish->id == UM_LBMSRS_RIR) {
        return wish->len == topic.len && memcmp(wish->bytes, topic.ptr, topic.len) == 0;
    }
    struct um_pattern_error error;
    int code;
    struct um_pattern *pattern = um_pattern_compile((const char *)wish->bytes, wish->len, &error);
    bool yes =
        pattern != NULL && um_pattern_match(pattern, (const char *)topic.ptr, topic.len, &code) == UM_PATTERN_YES;
    um_pattern_free(pattern);
    return yes;
}

static inline bool test_srs_wants(const struct test_srs *srs, int client, struct um_slice topic)
{
    bool wants = srs->clients[client].registration.interest_mode == UM_LBMSRS_FLOOD;
    for (int i = 0; i < TEST_SRS_RECORDS && !wants; i++) {
        const struct test_srs_record *record = &srs->records[i];
        wants = (record->id == UM_LBMSRS_RIR || record->id == UM_LBMSRS_WIR) && record->client == client &&
                test_srs_matches(record, topic);
    }
    return wants;
}

static inline void test_srs_tell_all(struct test_srs *srs, const struct test_srs_record *record, bool end)
{
    for (int i = 0; i < TEST_SRS_CLIENTS; i++) {
        if (i != record->client && srs->clients[i].registered && test_srs_wants(srs, i, test_srs_topic(record))) {
            test_srs_send_source(srs, i, record, end);
        }
    }
}

static inline struct test_srs_record *test_srs_find(struct test_srs *srs, uint16_t id, int client, const void *bytes,
                                                    size_t len)
{
    for (int i = 0; i < TEST_SRS_RECORDS; i++) {
        struct test_srs_record *record = &srs->records[i];
        const uint8_t *at = id == UM_LBMSRS_SIR ? record->bytes + 2 : record->bytes;
        if (record->id == id && (client < 0 || record->client == client) &&
            (id == UM_LBMSRS_SIR || record->len == len) && memcmp(at, bytes, len) == 0) {
            return record;
        }
    }
    return NULL;
}

static inline struct test_srs_record *test_srs_keep(struct test_srs *srs, uint16_t id, int client, const void *bytes,
                                                    size_t len)
{
    for (int i = 0; i < TEST_SRS_RECORDS; i++) {
        if (srs->records[i].id == 0) {
            srs->records[i] = (struct test_srs_record){.id = id, .client = client, .len = len};
            memcpy(srs->records[i].bytes, bytes, len);
            return &srs->records[i];
        }
    }
    abort(); /* a test that is too large */
}

static inline void test_srs_take_wish(struct test_srs *srs, int client, uint16_t id, struct um_slice text, bool end)
{
    struct test_srs_record *known = test_srs_find(srs, id, client, text.ptr, text.len);
    if (end && known != NULL) {
        known->id = 0;
    } else if (!end && known == NULL) {
        struct test_srs_record *wish = test_srs_keep(srs, id, client, text.ptr, text.len);
        for (int i = 0; i < TEST_SRS_RECORDS; i++) {
            const struct test_srs_record *source = &srs->records[i];
            if (source->id == UM_LBMSRS_SIR && source->client != client &&
                test_srs_matches(wish, test_srs_topic(source))) {
                test_srs_send_source(srs, client, source, false);
            }
        }
    }
}

static inline void test_srs_end_source(struct test_srs *srs, struct test_srs_record *source)
{
    if (source != NULL) {
        test_srs_tell_all(srs, source, true);
        source->id = 0;
    }
}

static inline void test_srs_take_record(struct test_srs *srs, int client, const uint8_t *bytes, size_t len,
                                        const struct um_lbmsrs_record *record)
{
    srs->got[record->id]++;
    switch (record->id) {
    case UM_LBMSRS_SIR:
        if (test_srs_find(srs, UM_LBMSRS_SIR, client, record->otid, UM_LBMSRS_OTID_LEN) == NULL) {
            test_srs_tell_all(srs, test_srs_keep(srs, UM_LBMSRS_SIR, client, bytes, len), false);
        }
        break;
    case UM_LBMSRS_SDR:
        test_srs_end_source(srs, test_srs_find(srs, UM_LBMSRS_SIR, client, record->otid, UM_LBMSRS_OTID_LEN));
        break;
    case UM_LBMSRS_RIR:
    case UM_LBMSRS_RDR:
        test_srs_take_wish(srs, client, UM_LBMSRS_RIR, record->topic, record->id == UM_LBMSRS_RDR);
        break;
    case UM_LBMSRS_WIR:
    case UM_LBMSRS_WDR:
        test_srs_take_wish(srs, client, UM_LBMSRS_WIR, record->topic, record->id == UM_LBMSRS_WDR);
        break;
    case UM_LBMSRS_SLR: {
        const struct test_srs_record *source = test_srs_find(srs, UM_LBMSRS_SIR, -1, record->otid, UM_LBMSRS_OTID_LEN);
        if (source != NULL) {
            test_srs_send_source(srs, client, source, false);
        }
        break;
    }
    }
}

static inline void test_srs_register(struct test_srs *srs, int client, struct um_slice data)
{
    uint8_t answer[UM_LBMSRS_RESPONSE_LEN];
    struct um_lbmsrs_response response = {
        .client_id = ++srs->registrations, .local_domain_id = srs->domain_id, .protocol_version = 1};
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_PAYLOAD,
                                     .flags = UM_RSOCKET_NEXT | UM_RSOCKET_COMPLETE,
                                     .stream = 1,
                                     .data = {answer, sizeof answer}};
    um_lbmsrs_put_response(answer, &response);
    srs->clients[client].registered = um_lbmsrs_decode_request(data, &srs->clients[client].registration);
    test_srs_send_frame(srs, client, &frame);
}

static inline void test_srs_take_frame(struct test_srs *srs, int client, const struct um_rsocket_frame *frame)
{
    struct test_srs_client *from = &srs->clients[client];
    struct um_slice batch = frame->data;
    struct um_lbmsrs_record record;
    switch (frame->type) {
    case UM_RSOCKET_REQUEST_RESPONSE:
        test_srs_register(srs, client, frame->data);
        break;
    case UM_RSOCKET_REQUEST_STREAM:
        from->streaming = true;
        from->credit = frame->request_n;
        for (int i = 0; i < TEST_SRS_RECORDS && from->registration.interest_mode == UM_LBMSRS_FLOOD; i++) {
            if (srs->records[i].id == UM_LBMSRS_SIR && srs->records[i].client != client) {
                test_srs_send_source(srs, client, &srs->records[i], false);
            }
        }
        break;
    case UM_RSOCKET_REQUEST_N:
        from->credit += frame->request_n;
        srs->grants++;
        break;
    case UM_RSOCKET_CANCEL:
        srs->cancels++;
        break;
    case UM_RSOCKET_KEEPALIVE:
        srs->keepalives++;
        test_srs_send_frame(srs, client, &(struct um_rsocket_frame){.type = UM_RSOCKET_KEEPALIVE});
        break;
    case UM_RSOCKET_REQUEST_FNF:
        for (const uint8_t *at = batch.ptr; um_lbmsrs_next(&batch, &record) == UM_LBMSRS_OK; at = batch.ptr) {
            test_srs_take_record(srs, client, at, (size_t)(batch.ptr - at), &record);
        }
        break;
    }
}

static inline void test_srs_drop(struct test_srs *srs, int client)
{
    struct test_srs_client *gone = &srs->clients[client];
    close(gone->fd);
    um_rsocket_reader_free(&gone->reader);
    *gone = (struct test_srs_client){0};
    for (int i = 0; i < TEST_SRS_RECORDS; i++) {
        struct test_srs_record *record = &srs->records[i];
        if (record->client == client && record->id == UM_LBMSRS_SIR) {
            test_srs_end_source(srs, record);
        } else if (record->client == client) {
            record->id = 0;
        }
    }
}

static inline void test_srs_read(struct test_srs *srs, int client)
{
    uint8_t bytes[65536];
    ssize_t got;
    while (srs->clients[client].fd > 0 &&
           (got = recv(srs->clients[client].fd, bytes, sizeof bytes, MSG_DONTWAIT)) >= 0) {
        struct um_slice input = {bytes, (size_t)got};
        struct um_rsocket_frame frame;
        if (got == 0) {
            test_srs_drop(srs, client);
            return;
        }
        while (!srs->silent && um_rsocket_read(&srs->clients[client].reader, &input, &frame) == UM_RSOCKET_FRAME) {
            test_srs_take_frame(srs, client, &frame);
        }
    }
}

static inline void test_srs_accept(struct test_srs *srs)
{
    int fd;
    while ((fd = accept(srs->listen_fd, NULL, NULL)) >= 0) {
        int i = 0;
        while (i < TEST_SRS_CLIENTS - 1 && srs->clients[i].fd > 0) {
            i++;
        }
        um_socket_set_nodelay(fd, true); /* the clock of the test runs ahead of the kernel's */
        srs->clients[i] = (struct test_srs_client){.fd = fd};
        um_rsocket_reader_init(&srs->clients[i].reader, UM_RSOCKET_FRAME_MAX);
        srs->connections++;
    }
}

static inline void test_srs_step(struct test_srs *srs)
{
    if (srs->listen_fd < 0 || srs->frozen) {
        return;
    }
    test_srs_accept(srs);
    for (int i = 0; i < TEST_SRS_CLIENTS; i++) {
        if (srs->clients[i].fd > 0) {
            test_srs_read(srs, i);
        }
    }
}

/* On a port of its own, the same after each restart. */
static inline bool test_srs_start(struct test_srs *srs)
{
    int err = 0;
    srs->frozen = false;
    srs->listen_fd =
        um_socket_tcp_listen((struct in_addr){htonl(INADDR_LOOPBACK)}, srs->port, 64, true, &srs->port, &err);
    return srs->listen_fd >= 0;
}

static inline void test_srs_kill(struct test_srs *srs)
{
    close(srs->listen_fd);
    srs->listen_fd = -1;
    memset(srs->records, 0, sizeof srs->records);
    for (int i = 0; i < TEST_SRS_CLIENTS; i++) {
        if (srs->clients[i].fd > 0) {
            test_srs_drop(srs, i);
        }
    }
}

static inline unsigned test_srs_connected(const struct test_srs *srs)
{
    unsigned count = 0;
    for (int i = 0; i < TEST_SRS_CLIENTS; i++) {
        count += srs->clients[i].registered;
    }
    return count;
}

#endif
