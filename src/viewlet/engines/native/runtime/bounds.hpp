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

// The places in a node for which a predicate holds, one that is true, then false. Every fourth is asked, then the three
// behind the last that said yes: no answer waits for another but in between, and nothing is guessed.
template <class Holds>
VIEWLET_INLINE u32 count_children(const Node* node, const Holds& holds) {  // the first child is not asked
    u32 from = 0, more = 0;
    for (u32 place = 4; place < INNER_ROOM; place += 4) from += 4 * u32(holds(place));
    for (u32 place = 1; place < 4; ++place) more += u32(holds(from + place));
    return from + more < node->used ? from + more : node->used - 1u;
}
template <class Holds>
VIEWLET_INLINE u32 count_entries(const Node* leaf, const Holds& holds) {
    u32 from = 0, more = 0;
    for (u32 place = 4; place < leaf->room; place += 4) from += 4 * u32(holds(place));
    for (u32 place = 0; place < 4; ++place) more += u32(holds(from + place));
    return from + more < leaf->used ? from + more : leaf->used;
}

}  // namespace viewlet
