/* Fuzz target: the decoder of pre-defined messages, with the definition that came along and with one that is known.
 * What is accepted can be read field by field and written, and what was written is accepted. The short way of Python's
 * decode_many() to the fixed-required fields finds them in what the decoder accepts. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <lbm/lbmpdm.h>

#include "../../um_cffi/binding/um_py_pdm.c"

static void check(int ok)
{
    if (!ok) {
        abort();
    }
}

/* An array into memory of exact size, with the lengths that `value` tells. Elements of numbers stand in a row. */
static void get_array(lbmpdm_msg_t *msg, int32_t handle, const lbmpdm_field_value_t *value)
{
    bool numbers = value->field_type <= PDM_TYPE_TIMESTAMP_ARR;
    size_t count = value->num_arr_elem, size = numbers && count != 0 ? count * value->len_arr[0] : 0;
    char *row = malloc(size + !size), **texts = calloc(count + 1, sizeof *texts);
    size_t *lengths = calloc(count + 1, sizeof *lengths);
    check(row != NULL && texts != NULL && lengths != NULL);
    for (size_t i = 0; i < count; i++) {
        lengths[i] = value->len_arr[i];
        texts[i] = numbers ? row + i * lengths[i] : malloc(lengths[i] + 1);
        check(texts[i] != NULL);
    }
    check(lbmpdm_msg_get_field_value_vec(msg, handle, numbers ? (void *)row : texts, lengths, &count) == PDM_SUCCESS);
    check(count == value->num_arr_elem);
    for (size_t i = 0; i < count; i++) {
        check(lengths[i] == value->len_arr[i]);
        check(value->field_type == PDM_TYPE_DECIMAL_ARR || memcmp(texts[i], value->value_arr[i], lengths[i]) == 0);
        if (!numbers) {
            free(texts[i]);
        }
    }
    free(row);
    free(texts);
    free(lengths);
}

/* The same bytes as the allocated copy has, into memory of exact size. Decimals have bytes without a meaning. */
static void get_again(lbmpdm_msg_t *msg, int32_t handle, const lbmpdm_field_value_t *value)
{
    if (value->field_type == PDM_TYPE_MESSAGE || value->field_type == PDM_TYPE_MESSAGE_ARR) {
        return;
    }
    if (value->is_array) {
        get_array(msg, handle, value);
        return;
    }
    size_t len = value->len;
    char *bytes = malloc(len + !len);
    check(bytes != NULL && lbmpdm_msg_get_field_value(msg, handle, bytes, &len) == PDM_SUCCESS && len == value->len);
    check(value->field_type == PDM_TYPE_DECIMAL || memcmp(bytes, value->value, len) == 0);
    free(bytes);
}

static void read_fields(lbmpdm_msg_t *msg)
{
    lbmpdm_field_value_t value;
    int32_t count = lbmpdm_defn_get_num_fields(lbmpdm_msg_get_defn(msg));
    for (int32_t i = 0; i < count; i++) {
        if (lbmpdm_msg_is_field_set(msg, i)) {
            check(lbmpdm_msg_get_field_value_stct(msg, i, &value) == PDM_SUCCESS);
            get_again(msg, i, &value);
            check(lbmpdm_field_value_stct_delete(&value) == PDM_SUCCESS);
        }
    }
}

#define SECTION 37 /* bytes of the fixed-required fields of known() */

/* The rows of a table, as decode_many() has it: where each message is and how long. */
struct row {
    uint64_t offset;
    uint32_t length;
} __attribute__((packed));

/* `count` rows at `stride`: the number of the first that is refused. Memory of exact size shows what is written. */
static size_t gather(const uint8_t *data, size_t len, const struct row *rows, size_t count, uint8_t *first)
{
    static const char key[] = {1, 0, (char)0xea, 3, 0, 0}; /* 1.0 of 1002 */
    int some = 0;
    char *out = malloc(count * SECTION);
    unsigned char *big = malloc(count);
    check(out != NULL && big != NULL);
    size_t done =
        um_py_pdm_gather((const char *)data, len, (const char *)&rows->offset, (const char *)rows + sizeof rows->offset,
                         sizeof *rows, count, key, SECTION, out, big, &some);
    check(done <= count);
    for (size_t i = 0; i < done; i++) {
        check(big[i] <= 1 && (!big[i] || some));
    }
    if (done != 0 && first != NULL) {
        memcpy(first, out, SECTION);
        first[SECTION] = big[0];
    }
    free(out);
    free(big);
    return done;
}

/* What the decoder accepted as a message of 1002 version 1.0 is found, with the same numbers. */
static void compare(const uint8_t *data, size_t len, lbmpdm_msg_t *msg)
{
    uint8_t section[SECTION + 1];
    uint32_t number;
    int32_t decoded;
    size_t size = sizeof decoded;
    if (data[6] != 1 || data[7] != 0 || !lbmpdm_msg_is_field_set(msg, 1)) {
        return; /* read with the nearest version */
    }
    check(gather(data, len, &(struct row){0, (uint32_t)len}, 1, section) == 1);
    memcpy(&number, section + 1, sizeof number);
    number = section[SECTION] ? __builtin_bswap32(number) : number;
    check(lbmpdm_msg_get_field_value(msg, 1, &decoded, &size) == PDM_SUCCESS && (uint32_t)decoded == number);
}

/* Rows that the input itself tells. */
static void try_rows(const uint8_t *data, size_t len)
{
    struct row rows[3] = {{0, (uint32_t)len}, {len, 0}, {0, 0}};
    if (len >= sizeof rows[2]) {
        memcpy(&rows[2], data + len - sizeof rows[2], sizeof rows[2]);
        (void)gather(data, len, &rows[2], 1, NULL);
        rows[2].offset %= len + 1;
        (void)gather(data, len, &rows[2], 1, NULL);
        rows[2].length %= (uint32_t)(len - rows[2].offset) + 1;
        (void)gather(data, len, &rows[2], 1, NULL);
    }
    check(gather(data, len, rows, 3, NULL) <= 1); /* the second is empty */
}

static void try_message(const uint8_t *data, size_t len, lbmpdm_defn_t *defn)
{
    lbmpdm_msg_t *msg, *again;
    check(lbmpdm_msg_create(&msg, defn, PDM_MSG_FLAG_INCL_DEFN | PDM_MSG_FLAG_USE_MSG_DEFN_IF_NEEDED) == 0);
    if (lbmpdm_msg_deserialize(msg, (const char *)data, (uint32_t)len) == PDM_SUCCESS) {
        read_fields(msg);
        if (defn != NULL && lbmpdm_msg_get_defn(msg) == defn) {
            compare(data, len, msg);
        }
        char *bytes = lbmpdm_msg_get_data(msg);
        check(bytes != NULL);
        check(lbmpdm_msg_create(&again, NULL, PDM_MSG_FLAG_INCL_DEFN) == 0);
        check(lbmpdm_msg_deserialize(again, bytes, lbmpdm_msg_get_length(msg)) == PDM_SUCCESS);
        check(lbmpdm_msg_get_length(again) == lbmpdm_msg_get_length(msg));
        check(lbmpdm_msg_and_defn_delete(again) == 0);
    }
    check((lbmpdm_msg_get_defn(msg) == defn ? lbmpdm_msg_delete(msg) : lbmpdm_msg_and_defn_delete(msg)) == 0);
}

static lbmpdm_defn_t *known(void)
{
    static const int16_t types[] = {PDM_TYPE_BOOLEAN,     PDM_TYPE_INT32,      PDM_TYPE_FLOAT,
                                    PDM_TYPE_INT8,        PDM_TYPE_FIX_STRING, PDM_TYPE_STRING,
                                    PDM_TYPE_BOOLEAN_ARR, PDM_TYPE_INT32_ARR,  PDM_TYPE_FIX_STRING_ARR};
    static const uint32_t counts[] = {0, 0, 0, 0, 0, 0, 3, 0, 2};
    lbmpdm_defn_t *defn;
    check(lbmpdm_defn_create(&defn, 9, 1002, 1, 0, PDM_DEFN_INT_FIELD_NAMES) == 0);
    for (int i = 0; i < 9; i++) {
        lbmpdm_field_info_attr_t attr = {.flags = 7, .req = i != 3 && i != 7, .num_arr_elem = counts[i]};
        attr.fixed_str_len = i == 4 ? 12 : 5;
        check(lbmpdm_defn_add_field_info_by_int_name(defn, 100 + i, types[i], &attr) == i);
    }
    check(lbmpdm_defn_finalize(defn) == 0);
    return defn;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    lbmpdm_defn_t *defn = known(), *bare;
    try_message(data, len, NULL);
    try_message(data, len, defn);
    try_rows(data, len);
    check(lbmpdm_defn_create(&bare, 1, 1, 0, 0, PDM_DEFN_STR_FIELD_NAMES) == 0);
    for (uint8_t swap = 0; swap < 2; swap++) {
        if (lbmpdm_defn_deserialize(bare, (const char *)data, (uint32_t)len, swap) == PDM_SUCCESS) {
            check(lbmpdm_defn_get_length(bare) == len);
        }
    }
    check(lbmpdm_defn_delete(bare) == 0);
    check(lbmpdm_defn_delete(defn) == 0);
    return 0;
}
