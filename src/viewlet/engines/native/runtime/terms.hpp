// What the terms of a query need besides arithmetic.
#pragma once

#include "dates.hpp"
#include "members.hpp"
#include "real.hpp"

namespace viewlet {

// Of two doubles, with all digits.
VIEWLET_INLINE Real product(double a, double b) { return settled(two_prod(a, b), a * b); }
VIEWLET_INLINE Real sum_of(double a, double b) { return settled(two_sum(a, b), a + b); }
VIEWLET_INLINE Real difference(double a, double b) { return sum_of(a, -b); }

// x / 0 is NULL.
VIEWLET_INLINE Opt<Real> divide(Real a, Real b) { return b.hi == 0 ? Opt<Real>() : Opt<Real>(a / b); }

// -- beyond the greatest double

VIEWLET_INLINE bool is_finite(Real value) { return is_finite(value.hi); }
template <class T>
VIEWLET_INLINE bool is_finite(const Opt<T>& value) {
    return is_finite(value.value);
}

// What arithmetic made of doubles: only an infinity among these may have made it infinite, or a NaN.
template <class... Given>
VIEWLET_INLINE Real bounded(Faults& faults, u32 view, Real value, const Given&... given) {
    if (unlikely(!is_finite(value)) && (is_finite(given) && ...)) faults.overflow(view);
    return value;
}
template <class... Given>
VIEWLET_INLINE Opt<Real> bounded(Faults& faults, u32 view, const Opt<Real>& value, const Given&... given) {
    bounded(faults, view, value.value, given...);
    return value;
}

inline i64 absolute(i64 value) { return value < 0 ? -value : value; }
inline i128 absolute(i128 value) { return value < 0 ? -value : value; }
inline double absolute(double value) { return __builtin_fabs(value); }
inline Real absolute(Real value) { return value.hi < 0 ? -value : value; }

template <class T>
constexpr T coalesce(const Opt<T>& first, const T& second) {
    return first.null ? second : first.value;
}
template <class T>
constexpr Opt<T> coalesce(const Opt<T>& first, const Opt<T>& second) {
    return first.null ? second : first;
}

inline bool is_zero(i64 value) { return value == 0; }
inline bool is_zero(i128 value) { return value == 0; }
inline bool is_zero(double value) { return value == 0; }
inline bool is_zero(Real value) { return value.hi == 0; }
inline bool is_zero(const RealSum& value) { return value.is_zero(); }

// Does x × 10^-k have no digits after the point? A key of fewer places holds no other values.
inline bool ends(i128 value, u32 k) { return value % power10(k) == 0; }
inline bool fits(i128 value) { return value == i64(value); }

// Is a double an integer of at most so many bits? Others are in no key of such integers.
inline bool is_whole(double value, u32 bits) {
    return __builtin_fabs(value) <= double(u64(1) << bits) && double(i64(value)) == value;
}
inline i64 whole(double value) { return is_whole(value, 62) ? i64(value) : 0; }
inline bool is_whole(Real value, u32 bits) { return value.lo == 0 && is_whole(value.hi, bits); }
inline i64 whole(Real value) { return whole(value.hi); }

// -- refreshing a value

VIEWLET_SHARED void increase(Faults& faults, u32 view, i64& value, i64 by) {
    if (unlikely(__builtin_add_overflow(value, by, &value))) faults.overflow(view);
}
VIEWLET_SHARED void increase(Faults& faults, u32 view, i128& value, i128 by) { value = add(faults, view, value, by); }
// The halves of a Real go apart: a function that is not in line would store them one by one and load them as one, which
// stalls the machine.
VIEWLET_SHARED void add_halves(RealSum& value, double hi, double lo, i64 times) { value.add(Real(hi, lo), times); }
VIEWLET_INLINE void increase(Faults&, u32, RealSum& value, Real by, i64 times) {
    add_halves(value, by.hi, by.lo, times);
}
VIEWLET_SHARED void increase(Faults&, u32, RealSum& value, const RealSum& by) { value.add(by); }

// A sum that a user sees may not leave the type of its column.
VIEWLET_SHARED void within(Faults& faults, u32 view, i128 value, i128 low, i128 high) {
    if (unlikely(value < low || value > high)) faults.overflow(view);
}

// A sum of what a view holds and what an event changes: an infinity that goes away is one fewer, not its opposite, and
// which rows made a sum infinite is not known.
VIEWLET_INLINE void finite(Faults& faults, u32 view, Real value) {
    if (unlikely(!is_finite(value.hi))) faults.wild(view);
}

// A product with a sum in it, or what readers multiply with sums: which rows made a product infinite is not known, so
// that it could not be taken out again.
VIEWLET_INLINE void increase_finite(Faults& faults, u32 view, RealSum& value, Real by, i64 times) {
    if (unlikely(!RealSum::is_tame(by)) && !is_finite(by.hi)) faults.wild(view);
    add_halves(value, by.hi, by.lo, times);
}
VIEWLET_SHARED void increase_finite(Faults& faults, u32 view, RealSum& value, const RealSum& by) {
    if (unlikely(by.is_wild())) faults.wild(view);
    value.add(by);
}

}  // namespace viewlet
