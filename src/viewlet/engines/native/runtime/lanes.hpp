// What an ordered tree adds up: the values of its entries, in one lane for each view that shares them.
//
// A value is *wild* in its lane if a sum over 2³² such values might overflow, or if it is not finite. Wild values
// count as 0 in the sums that nodes keep. While there are any, the tree goes over its entries instead, with checked
// sums. So nothing is spoilt by a value that goes again.
#pragma once

#include "real.hpp"

namespace viewlet {

enum class Running : u8 { NONE, BEFORE, AFTER, BOTH };  // from which end nodes bound the running sums inside them

constexpr bool is_wild(i64 value) { return value >= i64(1) << 30 || value <= -(i64(1) << 30); }
constexpr bool is_wild(i128 value) { return value >= i128(1) << 94 || value <= -(i128(1) << 94); }
constexpr bool is_wild(Real value) { return !(__builtin_fabs(value.hi) < 0x1p900); }
template <class T>
constexpr T tame(T value) {
    return is_wild(value) ? T{} : value;
}

// The sum of two tame values, or of what nodes know of such.
VIEWLET_INLINE i64 tame_sum(i64 a, i64 b) { return a + b; }
VIEWLET_INLINE i128 tame_sum(i128 a, i128 b) { return a + b; }
VIEWLET_INLINE Real tame_sum(Real a, Real b) { return finite_sum(a, b); }

constexpr bool is_negative(i128 value) { return value < 0; }
constexpr bool is_negative(Real value) { return value.hi < 0; }

// A sum of tame values or of what nodes know of them.
template <class T>
struct Total {
    T sum{};
    VIEWLET_INLINE void add(T value) { sum += value; }
    VIEWLET_INLINE i128 value() const { return sum; }
};
template <>
struct Total<Real> {  // not normalised: only `hi` waits for the summand before
    double hi{}, lo{};
    VIEWLET_INLINE void add(Real value) {
        Real sum = two_sum(hi, value.hi);
        hi = sum.hi, lo += sum.lo + value.lo;
    }
    VIEWLET_INLINE Real value() const { return two_sum(hi, lo); }
};

// Several values at a time: the compiler makes of it what the machine has.
using FourInts = i64 __attribute__((vector_size(32)));
using FourDoubles = double __attribute__((vector_size(32)));
using EightDoubles = double __attribute__((vector_size(64)));  // or four Reals, whose hi and lo take turns
using EightMasks = i64 __attribute__((vector_size(64)));
#if __has_builtin(__builtin_shufflevector)
#define VIEWLET_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else  // g++ 11
#define VIEWLET_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, EightMasks{__VA_ARGS__})
#endif

// A sum of parts of columns, whose room is a multiple of four.
template <class T>
struct PartSum : Total<T> {  // i128
    VIEWLET_INLINE void add(const T* column, u32, u32 from, u32 to) {
        T sum = this->sum;
        for (u32 place = from; place < to; ++place) sum += column[place];
        this->sum = sum;
    }
};
// All places are read and those that are not wanted count as 0: that is cheaper than a loop whose end the machine
// cannot guess.
template <>
struct PartSum<i64> {
    FourInts sums{};

    VIEWLET_INLINE void add(const i64* column, u32 room, u32 from, u32 to) {
        FourInts place = {0, 1, 2, 3};
        for (u32 first = 0; first < room; first += 4, place += 4) {
            FourInts summands;
            __builtin_memcpy(&summands, column + first, sizeof summands);
            sums += summands & (place >= i64(from)) & (place < i64(to));
        }
    }
    VIEWLET_INLINE i128 value() const { return (sums[0] + sums[1]) + (sums[2] + sums[3]); }
};
template <>
struct PartSum<Real> {  // not normalised, as in Total
    EightDoubles his{}, los{};

    VIEWLET_INLINE void add(const Real* column, u32 room, u32 from, u32 to) {
        EightMasks place = {0, 0, 1, 1, 2, 2, 3, 3};
        for (u32 first = 0; first < room; first += 8, place += 8) {
            EightDoubles left, right{};
            take(left, column + first, place, from, to);
            if (likely(room > 4)) take(right, column + first + 4, place + 4, from, to);
            EightDoubles hi = VIEWLET_SHUFFLE(left, right, 0, 8, 2, 10, 4, 12, 6, 14);
            EightDoubles lo = VIEWLET_SHUFFLE(left, right, 1, 9, 3, 11, 5, 13, 7, 15);
            EightDoubles sum = his + hi, part = sum - his;  // 2Sum
            los += ((his - (sum - part)) + (hi - part)) + lo;
            his = sum;
        }
    }
    VIEWLET_INLINE Real value() const {
        FourDoubles a = {his[0], his[1], his[2], his[3]}, b = {his[4], his[5], his[6], his[7]};
        FourDoubles sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
        error += FourDoubles{los[0], los[1], los[2], los[3]} + FourDoubles{los[4], los[5], los[6], los[7]};
        Real left = two_sum(sum[0], sum[1]), right = two_sum(sum[2], sum[3]), all = two_sum(left.hi, right.hi);
        return two_sum(all.hi, ((error[0] + error[1]) + (error[2] + error[3])) + ((left.lo + right.lo) + all.lo));
    }

private:
    // By reference: how vectors are returned depends on the machine.
    static VIEWLET_INLINE void take(EightDoubles& four, const Real* column, const EightMasks& place, u32 from, u32 to) {
        __builtin_memcpy(&four, column, sizeof four);
        four = (EightDoubles)((EightMasks)four & (place >= i64(from)) & (place < i64(to)));
    }
};

// A sum of any values.
struct CheckedTotal {
    Faults& faults;
    u32 view;
    i128 sum{};
    void add(i128 value) { sum = viewlet::add(faults, view, sum, value); }
    i128 value() const { return sum; }
};
template <class T>
struct Checked : CheckedTotal {};
template <>
struct Checked<Real> : RealSum {
    Checked(Faults&, u32) {}
};

VIEWLET_INLINE void add_to(Faults& faults, u32 view, i128& into, i128 sum) { into = add(faults, view, into, sum); }
VIEWLET_INLINE void add_to(Faults&, u32, Real& into, Real sum) { into = into.hi == 0 ? sum : into + sum; }

// Between these are all running sums of a node's entries, and 0.
template <class T>
struct Extent {
    using Bound = T;
    T least{}, greatest{};

    void cover(Total<T> start, T low, T high) {
        low += start.sum, high += start.sum;
        if (low < least) least = low;
        if (high > greatest) greatest = high;
    }
};
template <>
struct Extent<Real> {  // rounded outward, generously
    using Bound = double;
    double least{}, greatest{};

    void cover(Total<Real> start, Real low, Real high) {
        double from = start.hi + start.lo, size = __builtin_fabs(from);
        double lower = from + low.hi - (size + __builtin_fabs(low.hi)) * 0x1p-50;
        double upper = from + high.hi + (size + __builtin_fabs(high.hi)) * 0x1p-50;
        if (lower < least) least = lower;
        if (upper > greatest) greatest = upper;
    }
};

template <class T, Running running = Running::NONE>
struct Lane {
    using Value = T;
    using Bound = typename Extent<T>::Bound;
    static constexpr bool BEFORE = running == Running::BEFORE || running == Running::BOTH;
    static constexpr bool AFTER = running == Running::AFTER || running == Running::BOTH;
    static constexpr bool RUNNING = BEFORE || AFTER;
    // Of one child in an inner node: its sum; how many values below are negative; and where some are, the bounds.
    static constexpr u32 COUNTED = sizeof(T), BOUNDED = COUNTED + (RUNNING ? sizeof(u32) : 0);
    static constexpr u32 WIDTH = BOUNDED + 2 * sizeof(Bound) * (BEFORE + AFTER);
};

// -- lists of lanes

template <u32 n, class First, class... Rest>
struct Nth : Nth<n - 1, Rest...> {};
template <class First, class... Rest>
struct Nth<0, First, Rest...> {
    using type = First;
};
template <u32... n>
struct Numbers {};
template <u32 count, u32... n>
struct UpTo : UpTo<count - 1, count - 1, n...> {};
template <u32... n>
struct UpTo<0, n...> {
    using type = Numbers<n...>;
};

}  // namespace viewlet
