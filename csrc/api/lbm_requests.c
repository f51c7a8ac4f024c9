/* Requests after they were sent, and responses: argument checks in front of
 * core/um_request.c and core/um_response.c. Sending a request is in the files of what
 * carries it. Any thread. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_request.h"
#include "core/um_response.h"

int lbm_request_delete(lbm_request_t *req)
{
    return um_request_delete(req, NULL, "lbm_request_delete");
}

int lbm_request_delete_ex(lbm_request_t *req, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_request_delete(req, cbinfo, "lbm_request_delete_ex");
}

int lbm_send_response(lbm_response_t *resp, const char *data, size_t len, int flags)
{
    return um_response_send(resp, data, len, flags, "lbm_send_response");
}

int lbm_response_delete(lbm_response_t *resp)
{
    return um_response_delete(resp, "lbm_response_delete");
}

lbm_serialized_response_t *lbm_serialize_response(lbm_response_t *resp)
{
    lbm_serialized_response_t *bytes = um_calloc(1, sizeof *bytes);
    if (bytes == NULL) {
        um_error_nomem("lbm_serialize_response", sizeof *bytes);
        return NULL;
    }
    if (um_response_serialize(resp, bytes, "lbm_serialize_response") != 0) {
        um_free(bytes);
        return NULL;
    }
    return bytes;
}

int lbm_serialized_response_delete(lbm_serialized_response_t *serialized_response)
{
    if (serialized_response == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20213-14",
                        "lbm_serialized_response_delete: serialized_response must be valid");
    }
    um_free(serialized_response);
    return 0;
}

lbm_response_t *lbm_deserialize_response(lbm_context_t *ctx, lbm_serialized_response_t *serialized_response)
{
    if (serialized_response == NULL) {
        um_error(UM_EINVAL, "CoreApi-20213-15", "lbm_deserialize_response: serialized_response must be valid");
        return NULL;
    }
    return um_response_deserialize(ctx, serialized_response, "lbm_deserialize_response");
}
