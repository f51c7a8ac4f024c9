/* Rules of setting and getting values, which definition a message is read with, iterators. */
#include "um_test_pdm.h"

static const struct pdm_spec two[] = {
    {0, "Field1", PDM_TYPE_INT32, false, 0, 0},
    {0, "Field2", PDM_TYPE_STRING_ARR, true, 0, 0},
};

TEST(acceptance_1_two_fields_go_there_and_back)
{
    lbmpdm_defn_t *defn = pdm_define(1000, 1, 0, two, 2);
    lbmpdm_msg_t *msg, *copy;
    int32_t number = 50, back = 0;
    const char *texts[] = {"s1", "str2", "string3"};
    size_t lengths[] = {3, 5, 8}, len = 4, count = 3, room[] = {8, 8, 8};
    char a[8], b[8], c[8], *out[] = {a, b, c}, data[182];
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, &number, sizeof number), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_set_field_value_vec(msg, 1, texts, lengths, 3), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_get_length(msg), 76);
    CHECK_EQ(lbmpdm_msg_set_incl_defn_flag(msg), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_get_length(msg), 182);
    CHECK_EQ(lbmpdm_msg_serialize(msg, data), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_create(&copy, NULL, 0), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_deserialize(copy, data, sizeof data), PDM_SUCCESS);
    memset(data, 0xff, sizeof data); /* the message has its own copy */
    CHECK_EQ(lbmpdm_msg_get_field_value(copy, 0, &back, &len), PDM_SUCCESS);
    CHECK_EQ(back, 50);
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(copy, 1, out, room, &count), PDM_SUCCESS);
    CHECK_EQ(count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_STR(out[i], texts[i]);
        CHECK_EQ(room[i], lengths[i]);
    }
    CHECK_EQ(lbmpdm_msg_and_defn_delete(copy), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), PDM_SUCCESS);
}

TEST(acceptance_2_a_message_without_a_required_value_is_not_written)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    char data[64];
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(pdm_fill_three(msg), 0);
    CHECK_EQ(lbmpdm_msg_remove_field_value(msg, 1), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_is_field_set(msg, 1), PDM_FALSE);
    CHECK_EQ(lbmpdm_msg_serialize(msg, data), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_REQ_FIELD_NOT_SET);
    CHECK_EQ(lbmpdm_msg_get_length(msg), 0);
    CHECK(lbmpdm_msg_get_data(msg) == NULL);
    CHECK_EQ(pdm_fill_three(msg), 0);
    CHECK_EQ(lbmpdm_msg_get_length(msg), 41);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(acceptance_3_space_that_is_too_small_is_told_how_much_is_needed)
{
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg;
    char text[22], a[6], b[6], *texts[] = {a, b};
    int32_t numbers[5] = {0};
    size_t len = 21, count = 4, room[] = {5, 6};
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(pdm_fill_nine(msg), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 5, text, &len), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_INSUFFICIENT_BUFFER_LENGTH);
    CHECK_EQ(len, 22);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 5, text, &len), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 7, numbers, NULL, &count), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_INSUFFICIENT_BUFFER_LENGTH);
    CHECK_EQ(count, 5);
    CHECK_EQ(numbers[0], 0);
    count = 2;
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 8, texts, room, &count), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_INSUFFICIENT_BUFFER_LENGTH);
    CHECK_EQ(room[0], 6);
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 8, texts, room, &count), PDM_SUCCESS);
    CHECK_STR(b, "bbbbb");
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(acceptance_6_handles_of_another_definition_are_not_found)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    int32_t value = 0;
    size_t len = 4;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    for (int handle = -1; handle < 5; handle += 4) {
        CHECK_EQ(lbmpdm_msg_set_field_value(msg, handle, &value, 4), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_NOT_FOUND);
        CHECK_EQ(lbmpdm_msg_get_field_value(msg, handle, &value, &len), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_NOT_FOUND);
        CHECK_EQ(lbmpdm_msg_remove_field_value(msg, handle), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_NOT_FOUND);
    }
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 1, &value, &len), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_IS_NULL);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(acceptance_7_fixed_strings_take_what_fits)
{
    static const struct pdm_spec texts[] = {
        {1, NULL, PDM_TYPE_FIX_STRING, false, 12, 0},
        {2, NULL, PDM_TYPE_FIX_UNICODE, false, 3, 0},
    };
    lbmpdm_defn_t *defn = pdm_define(7, 1, 0, texts, 2);
    lbmpdm_msg_t *msg;
    char text[13];
    size_t len = 13;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, "Hello World!", 13), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, "Hello Worlds!", 14), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 0, text, &len), PDM_SUCCESS);
    CHECK_STR(text, "Hello World!");
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, "Hello Worlds!", 0), PDM_SUCCESS); /* as much as fits */
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 0, text, &len), PDM_SUCCESS);
    CHECK_STR(text, "Hello Worlds");
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, "x", 2), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 0, text, &len), PDM_SUCCESS);
    CHECK(memcmp(text, "x\0\0\0\0\0\0\0\0\0\0\0", 13) == 0);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 1, "\xf0\x9f\x98\x80\xf0\x9f\x98\x81\xf0\x9f\x98\x82", 13), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 1, text, &len), PDM_SUCCESS);
    CHECK_STR(text, "\xf0\x9f\x98\x80\xf0\x9f\x98\x81\xf0\x9f\x98\x82");
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(acceptance_8_three_levels_of_messages_each_with_its_definition)
{
    static const struct pdm_spec nested[] = {{1, NULL, PDM_TYPE_MESSAGE, false, 0, 0}};
    lbmpdm_defn_t *outer = pdm_define(10, 1, 0, nested, 1), *middle = pdm_define(11, 1, 0, nested, 1);
    lbmpdm_defn_t *inner = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *messages[3], *copies[3];
    CHECK_EQ(lbmpdm_msg_create(&messages[0], inner, PDM_MSG_FLAG_INCL_DEFN), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_create(&messages[1], middle, PDM_MSG_FLAG_INCL_DEFN), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_create(&messages[2], outer, PDM_MSG_FLAG_INCL_DEFN), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_set_field_value(messages[1], 0, messages[0], 8), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_REQ_FIELD_NOT_SET);
    CHECK_EQ(pdm_fill_three(messages[0]), 0);
    for (int i = 1; i < 3; i++) {
        CHECK_EQ(lbmpdm_msg_set_field_value(messages[i], 0, messages[i - 1], sizeof(lbmpdm_msg_t *)), PDM_SUCCESS);
    }
    CHECK_EQ(lbmpdm_msg_remove_field_value(messages[0], 0), 0); /* no effect: written when it was set */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lbmpdm_msg_create(&copies[i], NULL, 0), PDM_SUCCESS);
    }
    uint32_t length = lbmpdm_msg_get_length(messages[2]);
    CHECK_EQ(lbmpdm_msg_deserialize(copies[2], lbmpdm_msg_get_data(messages[2]), length), PDM_SUCCESS);
    for (int i = 2; i > 0; i--) {
        size_t len = sizeof(lbmpdm_msg_t *);
        CHECK_EQ(lbmpdm_msg_get_field_value(copies[i], 0, copies[i], &len), -1); /* not into itself */
        CHECK_EQ(lbmpdm_msg_get_field_value(copies[i], 0, copies[i - 1], &len), PDM_SUCCESS);
    }
    int32_t number = 0;
    size_t len = 4;
    CHECK_EQ(lbmpdm_msg_get_field_value(copies[0], 1, &number, &len), PDM_SUCCESS);
    CHECK_EQ(number, 7);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lbmpdm_msg_and_defn_delete(copies[i]), 0);
        CHECK_EQ(lbmpdm_msg_and_defn_delete(messages[i]), 0);
    }
}

TEST(values_of_the_wrong_form_are_refused)
{
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg;
    int32_t numbers[3] = {0};
    uint8_t flags[3] = {7, 0, 1};
    size_t lengths[] = {8, 8, 8}, count = 3;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 1, numbers, 8), -1);           /* length of another type */
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 1, NULL, 0), -1);              /* no value */
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 6, flags, 3), -1);             /* scalar call on an array */
    CHECK_EQ(lbmpdm_msg_set_field_value_vec(msg, 1, numbers, NULL, 1), -1); /* the reverse */
    CHECK_EQ(lbmpdm_msg_set_field_value_vec(msg, 6, flags, NULL, 2), -1);   /* not the fixed count */
    CHECK_EQ(lbmpdm_msg_set_field_value_vec(msg, 7, numbers, NULL, 0), -1); /* empty */
    CHECK_EQ(lbmpdm_msg_set_field_value_vec(msg, 7, numbers, lengths, 3), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    CHECK_EQ(lbmpdm_msg_set_field_value_vec(msg, 6, flags, NULL, 3), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 6, flags, NULL, &count), 0);
    CHECK_EQ(flags[0], 1); /* a boolean is 0 or 1 */
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 6, flags, lengths), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(definitions_refuse_what_they_cannot_hold)
{
    lbmpdm_defn_t *defn, *strings;
    lbmpdm_field_info_attr_t huge = {.flags = 7, .req = 1, .fixed_str_len = 0x40000000, .num_arr_elem = 4};
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_defn_create(&defn, 0, 1, 1, 0, PDM_DEFN_INT_FIELD_NAMES), -1);
    CHECK_EQ(lbmpdm_defn_create(&defn, 1, 1, 1, 0, PDM_DEFN_INT_FIELD_NAMES), 0);
    CHECK_EQ(lbmpdm_defn_finalize(defn), -1); /* no field */
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    CHECK_EQ(lbmpdm_defn_add_field_info_by_int_name(defn, 1, 38, NULL), -1);
    CHECK_EQ(lbmpdm_defn_add_field_info_by_int_name(defn, 1, -1, NULL), -1);
    CHECK_EQ(lbmpdm_defn_add_field_info_by_int_name(defn, 1, PDM_TYPE_FIX_STRING, NULL), -1); /* no length */
    CHECK_EQ(lbmpdm_defn_add_field_info_by_int_name(defn, 1, PDM_TYPE_FIX_UNICODE_ARR, &huge), -1);
    CHECK_EQ(lbmpdm_defn_add_field_info_by_str_name(defn, "1", PDM_TYPE_INT8, NULL), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    for (int i = 0; i < 100; i++) { /* more than asked for */
        CHECK_EQ(lbmpdm_defn_add_field_info_by_int_name(defn, i, PDM_TYPE_INT8, NULL), i);
    }
    CHECK_EQ(lbmpdm_defn_add_field_info_by_int_name(defn, 99, PDM_TYPE_INT8, NULL), -1); /* the name again */
    CHECK_EQ(lbmpdm_defn_finalize(defn), 0);
    CHECK_EQ(lbmpdm_defn_finalize(defn), 0);
    CHECK_EQ(lbmpdm_defn_add_field_info_by_int_name(defn, 100, PDM_TYPE_INT8, NULL), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    CHECK_EQ(lbmpdm_defn_get_field_handle_by_int_name(defn, 77), 77);
    CHECK_EQ(lbmpdm_defn_get_field_handle_by_int_name(defn, 100), -1);
    CHECK_EQ(lbmpdm_defn_get_field_handle_by_str_name(defn, "77"), -1);
    CHECK_EQ(lbmpdm_defn_get_field_info_type(defn, 100), PDM_INTERNAL_TYPE_INVALID);
    CHECK(lbmpdm_defn_get_field_info_str_name(defn, 1) == NULL);
    CHECK_EQ(lbmpdm_defn_create(&strings, 1, 1, 1, 0, PDM_DEFN_STR_FIELD_NAMES), 0);
    CHECK_EQ(lbmpdm_defn_add_field_info_by_str_name(strings, "Name", PDM_TYPE_INT8, NULL), 0);
    CHECK_EQ(lbmpdm_defn_add_field_info_by_str_name(strings, "name", PDM_TYPE_INT8, NULL), 1);
    CHECK_STR(lbmpdm_defn_get_field_info_str_name(strings, 1), "name");
    CHECK_EQ(lbmpdm_defn_get_field_info_int_name(strings, 1), -1);
    CHECK_EQ(lbmpdm_defn_delete(strings), 0);
    CHECK_EQ(lbmpdm_defn_delete(defn), 0);
}

TEST(a_definition_outlives_its_deletion_while_messages_use_it)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(lbmpdm_defn_deserialize(defn, "", 0, 0), -1); /* in use */
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    CHECK_EQ(lbmpdm_defn_delete(defn), 0);
    CHECK_EQ(lbmpdm_defn_delete(defn), -1);
    CHECK_EQ(pdm_fill_three(msg), 0);
    CHECK_EQ(lbmpdm_msg_get_length(msg), 41);
    CHECK_EQ(lbmpdm_msg_delete(msg), 0);
}

TEST(values_as_structures_are_copies)
{
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg;
    lbmpdm_field_value_t value;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(pdm_fill_nine(msg), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_stct(msg, 3, &value), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_IS_NULL);
    CHECK_EQ(lbmpdm_msg_get_field_value_stct(msg, 5, &value), 0);
    CHECK(!value.is_array && !value.is_fixed && value.len == 22 && value.field_type == PDM_TYPE_STRING);
    CHECK_STR(value.value, "variable length value");
    CHECK_EQ(lbmpdm_field_value_stct_delete(&value), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_stct(msg, 7, &value), 0);
    CHECK(value.is_array && value.num_arr_elem == 5 && value.len_arr[4] == 4 && *(int32_t *)value.value_arr[4] == 5);
    CHECK_EQ(lbmpdm_field_value_stct_delete(&value), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_stct(msg, 8, &value), 0);
    CHECK(value.is_array && value.is_fixed && value.num_arr_elem == 2 && value.len_arr[1] == 6);
    CHECK_STR(value.value_arr[1], "bbbbb");
    CHECK_EQ(lbmpdm_field_value_stct_delete(&value), 0);
    CHECK_EQ(lbmpdm_field_value_stct_delete(&value), 0); /* empty now */
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(iterators_visit_every_field_in_order)
{
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg, *empty;
    lbmpdm_iter_t *iter;
    int8_t small = 3;
    size_t len = 1, count = 5;
    int32_t numbers[5] = {9, 9, 9, 9, 9};
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(pdm_fill_nine(msg), 0);
    CHECK_EQ(lbmpdm_iter_create(&iter, msg), 0);
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(lbmpdm_iter_get_current(iter), i);
        CHECK_EQ(lbmpdm_iter_is_current_set(iter), i != 3);
        CHECK_EQ(lbmpdm_iter_has_next(iter), i != 8);
        CHECK_EQ(lbmpdm_iter_next(iter), i == 8 ? PDM_ERR_NO_MORE_FIELDS : PDM_SUCCESS);
    }
    CHECK_EQ(lbmpdm_iter_delete(iter), 0);
    CHECK_EQ(lbmpdm_iter_create_from_field_handle(&iter, msg, 9), -1);
    CHECK_EQ(lbmpdm_iter_create_from_field_handle(&iter, msg, 3), 0);
    CHECK_EQ(lbmpdm_iter_get_current_field_value(iter, &small, &len), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_FIELD_IS_NULL);
    CHECK_EQ(lbmpdm_iter_set_current_field_value(iter, &small, len), 0);
    CHECK_EQ(lbmpdm_iter_get_current_field_value(iter, &small, &len), 0);
    for (int i = 3; i < 7; i++) {
        CHECK_EQ(lbmpdm_iter_next(iter), 0);
    }
    CHECK_EQ(lbmpdm_iter_set_current_field_value_vec(iter, numbers, NULL, 2), 0);
    CHECK_EQ(lbmpdm_iter_get_current_field_value_vec(iter, numbers, NULL, &count), 0);
    CHECK_EQ(count, 2);
    CHECK_EQ(lbmpdm_iter_first(iter), 0);
    CHECK_EQ(lbmpdm_iter_get_current(iter), 0);
    CHECK_EQ(lbmpdm_msg_create(&empty, NULL, 0), 0);
    CHECK_EQ(lbmpdm_iter_set_msg(iter, empty), 0);
    CHECK_EQ(lbmpdm_iter_get_current(iter), PDM_ITER_INVALID_FIELD_HANDLE);
    CHECK_EQ(lbmpdm_iter_is_current_set(iter), PDM_FALSE);
    CHECK_EQ(lbmpdm_iter_next(iter), PDM_ERR_NO_MORE_FIELDS);
    CHECK_EQ(lbmpdm_iter_delete(iter), 0);
    CHECK_EQ(lbmpdm_msg_delete(empty), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

/* ---- which definition a message is read with ---- */

enum { KEEP, ADOPT, LOAD, NONE };

static struct choice {
    const char *row;
    int known; /* version of the message's definition: -1 none, minor of id 1001, or 100 for id 2001 */
    bool included;
    uint32_t flags;
    int cached; /* minor of what the cache has of id 1001, -1 nothing */
    int result;
} choices[] = {
    {"none, included", -1, true, 0, -1, ADOPT},
    {"none, included, cached", -1, true, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, 1, ADOPT},
    {"none, cached", -1, false, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, 1, LOAD},
    {"none, other version cached", -1, false, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, 0, LOAD},
    {"none, nothing cached", -1, false, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, -1, NONE},
    {"none, cached, not to be looked for", -1, false, 0, 1, NONE},
    {"same", 1, false, 0, -1, KEEP},
    {"same, included", 1, true, PDM_MSG_FLAG_USE_MSG_DEFN_IF_NEEDED, 1, KEEP},
    {"other version, included and wanted", 0, true, PDM_MSG_FLAG_USE_MSG_DEFN_IF_NEEDED, -1, ADOPT},
    {"other version, included and cached", 0, true,
     PDM_MSG_FLAG_USE_MSG_DEFN_IF_NEEDED | PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, 1, ADOPT},
    {"other version, cached", 0, false, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, 1, LOAD},
    {"other version, that of the message cached", 0, false, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, 0, KEEP},
    {"other version, included, not wanted", 0, true, 0, -1, KEEP},
    {"other version", 0, false, 0, -1, KEEP},
    {"other id, included", 100, true, 0, -1, ADOPT},
    {"other id, cached", 100, false, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE, 0, LOAD},
    {"other id", 100, false, 0, 1, NONE},
};

/* Version 1 has an optional field more. */
static lbmpdm_defn_t *version(int32_t id, int minor)
{
    static const struct pdm_spec specs[] = {
        {1, NULL, PDM_TYPE_INT32, false, 0, 0},
        {2, NULL, PDM_TYPE_STRING, true, 0, 0},
    };
    return pdm_define(id, 1, (int8_t)minor, specs, 1 + minor);
}

static void check_choice(const struct choice *choice)
{
    lbmpdm_defn_t *sent = version(1001, 1), *cached = NULL, *known = NULL;
    lbmpdm_msg_t *msg, *copy;
    int32_t number = 5, back = 0;
    size_t len = 4;
    lbmpdm_cache_clear_all();
    if (choice->cached >= 0) {
        cached = version(1001, choice->cached);
        CHECK_EQ(lbmpdm_cache_struct_add(cached), 0);
    }
    if (choice->known >= 0) {
        known = choice->known == 100 ? version(2001, 0) : version(1001, choice->known);
    }
    CHECK_EQ(lbmpdm_msg_create(&msg, sent, choice->included ? PDM_MSG_FLAG_INCL_DEFN : 0), 0);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, &number, 4) | lbmpdm_msg_set_field_value(msg, 1, "abc", 4), 0);
    CHECK_EQ(lbmpdm_msg_create(&copy, known, choice->flags | PDM_MSG_FLAG_DEL_DEFN_WHEN_REPLACED), 0);
    int rc = lbmpdm_msg_deserialize(copy, lbmpdm_msg_get_data(msg), lbmpdm_msg_get_length(msg));
    CHECK_EQ(rc, choice->result == NONE ? -1 : 0);
    if (rc != 0) {
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    } else {
        CHECK_EQ(lbmpdm_msg_get_field_value(copy, 0, &back, &len), 0);
        CHECK_EQ(back, 5);
    }
    const lbmpdm_defn_t *used = lbmpdm_msg_get_defn(copy);
    CHECK(choice->result == LOAD ? used == cached : choice->result != ADOPT ? used == known : used != known);
    CHECK(choice->result != ADOPT || (used != cached && used != NULL));
    CHECK_EQ(lbmpdm_msg_and_defn_delete(copy), 0); /* not one of the cache */
    CHECK_EQ(lbmpdm_cache_struct_find(&cached, 1001), choice->cached >= 0 ? 0 : -1);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
    lbmpdm_cache_clear_all();
}

TEST(acceptance_4_each_rule_of_the_choice_of_definitions)
{
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        check_choice(&choices[i]);
        if (um_test_failed) {
            TEST_FAIL("the row: %s", choices[i].row);
        }
    }
}

TEST(another_fixed_layout_under_the_same_id_is_refused)
{
    static const struct pdm_spec more[] = {
        {1, NULL, PDM_TYPE_INT32, false, 0, 0},
        {2, NULL, PDM_TYPE_INT32, false, 0, 0},
        {3, NULL, PDM_TYPE_STRING, true, 0, 0},
    };
    for (int with_text = 0; with_text < 2; with_text++) {
        lbmpdm_defn_t *small = pdm_define(5, 1, 0, more, 1), *large = pdm_define(5, 1, 1, more, 3);
        lbmpdm_msg_t *a, *b;
        int32_t number = 1;
        CHECK_EQ(lbmpdm_msg_create(&a, small, 0) | lbmpdm_msg_create(&b, large, 0), 0);
        CHECK_EQ(lbmpdm_msg_set_field_value(a, 0, &number, 4) | lbmpdm_msg_set_field_value(b, 0, &number, 4), 0);
        CHECK_EQ(lbmpdm_msg_set_field_value(b, 1, &number, 4), 0);
        CHECK_EQ(with_text ? lbmpdm_msg_set_field_value(b, 2, "a text", 7) : 0, 0);
        char to_large[256], to_small[256];
        uint32_t from_a = lbmpdm_msg_get_length(a), from_b = lbmpdm_msg_get_length(b);
        CHECK_EQ(lbmpdm_msg_serialize(a, to_large) | lbmpdm_msg_serialize(b, to_small), 0);
        CHECK_EQ(lbmpdm_msg_deserialize(a, to_small, from_b), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_MSG_INVALID);
        CHECK_EQ(lbmpdm_msg_deserialize(b, to_large, from_a), -1);
        CHECK_EQ(lbmpdm_errnum(), PDM_ERR_MSG_INVALID);
        CHECK_EQ(lbmpdm_msg_and_defn_delete(a) | lbmpdm_msg_and_defn_delete(b), 0);
    }
}

TEST(null_objects_are_errors)
{
    CHECK_EQ(lbmpdm_msg_delete(NULL), -1);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(NULL), -1);
    CHECK_EQ(lbmpdm_defn_delete(NULL), -1);
    CHECK_EQ(lbmpdm_defn_get_length(NULL), 0);
    CHECK_EQ(lbmpdm_msg_get_length(NULL), 0);
    CHECK(lbmpdm_msg_get_data(NULL) == NULL);
    CHECK(lbmpdm_msg_get_defn(NULL) == NULL);
    CHECK_EQ(lbmpdm_msg_is_field_set(NULL, 0), PDM_FALSE);
    CHECK_EQ(lbmpdm_iter_create(NULL, NULL), -1);
    CHECK_EQ(lbmpdm_iter_delete(NULL), -1);
    CHECK_EQ(lbmpdm_msg_deserialize(NULL, NULL, 0), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    CHECK_CONTAINS(lbmpdm_errmsg(), "a message and bytes are needed");
}
