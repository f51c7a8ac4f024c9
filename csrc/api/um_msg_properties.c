/* um.h: message properties as bytes. Any thread, one at a time for an object. */
#include <lbm/um.h>

#include "base/um_error.h"
#include "core/um_properties.h"

int um_msg_properties_read(lbm_msg_properties_t **propertiesp, const void *bytes, size_t len)
{
    static const char api[] = "um_msg_properties_read";
    if (propertiesp == NULL || bytes == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-22", "%s: %s: must not be NULL", api,
                        propertiesp == NULL ? "propertiesp" : "bytes");
    }
    *propertiesp = um_properties_from((struct um_slice){bytes, len}, api);
    return *propertiesp != NULL ? 0 : -1;
}

int um_msg_properties_bytes(lbm_msg_properties_t *properties, const void **bytesp, size_t *lenp)
{
    static const char api[] = "um_msg_properties_bytes";
    struct um_slice blob;
    if (um_properties_check(properties, api) != 0) {
        return -1;
    }
    if (bytesp == NULL || lenp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-22", "%s: %s: must not be NULL", api,
                        bytesp == NULL ? "bytesp" : "lenp");
    }
    if (properties->of_message && properties->state != UM_PROPERTIES_BUILT) {
        blob = um_properties_received(properties);
    } else if (um_properties_blob(properties, &blob, api) != 0) {
        return -1;
    }
    *bytesp = blob.ptr;
    *lenp = blob.len;
    return 0;
}
