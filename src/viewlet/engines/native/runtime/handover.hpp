// A program takes over what another one holds, in the same process: texts, tables and maps change hands as they are, so
// that a program which differs in one view, or tells its changes as well, costs nothing for all the rest.
//
// The two are separate shared objects, made from the same headers. What is moved has no type of its own: segments,
// tables of slots, lists of ids, nodes. The caller says which maps have the same layout and the same meaning.
#pragma once
#include "call.hpp"
#include "nodes.hpp"

namespace viewlet {

template <class T> void exchange(T& a, T& b) {
    char kept[sizeof(T)];
    memcpy(kept, static_cast<void*>(&a), sizeof(T));
    memcpy(static_cast<void*>(&a), static_cast<void*>(&b), sizeof(T));
    memcpy(static_cast<void*>(&b), kept, sizeof(T));
}

inline void exchange_parts(const MapShape& shape, const MapParts& a, const MapParts& b) {
    exchange(a.entries, b.entries);
    exchange(a.chunks, b.chunks);
    for (u32 i = 0; i < shape.tables; ++i) exchange(a.tables[i], b.tables[i]);
    exchange(a.doubts, b.doubts);
    if (a.touched) exchange(*a.touched, *b.touched);
}

// A tree begins with its shape, which knows the pools of its index.
inline void use_nodes(char* tree, NodePools& nodes) { reinterpret_cast<TreeShape*>(tree)->nodes = &nodes; }

inline void take_order(const OrderShape& mine, void* program, const OrderShape& theirs, void* from) {
    NodePools& nodes = *mine.nodes(program);
    exchange(nodes.pools, theirs.nodes(from)->pools);
    if (mine.tree) {
        auto *tree = static_cast<char*>(mine.tree(program)), *other = static_cast<char*>(theirs.tree(from));
        for (u64 i = 0; i < mine.tree_size; ++i) exchange(tree[i], other[i]);
        use_nodes(tree, nodes);
        use_nodes(other, *theirs.nodes(from));
        return;
    }
    MapParts slices = mine.slices.parts(program);
    exchange_parts(mine.slices, slices, theirs.slices.parts(from));
    for (u32 id = slices.entries.first(); id; id = slices.entries.after(id)) {
        char* entry = static_cast<char*>(slices.entries.address(id, mine.slices.entry_size));
        use_nodes(entry + mine.slices.values_offset, nodes);
    }
}

// A map of a program that was just made, and so is empty: it exchanges what it has with the other.
inline void take_map(const MapInfo& mine, void* program, const MapInfo& theirs, void* from) {
    if (mine.map->packed) {
        exchange(mine.map->packed->rows(program), theirs.map->packed->rows(from));
    } else if (mine.map->parts) {
        exchange_parts(*mine.map, mine.map->parts(program), theirs.map->parts(from));
    } else {
        auto* values = static_cast<char*>(mine.map->access(program, nullptr, Access::FIND));
        auto* others = static_cast<char*>(theirs.map->access(from, nullptr, Access::FIND));
        for (u32 i = 0; i < mine.map->entry_size; ++i) exchange(values[i], others[i]);
    }
    for (u32 i = 0; i < mine.order_count; ++i) take_order(mine.orders[i], program, theirs.orders[i], from);
}

inline bool is_like(const MapShape& a, const MapShape& b) {
    if (!a.packed != !b.packed || (a.packed && a.packed->lanes != b.packed->lanes)) return false;
    return a.entry_size == b.entry_size && a.key_offset == b.key_offset && a.key_size == b.key_size &&
           a.values_offset == b.values_offset && a.tables == b.tables && !a.parts == !b.parts;
}

inline bool is_like(const MapInfo& a, const MapInfo& b) {
    bool alike = is_like(*a.map, *b.map) && a.order_count == b.order_count;
    for (u32 i = 0; alike && i < a.order_count; ++i) {
        const OrderShape &x = a.orders[i], &y = b.orders[i];
        alike = x.tree_size == y.tree_size && !x.tree == !y.tree && (x.tree || is_like(x.slices, y.slices));
    }
    return alike;
}

// -- one view of a map that is laid out in another way ------------------------------------------------------------------

inline void copy_member(Kind kind, void* to, void* from) {
    switch (kind) {
        case Kind::I64: *static_cast<i64*>(to) = *static_cast<i64*>(from); break;
        case Kind::I128: *static_cast<i128*>(to) = *static_cast<i128*>(from); break;
        case Kind::REAL: static_cast<RealSum*>(to)->add(*static_cast<RealSum*>(from));
    }
}

inline bool is_nothing(Kind kind, void* member) {
    switch (kind) {
        case Kind::I64: return *static_cast<i64*>(member) == 0;
        case Kind::I128: return *static_cast<i128*>(member) == 0;
        case Kind::REAL: return static_cast<RealSum*>(member)->is_zero();
    }
    return true;
}

inline void copy_view(const ViewInfo& mine, void* program, const ViewInfo& theirs, void* from) {
    theirs.map->each(from, [&](const void* key, void* values) {
        void* member = theirs.member(values);
        if (is_nothing(theirs.kind, member)) return;
        copy_member(mine.kind, mine.member(mine.map->access(program, key, Access::MAKE)), member);
    });
}

inline bool is_like(const ViewInfo& a, const ViewInfo& b) {
    return a.kind == b.kind && a.scale == b.scale && a.width == b.width && !a.map->parts == !b.map->parts &&
           a.map->key_size == b.map->key_size;
}

// -- the module's functions ---------------------------------------------------------------------------------------------

// A call about two states, of this module and of any.
struct HandoverCall : Call {
    State* from{};

    HandoverCall(Arguments arguments, Py_ssize_t count, Py_ssize_t expected) : Call(arguments, count, expected) {
        if (!state) return;
        auto* other = static_cast<State*>(PyCapsule_GetPointer(arguments[1], STATE));
        if (other && (other->busy || other == state))
            PyErr_SetString(PyExc_RuntimeError, "the other state is in use");
        else
            from = other;
    }
    explicit operator bool() const { return from; }

    // Calls `use` with both numbers of each pair; false with an exception set where an argument holds no such pairs.
    template <class Use> bool pairs(u32 argument, u32 below, u32 others_below, const Use& use) const {
        PyObject* given = arguments[argument];
        if (!Sequence::takes(given)) return PyErr_SetString(PyExc_TypeError, "not a list of pairs"), false;
        for (Py_ssize_t i = 0, size = Sequence{given}.size(); i < size; ++i) {
            PyObject* pair = Sequence{given}[i];
            i64 mine = -1, theirs = -1;
            bool is_pair = pair && Sequence::takes(pair) && Sequence{pair}.size() == 2 &&
                           take_int(Sequence{pair}[0], mine) && take_int(Sequence{pair}[1], theirs) && 0 <= mine &&
                           mine < below && 0 <= theirs && theirs < others_below;
            if (!is_pair) return PyErr_SetString(PyExc_TypeError, "not a pair of numbers"), false;
            if (!use(u32(mine), u32(theirs))) return PyErr_SetString(PyExc_TypeError, "they differ in layout"), false;
        }
        return true;
    }
};

// inherit(state, from): the state as it was when created, but with the texts of the other, which has none then. What the
// other holds is only good for take() and replay() now, or for inheriting the texts again.
inline PyObject* inherit(PyObject*, Arguments arguments, Py_ssize_t count) {
    HandoverCall call(arguments, count, 2);
    if (!call) return nullptr;
    MODULE.destroy(call.state->program);
    Texts::heritage = &call.from->module->texts(call.from->program);
    MODULE.construct(call.state->program);
    Texts::heritage = nullptr;
    return none();
}

// give_back(state, from): the texts go to the other, as they are now.
inline PyObject* give_back_texts(PyObject*, Arguments arguments, Py_ssize_t count) {
    HandoverCall call(arguments, count, 2);
    if (!call) return nullptr;
    call.from->module->texts(call.from->program).exchange(call.state->texts());
    return none();
}

// replay(state, from, [(relation, relation of the other), …]): every row of the other's tables comes as an event, as
// often as it is there. The tables themselves are not touched. None, or what went wrong as of one().
inline PyObject* replay(PyObject*, Arguments arguments, Py_ssize_t count) {
    HandoverCall call(arguments, count, 3);
    if (!call) return nullptr;
    const ModuleInfo& other = *call.from->module;
    Faults& faults = call.state->faults();
    auto come = [&](u32 mine, u32 theirs) {
        const RelationInfo &to = MODULE.relations[mine], &from = other.relations[theirs];
        if (!to.fire || to.row_size != from.row_size || to.width != from.width) return false;
        from.table->each(call.from->program, [&](const void* row, void* values) {
            if (!faults.any)
                fire(*call.state, {&to, static_cast<Times*>(values)->times, static_cast<const char*>(row)});
        });
        return true;
    };
    if (!call.pairs(2, MODULE.relation_count, other.relation_count, come)) return nullptr;
    if (MODULE.end) MODULE.end(call.state->program);
    return faults.any ? fault_report(faults) : none();
}

// take(state, from, maps, views): pairs of maps that change hands, and of views that are copied. `from` has the texts no
// more, and is good for nothing afterwards but to be taken from again.
inline PyObject* take(PyObject*, Arguments arguments, Py_ssize_t count) {
    HandoverCall call(arguments, count, 4);
    if (!call) return nullptr;
    const ModuleInfo& other = *call.from->module;
    void *program = call.state->program, *from = call.from->program;
    auto maps_agree = [&](u32 mine, u32 theirs) { return is_like(MODULE.maps[mine], other.maps[theirs]); };
    auto views_agree = [&](u32 mine, u32 theirs) { return is_like(MODULE.views[mine], other.views[theirs]); };
    if (!call.pairs(2, MODULE.map_count, other.map_count, maps_agree)) return nullptr;
    if (!call.pairs(3, MODULE.view_count, other.view_count, views_agree)) return nullptr;
    other.unmark(from);
    call.pairs(2, MODULE.map_count, other.map_count, [&](u32 mine, u32 theirs) {
        take_map(MODULE.maps[mine], program, other.maps[theirs], from);
        return true;
    });
    call.pairs(3, MODULE.view_count, other.view_count, [&](u32 mine, u32 theirs) {
        copy_view(MODULE.views[mine], program, other.views[theirs], from);
        return true;
    });
    return none();
}

// leave(state, from): the texts that the other's maps and tables still hold are held no more: what they are in goes.
inline PyObject* leave(PyObject*, Arguments arguments, Py_ssize_t count) {
    HandoverCall call(arguments, count, 2);
    if (!call) return nullptr;
    const ModuleInfo& other = *call.from->module;
    Texts& texts = call.state->texts();
    for (u32 i = 0; i < other.map_count; ++i)
        if (auto* release = other.maps[i].map->release_texts)
            other.maps[i].map->each(call.from->program, [&](const void* key, void*) { release(key, texts); });
    for (u32 i = 0; i < other.relation_count; ++i) {
        const RelationInfo& relation = other.relations[i];
        relation.table->each(call.from->program, [&](const void* row, void*) {
            each_text(relation, static_cast<const char*>(row), [&](Text text) { texts.release(text); });
        });
    }
    texts.dismiss_guests();  // of the other's orders
    return none();
}

}  // namespace viewlet
