/*
 * Callbacks of Python on the thread of the library that delivers: no queue and no other thread in between, and the
 * library waits for them. The type Direct is what a receiver with direct=True has instead of an intake.
 * Compiled into um_cffi._native behind _fast.c by _build.py; um_py_add_direct() adds the type to um_cffi._fast.
 */
typedef struct um_py_direct_stct {
    PyObject ob_base;
    PyObject *on_message, *on_event; /* called with a Message */
    PyObject *failed;                /* called with what they raise */
    PyObject *topics, *sources;      /* lists of the names seen; GIL */
    uint32_t topic, source;          /* places of the last ones in them */
} um_py_direct_t;

static PyTypeObject *um_py_direct_type;

static PyObject *um_py_direct_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *on_message, *on_event, *failed, *topics, *sources;
    if (!PyArg_ParseTuple(args, "OOOO!O!", &on_message, &on_event, &failed, &PyList_Type, &topics, &PyList_Type,
                          &sources))
        return NULL;
    um_py_direct_t *direct = PyObject_GC_New(um_py_direct_t, um_py_direct_type);
    if (direct == NULL)
        return NULL;
    PyObject *const kept[] = {on_message, on_event, failed, topics, sources};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        Py_INCREF(kept[i]);
    direct->on_message = on_message;
    direct->on_event = on_event;
    direct->failed = failed;
    direct->topics = topics;
    direct->sources = sources;
    direct->topic = direct->source = 0;
    PyObject_GC_Track((PyObject *)direct);
    return (PyObject *)direct;
}

static int um_py_direct_traverse(um_py_direct_t *direct, visitproc visit, void *arg)
{
    Py_VISIT(direct->on_message);
    Py_VISIT(direct->on_event);
    Py_VISIT(direct->failed);
    Py_VISIT(direct->topics);
    Py_VISIT(direct->sources);
    Py_VISIT(Py_TYPE((PyObject *)direct));
    return 0;
}

static int um_py_direct_clear(um_py_direct_t *direct)
{
    Py_CLEAR(direct->on_message);
    Py_CLEAR(direct->on_event);
    Py_CLEAR(direct->failed);
    Py_CLEAR(direct->topics);
    Py_CLEAR(direct->sources);
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

/* The place of a name in a list, which it is appended to when it is new. 0; -1 with an exception. */
static int um_py_place(PyObject *names, const char *text, uint32_t *place)
{
    Py_ssize_t count = PyList_Size(names);
    PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
    if (name == NULL)
        return -1;
    Py_ssize_t at = *place < (uint32_t)count ? (Py_ssize_t)*place : 0;
    for (Py_ssize_t i = 0; i < count; i++, at = at + 1 == count ? 0 : at + 1) {
        if (PyUnicode_Compare(PyList_GetItem(names, at), name) == 0) {
            *place = (uint32_t)at;
            Py_DECREF(name);
            return 0;
        }
    }
    int result = PyList_Append(names, name);
    *place = (uint32_t)count;
    Py_DECREF(name);
    return result;
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

/* A copy of a message: it may be kept whatever becomes of the session. */
static um_py_memory_t *um_py_copy_of(um_py_direct_t *direct, const lbm_msg_t *msg)
{
    size_t len = msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_REQUEST ? msg->len : 0;
    um_record_t *record = PyMem_Malloc(sizeof *record + len);
    um_py_memory_t *memory = record != NULL ? um_py_memory_new(direct->topics, direct->sources) : NULL;
    if (memory == NULL || um_py_place(direct->topics, msg->topic_name, &direct->topic) != 0 ||
        um_py_place(direct->sources, msg->source, &direct->source) != 0) {
        PyMem_Free(record);
        Py_XDECREF((PyObject *)memory);
        return NULL;
    }
    *record = (um_record_t){.length = (uint32_t)len, .sequence_number = msg->sequence_number, .flags = msg->flags};
    record->type = msg->type;
    record->topic = direct->topic;
    record->source = direct->source;
    record->timestamp_ns = um_py_arrival(msg, &record->flags);
    if (len > 0)
        memcpy(record + 1, msg->data, len);
    memory->block = record;
    memory->records = record;
    memory->data = (const unsigned char *)(record + 1);
    memory->data_len = len;
    memory->count = 1;
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
    um_py_direct_t *direct = clientd;
    PyGILState_STATE python = um_py_state_enter();
    um_py_memory_t *memory = um_py_copy_of(direct, msg);
    PyObject *message = memory != NULL ? um_py_message_new(memory, 0) : NULL;
    PyObject *call = message != NULL && um_py_is_message(memory->records) ? direct->on_message : direct->on_event;
    PyObject *result = message != NULL ? PyObject_CallFunctionObjArgs(call, message, NULL) : NULL;
    if (result == NULL && um_py_report(direct->failed) != 0)
        PyErr_WriteUnraisable(call); /* one that ends programs, but here is not the program's thread */
    Py_XDECREF(result);
    Py_XDECREF(message);
    Py_XDECREF((PyObject *)memory);
    PyGILState_Release(python);
    return 0;
}

static lbm_rcv_cb_proc um_py_direct_proc(void)
{
    return um_py_on_direct;
}

static PyObject *um_py_direct_address(um_py_direct_t *direct, void *closure)
{
    return PyLong_FromVoidPtr(direct);
}

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
    {Py_tp_getset, um_py_direct_members},
    {0, NULL},
};

/* 0; -1 with an exception. */
static int um_py_add_direct(PyObject *module)
{
    static PyType_Spec spec = {"um_cffi._fast.Direct", sizeof(um_py_direct_t), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, um_py_direct_slots};
    return um_py_add_type(module, &um_py_direct_type, &spec);
}
