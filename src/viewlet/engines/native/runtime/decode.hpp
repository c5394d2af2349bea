// Python values into the cells of a row, and cells back into Python values.
#pragma once
#include "python.hpp"
#include "real.hpp"
#include "texts.hpp"
#include "types.hpp"

namespace viewlet {

// What the fast way needs of Python's library; looked up once.
struct Library {
    PyObject *date{}, *datetime{}, *decimal{};
    PyObject *toordinal{}, *tzinfo{}, *hour{}, *minute{}, *second{}, *microsecond{};

    bool open() {
        Ref dates{PyImport_ImportModule("datetime")}, decimals{PyImport_ImportModule("decimal")};
        if (!dates || !decimals) return false;
        date = PyObject_GetAttrString(dates.object, "date");
        datetime = PyObject_GetAttrString(dates.object, "datetime");
        decimal = PyObject_GetAttrString(decimals.object, "Decimal");
        toordinal = PyUnicode_InternFromString("toordinal"), tzinfo = PyUnicode_InternFromString("tzinfo");
        hour = PyUnicode_InternFromString("hour"), minute = PyUnicode_InternFromString("minute");
        second = PyUnicode_InternFromString("second"), microsecond = PyUnicode_InternFromString("microsecond");
        return !PyErr_Occurred();
    }
    void close() {
        PyObject* all[] = {date, datetime, decimal, toordinal, tzinfo, hour, minute, second, microsecond};
        for (PyObject* held : all)
            if (held) Py_DecRef(held);
    }
};

// -- cells ------------------------------------------------------------------------------------------------------------

static_assert(offsetof(Opt<i128>, null) == sizeof(i128) && offsetof(Opt<bool>, null) == sizeof(bool));

template <class T> void store(char* row, const Column& column, T value) {
    memcpy(row + column.offset, &value, sizeof value);
    if (column.nullable) row[column.offset + sizeof value] = false;  // Opt<T>::null follows the value
}

inline void store_whole(char* row, const Column& column, i128 value) {
    column.cell == Cell::I64 ? store(row, column, i64(value)) : store(row, column, value);
}

// Whether the update that this thread decodes has an infinity or NaN in it.
inline thread_local bool met_wild = false;
VIEWLET_COLD inline void note_wild() { met_wild = true; }  // away from loops, which would ask for the thread's memory
VIEWLET_INLINE void store_double(char* row, const Column& column, double value) {
    if (unlikely(!is_finite(value))) note_wild();
    store(row, column, bits(value));
}

inline u32 cell_size(Cell cell) {
    switch (cell) {
        case Cell::I128: return sizeof(i128);
        case Cell::TEXT: return sizeof(Text);
        case Cell::BOOL: return sizeof(bool);
        default: return 8;
    }
}

inline bool store_null(char* row, const Column& column) {
    if (!column.nullable) return false;
    u32 size = cell_size(column.cell);
    memset(row + column.offset, 0, size);
    row[column.offset + size] = true;
    return true;
}

template <class T> T fetch(const char* row, const Column& column) {
    T value;
    memcpy(&value, row + column.offset, sizeof value);
    return value;
}
inline bool is_null(const char* row, const Column& column) {
    return column.nullable && row[column.offset + cell_size(column.cell)];
}

// -- the fast way in: false means "ask Python", which knows what to take, how, and what to say ----------------------

inline bool take_int(PyObject* object, i64& value) {
    int overflow = 1;
    if (is_exactly(object, PyLong_Type)) value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow;
}

inline bool take_double(char* row, const Column& column, PyObject* object) {
    i64 whole;
    if (is_exactly(object, PyFloat_Type))
        store_double(row, column, PyFloat_AsDouble(object));
    else if (take_int(object, whole) && -(1ll << 53) <= whole && whole <= 1ll << 53)
        store_double(row, column, double(whole));
    else
        return false;
    return true;
}

// The nearest REAL; a number beyond them all is for Python to refuse.
inline bool take_single(char* row, const Column& column, PyObject* object) {
    if (!is_exactly(object, PyFloat_Type)) return false;
    double given = PyFloat_AsDouble(object), nearest = float(given);
    if (is_finite(given) && !is_finite(nearest)) return false;
    store_double(row, column, nearest);
    return true;
}

inline bool take_scaled(char* row, const Column& column, i128 value, int scale) {
    for (; scale > column.scale; --scale, value /= 10)
        if (value % 10 != 0) return false;
    if (scale < column.scale && !has_digits(value, column.precision - (column.scale - scale))) return false;
    if (scale < column.scale) value *= power10(u32(column.scale - scale));
    if (!has_digits(value, column.precision)) return false;
    store_whole(row, column, value);
    return true;
}

// [-]digits[.digits], the str() of most Decimals; an exponent, NaN or too many digits is for Python.
inline bool take_numeral(char* row, const Column& column, const char* text, u64 size) {
    i128 value = 0;
    int scale = 0;
    bool negative = size && *text == '-', fraction = false, digits = false;
    if (size - negative > 37) return false;
    for (u64 i = negative; i < size; ++i) {
        if (text[i] == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (text[i] - '0');
        scale += fraction, digits = true;
    }
    return digits && take_scaled(row, column, negative ? -value : value, scale);
}

// The shortest decimal that reads as x. No two decimals of up to 15 digits read as one double, so such a one is it; the
// quotient of two whole numbers is what it reads as, rounded once. x·10^s is less than a half away from its digits.
inline bool take_real(char* row, const Column& column, double x) {
    constexpr int exact_powers = 22;
    constexpr double fifteen_digits = 1e15;
    if (column.scale > exact_powers) return false;
    double unit = double(power10(u32(column.scale))), scaled = x * unit;
    if (!(-fifteen_digits < scaled && scaled < fifteen_digits)) return false;
    i64 digits = i64(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    return double(digits) / unit == x && take_scaled(row, column, digits, column.scale);
}

inline bool take_numeral_of(char* row, const Column& column, PyObject* text) {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(text, &size);
    return data && take_numeral(row, column, data, size);
}

inline bool take_decimal(const Library& library, char* row, const Column& column, PyObject* object) {
    i64 whole;
    if (take_int(object, whole)) return take_scaled(row, column, whole, 0);
    if (is_exactly(object, PyFloat_Type)) return take_real(row, column, PyFloat_AsDouble(object));
    if (is_exactly(object, PyUnicode_Type)) return take_numeral_of(row, column, object);
    if (!is_exactly(object, *library.decimal)) return false;
    Ref text{PyObject_Str(object)};
    return text && take_numeral_of(row, column, text.object);
}

inline i64 attribute(PyObject* object, PyObject* name) {
    Ref value{PyObject_GetAttr(object, name)};
    return value ? PyLong_AsLongLong(value.object) : 0;
}

inline i64 days_of(const Library& library, PyObject* date) {
    constexpr i64 epoch = 719163;  // date(1970, 1, 1).toordinal()
    Ref ordinal{PyObject_CallMethodObjArgs(date, library.toordinal, nullptr)};
    return ordinal ? PyLong_AsLongLong(ordinal.object) - epoch : 0;
}

inline bool take_timestamp(const Library& library, char* row, const Column& column, PyObject* object) {
    if (!is_exactly(object, *library.datetime)) return false;
    Ref zone{PyObject_GetAttr(object, library.tzinfo)};
    if (!zone || !is_none(zone.object)) return false;
    i64 hours = days_of(library, object) * 24 + attribute(object, library.hour);
    i64 seconds = (hours * 60 + attribute(object, library.minute)) * 60 + attribute(object, library.second);
    store(row, column, seconds * 1000000 + attribute(object, library.microsecond));
    return true;
}

inline bool take_text(Texts& texts, char* row, const Column& column, PyObject* object) {
    Py_ssize_t size;
    if (!is_exactly(object, PyUnicode_Type)) return false;
    const char* data = PyUnicode_AsUTF8AndSize(object, &size);
    if (data) store(row, column, texts.intern(data, size));
    return data;
}

// A cell of an ordinary Python type. May leave an exception behind, which is of no interest: Python will say it better.
inline bool take_cell(const Library& library, Texts& texts, char* row, const Column& column, PyObject* object) {
    i64 whole;
    if (is_none(object)) return store_null(row, column);
    switch (column.type) {
        case Sql::DOUBLE: return take_double(row, column, object);
        case Sql::REAL: return take_single(row, column, object);
        case Sql::VARCHAR: return take_text(texts, row, column, object);
        case Sql::DECIMAL: return take_decimal(library, row, column, object);
        case Sql::TIMESTAMP: return take_timestamp(library, row, column, object);
        case Sql::BOOLEAN:
            if (is_bool(object)) store(row, column, object == &_Py_TrueStruct);
            return is_bool(object);
        case Sql::DATE:
            if (!is_exactly(object, *library.date)) return false;
            store(row, column, days_of(library, object));
            return true;
        case Sql::TINYINT:
        case Sql::SMALLINT:
        case Sql::UTINYINT:
        case Sql::USMALLINT:
        case Sql::UINTEGER:
        case Sql::INTEGER:
        case Sql::BIGINT:
            if (!take_int(object, whole) || (column.type != Sql::BIGINT && !span_of(column.type).has(whole)))
                return false;
            store(row, column, whole);
            return true;
        default: return false;
    }
}

inline bool take_row(const Library& library, Texts& texts, char* row, const Column* columns, u32 width,
                     PyObject* given) {
    if (!Sequence::takes(given)) return false;
    Sequence cells{given};
    if (cells.size() != Py_ssize_t(width)) return false;
    for (u32 c = 0; c < width; ++c)
        if (!take_cell(library, texts, row, columns[c], cells[c])) {
            PyErr_Clear();
            return false;
        }
    return true;
}

// -- canonical tuples: int (scaled, days, microseconds), float, str, bool, None ------------------------------------

inline bool canonical_cell(Texts& texts, char* row, const Column& column, PyObject* object) {
    i128 whole;
    if (is_none(object)) return store_null(row, column);
    switch (column.cell) {
        case Cell::I64:
        case Cell::I128:
            if (!is_exactly(object, PyLong_Type) || !to_i128(object, whole)) return false;
            if (column.cell == Cell::I64 && !is_i64(whole)) return false;
            store_whole(row, column, whole);
            return true;
        case Cell::F64:
            if (!is_exactly(object, PyFloat_Type)) return false;
            store_double(row, column, PyFloat_AsDouble(object));
            return true;
        case Cell::TEXT: return take_text(texts, row, column, object);
        case Cell::BOOL:
            if (is_bool(object)) store(row, column, object == &_Py_TrueStruct);
            return is_bool(object);
    }
    return false;
}

// A cell of the right kind with a value that the column cannot hold: OverflowError, so that a probe may take it for
// what is not there. All else is an error of the caller, not of the user.
inline void refuse_cell(const Column& column, PyObject* object) {
    PyErr_Clear();
    bool whole = column.cell == Cell::I64 || column.cell == Cell::I128;
    bool right = is_none(object) || (whole && is_exactly(object, PyLong_Type)) ||
                 (column.cell == Cell::TEXT && is_exactly(object, PyUnicode_Type));
    PyErr_Format(right ? PyExc_OverflowError : PyExc_TypeError, "column %s cannot hold this cell", column.name);
}

// False with an exception set where the tuple is not canonical.
inline bool canonical_row(Texts& texts, char* row, const Column* columns, u32 width, PyObject* given) {
    if (!is_exactly(given, PyTuple_Type) || PyTuple_Size(given) != Py_ssize_t(width)) {
        PyErr_Format(PyExc_TypeError, "a canonical row is a tuple of %d cells", int(width));
        return false;
    }
    for (u32 c = 0; c < width; ++c) {
        PyObject* cell = PyTuple_GetItem(given, c);
        if (canonical_cell(texts, row, columns[c], cell)) continue;
        refuse_cell(columns[c], cell);
        return false;
    }
    return true;
}

inline PyObject* cell_out(const Texts& texts, const char* row, const Column& column) {
    if (is_null(row, column)) return none();
    switch (column.cell) {
        case Cell::I64: return PyLong_FromLongLong(fetch<i64>(row, column));
        case Cell::I128: return from_i128(fetch<i128>(row, column));
        case Cell::F64: return PyFloat_FromDouble(fetch<double>(row, column));
        case Cell::BOOL: return PyBool_FromLong(fetch<bool>(row, column));
        case Cell::TEXT: break;
    }
    Bytes text = texts.bytes(fetch<Text>(row, column));
    return PyUnicode_FromStringAndSize(text.start, text.length);
}

inline PyObject* row_out(const Texts& texts, const char* row, const Column* columns, u32 width) {
    Ref tuple{PyTuple_New(width)};
    for (u32 c = 0; c < width && tuple; ++c) {
        PyObject* cell = cell_out(texts, row, columns[c]);
        if (!cell) return nullptr;
        PyTuple_SetItem(tuple.object, c, cell);
    }
    return tuple.give();
}

}  // namespace viewlet
