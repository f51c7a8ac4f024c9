/* What the two halves of the module `pb` share: options, and the begin and end of writing and reading a record. Called
 * by the module's functions only, on the thread that calls them. */
#ifndef UM_LBMMON_PB_MODULE_H
#define UM_LBMMON_PB_MODULE_H

#include <lbm/lbmmon.h>
#include <protobuf-c/protobuf-c.h>

struct um_mon_pb_options {
    int passthrough; /* LBMMON_FORMAT_PASSTHROUGH_* */
};

/* Client data of the module; NULL: the defaults. */
const struct um_mon_pb_options *um_mon_pb_options(const void *client_data);

/* Packs, tells length and module id. -1: no room; *size is what is needed. */
int um_mon_pb_finish_writing(const void *message, char *destination, size_t *size, unsigned short *id, const char *api);

/* LBMMON_FORMAT_DESERIALIZE_OK: there is a message. Otherwise the answer of the function. */
int um_mon_pb_begin_reading(ProtobufCMessage **message, const ProtobufCMessageDescriptor *kind, const char *source,
                            size_t len, unsigned short id, const void *out, const void *client_data, const char *api);

#endif
