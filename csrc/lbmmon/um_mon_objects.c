/* Monitored objects and their entries in controllers. Owns the table of objects and its lock. See um_mon_objects.h. */
#include "lbmmon/um_mon_objects.h"

#include "base/um_fork.h"
#include "base/um_hash.h"
#include "base/um_mem.h"
#include "base/um_wait.h"

pthread_mutex_t um_mon_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t um_mon_changed;
UM_FORK_GUARD(um_mon_lock)
UM_FORK_GUARD_CONDITION(um_mon_changed)

static struct um_table objects; /* um_mon_lock: um_mon_object.link */
static uint64_t next_id = 1;    /* um_mon_lock */

static uint32_t hash_of(const void *handle)
{
    return um_hash_bytes(&handle, sizeof handle);
}

struct um_mon_object *um_mon_object_find(void *handle)
{
    struct um_table_link *link = um_table_find(&objects, hash_of(handle));
    while (link != NULL) {
        struct um_mon_object *object = UM_CONTAINER_OF(link, struct um_mon_object, link);
        if (object->handle == handle) {
            return object;
        }
        link = um_table_find_next(link);
    }
    return NULL;
}

static struct um_mon_object *object_new(void *handle)
{
    struct um_mon_object *object = um_calloc(1, sizeof *object);
    if (object == NULL) {
        return NULL;
    }
    object->handle = handle;
    object->id = next_id;
    um_list_init(&object->entries);
    if (um_table_add(&objects, &object->link, hash_of(handle)) != 0) {
        um_free(object);
        return NULL;
    }
    next_id++;
    atomic_fetch_add(&um_monitored_objects, 1);
    return object;
}

/* Without entries and users nobody refers to it. */
static void object_settle(struct um_mon_object *object)
{
    if (um_list_empty(&object->entries) && object->users == 0 && !object->closing) {
        um_table_remove(&objects, &object->link);
        um_free(object);
        atomic_fetch_sub(&um_monitored_objects, 1);
    }
}

struct um_mon_entry *um_mon_entry_find(void *handle, const struct um_list *list)
{
    struct um_mon_object *object = um_mon_object_find(handle);
    struct um_list *node;
    if (object == NULL) {
        return NULL;
    }
    UM_LIST_FOREACH(node, &object->entries)
    {
        struct um_mon_entry *entry = UM_CONTAINER_OF(node, struct um_mon_entry, object_node);
        if (entry->list == list) {
            return entry;
        }
    }
    return NULL;
}

int um_mon_entry_add(struct um_mon_entry *entry, struct um_list *list, void *handle)
{
    struct um_mon_object *object = um_mon_object_find(handle);
    if (object == NULL && (object = object_new(handle)) == NULL) {
        return -1;
    }
    entry->object = object;
    entry->list = list;
    um_list_push_back(&object->entries, &entry->object_node);
    um_list_push_back(list, &entry->node);
    return 0;
}

void um_mon_entry_remove(struct um_mon_entry *entry)
{
    struct um_mon_object *object = entry->object;
    um_list_remove(&entry->node);
    um_list_remove(&entry->object_node);
    um_free(entry);
    object_settle(object);
}

bool um_mon_object_use(struct um_mon_object *object)
{
    object->users += !object->closing;
    return !object->closing;
}

void um_mon_object_release(struct um_mon_object *object)
{
    object->users--;
    object_settle(object);
    pthread_cond_broadcast(&um_mon_changed);
}

void um_mon_object_reopen(struct um_mon_object *object)
{
    object->closing = false;
    object_settle(object);
}

void um_mon_object_wait_unused(void *handle)
{
    struct um_mon_object *object;
    while ((object = um_mon_object_find(handle)) != NULL && object->users > 0) {
        pthread_cond_wait(&um_mon_changed, &um_mon_lock);
    }
}
