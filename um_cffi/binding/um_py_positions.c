/*
 * Where a recorder wants each source to begin: asked by the library on the context's thread when a source offers what
 * it has kept, which may not wait for Python; changed by the thread that records. Bounded by who fills it in. Compiled
 * into um_cffi.binding._native behind um_py_xsp.c by build.py.
 */
#define UM_PY_POSITION_BUCKETS 4096

typedef struct um_py_position_stct {
    struct um_py_position_stct *next;
    uint32_t wanted; /* sequence number */
    uint32_t epoch;  /* how often the source has turned out to be another one of the same name */
    char source[];
} um_py_position_t;

typedef struct um_py_positions_stct {
    pthread_mutex_t lock;
    um_py_position_t *buckets[UM_PY_POSITION_BUCKETS]; /* lock */
} um_py_positions_t;

static um_py_positions_t *um_py_positions_create(void)
{
    um_py_positions_t *positions = calloc(1, sizeof *positions);
    if (positions != NULL)
        pthread_mutex_init(&positions->lock, NULL);
    return positions;
}

static void um_py_positions_delete(um_py_positions_t *positions)
{
    for (size_t at = 0; at < UM_PY_POSITION_BUCKETS; at++) {
        for (um_py_position_t *position = positions->buckets[at], *next; position != NULL; position = next) {
            next = position->next;
            free(position);
        }
    }
    pthread_mutex_destroy(&positions->lock);
    free(positions);
}

/* lock. Where the pointer to the position of a source is, or would be. */
static um_py_position_t **um_py_position_of(um_py_positions_t *positions, const char *source)
{
    uint32_t hash = 2166136261u;
    for (const char *at = source; *at != 0; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    um_py_position_t **where = &positions->buckets[hash % UM_PY_POSITION_BUCKETS];
    while (*where != NULL && strcmp((*where)->source, source) != 0)
        where = &(*where)->next;
    return where;
}

/* 0; -1: no memory. What is said of an epoch that is over says nothing about the source that is there now. */
static int um_py_positions_set(um_py_positions_t *positions, const char *source, uint32_t epoch, uint32_t wanted)
{
    int result = 0;
    pthread_mutex_lock(&positions->lock);
    um_py_position_t **where = um_py_position_of(positions, source), *position = *where;
    if (position == NULL) {
        size_t size = strlen(source) + 1;
        position = calloc(1, sizeof *position + size);
        if (position != NULL) {
            memcpy(position->source, source, size);
            position->epoch = epoch;
            *where = position;
        }
    }
    if (position == NULL)
        result = -1;
    else if (position->epoch == epoch)
        position->wanted = wanted;
    pthread_mutex_unlock(&positions->lock);
    return result;
}

/* How often a source has turned out to have begun again; 0 of one that is not known. */
static uint32_t um_py_positions_epoch(um_py_positions_t *positions, const char *source)
{
    pthread_mutex_lock(&positions->lock);
    const um_py_position_t *position = *um_py_position_of(positions, source);
    uint32_t epoch = position == NULL ? 0 : position->epoch;
    pthread_mutex_unlock(&positions->lock);
    return epoch;
}

static void um_py_positions_forget(um_py_positions_t *positions, const char *source)
{
    pthread_mutex_lock(&positions->lock);
    um_py_position_t **where = um_py_position_of(positions, source), *position = *where;
    if (position != NULL)
        *where = position->next;
    pthread_mutex_unlock(&positions->lock);
    free(position);
}

/* The library's question; low_sequence_number is the answer. What a source tells of itself when it is joined is newer
 * than all that came of it before: one whose last number is older than what was recorded has begun again under the same
 * name, and everything that it keeps is new. */
static int um_py_positions_begin(lbm_ume_rcv_recovery_info_ex_func_info_t *info, void *clientd)
{
    um_py_positions_t *positions = clientd;
    pthread_mutex_lock(&positions->lock);
    um_py_position_t *position = *um_py_position_of(positions, info->source);
    if (position != NULL && (int32_t)(position->wanted - (info->high_sequence_number + 1)) > 0) {
        position->epoch++;
        position->wanted = info->low_sequence_number;
    } else if (position != NULL) {
        info->low_sequence_number = position->wanted;
    }
    pthread_mutex_unlock(&positions->lock);
    return 0;
}

/* Receivers made of the attributes ask; the positions have to outlive them. */
static int um_py_positions_install(um_py_positions_t *positions, lbm_rcv_topic_attr_t *attr)
{
    lbm_ume_rcv_recovery_info_ex_func_t function = {.func = um_py_positions_begin, .clientd = positions};
    return lbm_rcv_topic_attr_setopt(attr, "ume_recovery_sequence_number_info_function", &function, sizeof function);
}

/* Bytes of the way back in the tail of a request, for those who read tails of many records at once. */
static int um_py_way_back_size(void)
{
    return (int)sizeof(lbm_serialized_response_t);
}
