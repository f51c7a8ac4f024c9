/*
 * What the binding does for every single message: objects on the records of a taken batch, and the loops that give them
 * to callbacks, to iterators and to `async for`. Runs with the GIL, on whichever thread of Python calls.
 * Compiled into um_cffi._native behind _bridge.c by _build.py; um_py_add_fast() makes it the module um_cffi._fast.
 */
#if !defined(Py_LIMITED_API) || Py_LIMITED_API + 0 < 0x03090000
#error "compile with -DPy_LIMITED_API=0x03090000, as _build.py and cmake/python.cmake do"
#endif

#define UM_PY_SIGNAL_CHECK 256 /* calls between looks at signals, for callbacks that are not Python code */

/*
 * The buffer protocol is part of the stable ABI since 3.11. 3.9 and 3.10, which change no more, have the same structure
 * and slot number, but their headers show them outside of the limited API only; so they are described here.
 */
#define UM_PY_BF_GETBUFFER 1
#define UM_PY_BF_RELEASEBUFFER 2
#define UM_PY_BUF_WRITABLE 0x01
#define UM_PY_BUF_FORMAT 0x04
#define UM_PY_BUF_ND 0x08
#define UM_PY_BUF_STRIDES 0x10

typedef struct um_py_buffer_stct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} um_py_buffer_t;

/* Set once at import, never freed: there is one interpreter, _guard.py sees to it. */
static PyTypeObject *um_py_memory_type, *um_py_piece_type, *um_py_message_type, *um_py_messages_type;
static PyTypeObject *um_py_intake_type, *um_py_stream_type, *um_py_next_type;
static PyObject *um_py_make_flags, *um_py_make_type, *um_py_describe, *um_py_raise_last; /* Python's part */
static int um_py_forked; /* in a child of fork(): the memory of batches is the parent's library's; leave it alone */

/* ---- memory: a taken batch, or the copy of one message ---- */

typedef struct um_py_memory_stct {
    PyObject ob_base;
    um_batch_t *batch; /* NULL: a copy, in block */
    void *block;
    const um_record_t *records;
    const unsigned char *data;
    size_t data_len, count;
    PyObject *topics, *sources; /* lists that only grow */
} um_py_memory_t;

/* What views of the records refer to; payloads are what a memory itself gives as a buffer. */
typedef struct um_py_piece_stct {
    PyObject ob_base;
    um_py_memory_t *memory;
    const void *data;
    size_t len;
} um_py_piece_t;

typedef struct um_py_message_stct {
    PyObject ob_base;
    um_py_memory_t *memory;
    const um_record_t *record;
} um_py_message_t;

static PyObject *um_py_refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyErr_SetString(PyExc_TypeError, "objects of this type come from receivers and batches only");
    return NULL;
}

static void um_py_free(void *object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* Fills a read-only view that keeps `owner` alive. */
static int um_py_fill_view(um_py_buffer_t *view, PyObject *owner, const void *data, size_t len, int flags)
{
    static char bytes_format[] = "B";
    if (flags & UM_PY_BUF_WRITABLE) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "received data is read-only; copy it first");
        return -1;
    }
    Py_INCREF(owner);
    *view = (um_py_buffer_t){.buf = (void *)data, .obj = owner, .len = (Py_ssize_t)len, .itemsize = 1, .readonly = 1};
    view->ndim = 1;
    view->format = flags & UM_PY_BUF_FORMAT ? bytes_format : NULL;
    view->shape = flags & UM_PY_BUF_ND ? &view->len : NULL;
    view->strides = flags & UM_PY_BUF_STRIDES ? &view->itemsize : NULL;
    return 0;
}

static inline int um_py_is_message(const um_record_t *record)
{
    return record->type == LBM_MSG_DATA || record->type == LBM_MSG_REQUEST;
}

static um_py_memory_t *um_py_memory_new(PyObject *topics, PyObject *sources)
{
    um_py_memory_t *memory = PyObject_New(um_py_memory_t, um_py_memory_type);
    if (memory == NULL)
        return NULL;
    memory->batch = NULL;
    memory->block = NULL;
    memory->records = NULL;
    memory->data = NULL;
    memory->data_len = memory->count = 0;
    Py_INCREF(topics);
    Py_INCREF(sources);
    memory->topics = topics;
    memory->sources = sources;
    return memory;
}

static void um_py_memory_dealloc(um_py_memory_t *memory)
{
    if (memory->batch != NULL && !um_py_forked)
        um_batch_release(memory->batch);
    PyMem_Free(memory->block);
    Py_DECREF(memory->topics);
    Py_DECREF(memory->sources);
    um_py_free(memory);
}

static Py_ssize_t um_py_memory_length(um_py_memory_t *memory)
{
    return (Py_ssize_t)memory->count;
}

static PyObject *um_py_message_new(um_py_memory_t *memory, size_t at)
{
    um_py_message_t *message = PyObject_New(um_py_message_t, um_py_message_type);
    if (message == NULL)
        return NULL;
    Py_INCREF((PyObject *)memory);
    message->memory = memory;
    message->record = memory->records + at;
    return (PyObject *)message;
}

static PyObject *um_py_memory_message(um_py_memory_t *memory, PyObject *arg)
{
    Py_ssize_t at = PyNumber_AsSsize_t(arg, PyExc_IndexError);
    if (at == -1 && PyErr_Occurred())
        return NULL;
    if (at < 0)
        at += (Py_ssize_t)memory->count;
    if (at < 0 || (size_t)at >= memory->count)
        return PyErr_Format(PyExc_IndexError, "record %S of %zu", arg, memory->count);
    return um_py_message_new(memory, (size_t)at);
}

static PyObject *um_py_memory_data(PyObject *memory, void *closure)
{
    return PyMemoryView_FromObject(memory);
}

static PyObject *um_py_memory_records(um_py_memory_t *memory, void *closure)
{
    um_py_piece_t *piece = PyObject_New(um_py_piece_t, um_py_piece_type);
    if (piece == NULL)
        return NULL;
    Py_INCREF((PyObject *)memory);
    piece->memory = memory;
    piece->data = memory->records;
    piece->len = memory->count * sizeof *memory->records;
    PyObject *view = PyMemoryView_FromObject((PyObject *)piece);
    Py_DECREF((PyObject *)piece);
    return view;
}

static void um_py_piece_dealloc(um_py_piece_t *piece)
{
    Py_DECREF((PyObject *)piece->memory);
    um_py_free(piece);
}

static int um_py_piece_view(um_py_piece_t *piece, um_py_buffer_t *view, int flags)
{
    return um_py_fill_view(view, (PyObject *)piece, piece->data, piece->len, flags);
}

/* ---- messages ---- */

static void um_py_message_dealloc(um_py_message_t *message)
{
    Py_DECREF((PyObject *)message->memory);
    um_py_free(message);
}

static const unsigned char *um_py_payload(const um_py_message_t *message)
{
    return message->memory->data + message->record->offset;
}

/* The memory is the exporter: views of a message stay what they are when it is retained. */
static int um_py_message_view(um_py_message_t *message, um_py_buffer_t *view, int flags)
{
    return um_py_fill_view(view, (PyObject *)message->memory, um_py_payload(message), message->record->length, flags);
}

static int um_py_memory_view(um_py_memory_t *memory, um_py_buffer_t *view, int flags)
{
    return um_py_fill_view(view, (PyObject *)memory, memory->data, memory->data_len, flags);
}

static PyObject *um_py_message_data(PyObject *message, void *closure)
{
    return PyMemoryView_FromObject(message);
}

static PyObject *um_py_name(PyObject *names, uint32_t at)
{
    PyObject *name = PyList_GetItem(names, (Py_ssize_t)at);
    Py_XINCREF(name);
    return name;
}

static PyObject *um_py_message_topic(um_py_message_t *message, void *closure)
{
    return um_py_name(message->memory->topics, message->record->topic);
}

static PyObject *um_py_message_source(um_py_message_t *message, void *closure)
{
    return um_py_name(message->memory->sources, message->record->source);
}

static PyObject *um_py_message_sequence_number(um_py_message_t *message, void *closure)
{
    return PyLong_FromUnsignedLong(message->record->sequence_number);
}

static PyObject *um_py_message_flags(um_py_message_t *message, void *closure)
{
    return PyObject_CallFunction(um_py_make_flags, "i", (int)message->record->flags);
}

static PyObject *um_py_message_kind(um_py_message_t *message, void *closure)
{
    return PyObject_CallFunction(um_py_make_type, "i", (int)message->record->type);
}

static PyObject *um_py_message_timestamp(um_py_message_t *message, void *closure)
{
    return PyLong_FromLongLong(message->record->timestamp_ns);
}

static PyObject *um_py_message_hr_timestamp(um_py_message_t *message, void *closure)
{
    if (message->record->flags & UM_MSG_FLAG_HR_TIMESTAMP)
        return PyLong_FromLongLong(message->record->timestamp_ns);
    Py_RETURN_NONE;
}

static PyObject *um_py_message_is_event(um_py_message_t *message, PyObject *unused)
{
    return PyBool_FromLong(!um_py_is_message(message->record));
}

static PyObject *um_py_message_bytes(um_py_message_t *message, PyObject *unused)
{
    return PyBytes_FromStringAndSize((const char *)um_py_payload(message), (Py_ssize_t)message->record->length);
}

static PyObject *um_py_message_repr(PyObject *message)
{
    return PyObject_CallFunctionObjArgs(um_py_describe, message, NULL);
}

static Py_ssize_t um_py_message_length(um_py_message_t *message)
{
    return (Py_ssize_t)message->record->length;
}

static int um_py_message_bool(PyObject *message)
{
    return 1;
}

static PyObject *um_py_message_retain(um_py_message_t *message, PyObject *unused)
{
    um_py_memory_t *old = message->memory;
    if (old->batch != NULL) {
        size_t len = message->record->length;
        um_py_memory_t *copy = um_py_memory_new(old->topics, old->sources);
        um_record_t *record = copy != NULL ? PyMem_Malloc(sizeof *record + len) : NULL;
        if (record == NULL) {
            Py_XDECREF((PyObject *)copy);
            return PyErr_NoMemory();
        }
        *record = *message->record;
        record->offset = 0;
        memcpy(record + 1, um_py_payload(message), len);
        copy->block = record;
        copy->records = record;
        copy->data = (const unsigned char *)(record + 1);
        copy->data_len = len;
        copy->count = 1;
        message->memory = copy;
        message->record = record;
        Py_DECREF((PyObject *)old);
    }
    Py_INCREF((PyObject *)message);
    return (PyObject *)message;
}

/* ---- iteration ---- */

typedef struct um_py_messages_stct {
    PyObject ob_base;
    um_py_memory_t *memory;
    size_t at;
    int events; /* give these too */
} um_py_messages_t;

/* Memory.messages(events) */
static PyObject *um_py_memory_messages(um_py_memory_t *memory, PyObject *events)
{
    int with_events = PyObject_IsTrue(events);
    um_py_messages_t *messages = with_events < 0 ? NULL : PyObject_New(um_py_messages_t, um_py_messages_type);
    if (messages == NULL)
        return NULL;
    Py_INCREF((PyObject *)memory);
    messages->memory = memory;
    messages->at = 0;
    messages->events = with_events;
    return (PyObject *)messages;
}

static void um_py_messages_dealloc(um_py_messages_t *messages)
{
    Py_DECREF((PyObject *)messages->memory);
    um_py_free(messages);
}

static PyObject *um_py_messages_next(um_py_messages_t *messages)
{
    const um_py_memory_t *memory = messages->memory;
    while (!messages->events && messages->at < memory->count && !um_py_is_message(memory->records + messages->at))
        messages->at++;
    return messages->at < memory->count ? um_py_message_new(messages->memory, messages->at++) : NULL;
}

/* ---- taking from a collector ---- */

/*
 * Where the messages of a receiver come in: takes batches, and keeps the one whose records are being given one by one,
 * to callbacks or to `async for`. Whatever interrupts that, the rest is still here.
 */
typedef struct um_py_intake_stct {
    PyObject ob_base;
    um_collector_t *collector;
    PyObject *topics, *sources; /* lists, of all names the collector has seen */
    um_py_memory_t *memory;     /* NULL: nothing is pending */
    size_t at;                  /* the record of memory that is next */
    int stopped;
} um_py_intake_t;

/* Intake(address of the um_collector_t, topics, sources) */
static PyObject *um_py_intake_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    unsigned long long address;
    PyObject *topics, *sources;
    if (!PyArg_ParseTuple(args, "KO!O!", &address, &PyList_Type, &topics, &PyList_Type, &sources))
        return NULL;
    um_py_intake_t *intake = PyObject_New(um_py_intake_t, um_py_intake_type);
    if (intake == NULL)
        return NULL;
    Py_INCREF(topics);
    Py_INCREF(sources);
    intake->collector = (um_collector_t *)(uintptr_t)address;
    intake->topics = topics;
    intake->sources = sources;
    intake->memory = NULL;
    intake->at = 0;
    intake->stopped = 0;
    return (PyObject *)intake;
}

static void um_py_intake_drop(um_py_intake_t *intake)
{
    um_py_memory_t *memory = intake->memory;
    intake->memory = NULL;
    Py_XDECREF((PyObject *)memory);
}

static void um_py_intake_dealloc(um_py_intake_t *intake)
{
    um_py_intake_drop(intake);
    Py_DECREF(intake->topics);
    Py_DECREF(intake->sources);
    um_py_free(intake);
}

/* Appends the names that are new. Bytes that are not UTF-8 survive as surrogates. */
static int um_py_learn(PyObject *known, const char *const *names, size_t count)
{
    for (size_t at = (size_t)PyList_Size(known); at < count; at++) {
        PyObject *name = PyUnicode_DecodeUTF8(names[at], (Py_ssize_t)strlen(names[at]), "surrogateescape");
        int result = name != NULL ? PyList_Append(known, name) : -1;
        Py_XDECREF(name);
        if (result != 0)
            return -1;
    }
    return 0;
}

/* A batch, waiting for it without the GIL; NULL without exception: none in time. */
static um_py_memory_t *um_py_take(um_py_intake_t *intake, size_t max_messages, int timeout_ms)
{
    um_batch_t *batch = NULL;
    um_py_memory_t *memory = um_py_memory_new(intake->topics, intake->sources);
    if (memory == NULL)
        return NULL;
    PyThreadState *python = PyEval_SaveThread();
    int result = um_collector_take(intake->collector, max_messages, timeout_ms, &batch);
    PyEval_RestoreThread(python);
    if (result < 0)
        Py_XDECREF(PyObject_CallFunctionObjArgs(um_py_raise_last, NULL));
    if (result > 0) {
        memory->batch = batch;
        memory->records = batch->records;
        memory->data = batch->data;
        memory->data_len = batch->data_len;
        memory->count = batch->count;
        if (um_py_learn(intake->topics, batch->topics, batch->topic_count) == 0 &&
            um_py_learn(intake->sources, batch->sources, batch->source_count) == 0)
            return memory;
    }
    Py_DECREF((PyObject *)memory);
    return NULL;
}

/* Intake.batch(max_messages, timeout_ms): a Memory of its own for the caller, or None */
static PyObject *um_py_intake_batch(um_py_intake_t *intake, PyObject *args)
{
    Py_ssize_t max_messages;
    int timeout_ms;
    if (!PyArg_ParseTuple(args, "ni", &max_messages, &timeout_ms))
        return NULL;
    PyObject *memory = (PyObject *)um_py_take(intake, (size_t)max_messages, timeout_ms);
    if (memory == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return memory;
}

/* Intake.fill(max_messages): whether something is pending, after taking what waits if nothing was */
static PyObject *um_py_intake_fill(um_py_intake_t *intake, PyObject *arg)
{
    if (intake->memory == NULL && !intake->stopped) {
        size_t max_messages = PyLong_AsSize_t(arg);
        if (max_messages == (size_t)-1 && PyErr_Occurred())
            return NULL;
        um_py_memory_t *memory = um_py_take(intake, max_messages, 0);
        if (memory == NULL && PyErr_Occurred())
            return NULL;
        um_py_intake_drop(intake); /* a second thread may have been here while the first was without the GIL */
        intake->memory = memory;
        intake->at = 0;
    }
    return PyBool_FromLong(intake->memory != NULL);
}

static PyObject *um_py_intake_pending(um_py_intake_t *intake, void *closure)
{
    return PyBool_FromLong(intake->memory != NULL);
}

static PyObject *um_py_intake_newest(um_py_intake_t *intake, void *closure)
{
    const um_py_memory_t *memory = intake->memory;
    return PyLong_FromLongLong(memory != NULL ? memory->records[memory->count - 1].timestamp_ns : 0);
}

static inline int um_py_has_message(const um_py_intake_t *intake)
{
    return intake->memory != NULL && um_py_is_message(intake->memory->records + intake->at);
}

/* The record that is next; there is one. The memory is given up with its last record. */
static PyObject *um_py_next(um_py_intake_t *intake)
{
    um_py_memory_t *memory = intake->memory;
    PyObject *message = um_py_message_new(memory, intake->at);
    if (message != NULL && ++intake->at == memory->count)
        um_py_intake_drop(intake);
    return message;
}

static PyObject *um_py_intake_message(um_py_intake_t *intake, PyObject *unused)
{
    if (um_py_has_message(intake))
        return um_py_next(intake);
    Py_RETURN_NONE;
}

static PyObject *um_py_intake_event(um_py_intake_t *intake, PyObject *unused)
{
    if (intake->memory != NULL && !um_py_has_message(intake))
        return um_py_next(intake);
    Py_RETURN_NONE;
}

/* ---- callbacks ---- */

/* Hands the exception that is set to failed(error). 0; -1 when it is one that ends the dispatch, or failed() raised. */
static int um_py_report(PyObject *failed)
{
    PyObject *type, *error, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    PyObject *result = PyObject_CallFunctionObjArgs(failed, error, NULL);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

static int um_py_deliver(um_py_intake_t *intake, PyObject *call, PyObject *failed)
{
    PyObject *message = um_py_next(intake);
    if (message == NULL)
        return -1;
    PyObject *result = PyObject_CallFunctionObjArgs(call, message, NULL);
    Py_DECREF(message);
    Py_XDECREF(result);
    return result != NULL ? 0 : um_py_report(failed);
}

/* Intake.run(call, failed): gives the messages up to the next event to a callback; returns how many */
static PyObject *um_py_intake_run(um_py_intake_t *intake, PyObject *args)
{
    PyObject *call, *failed;
    size_t done = 0;
    if (!PyArg_ParseTuple(args, "OO", &call, &failed))
        return NULL;
    while (um_py_has_message(intake)) {
        if (um_py_deliver(intake, call, failed) != 0)
            return NULL;
        if (++done % UM_PY_SIGNAL_CHECK == 0 && PyErr_CheckSignals() != 0)
            return NULL;
    }
    return PyLong_FromSize_t(done);
}

/* Intake.stop(): gives no more, for good; what is pending goes */
static PyObject *um_py_intake_stop(um_py_intake_t *intake, PyObject *unused)
{
    intake->stopped = 1;
    um_py_intake_drop(intake);
    Py_RETURN_NONE;
}

/* ---- async for ---- */

/* The iterator of one loop: messages that wait are given by __anext__() itself, for the rest it awaits more(). */
typedef struct um_py_stream_stct {
    PyObject ob_base;
    um_py_intake_t *intake;
    PyObject *more;
} um_py_stream_t;

/* What __anext__() returns while messages wait. Should another have taken them when it is awaited: awaits more(). */
typedef struct um_py_next_stct {
    PyObject ob_base;
    um_py_stream_t *stream;
    PyObject *waiting; /* the coroutine more(), once needed */
} um_py_next_t;

/* Stream(intake, more) */
static PyObject *um_py_stream_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *intake, *more;
    if (!PyArg_ParseTuple(args, "O!O", um_py_intake_type, &intake, &more))
        return NULL;
    um_py_stream_t *stream = PyObject_GC_New(um_py_stream_t, um_py_stream_type);
    if (stream == NULL)
        return NULL;
    Py_INCREF(intake);
    Py_INCREF(more);
    stream->intake = (um_py_intake_t *)intake;
    stream->more = more;
    PyObject_GC_Track(stream);
    return (PyObject *)stream;
}

static int um_py_stream_traverse(um_py_stream_t *stream, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)stream));
    Py_VISIT(stream->more);
    return 0;
}

static int um_py_stream_clear(um_py_stream_t *stream)
{
    Py_CLEAR(stream->more);
    return 0;
}

static void um_py_gc_free(void *object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static void um_py_stream_dealloc(um_py_stream_t *stream)
{
    PyObject_GC_UnTrack(stream);
    Py_DECREF((PyObject *)stream->intake);
    Py_XDECREF(stream->more);
    um_py_gc_free(stream);
}

static PyObject *um_py_stream_next(um_py_stream_t *stream)
{
    if (!um_py_has_message(stream->intake))
        return PyObject_CallFunctionObjArgs(stream->more, NULL);
    um_py_next_t *next = PyObject_GC_New(um_py_next_t, um_py_next_type);
    if (next == NULL)
        return NULL;
    Py_INCREF((PyObject *)stream);
    next->stream = stream;
    next->waiting = NULL;
    PyObject_GC_Track(next);
    return (PyObject *)next;
}

static PyObject *um_py_self(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

static int um_py_next_traverse(um_py_next_t *next, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)next));
    Py_VISIT((PyObject *)next->stream);
    Py_VISIT(next->waiting);
    return 0;
}

static int um_py_next_clear(um_py_next_t *next)
{
    Py_CLEAR(next->waiting);
    return 0;
}

static void um_py_next_dealloc(um_py_next_t *next)
{
    PyObject_GC_UnTrack(next);
    Py_DECREF((PyObject *)next->stream);
    Py_XDECREF(next->waiting);
    um_py_gc_free(next);
}

static int um_py_next_wait(um_py_next_t *next)
{
    if (next->waiting == NULL)
        next->waiting = PyObject_CallFunctionObjArgs(next->stream->more, NULL);
    return next->waiting != NULL ? 0 : -1;
}

static PyObject *um_py_next_step(um_py_next_t *next)
{
    um_py_intake_t *intake = next->stream->intake;
    if (next->waiting == NULL && um_py_has_message(intake)) {
        PyObject *message = um_py_next(intake);
        if (message != NULL) {
            PyErr_SetObject(PyExc_StopIteration, message);
            Py_DECREF(message);
        }
        return NULL;
    }
    return um_py_next_wait(next) == 0 ? PyObject_CallMethod(next->waiting, "send", "O", Py_None) : NULL;
}

static PyObject *um_py_next_throw(um_py_next_t *next, PyObject *args)
{
    PyObject *method = um_py_next_wait(next) == 0 ? PyObject_GetAttrString(next->waiting, "throw") : NULL;
    PyObject *result = method != NULL ? PyObject_CallObject(method, args) : NULL;
    Py_XDECREF(method);
    return result;
}

static PyObject *um_py_next_close(um_py_next_t *next, PyObject *unused)
{
    if (next->waiting != NULL)
        return PyObject_CallMethod(next->waiting, "close", NULL);
    Py_RETURN_NONE;
}

/* ---- the module ---- */

static PyMethodDef um_py_memory_methods[] = {
    {"message", (PyCFunction)um_py_memory_message, METH_O, "The message or event of one record."},
    {"messages", (PyCFunction)um_py_memory_messages, METH_O, "Iterate over the messages; True: over events too."},
    {NULL},
};
static PyGetSetDef um_py_memory_members[] = {
    {"data", (getter)um_py_memory_data, NULL, "A view of all payloads.", NULL},
    {"records", (getter)um_py_memory_records, NULL, "A view of all records, as bytes.", NULL},
    {NULL},
};
static PyType_Slot um_py_memory_slots[] = {
    {Py_tp_doc, "A taken batch: released when no view of it and no message in it is referenced any more."},
    {Py_tp_new, um_py_refuse_new},
    {Py_tp_dealloc, um_py_memory_dealloc},
    {Py_tp_methods, um_py_memory_methods},
    {Py_tp_getset, um_py_memory_members},
    {Py_sq_length, um_py_memory_length},
    {UM_PY_BF_GETBUFFER, um_py_memory_view},
    {0, NULL},
};

static PyType_Slot um_py_piece_slots[] = {
    {Py_tp_doc, "What views of the records of a Memory refer to."},
    {Py_tp_new, um_py_refuse_new},
    {Py_tp_dealloc, um_py_piece_dealloc},
    {UM_PY_BF_GETBUFFER, um_py_piece_view},
    {0, NULL},
};

static PyMethodDef um_py_message_methods[] = {
    {"retain", (PyCFunction)um_py_message_retain, METH_NOARGS,
     "retain($self, /)\n--\n\n"
     "Copy the message out of its batch, so that keeping it does not keep the batch. Returns itself. Views made before "
     "keep what they show."},
    {"is_event", (PyCFunction)um_py_message_is_event, METH_NOARGS,
     "is_event($self, /)\n--\n\n"
     "Whether it is a loss or another event, as only iterating over a Batch gives them."},
    {"__bytes__", (PyCFunction)um_py_message_bytes, METH_NOARGS, "__bytes__($self, /)\n--\n\nA copy of the payload."},
    {NULL},
};
static PyGetSetDef um_py_message_members[] = {
    {"data", (getter)um_py_message_data, NULL,
     "The payload as a read-only memoryview, without a copy. The view keeps its memory alive by itself. Each access "
     "makes a view: take it once where it is used often.",
     NULL},
    {"topic", (getter)um_py_message_topic, NULL, "The topic it was sent on.", NULL},
    {"source", (getter)um_py_message_source, NULL, "Source string of the session it came from.", NULL},
    {"sequence_number", (getter)um_py_message_sequence_number, NULL,
     "Number of the message in its topic and session; of the last fragment if it has several. Wraps at 2**32.", NULL},
    {"flags", (getter)um_py_message_flags, NULL, "How it came: retransmitted, immediate, ... (MessageFlags)", NULL},
    {"type", (getter)um_py_message_kind, NULL,
     "DATA or REQUEST (MessageType); other types are events and losses, when iterating over a Batch only.", NULL},
    {"timestamp_ns", (getter)um_py_message_timestamp, NULL,
     "Arrival, wall clock, nanoseconds since 1970: that of hr_timestamp where there is one, otherwise in the library, "
     "of the granularity of one read of the socket.",
     NULL},
    {"hr_timestamp", (getter)um_py_message_hr_timestamp, NULL,
     "Arrival at the network card or in the kernel, nanoseconds since 1970; None where neither gives one, as over TCP.",
     NULL},
    {NULL},
};
static PyType_Slot um_py_message_slots[] = {
    {Py_tp_doc,
     "One received message. Cheap to make; stays valid for as long as it is referenced.\n\n"
     "It keeps the whole batch it came in alive; call `retain()` on the few that are kept for long. len() is "
     "the length of the payload in bytes, bytes() a copy of it, and it is itself a read-only buffer, for "
     "memoryview(), struct.unpack_from() or numpy.frombuffer(). May be handed to any thread."},
    {Py_tp_new, um_py_refuse_new},
    {Py_tp_dealloc, um_py_message_dealloc},
    {Py_tp_repr, um_py_message_repr},
    {Py_tp_methods, um_py_message_methods},
    {Py_tp_getset, um_py_message_members},
    {Py_sq_length, um_py_message_length},
    {Py_nb_bool, um_py_message_bool},
    {UM_PY_BF_GETBUFFER, um_py_message_view},
    {0, NULL},
};

static PyType_Slot um_py_messages_slots[] = {
    {Py_tp_doc, "Iterator over a Memory."},  {Py_tp_new, um_py_refuse_new},
    {Py_tp_dealloc, um_py_messages_dealloc}, {Py_tp_iter, um_py_self},
    {Py_tp_iternext, um_py_messages_next},   {0, NULL},
};

static PyMethodDef um_py_intake_methods[] = {
    {"batch", (PyCFunction)um_py_intake_batch, METH_VARARGS, "Take a batch for the caller, waiting for it."},
    {"fill", (PyCFunction)um_py_intake_fill, METH_O, "Take what waits, unless something is pending still."},
    {"message", (PyCFunction)um_py_intake_message, METH_NOARGS, "The next record, if it is a message, or None."},
    {"event", (PyCFunction)um_py_intake_event, METH_NOARGS, "The next record, if it is an event, or None."},
    {"run", (PyCFunction)um_py_intake_run, METH_VARARGS, "Give messages to a callback, up to the next event."},
    {"stop", (PyCFunction)um_py_intake_stop, METH_NOARGS, "Give no more, for good."},
    {NULL},
};
static PyGetSetDef um_py_intake_members[] = {
    {"pending", (getter)um_py_intake_pending, NULL, "Whether a record is to be given.", NULL},
    {"newest_ns", (getter)um_py_intake_newest, NULL, "timestamp_ns of the last record to be given, or 0.", NULL},
    {NULL},
};
static PyType_Slot um_py_intake_slots[] = {
    {Py_tp_doc, "Where the messages of a receiver come in."},
    {Py_tp_new, um_py_intake_create},
    {Py_tp_dealloc, um_py_intake_dealloc},
    {Py_tp_methods, um_py_intake_methods},
    {Py_tp_getset, um_py_intake_members},
    {0, NULL},
};

static PyType_Slot um_py_stream_slots[] = {
    {Py_tp_doc, "Asynchronous iterator over the messages of a receiver."},
    {Py_tp_new, um_py_stream_create},
    {Py_tp_dealloc, um_py_stream_dealloc},
    {Py_tp_traverse, um_py_stream_traverse},
    {Py_tp_clear, um_py_stream_clear},
    {Py_am_aiter, um_py_self},
    {Py_am_anext, um_py_stream_next},
    {0, NULL},
};

static PyMethodDef um_py_next_methods[] = {
    {"throw", (PyCFunction)um_py_next_throw, METH_VARARGS, "As of coroutines."},
    {"close", (PyCFunction)um_py_next_close, METH_NOARGS, "As of coroutines."},
    {NULL},
};
static PyType_Slot um_py_next_slots[] = {
    {Py_tp_doc, "A message to be awaited."},
    {Py_tp_new, um_py_refuse_new},
    {Py_tp_dealloc, um_py_next_dealloc},
    {Py_tp_traverse, um_py_next_traverse},
    {Py_tp_clear, um_py_next_clear},
    {Py_tp_iter, um_py_self},
    {Py_tp_iternext, um_py_next_step},
    {Py_tp_methods, um_py_next_methods},
    {Py_am_await, um_py_self},
    {0, NULL},
};

/* set_python_parts(flags, type, describe, raise_last): what makes MessageFlags, MessageType, texts and exceptions */
static PyObject *um_py_set_python_parts(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "OOOO", &um_py_make_flags, &um_py_make_type, &um_py_describe, &um_py_raise_last))
        return NULL;
    Py_INCREF(um_py_make_flags);
    Py_INCREF(um_py_make_type);
    Py_INCREF(um_py_describe);
    Py_INCREF(um_py_raise_last);
    Py_RETURN_NONE;
}

static PyObject *um_py_forget_memory(PyObject *module, PyObject *unused)
{
    um_py_forked = 1;
    um_py_forked_again();
    Py_RETURN_NONE;
}

static int um_py_add_type(PyObject *module, PyTypeObject **where, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL)
        return -1;
    *where = (PyTypeObject *)type; /* this reference stays */
    Py_INCREF(type);
    return PyModule_AddObject(module, strrchr(spec->name, '.') + 1, type);
}

static int um_py_add_slot(PyObject *module);   /* _acquire.c */
static int um_py_add_direct(PyObject *module); /* _direct.c */
static PyObject *um_py_make_slot(PyObject *module, PyObject *args);

static int um_py_add_types(PyObject *module)
{
    static PyType_Spec specs[] = {
        {"um_cffi._fast.Memory", sizeof(um_py_memory_t), 0, Py_TPFLAGS_DEFAULT, um_py_memory_slots},
        {"um_cffi._fast.Piece", sizeof(um_py_piece_t), 0, Py_TPFLAGS_DEFAULT, um_py_piece_slots},
        {"um_cffi.Message", sizeof(um_py_message_t), 0, Py_TPFLAGS_DEFAULT, um_py_message_slots},
        {"um_cffi._fast.Messages", sizeof(um_py_messages_t), 0, Py_TPFLAGS_DEFAULT, um_py_messages_slots},
        {"um_cffi._fast.Intake", sizeof(um_py_intake_t), 0, Py_TPFLAGS_DEFAULT, um_py_intake_slots},
        {"um_cffi._fast.Stream", sizeof(um_py_stream_t), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
         um_py_stream_slots},
        {"um_cffi._fast.Next", sizeof(um_py_next_t), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, um_py_next_slots},
    };
    PyTypeObject **const where[] = {
        &um_py_memory_type, &um_py_piece_type,  &um_py_message_type, &um_py_messages_type,
        &um_py_intake_type, &um_py_stream_type, &um_py_next_type,
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        if (um_py_add_type(module, where[i], specs + i) != 0)
            return -1;
    }
    return um_py_add_slot(module) == 0 ? um_py_add_direct(module) : -1;
}

static PyMethodDef um_py_fast_functions[] = {
    {"set_python_parts", um_py_set_python_parts, METH_VARARGS, "What makes flags, types and texts of messages."},
    {"slot", um_py_make_slot, METH_VARARGS, "A Slot: owner, address of the um_py_source_t, size of messages."},
    {"forget_memory", um_py_forget_memory, METH_NOARGS, "In a child of fork(): release no batch any more."},
    {NULL},
};

/* Makes the module um_cffi._fast, once. 0; -1 when Python could not. */
static int um_py_add_fast(void)
{
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, "um_cffi._fast", "The part of the binding that is done for every message, in C.", -1,
        um_py_fast_functions,
    };
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *module = PyModule_Create(&definition);
    int result = module != NULL && um_py_add_types(module) == 0
                     ? PyDict_SetItemString(PyImport_GetModuleDict(), definition.m_name, module)
                     : -1;
    if (result != 0)
        PyErr_Print();
    Py_XDECREF(module);
    PyGILState_Release(state);
    return result;
}
