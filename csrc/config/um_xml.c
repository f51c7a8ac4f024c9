/* Searching the installed XML document: which layers and rules meet an object of a given name, the values they give it
 * and whether they admit it. Called for every object that is created (um_config.c). Any thread: the document is
 * constant; only compiled patterns are used under a lock. */
#include "config/um_xml.h"

#include <stddef.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_xml_tree.h"

enum { MOST_LAYERS = 4096 };

/* What allow and deny rules said, and the order in which they count. */
struct rules {
    const char *order; /* the last one stated; NULL: none */
    bool stated;       /* any rule or order at all */
    bool allowed;      /* one that allows has matched */
    bool denied;
};

/* What a search found: the elements whose options blocks apply, weakest first, and the verdict of the container rules.
 */
struct search {
    struct um_xml *xml;
    enum um_option_scope scope;
    const struct um_xml_key *key;
    xmlNodePtr *layers;
    size_t count;
    size_t room;
    bool failed;        /* out of memory */
    struct rules rules; /* of the containers and elements that matched */
};

/* ---- layers ---- */

static void add_layer(struct search *s, xmlNodePtr node)
{
    if (s->failed) {
        return;
    }
    if (s->count == s->room) {
        size_t room = s->room == 0 ? 16 : s->room * 2;
        xmlNodePtr *layers = room > MOST_LAYERS ? NULL : um_realloc(s->layers, room * sizeof *layers);
        if (layers == NULL) {
            s->failed = true;
            return;
        }
        s->layers = layers;
        s->room = room;
    }
    s->layers[s->count++] = node;
}

/* The templates that an element names, left to right. */
static void add_templates(struct search *s, const xmlNode *node)
{
    const char *names = um_xml_attribute(node, "template");
    while (names != NULL && *names != '\0') {
        names += strspn(names, " ,");
        size_t len = strcspn(names, ","), trimmed = len;
        while (trimmed > 0 && names[trimmed - 1] == ' ') {
            trimmed--;
        }
        xmlNodePtr template = trimmed == 0 ? NULL : um_xml_template(s->xml, names, trimmed);
        if (template != NULL) {
            add_layer(s, template);
        }
        names += len;
    }
}

/* ---- matching ---- */

static bool same_name(const char *a, const char *b)
{
    bool no_a = a == NULL || *a == '\0', no_b = b == NULL || *b == '\0';
    return no_a || no_b ? no_a && no_b : strcmp(a, b) == 0;
}

static bool topic_matches(struct search *s, const xmlNode *node)
{
    const char *exact = um_xml_attribute(node, "topicname");
    if (s->key->name == NULL) {
        return false;
    }
    if (exact != NULL) {
        return strcmp(exact, s->key->name) == 0;
    }
    pthread_mutex_lock(&s->xml->pattern_lock);
    enum um_pattern_result result = um_pattern_match(node->_private, s->key->name, strlen(s->key->name), NULL);
    pthread_mutex_unlock(&s->xml->pattern_lock);
    s->failed |= result == UM_PATTERN_NO_MEMORY;
    return result == UM_PATTERN_YES;
}

static bool wildcard_matches(const struct search *s, const xmlNode *node)
{
    const char *name = um_xml_attribute(node, "pattern-type");
    int type = name == NULL || strcmp(name, "pcre") == 0 ? LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE
               : strcmp(name, "regex") == 0              ? LBM_WILDCARD_RCV_PATTERN_TYPE_REGEX
                                                         : LBM_WILDCARD_RCV_PATTERN_TYPE_APP_CB;
    return s->key->name != NULL && type == s->key->pattern_type &&
           strcmp(um_xml_attribute(node, "pattern"), s->key->name) == 0;
}

static bool element_matches(struct search *s, const xmlNode *node)
{
    switch (s->scope) {
    case UM_SCOPE_EVENT_QUEUE:
        return same_name(um_xml_attribute(node, "name"), s->key->name);
    case UM_SCOPE_WILDCARD_RECEIVER:
        return wildcard_matches(s, node);
    default:
        return topic_matches(s, node);
    }
}

/* ---- the walk ---- */

static void note_rule(struct search *s, const xmlNode *node)
{
    const char *rule = um_xml_attribute(node, "rule");
    bool deny = rule != NULL && strcmp(rule, "deny") == 0;
    s->rules.denied |= deny;
    s->rules.allowed |= !deny;
}

static void note_order(struct search *s, const xmlNode *container)
{
    const char *order = um_xml_attribute(container, "order");
    if (order != NULL) {
        s->rules.order = order;
    }
}

/* The elements of a container that match the object: their templates and they themselves. */
static void walk_containers(struct search *s, const xmlNode *parent, const char *container_name,
                            const char *element_name)
{
    for (xmlNodePtr container = um_xml_child(parent, container_name); container != NULL;
         container = um_xml_next(container)) {
        add_templates(s, container);
        note_order(s, container);
        for (xmlNodePtr node = um_xml_child(container, element_name); node != NULL; node = um_xml_next(node)) {
            if (element_matches(s, node)) {
                add_templates(s, node);
                add_layer(s, node);
                note_rule(s, node);
            }
        }
    }
}

static void walk_contexts(struct search *s)
{
    for (xmlNodePtr contexts = um_xml_child(s->xml->application, "contexts"); contexts != NULL;
         contexts = um_xml_next(contexts)) {
        add_templates(s, contexts);
        if (s->scope == UM_SCOPE_CONTEXT) {
            note_order(s, contexts);
        }
        for (xmlNodePtr node = um_xml_child(contexts, "context"); node != NULL; node = um_xml_next(node)) {
            if (!same_name(um_xml_attribute(node, "name"), s->key->context_name)) {
                continue;
            }
            add_templates(s, node);
            add_layer(s, node);
            if (s->scope == UM_SCOPE_CONTEXT) {
                note_rule(s, node);
            } else if (s->scope == UM_SCOPE_SOURCE) {
                walk_containers(s, node, "sources", "topic");
            } else if (s->scope == UM_SCOPE_RECEIVER) {
                walk_containers(s, node, "receivers", "topic");
            } else {
                walk_containers(s, node, "wildcard-receivers", "wildcard-receiver");
            }
        }
    }
}

/* 0, or -1 + error; end_search frees. */
static int begin_search(struct search *s, struct um_xml *xml, enum um_option_scope scope, const struct um_xml_key *key)
{
    *s = (struct search){.xml = xml, .scope = scope, .key = key};
    add_templates(s, xml->application);
    switch (scope) {
    case UM_SCOPE_EVENT_QUEUE:
        walk_containers(s, xml->application, "event-queues", "event-queue");
        break;
    case UM_SCOPE_HFX:
        walk_containers(s, xml->application, "hfxs", "topic");
        break;
    case UM_SCOPE_XSP:
        break;
    default:
        walk_contexts(s);
        break;
    }
    if (s->failed) {
        um_free(s->layers);
        return um_error_nomem("search of the XML configuration", (unsigned long)(s->room * sizeof *s->layers));
    }
    return 0;
}

static void end_search(struct search *s)
{
    um_free(s->layers);
}

/* ---- values ---- */

static int apply_block(const xmlNode *block, struct um_attr *attr, enum um_attr_origin origin)
{
    for (xmlNodePtr node = um_xml_child(block, "option"); node != NULL; node = um_xml_next(node)) {
        const struct um_option *option = node->_private;
        const char *value = um_xml_attribute(node, "default-value");
        enum um_option_note note; /* the same entry is met again at creation: not worth a word */
        if (value == NULL || (origin == UM_ORIGIN_XML && um_attr_is_modified(attr, option))) {
            continue;
        }
        if (um_attr_assign(attr, option, value, NULL, 0, origin, &note) != 0) {
            return -1;
        }
    }
    return 0;
}

static int apply_layers(const struct search *s, struct um_attr *attr, enum um_attr_origin origin)
{
    for (size_t i = 0; i < s->count; i++) {
        for (xmlNodePtr block = um_xml_child(s->layers[i], "options"); block != NULL; block = um_xml_next(block)) {
            if (um_xml_block_scope(block) == (int)s->scope && apply_block(block, attr, origin) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

int um_xml_apply(struct um_xml *xml, const struct um_xml_key *key, struct um_attr *attr, enum um_attr_origin origin)
{
    struct search s;
    if (begin_search(&s, xml, attr->scope, key) != 0) {
        return -1;
    }
    int result = apply_layers(&s, attr, origin);
    end_search(&s);
    return result;
}

/* ---- rules ---- */

/* deny,allow (the default) starts permitted, allow,deny starts refused. */
static bool permitted(const struct rules *rules)
{
    bool start_refused = rules->order != NULL && strcmp(rules->order, "allow,deny") == 0;
    return start_refused ? rules->allowed && !rules->denied : !rules->denied || rules->allowed;
}

int um_xml_admit(struct um_xml *xml, enum um_option_scope scope, const struct um_xml_key *key)
{
    struct search s;
    if (begin_search(&s, xml, scope, key) != 0) {
        return -1;
    }
    bool admitted = permitted(&s.rules);
    end_search(&s);
    if (admitted) {
        return 0;
    }
    const char *name = scope == UM_SCOPE_CONTEXT ? key->context_name : key->name;
    return um_error(
        UM_EINVAL, "CoreApi-9022-8",
        "%s '%.120s' is not admitted by the XML configuration (order %s): allow it there or use another name",
        um_scope_name(scope), name == NULL ? "" : name, s.rules.order == NULL ? "deny,allow" : s.rules.order);
}

static bool rule_matches(const struct um_option *option, const xmlNode *rule, const void *value)
{
    union {
        max_align_t align;
        unsigned char bytes[128];
    } field = {.bytes = {0}};
    enum um_option_note note;
    if (um_option_parse(option, um_xml_text(rule), &field, &note) != 0) {
        return false;
    }
    bool equal = um_option_equal(option, &field, value);
    um_option_clear(option, &field);
    return equal;
}

/* Everything the layers say about one option. */
static void gather_rules(const xmlNode *node, const struct um_option *option, const void *value, struct rules *out)
{
    const char *order = um_xml_attribute(node, "order");
    if (order != NULL) {
        out->order = order;
        out->stated = true;
    }
    for (xmlNodePtr rule = node->children; rule != NULL; rule = rule->next) {
        if (rule->type != XML_ELEMENT_NODE) {
            continue;
        }
        bool deny = strcmp((const char *)rule->name, "deny") == 0;
        bool *flag = deny ? &out->denied : &out->allowed;
        out->stated = true;
        *flag = *flag || rule_matches(option, rule, value);
    }
}

/* Calls visit for every option element of the layers. */
static int for_each_option(const struct search *s, int (*visit)(const struct search *s, const xmlNode *node, void *arg),
                           void *arg)
{
    for (size_t i = 0; i < s->count; i++) {
        for (xmlNodePtr block = um_xml_child(s->layers[i], "options"); block != NULL; block = um_xml_next(block)) {
            if (um_xml_block_scope(block) != (int)s->scope) {
                continue;
            }
            for (xmlNodePtr node = um_xml_child(block, "option"); node != NULL; node = um_xml_next(node)) {
                if (visit(s, node, arg) != 0) {
                    return -1;
                }
            }
        }
    }
    return 0;
}

struct rule_check {
    const struct um_attr *attr;
    const struct um_option *option; /* whose rules are gathered */
    const void *value;
    struct rules rules;
    unsigned char *done; /* one flag per row */
};

static int gather_same(const struct search *s, const xmlNode *node, void *arg)
{
    struct rule_check *check = arg;
    if (um_option_storage(node->_private) == check->option) {
        gather_rules(node, check->option, check->value, &check->rules);
    }
    return 0;
}

static int refuse_value(const struct rule_check *check)
{
    char *text = um_option_format(check->option, check->value);
    um_error(UM_EINVAL, "CoreApi-9022-9",
             "%s option %s: value '%.80s' is not admitted by the XML configuration (order %s): allow it there or set "
             "another",
             um_scope_name(check->option->scope), check->option->name, text == NULL ? "" : text,
             check->rules.order == NULL ? "deny,allow" : check->rules.order);
    um_free(text);
    return -1;
}

/* The first element of an option decides about it with the rules of all. */
static int check_option(const struct search *s, const xmlNode *node, void *arg)
{
    struct rule_check *check = arg;
    const struct um_option *option = um_option_storage(node->_private);
    size_t row = um_option_index(option);
    if (check->done[row]) {
        return 0;
    }
    check->done[row] = 1;
    check->option = option;
    check->value = um_option_const_field(option, check->attr->options);
    check->rules = (struct rules){0};
    for_each_option(s, gather_same, check);
    if (!check->rules.stated || permitted(&check->rules)) {
        return 0;
    }
    return refuse_value(check);
}

int um_xml_check_values(struct um_xml *xml, const struct um_xml_key *key, const struct um_attr *attr)
{
    struct search s;
    size_t rows;
    um_option_table(attr->scope, &rows);
    struct rule_check check = {.attr = attr, .done = um_calloc(rows, 1)};
    if (check.done == NULL) {
        return um_error_nomem("XML rules", (unsigned long)rows);
    }
    int result = begin_search(&s, xml, attr->scope, key);
    if (result == 0) {
        result = for_each_option(&s, check_option, &check);
        end_search(&s);
    }
    um_free(check.done);
    return result;
}
