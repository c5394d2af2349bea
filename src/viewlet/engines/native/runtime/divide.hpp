// Which rows of a batch are a cell's own, where the rows of a database are divided among several cells. Each cell reads
// the whole batch and leaves out the rows of the others. See cells/router.py, which says the same of single rows.
#pragma once
#include "import.hpp"

namespace viewlet {

inline constexpr u64 GOLDEN = 0x9E3779B97F4A7C15;  // 2⁶⁴ divided by the golden ratio
inline u64 coordinate(u64 word, u64 share) { return (word * GOLDEN >> 32) * share >> 32; }

// zlib's checksum of a text.
struct Remainders {
    u32 of[256];
    constexpr Remainders() : of{} {
        for (u32 byte = 0; byte < 256; ++byte) {
            u32 rest = byte;
            for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? 0xEDB88320 ^ rest >> 1 : rest >> 1;
            of[byte] = rest;
        }
    }
};
inline constexpr Remainders REMAINDERS;
inline u32 checksum(Bytes text) {
    u32 sum = ~u32(0);
    for (u32 i = 0; i < text.length; ++i) sum = REMAINDERS.of[(sum ^ u8(text.start[i])) & 255] ^ sum >> 8;
    return ~sum;
}

// Along one dimension: by which column, into how many coordinates, and how far apart their cells are.
struct Turning {
    u32 column;
    u64 share, stride;
};

inline constexpr u32 MOST_TURNS = 4;

// A row goes to the cells Σ turns + o, for each o of whose bit `reach` has.
struct RelationWay {
    u64 reach;
    u32 turns;
    Turning turn[MOST_TURNS];
};

struct Division {
    u64 cell;
    RelationWay* ways;  // by relation

    bool owns(const RelationWay& way, u64 base) const { return base <= cell && way.reach >> (cell - base) & 1; }
};

// The words of a column that rows are divided by; where it is missing, each is NULL.
struct Words {
    Source source{}, texts{};
    i64 factor{}, divisor{};  // of a timestamp, into microseconds
    const i32* narrow{};      // integers of one of the usual widths, all of which are there
    const i64* wide{};

    bool open(const Source& rows, const Column& column) {
        i64 child = child_named(*rows.schema, column.name);
        if (child < 0) return child == -1;
        source = rows.child(child);
        if (column.type == Sql::VARCHAR) return open_texts();
        if (source.schema->dictionary) return false;
        if (column.type == Sql::DATE) return source.is("tdD");
        if (column.type == Sql::TIMESTAMP) return open_moments();
        if (!source.has_nulls() && source.is("i")) narrow = source.buffer<i32>(1) + source.shift;
        if (!source.has_nulls() && source.is("l")) wide = source.buffer<i64>(1) + source.shift;
        return is_integer(source);
    }
    bool open_texts() {
        texts = source;
        if (source.schema->dictionary) texts = source.dictionary();
        return is_text(texts) && (!source.schema->dictionary || is_integer(source));
    }
    bool open_moments() {
        i64 units = units_a_second(source);
        if (units) factor = units < 1000000 ? 1000000 / units : 1, divisor = units > 1000000 ? units / 1000000 : 1;
        return units;
    }

    // False for NULL. What has no word that counts is refused when the row is decoded, in whichever cell.
    VIEWLET_INLINE bool at(i64 place, u64& word) const {
        if (narrow) return word = u64(i64(narrow[place])), true;
        if (wide) return word = u64(wide[place]), true;
        return at_any(place, word);
    }
    bool at_any(i64 place, u64& word) const {
        if (!source.schema || !source.valid(source.shift + place)) return false;
        place += source.shift;
        if (texts.schema) return text(place, word);
        if (divisor) {
            word = u64(source.buffer<i64>(1)[place]) * u64(factor);
            if (divisor > 1) word = u64(i64(word) / divisor);
            return true;
        }
        if (*source.format() == 't') return word = u64(i64(source.buffer<i32>(1)[place])), true;
        i64 value;
        whole_at(source, place, value);
        word = u64(value);
        return true;
    }
    bool text(i64 place, u64& word) const {
        i64 value = place;
        if (source.schema->dictionary) {
            whole_at(source, place, value);
            value += texts.shift;
            if (!texts.valid(value)) return false;
        }
        word = checksum(text_at(texts, value));
        return true;
    }
};

// Whose the rows of a struct are, as rows of one relation.
struct Owner {
    const RelationWay* way{};
    Words words[MOST_TURNS]{};

    bool open(const Division& division, u32 relation, const RelationInfo& to, const Source& rows) {
        way = &division.ways[relation];
        if (!rows.is("+s")) return false;
        for (u32 t = 0; t < way->turns; ++t)
            if (!words[t].open(rows, to.columns[way->turn[t].column])) return false;
        return true;
    }
    VIEWLET_INLINE bool owns(const Division& division, i64 place) const {
        u64 base = 0, word;
        for (u32 t = 0; t < way->turns; ++t)
            if (words[t].at(place, word)) base += coordinate(word, way->turn[t].share) * way->turn[t].stride;
        return division.owns(*way, base);
    }
};

// The same of a row that is decoded.
inline bool owns_row(State& state, const Event& event) {
    const RelationWay& way = state.division->ways[event.relation - MODULE.relations];
    u64 base = 0;
    for (u32 t = 0; t < way.turns; ++t) {
        const Column& column = event.relation->columns[way.turn[t].column];
        if (is_null(event.row, column)) continue;
        bool is_text = column.cell == Cell::TEXT;
        u64 word = is_text ? checksum(state.texts().bytes(fetch<Text>(event.row, column)))
                           : u64(fetch<i64>(event.row, column));
        base += coordinate(word, way.turn[t].share) * way.turn[t].stride;
    }
    return state.division->owns(way, base);
}

// Of the events that came from Python, those of this cell stay.
inline void leave_to_others(State& state) {
    Batch& batch = state.batch;
    auto* numbers = reinterpret_cast<i64*>(batch.rows.take(batch.size() * sizeof(i64)));
    i64 kept = 0;
    for (Event* event = batch.begin(); event != batch.end(); ++event) {
        if (!owns_row(state, *event)) continue;
        numbers[kept] = event - batch.begin();
        batch.begin()[kept++] = *event;
    }
    batch.numbers = numbers;
    batch.events.size = u64(kept) * sizeof(Event);
}

}  // namespace viewlet
