/* Packing a rolled log file, as gzip or as a zip archive with one member. */
#ifndef UM_DAEMONS_SRS_PACK_H
#define UM_DAEMONS_SRS_PACK_H

#include <stdbool.h>

#include "srs_settings.h"

/* Writes PATH.gz or PATH.zip and removes PATH. False: PATH is as it was. Any thread. */
bool srs_pack(const char *path, enum srs_log_compression compression);

#endif
