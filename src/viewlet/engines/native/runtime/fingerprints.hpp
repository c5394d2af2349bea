// From hashes to ids in little memory: the table that finds packed rows. A bucket is one cache line of eight hashes and
// eight ids, which are compared all at once, so that no guess at a branch depends on how full it is.
//
// Table sizes are any number, not powers of two: a table grows by a half. Its memory is then 11 to 16 bytes an id,
// wherever it stands.
#pragma once

#include "memory.hpp"

namespace viewlet {

using Eight = u32 __attribute__((vector_size(32)));

struct Bucket {  // the ids that are there come first; 0: none
    static constexpr u32 ROOM = 8, LAST = ROOM - 1, PASSED = u32(1) << 31;
    Eight hashes, ids;  // the last id also says whether others had to pass by

    // A bit for each place that holds the value.
    static VIEWLET_INLINE u32 places(const Eight& of, u32 value) {
#ifdef __AVX2__
        using Floats = float __attribute__((vector_size(32)));
        return u32(__builtin_ia32_movmskps256((Floats)(of == value)));
#else
        using Four = u64 __attribute__((vector_size(32)));
        constexpr Eight bits = {1, 2, 4, 8, 16, 32, 64, 128};
        Four hits = (Four)((Eight)(of == value) & bits);
        u64 both = hits[0] | hits[1] | hits[2] | hits[3];
        return u32(both | both >> 32) & 255;
#endif
    }
    VIEWLET_INLINE u32 used() const { return u32(__builtin_ctz(places(ids, 0) | 1 << ROOM)); }
    VIEWLET_INLINE u32 id(u32 place) const { return ids[place] & ~PASSED; }
    VIEWLET_INLINE bool is_full() const { return ids[LAST]; }
    VIEWLET_INLINE bool was_passed() const { return ids[LAST] & PASSED; }

    VIEWLET_INLINE void set(u32 place, u32 hash, u32 id) { hashes[place] = hash, ids[place] = id; }
    VIEWLET_INLINE void close(u32 place) {  // the last one moves into the hole
        u32 last = used() - 1;
        set(place, hashes[last], id(last));
        set(last, 0, 0);
    }
};
static_assert(sizeof(Bucket) == 64 && alignof(Bucket) <= 64);

// Where an id is, in a table whose buckets begin at `all`.
struct Found {
    Bucket* all{};
    u32 bucket{}, place{};
    VIEWLET_INLINE u32 id() const { return all[bucket].id(place); }
    explicit operator bool() const { return all; }
};

// Buckets of one size. What does not fit into its own bucket passes by it, to the next that has room; so a search ends at
// the first bucket that nothing passed.
struct Buckets {
    static inline constexpr Bucket nothing{};  // what an empty table shows: never written

    Bucket* all{const_cast<Bucket*>(&nothing)};
    u32 count{};

    VIEWLET_INLINE u32 home(u32 hash) const { return u32(u64(hash) * count >> 32); }
    VIEWLET_INLINE u32 next(u32 bucket) const { return bucket + 1 >= count ? 0 : bucket + 1; }
    u64 bytes() const { return u64(count) * sizeof(Bucket); }

    template <class Meant> VIEWLET_INLINE Found find(u32 hash, const Meant& is_meant) const {
        for (u32 at = home(hash);; at = next(at)) {
            const Bucket& bucket = all[at];
            for (u32 found = Bucket::places(bucket.hashes, hash); found; found &= found - 1) {
                u32 place = u32(__builtin_ctz(found)), id = bucket.id(place);
                if (likely(id && is_meant(id))) return {all, at, place};
            }
            if (likely(!bucket.was_passed())) return {};
        }
    }
    VIEWLET_INLINE void put(u32 hash, u32 id) {
        u32 at = home(hash);
        for (; unlikely(all[at].is_full()); at = next(at)) all[at].ids[Bucket::LAST] |= Bucket::PASSED;
        all[at].set(all[at].used(), hash, id);
    }
    VIEWLET_INLINE void erase(Found found) {
        Bucket& bucket = all[found.bucket];
        unlikely(bucket.was_passed()) ? refill(found.bucket, found.place) : bucket.close(found.place);
    }
    void open(u32 size) {
        count = size;
        all = static_cast<Bucket*>(allocate_lines(bytes()));
    }
    void release() {
        if (count) give_back(all, bytes());
        *this = {};
    }

private:
    VIEWLET_INLINE u32 between(u32 from, u32 to) const { return to >= from ? to - from : to + count - from; }

    // A hole in a bucket that others passed: one of them comes back, and leaves a hole itself, perhaps in such a bucket.
    VIEWLET_COLD void refill(u32 at, u32 hole) {
        for (u32 other = next(at);; other = next(other)) {
            Bucket& from = all[other];
            bool passed = from.was_passed();
            if (u32 place = passer(at, other); place < Bucket::ROOM) {
                u32 mark = all[at].ids[hole] & Bucket::PASSED;
                all[at].set(hole, from.hashes[place], from.id(place) | mark);
                at = other, hole = place;
            }
            if (passed) continue;
            return all[at].close(hole);  // nobody who passed is left
        }
    }
    // A place of the other bucket whose id passed by this one.
    u32 passer(u32 at, u32 other) const {
        for (u32 place = 0, used = all[other].used(); place < used; ++place)
            if (between(home(all[other].hashes[place]), other) >= between(at, other)) return place;
        return Bucket::ROOM;
    }
};

// Grows without a pause: the old buckets stay, and each insert moves some of them, in order, to the new ones. Hashes whose
// home in the old table is before `moved` live in the new one.
struct Fingerprints {
    static constexpr u32 STEP = 4, FEW = 16;  // buckets: that are moved at a time, and up to which a table doubles

    Fingerprints() = default;
    Fingerprints(const Fingerprints&) = delete;
    ~Fingerprints() { release(); }

    template <class Meant> VIEWLET_INLINE Found find(u32 hash, const Meant& is_meant) const {
        return home_of(hash).find(hash, is_meant);
    }
    VIEWLET_INLINE void prefetch(u32 hash) const { __builtin_prefetch(table.all + table.home(hash)); }

    VIEWLET_INLINE void insert(u32 hash, u32 id) {
        if (unlikely(growing || used == limit)) grow();
        ++used;
        home_of(hash).put(hash, id);
    }
    VIEWLET_INLINE void erase(Found found) {  // what find() said just now
        --used;
        (found.all == table.all ? table : old).erase(found);
    }

    u64 bytes() const { return table.bytes() + old.bytes(); }
    void reserve(u32 ids) {  // of an empty one
        if (ids) open(ids / 6 + 1);
    }
    void release() {
        table.release();
        old.release();
        used = limit = 0;
        growing = false;
    }

private:
    Buckets table, old;
    u32 moved{}, used{}, limit{};  // ids in both tables, and how many there may be: three quarters of the room
    bool growing{};

    VIEWLET_INLINE const Buckets& home_of(u32 hash) const {
        return unlikely(growing) && old.home(hash) >= moved ? old : table;
    }
    VIEWLET_INLINE Buckets& home_of(u32 hash) { return unlikely(growing) && old.home(hash) >= moved ? old : table; }

    void open(u32 size) {
        limit = size * (Bucket::ROOM * 3 / 4);
        table.open(size);
    }
    VIEWLET_COLD void grow() {
        if (growing) return move_some();
        old = table;
        growing = limit != 0;
        moved = 0;
        open(old.count < FEW ? old.count * 2 + !old.count : old.count + old.count / 2);
    }

    // Up to a bucket that nothing passed: no id of a home before it lies behind it. Ids in the first buckets whose home is
    // one of the last are left for the end, when it goes round, once. What was moved stays, and nobody looks for it there.
    void move_some() {
        for (u32 end = moved + STEP;;) {
            u32 position = moved++;
            const Bucket& bucket = old.all[position % old.count];
            for (u32 place = 0, all = bucket.used(); place < all; ++place) {
                u32 home = old.home(bucket.hashes[place]);
                bool went_round = home > position % old.count;
                if (went_round == (position >= old.count)) table.put(bucket.hashes[place], bucket.id(place));
            }
            if ((moved >= end && !bucket.was_passed()) || moved == 2 * old.count) break;
        }
        if (moved < old.count) return;
        old.release();
        growing = false;
    }
};

}  // namespace viewlet
