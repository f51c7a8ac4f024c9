/* Writes LBMC messages with chains of application headers as text for text2pcap, one packet each, as sources form them:
 * properties of every type, none and a hundred of them, application headers, both, a number of hot failover, a channel;
 * whole, with batch marks, and in fragments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lbm/lbm.h>

#include "core/um_apphdr.h"
#include "core/um_properties.h"
#include "transport/session/um_src_message.h"
#include "wire/um_lbmc_hf.h"

#define FRAGMENT 1000u

static uint32_t next_sqn;

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        exit(1);
    }
}

static void print(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (i % 16 == 0) {
            printf("%s%06zx", i == 0 ? "" : "\n", i);
        }
        printf(" %02x", data[i]);
    }
    printf("\n");
}

static void form(const struct um_chain_writer *chain, size_t len, struct um_slice blob, uint16_t marks)
{
    static uint8_t payload[4000], out[8192];
    memset(payload, 'x', sizeof payload);
    struct iovec iov[2] = {{payload, len}, {(void *)blob.ptr, blob.len}};
    struct um_send send = {
        .iov = iov, .iovcnt = 2, .len = len + blob.len, .chain = chain->bytes, .chain_len = chain->len};
    struct um_record_plan plan = {
        .send = &send, .tidx = 77, .fragmented = send.len > FRAGMENT, .first_sqn = next_sqn, .batch_flags = marks};
    struct um_gather from = {iov, 0};
    do {
        size_t part = send.len - plan.offset < FRAGMENT ? send.len - plan.offset : FRAGMENT;
        um_record_write(out, &plan, next_sqn++, &from, part);
        print(out, um_record_headers_len(&plan) + part);
        plan.offset += (uint32_t)part;
    } while (plan.offset < send.len);
}

/* properties NULL, headers 0, channel 0: none. */
static void write_numbered(uint32_t channel, size_t len, lbm_msg_properties_t *properties, int headers, bool number,
                           uint16_t marks)
{
    struct um_chain_writer chain;
    struct um_slice blob = {0};
    um_chain_start(&chain);
    if (properties != NULL) {
        must(um_properties_blob(properties, &blob, "properties") == 0, "properties");
        um_chain_add_u32(&chain, UM_CHAIN_PROPERTIES_LEN, 0, (uint32_t)blob.len);
    }
    if (channel != 0) {
        um_chain_add_u32(&chain, UM_CHAIN_CHANNEL, 0, channel);
    }
    if (number) {
        um_chain_add_u32(&chain, UM_CHAIN_HF_SQN, UM_LBMC_HF_OPTIONAL, 13);
    }
    for (int i = 0; i < headers; i++) {
        memcpy(um_chain_add(&chain, UM_CHAIN_USER_DATA, (uint16_t)(i + 1), 3), "abc", 3);
    }
    form(&chain, len, blob, marks);
}

static void write_message(size_t len, lbm_msg_properties_t *properties, int headers, bool number, uint16_t marks)
{
    write_numbered(0, len, properties, headers, number, marks);
}

static lbm_msg_properties_t *of_all_types(void)
{
    lbm_msg_properties_t *p;
    int64_t number = -2;
    float f = 1.5f;
    double d = -2.25;
    must(lbm_msg_properties_create(&p) == 0, "create");
    must(lbm_msg_properties_set(p, "boolean", "\1", LBM_MSG_PROPERTY_BOOLEAN, 1) == 0 &&
             lbm_msg_properties_set(p, "byte", &number, LBM_MSG_PROPERTY_BYTE, 1) == 0 &&
             lbm_msg_properties_set(p, "short", &number, LBM_MSG_PROPERTY_SHORT, 2) == 0 &&
             lbm_msg_properties_set(p, "int", &number, LBM_MSG_PROPERTY_INT, 4) == 0 &&
             lbm_msg_properties_set(p, "long", &number, LBM_MSG_PROPERTY_LONG, 8) == 0 &&
             lbm_msg_properties_set(p, "float", &f, LBM_MSG_PROPERTY_FLOAT, 4) == 0 &&
             lbm_msg_properties_set(p, "double", &d, LBM_MSG_PROPERTY_DOUBLE, 8) == 0 &&
             lbm_msg_properties_set(p, "string", "text", LBM_MSG_PROPERTY_STRING, 4) == 0,
         "set");
    return p;
}

int main(void)
{
    lbm_msg_properties_t *all = of_all_types(), *many, *none;
    must(lbm_msg_properties_create(&many) == 0 && lbm_msg_properties_create(&none) == 0, "create");
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        must(lbm_msg_properties_set(many, name, &i, LBM_MSG_PROPERTY_INT, sizeof i) == 0, "set");
    }
    write_message(20, all, 0, false, 0);
    write_message(0, none, 0, false, 0);
    write_message(20, all, 3, true, 0);
    write_message(20, all, 0, false, UM_LBMC_BATCH_START | UM_LBMC_BATCH_END);
    write_message(20, NULL, 3, false, 0);
    write_message(20, NULL, 0, true, 0);
    write_message(3500, all, 2, false, 0);
    write_message(20, many, 0, false, 0);
    write_numbered(12345, 20, NULL, 0, false, 0);
    write_numbered(UINT32_MAX, 20, all, 2, true, 0);
    write_numbered(7, 3500, NULL, 0, false, 0);
    return 0;
}
