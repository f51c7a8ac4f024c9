/**
 * lbmpdm.h - pre-defined messages: values of fields that a definition, known to both sides or sent along, declares
 * beforehand. Independent of lbm.h.
 *
 * Functions return PDM_SUCCESS or PDM_FAILURE, with lbmpdm_errnum() and lbmpdm_errmsg() per thread, and never touch a
 * context: all may be called in a context-thread callback. Objects are for one thread at a time; a finalized definition
 * may be used by messages of several threads.
 *
 * Values of scalars are pointers to the value of C (uint8_t for booleans), char * for strings, void * for blobs and
 * lbmpdm_msg_t * for messages. Values of arrays are contiguous for numbers, decimals and timestamps, and arrays of
 * pointers for all else. Lengths are bytes, those of strings with their NUL.
 */
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

/** Flags, results, error numbers and field types. */
#define PDM_FALSE (uint8_t)0
#define PDM_TRUE (uint8_t)1
#define PDM_FIELD_INFO_FLAG_REQ 0x1           /**< req is set */
#define PDM_FIELD_INFO_FLAG_FIXED_STR_LEN 0x2 /**< fixed_str_len is set */
#define PDM_FIELD_INFO_FLAG_NUM_ARR_ELEM 0x4  /**< num_arr_elem is set */
#define PDM_MSG_FLAG_VAR_OR_OPT_FLDS_SET 0x1
#define PDM_MSG_FLAG_INCL_DEFN 0x2                /**< the definition goes along */
#define PDM_MSG_FLAG_USE_MSG_DEFN_IF_NEEDED 0x4   /**< use the definition that came along */
#define PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE 0x8 /**< look into the cache */
#define PDM_MSG_FLAG_NEED_BYTE_SWAP 0x10
#define PDM_MSG_FLAG_DEL_DEFN_WHEN_REPLACED 0x20 /**< free a replaced definition */
#define PDM_MSG_VER_POLICY_EXACT 0               /**< only the same version */
#define PDM_MSG_VER_POLICY_BEST 1                /**< the nearest version */
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

/** Objects. Their contents are private to the library. */
typedef struct lbmpdm_msg_stct_t lbmpdm_msg_t;
typedef struct lbmpdm_defn_stct_t lbmpdm_defn_t;
typedef struct lbmpdm_iter_stct_t lbmpdm_iter_t;

/** Structures and unions defined below. */
typedef struct lbmpdm_field_info_attr_stct_t lbmpdm_field_info_attr_t;
typedef struct lbmpdm_field_value_stct_t lbmpdm_field_value_t;

/** The number mant * 10^exp. */
typedef struct {
    int64_t mant;
    int8_t exp;
} lbmpdm_decimal_t;

typedef struct {
    int32_t tv_secs;  /**< seconds */
    int32_t tv_usecs; /**< microseconds */
} lbmpdm_timestamp_t;

/** Properties of a field; only members whose flag is set are read. */
struct lbmpdm_field_info_attr_stct_t {
    int flags;
    uint8_t req;            /**< PDM_TRUE by default */
    uint32_t fixed_str_len; /**< characters */
    uint32_t num_arr_elem;  /**< 0 = variable */
    char fill[256];
};

/** A value taken out of a message; freed by lbmpdm_field_value_stct_delete(). */
struct lbmpdm_field_value_stct_t {
    uint16_t field_type;
    uint8_t is_array;
    uint8_t is_fixed;
    size_t len; /**< bytes */
    char *value;
    uint32_t num_arr_elem;
    size_t *len_arr; /**< bytes of each element */
    char **value_arr;
    char fill[256];
};

/** PDM_ERR_* number of the last failure on this thread. */
LBMPDMExpDLL int lbmpdm_errnum(void);

/** Its text. */
LBMPDMExpDLL const char *lbmpdm_errmsg(void);

/** Sets the size of the cache of definitions. */
LBMPDMExpDLL int lbmpdm_cache_init(uint32_t cache_size);

/** Puts a definition into the cache. */
LBMPDMExpDLL int lbmpdm_cache_struct_add(lbmpdm_defn_t *defn);

/** Removes a definition from the cache. */
LBMPDMExpDLL int lbmpdm_cache_struct_remove(int32_t id);

/** Removes a definition from the cache. */
LBMPDMExpDLL int lbmpdm_cache_struct_remove_by_version(int32_t id, uint8_t vers_major, uint8_t vers_minor);

/** Finds a definition in the cache; defn is untouched when there is none. */
LBMPDMExpDLL int lbmpdm_cache_struct_find(lbmpdm_defn_t **defn, int32_t id);

/** Finds a definition in the cache; defn is untouched when there is none. */
LBMPDMExpDLL int lbmpdm_cache_struct_find_by_version(lbmpdm_defn_t **defn, int32_t id, uint8_t vers_major,
                                                     uint8_t vers_minor);

/** Empties the cache. */
LBMPDMExpDLL int lbmpdm_cache_clear_all(void);

/** Handle of a field, -1 when there is none. */
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_get_field_handle_by_str_name(lbmpdm_defn_t *defn, const char *str_name);

/** Handle of a field, -1 when there is none. */
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_get_field_handle_by_int_name(lbmpdm_defn_t *defn, int32_t int_name);

/** Makes a definition with room for num_fields fields. */
LBMPDMExpDLL int lbmpdm_defn_create(lbmpdm_defn_t **defn, int32_t num_fields, int32_t id, int8_t vrs_mjr,
                                    int8_t vrs_mnr, uint8_t field_names_type);

/** Frees the definition. */
LBMPDMExpDLL int lbmpdm_defn_delete(lbmpdm_defn_t *defn);

/** Closes the definition; messages can be made from it now. */
LBMPDMExpDLL int lbmpdm_defn_finalize(lbmpdm_defn_t *defn);

/** Adds a field and returns its handle, -1 on failure. */
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_add_field_info_by_str_name(lbmpdm_defn_t *defn, const char *str_name,
                                                                          int16_t type,
                                                                          lbmpdm_field_info_attr_t *info_attr);

/** Adds a field and returns its handle, -1 on failure. */
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_defn_add_field_info_by_int_name(lbmpdm_defn_t *defn, int32_t int_name,
                                                                          int16_t type,
                                                                          lbmpdm_field_info_attr_t *info_attr);

/** Bytes of the serialized definition. */
LBMPDMExpDLL uint32_t lbmpdm_defn_get_length(lbmpdm_defn_t *defn);

/** Property of the definition. */
LBMPDMExpDLL int32_t lbmpdm_defn_get_id(lbmpdm_defn_t *defn);

/** Property of the definition. */
LBMPDMExpDLL int32_t lbmpdm_defn_get_num_fields(lbmpdm_defn_t *defn);

/** Property of the definition. */
LBMPDMExpDLL int8_t lbmpdm_defn_get_msg_vers_major(lbmpdm_defn_t *defn);

/** Property of the definition. */
LBMPDMExpDLL int8_t lbmpdm_defn_get_msg_vers_minor(lbmpdm_defn_t *defn);

/** Property of the definition. */
LBMPDMExpDLL uint8_t lbmpdm_defn_get_field_names_type(lbmpdm_defn_t *defn);

/** PDM_TRUE when closed. */
LBMPDMExpDLL uint8_t lbmpdm_defn_is_finalized(lbmpdm_defn_t *defn);

/** Name of a field; borrowed. */
LBMPDMExpDLL const char *lbmpdm_defn_get_field_info_str_name(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle);

/** Number that names a field. */
LBMPDMExpDLL int32_t lbmpdm_defn_get_field_info_int_name(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle);

/** PDM_TYPE_* of a field. */
LBMPDMExpDLL int16_t lbmpdm_defn_get_field_info_type(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle);

/** Writes the definition as bytes. */
LBMPDMExpDLL int lbmpdm_defn_serialize(lbmpdm_defn_t *defn, char *buffer, uint32_t *defn_len);

/** Makes a definition from bytes. */
LBMPDMExpDLL int lbmpdm_defn_deserialize(lbmpdm_defn_t *defn, const char *bufptr, uint32_t buflen, uint8_t swap_bytes);

/** Makes a message of a definition. */
LBMPDMExpDLL int lbmpdm_msg_create(lbmpdm_msg_t **message, lbmpdm_defn_t *defn, uint32_t flags);

/** Frees the message; its definition stays. */
LBMPDMExpDLL int lbmpdm_msg_delete(lbmpdm_msg_t *message);

/** Frees the definition. */
LBMPDMExpDLL int lbmpdm_msg_and_defn_delete(lbmpdm_msg_t *message);

/** Bytes of the serialized message. */
LBMPDMExpDLL uint32_t lbmpdm_msg_get_length(const lbmpdm_msg_t *message);

/** Definition of the message; borrowed. */
LBMPDMExpDLL lbmpdm_defn_t *lbmpdm_msg_get_defn(const lbmpdm_msg_t *message);

/** PDM_TRUE when the field has a value. */
LBMPDMExpDLL uint8_t lbmpdm_msg_is_field_set(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle);

/** Copy of a value; freed by lbmpdm_field_value_stct_delete(). */
LBMPDMExpDLL int lbmpdm_msg_get_field_value_stct(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle,
                                                 lbmpdm_field_value_t *field_value);

/** Reads a value; a buffer too small fails and *len tells the need. */
LBMPDMExpDLL int lbmpdm_msg_get_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                            size_t *len);

/** Reads an array; too small buffers fail and the lengths tell the need. */
LBMPDMExpDLL int lbmpdm_msg_get_field_value_vec(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                                size_t len[], size_t *num_arr_elem);

/** Writes a value. */
LBMPDMExpDLL int lbmpdm_msg_set_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                            size_t len);

/** Writes an array. */
LBMPDMExpDLL int lbmpdm_msg_set_field_value_vec(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                                                size_t len[], size_t num_arr_elem);

/** Takes the value of a field away. */
LBMPDMExpDLL int lbmpdm_msg_remove_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle);

/** Sends the definition along. */
LBMPDMExpDLL int lbmpdm_msg_set_incl_defn_flag(lbmpdm_msg_t *message);

/** Sends the message without its definition. */
LBMPDMExpDLL int lbmpdm_msg_unset_incl_defn_flag(lbmpdm_msg_t *message);

/** Frees what lbmpdm_msg_get_field_value_stct() filled in. */
LBMPDMExpDLL int lbmpdm_field_value_stct_delete(lbmpdm_field_value_t *field_value);

/** Writes the message as bytes. */
LBMPDMExpDLL int lbmpdm_msg_serialize(lbmpdm_msg_t *message, char *buffer);

/** Fills the message from bytes. */
LBMPDMExpDLL int lbmpdm_msg_deserialize(lbmpdm_msg_t *message, const char *bufptr, uint32_t buflen);

/** Serialized bytes; they belong to the message. */
LBMPDMExpDLL char *lbmpdm_msg_get_data(lbmpdm_msg_t *message);

/** Iterator over the fields. */
LBMPDMExpDLL int lbmpdm_iter_create(lbmpdm_iter_t **iter, lbmpdm_msg_t *message);

/** Iterator that starts at a field. */
LBMPDMExpDLL int lbmpdm_iter_create_from_field_handle(lbmpdm_iter_t **iter, lbmpdm_msg_t *message,
                                                      lbmpdm_field_handle_t field_handle);

/** Frees the iterator. */
LBMPDMExpDLL int lbmpdm_iter_delete(lbmpdm_iter_t *iter);

/** Handle of the present field. */
LBMPDMExpDLL lbmpdm_field_handle_t lbmpdm_iter_get_current(lbmpdm_iter_t *iter);

/** Goes to the first field. */
LBMPDMExpDLL int lbmpdm_iter_first(lbmpdm_iter_t *iter);

/** Goes to the next field; PDM_ERR_NO_MORE_FIELDS at the end. */
LBMPDMExpDLL int lbmpdm_iter_next(lbmpdm_iter_t *iter);

/** PDM_TRUE when another field follows. */
LBMPDMExpDLL uint8_t lbmpdm_iter_has_next(lbmpdm_iter_t *iter);

/** PDM_TRUE when the field has a value. */
LBMPDMExpDLL uint8_t lbmpdm_iter_is_current_set(lbmpdm_iter_t *iter);

/** Points the iterator at another message of the definition. */
LBMPDMExpDLL int lbmpdm_iter_set_msg(lbmpdm_iter_t *iter, lbmpdm_msg_t *message);

/** Writes a value. */
LBMPDMExpDLL int lbmpdm_iter_set_current_field_value(lbmpdm_iter_t *iter, void *value, size_t len);

/** Writes an array. */
LBMPDMExpDLL int lbmpdm_iter_set_current_field_value_vec(lbmpdm_iter_t *iter, void *value, size_t len[],
                                                         size_t num_arr_elem);

/** Reads a value; a buffer too small fails and *len tells the need. */
LBMPDMExpDLL int lbmpdm_iter_get_current_field_value(lbmpdm_iter_t *iter, void *value, size_t *len);

/** Reads an array; too small buffers fail and the lengths tell the need. */
LBMPDMExpDLL int lbmpdm_iter_get_current_field_value_vec(lbmpdm_iter_t *iter, void *value, size_t len[],
                                                         size_t *num_arr_elem);

#ifdef __cplusplus
}
#endif

#endif
