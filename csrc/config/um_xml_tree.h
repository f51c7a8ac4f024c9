/* The document of um_xml.h as its loader and its searches see it: a libxml2 tree, cleaned at load so that the searches
 * meet no surprises. In the tree, `_private` of an option element is its row of the option table, of an element with a
 * pattern the compiled pattern. */
#ifndef UM_CONFIG_XML_TREE_H
#define UM_CONFIG_XML_TREE_H

#include <libxml/tree.h>
#include <pthread.h>

#include "base/um_pattern.h"
#include "config/um_option_table.h"

struct um_xml {
    xmlDocPtr doc;
    xmlNodePtr application;
    pthread_mutex_t pattern_lock; /* compiled patterns are used by one thread at a time */
};

/* The value of an attribute without copying it, or NULL. */
const char *um_xml_attribute(const xmlNode *node, const char *name);
/* First child element of that name, and the next sibling of the same name; NULL at the end. */
xmlNodePtr um_xml_child(const xmlNode *node, const char *name);
xmlNodePtr um_xml_next(const xmlNode *node);
/* The text of an element after the load has normalized it. */
const char *um_xml_text(const xmlNode *node);
/* Template of a name in the document, the first of several; NULL when there is none. */
xmlNodePtr um_xml_template(const struct um_xml *xml, const char *name, size_t len);
/* The scope of an options block, or -1. */
int um_xml_block_scope(const xmlNode *options);

/* um_xml_check.c: everything the grammar cannot say. 0, or -1 + error (the document is rejected). */
int um_xml_check_structure(struct um_xml *xml, const char *origin);
/* Remove what cannot be used from templates and application, logging each; true when something was removed (the last
 * error is set). */
bool um_xml_drop_unusable(struct um_xml *xml, const char *origin);

/* The grammar, as a DTD. */
extern const char um_xml_grammar[];

#endif
