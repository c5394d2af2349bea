// Casts from and to text, and of doubles to exact numbers. A text that is no value of a type is none for TRY_CAST, too;
// one in a form that is not taken fails in both, as NULL would be wrong.
#pragma once

#include "functions_number.hpp"
#include "functions_time.hpp"

extern "C" {
int snprintf(char* __restrict, size_t, const char* __restrict, ...) noexcept;
double strtod(const char* __restrict, char** __restrict) noexcept;
}

namespace viewlet {
namespace casts {

enum class Outcome : u8 { READ, UNREADABLE, UNTAKEN };

inline constexpr const char* UNREADABLE = "a text or number is no value of the type that it is cast to";
inline constexpr const char* UNTAKEN = "a text is cast from a form that is not taken";

template <class T>
inline T cast(Faults& faults, u32 view, Outcome outcome, T value) {
    if (likely(outcome == Outcome::READ)) return value;
    faults.refuse(view, outcome == Outcome::UNTAKEN ? UNTAKEN : UNREADABLE);
    return T{};
}
template <class T>
inline Opt<T> try_cast(Faults& faults, u32 view, Outcome outcome, T value) {
    if (unlikely(outcome == Outcome::UNTAKEN)) faults.refuse(view, UNTAKEN);
    return outcome == Outcome::READ ? Opt<T>(value) : Opt<T>();
}

// -- characters

inline bool is_space(char c) { return c == ' ' || ('\t' <= c && c <= '\r'); }
inline bool is_digit(char c) { return '0' <= c && c <= '9'; }
inline char lower(char c) { return 'A' <= c && c <= 'Z' ? char(c + 32) : c; }

// What is left to read.
struct Reading {
    const char *at, *end;

    bool done() const { return at == end; }
    char peek() const { return done() ? '\0' : *at; }
    bool take(char c) { return !done() && *at == c ? (++at, true) : false; }
    void spaces() {
        while (!done() && is_space(*at)) ++at;
    }
    void strip() {
        spaces();
        while (!done() && is_space(end[-1])) --end;
    }
    bool word(const char* text) {  // all that is left, whatever the case
        u64 length = strlen(text);
        if (u64(end - at) != length) return false;
        for (u64 i = 0; i < length; ++i)
            if (lower(at[i]) != text[i]) return false;
        return true;
    }
    i64 number(u32 most) {  // of at most so many digits; -1 where there is none
        i64 value = -1;
        for (; most && is_digit(peek()); --most, ++at) value = (value < 0 ? 0 : value * 10) + (*at - '0');
        return value;
    }
};
inline Reading reading(const Texts& texts, Text text) {
    Bytes bytes = texts.bytes(text);
    return {bytes.start, bytes.start + bytes.length};
}

// -- numbers

// A number in decimal: where its digits are, how many stand after the point, and its exponent.
struct Numeral {
    const char *start, *end;  // digits, underscores and at most one point
    bool negative, scientific;
    i64 exponent;
};

// Digits with single underscores in between.
inline bool take_digits(Reading& rest) {
    if (!is_digit(rest.peek())) return false;
    while (is_digit(rest.peek()) || (rest.peek() == '_' && rest.at + 1 < rest.end && is_digit(rest.at[1]))) ++rest.at;
    return true;
}

inline bool take_exponent(Reading& rest, Numeral& numeral) {
    numeral.scientific = rest.take('e') || rest.take('E');
    if (!numeral.scientific) return true;
    bool negative = rest.peek() == '-';
    if (negative || rest.peek() == '+') ++rest.at;
    if (!is_digit(rest.peek())) return false;
    for (; is_digit(rest.peek()); ++rest.at)
        if (numeral.exponent < 100000) numeral.exponent = numeral.exponent * 10 + (*rest.at - '0');
    if (negative) numeral.exponent = -numeral.exponent;
    return true;
}

// DuckDB reads 1e5., 1e1_0 and, as a DOUBLE, +-5.
inline bool is_odd(Reading text) {
    u64 length = u64(text.end - text.at);
    bool odd = length > 1 && (text.at[1] == '+' || text.at[1] == '-');
    for (u64 i = 0; i < length; ++i) {
        char c = lower(text.at[i]);
        if (!is_digit(c) && c != '+' && c != '-' && c != '_' && c != '.' && c != 'e') return false;
        odd |= c == 'e' && i > 0;
    }
    return odd;
}

inline Outcome read_numeral(Reading text, Numeral& numeral) {
    text.strip();
    Reading rest = text;
    numeral = {};
    numeral.negative = rest.peek() == '-';
    if (numeral.negative || rest.peek() == '+') ++rest.at;
    numeral.start = rest.at;
    bool whole = take_digits(rest), point = rest.take('.'), places = point && take_digits(rest);
    numeral.end = rest.at;
    if ((whole || places) && take_exponent(rest, numeral) && rest.done()) return Outcome::READ;
    return is_odd(text) ? Outcome::UNTAKEN : Outcome::UNREADABLE;
}

// 0x1F and 0b11
inline bool is_binary(Reading text) {
    text.strip();
    if (text.peek() == '-' || text.peek() == '+') ++text.at;
    if (!text.take('0') || !(lower(text.peek()) == 'x' || lower(text.peek()) == 'b')) return false;
    if (++text.at == text.end) return false;
    for (; !text.done(); ++text.at) {
        char c = lower(*text.at);
        if (!is_digit(c) && c != '_' && !('a' <= c && c <= 'f')) return false;
    }
    return true;
}

// The units of 10^-places nearest to a number without exponent, half away from zero; false where they have more than 38
// digits.
inline bool units_of(const Numeral& numeral, u32 places, i128& units) {
    constexpr u128 most = u128(power10(38));
    u128 value = 0;
    u32 left = places;  // digits after the point that count
    bool after = false, up = false;
    for (const char* at = numeral.start; at < numeral.end; ++at) {
        if (*at == '.') after = true;
        if (!is_digit(*at)) continue;
        if (after && left == 0) {
            up = *at >= '5';
            break;
        }
        left -= after;
        if ((value = value * 10 + u32(*at - '0')) >= most) return false;
    }
    for (; left; --left)
        if ((value *= 10) >= most) return false;
    value += up;
    units = numeral.negative ? -i128(value) : i128(value);
    return value < most;
}

// A number with an exponent, made whole, half away from zero; UNTAKEN where it has many digits.
inline Outcome whole_of(const Numeral& numeral, i128& whole) {
    u64 digits = 0;
    i64 power = numeral.exponent;
    bool after = false;
    for (const char* at = numeral.start; at < numeral.end; ++at) {
        if (*at == '.') after = true;
        if (!is_digit(*at)) continue;
        if (digits >= 100000000000000000) return Outcome::UNTAKEN;
        digits = digits * 10 + u32(*at - '0');
        power -= after;
    }
    if (numeral.exponent > 99 || numeral.exponent < -99) return Outcome::UNTAKEN;
    if (power > 20 && digits) return Outcome::UNREADABLE;
    whole = power >= 0 ? i128(digits) * power10(u32(digits ? power : 0)) : 0;
    if (power < 0 && power >= -38) whole = round_number<i128>(digits, u32(-power), 0);
    if (numeral.negative) whole = -whole;
    return Outcome::READ;
}

inline Outcome parse_integer(Reading text, i64& value) {
    Numeral numeral;
    Outcome outcome = read_numeral(text, numeral);
    if (outcome == Outcome::UNREADABLE && is_binary(text)) return Outcome::UNTAKEN;
    if (outcome != Outcome::READ) return outcome;
    i128 whole = 0;
    if (numeral.scientific) {
        outcome = whole_of(numeral, whole);
        if (outcome != Outcome::READ) return outcome;
    } else if (!units_of(numeral, 0, whole)) {
        return Outcome::UNREADABLE;
    }
    value = i64(whole);
    return whole == value ? Outcome::READ : Outcome::UNREADABLE;
}

inline Outcome parse_number(Reading text, u32 places, i128& value) {
    Numeral numeral;
    Outcome outcome = read_numeral(text, numeral);
    if (outcome != Outcome::READ) return outcome;
    if (numeral.scientific) return Outcome::UNTAKEN;
    return units_of(numeral, places, value) ? Outcome::READ : Outcome::UNREADABLE;
}

// NaN and infinities are not taken. strtod gets an integer with an exponent, in which no locale has a say.
inline Outcome parse_double(Reading text, double& value) {
    Numeral numeral;
    Outcome outcome = read_numeral(text, numeral);
    text.strip();
    if (outcome != Outcome::READ) {
        if (text.peek() == '-' || text.peek() == '+') ++text.at;
        bool wild = text.word("nan") || text.word("inf") || text.word("infinity");
        return wild ? Outcome::UNTAKEN : outcome;
    }
    u64 most = u64(numeral.end - numeral.start) + 32;
    char small[128];
    char* room = most <= sizeof small ? small : (char*)malloc(most);
    if (!room) fail("out of memory");
    u64 length = 0;
    bool after = false;
    for (const char* at = numeral.start; at < numeral.end; ++at) {
        if (*at == '.') after = true;
        if (!is_digit(*at)) continue;
        room[length++] = *at;
        numeral.exponent -= after;
    }
    snprintf(room + length, 32, "e%lld", numeral.exponent);
    value = strtod(room, nullptr);
    if (room != small) free(room);
    if (numeral.negative) value = 0 - value;
    return is_finite(value) ? Outcome::READ : Outcome::UNTAKEN;
}

inline Outcome parse_boolean(Reading text, bool& value) {
    constexpr const char* words[] = {"true", "false", "t", "f", "1", "0", "yes", "no", "y", "n"};
    for (u32 i = 0; i < 10; ++i)
        if (text.word(words[i])) return value = i % 2 == 0, Outcome::READ;
    return Outcome::UNREADABLE;
}

// -- days and moments

// YYYY-MM-DD, or with / or \ or spaces; false where the text is not of that form.
inline bool parse_day(Reading& rest, Outcome& outcome, i64& day) {
    i64 year = rest.number(9);
    char dash = rest.peek();
    if (year < 0 || !(dash == '-' || dash == '/' || dash == '\\' || dash == ' ')) return false;
    ++rest.at;
    i64 month = rest.number(2);
    if (month < 0 || !rest.take(dash)) return false;
    i64 of_month = rest.number(2);
    if (of_month < 0) return false;
    if (year < 1 || year > 9999)
        outcome = Outcome::UNTAKEN;
    else if (!is_day(year, month, of_month))
        outcome = Outcome::UNREADABLE;
    else
        outcome = Outcome::READ, day = days_from_civil({year, u32(month), u32(of_month)});
    return true;
}

// HH:MM, HH:MM:SS or HH:MM:SS.places, and the end; false where the text is not of that form.
inline bool parse_time(Reading& rest, Outcome& outcome, i64& time) {
    i64 hour = rest.number(2);
    if (hour < 0 || !rest.take(':')) return false;
    i64 minute = rest.number(2), second = 0, places = 0, unit = 1000000;
    if (minute < 0) return false;
    if (rest.take(':')) {
        second = rest.number(2);
        if (second < 0) return false;
        if (rest.take('.'))
            for (; is_digit(rest.peek()); ++rest.at) unit /= 10, places += unit * (*rest.at - '0');
    }
    rest.spaces();
    if (!rest.done()) return false;
    if (outcome != Outcome::READ) return true;
    if (hour == 24)
        outcome = Outcome::UNTAKEN;
    else if (hour > 23 || minute > 59 || second > 59)
        outcome = Outcome::UNREADABLE;
    time = (hour * 3600 + minute * 60 + second) * 1000000 + places;
    return true;
}

// What DuckDB may read: -44-03-15, 2024-01-01 12:00+01, infinity, epoch
inline bool is_like_a_moment(Reading text) {
    text.spaces();
    Reading rest = text;
    rest.take('-');
    bool digits = false;
    for (; is_digit(rest.peek()); ++rest.at) digits = true;
    char dash = rest.peek();
    if (digits && !rest.done() && (dash == '-' || dash == '/' || dash == '\\' || dash == ' ')) return true;
    Reading sign = text;
    if (sign.peek() == '-' || sign.peek() == '+') ++sign.at;
    Reading three{sign.at, sign.end - sign.at > 3 ? sign.at + 3 : sign.end};
    Reading five{text.at, text.end - text.at > 5 ? text.at + 5 : text.end};
    return three.word("inf") || five.word("epoch");
}

inline Outcome parse_timestamp(Reading text, i64& value) {
    Reading rest = text;
    rest.spaces();
    Outcome outcome = Outcome::UNREADABLE;
    i64 day = 0, time = 0;
    bool formed = parse_day(rest, outcome, day);
    if (formed && !rest.done()) {
        bool apart = rest.take('T');
        while (!apart && rest.peek() == ' ') ++rest.at;
        formed = rest.at[-1] == 'T' || rest.at[-1] == ' ' ? parse_time(rest, outcome, time) : false;
    }
    if (!formed) return is_like_a_moment(text) ? Outcome::UNTAKEN : Outcome::UNREADABLE;
    value = day * MICROSECONDS_A_DAY + time;
    return outcome;
}

inline Outcome parse_date(Reading text, i64& value) {
    Reading rest = text;
    rest.spaces();
    Outcome outcome = Outcome::UNREADABLE;
    if (parse_day(rest, outcome, value)) {
        rest.spaces();
        if (rest.done()) return outcome;
    }
    i64 moment = 0;
    outcome = parse_timestamp(text, moment);
    value = floor_div(moment, MICROSECONDS_A_DAY);
    return outcome;
}

// -- doubles

inline Outcome parse_integer(double x, i64& value) {
    double nearest = ::rint(x);
    if (!(-0x1p63 <= nearest && nearest < 0x1p63)) return Outcome::UNREADABLE;
    value = i64(nearest);
    return Outcome::READ;
}

// The product with a power of ten is a double, and is rounded half away from zero.
inline Outcome parse_number(double x, u32 places, i128& value) {
    double units = ::round(x * double(power10(places)));
    if (!(__builtin_fabs(units) < 1e38)) return Outcome::UNREADABLE;
    value = i128(units);
    return Outcome::READ;
}

}  // namespace casts

// -- the functions by name

#define VIEWLET_CAST(name, Given, parse)                                                    \
    inline Given name(Faults& faults, u32 view, const Texts& texts, Text text) {            \
        Given value{};                                                                      \
        casts::Outcome outcome = casts::parse(casts::reading(texts, text), value);          \
        return casts::cast(faults, view, outcome, value);                                   \
    }                                                                                       \
    inline Opt<Given> try_##name(Faults& faults, u32 view, const Texts& texts, Text text) { \
        Given value{};                                                                      \
        casts::Outcome outcome = casts::parse(casts::reading(texts, text), value);          \
        return casts::try_cast(faults, view, outcome, value);                               \
    }
VIEWLET_CAST(read_integer, i64, parse_integer)
VIEWLET_CAST(read_double, double, parse_double)
VIEWLET_CAST(read_boolean, bool, parse_boolean)
VIEWLET_CAST(read_date, i64, parse_date)
VIEWLET_CAST(read_timestamp, i64, parse_timestamp)
#undef VIEWLET_CAST

inline i64 double_to_integer(Faults& faults, u32 view, double x) {
    i64 value = 0;
    casts::Outcome outcome = casts::parse_integer(x, value);
    return casts::cast(faults, view, outcome, value);
}
inline Opt<i64> try_double_to_integer(Faults& faults, u32 view, double x) {
    i64 value = 0;
    casts::Outcome outcome = casts::parse_integer(x, value);
    return casts::try_cast(faults, view, outcome, value);
}

template <class T>
inline T double_to_number(Faults& faults, u32 view, double x, u32 places) {
    i128 value = 0;
    casts::Outcome outcome = casts::parse_number(x, places, value);
    return casts::cast(faults, view, outcome, T(value));
}
template <class T>
inline Opt<T> try_double_to_number(Faults& faults, u32 view, double x, u32 places) {
    i128 value = 0;
    casts::Outcome outcome = casts::parse_number(x, places, value);
    return casts::try_cast(faults, view, outcome, T(value));
}
template <class T>
inline T read_number(Faults& faults, u32 view, const Texts& texts, Text text, u32 places) {
    i128 value = 0;
    casts::Outcome outcome = casts::parse_number(casts::reading(texts, text), places, value);
    return casts::cast(faults, view, outcome, T(value));
}
template <class T>
inline Opt<T> try_read_number(Faults& faults, u32 view, const Texts& texts, Text text, u32 places) {
    i128 value = 0;
    casts::Outcome outcome = casts::parse_number(casts::reading(texts, text), places, value);
    return casts::try_cast(faults, view, outcome, T(value));
}

// -- to text

// x in units of 10^-scale, with all the places of its type, of which there are no fewer.
inline Text show_number(Texts& texts, i128 x, u32 scale, i64 places) {
    char room[64];
    u32 at = sizeof room;
    u128 rest = magnitude(x) * u128(power10(u32(places) - scale));
    for (i64 i = 0; rest || i <= places; rest /= 10, ++i) {
        if (places && i == places) room[--at] = '.';
        room[--at] = char('0' + u32(rest % 10));
    }
    if (x < 0) room[--at] = '-';
    return texts.intern(room + at, sizeof room - at);
}

// The next number of as many digits; false where it has more.
inline bool take_next(char* text) {
    char* at = text + strlen(text);
    while (*--at != 'e') {
    }
    while (at-- > text) {
        if (!casts::is_digit(*at)) continue;
        if (*at != '9') return ++*at, true;
        *at = '0';
    }
    return false;
}

// The fewest digits that are read back as the same double, and the exponent of the first. Above a power of two doubles
// are farther apart than below: there the digits may be those next to the nearest.
inline u32 shortest(double x, char* digits, i64& exponent) {
    char text[40];
    for (int places = 0; places <= 16; ++places) {
        snprintf(text, sizeof text, "%.*e", places, x);
        if (strtod(text, nullptr) == x || (take_next(text) && strtod(text, nullptr) == x)) break;
    }
    u32 count = 0;
    const char* at = text;
    for (; *at != 'e'; ++at)
        if (casts::is_digit(*at)) digits[count++] = *at;
    bool negative = *++at == '-';
    exponent = 0;
    for (++at; *at; ++at) exponent = exponent * 10 + (*at - '0');
    if (negative) exponent = -exponent;
    while (count > 1 && digits[count - 1] == '0') --count;
    return count;
}

// As Python and DuckDB show a double: 0.0001, 1000000000000000.0, 1e+16, 1e-05.
inline Text show_double(Texts& texts, double x) {
    if (x != x) return texts.intern("nan");
    if (!is_finite(x)) return texts.intern(x > 0 ? "inf" : "-inf");
    char digits[24], room[48];
    i64 exponent = 0;
    i64 count = shortest(__builtin_fabs(x), digits, exponent);
    Written text{room, sizeof room};
    if (x < 0) text.put('-');
    if (-4 <= exponent && exponent < 0) {
        text.put("0.");
        for (i64 i = -1; i > exponent; --i) text.put('0');
        for (i64 i = 0; i < count; ++i) text.put(digits[i]);
    } else if (0 <= exponent && exponent < 16) {
        for (i64 i = 0; i <= exponent + 1 || i < count; ++i) {
            if (i == exponent + 1) text.put('.');
            text.put(i < count ? digits[i] : '0');
        }
    } else {
        for (i64 i = 0; i < count; ++i) {
            if (i == 1) text.put('.');
            text.put(digits[i]);
        }
        text.put('e'), text.put(exponent < 0 ? '-' : '+');
        text.number(exponent < 0 ? -exponent : exponent, 2);
    }
    return texts.intern(room, text.length);
}

}  // namespace viewlet
