/* From self-describing messages to pre-defined ones: a definition made of a message, and its values carried over.
 * Prints the values as both kinds of messages have them, and the bytes that they need. Nothing is sent. */
#include <inttypes.h>
#include <lbm/lbmpdm.h>
#include <lbm/lbmsdm.h>
#include <stdio.h>
#include <stdlib.h>

static void check_sdm(int result, int line)
{
    if (result != LBMSDM_SUCCESS) {
        printf("line %d: %s\n", line, lbmsdm_errmsg());
        exit(1);
    }
}

static void check_pdm(int result, int line)
{
    if (result < 0) {
        printf("line %d: %s\n", line, lbmpdm_errmsg());
        exit(1);
    }
}

/* The same in both, for the types that this example knows. */
static int16_t type_of(lbmsdm_field_type_t type)
{
    switch (type) {
    case LBMSDM_TYPE_INT8:
        return PDM_TYPE_INT8;
    case LBMSDM_TYPE_INT16:
        return PDM_TYPE_INT16;
    case LBMSDM_TYPE_INT32:
        return PDM_TYPE_INT32;
    case LBMSDM_TYPE_STRING:
        return PDM_TYPE_STRING;
    default:
        printf("SDM type %u: not part of this example\n", (unsigned)type);
        exit(1);
    }
}

/* A definition with the fields of a message. A field that may be missing, or null, is optional. */
static lbmpdm_defn_t *definition_of(lbmsdm_msg_t *sdm, int32_t id)
{
    lbmpdm_defn_t *defn;
    lbmpdm_field_info_attr_t attr = {.flags = PDM_FIELD_INFO_FLAG_REQ};
    int count = lbmsdm_msg_get_fldcnt(sdm);
    check_pdm(lbmpdm_defn_create(&defn, count, id, 1, 0, PDM_DEFN_STR_FIELD_NAMES), __LINE__);
    for (size_t i = 0; i < (size_t)count; i++) {
        attr.req = lbmsdm_msg_is_null_idx(sdm, i) ? PDM_FALSE : PDM_TRUE;
        check_pdm(lbmpdm_defn_add_field_info_by_str_name(defn, lbmsdm_msg_get_name_idx(sdm, i),
                                                         type_of(lbmsdm_msg_get_type_idx(sdm, i)), &attr),
                  __LINE__);
    }
    check_pdm(lbmpdm_defn_finalize(defn), __LINE__);
    return defn;
}

/* One value by its name. SDM converts between numbers when it reads; PDM takes the type of the definition. */
static void carry(lbmsdm_msg_t *sdm, size_t index, lbmpdm_msg_t *pdm)
{
    const char *name = lbmsdm_msg_get_name_idx(sdm, index);
    lbmpdm_field_handle_t handle = lbmpdm_defn_get_field_handle_by_str_name(lbmpdm_msg_get_defn(pdm), name);
    int8_t i8;
    int16_t i16;
    int32_t i32;
    char text[256];
    size_t size = sizeof text;
    if (lbmsdm_msg_is_null_idx(sdm, index)) {
        return; /* an optional field that is not set */
    }
    switch (lbmsdm_msg_get_type_idx(sdm, index)) {
    case LBMSDM_TYPE_INT8:
        check_sdm(lbmsdm_msg_get_int8_idx(sdm, index, &i8), __LINE__);
        check_pdm(lbmpdm_msg_set_field_value(pdm, handle, &i8, sizeof i8), __LINE__);
        break;
    case LBMSDM_TYPE_INT16:
        check_sdm(lbmsdm_msg_get_int16_idx(sdm, index, &i16), __LINE__);
        check_pdm(lbmpdm_msg_set_field_value(pdm, handle, &i16, sizeof i16), __LINE__);
        break;
    case LBMSDM_TYPE_INT32:
        check_sdm(lbmsdm_msg_get_int32_idx(sdm, index, &i32), __LINE__);
        check_pdm(lbmpdm_msg_set_field_value(pdm, handle, &i32, sizeof i32), __LINE__);
        break;
    default:
        check_sdm(lbmsdm_msg_get_string_idx(sdm, index, text, &size), __LINE__);
        check_pdm(lbmpdm_msg_set_field_value(pdm, handle, text, size), __LINE__); /* with its NUL */
        break;
    }
}

/* What a receiver has: the definition, and the bytes of a message. */
static void print(lbmpdm_defn_t *defn, const char *data, uint32_t length)
{
    static const char *const names[] = {"Field100", "Field101", "Field102"};
    lbmpdm_msg_t *pdm;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    void *const values[] = {&i8, &i16, &i32};
    size_t sizes[] = {sizeof i8, sizeof i16, sizeof i32};
    check_pdm(lbmpdm_msg_create(&pdm, defn, 0), __LINE__);
    check_pdm(lbmpdm_msg_deserialize(pdm, data, length), __LINE__);
    for (int i = 0; i < 3; i++) {
        lbmpdm_field_handle_t handle = lbmpdm_defn_get_field_handle_by_str_name(defn, names[i]);
        check_pdm(lbmpdm_msg_get_field_value(pdm, handle, values[i], &sizes[i]), __LINE__);
    }
    printf("PDM: %d %d %" PRId32 ", %" PRIu32 " bytes\n", i8, i16, i32, length);
    check_pdm(lbmpdm_msg_delete(pdm), __LINE__);
}

int main(void)
{
    lbmsdm_msg_t *sdm;
    lbmpdm_msg_t *pdm;
    check_sdm(lbmsdm_msg_create(&sdm), __LINE__);
    check_sdm(lbmsdm_msg_add_int8(sdm, "Field100", 0x42), __LINE__);
    check_sdm(lbmsdm_msg_add_int16(sdm, "Field101", 0x1ead), __LINE__);
    check_sdm(lbmsdm_msg_add_int32(sdm, "Field102", 12345), __LINE__);
    int32_t i8, i16, i32;
    check_sdm(lbmsdm_msg_get_int32_name(sdm, "Field100", &i8), __LINE__);
    check_sdm(lbmsdm_msg_get_int32_name(sdm, "Field101", &i16), __LINE__);
    check_sdm(lbmsdm_msg_get_int32_name(sdm, "Field102", &i32), __LINE__);
    printf("SDM: %" PRId32 " %" PRId32 " %" PRId32 ", %zu bytes\n", i8, i16, i32, lbmsdm_msg_get_datalen(sdm));

    lbmpdm_defn_t *defn = definition_of(sdm, 100); /* once, at the start: sender and receiver have it */
    check_pdm(lbmpdm_msg_create(&pdm, defn, 0), __LINE__);
    for (size_t i = 0; i < (size_t)lbmsdm_msg_get_fldcnt(sdm); i++) {
        carry(sdm, i, pdm);
    }
    print(defn, lbmpdm_msg_get_data(pdm), lbmpdm_msg_get_length(pdm));
    check_pdm(lbmpdm_msg_set_incl_defn_flag(pdm), __LINE__);
    printf("with the definition: %" PRIu32 " bytes\n", lbmpdm_msg_get_length(pdm));

    check_pdm(lbmpdm_msg_delete(pdm), __LINE__);
    check_pdm(lbmpdm_defn_delete(defn), __LINE__);
    check_sdm(lbmsdm_msg_destroy(sdm), __LINE__);
    return 0;
}
