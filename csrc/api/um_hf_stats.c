/* um_hf_rcv_stats and um_hfx_stats: what the merge of hot failover has counted, in
 * front of core/um_rcv_hf.c and core/um_hfx.c. Any thread. */
#include <lbm/um.h>

#include "api/um_sized.h"
#include "core/um_hfx.h"
#include "core/um_rcv_hf.h"
#include "core/um_receiver.h"

static void hand_out(const struct um_hf_stats *merge, uint64_t waiting, uint64_t refused, um_hf_stats_t *stats,
                     size_t size)
{
    const um_hf_stats_t all = {
        .delivered = merge->delivered,
        .again = merge->again,
        .duplicates = merge->discards[UM_HF_DUPLICATE],
        .optional = merge->discards[UM_HF_OPTIONAL],
        .other_width = merge->discards[UM_HF_WIDTH],
        .far = merge->discards[UM_HF_FAR],
        .behind = merge->discards[UM_HF_BEHIND],
        .no_room = merge->discards[UM_HF_NO_ROOM],
        .ended = merge->discards[UM_HF_ENDED],
        .held = merge->held,
        .meant = merge->meant,
        .lost = merge->lost,
        .given_early = merge->given_early,
        .resets = merge->resets,
        .waiting = waiting,
        .refused = refused,
    };
    um_sized_copy(stats, size, &all, sizeof all);
}

int um_hf_rcv_stats_sized(lbm_hf_rcv_t *hfrcv, um_hf_stats_t *stats, size_t size)
{
    struct um_hf_stats merge;
    uint64_t waiting;
    if (um_receiver_check_hf(hfrcv, "um_hf_rcv_stats") != 0 || um_sized_check(stats, size, "um_hf_rcv_stats") != 0 ||
        um_rcv_hf_stats(hfrcv, &merge, &waiting) != 0) {
        return -1;
    }
    hand_out(&merge, waiting, 0, stats, size);
    return 0;
}

int um_hfx_stats_sized(lbm_hfx_t *hfx, um_hf_stats_t *stats, size_t size)
{
    struct um_hf_stats merge;
    uint64_t waiting, refused;
    if (um_hfx_check(hfx, "um_hfx_stats") != 0 || um_sized_check(stats, size, "um_hfx_stats") != 0) {
        return -1;
    }
    um_hfx_counts(hfx, &merge, &waiting, &refused);
    hand_out(&merge, waiting, refused, stats, size);
    return 0;
}
