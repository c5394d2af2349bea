// A single row by one call: what db.stream("bids").insert is while nothing stands between the row and its trigger.
#pragma once
#include "updates.hpp"

namespace viewlet {

// What such a function is made of, as a tuple that Python's garbage collector sees through.
struct Straight {
    enum Part { STATE_, RELATION, TIMES, GUARDS, FREE, OTHERWISE, HEED, PASS_ON, LISTENING, AFTERWARDS, PARTS };
    PyObject* parts;

    PyObject* operator[](Part part) const { return PyTuple_GetItem(parts, part); }

    // Each guard is (object, name of an attribute, what it is while the way is straight).
    static bool holds(PyObject* guard) {
        Ref value{PyObject_GetAttr(PyTuple_GetItem(guard, 0), PyTuple_GetItem(guard, 1))};
        if (!value) PyErr_Clear();
        return value.object == PyTuple_GetItem(guard, 2);
    }
    bool is_open() const {
        PyObject* guards = (*this)[GUARDS];
        for (Py_ssize_t i = 0, size = PyTuple_Size(guards); i < size; ++i)
            if (!holds(PyTuple_GetItem(guards, i))) return false;
        return PyList_Size((*this)[FREE]) == 1;  // nobody is inside, and nobody comes while the interpreter is ours
    }

    // Whether the update changed what somebody listens to.
    bool is_heard() const {
        auto* state = static_cast<State*>(PyCapsule_GetPointer((*this)[STATE_], STATE));
        return MODULE.is_noting(state->program) && holds((*this)[LISTENING]);
    }

    // Nothing was done: the row goes the way of all others.
    PyObject* otherwise(PyObject* row) const { return PyObject_CallFunctionObjArgs((*this)[OTHERWISE], row, nullptr); }

    // The update is over, and Python must see to the rest: nobody else may be inside before it has. Those who listen
    // are told afterwards.
    PyObject* heed(PyObject* report, PyObject* row) const {
        PyList_SetSlice((*this)[FREE], 0, 1, nullptr);
        Ref heeded{PyObject_CallFunctionObjArgs((*this)[HEED], report, row, nullptr)};
        PyObject *kind, *value, *trace;
        PyErr_Fetch(&kind, &value, &trace);
        PyList_Append((*this)[FREE], &_Py_NoneStruct);
        Ref passed{PyObject_CallFunctionObjArgs((*this)[PASS_ON], nullptr)};
        if (!passed) PyErr_Clear();
        PyErr_Restore(kind, value, trace);
        return heeded ? PyObject_CallFunctionObjArgs((*this)[AFTERWARDS], nullptr) : nullptr;
    }
};

inline bool is_missing(PyObject* report) { return PyTuple_Size(report) == 2; }

// straight(...)(row)
inline PyObject* go_straight(PyObject* parts, PyObject* row) {
    Straight way{parts};
    Py_IncRef(parts);
    Ref held{parts};  // what it calls may let go of it
    if (!is_exactly(row, PyTuple_Type) || !way.is_open()) return way.otherwise(row);
    Ref report{nullptr};
    {
        PyObject* arguments[] = {way[Straight::STATE_], way[Straight::RELATION], way[Straight::TIMES]};
        Call call(arguments, 3, 3);
        i64 times;
        const RelationInfo* to = call ? call.relation(1) : nullptr;
        if (!to || !call.times(2, times)) return nullptr;
        State& state = *call.state;
        char* cells = state.batch.rows.take(to->row_size);
        if (take_row(state.library, state.texts(), cells, to->columns, to->width, row)) {
            state.batch.events.push(Event{to, times, cells});
            report.object = run(state);
            if (!report) return nullptr;
        }
    }
    if (!report || (is_exactly(report.object, PyTuple_Type) && is_missing(report.object))) return way.otherwise(row);
    return is_none(report.object) && !way.is_heard() ? report.give() : way.heed(report.object, row);
}

// straight(state, relation, times, guards, free, otherwise, heed, pass_on, listening, afterwards) -> a function of a row
inline PyObject* straight(PyObject*, Arguments arguments, Py_ssize_t count) {
    static PyMethodDef way{"insert_or_delete", reinterpret_cast<PyFunction>(go_straight), METH_O, nullptr};
    if (count != Straight::PARTS) return PyErr_Format(PyExc_TypeError, "straight takes %d parts", int(Straight::PARTS));
    Ref parts{PyTuple_New(count)};
    for (Py_ssize_t i = 0; i < count && parts; ++i) {
        Py_IncRef(arguments[i]);
        PyTuple_SetItem(parts.object, i, arguments[i]);
    }
    return parts ? PyCFunction_NewEx(&way, parts.object, nullptr) : nullptr;
}

}  // namespace viewlet
