// Packed rows beside a plain map: every kind of cell, values that widen, duplicates, growth, files.
#include "check.hpp"
#include "map.hpp"
#include "packing.hpp"

using namespace viewlet;

struct Wide {
    i64 whole{};
    Opt<i64> maybe{};
    double real{};
    i128 wide{};
    Opt<i128> perhaps{};
    bool flag{};
    Opt<bool> unknown{};
    Text text{};
    Opt<double> rate{};
    bool operator==(const Wide& o) const {
        return whole == o.whole && maybe == o.maybe && same(real, o.real) && wide == o.wide && perhaps == o.perhaps &&
               flag == o.flag && unknown == o.unknown && text == o.text && rate == o.rate;
    }
    u64 hash() const { return mix(mix(mix(mix(mix(START, whole), maybe), real), wide), perhaps); }
    static constexpr void each_cell(auto& row, const auto& use) {
        use(row.whole), use(row.maybe), use(row.real), use(row.wide), use(row.perhaps), use(row.flag), use(row.unknown);
        use(row.text), use(row.rate);
    }
};

struct Narrow {
    i64 n{};
    bool operator==(const Narrow&) const = default;
    u64 hash() const { return mix(START, n); }
    static constexpr void each_cell(auto& row, const auto& use) { use(row.n); }
};

template <class Row> struct Tried : PackedTable<Row> {
    using PackedTable<Row>::LANES;
    Change put(const Row& row, i64 times, u32 mask = ~0u) {
        u64 lanes[room_of(LANES)]{};
        this->split(row, lanes);
        return this->change(lanes, LANES, this->hash_of(row) & mask, times);
    }
    i64 times(const Row& row, u32 mask = ~0u) const {
        u64 lanes[room_of(LANES)]{};
        this->split(row, lanes);
        return this->count(lanes, this->hash_of(row) & mask);
    }
    template <class Visit> void each(const Visit& visit) const {
        u64 lanes[room_of(LANES)];
        for (u32 id = this->after(0); id; id = this->after(id)) {
            i64 times = this->read(id, lanes);
            Row row;
            this->join(lanes, row);
            visit(row, times);
        }
    }
};

static i64 number(Random& random) {  // of any width
    u64 word = random() >> random.below(64);
    return i64(random.below(2) ? word << random.below(40) : 0 - word);
}
static double real(Random& random) {
    switch (random.below(8)) {
        case 0: return __builtin_inf();
        case 1: return __builtin_nan("");
        case 2: return random.unit();
        case 3: return -0.0;
        default: return double(random.below(1000)) / 4;
    }
}
static Wide any_row(Random& random, u32 variety) {
    Random same{random.below(variety)};
    Wide row;
    row.whole = same.below(3) ? i64(same.below(200)) : number(same);
    if (same.below(2)) row.maybe = number(same);
    row.real = real(same);
    row.wide = same.below(2) ? i128(number(same)) : i128(number(same)) << 60 | i128(same.below(9));
    if (same.below(2)) row.perhaps = -i128(same());
    row.flag = same.below(2);
    if (same.below(3)) row.unknown = bool(same.below(2));
    row.text = {same.below(1 << same.below(32))};
    if (same.below(2)) row.rate = real(same);
    return row;
}

static void agree(const Tried<Wide>& packed, Table<Wide>& plain) {
    u32 seen = 0;
    packed.each([&](const Wide& row, i64 times) {
        auto* entry = plain.find(row);
        CHECK(entry && entry->values.times == times);
        ++seen;
    });
    CHECK(seen == packed.size && seen == plain.size());
}

// With few different hashes buckets overflow, and rows must be told apart by what they are.
static void against_reference(u32 mask, u32 changes, u32 variety) {
    Tried<Wide> packed;
    Table<Wide> plain;
    Random random{mask};
    for (u32 step = 0; step < changes; ++step) {
        Wide row = any_row(random, variety);
        i64 times = random.below(5) ? (random.below(2) ? 1 : -1) : i64(random.below(600)) - 300;
        auto& entry = plain.at(row);
        i64 before = entry.values.times, after = before + times;
        Change expected = times == 0    ? Change::SAME
                          : after < 0   ? Change::MISSING
                          : before == 0 ? Change::CAME
                          : after == 0  ? Change::WENT
                                        : Change::SAME;
        if (after >= 0) entry.values.times = after;
        plain.doubt(entry);
        plain.sweep();
        CHECK(packed.put(row, times, mask) == expected);
        CHECK(packed.times(row, mask) == (after < 0 ? before : after));
        if (step % 10000 == 0) agree(packed, plain);
    }
    agree(packed, plain);
}

// A window moves over many numbers, which grow wider: rows are found while the index grows, and memory is used again.
static void window(u32 live, u32 changes) {
    Tried<Narrow> table;
    u64 most = 0;
    for (i64 n = 0; n < i64(changes); ++n) {
        CHECK(table.put({n * n}, 1) == Change::CAME);
        if (n == 10 * i64(live)) most = table.bytes();
        if (n < i64(live)) continue;
        i64 last = n - live;
        CHECK(table.put({last * last}, -1) == Change::WENT && table.put({last * last}, -1) == Change::MISSING);
        CHECK(table.times({(n - live / 2) * (n - live / 2)}) == 1);
    }
    CHECK(table.size == live && (most == 0 || table.bytes() < 2 * most));
    for (i64 n = changes - live; n < i64(changes); ++n) CHECK(table.put({n * n}, -1) == Change::WENT);
    CHECK(table.size == 0 && table.after(0) == 0);
}

// Rows of many blocks grow wider, block after block: what they leave behind goes.
static void wider(u32 count) {
    Tried<Narrow> table;
    for (i64 n = 0; n < i64(count); ++n) CHECK(table.put({n}, 1) == Change::CAME);
    u64 narrow = table.bytes();
    for (u32 width = 3; width < 8; ++width)
        for (i64 n = 0; n < i64(count); ++n) {
            i64 less = width == 3 ? n : i64(1) << 8 * (width - 1) | n;
            CHECK(table.put({less}, -1) == Change::WENT && table.put({i64(1) << 8 * width | n}, 1) == Change::CAME);
        }
    CHECK(table.size == count && table.bytes() < narrow + 6 * count + 2 * HUGE_PAGE);
    for (i64 n = 0; n < i64(count); n += 7) CHECK(table.times({i64(1) << 56 | n}) == 1 && table.times({n}) == 0);
}

// At no size does a small number take more than so many bytes.
static void little_memory() {
    Tried<Narrow> table;
    for (i64 n = 0; n < 100000; ++n) {
        table.put({n}, 1);
        if (n > 1000) CHECK(table.bytes() < 30 * u64(n));
    }
    CHECK(table.bytes() < 20 * 100000);
    table.clear();
    CHECK(table.bytes() < 100 && table.times({5}) == 0 && table.put({5}, 2) == Change::CAME);
}

struct File {
    char* data{static_cast<char*>(malloc(1 << 26))};
    u64 size{}, place{};
    const char* problem{};
    ~File() { free(data); }
    void put(const void* from, u64 bytes) { memcpy(data + size, from, bytes), size += bytes; }
    template <class T> void put(const T& value) { put(&value, sizeof value); }
    void get(void* to, u64 bytes) { memcpy(to, data + place, bytes), place += bytes; }
    template <class T> T get() {
        T value{};
        get(&value, sizeof value);
        return value;
    }
    bool is_fine() const { return !problem; }
};

// What was read goes on as the other does: in the same order, into the same gaps.
static void files() {
    Tried<Wide> table, other, none, nothing;
    Table<Wide> plain;
    Random random{9};
    for (u32 step = 0; step < 5000; ++step) {
        Wide row = any_row(random, 3000);
        i64 times = random.below(3) ? 1 : -1;
        if (table.put(row, times) == Change::MISSING) continue;
        auto& entry = plain.at(row);
        entry.values.times += times;
        plain.doubt(entry);
        plain.sweep();
    }
    File file, empty, wrong;
    table.save(file);
    other.load(file, other.LANES);
    CHECK(file.place == file.size && file.is_fine());
    agree(other, plain);
    nothing.save(empty);
    none.load(empty, none.LANES);
    CHECK(none.size == 0 && empty.place == empty.size && none.put({}, 1) == Change::CAME);
    for (u32 step = 0; step < 5000; ++step) {
        Wide row = any_row(random, 4000);
        CHECK(table.put(row, 1) == other.put(row, 1));
    }
    u32 id = table.after(0), its = other.after(0);
    u64 row[room_of(Tried<Wide>::LANES)], same[room_of(Tried<Wide>::LANES)];
    for (; id; id = table.after(id), its = other.after(its)) {
        CHECK(id == its && table.read(id, row) == other.read(its, same));
        CHECK(memcmp(row, same, table.LANES * sizeof(u64)) == 0);
    }
    CHECK(its == 0);
    table.save(wrong);
    Tried<Narrow> narrow;
    narrow.load(wrong, narrow.LANES);
    CHECK(!wrong.is_fine());
}

int main() {
    constexpr u32 much = SMALL ? 1 : 10;
    against_reference(~0u, 30000 * much, 3000);
    against_reference(~0u, 20000 * much, 20);
    against_reference(0, 2000 * much, 60);
    against_reference(0xf000000f, 5000 * much, 400);
    against_reference(0x1fffffff, 20000 * much, 5000);
    against_reference(0xe0000000 | 0xff, 20000 * much, 3000);
    window(3, 5000);
    window(300, 20000);
    window(1000, 40000);
    window(20000, 30000 * much);
    wider(SMALL ? 140000 : 300000);
    little_memory();
    files();
    return 0;
}
