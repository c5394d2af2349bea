// The Python module. Nothing here depends on the program, whose MODULE describes it: it is compiled once for all.
#pragma once
#include "contents.hpp"
#include "handover.hpp"
#include "snapshot.hpp"
#include "stored.hpp"
#include "straight.hpp"
#include "upserts.hpp"

namespace viewlet {

inline PyObject* usage(const char* name, u64 size, u64 bytes) {
    return tuple_of(PyUnicode_FromString(name), PyLong_FromUnsignedLongLong(size), PyLong_FromUnsignedLongLong(bytes));
}

// memory(state) -> [(map, entries, bytes), …], texts last
inline PyObject* memory(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 1);
    if (!call) return nullptr;
    Ref list{PyTuple_New(MODULE.map_count + 1)};
    for (u32 i = 0; i < MODULE.map_count && list; ++i) {
        const MapInfo& map = MODULE.maps[i];
        void* program = call.state->program;
        PyTuple_SetItem(list.object, i, usage(map.name, map.size(program), map.bytes(program)));
    }
    Texts& texts = call.state->texts();
    if (list) PyTuple_SetItem(list.object, MODULE.map_count, usage("texts", texts.size(), texts.memory()));
    return list.give();
}

// reset(state): as it was when created
inline PyObject* reset(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 1);
    if (!call) return nullptr;
    MODULE.destroy(call.state->program);
    MODULE.construct(call.state->program);
    return none();
}

template <class Name> PyObject* names_of(u32 count, Name name) {
    PyObject* list = PyTuple_New(count);
    for (u32 i = 0; i < count && list; ++i) PyTuple_SetItem(list, i, PyUnicode_FromString(name(i)));
    return list;
}

// names() -> relations, views, results
inline PyObject* names(PyObject*, Arguments, Py_ssize_t) {
    return tuple_of(names_of(MODULE.relation_count, [](u32 i) { return MODULE.relations[i].name; }),
                    names_of(MODULE.view_count, [](u32 i) { return MODULE.views[i].name; }),
                    names_of(MODULE.result_count, [](u32 i) { return MODULE.result(i).name; }));
}

inline void destroy_state(PyObject* capsule) {
    auto* state = static_cast<State*>(PyCapsule_GetPointer(capsule, STATE));
    free_answers(*state);
    MODULE.destroy(state->program);
    free(state->program);
    Py_DecRef(state->convert);
    state->library.close();
    free(state->came);
    if (state->division) free(state->division->ways);
    free(state->division);
    state->~State();
    free(state);
}

// create(convert, keep_tables) -> state. No garbage collector sees through a state: convert must not refer to it.
inline PyObject* create(PyObject*, Arguments arguments, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "create takes convert and keep_tables");
    auto* state = new (Placed{malloc(sizeof(State))}) State;
    state->program = malloc(MODULE.program_size);
    MODULE.construct(state->program);
    state->came = static_cast<bool*>(calloc(MODULE.relation_count + 1, sizeof(bool)));
    Py_IncRef(state->convert = arguments[0]);
    state->keep_tables = arguments[1] == &_Py_TrueStruct;
    Ref capsule{PyCapsule_New(state, STATE, destroy_state)};
    return capsule && state->library.open() ? capsule.give() : nullptr;
}

inline PyMethodDef METHODS[] = {
    {"create", create, METH_FASTCALL, nullptr},
    {"one", one, METH_FASTCALL, nullptr},
    {"straight", straight, METH_FASTCALL, nullptr},
    {"many", many, METH_FASTCALL, nullptr},
    {"events", events, METH_FASTCALL, nullptr},
    {"arrow_rows", arrow_rows, METH_FASTCALL, nullptr},
    {"arrow_events", arrow_events, METH_FASTCALL, nullptr},
    {"divide", divide, METH_FASTCALL, nullptr},
    {"upsert", upsert, METH_FASTCALL, nullptr},
    {"check_keys", check_keys, METH_FASTCALL, nullptr},
    {"holder", holder, METH_FASTCALL, nullptr},
    {"updates", updates, METH_FASTCALL, nullptr},
    {"came", came, METH_FASTCALL, nullptr},
    {"count", count_rows, METH_FASTCALL, nullptr},
    {"total", total, METH_FASTCALL, nullptr},
    {"table", table, METH_FASTCALL, nullptr},
    {"many_shown", many_shown, METH_FASTCALL, nullptr},
    {"stored", stored, METH_FASTCALL, nullptr},
    {"load", load, METH_FASTCALL, nullptr},
    {"find", find, METH_FASTCALL, nullptr},
    {"entries", entries, METH_FASTCALL, nullptr},
    {"slice", slice, METH_FASTCALL, nullptr},
    {"weigh", weigh, METH_FASTCALL, nullptr},
    {"put", put, METH_FASTCALL, nullptr},
    {"rows", rows, METH_FASTCALL, nullptr},
    {"read_one", read_one, METH_FASTCALL, nullptr},
    {"changes", changes, METH_FASTCALL, nullptr},
    {"forget", forget, METH_FASTCALL, nullptr},
    {"feed", feed_all, METH_FASTCALL, nullptr},
    {"told", told, METH_FASTCALL, nullptr},
    {"standing", standing, METH_FASTCALL, nullptr},
    {"memory", memory, METH_FASTCALL, nullptr},
    {"reset", reset, METH_FASTCALL, nullptr},
    {"save", save, METH_FASTCALL, nullptr},
    {"restore", restore, METH_FASTCALL, nullptr},
    {"inherit", inherit, METH_FASTCALL, nullptr},
    {"give_back", give_back_texts, METH_FASTCALL, nullptr},
    {"replay", replay, METH_FASTCALL, nullptr},
    {"take", take, METH_FASTCALL, nullptr},
    {"leave", leave, METH_FASTCALL, nullptr},
    {"names", names, METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// As secret as Python's own hashes of strings, and as random: PYTHONHASHSEED makes both repeat.
inline void choose_seed() {
    Ref word{PyUnicode_FromString("viewlet")};
    if (word) seed = mix(START, u64(PyObject_Hash(word.object)));
}

PyObject* open_module(const char* name) {
    choose_seed();
    static PyModuleDef module{.head = {1, nullptr}, .name = name, .size = -1, .methods = METHODS};
    return PyModule_Create2(&module, PYTHON_ABI);
}

}  // namespace viewlet
