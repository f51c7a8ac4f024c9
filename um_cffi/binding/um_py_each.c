/*
 * Messages of an iterator, sent one by one as they come: nothing is gathered, so that an iterator that pauses holds
 * nothing back and one of large messages takes no memory. Runs with the GIL, which the iterator needs, and lets others
 * have it from time to time. Compiled into um_cffi.binding._native behind um_py_direct.c by build.py.
 */
#define UM_PY_EACH_LOOK 64         /* messages between looks at signals and at the clock */
#define UM_PY_EACH_TURN_NS 5000000 /* how long other threads of Python wait: as long as the interpreter lets them */

static int64_t um_py_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

/* A contiguous buffer as bytes, by way of a copy; NULL without exception when it is something else. */
static PyObject *um_py_each_copy(PyObject *message)
{
    PyObject *view = PyMemoryView_FromObject(message);
    PyObject *contiguous = view != NULL ? PyObject_GetAttrString(view, "c_contiguous") : NULL;
    PyObject *copy = contiguous == Py_True ? PyBytes_FromObject(view) : NULL;
    Py_XDECREF(contiguous);
    Py_XDECREF(view);
    PyErr_Clear();
    return copy;
}

/* 0: it is sent; -1: it is not, for whatever reason. The buffer protocol is not in the stable ABI of 3.9. */
static int um_py_each_one(um_py_source_t *state, PyObject *message)
{
    if (PyBytes_CheckExact(message))
        return um_py_try_send(state, PyBytes_AsString(message), (size_t)PyBytes_Size(message), 0);
    if (PyByteArray_CheckExact(message))
        return um_py_try_send(state, PyByteArray_AsString(message), (size_t)PyByteArray_Size(message), 0);
    if (Py_TYPE(message) == um_py_message_type) {
        const um_py_message_t *received = (um_py_message_t *)message;
        return um_py_try_send(state, (const char *)um_py_payload(received), received->record->length, 0);
    }
    PyObject *copy = um_py_each_copy(message);
    int result = copy != NULL ? um_py_try_send(state, PyBytes_AsString(copy), (size_t)PyBytes_Size(copy), 0) : -1;
    Py_XDECREF(copy);
    return result;
}

/* Signals are handled; other threads have their turn when it is time. 0; -1 with an exception. */
static int um_py_each_pause(int64_t *since)
{
    if (PyErr_CheckSignals() != 0)
        return -1;
    int64_t now = um_py_monotonic_ns();
    if (now - *since < UM_PY_EACH_TURN_NS)
        return 0;
    PyThreadState *python = PyEval_SaveThread();
    PyEval_RestoreThread(python);
    *since = um_py_monotonic_ns();
    return 0;
}

/*
 * send_each(address of the um_py_source_t, iterator, address of a size_t): sends what the iterator gives and counts it.
 * (): the iterator has ended; (message,): this one is Python's to send, because it is of another kind, there is no room
 * for it or sending failed.
 */
static PyObject *um_py_send_each(PyObject *module, PyObject *args)
{
    unsigned long long address, counter;
    PyObject *iterator, *message;
    if (!PyArg_ParseTuple(args, "KOK", &address, &iterator, &counter))
        return NULL;
    um_py_source_t *state = (um_py_source_t *)(uintptr_t)address;
    size_t *sent = (size_t *)(uintptr_t)counter;
    int64_t since = um_py_monotonic_ns();
    for (unsigned done = 1; (message = PyIter_Next(iterator)) != NULL; done++) {
        if (um_py_each_one(state, message) != 0) {
            PyObject *left = PyTuple_New(1);
            if (left == NULL || PyTuple_SetItem(left, 0, message) != 0) {
                Py_XDECREF(left);
                return NULL;
            }
            return left;
        }
        ++*sent;
        Py_DECREF(message);
        if (done % UM_PY_EACH_LOOK == 0 && um_py_each_pause(&since) != 0)
            return NULL;
    }
    return PyErr_Occurred() ? NULL : PyTuple_New(0);
}
