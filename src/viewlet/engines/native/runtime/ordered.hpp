// Ordered indexes of a map: for each slice, values of some columns of the key, a tree in the order of one more column.
//
// The traits of an index, which are generated, are a type with
//   Tree, Slice (with == and hash(), or NoSlice)
//   orders(key): false where the column is NULL, and the entry in no tree;  by(key): the column;  slice(key)
//   set(tree, texts, entry): tree.set(texts, by(entry.key), entry.head.id, the value of each lane...)
//   is_nothing(values): the entry is in no tree. True where sweep() would erase it.
#pragma once

#include "map.hpp"
#include "remember.hpp"

namespace viewlet {

// A map with ordered indexes. Entries whose values change are noted, and put into the trees when somebody is about to
// read these, and before sweep().
template <class Key, class Values, class... Indexes>
struct OrderedMap : Map<Key, Values, Indexes...> {
    using Base = Map<Key, Values, Indexes...>;
    using Entry = typename Base::Entry;
    using Base::Base;

    Ids touched;

    VIEWLET_INLINE void touch(Entry& entry) {
        if (entry.head.touched) return;
        entry.head.touched = true;
        touched.push(entry.head.id);
    }
    VIEWLET_INLINE Entry& named(u32 id) {
        return *static_cast<Entry*>(Base::parts().entries.address(id, sizeof(Entry)));
    }
    MapParts parts() {
        MapParts parts = Base::parts();
        parts.touched = &touched;
        return parts;
    }
    // One of those in `touched`, which it leaves.
    VIEWLET_INLINE Entry& next_touched() {
        Entry& entry = named(touched.ids[--touched.size]);
        entry.head.touched = false;
        return entry;
    }

    u64 bytes() const { return Base::bytes() + touched.bytes(); }
    void clear() {
        Base::clear();
        touched.size = 0;
    }
};

struct NoSlice {};

// The trees of an index; those that are empty leave.
template <class Tree, class Slice, class... SliceIndexes>
struct Trees {
    struct Holder {
        Tree tree;
        bool settle() const { return tree.is_empty(); }
    };
    using Slices = Map<Slice, Holder, SliceIndexes...>;
    typename Tree::Nodes nodes;
    Slices slices;  // for loops over all slices, or those that agree in part: values.tree of each entry

    VIEWLET_INLINE Tree* find(const Slice& slice) {
        auto* holder = slices.find(slice);
        return holder ? &holder->values.tree : nullptr;
    }
    VIEWLET_INLINE Tree& at(const Slice& slice) {
        Tree& tree = slices.at(slice).values.tree;
        tree.use(nodes);
        return tree;
    }
    template <class... Key>
    VIEWLET_INLINE void erase(const Slice& slice, const Texts& texts, const Key&... key) {
        auto* holder = slices.find(slice);
        if (!holder) return;
        holder->values.tree.erase(texts, key...);
        if (!holder->values.tree.is_empty()) return;
        slices.doubt(*holder);
        slices.sweep();
    }
    u64 bytes() const { return nodes.bytes() + slices.bytes(); }
    void clear() {
        slices.clear();
        nodes.release();
    }
};

template <class Tree>
struct Trees<Tree, NoSlice> {
    typename Tree::Nodes nodes;
    Tree tree{nodes};

    VIEWLET_INLINE Tree& only() { return tree; }
    VIEWLET_INLINE Tree& at(NoSlice) { return tree; }
    template <class... Key>
    VIEWLET_INLINE void erase(NoSlice, const Texts& texts, const Key&... key) {
        tree.erase(texts, key...);
    }
    u64 bytes() const { return nodes.bytes(); }
    void clear() {
        nodes.release();
        tree.~Tree();
        new (Placed{&tree}) Tree{nodes};
    }
};

template <class OrderedMap, class Traits, class... SliceIndexes>
struct Ordered : Trees<typename Traits::Tree, typename Traits::Slice, SliceIndexes...> {
    using Tree = typename Traits::Tree;
    using Slice = typename Traits::Slice;
    using Entry = typename OrderedMap::Entry;

    // Brings the entry's tree up to date.
    void put(const Texts& texts, Entry& entry) {
        if (!Traits::orders(entry.key)) return;
        if (Traits::is_nothing(entry.values))
            this->erase(Traits::slice(entry.key), texts, Traits::by(entry.key), entry.head.id);
        else
            Traits::set(this->at(Traits::slice(entry.key)), texts, entry);
    }
};

}  // namespace viewlet
