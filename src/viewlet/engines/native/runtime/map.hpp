// Maps from keys to values, with indexes for slices by part of the key. Entries never move and are erased only by
// sweep(), so that a trigger may hold pointers to them, and insert while it loops.
#pragma once

#include "slots.hpp"

namespace viewlet {

// An index is a type with `hash(key)` and `same(key, key)` that read only its part of the key. Its table leads to the
// head of a list of the entries that agree; a new entry comes second, so that the table is read but not written.
template <class Index>
struct Link {  // 0 ends the list
    u32 next, previous;
};
template <class Index>
struct Heads {
    Slots slots;
};

template <class Key_, class Values_, class... Indexes>
struct Map {
    using Key = Key_;
    using Values = Values_;
    struct Links : Link<Indexes>... {};
    struct Entry {
        Key key;
        Values values;
        u32 id;
        bool doubted;
        [[no_unique_address]] Links links;
    };

    Map() = default;
    Map(const Map&) = delete;
    ~Map() { destroy_entries(); }

    static VIEWLET_INLINE u32 hash_of(const Key& key) { return short_hash(key.hash()); }
    VIEWLET_INLINE void prefetch(u32 hash) const { slots.prefetch(hash); }

    VIEWLET_INLINE Entry* find(const Key& key) { return find(key, hash_of(key)); }
    VIEWLET_INLINE Entry* find(const Key& key, u32 hash) {
        Entry* entry = nullptr;
        Slot* slot = slots.find(hash, [&](u32 id) { return (entry = entries.at(id))->key == key; });
        return slot ? entry : nullptr;
    }

    VIEWLET_INLINE Entry& at(const Key& key) { return at(key, hash_of(key)); }
    VIEWLET_INLINE Entry& at(const Key& key, u32 hash) {
        Entry* entry = find(key, hash);
        return likely(entry != nullptr) ? *entry : insert(key, hash);
    }

    // A value became zero: sweep() will see whether all are.
    VIEWLET_INLINE void doubt(Entry& entry) {
        if (entry.doubted) return;
        entry.doubted = true;
        doubts.push(entry.id);
    }

    // The end of a trigger: doubted entries go if all their values are zero.
    VIEWLET_INLINE void sweep() {
        while (doubts.size) settle(*entries.at(doubts.ids[--doubts.size]));
    }

    VIEWLET_INLINE Entry* first() { return entry_or_null(entries.first()); }
    VIEWLET_INLINE Entry* next(Entry* entry) { return entry_or_null(entries.after(entry->id)); }

    // Only the index's part of `probe` is read.
    template <class Index>
    VIEWLET_INLINE Entry* first(const Key& probe) {
        Slot* head = find_head<Index>(probe, short_hash(Index::hash(probe)));
        return head ? entries.at(head->id) : nullptr;
    }
    template <class Index>
    VIEWLET_INLINE Entry* next(Entry* entry) {
        return entry_or_null(link<Index>(*entry).next);
    }

    u32 size() const { return entries.size; }
    u64 bytes() const {
        return entries.bytes() + slots.bytes() + doubts.bytes() + (u64(0) + ... + heads<Indexes>().bytes());
    }

    void clear() {
        destroy_entries();
        entries.release();
        slots.release();
        (heads<Indexes>().release(), ...);
        doubts.size = 0;
    }

private:
    struct Tables : Heads<Indexes>... {};

    Pool<Entry> entries;
    Slots slots;
    [[no_unique_address]] Tables tables;
    Ids doubts;

    template <class Index>
    Slots& heads() {
        return static_cast<Heads<Index>&>(tables).slots;
    }
    template <class Index>
    const Slots& heads() const {
        return static_cast<const Heads<Index>&>(tables).slots;
    }
    template <class Index>
    static Link<Index>& link(Entry& entry) {
        return static_cast<Link<Index>&>(entry.links);
    }
    VIEWLET_INLINE Entry* entry_or_null(u32 id) { return id ? entries.at(id) : nullptr; }

    template <class Index>
    VIEWLET_INLINE Slot* find_head(const Key& probe, u32 hash) {
        return heads<Index>().find(hash, [&](u32 id) { return Index::same(entries.at(id)->key, probe); });
    }

    __attribute__((noinline)) Entry& insert(const Key& key, u32 hash) {
        u32 id = entries.take();
        Entry& entry = *new (Placed{entries.at(id)}) Entry{key, {}, id, false, {}};
        slots.insert(hash, id);
        (enlist<Indexes>(entry), ...);
        return entry;
    }

    __attribute__((noinline)) void settle(Entry& entry) {
        entry.doubted = false;
        if (entry.values.settle()) erase(entry);
    }

    void erase(Entry& entry) {
        u32 id = entry.id;
        (delist<Indexes>(entry), ...);
        slots.erase(slots.find(hash_of(entry.key), [id](u32 other) { return other == id; }));
        entry.~Entry();
        entries.give(id);
    }

    template <class Index>
    VIEWLET_INLINE void enlist(Entry& entry) {
        u32 hash = short_hash(Index::hash(entry.key));
        Slot* slot = find_head<Index>(entry.key, hash);
        if (!slot) return heads<Index>().insert(hash, entry.id);
        Link<Index>& head = link<Index>(*entries.at(slot->id));
        link<Index>(entry) = {head.next, slot->id};
        if (head.next) link<Index>(*entries.at(head.next)).previous = entry.id;
        head.next = entry.id;
    }

    template <class Index>
    VIEWLET_INLINE void delist(Entry& entry) {
        auto [next, previous] = link<Index>(entry);
        if (next) link<Index>(*entries.at(next)).previous = previous;
        if (previous)
            link<Index>(*entries.at(previous)).next = next;
        else
            replace_head<Index>(entry, next);
    }

    template <class Index>
    VIEWLET_INLINE void replace_head(Entry& entry, u32 next) {
        u32 id = entry.id;
        Slot* slot = heads<Index>().find(short_hash(Index::hash(entry.key)), [id](u32 other) { return other == id; });
        if (next)
            slot->id = next;
        else
            heads<Index>().erase(slot);
    }

    void destroy_entries() {
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

}  // namespace viewlet
