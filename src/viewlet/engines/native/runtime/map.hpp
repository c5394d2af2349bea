// Maps from keys to values, with indexes for slices by part of the key. Entries never move and are erased only by
// sweep(), so that a trigger may hold pointers to them, and insert while it loops.
#pragma once

#include "slices.hpp"
#include "texts.hpp"

namespace viewlet {

// The parts of a map whose types do not depend on its own: what only walks or measures maps needs no code for each.
struct MapParts {
    Segments& entries;
    Chunks& chunks;
    Slots* tables;
    Ids& doubts;
    Ids* touched{};  // where there are ordered indexes
};

VIEWLET_SITE void note_doubt(Ids& doubts, EntryHead& entry) {
    if (entry.doubted) return;
    entry.doubted = true;
    doubts.push(entry.id);
}

// A table of so many entries is in the cache: none is worth fetching ahead. A map may have more, since fetching costs its
// hashes once more, and the processor finds other work beside a trigger.
inline constexpr u32 WELL_CACHED = 1 << 11, CACHED = 1 << 16;

template <u32 count>
struct Cells {
    u32 of[count];
};
template <>
struct Cells<0> {};

// Where a map keeps an index: which of its tables, and which of an entry's cells on.
struct IndexPlace {
    u32 table{1}, cell{};
};
template <class Index, class... Indexes>
consteval IndexPlace place_among() {
    IndexPlace place;
    bool found = false;
    ((found = found || __is_same(Index, Indexes), place.table += !found, place.cell += found ? 0 : CELLS<Indexes>),
     ...);
    return place;
}

// The texts of keys that may be in no base row: those that `Values::each_text(key, use)` names. A map holds them while it
// has the entry; other maps have no such function, and nothing here costs them anything.
template <class Key, class Values>
struct HeldTexts {
    static constexpr bool ANY = false;
    void hold(const Key&) {}
    void release(const Key&) {}
};
template <class Key, class Values>
    requires requires(const Key& key) { Values::each_text(key, [](Text) {}); }
struct HeldTexts<Key, Values> {
    static constexpr bool ANY = true;
    Texts& texts;

    void hold(const Key& key) {
        Values::each_text(key, [&](Text text) { texts.hold(text); });
    }
    void release(const Key& key) {
        Values::each_text(key, [&](Text text) { texts.release(text); });
    }
};

template <class Key_, class Values_, class... Indexes>
struct Map {
    using Key = Key_;
    using Values = Values_;
    static constexpr u32 TABLES = 1 + sizeof...(Indexes);
    struct Entry {
        EntryHead head;
        [[no_unique_address]] Cells<CELLS<Indexes...>> cells;
        Key key;
        Values values;
    };

    // All that a slice held when it was opened, perhaps more: for (auto* entry : map.slice<Index>(probe)).
    template <class Index, bool = read_often<Index>>
    struct Slice {
        Map& map;
        Entry* entry;  // nullptr at the end

        VIEWLET_INLINE Slice begin() const { return *this; }
        VIEWLET_INLINE decltype(nullptr) end() const { return nullptr; }
        VIEWLET_INLINE bool operator!=(decltype(nullptr)) const { return entry; }
        VIEWLET_INLINE Entry* operator*() const { return entry; }
        VIEWLET_INLINE void operator++() { entry = map.template next<Index>(entry); }
    };
    template <class Index>
    struct Slice<Index, true> {
        Map& map;
        Entry* entry;
        const u32* ids{};
        u32 left{}, previous{};  // ids in this chunk, and the chunk after it

        VIEWLET_INLINE Slice begin() const { return *this; }
        VIEWLET_INLINE decltype(nullptr) end() const { return nullptr; }
        VIEWLET_INLINE bool operator!=(decltype(nullptr)) const { return entry; }
        VIEWLET_INLINE Entry* operator*() const { return entry; }
        VIEWLET_INLINE void operator++() {
            if (left)
                entry = map.entries.at(ids[--left]);
            else if (previous)
                enter(*map.chunks.at(previous));
            else
                entry = nullptr;
        }
        VIEWLET_INLINE void enter(const Chunk& chunk) {
            viewlet::prefetch(map.entries, sizeof(Entry), map.chunks, chunk);
            ids = chunk.ids;
            left = chunk.used - 1;
            previous = chunk.previous;
            entry = map.entries.at(ids[left]);
        }
    };

    struct All {
        Segments::Walk walk;

        VIEWLET_INLINE All begin() const { return *this; }
        VIEWLET_INLINE decltype(nullptr) end() const { return nullptr; }
        VIEWLET_INLINE bool operator!=(decltype(nullptr)) const { return walk.rest; }
        VIEWLET_INLINE Entry* operator*() const { return static_cast<Entry*>(walk.object(sizeof(Entry))); }
        VIEWLET_INLINE void operator++() { walk.step(); }
    };

    Map() = default;
    explicit Map(Texts& texts) : held{texts} {}
    Map(const Map&) = delete;
    ~Map() { destroy_entries(); }

    static VIEWLET_INLINE u32 hash_of(const Key& key) { return short_hash(key.hash()); }
    // By the number of the table: that of the keys, or that of an index.
    static u32 hash_in(u32 table, const Key& key) {
        u32 hash = hash_of(key), number = 0;
        ((++number == table ? void(hash = hash_in<Indexes>(key)) : void()), ...);
        return hash;
    }
    VIEWLET_INLINE void prefetch(u32 hash) const { tables[0].prefetch(hash); }
    // Of the key with this hash, whose slot was prefetched before.
    VIEWLET_INLINE void prefetch_entry(u32 hash) const {
        if (const Slot* slot = tables[0].find(hash, [](u32) { return true; })) prefetch_whole(slot->id);
    }

    // A key, or the slice of a probe, that an event will look up: first its slot, when `close` its entry.
    VIEWLET_SHARED void foresee(const Key& key, bool close) const {
        if (size() <= CACHED) return;
        close ? prefetch_entry(hash_of(key)) : prefetch(hash_of(key));
    }
    template <class Index>
    VIEWLET_SHARED void foresee(const Key& probe, bool close) const {
        if (size() <= CACHED) return;
        const Slots& table = tables[place<Index>.table];
        u32 hash = hash_in<Index>(probe);
        if (!close) return table.prefetch(hash);
        if (const Slot* slot = table.find(hash, [](u32) { return true; })) prefetch_whole(last_of<Index>(slot->id));
    }

    VIEWLET_INLINE Entry* find(const Key& key) { return reach(key, false); }
    VIEWLET_INLINE Entry* find(const Key& key, u32 hash) { return reach(key, hash, false); }
    VIEWLET_INLINE Entry& at(const Key& key) { return *reach(key, true); }
    VIEWLET_INLINE Entry& at(const Key& key, u32 hash) { return *reach(key, hash, true); }

    // find() or at()
    VIEWLET_SITE Entry* reach(const Key& key, bool make) { return look_up(key, hash_of(key), make); }
    VIEWLET_SITE Entry* reach(const Key& key, u32 hash, bool make) { return look_up(key, hash, make); }

    // At once, outside of triggers.
    VIEWLET_INLINE void erase(Entry& entry, u32 hash) {
        u32 id = entry.head.id;
        (delist(slices<Indexes>(), entry.head, hash_in<Indexes>(entry.key)), ...);
        tables[0].erase(hash, id);
        held.release(entry.key);
        entry.~Entry();
        entries.give(id);
    }

    // A value became zero: sweep() will see whether all are.
    VIEWLET_INLINE void doubt(Entry& entry) { note_doubt(doubts, entry.head); }

    // The end of a trigger: doubted entries go if all their values are zero.
    VIEWLET_SITE void sweep() {
        while (doubts.size) settle(*entries.at(doubts.ids[--doubts.size]));
    }

    VIEWLET_INLINE Entry* first() { return entry_or_null(entries.first()); }
    VIEWLET_INLINE Entry* next(Entry* entry) { return entry_or_null(entries.after(entry->head.id)); }

    // All that it held when the loop began, perhaps more: for (auto* entry : map.all()).
    VIEWLET_INLINE All all() { return {Segments::Walk{entries}}; }

    // Only the index's part of `probe` is read.
    template <class Index>
    VIEWLET_INLINE Slice<Index> slice(const Key& probe) {
        Slice<Index> slice{*this, nullptr};
        Slot* slot = find_slice<Index>(probe, hash_in<Index>(probe));
        if (!slot) return slice;
        if constexpr (read_often<Index>)
            if (Chunks::is_chunk(slot->id)) return slice.enter(chunks.named(slot->id)), slice;
        slice.entry = entries.at(slot->id);
        return slice;
    }
    template <class Index>
    VIEWLET_SITE Entry* first(const Key& probe) {
        Slot* slot = find_slice<Index>(probe, hash_in<Index>(probe));
        return slot ? entries.at(last_of<Index>(slot->id)) : nullptr;
    }
    template <class Index>
    VIEWLET_INLINE Entry* next(Entry* entry) {
        if constexpr (read_often<Index>)
            return entry_or_null(id_before(entries, sizeof(Entry), chunks, {entry->cells.of[place<Index>.cell]}));
        else
            return entry_or_null(entry->cells.of[place<Index>.cell]);
    }

    u32 size() const { return entries.size; }
    u64 bytes() const {
        u64 sum = entries.bytes() + chunks.bytes() + doubts.bytes();
        for (const Slots& table : tables) sum += table.bytes();
        return sum;
    }
    MapParts parts() { return {entries, chunks, tables, doubts}; }

    void clear() {
        if constexpr (HeldTexts<Key, Values>::ANY)
            for (Entry* entry : all()) held.release(entry->key);
        destroy_entries();
        entries.release();
        chunks.release();
        for (Slots& table : tables) table.release();
        doubts.size = 0;
    }

private:
    Pool<Entry> entries;
    Chunks chunks;
    Slots tables[TABLES];  // of the keys, and of each index
    Ids doubts;
    [[no_unique_address]] HeldTexts<Key, Values> held;

    template <class Index>
    static constexpr IndexPlace place = place_among<Index, Indexes...>();

    VIEWLET_INLINE void prefetch_whole(u32 id) const {
        auto* entry = reinterpret_cast<const char*>(entries.at(id));
        for (u64 line = 0; line < sizeof(Entry); line += 64) __builtin_prefetch(entry + line);
    }

    template <class Index>
    VIEWLET_INLINE Slots& table_of() {
        return tables[place<Index>.table];
    }
    template <class Index>
    VIEWLET_INLINE Slices<read_often<Index>> slices() {
        static_assert(offsetof(Entry, cells) == sizeof(EntryHead));
        return {entries, sizeof(Entry), table_of<Index>(), chunks, place<Index>.cell};
    }
    template <class Index>
    static VIEWLET_INLINE u32 hash_in(const Key& key) {
        return short_hash(Index::hash(key));
    }

    template <class Index>
    VIEWLET_INLINE u32 last_of(u32 name) const {
        return read_often<Index> ? chunks.last_of(name) : name;
    }
    template <class Index>
    VIEWLET_INLINE Slot* find_slice(const Key& probe, u32 hash) {
        auto agrees = [&](u32 name) { return Index::same(entries.at(last_of<Index>(name))->key, probe); };
        return table_of<Index>().find(hash, agrees);
    }
    template <class Index>
    VIEWLET_INLINE void enlist_in(Entry& entry, u32 hash) {
        enlist(slices<Index>(), entry.head, hash, find_slice<Index>(entry.key, hash));
    }

    VIEWLET_INLINE Entry* look_up(const Key& key, u32 hash, bool make) {
        Entry* entry = nullptr;
        Slot* slot = tables[0].find(hash, [&](u32 id) { return (entry = entries.at(id))->key == key; });
        if (likely(slot != nullptr)) return entry;
        return make ? &insert(key, hash) : nullptr;
    }

    VIEWLET_OFF_SITE Entry& insert(const Key& key, u32 hash) {
        u32 id = entries.take();
        Entry& entry = *new (Placed{entries.at(id)}) Entry{{id, false}, {}, key, {}};
        tables[0].insert(hash, id);
        held.hold(key);
        (enlist_in<Indexes>(entry, hash_in<Indexes>(key)), ...);
        return entry;
    }

    VIEWLET_INLINE Entry* entry_or_null(u32 id) { return id ? entries.at(id) : nullptr; }

    VIEWLET_OFF_SITE void settle(Entry& entry) {
        entry.head.doubted = false;
        if (entry.values.settle()) erase(entry, hash_of(entry.key));
    }

    void destroy_entries() {
        if constexpr (VIEWLET_TRIVIAL(Values)) return;
        for (Entry *entry = first(), *following; entry; entry = following) {
            following = next(entry);
            entry->~Entry();
        }
    }
};

// The entry for a key that one trigger uses several times: looked up when first needed, and again only while absent.
template <class Map>
struct Place {
    Map& map;
    typename Map::Key key;
    u32 hash;
    typename Map::Entry* entry{};

    VIEWLET_INLINE Place(Map& map, const typename Map::Key& key) : map(map), key(key), hash(Map::hash_of(key)) {
        map.prefetch(hash);
    }
    VIEWLET_INLINE typename Map::Entry* find() {
        if (!entry) entry = map.find(key, hash);
        return entry;
    }
    VIEWLET_INLINE typename Map::Entry& make() {
        if (!entry) entry = &map.at(key, hash);
        return *entry;
    }
};

// A map without keys: its one entry is always there.
template <class Values_>
struct Single {
    using Values = Values_;
    struct Entry {
        Values values{};
    } only;

    Entry* find() { return &only; }
    Entry& at() { return only; }
    void doubt(Entry&) { doubted = true; }
    void sweep() {
        if (doubted) only.values.settle();
        doubted = false;
    }
    Entry* first() { return &only; }
    Entry* next(Entry*) { return nullptr; }
    u32 size() const { return 1; }
    u64 bytes() const { return sizeof(Single); }
    void clear() {
        only.~Entry();
        new (Placed{&only}) Entry{};
        doubted = false;
    }

private:
    bool doubted{};
};

struct Times {  // how often a row is in a table
    i64 times{};
    bool settle() const { return times == 0; }
};
template <class Row, class... Indexes>
using Table = Map<Row, Times, Indexes...>;

// A table in which at most one row has each value of a key. A key is an index, and `is_whole` says of a row whether it
// has a value of it: one with a NULL is equal to no other.
template <class Row, class... Keys>
struct KeyedTable : Table<Row, Keys...> {
    static constexpr u32 KEYS = sizeof...(Keys);
    bool checks{true};  // not while rows come in another order than they did

    // The row that has the same value of a key, by the number of the key.
    const Row* holder(u32 key, const Row& row) {
        const Row* found = nullptr;
        u32 number = 0;
        ((number++ == key ? void(found = holder_by<Keys>(row)) : void()), ...);
        return found;
    }
    static bool agree(u32 key, const Row& row, const Row& other) {
        u32 number = 0;
        return ((number++ == key && Keys::same(row, other)) || ...);
    }
    bool is_taken(const Row& row, i64 times) {
        return checks && ((Keys::is_whole(row) && (times > 1 || this->template first<Keys>(row))) || ...);
    }

private:
    template <class Key>
    const Row* holder_by(const Row& row) {
        auto* entry = Key::is_whole(row) ? this->template first<Key>(row) : nullptr;
        return entry ? &entry->key : nullptr;
    }
};

}  // namespace viewlet
