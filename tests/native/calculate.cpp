// A calculator for the tests in Python, whose fractions are the referee: a line with an operation and its arguments in,
// a line with the result out. Doubles are written as their bits.
#include "check.hpp"
#include "dates.hpp"
#include "real.hpp"

using namespace viewlet;

extern "C" {
int scanf(const char*, ...);
int strcmp(const char*, const char*) noexcept;
}

static double read_double() {
    u64 value;
    CHECK(scanf("%llx", &value) == 1);
    return __builtin_bit_cast(double, value);
}
static i64 read_integer() {
    i64 value;
    CHECK(scanf("%lld", &value) == 1);
    return value;
}
static i128 read_wide() {
    i64 high = read_integer();
    u64 low;
    CHECK(scanf("%llu", &low) == 1);
    return i128(u128(u64(high)) << 64 | low);
}
static Real read_real() {
    double hi = read_double();
    return {hi, read_double()};
}

static void print(double value) { printf("%llx\n", __builtin_bit_cast(u64, value)); }
static void print(Real value) {
    printf("%llx %llx\n", __builtin_bit_cast(u64, value.hi), __builtin_bit_cast(u64, value.lo));
}
static void print(i128 value, const Faults& faults) {
    printf("%lld %llu %d\n", i64(value >> 64), u64(value), faults.any);
}

static void exact(const char* operation) {
    Faults faults;
    i128 a = read_wide(), b = read_wide();
    if (!strcmp(operation, "add")) print(add(faults, 1, a, b), faults);
    if (!strcmp(operation, "subtract")) print(subtract(faults, 1, a, b), faults);
    if (!strcmp(operation, "mul")) print(mul(faults, 1, a, b), faults);
}

static void real(const char* operation) {
    Real a = read_real(), b = read_real();
    if (!strcmp(operation, "+")) print(a + b);
    if (!strcmp(operation, "-")) print(a - b);
    if (!strcmp(operation, "*")) print(a * b);
    if (!strcmp(operation, "/")) print(a / b);
}

static bool calculate() {
    char operation[16];
    if (scanf("%15s", operation) != 1) return false;
    if (!strcmp(operation, "add_months")) {
        i64 microseconds = read_integer();
        printf("%lld\n", i64(add_months_exactly(microseconds, read_integer())));
    } else if (!strcmp(operation, "to_double")) {
        i128 value = read_wide();
        print(to_double(value, u32(read_integer())));
    } else if (!strcmp(operation, "real_of")) {
        i128 value = read_wide();
        print(real_of(value, u32(read_integer())));
    } else if (operation[1]) {
        exact(operation);
    } else {
        real(operation);
    }
    return true;
}

int main() {
    while (calculate()) {
    }
}
