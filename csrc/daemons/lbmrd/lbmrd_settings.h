/* What lbmrd is to do: command line first, then its configuration file, then defaults. Used by main, once. */
#ifndef UM_LBMRD_SETTINGS_H
#define UM_LBMRD_SETTINGS_H

#include <stdint.h>

#include "resolver/um_lbmrd_config.h"

struct lbmrd_settings {
    uint64_t activity_ms, ttl_ms, port, rcvbuf, sndbuf;
    const char *interface, *logfile; /* logfile NULL: standard output */
    struct um_lbmrd_file file;       /* owns what came from the file */
};

/* -1: go on; else the exit status: help, DTD and the answer to --validate are printed, and so are errors. */
int lbmrd_settings_read(int argc, char **argv, struct lbmrd_settings *out);
void lbmrd_settings_clear(struct lbmrd_settings *settings);

#endif
