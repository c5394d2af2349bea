// Ordered trees against a naive reference, an array in order, and their inner state against its own rules.
#include "check_tree.hpp"
#include "terms.hpp"

using namespace viewlet;

// -- keys: small sets of values, so that many are equal, with the extremes of their type

constexpr i64 I64_MOST = i64(~u64(0) >> 1);
constexpr i128 I128_MOST = i128(~u128(0) >> 1);

struct Letters {  // strings of different lengths, many the beginnings of others
    char of[8];
    u32 length;
    explicit Letters(u32 n) : length(0) {
        for (; n; n /= 3) of[length++] = char('a' + n % 3);
    }
};

static void make(Texts&, u32 n, i64& key) { key = n == 0 ? -I64_MOST - 1 : n == 1 ? I64_MOST : i64(n) * 5 - 70; }
static void make(Texts&, u32 n, i128& key) {
    key = n == 0 ? -I128_MOST - 1 : n == 1 ? I128_MOST : ((i128(n / 4) - 5) << 64) + n % 4;
}
static void make(Texts&, u32 n, double& key) {
    constexpr double special[] = {__builtin_nan(""), -__builtin_inf(), __builtin_inf(), 0.0, -0.0, 5e-324, -1e308};
    key = n < 7 ? special[n] : double(n) * 0.37 - 4;
}
static void make(Texts& texts, u32 n, Text& key) {
    Letters letters(n);
    key = texts.intern(letters.of, letters.length);
}

static void hold(Texts& texts, Text key) { texts.hold(key); }
static void release(Texts& texts, Text key) { texts.release(key), texts.collect(); }
template <class Key>
static void hold(Texts&, Key) {}
template <class Key>
static void release(Texts&, Key) {}

// -- random changes and questions

template <class Key>
struct Item {
    Key key;
    u32 id;
    i64 count;
    i128 exact;
    Real real;

    void get(i64& value) const { value = count; }
    void get(i128& value) const { value = exact; }
    void get(Real& value) const { value = real; }
};

template <class Key_>
struct Trial {
    using Key = Key_;
    using Tree =
        viewlet::Tree<Key, Lane<i64, Running::BOTH>, Lane<i128, Running::BOTH>, Lane<Real, Running::BOTH>, Lane<Real>>;
    static constexpr u32 MOST = 700;

    Texts texts;
    typename Tree::Nodes nodes;
    Tree tree{nodes};
    Item<Key> items[MOST];  // in order
    u32 size{};
    u32 most, distinct;  // entries, keys
    Random random;
    bool signs, wild;  // which values there are

    Key any_key() {
        Key key;
        make(texts, random.below(distinct), key);
        return key;
    }
    bool before(const Item<Key>& a, const Item<Key>& b) const {
        bool less = precedes(texts, a.key, b.key), greater = precedes(texts, b.key, a.key);
        return less || (!greater && a.id < b.id);
    }

    void any_values(Item<Key>& item) {
        i64 sign = signs && random.below(3) == 0 ? -1 : 1;
        item.count = sign * i64(random.below(20));
        item.exact = sign * (i128(random.below(1000)) << random.below(80));
        item.real = double(sign * i64(random.below(4000))) * 0.25;
        if (!wild || random.below(4)) return;
        constexpr double reals[] = {__builtin_inf(), -__builtin_inf(), __builtin_nan(""), 1e308, -1e308, 0x1p900};
        i64 counts[] = {I64_MOST, -I64_MOST - 1, 1 << 30, -(1 << 30), (1 << 30) - 1, 1 - (1 << 30)};
        i128 exacts[] = {i128(1) << 126, -(i128(1) << 126), i128(1) << 94, -(i128(1) << 94), (i128(1) << 94) - 1, 3};
        item.count = counts[random.below(6)], item.exact = exacts[random.below(6)];
        item.real = reals[random.below(6)];
    }

    void put(const Item<Key>& item) {
        tree.set(texts, item.key, item.id, item.count, item.exact, item.real, item.real);
    }
    void insert() {
        Item<Key> item{};
        item.key = any_key();
        for (u32 taken = 1; taken;) {
            item.id = 1 + random.below(4 * MOST), taken = 0;
            for (u32 i = 0; i < size; ++i) taken += items[i].id == item.id;
        }
        any_values(item);
        hold(texts, item.key);
        u32 i = size++;
        for (; i && before(item, items[i - 1]); --i) items[i] = items[i - 1];
        items[i] = item;
        put(item);
    }
    void update() {
        Item<Key>& item = items[random.below(size)];
        any_values(item);
        put(item);
    }
    void erase(u32 i) {
        Item<Key> item = items[i];
        for (--size; i < size; ++i) items[i] = items[i + 1];
        tree.erase(texts, item.key, item.id);
        tree.erase(texts, item.key, item.id);
        release(texts, item.key);
    }

    // -- questions

    template <u32 lane, class Sum, class Up, class Down>
    void check_sum(const Up& up, const Down& down, const Faults& faults, Sum sum, Faults& expected_faults) {
        using T = typename Tree::template Value<lane>;
        Checked<T> expected{expected_faults, 7};
        for (u32 i = 0; i < size; ++i) {
            T value;
            items[i].get(value);
            if (up(items[i].key) && down(items[i].key)) expected.add(value);
        }
        CHECK(faults.any || sum == expected.value());
    }
    template <u32 lane, class Sum, class Down>
    void check_alone(const Down& down) {
        Faults faults, expected_faults;
        Sum sum{};
        tree.template sum<lane>(faults, 7, Everything{}, down, sum);
        check_sum<lane>(Everything{}, down, faults, sum, expected_faults);
        CHECK(faults.any == expected_faults.any && (!faults.any || faults.overflow_view == 7));
    }
    template <class Up, class Down>
    void check_between(const Up& up, const Down& down) {
        Faults faults, expected_faults;
        i128 count = 0, exact = 0;
        Real real, plain;
        tree.template sum<0, 1, 2, 3>(faults, 7, up, down, count, exact, real, plain);
        check_sum<0>(up, down, faults, count, expected_faults);
        check_sum<1>(up, down, faults, exact, expected_faults);
        check_sum<2>(up, down, faults, real, expected_faults);
        CHECK(faults.any == expected_faults.any && real == plain);
        u32 i = 0;
        for (u32 id : tree.range(up, down)) {
            while (i < size && !(up(items[i].key) && down(items[i].key))) ++i;
            CHECK(i < size && items[i++].id == id);
        }
        for (; i < size; ++i) CHECK(!(up(items[i].key) && down(items[i].key)));
    }
    struct Bound {  // as `up` or as `down`, with the key itself or without
        const Texts& texts;
        Key bound;
        bool up, strict;
        bool operator()(Key key) const {
            bool beyond = up ? precedes(texts, bound, key) : precedes(texts, key, bound);
            return strict ? beyond : beyond || !(up ? precedes(texts, key, bound) : precedes(texts, bound, key));
        }
    };
    void check_range() {
        Bound up{texts, any_key(), true, bool(random.below(2))};
        hold(texts, up.bound);
        Bound down{texts, any_key(), false, bool(random.below(2))};
        hold(texts, down.bound);
        check_between(up, down);
        check_between(up, Everything{});
        check_between(Everything{}, down);
        check_between(Everything{}, Everything{});
        check_alone<0, i128>(down);
        check_alone<1, i128>(down);
        check_alone<2, Real>(down);
        release(texts, up.bound), release(texts, down.bound);
        CHECK(tree.least() == (size ? items[0].id : 0) && tree.greatest() == (size ? items[size - 1].id : 0));
    }

    // Bounds by value say what predicates say, alone and together, and are found as these are.
    template <Side side>
    Beside<Key, side> check_bound() {
        using Bounds = Beside<Key, side>;
        constexpr bool strict = side == Side::ABOVE || side == Side::BELOW;
        auto any = [&] {
            u32 which = random.below(16);
            return Bounds{any_key(), which < 2, which == 2};
        };
        Bounds one = any(), other = any(), narrower = both(one, other);
        for (u32 i = 0; i < size; ++i) {
            Key key = items[i].key;
            bool expected = one.is_open || Bound{texts, one.value, Bounds::UP, strict}(key);
            CHECK(one(key) == (expected && !one.is_shut) && narrower(key) == (one(key) && other(key)));
        }
        return narrower;
    }
    template <Side up, Side down>
    void check_bounds() {
        auto from = check_bound<up>();
        auto to = check_bound<down>();
        check_between(from, to);
        check_between(from, Everything{});
        check_between(Everything{}, to);
    }

    // Conditions of differences, by a guess that is right, nearly right, or wrong. (No such order has a NaN.)
    template <Side side>
    void check_solved() {
        constexpr bool up = Beside<double, side>::UP;
        double by = random.below(9) ? double(random.below(60)) * 0.37 - 9 : __DBL_MAX__;
        double limit = random.below(4) ? double(random.below(40)) / 3 : 1e300;
        bool strict = random.below(2), above = random.below(2), rising = up == above;
        auto holds = [=](double key, Faults& faults) {
            if (key != key) return up;
            Real term = rising ? difference(key, by) : difference(by, key);
            if (is_finite(key) && !is_finite(term.hi)) faults.overflow(5);
            if (above) return strict ? less(Real(limit), term) : !less(term, Real(limit));
            return strict ? less(term, Real(limit)) : !less(Real(limit), term);
        };
        Faults faults;
        double guess = rising ? by + limit : by - limit;
        i64 off[] = {0, 0, 1, -1, 3, -3, 1000000, -1000000};
        auto bound = solved<side>(faults, random.below(9) ? behind(guess, off[random.below(8)]) : off[0] / 0.0, holds);
        for (u32 i = 0; i < size; ++i) {
            Faults none;
            CHECK(bound(items[i].key) == holds(items[i].key, none));
        }
        CHECK(!bound.is_known ||
              (by < 1e300 && __builtin_fabs(guess - bound.bound.value) <= 1e-13 * (1 + greater(guess, -guess))));
        solved_once |= bound.is_known && size > 20;
        if constexpr (up)
            check_between(bound, Everything{});
        else
            check_between(Everything{}, bound);
    }
    static inline bool solved_once{};

    template <u32 lane, bool after, class Holds>
    void check_runs(const Holds& holds) {
        using T = typename Tree::template Value<lane>;
        Faults faults, expected_faults;
        Checked<T> running{expected_faults, 3};
        RunList<Key> runs;
        runs.push({});
        tree.template runs<lane, after>(faults, 3, holds, runs);
        CHECK(!runs.begin()->has_inside && !runs.begin()->has_outside);
        const Run<Key>* run = runs.begin() + 1;
        bool holding = holds(running.value());
        if (holding) CHECK(run != runs.end() && !run->has_inside);
        for (u32 n = 0; n < size; ++n) {
            const Item<Key>& item = items[after ? size - 1 - n : n];
            T value;
            item.get(value);
            running.add(value);
            if (holds(running.value()) == holding) continue;
            CHECK(run != runs.end());
            CHECK(holding ? run->has_outside : run->has_inside);
            CHECK(same(holding ? run->outside : run->inside, item.key));
            run += holding;
            holding = !holding;
        }
        if (holding) CHECK(run != runs.end() && !run->has_outside);
        CHECK(run + holding == runs.end() && faults.any == expected_faults.any);
    }
    template <u32 lane, bool after, class Sum>
    void check_crossings(Sum threshold) {
        for (u32 how = 0; how < 4; ++how)
            check_runs<lane, after>([=](Sum sum) {
                return how == 0 ? sum < threshold : how == 1 ? sum <= threshold : how == 2 ? threshold < sum : true;
            });
    }
    template <u32 lane, class Sum>
    void check_thresholds() {  // near running sums that there are, or none
        using T = typename Tree::template Value<lane>;
        Sum threshold = Sum(double(random.below(200)) - 100);
        for (u32 i = 0, upto = size ? random.below(size) : 0; i < upto; ++i) {
            T value;
            items[i].get(value);
            threshold = threshold + Sum(tame(value));
        }
        check_crossings<lane, false>(threshold);
        check_crossings<lane, true>(threshold);
    }

    void check() {
        TreeCheck::check(texts, tree);
        for (u32 n = 0; n < 6; ++n) check_range();
        if constexpr (__is_same(Key, double) || __is_same(Key, i64)) {
            check_bounds<Side::ABOVE, Side::BELOW>();
            check_bounds<Side::FROM, Side::UP_TO>();
        }
        if constexpr (__is_same(Key, double)) check_solved<Side::FROM>(), check_solved<Side::BELOW>();
        check_thresholds<0, i128>();
        check_thresholds<1, i128>();
        check_thresholds<2, Real>();
    }

    // Grows and shrinks in phases, some of them down to nothing.
    void run(u32 phases) {
        for (u32 phase = 0; phase < phases; ++phase) {
            u32 target = random.below(4) ? random.below(most) : 0, step = 1 + most / 12;
            wild = phase % 4 == 2, signs = phase % 2;
            while (size != target) {
                if (random.below(3) == 0 && size)
                    update();
                else if (size < target)
                    insert();
                else
                    erase(random.below(size));
                if (random.below(step) == 0) check();
            }
            for (u32 i = 0; !signs && i < size; ++i) any_values(items[i]), put(items[i]);
            check();
        }
        while (size) erase(random.below(size));
        CHECK(tree.is_empty() && nodes.bytes() == 0);
        check();
    }
};

template <class Key>
static void against_reference() {
    u32 shapes[][2] = {{6, 4}, {20, 100}, {60, 12}, {300, 200}, {Trial<Key>::MOST, 1000}};
    for (auto [most, distinct] : shapes) {
        auto* trial = new (Placed{calloc(1, sizeof(Trial<Key>))})
            Trial<Key>{{}, {}, {}, {}, 0, most, distinct, {most + distinct}, false, false};
        trial->tree.use(trial->nodes);
        trial->run(SMALL ? 8 : 30);
        trial->~Trial();
        free(trial);
    }
}

// -- large trees

using Plain = Tree<i64, Lane<i64, Running::BEFORE>, Lane<Real, Running::AFTER>>;

// In ascending, descending or any order to many entries and back to none, twice: the second time needs no more memory.
static void grows_and_shrinks(u32 order, u32 count) {
    Texts texts;
    Faults faults;
    Plain::Nodes nodes;
    Plain tree{nodes};
    auto key = [&](u32 n) {
        return order == 0 ? i64(n) : order == 1 ? -i64(n) : i64(mix(START, u64(n)) % (4 * count));
    };
    u64 bytes = 0;
    for (u32 round = 0; round < 2; ++round) {
        for (u32 n = 0; n < count; ++n) {
            tree.set(texts, key(n), n + 1, n % 7, Real(0.5 * (n % 100)));
            if ((n & (n - 1)) == 0) TreeCheck::check(texts, tree);
        }
        TreeCheck::check(texts, tree);
        CHECK(TreeCheck::height(tree) <= 6);
        i128 sum = 0;
        tree.sum<0>(faults, 0, Everything{}, Everything{}, sum);
        CHECK(sum == i128(count / 7) * 21 + i128(count % 7) * (count % 7 - 1) / 2);
        if (round) CHECK(nodes.bytes() <= bytes);
        bytes = nodes.bytes();
        CHECK(bytes < 110 * u64(count));
        for (u32 n = 0; n < count; ++n) {
            tree.erase(texts, key(n), n + 1);
            u32 left = count - n - 1;
            if ((left & (left - 1)) == 0) TreeCheck::check(texts, tree);
        }
        CHECK(tree.is_empty());
    }
}

// A window of live entries moves over many keys: nodes are split and merged all the time, and memory stays.
static void churns(u32 changes) {
    constexpr u32 window = 5000;
    Texts texts;
    Plain::Nodes nodes;
    Plain tree{nodes};
    u64 bytes = 0;
    auto key = [&](u32 n) { return i64(n / 3 + mix(START, u64(n)) % 1000); };
    for (u32 n = 0; n < changes; ++n) {
        tree.set(texts, key(n), n % (2 * window) + 1, 1, Real(1));
        if (n >= window) tree.erase(texts, key(n - window), (n - window) % (2 * window) + 1);
        if (n == 10 * window) bytes = nodes.bytes();
        if (n % 20000 == 0) TreeCheck::check(texts, tree);
    }
    TreeCheck::check(texts, tree);
    CHECK(nodes.bytes() <= bytes + bytes / 5);
}

// Sums lose nothing to what is large and goes again.
static void sums_are_exact() {
    Texts texts;
    Faults faults;
    Plain::Nodes nodes;
    Plain tree{nodes};
    auto whole = [&] {
        Real sum;
        tree.sum<1>(faults, 0, Everything{}, Everything{}, sum);
        return sum;
    };
    for (u32 n = 1; n <= 1000; ++n) tree.set(texts, n, n, 1, Real(0.1));
    Real tenths = whole();
    CHECK(tenths == Real(0.1) * Real(1000));
    double guests[] = {1e17, -1e17, 1e300, __builtin_inf(), -__builtin_inf(), __builtin_nan(""), 1.7e308};
    for (double guest : guests) {
        tree.set(texts, 500, 2000, 1, Real(guest));
        CHECK(equal(whole().hi, guest + tenths.hi));
        tree.set(texts, 501, 2001, 1, Real(-guest));
        if (is_finite(guest)) CHECK(equal(whole().hi, is_wild(Real(guest)) || guest == 1e300 ? whole().hi : tenths.hi));
        tree.erase(texts, 500, 2000);
        tree.erase(texts, 501, 2001);
        if (guest != 1e300) CHECK(whole() == tenths);
    }
    CHECK(!faults.any);
}

// Of keys of 64 bits and a value of 128.
template <Side side>
void check_wide() {
    constexpr i128 values[] = {0, -1, I64_MOST, -I64_MOST - 1, i128(I64_MOST) + 1, -i128(I64_MOST) - 2, i128(1) << 100};
    constexpr i64 keys[] = {0, 1, -1, I64_MOST, -I64_MOST - 1};
    for (i128 value : values)
        for (i64 key : keys) {
            bool above = side == Side::ABOVE && key > value, from = side == Side::FROM && key >= value;
            bool below = side == Side::BELOW && key < value, up_to = side == Side::UP_TO && key <= value;
            CHECK(beside<side>(value)(key) == (above || from || below || up_to));
        }
}

// A condition that some key makes overflow is asked of the keys, and says so.
static void overflows_are_met(double factor, double large, bool is_known) {
    using Ordered = Tree<double, Lane<i64>>;
    Texts texts;
    Ordered::Nodes nodes;
    Ordered tree{nodes};
    auto counted = [&](bool overflows) {
        Faults faults;
        auto bound = solved<Side::FROM>(faults, 5 / factor, [=](double key, Faults& met) {
            Real term = product(key, factor);
            if (!is_finite(term.hi)) met.overflow(5);
            return less(Real(5), term);
        });
        i128 count = 0;
        CHECK(bound.is_known == is_known && !faults.any);
        tree.sum<0>(faults, 7, bound, Everything{}, count);
        CHECK(faults.any == overflows);
        return i64(count);
    };
    tree.set(texts, 5.5 / factor, 1, 1), tree.set(texts, 4.5 / factor, 2, 1);
    CHECK(counted(false) == 1);
    tree.set(texts, large, 3, 1);
    CHECK(counted(true) == 2);
    tree.erase(texts, large, 3);
    CHECK(counted(false) == 1);
}

int main() {
    overflows_are_met(2, 1.7e308, true);
    overflows_are_met(1e10, 1e299, false);
    check_wide<Side::ABOVE>(), check_wide<Side::FROM>(), check_wide<Side::BELOW>(), check_wide<Side::UP_TO>();
    against_reference<i64>();
    against_reference<i128>();
    against_reference<double>();
    against_reference<Text>();
    for (u32 order = 0; order < 3; ++order) grows_and_shrinks(order, SMALL ? 20'000 : 100'000);
    churns(SMALL ? 100'000 : 1'000'000);
    sums_are_exact();
    CHECK(Trial<double>::solved_once);
    printf("trees: ok\n");
}
