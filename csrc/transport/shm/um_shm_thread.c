/* Start and end of the threads that receive from shared memory. See
 * um_shm_thread.h. */
#define _GNU_SOURCE
#include "transport/shm/um_shm_thread.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_thread.h"

static void *run(void *arg)
{
    struct um_shm_thread *thread = arg;
    pthread_setname_np(pthread_self(), thread->name);
    thread->main(thread);
    return NULL;
}

int um_shm_thread_start(struct um_transport_env *env, struct um_shm_thread *thread, const char *name,
                        void (*main)(struct um_shm_thread *), void (*joined)(struct um_shm_thread *))
{
    thread->main = main;
    thread->joined = joined;
    atomic_init(&thread->stop, false);
    snprintf(thread->name, sizeof thread->name, "%s", name);
    um_list_init(&thread->node);
    int rc = um_thread_start(&thread->thread, run, thread);
    if (rc != 0) {
        return um_error_os(rc, "Core-6976-144", "creating the receive thread %s", name);
    }
    um_list_push_back(&env->threads, &thread->node);
    return 0;
}

void um_shm_thread_pin(const struct um_shm_thread *thread, int cpu, const char *option)
{
    if (cpu < 0) {
        return;
    }
    cpu_set_t *set = CPU_ALLOC((size_t)cpu + 1);
    size_t size = CPU_ALLOC_SIZE((size_t)cpu + 1);
    int rc = ENOMEM;
    if (set != NULL) {
        CPU_ZERO_S(size, set);
        CPU_SET_S((size_t)cpu, size, set);
        rc = pthread_setaffinity_np(thread->thread, size, set);
        CPU_FREE(set);
    }
    if (rc != 0) {
        um_log(UM_LOG_WARNING, "Core-6976-160", "%s %d: thread %s cannot be kept there: %s", option, cpu, thread->name,
               strerror(rc));
    }
}

void um_shm_threads_join(struct um_transport_env *env)
{
    struct um_list *node;
    while (env->threads.next != NULL && (node = um_list_first(&env->threads)) != NULL) {
        struct um_shm_thread *thread = UM_CONTAINER_OF(node, struct um_shm_thread, node);
        um_list_remove(node);
        pthread_join(thread->thread, NULL);
        thread->joined(thread);
    }
}
