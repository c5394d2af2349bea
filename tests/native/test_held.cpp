// Texts that only the keys of a map have: it holds them while it has the entry, and no longer.
#include "check.hpp"
#include "ordered.hpp"

using namespace viewlet;

extern "C" int snprintf(char*, size_t, const char*, ...) noexcept;

struct Key {  // the first text is in no base row, the second is held by somebody else
    Opt<Text> computed;
    Text given;
    bool operator==(const Key&) const = default;
    u64 hash() const { return mix(mix(START, computed), given); }
};
struct ByGiven {
    static u64 hash(const Key& key) { return mix(START, key.given); }
    static bool same(const Key& a, const Key& b) { return a.given == b.given; }
};
struct Held {
    i64 count{};
    static void each_text(const Key& of, const auto& use) { use(of.computed.value); }
    bool settle() const { return count == 0; }
};
struct Count {
    i64 count{};
    bool settle() const { return count == 0; }
};

static Text number(Texts& texts, u32 n) {
    char bytes[64];
    int length = snprintf(bytes, sizeof bytes, "computed from %u", n);
    return texts.intern(bytes, u64(length));
}

// Entries come and go; the texts that are left are those of the entries, and each says what it did.
template <class Held>
static void come_and_go() {
    constexpr u32 NUMBERS = 200;
    Texts texts;
    Held map{texts};
    Text given = texts.constant("given", 5);
    Random random{1};
    bool is_there[NUMBERS]{};
    u32 size = 0;
    for (u32 turn = 0; turn < 20'000; ++turn) {
        u32 n = random.below(NUMBERS);
        Key key{n ? Opt<Text>(number(texts, n)) : Opt<Text>(), given};
        auto& entry = map.at(key);
        entry.values.count = is_there[n] ? 0 : 1;
        if (is_there[n]) map.doubt(entry);
        size += is_there[n] ? -1 : 1;
        is_there[n] = !is_there[n];
        if (random.below(4)) continue;
        map.sweep();
        texts.collect();
        CHECK(map.size() == size && texts.size() == 1 + size - is_there[0]);
        for (u32 other = 1; other < NUMBERS; other += 7)
            CHECK((map.find({number(texts, other), given}) != nullptr) == is_there[other]);
    }
    map.clear();
    texts.collect();
    CHECK(map.size() == 0 && texts.size() == 1);
}

static void others_hold_nothing() {
    static_assert(sizeof(Map<Key, Count>) < sizeof(Map<Key, Held>));
    Texts texts;
    Map<Key, Count> map;
    map.at({number(texts, 1), {}}).values.count = 1;
    texts.collect();
    CHECK(texts.size() == 0);
}

static void guests() {
    Texts texts;
    Text both = texts.intern("both"), guest = texts.intern("guest"), holder = texts.intern("holder");
    texts.take_in(both), texts.take_in(guest);
    texts.hold(both), texts.hold(holder);
    texts.collect();
    CHECK(texts.size() == 3);
    texts.release(both), texts.take_in(guest), texts.let_go(guest);
    texts.collect();
    CHECK(texts.size() == 3);
    texts.let_go(both);
    texts.collect();
    CHECK(texts.size() == 2 && texts.intern("guest") == guest);
    texts.dismiss_guests();
    texts.collect();
    CHECK(texts.size() == 1 && texts.intern("holder") == holder);
}

int main() {
    come_and_go<Map<Key, Held, ByGiven>>();
    come_and_go<OrderedMap<Key, Held>>();
    others_hold_nothing();
    guests();
}
