/* The nine fields as a self-describing message. Fields are added, and found by their names; elements by position. */
#include <lbm/lbmsdm.h>
#include <stdio.h>
#include <string.h>

#include "nine.h"

static lbmsdm_msg_t *out_message, *in_message;

static int add_arrays(lbmsdm_msg_t *message, const struct nine *in)
{
    int rc = lbmsdm_msg_add_boolean_array(message, "Field106");
    for (int i = 0; i < 3; i++) {
        rc |= lbmsdm_msg_add_boolean_elem_name(message, "Field106", in->flags[i]);
    }
    rc |= lbmsdm_msg_add_int32_array(message, "Field107");
    for (int i = 0; i < in->count; i++) {
        rc |= lbmsdm_msg_add_int32_elem_name(message, "Field107", in->values[i]);
    }
    rc |= lbmsdm_msg_add_string_array(message, "Field108");
    for (int i = 0; i < 2; i++) {
        rc |= lbmsdm_msg_add_string_elem_name(message, "Field108", in->pair[i]);
    }
    return rc;
}

static const uint8_t *serialise(const struct nine *in, uint8_t *room, size_t *len)
{
    lbmsdm_msg_t *message = out_message;
    int rc = lbmsdm_msg_clear(message);
    rc |= lbmsdm_msg_add_boolean(message, "Field100", in->flag);
    rc |= lbmsdm_msg_add_int32(message, "Field101", in->number);
    rc |= lbmsdm_msg_add_float(message, "Field102", in->price);
    rc |= in->has_small ? lbmsdm_msg_add_int8(message, "Field103", in->small) : 0;
    rc |= lbmsdm_msg_add_string(message, "Field104", in->fixed);
    rc |= lbmsdm_msg_add_string(message, "Field105", in->text);
    rc |= add_arrays(message, in);
    const char *data = lbmsdm_msg_get_data(message);
    (void)room;
    *len = lbmsdm_msg_get_datalen(message);
    return rc == LBMSDM_SUCCESS ? (const uint8_t *)data : NULL;
}

static int get_arrays(lbmsdm_msg_t *message, struct nine *out)
{
    int rc = 0;
    for (size_t i = 0; i < 3; i++) {
        uint8_t flag = 0;
        rc |= lbmsdm_msg_get_boolean_elem_name(message, "Field106", i, &flag);
        out->flags[i] = flag != 0;
    }
    out->count = lbmsdm_msg_get_elemcnt_name(message, "Field107");
    for (size_t i = 0; i < (size_t)out->count && i < 8; i++) {
        rc |= lbmsdm_msg_get_int32_elem_name(message, "Field107", i, &out->values[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        size_t size = sizeof out->pair[i];
        rc |= lbmsdm_msg_get_string_elem_name(message, "Field108", i, out->pair[i], &size);
    }
    return rc;
}

static bool parse(const uint8_t *bytes, size_t len, struct nine *out)
{
    lbmsdm_msg_t *message = in_message;
    size_t fixed = sizeof out->fixed, text = sizeof out->text;
    uint8_t flag = 0;
    if (lbmsdm_msg_parse_reuse(message, (const char *)bytes, len) != LBMSDM_SUCCESS) {
        return false;
    }
    int rc = lbmsdm_msg_get_boolean_name(message, "Field100", &flag);
    out->flag = flag != 0;
    rc |= lbmsdm_msg_get_int32_name(message, "Field101", &out->number);
    rc |= lbmsdm_msg_get_float_name(message, "Field102", &out->price);
    out->has_small = lbmsdm_msg_get_idx_name(message, "Field103") >= 0;
    rc |= out->has_small ? lbmsdm_msg_get_int8_name(message, "Field103", &out->small) : 0;
    rc |= lbmsdm_msg_get_string_name(message, "Field104", out->fixed, &fixed);
    rc |= lbmsdm_msg_get_string_name(message, "Field105", out->text, &text);
    return (rc | get_arrays(message, out)) == LBMSDM_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct nine_encoding encoding = {"SDM", serialise, parse, NULL};
    if (lbmsdm_msg_create(&out_message) != LBMSDM_SUCCESS || lbmsdm_msg_create(&in_message) != LBMSDM_SUCCESS) {
        fprintf(stderr, "SDM: %s\n", lbmsdm_errmsg());
        return 1;
    }
    return nine_main(argc, argv, &encoding);
}
