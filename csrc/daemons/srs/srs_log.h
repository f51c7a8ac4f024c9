/* The log of the SRS daemon: lines with date and severity, rolled by size, hour
 * or day, rolled files compressed and deleted by number and sum of sizes. Lines
 * may come from any thread; the process has one log. */
#ifndef UM_DAEMONS_SRS_LOG_H
#define UM_DAEMONS_SRS_LOG_H

#include <stdbool.h>

#include "srs_settings.h"

/* False: the file cannot be opened; said on standard error. The settings stay the caller's and must outlive the log. */
bool srs_log_open(const struct srs_log_settings *settings);

/* Go on in a new file of the same name, where somebody has moved the old one away. */
void srs_log_reopen(void);
void srs_log_close(void); /* waits for a compression */

#endif
