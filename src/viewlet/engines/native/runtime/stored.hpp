// The rows of base tables, and those of an update, as Arrow: what a durable database writes down.
#pragma once
#include "updates.hpp"

namespace viewlet {

// The columns of a relation as Arrow shows them, behind one that says how often each row is there.
struct Shown {
    ResultColumn* columns;
    u32 width;
    bool whole{true};  // every column has a type that Arrow knows

    explicit Shown(const RelationInfo& of)
        : columns(static_cast<ResultColumn*>(calloc(of.width + 1, sizeof(ResultColumn)))), width(of.width + 1) {
        columns[0] = {"", Sql::BIGINT, 0, 0, false};
        for (u32 c = 0; c < of.width; ++c) {
            const Column& from = of.columns[c];
            auto type = from.type == Sql::REAL ? Sql::DOUBLE : from.type;
            columns[c + 1] = {from.name, type, from.precision, from.scale, from.nullable};
            whole = whole && from.type != Sql::ANY;
        }
    }
    Shown(const Shown&) = delete;
    ~Shown() { free(columns); }
};

inline void put_cell(Rows& out, u32 place, const char* row, const Column& column) {
    if (is_null(row, column)) return out.null(place);
    switch (column.cell) {
        case Cell::I64: return out.put(place, fetch<i64>(row, column));
        case Cell::I128: return out.put(place, fetch<i128>(row, column));
        case Cell::F64: return out.put(place, fetch<double>(row, column));
        case Cell::BOOL: return out.put(place, fetch<bool>(row, column));
        case Cell::TEXT: return out.put(place, fetch<Text>(row, column));
    }
}

inline void put_row(Rows& out, const RelationInfo& of, const char* row, i64 times) {
    out.put(0, times);
    for (u32 c = 0; c < of.width; ++c) put_cell(out, c + 1, row, of.columns[c]);
    out.end();
}

// Cells of eight bytes that Arrow holds as they are.
inline bool is_copied(const Column& column) {
    return (column.cell == Cell::I64 && column.type == Sql::BIGINT) ||
           (column.cell == Cell::F64 && column.type == Sql::DOUBLE);
}

inline void put_copies(Rows& out, u32 place, const Column& column, const Batch& batch) {
    auto& to = out.filled[place];
    auto* cells = static_cast<char*>(to.values.more(batch.size() * sizeof(i64)));
    u64 i = 0;
    for (const Event& event : batch) {
        memcpy(cells + i * sizeof(i64), event.row + column.offset, sizeof(i64));
        if (is_null(event.row, column)) to.valid.set(i, false, char(0xff)), ++to.nulls;
        ++i;
    }
}

// The first columns of a batch, column by column: that is several times as fast as row by row.
inline void put_batch(Rows& out, const RelationInfo& of, const Batch& batch) {
    for (u32 c = 0; c < out.width; ++c) {
        if (is_copied(of.columns[c])) {
            put_copies(out, c, of.columns[c], batch);
            continue;
        }
        out.length = 0;
        for (const Event& event : batch) put_cell(out, c, event.row, of.columns[c]), ++out.length;
    }
    out.length = i64(batch.size());
}

// (schema, array), or None where a value or a type is beyond Arrow.
inline PyObject* shown_rows(const RelationInfo& of, const Shown& shown, Rows& rows) {
    return shown.whole && !rows.unfit ? arrow_of({of.name, rows.columns, rows.width}, rows) : none();
}

// stored(state, relation, place, most) -> ((schema, array) of so many rows behind a place, the last one's place), both
// None where there are no more
inline PyObject* stored(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 4);
    i64 place, most;
    const RelationInfo* of = call ? call.relation(1) : nullptr;
    if (!of || !call.integer(2, place, 0, i64(1) << 32) || !call.integer(3, most, 1, i64(1) << 32)) return nullptr;
    const MapShape& table = *of->table;
    if (table.is_single()) return tuple_of(none(), none());
    Shown shown(*of);
    Rows rows(shown.columns, shown.width, call.state->texts());
    u32 last = table.some(call.state->program, u32(place), most, [&](const void* row, const void* values) {
        put_row(rows, *of, static_cast<const char*>(row), static_cast<const Times*>(values)->times);
    });
    return tuple_of(last ? shown_rows(*of, shown, rows) : none(), last ? PyLong_FromLongLong(last) : none());
}

// many_shown(state, relation, times, rows, columns) -> (what many() returns, (schema, array) of the first columns of the
// rows, or None)
inline PyObject* many_shown(PyObject*, Arguments arguments, Py_ssize_t count) {
    Call call(arguments, count, 5);
    i64 times, width;
    const RelationInfo* relation = call ? call.relation(1) : nullptr;
    if (!relation || !call.times(2, times) || !call.integer(4, width, 0, relation->width + 1)) return nullptr;
    if (!relation->fire) return tuple_of(static_report(0), none());
    if (!add_events(*call.state, *relation, times, arguments[3])) return nullptr;
    Ref report{run_batch(*call.state)};
    if (!report) return nullptr;
    Shown shown(*relation);
    Rows rows(shown.columns + 1, u32(width), call.state->texts());
    put_batch(rows, *relation, call.state->batch);
    PyObject* arrow = shown_rows(*relation, shown, rows);
    forget_texts(*call.state);
    return tuple_of(report.give(), arrow);
}

}  // namespace viewlet
