/*
 * The loops over a receiver, `for` and `async for`. Runs with the GIL, on whichever thread of Python calls.
 * Compiled into um_cffi.binding._native behind um_py_intake.c by build.py.
 */

/* The iterator of one loop: messages that wait are given by __anext__() itself, for the rest it awaits more(). The
 * iterator Walk, of `for`, has the same structure: it calls more(), which returns None at the end. */
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

/* Stream(intake, more), Walk(intake, more) */
static PyObject *um_py_stream_create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *intake, *more;
    if (!PyArg_ParseTuple(args, "O!O", um_py_intake_type, &intake, &more))
        return NULL;
    um_py_stream_t *stream = PyObject_GC_New(um_py_stream_t, type);
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

static PyObject *um_py_walk_next(um_py_stream_t *walk)
{
    if (um_py_has_message(walk->intake))
        return um_py_next(walk->intake);
    PyObject *message = PyObject_CallFunctionObjArgs(walk->more, NULL);
    if (message == Py_None) {
        Py_DECREF(message);
        return NULL;
    }
    return message;
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

static PyType_Slot um_py_walk_slots[] = {
    {Py_tp_doc, "Iterator over the messages of a receiver."},
    {Py_tp_new, um_py_stream_create},
    {Py_tp_dealloc, um_py_stream_dealloc},
    {Py_tp_traverse, um_py_stream_traverse},
    {Py_tp_clear, um_py_stream_clear},
    {Py_tp_iter, um_py_self},
    {Py_tp_iternext, um_py_walk_next},
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
