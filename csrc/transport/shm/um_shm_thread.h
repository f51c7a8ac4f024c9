/* Threads that receive from shared memory for a context, beside its loop, whose
 * guests they are (um_loop_guest_enter). Started on the loop; ended by their
 * owner, joined by core when the loop is free again. */
#ifndef UM_TRANSPORT_SHM_THREAD_H
#define UM_TRANSPORT_SHM_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/um_list.h"
#include "transport/session/um_src_session.h"

/* First member of, or inside, what its owner keeps for the thread. */
struct um_shm_thread {
    struct um_list node; /* env->threads [loop] */
    pthread_t thread;
    atomic_bool stop; /* set by the owner on the loop: the thread is to return without touching anything [loop] again */
    void (*main)(struct um_shm_thread *thread);
    void (*joined)(struct um_shm_thread *thread); /* frees the memory */
    char name[16];
};

/* [loop] All signals are blocked in it. -1 + error; `joined` is not called then. */
int um_shm_thread_start(struct um_transport_env *env, struct um_shm_thread *thread, const char *name,
                        void (*main)(struct um_shm_thread *), void (*joined)(struct um_shm_thread *));
/* Keep the thread on one processor; -1: wherever the system likes. What cannot be is warned of. `option` names it. */
void um_shm_thread_pin(const struct um_shm_thread *thread, int cpu, const char *option);
/* Every thread of the context, which was told to stop. Not on the loop, and the loop must be free to be entered. */
void um_shm_threads_join(struct um_transport_env *env);

#endif
