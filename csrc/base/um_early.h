/* Functions that run when the library is loaded. */
#ifndef UM_BASE_EARLY_H
#define UM_BASE_EARLY_H

/* Before constructors without a priority: in a program linked with the archive those of its own objects, which may make
 * contexts, come before ours otherwise. 101 is the first priority that is not the compiler's. */
#define UM_RUN_EARLY __attribute__((constructor(101)))

#endif
