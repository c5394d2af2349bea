// How fast the native engine's map is beside the simplest thing that could be faster: keys and values in one array.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "map.hpp"

using namespace viewlet;

struct Key {
    i64 id;
    bool operator==(const Key&) const = default;
    u64 hash() const { return mix(START, id); }
};
struct Payload {
    i64 count{}, sum{};
    bool settle() const { return count == 0 && sum == 0; }
};
struct ByGroup {  // about eight entries to a slice
    static u64 hash(const Key& key) { return mix(START, key.id >> 35); }
    static bool same(const Key& a, const Key& b) { return a.id >> 35 == b.id >> 35; }
};
using Plain = Map<Key, Payload>;
using Indexed = Map<Key, Payload, ByGroup>;

// No growth, no erasing, no stable entries: what one cache miss for each update buys.
struct Inline {
    struct Slot {
        i64 id;
        Payload payload;
        bool used;
    };
    Slot* slots;
    u64 mask;
    explicit Inline(u32 count) {
        for (mask = 15; mask * 3 / 4 < count; mask = 2 * mask + 1) {
        }
        slots = (Slot*)allocate((mask + 1) * sizeof(Slot));
    }
    ~Inline() { give_back(slots, (mask + 1) * sizeof(Slot)); }
    Payload& at(Key key) {
        u64 i = short_hash(key.hash()) & mask;
        while (slots[i].used && slots[i].id != key.id) i = (i + 1) & mask;
        slots[i].used = true;
        slots[i].id = key.id;
        return slots[i].payload;
    }
};

// CPU time: what other processes take does not count.
static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

static u64 random_state = 1;
static u64 random_number() { return mix(random_state += START, u64(7)); }

// n different keys below n · 2³², so that ByGroup makes slices
static i64 key_of(u64 n) { return i64(n << 32 | (mix(START, n) & 0xffffffff)); }

static void add(Inline& map, i64 id) {
    Payload& payload = map.at({id});
    payload.count += 1, payload.sum += id;
}
template <class Map>
static void add(Map& map, i64 id) {
    auto& entry = map.at({id});
    entry.values.count += 1, entry.values.sum += id;
}

template <class Map>
static double update_time(Map& map, const i64* keys, u32 updates) {
    double best = 1e9;
    for (int run = 0; run < 3; ++run) {
        double start = now();
        for (u32 i = 0; i < updates; ++i) add(map, keys[i]);
        double time = (now() - start) / updates;
        if (time < best) best = time;
    }
    return best;
}

// One entry goes, another comes, as in a window over a stream; ns for both.
template <class Map>
static double churn_time(Map& map, u32 count, u32 changes) {
    double start = now();
    for (u32 i = 0; i < changes; ++i) {
        auto* entry = map.find({key_of(i)});
        entry->values = {};
        map.doubt(*entry);
        map.sweep();
        add(map, key_of(u64(count) + i));
    }
    return (now() - start) / changes;
}

// The longest that one insert takes while the map grows. Asking the clock costs more than most inserts.
template <class Map>
static double longest_insert(u32 count) {
    Map map;
    double longest = 0, last = now();
    for (u32 n = 0; n < count; ++n) {
        add(map, key_of(n));
        double time = now();
        if (time - last > longest) longest = time - last;
        last = time;
    }
    return longest;
}

// A pause of our making is there every time, one of the machine's is not.
template <class Map>
static double longest_pause(u32 count) {
    double least = 1e12;
    for (int run = 0; run < 4; ++run) {
        double longest = longest_insert<Map>(count);
        if (longest < least) least = longest;
    }
    return least;
}

template <class Map>
static void measure(const char* name, u32 count, const i64* keys, u32 updates) {
    double pause = longest_pause<Map>(count), start = now();
    Map map;
    for (u32 n = 0; n < count; ++n) add(map, key_of(n));
    double insert = (now() - start) / count, bytes = double(map.bytes()) / count;
    double update = update_time(map, keys, updates), churn = churn_time(map, count, count < updates ? count : updates);
    printf("%9u %-8s %8.1f %8.1f %8.1f %9.3f %8.1f\n", count, name, update, insert, churn, pause / 1e6, bytes);
}

static void measure(u32 count) {
    constexpr u32 updates = 5'000'000;
    i64* keys = (i64*)malloc(updates * sizeof(i64));
    for (u32 i = 0; i < updates; ++i) keys[i] = key_of(random_number() % count);
    {
        Inline map(count);
        for (u32 n = 0; n < count; ++n) add(map, key_of(n));
        double bytes = double(map.mask + 1) * sizeof(Inline::Slot) / count;
        double update = update_time(map, keys, updates);
        printf("%9u %-8s %8.1f %8s %8s %9s %8.1f\n", count, "inline", update, "", "", "", bytes);
    }
    measure<Plain>("map", count, keys, updates);
    measure<Indexed>("indexed", count, keys, updates);
    free(keys);
}

// -- slices: the entries that agree on part of the key came in any order, so that they lie apart in memory

template <u32 size, bool often>
struct Slice {
    static constexpr bool read_often = often;
    static u64 hash(const Key& key) { return mix(START, key.id / size); }
    static bool same(const Key& a, const Key& b) { return a.id / size == b.id / size; }
};

static i64* shuffled(u32 count) {
    i64* numbers = (i64*)malloc(count * sizeof(i64));
    for (u32 n = 0; n < count; ++n) {
        u32 other = u32(random_number() % (n + 1));
        numbers[n] = numbers[other];
        numbers[other] = n;
    }
    return numbers;
}

template <class Index, class Map>
static i64 sum_of_slice(Map& map, i64 probe) {
    i64 sum = 0;
    for (auto* entry : map.template slice<Index>({probe})) sum += entry->values.sum;
    return sum;
}

// ns for each entry met. A loop that waits for the one before cannot hide behind it: so it is in most triggers.
template <class Index, u32 size, bool waiting, class Map>
static double loop_time(Map& map, u32 count) {
    u32 loops = 4'000'000 / size + 1;
    i64* probes = (i64*)malloc(loops * sizeof(i64));
    for (u32 i = 0; i < loops; ++i) probes[i] = i64(random_number() % count);
    double best = 1e9;
    i64 sum = 0;
    for (int run = 0; run < 3; ++run) {
        double start = now();
        for (u32 i = 0; i < loops; ++i) sum += sum_of_slice<Index>(map, probes[i] ^ (waiting && sum < 0));
        double time = (now() - start) / (double(loops) * size);
        if (time < best) best = time;
    }
    asm volatile("" : : "r"(sum));
    free(probes);
    return best;
}

template <u32 size, bool often>
static void measure_slices(u32 entries) {
    u32 count = entries / size * size;
    i64* order = shuffled(count);
    double start = now();
    Map<Key, Payload, Slice<size, often>> map;
    for (u32 n = 0; n < count; ++n) add(map, order[n]);
    double insert = (now() - start) / count, bytes = double(map.bytes()) / count;
    double loop = loop_time<Slice<size, often>, size, false>(map, count);
    double waiting = loop_time<Slice<size, often>, size, true>(map, count);
    start = now();
    for (u32 n = 0; n < count; ++n) {
        auto* entry = map.find({order[n]});
        entry->values = {};
        map.doubt(*entry);
        map.sweep();
        add(map, i64(count) + order[n]);
    }
    double churn = (now() - start) / count;
    printf("%9u %8u %-8s %8.1f %8.1f", count, size, often ? "chunks" : "list", loop, waiting);
    printf(" %8.1f %8.1f %8.1f\n", insert, churn, bytes);
    free(order);
}

static void measure_slices(u32 entries) {
    measure_slices<1, false>(entries);
    measure_slices<1, true>(entries);
    measure_slices<5, false>(entries);
    measure_slices<5, true>(entries);
    measure_slices<100, false>(entries);
    measure_slices<100, true>(entries);
}

// In a virtual machine the first touch of a page may be the host's work, twenty times what ours costs.
static void warm_memory(u64 bytes) {
    char* block = (char*)allocate(bytes);
    for (u64 i = 0; i < bytes; i += 4096) block[i] = 1;
    give_back(block, bytes);
}

int main(int count, char** arguments) {
    warm_memory(u64(4) << 30);
    printf("%9s %-8s %8s %8s %8s %9s %8s\n", "entries", "", "update", "insert", "churn", "pause", "bytes");
    printf("%9s %-8s %8s %8s %8s %9s %8s\n", "", "", "ns", "ns", "ns", "max ms", "an entry");
    for (int i = 1; i < count; ++i) measure(u32(atoll(arguments[i])));
    printf("\n%9s %8s %-8s %8s %8s", "entries", "slice of", "", "loop", "waiting");
    printf(" %8s %8s %8s\n", "insert", "churn", "bytes");
    for (int i = 1; i < count; ++i) measure_slices(u32(atoll(arguments[i])));
}
