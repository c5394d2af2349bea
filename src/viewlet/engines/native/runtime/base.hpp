// What everything else stands on: integers, NULL, identity and hashing of values. No header of the standard library:
// including one costs more compile time than a whole trigger program.
#pragma once

using size_t = decltype(sizeof 0);

extern "C" {
void* malloc(size_t) noexcept;
void* calloc(size_t, size_t) noexcept;
void* realloc(void*, size_t) noexcept;
void free(void*) noexcept;
void* memcpy(void* __restrict, const void* __restrict, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
int memcmp(const void*, const void*, size_t) noexcept;
size_t strlen(const char*) noexcept;
long write(int, const void*, size_t);
[[noreturn]] void abort() noexcept;
}

#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif

namespace viewlet {

using i32 = int;
using u8 = unsigned char;
using u32 = unsigned;
using i64 = long long;
using u64 = unsigned long long;
using i128 = __int128;
using u128 = unsigned __int128;
static_assert(sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void*) == 8, "viewlet needs a 64-bit machine");

#define VIEWLET_COLD __attribute__((noinline, cold))
#define VIEWLET_INLINE inline __attribute__((always_inline))
// A program with very many places that look something up says VIEWLET_COMPACT: what others have in line at each SITE is
// then a function, with the function OFF_SITE that it calls in line in it. SHARED is left to the compiler by the others.
#ifdef VIEWLET_COMPACT
inline constexpr bool COMPACT = true;
#define VIEWLET_SITE inline __attribute__((noinline))
#define VIEWLET_OFF_SITE VIEWLET_INLINE
#define VIEWLET_SHARED inline __attribute__((noinline))
#else
inline constexpr bool COMPACT = false;
#define VIEWLET_SITE VIEWLET_INLINE
#define VIEWLET_OFF_SITE inline __attribute__((noinline))
#define VIEWLET_SHARED inline
#endif

#if __has_builtin(__is_trivially_destructible)
#define VIEWLET_TRIVIAL(T) __is_trivially_destructible(T)
#else
#define VIEWLET_TRIVIAL(T) __has_trivial_destructor(T)
#endif

constexpr VIEWLET_INLINE bool likely(bool condition) { return __builtin_expect(condition, 1); }
constexpr VIEWLET_INLINE bool unlikely(bool condition) { return __builtin_expect(condition, 0); }

// There is nobody to tell: memory is exhausted, or a map holds more entries than an id can name.
[[noreturn]] VIEWLET_COLD inline void fail(const char* sentence) {
    const char* parts[] = {"viewlet: ", sentence, "\n"};
    for (const char* part : parts)
        if (write(2, part, strlen(part)) < 0) break;
    abort();
}

struct Text {  // a string interned in Texts; 0 is the empty one
    u32 id{};
    bool operator==(const Text&) const = default;
};

// -- identity: what makes two keys one key. Unlike SQL's =, NULL is NULL; NaN is NaN and -0.0 is 0.0 as in DuckDB.

constexpr u64 bits(double value) {
    constexpr u64 nan = 0x7ff8000000000000;
    return value != value ? nan : __builtin_bit_cast(u64, value + 0.0);  // -0.0 + 0.0 is 0.0
}

template <class T>
constexpr bool same(const T& a, const T& b) {
    return a == b;
}
constexpr bool same(double a, double b) { return bits(a) == bits(b); }

// A value or NULL. The value of NULL is T{}, so that identity and hash need not look at it.
template <class T>
struct Opt {
    T value{};
    bool null{true};
    constexpr Opt() = default;
    constexpr Opt(T known) : value(known), null(false) {}
    constexpr bool operator==(const Opt& other) const { return null == other.null && same(value, other.value); }
};

// -- hashing: state and value are multiplied to 128 bits and folded, so that every bit of both counts;
// a table takes its place from short_hash, whose low bits depend on all of them

inline constexpr u64 START = 0x9e3779b97f4a7c15;

// What the hashes of keys start from, another number in each process: nobody can choose keys that meet in one place of a
// table. No order and no file depends on it.
inline u64 seed = START;

constexpr u64 mix(u64 state, u64 value) {
    u128 product = u128(state ^ value) * 0x9fb21c651e98df25;
    return u64(product) ^ u64(product >> 64);
}
constexpr u32 short_hash(u64 hash) { return u32(hash ^ hash >> 32); }
template <class T>  // integers and bool
constexpr u64 mix(u64 state, T value) {
    return mix(state, u64(value));
}
constexpr u64 mix(u64 state, i128 value) { return mix(mix(state, u64(value)), u64(value >> 64)); }
constexpr u64 mix(u64 state, double value) { return mix(state, bits(value)); }
constexpr u64 mix(u64 state, Text value) { return mix(state, u64(value.id)); }
template <class T>
constexpr u64 mix(u64 state, const Opt<T>& value) {
    return mix(value.null ? ~state : state, value.value);
}

// -- SQL's NULL: strict functions and three-valued logic over T or Opt<T>

template <class T>
inline constexpr bool nullable = false;
template <class T>
inline constexpr bool nullable<Opt<T>> = true;

template <class T>
constexpr bool is_null(const T&) {
    return false;
}
template <class T>
constexpr bool is_null(const Opt<T>& value) {
    return value.null;
}

template <class T>
constexpr const T& known(const T& value) {
    return value;
}
template <class T>
constexpr const T& known(const Opt<T>& value) {
    return value.value;
}

template <class T>
struct Nullable {
    using type = Opt<T>;
};
template <class T>
struct Nullable<Opt<T>> {
    using type = Opt<T>;
};

// f of the values, NULL if any of them is; f itself may return Opt.
template <class F, class... Args>
constexpr VIEWLET_INLINE auto lift(F&& f, const Args&... args) {
    if constexpr ((nullable<Args> || ...)) {
        using Result = typename Nullable<decltype(f(known(args)...))>::type;
        return (is_null(args) || ...) ? Result{} : Result(f(known(args)...));
    } else {
        return f(args...);
    }
}

template <class... Args>
constexpr VIEWLET_INLINE auto and3(const Args&... args) {
    bool refuted = ((!is_null(args) && !known(args)) || ...);
    if constexpr ((nullable<Args> || ...))
        return refuted ? Opt<bool>(false) : (is_null(args) || ...) ? Opt<bool>() : Opt<bool>(true);
    else
        return !refuted;
}

template <class... Args>
constexpr VIEWLET_INLINE auto or3(const Args&... args) {
    bool proved = ((!is_null(args) && known(args)) || ...);
    if constexpr ((nullable<Args> || ...))
        return proved ? Opt<bool>(true) : (is_null(args) || ...) ? Opt<bool>() : Opt<bool>(false);
    else
        return proved;
}

template <class T>
constexpr VIEWLET_INLINE auto not3(const T& value) {
    return lift([](bool known) { return !known; }, value);
}

// What a WHERE clause lets through: TRUE, neither FALSE nor NULL.
template <class T>
constexpr VIEWLET_INLINE bool holds(const T& condition) {
    return !is_null(condition) && known(condition);
}

}  // namespace viewlet
