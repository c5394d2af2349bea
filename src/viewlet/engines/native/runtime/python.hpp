// The part of CPython's stable ABI (3.10 and later) that the bridge uses, declared by hand: a program needs no Python
// headers to build and one build serves every Python.
#pragma once
#include "base.hpp"

extern "C" {
using Py_ssize_t = long;

struct PyTypeObject;
struct PyObject {  // the head is part of the stable ABI: Py_TYPE is compiled into every extension module
    Py_ssize_t ob_refcnt;
    PyTypeObject* ob_type;
};
struct PyThreadState;

using PyFunction = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
struct PyMethodDef {
    const char* name;
    PyFunction function;
    int flags;
    const char* documentation;
};
struct PyModuleDef {
    PyObject head;
    PyObject* (*init)(){};
    Py_ssize_t index{};
    PyObject* copy{};
    const char* name;
    const char* documentation{};
    Py_ssize_t size;
    PyMethodDef* methods;
    void *slots{}, *traverse{}, *clear{}, *free{};
};

extern PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
extern PyObject PyLong_Type, PyFloat_Type, PyUnicode_Type, PyTuple_Type, PyList_Type, PyBool_Type;
extern PyObject *PyExc_KeyboardInterrupt, *PyExc_RuntimeError, *PyExc_TypeError, *PyExc_SystemError,
    *PyExc_OverflowError, *PyExc_OSError;

PyObject* PyModule_Create2(PyModuleDef*, int);
void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
PyThreadState* PyEval_SaveThread();
void PyEval_RestoreThread(PyThreadState*);

void PyErr_SetString(PyObject*, const char*);
PyObject* PyErr_Format(PyObject*, const char*, ...);
PyObject* PyErr_SetFromErrno(PyObject*);
PyObject* PyErr_Occurred();
int PyErr_ExceptionMatches(PyObject*);
void PyErr_Clear();
void PyErr_SetInterrupt();
void PyErr_WriteUnraisable(PyObject*);
void PyErr_Fetch(PyObject**, PyObject**, PyObject**);
void PyErr_Restore(PyObject*, PyObject*, PyObject*);

PyObject* PyImport_ImportModule(const char*);
PyObject* PyObject_GetAttr(PyObject*, PyObject*);
PyObject* PyObject_GetAttrString(PyObject*, const char*);
PyObject* PyObject_CallFunctionObjArgs(PyObject*, ...);
PyObject* PyObject_CallMethodObjArgs(PyObject*, PyObject*, ...);
PyObject* PyObject_Str(PyObject*);
Py_ssize_t PyObject_Size(PyObject*);

PyObject* PyLong_FromLongLong(long long);
PyObject* PyLong_FromUnsignedLongLong(unsigned long long);
long long PyLong_AsLongLong(PyObject*);
long long PyLong_AsLongLongAndOverflow(PyObject*, int*);
unsigned long long PyLong_AsUnsignedLongLongMask(PyObject*);
PyObject* PyNumber_Rshift(PyObject*, PyObject*);
PyObject* PyNumber_Lshift(PyObject*, PyObject*);
PyObject* PyNumber_Or(PyObject*, PyObject*);

PyObject* PyFloat_FromDouble(double);
double PyFloat_AsDouble(PyObject*);
PyObject* PyBool_FromLong(long);

Py_ssize_t PyObject_Hash(PyObject*);
PyObject* PyUnicode_FromString(const char*);
PyObject* PyUnicode_FromStringAndSize(const char*, Py_ssize_t);
PyObject* PyUnicode_InternFromString(const char*);
const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t*);

PyObject* PyTuple_New(Py_ssize_t);
Py_ssize_t PyTuple_Size(PyObject*);
PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);
int PyTuple_SetItem(PyObject*, Py_ssize_t, PyObject*);
PyObject* PyList_New(Py_ssize_t);
Py_ssize_t PyList_Size(PyObject*);
PyObject* PyList_GetItem(PyObject*, Py_ssize_t);
int PyList_SetItem(PyObject*, Py_ssize_t, PyObject*);
int PyList_Append(PyObject*, PyObject*);
int PyList_SetSlice(PyObject*, Py_ssize_t, Py_ssize_t, PyObject*);
PyObject* PyDict_GetItemWithError(PyObject*, PyObject*);
PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject*, PyObject*);

int PyGC_Disable();
int PyGC_Enable();

PyObject* PyCapsule_New(void*, const char*, void (*)(PyObject*));
void* PyCapsule_GetPointer(PyObject*, const char*);
}

namespace viewlet {

inline constexpr int METH_FASTCALL = 0x80, METH_O = 0x8;
inline constexpr int PYTHON_ABI = 3;

inline PyObject* none() {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}
inline bool is_exactly(PyObject* object, PyObject& type) {
    return object->ob_type == reinterpret_cast<PyTypeObject*>(&type);
}
inline bool is_none(PyObject* object) { return object == &_Py_NoneStruct; }
inline bool is_bool(PyObject* object) { return object == &_Py_TrueStruct || object == &_Py_FalseStruct; }

// An owned reference.
struct Ref {
    PyObject* object;
    explicit Ref(PyObject* owned) : object(owned) {}
    Ref(const Ref&) = delete;
    ~Ref() {
        if (object) Py_DecRef(object);
    }
    explicit operator bool() const { return object; }
    PyObject* give() {
        PyObject* given = object;
        object = nullptr;
        return given;
    }
};

// A tuple of owned references; nullptr if one of them is.
template <class... Items> PyObject* tuple_of(Items... items) {
    PyObject* all[] = {items...};
    bool whole = true;
    for (PyObject* item : all) whole &= item != nullptr;
    PyObject* tuple = whole ? PyTuple_New(sizeof...(items)) : nullptr;
    for (u64 i = 0; i < sizeof...(items); ++i)
        if (tuple)
            PyTuple_SetItem(tuple, i, all[i]);
        else if (all[i])
            Py_DecRef(all[i]);
    return tuple;
}

// While it lives, no garbage is looked for: no code of Python's runs in between, and what is made is looked at once.
struct WithoutCollector {
    bool was_on{PyGC_Disable() != 0};
    WithoutCollector() = default;
    WithoutCollector(const WithoutCollector&) = delete;
    ~WithoutCollector() {
        if (was_on) PyGC_Enable();
    }
};

// A tuple or list, read alike; a list may shrink under foreign code, so each item is asked for again and may be
// nullptr.
struct Sequence {
    PyObject* object;
    bool is_list;
    static bool takes(PyObject* object) { return is_exactly(object, PyTuple_Type) || is_exactly(object, PyList_Type); }
    explicit Sequence(PyObject* object) : object(object), is_list(is_exactly(object, PyList_Type)) {}
    Py_ssize_t size() const { return is_list ? PyList_Size(object) : PyTuple_Size(object); }
    PyObject* operator[](Py_ssize_t i) const {
        return is_list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i);
    }
};

// Integers of any size; false (and no exception) where it does not fit 128 bits.
inline bool to_i128(PyObject* number, i128& value) {
    int overflow;
    i64 small = PyLong_AsLongLongAndOverflow(number, &overflow);
    value = small;
    if (!overflow) return true;
    Ref places{PyLong_FromLongLong(64)}, high{PyNumber_Rshift(number, places.object)};
    i64 top = PyLong_AsLongLongAndOverflow(high.object, &overflow);
    value = i128((u128(u64(top)) << 64) | PyLong_AsUnsignedLongLongMask(number));
    return !overflow;
}

inline PyObject* from_i128(i128 value) {
    if (value == i64(value)) return PyLong_FromLongLong(i64(value));
    Ref places{PyLong_FromLongLong(64)}, high{PyLong_FromLongLong(i64(value >> 64))};
    Ref shifted{PyNumber_Lshift(high.object, places.object)}, low{PyLong_FromUnsignedLongLong(u64(value))};
    return PyNumber_Or(shifted.object, low.object);
}

}  // namespace viewlet
