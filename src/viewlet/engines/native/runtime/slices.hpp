// The entries of a map that agree on part of the key: what an index's table leads to, and what an entry knows of it.
//
// An index is a type with `hash(key)` and `same(key, key)` that read only its part of the key. Its slices are linked
// lists: the cheapest to change, but a loop waits for each entry before it knows the next. With `read_often = true`
// they are ids side by side: loops are up to several times faster, inserting and erasing slower.
#pragma once

#include "slots.hpp"

namespace viewlet {

template <class Index>
inline constexpr bool read_often = requires { requires Index::read_often; };

// A slice of one entry, as long as there was no second, is that entry's id; otherwise a chain of chunks, named by the
// newest. An id comes at the end of the newest chunk; the hole that one leaves is filled with the last of the same
// chunk, and an empty chunk goes. Chunks do not move and loops go from the last id to the first: what is inserted
// meanwhile is not in their way.
struct Chunk {
    static constexpr u32 CELLS = 16, ROOM = CELLS - 2;  // a cache line

    u32 previous;  // 0: none
    u32 next : 28;
    u32 used : 4;
    u32 ids[ROOM];

    VIEWLET_INLINE u32 last() const { return ids[used - 1]; }
};

struct Position {  // 0: alone; otherwise chunk and cell
    u32 position;

    VIEWLET_INLINE u32 chunk() const { return position / Chunk::CELLS; }
    VIEWLET_INLINE u32 cell() const { return position % Chunk::CELLS; }
};

struct Chunks : Pool<Chunk> {
    static constexpr u32 FLAG = u32(1) << 31;  // tells a chunk's name from an entry's id

    static VIEWLET_INLINE bool is_chunk(u32 name) { return name & FLAG; }
    VIEWLET_INLINE Chunk& named(u32 name) const { return *at(name & ~FLAG); }
    VIEWLET_INLINE u32 last_of(u32 name) const { return is_chunk(name) ? named(name).last() : name; }

    // A slice's newest chunk, empty; its name.
    u32 open(u32 previous) {
        u32 id = take();
        if (unlikely(id > ~u32(0) / Chunk::CELLS))
            fail("the indexes of a map have more than two hundred million chunks");
        Chunk& chunk = *at(id);
        chunk.previous = previous;
        chunk.next = chunk.used = 0;
        if (previous) at(previous)->next = id;
        return id | FLAG;
    }

    // The position of what was appended to the newest chunk.
    VIEWLET_INLINE u32 append(u32 name, u32 id) {
        Chunk& chunk = named(name);
        u32 cell = chunk.used;
        chunk.ids[cell] = id;
        chunk.used = cell + 1;
        return (name & ~FLAG) * Chunk::CELLS + cell;
    }

    // An empty chunk goes; the name that its slice now has if it was the newest, 0 if nothing is left.
    u32 close(u32 id) {
        u32 previous = at(id)->previous, next = at(id)->next;
        if (previous) at(previous)->next = next;
        if (next) at(next)->previous = previous;
        give(id);
        return previous ? previous | FLAG : 0;
    }
};

struct EntryHead {  // what each entry begins with; the cells of its indexes follow
    u32 id;
    bool doubted;
    bool touched{};  // noted for the ordered indexes
    bool noted{};    // for those who watch: what it was before is kept
    bool kept{};     // what it was before the batch is, for undoing it
};

template <class... Indexes>
inline constexpr u32 CELLS = (0 + ... + (read_often<Indexes> ? 1 : 2));

// An index of a map, for the code that is the same whatever the keys are.
template <bool read_often>
struct Slices {
    const Segments& entries;
    u64 object;  // bytes of an entry
    Slots& table;
    Chunks& chunks;
    u32 cell;  // the first of this index

    VIEWLET_INLINE u32* cells(EntryHead& entry) const { return reinterpret_cast<u32*>(&entry + 1) + cell; }
    VIEWLET_INLINE u32* cells(u32 id) const { return cells(*static_cast<EntryHead*>(entries.address(id, object))); }

    // What the table leads to; 0: nothing any more.
    VIEWLET_INLINE void rename(u32 hash, u32 old_name, u32 name) const {
        if (name)
            table.slot_of(hash, old_name)->id = name;
        else
            table.erase(hash, old_name);
    }
};

// -- lists: an entry's cells are the ids of the next and the previous one, 0 at the ends

// A new entry comes second, so that the table is read but not written.
VIEWLET_SITE void enlist(Slices<false> slices, EntryHead& entry, u32 hash, Slot* slot) {
    if (!slot) return slices.table.insert(hash, entry.id);
    u32 *own = slices.cells(entry), *head = slices.cells(slot->id), next = head[0];
    own[0] = next, own[1] = slot->id;
    if (next) slices.cells(next)[1] = entry.id;
    head[0] = entry.id;
}

VIEWLET_SITE void delist(Slices<false> slices, EntryHead& entry, u32 hash) {
    u32 *own = slices.cells(entry), next = own[0], previous = own[1];
    if (next) slices.cells(next)[1] = previous;
    if (previous)
        slices.cells(previous)[0] = next;
    else
        slices.rename(hash, entry.id, next);
}

// -- chunks: an entry's cell is its position

VIEWLET_SITE void enlist(Slices<true> slices, EntryHead& entry, u32 hash, Slot* slot) {
    Chunks& chunks = slices.chunks;
    if (!slot) return slices.table.insert(hash, entry.id);
    if (!Chunks::is_chunk(slot->id)) {
        u32 alone = slot->id;
        slot->id = chunks.open(0);
        *slices.cells(alone) = chunks.append(slot->id, alone);
    } else if (chunks.named(slot->id).used == Chunk::ROOM) {
        slot->id = chunks.open(slot->id & ~Chunks::FLAG);
    }
    *slices.cells(entry) = chunks.append(slot->id, entry.id);
}

// If the entry is the last itself, it is written once more before it goes: cheaper than to ask.
VIEWLET_SITE void delist(Slices<true> slices, EntryHead& entry, u32 hash) {
    Position hole{*slices.cells(entry)};
    if (!hole.position) return slices.rename(hash, entry.id, 0);
    Chunk& chunk = *slices.chunks.at(hole.chunk());
    u32 last = chunk.last();
    chunk.ids[hole.cell()] = last;
    *slices.cells(last) = hole.position;
    chunk.used = chunk.used - 1;
    if (chunk.used) return;
    bool newest = !chunk.next;
    u32 name = slices.chunks.close(hole.chunk());
    if (newest) slices.rename(hash, hole.chunk() | Chunks::FLAG, name);
}

VIEWLET_SITE void prefetch(const Segments& entries, u64 object, const Chunks& chunks, const Chunk& chunk) {
    if (chunk.previous) __builtin_prefetch(chunks.at(chunk.previous));
    for (u32 i = chunk.used - 1; i-- > 0;) __builtin_prefetch(entries.address(chunk.ids[i], object));
}

VIEWLET_SITE u32 id_before(const Segments& entries, u64 object, const Chunks& chunks, Position position) {
    if (!position.position) return 0;
    const Chunk& chunk = *chunks.at(position.chunk());
    if (position.cell()) return chunk.ids[position.cell() - 1];
    if (!chunk.previous) return 0;
    const Chunk& previous = *chunks.at(chunk.previous);
    prefetch(entries, object, chunks, previous);
    return previous.last();
}

}  // namespace viewlet
