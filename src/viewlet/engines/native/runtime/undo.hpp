// What a program keeps of the batch in flight where a stream stores no rows: what each entry was before its first change.
// A refused batch is undone from it, to the last bit. Stored rows would do for that as well, at a higher price.
#pragma once

#include "map.hpp"
#include "real.hpp"
#include "rows.hpp"

namespace viewlet {

inline constexpr u64 KEPT_IMAGES = 1 << 24;  // bytes that stay for the next batch

// What is counted apart from a sum has an owner: the copy gets its own.
inline void part_ways(RealSum& copy) {
    if (!copy.wild) return;
    auto* own = static_cast<RealSum::Wild*>(malloc(sizeof(RealSum::Wild)));
    if (!own) fail("out of memory");
    *own = *copy.wild;
    copy.wild = own;
}

// The values of an entry as they were, byte by byte.
template <class Values>
struct Image {
    alignas(Values) char bytes[sizeof(Values)];

    static constexpr bool PLAIN = VIEWLET_TRIVIAL(Values);
    Values& values() { return *reinterpret_cast<Values*>(bytes); }

    VIEWLET_INLINE void take(const Values& of) {
        memcpy(bytes, static_cast<const void*>(&of), sizeof bytes);
        if constexpr (!PLAIN) values().each_real(part_ways);
    }
    void put_back(Values& to) {
        to.~Values();
        memcpy(static_cast<void*>(&to), bytes, sizeof bytes);
    }
    void drop() {
        if constexpr (!PLAIN) values().~Values();
    }
};

// Of a map with keys. An entry that was not there before the batch was nothing. A key that went and came again is here
// twice, so the images are put back from the last to the first.
template <class Map>
struct UndoLog {
    using Entry = typename Map::Entry;
    struct Was {
        Image<typename Map::Values> values;
        typename Map::Key key;
        u32 id;
    };
    Pile images;

    UndoLog() = default;
    UndoLog(const UndoLog&) = delete;
    ~UndoLog() { drop(); }

    // Before the first change of an entry.
    VIEWLET_SHARED void keep(Entry& entry) {
        entry.head.kept = true;
        Was& was = *static_cast<Was*>(images.more(sizeof(Was)));
        was.values.take(entry.values);
        memcpy(static_cast<void*>(&was.key), static_cast<const void*>(&entry.key), sizeof was.key);
        was.id = entry.head.id;
    }

    // `found` is told of each entry that is about to be what it was.
    template <class Found>
    VIEWLET_COLD void undo(Map& map, const Found& found) {
        for (Was *first = begin(), *was = end(); was != first;) {
            --was;
            Entry& entry = map.at(was->key);
            found(entry);
            was->values.put_back(entry.values);
            entry.head.kept = false;
            map.doubt(entry);
        }
        images.size = 0;
    }

    // The batch is done.
    void forget(Map& map) {
        MapParts parts = map.parts();
        for (Was *was = begin(), *last = end(); was != last; ++was) {
            static_cast<Entry*>(parts.entries.address(was->id, sizeof(Entry)))->head.kept = false;
            was->values.drop();
        }
        images.size = 0;
        if (images.capacity > KEPT_IMAGES) images.free_all();
    }

private:
    Was* begin() { return reinterpret_cast<Was*>(images.data); }
    Was* end() { return begin() + images.size / sizeof(Was); }
    void drop() {
        for (Was *was = begin(), *last = end(); was != last; ++was) was->values.drop();
        images.free_all();
    }
};

// Of a map without keys.
template <class Values>
struct UndoLog<Single<Values>> {
    Image<Values> values;
    bool kept{};

    UndoLog() = default;
    UndoLog(const UndoLog&) = delete;
    ~UndoLog() {
        if (kept) values.drop();
    }

    VIEWLET_SHARED void keep(Single<Values>& map) {
        kept = true;
        values.take(map.only.values);
    }
    template <class Found>
    VIEWLET_COLD void undo(Single<Values>& map, const Found& found) {
        if (!kept) return;
        found(map.only);
        values.put_back(map.only.values);
        kept = false;
    }
    void forget(Single<Values>&) {
        if (kept) values.drop();
        kept = false;
    }
};

}  // namespace viewlet
