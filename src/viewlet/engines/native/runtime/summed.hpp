// A batch that is summed up by key before it meets the maps (§5.1): one lookup for each key that it has, not for each row.
//
// It is right where nobody can tell in which order the events came. So what a group of rows comes to is first only added
// up, then looked at, and done last: until then a batch in which an event might fail is left to the triggers.
#pragma once

#include "describe.hpp"
#include "lanes.hpp"

namespace viewlet {

// What the changes of a whole number come to. They may wrap: then they do not stay within their reach.
template <class T>
struct Added {
    T sum{};

    VIEWLET_INLINE void add(T by, T& reach) {
        sum = T(u128(i128(sum)) + u128(i128(by)));
        reach |= by ^ (by >> (8 * sizeof(T) - 1));
    }
};

// The same of a number that counts the rows of a sum of doubles. `least` is its least on the way.
struct Counted : Added<i64> {
    i64 least{i64(~u64(0) >> 1)};

    VIEWLET_INLINE void add(i64 by, i64& reach) {
        Added<i64>::add(by, reach);
        least = sum < least ? sum : least;
    }
    // A sum over no rows is nothing, to its last bit. Whether there were none before the last event is for the triggers.
    bool stays(i64 before) const { return i128(before) + least > 0 || i128(before) + sum == 0; }
};

// What the changes of a sum of doubles come to. Not `tame`: one is so great that it is kept apart, or is no number, or
// comes more often than once.
struct AddedReal : Total<Real> {
    VIEWLET_INLINE void add(Real summand, i64 times, bool& tame) {
        tame &= (__builtin_fabs(summand.hi) < 0x1p800) & (((u64(times) + 1) & ~u64(2)) == 0);
        Total<Real>::add(opposite_if(times, summand));
    }
};

// Where a number can be while so many changes happen to it, in whatever order; `reach` has the bits of them all.
template <class T>
struct Within {
    i128 low{}, high{};
    bool fits{};

    VIEWLET_COLD Within(T before, T reach, u64 events) {
        constexpr u32 most = 94, many = 32;  // bits
        if (u128(reach) >> most || events >> many) return;
        i128 far = i128((u128(reach) + 1) * events);
        fits = !__builtin_sub_overflow(i128(before), far, &low) && !__builtin_add_overflow(i128(before), far, &high) &&
               low == i128(T(low)) && high == i128(T(high));
    }
};

// The groups of a batch. Past `most` of them a lookup for each row costs no more.
template <class Key, class Sums>
struct Groups {
    struct Group {
        Key key;
        Sums sums;
    };
    static constexpr u32 SLOTS = 1 << 12, MOST = SLOTS / 2, FEW = 32, ROWS = 8;  // a group should have so many
    Group* groups{};
    unsigned short* slots{};  // 0, or one more than the number of a group
    u32 count{}, most{};

    Groups() = default;
    Groups(const Groups&) = delete;
    ~Groups() { free(groups), free(slots); }

    Group* begin() const { return groups; }
    Group* end() const { return groups + count; }

    void start(u64 rows) {
        if (!slots) allocate();
        memset(static_cast<void*>(slots), 0, SLOTS * sizeof *slots);
        count = 0;
        most = FEW + rows / ROWS < MOST ? u32(FEW + rows / ROWS) : MOST;
    }

    // nullptr: there are too many.
    VIEWLET_INLINE Group* at(const Key& key) {
        u32 slot = short_hash(key.hash()) % SLOTS;
        for (; slots[slot]; slot = (slot + 1) % SLOTS)
            if (Group* group = groups + slots[slot] - 1; likely(group->key == key)) return group;
        return add(key, slot);
    }

private:
    VIEWLET_COLD void allocate() {
        slots = static_cast<unsigned short*>(malloc(SLOTS * sizeof *slots));
        groups = static_cast<Group*>(malloc(MOST * sizeof(Group)));
        if (!slots || !groups) fail("out of memory for a batch");
    }
    __attribute__((noinline)) Group* add(const Key& key, u32 slot) {
        if (count == most) return nullptr;
        slots[slot] = static_cast<unsigned short>(++count);
        return new (Placed{groups + count - 1}) Group{key, {}};
    }
};

// Batches of a stream that were no good for summing up: fewer and fewer of those that follow are tried.
struct Patience {
    static constexpr u32 LONGEST = 255;
    u32 left{}, next{};

    bool is_over() { return !left || !left--; }
    bool lose() {
        left = next = next < LONGEST ? 2 * next + 1 : LONGEST;
        return false;
    }
    bool win() {
        next = 0;
        return true;
    }
};

}  // namespace viewlet
