// A batch of events in Arrow: columns op, relation, and row (a union or a struct) or one struct for each relation.
#pragma once
#include "batch.hpp"
#include "import.hpp"

namespace viewlet {

// Events whose rows lie in the same struct and belong to the same relation are decoded together, column by column.
struct Group {
    Source rows;
    const RelationInfo* relation;
    i64 count, filled;
    i64* places;
    char* decoded;
};

struct EventReader {
    State& state;
    Source batch, op, relation, row;  // `row` has no schema where each relation has its own column
    i64 length;
    Group* groups;  // one for each struct and relation
    i64 structs;
    i64* column_of;   // for each relation: its struct, where each has its own
    i64* meaning_of;  // for each word of the relations' dictionary
    u32* group_of;    // for each event
    i64* place_of;    // for each event: where in its struct

    template <class T> T* take(i64 count) {
        auto* taken = reinterpret_cast<T*>(state.batch.rows.take(count * sizeof(T)));
        memset(static_cast<void*>(taken), 0, count * sizeof(T));
        return taken;
    }

    bool open() {
        i64 ops = child_named(*batch.schema, "op"), relations = child_named(*batch.schema, "relation");
        i64 rows = child_named(*batch.schema, "row");
        if (ops < 0 || relations < 0 || rows == -2 || !batch.is("+s")) return false;
        op = batch.child(ops), relation = batch.child(relations);
        if (rows >= 0) row = batch.child(rows);
        structs = rows < 0 ? batch.schema->n_children : is_union() ? row.schema->n_children : 1;
        groups = take<Group>(structs * MODULE.relation_count);
        group_of = take<u32>(length), place_of = take<i64>(length);
        column_of = take<i64>(MODULE.relation_count);
        for (u32 r = 0; r < MODULE.relation_count; ++r)
            column_of[r] = child_named(*batch.schema, MODULE.relations[r].name);
        return is_integer(op) && !op.schema->dictionary && open_relations();
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
    i64 relation_at(i64 i) const {
        i64 place = relation.shift + i, word;
        if (!relation.valid(place)) return -1;
        if (!meaning_of) return relation_named(text_at(relation, place));
        return whole_at(relation, place, word) ? meaning_of[word] : -1;
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

    // The struct of event i and the place in it; false where there is none.
    bool locate(i64 i, i64 relation_index, i64& which, Source& rows, i64& place) const {
        place = i;
        if (!row.schema) {
            which = column_of[relation_index];
            if (which >= 0) rows = batch.child(which);
            return which >= 0;
        }
        which = 0, rows = row;
        if (!is_union()) return true;
        i64 at = row.shift + i;
        which = union_child(row.buffer<signed char>(0)[at]);
        if (which < 0) return false;
        rows = row.child(which);
        if (!is_dense()) return true;
        rows.shift -= row.shift;
        place = row.buffer<i32>(1)[at];
        return true;
    }

    bool assign(i64 i) {
        i64 index = relation_at(i), which, times;
        Source rows;
        if (index < 0 || !op.valid(op.shift + i) || !whole_at(op, op.shift + i, times) || !is_copies(times))
            return false;
        if (!locate(i, index, which, rows, place_of[i])) return false;
        group_of[i] = u32(which * MODULE.relation_count + index);
        Group& group = groups[group_of[i]];
        group.rows = rows, group.relation = &MODULE.relations[index];
        ++group.count;
        return true;
    }

    bool decode(Group& group) {
        const RelationInfo& to = *group.relation;
        group.decoded = state.batch.rows.take(group.count * to.row_size);
        return fill_rows(state.texts(), group.rows, to.columns, to.width, {group.places, group.count}, group.decoded,
                         to.row_size);
    }

    // The batch's events, in its order; false where Python must look at it.
    bool read() {
        if (!open()) return false;
        for (i64 i = 0; i < length; ++i)
            if (!assign(i)) return false;
        for (i64 g = 0; g < structs * MODULE.relation_count; ++g) groups[g].places = take<i64>(groups[g].count);
        for (i64 i = 0; i < length; ++i) {
            Group& group = groups[group_of[i]];
            group.places[group.filled++] = place_of[i];
        }
        for (i64 g = 0; g < structs * MODULE.relation_count; ++g)
            if (groups[g].count && !decode(groups[g])) return false;
        for (i64 g = 0; g < structs * MODULE.relation_count; ++g) groups[g].filled = 0;
        for (i64 i = 0; i < length; ++i) push(i);
        return true;
    }

    void push(i64 i) {
        Group& group = groups[group_of[i]];
        i64 times = 0;
        whole_at(op, op.shift + i, times);
        const char* row = group.decoded + group.filled++ * group.relation->row_size;
        state.batch.events.push(Event{group.relation, times, row});
    }
};

}  // namespace viewlet
