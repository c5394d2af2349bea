// Rows that come in place of those with the same primary keys, and rows by their keys.
#pragma once
#include "contents.hpp"
#include "stored.hpp"

namespace viewlet {

// Of rows with one primary key the last one stays: the others come no times.
inline void keep_last(Batch& batch, const RelationInfo& of) {
    u64 room = 16;
    while (room < 2 * batch.size()) room *= 2;
    auto* places = static_cast<u32*>(calloc(room, sizeof(u32)));  // the number of an event, from 1
    if (!places) fail("out of memory for a batch");
    Event* events = batch.begin();
    for (u64 i = batch.size(); i-- > 0;) {
        u64 at = of.table->hash(1, events[i].row) & (room - 1);
        while (places[at] && !of.keys->same(0, events[places[at] - 1].row, events[i].row)) at = (at + 1) & (room - 1);
        if (places[at])
            events[i].times = 0;
        else
            places[at] = u32(i + 1);
    }
    free(places);
}

// The row with its primary key goes for each that comes, and goes first; a row that is there already does not come.
// How many go.
inline u64 replace_holders(State& state, const RelationInfo& of) {
    Batch& batch = state.batch;
    if (batch.size() > 1) keep_last(batch, of);
    Pile given = batch.events;
    batch.events = {};
    auto* events = reinterpret_cast<Event*>(given.data);
    u64 count = given.size / sizeof(Event);
    auto* numbers = reinterpret_cast<i64*>(batch.rows.take(2 * count * sizeof(i64)));
    auto push = [&](const Event& event, u64 number) {
        numbers[batch.size()] = i64(number);
        batch.events.push(event);
    };
    for (u64 i = 0; i < count; ++i) {
        if (events[i].times && of.count(state.program, events[i].row)) events[i].times = 0;
        const void* holder = events[i].times ? of.keys->holder(state.program, 0, events[i].row) : nullptr;
        if (!holder) continue;
        char* row = batch.rows.take(of.row_size);
        memcpy(row, holder, of.row_size);  // the table gives its place away
        push(Event{&of, -1, row}, i);
    }
    u64 go = batch.size();
    for (u64 i = 0; i < count; ++i)
        if (events[i].times) push(events[i], i);
    batch.numbers = numbers;
    given.free_all();
    return go;
}

// (schema, array) of the columns that users give, of some events; None where Arrow cannot hold them.
inline PyObject* shown_events(State& state, const RelationInfo& of, u32 width, const Event* first, const Event* last) {
    Shown shown(of);
    Rows rows(shown.columns + 1, width, state.texts());
    for (; shown.whole && first != last; ++first) {
        for (u32 c = 0; c < width; ++c) put_cell(rows, c, first->row, of.columns[c]);
        rows.end();
    }
    return shown_rows(of, shown, rows);
}

// upsert(state, relation, rows or (schema, array), columns) -> (report, what went, what came), both None where no
// columns are asked for; "slow" where Python must do it.
inline PyObject* upsert(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 5);
    i64 width;
    const RelationInfo* of = call ? call.relation(1) : nullptr;
    if (!of || !call.integer(4, width, 0, of->width + 1)) return nullptr;
    State& state = *call.state;
    if (is_none(arguments[3])) {
        if (!add_events(state, *of, 1, arguments[2])) return nullptr;
    } else {
        auto* schema = call.pointer<ArrowSchema>(2);
        auto* array = schema ? call.pointer<ArrowArray>(3) : nullptr;
        if (!array) return nullptr;
        if (!add_rows(state, *of, 1, {schema, array, array->offset})) return slow();
    }
    u64 go = replace_holders(state, *of);
    const Event *first = state.batch.begin(), *middle = first + go, *last = state.batch.end();
    Ref went{width ? shown_events(state, *of, u32(width), first, middle) : none()};
    Ref came{width ? shown_events(state, *of, u32(width), middle, last) : none()};
    if (!went || !came) return nullptr;
    if (width && (is_none(went.object) || is_none(came.object))) return slow();
    Ref report{run(state)};
    return report ? tuple_of(report.give(), went.give(), came.give()) : nullptr;
}

// check_keys(state, on): off, rows come in any order; who turns it on again knows that they fit together.
inline PyObject* check_keys(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    for (u32 r = 0; call && r < MODULE.relation_count; ++r)
        if (const KeysInfo* keys = MODULE.relations[r].keys)
            keys->check(call.state->program, arguments[1] == &_Py_TrueStruct);
    return call ? none() : nullptr;
}

// holder(state, relation, key, cells) -> the row that is there with this value of a key, or None. The cells that the key
// does not have are None.
inline PyObject* holder(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    i64 key;
    const RelationInfo* of = call ? call.relation(1) : nullptr;
    if (!of || !call.integer(2, key, 0, of->keys ? of->keys->count : 0)) return nullptr;
    char* row = call.state->batch.rows.take(of->row_size);
    memset(row, 0, of->row_size);
    for (u32 c = 0; c < of->width; ++c) {
        PyObject* cell = PyTuple_GetItem(arguments[3], c);
        if (!cell) return nullptr;
        if (is_none(cell) || canonical_cell(call.state->texts(), row, of->columns[c], cell)) continue;
        refuse_cell(of->columns[c], cell);
        return not_there(none);
    }
    const void* found = of->keys->holder(call.state->program, u32(key), row);
    return found ? row_out(call.state->texts(), static_cast<const char*>(found), of->columns, of->width) : none();
}

}  // namespace viewlet
