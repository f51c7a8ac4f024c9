/* The waiting side of a turn: a short spin, then sleep until the ticket is
 * served. Called by whoever finds the turn taken. Any thread. */
#define _GNU_SOURCE
#include "base/um_turn.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UM_TURN_SPINS 200

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

void um_turn_wait(struct um_turn *turn, unsigned ticket)
{
    for (int i = 0; i < UM_TURN_SPINS; i++) {
        if (atomic_load_explicit(&turn->serving, memory_order_acquire) == ticket) {
            return;
        }
        pause_cpu();
    }
    atomic_fetch_add_explicit(&turn->sleepers, 1, memory_order_seq_cst);
    unsigned serving;
    while ((serving = atomic_load_explicit(&turn->serving, memory_order_seq_cst)) != ticket) {
        syscall(SYS_futex, &turn->serving, FUTEX_WAIT_PRIVATE, serving, NULL, NULL, 0);
    }
    atomic_fetch_sub_explicit(&turn->sleepers, 1, memory_order_relaxed);
}

/* All: which of them holds the ticket is not known here, and there are few. */
void um_turn_wake(struct um_turn *turn)
{
    syscall(SYS_futex, &turn->serving, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
