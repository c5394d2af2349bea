// The rows of a result as Python tuples of cells: of DECIMAL the integer of its last places, of DATE and TIMESTAMP days
// and microseconds since 1970.
#pragma once
#include "fill.hpp"
#include "python.hpp"

namespace viewlet {

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
        case Sql::INTEGER:
        case Sql::DATE: return PyLong_FromLongLong(value_at<i32>(filled, place));
        case Sql::BIGINT:
        case Sql::TIMESTAMP: return PyLong_FromLongLong(value_at<i64>(filled, place));
        case Sql::DOUBLE: return PyFloat_FromDouble(value_at<double>(filled, place));
        case Sql::DECIMAL: return from_i128(value_at<i128>(filled, place, column.precision > 38 ? 32 : 16));
        default: return text_at(filled, place);
    }
}

inline PyObject* tuples_of(const ResultInfo& result, Rows& rows) {
    Ref list{PyList_New(0)};
    for (i64 i = 0; list && i < rows.length; ++i) {
        Ref row{PyTuple_New(result.width)};
        for (u32 c = 0; row && c < result.width; ++c)
            PyTuple_SetItem(row.object, c, cell_at(result.columns[c], rows.filled[c], u64(i)));
        if (!row || PyErr_Occurred() || PyList_Append(list.object, row.object)) return nullptr;
    }
    return list.give();
}

}  // namespace viewlet
