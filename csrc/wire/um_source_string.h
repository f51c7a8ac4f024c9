/* Source strings: the text form of a transport session and, optionally, of one topic on it
 * ("TCP:10.1.2.3:14371:5c03a9e2[7]"). Pure functions, any thread; used by core and transport for the texts of messages
 * and by lbm_transport_source_*. */
#ifndef UM_WIRE_SOURCE_STRING_H
#define UM_WIRE_SOURCE_STRING_H

#include <stddef.h>

#include <lbm/lbm.h>

/* Room for the longest text and its NUL. */
#define UM_SOURCE_STRING_MAX 80

/* Writes the text and returns its length without the NUL; "[idx]" is appended when info->topic_idx is not 0, and the
 * session id of TCP and LBT-RU is left out when it is 0. -1 + UM_EINVAL for an unknown type or when `size` is too
 * small. */
int um_source_string_format(const lbm_transport_source_info_t *info, char *out, size_t size);

/* Fills every member of *out (0 for the parts a text does not have). 0, or -1 + UM_EINVAL and *out untouched. */
int um_source_string_parse(const char *text, lbm_transport_source_info_t *out);

#endif
