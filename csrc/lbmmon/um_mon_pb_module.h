/* What the two halves of the module `pb` share: options, and the begin and end of writing and reading a record. Called
 * by the module's functions only, on the thread that calls them. */
#ifndef UM_LBMMON_PB_MODULE_H
#define UM_LBMMON_PB_MODULE_H

#include <lbm/lbmmon.h>
#include <protobuf-c/protobuf-c.h>

#include "lbmmon/um_mon_filter.h"

struct um_mon_pb_options {
    int passthrough;            /* LBMMON_FORMAT_PASSTHROUGH_* */
    struct um_mon_rules *rules; /* that hold now */
    char *first_rules;          /* as text: those that it began with, which no rules lead back to */
};

/* What a serialising function returns for a record that a filter keeps back. */
enum { UM_MON_PB_KEPT_BACK = 1 };

/* Client data of the module; NULL: the defaults. */
const struct um_mon_pb_options *um_mon_pb_options(const void *client_data);

/* Packs, filters, tells length and module id. -1: no room; *size is what is needed, without filters.
 * UM_MON_PB_KEPT_BACK: nothing is to be sent. */
int um_mon_pb_finish_writing(const void *message, char *destination, size_t *size, unsigned short *id,
                             const void *client_data, const char *api);

/* For the answer to a command that has set rules: how many hold, and what there is for them to act on. */
void um_mon_pb_describe_rules(const void *client_data, char *out, size_t room);

/* LBMMON_FORMAT_DESERIALIZE_OK: there is a message. Otherwise the answer of the function. */
int um_mon_pb_begin_reading(ProtobufCMessage **message, const ProtobufCMessageDescriptor *kind, const char *source,
                            size_t len, unsigned short id, const void *out, const void *client_data, const char *api);

#endif
