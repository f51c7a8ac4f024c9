/* Reading the XML configuration of lbmrd. See um_lbmrd_config.h. The grammar says which elements there are, and that
 * domains have different names and exist where a transform names them; what their texts mean is checked here. */
#include "resolver/um_lbmrd_config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_xml_document.h"
#include "config/um_xml_tree.h"

#define BLANKS " \t\r\n"

const char um_lbmrd_dtd[] =
    "<!-- Configuration files of lbmrd. The root element is lbmrd. -->\n"
    "<!ELEMENT lbmrd (daemon?, domains, transformations)>\n"
    "<!ATTLIST lbmrd version (1.0) #REQUIRED>\n"
    "\n"
    "<!-- What the command line can say, too; it comes before the file. The last of several counts. -->\n"
    "<!ELEMENT daemon (activity | interface | port | ttl | log | resolver_unicast_receiver_socket_buffer |\n"
    "                  resolver_unicast_send_socket_buffer)*>\n"
    "<!-- milliseconds between two checks for silent clients -->\n"
    "<!ELEMENT activity (#PCDATA)>\n"
    "<!-- address, network (10.0.0.0/8), \"eth0\" or host name -->\n"
    "<!ELEMENT interface (#PCDATA)>\n"
    "<!-- UDP port -->\n"
    "<!ELEMENT port (#PCDATA)>\n"
    "<!-- milliseconds of silence until a client is forgotten -->\n"
    "<!ELEMENT ttl (#PCDATA)>\n"
    "<!-- file name -->\n"
    "<!ELEMENT log (#PCDATA)>\n"
    "<!-- bytes -->\n"
    "<!ELEMENT resolver_unicast_receiver_socket_buffer (#PCDATA)>\n"
    "<!ELEMENT resolver_unicast_send_socket_buffer (#PCDATA)>\n"
    "\n"
    "<!-- Networks whose hosts see the same addresses. The longest prefix decides. -->\n"
    "<!ELEMENT domains (domain+)>\n"
    "<!ELEMENT domain (network+)>\n"
    "<!ATTLIST domain name ID #REQUIRED>\n"
    "<!-- 10.1.1.50, 10.1.0.0/16, 192.168.1/24 -->\n"
    "<!ELEMENT network (#PCDATA)>\n"
    "\n"
    "<!-- What becomes of addresses of sources in one domain where advertisements go to another. The first rule that\n"
    "     matches counts. Port * matches every port, or keeps it. -->\n"
    "<!ELEMENT transformations (transform+)>\n"
    "<!ELEMENT transform (rule+)>\n"
    "<!ATTLIST transform source IDREF #REQUIRED destination IDREF #REQUIRED>\n"
    "<!ELEMENT rule (match, replace)>\n"
    "<!ELEMENT match EMPTY>\n"
    "<!ATTLIST match address CDATA #REQUIRED port CDATA \"*\">\n"
    "<!ELEMENT replace EMPTY>\n"
    "<!ATTLIST replace address CDATA #REQUIRED port CDATA \"*\">\n";

struct reading {
    const char *origin;
    struct um_lbmrd_file *file;
    xmlNodePtr domains; /* the element */
};

/* ---- texts ---- */

static int refuse(const struct reading *reading, const xmlNode *node, const char *value, const char *what)
{
    return um_error(UM_EINVAL, "Lbmrd-um-12", "%.200s line %ld: %s \"%.80s\": %s", reading->origin, xmlGetLineNo(node),
                    (const char *)node->name, value, what);
}

/* The text of an element without blanks around it, to be freed with um_free. NULL + error. */
static char *text_of(xmlNodePtr node)
{
    xmlChar *content = xmlNodeGetContent(node);
    if (content == NULL) {
        um_error_nomem("lbmrd configuration", 0);
        return NULL;
    }
    const char *begin = (const char *)content + strspn((const char *)content, BLANKS);
    size_t len = strlen(begin);
    while (len > 0 && strchr(BLANKS, begin[len - 1]) != NULL) {
        len--;
    }
    char *text = um_strndup(begin, len);
    xmlFree(content);
    if (text == NULL) {
        um_error_nomem("lbmrd configuration", len);
    }
    return text;
}

/* What the tables of translation have said, with the line. */
static int refuse_entry(const struct reading *reading, const xmlNode *node)
{
    char why[300];
    if (um_errnum() != UM_EINVAL) {
        return -1;
    }
    snprintf(why, sizeof why, "%s", um_errmsg());
    return um_error(UM_EINVAL, "Lbmrd-um-12", "%.200s line %ld: %s", reading->origin, xmlGetLineNo(node), why);
}

/* Decimal digits only. *end gets what follows them. */
static bool parse_digits(const char *text, uint64_t high, uint64_t *out, const char **end)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > high) {
            return false;
        }
    }
    *out = value;
    *end = at;
    return at != text;
}

/* ---- daemon ---- */

static int read_number(const struct reading *reading, const xmlNode *node, const char *text, uint64_t high,
                       uint64_t *out)
{
    uint64_t value = 0;
    const char *end = text;
    if (!parse_digits(text, high, &value, &end) || *end != '\0' || value == 0) {
        char what[80];
        snprintf(what, sizeof what, "must be a number from 1 to %" PRIu64, high);
        return refuse(reading, node, text, what);
    }
    *out = value;
    return 0;
}

/* Takes the text over. */
static int read_string(const struct reading *reading, const xmlNode *node, char **text, char **out)
{
    if (**text == '\0') {
        return refuse(reading, node, *text, "must not be empty; leave the element out for the default");
    }
    um_free(*out);
    *out = *text;
    *text = NULL;
    return 0;
}

static int read_setting(const struct reading *reading, const xmlNode *node, char **text)
{
    struct um_lbmrd_file *file = reading->file;
    const char *name = (const char *)node->name;
    if (strcmp(name, "interface") == 0) {
        return read_string(reading, node, text, &file->interface);
    }
    if (strcmp(name, "log") == 0) {
        return read_string(reading, node, text, &file->logfile);
    }
    if (strcmp(name, "port") == 0) {
        return read_number(reading, node, *text, 65535, &file->port);
    }
    if (strcmp(name, "activity") == 0) {
        return read_number(reading, node, *text, UM_LBMRD_MAX_ACTIVITY_MS, &file->activity_ms);
    }
    if (strcmp(name, "ttl") == 0) {
        return read_number(reading, node, *text, UM_LBMRD_MAX_TTL_MS, &file->ttl_ms);
    }
    bool receive = strcmp(name, "resolver_unicast_receiver_socket_buffer") == 0;
    return read_number(reading, node, *text, UM_LBMRD_MAX_BUFFER, receive ? &file->rcvbuf : &file->sndbuf);
}

static int read_daemon(const struct reading *reading, const xmlNode *daemon)
{
    for (xmlNodePtr node = daemon == NULL ? NULL : daemon->children; node != NULL; node = node->next) {
        if (node->type != XML_ELEMENT_NODE) {
            continue;
        }
        char *text = text_of(node);
        int result = text == NULL ? -1 : read_setting(reading, node, &text);
        um_free(text);
        if (result != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- domains ---- */

/* One to four numbers with dots, then a prefix length; without that all four. */
static bool parse_network(const char *text, uint32_t *ip, int *prefix)
{
    uint32_t bytes = 0;
    uint64_t part = 0, bits = 32;
    int parts = 0;
    const char *at = text;
    while (parts < 4) {
        if (!parse_digits(at, 255, &part, &at)) {
            return false;
        }
        bytes |= (uint32_t)part << (24 - 8 * parts++);
        if (*at != '.' || parts == 4) {
            break;
        }
        at++;
    }
    if (*at == '/') {
        if (!parse_digits(at + 1, 32, &bits, &at)) {
            return false;
        }
    } else if (parts < 4) {
        return false;
    }
    *ip = htonl(bytes);
    *prefix = (int)bits;
    return *at == '\0';
}

static int read_network(const struct reading *reading, xmlNodePtr node, int domain)
{
    uint32_t ip;
    int prefix;
    char *text = text_of(node);
    if (text == NULL) {
        return -1;
    }
    int result = 0;
    if (!parse_network(text, &ip, &prefix)) {
        result = refuse(reading, node, text,
                        "must be an IPv4 address or a network such as 10.1.0.0/16 or 192.168.1/24, not a name");
    } else if (um_lbmrd_nat_add_network(reading->file->nat, domain, ip, prefix) != 0) {
        result = refuse_entry(reading, node);
    }
    um_free(text);
    return result;
}

static int read_domains(const struct reading *reading)
{
    for (xmlNodePtr node = um_xml_child(reading->domains, "domain"); node != NULL; node = um_xml_next(node)) {
        int domain = um_lbmrd_nat_add_domain(reading->file->nat);
        if (domain < 0) {
            return refuse_entry(reading, node);
        }
        for (xmlNodePtr network = um_xml_child(node, "network"); network != NULL; network = um_xml_next(network)) {
            if (read_network(reading, network, domain) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* Number of the domain that an attribute of a transform names; the grammar has made sure that there is one. */
static int domain_named(const struct reading *reading, const xmlNode *transform, const char *attribute)
{
    const char *name = um_xml_attribute(transform, attribute);
    int domain = 0;
    for (xmlNodePtr node = um_xml_child(reading->domains, "domain"); node != NULL; node = um_xml_next(node)) {
        if (strcmp(um_xml_attribute(node, "name"), name) == 0) {
            return domain;
        }
        domain++;
    }
    return refuse(reading, transform, name, "there is no domain of this name");
}

/* ---- transformations ---- */

/* An element match or replace. */
static int read_endpoint(const struct reading *reading, const xmlNode *node, uint32_t *ip, int32_t *port)
{
    const char *address = um_xml_attribute(node, "address"), *number = um_xml_attribute(node, "port"), *end = "";
    uint64_t value = 0;
    if (inet_pton(AF_INET, address, ip) != 1) {
        return refuse(reading, node, address, "address must be a full IPv4 address such as 10.1.1.50");
    }
    *port = UM_LBMRD_ANY_PORT;
    if (number == NULL || strcmp(number, "*") == 0) {
        return 0;
    }
    if (!parse_digits(number, 65535, &value, &end) || *end != '\0') {
        return refuse(reading, node, number, "port must be a number from 0 to 65535, or *");
    }
    *port = (int32_t)value;
    return 0;
}

static int read_transform(const struct reading *reading, const xmlNode *node)
{
    int source = domain_named(reading, node, "source");
    int destination = source < 0 ? -1 : domain_named(reading, node, "destination");
    if (destination < 0) {
        return -1;
    }
    for (xmlNodePtr element = um_xml_child(node, "rule"); element != NULL; element = um_xml_next(element)) {
        struct um_lbmrd_rule rule;
        if (read_endpoint(reading, um_xml_child(element, "match"), &rule.match_ip, &rule.match_port) != 0 ||
            read_endpoint(reading, um_xml_child(element, "replace"), &rule.replace_ip, &rule.replace_port) != 0) {
            return -1;
        }
        if (um_lbmrd_nat_add_rule(reading->file->nat, source, destination, &rule) != 0) {
            return refuse_entry(reading, element);
        }
    }
    return 0;
}

static int read_transformations(const struct reading *reading, const xmlNode *list)
{
    for (xmlNodePtr node = um_xml_child(list, "transform"); node != NULL; node = um_xml_next(node)) {
        if (read_transform(reading, node) != 0) {
            return -1;
        }
    }
    return um_lbmrd_nat_ready(reading->file->nat);
}

/* ---- the whole ---- */

static int read_document(const char *origin, xmlDocPtr doc, struct um_lbmrd_file *file)
{
    const xmlNode *root = xmlDocGetRootElement(doc);
    struct reading reading = {.origin = origin, .file = file, .domains = um_xml_child(root, "domains")};
    file->nat = um_lbmrd_nat_create();
    if (file->nat == NULL || read_daemon(&reading, um_xml_child(root, "daemon")) != 0 || read_domains(&reading) != 0) {
        return -1;
    }
    return read_transformations(&reading, um_xml_child(root, "transformations"));
}

int um_lbmrd_file_read(const char *origin, const char *data, size_t len, struct um_lbmrd_file *out)
{
    struct um_xml_quiet quiet;
    *out = (struct um_lbmrd_file){.nat = NULL};
    um_xml_quiet_begin(&quiet);
    xmlDocPtr doc = um_xml_document_parse(origin, data, len);
    int result = doc == NULL || um_xml_document_validate(origin, doc, um_lbmrd_dtd, "lbmrd", &quiet) != 0
                     ? -1
                     : read_document(origin, doc, out);
    xmlFreeDoc(doc);
    um_xml_quiet_end(&quiet);
    return result;
}

void um_lbmrd_file_clear(struct um_lbmrd_file *file)
{
    um_free(file->interface);
    um_free(file->logfile);
    um_lbmrd_nat_destroy(file->nat);
    *file = (struct um_lbmrd_file){.nat = NULL};
}
