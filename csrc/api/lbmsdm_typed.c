/* The 340 calls of lbmsdm.h that exist for each type: one table of types, one line for each family of calls. A type has
 * a way in which its values are given and taken:
 *   PLAIN    by value, and a pointer to it      STRUCTURE  by pointer both ways
 *   MESSAGE  by pointer, a copy comes back      TEXT       ends in NUL, a buffer and its size
 *   SIZED    a pointer and a number of units, a buffer and its size
 * Any thread; a message belongs to the thread that uses it. */
#include <lbm/lbmsdm.h>

#include "sdm/um_sdm.h"

#define TYPES(call)                                                                                                    \
    call(boolean, BOOLEAN, PLAIN, uint8_t) call(int8, INT8, PLAIN, int8_t) call(uint8, UINT8, PLAIN, uint8_t)          \
        call(int16, INT16, PLAIN, int16_t) call(uint16, UINT16, PLAIN, uint16_t) call(int32, INT32, PLAIN, int32_t)    \
            call(uint32, UINT32, PLAIN, uint32_t) call(int64, INT64, PLAIN, int64_t)                                   \
                call(uint64, UINT64, PLAIN, uint64_t) call(float, FLOAT, PLAIN, float)                                 \
                    call(double, DOUBLE, PLAIN, double) call(decimal, DECIMAL, STRUCTURE, lbmsdm_decimal_t)            \
                        call(timestamp, TIMESTAMP, STRUCTURE, struct timeval)                                          \
                            call(message, MESSAGE, MESSAGE, lbmsdm_msg_t) call(string, STRING, TEXT, char)             \
                                call(unicode, UNICODE, SIZED, wchar_t) call(blob, BLOB, SIZED, void)

/* How a value is given: the parameters, and what is made of them. */
#define IN_PLAIN(c) c Value
#define IN_STRUCTURE(c) const c *Value
#define IN_MESSAGE(c) const c *Value
#define IN_TEXT(c) const c *Value
#define IN_SIZED(c) const c *Value, size_t Length
#define GIVEN_PLAIN ((struct um_sdm_given){&Value, 0})
#define GIVEN_STRUCTURE ((struct um_sdm_given){Value, 0})
#define GIVEN_MESSAGE ((struct um_sdm_given){Value, 0})
#define GIVEN_TEXT ((struct um_sdm_given){Value, 0})
#define GIVEN_SIZED ((struct um_sdm_given){Value, Length})

/* How a value is taken. */
#define OUT_PLAIN(c) c *Value
#define OUT_STRUCTURE(c) c *Value
#define OUT_MESSAGE(c) c **Value
#define OUT_TEXT(c) c *Value, size_t *Size
#define OUT_SIZED(c) c *Value, size_t *Size
#define TAKEN_PLAIN Value, NULL
#define TAKEN_STRUCTURE Value, NULL
#define TAKEN_MESSAGE Value, NULL
#define TAKEN_TEXT Value, Size
#define TAKEN_SIZED Value, Size

/* The three ways to say which field. */
#define BY_IDX lbmsdm_msg_t *Message, size_t Index
#define BY_NAME lbmsdm_msg_t *Message, const char *Name
#define BY_ITER lbmsdm_iter_t *Iterator
#define AT_IDX um_sdm_at_idx(Message, Index)
#define AT_NAME um_sdm_at_name(Message, Name)
#define AT_ITER um_sdm_at_iter(Iterator)

#define CALL(name, parameters, ...)                                                                                    \
    int name parameters                                                                                                \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }
/* One call for each way to say which field; `more` are the further parameters, the rest is what is done there. */
#define THREE(idx, name, iter, more, call, ...)                                                                        \
    CALL(idx, (BY_IDX UNPACK more), call(AT_IDX, __VA_ARGS__))                                                         \
    CALL(name, (BY_NAME UNPACK more), call(AT_NAME, __VA_ARGS__))                                                      \
    CALL(iter, (BY_ITER UNPACK more), call(AT_ITER, __VA_ARGS__))
#define UNPACK(...) __VA_ARGS__

#define ADD(t, T, kind, c)                                                                                             \
    CALL(lbmsdm_msg_add_##t, (BY_NAME, IN_##kind(c)), um_sdm_msg_add(Message, Name, LBMSDM_TYPE_##T, GIVEN_##kind))
#define ADD_ARRAY(t, T, kind, c)                                                                                       \
    CALL(lbmsdm_msg_add_##t##_array, (BY_NAME), um_sdm_msg_add_array(Message, Name, LBMSDM_TYPE_##T))
#define ADD_ELEMENT(t, T, kind, c)                                                                                     \
    THREE(lbmsdm_msg_add_##t##_elem_idx, lbmsdm_msg_add_##t##_elem_name, lbmsdm_iter_add_##t##_elem, (, IN_##kind(c)), \
          um_sdm_add_elem, LBMSDM_TYPE_##T, GIVEN_##kind)
#define GET(t, T, kind, c)                                                                                             \
    THREE(lbmsdm_msg_get_##t##_idx, lbmsdm_msg_get_##t##_name, lbmsdm_iter_get_##t, (, OUT_##kind(c)), um_sdm_get,     \
          LBMSDM_TYPE_##T, TAKEN_##kind)
#define GET_ELEMENT(t, T, kind, c)                                                                                     \
    THREE(lbmsdm_msg_get_##t##_elem_idx, lbmsdm_msg_get_##t##_elem_name, lbmsdm_iter_get_##t##_elem,                   \
          (, size_t Element, OUT_##kind(c)), um_sdm_get_elem, Element, LBMSDM_TYPE_##T, TAKEN_##kind)
#define SET(t, T, kind, c)                                                                                             \
    THREE(lbmsdm_msg_set_##t##_idx, lbmsdm_msg_set_##t##_name, lbmsdm_iter_set_##t, (, IN_##kind(c)), um_sdm_set,      \
          LBMSDM_TYPE_##T, GIVEN_##kind)
#define SET_ARRAY(t, T, kind, c)                                                                                       \
    THREE(lbmsdm_msg_set_##t##_array_idx, lbmsdm_msg_set_##t##_array_name, lbmsdm_iter_set_##t##_array, (),            \
          um_sdm_set_array, LBMSDM_TYPE_##T)
#define SET_ELEMENT(t, T, kind, c)                                                                                     \
    THREE(lbmsdm_msg_set_##t##_elem_idx, lbmsdm_msg_set_##t##_elem_name, lbmsdm_iter_set_##t##_elem,                   \
          (, size_t Element, IN_##kind(c)), um_sdm_set_elem, Element, LBMSDM_TYPE_##T, GIVEN_##kind)

TYPES(ADD)
TYPES(ADD_ARRAY)
TYPES(ADD_ELEMENT)
TYPES(GET)
TYPES(GET_ELEMENT)
TYPES(SET)
TYPES(SET_ARRAY)
TYPES(SET_ELEMENT)
