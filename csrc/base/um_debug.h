/* The debug log, for support: lines of chosen kinds go to a file that rolls, to
 * the log, or to a ring in memory for each thread. Off, a line costs one look at
 * a word. Any thread; lines may be written under any lock of the library. */
#ifndef UM_BASE_DEBUG_H
#define UM_BASE_DEBUG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of the mask. */
#define UM_DEBUG_LOG 0x1u      /* what is logged, and lines that were left out */
#define UM_DEBUG_ERROR 0x2u    /* errors, in the words of lbm_errmsg(), as they are made */
#define UM_DEBUG_OBJECT 0x4u   /* contexts, sources and receivers that begin and end */
#define UM_DEBUG_RESOLVER 0x8u /* datagrams of topic resolution */
#define UM_DEBUG_SESSION 0x10u /* transport sessions that are joined and left */
#define UM_DEBUG_MONITOR 0x20u /* monitoring: controllers, samples, packets, commands */

extern _Atomic uint64_t um_debug_kinds; /* internal */

#define UM_DEBUG(kind, ...)                                                                                            \
    do {                                                                                                               \
        if (__builtin_expect((atomic_load_explicit(&um_debug_kinds, memory_order_relaxed) & (kind)) != 0, 0)) {        \
            um_debug_line(kind, __VA_ARGS__);                                                                          \
        }                                                                                                              \
    } while (0)

/* Keeps errno and the error of the thread. */
void um_debug_line(unsigned kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the variables LBM_DEBUG_* say; later calls for the same things are without effect. Once; more does nothing. */
void um_debug_environment(void);

/* Monitoring begins: what the variable LBM_DEBUG_LBMMON says, beside the mask whatever that is. Once. */
void um_debug_monitoring(void);

void um_debug_set_mask(uint64_t mask);
void um_debug_set_file(const char *name);      /* copied; NULL or "": standard error */
void um_debug_set_file_size(uint64_t bytes);   /* from which it rolls; 0: never */
void um_debug_set_file_count(uint32_t rolled); /* kept beside it, NAME.1 the newest; 0: the file begins anew */
void um_debug_set_flush(bool each_line);
void um_debug_set_to_log(bool on);        /* also as lines of the log, of kinds that are not there anyway */
void um_debug_set_ring(size_t bytes);     /* for each thread, in place of the file; 0: none, what they had is lost */
void um_debug_set_ring_walltime(bool on); /* else seconds of the monotonic clock */
int um_debug_dump(const char *name, bool append); /* the rings, into a file. 0, or -1 + error */

#endif
