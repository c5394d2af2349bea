// Exact numbers: i128 with overflow made visible. A DECIMAL of scale k is its value times 10^k.
#pragma once

#include "base.hpp"

namespace viewlet {

// What went wrong since the last look, and the first view it happened to. Sticky: arithmetic goes on with some value,
// and the caller of the trigger must look before anybody sees the result.
struct Faults {
    static constexpr u32 NONE = ~u32(0);
    bool any{};
    u32 overflow_view{NONE};  // a number does not fit
    u32 inexact_view{NONE};   // a number has more decimals than its place
    u32 wild_view{NONE};      // infinity or NaN where it could not be taken back
    u32 refused_view{NONE};   // a function has no value
    const char* refusal{};    // why

    VIEWLET_COLD void overflow(u32 view) { note(overflow_view, view); }
    VIEWLET_COLD void inexact(u32 view) { note(inexact_view, view); }
    VIEWLET_COLD void wild(u32 view) { note(wild_view, view); }
    VIEWLET_COLD void refuse(u32 view, const char* why) {
        if (refused_view == NONE) refusal = why;
        note(refused_view, view);
    }
    void clear() { *this = Faults{}; }

private:
    void note(u32& first, u32 view) {
        any = true;
        if (first == NONE) first = view;
    }
};

struct Powers {
    i128 of[39];
};
inline constexpr Powers POWERS = [] {
    Powers powers{};
    powers.of[0] = 1;
    for (int k = 1; k < 39; ++k) powers.of[k] = 10 * powers.of[k - 1];
    return powers;
}();
constexpr i128 power10(u32 k) { return POWERS.of[k]; }  // k <= 38

constexpr u128 magnitude(i128 value) { return value < 0 ? -u128(value) : u128(value); }

inline i128 add(Faults& faults, u32 view, i128 a, i128 b) {
    i128 sum;
    if (unlikely(__builtin_add_overflow(a, b, &sum))) faults.overflow(view);
    return sum;
}

inline i128 subtract(Faults& faults, u32 view, i128 a, i128 b) {
    i128 difference;
    if (unlikely(__builtin_sub_overflow(a, b, &difference))) faults.overflow(view);
    return difference;
}

// (a₁·2⁶⁴ + a₀)(b₁·2⁶⁴ + b₀) fits only if a₁ or b₁ is 0. (__builtin_mul_overflow would call what libgcc lacks.)
VIEWLET_COLD inline i128 mul_wide(Faults& faults, u32 view, i128 a, i128 b) {
    u128 x = magnitude(a), y = magnitude(b);
    if (x < y) {
        u128 smaller = x;
        x = y, y = smaller;
    }
    u64 high = u64(x >> 64), low = u64(x);
    u128 upper = u128(high) * u64(y), product = u128(low) * u64(y), sum;
    bool negative = (a < 0) != (b < 0);
    bool lost = (y >> 64) || (upper >> 64) || __builtin_add_overflow(upper << 64, product, &sum);
    if (lost || sum > (u128(1) << 127) - !negative) {
        faults.overflow(view);
        return 0;
    }
    return i128(negative ? -sum : sum);
}

VIEWLET_SHARED i128 mul(Faults& faults, u32 view, i128 a, i128 b) {
    if (likely(a == i64(a) && b == i64(b))) return i128(i64(a)) * i64(b);
    return mul_wide(faults, view, a, b);
}

inline i64 narrow(Faults& faults, u32 view, i128 value) {
    if (unlikely(value != i64(value))) faults.overflow(view);
    return i64(value);
}

// |value| ≤ bound, the greatest number that a DECIMAL(p, s) holds.
inline i128 limit(Faults& faults, u32 view, i128 value, i128 bound) {
    if (unlikely(value > bound || value < -bound)) faults.overflow(view);
    return value;
}

inline i128 scale_up(Faults& faults, u32 view, i128 value, u32 k) { return mul(faults, view, value, power10(k)); }

inline i128 scale_down(Faults& faults, u32 view, i128 value, u32 k) {
    i128 divisor = power10(k);
    bool small = value == i64(value) && divisor == i64(divisor);
    i128 quotient = small ? i64(value) / i64(divisor) : value / divisor;
    if (unlikely(quotient * divisor != value)) faults.inexact(view);
    return quotient;
}

// value / 10^scale, not 0, rounded once: 64 bits or more of the quotient, the last one set if anything is left over.
VIEWLET_COLD inline double divide_rounded(i128 value, u32 scale) {
    u128 divisor = u128(power10(scale)), quotient = magnitude(value) / divisor, rest = magnitude(value) % divisor;
    double unit = 1;
    for (; !(quotient >> 63); unit /= 2) {
        rest <<= 1;
        quotient = quotient << 1 | (rest >= divisor);
        if (rest >= divisor) rest -= divisor;
    }
    double nearest = double(quotient | (rest != 0)) * unit;
    return value < 0 ? -nearest : nearest;
}

// value / 10^scale, the nearest double: below 2⁵³ and 10²³ numerator and divisor are doubles, and one division rounds.
inline double to_double(i128 value, u32 scale) {
    if (scale == 0 || value == 0) return double(value);
    constexpr i64 whole = i64(1) << 53;
    bool plain = value <= whole && value >= -whole && scale <= 22;
    if (likely(plain)) return double(i64(value)) / double(power10(scale));
    return divide_rounded(value, scale);
}

}  // namespace viewlet
