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

// The row that a key of a result stands for, and how often it is there; 0: it is not.
template <class Row>
struct Shown {
    i64 times{};
    Row row{};
    bool settle() const { return false; }
};

// The rows of a result that may have changed. `show` computes the row of a key as it is now, `put` takes a row and how
// often it came, or went.
template <class Key, class Row>
struct RowNotes {
    Map<Key, Shown<Row>> before;

    // Before anything that the key's row is made of changes.
    template <class Show>
    VIEWLET_COLD void note(Faults& faults, const Key& key, const Show& show) {
        if (before.find(key)) return;
        const Faults known = faults;
        Shown<Row>& shown = before.at(key).values;
        show(key, shown);
        if (faults.any && !known.any) shown.times = 0;  // what could not be shown never was
        faults = known;
    }

    // Two keys may stand for equal rows: what goes under one and comes under the other is no change.
    template <class Show, class Put>
    VIEWLET_COLD void changes(Rows& out, const Show& show, const Put& put) {
        Map<Row, Times> sums;
        for (auto* noted : before.all()) {
            Shown<Row> now;
            show(noted->key, now);
            out.uncountable |= now.times < 0;
            if (noted->values.times) sums.at(noted->values.row).values.times -= noted->values.times;
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
        for (auto* noted : before.all())
            if (noted->values.times) put(noted->values.times, noted->values.row);
    }
};

// The same for the multiplicities of a view. `now` gives the one of a key, `put` takes a sign, a key and a value.
template <class Key, class Value>
struct EntryNotes {
    struct Before {
        Value value{};
        bool known{};
        bool settle() const { return false; }
    };
    Map<Key, Before> before;

    void note(const Key& key, Value value) {
        Before& noted = before.at(key).values;
        if (!noted.known) noted = {value, true};
    }

    template <class Now, class Put>
    VIEWLET_COLD void changes(const Now& now, const Put& put) {
        for (auto* noted : before.all()) {
            Value was = noted->values.value, is = now(noted->key);
            if (same(was, is)) continue;
            if (was != 0) put(-1, noted->key, was);
            if (is != 0) put(1, noted->key, is);
        }
    }

    template <class Put>
    void standing(const Key& key, Value value, const Put& put) {
        if (value != 0 && !before.find(key)) put(1, key, value);
    }
    template <class Put>
    void noted(const Put& put) {
        for (auto* noted : before.all())
            if (noted->values.value != 0) put(1, noted->key, noted->values.value);
    }
};

}  // namespace viewlet
