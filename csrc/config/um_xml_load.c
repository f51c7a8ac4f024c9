/* Loading an XML configuration document: parse without network or entities, replace includes, validate against the
 * grammar, choose the application. Called by um_config_xml.c and the fuzz target.
 * Any thread; the document belongs to the caller. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_config.h"
#include "config/um_xml.h"
#include "config/um_xml_document.h"
#include "config/um_xml_tree.h"

enum { DEEPEST_INCLUDE = 16, MOST_INCLUDES = 1000, DEEPEST_TREE = 256, LONGEST_PATH = 4096 };

static bool includes_forbidden;

void um_xml_forbid_includes(bool forbid)
{
    includes_forbidden = forbid;
}

/* ---- includes ---- */

struct include_walk {
    int count;
};

static bool is_include(const xmlNode *node)
{
    static const char *const namespaces[] = {"http://www.w3.org/2001/XInclude", "http://www.w3.org/2003/XInclude"};
    if (node->type != XML_ELEMENT_NODE || node->ns == NULL || node->ns->href == NULL ||
        strcmp((const char *)node->name, "include") != 0) {
        return false;
    }
    return strcmp((const char *)node->ns->href, namespaces[0]) == 0 ||
           strcmp((const char *)node->ns->href, namespaces[1]) == 0;
}

/* The file an include names: relative to the including document's directory; a file:// prefix is cut. */
static int include_path(const xmlNode *node, const char *directory, char *out, size_t room)
{
    const char *href = um_xml_attribute(node, "href");
    if (href == NULL || *href == '\0') {
        return um_error(UM_EINVAL, "Core-5957-1", "line %ld: XInclude processing failed: href is missing",
                        xmlGetLineNo(node));
    }
    const char *file = strncasecmp(href, "file://", 7) == 0 ? href + 7 : href;
    int length = file[0] == '/' || strstr(file, "://") != NULL || directory == NULL
                     ? snprintf(out, room, "%s", file)
                     : snprintf(out, room, "%s/%s", directory, file);
    if (length < 0 || (size_t)length >= room) {
        return um_error(UM_EINVAL, "Core-5957-1", "line %ld: XInclude processing failed: the path of href is too long",
                        xmlGetLineNo(node));
    }
    return 0;
}

/* Directory part of a path, "" for none, into a buffer of the same size. */
static const char *directory_of(const char *path, char *out, size_t room)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return NULL;
    }
    snprintf(out, room, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return out;
}

static int include_children(xmlNodePtr parent, const char *directory, int depth, struct include_walk *walk);

/* The document an include names, its own includes replaced. NULL + error. */
static xmlDocPtr included_document(const xmlNode *node, const char *directory, int depth, struct include_walk *walk)
{
    char path[LONGEST_PATH], below[LONGEST_PATH];
    char *data;
    size_t len;
    if (includes_forbidden || depth >= DEEPEST_INCLUDE || ++walk->count > MOST_INCLUDES) {
        um_error(UM_EINVAL, "Core-5957-2", "line %ld: XInclude processing failed: more than %d levels or %d includes",
                 xmlGetLineNo(node), DEEPEST_INCLUDE, MOST_INCLUDES);
        return NULL;
    }
    if (include_path(node, directory, path, sizeof path) != 0 || um_config_read_file(path, &data, &len) != 0) {
        return NULL;
    }
    xmlDocPtr doc = um_xml_document_parse(path, data, len);
    um_free(data);
    if (doc == NULL) {
        return NULL;
    }
    xmlNodePtr root = xmlDocGetRootElement(doc);
    if (is_include(root)) {
        um_error(UM_EINVAL, "Core-5957-2",
                 "%.200s: XInclude processing failed: the root of an included file is an include", path);
    } else if (include_children(root, directory_of(path, below, sizeof below), depth + 1, walk) == 0) {
        return doc;
    }
    xmlFreeDoc(doc);
    return NULL;
}

static int replace_include(xmlNodePtr node, const char *directory, int depth, struct include_walk *walk)
{
    xmlDocPtr doc = included_document(node, directory, depth, walk);
    if (doc == NULL) {
        return -1;
    }
    xmlNodePtr copy = xmlDocCopyNode(xmlDocGetRootElement(doc), node->doc, 1);
    xmlFreeDoc(doc);
    if (copy == NULL) {
        return um_error_nomem("included XML", 0);
    }
    xmlReplaceNode(node, copy);
    xmlFreeNode(node);
    return 0;
}

static int include_children(xmlNodePtr parent, const char *directory, int depth, struct include_walk *walk)
{
    xmlNodePtr next;
    for (xmlNodePtr node = parent->children; node != NULL; node = next) {
        next = node->next;
        if (is_include(node)) {
            if (replace_include(node, directory, depth, walk) != 0) {
                return -1;
            }
        } else if (node->type == XML_ELEMENT_NODE && include_children(node, directory, depth, walk) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- namespaces ---- */

static bool is_xml_attribute(const xmlAttr *attribute, const char *name)
{
    return attribute->ns != NULL && attribute->ns->prefix != NULL &&
           strcmp((const char *)attribute->ns->prefix, "xml") == 0 && strcmp((const char *)attribute->name, name) == 0;
}

/* After the includes no namespace has a meaning: declarations and xml:base go, elements in a namespace are errors. */
static int remove_namespaces(const char *origin, xmlNodePtr node, int depth)
{
    if (node->ns != NULL || depth > DEEPEST_TREE) {
        return um_error(UM_EINVAL, "CoreApi-9022-3", "%.200s line %ld: element %s: %s", origin, xmlGetLineNo(node),
                        (const char *)node->name,
                        node->ns != NULL ? "not in the grammar (it is in a namespace)" : "nested too deeply");
    }
    xmlAttrPtr next;
    for (xmlAttrPtr attribute = node->properties; attribute != NULL; attribute = next) {
        next = attribute->next;
        if (is_xml_attribute(attribute, "base")) {
            xmlRemoveProp(attribute);
        } else if (attribute->ns != NULL && !is_xml_attribute(attribute, "space")) {
            return um_error(UM_EINVAL, "CoreApi-9022-4", "%.200s line %ld: attribute %s: not in the grammar", origin,
                            xmlGetLineNo(node), (const char *)attribute->name);
        }
    }
    for (xmlNodePtr child = node->children; child != NULL; child = child->next) {
        if (child->type == XML_ELEMENT_NODE && remove_namespaces(origin, child, depth + 1) != 0) {
            return -1;
        }
    }
    xmlFreeNsList(node->nsDef);
    node->nsDef = NULL;
    return 0;
}

/* ---- the application ---- */

static xmlNodePtr find_application(xmlDocPtr doc, const char *name)
{
    for (xmlNodePtr list = um_xml_child(xmlDocGetRootElement(doc), "applications"); list != NULL;
         list = um_xml_next(list)) {
        for (xmlNodePtr node = um_xml_child(list, "application"); node != NULL; node = um_xml_next(node)) {
            const char *own = um_xml_attribute(node, "name");
            if (name == NULL ? own == NULL : own != NULL && strcmp(own, name) == 0) {
                return node;
            }
        }
    }
    return NULL;
}

static int select_application(struct um_xml *xml, const char *origin, const char *name)
{
    xml->application = find_application(xml->doc, name);
    if (xml->application != NULL) {
        return 0;
    }
    return um_error(
        UM_EINVAL, "CoreApi-5688-4089",
        "error parsing application name '%.99s': %.200s has no %s. View previous error messages to determine "
        "the source of the problem",
        name == NULL ? "" : name, origin, name == NULL ? "application without a name" : "application of this name");
}

/* ---- the interface ---- */

static xmlDocPtr load_quietly(const char *origin, const char *directory, const char *data, size_t len,
                              struct um_xml_quiet *quiet)
{
    struct include_walk walk = {0};
    xmlDocPtr doc = um_xml_document_parse(origin, data, len);
    if (doc == NULL) {
        return NULL;
    }
    if (include_children(xmlDocGetRootElement(doc), directory, 0, &walk) != 0 ||
        remove_namespaces(origin, xmlDocGetRootElement(doc), 0) != 0 ||
        um_xml_document_validate(origin, doc, um_xml_grammar, "um-configuration", quiet) != 0) {
        xmlFreeDoc(doc);
        return NULL;
    }
    return doc;
}

static xmlDocPtr load_document(const char *origin, const char *directory, const char *data, size_t len)
{
    struct um_xml_quiet quiet;
    um_xml_quiet_begin(&quiet);
    xmlDocPtr doc = load_quietly(origin, directory, data, len, &quiet);
    um_xml_quiet_end(&quiet);
    return doc;
}

struct um_xml *um_xml_load(const char *origin, const char *directory, const char *data, size_t len,
                           const char *application, bool *imperfect)
{
    struct um_xml *xml = um_calloc(1, sizeof *xml);
    if (xml == NULL) {
        um_error_nomem("XML configuration", sizeof *xml);
        return NULL;
    }
    pthread_mutex_init(&xml->pattern_lock, NULL);
    xml->doc = load_document(origin, directory, data, len);
    if (xml->doc == NULL || um_xml_check_structure(xml, origin) != 0 ||
        select_application(xml, origin, application) != 0) {
        um_xml_free(xml);
        return NULL;
    }
    *imperfect = um_xml_drop_unusable(xml, origin);
    return xml;
}

/* Compiled patterns hang on the elements that have a `pattern`. */
static void free_patterns(xmlNodePtr node)
{
    for (xmlNodePtr child = node->children; child != NULL; child = child->next) {
        if (child->type == XML_ELEMENT_NODE) {
            free_patterns(child);
        }
    }
    if (node->_private != NULL && strcmp((const char *)node->name, "topic") == 0) {
        um_pattern_free(node->_private);
    }
}

void um_xml_free(struct um_xml *xml)
{
    if (xml == NULL) {
        return;
    }
    if (xml->doc != NULL) {
        free_patterns(xmlDocGetRootElement(xml->doc));
        xmlFreeDoc(xml->doc);
    }
    pthread_mutex_destroy(&xml->pattern_lock);
    um_free(xml);
}
