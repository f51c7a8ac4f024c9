/* Sources of a receiver topic that ended a moment ago. Topic resolution comes by
 * UDP, so an advertisement may arrive after the connection it speaks of has
 * ended. The source is joined again, in case it lives, but an attempt that
 * brings nothing is no second end. Runs on the loop. */
#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"

#define REMEMBERED_NS (10 * UM_NS_PER_SEC)
#define REMEMBERED_MAX 64u /* of one topic */

struct ending {
    struct um_list node; /* topic->endings */
    lbm_transport_source_info_t info;
    uint64_t until_ns;
};

static void forget(struct um_rcv_topic *topic, struct ending *ending)
{
    um_list_remove(&ending->node);
    topic->ending_count--;
    um_free(ending);
}

static struct ending *oldest(const struct um_rcv_topic *topic)
{
    struct um_list *node = um_list_first(&topic->endings);
    return node == NULL ? NULL : UM_CONTAINER_OF(node, struct ending, node);
}

static void forget_old(struct um_rcv_topic *topic, uint64_t now_ns)
{
    struct ending *ending;
    while ((ending = oldest(topic)) != NULL && ending->until_ns <= now_ns) {
        forget(topic, ending);
    }
}

void um_rcv_forget_endings(struct um_rcv_topic *topic)
{
    forget_old(topic, UM_NEVER);
}

static struct ending *find(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->endings)
    {
        struct ending *ending = UM_CONTAINER_OF(node, struct ending, node);
        if (um_rcv_same_source(&ending->info, info)) {
            return ending;
        }
    }
    return NULL;
}

/* Without memory a second EOS may be told, which is harmless. */
void um_rcv_note_ending(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info, uint64_t now_ns)
{
    forget_old(topic, now_ns);
    struct ending *ending = find(topic, info);
    if (ending == NULL && topic->ending_count == REMEMBERED_MAX) {
        forget(topic, oldest(topic));
    }
    if (ending == NULL) {
        ending = um_calloc(1, sizeof *ending);
        if (ending == NULL) {
            return;
        }
        um_list_init(&ending->node);
        ending->info = *info;
        topic->ending_count++;
    }
    ending->until_ns = now_ns + REMEMBERED_NS;
    um_list_remove(&ending->node);
    um_list_push_back(&topic->endings, &ending->node);
}

bool um_rcv_ended_lately(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info, uint64_t now_ns)
{
    forget_old(topic, now_ns);
    return find(topic, info) != NULL;
}
