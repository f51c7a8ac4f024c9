/* Equal small structures, once for all who have them: kept by their bytes, immutable, references counted. The table
 * belongs to the process and has a lock that nothing else is taken under. Any thread. */
#ifndef UM_BASE_INTERN_H
#define UM_BASE_INTERN_H

#include <stddef.h>

/* One reference on what has these bytes; padding counts, so it is to be zero. NULL: out of memory (no error set). */
const void *um_intern(const void *bytes, size_t size);
void um_intern_drop(const void *interned); /* NULL: nothing */
size_t um_intern_count(void);              /* different ones now */

#endif
