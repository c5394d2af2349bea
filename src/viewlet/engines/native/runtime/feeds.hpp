// What changed, handed to those who iterate over the changes of views, without a frame of Python's. See changes.py.
#pragma once
#include "call.hpp"
#include "contents.hpp"

namespace viewlet {

// Of one who iterates: what waits for them, its extend(), those who sleep until a change comes, what wakes them, and how
// many changes may wait.
struct Feed {
    enum Part { WAITING, EXTEND, SLEEPERS, WAKE, MOST };
    PyObject* parts;

    PyObject* operator[](int part) const { return PyTuple_GetItem(parts, part); }
    bool has_room(i64 more) const { return PyObject_Size((*this)[WAITING]) + more <= PyLong_AsLongLong((*this)[MOST]); }
    // The update is in: what goes wrong here is not its fault.
    void take(PyObject* changes) const {
        Ref taken{PyObject_CallFunctionObjArgs((*this)[EXTEND], changes, nullptr)};
        if (!taken) PyErr_WriteUnraisable((*this)[EXTEND]);
        if (!PyObject_Size((*this)[SLEEPERS])) return;
        Ref woken{PyObject_CallFunctionObjArgs((*this)[WAKE], nullptr)};
        if (!woken) PyErr_WriteUnraisable((*this)[WAKE]);
    }
};

// All of them: the state that they listen to, what it set aside, what is still to be told to others, and, of each view
// that somebody listens to, its number, how its cells are shown, and its feeds.
struct Feeds {
    enum Part { STATE_, ASIDE, PENDING, VIEWS };
    enum PartOfView { WATCHED, SHOWN, TAKERS };
    PyObject* parts;

    PyObject* operator[](int part) const { return PyTuple_GetItem(parts, part); }
    Py_ssize_t size() const { return PyTuple_Size((*this)[VIEWS]); }
    PyObject* of(Py_ssize_t view, int part) const {
        return PyTuple_GetItem(PyTuple_GetItem((*this)[VIEWS], view), part);
    }

    // Nothing must be told, or compared, before.
    bool are_due(const State& state) const {
        return PyCapsule_GetPointer((*this)[STATE_], STATE) == &state && !PyObject_Size((*this)[ASIDE]) &&
               !PyObject_Size((*this)[PENDING]);
    }
    bool have_room(Py_ssize_t view, i64 more) const {
        PyObject* takers = of(view, TAKERS);
        for (Py_ssize_t i = 0; i < PyTuple_Size(takers); ++i)
            if (!Feed{PyTuple_GetItem(takers, i)}.has_room(more)) return false;
        return true;
    }
    // The changes of a view as a list, None where there are none; nullptr where Python must see to it.
    PyObject* made(State& state, Py_ssize_t view) const {
        u32 watched = u32(PyLong_AsLongLong(of(view, WATCHED)));
        const Rows& rows = changed(state, watched);
        if (!are_shown(state, rows)) return state.faults().clear(), nullptr;
        if (!rows.length) return none();
        return have_room(view, rows.length) ? changes_of(MODULE.watched[watched], rows, of(view, SHOWN)) : nullptr;
    }
    void give(Py_ssize_t view, PyObject* changes) const {
        PyObject* takers = of(view, TAKERS);
        for (Py_ssize_t i = 0; i < PyTuple_Size(takers); ++i) Feed{PyTuple_GetItem(takers, i)}.take(changes);
    }
};

// Ctrl-C in a function that shows a cell comes again, where Python sees to all that follows.
inline void forget_error() {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    PyErr_Clear();
}

// All that changed, or nothing: false. Who calls is inside of the database and alone there.
inline bool feed(State& state, Feeds feeds) {
    if (!feeds.are_due(state)) return false;
    WithoutCollector undisturbed;
    Ref lists{PyTuple_New(feeds.size())};
    for (Py_ssize_t i = 0; lists && i < feeds.size(); ++i) {
        PyObject* list = feeds.made(state, i);
        if (!list) return forget_error(), false;
        PyTuple_SetItem(lists.object, i, list);
    }
    if (!lists) return forget_error(), false;
    for (Py_ssize_t i = 0; i < feeds.size(); ++i)
        if (PyObject* list = PyTuple_GetItem(lists.object, i); !is_none(list)) feeds.give(i, list);
    forget_changes(state);
    return true;
}

// feed(state, feeds) -> whether all that changed was handed over; if not, nothing was
inline PyObject* feed_all(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    return call ? PyBool_FromLong(feed(*call.state, {arguments[1]})) : nullptr;
}

}  // namespace viewlet
