// Open addressing from hashes to ids: the table that maps, their indexes and the pool of texts share. It knows nothing
// of keys; who looks something up says which id it means.
#pragma once

#include "memory.hpp"

namespace viewlet {

struct Slot {  // id 0: empty
    u32 hash, id;
};

// Linear probing; what is erased is closed by moving later slots back. A slot's home are the leading bits of its hash,
// so that a table of twice the size holds the same slots in the same order.
struct Probing {
    static inline Slot nothing[1]{};  // the table of an empty map: never written

    Slot* slots{nothing};
    u32 mask{};
    u32 shift{32};

    VIEWLET_INLINE u32 home(u32 hash) const { return u32(u64(hash) >> shift); }
    u64 size() const { return u64(mask) + 1; }
    u64 bytes() const { return mask ? size() * sizeof(Slot) : 0; }  // `nothing` has one slot, of any program

    template <class Meant>
    VIEWLET_INLINE Slot* find(u32 hash, const Meant& is_meant) const {
        for (u32 i = home(hash); slots[i].id; i = (i + 1) & mask)
            if (slots[i].hash == hash && likely(is_meant(slots[i].id))) return &slots[i];
        return nullptr;
    }

    VIEWLET_INLINE void put(Slot slot) {
        u32 i = home(slot.hash);
        while (slots[i].id) i = (i + 1) & mask;
        slots[i] = slot;
    }

    // A slot may move back into the hole unless its home lies behind the hole.
    VIEWLET_INLINE void erase(Slot* slot) {
        u32 hole = u32(slot - slots);
        for (u32 i = (hole + 1) & mask; slots[i].id; i = (i + 1) & mask) {
            u32 from_home = (i - home(slots[i].hash)) & mask, from_hole = (i - hole) & mask;
            if (from_home < from_hole) continue;
            slots[hole] = slots[i];
            hole = i;
        }
        slots[hole] = {};
    }

    void release() {
        if (bytes()) give_back(slots, bytes());
        *this = {};
    }
};

// A table at most half full (the guess at the next branch is then mostly right) that grows without a pause: the old one
// stays, and each insert moves a run of its slots, in order, to the new one. Hashes whose home in the old table is
// before `moved` live in the new one, the others still in the old one. So the new table's pages, too, are touched in
// order: an insert waits for one of them at most.
struct Slots {
    static constexpr u32 SMALLEST = 16, STEP = 16;

    VIEWLET_COLD Slots() {}
    Slots(const Slots&) = delete;
    ~Slots() { release(); }

    // The slot with this hash and an id that `is_meant` accepts.
    template <class Meant>
    VIEWLET_INLINE Slot* find(u32 hash, const Meant& is_meant) const {
        if constexpr (COMPACT) return (likely(!growing) ? table : home_growing(hash)).find(hash, is_meant);
        return likely(!growing) ? table.find(hash, is_meant) : find_growing(hash, is_meant);
    }

    VIEWLET_INLINE void prefetch(u32 hash) const { __builtin_prefetch(table.slots + table.home(hash)); }

    VIEWLET_SITE void insert(u32 hash, u32 id) {
        if (unlikely(growing || used == limit)) grow();
        ++used;
        home_of(hash).put({hash, id});
    }

    // The slot of an id, which must be there.
    VIEWLET_INLINE Slot* slot_of(u32 hash, u32 id) const {
        return find(hash, [id](u32 other) { return other == id; });
    }
    VIEWLET_SITE void erase(u32 hash, u32 id) {
        --used;
        home_of(hash).erase(slot_of(hash, id));
    }

    u64 bytes() const { return table.bytes() + old.bytes(); }

    // How many there are and how many there may be; each of them, by hash as far as it goes; room for as many.
    u32 taken() const { return used; }
    u64 room() const { return limit; }
    template <class Visit>
    void each(const Visit& visit) const {
        for (u64 i = 0; i < table.size(); ++i)
            if (table.slots[i].id) visit(table.slots[i]);
        for (u64 i = 0; growing && i < old.size(); ++i)
            if (old.slots[i].id && old.home(old.slots[i].hash) >= moved) visit(old.slots[i]);
    }
    VIEWLET_COLD void restore(u64 room) { open(2 * room); }

    // As if new; the table stays where it is no larger.
    VIEWLET_COLD void wipe(u64 kept) {
        if (growing || table.bytes() > kept) return release();
        memset(static_cast<void*>(table.slots), 0, table.bytes());
        used = 0;
    }
    VIEWLET_COLD void release() {
        table.release();
        old.release();
        used = limit = 0;
        growing = false;
    }

private:
    Probing table, old;
    u64 moved{};
    u32 used{}, limit{};  // slots in use in both tables, and how many there may be
    bool growing{};

    VIEWLET_INLINE const Probing& home_of(u32 hash) const {
        return unlikely(growing) && old.home(hash) >= moved ? old : table;
    }
    VIEWLET_INLINE Probing& home_of(u32 hash) { return unlikely(growing) && old.home(hash) >= moved ? old : table; }

    VIEWLET_COLD const Probing& home_growing(u32 hash) const { return home_of(hash); }
    template <class Meant>
    VIEWLET_COLD Slot* find_growing(u32 hash, const Meant& is_meant) const {
        return home_of(hash).find(hash, is_meant);
    }

    VIEWLET_COLD void grow() {
        if (growing) return move_some();
        u64 size = limit ? 2 * table.size() : SMALLEST;
        if (size > u64(1) << 32) fail("a map has more than two thousand million entries");
        old = table;
        growing = limit != 0;
        moved = 0;
        open(size);
    }

    void open(u64 size) {
        limit = u32(size / 2);
        table.slots = (Slot*)allocate(size * sizeof(Slot));
        table.mask = u32(size - 1);
        table.shift = u32(__builtin_clzll(size)) - 31;
    }

    // Up to an empty slot, for only there no slot is away from a home before it. Slots at the beginning whose home is
    // at the end are left for last, when the run goes round. What was moved stays and is in nobody's way: its hashes
    // are not looked for here any more.
    VIEWLET_COLD void move_some() {
        u64 end = moved + STEP;
        while (true) {
            u64 position = moved++;
            Slot slot = old.slots[position & old.mask];
            if (!slot.id && moved >= end) break;
            u64 away = (position - old.home(slot.hash)) & old.mask;
            if (slot.id && position - away < old.size()) table.put(slot);  // unsigned: not before 0 either
        }
        if (moved < old.size()) return;
        old.release();
        growing = false;
    }
};

}  // namespace viewlet
