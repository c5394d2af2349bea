// NULL, identity and hashing, mostly while compiling; exact numbers at their limits.
#include "check.hpp"
#include "dates.hpp"
#include "numbers.hpp"

using namespace viewlet;

constexpr Opt<bool> NULL3{};
constexpr Opt<bool> TRUE3{true}, FALSE3{false};
constexpr auto SUM = [](auto a, auto b) { return a + b; };
constexpr auto QUOTIENT = [](i64 a, i64 b) { return b == 0 ? Opt<i64>() : Opt<i64>(a / b); };
template <class T>
constexpr bool is_bool(T) {
    return false;
}
constexpr bool is_bool(bool) { return true; }

static_assert(lift(SUM, i64(2), i64(3)) == 5);
static_assert(lift(SUM, Opt<i64>(2), i64(3)) == Opt<i64>(5));
static_assert(lift(SUM, Opt<i64>(), i64(3)).null && lift(SUM, i64(3), Opt<i64>()).null);
static_assert(lift(SUM, Opt<i64>(), i64(3)).value == 0, "a null holds nothing");
static_assert(lift(QUOTIENT, Opt<i64>(6), i64(3)) == Opt<i64>(2), "an Opt of an Opt is an Opt");
static_assert(lift(QUOTIENT, i64(6), i64(0)).null && lift(QUOTIENT, Opt<i64>(6), i64(0)).null);

static_assert(and3(true, true) && !and3(true, false) && is_bool(and3(true, true)) && !is_bool(and3(true, NULL3)));
static_assert(and3(TRUE3, true) == TRUE3 && and3(NULL3, true) == NULL3 && and3(NULL3, false) == FALSE3);
static_assert(and3(NULL3, FALSE3) == FALSE3 && and3(NULL3, NULL3) == NULL3 && and3(true, NULL3, FALSE3) == FALSE3);
static_assert(or3(NULL3, true) == TRUE3 && or3(NULL3, false) == NULL3 && or3(FALSE3, false) == FALSE3);
static_assert(or3(false, true) && !or3(false, false) && or3(NULL3, NULL3, TRUE3) == TRUE3);
static_assert(not3(NULL3) == NULL3 && not3(TRUE3) == FALSE3 && not3(false));
static_assert(holds(true) && holds(TRUE3) && !holds(NULL3) && !holds(FALSE3));

static_assert(Opt<i64>() != Opt<i64>(0) && Opt<i64>() == Opt<i64>() && Opt<Text>().value == Text{0});
constexpr double NOT_A_NUMBER = __builtin_nan("");
static_assert(same(NOT_A_NUMBER, -NOT_A_NUMBER) && same(0.0, -0.0) && !same(0.0, 1.0) && !same(NOT_A_NUMBER, 1.0));
static_assert(Opt<double>(NOT_A_NUMBER) == Opt<double>(NOT_A_NUMBER) && Opt<double>(0.0) == Opt<double>(-0.0));
static_assert(mix(START, 0.0) == mix(START, -0.0) && mix(START, NOT_A_NUMBER) == mix(START, -NOT_A_NUMBER));
static_assert(mix(START, Opt<i64>()) != mix(START, Opt<i64>(0)) && mix(START, true) == mix(START, i64(1)));
static_assert(mix(START, i128(1) << 64) != mix(START, i128(0)) && mix(START, i128(-1)) != mix(START, i128(1)));
static_assert(bits(1.0) == 0x3ff0000000000000);

constexpr i128 GREATEST = i128(~u128(0) >> 1), LEAST = -GREATEST - 1;

static void overflow_is_seen() {
    Faults faults;
    CHECK(add(faults, 1, GREATEST, -1) == GREATEST - 1 && add(faults, 1, LEAST, GREATEST) == -1 && !faults.any);
    CHECK(subtract(faults, 1, -1, LEAST) == GREATEST && !faults.any);
    add(faults, 7, GREATEST, 1);
    add(faults, 8, LEAST, -1);
    CHECK(faults.any && faults.overflow_view == 7 && faults.wild_view == Faults::NONE);
    faults.clear();
    CHECK(!faults.any && faults.overflow_view == Faults::NONE);
    CHECK(narrow(faults, 1, -(i128(1) << 63)) == -__LONG_LONG_MAX__ - 1 && !faults.any);
    narrow(faults, 2, i128(1) << 63);
    CHECK(faults.overflow_view == 2);
}

static void products() {
    Faults faults;
    i128 half = i128(1) << 63, root = (i128(1) << 64) - 1;
    CHECK(mul(faults, 1, half, half) == i128(1) << 126 && mul(faults, 1, -half, half) == -(i128(1) << 126));
    CHECK(mul(faults, 1, 2 * half, -half) == LEAST && mul(faults, 1, LEAST, 1) == LEAST);
    CHECK(mul(faults, 1, GREATEST, -1) == -GREATEST && mul(faults, 1, GREATEST, 0) == 0 && !faults.any);
    i128 lost[][2] = {{2 * half, half}, {LEAST, -1}, {GREATEST, 2}, {root, root}, {GREATEST, GREATEST}, {LEAST, LEAST}};
    for (auto& [a, b] : lost) {
        faults.clear();
        mul(faults, 3, a, b);
        CHECK(faults.overflow_view == 3);
        faults.clear();
        mul(faults, 4, b, a);
        CHECK(faults.overflow_view == 4);
    }
}

static void scales() {
    Faults faults;
    CHECK(power10(0) == 1 && power10(18) == 1'000'000'000'000'000'000 && power10(38) / power10(19) == power10(19));
    CHECK(scale_up(faults, 1, 123, 36) == 123 * power10(36) && scale_down(faults, 1, 123 * power10(36), 36) == 123);
    CHECK(scale_down(faults, 1, -500, 2) == -5 && limit(faults, 1, -999, 999) == -999 && !faults.any);
    scale_down(faults, 5, -501, 2);
    CHECK(faults.inexact_view == 5 && faults.overflow_view == Faults::NONE);
    scale_up(faults, 6, 2000, 36);
    CHECK(faults.overflow_view == 6);
    faults.clear();
    limit(faults, 7, 1000, 999);
    CHECK(faults.overflow_view == 7);
}

// Day by day through eight hundred years on each side of year 0.
static void calendar() {
    Civil date{-800, 1, 1};
    for (i64 day = days_from_civil(date); date.year < 800; ++day) {
        Civil back = civil_from_days(day);
        CHECK(days_from_civil(date) == day);
        CHECK(back.year == date.year && back.month == date.month && back.day == date.day);
        if (++date.day <= last_day(date.year, date.month)) continue;
        date.day = 1;
        if (++date.month <= 12) continue;
        date.month = 1;
        ++date.year;
    }
    static_assert(days_from_civil({1970, 1, 1}) == 0 && days_from_civil({2000, 3, 1}) == 11017);
    static_assert(last_day(1900, 2) == 28 && last_day(2000, 2) == 29 && last_day(-4, 2) == 29 && last_day(7, 7) == 31);
    static_assert(last_day(1, 4) == 30 && last_day(1, 8) == 31 && last_day(1, 9) == 30 && last_day(1, 12) == 31);
}

static void months_out_of_range() {
    Faults faults;
    CHECK(add_months(faults, 1, -1, 1) == i64(add_months_exactly(-1, 1)) && !faults.any);
    const i64 many[] = {4'000'000, -8'000'000, __LONG_LONG_MAX__, -__LONG_LONG_MAX__ - 1};
    for (i64 months : many) {
        faults.clear();
        add_months(faults, 2, 0, months);
        CHECK(faults.overflow_view == 2);
    }
}

int main() {
    overflow_is_seen();
    products();
    scales();
    calendar();
    months_out_of_range();
    printf("base: ok\n");
}
