/* Installing an XML configuration in the process: once, from a file or a string. Called by lbm_config*, and by the
 * start-up for LBM_XML_CONFIG_FILENAME.
 * Any thread; of two that load at the same time one wins. */
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_config.h"
#include "config/um_config_load.h"

static enum um_xml_outcome refuse_second(void)
{
    um_error(UM_EINVAL, "CoreApi-5688-4087", "XML configuration has already been loaded.");
    return UM_XML_REJECTED;
}

static enum um_xml_outcome install(const char *origin, const char *directory, const char *data, size_t len,
                                   const char *application)
{
    bool imperfect = false;
    struct um_xml *xml = um_xml_load(origin, directory, data, len, application, &imperfect);
    if (xml == NULL) {
        return UM_XML_REJECTED;
    }
    if (um_config_install_xml(xml) != 0) {
        um_xml_free(xml);
        return refuse_second();
    }
    return imperfect ? UM_XML_IMPERFECT : UM_XML_LOADED;
}

enum um_xml_outcome um_config_load_xml_file(const char *name, const char *application)
{
    char directory[4096];
    char *data;
    size_t len;
    if (um_config_ready() != 0) {
        return UM_XML_REJECTED;
    }
    if (um_config_has_xml()) {
        return refuse_second();
    }
    const char *file = strncmp(name, "file://", 7) == 0 ? name + 7 : name;
    if (um_config_read_file(file, &data, &len) != 0) {
        return UM_XML_REJECTED;
    }
    const char *slash = strrchr(file, '/');
    snprintf(directory, sizeof directory, "%.*s", slash == file ? 1 : slash == NULL ? 0 : (int)(slash - file), file);
    enum um_xml_outcome outcome = install(name, slash == NULL ? NULL : directory, data, len, application);
    um_free(data);
    return outcome;
}

enum um_xml_outcome um_config_load_xml_string(const char *data, const char *application)
{
    if (um_config_ready() != 0) {
        return UM_XML_REJECTED;
    }
    return um_config_has_xml() ? refuse_second() : install("XML text", NULL, data, strlen(data), application);
}
