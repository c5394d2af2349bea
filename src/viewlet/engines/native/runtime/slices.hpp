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

// In a list a new entry comes second, so that the table is read but not written.
template <class Index, bool = read_often<Index>>
struct Link {  // 0 ends the list
    u32 next, previous;
};

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

template <class Index>
struct Link<Index, true> {
    u32 position;  // 0: alone; otherwise chunk and cell

    VIEWLET_INLINE u32 chunk() const { return position / Chunk::CELLS; }
    VIEWLET_INLINE u32 cell() const { return position % Chunk::CELLS; }
};

struct Chunks : Pool<Chunk> {
    static constexpr u32 FLAG = u32(1) << 31;  // tells a chunk's name from an entry's id

    static VIEWLET_INLINE bool is_chunk(u32 name) { return name & FLAG; }
    VIEWLET_INLINE Chunk& named(u32 name) const { return *at(name & ~FLAG); }
    VIEWLET_INLINE u32 last_of(u32 slice) const { return is_chunk(slice) ? named(slice).last() : slice; }

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

}  // namespace viewlet
