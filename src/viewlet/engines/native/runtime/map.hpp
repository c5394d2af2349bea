// Maps from keys to values, with indexes for slices by part of the key. Entries never move and are erased only by
// sweep(), so that a trigger may hold pointers to them, and insert while it loops.
#pragma once

#include "slices.hpp"

namespace viewlet {

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
            map.prefetch(chunk);
            ids = chunk.ids;
            left = chunk.used - 1;
            previous = chunk.previous;
            entry = map.entries.at(ids[left]);
        }
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
    VIEWLET_INLINE Slice<Index> slice(const Key& probe) {
        Slice<Index> slice{*this, nullptr};
        Slot* slot = find_slice<Index>(probe, short_hash(Index::hash(probe)));
        if (!slot) return slice;
        if constexpr (read_often<Index>)
            if (Chunks::is_chunk(slot->id)) return slice.enter(chunks.named(slot->id)), slice;
        slice.entry = entries.at(slot->id);
        return slice;
    }
    template <class Index>
    VIEWLET_INLINE Entry* first(const Key& probe) {
        return slice<Index>(probe).entry;
    }
    template <class Index>
    VIEWLET_INLINE Entry* next(Entry* entry) {
        if constexpr (read_often<Index>)
            return entry_or_null(id_before(link<Index>(*entry)));
        else
            return entry_or_null(link<Index>(*entry).next);
    }

    u32 size() const { return entries.size; }
    u64 bytes() const {
        u64 indexes = chunks.bytes() + (u64(0) + ... + heads<Indexes>().bytes());
        return entries.bytes() + slots.bytes() + doubts.bytes() + indexes;
    }

    void clear() {
        destroy_entries();
        entries.release();
        slots.release();
        chunks.release();
        (heads<Indexes>().release(), ...);
        doubts.size = 0;
    }

private:
    struct Tables : Heads<Indexes>... {};

    Pool<Entry> entries;
    Slots slots;
    Chunks chunks;
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
    VIEWLET_INLINE Slot* find_slice(const Key& probe, u32 hash) {
        return heads<Index>().find(hash, [&](u32 id) {
            if constexpr (read_often<Index>) id = chunks.last_of(id);
            return Index::same(entries.at(id)->key, probe);
        });
    }
    template <class Index>
    VIEWLET_INLINE Slot* slot_of(Entry& entry, u32 id) {
        return heads<Index>().find(short_hash(Index::hash(entry.key)), [id](u32 other) { return other == id; });
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
        Slot* slot = find_slice<Index>(entry.key, hash);
        if (!slot)
            heads<Index>().insert(hash, entry.id);
        else if constexpr (read_often<Index>)
            append<Index>(*slot, entry);
        else
            put_second<Index>(*entries.at(slot->id), entry);
    }
    template <class Index>
    VIEWLET_INLINE void delist(Entry& entry) {
        if constexpr (read_often<Index>)
            remove<Index>(entry);
        else
            unlink<Index>(entry);
    }

    // -- slices as lists

    template <class Index>
    VIEWLET_INLINE void put_second(Entry& first, Entry& entry) {
        Link<Index>& head = link<Index>(first);
        link<Index>(entry) = {head.next, first.id};
        if (head.next) link<Index>(*entries.at(head.next)).previous = entry.id;
        head.next = entry.id;
    }

    template <class Index>
    VIEWLET_INLINE void unlink(Entry& entry) {
        auto [next, previous] = link<Index>(entry);
        if (next) link<Index>(*entries.at(next)).previous = previous;
        if (previous)
            link<Index>(*entries.at(previous)).next = next;
        else
            rename<Index>(entry, entry.id, next);
    }

    // What the table leads to; 0: nothing any more.
    template <class Index>
    VIEWLET_INLINE void rename(Entry& entry, u32 old_name, u32 name) {
        Slot* slot = slot_of<Index>(entry, old_name);
        if (name)
            slot->id = name;
        else
            heads<Index>().erase(slot);
    }

    // -- slices in chunks

    VIEWLET_INLINE void prefetch(const Chunk& chunk) const {
        if (chunk.previous) __builtin_prefetch(chunks.at(chunk.previous));
        for (u32 i = chunk.used - 1; i-- > 0;) __builtin_prefetch(entries.at(chunk.ids[i]));
    }

    template <class Index>
    VIEWLET_INLINE u32 id_before(Link<Index> link) const {
        if (!link.position) return 0;
        const Chunk& chunk = *chunks.at(link.chunk());
        if (link.cell()) return chunk.ids[link.cell() - 1];
        if (!chunk.previous) return 0;
        const Chunk& previous = *chunks.at(chunk.previous);
        prefetch(previous);
        return previous.last();
    }

    template <class Index>
    VIEWLET_INLINE void append(Slot& slot, Entry& entry) {
        if (!Chunks::is_chunk(slot.id)) {
            Link<Index>& alone = link<Index>(*entries.at(slot.id));
            u32 id = slot.id;
            slot.id = chunks.open(0);
            alone.position = chunks.append(slot.id, id);
        } else if (chunks.named(slot.id).used == Chunk::ROOM) {
            slot.id = chunks.open(slot.id & ~Chunks::FLAG);
        }
        link<Index>(entry).position = chunks.append(slot.id, entry.id);
    }

    // If the entry is the last itself, it is written once more before it goes: cheaper than to ask.
    template <class Index>
    VIEWLET_INLINE void remove(Entry& entry) {
        Link<Index> hole = link<Index>(entry);
        if (!hole.position) return rename<Index>(entry, entry.id, 0);
        Chunk& chunk = *chunks.at(hole.chunk());
        u32 last = chunk.last();
        chunk.ids[hole.cell()] = last;
        link<Index>(*entries.at(last)) = hole;
        chunk.used = chunk.used - 1;
        if (chunk.used) return;
        bool newest = !chunk.next;
        u32 name = chunks.close(hole.chunk());
        if (newest) rename<Index>(entry, hole.chunk() | Chunks::FLAG, name);
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
