/* The calls of lbmsdm.h that are there once: messages, iterators, options, errors, and what holds for fields of every
 * type. Those for each type are in lbmsdm_typed.c. Any thread; an object belongs to the thread that uses it. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <lbm/lbmsdm.h>

#include "base/um_mem.h"
#include "sdm/um_sdm.h"

struct lbmsdm_msg_attr_t_stct {
    struct um_sdm_attr values;
};

static int no_argument(const char *name)
{
    return um_sdm_error(LBMSDM_ERR_EINVAL, "%s must not be NULL", name);
}

int lbmsdm_errnum(void)
{
    return um_sdm_errnum();
}

const char *lbmsdm_errmsg(void)
{
    return um_sdm_errmsg();
}

int lbmsdm_win32_static_init(void)
{
    return LBMSDM_SUCCESS; /* needed on Windows only */
}

/* ---- messages ---- */

int lbmsdm_msg_create_ex(lbmsdm_msg_t **Message, const lbmsdm_msg_attr_t *Attributes)
{
    if (Message == NULL) {
        return no_argument("Message");
    }
    lbmsdm_msg_t *msg = um_sdm_msg_create(Attributes == NULL ? &um_sdm_defaults : &Attributes->values);
    if (msg == NULL) {
        return LBMSDM_FAILURE;
    }
    *Message = msg;
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_create(lbmsdm_msg_t **Message)
{
    return lbmsdm_msg_create_ex(Message, NULL);
}

int lbmsdm_msg_parse_ex(lbmsdm_msg_t **Message, const char *Data, size_t Length, const lbmsdm_msg_attr_t *Attributes)
{
    lbmsdm_msg_t *msg;
    if (Message == NULL || Data == NULL) {
        return no_argument(Message == NULL ? "Message" : "Data");
    }
    if (lbmsdm_msg_create_ex(&msg, Attributes) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    if (um_sdm_msg_decode(msg, (const uint8_t *)Data, Length) != LBMSDM_SUCCESS) {
        um_sdm_msg_destroy(msg);
        return LBMSDM_FAILURE;
    }
    *Message = msg;
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_parse(lbmsdm_msg_t **Message, const char *Data, size_t Length)
{
    return lbmsdm_msg_parse_ex(Message, Data, Length, NULL);
}

int lbmsdm_msg_parse_reuse(lbmsdm_msg_t *Message, const char *Data, size_t Length)
{
    if (Message == NULL || Data == NULL) {
        return no_argument(Message == NULL ? "Message" : "Data");
    }
    um_sdm_msg_clear(Message);
    return um_sdm_msg_decode(Message, (const uint8_t *)Data, Length);
}

int lbmsdm_msg_clone(lbmsdm_msg_t **Message, const lbmsdm_msg_t *Original)
{
    if (Message == NULL || Original == NULL) {
        return no_argument(Message == NULL ? "Message" : "Original");
    }
    lbmsdm_msg_t *msg = um_sdm_msg_clone(Original);
    if (msg == NULL) {
        return LBMSDM_FAILURE;
    }
    *Message = msg;
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_clear(lbmsdm_msg_t *Message)
{
    if (Message == NULL) {
        return no_argument("Message");
    }
    um_sdm_msg_clear(Message);
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_destroy(lbmsdm_msg_t *Message)
{
    if (Message == NULL) {
        return no_argument("Message");
    }
    um_sdm_msg_destroy(Message);
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_dump(lbmsdm_msg_t *Message, char *Buffer, size_t Size)
{
    if (Message == NULL || Buffer == NULL) {
        return no_argument(Message == NULL ? "Message" : "Buffer");
    }
    if (Size == 0) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "Size 0: must be 1 or more");
    }
    um_sdm_msg_dump(Message, Buffer, Size);
    return LBMSDM_SUCCESS;
}

const char *lbmsdm_msg_get_data(lbmsdm_msg_t *Message)
{
    if (Message == NULL) {
        (void)no_argument("Message");
        return NULL;
    }
    return (const char *)um_sdm_msg_data(Message);
}

size_t lbmsdm_msg_get_datalen(lbmsdm_msg_t *Message)
{
    if (Message == NULL) {
        (void)no_argument("Message");
        return 0;
    }
    return Message->length;
}

int lbmsdm_msg_get_fldcnt(lbmsdm_msg_t *Message)
{
    return Message == NULL ? no_argument("Message") : (int)Message->count;
}

int lbmsdm_msg_get_idx_name(lbmsdm_msg_t *Message, const char *Name)
{
    struct um_sdm_place at = um_sdm_at_name(Message, Name);
    return at.field == NULL ? LBMSDM_FAILURE : (int)(at.field - Message->fields);
}

/* ---- iterators ---- */

int lbmsdm_iter_create(lbmsdm_iter_t **Iterator, lbmsdm_msg_t *Message)
{
    if (Iterator == NULL || Message == NULL) {
        return no_argument(Iterator == NULL ? "Iterator" : "Message");
    }
    lbmsdm_iter_t *iter = um_calloc(1, sizeof *iter);
    if (iter == NULL) {
        return um_sdm_no_memory(sizeof *iter);
    }
    iter->msg = Message;
    *Iterator = iter;
    return LBMSDM_SUCCESS;
}

int lbmsdm_iter_destroy(lbmsdm_iter_t *Iterator)
{
    if (Iterator == NULL) {
        return no_argument("Iterator");
    }
    um_free(Iterator);
    return LBMSDM_SUCCESS;
}

static int on_field(const lbmsdm_iter_t *iter)
{
    return iter->index < iter->msg->count ? LBMSDM_SUCCESS : LBMSDM_NO_MORE_FIELDS;
}

int lbmsdm_iter_first(lbmsdm_iter_t *Iterator)
{
    if (Iterator == NULL) {
        return no_argument("Iterator");
    }
    Iterator->index = 0;
    Iterator->positioned = true;
    return on_field(Iterator);
}

int lbmsdm_iter_next(lbmsdm_iter_t *Iterator)
{
    if (Iterator == NULL) {
        return no_argument("Iterator");
    }
    if (!Iterator->positioned) {
        return um_sdm_error(LBMSDM_ERR_ITERATOR_INVALID, "lbmsdm_iter_next before lbmsdm_iter_first");
    }
    if (on_field(Iterator) == LBMSDM_SUCCESS) {
        Iterator->index++;
    }
    return on_field(Iterator);
}

/* ---- what holds for fields of every type: by index, by name, by iterator ---- */

static const char *name_of(struct um_sdm_place at)
{
    return at.field == NULL ? NULL : at.field->name;
}

const char *lbmsdm_msg_get_name_idx(lbmsdm_msg_t *Message, size_t Index)
{
    return name_of(um_sdm_at_idx(Message, Index));
}

const char *lbmsdm_iter_get_name(lbmsdm_iter_t *Iterator)
{
    return name_of(um_sdm_at_iter(Iterator));
}

static lbmsdm_field_type_t type_of(struct um_sdm_place at)
{
    return at.field == NULL ? LBMSDM_TYPE_INVALID : at.field->type;
}

static int null_of(struct um_sdm_place at)
{
    return at.field == NULL ? LBMSDM_FAILURE : at.field->null;
}

static int elements_of(struct um_sdm_place at)
{
    return at.field == NULL ? LBMSDM_FAILURE : um_sdm_is_array(at.field) ? (int)at.field->count : 1;
}

#define FOR_A_FIELD(type, call, idx, name, iter)                                                                       \
    type idx(lbmsdm_msg_t *Message, size_t Index)                                                                      \
    {                                                                                                                  \
        return call(um_sdm_at_idx(Message, Index));                                                                    \
    }                                                                                                                  \
    type name(lbmsdm_msg_t *Message, const char *Name)                                                                 \
    {                                                                                                                  \
        return call(um_sdm_at_name(Message, Name));                                                                    \
    }                                                                                                                  \
    type iter(lbmsdm_iter_t *Iterator)                                                                                 \
    {                                                                                                                  \
        return call(um_sdm_at_iter(Iterator));                                                                         \
    }

#define FOR_AN_ELEMENT(call, idx, name, iter)                                                                          \
    int idx(lbmsdm_msg_t *Message, size_t Index, size_t Element)                                                       \
    {                                                                                                                  \
        return call(um_sdm_at_idx(Message, Index), Element);                                                           \
    }                                                                                                                  \
    int name(lbmsdm_msg_t *Message, const char *Name, size_t Element)                                                  \
    {                                                                                                                  \
        return call(um_sdm_at_name(Message, Name), Element);                                                           \
    }                                                                                                                  \
    int iter(lbmsdm_iter_t *Iterator, size_t Element)                                                                  \
    {                                                                                                                  \
        return call(um_sdm_at_iter(Iterator), Element);                                                                \
    }

FOR_A_FIELD(lbmsdm_field_type_t, type_of, lbmsdm_msg_get_type_idx, lbmsdm_msg_get_type_name, lbmsdm_iter_get_type)
FOR_A_FIELD(int, null_of, lbmsdm_msg_is_null_idx, lbmsdm_msg_is_null_name, lbmsdm_iter_is_null)
FOR_A_FIELD(int, elements_of, lbmsdm_msg_get_elemcnt_idx, lbmsdm_msg_get_elemcnt_name, lbmsdm_iter_get_elemcnt)
FOR_A_FIELD(int, um_sdm_get_len, lbmsdm_msg_get_len_idx, lbmsdm_msg_get_len_name, lbmsdm_iter_get_len)
FOR_A_FIELD(int, um_sdm_set_null, lbmsdm_msg_set_null_idx, lbmsdm_msg_set_null_name, lbmsdm_iter_set_null)
FOR_A_FIELD(int, um_sdm_del, lbmsdm_msg_del_idx, lbmsdm_msg_del_name, lbmsdm_iter_del)
FOR_AN_ELEMENT(um_sdm_get_elemlen, lbmsdm_msg_get_elemlen_idx, lbmsdm_msg_get_elemlen_name, lbmsdm_iter_get_elemlen)
FOR_AN_ELEMENT(um_sdm_del_elem, lbmsdm_msg_del_elem_idx, lbmsdm_msg_del_elem_name, lbmsdm_iter_del_elem)

/* ---- options ---- */

int lbmsdm_msg_attr_create(lbmsdm_msg_attr_t **Attributes)
{
    if (Attributes == NULL) {
        return no_argument("Attributes");
    }
    lbmsdm_msg_attr_t *attr = um_malloc(sizeof *attr);
    if (attr == NULL) {
        return um_sdm_no_memory(sizeof *attr);
    }
    attr->values = um_sdm_defaults;
    *Attributes = attr;
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_attr_delete(lbmsdm_msg_attr_t *Attributes)
{
    if (Attributes == NULL) {
        return no_argument("Attributes");
    }
    um_free(Attributes);
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_attr_dup(lbmsdm_msg_attr_t **Attributes, lbmsdm_msg_attr_t *Original)
{
    lbmsdm_msg_attr_t *attr;
    if (Attributes == NULL || Original == NULL) {
        return no_argument(Attributes == NULL ? "Attributes" : "Original");
    }
    if (lbmsdm_msg_attr_create(&attr) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    attr->values = Original->values;
    *Attributes = attr;
    return LBMSDM_SUCCESS;
}

static int option_arguments(const lbmsdm_msg_attr_t *attr, const char *option, const void *value)
{
    return attr != NULL && option != NULL && value != NULL ? LBMSDM_SUCCESS
                                                           : no_argument(attr == NULL     ? "Attributes"
                                                                         : option == NULL ? "Option"
                                                                                          : "Value");
}

int lbmsdm_msg_attr_setopt(lbmsdm_msg_attr_t *Attributes, const char *Option, void *Value, size_t Length)
{
    int value;
    if (option_arguments(Attributes, Option, Value) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    if (Length != sizeof value) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "%.64s: Length %zu: must be %zu, the size of an int", Option, Length,
                            sizeof value);
    }
    memcpy(&value, Value, sizeof value);
    return um_sdm_attr_set(&Attributes->values, Option, value);
}

int lbmsdm_msg_attr_str_setopt(lbmsdm_msg_attr_t *Attributes, const char *Option, const char *Value)
{
    return option_arguments(Attributes, Option, Value) != LBMSDM_SUCCESS
               ? LBMSDM_FAILURE
               : um_sdm_attr_set_text(&Attributes->values, Option, Value);
}

/* `size` bytes to where `*length` have room. */
static int give(const char *option, const void *bytes, size_t size, void *value, size_t *length)
{
    size_t room = *length;
    *length = size;
    if (room < size) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "%.64s: Length %zu: must be %zu or more", option, room, size);
    }
    memcpy(value, bytes, size);
    return LBMSDM_SUCCESS;
}

int lbmsdm_msg_attr_getopt(lbmsdm_msg_attr_t *Attributes, const char *Option, void *Value, size_t *Length)
{
    if (option_arguments(Attributes, Option, Value) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    if (Length == NULL) {
        return no_argument("Length");
    }
    const int *value = um_sdm_attr_get(&Attributes->values, Option);
    return value == NULL ? LBMSDM_FAILURE : give(Option, value, sizeof *value, Value, Length);
}

int lbmsdm_msg_attr_str_getopt(lbmsdm_msg_attr_t *Attributes, const char *Option, char *Value, size_t *Length)
{
    char text[16];
    if (option_arguments(Attributes, Option, Value) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    if (Length == NULL) {
        return no_argument("Length");
    }
    const int *value = um_sdm_attr_get(&Attributes->values, Option);
    if (value == NULL) {
        return LBMSDM_FAILURE;
    }
    int len = snprintf(text, sizeof text, "%d", *value);
    return give(Option, text, (size_t)len + 1, Value, Length);
}
