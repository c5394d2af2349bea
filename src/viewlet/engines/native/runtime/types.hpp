// SQL types and where the cells of a row lie: what the bridge must know to turn foreign values into rows and back.
#pragma once
#include "numbers.hpp"

namespace viewlet {

using u8 = unsigned char;

enum class Sql : u8 {
    ANY,
    BOOLEAN,
    INTEGER,
    BIGINT,
    DOUBLE,
    DECIMAL,
    DATE,
    TIMESTAMP,
    VARCHAR,
    TINYINT,
    SMALLINT,
    UTINYINT,
    USMALLINT,
    UINTEGER,
    REAL
};

// The least and the greatest of an integer type of fewer than 64 bits.
struct Span {
    i64 low;
    i64 high;
    bool has(i128 value) const { return low <= value && value <= high; }
};

constexpr Span span_of(Sql type) {
    switch (type) {
        case Sql::TINYINT: return {-128, 127};
        case Sql::SMALLINT: return {-32768, 32767};
        case Sql::UTINYINT: return {0, 255};
        case Sql::USMALLINT: return {0, 65535};
        case Sql::UINTEGER: return {0, 4294967295};
        default: return {-2147483648, 2147483647};
    }
}

// How a column is stored. Integers, DATE (days), TIMESTAMP (microseconds) and DECIMAL of at most 18 digits
// (scaled) are I64, a REAL is the double that it is; a nullable column is Opt<> of it.
enum class Cell : u8 { I64, I128, F64, TEXT, BOOL };

// A column of a stored row or of a view's key. With Sql::ANY only canonical cells are taken: rows then go the slow
// way through Python; keys never need more.
struct Column {
    const char* name;
    Cell cell;
    bool nullable;
    int precision;
    int scale;
    u64 offset;
    Sql type = Sql::ANY;
    bool read = true;  // false: no trigger and no table reads it, so that its values are checked and left out
};

// A column of a result, as Arrow shows it.
struct ResultColumn {
    const char* name;
    Sql type;
    int precision;
    int scale;
    bool nullable;
};

// What Python's date and datetime can hold: the years 1 to 9999.
inline constexpr i64 FIRST_DAY = -719162, LAST_DAY = 2932896, MICROSECONDS_A_DAY = 86400000000;

inline bool is_date(i128 days) { return FIRST_DAY <= days && days <= LAST_DAY; }
inline bool is_timestamp(i128 microseconds) {
    return FIRST_DAY * MICROSECONDS_A_DAY <= microseconds && microseconds < (LAST_DAY + 1) * MICROSECONDS_A_DAY;
}
inline bool is_i32(i128 value) { return value == int(value); }
inline bool is_i64(i128 value) { return value == i64(value); }

// |value| < 10^precision; beyond 38 digits every i128 is.
inline bool has_digits(i128 value, int precision) {
    if (precision > 38) return true;
    i128 bound = power10(u32(precision));
    return -bound < value && value < bound;
}

// A trigger fires once for each copy of a row: so many in one event are taken.
inline constexpr i64 MOST_COPIES = 1 << 20;
inline bool is_copies(i64 times) { return -MOST_COPIES <= times && times <= MOST_COPIES; }

}  // namespace viewlet
