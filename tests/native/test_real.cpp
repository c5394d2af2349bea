// Sums from which every summand can be taken out again, against exact sums in fixed point.
#include "check.hpp"
#include "real.hpp"

using namespace viewlet;

constexpr double INFINITE = __builtin_inf(), NOT_A_NUMBER = __builtin_nan("");

static bool is_nan(double value) { return value != value; }

// Cents up to 10⁵ as doubles are whole multiples of 2⁻⁶⁰, and ten million of them add up in 128 bits.
struct Money {
    RealSum sum;
    i128 exact{};

    void change(double value, i64 times) {
        sum.add(value, times);
        exact += i128(value * 0x1p60) * times;
    }
    double error() const {
        Real difference = sum.value() - real_of(exact) * Real(0x1p-60);
        return __builtin_fabs(difference.hi);
    }
    bool is_nearest() const { return sum.value().hi == double(exact) * 0x1p-60; }
};

template <class T>
static void shuffle(T* values, u32 count, Random& random) {
    for (u32 i = count; i > 1; --i) {
        u32 j = random.below(i);
        T other = values[j];
        values[j] = values[i - 1], values[i - 1] = other;
    }
}

static void money(u32 count) {
    Random random{1};
    Money money;
    auto* values = (double*)malloc(count * sizeof(double));
    for (u32 i = 0; i < count; ++i) values[i] = (1 + random.below(10'000'000)) / 100.0;
    for (u32 i = 0; i < count; ++i) {
        money.change(values[i], 1);
        if (i % 1000 == 0) CHECK(money.is_nearest() && money.error() < 1e-15);
    }
    shuffle(values, count, random);
    for (u32 i = 0; i < count; ++i) {
        money.change(values[i], -1);
        if (i % 1000 == 0) CHECK(money.is_nearest() && money.error() < 1e-15);
    }
    CHECK(money.exact == 0 && __builtin_fabs(money.sum.value().hi) < 1e-12);
    printf("residue of %u amounts: %g\n", count, money.sum.value().hi);
    free(values);
}

// Prices times volumes as 106-bit products; groups of a few rows come and go as they do in an order book.
static void products() {
    Random random{2};
    for (u32 group = 0; group < 20000; ++group) {
        RealSum sum;
        double prices[50], volumes[50];
        u32 size = 1 + random.below(50);
        for (u32 i = 0; i < size; ++i) {
            prices[i] = random.below(1'000'000) / 100.0, volumes[i] = random.unit() * 1000;
            sum.add(Real(prices[i]) * Real(volumes[i]));
        }
        for (u32 i = 0; i < size; ++i) sum.add(Real(prices[i]) * Real(volumes[i]), -1);
        CHECK(__builtin_fabs(sum.value().hi) < 1e-20);
    }
}

static void mixed_scales() {
    RealSum sum;
    sum.add(1.0), sum.add(1e17), sum.add(1e17, -1);
    CHECK(sum.value() == Real(1.0));
    sum.add(1.0, -1);
    CHECK(sum.is_zero());
    sum.add(1e16), sum.add(1e-16), sum.add(1e16, -1);
    CHECK(sum.value() == Real(1e-16));
    sum.add(1e-16, -1);
    CHECK(sum.is_zero());
    constexpr double denormal = 0x1p-1074;
    sum.add(denormal), sum.add(0x1p-1000), sum.add(denormal, 3), sum.add(0x1p-1000, -1);
    CHECK(sum.value() == Real(4 * denormal));
    sum.add(4 * denormal, -1);
    CHECK(sum.is_zero());
    sum.add(-0.0);
    CHECK(sum.is_zero() && sum.value() == Real(0.0));
    sum.add(0.1, 1'000'000'007), sum.add(0.1, -1'000'000'006);
    CHECK(__builtin_fabs((sum.value() - Real(0.1)).hi) < 1e-20);
}

static void infinity_and_nan() {
    RealSum sum;
    sum.add(2.5);
    sum.add(INFINITE);
    CHECK(sum.value().hi == INFINITE && sum.is_wild() && !sum.is_zero());
    sum.add(-INFINITE);
    CHECK(is_nan(sum.value().hi));
    sum.add(INFINITE, -1);
    CHECK(sum.value().hi == -INFINITE);
    sum.add(NOT_A_NUMBER, 2);
    sum.add(-INFINITE, -1);
    CHECK(is_nan(sum.value().hi));
    sum.add(1.5);
    sum.add(NOT_A_NUMBER, -1);
    sum.add(NOT_A_NUMBER, -1);
    CHECK(sum.value() == Real(4.0) && !sum.is_wild() && !sum.wild);
    sum.add(INFINITE, 0);
    CHECK(sum.value() == Real(4.0) && !sum.wild);
    sum.add(NOT_A_NUMBER);
    sum.clear();
    CHECK(sum.is_zero() && sum.value() == Real(0.0));
}

// No sum on the way overflows for good: what is taken out leaves the rest as it was.
static void huge_values() {
    RealSum sum;
    constexpr double most = __DBL_MAX__;
    sum.add(0.1);
    for (int n = 0; n < 5; ++n) sum.add(most);
    CHECK(sum.value().hi == INFINITE && !sum.is_wild() && !sum.is_zero());
    for (int n = 0; n < 4; ++n) sum.add(most, -1);
    CHECK(sum.value().hi == most);
    sum.add(-most);
    CHECK(sum.value() == Real(0.1) && !sum.wild);
    sum.add(0x1p899, 1000), sum.add(0x1p950), sum.add(0x1p899, -1000), sum.add(0x1p950, -1);
    CHECK(sum.value() == Real(0.1));
}

// Forty of everything, and all but five of them out again, one by one or summed up first: what is left is the sum of
// the five.
static void random_mix() {
    const double values[] = {1.1,   -2.7, 1e-9,   3e15,         -4e12, 0.01,    INFINITE, -INFINITE,
                             1e300, -0.0, -1e305, NOT_A_NUMBER, 17,    0x1p-80, 123.45,   0x1p1023};
    Random random{3};
    for (u32 trial = 0; trial < 5000; ++trial) {
        RealSum sum, left, out;
        double chosen[40];
        for (double& choice : chosen) sum.add(choice = values[random.below(16)]);
        shuffle(chosen, 40, random);
        for (u32 i = 0; i < 35; ++i) (trial % 2 ? sum : out).add(chosen[i], -1);
        sum.add(out);
        for (u32 i = 35; i < 40; ++i) left.add(chosen[i]);
        double got = sum.value().hi, expected = left.value().hi;
        CHECK(equal(got, expected) || __builtin_fabs(got - expected) < 1e-12);
    }
}

static void order_is_total() {
    const Real sorted[] = {-INFINITE, {-1, -0x1p-60}, -1.0,     0.0,         0x1p-1074, {1, -0x1p-70},
                           1.0,       {1, 0x1p-70},   INFINITE, NOT_A_NUMBER};
    for (u32 i = 0; i < 10; ++i)
        for (u32 j = 0; j < 10; ++j) {
            Real a = sorted[i], b = sorted[j];
            CHECK((a < b) == (i < j) && (a > b) == (i > j) && (a == b) == (i == j) && (a != b) == (i != j));
            CHECK((a <= b) == (i <= j) && (a >= b) == (i >= j));
            if (a.hi != b.hi) CHECK(less(a.hi, b.hi) == (i < j) && equal(a.hi, b.hi) == (i == j));
        }
    CHECK(equal(0.0, -0.0) && !less(-0.0, 0.0) && Real(0.0) == Real(-0.0) && equal(NOT_A_NUMBER, -NOT_A_NUMBER));
}

static void not_finite() {
    Real one = 1.0, infinite = INFINITE, zero = 0.0;
    CHECK((infinite + one).hi == INFINITE && (infinite + one).lo == 0 && is_nan((infinite - infinite).hi));
    CHECK((infinite * one).hi == INFINITE && is_nan((infinite * zero).hi) && (one / infinite).hi == 0);
    CHECK((one / zero).hi == INFINITE && is_nan((zero / zero).hi) && is_nan((infinite / infinite).hi));
    CHECK((Real(__DBL_MAX__) + Real(__DBL_MAX__)).hi == INFINITE && (Real(1e200) * Real(-1e200)).hi == -INFINITE);
    CHECK((Real(__DBL_MAX__) * one).hi == __DBL_MAX__ && (Real(__DBL_MAX__) / one).hi == __DBL_MAX__);
}

int main() {
    money(SMALL ? 1'000'000 : 10'000'000);
    products();
    mixed_scales();
    infinity_and_nan();
    huge_values();
    random_mix();
    order_is_total();
    not_finite();
    printf("real: ok\n");
}
