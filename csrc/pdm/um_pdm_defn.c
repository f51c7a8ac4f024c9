/* Definitions: fields with names, their layout, who owns them. The owner (the application, the cache, or the message
 * that received it) has one reference and each message another, so that a definition goes when the last of them does.
 */
#include "pdm/um_pdm.h"

#include "base/um_hash.h"
#include "base/um_mem.h"

#define FIELDS_MAX (UM_PDM_SIZE_MAX / UM_PDM_ENTRY_LEN)

lbmpdm_defn_t *um_pdm_defn_new(int32_t id, int8_t major, int8_t minor, bool integer_names)
{
    lbmpdm_defn_t *defn = um_calloc(1, sizeof *defn);
    if (defn == NULL) {
        (void)um_pdm_error(PDM_ERR_NOMEM, "definition: out of memory");
        return NULL;
    }
    atomic_init(&defn->references, 1);
    defn->id = id;
    defn->major = major;
    defn->minor = minor;
    defn->integer_names = integer_names;
    return defn;
}

void um_pdm_defn_drop_fields(lbmpdm_defn_t *defn)
{
    for (int32_t i = 0; i < defn->count; i++) {
        um_free(defn->fields[i].name);
    }
    um_free(defn->fields);
    um_free(defn->names);
    um_free(defn->slot_fields);
}

void um_pdm_defn_release(lbmpdm_defn_t *defn)
{
    if (atomic_fetch_sub_explicit(&defn->references, 1, memory_order_acq_rel) == 1) {
        um_pdm_defn_drop_fields(defn);
        um_free(defn);
    }
}

bool um_pdm_defn_disown(lbmpdm_defn_t *defn)
{
    if (atomic_exchange(&defn->owner_gone, true)) {
        return false;
    }
    um_pdm_defn_release(defn);
    return true;
}

void um_pdm_defn_own(lbmpdm_defn_t *defn)
{
    if (atomic_exchange(&defn->owner_gone, false)) {
        atomic_fetch_add(&defn->references, 1);
    }
}

/* ---- names ---- */

static uint32_t hash_of(const char *name, int32_t int_name)
{
    return name != NULL ? um_hash_bytes(name, strlen(name)) : um_hash_u32((uint32_t)int_name);
}

static bool has_name(const struct um_pdm_field *field, const char *name, int32_t int_name, uint32_t hash)
{
    return field->name_hash == hash && (name != NULL ? strcmp(field->name, name) == 0 : field->int_name == int_name);
}

int32_t um_pdm_defn_find(const lbmpdm_defn_t *defn, const char *name, int32_t int_name)
{
    if (defn->names == NULL) {
        return -1;
    }
    uint32_t hash = hash_of(name, int_name);
    for (uint32_t at = hash & defn->names_mask; defn->names[at] != 0; at = (at + 1) & defn->names_mask) {
        if (has_name(&defn->fields[defn->names[at] - 1], name, int_name, hash)) {
            return defn->names[at] - 1;
        }
    }
    return -1;
}

static void enter_name(int32_t *names, uint32_t mask, uint32_t hash, int32_t handle)
{
    uint32_t at = hash & mask;
    while (names[at] != 0) {
        at = (at + 1) & mask;
    }
    names[at] = handle + 1;
}

/* At most half full. */
static int grow_names(lbmpdm_defn_t *defn)
{
    uint32_t size = defn->names == NULL ? 16 : defn->names_mask + 1;
    if (defn->names != NULL && (uint32_t)(defn->count + 1) * 2 <= size) {
        return 0;
    }
    while (size < (uint32_t)(defn->count + 1) * 2) {
        size *= 2;
    }
    int32_t *names = um_calloc(size, sizeof *names);
    if (names == NULL) {
        return -1;
    }
    for (int32_t i = 0; i < defn->count; i++) {
        enter_name(names, size - 1, defn->fields[i].name_hash, i);
    }
    um_free(defn->names);
    defn->names = names;
    defn->names_mask = size - 1;
    return 0;
}

/* ---- fields ---- */

static int grow_fields(lbmpdm_defn_t *defn, int32_t room)
{
    if (defn->count < defn->room) {
        return 0;
    }
    struct um_pdm_field *fields = um_realloc(defn->fields, (size_t)room * sizeof *fields);
    if (fields == NULL) {
        return -1;
    }
    defn->fields = fields;
    defn->room = room;
    return 0;
}

/* Values of other kinds, and those that are not as they should be, go the long way. */
static void choose_quick(struct um_pdm_field *field)
{
    bool boolean = field->code == PDM_TYPE_BOOLEAN || field->code == PDM_TYPE_BOOLEAN_ARR;
    bool same = (field->type->kind == UM_PDM_NUMBER && !boolean) || field->type->kind == UM_PDM_TIMESTAMP;
    enum um_pdm_quick quick = UM_PDM_QUICK_NONE;
    if (field->plain) {
        quick = same                               ? UM_PDM_QUICK_BYTES
                : boolean                          ? UM_PDM_QUICK_BOOLEANS
                : field->type->kind == UM_PDM_SLOT ? UM_PDM_QUICK_TEXTS
                                                   : UM_PDM_QUICK_NONE;
    } else if (field->type->kind == UM_PDM_VARIABLE && !field->type->array) {
        quick = UM_PDM_QUICK_VARIABLE;
    } else if (same && !field->fixed) {
        quick = UM_PDM_QUICK_NUMBERS;
    }
    field->quick = (uint8_t)(field->type->array ? UM_PDM_QUICK_NONE : quick);
    field->quick_vec = (uint8_t)(field->type->array ? quick : UM_PDM_QUICK_NONE);
}

bool um_pdm_field_measure(struct um_pdm_field *field)
{
    uint64_t element = field->type->wire;
    if (field->type->kind == UM_PDM_SLOT) {
        bool unicode = field->code == PDM_TYPE_FIX_UNICODE || field->code == PDM_TYPE_FIX_UNICODE_ARR;
        element = (uint64_t)field->fixed_str_len * (unicode ? 4 : 1) + 1;
        if (field->fixed_str_len == 0) {
            return false;
        }
    } else {
        field->fixed_str_len = 0;
    }
    if (!field->type->array) {
        field->count = 0;
    }
    uint64_t len = element * (field->count == 0 ? 1 : field->count);
    if (element > UM_PDM_SIZE_MAX || len > UM_PDM_SIZE_MAX || field->count > UM_PDM_SIZE_MAX) {
        return false;
    }
    field->element = (uint32_t)element;
    field->fixed = element != 0 && (!field->type->array || field->count != 0);
    field->len = field->fixed ? (uint32_t)len : 0;
    field->plain = field->fixed && field->required;
    choose_quick(field);
    return true;
}

int32_t um_pdm_defn_append(lbmpdm_defn_t *defn, struct um_pdm_field *field)
{
    int32_t handle = defn->count, room = defn->room < 4 ? 8 : defn->room > INT32_MAX / 2 ? INT32_MAX : defn->room * 2;
    size_t entry = field->name == NULL ? UM_PDM_ENTRY_LEN : UM_PDM_ENTRY_LEN + 4 + strlen(field->name) + 1;
    field->name_hash = hash_of(field->name, field->int_name);
    if (um_pdm_defn_find(defn, field->name, field->int_name) >= 0) {
        (void)um_pdm_error(PDM_ERR_EINVAL, "the definition has a field of this name");
    } else if (handle >= (int32_t)FIELDS_MAX || entry + defn->info_len > UM_PDM_SIZE_MAX) {
        (void)um_pdm_error(PDM_ERR_EINVAL, "the definition is too large");
    } else if (grow_fields(defn, room) != 0 || grow_names(defn) != 0) {
        (void)um_pdm_error(PDM_ERR_NOMEM, "field: out of memory");
    } else {
        defn->fields[handle] = *field;
        defn->count++;
        defn->info_len += (uint32_t)entry;
        enter_name(defn->names, defn->names_mask, field->name_hash, handle);
        return handle;
    }
    um_free(field->name);
    return -1;
}

int um_pdm_defn_close(lbmpdm_defn_t *defn)
{
    uint64_t fixed = 0;
    defn->plain_count = defn->slot_count = defn->needed_slots = 0;
    if (defn->count == 0) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "a definition needs a field");
    }
    for (int32_t i = 0; i < defn->count; i++) {
        struct um_pdm_field *field = &defn->fields[i];
        field->place = (int32_t)(field->plain ? fixed : defn->slot_count);
        fixed += field->plain ? field->len : 0;
        defn->plain_count += field->plain;
        defn->slot_count += !field->plain;
        defn->needed_slots += !field->plain && field->required;
        if (fixed > UM_PDM_SIZE_MAX) {
            return um_pdm_error(PDM_ERR_DEFN_INVALID, "the fixed fields are longer than 2^31-1 bytes");
        }
    }
    int32_t *slot_fields = um_malloc((size_t)(defn->slot_count + 1) * sizeof *slot_fields);
    if (slot_fields == NULL) {
        return um_pdm_error(PDM_ERR_NOMEM, "definition: out of memory");
    }
    for (int32_t i = 0; i < defn->count; i++) {
        if (!defn->fields[i].plain) {
            slot_fields[defn->fields[i].place] = i;
        }
    }
    um_free(defn->slot_fields);
    defn->slot_fields = slot_fields;
    defn->fixed_len = (uint32_t)fixed;
    defn->finalized = true;
    return PDM_SUCCESS;
}

/* ---- the API ---- */

static int no_definition(void)
{
    return um_pdm_error(PDM_ERR_EINVAL, "no definition was given");
}

int lbmpdm_defn_create(lbmpdm_defn_t **defn, int32_t num_fields, int32_t id, int8_t vrs_mjr, int8_t vrs_mnr,
                       uint8_t field_names_type)
{
    if (defn == NULL || num_fields < 1 || field_names_type > PDM_DEFN_INT_FIELD_NAMES) {
        return um_pdm_error(PDM_ERR_EINVAL, "num_fields %d must be at least 1, field_names_type %u be 0 or 1",
                            (int)num_fields, (unsigned)field_names_type);
    }
    lbmpdm_defn_t *made = um_pdm_defn_new(id, vrs_mjr, vrs_mnr, field_names_type == PDM_DEFN_INT_FIELD_NAMES);
    if (made == NULL) {
        return PDM_FAILURE;
    }
    *defn = made;
    return PDM_SUCCESS;
}

int lbmpdm_defn_delete(lbmpdm_defn_t *defn)
{
    if (defn == NULL) {
        return no_definition();
    }
    if (atomic_load(&defn->in_cache)) {
        return um_pdm_error(PDM_ERR_EINVAL, "definition %d belongs to the cache: lbmpdm_cache_struct_remove() frees it",
                            (int)defn->id);
    }
    return um_pdm_defn_disown(defn) ? PDM_SUCCESS : um_pdm_error(PDM_ERR_EINVAL, "the definition was deleted before");
}

int lbmpdm_defn_finalize(lbmpdm_defn_t *defn)
{
    if (defn == NULL) {
        return no_definition();
    }
    return defn->finalized ? PDM_SUCCESS : um_pdm_defn_close(defn);
}

static lbmpdm_field_handle_t add(lbmpdm_defn_t *defn, const char *name, int32_t int_name, int16_t type,
                                 const lbmpdm_field_info_attr_t *attr)
{
    struct um_pdm_field field = {.type = um_pdm_type(type), .code = type, .int_name = int_name, .required = true};
    if (defn->finalized) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "the definition is finalized: no field can be added");
    }
    if (defn->integer_names != (name == NULL)) {
        return um_pdm_error(PDM_ERR_EINVAL, "the fields of this definition have %s names",
                            defn->integer_names ? "integer" : "string");
    }
    if (field.type == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "field type %d does not exist", (int)type);
    }
    if (attr != NULL) {
        field.required = (attr->flags & PDM_FIELD_INFO_FLAG_REQ) == 0 || attr->req != PDM_FALSE;
        field.fixed_str_len = (attr->flags & PDM_FIELD_INFO_FLAG_FIXED_STR_LEN) != 0 ? attr->fixed_str_len : 0;
        field.count = (attr->flags & PDM_FIELD_INFO_FLAG_NUM_ARR_ELEM) != 0 ? attr->num_arr_elem : 0;
    }
    if (!um_pdm_field_measure(&field)) {
        return um_pdm_error(PDM_ERR_EINVAL, "fixed_str_len %u or num_arr_elem %u is out of range",
                            (unsigned)field.fixed_str_len, (unsigned)field.count);
    }
    if (name != NULL && (field.name = um_strdup(name)) == NULL) {
        return um_pdm_error(PDM_ERR_NOMEM, "field: out of memory");
    }
    return um_pdm_defn_append(defn, &field);
}

lbmpdm_field_handle_t lbmpdm_defn_add_field_info_by_str_name(lbmpdm_defn_t *defn, const char *str_name, int16_t type,
                                                             lbmpdm_field_info_attr_t *info_attr)
{
    if (defn == NULL || str_name == NULL || str_name[0] == '\0') {
        return um_pdm_error(PDM_ERR_EINVAL, "a definition and a name that is not empty are needed");
    }
    return add(defn, str_name, 0, type, info_attr);
}

lbmpdm_field_handle_t lbmpdm_defn_add_field_info_by_int_name(lbmpdm_defn_t *defn, int32_t int_name, int16_t type,
                                                             lbmpdm_field_info_attr_t *info_attr)
{
    return defn == NULL ? no_definition() : add(defn, NULL, int_name, type, info_attr);
}

static lbmpdm_field_handle_t look_up(const lbmpdm_defn_t *defn, const char *name, int32_t int_name)
{
    bool right = defn != NULL && defn->integer_names == (name == NULL);
    lbmpdm_field_handle_t handle = right ? um_pdm_defn_find(defn, name, int_name) : -1;
    return handle >= 0 ? handle : um_pdm_error(PDM_ERR_FIELD_NOT_FOUND, "the definition has no field of this name");
}

lbmpdm_field_handle_t lbmpdm_defn_get_field_handle_by_str_name(lbmpdm_defn_t *defn, const char *str_name)
{
    return str_name == NULL ? um_pdm_error(PDM_ERR_EINVAL, "no name was given") : look_up(defn, str_name, 0);
}

lbmpdm_field_handle_t lbmpdm_defn_get_field_handle_by_int_name(lbmpdm_defn_t *defn, int32_t int_name)
{
    return look_up(defn, NULL, int_name);
}

int32_t lbmpdm_defn_get_id(lbmpdm_defn_t *defn)
{
    return defn == NULL ? no_definition() : defn->id;
}

int32_t lbmpdm_defn_get_num_fields(lbmpdm_defn_t *defn)
{
    return defn == NULL ? no_definition() : defn->count;
}

int8_t lbmpdm_defn_get_msg_vers_major(lbmpdm_defn_t *defn)
{
    return defn == NULL ? (int8_t)no_definition() : defn->major;
}

int8_t lbmpdm_defn_get_msg_vers_minor(lbmpdm_defn_t *defn)
{
    return defn == NULL ? (int8_t)no_definition() : defn->minor;
}

uint8_t lbmpdm_defn_get_field_names_type(lbmpdm_defn_t *defn)
{
    return defn != NULL && defn->integer_names ? PDM_DEFN_INT_FIELD_NAMES : PDM_DEFN_STR_FIELD_NAMES;
}

uint8_t lbmpdm_defn_is_finalized(lbmpdm_defn_t *defn)
{
    return defn != NULL && defn->finalized ? PDM_TRUE : PDM_FALSE;
}

static const struct um_pdm_field *field_of(const lbmpdm_defn_t *defn, int32_t handle)
{
    const struct um_pdm_field *field = defn == NULL ? NULL : um_pdm_field(defn, handle);
    if (field == NULL) {
        (void)um_pdm_error(PDM_ERR_FIELD_NOT_FOUND, "the definition has no field %d", (int)handle);
    }
    return field;
}

const char *lbmpdm_defn_get_field_info_str_name(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle)
{
    const struct um_pdm_field *field = field_of(defn, handle);
    return field == NULL ? NULL : field->name;
}

int32_t lbmpdm_defn_get_field_info_int_name(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle)
{
    const struct um_pdm_field *field = field_of(defn, handle);
    return field == NULL || field->name != NULL ? -1 : field->int_name;
}

int16_t lbmpdm_defn_get_field_info_type(lbmpdm_defn_t *defn, lbmpdm_field_handle_t handle)
{
    const struct um_pdm_field *field = field_of(defn, handle);
    return field == NULL ? PDM_INTERNAL_TYPE_INVALID : field->code;
}
