/*
 * The module um_cffi.binding._fast: what the binding does for every single message, in C. Its types and functions are
 * in the files before this one, which is compiled last into um_cffi.binding._native by build.py.
 */

/* set_python_parts(flags, type, describe, raise_last, answer, aanswer, properties, no_properties): what makes
 * MessageFlags, MessageType, texts and exceptions, what answers requests, what makes Properties, and these without any
 */
static PyObject *um_py_set_python_parts(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "OOOOOOOO", &um_py_make_flags, &um_py_make_type, &um_py_describe, &um_py_raise_last,
                          &um_py_answer, &um_py_aanswer, &um_py_make_properties, &um_py_no_properties))
        return NULL;
    Py_INCREF(um_py_make_properties);
    Py_INCREF(um_py_no_properties);
    Py_INCREF(um_py_answer);
    Py_INCREF(um_py_aanswer);
    Py_INCREF(um_py_make_flags);
    Py_INCREF(um_py_make_type);
    Py_INCREF(um_py_describe);
    Py_INCREF(um_py_raise_last);
    Py_RETURN_NONE;
}

static PyObject *um_py_forget_memory(PyObject *module, PyObject *unused)
{
    um_py_forked_again();
    Py_RETURN_NONE;
}

static int um_py_add_types(PyObject *module)
{
    static PyType_Spec specs[] = {
        {"um_cffi.binding._fast.Memory", sizeof(um_py_memory_t), 0, Py_TPFLAGS_DEFAULT, um_py_memory_slots},
        {"um_cffi.binding._fast.Piece", sizeof(um_py_piece_t), 0, Py_TPFLAGS_DEFAULT, um_py_piece_slots},
        {"um_cffi.Message", sizeof(um_py_message_t), 0, Py_TPFLAGS_DEFAULT, um_py_message_slots},
        {"um_cffi.binding._fast.Messages", sizeof(um_py_messages_t), 0, Py_TPFLAGS_DEFAULT, um_py_messages_slots},
        {"um_cffi.binding._fast.Intake", sizeof(um_py_intake_t), 0, Py_TPFLAGS_DEFAULT, um_py_intake_slots},
        {"um_cffi.binding._fast.Stream", sizeof(um_py_stream_t), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
         um_py_stream_slots},
        {"um_cffi.binding._fast.Next", sizeof(um_py_next_t), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
         um_py_next_slots},
        {"um_cffi.binding._fast.Walk", sizeof(um_py_stream_t), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
         um_py_walk_slots},
    };
    PyTypeObject **const where[] = {
        &um_py_memory_type, &um_py_piece_type,  &um_py_message_type, &um_py_messages_type,
        &um_py_intake_type, &um_py_stream_type, &um_py_next_type,    &um_py_walk_type,
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
    {"restore", um_py_restore, METH_VARARGS, "A message of its own, of what __reduce__() has told."},
    {"send_each", um_py_send_each, METH_VARARGS, "Send what an iterator gives: source, iterator, counter."},
    {"arrow_schema", um_py_arrow_schema, METH_O, "The capsule of a column's type."},
    {"arrow_array", um_py_arrow_array, METH_O, "The capsule of a column's values."},
    {"arrow_stream", um_py_arrow_stream, METH_VARARGS, "The capsule of a stream: a column, what gives the next one."},
    {"arrow_pointer", um_py_arrow_pointer, METH_VARARGS, "The address in a capsule, by the capsule's name."},
    {"arrow_views", um_py_arrow_views, METH_VARARGS, "Fill in the views of scattered payloads."},
    {"forget_memory", um_py_forget_memory, METH_NOARGS, "In a child of fork(): batches taken before are not released."},
    {NULL},
};

/* Makes the module um_cffi.binding._fast, once. 0; -1 when Python could not. */
static int um_py_add_fast(void)
{
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        "um_cffi.binding._fast",
        "The part of the binding that is done for every message, in C.",
        -1,
        um_py_fast_functions,
    };
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *module = PyModule_Create(&definition);
    um_py_restore_function = module != NULL ? PyObject_GetAttrString(module, "restore") : NULL;
    int result = um_py_restore_function != NULL && um_py_add_types(module) == 0
                     ? PyDict_SetItemString(PyImport_GetModuleDict(), definition.m_name, module)
                     : -1;
    if (result != 0)
        PyErr_Print();
    Py_XDECREF(module);
    PyGILState_Release(state);
    return result;
}
