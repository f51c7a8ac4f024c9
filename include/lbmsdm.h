/**
 * lbmsdm.h - self-describing messages: fields with a name, a type and a value, read and written without a schema.
 * Independent of lbm.h.
 *
 * Functions return LBMSDM_SUCCESS or LBMSDM_FAILURE, with lbmsdm_errnum() and lbmsdm_errmsg() per thread, and never
 * touch a context: all may be called in a context-thread callback. A message object is for one thread at a time.
 */
#ifndef LBM_LBMSDM_H_INCLUDED
#define LBM_LBMSDM_H_INCLUDED

#include <inttypes.h>
#include <stdlib.h>
#include <sys/time.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LBMSDMExpDLL
#define LBMSDMExpDLL
#endif

/** Field types, results and error numbers. An array type is the scalar type with LBMSDM_TYPE_MODIFIER_ARRAY. */
#define LBMSDM_MAX_FIELD_NAME_LENGTH 255 /**< characters of a field name */
#define LBMSDM_TYPE_MODIFIER_ARRAY 0x0100
enum {
    LBMSDM_TYPE_INVALID = 0,
    LBMSDM_TYPE_BOOLEAN = 1,
    LBMSDM_TYPE_INT8 = 2,
    LBMSDM_TYPE_UINT8 = 3,
    LBMSDM_TYPE_INT16 = 4,
    LBMSDM_TYPE_UINT16 = 5,
    LBMSDM_TYPE_INT32 = 6,
    LBMSDM_TYPE_UINT32 = 7,
    LBMSDM_TYPE_INT64 = 8,
    LBMSDM_TYPE_UINT64 = 9,
    LBMSDM_TYPE_FLOAT = 10,
    LBMSDM_TYPE_DOUBLE = 11,
    LBMSDM_TYPE_DECIMAL = 12,
    LBMSDM_TYPE_TIMESTAMP = 13,
    LBMSDM_TYPE_MESSAGE = 14,
    LBMSDM_TYPE_STRING = 15,
    LBMSDM_TYPE_UNICODE = 16,
    LBMSDM_TYPE_BLOB = 17,
    LBMSDM_TYPE_ARRAY_BOOLEAN = 257,
    LBMSDM_TYPE_ARRAY_INT8 = 258,
    LBMSDM_TYPE_ARRAY_UINT8 = 259,
    LBMSDM_TYPE_ARRAY_INT16 = 260,
    LBMSDM_TYPE_ARRAY_UINT16 = 261,
    LBMSDM_TYPE_ARRAY_INT32 = 262,
    LBMSDM_TYPE_ARRAY_UINT32 = 263,
    LBMSDM_TYPE_ARRAY_INT64 = 264,
    LBMSDM_TYPE_ARRAY_UINT64 = 265,
    LBMSDM_TYPE_ARRAY_FLOAT = 266,
    LBMSDM_TYPE_ARRAY_DOUBLE = 267,
    LBMSDM_TYPE_ARRAY_DECIMAL = 268,
    LBMSDM_TYPE_ARRAY_TIMESTAMP = 269,
    LBMSDM_TYPE_ARRAY_MESSAGE = 270,
    LBMSDM_TYPE_ARRAY_STRING = 271,
    LBMSDM_TYPE_ARRAY_UNICODE = 272,
    LBMSDM_TYPE_ARRAY_BLOB = 273,
    LBMSDM_SUCCESS = 0,
    LBMSDM_FAILURE = -1,
    LBMSDM_FIELD_IS_NULL = 1,              /**< result: the field has no value */
    LBMSDM_NO_MORE_FIELDS = 2,             /**< result: the iterator is at its end */
    LBMSDM_INSUFFICIENT_BUFFER_LENGTH = 3, /**< result: the buffer is too small */
    LBMSDM_ERR_EINVAL = 1,
    LBMSDM_ERR_ENOMEM = 2,
    LBMSDM_ERR_NAMETOOLONG = 3,
    LBMSDM_ERR_DUPLICATE_FIELD = 4,
    LBMSDM_ERR_BAD_TYPE = 5,
    LBMSDM_ERR_FIELD_NOT_FOUND = 6,
    LBMSDM_ERR_MSG_INVALID = 7,
    LBMSDM_ERR_CANNOT_CONVERT = 8,
    LBMSDM_ERR_NOT_ARRAY = 9,
    LBMSDM_ERR_NOT_SCALAR = 10,
    LBMSDM_ERR_ELEMENT_NOT_FOUND = 11,
    LBMSDM_ERR_TYPE_NOT_SUPPORTED = 12,
    LBMSDM_ERR_TYPE_MISMATCH = 13,
    LBMSDM_ERR_UNICODE_CONVERSION = 14,
    LBMSDM_ERR_FIELD_IS_NULL = 15,
    LBMSDM_ERR_ADDING_FIELD = 16,
    LBMSDM_ERR_ITERATOR_INVALID = 17,
    LBMSDM_ERR_DELETING_FIELD = 18,
    LBMSDM_ERR_INVALID_FIELD_NAME = 19,
};

typedef uint16_t lbmsdm_field_type_t;

/** Objects. Their contents are private to the library. */
typedef struct lbmsdm_msg_attr_t_stct lbmsdm_msg_attr_t;
typedef struct lbmsdm_msg_t_stct lbmsdm_msg_t;
typedef struct lbmsdm_iter_t_stct lbmsdm_iter_t;

/** Structures and unions defined below. */
typedef struct lbmsdm_decimal_t_stct lbmsdm_decimal_t;

/** The number mant * 10^exp. */
struct lbmsdm_decimal_t_stct {
    int64_t mant;
    int8_t exp;
};

/** LBMSDM_ERR_* number of the last failure on this thread. */
LBMSDMExpDLL int lbmsdm_errnum(void);

/** Its text. */
LBMSDMExpDLL const char *lbmsdm_errmsg(void);

/** Nothing on Linux. */
LBMSDMExpDLL int lbmsdm_win32_static_init(void);

/** Makes an empty message. */
LBMSDMExpDLL int lbmsdm_msg_create(lbmsdm_msg_t **Message);

/** Makes an empty message with options. */
LBMSDMExpDLL int lbmsdm_msg_create_ex(lbmsdm_msg_t **Message, const lbmsdm_msg_attr_t *Attributes);

/** Makes a message from bytes received. */
LBMSDMExpDLL int lbmsdm_msg_parse(lbmsdm_msg_t **Message, const char *Data, size_t Length);

/** Makes a message from bytes received, with options. */
LBMSDMExpDLL int lbmsdm_msg_parse_ex(lbmsdm_msg_t **Message, const char *Data, size_t Length,
                                     const lbmsdm_msg_attr_t *Attributes);

/** Replaces the contents of a message by bytes received. */
LBMSDMExpDLL int lbmsdm_msg_parse_reuse(lbmsdm_msg_t *Message, const char *Data, size_t Length);

/** Makes a copy. */
LBMSDMExpDLL int lbmsdm_msg_clone(lbmsdm_msg_t **Message, const lbmsdm_msg_t *Original);

/** Removes all fields. */
LBMSDMExpDLL int lbmsdm_msg_clear(lbmsdm_msg_t *Message);

/** Frees the message. */
LBMSDMExpDLL int lbmsdm_msg_destroy(lbmsdm_msg_t *Message);

/** Describes the message as text. */
LBMSDMExpDLL int lbmsdm_msg_dump(lbmsdm_msg_t *Message, char *Buffer, size_t Size);

/** Adds a field: a boolean. */
LBMSDMExpDLL int lbmsdm_msg_add_boolean(lbmsdm_msg_t *Message, const char *Name, uint8_t Value);

/** Adds a field: an 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int8(lbmsdm_msg_t *Message, const char *Name, int8_t Value);

/** Adds a field: an unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint8(lbmsdm_msg_t *Message, const char *Name, uint8_t Value);

/** Adds a field: a 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int16(lbmsdm_msg_t *Message, const char *Name, int16_t Value);

/** Adds a field: an unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint16(lbmsdm_msg_t *Message, const char *Name, uint16_t Value);

/** Adds a field: a 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int32(lbmsdm_msg_t *Message, const char *Name, int32_t Value);

/** Adds a field: an unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint32(lbmsdm_msg_t *Message, const char *Name, uint32_t Value);

/** Adds a field: a 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int64(lbmsdm_msg_t *Message, const char *Name, int64_t Value);

/** Adds a field: an unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint64(lbmsdm_msg_t *Message, const char *Name, uint64_t Value);

/** Adds a field: a float. */
LBMSDMExpDLL int lbmsdm_msg_add_float(lbmsdm_msg_t *Message, const char *Name, float Value);

/** Adds a field: a double. */
LBMSDMExpDLL int lbmsdm_msg_add_double(lbmsdm_msg_t *Message, const char *Name, double Value);

/** Adds a field: a decimal. */
LBMSDMExpDLL int lbmsdm_msg_add_decimal(lbmsdm_msg_t *Message, const char *Name, const lbmsdm_decimal_t *Value);

/** Adds a field: a timestamp. */
LBMSDMExpDLL int lbmsdm_msg_add_timestamp(lbmsdm_msg_t *Message, const char *Name, const struct timeval *Value);

/** Adds a field: a message. */
LBMSDMExpDLL int lbmsdm_msg_add_message(lbmsdm_msg_t *Message, const char *Name, const lbmsdm_msg_t *Value);

/** Adds a field: a text ending in NUL. */
LBMSDMExpDLL int lbmsdm_msg_add_string(lbmsdm_msg_t *Message, const char *Name, const char *Value);

/** Adds a field: wide characters. */
LBMSDMExpDLL int lbmsdm_msg_add_unicode(lbmsdm_msg_t *Message, const char *Name, const wchar_t *Value, size_t Length);

/** Adds a field: bytes. */
LBMSDMExpDLL int lbmsdm_msg_add_blob(lbmsdm_msg_t *Message, const char *Name, const void *Value, size_t Length);

/** Adds an empty array: elements boolean. */
LBMSDMExpDLL int lbmsdm_msg_add_boolean_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int8_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint8_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int16_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint16_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int32_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint32_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_int64_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_add_uint64_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements float. */
LBMSDMExpDLL int lbmsdm_msg_add_float_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements double. */
LBMSDMExpDLL int lbmsdm_msg_add_double_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements decimal. */
LBMSDMExpDLL int lbmsdm_msg_add_decimal_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements timestamp. */
LBMSDMExpDLL int lbmsdm_msg_add_timestamp_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements message. */
LBMSDMExpDLL int lbmsdm_msg_add_message_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements text ending in NUL. */
LBMSDMExpDLL int lbmsdm_msg_add_string_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements wide characters. */
LBMSDMExpDLL int lbmsdm_msg_add_unicode_array(lbmsdm_msg_t *Message, const char *Name);

/** Adds an empty array: elements bytes. */
LBMSDMExpDLL int lbmsdm_msg_add_blob_array(lbmsdm_msg_t *Message, const char *Name);

/** Appends a boolean to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_boolean_elem_idx(lbmsdm_msg_t *Message, size_t Index, uint8_t Value);

/** Appends an 8-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_int8_elem_idx(lbmsdm_msg_t *Message, size_t Index, int8_t Value);

/** Appends an unsigned 8-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_uint8_elem_idx(lbmsdm_msg_t *Message, size_t Index, uint8_t Value);

/** Appends a 16-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_int16_elem_idx(lbmsdm_msg_t *Message, size_t Index, int16_t Value);

/** Appends an unsigned 16-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_uint16_elem_idx(lbmsdm_msg_t *Message, size_t Index, uint16_t Value);

/** Appends a 32-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_int32_elem_idx(lbmsdm_msg_t *Message, size_t Index, int32_t Value);

/** Appends an unsigned 32-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_uint32_elem_idx(lbmsdm_msg_t *Message, size_t Index, uint32_t Value);

/** Appends a 64-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_int64_elem_idx(lbmsdm_msg_t *Message, size_t Index, int64_t Value);

/** Appends an unsigned 64-bit integer to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_uint64_elem_idx(lbmsdm_msg_t *Message, size_t Index, uint64_t Value);

/** Appends a float to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_float_elem_idx(lbmsdm_msg_t *Message, size_t Index, float Value);

/** Appends a double to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_double_elem_idx(lbmsdm_msg_t *Message, size_t Index, double Value);

/** Appends a decimal to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_decimal_elem_idx(lbmsdm_msg_t *Message, size_t Index, const lbmsdm_decimal_t *Value);

/** Appends a timestamp to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_timestamp_elem_idx(lbmsdm_msg_t *Message, size_t Index, const struct timeval *Value);

/** Appends a message to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_message_elem_idx(lbmsdm_msg_t *Message, size_t Index, const lbmsdm_msg_t *Value);

/** Appends a text ending in NUL to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_string_elem_idx(lbmsdm_msg_t *Message, size_t Index, const char *Value);

/** Appends wide characters to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_unicode_elem_idx(lbmsdm_msg_t *Message, size_t Index, const wchar_t *Value,
                                                 size_t Length);

/** Appends bytes to the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_add_blob_elem_idx(lbmsdm_msg_t *Message, size_t Index, const void *Value, size_t Length);

/** Appends a boolean to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_boolean_elem_name(lbmsdm_msg_t *Message, const char *Name, uint8_t Value);

/** Appends an 8-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_int8_elem_name(lbmsdm_msg_t *Message, const char *Name, int8_t Value);

/** Appends an unsigned 8-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_uint8_elem_name(lbmsdm_msg_t *Message, const char *Name, uint8_t Value);

/** Appends a 16-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_int16_elem_name(lbmsdm_msg_t *Message, const char *Name, int16_t Value);

/** Appends an unsigned 16-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_uint16_elem_name(lbmsdm_msg_t *Message, const char *Name, uint16_t Value);

/** Appends a 32-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_int32_elem_name(lbmsdm_msg_t *Message, const char *Name, int32_t Value);

/** Appends an unsigned 32-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_uint32_elem_name(lbmsdm_msg_t *Message, const char *Name, uint32_t Value);

/** Appends a 64-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_int64_elem_name(lbmsdm_msg_t *Message, const char *Name, int64_t Value);

/** Appends an unsigned 64-bit integer to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_uint64_elem_name(lbmsdm_msg_t *Message, const char *Name, uint64_t Value);

/** Appends a float to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_float_elem_name(lbmsdm_msg_t *Message, const char *Name, float Value);

/** Appends a double to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_double_elem_name(lbmsdm_msg_t *Message, const char *Name, double Value);

/** Appends a decimal to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_decimal_elem_name(lbmsdm_msg_t *Message, const char *Name,
                                                  const lbmsdm_decimal_t *Value);

/** Appends a timestamp to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_timestamp_elem_name(lbmsdm_msg_t *Message, const char *Name,
                                                    const struct timeval *Value);

/** Appends a message to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_message_elem_name(lbmsdm_msg_t *Message, const char *Name, const lbmsdm_msg_t *Value);

/** Appends a text ending in NUL to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_string_elem_name(lbmsdm_msg_t *Message, const char *Name, const char *Value);

/** Appends wide characters to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_unicode_elem_name(lbmsdm_msg_t *Message, const char *Name, const wchar_t *Value,
                                                  size_t Length);

/** Appends bytes to the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_add_blob_elem_name(lbmsdm_msg_t *Message, const char *Name, const void *Value,
                                               size_t Length);

/** Appends a boolean to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_boolean_elem(lbmsdm_iter_t *Iterator, uint8_t Value);

/** Appends an 8-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_int8_elem(lbmsdm_iter_t *Iterator, int8_t Value);

/** Appends an unsigned 8-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_uint8_elem(lbmsdm_iter_t *Iterator, uint8_t Value);

/** Appends a 16-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_int16_elem(lbmsdm_iter_t *Iterator, int16_t Value);

/** Appends an unsigned 16-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_uint16_elem(lbmsdm_iter_t *Iterator, uint16_t Value);

/** Appends a 32-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_int32_elem(lbmsdm_iter_t *Iterator, int32_t Value);

/** Appends an unsigned 32-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_uint32_elem(lbmsdm_iter_t *Iterator, uint32_t Value);

/** Appends a 64-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_int64_elem(lbmsdm_iter_t *Iterator, int64_t Value);

/** Appends an unsigned 64-bit integer to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_uint64_elem(lbmsdm_iter_t *Iterator, uint64_t Value);

/** Appends a float to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_float_elem(lbmsdm_iter_t *Iterator, float Value);

/** Appends a double to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_double_elem(lbmsdm_iter_t *Iterator, double Value);

/** Appends a decimal to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_decimal_elem(lbmsdm_iter_t *Iterator, const lbmsdm_decimal_t *Value);

/** Appends a timestamp to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_timestamp_elem(lbmsdm_iter_t *Iterator, const struct timeval *Value);

/** Appends a message to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_message_elem(lbmsdm_iter_t *Iterator, const lbmsdm_msg_t *Value);

/** Appends a text ending in NUL to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_string_elem(lbmsdm_iter_t *Iterator, const char *Value);

/** Appends wide characters to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_unicode_elem(lbmsdm_iter_t *Iterator, const wchar_t *Value, size_t Length);

/** Appends bytes to the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_add_blob_elem(lbmsdm_iter_t *Iterator, const void *Value, size_t Length);

/** Bytes to be sent; they belong to the message and change with it. */
LBMSDMExpDLL const char *lbmsdm_msg_get_data(lbmsdm_msg_t *Message);

/** Their number. */
LBMSDMExpDLL size_t lbmsdm_msg_get_datalen(lbmsdm_msg_t *Message);

/** Number of fields. */
LBMSDMExpDLL int lbmsdm_msg_get_fldcnt(lbmsdm_msg_t *Message);

/** Iterator over the fields; freed by lbmsdm_iter_destroy(). */
LBMSDMExpDLL int lbmsdm_iter_create(lbmsdm_iter_t **Iterator, lbmsdm_msg_t *Message);

/** Frees the iterator. */
LBMSDMExpDLL int lbmsdm_iter_destroy(lbmsdm_iter_t *Iterator);

/** Goes to the first field; LBMSDM_NO_MORE_FIELDS when there is none. */
LBMSDMExpDLL int lbmsdm_iter_first(lbmsdm_iter_t *Iterator);

/** Goes to the next field; LBMSDM_NO_MORE_FIELDS at the end. */
LBMSDMExpDLL int lbmsdm_iter_next(lbmsdm_iter_t *Iterator);

/** Name of the field at an index; borrowed. */
LBMSDMExpDLL const char *lbmsdm_msg_get_name_idx(lbmsdm_msg_t *Message, size_t Index);

/** Name of the field at an index; borrowed. */
LBMSDMExpDLL int lbmsdm_msg_get_idx_name(lbmsdm_msg_t *Message, const char *Name);

/** Name of the current field; borrowed. */
LBMSDMExpDLL const char *lbmsdm_iter_get_name(lbmsdm_iter_t *Iterator);

/** LBMSDM_TYPE_* of the field of a name. */
LBMSDMExpDLL lbmsdm_field_type_t lbmsdm_msg_get_type_name(lbmsdm_msg_t *Message, const char *Name);

/** LBMSDM_TYPE_* of the field at an index. */
LBMSDMExpDLL lbmsdm_field_type_t lbmsdm_msg_get_type_idx(lbmsdm_msg_t *Message, size_t Index);

/** LBMSDM_TYPE_* of the current field. */
LBMSDMExpDLL lbmsdm_field_type_t lbmsdm_iter_get_type(lbmsdm_iter_t *Iterator);

/** 1 when the field of a name has no value, 0 when it has. */
LBMSDMExpDLL int lbmsdm_msg_is_null_name(lbmsdm_msg_t *Message, const char *Name);

/** 1 when the field at an index has no value, 0 when it has. */
LBMSDMExpDLL int lbmsdm_msg_is_null_idx(lbmsdm_msg_t *Message, size_t Index);

/** 1 when the current field has no value, 0 when it has. */
LBMSDMExpDLL int lbmsdm_iter_is_null(lbmsdm_iter_t *Iterator);

/** Number of elements of the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_elemcnt_name(lbmsdm_msg_t *Message, const char *Name);

/** Number of elements of the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_elemcnt_idx(lbmsdm_msg_t *Message, size_t Index);

/** Number of elements of the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_elemcnt(lbmsdm_iter_t *Iterator);

/** Length of the field of a name in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_len_name(lbmsdm_msg_t *Message, const char *Name);

/** Length of the field at an index in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_len_idx(lbmsdm_msg_t *Message, size_t Index);

/** Length of the current field in bytes. */
LBMSDMExpDLL int lbmsdm_iter_get_len(lbmsdm_iter_t *Iterator);

/** Length in bytes of an element of the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_elemlen_name(lbmsdm_msg_t *Message, const char *Name, size_t Element);

/** Length in bytes of an element of the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_elemlen_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element);

/** Length in bytes of an element of the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_elemlen(lbmsdm_iter_t *Iterator, size_t Element);

/** Reads the field at an index as a boolean. */
LBMSDMExpDLL int lbmsdm_msg_get_boolean_idx(lbmsdm_msg_t *Message, size_t Index, uint8_t *Value);

/** Reads the field at an index as an 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int8_idx(lbmsdm_msg_t *Message, size_t Index, int8_t *Value);

/** Reads the field at an index as an unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint8_idx(lbmsdm_msg_t *Message, size_t Index, uint8_t *Value);

/** Reads the field at an index as a 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int16_idx(lbmsdm_msg_t *Message, size_t Index, int16_t *Value);

/** Reads the field at an index as an unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint16_idx(lbmsdm_msg_t *Message, size_t Index, uint16_t *Value);

/** Reads the field at an index as a 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int32_idx(lbmsdm_msg_t *Message, size_t Index, int32_t *Value);

/** Reads the field at an index as an unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint32_idx(lbmsdm_msg_t *Message, size_t Index, uint32_t *Value);

/** Reads the field at an index as a 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int64_idx(lbmsdm_msg_t *Message, size_t Index, int64_t *Value);

/** Reads the field at an index as an unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint64_idx(lbmsdm_msg_t *Message, size_t Index, uint64_t *Value);

/** Reads the field at an index as a float. */
LBMSDMExpDLL int lbmsdm_msg_get_float_idx(lbmsdm_msg_t *Message, size_t Index, float *Value);

/** Reads the field at an index as a double. */
LBMSDMExpDLL int lbmsdm_msg_get_double_idx(lbmsdm_msg_t *Message, size_t Index, double *Value);

/** Reads the field at an index as a decimal. */
LBMSDMExpDLL int lbmsdm_msg_get_decimal_idx(lbmsdm_msg_t *Message, size_t Index, lbmsdm_decimal_t *Value);

/** Reads the field at an index as a timestamp. */
LBMSDMExpDLL int lbmsdm_msg_get_timestamp_idx(lbmsdm_msg_t *Message, size_t Index, struct timeval *Value);

/** Reads the field at an index as a message. The caller destroys it. */
LBMSDMExpDLL int lbmsdm_msg_get_message_idx(lbmsdm_msg_t *Message, size_t Index, lbmsdm_msg_t **Value);

/** Reads the field at an index as a text ending in NUL. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_string_idx(lbmsdm_msg_t *Message, size_t Index, char *Value, size_t *Size);

/** Reads the field at an index as wide characters. *Size is the room in wide characters. */
LBMSDMExpDLL int lbmsdm_msg_get_unicode_idx(lbmsdm_msg_t *Message, size_t Index, wchar_t *Value, size_t *Size);

/** Reads the field at an index as bytes. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_blob_idx(lbmsdm_msg_t *Message, size_t Index, void *Value, size_t *Size);

/** Reads the field of a name as a boolean. */
LBMSDMExpDLL int lbmsdm_msg_get_boolean_name(lbmsdm_msg_t *Message, const char *Name, uint8_t *Value);

/** Reads the field of a name as an 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int8_name(lbmsdm_msg_t *Message, const char *Name, int8_t *Value);

/** Reads the field of a name as an unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint8_name(lbmsdm_msg_t *Message, const char *Name, uint8_t *Value);

/** Reads the field of a name as a 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int16_name(lbmsdm_msg_t *Message, const char *Name, int16_t *Value);

/** Reads the field of a name as an unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint16_name(lbmsdm_msg_t *Message, const char *Name, uint16_t *Value);

/** Reads the field of a name as a 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int32_name(lbmsdm_msg_t *Message, const char *Name, int32_t *Value);

/** Reads the field of a name as an unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint32_name(lbmsdm_msg_t *Message, const char *Name, uint32_t *Value);

/** Reads the field of a name as a 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_int64_name(lbmsdm_msg_t *Message, const char *Name, int64_t *Value);

/** Reads the field of a name as an unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_get_uint64_name(lbmsdm_msg_t *Message, const char *Name, uint64_t *Value);

/** Reads the field of a name as a float. */
LBMSDMExpDLL int lbmsdm_msg_get_float_name(lbmsdm_msg_t *Message, const char *Name, float *Value);

/** Reads the field of a name as a double. */
LBMSDMExpDLL int lbmsdm_msg_get_double_name(lbmsdm_msg_t *Message, const char *Name, double *Value);

/** Reads the field of a name as a decimal. */
LBMSDMExpDLL int lbmsdm_msg_get_decimal_name(lbmsdm_msg_t *Message, const char *Name, lbmsdm_decimal_t *Value);

/** Reads the field of a name as a timestamp. */
LBMSDMExpDLL int lbmsdm_msg_get_timestamp_name(lbmsdm_msg_t *Message, const char *Name, struct timeval *Value);

/** Reads the field of a name as a message. The caller destroys it. */
LBMSDMExpDLL int lbmsdm_msg_get_message_name(lbmsdm_msg_t *Message, const char *Name, lbmsdm_msg_t **Value);

/** Reads the field of a name as a text ending in NUL. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_string_name(lbmsdm_msg_t *Message, const char *Name, char *Value, size_t *Size);

/** Reads the field of a name as wide characters. *Size is the room in wide characters. */
LBMSDMExpDLL int lbmsdm_msg_get_unicode_name(lbmsdm_msg_t *Message, const char *Name, wchar_t *Value, size_t *Size);

/** Reads the field of a name as bytes. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_blob_name(lbmsdm_msg_t *Message, const char *Name, void *Value, size_t *Size);

/** Reads the current field as a boolean. */
LBMSDMExpDLL int lbmsdm_iter_get_boolean(lbmsdm_iter_t *Iterator, uint8_t *Value);

/** Reads the current field as an 8-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_int8(lbmsdm_iter_t *Iterator, int8_t *Value);

/** Reads the current field as an unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_uint8(lbmsdm_iter_t *Iterator, uint8_t *Value);

/** Reads the current field as a 16-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_int16(lbmsdm_iter_t *Iterator, int16_t *Value);

/** Reads the current field as an unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_uint16(lbmsdm_iter_t *Iterator, uint16_t *Value);

/** Reads the current field as a 32-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_int32(lbmsdm_iter_t *Iterator, int32_t *Value);

/** Reads the current field as an unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_uint32(lbmsdm_iter_t *Iterator, uint32_t *Value);

/** Reads the current field as a 64-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_int64(lbmsdm_iter_t *Iterator, int64_t *Value);

/** Reads the current field as an unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_get_uint64(lbmsdm_iter_t *Iterator, uint64_t *Value);

/** Reads the current field as a float. */
LBMSDMExpDLL int lbmsdm_iter_get_float(lbmsdm_iter_t *Iterator, float *Value);

/** Reads the current field as a double. */
LBMSDMExpDLL int lbmsdm_iter_get_double(lbmsdm_iter_t *Iterator, double *Value);

/** Reads the current field as a decimal. */
LBMSDMExpDLL int lbmsdm_iter_get_decimal(lbmsdm_iter_t *Iterator, lbmsdm_decimal_t *Value);

/** Reads the current field as a timestamp. */
LBMSDMExpDLL int lbmsdm_iter_get_timestamp(lbmsdm_iter_t *Iterator, struct timeval *Value);

/** Reads the current field as a message. The caller destroys it. */
LBMSDMExpDLL int lbmsdm_iter_get_message(lbmsdm_iter_t *Iterator, lbmsdm_msg_t **Value);

/** Reads the current field as a text ending in NUL. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_iter_get_string(lbmsdm_iter_t *Iterator, char *Value, size_t *Size);

/** Reads the current field as wide characters. *Size is the room in wide characters. */
LBMSDMExpDLL int lbmsdm_iter_get_unicode(lbmsdm_iter_t *Iterator, wchar_t *Value, size_t *Size);

/** Reads the current field as bytes. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_iter_get_blob(lbmsdm_iter_t *Iterator, void *Value, size_t *Size);

/** Reads a boolean from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_boolean_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint8_t *Value);

/** Reads an 8-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_int8_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int8_t *Value);

/** Reads an unsigned 8-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_uint8_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint8_t *Value);

/** Reads a 16-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_int16_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int16_t *Value);

/** Reads an unsigned 16-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_uint16_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint16_t *Value);

/** Reads a 32-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_int32_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int32_t *Value);

/** Reads an unsigned 32-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_uint32_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint32_t *Value);

/** Reads a 64-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_int64_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int64_t *Value);

/** Reads an unsigned 64-bit integer from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_uint64_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint64_t *Value);

/** Reads a float from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_float_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, float *Value);

/** Reads a double from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_double_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, double *Value);

/** Reads a decimal from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_decimal_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element,
                                                 lbmsdm_decimal_t *Value);

/** Reads a timestamp from an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_get_timestamp_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element,
                                                   struct timeval *Value);

/** Reads a message from an element of the array that is the field at an index. The caller destroys it. */
LBMSDMExpDLL int lbmsdm_msg_get_message_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element,
                                                 lbmsdm_msg_t **Value);

/**
 * Reads a text ending in NUL from an element of the array that is the field at an index. *Size is the room in bytes.
 */
LBMSDMExpDLL int lbmsdm_msg_get_string_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, char *Value,
                                                size_t *Size);

/**
 * Reads wide characters from an element of the array that is the field at an index. *Size is the room in wide
 * characters.
 */
LBMSDMExpDLL int lbmsdm_msg_get_unicode_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, wchar_t *Value,
                                                 size_t *Size);

/** Reads bytes from an element of the array that is the field at an index. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_blob_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, void *Value,
                                              size_t *Size);

/** Reads a boolean from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_boolean_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  uint8_t *Value);

/** Reads an 8-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_int8_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, int8_t *Value);

/** Reads an unsigned 8-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_uint8_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                uint8_t *Value);

/** Reads a 16-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_int16_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                int16_t *Value);

/** Reads an unsigned 16-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_uint16_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 uint16_t *Value);

/** Reads a 32-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_int32_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                int32_t *Value);

/** Reads an unsigned 32-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_uint32_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 uint32_t *Value);

/** Reads a 64-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_int64_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                int64_t *Value);

/** Reads an unsigned 64-bit integer from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_uint64_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 uint64_t *Value);

/** Reads a float from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_float_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, float *Value);

/** Reads a double from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_double_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 double *Value);

/** Reads a decimal from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_decimal_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  lbmsdm_decimal_t *Value);

/** Reads a timestamp from an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_get_timestamp_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                    struct timeval *Value);

/** Reads a message from an element of the array that is the field of a name. The caller destroys it. */
LBMSDMExpDLL int lbmsdm_msg_get_message_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  lbmsdm_msg_t **Value);

/**
 * Reads a text ending in NUL from an element of the array that is the field of a name. *Size is the room in bytes.
 */
LBMSDMExpDLL int lbmsdm_msg_get_string_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, char *Value,
                                                 size_t *Size);

/**
 * Reads wide characters from an element of the array that is the field of a name. *Size is the room in wide
 * characters.
 */
LBMSDMExpDLL int lbmsdm_msg_get_unicode_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  wchar_t *Value, size_t *Size);

/** Reads bytes from an element of the array that is the field of a name. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_msg_get_blob_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, void *Value,
                                               size_t *Size);

/** Reads a boolean from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_boolean_elem(lbmsdm_iter_t *Iterator, size_t Element, uint8_t *Value);

/** Reads an 8-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_int8_elem(lbmsdm_iter_t *Iterator, size_t Element, int8_t *Value);

/** Reads an unsigned 8-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_uint8_elem(lbmsdm_iter_t *Iterator, size_t Element, uint8_t *Value);

/** Reads a 16-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_int16_elem(lbmsdm_iter_t *Iterator, size_t Element, int16_t *Value);

/** Reads an unsigned 16-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_uint16_elem(lbmsdm_iter_t *Iterator, size_t Element, uint16_t *Value);

/** Reads a 32-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_int32_elem(lbmsdm_iter_t *Iterator, size_t Element, int32_t *Value);

/** Reads an unsigned 32-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_uint32_elem(lbmsdm_iter_t *Iterator, size_t Element, uint32_t *Value);

/** Reads a 64-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_int64_elem(lbmsdm_iter_t *Iterator, size_t Element, int64_t *Value);

/** Reads an unsigned 64-bit integer from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_uint64_elem(lbmsdm_iter_t *Iterator, size_t Element, uint64_t *Value);

/** Reads a float from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_float_elem(lbmsdm_iter_t *Iterator, size_t Element, float *Value);

/** Reads a double from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_double_elem(lbmsdm_iter_t *Iterator, size_t Element, double *Value);

/** Reads a decimal from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_decimal_elem(lbmsdm_iter_t *Iterator, size_t Element, lbmsdm_decimal_t *Value);

/** Reads a timestamp from an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_get_timestamp_elem(lbmsdm_iter_t *Iterator, size_t Element, struct timeval *Value);

/** Reads a message from an element of the array that is the current field. The caller destroys it. */
LBMSDMExpDLL int lbmsdm_iter_get_message_elem(lbmsdm_iter_t *Iterator, size_t Element, lbmsdm_msg_t **Value);

/** Reads a text ending in NUL from an element of the array that is the current field. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_iter_get_string_elem(lbmsdm_iter_t *Iterator, size_t Element, char *Value, size_t *Size);

/**
 * Reads wide characters from an element of the array that is the current field. *Size is the room in wide characters.
 */
LBMSDMExpDLL int lbmsdm_iter_get_unicode_elem(lbmsdm_iter_t *Iterator, size_t Element, wchar_t *Value, size_t *Size);

/** Reads bytes from an element of the array that is the current field. *Size is the room in bytes. */
LBMSDMExpDLL int lbmsdm_iter_get_blob_elem(lbmsdm_iter_t *Iterator, size_t Element, void *Value, size_t *Size);

/** Takes the value of the field of a name away. */
LBMSDMExpDLL int lbmsdm_msg_set_null_name(lbmsdm_msg_t *Message, const char *Name);

/** Takes the value of the field at an index away. */
LBMSDMExpDLL int lbmsdm_msg_set_null_idx(lbmsdm_msg_t *Message, size_t Index);

/** Takes the value of the current field away. */
LBMSDMExpDLL int lbmsdm_iter_set_null(lbmsdm_iter_t *Iterator);

/** Makes the field at an index a boolean. */
LBMSDMExpDLL int lbmsdm_msg_set_boolean_idx(lbmsdm_msg_t *Message, size_t Index, uint8_t Value);

/** Makes the field at an index an 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int8_idx(lbmsdm_msg_t *Message, size_t Index, int8_t Value);

/** Makes the field at an index an unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint8_idx(lbmsdm_msg_t *Message, size_t Index, uint8_t Value);

/** Makes the field at an index a 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int16_idx(lbmsdm_msg_t *Message, size_t Index, int16_t Value);

/** Makes the field at an index an unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint16_idx(lbmsdm_msg_t *Message, size_t Index, uint16_t Value);

/** Makes the field at an index a 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int32_idx(lbmsdm_msg_t *Message, size_t Index, int32_t Value);

/** Makes the field at an index an unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint32_idx(lbmsdm_msg_t *Message, size_t Index, uint32_t Value);

/** Makes the field at an index a 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int64_idx(lbmsdm_msg_t *Message, size_t Index, int64_t Value);

/** Makes the field at an index an unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint64_idx(lbmsdm_msg_t *Message, size_t Index, uint64_t Value);

/** Makes the field at an index a float. */
LBMSDMExpDLL int lbmsdm_msg_set_float_idx(lbmsdm_msg_t *Message, size_t Index, float Value);

/** Makes the field at an index a double. */
LBMSDMExpDLL int lbmsdm_msg_set_double_idx(lbmsdm_msg_t *Message, size_t Index, double Value);

/** Makes the field at an index a decimal. */
LBMSDMExpDLL int lbmsdm_msg_set_decimal_idx(lbmsdm_msg_t *Message, size_t Index, const lbmsdm_decimal_t *Value);

/** Makes the field at an index a timestamp. */
LBMSDMExpDLL int lbmsdm_msg_set_timestamp_idx(lbmsdm_msg_t *Message, size_t Index, const struct timeval *Value);

/** Makes the field at an index a message. */
LBMSDMExpDLL int lbmsdm_msg_set_message_idx(lbmsdm_msg_t *Message, size_t Index, const lbmsdm_msg_t *Value);

/** Makes the field at an index a text ending in NUL. */
LBMSDMExpDLL int lbmsdm_msg_set_string_idx(lbmsdm_msg_t *Message, size_t Index, const char *Value);

/** Makes the field at an index wide characters. */
LBMSDMExpDLL int lbmsdm_msg_set_unicode_idx(lbmsdm_msg_t *Message, size_t Index, const wchar_t *Value, size_t Length);

/** Makes the field at an index bytes. */
LBMSDMExpDLL int lbmsdm_msg_set_blob_idx(lbmsdm_msg_t *Message, size_t Index, const void *Value, size_t Length);

/** Makes the field of a name a boolean. */
LBMSDMExpDLL int lbmsdm_msg_set_boolean_name(lbmsdm_msg_t *Message, const char *Name, uint8_t Value);

/** Makes the field of a name an 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int8_name(lbmsdm_msg_t *Message, const char *Name, int8_t Value);

/** Makes the field of a name an unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint8_name(lbmsdm_msg_t *Message, const char *Name, uint8_t Value);

/** Makes the field of a name a 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int16_name(lbmsdm_msg_t *Message, const char *Name, int16_t Value);

/** Makes the field of a name an unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint16_name(lbmsdm_msg_t *Message, const char *Name, uint16_t Value);

/** Makes the field of a name a 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int32_name(lbmsdm_msg_t *Message, const char *Name, int32_t Value);

/** Makes the field of a name an unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint32_name(lbmsdm_msg_t *Message, const char *Name, uint32_t Value);

/** Makes the field of a name a 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_int64_name(lbmsdm_msg_t *Message, const char *Name, int64_t Value);

/** Makes the field of a name an unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_msg_set_uint64_name(lbmsdm_msg_t *Message, const char *Name, uint64_t Value);

/** Makes the field of a name a float. */
LBMSDMExpDLL int lbmsdm_msg_set_float_name(lbmsdm_msg_t *Message, const char *Name, float Value);

/** Makes the field of a name a double. */
LBMSDMExpDLL int lbmsdm_msg_set_double_name(lbmsdm_msg_t *Message, const char *Name, double Value);

/** Makes the field of a name a decimal. */
LBMSDMExpDLL int lbmsdm_msg_set_decimal_name(lbmsdm_msg_t *Message, const char *Name, const lbmsdm_decimal_t *Value);

/** Makes the field of a name a timestamp. */
LBMSDMExpDLL int lbmsdm_msg_set_timestamp_name(lbmsdm_msg_t *Message, const char *Name, const struct timeval *Value);

/** Makes the field of a name a message. */
LBMSDMExpDLL int lbmsdm_msg_set_message_name(lbmsdm_msg_t *Message, const char *Name, const lbmsdm_msg_t *Value);

/** Makes the field of a name a text ending in NUL. */
LBMSDMExpDLL int lbmsdm_msg_set_string_name(lbmsdm_msg_t *Message, const char *Name, const char *Value);

/** Makes the field of a name wide characters. */
LBMSDMExpDLL int lbmsdm_msg_set_unicode_name(lbmsdm_msg_t *Message, const char *Name, const wchar_t *Value,
                                             size_t Length);

/** Makes the field of a name bytes. */
LBMSDMExpDLL int lbmsdm_msg_set_blob_name(lbmsdm_msg_t *Message, const char *Name, const void *Value, size_t Length);

/** Makes the current field a boolean. */
LBMSDMExpDLL int lbmsdm_iter_set_boolean(lbmsdm_iter_t *Iterator, uint8_t Value);

/** Makes the current field an 8-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_int8(lbmsdm_iter_t *Iterator, int8_t Value);

/** Makes the current field an unsigned 8-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_uint8(lbmsdm_iter_t *Iterator, uint8_t Value);

/** Makes the current field a 16-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_int16(lbmsdm_iter_t *Iterator, int16_t Value);

/** Makes the current field an unsigned 16-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_uint16(lbmsdm_iter_t *Iterator, uint16_t Value);

/** Makes the current field a 32-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_int32(lbmsdm_iter_t *Iterator, int32_t Value);

/** Makes the current field an unsigned 32-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_uint32(lbmsdm_iter_t *Iterator, uint32_t Value);

/** Makes the current field a 64-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_int64(lbmsdm_iter_t *Iterator, int64_t Value);

/** Makes the current field an unsigned 64-bit integer. */
LBMSDMExpDLL int lbmsdm_iter_set_uint64(lbmsdm_iter_t *Iterator, uint64_t Value);

/** Makes the current field a float. */
LBMSDMExpDLL int lbmsdm_iter_set_float(lbmsdm_iter_t *Iterator, float Value);

/** Makes the current field a double. */
LBMSDMExpDLL int lbmsdm_iter_set_double(lbmsdm_iter_t *Iterator, double Value);

/** Makes the current field a decimal. */
LBMSDMExpDLL int lbmsdm_iter_set_decimal(lbmsdm_iter_t *Iterator, const lbmsdm_decimal_t *Value);

/** Makes the current field a timestamp. */
LBMSDMExpDLL int lbmsdm_iter_set_timestamp(lbmsdm_iter_t *Iterator, const struct timeval *Value);

/** Makes the current field a message. */
LBMSDMExpDLL int lbmsdm_iter_set_message(lbmsdm_iter_t *Iterator, const lbmsdm_msg_t *Value);

/** Makes the current field a text ending in NUL. */
LBMSDMExpDLL int lbmsdm_iter_set_string(lbmsdm_iter_t *Iterator, const char *Value);

/** Makes the current field wide characters. */
LBMSDMExpDLL int lbmsdm_iter_set_unicode(lbmsdm_iter_t *Iterator, const wchar_t *Value, size_t Length);

/** Makes the current field bytes. */
LBMSDMExpDLL int lbmsdm_iter_set_blob(lbmsdm_iter_t *Iterator, const void *Value, size_t Length);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_boolean_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int8_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint8_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int16_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint16_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int32_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint32_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int64_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint64_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_float_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_double_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_decimal_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_timestamp_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_message_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_string_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_unicode_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field at an index an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_blob_array_idx(lbmsdm_msg_t *Message, size_t Index);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_boolean_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int8_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint8_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int16_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint16_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int32_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint32_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_int64_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_uint64_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_float_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_double_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_decimal_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_timestamp_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_message_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_string_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_unicode_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the field of a name an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_msg_set_blob_array_name(lbmsdm_msg_t *Message, const char *Name);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_boolean_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_int8_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_uint8_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_int16_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_uint16_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_int32_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_uint32_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_int64_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_uint64_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_float_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_double_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_decimal_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_timestamp_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_message_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_string_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_unicode_array(lbmsdm_iter_t *Iterator);

/** Makes the current field an empty array for values of this type. */
LBMSDMExpDLL int lbmsdm_iter_set_blob_array(lbmsdm_iter_t *Iterator);

/** Writes a boolean into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_boolean_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint8_t Value);

/** Writes an 8-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_int8_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int8_t Value);

/** Writes an unsigned 8-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_uint8_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint8_t Value);

/** Writes a 16-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_int16_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int16_t Value);

/** Writes an unsigned 16-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_uint16_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint16_t Value);

/** Writes a 32-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_int32_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int32_t Value);

/** Writes an unsigned 32-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_uint32_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint32_t Value);

/** Writes a 64-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_int64_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, int64_t Value);

/** Writes an unsigned 64-bit integer into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_uint64_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, uint64_t Value);

/** Writes a float into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_float_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, float Value);

/** Writes a double into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_double_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, double Value);

/** Writes a decimal into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_decimal_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element,
                                                 const lbmsdm_decimal_t *Value);

/** Writes a timestamp into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_timestamp_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element,
                                                   const struct timeval *Value);

/** Writes a message into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_message_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element,
                                                 const lbmsdm_msg_t *Value);

/** Writes a text ending in NUL into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_string_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, const char *Value);

/** Writes wide characters into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_unicode_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element,
                                                 const wchar_t *Value, size_t Length);

/** Writes bytes into an element of the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_set_blob_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element, const void *Value,
                                              size_t Length);

/** Writes a boolean into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_boolean_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  uint8_t Value);

/** Writes an 8-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_int8_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, int8_t Value);

/** Writes an unsigned 8-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_uint8_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, uint8_t Value);

/** Writes a 16-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_int16_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, int16_t Value);

/** Writes an unsigned 16-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_uint16_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 uint16_t Value);

/** Writes a 32-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_int32_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, int32_t Value);

/** Writes an unsigned 32-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_uint32_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 uint32_t Value);

/** Writes a 64-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_int64_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, int64_t Value);

/** Writes an unsigned 64-bit integer into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_uint64_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 uint64_t Value);

/** Writes a float into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_float_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, float Value);

/** Writes a double into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_double_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element, double Value);

/** Writes a decimal into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_decimal_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  const lbmsdm_decimal_t *Value);

/** Writes a timestamp into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_timestamp_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                    const struct timeval *Value);

/** Writes a message into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_message_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  const lbmsdm_msg_t *Value);

/** Writes a text ending in NUL into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_string_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                 const char *Value);

/** Writes wide characters into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_unicode_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                                  const wchar_t *Value, size_t Length);

/** Writes bytes into an element of the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_set_blob_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element,
                                               const void *Value, size_t Length);

/** Writes a boolean into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_boolean_elem(lbmsdm_iter_t *Iterator, size_t Element, uint8_t Value);

/** Writes an 8-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_int8_elem(lbmsdm_iter_t *Iterator, size_t Element, int8_t Value);

/** Writes an unsigned 8-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_uint8_elem(lbmsdm_iter_t *Iterator, size_t Element, uint8_t Value);

/** Writes a 16-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_int16_elem(lbmsdm_iter_t *Iterator, size_t Element, int16_t Value);

/** Writes an unsigned 16-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_uint16_elem(lbmsdm_iter_t *Iterator, size_t Element, uint16_t Value);

/** Writes a 32-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_int32_elem(lbmsdm_iter_t *Iterator, size_t Element, int32_t Value);

/** Writes an unsigned 32-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_uint32_elem(lbmsdm_iter_t *Iterator, size_t Element, uint32_t Value);

/** Writes a 64-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_int64_elem(lbmsdm_iter_t *Iterator, size_t Element, int64_t Value);

/** Writes an unsigned 64-bit integer into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_uint64_elem(lbmsdm_iter_t *Iterator, size_t Element, uint64_t Value);

/** Writes a float into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_float_elem(lbmsdm_iter_t *Iterator, size_t Element, float Value);

/** Writes a double into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_double_elem(lbmsdm_iter_t *Iterator, size_t Element, double Value);

/** Writes a decimal into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_decimal_elem(lbmsdm_iter_t *Iterator, size_t Element, const lbmsdm_decimal_t *Value);

/** Writes a timestamp into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_timestamp_elem(lbmsdm_iter_t *Iterator, size_t Element, const struct timeval *Value);

/** Writes a message into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_message_elem(lbmsdm_iter_t *Iterator, size_t Element, const lbmsdm_msg_t *Value);

/** Writes a text ending in NUL into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_string_elem(lbmsdm_iter_t *Iterator, size_t Element, const char *Value);

/** Writes wide characters into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_unicode_elem(lbmsdm_iter_t *Iterator, size_t Element, const wchar_t *Value,
                                              size_t Length);

/** Writes bytes into an element of the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_set_blob_elem(lbmsdm_iter_t *Iterator, size_t Element, const void *Value, size_t Length);

/** Removes the field at an index; the following ones move up. */
LBMSDMExpDLL int lbmsdm_msg_del_idx(lbmsdm_msg_t *Message, size_t Index);

/** Removes the field of a name; the following ones move up. */
LBMSDMExpDLL int lbmsdm_msg_del_name(lbmsdm_msg_t *Message, const char *Name);

/** Removes the current field; the following ones move up. */
LBMSDMExpDLL int lbmsdm_iter_del(lbmsdm_iter_t *Iterator);

/** Removes an element from the array that is the field at an index. */
LBMSDMExpDLL int lbmsdm_msg_del_elem_idx(lbmsdm_msg_t *Message, size_t Index, size_t Element);

/** Removes an element from the array that is the field of a name. */
LBMSDMExpDLL int lbmsdm_msg_del_elem_name(lbmsdm_msg_t *Message, const char *Name, size_t Element);

/** Removes an element from the array that is the current field. */
LBMSDMExpDLL int lbmsdm_iter_del_elem(lbmsdm_iter_t *Iterator, size_t Element);

/** Makes an attribute object with the current defaults of message options. */
LBMSDMExpDLL int lbmsdm_msg_attr_create(lbmsdm_msg_attr_t **Attributes);

/** Frees it. Objects made from it are not affected. */
LBMSDMExpDLL int lbmsdm_msg_attr_delete(lbmsdm_msg_attr_t *Attributes);

/** Makes a copy. */
LBMSDMExpDLL int lbmsdm_msg_attr_dup(lbmsdm_msg_attr_t **Attributes, lbmsdm_msg_attr_t *Original);

/** Sets an option from its binary form of optlen bytes. */
LBMSDMExpDLL int lbmsdm_msg_attr_setopt(lbmsdm_msg_attr_t *Attributes, const char *Option, void *Value, size_t Length);

/** Sets an option from text, as in a configuration file. */
LBMSDMExpDLL int lbmsdm_msg_attr_str_setopt(lbmsdm_msg_attr_t *Attributes, const char *Option, const char *Value);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. */
LBMSDMExpDLL int lbmsdm_msg_attr_getopt(lbmsdm_msg_attr_t *Attributes, const char *Option, void *Value, size_t *Length);

/** Reads an option as text. *optlen is the room in bytes, at least 80, and becomes the length. */
LBMSDMExpDLL int lbmsdm_msg_attr_str_getopt(lbmsdm_msg_attr_t *Attributes, const char *Option, char *Value,
                                            size_t *Length);

#ifdef __cplusplus
}
#endif

#endif
