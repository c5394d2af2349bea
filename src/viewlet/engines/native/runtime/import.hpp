// Arrow columns into the cells of rows. Whatever is not plainly right returns false: Python then takes the batch row by
// row and says what is wrong with it, or finds that it is right after all.
#pragma once
#include "arrow.hpp"
#include "decode.hpp"

extern "C" int strcmp(const char*, const char*) noexcept;

namespace viewlet {

// A column of a batch; `shift` sums the offsets of slices from the outside in.
struct Source {
    const ArrowSchema* schema;
    const ArrowArray* array;
    i64 shift;

    const char* format() const { return schema->format; }
    bool is(const char* other) const { return strcmp(schema->format, other) == 0; }
    template <class T> const T* buffer(u32 i) const { return static_cast<const T*>(array->buffers[i]); }
    bool valid(i64 place) const { return array->n_buffers == 0 || !buffer<u8>(0) || bit(0, place); }
    bool bit(u32 i, i64 place) const { return buffer<u8>(i)[place >> 3] >> (place & 7) & 1; }
    Source child(i64 i) const { return {schema->children[i], array->children[i], shift + array->children[i]->offset}; }
    Source dictionary() const { return {schema->dictionary, array->dictionary, array->dictionary->offset}; }
};

// Which of a source's places are meant: all from the start, or those picked.
struct Picks {
    const i64* places;
    i64 count;
    i64 operator[](i64 i) const { return places ? places[i] : i; }
};

// -- single values ----------------------------------------------------------------------------------------------------

inline bool is_integer(const Source& source) {
    constexpr char formats[] = "cCsSiIlL";
    for (char format : formats)
        if (format == *source.format()) return format && !source.format()[1];
    return false;
}

inline bool whole_at(const Source& source, i64 place, i64& value) {
    switch (*source.format()) {
        case 'c': value = source.buffer<signed char>(1)[place]; return true;
        case 'C': value = source.buffer<u8>(1)[place]; return true;
        case 's': value = source.buffer<short>(1)[place]; return true;
        case 'S': value = source.buffer<unsigned short>(1)[place]; return true;
        case 'i': value = source.buffer<i32>(1)[place]; return true;
        case 'I': value = source.buffer<u32>(1)[place]; return true;
        case 'l': value = source.buffer<i64>(1)[place]; return true;
        default: value = source.buffer<i64>(1)[place]; return value >= 0;  // 'L': an unsigned of 64 bits
    }
}

inline bool is_text(const Source& source) { return source.is("u") || source.is("U") || source.is("vu"); }

// Arrow's string view: 16 bytes, a length and either up to 12 characters or a prefix, a buffer and an offset.
inline Bytes viewed_text(const Source& source, i64 place) {
    struct View {
        u32 length, prefix;
        i32 buffer, offset;
    };
    const View& view = source.buffer<View>(1)[place];
    if (view.length <= 12) return {reinterpret_cast<const char*>(&view.prefix), view.length};
    return {source.buffer<char>(2 + view.buffer) + view.offset, view.length};
}

template <class Offset> Bytes text_between(const Source& source, i64 place) {
    const Offset* ends = source.buffer<Offset>(1) + place;
    return {source.buffer<char>(2) + ends[0], u32(ends[1] - ends[0])};
}

inline Bytes text_at(const Source& source, i64 place) {
    if (*source.format() == 'v') return viewed_text(source, place);
    return *source.format() == 'u' ? text_between<i32>(source, place) : text_between<i64>(source, place);
}

// How many bytes a UTF-8 sequence has by its first byte; 0 where none may start so.
inline u32 sequence_length(u8 first) {
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

// What Python's decoder takes: no stray or missing continuation, no overlong form, no surrogate, at most U+10FFFF.
inline bool is_utf8(Bytes text) {
    auto* at = reinterpret_cast<const u8*>(text.start);
    for (const u8* end = at + text.length; at < end;) {
        u32 length = sequence_length(*at);
        if (length == 0 || length > u64(end - at)) return false;
        for (u32 i = 1; i < length; ++i)
            if ((at[i] & 0xc0) != 0x80) return false;
        if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f)) return false;
        if ((*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f)) return false;
        at += length;
    }
    return true;
}

// -- columns ----------------------------------------------------------------------------------------------------------

// A column on its way into rows that lie `stride` bytes apart.
struct Filling {
    Source source;
    const Column& column;
    Picks picks;
    char* rows;
    u64 stride;
};

// put(row, place) for each value, NULL for each NULL. The first loop is the ordinary case, short enough to be fast.
template <class Put> bool fill_with(const Filling& to, Put put) {
    char* row = to.rows;
    if (!to.source.buffer<u8>(0) && !to.picks.places) {
        for (i64 i = 0; i < to.picks.count; ++i, row += to.stride)
            if (!put(row, to.source.shift + i)) return false;
        return true;
    }
    for (i64 i = 0; i < to.picks.count; ++i, row += to.stride) {
        i64 place = to.source.shift + to.picks[i];
        if (!(to.source.valid(place) ? put(row, place) : store_null(row, to.column))) return false;
    }
    return true;
}

// put(row, value) for each integer.
template <class Put> bool fill_whole(const Filling& to, Put put) {
    return fill_with(to, [&](char* row, i64 place) {
        i64 value;
        return whole_at(to.source, place, value) && put(row, value);
    });
}

inline bool fill_integer(const Filling& to) {
    bool short_one = to.column.type != Sql::BIGINT;
    Span span = span_of(to.column.type);
    if (!is_integer(to.source)) return false;
    if (!short_one && to.source.is("l"))
        return fill_with(to, [&](char* row, i64 place) {
            store(row, to.column, to.source.buffer<i64>(1)[place]);
            return true;
        });
    return fill_whole(to, [&](char* row, i64 value) {
        store(row, to.column, value);
        return !short_one || span.has(value);
    });
}

template <class T> bool fill_real(const Filling& to) {
    return fill_with(to, [&](char* row, i64 place) {
        store_double(row, to.column, double(to.source.buffer<T>(1)[place]));
        return true;
    });
}

inline bool fill_double(const Filling& to) {
    if (to.source.is("g")) return fill_real<double>(to);
    if (to.source.is("f")) return fill_real<float>(to);
    if (!is_integer(to.source)) return false;
    return fill_whole(to, [&](char* row, i64 value) {
        store_double(row, to.column, double(value));
        return -(1ll << 53) <= value && value <= 1ll << 53;
    });
}

// "d:precision,scale" of 128 bits, the scale not negative.
inline bool decimal_scale(const char* format, int& scale) {
    if (format[0] != 'd' || format[1] != ':') return false;
    const char* at = format + 2;
    while (*at && *at != ',') ++at;
    scale = 0;
    bool digits = false;
    while (*at && *++at >= '0' && *at <= '9') scale = scale * 10 + (*at - '0'), digits = true;
    return digits && (*at == 0 || strcmp(at, ",128") == 0);
}

inline bool fill_decimal(const Filling& to) {
    int scale;
    if (is_integer(to.source))
        return fill_whole(to, [&](char* row, i64 value) { return take_scaled(row, to.column, value, 0); });
    if (to.source.is("g"))
        return fill_with(
            to, [&](char* row, i64 place) { return take_real(row, to.column, to.source.buffer<double>(1)[place]); });
    if (is_text(to.source))
        return fill_with(to, [&](char* row, i64 place) {
            Bytes text = text_at(to.source, place);
            return take_numeral(row, to.column, text.start, text.length);
        });
    if (!decimal_scale(to.source.format(), scale)) return false;
    return fill_with(to, [&](char* row, i64 place) {
        i128 value;
        memcpy(&value, to.source.buffer<char>(1) + 16 * place, sizeof value);
        return take_scaled(row, to.column, value, scale);
    });
}

// "ts" and a unit, then the time zone that there must not be; how many of the units are a second, 0 where it is no such.
inline i64 units_a_second(const Source& source) {
    const char* format = source.format();
    if (format[0] != 't' || format[1] != 's' || !format[2] || format[3] != ':' || format[4]) return 0;
    return format[2] == 's' ? 1 : format[2] == 'm' ? 1000 : format[2] == 'u' ? 1000000 : 1000000000;
}

// Days, milliseconds of whole days, or timestamps of midnight.
inline bool fill_date(const Filling& to) {
    bool days = to.source.is("tdD");
    i64 a_day = 86400 * (to.source.is("tdm") ? 1000 : units_a_second(to.source));
    if (!days && !a_day) return false;
    return fill_with(to, [&](char* row, i64 place) {
        i64 value = days ? to.source.buffer<i32>(1)[place] : to.source.buffer<i64>(1)[place];
        if (!days && value % a_day != 0) return false;
        store(row, to.column, days ? value : value / a_day);
        return is_date(days ? value : value / a_day);
    });
}

inline bool fill_timestamp(const Filling& to) {
    i64 units = units_a_second(to.source);
    if (!units) return false;
    i64 factor = units < 1000000 ? 1000000 / units : 1, divisor = units > 1000000 ? units / 1000000 : 1;
    return fill_with(to, [&](char* row, i64 place) {
        i64 given = to.source.buffer<i64>(1)[place];
        i128 value = i128(given) * factor / divisor;
        store(row, to.column, i64(value));
        return given % divisor == 0 && is_timestamp(value);
    });
}

inline bool fill_boolean(const Filling& to) {
    if (!to.source.is("b")) return false;
    return fill_with(to, [&](char* row, i64 place) {
        store(row, to.column, to.source.bit(1, place));
        return true;
    });
}

inline bool store_text(Texts& texts, char* row, const Column& column, Bytes text) {
    if (!is_utf8(text)) return false;
    store(row, column, texts.intern(text.start, text.length));
    return true;
}

// Each string of the dictionary is interned once, unless it has more than there are rows.
inline bool fill_from_dictionary(Texts& texts, const Filling& to) {
    Source words = to.source.dictionary();
    if (!is_text(words) || !is_integer(to.source)) return false;
    constexpr u32 unknown = ~u32(0);
    u64 size = words.array->length <= to.picks.count ? words.array->length : 0;
    auto* ids = static_cast<u32*>(malloc(size * sizeof(u32) + 1));
    for (u64 i = 0; i < size; ++i) ids[i] = unknown;
    bool fine = fill_whole(to, [&](char* row, i64 word) {
        i64 place = words.shift + word;
        if (!words.valid(place)) return store_null(row, to.column);
        if (u64(word) >= size) return store_text(texts, row, to.column, text_at(words, place));
        if (ids[word] == unknown) {
            Bytes text = text_at(words, place);
            if (!is_utf8(text)) return false;
            ids[word] = texts.intern(text.start, text.length).id;
        }
        store(row, to.column, Text{ids[word]});
        return true;
    });
    free(ids);
    return fine;
}

inline bool fill_text(Texts& texts, const Filling& to) {
    if (to.source.schema->dictionary) return fill_from_dictionary(texts, to);
    if (!is_text(to.source)) return false;
    return fill_with(
        to, [&](char* row, i64 place) { return store_text(texts, row, to.column, text_at(to.source, place)); });
}

inline bool fill_column(Texts& texts, const Filling& to) {
    if (to.column.type == Sql::VARCHAR) return fill_text(texts, to);
    if (to.source.schema->dictionary) return false;
    switch (to.column.type) {
        case Sql::BOOLEAN: return fill_boolean(to);
        case Sql::TINYINT:
        case Sql::SMALLINT:
        case Sql::UTINYINT:
        case Sql::USMALLINT:
        case Sql::UINTEGER:
        case Sql::INTEGER:
        case Sql::BIGINT: return fill_integer(to);
        case Sql::DOUBLE: return fill_double(to);
        case Sql::DECIMAL: return fill_decimal(to);
        case Sql::DATE: return fill_date(to);
        case Sql::TIMESTAMP: return fill_timestamp(to);
        default: return false;
    }
}

// -- rows -------------------------------------------------------------------------------------------------------------

// The child of that name; -1 where there is none, -2 where there are two.
inline i64 child_named(const ArrowSchema& schema, const char* name) {
    i64 child = -1;
    for (i64 i = 0; i < schema.n_children; ++i)
        if (strcmp(schema.children[i]->name, name) == 0) child = child == -1 ? i : -2;
    return child;
}

inline bool fill_null(const Column& column, i64 count, char* rows, u64 stride) {
    for (i64 i = 0; i < count; ++i)
        if (!store_null(rows + i * stride, column)) return false;
    return true;
}

// Struct `source` at `picks` as rows. Columns are found by name; one that is missing is NULL, one too many is refused.
inline bool fill_rows(Texts& texts, const Source& source, const Column* columns, u32 width, Picks picks, char* rows,
                      u64 stride) {
    i64 named = 0;
    if (!source.is("+s")) return false;
    for (i64 i = 0; i < picks.count && source.buffer<u8>(0); ++i)
        if (!source.valid(source.shift + picks[i])) return false;
    for (u32 c = 0; c < width; ++c) {
        i64 child = child_named(*source.schema, columns[c].name);
        named += child >= 0;
        bool fine = child >= 0 ? fill_column(texts, {source.child(child), columns[c], picks, rows, stride})
                               : child == -1 && fill_null(columns[c], picks.count, rows, stride);
        if (!fine) return false;
    }
    return named == source.schema->n_children;
}

}  // namespace viewlet
