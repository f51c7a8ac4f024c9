/* Messages of the specification for the tests of pre-defined messages, and short names for their calls. */
#ifndef UM_SUPPORT_TEST_PDM_H
#define UM_SUPPORT_TEST_PDM_H

#include <ctype.h>

#include <lbm/lbmpdm.h>

#include "um_test.h"

/* Three required fields: 100 BOOLEAN, 101 INT32, 102 FLOAT; values true, 7, 3.14. */
#define HEX_A "feca1ca7 10010100 e9030000 29000000 00000000 00000000 ff000000 09000000 01 07000000 c3f54840"
#define HEX_A_BIG "a71ccafe 10010100 000003e9 00000029 00000000 00000000 ff000000 00000009 01 00000007 4048f5c3"
#define HEX_A_NO_TABLE "feca1ca7 10000100 e9030000 21000000 ff000000 09000000 01 07000000 c3f54840"
#define HEX_B_DEFN                                                                                                     \
    "e9030000 03000000 01010100 09000000 54000000"                                                                     \
    "00000000 01000000 00000000 00000000 0101 64000000 00000000 0000"                                                  \
    "01000000 04000000 00000000 00000000 0101 65000000 00000000 0500"                                                  \
    "02000000 04000000 00000000 00000000 0101 66000000 00000000 0900"
#define HEX_B                                                                                                          \
    "feca1ca7 10020100 e9030000 99000000 01000000 68000000" HEX_B_DEFN                                                 \
    "00000000 00000000 ff000000 09000000 01 07000000 c3f54840"
/* 100 BOOLEAN, 101 INT32, 102 FLOAT, 103 INT8 optional, 104 FIX_STRING(12), 105 STRING, 106 BOOLEAN_ARR[3], 107
 * INT32_ARR optional, 108 FIX_STRING_ARR(5)[2]; 103 is not set. */
#define HEX_C                                                                                                          \
    "feca1ca7 10010100 ea030000 87000000 00000000 10000000 05000000 25000000 07000000 3f000000"                        \
    "ff000000 57000000 01 07000000 c3f54840 48656c6c6f20576f726c642100 010001 616161616100 626262626200"               \
    "16000000 7661726961626c65206c656e6774682076616c756500"                                                            \
    "14000000 01000000 02000000 03000000 04000000 05000000"
/* px DECIMAL, ts TIMESTAMP, sub MESSAGE optional, tags STRING_ARR[2] optional, lv INT32_ARR[2] optional. */
#define HEX_D                                                                                                          \
    "feca1ca7 10020102 b90b0000 5f010000 01000000 c6000000"                                                            \
    "b90b0000 05000000 00010102 11000000 b2000000"                                                                     \
    "1f000000 00000000 09000000 00000000 00000000 0101 00000000 03000000 707800 0b00"                                  \
    "1f000000 01000000 08000000 00000000 00000000 0101 00000000 03000000 747300 0c00"                                  \
    "20000000 02000000 00000000 00000000 00000000 0000 00000000 04000000 73756200 1200"                                \
    "21000000 03000000 00000000 00000000 02000000 0000 00000000 05000000 7461677300 2100"                              \
    "1f000000 04000000 08000000 00000000 02000000 0001 00000000 03000000 6c7600 1800"                                  \
    "00000000 18000000 02000000 11000000 03000000 3e000000 04000000 51000000"                                          \
    "ff000000 59000000 fe b77a000000000000 00f15365 40e20100"                                                          \
    "29000000" HEX_A "0f000000 03000000 616200 04000000 63646500 ffffffff 02000000"

/* The bytes of a text of hexadecimal digits; the number of them. */
static inline size_t unhex(const char *hex, uint8_t *out)
{
    size_t digits = 0;
    for (; *hex != '\0'; hex++) {
        if (isxdigit((unsigned char)*hex)) {
            int value = isdigit((unsigned char)*hex) ? *hex - '0' : tolower((unsigned char)*hex) - 'a' + 10;
            out[digits / 2] = (uint8_t)(digits % 2 == 0 ? value << 4 : out[digits / 2] | value);
            digits++;
        }
    }
    return digits / 2;
}

struct pdm_spec {
    int name;
    const char *text; /* of a definition with string names */
    int16_t type;
    bool optional;
    uint32_t str_len, count;
};

static inline lbmpdm_field_handle_t pdm_add(lbmpdm_defn_t *defn, const struct pdm_spec *spec)
{
    lbmpdm_field_info_attr_t attr = {
        .flags = PDM_FIELD_INFO_FLAG_REQ | PDM_FIELD_INFO_FLAG_FIXED_STR_LEN | PDM_FIELD_INFO_FLAG_NUM_ARR_ELEM,
        .req = !spec->optional,
        .fixed_str_len = spec->str_len,
        .num_arr_elem = spec->count,
    };
    return spec->text != NULL ? lbmpdm_defn_add_field_info_by_str_name(defn, spec->text, spec->type, &attr)
                              : lbmpdm_defn_add_field_info_by_int_name(defn, spec->name, spec->type, &attr);
}

/* A finalized definition, NULL when something failed. */
static inline lbmpdm_defn_t *pdm_define(int32_t id, int8_t major, int8_t minor, const struct pdm_spec *specs, int count)
{
    lbmpdm_defn_t *defn = NULL;
    if (lbmpdm_defn_create(&defn, 1, id, major, minor, specs[0].text == NULL) != PDM_SUCCESS) {
        return NULL;
    }
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        good = pdm_add(defn, &specs[i]) == i;
    }
    if (!good || lbmpdm_defn_finalize(defn) != PDM_SUCCESS) {
        lbmpdm_defn_delete(defn);
        return NULL;
    }
    return defn;
}

static const struct pdm_spec pdm_three[] = {
    {100, NULL, PDM_TYPE_BOOLEAN, false, 0, 0},
    {101, NULL, PDM_TYPE_INT32, false, 0, 0},
    {102, NULL, PDM_TYPE_FLOAT, false, 0, 0},
};
static const struct pdm_spec pdm_nine[] = {
    {100, NULL, PDM_TYPE_BOOLEAN, false, 0, 0},        {101, NULL, PDM_TYPE_INT32, false, 0, 0},
    {102, NULL, PDM_TYPE_FLOAT, false, 0, 0},          {103, NULL, PDM_TYPE_INT8, true, 0, 0},
    {104, NULL, PDM_TYPE_FIX_STRING, false, 12, 0},    {105, NULL, PDM_TYPE_STRING, false, 0, 0},
    {106, NULL, PDM_TYPE_BOOLEAN_ARR, false, 0, 3},    {107, NULL, PDM_TYPE_INT32_ARR, true, 0, 0},
    {108, NULL, PDM_TYPE_FIX_STRING_ARR, false, 5, 2},
};
static const struct pdm_spec pdm_named[] = {
    {0, "px", PDM_TYPE_DECIMAL, false, 0, 0},  {0, "ts", PDM_TYPE_TIMESTAMP, false, 0, 0},
    {0, "sub", PDM_TYPE_MESSAGE, true, 0, 0},  {0, "tags", PDM_TYPE_STRING_ARR, true, 0, 2},
    {0, "lv", PDM_TYPE_INT32_ARR, true, 0, 2},
};

/* Fills the values of the specification in; 0 when all calls succeeded. */
static inline int pdm_fill_three(lbmpdm_msg_t *msg)
{
    uint8_t yes = 1;
    int32_t seven = 7;
    float pi = 3.14f;
    return lbmpdm_msg_set_field_value(msg, 0, &yes, 0) | lbmpdm_msg_set_field_value(msg, 1, &seven, sizeof seven) |
           lbmpdm_msg_set_field_value(msg, 2, &pi, 0);
}

static inline int pdm_fill_nine(lbmpdm_msg_t *msg)
{
    uint8_t flags[] = {1, 0, 1};
    int32_t numbers[] = {1, 2, 3, 4, 5};
    const char *texts[] = {"aaaaa", "bbbbb"}, *text = "variable length value";
    size_t lengths[] = {6, 0};
    return pdm_fill_three(msg) | lbmpdm_msg_set_field_value(msg, 4, "Hello World!", 13) |
           lbmpdm_msg_set_field_value(msg, 5, (void *)text, strlen(text) + 1) |
           lbmpdm_msg_set_field_value_vec(msg, 6, flags, NULL, 3) |
           lbmpdm_msg_set_field_value_vec(msg, 7, numbers, NULL, 5) |
           lbmpdm_msg_set_field_value_vec(msg, 8, texts, lengths, 2);
}

static inline int pdm_fill_named(lbmpdm_msg_t *msg, lbmpdm_msg_t *sub)
{
    lbmpdm_decimal_t price = {31415, -2};
    lbmpdm_timestamp_t at = {1700000000, 123456};
    int32_t levels[] = {-1, 2};
    const char *tags[] = {"ab", "cde"};
    size_t lengths[] = {3, 4};
    return lbmpdm_msg_set_field_value(msg, 0, &price, sizeof price) | lbmpdm_msg_set_field_value(msg, 1, &at, 0) |
           lbmpdm_msg_set_field_value(msg, 2, sub, sizeof sub) |
           lbmpdm_msg_set_field_value_vec(msg, 3, tags, lengths, 2) |
           lbmpdm_msg_set_field_value_vec(msg, 4, levels, NULL, 2);
}

#define PDM_COUNT(specs) ((int)(sizeof(specs) / sizeof(specs)[0]))

#endif
