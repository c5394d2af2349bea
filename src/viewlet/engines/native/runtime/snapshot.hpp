// The whole state of a program as a file, and back: ids, slices and trees are as they were, so that whatever comes next
// goes the same way, to the last bit of a sum of doubles.
#pragma once
#include "call.hpp"
#include "image.hpp"
#include "nodes.hpp"
#include "packing.hpp"

namespace viewlet {

// -- ids and tables ---------------------------------------------------------------------------------------------------

inline void save_ids(ImageWriter& to, const Ids& ids) {
    to.put(ids.size);
    to.put(ids.ids, ids.bytes_used());
}

inline void load_ids(ImageReader& from, Ids& ids) {
    ids.size = 0;
    for (u32 left = from.get<u32>(); left; --left) ids.push(from.get<u32>());
}

// Which ids of a pool are taken, and in which order the others will be.
inline void save_places(ImageWriter& to, const Segments& pool, u64 object) {
    Ids free;
    pool.each_free(object, [&](u32 id) { free.push(id); });
    to.put(object);
    to.put(pool.fresh);
    save_ids(to, free);
}

inline void load_places(ImageReader& from, Segments& pool, u64 object) {
    if (from.get<u64>() != object && from.is_fine()) from.problem = "program";  // compiled to another layout
    u32 end = from.get<u32>();
    Ids free;
    load_ids(from, free);
    pool.release(object);
    if (from.is_fine()) pool.restore(object, end, free);
}

template <class Visit> void each_object(const Segments& pool, u64 object, const Visit& visit) {
    for (u32 id = pool.first(); id; id = pool.after(id)) visit(static_cast<char*>(pool.address(id, object)));
}

// Hashes are those of one process: a file has none.
inline void load_room(ImageReader& from, Slots& slots) {
    u64 room = from.get<u64>();
    slots.release();
    if (from.is_fine() && room) slots.restore(room);
}

// What an index leads to: ids, or names of chunks.
inline void save_slots(ImageWriter& to, const Slots& slots) {
    to.put(slots.room());
    to.put(slots.taken());
    slots.each([&](Slot slot) { to.put(slot.id); });
}

template <class Hash> void load_slots(ImageReader& from, Slots& slots, const Hash& hash_of) {
    load_room(from, slots);
    for (u32 left = from.get<u32>(); left && from.is_fine(); --left) {
        u32 id = from.get<u32>();
        if (from.is_fine()) slots.insert(hash_of(id), id);
    }
}

// -- texts ------------------------------------------------------------------------------------------------------------

inline void save_texts(ImageWriter& to, const Texts& texts) {
    save_places(to, texts.strings, sizeof(Texts::String));
    each_object(texts.strings, sizeof(Texts::String), [&](char* object) {
        auto& string = *reinterpret_cast<Texts::String*>(object);
        to.put(string);
        to.put(string.start, string.length);
    });
    to.put(texts.slots.room());
    save_ids(to, texts.pending);
    to.put(texts.characters);
}

inline void load_texts(ImageReader& from, Texts& texts) {
    texts.clear();
    load_places(from, texts.strings, sizeof(Texts::String));
    each_object(texts.strings, sizeof(Texts::String), [&](char* object) {
        auto& string = *new (Placed{object}) Texts::String(from.get<Texts::String>());
        string.start = static_cast<char*>(malloc(string.length + 1));
        if (!string.start) fail("out of memory");
        from.get(string.start, string.length);
        string.hash = Texts::hash_of(string.start, string.length);
    });
    load_room(from, texts.slots);
    for (u32 id = texts.strings.first(); id && from.is_fine(); id = texts.strings.after(id))
        texts.slots.insert(texts.strings.at(id)->hash, id);
    load_ids(from, texts.pending);
    texts.characters = from.get<u64>();
    if (from.is_fine()) texts.dismiss_guests();
}

// -- maps -------------------------------------------------------------------------------------------------------------

// Where the values of a map have sums of doubles: what these say of infinities is in memory of its own.
struct SumsOf {
    Ids offsets;

    explicit SumsOf(const MapShape& map) {
        char* values = reinterpret_cast<char*>(&offsets);  // any address: only where the members lie counts
        for (u32 i = 0; i < MODULE.view_count; ++i)
            if (MODULE.views[i].map == &map && MODULE.views[i].kind == Kind::REAL)
                offsets.push(u32(static_cast<char*>(MODULE.views[i].member(values)) - values));
    }
    template <class Visit> void each(char* values, const Visit& visit) const {
        for (u32 i = 0; i < offsets.size; ++i) visit(*reinterpret_cast<RealSum*>(values + offsets.ids[i]));
    }
    void save(ImageWriter& to, char* values) const {
        each(values, [&](RealSum& sum) {
            if (sum.wild) to.put(*sum.wild);
        });
    }
    // After the values themselves, whose pointers only say that there is something.
    void load(ImageReader& from, char* values) const {
        each(values, [&](RealSum& sum) {
            bool is_wild = sum.wild;
            sum.wild = nullptr;
            if (!is_wild) return;
            auto* wild = static_cast<RealSum::Wild*>(malloc(sizeof(RealSum::Wild)));
            if (!wild) fail("out of memory");
            sum.wild = new (Placed{wild}) RealSum::Wild(from.get<RealSum::Wild>());
        });
    }
};

template <class Save>
void save_map(ImageWriter& to, const MapShape& shape, const MapParts& parts, const Save& save_entry) {
    save_places(to, parts.entries, shape.entry_size);
    each_object(parts.entries, shape.entry_size, save_entry);
    save_places(to, parts.chunks, sizeof(Chunk));
    each_object(parts.chunks, sizeof(Chunk), [&](char* chunk) { to.put(chunk, sizeof(Chunk)); });
    to.put(parts.tables[0].room());
    for (u32 i = 1; i < shape.tables; ++i) save_slots(to, parts.tables[i]);
    save_ids(to, parts.doubts);
    if (parts.touched) save_ids(to, *parts.touched);
}

template <class Load>
void load_map(ImageReader& from, const MapShape& shape, const MapParts& parts, const Load& load_entry) {
    load_places(from, parts.entries, shape.entry_size);
    each_object(parts.entries, shape.entry_size, load_entry);
    load_places(from, parts.chunks, sizeof(Chunk));
    each_object(parts.chunks, sizeof(Chunk), [&](char* chunk) { from.get(chunk, sizeof(Chunk)); });
    auto hash = [&](u32 table, u32 id) {
        return shape.hash(table, static_cast<char*>(parts.entries.address(id, shape.entry_size)) + shape.key_offset);
    };
    load_room(from, parts.tables[0]);
    for (u32 id = parts.entries.first(); id && from.is_fine(); id = parts.entries.after(id))
        parts.tables[0].insert(hash(0, id), id);
    for (u32 i = 1; i < shape.tables; ++i)
        load_slots(from, parts.tables[i], [&](u32 name) { return hash(i, parts.chunks.last_of(name)); });
    load_ids(from, parts.doubts);
    if (parts.touched) load_ids(from, *parts.touched);
}

inline void save_values(ImageWriter& to, const MapShape& shape, void* program) {
    if (shape.packed) return shape.packed->rows(program).save(to);
    SumsOf sums(shape);
    auto save = [&](char* entry) {
        to.put(entry, shape.entry_size);
        sums.save(to, entry + shape.values_offset);
    };
    shape.parts ? save_map(to, shape, shape.parts(program), save)
                : save(static_cast<char*>(shape.access(program, nullptr, Access::FIND)));
}

inline void load_values(ImageReader& from, const MapShape& shape, void* program) {
    if (shape.packed) return shape.packed->rows(program).load(from, shape.packed->lanes);
    SumsOf sums(shape);
    auto load = [&](char* entry) {
        from.get(entry, shape.entry_size);
        sums.load(from, entry + shape.values_offset);
        if (shape.parts) reinterpret_cast<EntryHead*>(entry)->noted = false;
    };
    shape.parts ? load_map(from, shape, shape.parts(program), load)
                : load(static_cast<char*>(shape.access(program, nullptr, Access::FIND)));
}

// -- trees ------------------------------------------------------------------------------------------------------------

// Nodes point to each other; in a file they name each other by pool and id.
struct NodeNames {
    NodePools& nodes;

    static u64 name(const Node* node) { return node ? u64(node->grade) << 32 | node->id : 0; }
    Node* named(u64 name) const {
        u32 grade = u32(name >> 32);
        return name ? static_cast<Node*>(nodes.pools[grade].address(u32(name), nodes.object(grade))) : nullptr;
    }
    static void to_name(Node*& node) { node = reinterpret_cast<Node*>(name(node)); }
    void to_node(Node*& node) const { node = named(reinterpret_cast<u64>(node)); }

    template <class Change> void each_pointer(Node* node, const Change& change) const {
        change(node->next);
        if (!node->level) return;
        for (u32 place = 0; place < node->used; ++place) change(TreeShape{&nodes, nullptr}.child(node, place));
    }
};

inline void save_nodes(ImageWriter& to, NodeNames names) {
    NodePools& nodes = names.nodes;
    Pile copy;
    for (u32 grade = 0; grade <= NodePools::INNER; ++grade) save_places(to, nodes.pools[grade], nodes.object(grade));
    for (u32 grade = 0; grade <= NodePools::INNER; ++grade)
        each_object(nodes.pools[grade], nodes.object(grade), [&](char* object) {
            copy.size = 0;
            auto* node = static_cast<Node*>(memcpy(copy.more(nodes.object(grade)), object, nodes.object(grade)));
            names.each_pointer(node, NodeNames::to_name);
            to.put(node, nodes.object(grade));
        });
    copy.free_all();
}

inline void load_nodes(ImageReader& from, NodeNames names) {
    NodePools& nodes = names.nodes;
    for (u32 grade = 0; grade <= NodePools::INNER; ++grade) load_places(from, nodes.pools[grade], nodes.object(grade));
    for (u32 grade = 0; grade <= NodePools::INNER; ++grade)
        each_object(nodes.pools[grade], nodes.object(grade), [&](char* object) {
            from.get(object, nodes.object(grade));
            if (from.is_fine())
                names.each_pointer(reinterpret_cast<Node*>(object), [&](Node*& node) { names.to_node(node); });
        });
}

// A tree begins with its shape.
inline void save_tree(ImageWriter& to, char* tree, u64 size) {
    TreeShape shape = *reinterpret_cast<TreeShape*>(tree);
    to.put(NodeNames::name(shape.root));
    to.put(tree + sizeof shape, size - sizeof shape);
}

inline void load_tree(ImageReader& from, char* tree, u64 size, NodeNames names) {
    auto& shape = *reinterpret_cast<TreeShape*>(tree);
    shape = {&names.nodes, names.named(from.get<u64>())};
    from.get(tree + sizeof shape, size - sizeof shape);
}

inline void save_order(ImageWriter& to, const OrderShape& order, void* program) {
    const MapShape& slices = order.slices;
    save_nodes(to, {*order.nodes(program)});
    if (order.tree) return save_tree(to, static_cast<char*>(order.tree(program)), order.tree_size);
    save_map(to, slices, slices.parts(program), [&](char* entry) {
        to.put(entry, slices.values_offset);
        save_tree(to, entry + slices.values_offset, order.tree_size);
    });
}

inline void load_order(ImageReader& from, const OrderShape& order, void* program) {
    const MapShape& slices = order.slices;
    NodeNames names{*order.nodes(program)};
    load_nodes(from, names);
    if (order.tree) return load_tree(from, static_cast<char*>(order.tree(program)), order.tree_size, names);
    load_map(from, slices, slices.parts(program), [&](char* entry) {
        from.get(entry, slices.values_offset);
        load_tree(from, entry + slices.values_offset, order.tree_size, names);
    });
}

// -- programs ---------------------------------------------------------------------------------------------------------

inline void save_program(ImageWriter& to, void* program) {
    save_texts(to, MODULE.texts(program));
    if (i64* clock = MODULE.clock(program)) to.put(*clock);
    for (u32 i = 0; i < MODULE.map_count; ++i) {
        const MapInfo& map = MODULE.maps[i];
        save_values(to, *map.map, program);
        for (u32 o = 0; o < map.order_count; ++o) save_order(to, map.orders[o], program);
    }
    to.finish();
}

inline void load_program(ImageReader& from, void* program) {
    load_texts(from, MODULE.texts(program));
    if (i64* clock = MODULE.clock(program)) *clock = from.get<i64>();
    for (u32 i = 0; i < MODULE.map_count && from.is_fine(); ++i) {
        const MapInfo& map = MODULE.maps[i];
        load_values(from, *map.map, program);
        for (u32 o = 0; o < map.order_count && from.is_fine(); ++o) load_order(from, map.orders[o], program);
    }
    from.finish();
}

// A file descriptor and the digest of a program.
struct FileCall : Call {
    i64 file{};
    const char* digest{};

    FileCall(Arguments arguments, Py_ssize_t count) : Call(arguments, count, 3) {
        Py_ssize_t size = 0;
        if (!state || !integer(1, file, 0, 0x7fffffff)) return;
        const char* given = PyUnicode_AsUTF8AndSize(arguments[2], &size);
        if (given && size == ImageHead::DIGEST)
            digest = given;
        else if (given)
            PyErr_SetString(PyExc_TypeError, "not the digest of a program");
    }
};

// save(state, file, digest) -> bytes written
inline PyObject* save(PyObject*, Arguments arguments, Py_ssize_t count) {
    FileCall call(arguments, count);
    if (!call.digest) return nullptr;
    ImageHead head;
    memcpy(head.digest, call.digest, ImageHead::DIGEST);
    head.sum = head.expected_sum();
    ImageWriter to(int(call.file), head);
    save_program(to, call.state->program);
    return to.failed ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromUnsignedLongLong(to.written);
}

// restore(state, file, digest) -> None, or what is wrong with the file: then the state is as it was when created
inline PyObject* restore(PyObject*, Arguments arguments, Py_ssize_t count) {
    FileCall call(arguments, count);
    if (!call.digest) return nullptr;
    MODULE.destroy(call.state->program);
    MODULE.construct(call.state->program);
    ImageReader from(int(call.file), call.digest);
    if (from.is_fine()) load_program(from, call.state->program);
    if (from.is_fine()) return none();
    PyObject* report = from.failed ? PyErr_SetFromErrno(PyExc_OSError) : PyUnicode_FromString(from.problem);
    MODULE.destroy(call.state->program);
    MODULE.construct(call.state->program);
    return report;
}

}  // namespace viewlet
