/* The nine fields as a pre-defined message: definition 1002, known to both sides. */
#include <lbm/lbmpdm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nine.h"

enum { FLAG, NUMBER, PRICE, SMALL, FIXED, TEXT, FLAGS, VALUES, PAIR, FIELDS };

static lbmpdm_field_handle_t handles[FIELDS];
static lbmpdm_msg_t *out_message, *in_message;

static void add(lbmpdm_defn_t *defn, int field, int16_t type, uint8_t req, uint32_t characters, uint32_t count)
{
    lbmpdm_field_info_attr_t attr = {.flags = PDM_FIELD_INFO_FLAG_REQ | PDM_FIELD_INFO_FLAG_FIXED_STR_LEN |
                                              PDM_FIELD_INFO_FLAG_NUM_ARR_ELEM,
                                     .req = req,
                                     .fixed_str_len = characters,
                                     .num_arr_elem = count};
    handles[field] = lbmpdm_defn_add_field_info_by_int_name(defn, 100 + field, type, &attr);
}

static bool set_up(void)
{
    lbmpdm_defn_t *defn;
    if (lbmpdm_defn_create(&defn, FIELDS, 1002, 1, 0, PDM_DEFN_INT_FIELD_NAMES) != PDM_SUCCESS) {
        return false;
    }
    add(defn, FLAG, PDM_TYPE_BOOLEAN, PDM_TRUE, 0, 0);
    add(defn, NUMBER, PDM_TYPE_INT32, PDM_TRUE, 0, 0);
    add(defn, PRICE, PDM_TYPE_FLOAT, PDM_TRUE, 0, 0);
    add(defn, SMALL, PDM_TYPE_INT8, PDM_FALSE, 0, 0);
    add(defn, FIXED, PDM_TYPE_FIX_STRING, PDM_TRUE, 12, 0);
    add(defn, TEXT, PDM_TYPE_STRING, PDM_TRUE, 0, 0);
    add(defn, FLAGS, PDM_TYPE_BOOLEAN_ARR, PDM_TRUE, 0, 3);
    add(defn, VALUES, PDM_TYPE_INT32_ARR, PDM_FALSE, 0, 0);
    add(defn, PAIR, PDM_TYPE_FIX_STRING_ARR, PDM_TRUE, 5, 2);
    return lbmpdm_defn_finalize(defn) == PDM_SUCCESS && lbmpdm_msg_create(&out_message, defn, 0) == PDM_SUCCESS &&
           lbmpdm_msg_create(&in_message, defn, 0) == PDM_SUCCESS;
}

static const uint8_t *serialise(const struct nine *in, uint8_t *room, size_t *len)
{
    lbmpdm_msg_t *message = out_message;
    const char *pair[] = {in->pair[0], in->pair[1]};
    size_t pair_len[] = {sizeof in->pair[0], sizeof in->pair[1]};
    int rc = lbmpdm_msg_set_field_value(message, handles[FLAG], (void *)&in->flag, sizeof in->flag);
    rc |= lbmpdm_msg_set_field_value(message, handles[NUMBER], (void *)&in->number, sizeof in->number);
    rc |= lbmpdm_msg_set_field_value(message, handles[PRICE], (void *)&in->price, sizeof in->price);
    rc |= in->has_small ? lbmpdm_msg_set_field_value(message, handles[SMALL], (void *)&in->small, sizeof in->small)
                        : lbmpdm_msg_remove_field_value(message, handles[SMALL]);
    rc |= lbmpdm_msg_set_field_value(message, handles[FIXED], (void *)in->fixed, sizeof in->fixed);
    rc |= lbmpdm_msg_set_field_value(message, handles[TEXT], (void *)in->text, strlen(in->text) + 1);
    rc |= lbmpdm_msg_set_field_value_vec(message, handles[FLAGS], (void *)in->flags, NULL, 3);
    rc |= lbmpdm_msg_set_field_value_vec(message, handles[VALUES], (void *)in->values, NULL, (size_t)in->count);
    rc |= lbmpdm_msg_set_field_value_vec(message, handles[PAIR], (void *)pair, pair_len, 2);
    uint32_t length = lbmpdm_msg_get_length(message);
    if (rc != PDM_SUCCESS || length == 0 || length > NINE_BYTES_MAX ||
        lbmpdm_msg_serialize(message, (char *)room) != PDM_SUCCESS) {
        return NULL;
    }
    *len = length;
    return room;
}

static int get(int field, void *value, size_t room)
{
    return lbmpdm_msg_get_field_value(in_message, handles[field], value, &room);
}

static int get_vec(int field, void *value, size_t *len, size_t count)
{
    return lbmpdm_msg_get_field_value_vec(in_message, handles[field], value, len, &count) == PDM_SUCCESS ? (int)count
                                                                                                         : -1;
}

static bool parse(const uint8_t *bytes, size_t len, struct nine *out)
{
    char *pair[] = {out->pair[0], out->pair[1]};
    size_t pair_len[] = {sizeof out->pair[0], sizeof out->pair[1]};
    if (lbmpdm_msg_deserialize(in_message, (const char *)bytes, (uint32_t)len) != PDM_SUCCESS) {
        return false;
    }
    int rc = get(FLAG, &out->flag, sizeof out->flag);
    rc |= get(NUMBER, &out->number, sizeof out->number);
    rc |= get(PRICE, &out->price, sizeof out->price);
    out->has_small = lbmpdm_msg_is_field_set(in_message, handles[SMALL]) == PDM_TRUE;
    rc |= out->has_small ? get(SMALL, &out->small, sizeof out->small) : 0;
    rc |= get(FIXED, out->fixed, sizeof out->fixed);
    rc |= get(TEXT, out->text, sizeof out->text);
    rc |= get_vec(FLAGS, out->flags, NULL, 3) < 0;
    rc |= (out->count = get_vec(VALUES, out->values, NULL, 8)) < 0;
    rc |= get_vec(PAIR, pair, pair_len, 2) < 0;
    return rc == 0;
}

int main(int argc, char **argv)
{
    static const struct nine_encoding encoding = {"PDM", serialise, parse, NULL};
    if (!set_up()) {
        fprintf(stderr, "PDM: %s\n", lbmpdm_errmsg());
        return 1;
    }
    return nine_main(argc, argv, &encoding);
}
