// What a program that is watched keeps between two questions: what was there before the first change since the last
// one. So an answer takes as long as there are keys that changed, not as there are keys.
#pragma once

#include "map.hpp"
#include "real.hpp"
#include "rows.hpp"

namespace viewlet {

struct Keyless {  // of what is there once
    bool operator==(const Keyless&) const = default;
    u64 hash() const { return seed; }
};

// The next change of an entry is the first again. An entry that is gone meanwhile has left its place to another one, or
// to none: its mark means nothing there.
template <class Map>
void unmark(Map& map, Ids& marked) {
    using Entry = typename Map::Entry;
    while (marked.size) {
        u32 id = marked.ids[--marked.size];
        static_cast<Entry*>(map.parts().entries.address(id, sizeof(Entry)))->head.noted = false;
    }
}

// What was there before by the keys that changed, in the order in which they did. A few are looked through; for more there
// is a table. What is cleared keeps its memory, up to a point: the next answer is about as long.
template <class Key, class Was>
struct Notes {
    static constexpr u32 FEW = 4;
    static constexpr u64 KEPT = 1 << 20;  // bytes

    struct Note {
        Key key;
        Was was;
    };
    Note* notes{};
    u32 count{}, room{};
    Slots table;  // of all, once they are more than a few

    Notes() = default;
    Notes(const Notes&) = delete;
    ~Notes() { free(notes); }

    u32 size() const { return count; }
    Note* begin() const { return notes; }
    Note* end() const { return notes + count; }

    // By its place: notes move when one is added.
    Was* find(const Key& key) const {
        if (table.taken()) {
            Slot* slot = table.find(hash_of(key), [&](u32 id) { return notes[id - 1].key == key; });
            return slot ? &notes[slot->id - 1].was : nullptr;
        }
        for (Note& note : *this)
            if (note.key == key) return &note.was;
        return nullptr;
    }
    // Of a key that has none.
    Was& add(const Key& key) {
        if (count == room) grow();
        Note& note = *new (Placed{notes + count++}) Note{key, {}};
        if (count > FEW) enlist();
        return note.was;
    }
    void clear() {
        count = 0;
        if (table.taken()) table.wipe(KEPT);
        if (room * sizeof(Note) > KEPT) free(notes), notes = nullptr, room = 0;
    }

private:
    static u32 hash_of(const Key& key) { return short_hash(key.hash()); }

    VIEWLET_COLD void grow() {
        static_assert(VIEWLET_TRIVIAL(Note));
        room = 2 * room + FEW;
        notes = static_cast<Note*>(realloc(static_cast<void*>(notes), room * sizeof(Note)));
        if (!notes) fail("out of memory for what changed in a view");
    }
    void enlist() {
        for (u32 id = table.taken() + 1; id <= count; ++id) table.insert(hash_of(notes[id - 1].key), id);
    }
};

// The row that a key of a result stands for, and how often it is there; 0: it is not.
template <class Row>
struct Shown {
    i64 times{};
    Row row{};
    bool settle() const { return false; }
};

// The rows of a result that may have changed. `show` computes the row of a key as it is now, `put` takes a row and how
// often it came, or went. Where rows show their keys, those of two keys are never equal.
template <class Key, class Row, bool show_keys>
struct RowNotes {
    Notes<Key, Shown<Row>> before;

    // Before anything that the key's row is made of changes.
    template <class Show>
    VIEWLET_SHARED void note(Faults& faults, const Key& key, const Show& show) {
        if (before.find(key)) return;
        const Faults known = faults;
        Shown<Row>& shown = before.add(key);
        show(key, shown);
        if (faults.any && !known.any) shown.times = 0;  // what could not be shown never was
        faults = known;
    }

    template <class Show, class Put>
    VIEWLET_SHARED void changes(Rows& out, const Show& show, const Put& put) {
        if (!show_keys && before.size() > 1) return summed(out, show, put);
        for (const auto& noted : before) {
            const Shown<Row>& was = noted.was;
            Shown<Row> now;
            show(noted.key, now);
            out.uncountable |= now.times < 0;
            if (was.times && now.times && was.row == now.row) {
                if (was.times != now.times) put(now.times - was.times, now.row);
                continue;
            }
            if (was.times) put(-was.times, was.row);
            if (now.times) put(now.times, now.row);
        }
    }

    // Two keys may stand for equal rows: what goes under one and comes under the other is no change.
    template <class Show, class Put>
    VIEWLET_COLD void summed(Rows& out, const Show& show, const Put& put) {
        Map<Row, Times> sums;
        for (const auto& noted : before) {
            Shown<Row> now;
            show(noted.key, now);
            out.uncountable |= now.times < 0;
            if (noted.was.times) sums.at(noted.was.row).values.times -= noted.was.times;
            if (now.times) sums.at(now.row).values.times += now.times;
        }
        for (auto* sum : sums.all())
            if (sum->values.times) put(sum->values.times, sum->key);
    }

    // What the last answers come to: the row of each key that is there now, and then those that were noted.
    template <class Show, class Put>
    void standing(const Key& key, const Show& show, const Put& put) {
        Shown<Row> now;
        if (before.find(key)) return;
        show(key, now);
        if (now.times) put(now.times, now.row);
    }
    template <class Put>
    void noted(const Put& put) {
        for (const auto& noted : before)
            if (noted.was.times) put(noted.was.times, noted.was.row);
    }
};

// The same for the multiplicities of a view. `now` gives the one of a key, `put` takes a sign, a key and a value.
template <class Key, class Value>
struct EntryNotes {
    Notes<Key, Value> before;

    void note(const Key& key, Value value) {
        if (!before.find(key)) before.add(key) = value;
    }

    template <class Now, class Put>
    VIEWLET_COLD void changes(const Now& now, const Put& put) {
        for (const auto& noted : before) {
            Value was = noted.was, is = now(noted.key);
            if (same(was, is)) continue;
            if (was != 0) put(-1, noted.key, was);
            if (is != 0) put(1, noted.key, is);
        }
    }

    template <class Put>
    void standing(const Key& key, Value value, const Put& put) {
        if (value != 0 && !before.find(key)) put(1, key, value);
    }
    template <class Put>
    void noted(const Put& put) {
        for (const auto& noted : before)
            if (noted.was != 0) put(1, noted.key, noted.was);
    }
};

}  // namespace viewlet
