/*
 * Smart sources, whose buffers are the slots of a SlotSource: memory with two owners, the library's source and the
 * arrays of Python. Creation on any thread without the GIL. Compiled into um_cffi.binding._native behind um_py_bridge.c
 * by build.py.
 */
#define UM_PY_LINE 64 /* what begins here is as aligned as the library's own memory */

/* In front of the memory of the buffers. */
typedef struct um_py_block_stct {
    _Alignas(UM_PY_LINE) atomic_int refs; /* any thread */
} um_py_block_t;

static atomic_int um_py_blocks; /* any thread: how many there are */

static int um_py_block_count(void)
{
    return atomic_load(&um_py_blocks);
}

static void um_py_block_unref(void *memory)
{
    um_py_block_t *block = memory;
    if (atomic_fetch_sub(&block->refs, 1) != 1)
        return;
    free(block);
    atomic_fetch_sub(&um_py_blocks, 1);
}

/* lbm_mem_mgt_callbacks_t: once for a source. `clientd` is where the creating call wants it. */
static void *um_py_block_allocate(size_t size, void *clientd)
{
    void *memory;
    if (posix_memalign(&memory, UM_PY_LINE, sizeof(um_py_block_t) + size) != 0)
        return NULL;
    um_py_block_t *block = memory;
    atomic_init(&block->refs, 1);
    atomic_fetch_add(&um_py_blocks, 1);
    *(um_py_block_t **)clientd = block;
    return block + 1;
}

static void um_py_block_release(void *memory, void *clientd)
{
    um_py_block_unref((um_py_block_t *)memory - 1);
}

/* Inside a send that asks for it: the number of its message. Other events need no answer: sends wait for the kernel. */
static int um_py_on_slots_event(lbm_ssrc_t *ssrc, int event, void *ed, void *clientd)
{
    (void)ssrc;
    if (event == LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO)
        *(uint32_t *)clientd = ((const lbm_src_event_sequence_number_info_t *)ed)->last_sequence_number;
    return 0;
}

/* A smart source, whose attributes are `attr`. *blockp is its memory, with a reference of the caller's. *number,
 * which outlives it, is that of each message whose send asks for it. 0, or -1 as lbm_ssrc_create(). */
static int um_py_slots_create(lbm_ssrc_t **ssrcp, um_py_block_t **blockp, lbm_context_t *ctx, const char *symbol,
                              lbm_src_topic_attr_t *attr, uint32_t *number)
{
    um_py_block_t *block = NULL;
    lbm_mem_mgt_callbacks_t memory = {.malloc_cb_func = um_py_block_allocate, .free_cb_func = um_py_block_release};
    lbm_topic_t *topic;
    memory.clientd = &block; /* of this call: memory is asked for while the source is made, and freed without it */
    if (lbm_src_topic_attr_setopt(attr, "mem_mgt_callbacks", &memory, sizeof memory) != 0 ||
        lbm_src_topic_alloc(&topic, ctx, symbol, attr) != 0 ||
        lbm_ssrc_create(ssrcp, ctx, topic, um_py_on_slots_event, number, NULL) != 0)
        return -1;
    atomic_fetch_add(&block->refs, 1);
    *blockp = block;
    return 0;
}
