// A single row by one call: what db.stream("bids").insert is while nothing stands between the row and its trigger.
#pragma once
#include "feeds.hpp"
#include "upserts.hpp"

namespace viewlet {

// An attribute of an object, by the dictionary that has it, and what it is while the way is straight.
struct Guard {
    PyObject *attributes, *name, *value;

    static Guard of(PyObject* guard) {
        return {PyTuple_GetItem(guard, 0), PyTuple_GetItem(guard, 1), PyTuple_GetItem(guard, 2)};
    }
    PyObject* now() const {
        PyObject* found = PyDict_GetItemWithError(attributes, name);
        if (!found) PyErr_Clear();
        return found;
    }
    bool holds() const { return now() == value; }
};

// What each call asks for, found once in the parts that it is made of, which keep it alive.
struct Route {
    static constexpr u32 MOST = 8;

    State* state;
    const RelationInfo* to;
    i64 times;  // 0: it comes in place of the row with its primary key
    PyObject *free, *line;
    Guard listening, feeds, guards[MOST];
    u32 count;

    bool is_open() const {
        for (u32 i = 0; i < count; ++i)
            if (!guards[i].holds()) return false;
        return PyList_Size(free) == 1;  // nobody is inside, and nobody comes while the interpreter is ours
    }
    // Whether the update changed what somebody listens to.
    bool is_heard() const { return MODULE.is_noting(state->program) && listening.holds(); }
};

inline void free_route(PyObject* capsule) { free(PyCapsule_GetPointer(capsule, nullptr)); }

// What such a function is made of, as a tuple that Python's garbage collector sees through; the route comes last.
struct Straight {
    enum Part {
        STATE_,
        RELATION,
        TIMES,
        GUARDS,
        FREE,
        OTHERWISE,
        HEED,
        LINE,
        PASS_ON,
        LISTENING,
        FEEDS,
        AFTERWARDS,
        PARTS
    };
    PyObject* parts;

    PyObject* operator[](int part) const { return PyTuple_GetItem(parts, part); }
    // A capsule without a name is opened without comparing any.
    const Route& route() const { return *static_cast<Route*>(PyCapsule_GetPointer((*this)[PARTS], nullptr)); }

    // False with an exception set where the parts are none of such a function.
    bool find(Route& route) const {
        PyObject* arguments[] = {(*this)[STATE_], (*this)[RELATION], (*this)[TIMES]};
        Call call(arguments, 3, 3);
        route.to = call ? call.relation(1) : nullptr;
        if (!route.to || !call.times(2, route.times)) return false;
        route.state = call.state;
        route.free = (*this)[FREE];
        route.line = (*this)[LINE];
        route.listening = Guard::of((*this)[LISTENING]);
        route.feeds = Guard::of((*this)[FEEDS]);
        route.count = u32(PyTuple_Size((*this)[GUARDS]));
        if (route.count > Route::MOST) return PyErr_Format(PyExc_TypeError, "straight takes fewer guards"), false;
        for (u32 i = 0; i < route.count; ++i) route.guards[i] = Guard::of(PyTuple_GetItem((*this)[GUARDS], i));
        return true;
    }

    // Nothing was done: the row goes the way of all others.
    PyObject* otherwise(PyObject* row) const { return PyObject_CallFunctionObjArgs((*this)[OTHERWISE], row, nullptr); }

    // Nobody else is inside meanwhile.
    template <class Work> auto alone(const Work& work) const {
        PyList_SetSlice((*this)[FREE], 0, 1, nullptr);
        auto outcome = work();
        PyObject *kind, *value, *trace;
        PyErr_Fetch(&kind, &value, &trace);
        PyList_Append((*this)[FREE], &_Py_NoneStruct);
        if (PyObject_Size((*this)[LINE])) {
            Ref passed{PyObject_CallFunctionObjArgs((*this)[PASS_ON], nullptr)};
            if (!passed) PyErr_Clear();
        }
        PyErr_Restore(kind, value, trace);
        return outcome;
    }

    // Whether those who iterate over changes have them now, and nobody else listens.
    bool feed() const {
        PyObject* feeds = route().feeds.now();
        if (!feeds || is_none(feeds)) return false;
        Py_IncRef(feeds);  // others may listen once foreign code has run
        Ref held{feeds};
        Call call(route().state);
        return call && viewlet::feed(*call.state, {feeds});
    }

    // The update is over. Where it cannot be told from here, Python must see to the rest, and tells those who listen
    // afterwards.
    PyObject* heed(PyObject* report, PyObject* row) const {
        bool fed = false;
        PyObject* heeded = alone([&] {
            fed = is_none(report) && feed();
            return fed ? none() : PyObject_CallFunctionObjArgs((*this)[HEED], report, row, nullptr);
        });
        if (!heeded || fed) return heeded;
        Py_DecRef(heeded);
        return PyObject_CallFunctionObjArgs((*this)[AFTERWARDS], nullptr);
    }
};

// The table has no such row, or one with the same key.
inline bool is_refused(PyObject* report) { return PyTuple_Size(report) == 2; }

// straight(...)(row)
inline PyObject* go_straight(PyObject* parts, PyObject* row) {
    Straight way{parts};
    Py_IncRef(parts);
    Ref held{parts};  // what it calls may let go of it
    const Route& route = way.route();
    if (!is_exactly(row, PyTuple_Type) || !route.is_open()) return way.otherwise(row);
    Ref report{nullptr};
    {
        Call call(route.state);
        if (!call) return nullptr;
        State& state = *call.state;
        char* cells = state.batch.rows.take(route.to->row_size);
        if (take_row(state.library, state.texts(), cells, route.to->columns, route.to->width, row)) {
            state.batch.events.push(Event{route.to, route.times ? route.times : 1, cells});
            if (!route.times) replace_holders(state, *route.to);
            report.object = run(state);
            if (!report) return nullptr;
        }
    }
    if (!report || (is_exactly(report.object, PyTuple_Type) && is_refused(report.object))) return way.otherwise(row);
    return is_none(report.object) && !route.is_heard() ? report.give() : way.heed(report.object, row);
}

// straight(state, relation, times, guards, free, otherwise, heed, line, pass_on, listening, feeds, afterwards) -> a
// function of a row
inline PyObject* straight(PyObject*, Arguments arguments, Py_ssize_t count) {
    static PyMethodDef way{"insert_or_delete", reinterpret_cast<PyFunction>(go_straight), METH_O, nullptr};
    if (count != Straight::PARTS) return PyErr_Format(PyExc_TypeError, "straight takes %d parts", int(Straight::PARTS));
    Ref parts{PyTuple_New(count + 1)};
    if (!parts) return nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
        Py_IncRef(arguments[i]);
        PyTuple_SetItem(parts.object, i, arguments[i]);
    }
    auto* route = static_cast<Route*>(malloc(sizeof(Route)));
    PyObject* capsule = PyCapsule_New(route, nullptr, free_route);
    if (!capsule) return free(route), nullptr;
    PyTuple_SetItem(parts.object, count, capsule);
    return Straight{parts.object}.find(*route) ? PyCFunction_NewEx(&way, parts.object, nullptr) : nullptr;
}

}  // namespace viewlet
