/* The offer of a spinner to others. See um_shm_spin.h. */
#include "transport/shm/um_shm_spin.h"

#include <sched.h>

#include "base/um_clock.h"

#define TAKEN_NS 5000u /* an offer nobody takes costs a fraction of this */
#define CALM_OFFERS 64u

void um_shm_spin_offer(struct um_shm_spin *spin)
{
    uint64_t before = um_clock_ns();
    sched_yield();
    if (um_clock_ns() - before >= TAKEN_NS) {
        spin->crowded = true;
        spin->calm = 0;
    } else if (spin->crowded && ++spin->calm >= CALM_OFFERS) {
        spin->crowded = false;
    }
}
