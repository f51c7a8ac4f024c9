/*
 * Callbacks of Python on the thread of the library that delivers: no queue and no other thread in between, and the
 * library waits for them. The type Direct is what a receiver with direct=True has instead of an intake. The library's
 * receiver has a reference to it until its deletion has returned: it and what the callbacks use live as long.
 * Compiled into um_cffi.binding._native behind um_py_streams.c by build.py; um_py_add_direct() adds the type to
 * um_cffi.binding._fast.
 */
#define UM_PY_NAMES_MAX 16384
#define UM_PY_NAME_KEPT 256

/* Names that messages refer to by their place in a list. A full list is followed by a new one; messages keep theirs. */
typedef struct um_py_names_stct {
    PyObject *list;
    PyObject *index;            /* name -> place */
    uint32_t place;             /* that was found last */
    char last[UM_PY_NAME_KEPT]; /* and the name there; empty: none, or a long one */
} um_py_names_t;

typedef struct um_py_direct_stct {
    PyObject ob_base;
    PyObject *on_message, *on_event; /* called with a Message */
    PyObject *failed;                /* called with what they raise */
    um_py_names_t topics, sources;   /* GIL */
    lbm_context_t *ctx;              /* whose receiver has a reference; NULL: none has. GIL */
    PyObject *home;                  /* a weak reference to the Context; NULL: not held yet */
} um_py_direct_t;

/* Contexts whose callbacks this thread is inside. */
typedef struct um_py_inside_stct {
    const lbm_context_t *ctx;
    const struct um_py_inside_stct *outer;
} um_py_inside_t;

static _Thread_local const um_py_inside_t *um_py_innermost;

/* Whether the calling thread is inside a direct callback of the context, of any if NULL. */
static int um_py_in_callback(lbm_context_t *ctx)
{
    const um_py_inside_t *inside = um_py_innermost;
    while (inside != NULL && ctx != NULL && inside->ctx != ctx)
        inside = inside->outer;
    return inside != NULL;
}

static PyTypeObject *um_py_direct_type;

static int um_py_names_make(um_py_names_t *names)
{
    PyObject *list = PyList_New(0), *index = PyDict_New();
    if (list == NULL || index == NULL) {
        Py_XDECREF(list);
        Py_XDECREF(index);
        return -1;
    }
    Py_XDECREF(names->list);
    Py_XDECREF(names->index);
    names->list = list;
    names->index = index;
    names->last[0] = 0;
    return 0;
}

/* The place of a name that is not in the list yet. */
static int um_py_names_add(um_py_names_t *names, PyObject *name)
{
    if (PyList_Size(names->list) >= UM_PY_NAMES_MAX && um_py_names_make(names) != 0)
        return -1;
    Py_ssize_t place = PyList_Size(names->list);
    PyObject *number = PyLong_FromSsize_t(place);
    int result = number != NULL && PyList_Append(names->list, name) == 0 ? 0 : -1;
    if (result == 0)
        result = PyDict_SetItem(names->index, name, number);
    Py_XDECREF(number);
    names->place = (uint32_t)place;
    return result;
}

/* Makes names->place that of a name; the list may be another one afterwards. 0; -1 with an exception. */
static int um_py_names_find(um_py_names_t *names, const char *text)
{
    size_t len = strlen(text);
    if (names->last[0] != 0 && strcmp(names->last, text) == 0)
        return 0;
    names->last[0] = 0;
    PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "surrogateescape");
    if (name == NULL)
        return -1;
    PyObject *known = PyDict_GetItemWithError(names->index, name); /* borrowed */
    int result = 0;
    if (known != NULL)
        names->place = (uint32_t)PyLong_AsUnsignedLong(known);
    else
        result = PyErr_Occurred() != NULL ? -1 : um_py_names_add(names, name);
    Py_DECREF(name);
    if (result == 0 && len < sizeof names->last)
        memcpy(names->last, text, len + 1);
    return result;
}

static PyObject *um_py_direct_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *on_message, *on_event, *failed;
    if (!PyArg_ParseTuple(args, "OOO", &on_message, &on_event, &failed))
        return NULL;
    um_py_direct_t *direct = PyObject_GC_New(um_py_direct_t, um_py_direct_type);
    if (direct == NULL)
        return NULL;
    PyObject *const kept[] = {on_message, on_event, failed};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        Py_INCREF(kept[i]);
    direct->on_message = on_message;
    direct->on_event = on_event;
    direct->failed = failed;
    memset(&direct->topics, 0, sizeof direct->topics);
    memset(&direct->sources, 0, sizeof direct->sources);
    direct->ctx = NULL;
    direct->home = NULL;
    PyObject_GC_Track((PyObject *)direct);
    if (um_py_names_make(&direct->topics) == 0 && um_py_names_make(&direct->sources) == 0)
        return (PyObject *)direct;
    Py_DECREF((PyObject *)direct);
    return NULL;
}

static int um_py_direct_traverse(um_py_direct_t *direct, visitproc visit, void *arg)
{
    Py_VISIT(direct->on_message);
    Py_VISIT(direct->on_event);
    Py_VISIT(direct->failed);
    Py_VISIT(direct->topics.list);
    Py_VISIT(direct->topics.index);
    Py_VISIT(direct->sources.list);
    Py_VISIT(direct->sources.index);
    Py_VISIT(direct->home);
    Py_VISIT(Py_TYPE((PyObject *)direct));
    return 0;
}

static int um_py_direct_clear(um_py_direct_t *direct)
{
    Py_CLEAR(direct->on_message);
    Py_CLEAR(direct->on_event);
    Py_CLEAR(direct->failed);
    Py_CLEAR(direct->topics.list);
    Py_CLEAR(direct->topics.index);
    Py_CLEAR(direct->sources.list);
    Py_CLEAR(direct->sources.index);
    Py_CLEAR(direct->home);
    return 0;
}

static void um_py_direct_dealloc(um_py_direct_t *direct)
{
    PyTypeObject *type = Py_TYPE((PyObject *)direct);
    PyObject_GC_UnTrack((PyObject *)direct);
    um_py_direct_clear(direct);
    PyObject_GC_Del(direct);
    Py_DECREF(type);
}

static int64_t um_py_arrival(const lbm_msg_t *msg, int32_t *flags)
{
    struct timespec now;
    if (msg->hr_timestamp.tv_sec != 0) {
        *flags |= UM_MSG_FLAG_HR_TIMESTAMP;
        return (int64_t)msg->hr_timestamp.tv_sec * 1000000000 + (int64_t)msg->hr_timestamp.tv_nsec;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The payload of a message, the number of messages that a burst tells to be lost, or nothing; returns its size. */
static size_t um_py_content(lbm_msg_t *msg, uint64_t *lost, const void **content)
{
    *content = msg->data;
    if (msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_REQUEST)
        return msg->len;
    *content = lost;
    return msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST && um_msg_lost(msg, lost) == 0 ? sizeof *lost : 0;
}

/* What a message has beside its payload; returns the flags of that. `way_back` is to be deleted if there is one. */
static int um_py_tail_of(lbm_msg_t *msg, um_record_tail_t *tail, lbm_serialized_response_t **way_back)
{
    int flags = 0;
    *tail = (um_record_tail_t){.len = 0};
    *way_back = msg->response != NULL ? lbm_serialize_response(msg->response) : NULL;
    if (*way_back != NULL) {
        tail->way_back = *way_back;
        flags |= UM_MSG_FLAG_ANSWERABLE;
    }
    if (msg->flags & UM_PY_HF)
        tail->hf_number = msg->flags & LBM_MSG_FLAG_HF_64 ? msg->hf_sequence_number.u64 : msg->hf_sequence_number.u32;
    if (msg->properties != NULL &&
        um_msg_properties_bytes(msg->properties, &tail->properties, &tail->properties_len) == 0)
        flags |= UM_MSG_FLAG_PROPERTIES;
    if (msg->channel_info != NULL) {
        tail->channel = msg->channel_info->channel_number;
        flags |= UM_MSG_FLAG_CHANNEL;
    }
    return flags;
}

/* A copy of a message: it may be kept whatever becomes of the session. */
static um_py_memory_t *um_py_copy_of(um_py_direct_t *direct, lbm_msg_t *msg)
{
    uint64_t lost;
    const void *content;
    size_t len = um_py_content(msg, &lost, &content);
    lbm_serialized_response_t *way_back;
    um_record_tail_t tail;
    um_record_t record = {.length = (uint32_t)len, .sequence_number = msg->sequence_number, .type = msg->type};
    record.flags = msg->flags | um_py_tail_of(msg, &tail, &way_back);
    record.timestamp_ns = um_py_arrival(msg, &record.flags);
    um_py_memory_t *memory = NULL;
    if (um_py_names_find(&direct->topics, msg->topic_name) == 0 &&
        um_py_names_find(&direct->sources, msg->source) == 0) {
        record.topic = direct->topics.place;
        record.source = direct->sources.place;
        memory = um_py_memory_of_one(&record, content, &tail, direct->topics.list, direct->sources.list, direct->home);
    }
    if (way_back != NULL)
        lbm_serialized_response_delete(way_back);
    return memory;
}

/* Threads of the library keep their thread state of Python between callbacks: making one takes longer than a callback.
 */
static pthread_key_t um_py_state_key;
static pthread_once_t um_py_state_once = PTHREAD_ONCE_INIT;

/* At the thread's end, when PyGILState_Release() has no place to look the state up any more. */
static void um_py_state_drop(void *state)
{
    if (Py_IsInitialized()) {
        PyEval_RestoreThread(state);
        PyThreadState_Clear(state);
        PyEval_SaveThread();
        PyThreadState_Delete(state);
    }
}

static void um_py_state_key_make(void)
{
    pthread_key_create(&um_py_state_key, um_py_state_drop);
}

static PyGILState_STATE um_py_state_enter(void)
{
    pthread_once(&um_py_state_once, um_py_state_key_make);
    if (pthread_getspecific(um_py_state_key) == NULL) {
        PyGILState_STATE first = PyGILState_Ensure();
        if (first == PyGILState_LOCKED) /* a thread of Python's own, which has one */
            return first;
        pthread_setspecific(um_py_state_key, PyEval_SaveThread());
    }
    return PyGILState_Ensure();
}

/* lbm_rcv_cb_proc of receivers with direct=True. */
static int um_py_on_direct(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (!Py_IsInitialized()) /* the exit has given up waiting for a callback, and with it this receiver */
        return 0;
    um_py_direct_t *direct = clientd;
    PyGILState_STATE python = um_py_state_enter();
    const um_py_inside_t inside = {direct->ctx, um_py_innermost};
    um_py_innermost = &inside;
    um_py_memory_t *memory = um_py_copy_of(direct, msg);
    PyObject *message = memory != NULL ? um_py_message_new(memory, 0) : NULL;
    PyObject *call = message != NULL && um_py_is_message(memory->records) ? direct->on_message : direct->on_event;
    PyObject *result = message != NULL ? PyObject_CallFunctionObjArgs(call, message, NULL) : NULL;
    if (result == NULL && um_py_report(direct->failed) != 0)
        PyErr_WriteUnraisable(call); /* one that ends programs, but here is not the program's thread */
    Py_XDECREF(result);
    Py_XDECREF(message);
    Py_XDECREF((PyObject *)memory);
    um_py_innermost = inside.outer;
    PyGILState_Release(python);
    return 0;
}

static lbm_rcv_cb_proc um_py_direct_proc(void)
{
    return um_py_on_direct;
}

/* Direct.hold(address of the context, weak reference to it): a receiver of the library is about to call back */
static PyObject *um_py_direct_hold(um_py_direct_t *direct, PyObject *args)
{
    unsigned long long ctx;
    PyObject *home;
    if (!PyArg_ParseTuple(args, "KO", &ctx, &home))
        return NULL;
    if (ctx == 0)
        return PyErr_Format(PyExc_ValueError, "no context");
    direct->ctx = (lbm_context_t *)(uintptr_t)ctx;
    Py_INCREF(home);
    Py_XDECREF(direct->home);
    direct->home = home;
    Py_INCREF((PyObject *)direct);
    Py_RETURN_NONE;
}

/* Direct.release(): that receiver is deleted, or was not made */
static PyObject *um_py_direct_release(um_py_direct_t *direct, PyObject *unused)
{
    if (direct->ctx != NULL) {
        direct->ctx = NULL;
        Py_DECREF((PyObject *)direct);
    }
    Py_RETURN_NONE;
}

static PyObject *um_py_direct_address(um_py_direct_t *direct, void *closure)
{
    return PyLong_FromVoidPtr(direct);
}

static PyMethodDef um_py_direct_methods[] = {
    {"hold", (PyCFunction)um_py_direct_hold, METH_VARARGS,
     "The library is about to call back, on a receiver of a context."},
    {"release", (PyCFunction)um_py_direct_release, METH_NOARGS, "The library does not call back any more."},
    {NULL},
};
static PyGetSetDef um_py_direct_members[] = {
    {"address", (getter)um_py_direct_address, NULL, "What the callback is told.", NULL},
    {NULL},
};
static PyType_Slot um_py_direct_slots[] = {
    {Py_tp_doc, "Where a receiver with direct callbacks gets its messages."},
    {Py_tp_new, um_py_direct_create},
    {Py_tp_dealloc, um_py_direct_dealloc},
    {Py_tp_traverse, um_py_direct_traverse},
    {Py_tp_clear, um_py_direct_clear},
    {Py_tp_methods, um_py_direct_methods},
    {Py_tp_getset, um_py_direct_members},
    {0, NULL},
};

/* 0; -1 with an exception. */
static int um_py_add_direct(PyObject *module)
{
    static PyType_Spec spec = {"um_cffi.binding._fast.Direct", sizeof(um_py_direct_t), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, um_py_direct_slots};
    return um_py_add_type(module, &um_py_direct_type, &spec);
}
