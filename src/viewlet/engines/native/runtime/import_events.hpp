// A batch of events in Arrow: columns op, relation, and row (a union or a struct) or one struct for each relation.
#pragma once
#include "batch.hpp"
#include "divide.hpp"

namespace viewlet {

// Events whose rows lie in the same struct and belong to the same relation are decoded together, column by column.
struct Group {
    i64 count, filled;
    i64 first;       // the first place
    bool scattered;  // the places are not one behind the other
    i64* places;     // then
    const RelationInfo* relation;
    char* decoded;
};

// Finds the rows of events. A copy of it beside a loop stays in registers, which members of the reader do not.
struct Locator {
    const i64* column_of;    // where each relation has a struct of its own
    const signed char* ids;  // of a union's children
    const i32* offsets;      // of a dense union
    const i64* child_of;

    VIEWLET_INLINE i64 place(i64 i) const { return offsets ? offsets[i] : i; }
    // The struct of event i, or -1, and the place in it.
    VIEWLET_INLINE i64 operator()(i64 i, i64 relation, i64& at) const {
        at = place(i);
        if (column_of) return column_of[relation];
        if (!ids) return 0;
        return ids[i] < 0 ? -1 : child_of[ids[i]];
    }
};

struct EventReader {
    State& state;
    Source batch;
    i64 length;
    Source op{}, relation{}, row{};  // `row` has no schema where each relation has its own column
    Group* groups{};                 // one for each struct and relation
    i64 structs{};
    i64* column_of{};   // for each relation: its struct, where each has its own
    i64* meaning_of{};  // for each word of the relations' dictionary
    i64* child_of{};    // for each type id of a union: its struct, or -1
    u32* group_of{};    // for each event; its relation, at first
    i64* times_of{};    // for each event
    i64* own{};         // the events of this cell, `length` of them, where there are other cells
    bool scattered{};   // some group is

    template <class T> T* take(i64 count) { return reinterpret_cast<T*>(state.batch.rows.take(count * sizeof(T))); }
    template <class T> T* take_zeros(i64 count) {
        return static_cast<T*>(memset(static_cast<void*>(take<T>(count)), 0, count * sizeof(T)));
    }

    bool open() {
        i64 ops = child_named(*batch.schema, "op"), relations = child_named(*batch.schema, "relation");
        i64 rows = child_named(*batch.schema, "row");
        if (ops < 0 || relations < 0 || rows == -2 || !batch.is("+s")) return false;
        op = batch.child(ops), relation = batch.child(relations);
        if (rows >= 0) row = batch.child(rows);
        structs = rows < 0 ? batch.schema->n_children : is_union() ? row.schema->n_children : 1;
        groups = take_zeros<Group>(structs * MODULE.relation_count);
        group_of = take<u32>(length), times_of = take<i64>(length);
        column_of = take<i64>(MODULE.relation_count);
        for (u32 r = 0; r < MODULE.relation_count; ++r)
            column_of[r] = child_named(*batch.schema, MODULE.relations[r].name);
        return is_integer(op) && !op.schema->dictionary && open_relations() && open_union();
    }

    bool open_relations() {
        if (!relation.schema->dictionary) return is_text(relation);
        Source words = relation.dictionary();
        if (!is_integer(relation) || !is_text(words)) return false;
        meaning_of = take<i64>(words.array->length);
        for (i64 i = 0; i < words.array->length; ++i)
            meaning_of[i] = words.valid(words.shift + i) ? relation_named(text_at(words, words.shift + i)) : -1;
        return true;
    }

    bool open_union() {
        constexpr int ids = 128;
        if (!is_union()) return true;
        child_of = take<i64>(ids);
        for (int id = 0; id < ids; ++id) child_of[id] = union_child(id);
        return true;
    }

    bool is_union() const { return row.schema && row.format()[0] == '+' && row.format()[1] == 'u'; }
    bool is_dense() const { return row.format()[2] == 'd'; }

    // -- which relation an event is for

    static bool is_named(Bytes text, const char* name) {
        return strlen(name) == text.length && memcmp(name, text.start, text.length) == 0;
    }
    static i64 relation_named(Bytes text) {
        for (u32 r = 0; r < MODULE.relation_count; ++r)
            if (is_named(text, MODULE.relations[r].name)) return MODULE.relations[r].fire ? i64(r) : -1;
        return -1;
    }
    // The relation of each event; false where one has none.
    bool read_relations() {
        if (!meaning_of) {
            for (i64 i = 0; i < length; ++i) {
                i64 place = relation.shift + i, index = -1;
                if (relation.valid(place)) index = relation_named(text_at(relation, place));
                if (index < 0) return false;
                group_of[i] = u32(index);
            }
            return true;
        }
        return with_integers(relation, [&, all = !relation.has_nulls(), meaning_of = meaning_of](auto* words) {
            for (i64 i = 0; i < length; ++i) {
                i64 place = relation.shift + i;
                i64 index = all || relation.valid(place) ? meaning_of[words[place]] : -1;
                if (index < 0) return false;
                group_of[i] = u32(index);
            }
            return true;
        });
    }

    // -- where its row lies

    // "+ud:4,7": the child that type id 7 means is the second.
    i64 union_child(int id) const {
        i64 child = 0;
        int number = 0;
        for (const char* at = row.format() + 4;; ++at) {
            if (*at >= '0' && *at <= '9') {
                number = number * 10 + (*at - '0');
                continue;
            }
            if (number == id) return child;
            if (!*at) return -1;
            ++child, number = 0;
        }
    }

    // How often each event's row comes; false where one does not say it.
    bool read_ops() {
        return with_integers(op, [&, all = !op.has_nulls()](auto* values) {
            for (i64 i = 0; i < length; ++i) {
                auto times = values[op.shift + i];
                if (!(all || op.valid(op.shift + i)) || !is_whole(times) || !is_copies(i64(times))) return false;
                times_of[i] = i64(times);
            }
            return true;
        });
    }

    Locator locator() const {
        if (!child_of) return {row.schema ? nullptr : column_of, nullptr, nullptr, nullptr};
        const i32* offsets = is_dense() ? row.buffer<i32>(1) + row.shift : nullptr;
        return {nullptr, row.buffer<signed char>(0) + row.shift, offsets, child_of};
    }

    // The events whose rows are this cell's; false where that cannot be told.
    bool leave_to_others() {
        if (!state.division) return true;
        const Locator locate = locator();
        const u32 relations = MODULE.relation_count;
        auto* owners = take_zeros<Owner>(structs * relations);
        i64* mine = take<i64>(length);
        i64 count = 0;
        for (i64 i = 0; i < length; ++i) {
            i64 place, which = locate(i, group_of[i], place);
            if (which < 0) return false;
            u32 relation = group_of[i];
            Owner& owner = owners[which * relations + relation];
            if (!owner.way && !owner.open(*state.division, relation, MODULE.relations[relation], rows_of(which)))
                return false;
            mine[count] = i;
            count += owner.owns(*state.division, place);
        }
        state.batch.numbers = own = mine;
        length = count;
        return true;
    }

    // Which rows make a group; false where an event has none.
    bool group() {
        const Locator locate = locator();
        const u32 relations = MODULE.relation_count;
        const Picks at{own, length};
        for (i64 e = 0; e < length; ++e) {
            i64 place, i = at[e], which = locate(i, group_of[i], place);
            if (which < 0) return false;
            group_of[i] += u32(which) * relations;
            Group& group = groups[group_of[i]];
            i64 before = group.count++;
            if (unlikely(!before)) group.first = place;
            if (unlikely(place != group.first + before)) scattered = group.scattered = true;
        }
        if (scattered) pick_places(locate);
        return true;
    }

    // The places of the rows that do not lie one behind the other.
    void pick_places(const Locator locate) {
        const u32 relations = MODULE.relation_count;
        const Picks at{own, length};
        for (i64 g = 0; g < structs * relations; ++g)
            if (groups[g].scattered) groups[g].places = take<i64>(groups[g].count);
        for (i64 e = 0; e < length; ++e) {
            i64 i = at[e];
            Group& group = groups[group_of[i]];
            if (group.scattered) locate(i, group_of[i] % relations, group.places[group.filled++]);
        }
    }

    Source rows_of(i64 which) const {
        if (!row.schema) return batch.child(which);
        if (!child_of) return row;
        Source rows = row.child(which);
        if (is_dense()) rows.shift -= row.shift;
        return rows;
    }

    bool decode(i64 g) {
        Group& group = groups[g];
        const RelationInfo& to = MODULE.relations[g % MODULE.relation_count];
        group.relation = &to;
        Source rows = rows_of(g / MODULE.relation_count);
        Picks picks{group.places, group.count};
        if (!group.scattered) rows.shift += group.first;
        group.decoded = take<char>(group.count * to.row_size);
        return fill_rows(state.texts(), rows, to, picks, state.batch.rows, group.decoded);
    }

    // -- the whole batch in one piece

    // Whether all numbers are equal: each is as the one before it.
    template <class T> static bool are_alike(const T* numbers, i64 count) {
        return memcmp(numbers, numbers + 1, u64(count - 1) * sizeof(T)) == 0;
    }
    // Whether each is one more than the one before it; eight at a time, in which no step waits for another.
    static bool are_in_line(const i32* numbers, i64 count) {
        using Eight = i32 __attribute__((vector_size(32)));
        Eight wrong{}, known = Eight{0, 1, 2, 3, 4, 5, 6, 7} + numbers[0];
        i64 i = 0;
        for (; i + 8 <= count; i += 8, known += 8) {
            Eight given;
            memcpy(&given, numbers + i, sizeof given);
            wrong |= given ^ known;
        }
        i32 any = 0;
        for (int lane = 0; lane < 8; ++lane) any |= wrong[lane];
        for (; i < count; ++i) any |= numbers[i] ^ i32(numbers[0] + i);
        return !any;
    }

    // All events are of one relation, and their rows lie one behind the other: there is nothing to sort. Its number and
    // the place of the first row; false where it is not so, or where that would have to be asked of each event.
    bool is_one_piece(i64& which, i64& first) {
        if (!length || state.division || !meaning_of || relation.has_nulls()) return false;
        auto all_one = [&](auto* words) { return are_alike(words + relation.shift, length); };
        i64 word, found;
        if (!with_integers(relation, all_one) || !whole_at(relation, relation.shift, word)) return false;
        const Locator locate = locator();
        if (locate.ids && !are_alike(locate.ids, length)) return false;
        if (locate.offsets && !are_in_line(locate.offsets, length)) return false;
        if (meaning_of[word] < 0 || (found = locate(0, meaning_of[word], first)) < 0) return false;
        which = found * MODULE.relation_count + meaning_of[word];
        return true;
    }

    bool read_one_piece(i64 which, i64 first) {
        groups[which].count = length, groups[which].first = first;
        if (!decode(which)) return false;
        const Group& group = groups[which];
        auto* events = static_cast<Event*>(state.batch.events.more(length * sizeof(Event)));
        for (i64 i = 0; i < length; ++i)
            events[i] = {group.relation, times_of[i], group.decoded + u64(i) * group.relation->row_size};
        return true;
    }

    // The batch's events, in its order; false where Python must look at it.
    bool read() {
        if (!open() || !read_ops()) return false;
        if (i64 which, first; is_one_piece(which, first)) return read_one_piece(which, first);
        if (!read_relations() || !leave_to_others() || !group()) return false;
        for (i64 g = 0; g < structs * MODULE.relation_count; ++g)
            if (groups[g].count && !decode(g)) return false;
        write_events();
        return true;
    }

    // Where no group is scattered, the place of an event tells where its row is: none waits for the one before it.
    void write_events() {
        auto* events = static_cast<Event*>(state.batch.events.more(length * sizeof(Event)));
        const Locator locate = locator();
        const Picks at{own, length};
        for (i64 e = 0; e < length && !scattered; ++e) {
            i64 i = at[e];
            const Group& group = groups[group_of[i]];
            u64 row = u64(locate.place(i) - group.first);
            events[e] = {group.relation, times_of[i], group.decoded + row * group.relation->row_size};
        }
        for (i64 e = 0; e < length && scattered; ++e) {
            Group& group = groups[group_of[at[e]]];
            events[e] = {group.relation, times_of[at[e]], group.decoded};
            group.decoded += group.relation->row_size;
        }
    }
};

}  // namespace viewlet
