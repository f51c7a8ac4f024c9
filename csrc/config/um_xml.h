/* XML configuration: one validated document per process for one application name, kept as a tree that every object
 * creation searches for its layers of values and rules. The document never changes once it is installed.
 * Any thread. */
#ifndef UM_CONFIG_XML_H
#define UM_CONFIG_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "config/um_attr.h"

/* What an object is called in the document. Members that a scope does not use are NULL. */
struct um_xml_key {
    const char *context_name; /* NULL: the nameless context */
    const char *name;         /* topic, pattern or event queue */
    int pattern_type;
};

/* A loaded document; NULL when nothing is loaded. */
struct um_xml;

/* Parse, include, validate and select the application (NULL: the unnamed one). `origin` is what messages call the
 * document, `directory` where relative includes start. NULL + error when it is rejected; *imperfect tells that parts
 * were ignored and logged (the last error is set). Reads files named by includes, never the network. */
struct um_xml *um_xml_load(const char *origin, const char *directory, const char *data, size_t len,
                           const char *application, bool *imperfect);
void um_xml_free(struct um_xml *xml);

/* Write the values for the key into the object: UM_ORIGIN_XML to the options that are not tagged,
 * UM_ORIGIN_XML_OVERWRITE to all. 0, or -1 + error (the object may have changed: work on a copy). */
int um_xml_apply(struct um_xml *xml, const struct um_xml_key *key, struct um_attr *attr, enum um_attr_origin origin);
/* Whether the container rules admit the object. 0, or -1 + UM_EINVAL. */
int um_xml_admit(struct um_xml *xml, enum um_option_scope scope, const struct um_xml_key *key);
/* Whether the allow and deny lists admit the values of the object. 0, or -1 + UM_EINVAL. */
int um_xml_check_values(struct um_xml *xml, const struct um_xml_key *key, const struct um_attr *attr);

/* Fuzz targets only: refuse every include. */
void um_xml_forbid_includes(bool forbid);

#endif
