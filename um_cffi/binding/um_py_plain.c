/*
 * Messages that do not come out of a batch: copies made in a direct callback or by pickle; and what few messages have
 * beside their payload, in the tails of their records. Runs with the GIL. Compiled into um_cffi.binding._native behind
 * um_py_messages.c by build.py.
 */
#define UM_PY_HF (LBM_MSG_FLAG_HF_32 | LBM_MSG_FLAG_HF_64)

/* ---- one record with memory of its own ---- */

static size_t um_py_tail_len(int flags, const um_record_tail_t *tail)
{
    size_t len = flags & UM_MSG_FLAG_ANSWERABLE ? sizeof(lbm_serialized_response_t) : 0;
    len += flags & UM_PY_HF ? sizeof tail->hf_number : 0;
    len += flags & UM_MSG_FLAG_CHANNEL ? sizeof tail->channel : 0;
    return len + (flags & UM_MSG_FLAG_PROPERTIES ? sizeof(uint64_t) + tail->properties_len : 0);
}

/* As collectors write it: what um_record_tail() reads. */
static void um_py_tail_put(char *at, int flags, const um_record_tail_t *tail)
{
    uint64_t len = tail->properties_len;
    if (flags & UM_MSG_FLAG_ANSWERABLE) {
        memcpy(at, tail->way_back, sizeof(lbm_serialized_response_t));
        at += sizeof(lbm_serialized_response_t);
    }
    if (flags & UM_PY_HF) {
        memcpy(at, &tail->hf_number, sizeof tail->hf_number);
        at += sizeof tail->hf_number;
    }
    if (flags & UM_MSG_FLAG_PROPERTIES) {
        memcpy(at, &len, sizeof len);
        memcpy(at + sizeof len, tail->properties, tail->properties_len);
        at += sizeof len + tail->properties_len;
    }
    if (flags & UM_MSG_FLAG_CHANNEL)
        memcpy(at, &tail->channel, sizeof tail->channel);
}

/* A memory of one record, with the payload and the tail that its flags tell of. NULL with an exception. */
static um_py_memory_t *um_py_memory_of_one(const um_record_t *record, const void *payload, const um_record_tail_t *tail,
                                           PyObject *topics, PyObject *sources, PyObject *home)
{
    size_t len = record->length;
    um_py_memory_t *memory = um_py_memory_new(topics, sources, home);
    um_record_t *block =
        memory != NULL ? PyMem_Malloc(sizeof *block + len + um_py_tail_len(record->flags, tail)) : NULL;
    if (block == NULL) {
        Py_XDECREF((PyObject *)memory);
        return (um_py_memory_t *)PyErr_NoMemory();
    }
    *block = *record;
    if (len > 0)
        memcpy(block + 1, payload, len);
    um_py_tail_put((char *)(block + 1) + len, record->flags, tail);
    memory->block = block;
    memory->records = block;
    memory->data = (const unsigned char *)(block + 1);
    memory->data_len = len;
    memory->count = 1;
    return memory;
}

/* ---- properties, the channel, and the number of hot failover ---- */

static PyObject *um_py_message_hf_number(um_py_message_t *message, void *closure)
{
    um_record_tail_t tail;
    if (!(message->record->flags & UM_PY_HF) || um_record_tail(message->record, um_py_payload(message), &tail) != 0)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(tail.hf_number);
}

static PyObject *um_py_message_channel(um_py_message_t *message, void *closure)
{
    um_record_tail_t tail;
    if (!(message->record->flags & UM_MSG_FLAG_CHANNEL) ||
        um_record_tail(message->record, um_py_payload(message), &tail) != 0)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(tail.channel);
}

static PyObject *um_py_message_properties(um_py_message_t *message, void *closure)
{
    um_record_tail_t tail;
    PyObject *properties = message->properties;
    if (properties == NULL && message->record->flags & UM_MSG_FLAG_PROPERTIES &&
        um_record_tail(message->record, um_py_payload(message), &tail) == 0) {
        PyObject *bytes = PyBytes_FromStringAndSize(tail.properties, (Py_ssize_t)tail.properties_len);
        if (bytes == NULL)
            return NULL;
        properties = PyObject_CallFunctionObjArgs(um_py_make_properties, bytes, NULL);
        Py_DECREF(bytes);
        if (properties == NULL)
            return NULL;
        Py_XDECREF(message->properties); /* another thread may have been as fast */
        message->properties = properties;
    }
    if (properties == NULL)
        properties = um_py_no_properties;
    Py_INCREF(properties);
    return properties;
}

/* ---- messages as plain data, for pickle and copy ---- */

static PyObject *um_py_restore_function; /* restore() of the module; set once at import */

/* A message of its own: payload, topic, source, sequence number, flags, type, arrival, hot failover number, bytes of
 * properties, channel. Nobody waits for its answer. */
static PyObject *um_py_restore(PyObject *module, PyObject *args)
{
    PyObject *data, *topic, *source;
    unsigned long sequence_number;
    unsigned long long hf_number = 0;
    int flags, type;
    long long timestamp_ns;
    PyObject *properties = Py_None;
    unsigned long channel = 0;
    if (!PyArg_ParseTuple(args, "SUUkiiL|KOk", &data, &topic, &source, &sequence_number, &flags, &type, &timestamp_ns,
                          &hf_number, &properties, &channel))
        return NULL;
    if (properties != Py_None && !PyBytes_Check(properties))
        return PyErr_Format(PyExc_TypeError, "properties of the type %R", (PyObject *)Py_TYPE(properties));
    PyObject *topics = Py_BuildValue("[O]", topic), *sources = Py_BuildValue("[O]", source), *message = NULL;
    um_record_tail_t tail = {.hf_number = hf_number, .channel = (uint32_t)channel};
    if (properties != Py_None) {
        tail.properties = PyBytes_AsString(properties);
        tail.properties_len = (size_t)PyBytes_Size(properties);
    }
    um_record_t record = {.length = (uint32_t)PyBytes_Size(data), .sequence_number = (uint32_t)sequence_number};
    record.flags = flags & ~(UM_MSG_FLAG_ANSWERABLE | (tail.properties == NULL ? UM_MSG_FLAG_PROPERTIES : 0));
    record.type = type;
    record.timestamp_ns = timestamp_ns;
    um_py_memory_t *memory = NULL;
    if (topics != NULL && sources != NULL)
        memory = um_py_memory_of_one(&record, PyBytes_AsString(data), &tail, topics, sources, NULL);
    if (memory != NULL)
        message = um_py_message_new(memory, 0);
    Py_XDECREF((PyObject *)memory);
    Py_XDECREF(topics);
    Py_XDECREF(sources);
    return message;
}

static PyObject *um_py_message_reduce(PyObject *object, PyObject *unused)
{
    um_py_message_t *message = (um_py_message_t *)object;
    const um_record_t *record = message->record;
    um_record_tail_t tail = {.len = 0};
    um_record_tail(record, um_py_payload(message), &tail);
    PyObject *data = um_py_message_bytes(message, NULL), *topic = um_py_message_topic(message, NULL);
    PyObject *source = um_py_message_source(message, NULL), *reduced = NULL, *properties = Py_None;
    if (tail.properties == NULL)
        Py_INCREF(properties);
    else
        properties = PyBytes_FromStringAndSize(tail.properties, (Py_ssize_t)tail.properties_len);
    if (data != NULL && topic != NULL && source != NULL && properties != NULL)
        reduced = Py_BuildValue("O(OOOkiiLKOk)", um_py_restore_function, data, topic, source,
                                (unsigned long)record->sequence_number, (int)record->flags, (int)record->type,
                                (long long)record->timestamp_ns, (unsigned long long)tail.hf_number, properties,
                                (unsigned long)tail.channel);
    Py_XDECREF(data);
    Py_XDECREF(topic);
    Py_XDECREF(source);
    Py_XDECREF(properties);
    return reduced;
}
