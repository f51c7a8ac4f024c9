/* Busy waiting that notices when there are more spinners than cores: now and then
 * the processor is offered to others, and when somebody took it for long it is
 * offered often. Measured, not guessed. One thread per structure. */
#ifndef UM_TRANSPORT_SHM_SPIN_H
#define UM_TRANSPORT_SHM_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct um_shm_spin {
    uint32_t rounds; /* since there was work, or the last offer */
    uint32_t calm;   /* offers in a row that nobody took */
    bool crowded;
};

#define UM_SHM_SPIN_OFFER_ALONE 16384u /* rounds between two offers */
#define UM_SHM_SPIN_OFFER_CROWDED 256u /* some microseconds: an answer that is on its way comes first */

void um_shm_spin_offer(struct um_shm_spin *spin); /* sched_yield(), timed */

static inline void um_shm_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static inline void um_shm_spin_worked(struct um_shm_spin *spin)
{
    spin->rounds = 0;
}

/* Rounds without work, the pauses in them made by the caller. */
static inline void um_shm_spin_more(struct um_shm_spin *spin, uint32_t rounds)
{
    uint32_t every = spin->crowded ? UM_SHM_SPIN_OFFER_CROWDED : UM_SHM_SPIN_OFFER_ALONE;
    spin->rounds += rounds;
    if (__builtin_expect(spin->rounds >= every, 0)) {
        spin->rounds = 0;
        um_shm_spin_offer(spin);
    }
}

/* One round without work. */
static inline void um_shm_spin_once(struct um_shm_spin *spin)
{
    um_shm_relax();
    um_shm_spin_more(spin, 1);
}

#endif
