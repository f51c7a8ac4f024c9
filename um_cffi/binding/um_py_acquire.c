/*
 * Messages written where they lie in shared memory: the type Slot, a buffer that is always the message acquired last,
 * and the views that Source.acquire() hands out. Runs with the GIL; without it only while waiting for receivers.
 * Compiled into um_cffi.binding._native behind um_py_streams.c by build.py; um_py_add_slot() adds the type to
 * um_cffi.binding._fast.
 */

/*
 * A view counts in state->exports until it is released. While one is left nothing is published, given back or unmapped,
 * so that no view ever shows memory that is not its message any more.
 */
typedef struct um_py_slot_stct {
    PyObject ob_base;
    PyObject *owner; /* keeps state alive */
    um_py_source_t *state;
    unsigned char *data; /* the message acquired last through this slot; of state->published == published only */
    size_t len;
    uint64_t published;
    size_t size;      /* of a message, unless acquire() says otherwise */
    PyObject **views; /* memoryviews handed out, released by complete() */
    size_t view_count, view_room;
} um_py_slot_t;

#define UM_PY_ACQUIRE_SLICE_MS 100 /* longest wait without a look at signals */

static PyTypeObject *um_py_slot_type;
static PyObject *um_py_release_view; /* memoryview.release; stays */

/* Part of the stable ABI since 3.10; 3.9, which changes no more, has the same calls, see UM_PY_BF_GETBUFFER. */
#define UM_PY_METH_FASTCALL 0x0080

/* slot(owner, address of the um_py_source_t, size) */
static PyObject *um_py_make_slot(PyObject *module, PyObject *args)
{
    PyObject *owner;
    unsigned long long address;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "OKn", &owner, &address, &size))
        return NULL;
    um_py_slot_t *slot = PyObject_New(um_py_slot_t, um_py_slot_type);
    if (slot == NULL)
        return NULL;
    Py_INCREF(owner);
    slot->owner = owner;
    slot->state = (um_py_source_t *)(uintptr_t)address;
    slot->data = NULL;
    slot->len = 0;
    slot->published = 0;
    slot->size = (size_t)size;
    slot->views = NULL;
    slot->view_count = slot->view_room = 0;
    return (PyObject *)slot;
}

static void um_py_slot_dealloc(um_py_slot_t *slot)
{
    PyMem_Free(slot->views); /* empty: each of them would keep the slot alive */
    Py_DECREF(slot->owner);
    um_py_free(slot);
}

static inline int um_py_slot_filled(const um_py_slot_t *slot)
{
    return slot->data != NULL && slot->published == slot->state->published && !slot->state->sealed;
}

static Py_ssize_t um_py_slot_length(um_py_slot_t *slot)
{
    return um_py_slot_filled(slot) ? (Py_ssize_t)slot->len : 0;
}

static int um_py_slot_bool(PyObject *slot)
{
    return 1;
}

/* A writable view of the message acquired last. */
static int um_py_slot_view(um_py_slot_t *slot, um_py_buffer_t *view, int flags)
{
    static char bytes_format[] = "B";
    if (!um_py_slot_filled(slot)) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "no message is acquired: call acquire() first");
        return -1;
    }
    Py_INCREF((PyObject *)slot);
    *view = (um_py_buffer_t){
        .buf = slot->data, .obj = (PyObject *)slot, .len = (Py_ssize_t)slot->len, .itemsize = 1, .ndim = 1};
    view->format = flags & UM_PY_BUF_FORMAT ? bytes_format : NULL;
    view->shape = flags & UM_PY_BUF_ND ? &view->len : NULL;
    view->strides = flags & UM_PY_BUF_STRIDES ? &view->itemsize : NULL;
    slot->state->exports++;
    return 0;
}

static void um_py_slot_release(um_py_slot_t *slot, um_py_buffer_t *view)
{
    slot->state->exports--;
}

/* Raises what lbm_errnum() says. */
static PyObject *um_py_raise(void)
{
    Py_XDECREF(PyObject_CallFunctionObjArgs(um_py_raise_last, NULL));
    return NULL;
}

/* ---- acquiring ---- */

/* Whether anything can be acquired from the source. */
static int um_py_slot_usable(const um_py_source_t *state)
{
    if (!state->sealed && state->generation == um_py_generation)
        return 1;
    lbm_seterr(LBM_EINVAL, state->sealed ? "the source is closed" : "the source was made before fork()");
    return 0;
}

/* The session is this source's until um_py_turn_over(): 0; -1 while another source has messages acquired. */
static int um_py_turn_take(um_py_source_t *state)
{
    um_py_turn_t *turn = state->turn;
    const void *other;
    while (!um_py_turn_try(turn, state, &other) && other != state) {
        if (other != turn) {
            lbm_seterr(LBM_EOP,
                       "another source of the same LBT-SMX session has acquired messages that are not complete");
            return -1;
        }
        PyThreadState *python = PyEval_SaveThread(); /* somebody sends, and may want the GIL afterwards */
        pthread_mutex_lock(&turn->lock);
        pthread_mutex_unlock(&turn->lock);
        PyEval_RestoreThread(python);
        if (!um_py_slot_usable(state))
            return -1;
    }
    return 0;
}

/* One attempt: 0; -1 as lbm_src_buff_acquire() with LBM_SRC_NONBLOCK. The session stays with the source until what has
 * been acquired is complete. */
static int um_py_try_acquire(um_py_source_t *state, void **data, size_t len)
{
    if (!um_py_slot_usable(state) || (state->acquired == 0 && um_py_turn_take(state) != 0))
        return -1;
    int result = lbm_src_buff_acquire(state->src, data, len, LBM_SRC_NONBLOCK);
    if (result == 0)
        state->acquired++;
    else if (state->acquired == 0)
        um_py_turn_over(state->turn);
    return result;
}

/* Waits for room without the GIL, in slices between which signals are handled. 0; -1 with an exception. */
static int um_py_acquire_slowly(um_py_source_t *state, void **data, size_t len)
{
    for (unsigned spins = 0;;) {
        struct timespec deadline;
        um_py_deadline(&deadline, UM_PY_ACQUIRE_SLICE_MS);
        pthread_mutex_lock(&state->lock);
        uint64_t seen = state->wakeups;
        pthread_mutex_unlock(&state->lock);
        if (um_py_try_acquire(state, data, len) == 0)
            return 0;
        if (lbm_errnum() != LBM_EWOULDBLOCK)
            return um_py_raise(), -1;
        PyThreadState *python = PyEval_SaveThread();
        um_py_await_room(state, seen, &deadline, &spins);
        PyEval_RestoreThread(python);
        if (PyErr_CheckSignals() != 0)
            return -1;
    }
}

/* The next message; `wait` says whether to wait for room. 0; -1 with an exception. */
static int um_py_slot_next(um_py_slot_t *slot, size_t len, int wait)
{
    void *data;
    if (um_py_try_acquire(slot->state, &data, len) != 0) {
        if (!wait || lbm_errnum() != LBM_EWOULDBLOCK)
            return um_py_raise(), -1;
        if (um_py_acquire_slowly(slot->state, &data, len) != 0)
            return -1;
    }
    slot->data = data;
    slot->len = len;
    slot->published = slot->state->published;
    return 0;
}

/* A size to be acquired; below 0 it is for the caller to refuse. 0; -1 with an exception. */
static int um_py_acquire_size(PyObject *given, Py_ssize_t *size)
{
    *size = PyNumber_AsSsize_t(given, NULL);
    if (*size != -1 || !PyErr_Occurred())
        return 0;
    PyErr_Clear();
    PyObject *text = PyObject_Repr(given);
    PyObject *bytes = text != NULL ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    if (bytes != NULL) {
        lbm_seterrf(LBM_EINVAL, "acquire() of %.60s bytes: must be a whole number, 0 or more", PyBytes_AsString(bytes));
        um_py_raise();
    }
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    return -1;
}

/* Arguments (size, wait) of what acquires, as vectorcall gives them. 0; -1 with an exception. */
static int um_py_acquire_arguments(PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t *size,
                                   int *wait)
{
    PyObject *given[2] = {NULL, NULL};
    if (count > 2)
        return PyErr_Format(PyExc_TypeError, "acquire() takes at most 2 arguments (%zd given)", count), -1;
    for (Py_ssize_t at = 0; at < count; at++)
        given[at] = args[at];
    for (Py_ssize_t at = 0, named = names != NULL ? PyTuple_Size(names) : 0; at < named; at++) {
        PyObject *name = PyTuple_GetItem(names, at);
        int which = PyUnicode_CompareWithASCIIString(name, "size") == 0 ? 0 : 1;
        if (which == 1 && PyUnicode_CompareWithASCIIString(name, "wait") != 0)
            return PyErr_Format(PyExc_TypeError, "acquire() got an unexpected keyword argument '%U'", name), -1;
        if (given[which] != NULL)
            return PyErr_Format(PyExc_TypeError, "acquire() got multiple values for argument '%U'", name), -1;
        given[which] = args[count + at];
    }
    if (given[0] != NULL && um_py_acquire_size(given[0], size) != 0)
        return -1;
    return given[1] != NULL && (*wait = PyObject_IsTrue(given[1])) < 0 ? -1 : 0;
}

/* The next message by the arguments of acquire(). 0; -1 with an exception. */
static int um_py_slot_next_by(um_py_slot_t *slot, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t size = (Py_ssize_t)slot->size;
    int wait = 1;
    if ((count > 0 || names != NULL) && um_py_acquire_arguments(args, count, names, &size, &wait) != 0)
        return -1;
    if (size < 0) {
        lbm_seterrf(LBM_EINVAL, "acquire() of %zd bytes: must be 0 or more", size);
        return um_py_raise(), -1;
    }
    return um_py_slot_next(slot, (size_t)size, wait);
}

/* Slot.acquire(size, wait): the slot is the next message now */
static PyObject *um_py_slot_acquire(um_py_slot_t *slot, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    if (um_py_slot_next_by(slot, args, count, names) != 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Room to remember one more view. 0; -1 with an exception. */
static int um_py_slot_reserve(um_py_slot_t *slot)
{
    if (slot->view_count < slot->view_room)
        return 0;
    size_t room = slot->view_room > 0 ? 2 * slot->view_room : 4;
    PyObject **views = PyMem_Realloc(slot->views, room * sizeof *views);
    if (views == NULL)
        return PyErr_NoMemory(), -1;
    slot->views = views;
    slot->view_room = room;
    return 0;
}

/* Slot._view(size, wait): the next message as a memoryview that complete() releases */
static PyObject *um_py_slot_make_view(um_py_slot_t *slot, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    if (um_py_slot_next_by(slot, args, count, names) != 0)
        return NULL;
    PyObject *view = PyMemoryView_FromObject((PyObject *)slot); /* collects garbage, which may run Python */
    if (view == NULL)
        return NULL;
    if (um_py_slot_reserve(slot) != 0) {
        Py_DECREF(view);
        return NULL;
    }
    Py_INCREF(view);
    slot->views[slot->view_count++] = view;
    return view;
}

static void um_py_give_back(um_py_source_t *state)
{
    lbm_src_buffs_cancel(state->src);
    state->acquired = 0;
    state->published++;
    um_py_turn_over(state->turn);
}

/* As many messages as there is room for side by side, at most count. *stride is from one to the next. */
static size_t um_py_acquire_run(um_py_source_t *state, size_t count, size_t len, unsigned char **first, size_t *stride)
{
    size_t got = 0;
    *stride = len;
    while (got < count) {
        void *data;
        if (um_py_try_acquire(state, &data, len) != 0)
            break;
        if (got == 0)
            *first = data;
        else if (got == 1 && (unsigned char *)data > *first)
            *stride = (size_t)((unsigned char *)data - *first);
        if ((unsigned char *)data != *first + got * *stride)
            return um_py_give_back(state), um_py_acquire_run(state, got, len, first, stride); /* the ring's end */
        got++;
    }
    return got;
}

/* Slot.rows(count, size, wait): (messages acquired, bytes from one to the next, memoryview of all of them) */
static PyObject *um_py_slot_rows(um_py_slot_t *slot, PyObject *args)
{
    um_py_source_t *state = slot->state;
    Py_ssize_t count, size;
    int wait;
    if (!PyArg_ParseTuple(args, "nnp", &count, &size, &wait))
        return NULL;
    if (state->acquired > 0) {
        lbm_seterr(LBM_EOP, "rows are acquired by themselves: complete() or cancel() what has been acquired before");
        return um_py_raise();
    }
    size_t len = (size_t)size, stride;
    unsigned char *first;
    size_t got = um_py_acquire_run(state, (size_t)count, len, &first, &stride);
    if (got == 0) { /* not even one: wait for it, then see how many there are */
        if (!wait || lbm_errnum() != LBM_EWOULDBLOCK)
            return um_py_raise();
        if (um_py_slot_next(slot, len, 1) != 0)
            return NULL;
        um_py_give_back(state);
        got = um_py_acquire_run(state, (size_t)count, len, &first, &stride);
        if (got == 0)
            return um_py_raise();
    }
    slot->data = first;
    slot->len = (got - 1) * stride + len;
    slot->published = state->published;
    PyObject *view = PyMemoryView_FromObject((PyObject *)slot);
    PyObject *result = view != NULL ? Py_BuildValue("nnO", (Py_ssize_t)got, (Py_ssize_t)stride, view) : NULL;
    Py_XDECREF(view);
    return result;
}

/* ---- publishing ---- */

/* 0; -1 with an exception when somebody looks at the memory. */
static int um_py_slot_unseen(const um_py_slot_t *slot)
{
    if (slot->state->exports == 0)
        return 0;
    PyErr_Format(PyExc_BufferError,
                 "%zu views of acquired messages are in use, such as numpy arrays, casts and slices: delete or "
                 "release() them before complete(), cancel() or close(); nothing has been published",
                 slot->state->exports);
    return -1;
}

/* Drops the released views, which may run Python by way of weak references. */
static void um_py_slot_forget(um_py_slot_t *slot)
{
    PyObject **views = slot->views;
    size_t count = slot->view_count, room = slot->view_room;
    slot->views = NULL;
    slot->view_count = slot->view_room = 0;
    for (size_t at = 0; at < count; at++)
        Py_DECREF(views[at]);
    if (slot->views != NULL) {
        PyMem_Free(views);
    } else {
        slot->views = views;
        slot->view_room = room;
    }
}

/* Releases the views handed out. 0; -1 with an exception when somebody still looks at the memory. */
static int um_py_slot_revoke(um_py_slot_t *slot)
{
    PyObject *type, *error, *traceback;
    for (size_t at = 0; at < slot->view_count; at++) {
        PyObject *result = PyObject_CallFunctionObjArgs(um_py_release_view, slot->views[at], NULL);
        if (result == NULL) { /* BufferError: something was made of it; counted below */
            PyErr_Fetch(&type, &error, &traceback);
            Py_XDECREF(type);
            Py_XDECREF(error);
            Py_XDECREF(traceback);
        }
        Py_XDECREF(result);
    }
    if (um_py_slot_unseen(slot) != 0)
        return -1;
    um_py_slot_forget(slot);
    return um_py_slot_unseen(slot);
}

/* Slot.complete(): publishes what the source has acquired; returns how many messages */
static PyObject *um_py_slot_complete(um_py_slot_t *slot, PyObject *unused)
{
    um_py_source_t *state = slot->state;
    if ((state->exports > 0 || slot->view_count > 0) && um_py_slot_revoke(slot) != 0)
        return NULL;
    size_t count = state->acquired;
    if (!um_py_slot_usable(state))
        return um_py_raise();
    if (count > 0) {
        lbm_src_buffs_complete(state->src);
        state->acquired = 0;
        state->published++;
        um_py_turn_over(state->turn);
    }
    return PyLong_FromSize_t(count);
}

/* Slot.cancel(): gives back what the source has acquired, unpublished; returns how many messages */
static PyObject *um_py_slot_cancel(um_py_slot_t *slot, PyObject *unused)
{
    um_py_source_t *state = slot->state;
    if (um_py_slot_revoke(slot) != 0)
        return NULL;
    size_t count = state->acquired;
    if (count > 0 && um_py_slot_usable(state))
        um_py_give_back(state);
    return PyLong_FromSize_t(count);
}

/* Slot.seal(): gives back what has been acquired; nothing can be acquired any more */
static PyObject *um_py_slot_seal(um_py_slot_t *slot, PyObject *unused)
{
    PyObject *count = um_py_slot_cancel(slot, NULL);
    if (count != NULL)
        slot->state->sealed = 1;
    return count;
}

/* Slot.unseal(): the source goes on living after all */
static PyObject *um_py_slot_unseal(um_py_slot_t *slot, PyObject *unused)
{
    slot->state->sealed = 0;
    Py_RETURN_NONE;
}

static PyObject *um_py_slot_acquired(um_py_slot_t *slot, void *closure)
{
    return PyLong_FromSize_t(slot->state->acquired);
}

static PyMethodDef um_py_slot_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))um_py_slot_acquire, UM_PY_METH_FASTCALL | METH_KEYWORDS,
     "acquire($self, size=..., wait=True)\n--\n\n"
     "Acquire the next message, of `size` bytes (those of the slot): the slot is its buffer from now on. Waits for "
     "room, handling signals; WouldBlock instead without `wait`. InvalidArgument when it is too long or the source is "
     "closed, InvalidOperation when what has been acquired fills the window."},
    {"complete", (PyCFunction)um_py_slot_complete, METH_NOARGS,
     "complete($self, /)\n--\n\n"
     "Publish all messages that the source has acquired; returns their number. BufferError, and nothing is published, "
     "while a view of one is in use. InvalidArgument when the source is closed."},
    {"cancel", (PyCFunction)um_py_slot_cancel, METH_NOARGS,
     "cancel($self, /)\n--\n\n"
     "Give back all messages that the source has acquired, unpublished; returns their number. BufferError while a view "
     "of one is in use."},
    {"_view", (PyCFunction)(void (*)(void))um_py_slot_make_view, UM_PY_METH_FASTCALL | METH_KEYWORDS,
     "Acquire; a memoryview that complete() releases."},
    {"_rows", (PyCFunction)um_py_slot_rows, METH_VARARGS, "Acquire several: number, stride, memoryview."},
    {"_seal", (PyCFunction)um_py_slot_seal, METH_NOARGS, "Cancel, and acquire no more."},
    {"_unseal", (PyCFunction)um_py_slot_unseal, METH_NOARGS, "Acquire again."},
    {NULL},
};
static PyGetSetDef um_py_slot_members[] = {
    {"acquired", (getter)um_py_slot_acquired, NULL,
     "Messages that the source has acquired and not completed, through any slot.", NULL},
    {NULL},
};
static PyType_Slot um_py_slot_slots[] = {
    {Py_tp_doc, "A buffer in shared memory: the message acquired last. Made by Source.slot().\n\n"
                "It is writable, for struct.pack_into(), memoryview() or numpy.frombuffer(), and stays one object "
                "whatever message it is, which is cheaper than a view for each. len() is the size of the message, 0 "
                "when there is none. Views made of it must be gone when complete() is called. Any thread, one at a "
                "time."},
    {Py_tp_new, um_py_refuse_new},
    {Py_tp_dealloc, um_py_slot_dealloc},
    {Py_tp_methods, um_py_slot_methods},
    {Py_tp_getset, um_py_slot_members},
    {Py_sq_length, um_py_slot_length},
    {Py_nb_bool, um_py_slot_bool},
    {UM_PY_BF_GETBUFFER, um_py_slot_view},
    {UM_PY_BF_RELEASEBUFFER, um_py_slot_release},
    {0, NULL},
};

/* 0; -1 with an exception. */
static int um_py_add_slot(PyObject *module)
{
    static PyType_Spec spec = {"um_cffi.Slot", sizeof(um_py_slot_t), 0, Py_TPFLAGS_DEFAULT, um_py_slot_slots};
    um_py_release_view = PyObject_GetAttrString((PyObject *)&PyMemoryView_Type, "release");
    return um_py_release_view != NULL ? um_py_add_type(module, &um_py_slot_type, &spec) : -1;
}
