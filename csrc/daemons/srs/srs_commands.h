/* Commands to the monitor of the SRS daemon, as text: what they ask for, and what
 * is answered. Pure; the monitor calls it on the thread of its context. */
#ifndef UM_DAEMONS_SRS_COMMANDS_H
#define UM_DAEMONS_SRS_COMMANDS_H

#include <stddef.h>

#include "srs_settings.h"

#define SRS_ANSWER_LEN 512

enum srs_command_kind { SRS_COMMAND_NONE, SRS_COMMAND_SNAPSHOT, SRS_COMMAND_INTERVAL };

struct srs_command {
    enum srs_command_kind kind; /* NONE: nothing is to be done, the answer tells why */
    enum srs_interval category;
    uint64_t interval_ms;
    char answer[SRS_ANSWER_LEN];
};

void srs_command_read(const struct srs_monitor_settings *settings, const char *data, size_t len,
                      struct srs_command *out);

#endif
