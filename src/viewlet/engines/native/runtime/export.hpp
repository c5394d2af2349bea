// The rows of a result as an Arrow struct array: the buffers that Rows filled change hands, nothing is copied.
#pragma once
#include "arrow.hpp"
#include "describe.hpp"
#include "fill.hpp"
#include "python.hpp"

extern "C" int snprintf(char*, size_t, const char*, ...) noexcept;

namespace viewlet {

inline void write_format(char* to, const ResultColumn& column) {
    auto* format = [&] {
        switch (column.type) {
            case Sql::BOOLEAN: return "b";
            case Sql::TINYINT: return "c";
            case Sql::UTINYINT: return "C";
            case Sql::SMALLINT: return "s";
            case Sql::USMALLINT: return "S";
            case Sql::UINTEGER: return "I";
            case Sql::INTEGER: return "i";
            case Sql::BIGINT: return "l";
            case Sql::DOUBLE: return "g";
            case Sql::DATE: return "tdD";
            case Sql::TIMESTAMP: return "tsu:";
            case Sql::DECIMAL: return column.precision > 38 ? "d:%d,%d,256" : "d:%d,%d";
            default: return "u";
        }
    }();
    snprintf(to, 24, format, column.precision, column.scale);
}

// The names are those of the program, which outlives every module: CPython never unloads one.
inline void export_schema(const ResultInfo& result, ArrowSchema& schema) {
    schema = {"+s", "", nullptr, 0, 0, nullptr, nullptr, release_exported<ArrowSchema>, nullptr};
    give_children(schema, result.width);
    for (u32 c = 0; c < result.width; ++c) {
        const ResultColumn& column = result.columns[c];
        auto* format = static_cast<char*>(malloc(24));
        write_format(format, column);
        *schema.children[c] = {format, column.name, nullptr, column.nullable ? ARROW_NULLABLE : 0,
                               0,      nullptr,     nullptr, release_exported<ArrowSchema>,
                               format};
    }
}

// An array's buffers, in the one block that its private_data is.
struct Held {
    const void* buffers[3];
};

inline void release_column(ArrowArray* array) {
    for (const void* buffer : static_cast<Held*>(array->private_data)->buffers) free(const_cast<void*>(buffer));
    release_exported(array);
}

// Arrow has no empty buffers where there are no rows, only short ones.
inline void* hand_over(Pile& pile) {
    if (!pile.data) pile.more(8);
    void* data = pile.data;
    pile = {};
    return data;
}

inline void export_column(const ResultColumn& column, Rows::Filled& filled, i64 length, ArrowArray& array) {
    auto* held = static_cast<Held*>(calloc(1, sizeof(Held)));
    array = {length, filled.nulls, 0, 2, 0, held->buffers, nullptr, nullptr, release_column, held};
    if (filled.nulls) {
        while (i64(filled.valid.bytes.size) * 8 < length) filled.valid.bytes.push(char(0xff));
        held->buffers[0] = hand_over(filled.valid.bytes);
    }
    if (column.type != Sql::VARCHAR) {
        held->buffers[1] = hand_over(column.type == Sql::BOOLEAN ? filled.bits.bytes : filled.values);
        return;
    }
    if (filled.ends.size == 0) filled.ends.push(i32(0));
    array.n_buffers = 3;
    held->buffers[1] = hand_over(filled.ends);
    held->buffers[2] = hand_over(filled.values);
}

inline void export_rows(Rows& rows, ArrowArray& array) {
    auto* held = static_cast<Held*>(calloc(1, sizeof(Held)));
    array = {rows.length, 0, 0, 1, 0, held->buffers, nullptr, nullptr, release_exported<ArrowArray>, held};
    give_children(array, rows.width);
    for (u32 c = 0; c < rows.width; ++c)
        export_column(rows.columns[c], rows.filled[c], rows.length, *array.children[c]);
}

// -- capsules ---------------------------------------------------------------------------------------------------------

template <class T> constexpr const char* CAPSULE = "arrow_array";
template <> inline constexpr const char* CAPSULE<ArrowSchema> = "arrow_schema";

template <class T> void destroy_capsule(PyObject* capsule) {
    auto* held = static_cast<T*>(PyCapsule_GetPointer(capsule, CAPSULE<T>));
    if (!held) return PyErr_Clear();
    release_arrow(held);
    free(held);
}

template <class T> PyObject* arrow_capsule(T* held) {
    PyObject* capsule = PyCapsule_New(held, CAPSULE<T>, destroy_capsule<T>);
    if (capsule) return capsule;
    release_arrow(held);
    free(held);
    return nullptr;
}

inline PyObject* arrow_of(const ResultInfo& result, Rows& rows) {
    auto* schema = static_cast<ArrowSchema*>(malloc(sizeof(ArrowSchema)));
    auto* array = static_cast<ArrowArray*>(malloc(sizeof(ArrowArray)));
    export_schema(result, *schema);
    export_rows(rows, *array);
    return tuple_of(arrow_capsule(schema), arrow_capsule(array));
}

}  // namespace viewlet
