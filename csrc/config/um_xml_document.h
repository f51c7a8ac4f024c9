/* Reading XML documents for um_xml_load.c and the daemons: parsed without network and entities, checked against a
 * grammar of ours. Any thread; a document belongs to the caller. */
#ifndef UM_CONFIG_XML_DOCUMENT_H
#define UM_CONFIG_XML_DOCUMENT_H

#include <libxml/tree.h>
#include <libxml/xmlerror.h>
#include <stdbool.h>
#include <stddef.h>

/* libxml2 reports here instead of printing; the first complaint of a validation is kept. */
struct um_xml_quiet {
    bool validating;
    int line;
    char text[300];
    xmlStructuredErrorFunc handler; /* the application's own, of this thread */
    void *context;
};

/* Everything below, and whatever else is done with libxml2, happens between these two. */
void um_xml_quiet_begin(struct um_xml_quiet *quiet);
void um_xml_quiet_end(struct um_xml_quiet *quiet);

/* `origin` is what messages call the document. Nothing can expand or be fetched; libxml2's own limits on depth and size
 * stay on. NULL + error with the line. */
xmlDocPtr um_xml_document_parse(const char *origin, const char *data, size_t len);
/* Whether it follows the DTD and has that root; its ids and references are checked, too. 0, or -1 + error with the
 * line of the first fault. */
int um_xml_document_validate(const char *origin, xmlDocPtr doc, const char *dtd, const char *root,
                             struct um_xml_quiet *quiet);

#endif
