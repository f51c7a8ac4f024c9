/* What is monitored: the objects, and the entries that controllers have for them. One lock of the process guards all of
 * it, and is held for a few steps only; no sender takes it. An object that somebody looks at is not deleted meanwhile.
 * Called by applications, the sampling threads, and core where objects are deleted. */
#ifndef UM_LBMMON_OBJECTS_H
#define UM_LBMMON_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/um_list.h"
#include "base/um_table.h"
#include "core/um_monitored.h"
#include "lbmmon/um_mon_packet.h"

/* The lock of everything below, and of the fields of controllers that say so. A leaf: nothing is called under it. */
extern pthread_mutex_t um_mon_lock;
extern pthread_cond_t um_mon_changed; /* an object is let go; a controller has come to an end */

/* What of an object is sampled. */
enum um_mon_what {
    UM_MON_CONTEXT,     /* its counters, and those of all its transport sessions */
    UM_MON_SOURCE,      /* the session of a source or smart source */
    UM_MON_RECEIVER,    /* the sessions of a receiver */
    UM_MON_EVENT_QUEUE, /* its counters */
    UM_MON_TOPIC,       /* interest: the topic of a receiver and its sources */
    UM_MON_PATTERN      /* interest: the pattern of a wildcard receiver */
};

struct um_mon_object {
    struct um_table_link link; /* by address */
    void *handle;
    uint64_t id;            /* never used again in this process */
    unsigned users;         /* threads that look at it now */
    bool closing;           /* nobody begins to */
    struct um_list entries; /* um_mon_entry.object_node */
};

/* One object of one controller. What a sample needs is copied out of it. */
struct um_mon_entry {
    struct um_list node;        /* the controller's list */
    struct um_list object_node; /* object->entries */
    struct um_mon_object *object;
    const struct um_list *list; /* the same list: whose entry it is */
    enum um_mon_what what;
    unsigned interval_sec;     /* 0: on demand only */
    unsigned own_interval_sec; /* as it was given first */
    uint64_t due_ns;           /* of the next sample; 0: none */
    uint64_t pass;             /* the last pass that saw it */
    char appid[UM_MON_APPID_MAX + 1];
};

/* All with the lock held. */
struct um_mon_object *um_mon_object_find(void *handle);
/* The entry of this list for the object; NULL: none. */
struct um_mon_entry *um_mon_entry_find(void *handle, const struct um_list *list);
/* Puts it into the list and under its object, which is made if need be. -1: out of memory. */
int um_mon_entry_add(struct um_mon_entry *entry, struct um_list *list, void *handle);
void um_mon_entry_remove(struct um_mon_entry *entry); /* and frees it */
bool um_mon_object_use(struct um_mon_object *object); /* false: it is being deleted */
void um_mon_object_release(struct um_mon_object *object);
void um_mon_object_reopen(struct um_mon_object *object); /* closing no more; without entries it is forgotten */
void um_mon_object_wait_unused(void *handle);            /* gives the lock up meanwhile */

#endif
