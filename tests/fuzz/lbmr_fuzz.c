/* Fuzz target of the LBMR codec: validation, every walk, and address
 * substitution on a copy, all extensions included; a valid datagram must stay valid when substituted.
 * Run by the fuzz stage of the build; seeds in corpus/lbmr_fuzz. */
#include "wire/um_lbmr.h"

#include <stdlib.h>

static void walk(const uint8_t *data, size_t size)
{
    struct um_lbmr_msg msg;
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tqr tqr;
    struct um_lbmr_tir tir;
    struct um_lbmr_tmr tmr;
    struct um_lbmr_rctx rctx;
    struct um_lbmr_option option;
    unsigned detail;
    if (um_lbmr_parse(data, size, &msg, &detail) != UM_LBMR_OK) {
        return;
    }
    um_lbmr_records(&msg, &cursor);
    while (um_lbmr_next_tqr(&cursor, &tqr)) {
        if (strlen(tqr.name) != tqr.len) {
            abort();
        }
    }
    while (um_lbmr_next_tir(&cursor, &tir)) {
        size_t offset = 0;
        while (um_lbmr_next_option(&tir, &offset, &option)) {
        }
    }
    um_lbmr_records(&msg, &cursor);
    while (msg.type == UM_LBMR_TOPIC_MGMT && um_lbmr_next_tmr(&cursor, &tmr)) {
        if (strlen(tmr.name) != tmr.len) {
            abort();
        }
    }
    um_lbmr_rctx_records(&msg, &cursor);
    while (um_lbmr_next_rctx(&cursor, &rctx)) {
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data, size);
    enum um_lbmr_fault before = um_lbmr_validate(copy, size, NULL);
    char text[256];
    um_lbmr_fault_text(before, 0, "127.0.0.1", 1, size, text, sizeof text);
    walk(copy, size);
    um_lbmr_substitute_address(copy, size, 0x0100007f);
    if (um_lbmr_validate(copy, size, NULL) != before) {
        abort();
    }
    free(copy);
    return 0;
}
