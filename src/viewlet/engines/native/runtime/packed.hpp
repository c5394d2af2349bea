// The rows of a base table in as few bytes as their values need: a number that is small takes a byte or two, a column that
// is always 0 or never NULL takes none. They lie one behind the other, and a table of fingerprints finds them.
//
// A row is split into lanes, numbers of 64 bits; the last lane says how often the row is there, less one. Which bytes of a lane
// are kept is said by a packing, for a block of rows at a time. Where a row does not fit, the table goes over to a wider
// packing, and a block to that of the table when a row comes into it: no change waits for more than one block.
#pragma once

#include "fingerprints.hpp"

namespace viewlet {

// What became of a row's place in its base table. MISSING and TAKEN: nothing was done, since the count would be
// negative, or another row has a key of this one.
enum class Change : u8 { MISSING, TAKEN, SAME, CAME, WENT };

// -- lanes ------------------------------------------------------------------------------------------------------------

template <class T> inline constexpr u32 LANES_OF = 1;
template <> inline constexpr u32 LANES_OF<i128> = 2;
template <class T> inline constexpr u32 LANES_OF<Opt<T>> = LANES_OF<T> + 1;

struct Split {
    u64* lane;

    VIEWLET_INLINE void operator()(i64 value) const { *lane = u64(value); }
    VIEWLET_INLINE void operator()(bool value) const { *lane = value; }
    VIEWLET_INLINE void operator()(double value) const { *lane = bits(value); }
    VIEWLET_INLINE void operator()(Text value) const { *lane = value.id; }
    VIEWLET_INLINE void operator()(i128 value) const {  // the upper lane is 0 where the lower one says it all
        lane[0] = u64(value);
        lane[1] = u64(value >> 64) ^ u64(i64(value) >> 63);
    }
    template <class T> VIEWLET_INLINE void operator()(const Opt<T>& value) const {
        (*this)(value.value);
        lane[LANES_OF<T>] = value.null;
    }
};

struct Join {
    const u64* lane;

    void operator()(i64& value) const { value = i64(*lane); }
    void operator()(bool& value) const { value = *lane; }
    void operator()(double& value) const { value = __builtin_bit_cast(double, *lane); }
    void operator()(Text& value) const { value.id = u32(*lane); }
    void operator()(i128& value) const { value = i128(u128(lane[1] ^ u64(i64(lane[0]) >> 63)) << 64 | lane[0]); }
    template <class T> void operator()(Opt<T>& value) const {
        (*this)(value.value);
        value.null = lane[LANES_OF<T>];
    }
};

// The lanes of a row but the last. Products of pairs do not wait for each other, as a chain of mix() would.
VIEWLET_INLINE u32 hash_lanes(const u64* lanes, u32 count) {
    constexpr u64 another = 0xd1b54a32d192ed03;  // each pair has its own multiple: lanes may be equal
    u64 hash = seed;
    for (u32 i = 0; i < count; i += 2) {
        u64 key = another * (i + 1), other = i + 1 < count ? lanes[i + 1] : 0;
        u128 product = u128(lanes[i] ^ seed ^ key) * (other ^ seed ^ ~key);
        hash ^= u64(product) ^ u64(product >> 64);
    }
    return short_hash(mix(hash, u64(count)));
}

// -- packings ---------------------------------------------------------------------------------------------------------

// Which bytes of a lane are kept: those above follow from the sign, those below are 0. Doubles that are whole, or halves
// of small numbers, have zeros below.
struct Kept {
    u8 low{8}, high{};

    u32 width() const { return high > low ? high - low : 0; }
    void widen(u64 value) {
        if (value == 0) return;
        u64 magnitude = value ^ u64(i64(value) >> 63);
        u32 least = u32(__builtin_ctzll(value)) / 8, most = magnitude ? 72 - u32(__builtin_clzll(magnitude)) : 8;
        if (least < low) low = u8(least);
        if (most / 8 > high) high = u8(most / 8);  // with a bit for the sign
    }
};

// Lanes that are packed at once: as many as the processor takes.
#ifdef __AVX2__
inline constexpr u32 GROUP = 4;
using Some = u64 __attribute__((vector_size(32)));
template <class F> VIEWLET_INLINE Some some(const F& of) { return Some{of(0), of(1), of(2), of(3)}; }
#else
inline constexpr u32 GROUP = 2;
using Some = u64 __attribute__((vector_size(16)));
template <class F> VIEWLET_INLINE Some some(const F& of) { return Some{of(0), of(1)}; }
#endif
constexpr u32 room_of(u32 lanes) { return (lanes + GROUP - 1) / GROUP * GROUP; }  // whole groups

struct Packing {
    struct Group {  // `at` are places in the row
        Some mask, sign, up;
        u32 at[GROUP];
        Kept kept[GROUP];

        static VIEWLET_INLINE u64 word(const char* from) {
            u64 word;
            __builtin_memcpy(&word, from, sizeof word);
            return word;
        }
        VIEWLET_INLINE Some words(const char* row) const {
            return some([&](u32 which) { return word(row + at[which]); });
        }
        VIEWLET_INLINE Some packed(const Some& values) const { return values >> up & mask; }
        VIEWLET_INLINE Some unpacked(const Some& words) const { return (((words & mask) ^ sign) - sign) << up; }
    };

    u32 lanes, groups, stride, users;  // users are blocks, and the table
    alignas(32) Group group[1];        // the first of them

    static Packing* make(u32 lanes);
    Packing* wider(const u64* row) const;  // that takes this row as well
    void lay_out();
    u64 bytes() const { return sizeof(Packing) + (groups - 1) * sizeof(Group); }
    Kept& kept(u32 lane) { return group[lane / GROUP].kept[lane % GROUP]; }
    const Kept& kept(u32 lane) const { return group[lane / GROUP].kept[lane % GROUP]; }

    static VIEWLET_INLINE Some some_of(const u64* lanes) {
        Some some;
        __builtin_memcpy(&some, lanes, sizeof some);
        return some;
    }
    static VIEWLET_INLINE bool is_any(const Some& of) {
        u64 any = 0;
        for (u32 which = 0; which < GROUP; ++which) any |= of[which];
        return any;
    }
    VIEWLET_INLINE bool holds(const char* row, const u64* lanes) const;  // but for how often
    VIEWLET_INLINE u64 times(const char* row) const;                     // less one
    VIEWLET_INLINE bool put(const u64* row,
                            char* to) const;  // false: it does not fit, the place is good for nothing yet
    void take(const char* row, u64* to) const;
    bool fits(const u64* row) const;
    void set_times(char* row, u64 times) const;
};

// -- tables -----------------------------------------------------------------------------------------------------------

struct PackedBlock {
    static constexpr u32 ROWS = 256, FIRST = 16;

    char* rows;
    Packing* packing;
    u32 room;  // ROWS, but for a table's only block
    u32 yard;  // where its rows lie; NONE: in memory of their own
    u64 taken[ROWS / 64];

    u64 bytes() const { return u64(room) * packing->stride + sizeof(u64); }  // words are read beyond the last row
    VIEWLET_INLINE char* row(u32 place) const { return rows + u64(place) * packing->stride; }
    u32 after(u32 place) const {  // the first row at a place or behind it; ROWS: there is none
        for (; place < ROWS; place = (place | 63) + 1)
            if (u64 rest = taken[place / 64] >> place % 64) return place + u32(__builtin_ctzll(rest));
        return ROWS;
    }
    void mark(u32 place) { taken[place / 64] |= u64(1) << place % 64; }
    void unmark(u32 place) { taken[place / 64] &= ~(u64(1) << place % 64); }
};

// A huge page for the rows of blocks: in a large table each row is far away, and should be found by one step less. The
// page goes when all of its blocks have moved.
struct Yard {
    static constexpr u32 NONE = ~u32(0), FROM = 512;  // so many blocks of a table are in memory of their own

    char* memory;
    u64 used;
    u32 blocks;
};

// It does not know the type of its rows, so that its code is compiled once for all programs. `lanes` counts the last one,
// which is its own to write; where they are, there is room for whole groups of lanes.
struct PackedRows {
    u32 size{};  // different rows

    PackedRows() {}
    PackedRows(const PackedRows&) = delete;
    ~PackedRows() { clear(); }

    Change change(u64* row, u32 lanes, u32 hash, i64 times);
    i64 count(const u64* row, u32 hash) const;  // how often it is there
    void clear();
    u64 bytes() const;

    bool is_cached() const { return size <= 1 << 14; }  // so small a table is, with its rows
    VIEWLET_INLINE void prefetch(u32 hash) const { index.prefetch(hash); }
    void prefetch_entry(u32 hash) const;  // whose place was prefetched before

    u32 after(u32 id) const;           // the id of the next row, 0: there is none; the first one comes after 0
    i64 read(u32 id, u64* row) const;  // how often it is there

    template <class Writer> void save(Writer& to) const;
    template <class Reader> void load(Reader& from, u32 lanes);

private:
    PackedBlock* blocks{};
    u32 block_count{}, block_room{};
    Packing* packing{};            // as wide as all that came
    u32 fresh{PackedBlock::ROWS};  // no id from here on was ever taken
    Ids gaps;                      // ids that rows left; the last is taken first
    Fingerprints index;
    u64 held{};  // bytes of rows
    Yard* yards{};
    u32 yard_count{};  // the last one is being filled

    VIEWLET_INLINE PackedBlock& block(u32 id) const { return blocks[id / PackedBlock::ROWS - 1]; }
    VIEWLET_INLINE char* address(u32 id) const { return block(id).row(id % PackedBlock::ROWS); }
    VIEWLET_INLINE Found find(const u64* row, u32 hash) const;
    VIEWLET_INLINE void come(const u64* row, u32 lanes, u32 hash);
    VIEWLET_INLINE void go(Found found);
    void recount(u32 id, const u64* row, u32 lanes);
    void widen(const u64* row, u32 lanes);
    VIEWLET_INLINE u32 take_id();
    void grow();
    void add_block(u32 room, Packing* by);
    void place_rows(PackedBlock& block);
    void give_rows(const PackedBlock& block);
    void add_yard();
    void repack(PackedBlock& block, u32 room);
    void drop(Packing* unused);
};

// How many lanes a row has, with that which says how often it is there.
template <class Row> consteval u32 count_lanes() {
    u32 count = 1;
    Row row{};
    Row::each_cell(row, [&]<class T>(T&) { count += LANES_OF<T>; });
    return count;
}

template <class Row_> struct PackedTable : PackedRows {
    using Key = Row_;
    static constexpr u32 LANES = count_lanes<Key>();

    static VIEWLET_INLINE void split(const Key& row, u64* lanes) {
        Key::each_cell(row, [&]<class T>(const T& cell) { Split{lanes}(cell), lanes += LANES_OF<T>; });
    }
    static void join(const u64* lanes, Key& row) {
        Key::each_cell(row, [&]<class T>(T& cell) { Join{lanes}(cell), lanes += LANES_OF<T>; });
    }
    static VIEWLET_INLINE u32 hash_of(const Key& row) {
        u64 lanes[LANES];
        split(row, lanes);
        return hash_lanes(lanes, LANES - 1);
    }
};

}  // namespace viewlet
