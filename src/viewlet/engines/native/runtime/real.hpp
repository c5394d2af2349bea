// Doubles whose sums can be taken back: 106 bits in two doubles, and sums that count infinities and NaN apart.
// Algorithms: Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic building blocks of double-word
// arithmetic", ACM TOMS 44(2), 2017; the number of each is given.
#pragma once

#include "numbers.hpp"

namespace viewlet {

struct Real {  // hi + lo, where hi is the sum rounded; if hi is not finite, lo is 0
    double hi{}, lo{};
    constexpr Real() = default;
    constexpr Real(double value) : hi(value) {}
    constexpr Real(double hi, double lo) : hi(hi), lo(lo) {}
};

constexpr bool is_finite(double value) { return __builtin_fabs(value) <= __DBL_MAX__; }

// a + b as the rounded sum and its error (2Sum)
VIEWLET_INLINE Real two_sum(double a, double b) {
    double sum = a + b, part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

// the same for |a| ≥ |b| or a = 0 (Fast2Sum)
VIEWLET_INLINE Real quick_two_sum(double a, double b) {
    double sum = a + b;
    return {sum, b - (sum - a)};
}

// a · b as the rounded product and its error (2Prod)
VIEWLET_INLINE Real two_prod(double a, double b) {
    double product = a * b;
#if defined(__FMA__) || defined(__aarch64__)
    return {product, __builtin_fma(a, b, -product)};
#else  // Dekker: halves of 26 bits, whose products are exact
    constexpr double split = 134217729;
    double a1 = a * split - (a * split - a), a2 = a - a1;
    double b1 = b * split - (b * split - b), b2 = b - b1;
    return {product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2};
#endif
}

// Once hi is not finite, IEEE's rules for doubles decide; a lost error term leaves a plain double.
VIEWLET_INLINE Real settled(Real result, double plain) {
    if (likely(is_finite(result.hi) && is_finite(result.lo))) return result;
    return is_finite(result.hi) ? Real(result.hi) : Real(plain);
}

inline Real operator-(Real a) { return {-a.hi, -a.lo}; }

// -a where a number is negative, else a.
VIEWLET_INLINE Real opposite_if(i64 negative, Real a) {
    u64 sign = u64(negative) & u64(1) << 63;
    return {__builtin_bit_cast(double, __builtin_bit_cast(u64, a.hi) ^ sign),
            __builtin_bit_cast(double, __builtin_bit_cast(u64, a.lo) ^ sign)};
}

// AccurateDWPlusDW, 6; for what stays finite
VIEWLET_INLINE Real finite_sum(Real a, Real b) {
    Real sum = two_sum(a.hi, b.hi), errors = two_sum(a.lo, b.lo);
    Real upper = quick_two_sum(sum.hi, sum.lo + errors.hi);
    return quick_two_sum(upper.hi, errors.lo + upper.lo);
}
VIEWLET_INLINE Real operator+(Real a, Real b) { return settled(finite_sum(a, b), a.hi + b.hi); }
VIEWLET_INLINE Real operator-(Real a, Real b) { return a + -b; }

// DWTimesDW1, 10
VIEWLET_INLINE Real operator*(Real a, Real b) {
    Real product = two_prod(a.hi, b.hi);
    double cross = a.hi * b.lo + a.lo * b.hi;
    return settled(quick_two_sum(product.hi, product.lo + cross), a.hi * b.hi);
}

// DWDivDW2, 17: the quotient, and the quotient of what it leaves
inline Real operator/(Real a, Real b) {
    double quotient = a.hi / b.hi;
    if (unlikely(!is_finite(quotient) || !is_finite(b.hi))) return quotient;
    Real left = a - b * Real(quotient);
    return settled(quick_two_sum(quotient, left.hi / b.hi), quotient);
}

// -- comparisons, a total order as in DuckDB: NaN equals itself and is greater than all else

constexpr bool less(double a, double b) { return !(a >= b) & (a == a); }
constexpr bool equal(double a, double b) { return a == b || (a != a && b != b); }
constexpr bool less(Real a, Real b) { return less(a.hi, b.hi) | ((a.hi == b.hi) & (a.lo < b.lo)); }
constexpr bool equal(Real a, Real b) { return equal(a.hi, b.hi) && a.lo == b.lo; }

constexpr bool operator==(Real a, Real b) { return equal(a, b); }
constexpr bool operator<(Real a, Real b) { return less(a, b); }
constexpr bool operator>(Real a, Real b) { return less(b, a); }
constexpr bool operator<=(Real a, Real b) { return !less(b, a); }
constexpr bool operator>=(Real a, Real b) { return !less(a, b); }

// -- from exact numbers

// 128 bits in two doubles: below 2¹⁰⁶ nothing is lost.
inline Real real_of(i128 value) {
    double hi = double(value);
    if (likely(value == i64(value) && __builtin_fabs(hi) <= 0x1p53)) return hi;
    u128 rest = u128(value) - (hi < 0x1p127 ? u128(i128(hi)) : u128(1) << 127);
    return quick_two_sum(hi, double(i128(rest)));
}

inline Real real_of(i128 value, u32 scale) {
    return scale == 0 ? real_of(value) : real_of(value) / real_of(power10(scale));
}

// -- sums

// A sum of doubles from which every summand can be taken out again, also infinity and NaN: these are counted. Summands
// of 2⁹⁰⁰ and more are kept apart and scaled down, so that no sum on the way overflows.
struct RealSum {
    struct Wild {
        i64 nan, plus, minus;
        Real huge;  // times 2⁻¹²⁸
        bool is_zero() const { return nan == 0 && plus == 0 && minus == 0 && huge.hi == 0; }
    };
    double hi{}, lo{};
    Wild* wild{};

    RealSum() = default;
    RealSum(const RealSum&) = delete;
    RealSum& operator=(const RealSum&) = delete;
    ~RealSum() { free(wild); }

    VIEWLET_INLINE void add(Real summand) { add(summand, 1); }

    // times > 0: as often inserted; times < 0: deleted. A deleted infinity is one infinity fewer, not its opposite. Once
    // is by far the most frequent, and no branch tells which of the two it is: processors guess that wrong half the time.
    VIEWLET_INLINE void add(Real summand, i64 times) {
        bool once = ((u64(times) + 1) & ~u64(2)) == 0;  // 1 or -1
        if (unlikely(!once || !is_tame(summand))) return add_often(summand, times);
        put(opposite_if(times, summand));
    }

    // Its sums need no look at whether they are finite: fewer than 2⁶³ summands below 2⁹⁰⁰.
    static VIEWLET_INLINE bool is_tame(Real summand) { return __builtin_fabs(summand.hi) < 0x1p900; }

    // All that another one is the sum of: its infinities are as many here as there.
    VIEWLET_INLINE void add(const RealSum& other) {
        if (likely(!other.wild)) return add(Real(other.hi, other.lo));
        Real sum = Real(hi, lo) + Real(other.hi, other.lo);
        hi = sum.hi, lo = sum.lo;
        add_counted(*other.wild);
    }

    bool is_zero() const { return hi == 0 && !wild; }
    bool is_wild() const { return wild && (wild->nan || wild->plus || wild->minus); }

    void clear() {
        hi = lo = 0;
        free(wild);
        wild = nullptr;
    }

    VIEWLET_INLINE Real value() const { return likely(!wild) ? Real(hi, lo) : wild_value(); }

private:
    VIEWLET_INLINE void put(Real tame) {
        Real sum = finite_sum({hi, lo}, tame);
        hi = sum.hi, lo = sum.lo;
    }

    __attribute__((noinline)) void add_often(Real summand, i64 times) {
        Real all = summand * real_of(times);
        is_tame(all) ? put(all) : add_wild(summand, times);
    }

    VIEWLET_COLD void add_wild(Real summand, i64 times) {
        if (times == 0) return;
        Wild more{};
        if (summand.hi != summand.hi)
            more.nan = times;
        else if (!is_finite(summand.hi))
            (summand.hi > 0 ? more.plus : more.minus) = times;
        else
            more.huge = Real(summand.hi * 0x1p-128, summand.lo * 0x1p-128) * real_of(times);
        add_counted(more);
    }

    VIEWLET_COLD void add_counted(const Wild& more) {
        if (!wild && !(wild = (Wild*)calloc(1, sizeof(Wild)))) fail("out of memory");
        wild->nan += more.nan, wild->plus += more.plus, wild->minus += more.minus;
        wild->huge = wild->huge + more.huge;
        if (!wild->is_zero()) return;
        free(wild);
        wild = nullptr;
    }

    VIEWLET_COLD Real wild_value() const {
        constexpr double infinity = __builtin_inf();
        if (wild->nan || (wild->plus && wild->minus)) return __builtin_nan("");
        if (wild->plus || wild->minus) return wild->plus ? infinity : -infinity;
        Real sum = wild->huge + Real(hi * 0x1p-128, lo * 0x1p-128);
        return settled({sum.hi * 0x1p128, sum.lo * 0x1p128}, sum.hi * 0x1p128);
    }
};

}  // namespace viewlet
