/* What the grammar cannot say about an XML configuration: orders, names, keys, patterns (the document is rejected), and
 * option names and values (they are logged and dropped, the rest is in force). Called once, at load.
 * The document belongs to the caller. */
#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_option_checks.h"
#include "config/um_option_value.h"
#include "config/um_xml.h"
#include "config/um_xml_tree.h"

enum { LONGEST_OBJECT_NAME = 127, LONGEST_NAME = 99 };

/* ---- the tree ---- */

const char *um_xml_attribute(const xmlNode *node, const char *name)
{
    for (const xmlAttr *attribute = node->properties; attribute != NULL; attribute = attribute->next) {
        if (attribute->ns == NULL && strcmp((const char *)attribute->name, name) == 0) {
            bool empty = attribute->children == NULL || attribute->children->content == NULL;
            return empty ? "" : (const char *)attribute->children->content;
        }
    }
    return NULL;
}

static xmlNodePtr first_named(xmlNodePtr node, const char *name)
{
    while (node != NULL && (node->type != XML_ELEMENT_NODE || strcmp((const char *)node->name, name) != 0)) {
        node = node->next;
    }
    return node;
}

xmlNodePtr um_xml_child(const xmlNode *node, const char *name)
{
    return first_named(node->children, name);
}

xmlNodePtr um_xml_next(const xmlNode *node)
{
    return first_named(node->next, (const char *)node->name);
}

const char *um_xml_text(const xmlNode *node)
{
    return node->children == NULL || node->children->content == NULL ? "" : (const char *)node->children->content;
}

xmlNodePtr um_xml_template(const struct um_xml *xml, const char *name, size_t len)
{
    xmlNodePtr root = xmlDocGetRootElement(xml->doc);
    for (xmlNodePtr list = um_xml_child(root, "templates"); list != NULL; list = um_xml_next(list)) {
        for (xmlNodePtr node = um_xml_child(list, "template"); node != NULL; node = um_xml_next(node)) {
            const char *own = um_xml_attribute(node, "name");
            if (strlen(own) == len && memcmp(own, name, len) == 0) {
                return node;
            }
        }
    }
    return NULL;
}

/* The document writes wildcard-receiver where files write wildcard_receiver. */
int um_xml_block_scope(const xmlNode *options)
{
    char name[32];
    const char *type = um_xml_attribute(options, "type");
    if (type == NULL) {
        return -1;
    }
    snprintf(name, sizeof name, "%s", type);
    for (char *dash = name; (dash = strchr(dash, '-')) != NULL;) {
        *dash = '_';
    }
    return um_scope_find(name);
}

/* ---- structure ---- */

static int reject(const char *origin, const xmlNode *node, const char *what)
{
    return um_error(UM_EINVAL, "CoreApi-9022-7", "%.200s line %ld: element %s: %s", origin, xmlGetLineNo(node),
                    (const char *)node->name, what);
}

static int check_order(const char *origin, const xmlNode *node)
{
    const char *order = um_xml_attribute(node, "order");
    if (order == NULL || strcmp(order, "deny,allow") == 0 || strcmp(order, "allow,deny") == 0) {
        return 0;
    }
    return reject(origin, node, "order must be \"deny,allow\" or \"allow,deny\"");
}

static bool all_of(const char *text, bool (*good)(unsigned char))
{
    for (; *text != '\0'; text++) {
        if (!good((unsigned char)*text)) {
            return false;
        }
    }
    return true;
}

static bool is_object_name_byte(unsigned char byte)
{
    return byte < 128 && (isalnum(byte) || byte == '-' || byte == '_');
}

static bool is_printable_byte(unsigned char byte)
{
    return byte >= 32 && byte < 127;
}

static int check_name(const char *origin, const xmlNode *node)
{
    const char *element = (const char *)node->name;
    const char *name = um_xml_attribute(node, "name");
    if (name == NULL) {
        return 0;
    }
    if (strcmp(element, "context") == 0 || strcmp(element, "event-queue") == 0) {
        return strlen(name) <= LONGEST_OBJECT_NAME && all_of(name, is_object_name_byte)
                   ? 0
                   : reject(origin, node, "a name has at most 127 letters, digits, - and _");
    }
    if (strcmp(element, "application") == 0 || strcmp(element, "template") == 0) {
        return strlen(name) <= LONGEST_NAME && all_of(name, is_printable_byte)
                   ? 0
                   : reject(origin, node, "a name has at most 99 printable ASCII characters");
    }
    return 0;
}

static int check_topic(const char *origin, xmlNodePtr node)
{
    const char *pattern = um_xml_attribute(node, "pattern");
    struct um_pattern_error error;
    char text[220];
    if ((pattern == NULL) == (um_xml_attribute(node, "topicname") == NULL)) {
        return reject(origin, node, "exactly one of topicname and pattern must be given");
    }
    if (pattern == NULL) {
        return 0;
    }
    node->_private = um_pattern_compile(pattern, strlen(pattern), &error);
    if (node->_private == NULL && error.no_memory) {
        return um_error_nomem("pattern of a topic element", strlen(pattern));
    }
    if (node->_private == NULL) {
        snprintf(text, sizeof text, "pattern '%.60s' does not compile: %s", pattern, error.text);
        return reject(origin, node, text);
    }
    return 0;
}

static int check_wildcard(const char *origin, const xmlNode *node)
{
    const char *type = um_xml_attribute(node, "pattern-type");
    if (um_xml_attribute(node, "pattern") == NULL) {
        return reject(origin, node, "pattern must be given");
    }
    if (type != NULL && strcmp(type, "pcre") != 0) {
        um_log(UM_LOG_WARNING, "Core-9022-1", "%.200s line %ld: pattern-type %s is deprecated, use pcre", origin,
               xmlGetLineNo(node), type);
    }
    return 0;
}

static int check_element(const char *origin, xmlNodePtr node)
{
    node->_private = NULL;
    if (check_order(origin, node) != 0 || check_name(origin, node) != 0) {
        return -1;
    }
    if (strcmp((const char *)node->name, "topic") == 0) {
        return check_topic(origin, node);
    }
    return strcmp((const char *)node->name, "wildcard-receiver") == 0 ? check_wildcard(origin, node) : 0;
}

static int check_elements(const char *origin, xmlNodePtr node)
{
    if (check_element(origin, node) != 0) {
        return -1;
    }
    for (xmlNodePtr child = node->children; child != NULL; child = child->next) {
        if (child->type == XML_ELEMENT_NODE && check_elements(origin, child) != 0) {
            return -1;
        }
    }
    return 0;
}

int um_xml_check_structure(struct um_xml *xml, const char *origin)
{
    return check_elements(origin, xmlDocGetRootElement(xml->doc));
}

/* ---- options ---- */

/* Where the checks of options are and what they found. */
struct cleaning {
    const struct um_xml *xml;
    const char *origin;
    struct um_error_state last;
    bool dropped;
};

static void __attribute__((format(printf, 4, 5)))
complain(struct cleaning *c, const xmlNode *node, const char *id, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    um_log(UM_LOG_ERR, id, "%.200s line %ld: %s", c->origin, xmlGetLineNo(node), text);
    um_error(UM_EINVAL, id, "%.200s line %ld: %s", c->origin, xmlGetLineNo(node), text);
    um_error_save(&c->last);
    c->dropped = true;
}

static void drop(xmlNodePtr node)
{
    xmlUnlinkNode(node);
    xmlFreeNode(node);
}

/* Whether the text is a value of the option. */
static bool value_parses(const struct um_option *named, const char *text, enum um_option_note *note)
{
    union {
        max_align_t align;
        unsigned char bytes[128];
    } field = {.bytes = {0}};
    const struct um_option *option = um_option_storage(named);
    *note = UM_NOTE_NONE;
    if (option->size > sizeof field || um_option_parse(option, text, &field, note) != 0) {
        return false;
    }
    um_option_clear(option, &field);
    return true;
}

/* Replace the children of a rule by its text: trimmed and with single blanks unless xml:space is preserve. */
static bool normalize_text(xmlNodePtr node)
{
    xmlChar *content = xmlNodeGetContent(node);
    if (content == NULL) {
        return false;
    }
    const xmlAttr *space = node->properties;
    while (space != NULL && (space->ns == NULL || strcmp((const char *)space->name, "space") != 0)) {
        space = space->next;
    }
    bool preserve = space != NULL && space->children != NULL && space->children->content != NULL &&
                    strcmp((const char *)space->children->content, "preserve") == 0;
    if (!preserve) {
        char *out = (char *)content;
        bool blank = false;
        for (const char *in = (char *)content; *in != '\0'; in++) {
            if (strchr(" \t\r\n", *in) != NULL) {
                blank = out != (char *)content;
                continue;
            }
            if (blank) {
                *out++ = ' ';
            }
            blank = false;
            *out++ = *in;
        }
        *out = '\0';
    }
    xmlNodeSetContent(node, NULL);
    xmlNodeAddContent(node, content);
    xmlFree(content);
    return true;
}

static void clean_rules(struct cleaning *c, xmlNodePtr node, const struct um_option *option)
{
    xmlNodePtr next;
    enum um_option_note note;
    for (xmlNodePtr rule = node->children; rule != NULL; rule = next) {
        next = rule->next;
        if (rule->type != XML_ELEMENT_NODE) {
            continue;
        }
        if (!normalize_text(rule)) {
            complain(c, rule, "Core-5626-4", "%s: the rule value cannot be read - ignoring.", option->name);
            drop(rule);
        } else if (!value_parses(option, um_xml_text(rule), &note)) {
            char why[300];
            snprintf(why, sizeof why, "%s", um_errmsg());
            complain(c, rule, strcmp((const char *)rule->name, "allow") == 0 ? "Core-5626-5" : "Core-5626-7",
                     "%s: error parsing rule value '%.60s': %s", option->name, um_xml_text(rule), why);
            drop(rule);
        }
    }
}

static void clean_option(struct cleaning *c, xmlNodePtr node, enum um_option_scope scope)
{
    const struct um_option *option = um_option_find(scope, um_xml_attribute(node, "name"));
    const char *value = um_xml_attribute(node, "default-value");
    if (option == NULL) {
        char hint[160];
        um_option_hint(scope, um_xml_attribute(node, "name"), hint, sizeof hint);
        complain(c, node, "Core-5626-1", "Option %.80s is not recognized in scope %s - ignoring.%s%s",
                 um_xml_attribute(node, "name"), um_scope_name(scope), hint[0] != '\0' ? " " : "", hint);
        drop(node);
        return;
    }
    node->_private = (void *)(uintptr_t)option;
    um_option_warn_deprecated(option);
    enum um_option_note note = UM_NOTE_NONE;
    if (value != NULL && !value_parses(option, value, &note)) {
        char why[300];
        snprintf(why, sizeof why, "%s", um_errmsg());
        complain(c, node, "Core-5626-3", "error parsing default value '%.60s': %s", value, why);
        xmlUnsetProp(node, (const xmlChar *)"default-value");
    }
    um_attr_log_note(option, note);
    clean_rules(c, node, option);
}

static void clean_block(struct cleaning *c, xmlNodePtr block)
{
    int scope = um_xml_block_scope(block);
    xmlNodePtr next;
    if (scope < 0) {
        complain(c, block, "Core-5626-8", "options without type - ignoring the block.");
        drop(block);
        return;
    }
    for (xmlNodePtr node = block->children; node != NULL; node = next) {
        next = node->next;
        if (node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, "option") == 0) {
            clean_option(c, node, scope);
        } else if (node->type == XML_ELEMENT_NODE) {
            um_log(UM_LOG_NOTICE, "Core-10668-01", "%.200s line %ld: application-data is deprecated and ignored",
                   c->origin, xmlGetLineNo(node));
        }
    }
}

static void check_templates(struct cleaning *c, const xmlNode *node)
{
    const char *names = um_xml_attribute(node, "template");
    while (names != NULL && *names != '\0') {
        names += strspn(names, " ,");
        size_t len = strcspn(names, ",");
        size_t shown = len;
        while (shown > 0 && names[shown - 1] == ' ') {
            shown--;
        }
        if (shown > 0 && um_xml_template(c->xml, names, shown) == NULL) {
            complain(c, node, "Core-9022-2", "template '%.*s' does not exist - ignoring.",
                     (int)(shown < 99 ? shown : 99), names);
        }
        names += len;
    }
}

static void clean(struct cleaning *c, xmlNodePtr node)
{
    xmlNodePtr next;
    check_templates(c, node);
    for (xmlNodePtr child = node->children; child != NULL; child = next) {
        next = child->next;
        if (child->type != XML_ELEMENT_NODE) {
            continue;
        }
        if (strcmp((const char *)child->name, "options") == 0) {
            clean_block(c, child);
        } else {
            clean(c, child);
        }
    }
}

bool um_xml_drop_unusable(struct um_xml *xml, const char *origin)
{
    struct cleaning c = {.xml = xml, .origin = origin};
    xmlNodePtr root = xmlDocGetRootElement(xml->doc);
    for (xmlNodePtr list = um_xml_child(root, "templates"); list != NULL; list = um_xml_next(list)) {
        clean(&c, list);
    }
    clean(&c, xml->application);
    if (c.dropped) {
        um_error_restore(&c.last);
    }
    return c.dropped;
}
