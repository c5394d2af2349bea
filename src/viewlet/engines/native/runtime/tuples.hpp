// What changed in a result as Python tuples. A cell is the value that a user sees, or becomes it by a function of
// Python's: of DECIMAL it is the integer of its last places, of DATE its day as Python counts them, of TIMESTAMP
// microseconds since 1970.
#pragma once
#include "fill.hpp"
#include "python.hpp"

namespace viewlet {

inline constexpr i64 DAYS_TO_1970 = 719163;  // date(1970, 1, 1).toordinal()

template <class T> T value_at(const Rows::Filled& filled, u64 place, u64 each = sizeof(T)) {
    T value;
    memcpy(&value, filled.values.data + place * each, sizeof value);
    return value;
}

inline PyObject* text_at(const Rows::Filled& filled, u64 place) {
    i32 ends[2];
    memcpy(ends, filled.ends.data + place * sizeof(i32), sizeof ends);
    return PyUnicode_FromStringAndSize(filled.values.data + ends[0], ends[1] - ends[0]);
}

inline PyObject* cell_at(const ResultColumn& column, const Rows::Filled& filled, u64 place) {
    if (filled.nulls && !filled.valid.get(place, true)) return none();
    switch (column.type) {
        case Sql::BOOLEAN: return PyBool_FromLong(filled.bits.get(place, false));
        case Sql::TINYINT: return PyLong_FromLongLong(value_at<signed char>(filled, place));
        case Sql::UTINYINT: return PyLong_FromLongLong(value_at<unsigned char>(filled, place));
        case Sql::SMALLINT: return PyLong_FromLongLong(value_at<short>(filled, place));
        case Sql::USMALLINT: return PyLong_FromLongLong(value_at<unsigned short>(filled, place));
        case Sql::UINTEGER: return PyLong_FromLongLong(value_at<u32>(filled, place));
        case Sql::INTEGER: return PyLong_FromLongLong(value_at<i32>(filled, place));
        case Sql::DATE: return PyLong_FromLongLong(value_at<i32>(filled, place) + DAYS_TO_1970);
        case Sql::BIGINT:
        case Sql::TIMESTAMP: return PyLong_FromLongLong(value_at<i64>(filled, place));
        case Sql::DOUBLE: return PyFloat_FromDouble(value_at<double>(filled, place));
        case Sql::DECIMAL: return from_i128(value_at<i128>(filled, place, column.precision > 38 ? 32 : 16));
        default: return text_at(filled, place);
    }
}

inline bool is_nan_at(const ResultColumn& column, const Rows::Filled& filled, u64 place) {
    if (column.type != Sql::DOUBLE) return false;
    double value = value_at<double>(filled, place);
    return value != value;
}

// `shown` is None, the one NaN of all doubles, a function of the cell, or (a function, what it takes before the cell).
inline PyObject* shown_at(const ResultColumn& column, const Rows::Filled& filled, u64 place, PyObject* shown) {
    if (is_exactly(shown, PyFloat_Type)) {
        if (!is_nan_at(column, filled, place)) return cell_at(column, filled, place);
        Py_IncRef(shown);
        return shown;
    }
    Ref cell{cell_at(column, filled, place)};
    if (!cell || is_none(shown) || is_none(cell.object)) return cell.give();
    if (!is_exactly(shown, PyTuple_Type)) return PyObject_CallFunctionObjArgs(shown, cell.object, nullptr);
    PyObject *function = PyTuple_GetItem(shown, 0), *first = PyTuple_GetItem(shown, 1);
    return PyObject_CallFunctionObjArgs(function, first, cell.object, nullptr);
}

// (weight, row); the weight is the first column.
inline PyObject* change_at(const ResultInfo& result, const Rows& rows, u64 place, PyObject* shown) {
    Ref row{PyTuple_New(result.width - 1)};
    for (u32 c = 1; row && c < result.width; ++c) {
        PyObject* cell = shown_at(result.columns[c], rows.filled[c], place, PyTuple_GetItem(shown, c - 1));
        if (!cell) return nullptr;
        PyTuple_SetItem(row.object, c - 1, cell);
    }
    return row ? tuple_of(PyLong_FromLongLong(value_at<i64>(rows.filled[0], place)), row.give()) : nullptr;
}

// What went, then what came.
inline PyObject* changes_of(const ResultInfo& result, const Rows& rows, PyObject* shown) {
    Ref list{PyList_New(rows.length)};
    Py_ssize_t end = 0;
    auto add = [&](bool came) {
        for (i64 i = 0; list && i < rows.length; ++i) {
            if ((value_at<i64>(rows.filled[0], u64(i)) > 0) != came) continue;
            PyObject* change = change_at(result, rows, u64(i), shown);
            if (!change) return false;
            PyList_SetItem(list.object, end++, change);
        }
        return list.object != nullptr;
    };
    return add(false) && add(true) ? list.give() : nullptr;
}

}  // namespace viewlet
