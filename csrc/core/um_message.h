/* Messages as applications hold them (lbm_msg_t is the first member). The
 * library has one hold on a message while it delivers it; every lbm_msg_retain
 * adds one of the application. The last hold gone frees it, from any thread,
 * and the message knows nothing of its context. */
#ifndef UM_CORE_MESSAGE_H
#define UM_CORE_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "core/um_event_queue.h"

struct um_rcv_source;

#define UM_MSG_MAGIC 0x554d4d53u      /* "UMMS" */
#define UM_MSG_LIBRARY_HOLD (1 << 30) /* in `holds`: the library's own */

struct um_msg {
    lbm_msg_t pub;
    uint32_t magic;
    atomic_int holds; /* any thread */
    bool is_template; /* of a delivery controller: handed over when retained */
    bool delivering;  /* a callback may hold the template now */
    bool is_fragment;
    bool buf_held;                /* the reference on buf is ours */
    struct um_buf *buf;           /* holds pub.data; NULL for events */
    struct um_rcv_source *origin; /* of a template; NULL once it is handed over */
    struct um_msg *replacement;   /* made by the first retain of a template; becomes the next template */
    lbm_msg_fragment_info_t frag;
    struct um_event event; /* on an event queue */
    lbm_rcv_t *rcv;        /* with event: a reference on the receiver */
};

/* Library hold only; public fields zero except source and topic. NULL: out of memory (no error set). */
struct um_msg *um_msg_create(const char *source, const char *topic);
/* Independent copy for a queue: same fields, own buffer reference. NULL: out of memory (no error set). */
struct um_msg *um_msg_clone(const struct um_msg *msg);
void um_msg_release(struct um_msg *msg); /* drops the library hold */
/* The template for the next delivery: `msg` itself, or what replaces it after the application retained it. */
struct um_msg *um_msg_template_next(struct um_msg *msg);
int um_msg_retain(struct um_msg *msg); /* 0, or -1 + UM_ENOMEM, UM_EINVAL */
int um_msg_delete(struct um_msg *msg); /* 0, or -1 + UM_EINVAL: not retained */

#endif
