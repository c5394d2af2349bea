// Maps against a naive reference: an array over a small set of keys.
#include "check.hpp"
#include "map.hpp"
#include "real.hpp"

using namespace viewlet;

struct Pair {
    i64 a, b;
    bool operator==(const Pair&) const = default;
    u64 hash() const { return mix(mix(START, a), b); }
};
struct Colliding {  // every key has one of four hashes
    i64 a, b;
    bool operator==(const Colliding&) const = default;
    u64 hash() const { return u64(a + b) % 4; }
};
struct Constant {
    i64 a, b;
    bool operator==(const Constant&) const = default;
    u64 hash() const { return 0xffffffff; }  // and the last slot, so that probing wraps around
};
struct Wide {
    i128 a;
    Opt<i64> b;
    bool operator==(const Wide&) const = default;
    u64 hash() const { return mix(mix(START, a), b); }
};

static Pair key_of(Pair*, i64 a, i64 b) { return {a, b}; }
static Colliding key_of(Colliding*, i64 a, i64 b) { return {a, b}; }
static Constant key_of(Constant*, i64 a, i64 b) { return {a, b}; }
static Wide key_of(Wide*, i64 a, i64 b) {  // b = 0 is NULL, which is not the value 0 (b = 1)
    return {i128(a) << 70, b ? Opt<i64>(b - 1) : Opt<i64>()};
}

struct Sums {
    i64 count{};
    RealSum sum{};
    bool settle() {
        if (count == 0) sum.clear();
        return count == 0 && sum.is_zero();
    }
};

template <class Key>
struct ByA {
    static u64 hash(const Key& key) { return mix(START, key.a); }
    static bool same(const Key& x, const Key& y) { return x.a == y.a; }
};
template <class Key>
struct ByB {
    static u64 hash(const Key& key) { return mix(START, key.b); }
    static bool same(const Key& x, const Key& y) { return x.b == y.b; }
};
template <class Key>
struct Clashing {  // an index all whose keys collide
    static u64 hash(const Key&) { return 7; }
    static bool same(const Key& x, const Key& y) { return x.a == y.a; }
};

template <class Index>
struct Often : Index {  // the same slices in chunks
    static constexpr bool read_often = true;
};
static_assert(read_often<Often<ByA<Pair>>> && !read_often<ByA<Pair>>);

constexpr u32 SIDE = 48;  // keys (a, b) with a, b < SIDE

template <class Key>
struct Trial {
    Map<Key, Sums, ByA<Key>, ByB<Key>, Clashing<Key>, Often<ByA<Key>>, Often<ByB<Key>>, Often<Clashing<Key>>> map;
    i64 expected[SIDE][SIDE]{};
    Random random;

    explicit Trial(u64 seed) : random{seed} {}

    Key key(u32 a, u32 b) { return key_of((Key*)nullptr, a, b); }

    void change(u32 a, u32 b, i64 times) {
        Place place(map, key(a, b));
        CHECK(place.find() || expected[a][b] == 0);
        auto& entry = place.make();
        CHECK(&entry == map.find(key(a, b)) && &entry == place.find());
        CHECK(entry.values.count == expected[a][b] && entry.key == key(a, b));
        entry.values.count += times;
        entry.values.sum.add(Real(a + 0.1), times);
        expected[a][b] += times;
        if (entry.values.count == 0) map.doubt(entry), map.doubt(entry);
    }

    template <class Index>
    void check_slice(u32 a, u32 b, u32 expected_size) {
        u32 size = 0, ranged = 0;
        Key probe = key(a, b);
        for (auto* entry = map.template first<Index>(probe); entry; entry = map.template next<Index>(entry)) {
            CHECK(Index::same(entry->key, probe));
            CHECK(entry == map.find(entry->key));
            ++size;
        }
        auto* following = map.template first<Index>(probe);
        for (auto* entry : map.template slice<Index>(probe)) {
            CHECK(entry == following);
            following = map.template next<Index>(entry);
            ++ranged;
        }
        CHECK(size == expected_size && ranged == expected_size);
    }

    void check_everything() {
        u32 total = 0, walked = 0;
        for (u32 a = 0; a < SIDE; ++a) {
            u32 in_row = 0, in_column = 0;
            for (u32 b = 0; b < SIDE; ++b) {
                auto* entry = map.find(key(a, b));
                CHECK((entry != nullptr) == (expected[a][b] != 0));
                if (entry) CHECK(entry->values.count == expected[a][b]);
                in_row += expected[a][b] != 0;
                in_column += expected[b][a] != 0;
            }
            check_slice<ByA<Key>>(a, 0, in_row);
            check_slice<ByB<Key>>(0, a, in_column);
            check_slice<Clashing<Key>>(a, 0, in_row);
            check_slice<Often<ByA<Key>>>(a, 0, in_row);
            check_slice<Often<ByB<Key>>>(0, a, in_column);
            check_slice<Often<Clashing<Key>>>(a, 0, in_row);
            total += in_row;
        }
        auto* next = map.first();
        for (auto* entry : map.all()) {
            CHECK(entry == next);
            next = map.next(entry), ++walked;
        }
        CHECK(!next && walked == total && map.size() == total);
    }

    // Phases of growing and shrinking, several changes to a trigger.
    void run(u32 rounds) {
        for (u32 round = 0; round < rounds; ++round) {
            bool growing = random.below(2);
            u32 triggers = 1 + random.below(3 * SIDE);
            for (u32 trigger = 0; trigger < triggers; ++trigger) {
                for (u32 n = random.below(4); n-- > 0;) {
                    u32 a = random.below(SIDE), b = random.below(SIDE);
                    if (growing && !expected[a][b]) change(a, b, 1 + random.below(2));
                    if (!growing && expected[a][b]) change(a, b, -expected[a][b]);
                    if (random.below(8) == 0 && !expected[a][b]) change(a, b, 1), change(a, b, -1), change(a, b, 2);
                }
                map.sweep();
            }
            check_everything();
            if (random.below(40) == 0) {
                map.clear();
                for (auto& row : expected)
                    for (i64& times : row) times = 0;
                check_everything();
            }
        }
    }
};

template <class Key>
static void against_reference(u32 rounds) {
    for (u64 seed = 1; seed <= 3; ++seed) {
        auto* trial = new (Placed{calloc(1, sizeof(Trial<Key>))}) Trial<Key>(seed);
        trial->run(rounds);
        trial->~Trial();
        free(trial);
    }
}

// A loop over a slice, or over all, in which entries come and are doubted: what was there before is seen once.
template <class Index>
static void inserts_while_looping() {
    Map<Pair, Sums, Index> map;
    for (i64 b = 0; b < 100; ++b) map.at({1, b}).values.count = 1;
    i64 seen = 0, fresh = 1000;
    for (auto* entry = map.template first<Index>({1, 0}); entry; entry = map.template next<Index>(entry)) {
        if (entry->key.b >= 1000) continue;
        ++seen;
        for (int n = 0; n < 50; ++n) map.at({n % 3 == 0, fresh++}).values.count = 1;
        entry->values.count = 0;
        map.doubt(*entry);
    }
    CHECK(seen == 100 && map.size() == 5100);
    map.sweep();
    CHECK(map.size() == 5000);
    seen = 0;
    for ([[maybe_unused]] auto* entry : map.all()) {
        if (seen++ < 5000) map.at({7, seen + 100000}).values.count = 1;
        if (seen > 20000) break;
    }
    CHECK(seen >= 5000 && map.size() == 10000);
    u32 in_slice = 0;
    for (auto* entry = map.template first<Index>({7, 0}); entry; entry = map.template next<Index>(entry)) ++in_slice;
    CHECK(in_slice == 5000);
}

// Slices of every size up to several chunks, each loop with inserts into the slice it is in.
template <class Index>
static void grows_under_a_loop() {
    Map<Pair, Sums, Index> map;
    for (i64 a = 1; a < 60; ++a) {
        for (i64 b = 0; b < a; ++b) map.at({a, b}).values.count = 0;
        i64 fresh = a;
        for (auto* entry : map.template slice<Index>({a, 0})) {
            CHECK(entry->key.a == a);
            if (entry->key.b >= a) continue;
            CHECK(entry->values.count++ == 0);
            for (int n = 0; n < 20; ++n) map.at({a, fresh++}).values.count = 1;
        }
        CHECK(fresh == 21 * a);
        for (i64 b = 0; b < fresh; ++b) CHECK(map.find({a, b})->values.count == 1);
        u32 size = 0;
        for (auto* entry : map.template slice<Index>({a, 0})) size += u32(entry->values.count);
        CHECK(size == u32(fresh));
    }
    CHECK(map.template slice<Index>({60, 0}).entry == nullptr);
}

// One slice grows and shrinks through all sizes; what goes is the first, the last, or any.
template <class Index>
static void all_sizes(u32 order) {
    constexpr u32 most = 100;
    Map<Pair, Sums, Index> map;
    Random random{order + 1};
    u64 bytes = 0;
    for (u32 round = 0; round < 50; ++round) {
        bool there[most]{};
        for (u32 size = 0; size < 2 * most; ++size) {
            bool grows = size < most;
            u32 b = order == 0 ? size % most : order == 1 ? (grows ? size : 2 * most - 1 - size) : random.below(most);
            while (there[b] == grows) b = (b + 1) % most;
            auto& entry = map.at({5, b});
            there[b] = grows;
            entry.values.count = grows;
            if (!grows) map.doubt(entry);
            map.sweep();
            u32 seen = 0;
            for (auto* other : map.template slice<Index>({5, 0})) seen += there[other->key.b];
            CHECK(seen == map.size() && seen == (grows ? size + 1 : 2 * most - 1 - size));
        }
        if (round == 0) bytes = map.bytes();
    }
    CHECK(map.size() == 0 && map.bytes() <= bytes);
}

struct Number {
    i64 n;
    bool operator==(const Number&) const = default;
    u64 hash() const { return mix(START, n); }
};
struct ByTens {
    static u64 hash(const Number& key) { return mix(START, key.n / 10); }
    static bool same(const Number& x, const Number& y) { return x.n / 10 == y.n / 10; }
};

struct OftenByTens : ByTens {
    static constexpr bool read_often = true;
};

// The old table is still being moved while entries in it are found, erased and inserted again.
template <class Index>
static void erases_while_growing() {
    Table<Number, Index> map;
    i64 from = 0, to = 0;  // the numbers in the map
    for (u32 step = 0; step < 300000; ++step) {
        map.at({to++}).values.times = 1;
        bool erase = step % 1000 < 700 ? step % 3 == 0 : true;
        if (erase && from < to) {
            auto* entry = map.find({from++});
            CHECK(entry);
            entry->values.times = 0;
            map.doubt(*entry);
            map.sweep();
        }
        CHECK(!map.find({from - 1}) && map.size() == u32(to - from));
        i64 probe = from + i64(mix(step, u64(0)) % u64(to - from + 1));
        CHECK((map.find({probe}) != nullptr) == (probe < to));
    }
    for (i64 n = from; n < to; ++n) CHECK(map.find({n}) && map.find({n})->values.times == 1);
    i64 middle = (from + to) / 20;
    u32 in_slice = 0;
    for (auto* entry : map.template slice<Index>({middle * 10})) in_slice += entry->key.n / 10 == middle;
    CHECK(in_slice == 10);
}

// Ids and memory are used again: a window of live entries moves over many numbers.
template <class Index>
static void bounded_memory(u32 changes) {
    constexpr i64 window = 1000;
    Table<Number, Index> map;
    u64 most = 0;
    for (i64 n = 0; n < i64(changes); ++n) {
        auto& entry = map.at({n});
        if (n == 10 * window) most = map.bytes();
        CHECK(entry.head.id < 64 + window + 2);
        entry.values.times = 1;
        if (n < window) continue;
        auto* last = map.find({n - window});
        last->values.times = 0;
        map.doubt(*last);
        map.sweep();
    }
    CHECK(map.size() == window && map.bytes() == most && most < 100 * window);
}

// Slices whose entries go in any order: the chunks that are left hold no more than the live entries need.
static void bounded_chunks(u32 changes) {
    constexpr u32 live = 1000;
    Map<Pair, Sums, Often<ByA<Pair>>> map;
    Random random{7};
    Pair keys[live];
    u64 most = 0;
    for (u32 n = 0; n < changes; ++n) {
        Pair& key = keys[n < live ? n : random.below(live)];
        if (n >= live) {
            auto* entry = map.find(key);
            entry->values.count = 0;
            map.doubt(*entry);
            map.sweep();
        }
        key = {i64(random.below(8)), n};
        map.at(key).values.count = 1;
        if (n == 100 * live) most = map.bytes();
    }
    CHECK(map.size() == live && map.bytes() <= most + most / 10);
    u32 seen = 0;
    for (i64 a = 0; a < 8; ++a)
        for (auto* entry : map.slice<Often<ByA<Pair>>>({a, 0})) seen += entry->key.a == a;
    CHECK(seen == live);
}

// Pointers to entries stay good while a trigger inserts many more.
static void entries_do_not_move() {
    Table<Number> map;
    Table<Number>::Entry* entries[200];
    for (i64 n = 0; n < 200; ++n) entries[n] = &map.at({n});
    for (i64 n = 200; n < 200000; ++n) map.at({n}).values.times = n;
    for (i64 n = 0; n < 200; ++n) CHECK(map.find({n}) == entries[n] && entries[n]->key.n == n);
    map.doubt(*entries[3]);
    map.doubt(*entries[4]);
    entries[4]->values.times = 1;
    map.sweep();
    CHECK(!map.find({3}) && map.find({4}) == entries[4] && map.size() == 199999);
    for (i64 n = 0; n < 200000; ++n)
        if (auto* entry = map.find({n})) entry->values.times = 0, map.doubt(*entry);
    map.sweep();
    CHECK(map.size() == 0 && !map.first());
}

static void single() {
    Single<Sums> only;
    only.at().values.sum.add(__builtin_inf());
    only.at().values.sum.add(0.1);
    only.doubt(*only.find());
    only.sweep();
    CHECK(only.only.values.sum.is_zero() && only.first() && !only.next(only.first()));
    only.at().values.count = 3;
    only.clear();
    CHECK(only.at().values.count == 0);
}

// How far linear probing walks says how good the low bits of the hashes are.
template <class HashOf>
static double mean_probes(HashOf hash_of) {
    constexpr u32 count = 98304, mask = (1 << 17) - 1;  // three quarters full
    auto* taken = (bool*)calloc(mask + 1, 1);
    u64 probes = 0;
    for (u32 n = 0; n < count; ++n) {
        u32 i = short_hash(hash_of(n)) >> 15;
        for (++probes; taken[i]; i = (i + 1) & mask) ++probes;
        taken[i] = true;
    }
    free(taken);
    return double(probes) / count;
}

static void hashes_spread() {
    constexpr double bound = 3;  // random hashes: 2.5 = (1 + 1 / (1 - 3/4)) / 2
    for (u32 shift = 0; shift < 48; ++shift) CHECK(mean_probes([=](u64 n) { return mix(START, n << shift); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(START, -i64(n)); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(START, double(n)); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(START, double(n) / 100); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(START, i128(n) << 64); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(mix(START, n % 300), n / 300); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(mix(START, n), n); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(mix(mix(START, n % 50), double(n / 50 % 50)), n / 2500); }) < bound);
    CHECK(mean_probes([](u64 n) { return mix(START, n % 2 ? Opt<i64>(n) : Opt<i64>(n * 1000003)); }) < bound);
}

int main() {
    against_reference<Pair>(60);
    against_reference<Colliding>(10);
    against_reference<Constant>(4);
    against_reference<Wide>(40);
    inserts_while_looping<ByA<Pair>>();
    inserts_while_looping<Often<ByA<Pair>>>();
    grows_under_a_loop<ByA<Pair>>();
    grows_under_a_loop<Often<ByA<Pair>>>();
    for (u32 order = 0; order < 3; ++order) all_sizes<ByA<Pair>>(order), all_sizes<Often<ByA<Pair>>>(order);
    erases_while_growing<ByTens>();
    erases_while_growing<OftenByTens>();
    bounded_memory<ByTens>(SMALL ? 1'000'000 : 10'000'000);
    bounded_memory<OftenByTens>(SMALL ? 1'000'000 : 10'000'000);
    bounded_chunks(1'000'000);
    entries_do_not_move();
    single();
    hashes_spread();
    printf("maps: ok\n");
}
