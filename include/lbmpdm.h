/** libum public header lbmpdm.h */
#ifndef LBM_LBMPDM_H_INCLUDED
#define LBM_LBMPDM_H_INCLUDED

#include <inttypes.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LBMPDMExpDLL
#define LBMPDMExpDLL
#endif

#define PDM_FALSE (uint8_t)0
#define PDM_TRUE (uint8_t)1
#define PDM_FIELD_INFO_FLAG_REQ 0x1
#define PDM_FIELD_INFO_FLAG_FIXED_STR_LEN 0x2
#define PDM_FIELD_INFO_FLAG_NUM_ARR_ELEM 0x4
#define PDM_MSG_FLAG_VAR_OR_OPT_FLDS_SET 0x1
#define PDM_MSG_FLAG_INCL_DEFN 0x2
#define PDM_MSG_FLAG_USE_MSG_DEFN_IF_NEEDED 0x4
#define PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE 0x8
#define PDM_MSG_FLAG_NEED_BYTE_SWAP 0x10
#define PDM_MSG_FLAG_DEL_DEFN_WHEN_REPLACED 0x20
#define PDM_MSG_VER_POLICY_EXACT 0
#define PDM_MSG_VER_POLICY_BEST 1
#define PDM_SUCCESS 0
#define PDM_FAILURE (-1)
#define PDM_ERR_FIELD_IS_NULL 1
#define PDM_ERR_NO_MORE_FIELDS 2
#define PDM_ERR_INSUFFICIENT_BUFFER_LENGTH 3
#define PDM_ERR_EINVAL 4
#define PDM_ERR_FIELD_NOT_FOUND 5
#define PDM_ERR_MSG_INVALID 6
#define PDM_ERR_DEFN_INVALID 7
#define PDM_ERR_NOMEM 8
#define PDM_ERR_REQ_FIELD_NOT_SET 9
#define PDM_ERR_CREATE_SECTION 10
#define PDM_ERR_CREATE_BUFFER 11
#define PDM_INTERNAL_TYPE_INVALID (-1)
#define PDM_TYPE_BOOLEAN 0
#define PDM_TYPE_INT8 1
#define PDM_TYPE_UINT8 2
#define PDM_TYPE_INT16 3
#define PDM_TYPE_UINT16 4
#define PDM_TYPE_INT32 5
#define PDM_TYPE_UINT32 6
#define PDM_TYPE_INT64 7
#define PDM_TYPE_UINT64 8
#define PDM_TYPE_FLOAT 9
#define PDM_TYPE_DOUBLE 10
#define PDM_TYPE_DECIMAL 11
#define PDM_TYPE_TIMESTAMP 12
#define PDM_TYPE_FIX_STRING 13
#define PDM_TYPE_STRING 14
#define PDM_TYPE_FIX_UNICODE 15
#define PDM_TYPE_UNICODE 16
#define PDM_TYPE_BLOB 17
#define PDM_TYPE_MESSAGE 18
#define PDM_TYPE_BOOLEAN_ARR 19
#define PDM_TYPE_INT8_ARR 20
#define PDM_TYPE_UINT8_ARR 21
#define PDM_TYPE_INT16_ARR 22
#define PDM_TYPE_UINT16_ARR 23
#define PDM_TYPE_INT32_ARR 24
#define PDM_TYPE_UINT32_ARR 25
#define PDM_TYPE_INT64_ARR 26
#define PDM_TYPE_UINT64_ARR 27
#define PDM_TYPE_FLOAT_ARR 28
#define PDM_TYPE_DOUBLE_ARR 29
#define PDM_TYPE_DECIMAL_ARR 30
#define PDM_TYPE_TIMESTAMP_ARR 31
#define PDM_TYPE_FIX_STRING_ARR 32
#define PDM_TYPE_STRING_ARR 33
#define PDM_TYPE_FIX_UNICODE_ARR 34
#define PDM_TYPE_UNICODE_ARR 35
#define PDM_TYPE_BLOB_ARR 36
#define PDM_TYPE_MESSAGE_ARR 37
#define PDM_DEFN_STR_FIELD_NAMES 0
#define PDM_DEFN_INT_FIELD_NAMES 1
#define PDM_ITER_INVALID_FIELD_HANDLE (-1)

typedef int32_t lbmpdm_field_handle_t;

typedef struct lbmpdm_msg_stct_t lbmpdm_msg_t;
typedef struct lbmpdm_defn_stct_t lbmpdm_defn_t;
typedef struct lbmpdm_iter_stct_t lbmpdm_iter_t;

typedef struct lbmpdm_field_info_attr_stct_t lbmpdm_field_info_attr_t;
typedef struct lbmpdm_field_value_stct_t lbmpdm_field_value_t;

typedef struct {
    int64_t mant;
    int8_t exp;
} lbmpdm_decimal_t;

typedef struct {
    int32_t tv_secs;
    int32_t tv_usecs;
} lbmpdm_timestamp_t;

struct lbmpdm_field_info_attr_stct_t {
    int flags;
    uint8_t req;
    uint32_t fixed_str_len;
    uint32_t num_arr_elem;
    char fill[256];
};

struct lbmpdm_field_value_stct_t {
    uint16_t field_type;
    uint8_t is_array;
    uint8_t is_fixed;
    size_t len;
    char *value;
    uint32_t num_arr_elem;
    size_t *len_arr;
    char **value_arr;
    char fill[256];
};

LBMPDMExpDLL int lbmpdm_errnum(void);
LBMPDMExpDLL const char *lbmpdm_errmsg(void);
LBMPDMExpDLL int lbmpdm_cache_init(uint32_t cache_size);
LBMPDMExpDLL int lbmpdm_cache_struct_add(lbmpdm_defn_t *defn);
LBMPDMExpDLL int lbmpdm_cache_struct_remove(int32_t id);
LBMPDMExpDLL int lbmpdm_cache_struct_remove_by_version(int32_t id, uint8_t vers_major, uint8_t vers_minor);
LBMPDMExpDLL int lbmpdm_cache_struct_find(lbmpdm_defn_t **defn, int32_t id);
LBMPDMExpDLL int lbmpdm_cache_struct_find_by_version(lbmpdm_defn_t **defn, int32_t id, uint8_t vers_major,
                                                     uint8_t vers_minor);
LBMPDMExpDLL int lbmpdm_cache_clear_all(void);
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_get_field_handle_by_str_name(lbmpdm_defn_t *defn,
        const char *str_name);
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_get_field_handle_by_int_name(lbmpdm_defn_t *defn, int32_t int_name);
LBMPDMExpDLL int lbmpdm_defn_create(lbmpdm_defn_t **defn, int32_t num_fields, int32_t id, int8_t vrs_mjr,
                                    int8_t vrs_mnr, uint8_t field_names_type);
LBMPDMExpDLL int lbmpdm_defn_delete(lbmpdm_defn_t *defn);
LBMPDMExpDLL int lbmpdm_defn_finalize(lbmpdm_defn_t *defn);
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_add_field_info_by_str_name(lbmpdm_defn_t *defn, const char *str_name,
        int16_t type, lbmpdm_field_info_attr_t *info_attr);
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_add_field_info_by_int_name(lbmpdm_defn_t *defn, int32_t int_name,
        int16_t type, lbmpdm_field_info_attr_t *info_attr);
LBMPDMExpDLL uint32_t lbmpdm_defn_get_length(lbmpdm_defn_t *defn);
LBMPDMExpDLL int32_t lbmpdm_defn_get_id(lbmpdm_defn_t *defn);
LBMPDMExpDLL int32_t lbmpdm_defn_get_num_fields(lbmpdm_defn_t *defn);
LBMPDMExpDLL int8_t lbmpdm_defn_get_msg_vers_major(lbmpdm_defn_t *defn);
LBMPDMExpDLL int8_t lbmpdm_defn_get_msg_vers_minor(lbmpdm_defn_t *defn);
LBMPDMExpDLL uint8_t lbmpdm_defn_get_field_names_type(lbmpdm_defn_t *defn);
LBMPDMExpDLL uint8_t lbmpdm_defn_is_finalized(lbmpdm_defn_t *defn);
LBMPDMExpDLL const char *lbmpdm_defn_get_field_info_str_name(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle);
LBMPDMExpDLL int32_t lbmpdm_defn_get_field_info_int_name(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle);
LBMPDMExpDLL int16_t lbmpdm_defn_get_field_info_type(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle);
LBMPDMExpDLL int lbmpdm_defn_serialize(lbmpdm_defn_t *defn, char *buffer, uint32_t *defn_len);
LBMPDMExpDLL int lbmpdm_defn_deserialize(lbmpdm_defn_t *defn, const char *bufptr, uint32_t buflen,
                                         uint8_t swap_bytes);
LBMPDMExpDLL int lbmpdm_msg_create(lbmpdm_msg_t **message, lbmpdm_defn_t *defn, uint32_t flags);
LBMPDMExpDLL int lbmpdm_msg_delete(lbmpdm_msg_t *message);
LBMPDMExpDLL int lbmpdm_msg_and_defn_delete(lbmpdm_msg_t *message);
LBMPDMExpDLL uint32_t lbmpdm_msg_get_length(const lbmpdm_msg_t *message);
LBMPDMExpDLL lbmpdm_defn_t *lbmpdm_msg_get_defn(const lbmpdm_msg_t *message);
LBMPDMExpDLL uint8_t lbmpdm_msg_is_field_set(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle);
LBMPDMExpDLL int lbmpdm_msg_get_field_value_stct(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle,
                                                 lbmpdm_field_value_t *field_value);
LBMPDMExpDLL int lbmpdm_msg_get_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                            size_t *len);
LBMPDMExpDLL int lbmpdm_msg_get_field_value_vec(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                                size_t len[], size_t *num_arr_elem);
LBMPDMExpDLL int lbmpdm_msg_set_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                            size_t len);
LBMPDMExpDLL int lbmpdm_msg_set_field_value_vec(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                                size_t len[], size_t num_arr_elem);
LBMPDMExpDLL int lbmpdm_msg_remove_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle);
LBMPDMExpDLL int lbmpdm_msg_set_incl_defn_flag(lbmpdm_msg_t *message);
LBMPDMExpDLL int lbmpdm_msg_unset_incl_defn_flag(lbmpdm_msg_t *message);
LBMPDMExpDLL int lbmpdm_field_value_stct_delete(lbmpdm_field_value_t *field_value);
LBMPDMExpDLL int lbmpdm_msg_serialize(lbmpdm_msg_t *message, char *buffer);
LBMPDMExpDLL int lbmpdm_msg_deserialize(lbmpdm_msg_t *message, const char *bufptr, uint32_t buflen);
LBMPDMExpDLL char *lbmpdm_msg_get_data(lbmpdm_msg_t *message);
LBMPDMExpDLL int lbmpdm_iter_create(lbmpdm_iter_t **iter, lbmpdm_msg_t *message);
LBMPDMExpDLL int lbmpdm_iter_create_from_field_handle(lbmpdm_iter_t **iter, lbmpdm_msg_t *message,
                                                      lbmpdm_field_handle_t field_handle);
LBMPDMExpDLL int lbmpdm_iter_delete(lbmpdm_iter_t *iter);
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_iter_get_current(lbmpdm_iter_t *iter);
LBMPDMExpDLL int lbmpdm_iter_first(lbmpdm_iter_t *iter);
LBMPDMExpDLL int lbmpdm_iter_next(lbmpdm_iter_t *iter);
LBMPDMExpDLL uint8_t lbmpdm_iter_has_next(lbmpdm_iter_t *iter);
LBMPDMExpDLL uint8_t lbmpdm_iter_is_current_set(lbmpdm_iter_t *iter);
LBMPDMExpDLL int lbmpdm_iter_set_msg(lbmpdm_iter_t *iter, lbmpdm_msg_t *message);
LBMPDMExpDLL int lbmpdm_iter_set_current_field_value(lbmpdm_iter_t *iter, void *value, size_t len);
LBMPDMExpDLL int lbmpdm_iter_set_current_field_value_vec(lbmpdm_iter_t *iter, void *value, size_t len[],
                                                         size_t num_arr_elem);
LBMPDMExpDLL int lbmpdm_iter_get_current_field_value(lbmpdm_iter_t *iter, void *value, size_t *len);
LBMPDMExpDLL int lbmpdm_iter_get_current_field_value_vec(lbmpdm_iter_t *iter, void *value, size_t len[],
                                                         size_t *num_arr_elem);

#ifdef __cplusplus
}
#endif

#endif
