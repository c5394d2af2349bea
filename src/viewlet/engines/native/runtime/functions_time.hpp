// Functions of days and moments, whatever the year. Months are counted from January of the year 0.
#pragma once

#include "dates.hpp"
#include "texts.hpp"

namespace viewlet {

// Divisors and units are positive.
inline i64 floor_div(i64 value, i64 divisor) { return floor_divide(value, divisor); }
inline i64 floor_mod(i64 value, i64 divisor) {
    i64 rest = value % divisor;
    return rest < 0 ? rest + divisor : rest;
}
inline i64 floor_to(i64 value, i64 unit, i64 origin) { return value - floor_mod(value - origin, unit); }

inline i64 months_of(i64 day) {
    Civil date = civil_from_days(day);
    return date.year * 12 + date.month - 1;
}
inline i64 first_of_month(i64 months) {
    i64 year = floor_divide(months, 12);
    return days_from_civil({year, u32(months - year * 12) + 1, 1});
}

// The Monday of the first ISO week in the year of the day's week.
inline i64 first_of_week_year(i64 day) {
    i64 thursday = floor_to(day, 7, -3) + 3;
    i64 january = first_of_month(floor_div(months_of(thursday), 12) * 12);
    return floor_to(january + 3, 7, -3);
}

inline i64 midnight(i64 day) { return day * MICROSECONDS_A_DAY; }

inline i64 moment(Faults& faults, u32 view, i64 microseconds) {
    if (unlikely(!is_timestamp(microseconds))) faults.refuse(view, "a timestamp is not in the years 1 to 9999");
    return microseconds;
}

inline bool is_day(i64 year, i64 month, i64 day) {
    return 1 <= year && year <= 9999 && 1 <= month && month <= 12 && 1 <= day && day <= last_day(year, u32(month));
}
inline i64 make_date(Faults& faults, u32 view, i64 year, i64 month, i64 day) {
    if (likely(is_day(year, month, day))) return days_from_civil({year, u32(month), u32(day)});
    faults.refuse(view, "there is no such date in the years 1 to 9999");
    return 0;
}

// -- as texts

inline constexpr const char* WEEKDAYS[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                           "Thursday", "Friday", "Saturday"};
inline constexpr const char* MONTHS[] = {"January", "February", "March",     "April",   "May",      "June",
                                         "July",    "August",   "September", "October", "November", "December"};

inline const char* name_of_day(i64 day) { return WEEKDAYS[floor_mod(day + 4, 7)]; }
inline const char* name_of_month(i64 day) { return MONTHS[civil_from_days(day).month - 1]; }
inline Text dayname(Texts& texts, i64 day) { return texts.intern(name_of_day(day)); }
inline Text monthname(Texts& texts, i64 day) { return texts.intern(name_of_month(day)); }

// A text in the making; what does not fit is counted and left out.
struct Written {
    char* start;
    u64 room;
    u64 length{};

    void put(char c) {
        if (length < room) start[length] = c;
        ++length;
    }
    void put(const char* text, u64 most = ~u64(0)) {
        for (u64 i = 0; i < most && text[i]; ++i) put(text[i]);
    }
    void number(i64 value, u32 width) {  // not negative
        char digits[20];
        u32 count = 0;
        for (; value || count == 0; value /= 10) digits[count++] = char('0' + value % 10);
        for (u32 i = count; i < width; ++i) put('0');
        while (count) put(digits[--count]);
    }
    void date(i64 day) {
        Civil civil = civil_from_days(day);
        number(civil.year, 4), put('-'), number(civil.month, 2), put('-'), number(civil.day, 2);
    }
    void time(i64 microseconds) {
        i64 seconds = floor_mod(microseconds, MICROSECONDS_A_DAY) / 1000000;
        number(seconds / 3600, 2), put(':'), number(seconds / 60 % 60, 2), put(':'), number(seconds % 60, 2);
    }
};

inline Text show_date(Texts& texts, i64 day) {
    char room[32];
    Written text{room, sizeof room};
    text.date(day);
    return texts.intern(room, text.length);
}

inline Text show_timestamp(Texts& texts, i64 microseconds) {
    char room[64];
    Written text{room, sizeof room};
    text.date(floor_div(microseconds, MICROSECONDS_A_DAY)), text.put(' '), text.time(microseconds);
    if (i64 rest = floor_mod(microseconds, 1000000)) {
        text.put('.'), text.number(rest, 6);
        while (room[text.length - 1] == '0') --text.length;
    }
    return texts.intern(room, text.length);
}

// One specifier of strftime.
VIEWLET_COLD inline void specify(Written& text, char sign, bool bare, i64 at) {
    i64 day = floor_div(at, MICROSECONDS_A_DAY), of_day = at - day * MICROSECONDS_A_DAY;
    Civil date = civil_from_days(day);
    i64 of_year = day - first_of_month(date.year * 12), hour = of_day / 3600000000;
    i64 weekday = floor_mod(day + 4, 7), monday = first_of_week_year(day);
    u32 two = bare ? 0 : 2;
    switch (sign) {
        case 'Y': return text.number(date.year, 4);
        case 'G': return text.number(floor_div(months_of(monday + 3), 12), 4);
        case 'a': return text.put(name_of_day(day), 3);
        case 'A': return text.put(name_of_day(day));
        case 'b':
        case 'h': return text.put(name_of_month(day), 3);
        case 'B': return text.put(name_of_month(day));
        case 'p': return text.put(hour >= 12 ? "PM" : "AM");
        case 'x': return text.date(day);
        case 'X':
        case 'T': return text.time(at);
        case 'c': return text.date(day), text.put(' '), text.time(at);
        case 'm': return text.number(date.month, two);
        case 'd': return text.number(date.day, two);
        case 'y': return text.number(date.year % 100, two);
        case 'H': return text.number(hour, two);
        case 'I': return text.number((hour + 11) % 12 + 1, two);
        case 'M': return text.number(of_day / 60000000 % 60, two);
        case 'S': return text.number(of_day / 1000000 % 60, two);
        case 'j': return text.number(of_year + 1, bare ? 0 : 3);
        case 'f': return text.number(of_day % 1000000, 6);
        case 'g': return text.number(of_day / 1000 % 1000, 3);
        case 'u': return text.number((weekday + 6) % 7 + 1, 1);
        case 'w': return text.number(weekday, 1);
        case 'U': return text.number((of_year + 7 - weekday) / 7, 2);
        case 'W': return text.number((of_year + 7 - (weekday + 6) % 7) / 7, 2);
        case 'V': return text.number((day - monday) / 7 + 1, 2);
    }
}

inline void put_time(Written& text, i64 at, Bytes form) {
    for (u32 i = 0; i < form.length; ++i) {
        if (form.start[i] != '%') {
            text.put(form.start[i]);
            continue;
        }
        bool bare = form.start[++i] == '-';
        specify(text, form.start[i += bare], bare, at);
    }
}

// `form` has only known specifiers; no one of them makes more than 20 characters of its two.
inline Text strftime(Texts& texts, i64 at, Text form) {
    Bytes bytes = texts.bytes(form);
    char small[256];
    u64 most = 10 * u64(bytes.length);
    char* room = most <= sizeof small ? small : (char*)malloc(most);
    if (!room) fail("out of memory");
    Written text{room, most};
    put_time(text, at, bytes);
    Text formed = texts.intern(room, text.length);
    if (room != small) free(room);
    return formed;
}

}  // namespace viewlet
