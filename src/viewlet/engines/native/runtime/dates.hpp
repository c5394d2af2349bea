// Days and months of the proleptic Gregorian calendar. A DATE is days since 1970-01-01, a TIMESTAMP microseconds.
#pragma once

#include "types.hpp"

namespace viewlet {

struct Civil {
    i64 year;
    u32 month, day;  // from 1
};

constexpr i64 floor_divide(i64 value, i64 divisor) {
    return value / divisor - (value % divisor < 0);  // divisor > 0
}

// Years from March on, so that the leap day is the last of its year; 400 of them are 146097 days. (H. Hinnant,
// "chrono-compatible low-level date algorithms".)
constexpr i64 days_from_civil(Civil date) {
    i64 year = date.year - (date.month <= 2), era = floor_divide(year, 400), year_of_era = year - era * 400;
    i64 day_of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

constexpr Civil civil_from_days(i64 days) {
    i64 shifted = days + 719468, era = floor_divide(shifted, 146097), day = shifted - era * 146097;
    i64 year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    i64 day_of_year = day - (365 * year + year / 4 - year / 100), march = (5 * day_of_year + 2) / 153;
    u32 month = u32(march < 10 ? march + 3 : march - 9);
    return {year + era * 400 + (month <= 2), month, u32(day_of_year - (153 * march + 2) / 5 + 1)};
}

constexpr u32 last_day(i64 year, u32 month) {
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 ? 28 + leap : 30 + ((month + month / 8) & 1);
}

// The same day of the month, or its last day, as far from midnight as before.
constexpr i128 add_months_exactly(i64 microseconds, i64 months) {
    i64 days = floor_divide(microseconds, MICROSECONDS_A_DAY);
    Civil date = civil_from_days(days);
    i64 count = date.year * 12 + date.month - 1 + months, year = floor_divide(count, 12);
    u32 month = u32(count - year * 12) + 1, last = last_day(year, month);
    i64 moved = days_from_civil({year, month, date.day < last ? date.day : last});
    return i128(moved) * MICROSECONDS_A_DAY + (microseconds - days * MICROSECONDS_A_DAY);
}

// TIMESTAMP + INTERVAL n MONTH. Code that shows or compares it expects a TIMESTAMP: the years 1 to 9999.
inline i64 add_months(Faults& faults, u32 view, i64 microseconds, i64 months) {
    constexpr i64 ever = 12 * 10'000;
    if (likely(-ever <= months && months <= ever && is_timestamp(microseconds))) {
        i128 moved = add_months_exactly(microseconds, months);
        if (likely(is_timestamp(moved))) return i64(moved);
    }
    faults.overflow(view);
    return microseconds;
}

}  // namespace viewlet
