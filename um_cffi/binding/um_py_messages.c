/*
 * The records of a taken batch as objects of Python: memory, views of it, messages. Runs with the GIL, on whichever
 * thread of Python calls. Compiled into um_cffi.binding._native behind um_py_xsp.c by build.py.
 */
#if !defined(Py_LIMITED_API) || Py_LIMITED_API + 0 < 0x03090000
#error "compile with -DPy_LIMITED_API=0x03090000, as build.py and cmake/python.cmake do"
#endif

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

/* Set once at import, never freed: there is one interpreter, guard.py sees to it. */
static PyTypeObject *um_py_memory_type, *um_py_piece_type, *um_py_message_type, *um_py_messages_type;
static PyTypeObject *um_py_intake_type, *um_py_stream_type, *um_py_next_type, *um_py_walk_type;
/* Python's part */
static PyObject *um_py_make_flags, *um_py_make_type, *um_py_describe, *um_py_raise_last, *um_py_answer, *um_py_aanswer;
static PyObject *um_py_make_properties, *um_py_no_properties;

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
static PyObject *um_py_self(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

static void um_py_gc_free(void *object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
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

/* ---- memory: a taken batch, a part of one, or the copy of one message ---- */

typedef struct um_py_memory_stct {
    PyObject ob_base;
    um_batch_t *batch;               /* NULL: a copy or a part, with its records in block */
    unsigned generation;             /* of another process: the batch is the parent's library's; left alone */
    struct um_py_memory_stct *whole; /* what this is a part of, which has the payloads; NULL: no part */
    void *block;
    const um_record_t *records;
    const unsigned char *data;
    size_t data_len, count;
    PyObject *topics, *sources; /* lists that only grow */
    PyObject *home;             /* a weak reference to the Context, for answers to requests; NULL: none */
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
    PyObject *answer;     /* what Python answers the request with, made when first needed; NULL: not yet */
    PyObject *properties; /* likewise */
} um_py_message_t;

/* um_py_plain.c */
static PyObject *um_py_message_properties(um_py_message_t *message, void *closure);
static PyObject *um_py_message_hf_number(um_py_message_t *message, void *closure);
static PyObject *um_py_message_channel(um_py_message_t *message, void *closure);
static PyObject *um_py_message_reduce(PyObject *object, PyObject *unused);

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

/* What a record takes up in the data: its payload and its tail. */
static inline size_t um_py_room_of(const um_record_t *record, const unsigned char *payload)
{
    um_record_tail_t tail;
    return record->length + (um_record_tail(record, payload, &tail) == 0 ? tail.len : 0);
}

static um_py_memory_t *um_py_memory_new(PyObject *topics, PyObject *sources, PyObject *home)
{
    um_py_memory_t *memory = PyObject_New(um_py_memory_t, um_py_memory_type);
    if (memory == NULL)
        return NULL;
    memory->batch = NULL;
    memory->generation = um_py_generation;
    memory->whole = NULL;
    memory->block = NULL;
    memory->records = NULL;
    memory->data = NULL;
    memory->data_len = memory->count = 0;
    Py_INCREF(topics);
    Py_INCREF(sources);
    Py_XINCREF(home);
    memory->topics = topics;
    memory->sources = sources;
    memory->home = home;
    return memory;
}

static void um_py_memory_dealloc(um_py_memory_t *memory)
{
    if (memory->batch != NULL && memory->generation == um_py_generation)
        um_batch_release(memory->batch);
    PyMem_Free(memory->block);
    Py_XDECREF((PyObject *)memory->whole);
    Py_DECREF(memory->topics);
    Py_DECREF(memory->sources);
    Py_XDECREF(memory->home);
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
    message->answer = NULL;
    message->properties = NULL;
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

static PyObject *um_py_memory_topics(um_py_memory_t *memory, void *closure)
{
    Py_INCREF(memory->topics);
    return memory->topics;
}

static PyObject *um_py_memory_sources(um_py_memory_t *memory, void *closure)
{
    Py_INCREF(memory->sources);
    return memory->sources;
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
    Py_XDECREF(message->answer);
    Py_XDECREF(message->properties);
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

static PyObject *um_py_message_retransmit(um_py_message_t *message, void *closure)
{
    return PyBool_FromLong(message->record->flags & (LBM_MSG_FLAG_RETRANSMIT | LBM_MSG_FLAG_OTR));
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

static PyObject *um_py_message_count(um_py_message_t *message, void *closure)
{
    uint64_t count = message->record->type == LBM_MSG_UNRECOVERABLE_LOSS;
    if (message->record->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        count = 1;
        if (message->record->length == sizeof count)
            memcpy(&count, um_py_payload(message), sizeof count);
    }
    return PyLong_FromUnsignedLongLong(count);
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
    if (old->batch != NULL || old->whole != NULL) {
        size_t len = um_py_room_of(message->record, um_py_payload(message));
        um_py_memory_t *copy = um_py_memory_new(old->topics, old->sources, old->home);
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
        copy->data_len = record->length;
        copy->count = 1;
        message->memory = copy;
        message->record = record;
        Py_DECREF((PyObject *)old);
    }
    Py_INCREF((PyObject *)message);
    return (PyObject *)message;
}

/* ---- requests that can be answered ---- */

/* The weak reference to the Context and the bytes of the way back; None: the message cannot be answered. */
static PyObject *um_py_message_way_back(um_py_message_t *message, void *closure)
{
    const um_record_t *record = message->record;
    if (!(record->flags & UM_MSG_FLAG_ANSWERABLE) || message->memory->home == NULL)
        Py_RETURN_NONE;
    const char *bytes = (const char *)um_py_payload(message) + record->length;
    PyObject *copy = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)sizeof(lbm_serialized_response_t));
    return copy != NULL ? Py_BuildValue("ON", message->memory->home, copy) : NULL;
}

static PyObject *um_py_message_answer(um_py_message_t *message, void *closure)
{
    PyObject *answer = message->answer != NULL ? message->answer : Py_None;
    Py_INCREF(answer);
    return answer;
}

static int um_py_message_set_answer(um_py_message_t *message, PyObject *answer, void *closure)
{
    PyObject *old = message->answer;
    Py_XINCREF(answer);
    message->answer = answer;
    Py_XDECREF(old);
    return 0;
}

/* respond(data, timeout=None) */
static PyObject *um_py_message_respond(PyObject *message, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"data", "timeout", NULL};
    PyObject *data, *timeout = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O", names, &data, &timeout))
        return NULL;
    return PyObject_CallFunctionObjArgs(um_py_answer, message, data, timeout, NULL);
}

static PyObject *um_py_message_arespond(PyObject *message, PyObject *data)
{
    return PyObject_CallFunctionObjArgs(um_py_aanswer, message, data, NULL);
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

/* ---- types ---- */

static PyMethodDef um_py_memory_methods[] = {
    {"message", (PyCFunction)um_py_memory_message, METH_O, "The message or event of one record."},
    {"messages", (PyCFunction)um_py_memory_messages, METH_O, "Iterate over the messages; True: over events too."},
    {NULL},
};
static PyGetSetDef um_py_memory_members[] = {
    {"data", (getter)um_py_memory_data, NULL, "A view of all payloads.", NULL},
    {"records", (getter)um_py_memory_records, NULL, "A view of all records, as bytes.", NULL},
    {"topics", (getter)um_py_memory_topics, NULL, "The list that the records' column topic refers to.", NULL},
    {"sources", (getter)um_py_memory_sources, NULL, "The list that the records' column source refers to.", NULL},
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
    {"respond", (PyCFunction)(void (*)(void))um_py_message_respond, METH_VARARGS | METH_KEYWORDS,
     "respond($self, /, data, timeout=None)\n--\n\n"
     "Answer a message of the type REQUEST with `data`; as often as you like, from any thread, also later. Waits while "
     "the connection to the requester has no room: TimedOut after `timeout` seconds (None: no bound), and inside a "
     "callback with direct=True, which must not wait, WouldBlock. That it returns says that the answer is on its way. "
     "In "
     "a coroutine await arespond() instead. InvalidOperation for a message that is no request; InvalidArgument when "
     "the "
     "context of the receiver is closed, or the requester cannot be answered (request_tcp_bind_request_port 0)."},
    {"arespond", (PyCFunction)um_py_message_arespond, METH_O,
     "arespond($self, data, /)\n--\n\n"
     "Answer with `data` as respond() does, for asyncio: waits without blocking the event loop."},
    {"__reduce__", (PyCFunction)um_py_message_reduce, METH_NOARGS,
     "__reduce__($self, /)\n--\n\nFor pickle and copy: a message of its own, which cannot be answered."},
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
     "Number of the message in its topic and session; of the last fragment if it has several. Wraps at 2**32. Where "
     "hf_number is one of 32 bits it is that, with 64 bits it is 0.",
     NULL},
    {"flags", (getter)um_py_message_flags, NULL, "How it came: retransmitted, immediate, ... (MessageFlags)", NULL},
    {"retransmit", (getter)um_py_message_retransmit, NULL,
     "Whether its source sent it again: it was kept for those who come later, or lost on its way and recovered.", NULL},
    {"properties", (getter)um_py_message_properties, NULL,
     "Named values that travel with the message (Properties); an empty mapping where it has none. They are read when "
     "first looked at, InvalidArgument if they are malformed.",
     NULL},
    {"hf_number", (getter)um_py_message_hf_number, NULL,
     "The number that its HFSource gave it, as an HFReceiver got it; None where it came without one, or to another "
     "receiver.",
     NULL},
    {"channel", (getter)um_py_message_channel, NULL,
     "The number of the channel it was sent on; None where it was sent on none, or its receiver has no `channels`.",
     NULL},
    {"_way_back", (getter)um_py_message_way_back, NULL, "Where a request came from.", NULL},
    {"_answer", (getter)um_py_message_answer, (setter)um_py_message_set_answer, "What it is answered with.", NULL},
    {"type", (getter)um_py_message_kind, NULL,
     "DATA or REQUEST, which respond() answers (MessageType); other types are events and losses, when iterating over a "
     "Batch only.",
     NULL},
    {"count", (getter)um_py_message_count, NULL,
     "Number of messages that a LOSS or BURST_LOSS stands for; 0 for everything else.", NULL},
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
     "memoryview(), struct.unpack_from() or numpy.frombuffer(). May be handed to any thread, and pickled: what another "
     "process gets is a copy, which cannot be answered. Messages are equal only to themselves: compare payloads with "
     "`message.data == b\"...\"`, or bytes(message)."},
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
