// The module's functions that change what a program holds by events.
#pragma once
#include "call.hpp"
#include "import_events.hpp"

namespace viewlet {

inline bool convert_row(State& state, const RelationInfo& relation, PyObject* given, i64 number, char* row) {
    Py_IncRef(given);  // a list that holds it may lose it to foreign code
    Ref held{given}, index{PyLong_FromLongLong(&relation - MODULE.relations)}, place{PyLong_FromLongLong(number)};
    Ref canonical{PyObject_CallFunctionObjArgs(state.convert, index.object, given, place.object, nullptr)};
    return canonical && canonical_row(state.texts(), row, relation.columns, relation.width, canonical.object);
}

inline bool decode_row(State& state, const RelationInfo& relation, PyObject* given, i64 number, char* row) {
    return take_row(state.library, state.texts(), row, relation.columns, relation.width, given) ||
           convert_row(state, relation, given, number, row);
}

// False with an exception set where the row cannot be taken.
inline bool add_event(State& state, const RelationInfo& relation, i64 times, PyObject* given, i64 number) {
    char* row = state.batch.rows.take(relation.row_size);
    if (!given || !decode_row(state, relation, given, number, row)) return false;
    state.batch.events.push(Event{&relation, times, row});
    return true;
}

inline PyObject* static_report(i64 number) {
    return tuple_of(PyUnicode_FromString("static"), PyLong_FromLongLong(number));
}

// one(state, relation, times, row)
inline PyObject* one(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    i64 times;
    const RelationInfo* relation = call ? call.relation(1) : nullptr;
    if (!relation || !call.times(2, times)) return nullptr;
    if (!relation->fire) return static_report(0);
    return add_event(*call.state, *relation, times, arguments[3], 0) ? run(*call.state) : nullptr;
}

// Of each row of a list or tuple. False with an exception set where one cannot be taken.
inline bool add_events(State& state, const RelationInfo& relation, i64 times, PyObject* given) {
    if (!Sequence::takes(given)) return PyErr_Format(PyExc_TypeError, "many takes a list or tuple of rows"), false;
    Sequence rows{given};
    for (Py_ssize_t i = 0, size = rows.size(); i < size; ++i)
        if (!add_event(state, relation, times, rows[i], i)) return false;
    return true;
}

// many(state, relation, times, rows)
inline PyObject* many(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    i64 times;
    const RelationInfo* relation = call ? call.relation(1) : nullptr;
    if (!relation || !call.times(2, times)) return nullptr;
    if (!relation->fire) return static_report(0);
    return add_events(*call.state, *relation, times, arguments[3]) ? run(*call.state) : nullptr;
}

// "+", "-" or an int; false where it is something else.
inline bool event_times(PyObject* op, i64& times) {
    if (take_int(op, times)) return is_copies(times);
    Py_ssize_t size;
    const char* sign = is_exactly(op, PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(op, &size) : nullptr;
    if (!sign || size != 1 || (*sign != '+' && *sign != '-')) return false;
    times = *sign == '+' ? 1 : -1;
    return true;
}

// By number or by name; nullptr where there is none.
inline const RelationInfo* event_relation(PyObject* given) {
    i64 index;
    if (take_int(given, index)) return 0 <= index && index < MODULE.relation_count ? &MODULE.relations[index] : nullptr;
    Py_ssize_t size;
    const char* name = is_exactly(given, PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(given, &size) : nullptr;
    for (u32 i = 0; name && i < MODULE.relation_count; ++i)
        if (EventReader::is_named({name, u32(size)}, MODULE.relations[i].name)) return &MODULE.relations[i];
    return nullptr;
}

// events(state, [(op, relation, row), …]); ("event", number) names one that is none of these.
inline PyObject* events(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    if (!call) return nullptr;
    if (!Sequence::takes(arguments[1])) return PyErr_Format(PyExc_TypeError, "events takes a list or tuple");
    Sequence all{arguments[1]};
    for (Py_ssize_t i = 0, size = all.size(); i < size; ++i) {
        PyObject* given = all[i];
        if (!given) return nullptr;
        i64 times = 0;
        const RelationInfo* relation = nullptr;
        if (Sequence::takes(given) && Sequence{given}.size() == 3 && event_times(Sequence{given}[0], times))
            relation = event_relation(Sequence{given}[1]);
        PyErr_Clear();
        if (!relation) return tuple_of(PyUnicode_FromString("event"), PyLong_FromLongLong(i));
        if (!relation->fire) return static_report(i);
        if (!add_event(*call.state, *relation, times, Sequence{given}[2], i)) return nullptr;
    }
    return run(*call.state);
}

// updates(state): how many were taken. Who was interrupted behind one cannot know by other means whether it was.
inline PyObject* updates(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 1);
    return call ? PyLong_FromUnsignedLongLong(call.state->updates) : nullptr;
}

// came(state, relation, also): whether a row of a stream that stores none was ever taken, or, `also`, is known of before.
inline PyObject* came(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 3);
    const RelationInfo* relation = call ? call.relation(1) : nullptr;
    if (!relation) return nullptr;
    bool& known = call.state->came[relation - MODULE.relations];
    known |= arguments[2] == &_Py_TrueStruct;
    return PyBool_FromLong(known);
}

// divide(state, cell, ways): from now on batches of Arrow are of several cells, and this one takes its own rows of them.
// Of each relation: reach, column, share, stride, column, share, stride, …
inline PyObject* divide(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 3);
    i64 cell;
    if (!call || !call.integer(1, cell, 0, 64)) return nullptr;
    Division*& division = call.state->division;
    if (!division) {
        division = static_cast<Division*>(malloc(sizeof(Division)));
        division->ways = static_cast<RelationWay*>(malloc((MODULE.relation_count + 1) * sizeof(RelationWay)));
    }
    division->cell = u64(cell);
    for (u32 r = 0; r < MODULE.relation_count; ++r) {
        Sequence numbers{Sequence{arguments[2]}[r]};
        auto number = [&](Py_ssize_t i) { return PyLong_AsUnsignedLongLongMask(numbers[i]); };
        RelationWay& way = division->ways[r];
        way.reach = number(0);
        way.turns = u32(numbers.size() / 3);
        for (u32 t = 0; t < way.turns; ++t)
            way.turn[t] = {u32(number(3 * t + 1)), number(3 * t + 2), number(3 * t + 3)};
    }
    return none();
}

inline PyObject* slow() { return PyUnicode_FromString("slow"); }

// Events that `decode` adds to the batch; "slow" where it cannot. Other threads run meanwhile.
template <class Decode> PyObject* take_arrow(State& state, i64 length, Decode decode) {
    Outcome outcome;
    bool decoded;
    {
        WithoutPython released(length);
        decoded = decode();
        if (decoded) outcome = work(state);
        forget_texts(state);
    }
    return decoded ? report_of(state, outcome) : slow();
}

// The rows that are this cell's; false where that cannot be told.
inline bool own_rows(State& state, const RelationInfo& relation, const Source& source, Picks& picks) {
    Owner owner;
    if (!owner.open(*state.division, u32(&relation - MODULE.relations), relation, source)) return false;
    auto* mine = reinterpret_cast<i64*>(state.batch.rows.take(picks.count * sizeof(i64)));
    i64 count = 0;
    for (i64 i = 0; i < picks.count; ++i) {
        mine[count] = i;
        count += owner.owns(*state.division, i);
    }
    state.batch.numbers = mine;
    picks = {mine, count};
    return true;
}

inline bool add_rows(State& state, const RelationInfo& relation, i64 times, const Source& source) {
    Picks picks{nullptr, source.array->length};
    if (state.division && !own_rows(state, relation, source, picks)) return false;
    i64 length = picks.count;
    char* rows = state.batch.rows.take(length * relation.row_size);
    if (!fill_rows(state.texts(), source, relation, picks, state.batch.rows, rows)) return false;
    auto* events = static_cast<Event*>(state.batch.events.more(length * sizeof(Event)));
    for (i64 i = 0; i < length; ++i) events[i] = {&relation, times, rows + i * relation.row_size};
    return true;
}

// arrow_rows(state, relation, times, schema, array); "slow" where the rows must come through Python.
inline PyObject* arrow_rows(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 5);
    i64 times;
    const RelationInfo* relation = call ? call.relation(1) : nullptr;
    if (!relation || !call.times(2, times)) return nullptr;
    auto* schema = call.pointer<ArrowSchema>(3);
    auto* array = schema ? call.pointer<ArrowArray>(4) : nullptr;
    if (!array) return nullptr;
    if (!relation->fire) return slow();
    return take_arrow(*call.state, array->length,
                      [&] { return add_rows(*call.state, *relation, times, {schema, array, array->offset}); });
}

// arrow_events(state, schema, array)
inline PyObject* arrow_events(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 3);
    if (!call) return nullptr;
    auto* schema = call.pointer<ArrowSchema>(1);
    auto* array = schema ? call.pointer<ArrowArray>(2) : nullptr;
    if (!array) return nullptr;
    EventReader reader{*call.state, {schema, array, array->offset}, array->length};
    return take_arrow(*call.state, array->length, [&] { return reader.read(); });
}

}  // namespace viewlet
