/* What the files of pre-defined messages share: types, definitions, messages, values in bytes. On base only.
 * A finalized definition is read-only and may be used by any thread; everything else is for one thread at a time. */
#ifndef UM_PDM_H
#define UM_PDM_H

#include <lbm/lbmpdm.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/um_bytes.h"

#define UM_PDM_MAGIC 0xA71CCAFEu
#define UM_PDM_HEADER_LEN 16
#define UM_PDM_SEGMENT_LEN 8
#define UM_PDM_DEFN_HEADER_LEN 20
#define UM_PDM_ENTRY_LEN 28 /* without the name */
#define UM_PDM_SIZE_MAX 0x7fffffffu
#define UM_PDM_NO_EMPTY_TABLE 0x100u /* UM_PDM_MSG_FLAG_NO_EMPTY_OFFSET_TABLE of um.h */

enum um_pdm_segment { UM_PDM_SEGMENT_DATA, UM_PDM_SEGMENT_OFFSETS, UM_PDM_SEGMENT_DEFN, UM_PDM_SEGMENT_END = 0xff };

/* ---- errors ---- */

/* Records the error of this thread; always returns PDM_FAILURE. */
int um_pdm_error(int errnum, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool um_pdm_error_is(int errnum); /* whether the last one was this */

/* ---- types ---- */

enum um_pdm_kind {
    UM_PDM_NUMBER,    /* the value of C, in the order of bytes of the message */
    UM_PDM_DECIMAL,   /* exponent, mantissa */
    UM_PDM_TIMESTAMP, /* seconds, microseconds */
    UM_PDM_SLOT,      /* fixed strings: characters, NUL, zeros */
    UM_PDM_VARIABLE,  /* bytes with a length: strings, blobs */
    UM_PDM_NESTED     /* as those; a message for the application */
};

struct um_pdm_type {
    uint8_t kind;
    uint8_t wire; /* bytes of an element, 0: from the field or the value */
    uint8_t host; /* bytes of the element of C, 0: not of fixed size */
    bool array;
};

/* NULL for an unknown code. */
const struct um_pdm_type *um_pdm_type(int code);

/* ---- definitions ---- */

/* What the short ways of um_pdm_quick.c take a field for. */
enum um_pdm_quick {
    UM_PDM_QUICK_NONE,
    UM_PDM_QUICK_BYTES,    /* fixed-required, the same bytes in C and in the message */
    UM_PDM_QUICK_BOOLEANS, /* fixed-required */
    UM_PDM_QUICK_TEXTS,    /* fixed-required fixed strings */
    UM_PDM_QUICK_VARIABLE, /* a text or blob behind its length */
    UM_PDM_QUICK_NUMBERS   /* an array behind its length, the same bytes in C and in the message */
};

struct um_pdm_field {
    const struct um_pdm_type *type;
    char *name; /* NULL with integer names */
    int32_t int_name;
    uint32_t element;       /* bytes of an element in the message, 0: variable */
    uint32_t len;           /* of a fixed field, else 0 */
    uint32_t fixed_str_len; /* characters */
    uint32_t count;         /* elements of a fixed-count array, else 0 */
    uint32_t name_hash;
    int32_t place; /* fixed-required: offset in their section; others: index of the slot in a message */
    int16_t code;
    bool required;
    bool fixed;
    bool plain;        /* fixed-required */
    uint8_t quick;     /* enum um_pdm_quick, if it is a scalar */
    uint8_t quick_vec; /* the same, if it is an array */
};

struct lbmpdm_defn_stct_t {
    atomic_int references;  /* the owner's and one of each message */
    atomic_bool owner_gone; /* the owner's reference has been given up */
    atomic_bool in_cache;   /* the cache is the owner */
    int32_t id;
    int8_t major, minor;
    bool integer_names;
    bool finalized;
    struct um_pdm_field *fields;
    int32_t count, room;
    int32_t *names; /* hash table of handle + 1, 0: free */
    uint32_t names_mask;
    int32_t *slot_fields;  /* handles of the fields that are not fixed-required; once finalized */
    uint32_t plain_count;  /* fixed-required fields */
    uint32_t slot_count;   /* the others */
    uint32_t needed_slots; /* required ones of those */
    uint32_t fixed_len;    /* bytes of the fixed-required section; valid once finalized */
    uint32_t info_len;     /* bytes of the entries of all fields */
};

static inline struct um_pdm_field *um_pdm_field(const struct lbmpdm_defn_stct_t *defn, int32_t handle)
{
    return handle >= 0 && handle < defn->count ? &defn->fields[handle] : NULL;
}

static inline bool um_pdm_defn_is(const struct lbmpdm_defn_stct_t *defn, int32_t id, uint8_t major, uint8_t minor)
{
    return defn->id == id && (uint8_t)defn->major == major && (uint8_t)defn->minor == minor;
}

lbmpdm_defn_t *um_pdm_defn_new(int32_t id, int8_t major, int8_t minor, bool integer_names);
/* Adds a field as it stands; takes field->name over in any case. The handle, or -1 with the error recorded. */
int32_t um_pdm_defn_append(lbmpdm_defn_t *defn, struct um_pdm_field *field);
/* Recomputes element, len, fixed and plain from the code and the counts; false when they are too large or the length
 * of a fixed string is missing. */
bool um_pdm_field_measure(struct um_pdm_field *field);
int32_t um_pdm_defn_find(const lbmpdm_defn_t *defn, const char *name, int32_t int_name);
int um_pdm_defn_close(lbmpdm_defn_t *defn);
void um_pdm_defn_release(lbmpdm_defn_t *defn); /* a message's reference */
bool um_pdm_defn_disown(lbmpdm_defn_t *defn);  /* the owner's, at most once; false when it was gone */
void um_pdm_defn_own(lbmpdm_defn_t *defn);     /* an owner's again, where it had gone; a message holds it */
void um_pdm_defn_drop_fields(lbmpdm_defn_t *defn);
uint32_t um_pdm_defn_length(const lbmpdm_defn_t *defn);
void um_pdm_defn_write(const lbmpdm_defn_t *defn, uint8_t *out);
/* A definition from the payload of a definition segment; NULL with the error recorded. */
lbmpdm_defn_t *um_pdm_defn_read(const uint8_t *bytes, size_t len, bool swap);

/* From the cache, with a reference for a message: this version, else with `any` the newest. NULL when there is none. */
lbmpdm_defn_t *um_pdm_cache_reference(int32_t id, uint8_t major, uint8_t minor, bool any);

/* ---- messages ---- */

enum um_pdm_slot_state {
    UM_PDM_UNSET,
    UM_PDM_OWN,     /* in bytes of its own, in the order of this host */
    UM_PDM_RECEIVED /* in the data of the message, in the order of the message */
};

/* The value of a field that is not fixed-required, as it stands in the data segment. */
struct um_pdm_slot {
    uint8_t *own;
    uint32_t room;
    uint32_t len;
    uint32_t offset; /* received */
    uint8_t state;
};

struct lbmpdm_msg_stct_t {
    lbmpdm_defn_t *defn;
    uint32_t flags;
    bool adopted;  /* the definition came with a message and nobody else owns it */
    bool borrowed; /* it was found in the cache: never this message's to delete, also when it is the cache's no more */
    bool swap;     /* received values are in the other order; the fixed-required section never is */
    uint8_t *data; /* fixed-required section, then what was received */
    size_t room;
    uint32_t plain_unset; /* fixed-required fields without a value */
    uint32_t slots_unset; /* required slots without a value */
    uint32_t slots_set;   /* slots with a value */
    uint64_t slots_bytes; /* of those values */
    uint8_t *plain_set;   /* by handle; bytes of fixed-required fields only */
    struct um_pdm_slot *slots;
    uint8_t *out; /* of lbmpdm_msg_get_data() */
    size_t out_room;
};

/* Makes the message one of another definition, whose reference it takes over; NULL: of none. All values go. On failure
 * nothing has changed. */
int um_pdm_msg_use(lbmpdm_msg_t *msg, lbmpdm_defn_t *defn, bool adopted);
void um_pdm_msg_clear(lbmpdm_msg_t *msg);
void um_pdm_msg_clear_slots(lbmpdm_msg_t *msg); /* fixed-required values stay; the message has a definition */
/* Room for the data; what is there stays. */
int um_pdm_msg_room(lbmpdm_msg_t *msg, size_t len);
/* Exact length, 0 with the error recorded. */
uint32_t um_pdm_msg_length(const lbmpdm_msg_t *msg);
int um_pdm_msg_write(const lbmpdm_msg_t *msg, uint8_t *out, uint32_t length);
int um_pdm_msg_read(lbmpdm_msg_t *msg, const uint8_t *bytes, size_t len);
lbmpdm_msg_t *um_pdm_msg_new(lbmpdm_defn_t *defn, uint32_t flags);
void um_pdm_msg_free(lbmpdm_msg_t *msg, bool and_defn);
bool um_pdm_msg_is_set(const lbmpdm_msg_t *msg, int32_t handle);
/* The definition's field, or NULL with the error recorded. */
const struct um_pdm_field *um_pdm_msg_field(const lbmpdm_msg_t *msg, int32_t handle);

/* The field's slot has a value of that many bytes now, or none. */
static inline void um_pdm_mark_slot(lbmpdm_msg_t *msg, const struct um_pdm_field *field, uint8_t state, uint32_t len)
{
    struct um_pdm_slot *slot = &msg->slots[field->place];
    uint32_t change = (uint32_t)(state != UM_PDM_UNSET) - (uint32_t)(slot->state != UM_PDM_UNSET);
    msg->slots_bytes -= slot->state != UM_PDM_UNSET ? slot->len : 0;
    msg->slots_bytes += state != UM_PDM_UNSET ? len : 0;
    msg->slots_set += change;
    msg->slots_unset -= field->required ? change : 0;
    slot->state = state;
    slot->len = len;
}

/* A fixed-required field has a value now. */
static inline void um_pdm_mark_plain(lbmpdm_msg_t *msg, int32_t handle)
{
    msg->plain_unset -= msg->plain_set[handle] == 0;
    msg->plain_set[handle] = 1;
}

static inline bool um_pdm_has_value(const lbmpdm_msg_t *msg, int32_t handle, const struct um_pdm_field *field)
{
    return field->plain ? msg->plain_set[handle] != 0 : msg->slots[field->place].state != UM_PDM_UNSET;
}

int um_pdm_set(lbmpdm_msg_t *msg, int32_t handle, const void *value, size_t len);
int um_pdm_set_vec(lbmpdm_msg_t *msg, int32_t handle, const void *value, const size_t *len, size_t count);
int um_pdm_get(lbmpdm_msg_t *msg, int32_t handle, void *value, size_t *len);
int um_pdm_get_vec(lbmpdm_msg_t *msg, int32_t handle, void *value, size_t *len, size_t *count);

/* ---- values in bytes ---- */

static inline uint32_t um_pdm_read32(const uint8_t *at, bool swap)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return swap ? __builtin_bswap32(value) : value;
}

/* For the short values that most are: without a call up to 32 bytes, in loads and stores that overlap. */
static inline void um_pdm_copy(void *to, const void *from, size_t len)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    uint64_t a[2], b[2];
    if (len > 32) {
        memcpy(to, from, len);
    } else if (len > 16) {
        memcpy(a, in, 16);
        memcpy(b, in + len - 16, 16);
        memcpy(out, a, 16);
        memcpy(out + len - 16, b, 16);
    } else if (len >= 8) {
        memcpy(a, in, 8);
        memcpy(b, in + len - 8, 8);
        memcpy(out, a, 8);
        memcpy(out + len - 8, b, 8);
    } else if (len >= 4) {
        memcpy(a, in, 4);
        memcpy(b, in + len - 4, 4);
        memcpy(out, a, 4);
        memcpy(out + len - 4, b, 4);
    } else if (len != 0) {
        uint8_t first = in[0], middle = in[len / 2], last = in[len - 1];
        out[0] = first;
        out[len / 2] = middle;
        out[len - 1] = last;
    }
}

static inline void um_pdm_write32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static inline void um_pdm_write16(uint8_t *at, uint16_t value)
{
    memcpy(at, &value, sizeof value);
}

/* A value of a field in the data of a message, taken apart: either elements of one size, or elements with lengths. */
struct um_pdm_value {
    const uint8_t *elements; /* the first one, or the length before it */
    uint32_t bytes;          /* of all, with their lengths */
    uint32_t count;
    uint32_t total; /* bytes of the value, with what comes before the elements */
    bool swap;
};

/* The value that begins at `at` with at most `room` bytes behind it; false when it does not fit. */
bool um_pdm_value_read(const struct um_pdm_field *field, const uint8_t *at, size_t room, bool swap,
                       struct um_pdm_value *out);
/* The next element of variable length of a value that has been read. */
struct um_slice um_pdm_value_next(const uint8_t **at, bool swap);
/* Turns the order of bytes of a value that has been read in the other order. */
void um_pdm_value_swap(const struct um_pdm_field *field, uint8_t *at, size_t len);
/* Turns `count` elements of a fixed size. */
void um_pdm_elements_swap(const struct um_pdm_field *field, uint8_t *at, size_t count);

#endif
