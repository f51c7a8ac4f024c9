/* Properties objects (lbm_msg_properties_t): built by the application, or those
 * of a received message, which are read when somebody first looks at them. For
 * one thread at a time. */
#ifndef UM_CORE_PROPERTIES_H
#define UM_CORE_PROPERTIES_H

#include <lbm/lbm.h>

#include "wire/um_lbmc_props.h"

#define UM_PROPERTIES_MAGIC 0x554d5052u /* "UMPR" */

enum um_properties_state {
    UM_PROPERTIES_BUILT,  /* `list` is what there is */
    UM_PROPERTIES_UNREAD, /* a message's: only `blob` is there */
    UM_PROPERTIES_READ,   /* a message's: `list` is what `blob` says */
    UM_PROPERTIES_BAD     /* a message's: `blob` is malformed */
};

struct um_property {
    struct um_prop prop;
    char *own; /* name and text are in it; NULL: they are in the message */
};

struct lbm_msg_properties_t_stct {
    uint32_t magic;
    uint8_t state; /* enum um_properties_state */
    bool of_message;
    uint32_t count, capacity;
    struct um_property *list; /* in the order in which they were set */
    size_t room;              /* sum of um_prop_room() */
    uint32_t *slots;          /* hash table over many: 1 + the place in `list`; 0: free */
    uint32_t slot_count;      /* a power of two; 0: none yet */
    uint32_t indexed;         /* so many of `list` are in it */
    struct um_slice received; /* of a message: as it came, whatever was changed since */
    struct um_slice blob;     /* as it travels; len 0: not written yet, or changed since */
    uint8_t *written;         /* memory of `blob` where it is not a message's */
    size_t written_capacity;
};

/* In place: what a message refers to. The blob is its, and begins as properties do. */
void um_properties_of_message(lbm_msg_properties_t *p, struct um_slice blob);
/* The same where nobody has looked at those of the message before; false: somebody has, or they are not sound at first
 * sight: nothing has happened. */
static inline bool um_properties_follow(lbm_msg_properties_t *p, struct um_slice blob)
{
    if (p->state != UM_PROPERTIES_UNREAD || !um_props_are_native(blob)) {
        return false;
    }
    p->received = p->blob = blob;
    return true;
}
void um_properties_moved(lbm_msg_properties_t *p, const uint8_t *blob); /* the same bytes are there now */
void um_properties_empty(lbm_msg_properties_t *p);                      /* gives back what it has */
static inline struct um_slice um_properties_received(const lbm_msg_properties_t *p)
{
    return p->received;
}

int um_properties_check(const lbm_msg_properties_t *p, const char *api); /* 0, or -1 + UM_EINVAL */
/* As it travels; it is kept until the object changes. 0, or -1 with UM_ENOMEM, UM_EINVAL (a message's, malformed). */
int um_properties_blob(lbm_msg_properties_t *p, struct um_slice *out, const char *api);

/* What the lbm_msg_properties_* calls of the same names do with checked objects. */
lbm_msg_properties_t *um_properties_create(void); /* NULL + error */
/* Of bytes as they travel, which are copied and read at once. NULL + error: no memory, or malformed. */
lbm_msg_properties_t *um_properties_from(struct um_slice blob, const char *api);
void um_properties_destroy(lbm_msg_properties_t *p);
int um_properties_set(lbm_msg_properties_t *p, const char *name, const void *value, int type, size_t size);
int um_properties_get(lbm_msg_properties_t *p, const char *name, void *value, int *type, size_t *size);
int um_properties_clear(lbm_msg_properties_t *p, const char *name); /* NULL: all */
/* The one at `index`. 0: *out; 1: no more; -1 + error. */
int um_properties_at(lbm_msg_properties_t *p, size_t index, const struct um_prop **out);

#endif
