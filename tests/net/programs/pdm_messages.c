/* Writes pre-defined messages of every type as text for text2pcap, one packet each: of each type a message with its
 * definition and one without, required and optional, fixed-count and variable-count arrays (of one element, because
 * the stock dissector takes such an array for a scalar); then messages of names, of integers and nested ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lbm/lbmpdm.h>

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, lbmpdm_errmsg());
        exit(1);
    }
}

static void print(lbmpdm_msg_t *msg)
{
    uint32_t len = lbmpdm_msg_get_length(msg);
    const unsigned char *data = (const unsigned char *)lbmpdm_msg_get_data(msg);
    must(data != NULL, "write");
    for (uint32_t i = 0; i < len; i++) {
        if (i % 16 == 0) {
            printf("%s%06x", i == 0 ? "" : "\n", i);
        }
        printf(" %02x", data[i]);
    }
    printf("\n");
}

static void add(lbmpdm_defn_t *defn, int name, int type, int required, uint32_t count)
{
    char text[16];
    lbmpdm_field_info_attr_t attr = {.flags = 7, .req = required, .fixed_str_len = 6, .num_arr_elem = count};
    snprintf(text, sizeof text, "field%d", name);
    int by_text = lbmpdm_defn_get_field_names_type(defn) == PDM_DEFN_STR_FIELD_NAMES;
    must((by_text ? lbmpdm_defn_add_field_info_by_str_name(defn, text, type, &attr)
                  : lbmpdm_defn_add_field_info_by_int_name(defn, name, type, &attr)) >= 0,
         "field");
}

static lbmpdm_msg_t *inner(void)
{
    static lbmpdm_msg_t *msg;
    lbmpdm_defn_t *defn;
    int32_t seven = 7;
    if (msg == NULL) {
        must(lbmpdm_defn_create(&defn, 1, 900, 1, 0, PDM_DEFN_INT_FIELD_NAMES) == 0, "definition");
        add(defn, 1, PDM_TYPE_INT32, 1, 0);
        must(lbmpdm_defn_finalize(defn) == 0 && lbmpdm_msg_create(&msg, defn, PDM_MSG_FLAG_INCL_DEFN) == 0, "message");
        must(lbmpdm_msg_set_field_value(msg, 0, &seven, 0) == 0, "value");
    }
    return msg;
}

/* Values of any scalar type: the bytes of numbers, texts, messages. */
static void set(lbmpdm_msg_t *msg, int handle, int type, uint32_t count)
{
    static const lbmpdm_decimal_t decimals[] = {{31415, -2}, {1, 3}};
    static const lbmpdm_timestamp_t stamps[] = {{1700000000, 123456}, {1, 2}};
    static const float floats[] = {3.5f, -1.25f};
    static const double doubles[] = {3.5, -1.25};
    static const uint64_t ones[] = {0x0101010101010101u, 0x0101010101010101u};
    static const char *const texts[] = {"abc", "defgh"};
    size_t lengths[] = {4, 6};
    lbmpdm_msg_t *messages[] = {inner(), inner()};
    int scalar = type >= PDM_TYPE_BOOLEAN_ARR ? type - PDM_TYPE_BOOLEAN_ARR : type;
    const void *numbers = scalar == PDM_TYPE_DECIMAL     ? (const void *)decimals
                          : scalar == PDM_TYPE_TIMESTAMP ? (const void *)stamps
                          : scalar == PDM_TYPE_FLOAT     ? (const void *)floats
                          : scalar == PDM_TYPE_DOUBLE    ? (const void *)doubles
                                                         : (const void *)ones;
    if (scalar <= PDM_TYPE_TIMESTAMP) {
        must((type == scalar ? lbmpdm_msg_set_field_value(msg, handle, (void *)numbers, 0)
                             : lbmpdm_msg_set_field_value_vec(msg, handle, (void *)numbers, NULL, count)) == 0,
             "number");
    } else if (scalar == PDM_TYPE_MESSAGE) {
        must((type == scalar ? lbmpdm_msg_set_field_value(msg, handle, messages[0], sizeof messages[0])
                             : lbmpdm_msg_set_field_value_vec(msg, handle, messages, NULL, count)) == 0,
             "message");
    } else {
        must((type == scalar ? lbmpdm_msg_set_field_value(msg, handle, (void *)texts[0], lengths[0])
                             : lbmpdm_msg_set_field_value_vec(msg, handle, (void *)texts, lengths, count)) == 0,
             "text");
    }
}

/* Required and optional; arrays also of variable count. */
static void write_type(int type, uint8_t names, int variable)
{
    lbmpdm_defn_t *defn;
    lbmpdm_msg_t *msg;
    uint32_t count = variable ? 1 : 2;
    must(lbmpdm_defn_create(&defn, 2, 1000 + type + 100 * names + 200 * variable, 1, 0, names) == 0, "definition");
    for (int i = 0; i < 2; i++) {
        add(defn, 10 + i, type, i == 0, variable ? 0 : count);
    }
    must(lbmpdm_defn_finalize(defn) == 0 && lbmpdm_msg_create(&msg, defn, PDM_MSG_FLAG_INCL_DEFN) == 0, "message");
    set(msg, 0, type, count);
    set(msg, 1, type, count);
    print(msg);
    lbmpdm_msg_unset_incl_defn_flag(msg);
    lbmpdm_msg_remove_field_value(msg, 1);
    print(msg);
    lbmpdm_msg_and_defn_delete(msg);
}

int main(void)
{
    for (int type = PDM_TYPE_BOOLEAN; type <= PDM_TYPE_MESSAGE_ARR; type++) {
        for (uint8_t names = 0; names < 2; names++) {
            write_type(type, names, 0);
            if (type >= PDM_TYPE_BOOLEAN_ARR) {
                write_type(type, names, 1);
            }
        }
    }
    return 0;
}
