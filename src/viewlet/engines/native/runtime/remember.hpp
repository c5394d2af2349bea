// Trees that remember their answers. A bound that follows from sums moves with every event, but mostly it passes no key:
// the range then holds what it held, and what was put into it since.
//
// What was remembered is true as long as entries only came. Where an entry in a range changes or leaves, its sums are
// added up again: nothing is ever taken out of a remembered sum, so that it is as exact as a new one.
#pragma once

#include "tree.hpp"

namespace viewlet {

// The keys on both sides of a place in a tree.
template <class Key>
struct Gap {
    Key before{}, after{};
    bool has_before{}, has_after{};

    VIEWLET_INLINE bool is_before(Key key) const { return has_before && !less(before, key); }
    VIEWLET_INLINE bool is_after(Key key) const { return has_after && !less(key, after); }
};

// Values of several types, side by side.
template <class... T>
struct Pack {};
template <class First, class... Rest>
struct Pack<First, Rest...> {
    First first{};
    [[no_unique_address]] Pack<Rest...> rest;
};
template <u32 n>
VIEWLET_INLINE auto& nth(auto& pack) {
    if constexpr (n == 0)
        return pack.first;
    else
        return nth<n - 1>(pack.rest);
}
template <u32 n>
VIEWLET_INLINE const auto& pick(const auto& first, const auto&... rest) {
    if constexpr (n == 0)
        return first;
    else
        return pick<n - 1>(rest...);
}

// The sums over a range, in these lanes.
template <u32... lanes>
struct RangeSums {
    template <class Key, class... Lanes>
    struct Memory {
        using Places = typename UpTo<sizeof...(lanes)>::type;

        Gap<Key> begin, end;  // around the first and the last key of the range
        bool is_known{}, has_up{}, has_down{}, is_empty{};
        Pack<typename Nth<lanes, Lanes...>::type::Value...> sums;

        // Whether the bounds are met by what met them before, and by nothing else.
        template <class Up, class Down>
        VIEWLET_INLINE bool still(const Up& up, const Down& down) const {
            if (!is_known || has_up != is_bound<Up> || has_down != is_bound<Down>) return false;
            if ((begin.has_before && up(begin.before)) || (end.has_after && down(end.after))) return false;
            return is_empty || ((!has_up || up(begin.after)) && (!has_down || down(end.before)));
        }
        VIEWLET_INLINE void note(Key key, bool is_new, const typename Lanes::Value&... values) {
            if (!is_known || (has_up && begin.is_before(key)) || (has_down && end.is_after(key))) return;
            is_known = is_new && (!has_up || begin.is_after(key)) && (!has_down || end.is_before(key));
            if (is_known) put(Places{}, values...);
        }

    private:
        template <u32... n>
        VIEWLET_INLINE void put(Numbers<n...>, const auto&... values) {
            ((nth<n>(sums) = tame_sum(nth<n>(sums), tame(pick<lanes>(values...)))), ...);
        }
    };
};

// Where a condition on the running sum of a lane changes.
template <u32 lane, bool after>
struct CrossingOf {
    template <class Key, class... Lanes>
    struct Memory {
        using Value = typename Nth<lane, Lanes...>::type::Value;

        Crossing<Key, Value> crossing{};
        bool is_known{};

        template <class Holds>
        VIEWLET_INLINE bool still(const Holds& holds) const {
            const auto& [holding, is_there, key, before, own] = crossing;
            if (!is_known || holds(Value{}) != holding || holds(before) != holding) return false;
            return !is_there || holds(tame_sum(before, own)) != holding;
        }
        VIEWLET_INLINE void note(Key key, bool is_new, const typename Lanes::Value&... values) {
            if (!is_known || (crossing.is_there && is_beyond(crossing.key, key))) return;
            is_known = is_new && (!crossing.is_there || is_beyond(key, crossing.key));
            if (is_known) crossing.before = tame_sum(crossing.before, tame(pick<lane>(values...)));
        }

    private:
        static VIEWLET_INLINE bool is_beyond(Key key, Key other) { return after ? less(other, key) : less(key, other); }
    };
};

// A tree of keys that machines compare, with what it was asked: RangeSums and CrossingOf.
template <class... Answers>
struct Memories {
    template <class Key, class... Lanes>
    using Of = Pack<typename Answers::template Memory<Key, Lanes...>...>;
};
template <class Key_, class Memories, class... Lanes>
struct RememberingTree : TreeWith<Key_, typename Memories::template Of<Key_, Lanes...>, Lanes...> {
    using Tree = TreeWith<Key_, typename Memories::template Of<Key_, Lanes...>, Lanes...>;
    using Key = Key_;
    using Tree::Tree;

    void set(const Texts& texts, Key key, u32 id, const typename Lanes::Value&... values) {
        note(this->memory, key, Tree::set(texts, key, id, values...), values...);
    }
    void erase(const Texts& texts, Key key, u32 id) {
        Tree::erase(texts, key, id);
        note(this->memory, key, false, typename Lanes::Value{}...);
    }

    // As sum() and runs(), from one of the memories.
    template <u32 n, u32... lanes, class Up, class Down, class... Into>
    VIEWLET_INLINE void recall_sum(Faults& faults, u32 view, const Up& up, const Down& down, Into&... into) {
        if (!this->shape.root) return;
        if (unlikely(this->has_vast() || (this->wild[lanes] || ...)))
            return Tree::template sum<lanes...>(faults, view, up, down, into...);
        auto& memory = nth<n>(this->memory);
        if (!memory.still(up, down)) learn<lanes...>(memory, up, down);
        add_each(typename UpTo<sizeof...(lanes)>::type{}, faults, view, memory, into...);
    }
    template <u32 n, u32 lane, bool after, class Holds>
    VIEWLET_INLINE void recall_runs(Faults& faults, u32 view, const Holds& holds, RunList<Key>& out) {
        if (unlikely(!this->shape.root || this->wild[lane] || this->negatives[lane]))
            return Tree::template runs<lane, after>(faults, view, holds, out);
        auto& memory = nth<n>(this->memory);
        if (!memory.still(holds)) {
            memory.crossing = Tree::template find_crossing<lane, after>(holds);
            memory.is_known = true;
        }
        memory.crossing.push_to(out);
    }

private:
    template <class Memory, class... Rest>
    static VIEWLET_INLINE void note(Pack<Memory, Rest...>& memories, const auto&... change) {
        memories.first.note(change...);
        if constexpr (sizeof...(Rest)) note(memories.rest, change...);
    }
    template <u32... place>
    static VIEWLET_INLINE void add_each(Numbers<place...>, Faults& faults, u32 view, auto& memory, auto&... into) {
        (add_to(faults, view, into, nth<place>(memory.sums)), ...);
    }

    template <u32... lanes, class Up, class Down>
    __attribute__((noinline)) void learn(auto& memory, const Up& up, const Down& down) {
        typename Tree::template Sums<lanes...> sums;
        this->add_between(sums, up, down);
        memory.has_up = is_bound<Up>, memory.has_down = is_bound<Down>, memory.is_known = true;
        const Gap<Key>& begin = memory.begin = is_bound<Up> ? gap(before<Key>(up)) : Gap<Key>{};
        const Gap<Key>& end = memory.end = is_bound<Down> ? gap(up_to<Key>(down)) : Gap<Key>{};
        memory.is_empty = (memory.has_up && !begin.has_after) || (memory.has_down && !end.has_before) ||
                          (memory.has_up && memory.has_down && less(end.before, begin.after));
        keep<lanes...>(typename UpTo<sizeof...(lanes)>::type{}, memory, sums);
    }
    template <u32... lanes, u32... place>
    static VIEWLET_INLINE void keep(Numbers<place...>, auto& memory, const auto& sums) {
        ((nth<place>(memory.sums) = typename Tree::template Value<lanes>(
              static_cast<const typename Tree::template SumOf<lanes>&>(sums).value())),
         ...);
    }

    // Where a condition that holds up to some key ends. The first key of a leaf meets it, or none does.
    template <class Holds>
    Gap<Key> gap(const Holds& holds) const {
        Gap<Key> gap;
        Node* node = this->shape.root;
        while (node->level) node = Tree::children(node)[count_children(node, Tree::keys(node), holds)];
        u32 place = count_entries(node, Tree::keys(node), holds);
        if (place) gap.before = Tree::keys(node)[place - 1], gap.has_before = true;
        if (place == node->used) node = node->next, place = 0;
        if (node) gap.after = Tree::keys(node)[place], gap.has_after = true;
        return gap;
    }
};

}  // namespace viewlet
