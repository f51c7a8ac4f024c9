/*
 * Columns as Arrow data: the C data and stream interfaces of Arrow and their capsules, so that no Arrow library is
 * needed. Python describes a column (arrow.py), here it becomes the structures that a consumer takes over; they keep
 * what the buffers lie in until the consumer releases them, on any thread. Runs with the GIL; the callbacks take it.
 * Compiled into um_cffi.binding._native behind um_py_streams.c by build.py; um_py_fast_functions has what Python calls.
 */

/* The layouts that the Arrow specification fixes for all times. */
typedef struct um_arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct um_arrow_schema **children, *dictionary;
    void (*release)(struct um_arrow_schema *schema);
    void *private_data;
} um_arrow_schema_t;

typedef struct um_arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct um_arrow_array **children, *dictionary;
    void (*release)(struct um_arrow_array *array);
    void *private_data;
} um_arrow_array_t;

typedef struct um_arrow_stream {
    int (*get_schema)(struct um_arrow_stream *stream, um_arrow_schema_t *out);
    int (*get_next)(struct um_arrow_stream *stream, um_arrow_array_t *out);
    const char *(*get_last_error)(struct um_arrow_stream *stream);
    void (*release)(struct um_arrow_stream *stream);
    void *private_data;
} um_arrow_stream_t;

#define UM_ARROW_NULLABLE 2 /* flag of a schema: what libraries give by themselves, so that tables can be joined */

/*
 * A column, as arrow.py makes it: (name, format, length, addresses of the buffers, what keeps them, children,
 * dictionary or None). An address of 0 is a buffer that is left out.
 */

/* Drops a reference on whichever thread; after the end of the interpreter there is nothing left to drop it from. */
static void um_py_drop(PyObject *object)
{
    if (object == NULL || !Py_IsInitialized())
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object);
    PyGILState_Release(state);
}

/* Pointers to `count` structures of `size` bytes, all zero, in one block that begins with the pointers. */
static void *um_py_arrow_block(Py_ssize_t count, size_t size)
{
    char *block = calloc(1, (size_t)count * (size + sizeof(void *)) + 1);
    for (Py_ssize_t at = 0; block != NULL && at < count; at++)
        ((void **)block)[at] = block + (size_t)count * sizeof(void *) + (size_t)at * size;
    return block;
}

/* ---- schemas ---- */

static void um_py_schema_release(um_arrow_schema_t *schema)
{
    for (int64_t at = 0; at < schema->n_children; at++) {
        if (schema->children[at]->release != NULL) /* else the consumer has moved it elsewhere */
            schema->children[at]->release(schema->children[at]);
    }
    if (schema->dictionary != NULL && schema->dictionary->release != NULL)
        schema->dictionary->release(schema->dictionary);
    free(schema->children);
    free(schema->dictionary);
    um_py_drop(schema->private_data);
    schema->release = NULL;
}

/* 0; -1 with an exception, and nothing to release. */
static int um_py_schema_fill(PyObject *column, um_arrow_schema_t *schema)
{
    PyObject *children, *dictionary;
    *schema = (um_arrow_schema_t){.flags = UM_ARROW_NULLABLE, .private_data = column};
    if (!PyArg_ParseTuple(column, "ssOOOO!O", &schema->name, &schema->format, &children, &children, &children,
                          &PyTuple_Type, &children, &dictionary))
        return -1;
    Py_INCREF(column); /* the texts are its */
    schema->release = um_py_schema_release;
    schema->children = um_py_arrow_block(PyTuple_Size(children), sizeof *schema);
    int result = schema->children != NULL ? 0 : -1;
    for (Py_ssize_t at = 0; result == 0 && at < PyTuple_Size(children); at++) {
        schema->n_children = at + 1;
        result = um_py_schema_fill(PyTuple_GetItem(children, at), schema->children[at]);
    }
    if (result == 0 && strcmp(schema->format, "+m") == 0) { /* maps have entries and keys, always */
        schema->children[0]->flags = 0;
        schema->children[0]->children[0]->flags = 0;
    }
    if (result == 0 && dictionary != Py_None) {
        schema->dictionary = calloc(1, sizeof *schema);
        result = schema->dictionary != NULL ? um_py_schema_fill(dictionary, schema->dictionary) : -1;
    }
    if (result == 0)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    um_py_schema_release(schema);
    return -1;
}

/* ---- arrays ---- */

static void um_py_array_release(um_arrow_array_t *array)
{
    for (int64_t at = 0; at < array->n_children; at++) {
        if (array->children[at]->release != NULL)
            array->children[at]->release(array->children[at]);
    }
    if (array->dictionary != NULL && array->dictionary->release != NULL)
        array->dictionary->release(array->dictionary);
    free(array->children);
    free(array->dictionary);
    free((void *)array->buffers);
    um_py_drop(array->private_data);
    array->release = NULL;
}

/* 0; -1, with or without an exception. */
static int um_py_array_buffers(PyObject *addresses, um_arrow_array_t *array)
{
    array->n_buffers = PyTuple_Size(addresses);
    array->buffers = calloc((size_t)array->n_buffers + 1, sizeof *array->buffers);
    if (array->buffers == NULL)
        return -1;
    for (Py_ssize_t at = 0; at < array->n_buffers; at++) {
        array->buffers[at] = PyLong_AsVoidPtr(PyTuple_GetItem(addresses, at));
        if (array->buffers[at] == NULL && PyErr_Occurred())
            return -1;
    }
    if (array->n_buffers > 0 && array->buffers[0] != NULL)
        array->null_count = -1; /* nobody has counted: the consumer looks at the bits */
    return 0;
}

/* 0; -1 with an exception, and nothing to release. */
static int um_py_array_fill(PyObject *column, um_arrow_array_t *array)
{
    const char *text;
    long long length;
    PyObject *addresses, *kept, *children, *dictionary;
    *array = (um_arrow_array_t){.length = 0};
    if (!PyArg_ParseTuple(column, "ssLO!OO!O", &text, &text, &length, &PyTuple_Type, &addresses, &kept, &PyTuple_Type,
                          &children, &dictionary))
        return -1;
    Py_INCREF(kept);
    array->private_data = kept;
    array->release = um_py_array_release;
    array->length = length;
    array->children = um_py_arrow_block(PyTuple_Size(children), sizeof *array);
    int result = array->children != NULL ? um_py_array_buffers(addresses, array) : -1;
    for (Py_ssize_t at = 0; result == 0 && at < PyTuple_Size(children); at++) {
        array->n_children = at + 1;
        result = um_py_array_fill(PyTuple_GetItem(children, at), array->children[at]);
    }
    if (result == 0 && dictionary != Py_None) {
        array->dictionary = calloc(1, sizeof *array);
        result = array->dictionary != NULL ? um_py_array_fill(dictionary, array->dictionary) : -1;
    }
    if (result == 0)
        return 0;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    um_py_array_release(array);
    return -1;
}

/* ---- streams ---- */

typedef struct um_py_arrays_stct {
    PyObject *schema; /* a column; its values do not matter */
    PyObject *next;   /* called for each array: a column, or None at the end; NULL behind the end */
    char error[512];  /* why the last call failed */
} um_py_arrays_t;

/* Keeps what was raised for get_last_error(). An interrupt is raised again where the consumer was called from. */
static int um_py_arrays_failed(um_py_arrays_t *arrays)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    int interrupted = type != NULL && PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt);
    PyObject *text = error != NULL ? PyObject_Str(error) : NULL;
    PyObject *name = type != NULL ? PyObject_GetAttrString(type, "__name__") : NULL;
    PyObject *both = name != NULL && text != NULL ? PyUnicode_FromFormat("%U: %U", name, text) : NULL;
    PyObject *bytes = both != NULL ? PyUnicode_AsEncodedString(both, "utf-8", "replace") : NULL;
    snprintf(arrays->error, sizeof arrays->error, "%s", bytes != NULL ? PyBytes_AsString(bytes) : "no memory");
    PyObject *const used[] = {type, error, traceback, text, name, both, bytes};
    for (size_t at = 0; at < sizeof used / sizeof *used; at++)
        Py_XDECREF(used[at]);
    PyErr_Clear();
    if (interrupted)
        PyErr_SetInterrupt(); /* not before: making texts looks for signals, too */
    return EIO;
}

static int um_py_arrays_schema(um_arrow_stream_t *stream, um_arrow_schema_t *out)
{
    um_py_arrays_t *arrays = stream->private_data;
    PyGILState_STATE state = PyGILState_Ensure();
    int result = um_py_schema_fill(arrays->schema, out) == 0 ? 0 : um_py_arrays_failed(arrays);
    PyGILState_Release(state);
    return result;
}

static int um_py_arrays_next(um_arrow_stream_t *stream, um_arrow_array_t *out)
{
    um_py_arrays_t *arrays = stream->private_data;
    PyGILState_STATE state = PyGILState_Ensure();
    *out = (um_arrow_array_t){.length = 0}; /* no release: the end */
    PyObject *column = Py_None;
    if (arrays->next != NULL)
        column = PyObject_CallFunctionObjArgs(arrays->next, NULL);
    else
        Py_INCREF(column);
    int result = column != NULL ? 0 : -1;
    if (column == Py_None) { /* and from now on */
        Py_CLEAR(arrays->next);
    } else if (column != NULL) {
        result = um_py_array_fill(column, out);
    }
    if (result != 0)
        result = um_py_arrays_failed(arrays);
    Py_XDECREF(column);
    PyGILState_Release(state);
    return result;
}

static const char *um_py_arrays_error(um_arrow_stream_t *stream)
{
    const um_py_arrays_t *arrays = stream->private_data;
    return arrays->error[0] != 0 ? arrays->error : NULL;
}

static void um_py_arrays_release(um_arrow_stream_t *stream)
{
    um_py_arrays_t *arrays = stream->private_data;
    um_py_drop(arrays->schema);
    um_py_drop(arrays->next);
    free(arrays);
    stream->release = NULL;
}

/* ---- capsules: whoever takes a structure out sets its release to NULL ---- */

static void um_py_schema_forget(PyObject *capsule)
{
    um_arrow_schema_t *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release != NULL)
        schema->release(schema);
    free(schema);
}

static void um_py_array_forget(PyObject *capsule)
{
    um_arrow_array_t *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release != NULL)
        array->release(array);
    free(array);
}

static void um_py_stream_forget(PyObject *capsule)
{
    um_arrow_stream_t *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream->release != NULL)
        stream->release(stream);
    free(stream);
}

/* arrow_schema(column) */
static PyObject *um_py_arrow_schema(PyObject *module, PyObject *column)
{
    um_arrow_schema_t *schema = calloc(1, sizeof *schema);
    if (schema == NULL)
        return PyErr_NoMemory();
    if (um_py_schema_fill(column, schema) != 0) {
        free(schema);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(schema, "arrow_schema", um_py_schema_forget);
    if (capsule == NULL) {
        schema->release(schema);
        free(schema);
    }
    return capsule;
}

/* arrow_array(column) */
static PyObject *um_py_arrow_array(PyObject *module, PyObject *column)
{
    um_arrow_array_t *array = calloc(1, sizeof *array);
    if (array == NULL)
        return PyErr_NoMemory();
    if (um_py_array_fill(column, array) != 0) {
        free(array);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(array, "arrow_array", um_py_array_forget);
    if (capsule == NULL) {
        array->release(array);
        free(array);
    }
    return capsule;
}

/* arrow_stream(column, next) */
static PyObject *um_py_arrow_stream(PyObject *module, PyObject *args)
{
    PyObject *schema, *next;
    if (!PyArg_ParseTuple(args, "OO", &schema, &next))
        return NULL;
    um_arrow_stream_t *stream = calloc(1, sizeof *stream);
    um_py_arrays_t *arrays = calloc(1, sizeof *arrays);
    if (stream == NULL || arrays == NULL) {
        free(stream);
        free(arrays);
        return PyErr_NoMemory();
    }
    Py_INCREF(schema);
    Py_INCREF(next);
    *arrays = (um_py_arrays_t){.schema = schema, .next = next};
    *stream = (um_arrow_stream_t){
        .get_schema = um_py_arrays_schema,
        .get_next = um_py_arrays_next,
        .get_last_error = um_py_arrays_error,
        .release = um_py_arrays_release,
        .private_data = arrays,
    };
    PyObject *capsule = PyCapsule_New(stream, "arrow_array_stream", um_py_stream_forget);
    if (capsule == NULL) {
        stream->release(stream);
        free(stream);
    }
    return capsule;
}

/* arrow_pointer(capsule, name): the address of the structure in a capsule that somebody else made */
static PyObject *um_py_arrow_pointer(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    const char *name;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &name))
        return NULL;
    void *pointer = PyCapsule_GetPointer(capsule, name);
    return pointer != NULL ? PyLong_FromVoidPtr(pointer) : NULL;
}

/*
 * The views of payloads that do not follow each other: what Arrow calls a binary view, one for each record. Short ones
 * are in the view itself, of the others the first four bytes.
 */
typedef struct um_arrow_view_stct {
    int32_t length;
    union {
        unsigned char all[12];
        struct {
            unsigned char prefix[4];
            int32_t buffer, offset;
        } rest;
    } value;
} um_arrow_view_t;

/* arrow_views(memory, address of the records, their number, address of the views) */
static PyObject *um_py_arrow_views(PyObject *module, PyObject *args)
{
    PyObject *object;
    unsigned long long from, to;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "O!KnK", um_py_memory_type, &object, &from, &count, &to))
        return NULL;
    const unsigned char *data = ((um_py_memory_t *)object)->data;
    const um_record_t *records = (const um_record_t *)(uintptr_t)from;
    um_arrow_view_t *views = (um_arrow_view_t *)(uintptr_t)to;
    for (Py_ssize_t at = 0; at < count; at++) {
        um_arrow_view_t *view = views + at;
        *view = (um_arrow_view_t){.length = (int32_t)records[at].length};
        if (records[at].length <= sizeof view->value.all) {
            memcpy(view->value.all, data + records[at].offset, records[at].length);
        } else {
            memcpy(view->value.rest.prefix, data + records[at].offset, sizeof view->value.rest.prefix);
            view->value.rest.offset = (int32_t)records[at].offset;
        }
    }
    Py_RETURN_NONE;
}
