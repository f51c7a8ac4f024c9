/* The calls on whole messages: making and freeing them, bytes out and in. */
#include "pdm/um_pdm.h"

#include "base/um_mem.h"

static int no_message(void)
{
    return um_pdm_error(PDM_ERR_EINVAL, "no message was given");
}

int lbmpdm_msg_create(lbmpdm_msg_t **message, lbmpdm_defn_t *defn, uint32_t flags)
{
    if (message == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no place for the message was given");
    }
    if (defn != NULL && !defn->finalized) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "the definition is not finalized");
    }
    lbmpdm_msg_t *made = um_pdm_msg_new(defn, flags);
    if (made == NULL) {
        return PDM_FAILURE;
    }
    *message = made;
    return PDM_SUCCESS;
}

int lbmpdm_msg_delete(lbmpdm_msg_t *message)
{
    if (message == NULL) {
        return no_message();
    }
    um_pdm_msg_free(message, false);
    return PDM_SUCCESS;
}

int lbmpdm_msg_and_defn_delete(lbmpdm_msg_t *message)
{
    if (message == NULL) {
        return no_message();
    }
    um_pdm_msg_free(message, true);
    return PDM_SUCCESS;
}

uint32_t lbmpdm_msg_get_length(const lbmpdm_msg_t *message)
{
    if (message == NULL) {
        (void)no_message();
        return 0;
    }
    return um_pdm_msg_length(message);
}

lbmpdm_defn_t *lbmpdm_msg_get_defn(const lbmpdm_msg_t *message)
{
    return message == NULL ? NULL : message->defn;
}

int lbmpdm_msg_set_incl_defn_flag(lbmpdm_msg_t *message)
{
    if (message == NULL) {
        return no_message();
    }
    message->flags |= PDM_MSG_FLAG_INCL_DEFN;
    return PDM_SUCCESS;
}

int lbmpdm_msg_unset_incl_defn_flag(lbmpdm_msg_t *message)
{
    if (message == NULL) {
        return no_message();
    }
    message->flags &= ~(uint32_t)PDM_MSG_FLAG_INCL_DEFN;
    return PDM_SUCCESS;
}

int lbmpdm_msg_serialize(lbmpdm_msg_t *message, char *buffer)
{
    if (message == NULL || buffer == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "a message and a buffer are needed");
    }
    uint32_t length = um_pdm_msg_length(message);
    return length == 0 ? PDM_FAILURE : um_pdm_msg_write(message, (uint8_t *)buffer, length);
}

char *lbmpdm_msg_get_data(lbmpdm_msg_t *message)
{
    uint32_t length = message == NULL ? 0 : um_pdm_msg_length(message);
    if (length == 0) {
        (void)(message == NULL ? no_message() : PDM_FAILURE);
        return NULL;
    }
    if (length > message->out_room) {
        uint8_t *out = um_realloc(message->out, length);
        if (out == NULL) {
            (void)um_pdm_error(PDM_ERR_NOMEM, "message: out of memory (%u bytes)", (unsigned)length);
            return NULL;
        }
        message->out = out;
        message->out_room = length;
    }
    (void)um_pdm_msg_write(message, message->out, length);
    return (char *)message->out;
}

int lbmpdm_msg_deserialize(lbmpdm_msg_t *message, const char *bufptr, uint32_t buflen)
{
    if (message == NULL || bufptr == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "a message and bytes are needed");
    }
    return um_pdm_msg_read(message, (const uint8_t *)bufptr, buflen);
}
