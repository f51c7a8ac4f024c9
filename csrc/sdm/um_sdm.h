/* Self-describing messages: a list of fields, each with a name, a type and a value, an array of values or none.
 * csrc/api/lbmsdm*.c are the public calls on top. No sockets, no clocks, no locks: a message, its iterators and the
 * thread's error belong to the calling thread. What fails leaves the message as it was. */
#ifndef UM_SDM_SDM_H
#define UM_SDM_SDM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <wchar.h>

#include <lbm/lbmsdm.h>

#define UM_SDM_FIELDS_MAX 65535
#define UM_SDM_LENGTH_MAX 0x7fffffffu /* bytes of a message on the wire */
#define UM_SDM_DEPTH_MAX 32           /* messages inside each other, the outermost included */
#define UM_SDM_HEADER_LEN 12
#define UM_SDM_FIELD_HEADER_LEN 8

struct um_sdm_attr {
    int field_array_allocation;
    int name_tree;
    int integer_index;
};

/* Text, wide characters or bytes: `len` units; ptr is NULL where there are none. Text ends in a NUL that `len` does not
 * count. */
struct um_sdm_bytes {
    void *ptr;
    size_t len;
};

/* A value in memory, in the C type of its field type. Arrays are rows of such, each of um_sdm_cell_size(). */
union um_sdm_cell {
    uint8_t u8;
    uint64_t u64;
    float f32;
    double f64;
    lbmsdm_decimal_t decimal;
    struct timeval timestamp;
    lbmsdm_msg_t *message;
    struct um_sdm_bytes bytes;
};

struct um_sdm_field {
    char *name;
    uint32_t hash;
    uint16_t type; /* with the array bit */
    uint8_t name_len;
    bool null;
    uint32_t count, capacity; /* of an array */
    size_t value_len;         /* bytes of the value on the wire */
    union {
        union um_sdm_cell one;
        uint8_t *cells;
    };
};

struct lbmsdm_msg_t_stct {
    struct um_sdm_attr attr;
    struct um_sdm_field *fields;
    uint32_t count, capacity;
    size_t length;   /* bytes on the wire, kept with every change */
    uint16_t *slots; /* open addressing by name: index + 1, 0 free; used beyond a few fields, see um_sdm_names.c */
    uint32_t slot_count;
    bool slots_stale;
    bool data_stale;
    uint8_t *data; /* the serialized form while not stale */
    size_t data_size;
};

struct lbmsdm_iter_t_stct {
    lbmsdm_msg_t *msg;
    size_t index; /* count of fields or more: past the end */
    bool positioned;
};

/* A value as the caller of the API gives it: a pointer to the C type, or to `len` units. */
struct um_sdm_given {
    const void *value;
    size_t len;
};

/* A field of a message. `field` NULL: there is none, and the thread's error says why. */
struct um_sdm_place {
    lbmsdm_msg_t *msg;
    struct um_sdm_field *field;
};

static inline uint16_t um_sdm_scalar(uint16_t type)
{
    return (uint16_t)(type & ~LBMSDM_TYPE_MODIFIER_ARRAY);
}

static inline bool um_sdm_is_array(const struct um_sdm_field *field)
{
    return (field->type & LBMSDM_TYPE_MODIFIER_ARRAY) != 0;
}

/* um_sdm_error.c: the thread's error. um_sdm_error() returns LBMSDM_FAILURE. */
int um_sdm_error(int errnum, const char *format, ...) __attribute__((format(printf, 2, 3)));
int um_sdm_no_memory(size_t bytes);
int um_sdm_errnum(void);
const char *um_sdm_errmsg(void);

/* um_sdm_attr.c: options by name. */
extern const struct um_sdm_attr um_sdm_defaults;
int um_sdm_attr_set(struct um_sdm_attr *attr, const char *option, long long value);
int um_sdm_attr_set_text(struct um_sdm_attr *attr, const char *option, const char *text);
const int *um_sdm_attr_get(const struct um_sdm_attr *attr, const char *option);

/* um_sdm_names.c: names of fields. Lookups never allocate. */
int um_sdm_name_check(const struct um_sdm_attr *attr, const char *name, size_t len);
uint32_t um_sdm_name_hash(const char *name, size_t len);
struct um_sdm_field *um_sdm_names_find(lbmsdm_msg_t *msg, const char *name, size_t len, uint32_t hash);
int um_sdm_names_reserve(lbmsdm_msg_t *msg, size_t count);
void um_sdm_names_added(lbmsdm_msg_t *msg);

/* um_sdm_cell.c: values, by scalar type. */
bool um_sdm_type_known(uint16_t type);                   /* scalar or array */
const char *um_sdm_type_name(uint16_t type);             /* "uint16" */
size_t um_sdm_cell_size(uint16_t type);                  /* in memory */
size_t um_sdm_fixed_len(uint16_t type);                  /* on the wire; 0 for those of variable length */
size_t um_sdm_cell_len(uint16_t type, const void *cell); /* on the wire */
int um_sdm_cell_make(uint16_t type, void *cell, struct um_sdm_given given);
int um_sdm_cell_copy(uint16_t type, void *to, const void *from);
void um_sdm_cell_free(uint16_t type, void *cell);
unsigned um_sdm_depth(const lbmsdm_msg_t *msg);

/* um_sdm_convert.c: numbers of one type read as another, as docs/decisions.md has it. */
bool um_sdm_is_number(uint16_t type);
void um_sdm_convert(uint16_t from, const void *cell, uint16_t to, void *out);

/* um_sdm_message.c: messages and their fields. */
lbmsdm_msg_t *um_sdm_msg_create(const struct um_sdm_attr *attr);
lbmsdm_msg_t *um_sdm_msg_clone(const lbmsdm_msg_t *original);
void um_sdm_msg_clear(lbmsdm_msg_t *msg);
void um_sdm_msg_destroy(lbmsdm_msg_t *msg);
int um_sdm_msg_reserve(lbmsdm_msg_t *msg, size_t count);
int um_sdm_msg_grow(lbmsdm_msg_t *msg);
void um_sdm_field_drop(struct um_sdm_field *field); /* its value or values */
struct um_sdm_place um_sdm_at_idx(lbmsdm_msg_t *msg, size_t index);
struct um_sdm_place um_sdm_at_name(lbmsdm_msg_t *msg, const char *name);
struct um_sdm_place um_sdm_at_iter(const lbmsdm_iter_t *iter);

/* um_sdm_edit.c: changes. `type` is the scalar type unless said. */
int um_sdm_msg_add(lbmsdm_msg_t *msg, const char *name, uint16_t type, struct um_sdm_given given);
int um_sdm_msg_add_array(lbmsdm_msg_t *msg, const char *name, uint16_t type);
int um_sdm_add_elem(struct um_sdm_place at, uint16_t type, struct um_sdm_given given);
int um_sdm_set(struct um_sdm_place at, uint16_t type, struct um_sdm_given given);
int um_sdm_set_array(struct um_sdm_place at, uint16_t type);
int um_sdm_set_elem(struct um_sdm_place at, size_t element, uint16_t type, struct um_sdm_given given);
int um_sdm_set_null(struct um_sdm_place at);
int um_sdm_del(struct um_sdm_place at);
int um_sdm_del_elem(struct um_sdm_place at, size_t element);

/* um_sdm_read.c: values out. `size` is NULL for types of fixed size. */
int um_sdm_get(struct um_sdm_place at, uint16_t type, void *out, size_t *size);
int um_sdm_get_elem(struct um_sdm_place at, size_t element, uint16_t type, void *out, size_t *size);
int um_sdm_get_len(struct um_sdm_place at);
int um_sdm_get_elemlen(struct um_sdm_place at, size_t element);
const void *um_sdm_element(struct um_sdm_place at, size_t element); /* the cell, or NULL with an error */

/* um_sdm_wire.c: the serialized form, docs/wire.md. */
const uint8_t *um_sdm_msg_data(lbmsdm_msg_t *msg);
uint8_t *um_sdm_msg_encode(const lbmsdm_msg_t *msg, uint8_t *out);
int um_sdm_msg_decode(lbmsdm_msg_t *msg, const uint8_t *data, size_t len); /* into an empty one; empty after failure */

/* um_sdm_dump.c: one line of text, cut to fit. */
void um_sdm_msg_dump(const lbmsdm_msg_t *msg, char *buffer, size_t size);

#endif
