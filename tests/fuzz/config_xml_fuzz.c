/* Fuzz target: XML configuration from memory, then the search for objects of several names; the same text as the
 * configuration of lbmrd. Includes are refused and
 * host names resolve to nothing, so no input reaches a file or the network. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/um_log.h"
#include "config/um_attr.h"
#include "config/um_config.h"
#include "config/um_option_value.h"
#include "config/um_xml.h"
#include "resolver/um_lbmrd_config.h"

static int no_host(const char *name, struct in_addr *out)
{
    return -1;
}

static int no_log(int level, const char *message, void *clientd)
{
    return 0;
}

static void search(struct um_xml *xml, enum um_option_scope scope, const struct um_xml_key *key)
{
    struct um_attr attr;
    if (um_config_attr_current(&attr, scope) == 0) {
        if (um_xml_admit(xml, scope, key) == 0 && um_xml_apply(xml, key, &attr, UM_ORIGIN_XML_OVERWRITE) == 0) {
            um_xml_check_values(xml, key, &attr);
        }
        um_attr_clear(&attr);
    }
}

static void read_as_lbmrd(const uint8_t *data, size_t size)
{
    struct um_lbmrd_file file;
    if (um_lbmrd_file_read("fuzz", (const char *)data, size, &file) == 0) {
        int domain = um_lbmrd_nat_domain_of(file.nat, 0x0a01010au);
        um_lbmrd_nat_translates_for(file.nat, domain);
    }
    um_lbmrd_file_clear(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct um_xml_key keys[] = {{NULL, "topic", 1}, {"ctx1", "px.IBM", 1}, {"c", "^a.*", 2}};
    um_option_set_host_resolver(no_host);
    um_log_set_proc(no_log, NULL);
    um_xml_forbid_includes(true);
    bool imperfect;
    struct um_xml *xml = um_xml_load("fuzz", NULL, (const char *)data, size, NULL, &imperfect);
    if (xml == NULL) {
        xml = um_xml_load("fuzz", NULL, (const char *)data, size, "app1", &imperfect);
    }
    for (size_t k = 0; xml != NULL && k < sizeof keys / sizeof keys[0]; k++) {
        for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
            search(xml, scope, &keys[k]);
        }
    }
    um_xml_free(xml);
    read_as_lbmrd(data, size);
    return 0;
}
