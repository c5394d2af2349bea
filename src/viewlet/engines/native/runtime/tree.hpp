// Ordered trees: the entries of a map in the order of one column, with sums of their values. Ranges are added up, and
// the places where a running sum crosses a threshold are found, in logarithmic time.
//
// Bounds are monotone predicates on keys, never keys: `up` is false, then true along ascending keys, `down` is true,
// then false. A tree must not change while a range of it is looped over.
#pragma once

#include "bounds.hpp"
#include "lanes.hpp"

namespace viewlet {

// `Memory`: what a tree is asked again and again, see remember.hpp.
template <class Key, class Memory, class... Lanes>
struct TreeWith {
    static constexpr u32 LANES = sizeof...(Lanes);
    template <u32 lane>
    using LaneAt = typename Nth<lane, Lanes...>::type;
    template <u32 lane>
    using Value = typename LaneAt<lane>::Value;

    struct Nodes : NodePools {
        Nodes() : NodePools(TreeWith::describe()) {}
    };

    TreeWith() = default;
    explicit TreeWith(Nodes& nodes) { use(nodes); }
    void use(Nodes& nodes) { shape.nodes = &nodes; }  // once, before anything is set
    TreeWith(const TreeWith&) = delete;

    // A new entry, or other values of one that is there; whether it is new.
    bool set(const Texts& texts, Key key, u32 id, const typename Lanes::Value&... values) {
        Path path;
        bool is_new = true;
        if (unlikely(!shape.root)) {
            shape.root = shape.nodes->take(0, 0);
            path.nodes[0] = shape.root, path.places[0] = 0;
            insert(path, key, id);
        } else if (!locate(texts, key, id, path)) {
            if (unlikely(path.nodes[0]->used == path.nodes[0]->room)) {
                shape.make_room(path);
                return set(texts, key, id, values...);
            }
            insert(path, key, id);
        } else {
            is_new = false;
        }
        change(Order{}, path, values...);
        return is_new;
    }

    void erase(const Texts& texts, Key key, u32 id) {
        Path path;
        if (!shape.root || !locate(texts, key, id, path)) return;
        change(Order{}, path, typename Lanes::Value{}...);
        Node* leaf = path.nodes[0];
        shape.close(leaf, path.places[0]);
        vast -= is_vast(key);
        if (path.places[0] == leaf->used) pad(leaf);
        if (path.places[0] == 0) name_least(path);
        if (unlikely(TreeShape::is_sparse(leaf))) shape.mend(path);
    }

    // Adds to each of `into` the sum of a lane between the bounds.
    template <u32... lanes, class Up, class Down, class... Into>
    VIEWLET_INLINE void sum(Faults& faults, u32 view, const Up& up, const Down& down, Into&... into) {
        if (!shape.root) return;
        if (unlikely(has_vast())) ask_each(up), ask_each(down);
        if (unlikely((wild[lanes] || ...))) {
            (walk_sum<lanes>(faults, view, up, down, into), ...);
            return;
        }
        Sums<lanes...> totals;
        add_between(totals, up, down);
        (add_to(faults, view, into, static_cast<SumOf<lanes>&>(totals).value()), ...);
    }

    // The same of two ranges.
    template <u32... lanes, class Up, class Down, class OtherUp, class OtherDown, class... Into>
    VIEWLET_INLINE void sum_both(Faults& faults, u32 view, const Up& up, const Down& down, const OtherUp& other_up,
                                 const OtherDown& other_down, Into&... into) {
        if (!shape.root) return;
        if (unlikely(has_vast() || (wild[lanes] || ...))) {
            sum<lanes...>(faults, view, up, down, into...);
            return sum<lanes...>(faults, view, other_up, other_down, into...);
        }
        Sums<lanes...> totals;
        add_between(totals, up, down);
        add_between(totals, other_up, other_down);
        (add_to(faults, view, into, static_cast<SumOf<lanes>&>(totals).value()), ...);
    }

    // Appends the runs in which the lane's running sum, from the left or (`after`) from the right, meets a condition
    // that is monotone in it.
    template <u32 lane, bool after, class Holds>
    void runs(Faults& faults, u32 view, const Holds& holds, RunList<Key>& out) {
        static_assert(after ? LaneAt<lane>::AFTER : LaneAt<lane>::BEFORE);
        if (unlikely(shape.root && wild[lane])) {
            RunWalk<Key, Checked<Value<lane>>, Holds> walk{{faults, view}, holds, out};
            walk_all<lane, after>(shape.root, walk);
            walk.finish();
        } else if (unlikely(shape.root && negatives[lane])) {
            RunWalk<Key, Total<Value<lane>>, Holds> walk{{}, holds, out};
            walk_changes<lane, after>(shape.root, walk);
            walk.finish();
        } else {
            find_crossing<lane, after>(holds).push_to(out);
        }
    }

    template <class Down>
    struct Range {
        Node* leaf;
        u32 place;
        Down down;

        VIEWLET_INLINE Range begin() const { return *this; }
        VIEWLET_INLINE decltype(nullptr) end() const { return nullptr; }
        VIEWLET_INLINE bool operator!=(decltype(nullptr)) const { return leaf && down(keys(leaf)[place]); }
        VIEWLET_INLINE u32 operator*() const { return ids(leaf)[place]; }
        VIEWLET_INLINE void operator++() {
            if (++place == leaf->used) leaf = leaf->next, place = 0;
        }
    };
    // The ids between the bounds, in order: for (u32 id : tree.range(up, down)).
    template <class Up, class Down>
    Range<Down> range(const Up& up, const Down& down) const {
        if (!shape.root) return {nullptr, 0, down};
        if (unlikely(has_vast())) ask_each(up), ask_each(down);
        Node* node = shape.root;
        while (node->level) node = children(node)[is_bound<Up> ? last_not(node, up) : 0];
        u32 place = is_bound<Up> ? first_of(node, up) : 0;
        if (place == node->used) return {node->next, 0, down};
        return {node, place, down};
    }

    bool is_empty() const { return !shape.root; }
    u32 least() const {  // an id; 0: there is none
        if (!shape.root) return 0;
        Node* node = shape.root;
        while (node->level) node = children(node)[0];
        return ids(node)[0];
    }
    u32 greatest() const {
        if (!shape.root) return 0;
        Node* node = shape.root;
        while (node->level) node = children(node)[node->used - 1];
        return ids(node)[node->used - 1];
    }

protected:
    friend struct TreeCheck;  // of the tests
    using Order = typename UpTo<LANES>::type;

    TreeShape shape;
    u32 wild[LANES]{};       // by lane: how many values are
    u32 negatives[LANES]{};  // by lane, if its running sums matter
    u32 vast{};              // keys, of doubles
    [[no_unique_address]] Memory memory;
    bool has_vast() const { return __is_same(Key, double) && vast; }

    // -- columns

    static constexpr u32 CHILDREN = sizeof(Key) + sizeof(u32), FIRST_LANE = CHILDREN + sizeof(Node*);

    static consteval u32 value_offset(u32 lane) {
        u32 widths[] = {sizeof(typename Lanes::Value)...}, offset = CHILDREN;
        for (u32 i = 0; i < lane; ++i) offset += widths[i];
        return offset;
    }
    static consteval u32 lane_offset(u32 lane) {
        u32 widths[] = {Lanes::WIDTH...}, offset = FIRST_LANE;
        for (u32 i = 0; i < lane; ++i) offset += widths[i];
        return offset;
    }
    static const Layout& describe() {
        static constexpr Layout layout = [] {
            Layout layout;
            for (u32 kind = 0; kind < 2; ++kind) layout.add(kind, sizeof(Key)), layout.add(kind, sizeof(u32));
            layout.add(1, sizeof(Node*));
            (layout.add(0, sizeof(typename Lanes::Value)), ...);
            (add_columns<Lanes>(layout), ...);
            layout.refresh = [](Node* parent, u32 place) { refresh(Order{}, parent, place); };
            return layout;
        }();
        return layout;
    }
    template <class Lane>
    static constexpr void add_columns(Layout& layout) {
        layout.add(1, sizeof(typename Lane::Value));
        if (Lane::RUNNING) layout.add(1, sizeof(u32));
        for (u32 i = 0; i < 2 * (Lane::BEFORE + Lane::AFTER); ++i) layout.add(1, sizeof(typename Lane::Bound));
    }

    template <class T>
    static VIEWLET_INLINE T* column_of(Node* node, u32 offset) {
        return reinterpret_cast<T*>(TreeShape::column(node, offset));
    }
    template <class T>
    static VIEWLET_INLINE T* inner_column(Node* node, u32 offset) {  // where the room is known
        return reinterpret_cast<T*>(reinterpret_cast<char*>(node + 1) + INNER_ROOM * offset);
    }
    static VIEWLET_INLINE Key* keys(Node* node) { return column_of<Key>(node, 0); }
    static VIEWLET_INLINE u32* ids(Node* node) { return column_of<u32>(node, sizeof(Key)); }
    static VIEWLET_INLINE Node** children(Node* node) { return inner_column<Node*>(node, CHILDREN); }
    // Of the entries of a leaf or the children of an inner node.
    template <u32 lane>
    static VIEWLET_INLINE Value<lane>* values(Node* leaf) {
        return column_of<Value<lane>>(leaf, value_offset(lane));
    }
    template <u32 lane>
    static VIEWLET_INLINE Value<lane>* sums(Node* node) {
        return inner_column<Value<lane>>(node, lane_offset(lane));
    }
    template <u32 lane>
    static VIEWLET_INLINE u32* counts(Node* node) {  // of negative values
        return inner_column<u32>(node, lane_offset(lane) + LaneAt<lane>::COUNTED);
    }
    // The least running sums; the greatest follow.
    template <u32 lane, bool after>
    static VIEWLET_INLINE auto* bounds(Node* node) {
        using Bound = typename LaneAt<lane>::Bound;
        u32 offset = after && LaneAt<lane>::BEFORE ? 2 * sizeof(Bound) : 0;
        return inner_column<Bound>(node, lane_offset(lane) + LaneAt<lane>::BOUNDED + offset);
    }

    // -- search

    template <class Up>
    static VIEWLET_INLINE u32 last_not(Node* node, const Up& up) {
        return count_children(node, keys(node), before<Key>(up));
    }
    template <class Up>
    static VIEWLET_INLINE u32 first_of(Node* leaf, const Up& up) {
        return count_entries(leaf, keys(leaf), before<Key>(up));
    }

    // The place of an entry in its leaf, or where it would be, and whether it is there. Keys are searched, and where
    // they are equal, ids.
    __attribute__((noinline)) bool locate(const Texts& texts, Key key, u32 id, Path& path) const {
        Node* node = shape.root;
        for (u32 level = node->level; level; --level) {
            u32 place = count_children(node, keys(node), not_after(texts, key));
            while (place && same(keys(node)[place], key) && ids(node)[place] > id) --place;
            path.nodes[level] = node, path.places[level] = place;
            node = children(node)[place];
        }
        u32 place = count_entries(node, keys(node), preceding(texts, key));
        while (place < node->used && same(keys(node)[place], key) && ids(node)[place] < id) ++place;
        path.nodes[0] = node, path.places[0] = place;
        return place < node->used && ids(node)[place] == id && same(keys(node)[place], key);
    }

    // -- changes

    // An entry whose values are 0: no sum changes. It is the least of a leaf only if it is the least of the tree.
    VIEWLET_INLINE void insert(const Path& path, Key key, u32 id) {
        Node* leaf = path.nodes[0];
        u32 place = path.places[0];
        shape.open(leaf, place);
        keys(leaf)[place] = key, ids(leaf)[place] = id;
        vast += is_vast(key);
        clear(Order{}, leaf, place);
        if (place + 1u == leaf->used) pad(leaf);
    }
    // In line and column by column: g++ 12 takes one loop over both, alone in a function, for one that writes nothing.
    static VIEWLET_INLINE void pad(Node* node) {
        if (!node->used) return;
        repeat_last(keys(node), node->used, node->room);
        repeat_last(ids(node), node->used, node->room);
    }
    template <class T>
    static VIEWLET_INLINE void repeat_last(T* column, u32 used, u32 room) {
        for (u32 place = used; place < room; ++place) column[place] = column[used - 1];
    }
    template <u32... lanes>
    static VIEWLET_INLINE void clear(Numbers<lanes...>, Node* leaf, u32 place) {
        ((values<lanes>(leaf)[place] = {}), ...);
    }

    // The least entry of the leaf is another one: the node that divides it from what comes before must know.
    VIEWLET_COLD void name_least(const Path& path) {
        if (path.nodes[0]->used == 0) return;
        for (u32 level = 1; level <= shape.root->level; ++level) {
            Node* node = path.nodes[level];
            u32 place = path.places[level];
            if (!place) continue;
            shape.copy_key(path.nodes[0], 0, node, place);
            if (place + 1u == node->used) pad(node);
            return;
        }
    }

    template <u32... lanes>
    __attribute__((noinline)) void change(Numbers<lanes...>, const Path& path, const Value<lanes>&... values) {
        (change_lane<lanes>(path, values), ...);
    }
    template <u32 lane>
    VIEWLET_INLINE void change_lane(const Path& path, Value<lane> value) {
        using T = Value<lane>;
        T& cell = values<lane>(path.nodes[0])[path.places[0]];
        T before = tame(cell), now = tame(value), difference = tame_sum(now, -before);
        wild[lane] += is_wild(value) - is_wild(cell);
        cell = value;
        for (u32 level = 1; level <= shape.root->level; ++level) {
            T& sum = sums<lane>(path.nodes[level])[path.places[level]];
            sum = tame_sum(sum, difference);
        }
        if constexpr (LaneAt<lane>::RUNNING) {
            u32 more = u32(is_negative(now)) - u32(is_negative(before));
            negatives[lane] += more;
            if (unlikely(negatives[lane] || more)) change_bounds<lane>(path, more);
        }
    }
    template <u32 lane>
    VIEWLET_COLD void change_bounds(const Path& path, u32 more) {
        for (u32 level = 1; level <= shape.root->level; ++level)
            if (counts<lane>(path.nodes[level])[path.places[level]] += more)
                refresh_bounds<lane>(path.nodes[level], path.places[level]);
    }

    template <u32... lanes>
    static void refresh(Numbers<lanes...>, Node* parent, u32 place) {
        (refresh_lane<lanes>(parent, place), ...);
    }
    template <u32 lane>
    static void refresh_lane(Node* parent, u32 place) {
        Node* node = children(parent)[place];
        Total<Value<lane>> total;
        u32 count = 0;
        for (u32 i = 0; i < node->used; ++i) {
            Value<lane> value = node->level ? sums<lane>(node)[i] : tame(values<lane>(node)[i]);
            total.add(value);
            if constexpr (LaneAt<lane>::RUNNING) count += node->level ? counts<lane>(node)[i] : is_negative(value);
        }
        sums<lane>(parent)[place] = Value<lane>(total.value());
        if constexpr (LaneAt<lane>::RUNNING) counts<lane>(parent)[place] = count;
        if (count) refresh_bounds<lane>(parent, place);
    }
    template <u32 lane>
    static void refresh_bounds(Node* parent, u32 place) {
        if constexpr (LaneAt<lane>::BEFORE) refresh_extent<lane, false>(parent, place);
        if constexpr (LaneAt<lane>::AFTER) refresh_extent<lane, true>(parent, place);
    }
    template <u32 lane, bool after>
    static VIEWLET_COLD void refresh_extent(Node* parent, u32 place) {
        Node* node = children(parent)[place];
        Total<Value<lane>> start;
        Extent<Value<lane>> extent;
        for (u32 n = 0; n < node->used; ++n) {
            u32 i = after ? node->used - 1 - n : n;
            Value<lane> value = node->level ? sums<lane>(node)[i] : tame(values<lane>(node)[i]);
            if (node->level && counts<lane>(node)[i])
                extent.cover(start, bounds<lane, after>(node)[i], bounds<lane, after>(node)[INNER_ROOM + i]);
            else
                extent.cover(start, value, value);
            start.add(value);
        }
        bounds<lane, after>(parent)[place] = extent.least;
        bounds<lane, after>(parent)[INNER_ROOM + place] = extent.greatest;
    }

    // -- sums

    template <u32 lane>
    struct SumOf : PartSum<Value<lane>> {};
    template <u32... lanes>
    struct Sums : SumOf<lanes>... {
        VIEWLET_INLINE void add_children(Node* node, u32 from, u32 to) {
            (static_cast<SumOf<lanes>&>(*this).add(sums<lanes>(node), INNER_ROOM, from, to), ...);
        }
        VIEWLET_INLINE void add_entries(Node* leaf, u32 from, u32 to) {
            (static_cast<SumOf<lanes>&>(*this).add(values<lanes>(leaf), leaf->room, from, to), ...);
        }
    };

    template <class Sums, class Up, class Down>
    VIEWLET_INLINE void add_between(Sums& sums, const Up& up, const Down& down) const {
        if constexpr (!is_bound<Up>) return add_before(sums, shape.root, down);
        if constexpr (!is_bound<Down>) return add_after(sums, shape.root, up);
        Node* node = shape.root;
        while (node->level) {
            u32 from = last_not(node, up), to = last_of(node, down);
            if (from > to) return;
            if (from < to) {
                sums.add_children(node, from + 1, to);
                add_after(sums, children(node)[from], up);
                return add_before(sums, children(node)[to], down);
            }
            node = children(node)[from];
        }
        sums.add_entries(node, first_of(node, up), end_of(node, down));
    }
    template <class Sums, class Down>
    static VIEWLET_INLINE void add_before(Sums& sums, Node* node, const Down& down) {
        if constexpr (!is_bound<Down>) return add_all(sums, node);
        while (node->level) {
            u32 to = last_of(node, down);
            sums.add_children(node, 0, to);
            node = children(node)[to];
        }
        sums.add_entries(node, 0, end_of(node, down));
    }
    template <class Sums, class Up>
    static VIEWLET_INLINE void add_after(Sums& sums, Node* node, const Up& up) {
        while (node->level) {
            u32 from = last_not(node, up);
            sums.add_children(node, from + 1, node->used);
            node = children(node)[from];
        }
        sums.add_entries(node, first_of(node, up), node->used);
    }
    template <class Sums>
    static VIEWLET_INLINE void add_all(Sums& sums, Node* node) {
        if (node->level)
            sums.add_children(node, 0, node->used);
        else
            sums.add_entries(node, 0, node->used);
    }
    template <class Down>
    static VIEWLET_INLINE u32 last_of(Node* node, const Down& down) {
        return count_children(node, keys(node), up_to<Key>(down));
    }
    template <class Down>
    static VIEWLET_INLINE u32 end_of(Node* leaf, const Down& down) {
        return count_entries(leaf, keys(leaf), up_to<Key>(down));
    }

    template <u32 lane, class Up, class Down, class Sum>
    VIEWLET_COLD void walk_sum(Faults& faults, u32 view, const Up& up, const Down& down, Sum& into) const {
        Checked<Value<lane>> total{faults, view};
        for (auto at = range(up, down); at != nullptr; ++at) total.add(values<lane>(at.leaf)[at.place]);
        add_to(faults, view, into, total.value());
    }

    // -- running sums

    template <u32 lane, bool after, class Walk>
    static VIEWLET_COLD void walk_all(Node* node, Walk& walk) {
        for (u32 n = 0; n < node->used; ++n) {
            u32 i = after ? node->used - 1 - n : n;
            if (node->level) {
                walk_all<lane, after>(children(node)[i], walk);
            } else {
                walk.total.add(values<lane>(node)[i]);
                walk.pass(keys(node)[i]);
            }
        }
    }

    // What lies between bounds at which the condition holds as before needs no look.
    template <u32 lane, bool after, class Walk>
    static VIEWLET_COLD void walk_changes(Node* node, Walk& walk) {
        if (!node->level) return walk_all<lane, after>(node, walk);
        for (u32 n = 0; n < node->used; ++n) {
            u32 i = after ? node->used - 1 - n : n;
            bool mixed = counts<lane>(node)[i];
            auto low = walk.total, high = walk.total, end = walk.total;
            end.add(sums<lane>(node)[i]);
            if (mixed)
                low.add(bounds<lane, after>(node)[i]), high.add(bounds<lane, after>(node)[INNER_ROOM + i]);
            else
                high = end;
            if (walk.holds(low.value()) != walk.holding || walk.holds(high.value()) != walk.holding)
                walk_changes<lane, after>(children(node)[i], walk);
            walk.total = end;
        }
    }

    // No value is negative: the condition changes once or never. Below the root it must, at the last if nowhere else.
    template <u32 lane, bool after, class Holds>
    VIEWLET_INLINE Crossing<Key, Value<lane>> find_crossing(const Holds& holds) const {
        Total<Value<lane>> total;
        Crossing<Key, Value<lane>> crossing{holds(total.value())};
        for (Node* node = shape.root; node;) {
            u32 last = node->used - 1, n;
            auto* summands = node->level ? sums<lane>(node) : values<lane>(node);
            u32 end = node == shape.root ? last + 1 : last;
            for (n = 0; n < end; ++n) {
                auto next = total;
                next.add(summands[after ? last - n : n]);
                if (holds(next.value()) != crossing.holding) break;
                total = next;
            }
            if (n > last) break;
            u32 place = after ? last - n : n;
            crossing.is_there = !node->level;
            crossing.key = keys(node)[place], crossing.own = summands[place];
            node = node->level ? children(node)[place] : nullptr;
        }
        crossing.before = Value<lane>(total.value());
        return crossing;
    }
};

struct NoMemory {};
template <class Key, class... Lanes>
using Tree = TreeWith<Key, NoMemory, Lanes...>;

}  // namespace viewlet
