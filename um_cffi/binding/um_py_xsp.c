/*
 * Which XSP of a Python context receives a session: those that want it, in turn. Asked on the context's thread, which
 * may not wait for Python; changed by any thread. Compiled into um_cffi.binding._native behind um_py_bridge.c by
 * build.py.
 */
#include <fnmatch.h>

typedef struct um_py_place_stct {
    struct um_py_place_stct *next;
    lbm_xsp_t *xsp;
    char sources[]; /* pattern of source strings */
} um_py_place_t;

typedef struct um_py_mapping_stct {
    pthread_mutex_t lock;
    um_py_place_t *first, *last; /* lock: whose turn it is comes first */
} um_py_mapping_t;

static um_py_mapping_t *um_py_mapping_create(void)
{
    um_py_mapping_t *mapping = calloc(1, sizeof *mapping);
    if (mapping != NULL)
        pthread_mutex_init(&mapping->lock, NULL);
    return mapping;
}

/* lock */
static void um_py_mapping_append(um_py_mapping_t *mapping, um_py_place_t *place)
{
    place->next = NULL;
    if (mapping->last != NULL)
        mapping->last->next = place;
    else
        mapping->first = place;
    mapping->last = place;
}

/* lock; `before`: the one in front of it, or NULL */
static void um_py_mapping_take(um_py_mapping_t *mapping, um_py_place_t *place, um_py_place_t *before)
{
    if (before != NULL)
        before->next = place->next;
    else
        mapping->first = place->next;
    if (mapping->last == place)
        mapping->last = before;
}

static void um_py_mapping_delete(um_py_mapping_t *mapping)
{
    um_py_place_t *place;
    while ((place = mapping->first) != NULL) {
        um_py_mapping_take(mapping, place, NULL);
        free(place);
    }
    pthread_mutex_destroy(&mapping->lock);
    free(mapping);
}

static lbm_xsp_t *um_py_map(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    um_py_mapping_t *mapping = clientd;
    lbm_xsp_t *chosen = NULL;
    um_py_place_t *before = NULL;
    pthread_mutex_lock(&mapping->lock);
    for (um_py_place_t *place = mapping->first; place != NULL; before = place, place = place->next) {
        if (fnmatch(place->sources, info->source, 0) == 0) {
            chosen = place->xsp;
            um_py_mapping_take(mapping, place, before);
            um_py_mapping_append(mapping, place);
            break;
        }
    }
    pthread_mutex_unlock(&mapping->lock);
    (void)ctx;
    return chosen;
}

/* Into the attributes of a context, which may not outlive it. */
static int um_py_mapping_install(um_py_mapping_t *mapping, lbm_context_attr_t *attr)
{
    lbm_transport_mapping_func_t func = {um_py_map, mapping};
    return lbm_context_attr_setopt(attr, "transport_mapping_function", &func, sizeof func);
}

/* 0, or -1: no memory. */
static int um_py_mapping_add(um_py_mapping_t *mapping, lbm_xsp_t *xsp, const char *sources)
{
    um_py_place_t *place = malloc(sizeof *place + strlen(sources) + 1);
    if (place == NULL)
        return -1;
    place->xsp = xsp;
    strcpy(place->sources, sources);
    pthread_mutex_lock(&mapping->lock);
    um_py_mapping_append(mapping, place);
    pthread_mutex_unlock(&mapping->lock);
    return 0;
}

static void um_py_mapping_remove(um_py_mapping_t *mapping, const lbm_xsp_t *xsp)
{
    um_py_place_t *before = NULL, *place;
    pthread_mutex_lock(&mapping->lock);
    for (place = mapping->first; place != NULL && place->xsp != xsp; place = place->next)
        before = place;
    if (place != NULL)
        um_py_mapping_take(mapping, place, before);
    pthread_mutex_unlock(&mapping->lock);
    free(place);
}
