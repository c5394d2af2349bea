// Arrow columns into the cells of rows. Whatever is not plainly right returns false: Python then takes the batch row by
// row and says what is wrong with it, or finds that it is right after all.
#pragma once
#include "arrow.hpp"
#include "batch.hpp"

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
    bool has_nulls() const { return array->n_buffers != 0 && buffer<u8>(0); }
    bool valid(i64 place) const { return !has_nulls() || bit(0, place); }
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

inline bool is_ascii(const u8* eight) {
    u64 word;
    memcpy(&word, eight, sizeof word);
    return !(word & 0x8080808080808080);
}

// What Python's decoder takes: no stray or missing continuation, no overlong form, no surrogate, at most U+10FFFF.
inline bool is_utf8(Bytes text) {
    auto* at = reinterpret_cast<const u8*>(text.start);
    for (const u8* end = at + text.length; at < end;) {
        if (end - at >= 8 && is_ascii(at)) {
            at += 8;
            continue;
        }
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
    Column column;
    Picks picks;
    char* rows;
    u64 stride;
};

// put(row, place) for each value, NULL for each NULL. The first loop is the ordinary case, short enough to be fast. A
// `put` holds copies of all that it reads: behind a reference the compiler would read it again after each store.
template <class Put> bool fill_with(const Filling& to, const Put put) {
    char* row = to.rows;
    const u64 stride = to.stride;
    if (!to.source.buffer<u8>(0) && !to.picks.places) {
        for (i64 place = to.source.shift, end = place + to.picks.count; place < end; ++place, row += stride)
            if (!put(row, place)) return false;
        return true;
    }
    for (i64 i = 0; i < to.picks.count; ++i, row += stride) {
        i64 place = to.source.shift + to.picks[i];
        if (!(to.source.valid(place) ? put(row, place) : store_null(row, to.column))) return false;
    }
    return true;
}

// use(values) of a column of integers, by their width.
template <class Use> bool with_integers(const Source& source, Use use) {
    switch (*source.format()) {
        case 'c': return use(source.buffer<signed char>(1));
        case 'C': return use(source.buffer<u8>(1));
        case 's': return use(source.buffer<short>(1));
        case 'S': return use(source.buffer<unsigned short>(1));
        case 'i': return use(source.buffer<i32>(1));
        case 'I': return use(source.buffer<u32>(1));
        case 'l': return use(source.buffer<i64>(1));
        default: return use(source.buffer<u64>(1));
    }
}
inline bool is_whole(u64 value) { return i64(value) >= 0; }
template <class T> bool is_whole(T) { return true; }

// put(row, value) for each integer.
template <class Put> bool fill_whole(const Filling& to, const Put put) {
    return with_integers(to.source, [&](auto* values) {
        return fill_with(to, [=](char* row, i64 place) {
            auto value = values[place];
            return is_whole(value) && put(row, i64(value));
        });
    });
}

inline bool fill_integer(const Filling& to) {
    if (!is_integer(to.source)) return false;
    bool any = to.column.type == Sql::BIGINT;
    Span span = span_of(to.column.type);
    return fill_whole(to, [=, column = to.column](char* row, i64 value) {
        store(row, column, value);
        return any || (span.low <= value && value <= span.high);
    });
}

template <class T> bool fill_real(const Filling& to) {
    return fill_with(to, [column = to.column, values = to.source.buffer<T>(1)](char* row, i64 place) {
        store_double(row, column, double(values[place]));
        return true;
    });
}

inline bool fill_double(const Filling& to) {
    if (to.source.is("g")) return fill_real<double>(to);
    if (to.source.is("f")) return fill_real<float>(to);
    if (!is_integer(to.source)) return false;
    return fill_whole(to, [column = to.column](char* row, i64 value) {
        store_double(row, column, double(value));
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

// Numbers of 128 bits with the column's own decimals, into cells of 64 bits.
inline bool fill_short_decimal(const Filling& to) {
    i64 bound = i64(power10(u32(to.column.precision)));
    return fill_with(to, [=, column = to.column, halves = to.source.buffer<i64>(1)](char* row, i64 place) {
        i64 low = halves[2 * place], high = halves[2 * place + 1];
        store(row, column, low);
        return high == low >> 63 && -bound < low && low < bound;
    });
}

inline bool fill_long_decimal(const Filling& to, int scale) {
    return fill_with(to, [=, column = to.column, values = to.source.buffer<char>(1)](char* row, i64 place) {
        i128 value;
        memcpy(&value, values + 16 * place, sizeof value);
        return take_scaled(row, column, value, scale);
    });
}

inline bool fill_decimal(const Filling& to) {
    int scale;
    if (is_integer(to.source))
        return fill_whole(to,
                          [column = to.column](char* row, i64 value) { return take_scaled(row, column, value, 0); });
    if (to.source.is("g"))
        return fill_with(to, [column = to.column, values = to.source.buffer<double>(1)](char* row, i64 place) {
            return take_real(row, column, values[place]);
        });
    if (is_text(to.source))
        return fill_with(to, [&](char* row, i64 place) {
            Bytes text = text_at(to.source, place);
            return take_numeral(row, to.column, text.start, text.length);
        });
    if (!decimal_scale(to.source.format(), scale)) return false;
    bool is_short = scale == to.column.scale && to.column.cell == Cell::I64;
    return is_short ? fill_short_decimal(to) : fill_long_decimal(to, scale);
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
    if (days)
        return fill_with(to, [column = to.column, values = to.source.buffer<i32>(1)](char* row, i64 place) {
            store(row, column, i64(values[place]));
            return is_date(values[place]);
        });
    return fill_with(to, [=, column = to.column, values = to.source.buffer<i64>(1)](char* row, i64 place) {
        store(row, column, values[place] / a_day);
        return values[place] % a_day == 0 && is_date(values[place] / a_day);
    });
}

inline bool fill_timestamp(const Filling& to) {
    i64 units = units_a_second(to.source);
    if (!units) return false;
    i64 factor = units < 1000000 ? 1000000 / units : 1, divisor = units > 1000000 ? units / 1000000 : 1;
    if (units == 1000000)
        return fill_with(to, [column = to.column, values = to.source.buffer<i64>(1)](char* row, i64 place) {
            store(row, column, values[place]);
            return is_timestamp(values[place]);
        });
    return fill_with(to, [=, column = to.column, values = to.source.buffer<i64>(1)](char* row, i64 place) {
        i64 given = values[place];
        i128 value = i128(given) * factor / divisor;
        store(row, column, i64(value));
        return given % divisor == 0 && is_timestamp(value);
    });
}

inline bool fill_boolean(const Filling& to) {
    if (!to.source.is("b")) return false;
    return fill_with(to, [column = to.column, bits = to.source.buffer<u8>(1)](char* row, i64 place) {
        store(row, column, bool(bits[place >> 3] >> (place & 7) & 1));
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
        case Sql::REAL: return to.source.is("f") && fill_real<float>(to);
        case Sql::DECIMAL: return fill_decimal(to);
        case Sql::DATE: return fill_date(to);
        case Sql::TIMESTAMP: return fill_timestamp(to);
        default: return false;
    }
}

// -- columns that nothing reads ---------------------------------------------------------------------------------------

// Every value is there, one behind the other.
inline bool is_whole_block(const Filling& to) { return !to.source.has_nulls() && !to.picks.places; }

inline bool check_doubles(const double* values, i64 count) {
    bool wild = false;
    for (i64 i = 0; i < count; ++i) wild |= !is_finite(values[i]);
    if (wild) note_wild();
    return true;
}

inline bool check_short_decimals(const i64* halves, i64 count, i64 bound) {
    bool fine = true;
    for (i64 i = 0; i < count; ++i) {
        i64 low = halves[2 * i], high = halves[2 * i + 1];
        fine &= high == low >> 63 && -bound < low && low < bound;
    }
    return fine;
}

// Only whether the column could hold the values: most types need no look at each, or a loop that stores nothing. The
// others go into the first row, one over the other.
inline bool check_column(Texts& texts, Filling to) {
    int scale;
    i64 first = to.source.shift, count = to.picks.count;
    bool encoded = to.source.schema->dictionary;
    if (to.column.type == Sql::VARCHAR && !encoded && is_text(to.source))
        return fill_with(to, [&](char*, i64 place) { return is_utf8(text_at(to.source, place)); });
    if (!encoded && is_whole_block(to)) {
        if (to.column.type == Sql::BIGINT && is_integer(to.source) && !to.source.is("L")) return true;
        if (to.column.type == Sql::DOUBLE && to.source.is("g"))
            return check_doubles(to.source.buffer<double>(1) + first, count);
        if (to.column.type == Sql::DECIMAL && to.column.cell == Cell::I64 && decimal_scale(to.source.format(), scale) &&
            scale == to.column.scale)
            return check_short_decimals(to.source.buffer<i64>(1) + 2 * first, count,
                                        i64(power10(u32(to.column.precision))));
    }
    to.stride = 0;
    return fill_column(texts, to);
}

// -- rows -------------------------------------------------------------------------------------------------------------

// The child of that name; -1 where there is none, -2 where there are two.
inline i64 child_named(const ArrowSchema& schema, const char* name) {
    i64 child = -1;
    for (i64 i = 0; i < schema.n_children; ++i)
        if (strcmp(schema.children[i]->name, name) == 0) child = child == -1 ? i : -2;
    return child;
}

inline bool fill_null(const Filling& to) {
    for (i64 i = 0; i < to.picks.count; ++i)
        if (!store_null(to.rows + i * to.stride, to.column)) return false;
    return true;
}

// So many rows stay in the cache until all their columns are there.
inline constexpr i64 BLOCK = 512;

// The column's part from `first` on.
inline bool fill_block(Texts& texts, Filling part, i64 first, i64 count) {
    part.picks.count = count;
    part.rows += first * part.stride;
    if (part.picks.places)
        part.picks.places += first;
    else
        part.source.shift += first;
    if (!part.source.schema) return fill_null(part);
    return part.column.read ? fill_column(texts, part) : check_column(texts, part);
}

// Each column whole where it has a dictionary, whose words are looked up once; the others block by block.
inline bool fill_blocks(Texts& texts, const Filling* columns, u32 width, i64 count) {
    auto at_once = [&](u32 c) { return columns[c].source.schema && columns[c].source.schema->dictionary; };
    for (u32 c = 0; c < width; ++c)
        if (at_once(c) && !fill_column(texts, columns[c])) return false;
    for (i64 first = 0; first < count; first += BLOCK)
        for (u32 c = 0; c < width; ++c)
            if (!at_once(c) && !fill_block(texts, columns[c], first, count - first < BLOCK ? count - first : BLOCK))
                return false;
    return true;
}

// Struct `source` at `picks` as rows. Columns are found by name; one that is missing is NULL, one too many is refused.
inline bool fill_rows(Texts& texts, const Source& source, const RelationInfo& to, Picks picks, Arena& memory,
                      char* rows) {
    if (!source.is("+s")) return false;
    for (i64 i = 0; i < picks.count && source.buffer<u8>(0); ++i)
        if (!source.valid(source.shift + picks[i])) return false;
    auto* columns = reinterpret_cast<Filling*>(memory.take(to.width * sizeof(Filling)));
    i64 named = 0;
    for (u32 c = 0; c < to.width; ++c) {
        i64 child = child_named(*source.schema, to.columns[c].name);
        if (child == -2) return false;
        named += child >= 0;
        columns[c] = {child >= 0 ? source.child(child) : Source{}, to.columns[c], picks, rows, to.row_size};
    }
    return named == source.schema->n_children && fill_blocks(texts, columns, to.width, picks.count);
}

}  // namespace viewlet
