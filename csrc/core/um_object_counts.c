/* The counters behind um_object_counts(): one each for the process, any thread. */
#include "core/um_object_counts.h"

atomic_llong um_object_counters[UM_OBJECT_KINDS];
