// One call from Python into the module.
#pragma once
#include "batch.hpp"
#include "export.hpp"

namespace viewlet {

using Arguments = PyObject* const*;

inline constexpr const char* STATE = "viewlet.state";

// One call: finds the state, keeps other threads and reentrant calls out of it, and tidies up at the end.
struct Call {
    State* state{};
    Arguments arguments;

    Call(Arguments arguments, Py_ssize_t count, Py_ssize_t expected) : arguments(arguments) {
        if (count != expected) {
            PyErr_Format(PyExc_TypeError, "%d arguments expected, %d given", int(expected), int(count));
            return;
        }
        if (auto* given = static_cast<State*>(PyCapsule_GetPointer(arguments[0], STATE))) enter(given);
    }
    explicit Call(State* given) : arguments(nullptr) { enter(given); }
    ~Call() {
        if (!state) return;
        state->batch.reset();
        state->busy = false;
    }
    explicit operator bool() const { return state; }

    // False with an exception set where argument i is no integer from `from` to below `to`.
    bool integer(u32 i, i64& value, i64 from, i64 to) const {
        value = PyLong_AsLongLong(arguments[i]);
        if (value == -1 && PyErr_Occurred()) return false;
        if (from <= value && value < to) return true;
        PyErr_Format(PyExc_TypeError, "argument %d: there is no number %lld", int(i), value);
        return false;
    }
    bool times(u32 i, i64& value) const { return integer(i, value, -0x7fffffffffffffff, 0x7fffffffffffffff); }
    const RelationInfo* relation(u32 i) const {
        i64 index;
        return integer(i, index, 0, MODULE.relation_count) ? &MODULE.relations[index] : nullptr;
    }
    const ViewInfo* view(u32 i) const {
        i64 index;
        return integer(i, index, 0, MODULE.view_count) ? &MODULE.views[index] : nullptr;
    }
    template <class T> T* pointer(u32 i) const {
        return static_cast<T*>(PyCapsule_GetPointer(arguments[i], CAPSULE<T>));
    }

private:
    void enter(State* given) {
        if (given->busy) {
            PyErr_SetString(PyExc_RuntimeError, "the database is being updated by another thread");
            return;
        }
        state = given;
        state->busy = true;
        met_wild = false;
    }
};

}  // namespace viewlet
