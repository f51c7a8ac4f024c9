/* Iterators: all fields of the definition of a message, in its order, set or not. */
#include "pdm/um_pdm.h"

#include "base/um_mem.h"

struct lbmpdm_iter_stct_t {
    lbmpdm_msg_t *msg;
    int32_t current;
};

/* The definition of the message may be another one since the last call. */
static int32_t count_of(const lbmpdm_iter_t *iter)
{
    return iter->msg->defn == NULL ? 0 : iter->msg->defn->count;
}

static int32_t current_of(const lbmpdm_iter_t *iter)
{
    return iter->current < count_of(iter) ? iter->current : PDM_ITER_INVALID_FIELD_HANDLE;
}

static int no_iterator(void)
{
    return um_pdm_error(PDM_ERR_EINVAL, "no iterator was given");
}

static int make(lbmpdm_iter_t **iter, lbmpdm_msg_t *message, int32_t first)
{
    lbmpdm_iter_t *made = um_malloc(sizeof *made);
    if (made == NULL) {
        return um_pdm_error(PDM_ERR_NOMEM, "iterator: out of memory");
    }
    *made = (lbmpdm_iter_t){message, first};
    *iter = made;
    return PDM_SUCCESS;
}

int lbmpdm_iter_create(lbmpdm_iter_t **iter, lbmpdm_msg_t *message)
{
    if (iter == NULL || message == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "a message and a place for the iterator are needed");
    }
    return make(iter, message, 0);
}

int lbmpdm_iter_create_from_field_handle(lbmpdm_iter_t **iter, lbmpdm_msg_t *message,
                                         lbmpdm_field_handle_t field_handle)
{
    if (iter == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no place for the iterator was given");
    }
    return um_pdm_msg_field(message, field_handle) == NULL ? PDM_FAILURE : make(iter, message, field_handle);
}

int lbmpdm_iter_delete(lbmpdm_iter_t *iter)
{
    if (iter == NULL) {
        return no_iterator();
    }
    um_free(iter);
    return PDM_SUCCESS;
}

lbmpdm_field_handle_t lbmpdm_iter_get_current(lbmpdm_iter_t *iter)
{
    return iter == NULL ? no_iterator() : current_of(iter);
}

int lbmpdm_iter_first(lbmpdm_iter_t *iter)
{
    if (iter == NULL) {
        return no_iterator();
    }
    iter->current = 0;
    return PDM_SUCCESS;
}

int lbmpdm_iter_next(lbmpdm_iter_t *iter)
{
    if (iter == NULL) {
        return no_iterator();
    }
    if (iter->current + 1 >= count_of(iter)) {
        (void)um_pdm_error(PDM_ERR_NO_MORE_FIELDS, "the message has no more fields");
        return PDM_ERR_NO_MORE_FIELDS;
    }
    iter->current++;
    return PDM_SUCCESS;
}

uint8_t lbmpdm_iter_has_next(lbmpdm_iter_t *iter)
{
    return iter != NULL && iter->current + 1 < count_of(iter) ? PDM_TRUE : PDM_FALSE;
}

uint8_t lbmpdm_iter_is_current_set(lbmpdm_iter_t *iter)
{
    return iter != NULL && um_pdm_msg_is_set(iter->msg, current_of(iter)) ? PDM_TRUE : PDM_FALSE;
}

int lbmpdm_iter_set_msg(lbmpdm_iter_t *iter, lbmpdm_msg_t *message)
{
    if (iter == NULL || message == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "an iterator and a message are needed");
    }
    *iter = (lbmpdm_iter_t){message, 0};
    return PDM_SUCCESS;
}

int lbmpdm_iter_set_current_field_value(lbmpdm_iter_t *iter, void *value, size_t len)
{
    return iter == NULL ? no_iterator() : um_pdm_set(iter->msg, current_of(iter), value, len);
}

int lbmpdm_iter_set_current_field_value_vec(lbmpdm_iter_t *iter, void *value, size_t len[], size_t num_arr_elem)
{
    return iter == NULL ? no_iterator() : um_pdm_set_vec(iter->msg, current_of(iter), value, len, num_arr_elem);
}

int lbmpdm_iter_get_current_field_value(lbmpdm_iter_t *iter, void *value, size_t *len)
{
    return iter == NULL ? no_iterator() : um_pdm_get(iter->msg, current_of(iter), value, len);
}

int lbmpdm_iter_get_current_field_value_vec(lbmpdm_iter_t *iter, void *value, size_t len[], size_t *num_arr_elem)
{
    return iter == NULL ? no_iterator() : um_pdm_get_vec(iter->msg, current_of(iter), value, len, num_arr_elem);
}
