/* lbm_config and its XML siblings: configuration for the whole process, before its objects are created.
 * Any thread. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "config/um_config.h"
#include "config/um_config_load.h"

static int null_argument(const char *what)
{
    return um_error(UM_EINVAL, "CoreApi-9023-3", "%s must not be NULL", what);
}

int lbm_config(const char *fname)
{
    if (fname == NULL) {
        return null_argument("fname");
    }
    return um_config_ready() != 0 ? -1 : um_config_load_file(fname);
}

int lbm_config_xml_file(const char *url, const char *application_name)
{
    if (url == NULL) {
        return null_argument("url");
    }
    return um_config_load_xml_file(url, application_name) == UM_XML_LOADED ? 0 : -1;
}

int lbm_config_xml_string(const char *xml_data, const char *application_name)
{
    if (xml_data == NULL) {
        return null_argument("xml_data");
    }
    return um_config_load_xml_string(xml_data, application_name) == UM_XML_LOADED ? 0 : -1;
}
