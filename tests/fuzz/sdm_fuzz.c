/* Fuzz target: SDM messages from bytes, with each of the options that matter. What is accepted has values that can all
 * be read, and bytes that read back as themselves. */
#include <stdlib.h>
#include <string.h>

#include <lbm/lbmsdm.h>

static void check(int ok)
{
    if (!ok) {
        abort();
    }
}

static void read_elements(lbmsdm_msg_t *msg, size_t index)
{
    int elements = lbmsdm_msg_get_elemcnt_idx(msg, index);
    check(elements >= 0);
    for (int i = 0; i < elements; i++) {
        lbmsdm_decimal_t decimal;
        check(lbmsdm_msg_get_elemlen_idx(msg, index, (size_t)i) >= 0);
        (void)lbmsdm_msg_get_decimal_elem_idx(msg, index, (size_t)i, &decimal);
    }
}

static void read_fields(lbmsdm_msg_t *msg)
{
    int fields = lbmsdm_msg_get_fldcnt(msg);
    for (size_t i = 0; i < (size_t)fields; i++) {
        lbmsdm_decimal_t decimal;
        double real;
        int32_t whole;
        const char *name = lbmsdm_msg_get_name_idx(msg, i);
        check(name != NULL && strlen(name) >= 1 && strlen(name) <= LBMSDM_MAX_FIELD_NAME_LENGTH);
        check(lbmsdm_msg_get_idx_name(msg, name) >= 0);
        if (lbmsdm_msg_is_null_idx(msg, i)) {
            continue;
        }
        if ((lbmsdm_msg_get_type_idx(msg, i) & LBMSDM_TYPE_MODIFIER_ARRAY) != 0) {
            read_elements(msg, i);
        } else {
            check(lbmsdm_msg_get_len_idx(msg, i) >= 0);
            (void)lbmsdm_msg_get_decimal_idx(msg, i, &decimal);
            (void)lbmsdm_msg_get_double_idx(msg, i, &real);
            (void)lbmsdm_msg_get_int32_idx(msg, i, &whole);
        }
    }
}

static void check_message(lbmsdm_msg_t *msg, const lbmsdm_msg_attr_t *attr)
{
    static char text[4096];
    lbmsdm_msg_t *again, *clone;
    size_t len = lbmsdm_msg_get_datalen(msg);
    read_fields(msg);
    check(lbmsdm_msg_dump(msg, text, sizeof text) == LBMSDM_SUCCESS);
    check(lbmsdm_msg_parse_ex(&again, lbmsdm_msg_get_data(msg), len, attr) == LBMSDM_SUCCESS);
    check(lbmsdm_msg_clone(&clone, again) == LBMSDM_SUCCESS);
    check(lbmsdm_msg_get_datalen(clone) == len &&
          memcmp(lbmsdm_msg_get_data(clone), lbmsdm_msg_get_data(msg), len) == 0);
    lbmsdm_msg_destroy(again);
    lbmsdm_msg_destroy(clone);
    if (lbmsdm_msg_get_fldcnt(msg) > 0) {
        check(lbmsdm_msg_del_idx(msg, 0) == LBMSDM_SUCCESS);
    }
    lbmsdm_msg_destroy(msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const options[][2] = {{"name_tree", "1"}, {"name_tree", "0"}, {"integer_index", "1"}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        lbmsdm_msg_attr_t *attr;
        lbmsdm_msg_t *msg;
        check(lbmsdm_msg_attr_create(&attr) == LBMSDM_SUCCESS);
        check(lbmsdm_msg_attr_str_setopt(attr, options[i][0], options[i][1]) == LBMSDM_SUCCESS);
        if (lbmsdm_msg_parse_ex(&msg, (const char *)data, len, attr) == LBMSDM_SUCCESS) {
            check_message(msg, attr);
        }
        lbmsdm_msg_attr_delete(attr);
    }
    return 0;
}
