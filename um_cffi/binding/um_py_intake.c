/*
 * Where the messages of a receiver come in: taking batches from a collector, giving their messages to callbacks. Runs
 * with the GIL, except while it waits. Compiled into um_cffi.binding._native behind um_py_messages.c by build.py.
 */
#define UM_PY_SIGNAL_CHECK 256 /* calls between looks at signals, for callbacks that are not Python code */

/*
 * Where the messages of a receiver come in: takes batches, and keeps the one whose records are being given one by one,
 * to callbacks, to recv() or to loops. Whatever interrupts that, the rest is still here.
 */
typedef struct um_py_intake_stct {
    PyObject ob_base;
    um_collector_t *collector;
    atomic_int inside;          /* threads inside the collector without the GIL */
    int watched;                /* the collector's descriptor is to be readable while something is pending */
    PyObject *home;             /* of what is taken; NULL: none */
    PyObject *topics, *sources; /* lists of the names in the collector's present tables */
    uint64_t names;             /* which tables these are */
    um_py_memory_t *memory;     /* NULL: nothing is pending */
    size_t at;                  /* the record of memory that is next */
    int stopped;
} um_py_intake_t;

/* Intake(address of the um_collector_t, weak reference to the Context or nothing) */
static PyObject *um_py_intake_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    unsigned long long address;
    PyObject *home = NULL;
    if (!PyArg_ParseTuple(args, "K|O", &address, &home))
        return NULL;
    um_py_intake_t *intake = PyObject_New(um_py_intake_t, um_py_intake_type);
    if (intake == NULL)
        return NULL;
    intake->collector = (um_collector_t *)(uintptr_t)address;
    atomic_init(&intake->inside, 0);
    intake->watched = 0;
    Py_XINCREF(home);
    intake->home = home;
    intake->topics = intake->sources = NULL;
    intake->names = 0;
    intake->memory = NULL;
    intake->at = 0;
    intake->stopped = 0;
    return (PyObject *)intake;
}

/* Something is pending from now on, or nothing is. The collector lives as long as the intake is not stopped. */
static void um_py_intake_keep(const um_py_intake_t *intake)
{
    if (intake->watched && !intake->stopped)
        um_collector_keep_readable(intake->collector, intake->memory != NULL);
}

static void um_py_intake_drop(um_py_intake_t *intake)
{
    um_py_memory_t *memory = intake->memory;
    if (memory == NULL)
        return;
    intake->memory = NULL;
    um_py_intake_keep(intake);
    Py_DECREF((PyObject *)memory);
}

static void um_py_intake_dealloc(um_py_intake_t *intake)
{
    intake->stopped = 1; /* the collector may be gone */
    um_py_intake_drop(intake);
    Py_XDECREF(intake->home);
    Py_XDECREF(intake->topics);
    Py_XDECREF(intake->sources);
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

/* New lists for other tables of names; those before stay with their batches. */
static int um_py_turn_page(um_py_intake_t *intake, uint64_t names)
{
    PyObject *topics, *sources;
    if (intake->names == names)
        return 0;
    topics = PyList_New(0);
    sources = topics != NULL ? PyList_New(0) : NULL;
    if (sources == NULL) {
        Py_XDECREF(topics);
        return -1;
    }
    Py_XDECREF(intake->topics);
    Py_XDECREF(intake->sources);
    intake->topics = topics;
    intake->sources = sources;
    intake->names = names;
    return 0;
}

/* A batch, waiting for it without the GIL; NULL without exception: none in time, or stopped. */
static um_py_memory_t *um_py_take(um_py_intake_t *intake, size_t max_messages, int timeout_ms)
{
    um_batch_t *batch = NULL;
    um_py_memory_t *memory;
    if (intake->stopped)
        return NULL;
    atomic_fetch_add(&intake->inside, 1);
    PyThreadState *python = PyEval_SaveThread();
    int result = um_collector_take(intake->collector, max_messages, timeout_ms, &batch);
    atomic_fetch_sub(&intake->inside, 1); /* the collector may go from here on */
    PyEval_RestoreThread(python);
    if (result < 0)
        Py_XDECREF(PyObject_CallFunctionObjArgs(um_py_raise_last, NULL));
    if (result <= 0)
        return NULL;
    if (intake->stopped) {
        um_batch_release(batch);
        return NULL;
    }
    if (um_py_turn_page(intake, batch->names) != 0 ||
        um_py_learn(intake->topics, batch->topics, batch->topic_count) != 0 ||
        um_py_learn(intake->sources, batch->sources, batch->source_count) != 0 ||
        (memory = um_py_memory_new(intake->topics, intake->sources, intake->home)) == NULL) {
        um_batch_release(batch);
        return NULL;
    }
    memory->batch = batch;
    memory->records = batch->records;
    memory->data = batch->data;
    memory->data_len = batch->data_len;
    memory->count = batch->count;
    return memory;
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

/* Intake.fill(max_messages, timeout_ms): whether something is pending, after taking what waits, or waiting for it, if
 * nothing was. One thread at a time. */
static PyObject *um_py_intake_fill(um_py_intake_t *intake, PyObject *args)
{
    Py_ssize_t max_messages;
    int timeout_ms;
    if (!PyArg_ParseTuple(args, "ni", &max_messages, &timeout_ms))
        return NULL;
    if (intake->memory == NULL) {
        um_py_memory_t *memory = um_py_take(intake, (size_t)max_messages, timeout_ms);
        if (memory == NULL && PyErr_Occurred())
            return NULL;
        if (memory != NULL) {
            um_py_intake_drop(intake);
            intake->memory = memory;
            intake->at = 0;
            um_py_intake_keep(intake);
        }
    }
    return PyBool_FromLong(intake->memory != NULL);
}

/* The records [at, at + count) of a memory, counted from the first of them; payloads are shared. */
static um_py_memory_t *um_py_part_of(um_py_memory_t *whole, size_t at, size_t count)
{
    um_py_memory_t *part = um_py_memory_new(whole->topics, whole->sources, whole->home);
    um_record_t *records = part != NULL ? PyMem_Malloc(count * sizeof *records) : NULL;
    if (records == NULL) {
        Py_XDECREF((PyObject *)part);
        return (um_py_memory_t *)PyErr_NoMemory();
    }
    size_t start = whole->records[at].offset;
    size_t end = at + count < whole->count ? whole->records[at + count].offset : whole->data_len;
    memcpy(records, whole->records + at, count * sizeof *records);
    for (size_t i = 0; i < count; i++)
        records[i].offset -= start;
    Py_INCREF((PyObject *)whole);
    part->whole = whole;
    part->block = records;
    part->records = records;
    part->data = whole->data + start;
    part->data_len = end - start;
    part->count = count;
    return part;
}

/* Intake.part(max_messages, events): up to so many pending records (0: all) as a Memory, or None. Without events: the
 * messages up to the next event. */
static PyObject *um_py_intake_part(um_py_intake_t *intake, PyObject *args)
{
    Py_ssize_t max_messages;
    int events;
    if (!PyArg_ParseTuple(args, "np", &max_messages, &events))
        return NULL;
    um_py_memory_t *memory = intake->memory;
    size_t first = intake->at, count = 0;
    size_t most = memory == NULL ? 0 : memory->count - first;
    if (max_messages > 0 && (size_t)max_messages < most)
        most = (size_t)max_messages;
    while (count < most && (events || um_py_is_message(memory->records + first + count)))
        count++;
    if (count == 0)
        Py_RETURN_NONE;
    if (count == memory->count) {
        Py_INCREF((PyObject *)memory);
        um_py_intake_drop(intake);
        return (PyObject *)memory;
    }
    um_py_memory_t *part = um_py_part_of(memory, first, count);
    if (part != NULL && (intake->at += count) == memory->count)
        um_py_intake_drop(intake);
    return (PyObject *)part;
}

/* Intake.empty(): a Memory without records */
static PyObject *um_py_intake_empty(um_py_intake_t *intake, PyObject *unused)
{
    static const um_record_t nothing;
    if (intake->topics == NULL && um_py_turn_page(intake, UINT64_MAX) != 0)
        return NULL;
    um_py_memory_t *memory = um_py_memory_new(intake->topics, intake->sources, intake->home);
    if (memory != NULL) {
        memory->records = &nothing;
        memory->data = (const unsigned char *)&nothing;
    }
    return (PyObject *)memory;
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

/* Intake.stop(): gives no more, for good; what is pending goes, and who waits is sent away. Afterwards the collector
 * may be deleted. */
static PyObject *um_py_intake_stop(um_py_intake_t *intake, PyObject *unused)
{
    intake->stopped = 1;
    um_py_intake_drop(intake);
    PyThreadState *python = PyEval_SaveThread();
    while (atomic_load(&intake->inside) > 0) {
        um_collector_wake(intake->collector);
        sched_yield();
    }
    PyEval_RestoreThread(python);
    Py_RETURN_NONE;
}

/* Intake.forget(): as stop(), in a child of fork(), where the collector is the parent's */
static PyObject *um_py_intake_forget(um_py_intake_t *intake, PyObject *unused)
{
    intake->stopped = 1;
    um_py_intake_drop(intake);
    Py_RETURN_NONE;
}

/* Intake.watch(): from now on the collector's descriptor is readable while something is pending, too */
static PyObject *um_py_intake_watch(um_py_intake_t *intake, PyObject *unused)
{
    intake->watched = 1;
    um_py_intake_keep(intake);
    Py_RETURN_NONE;
}

static PyMethodDef um_py_intake_methods[] = {
    {"batch", (PyCFunction)um_py_intake_batch, METH_VARARGS, "Take a batch for the caller, waiting for it."},
    {"fill", (PyCFunction)um_py_intake_fill, METH_VARARGS, "Take what comes, unless something is pending still."},
    {"part", (PyCFunction)um_py_intake_part, METH_VARARGS, "What is pending, or a part of it, as a batch."},
    {"empty", (PyCFunction)um_py_intake_empty, METH_NOARGS, "A batch without records."},
    {"message", (PyCFunction)um_py_intake_message, METH_NOARGS, "The next record, if it is a message, or None."},
    {"event", (PyCFunction)um_py_intake_event, METH_NOARGS, "The next record, if it is an event, or None."},
    {"run", (PyCFunction)um_py_intake_run, METH_VARARGS, "Give messages to a callback, up to the next event."},
    {"stop", (PyCFunction)um_py_intake_stop, METH_NOARGS, "Give no more, for good."},
    {"forget", (PyCFunction)um_py_intake_forget, METH_NOARGS, "Give no more, in a child of fork()."},
    {"watch", (PyCFunction)um_py_intake_watch, METH_NOARGS, "Keep the descriptor readable while something is pending."},
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
