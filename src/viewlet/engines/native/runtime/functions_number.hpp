// Functions of numbers: exact ones in units of 10^-scale, the others of doubles, by the C library.
#pragma once

#include "real.hpp"
#include "texts.hpp"

extern "C" {
double sqrt(double) noexcept;
double cbrt(double) noexcept;
double exp(double) noexcept;
double log(double) noexcept;
double log10(double) noexcept;
double log2(double) noexcept;
double sin(double) noexcept;
double cos(double) noexcept;
double tan(double) noexcept;
double asin(double) noexcept;
double acos(double) noexcept;
double atan(double) noexcept;
double sinh(double) noexcept;
double cosh(double) noexcept;
double tanh(double) noexcept;
double asinh(double) noexcept;
double acosh(double) noexcept;
double atanh(double) noexcept;
double atan2(double, double) noexcept;
double pow(double, double) noexcept;
double fmod(double, double) noexcept;
double floor(double) noexcept;
double ceil(double) noexcept;
double trunc(double) noexcept;
double round(double) noexcept;
double rint(double) noexcept;
}

namespace viewlet {

// -- doubles

inline constexpr const char* NO_VALUE = "a function of numbers has no value for some argument";

// Only an infinity or a NaN may lead to one.
template <class... Given>
VIEWLET_INLINE double checked(Faults& faults, u32 view, double value, Given... given) {
    if (likely(is_finite(value))) return value;
    bool finite = (is_finite(given) && ...), nan = ((given != given) || ...);
    if (finite || (value != value && !nan)) faults.refuse(view, NO_VALUE);
    return value;
}

template <double (*F)(double)>
inline double computed(Faults& faults, u32 view, double x) {
    return checked(faults, view, F(x), x);
}
template <double (*F)(double, double)>
inline double computed(Faults& faults, u32 view, double x, double y) {
    return checked(faults, view, F(x, y), x, y);
}

// The nearest REAL.
inline double single(Faults& faults, u32 view, double x) { return checked(faults, view, float(x), x); }

inline double log_base(Faults& faults, u32 view, double base, double x) {
    return checked(faults, view, ::log10(x) / ::log10(base), base, x);
}

// x % 0 is NULL.
inline Opt<double> fmod_double(Faults& faults, u32 view, double x, double y) {
    if (y == 0) return {};
    return checked(faults, view, ::fmod(x, y), x, y);
}

// As DuckDB has it: scaled, made whole and scaled back, all in doubles.
template <double (*Whole)(double)>
inline double at_places(double x, i64 places) {
    double unit = ::pow(10.0, double(places < 0 ? -places : places));
    if (places < 0) {
        double scaled = Whole(x / unit) * unit;
        return is_finite(scaled) ? scaled : 0;
    }
    double scaled = Whole(x * unit) / unit;
    return is_finite(scaled) ? scaled : x;
}
inline double round_places(Faults&, u32, double x, i64 places) { return at_places<::round>(x, places); }
inline double trunc_places(Faults&, u32, double x, i64 places) { return at_places<::trunc>(x, places); }

// -- exact numbers: x is units of 10^-scale, the outcome of 10^-places, places <= scale unless nothing is to do

template <class T>
inline T trunc_number(i128 x, u32 scale, u32 places) {
    return T(places >= scale ? x * power10(places - scale) : x / power10(scale - places));
}

// Half away from zero.
template <class T>
inline T round_number(i128 x, u32 scale, u32 places) {
    if (places >= scale) return trunc_number<T>(x, scale, places);
    i128 unit = power10(scale - places), quotient = x / unit, rest = x % unit;
    if (magnitude(rest) >= u128(unit) - magnitude(rest)) quotient += x < 0 ? -1 : 1;
    return T(quotient);
}

template <class T>
inline T floor_number(i128 x, u32 scale, u32) {
    i128 unit = power10(scale), quotient = x / unit;
    return T(quotient - (x % unit < 0));
}

template <class T>
inline T ceil_number(i128 x, u32 scale, u32) {
    i128 unit = power10(scale), quotient = x / unit;
    return T(quotient + (x % unit > 0));
}

template <class T>
inline T within(Faults& faults, u32 view, i128 x, i128 low, i128 high) {
    if (likely(low <= x && x <= high)) return T(x);
    faults.refuse(view, "a number does not fit the type of a cast or a function");
    return 0;
}

template <class T>
inline Opt<T> try_within(i128 x, i128 low, i128 high) {
    return low <= x && x <= high ? Opt<T>(T(x)) : Opt<T>();
}

// With the sign of x; x % 0 is NULL.
template <class T>
inline Opt<T> remainder(T x, T y) {
    if (y == 0) return {};
    return y == -1 ? T(0) : T(x % y);
}

// Towards zero.
inline Opt<i64> quotient(Faults& faults, u32 view, i64 x, i64 y) {
    if (y == 0) return {};
    i128 whole = i128(x) / y;
    if (unlikely(whole != i64(whole))) faults.refuse(view, "a number does not fit the type of a cast or a function");
    return i64(whole);
}

template <class T>
inline i64 sign_of(T x) {
    return (x > 0) - (x < 0);
}

// -- bits

inline i64 bit_and(i64 x, i64 y) { return x & y; }
inline i64 bit_or(i64 x, i64 y) { return x | y; }
inline i64 bit_xor(i64 x, i64 y) { return x ^ y; }

inline i64 shift_left(Faults& faults, u32 view, i64 x, i64 by, i64 bits) {
    if (x == 0 && by >= 0) return 0;
    if (likely(x > 0 && 0 <= by && by < bits && u64(x) < u64(1) << (bits - 1 - by))) return x << by;
    faults.refuse(view, "a number shifted to the left does not fit its type");
    return 0;
}
inline i64 shift_right(i64 x, i64 by, i64 bits) { return 0 <= by && by < bits ? x >> by : 0; }

// -- of two values

template <class T>
constexpr bool precedes(const T& a, const T& b) {
    return a < b;
}
constexpr bool precedes(double a, double b) { return less(a, b); }

template <class T>
inline T greatest(T a, T b) {
    return precedes(a, b) ? b : a;
}
template <class T>
inline T least(T a, T b) {
    return precedes(b, a) ? b : a;
}
inline Text greatest_text(const Texts& texts, Text a, Text b) { return texts.compare(a, b) < 0 ? b : a; }
inline Text least_text(const Texts& texts, Text a, Text b) { return texts.compare(b, a) < 0 ? b : a; }

}  // namespace viewlet
