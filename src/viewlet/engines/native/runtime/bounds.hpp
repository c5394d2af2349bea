// How an ordered tree is asked, and how its nodes are searched.
#pragma once

#include "nodes.hpp"
#include "real.hpp"
#include "texts.hpp"

namespace viewlet {

struct Everything {  // the bound of a side without one
    template <class Key>
    constexpr bool operator()(const Key&) const {
        return true;
    }
};
template <class Bound>
inline constexpr bool is_bound = !__is_same(Bound, Everything);

VIEWLET_INLINE bool precedes(const Texts&, bool a, bool b) { return a < b; }
VIEWLET_INLINE bool precedes(const Texts&, i64 a, i64 b) { return a < b; }
VIEWLET_INLINE bool precedes(const Texts&, i128 a, i128 b) { return a < b; }
VIEWLET_INLINE bool precedes(const Texts&, double a, double b) { return less(a, b); }
VIEWLET_INLINE bool precedes(const Texts& texts, Text a, Text b) { return texts.compare(a, b) < 0; }

VIEWLET_INLINE bool less(i64 a, i64 b) { return a < b; }

// The keys k at which a running sum meets a condition: k lies in the run if the running sum includes `inside`, if there
// is one, and does not include `outside`, if there is one.
template <class Key>
struct Run {
    Key inside{}, outside{};
    bool has_inside{}, has_outside{};
};

template <class Key>
struct RunList {
    RunList() = default;
    RunList(const RunList&) = delete;
    ~RunList() { release(); }

    void push(const Run<Key>& run) {
        if (unlikely(size == room)) grow();
        runs[size++] = run;
    }
    void clear() { size = 0; }
    const Run<Key>* begin() const { return runs; }
    const Run<Key>* end() const { return runs + size; }

private:
    Run<Key> first[2];  // values that are not negative have one run
    Run<Key>* runs{first};
    u32 size{}, room{2};

    void release() {
        if (runs != first) free(runs);
    }
    VIEWLET_COLD void grow() {
        auto* larger = static_cast<Run<Key>*>(malloc(2 * room * sizeof(Run<Key>)));
        if (!larger) fail("out of memory");
        for (u32 i = 0; i < size; ++i) larger[i] = runs[i];
        release();
        runs = larger, room *= 2;
    }
};

// Where a condition on a running sum changes, if it does: at an entry, behind the entries that add up to `before`.
template <class Key, class Value>
struct Crossing {
    bool holding;  // of no entries
    bool is_there{};
    Key key{};
    Value before{}, own{};

    VIEWLET_INLINE void push_to(RunList<Key>& out) const {
        if (is_there && holding)
            out.push({.outside = key, .has_outside = true});
        else if (is_there)
            out.push({.inside = key, .has_inside = true});
        else if (holding)
            out.push({});
    }
};

// Goes along a running sum and notes where it meets the condition.
template <class Key, class Total, class Holds>
struct RunWalk {
    Total total;
    const Holds& holds;
    RunList<Key>& out;
    Run<Key> run{};
    bool holding{holds(total.value())};

    void pass(Key key) {
        if (holds(total.value()) == holding) return;
        if (holding)
            run.outside = key, run.has_outside = true, out.push(run), run = {};
        else
            run.inside = key, run.has_inside = true;
        holding = !holding;
    }
    void finish() {
        if (holding) out.push(run);
    }
};

// -- bounds that compare keys with a value

enum class Side : u8 { ABOVE, FROM, BELOW, UP_TO };  // keys > value, >= value; < value, <= value

template <class Key, Side side>
struct Beside {  // Key: double, i64
    static constexpr bool UP = side == Side::ABOVE || side == Side::FROM;

    Key value;
    bool is_open{}, is_shut{};  // every key will do, or none, whatever the value is

    VIEWLET_INLINE bool operator()(Key key) const { return !is_shut && (is_open || is_beside(key)); }

private:
    VIEWLET_INLINE bool is_beside(Key key) const {
        if constexpr (side == Side::ABOVE) return less(value, key);
        if constexpr (side == Side::FROM) return !less(key, value);
        if constexpr (side == Side::BELOW) return less(key, value);
        if constexpr (side == Side::UP_TO) return !less(value, key);
    }
};
template <class Key, Side side>
VIEWLET_INLINE Beside<Key, side> both(const Beside<Key, side>& a, const Beside<Key, side>& b) {
    if (a.is_open || b.is_shut) return b;
    if (b.is_open || a.is_shut) return a;
    return less(a.value, b.value) == Beside<Key, side>::UP ? b : a;
}

// A value that keys of the type might not hold.
template <Side side>
VIEWLET_INLINE Beside<i64, side> beside(i128 value) {
    if (likely(value == i64(value))) return {i64(value)};
    bool all = (value < 0) == Beside<i64, side>::UP;
    return {0, all, !all};
}

// -- bounds that ask a condition of doubles, as a.price - b.price > 10

// Beyond these a term of a key may not be finite.
inline constexpr double VAST = 1e300;
template <class Key>
constexpr bool is_vast(Key key) {
    if constexpr (__is_same(Key, double)) return !(__builtin_fabs(key) < VAST);
    return false;
}

constexpr double greater(double a, double b) { return a > b ? a : b; }
constexpr double lesser(double a, double b) { return a < b ? a : b; }

// The double that is so many places behind another one in their order.
inline double behind(double value, i64 places) {
    constexpr u64 sign = u64(1) << 63;
    u64 bits;
    memcpy(&bits, &value, sizeof bits);
    u64 ordered = (bits & sign ? sign - (bits & ~sign) : sign + bits) + u64(places);
    bits = ordered < sign ? sign | (sign - ordered) : ordered - sign;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

// Where the condition changes was guessed, and it was asked on both sides: keys are then only compared with that place.
// It is asked of each key where the guess was wrong, where it cannot be computed for keys up to VAST, or where a tree
// has a key beyond that.
template <Side side, class Holds>
struct Solved {
    static constexpr u32 STEPS = 4;  // how many doubles a guess may be off

    const Holds holds;
    Faults& faults;
    Beside<double, side> bound{};
    mutable bool is_known{};

    Solved(Faults& faults, double guess, const Holds& holds) : holds(holds), faults(faults) {
        Faults met;
        auto is_after = [&](double key) { return holds(key, met) == Beside<double, side>::UP; };
        bool ends_before = is_after(guess);
        bound.value = ends_before ? guess : behind(guess, 1);
        for (u32 step = 0; step < STEPS && !is_known; ++step) {
            double next = ends_before ? behind(bound.value, -1) : bound.value;
            is_known = is_after(next) != ends_before;
            if (!is_known) bound.value = behind(bound.value, ends_before ? -1 : 1);
        }
        holds(-VAST, met), holds(VAST, met);
        is_known &= !met.any && !is_vast(bound.value);
    }

    VIEWLET_INLINE bool asked(double key) const { return holds(key, faults); }
    VIEWLET_INLINE bool operator()(double key) const { return is_known ? bound(key) : asked(key); }
};
template <Side side, class Holds>
VIEWLET_INLINE Solved<side, Holds> solved(Faults& faults, double guess, const Holds& holds) {
    return {faults, guess, holds};
}

template <class Bound>
VIEWLET_INLINE void ask_each(const Bound&) {}
template <Side side, class Holds>
VIEWLET_INLINE void ask_each(const Solved<side, Holds>& bound) {
    bound.is_known = false;
}

// -- search: how many keys of a node lie before a bound

// The keys that are < value, or <= value.
template <class Key, bool or_equal>
struct Before {
    Key value;
    bool none{}, all{};  // whatever the value is

    VIEWLET_INLINE bool operator()(Key key) const {
        return !none && (all || (or_equal ? !less(value, key) : less(key, value)));
    }
};

template <class Key, class Up>
VIEWLET_INLINE auto before(const Up& up) {
    return [&up](Key key) { return !up(key); };
}
template <class Key, Side side>
VIEWLET_INLINE auto before(const Beside<Key, side>& up) {
    return Before<Key, side == Side::ABOVE>{up.value, up.is_open, up.is_shut};
}
template <class Key, class Down>
VIEWLET_INLINE const Down& up_to(const Down& down) {
    return down;
}
template <class Key, Side side>
VIEWLET_INLINE auto up_to(const Beside<Key, side>& down) {
    return Before<Key, side == Side::UP_TO>{down.value, down.is_shut, down.is_open};
}

// Of two conditions the one to ask.
template <class Known, class Asked>
struct Either {
    bool is_known;
    Known known;
    Asked asked;
};
template <class Known, class Asked>
Either(bool, Known, Asked) -> Either<Known, Asked>;

template <class Key, Side side, class Holds>
VIEWLET_INLINE auto before(const Solved<side, Holds>& up) {
    return Either{up.is_known, before<Key>(up.bound), [&up](Key key) { return !up.asked(key); }};
}
template <class Key, Side side, class Holds>
VIEWLET_INLINE auto up_to(const Solved<side, Holds>& down) {
    return Either{down.is_known, up_to<Key>(down.bound), [&down](Key key) { return down.asked(key); }};
}

// The keys that do not come after one, or come before it.
template <class Key>
VIEWLET_INLINE auto not_after(const Texts& texts, Key key) {
    if constexpr (__is_same(Key, double) || __is_same(Key, i64))
        return Before<Key, true>{key};
    else
        return [&texts, key](Key other) { return !precedes(texts, key, other); };
}
template <class Key>
VIEWLET_INLINE auto preceding(const Texts& texts, Key key) {
    if constexpr (__is_same(Key, double) || __is_same(Key, i64))
        return Before<Key, false>{key};
    else
        return [&texts, key](Key other) { return precedes(texts, other, key); };
}

// Every fourth key is asked, then the three behind the last that said yes: no answer waits for another but in between,
// and nothing is guessed. Behind the keys in use the last of them is repeated.
template <class Key, class Holds>
VIEWLET_INLINE u32 count_children(const Node* node, const Key* keys, const Holds& holds) {  // the first is not asked
    u32 from = 0, behind = 0, last = node->used - 1u;
    for (u32 place = 4; place < INNER_ROOM; place += 4) from += 4 * u32(holds(keys[place]));
    for (u32 place = from + 1; place < from + 4; ++place) behind += u32(holds(keys[place]));
    return from + behind < last ? from + behind : last;
}
template <class Key, class Holds>
VIEWLET_INLINE u32 count_entries(const Node* leaf, const Key* keys, const Holds& holds) {
    u32 from = 0, behind = 0;
    for (u32 place = 4; place < leaf->room; place += 4) from += 4 * u32(holds(keys[place]));
    for (u32 place = from; place < from + 4; ++place) behind += u32(holds(keys[place]));
    return from + behind < leaf->used ? from + behind : leaf->used;
}

#ifdef __AVX512F__  // all keys are compared at once

using EightDoubles = double __attribute__((vector_size(64)));
using EightNumbers = i64 __attribute__((vector_size(64)));
constexpr int EQUAL = 0, LESS = 1, LESS_OR_EQUAL = 2;  // for the machine

// One bit for each of eight keys.
template <bool or_equal>
VIEWLET_INLINE u32 eight_before(const double* keys, double value) {
    EightDoubles all, other = {value, value, value, value, value, value, value, value};
    __builtin_memcpy(&all, keys, sizeof all);
    if (unlikely(value != value)) return or_equal ? 255 : u8(__builtin_ia32_cmppd512_mask(all, all, EQUAL, u8(-1), 4));
    return u8(__builtin_ia32_cmppd512_mask(all, other, or_equal ? LESS_OR_EQUAL : LESS, u8(-1), 4));
}
template <bool or_equal>
VIEWLET_INLINE u32 eight_before(const i64* keys, i64 value) {
    EightNumbers all, other = {value, value, value, value, value, value, value, value};
    __builtin_memcpy(&all, keys, sizeof all);
    return u8(__builtin_ia32_cmpq512_mask(all, other, or_equal ? LESS_OR_EQUAL : LESS, u8(-1)));
}
// Of those in use; in a small leaf, what follows the keys is looked at, too, but does not count.
template <class Key, bool or_equal>
VIEWLET_INLINE u32 bits_before(const Node* node, const Key* keys, const Before<Key, or_equal>& bound, bool small) {
    u32 bits = eight_before<or_equal>(keys, bound.value);
    if (!small) bits |= eight_before<or_equal>(keys + 8, bound.value) << 8;
    return (bits | -u32(bound.all)) & (u32(bound.none) - 1) & ((u32(1) << node->used) - 1);
}
template <class Key, bool or_equal>
VIEWLET_INLINE u32 count_children(const Node* node, const Key* keys, const Before<Key, or_equal>& bound) {
    return u32(__builtin_popcount(bits_before(node, keys, bound, false) & ~u32(1)));
}
template <class Key, bool or_equal>
VIEWLET_INLINE u32 count_entries(const Node* leaf, const Key* keys, const Before<Key, or_equal>& bound) {
    return u32(__builtin_popcount(bits_before(leaf, keys, bound, leaf->room <= 8)));
}
#endif

template <class Key, class Known, class Asked>
VIEWLET_INLINE u32 count_children(const Node* node, const Key* keys, const Either<Known, Asked>& holds) {
    return holds.is_known ? count_children(node, keys, holds.known) : count_children(node, keys, holds.asked);
}
template <class Key, class Known, class Asked>
VIEWLET_INLINE u32 count_entries(const Node* leaf, const Key* keys, const Either<Known, Asked>& holds) {
    return holds.is_known ? count_entries(leaf, keys, holds.known) : count_entries(leaf, keys, holds.asked);
}

}  // namespace viewlet
