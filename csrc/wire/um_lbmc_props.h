/* Message properties as they travel behind the data of a message: a header,
 * records, names and values, in the byte order of who wrote them. Pure functions
 * on bytes; readers check every length. Any thread. */
#ifndef UM_WIRE_LBMC_PROPS_H
#define UM_WIRE_LBMC_PROPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/um_bytes.h"

enum um_prop_type { /* as LBM_MSG_PROPERTY_* */
                    UM_PROP_BOOLEAN = 1,
                    UM_PROP_BYTE,
                    UM_PROP_SHORT,
                    UM_PROP_INT,
                    UM_PROP_LONG,
                    UM_PROP_FLOAT,
                    UM_PROP_DOUBLE,
                    UM_PROP_STRING
};

#define UM_PROP_NAME_MAX 250u
#define UM_PROPS_MAX 65535u /* in a message */
#define UM_PROPS_HDR_LEN 8u
#define UM_PROPS_RECORD_LEN 16u
#define UM_PROPS_MAGIC 0xABACDABAu
#define UM_PROPS_VERSION_AND_TYPE 0u

struct um_prop {
    const char *name; /* ends in NUL */
    uint32_t hash;    /* um_prop_hash() of it, whatever the writer says */
    uint8_t name_len; /* 1..UM_PROP_NAME_MAX */
    uint8_t type;     /* enum um_prop_type */
    uint32_t size;    /* of the value; of a string with its NUL */
    union {
        _Alignas(8) uint8_t bytes[8]; /* a number, in the order of this host */
        const char *text;             /* UM_PROP_STRING */
    } value;
};

uint32_t um_prop_hash(const char *name, size_t len);
uint32_t um_prop_size(uint8_t type); /* of a number; 0: a string, or no type */

struct um_props_reader {
    struct um_slice blob;
    bool swapped; /* another byte order than this host's */
    uint32_t count, next;
    size_t texts; /* bytes of names and strings read so far: more than there are means that records share them */
};
/* False: these are no properties. */
bool um_props_open(struct um_props_reader *r, struct um_slice blob);
/* Would they open, written by a host of the order of this one? What is not may still be some. */
static inline bool um_props_are_native(struct um_slice blob)
{
    uint32_t magic;
    uint16_t count;
    if (blob.len < UM_PROPS_HDR_LEN) {
        return false;
    }
    memcpy(&magic, blob.ptr, sizeof magic);
    memcpy(&count, blob.ptr + 4, sizeof count);
    return magic == UM_PROPS_MAGIC && blob.ptr[6] == UM_PROPS_VERSION_AND_TYPE &&
           count * (size_t)UM_PROPS_RECORD_LEN <= blob.len - UM_PROPS_HDR_LEN;
}
/* The next one; it points into the blob. False: there is none, or it is malformed: then fewer than r->count came. */
bool um_props_next(struct um_props_reader *r, struct um_prop *out);

/* Bytes of a property beside its record. */
static inline size_t um_prop_room(const struct um_prop *prop)
{
    return (size_t)prop->name_len + 1 + prop->size;
}
/* Writing, in the order of this host: the header, then every property. `room` is the sum of um_prop_room(). */
struct um_props_writer {
    uint8_t *blob;
    size_t record, at;
};
static inline size_t um_props_len(size_t count, size_t room)
{
    return UM_PROPS_HDR_LEN + count * UM_PROPS_RECORD_LEN + room;
}
void um_props_begin(struct um_props_writer *w, uint8_t *blob, uint32_t count);
void um_props_put(struct um_props_writer *w, const struct um_prop *prop);
/* Writes an integer property of what was written so, the one at `index`, anew. */
void um_props_put_int(uint8_t *blob, uint32_t index, int32_t value);

#endif
