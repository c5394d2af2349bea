// The module's functions that read and fill base tables and views.
#pragma once
#include "call.hpp"
#include "tuples.hpp"

namespace viewlet {

// -- base tables ------------------------------------------------------------------------------------------------------

// A canonical tuple as the bytes of a row or key; nullptr with an exception set where it is none.
inline char* canonical(State& state, const Column* columns, u32 width, u32 size, PyObject* given) {
    char* row = state.batch.rows.take(size + 1);
    return canonical_row(state.texts(), row, columns, width, given) ? row : nullptr;
}

// After a failed canonical(): what no column can hold is nowhere.
inline PyObject* not_there(PyObject* (*nothing)()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return nullptr;
    PyErr_Clear();
    return nothing();
}

// count(state, relation, canonical row)
inline PyObject* count_rows(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 3);
    const RelationInfo* of = call ? call.relation(1) : nullptr;
    if (!of) return nullptr;
    const char* row = canonical(*call.state, of->columns, of->width, of->row_size, arguments[2]);
    if (!row) return not_there([] { return PyLong_FromLongLong(0); });
    return PyLong_FromLongLong(of->count(call.state->program, row));
}

// total(state, relation): its rows, each as often as it is there
inline PyObject* total(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    const RelationInfo* of = call ? call.relation(1) : nullptr;
    if (!of) return nullptr;
    i64 rows = 0;
    of->table->each(call.state->program,
                    [&](const void*, void* values) { rows += static_cast<Times*>(values)->times; });
    return PyLong_FromLongLong(rows);
}

// load(state, relation, canonical rows, times): the base table alone, whatever keep_tables says.
inline PyObject* load(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    i64 times;
    const RelationInfo* to = call ? call.relation(1) : nullptr;
    if (!to || !call.times(3, times)) return nullptr;
    if (!Sequence::takes(arguments[2])) return PyErr_Format(PyExc_TypeError, "load takes a list or tuple of rows");
    Sequence rows{arguments[2]};
    for (Py_ssize_t i = 0, size = rows.size(); i < size; ++i) {
        PyObject* given = rows[i];
        const char* row = given ? canonical(*call.state, to->columns, to->width, to->row_size, given) : nullptr;
        if (!row) return nullptr;
        call.state->batch.events.push(Event{to, times, row});
    }
    Event* missing = change_tables(*call.state).event;
    if (missing == call.state->batch.end()) return none();
    return tuple_of(PyUnicode_FromString("missing"), PyLong_FromLongLong(missing - call.state->batch.begin()));
}

// What a walk over entries collects; the list becomes nullptr once an exception is set.
struct Collected {
    State& state;
    const Column* columns;
    u32 width;
    PyObject* list;

    void add(const void* key, PyObject* value) {
        auto* row = static_cast<const char*>(key);
        Ref pair{tuple_of(list ? row_out(state.texts(), row, columns, width) : nullptr, value)};
        if (list && (!pair || PyList_Append(list, pair.object) != 0)) {
            Py_DecRef(list);
            list = nullptr;
        }
    }
};

// table(state, relation) -> [(canonical row, how often), …]
inline PyObject* table(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    const RelationInfo* of = call ? call.relation(1) : nullptr;
    if (!of) return nullptr;
    Collected all{*call.state, of->columns, of->width, PyList_New(0)};
    of->table->each(call.state->program, [&](const void* row, void* values) {
        all.add(row, PyLong_FromLongLong(static_cast<Times*>(values)->times));
    });
    return all.list;
}

// -- views ------------------------------------------------------------------------------------------------------------

inline bool is_nothing(Kind kind, const void* value) {
    if (kind == Kind::REAL) return static_cast<const RealSum*>(value)->is_zero();
    return kind == Kind::I64 ? *static_cast<const i64*>(value) == 0 : *static_cast<const i128*>(value) == 0;
}

inline PyObject* value_out(Kind kind, const void* value) {
    if (kind == Kind::I64) return PyLong_FromLongLong(*static_cast<const i64*>(value));
    if (kind == Kind::I128) return from_i128(*static_cast<const i128*>(value));
    Real real = static_cast<const RealSum*>(value)->value();
    return tuple_of(PyFloat_FromDouble(real.hi), PyFloat_FromDouble(real.lo));
}

// find(state, view, canonical key) -> value, or None where it is 0
inline PyObject* find(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 3);
    const ViewInfo* in = call ? call.view(1) : nullptr;
    if (!in) return nullptr;
    const char* key = canonical(*call.state, in->key, in->width, in->map->key_size, arguments[2]);
    if (!key) return not_there(none);
    void* values = in->map->access(call.state->program, key, Access::FIND);
    const void* value = values ? in->member(values) : nullptr;
    return value && !is_nothing(in->kind, value) ? value_out(in->kind, value) : none();
}

// entries(state, view) -> [(canonical key, value), …]
inline PyObject* entries(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    const ViewInfo* of = call ? call.view(1) : nullptr;
    if (!of) return nullptr;
    Collected all{*call.state, of->key, of->width, PyList_New(0)};
    of->map->each(call.state->program, [&](const void* key, void* values) {
        const void* value = of->member(values);
        if (!is_nothing(of->kind, value)) all.add(key, value_out(of->kind, value));
    });
    return all.list;
}

// Some columns of a canonical key.
struct Part {
    const Column* columns;
    u32 width;
    i64 bits;  // of the columns that count
    char* cells;

    template <class F> bool all(F holds) const {
        for (u32 c = 0; c < width; ++c)
            if (bits >> c & 1 && !holds(columns[c], c)) return false;
        return true;
    }
    // False with an exception set.
    bool take(Texts& texts, PyObject* given) {
        return all([&](const Column& column, u32 c) {
            PyObject* cell = PyTuple_GetItem(given, c);
            bool taken = cell && canonical_cell(texts, cells, column, cell);
            if (cell && !taken) refuse_cell(column, cell);
            return taken;
        });
    }
    bool has(const void* key) const {
        auto* row = static_cast<const char*>(key);
        return all([&](const Column& column, u32) {
            return is_null(row, column) == is_null(cells, column) &&
                   !memcmp(row + column.offset, cells + column.offset, cell_size(column.cell));
        });
    }
};

// slice(state, view, cells, bits) -> as entries(), those that agree with the cells at the bits
inline PyObject* slice(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    const ViewInfo* of = call ? call.view(1) : nullptr;
    Part part{};
    if (!of || !call.integer(3, part.bits, 0, i64(1) << 62)) return nullptr;
    part.columns = of->key, part.width = of->width;
    part.cells = call.state->batch.rows.take(of->map->key_size + 1);
    if (!part.take(call.state->texts(), arguments[2])) return not_there([] { return PyList_New(0); });
    Collected all{*call.state, of->key, of->width, PyList_New(0)};
    of->map->each(call.state->program, [&](const void* key, void* values) {
        const void* value = of->member(values);
        if (part.has(key) && !is_nothing(of->kind, value)) all.add(key, value_out(of->kind, value));
    });
    return all.list;
}

// weigh(state, view) -> its entries that are not 0, and what whole numbers come to
inline PyObject* weigh(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    const ViewInfo* of = call ? call.view(1) : nullptr;
    if (!of) return nullptr;
    i64 entries = 0;
    i128 sum = 0;
    of->map->each(call.state->program, [&](const void*, void* values) {
        const void* value = of->member(values);
        entries += !is_nothing(of->kind, value);
        if (of->kind == Kind::I64) sum += *static_cast<const i64*>(value);
        if (of->kind == Kind::I128) sum += *static_cast<const i128*>(value);
    });
    return tuple_of(PyLong_FromLongLong(entries), from_i128(sum));
}

union Value {
    i64 count;
    i128 exact;
    double real[2];
};

inline bool value_in(Kind kind, PyObject* given, Value& value) {
    i128 whole = 0;
    if (kind == Kind::REAL && is_exactly(given, PyTuple_Type) && PyTuple_Size(given) == 2) {
        for (int i = 0; i < 2; ++i) value.real[i] = PyFloat_AsDouble(PyTuple_GetItem(given, i));
        return !PyErr_Occurred();
    }
    bool fits = kind != Kind::REAL && is_exactly(given, PyLong_Type) && to_i128(given, whole);
    if (!fits || (kind == Kind::I64 && !is_i64(whole))) {
        PyErr_SetString(PyExc_TypeError, "not a value of this view");
        return false;
    }
    kind == Kind::I64 ? void(value.count = i64(whole)) : void(value.exact = whole);
    return true;
}

inline void add_value(Faults& faults, const ViewInfo& view, void* to, const Value& value) {
    u32 number = u32(&view - MODULE.views);
    if (view.kind == Kind::REAL)
        static_cast<RealSum*>(to)->add(Real(value.real[0], value.real[1]));
    else if (view.kind == Kind::I128)
        *static_cast<i128*>(to) = add(faults, number, *static_cast<i128*>(to), value.exact);
    else
        *static_cast<i64*>(to) = narrow(faults, number, i128(*static_cast<i64*>(to)) + value.count);
}

// put(state, view, canonical key, value): adds. Base rows hold the texts of most keys: load them before any update.
inline PyObject* put(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    const ViewInfo* in = call ? call.view(1) : nullptr;
    const char* key = in ? canonical(*call.state, in->key, in->width, in->map->key_size, arguments[2]) : nullptr;
    alignas(16) Value value{};
    if (!key || !value_in(in->kind, arguments[3], value)) return nullptr;
    void* to = in->member(in->map->access(call.state->program, key, Access::MAKE));
    add_value(call.state->faults(), *in, to, value);
    if (is_nothing(in->kind, to)) in->map->access(call.state->program, key, Access::SETTLE);
    return call.state->faults().any ? fault_report(call.state->faults()) : none();
}

inline bool are_shown(State& state, const Rows& rows) {
    return !state.faults().any && !rows.uncountable && !rows.unfit;
}

// Why rows cannot be shown.
inline PyObject* unshown(State& state, const ResultInfo& result, const Rows& rows) {
    if (state.faults().any) return fault_report(state.faults());
    if (rows.uncountable)
        return PyErr_Format(
            PyExc_SystemError, "view %s has a row less than once: %s", result.name,
            MODULE.undo ? "a row was deleted that never came, and is not stored" : "its program is wrong");
    return tuple_of(PyUnicode_FromString("unfit"), PyLong_FromLongLong(rows.unfit_column), from_i128(rows.unfit_value));
}

// rows(state, result, how many at most) -> (schema, array), or ("unfit", column, value) or a report as of an update
inline PyObject* rows(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 3);
    i64 index, most;
    if (!call || !call.integer(1, index, 0, MODULE.result_count) || !call.integer(2, most, 0, Rows::ALL))
        return nullptr;
    const ResultInfo& result = MODULE.result(u32(index));
    Rows rows(result.columns, result.width, call.state->texts());
    rows.most = most;
    bool was_noting = MODULE.is_noting(call.state->program);
    MODULE.read(call.state->program, u32(index), rows);
    if (was_noting) forget_texts(*call.state);  // a read may be the end of what is noted
    return are_shown(*call.state, rows) ? arrow_of(result, rows) : unshown(*call.state, result, rows);
}

// read_one(state, result, view of its keys, canonical key) -> as rows() of that key; None where only rows() knows it
inline PyObject* read_one(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    i64 index;
    const ViewInfo* in = call && call.integer(1, index, 0, MODULE.result_count) ? call.view(2) : nullptr;
    const char* key = in ? canonical(*call.state, in->key, in->width, in->map->key_size, arguments[3]) : nullptr;
    if (!key) return not_there(none);
    const ResultInfo& result = MODULE.result(u32(index));
    Rows rows(result.columns, result.width, call.state->texts());
    if (!MODULE.read_one(call.state->program, u32(index), key, rows)) return none();
    return are_shown(*call.state, rows) ? arrow_of(result, rows) : unshown(*call.state, result, rows);
}

// -- what changed -----------------------------------------------------------------------------------------------------

inline PyObject* look(Arguments arguments, Py_ssize_t count, Watch what) {
    Call call(arguments, count, 2);
    i64 index;
    if (!call || !call.integer(1, index, 0, MODULE.watched_count)) return nullptr;
    const ResultInfo& watched = MODULE.watched[index];
    Rows rows(watched.columns, watched.width, call.state->texts());
    MODULE.watch(call.state->program, u32(index), what, rows);
    if (!are_shown(*call.state, rows)) return unshown(*call.state, watched, rows);
    if (what == Watch::CHANGES) {
        MODULE.watch(call.state->program, u32(index), Watch::FORGET, rows);
        forget_texts(*call.state);
    }
    return arrow_of(watched, rows);
}

// changes(state, watched) -> (schema, array) of what changed since the last call, or a report as of rows(): then what
// is to be told stays
inline PyObject* changes(PyObject*, Arguments arguments, Py_ssize_t count) {
    return look(arguments, count, Watch::CHANGES);
}

// Nothing of what changed until now is to be told.
inline void forget_changes(State& state) {
    Rows none_of_it(nullptr, 0, state.texts());
    for (u32 i = 0; i < MODULE.watched_count; ++i) MODULE.watch(state.program, i, Watch::FORGET, none_of_it);
    forget_texts(state);
}

inline const Rows& changed(State& state, u32 watched) {
    Rows& rows = answer(state, watched);
    MODULE.watch(state.program, watched, Watch::CHANGES, rows);
    return rows;
}

// told(state, ((watched, name, shown), …)): the same of several, as [(name, [(weight, row), …]), …] of those that
// changed; cells as a user sees them, see shown_at(). For a few rows that is several times as fast as Arrow. Or (place,
// report) of one that cannot be shown: then what is to be told stays, of all.
inline PyObject* told(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 2);
    if (!call) return nullptr;
    State& state = *call.state;
    auto part = [&](Py_ssize_t i, int which) { return PyTuple_GetItem(PyTuple_GetItem(arguments[1], i), which); };
    Ref all{PyList_New(0)};
    for (Py_ssize_t i = 0, size = PyTuple_Size(arguments[1]); i < size; ++i) {
        u32 number = u32(PyLong_AsLongLong(part(i, 0)));
        const ResultInfo& watched = MODULE.watched[number];
        const Rows& rows = changed(state, number);
        if (!are_shown(state, rows)) return tuple_of(PyLong_FromLongLong(i), unshown(state, watched, rows));
        if (!rows.length) continue;
        Py_IncRef(part(i, 1));
        Ref change{tuple_of(part(i, 1), changes_of(watched, rows, part(i, 2)))};
        if (!change || PyList_Append(all.object, change.object)) return nullptr;
    }
    Rows none_of_it(nullptr, 0, state.texts());
    for (Py_ssize_t i = 0, size = PyTuple_Size(arguments[1]); i < size; ++i)
        MODULE.watch(state.program, u32(PyLong_AsLongLong(part(i, 0))), Watch::FORGET, none_of_it);
    forget_texts(state);
    return all.give();
}

// forget(state): nothing of what changed until now is to be told
inline PyObject* forget(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 1);
    if (!call) return nullptr;
    forget_changes(*call.state);
    return none();
}

// standing(state, watched): what all changes told so far come to, with weights that are not negative
inline PyObject* standing(PyObject*, Arguments arguments, Py_ssize_t count) {
    return look(arguments, count, Watch::STANDING);
}

}  // namespace viewlet
