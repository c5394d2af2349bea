// Trees that remember their answers beside the same trees that do not: whatever comes, changes and goes between two
// questions, and however little the bounds move.
#include "check_tree.hpp"
#include "remember.hpp"

using namespace viewlet;

constexpr double ODD[] = {__builtin_nan(""), __builtin_inf(), -__builtin_inf(), -0.0, 1e308};

template <class Key>
static Key key_of(u32 n, bool odd) {
    if constexpr (__is_same(Key, double))
        if (odd && n < 5) return ODD[n];
    return Key(n) - 20;
}

template <class Key>
struct Trial {
    using Tree = RememberingTree<
        Key, Memories<RangeSums<1, 0>, RangeSums<2>, CrossingOf<0, true>, CrossingOf<1, false>, CrossingOf<2, true>>,
        Lane<i64, Running::AFTER>, Lane<Real, Running::BEFORE>, Lane<i128, Running::BOTH>>;
    struct Item {
        Key key;
        u32 id;
    };
    static constexpr u32 MOST = 400;

    Texts texts;
    typename Tree::Nodes nodes;
    Tree tree{nodes};
    Item items[MOST];
    u32 size{}, ids{}, distinct{};
    Random random{};
    bool odd{}, signs{}, wild{}, grows{};
    Key from{}, to{};
    i64 limit{};

    void put(const Item& item) {
        i64 value = i64(random.below(9)) - (signs && random.below(3) == 0 ? 6 : 0);
        Real real = 0.25 * double(value);
        if (wild && random.below(9) == 0) value = i64(1) << 40, real = random.below(2) ? 1e300 : ODD[random.below(3)];
        tree.set(texts, item.key, item.id, value, real, i128(value) << 40);
    }
    void change() {
        u32 what = random.below(5) + (grows ? 0 : 1), which = size ? random.below(size) : 0;
        if (size == 0 || (what < 3 && size < MOST)) {
            items[size] = {key_of<Key>(random.below(distinct), odd), ++ids};
            put(items[size++]);
        } else if (what < 4) {
            put(items[which]);
        } else {
            tree.erase(texts, items[which].key, items[which].id);
            items[which] = items[--size];
        }
    }

    template <class Up, class Down>
    void ask(const Up& up, const Down& down) {
        Faults faults, expected_faults;
        Real real, expected_real;
        i128 count = 0, expected_count = 0, wide = 0, expected_wide = 0;
        tree.template recall_sum<0, 1, 0>(faults, 7, up, down, real, count);
        tree.template recall_sum<1, 2>(faults, 7, up, down, wide);
        tree.template sum<1, 0>(expected_faults, 7, up, down, expected_real, expected_count);
        tree.template sum<2>(expected_faults, 7, up, down, expected_wide);
        CHECK(real == expected_real && count == expected_count && wide == expected_wide);
        CHECK(faults.any == expected_faults.any);
    }
    template <u32 n, u32 lane, bool after>
    void ask_runs(const auto& holds) {
        Faults faults;
        RunList<Key> runs, expected;
        tree.template recall_runs<n, lane, after>(faults, 7, holds, runs);
        tree.template runs<lane, after>(faults, 7, holds, expected);
        const Run<Key>* run = runs.begin();
        for (const Run<Key>& other : expected) {
            CHECK(run != runs.end() && run->has_inside == other.has_inside && run->has_outside == other.has_outside);
            CHECK(!run->has_inside || same(run->inside, other.inside));
            CHECK(!run->has_outside || same(run->outside, other.outside));
            ++run;
        }
        CHECK(run == runs.end());
    }
    void ask_all() {
        using Up = Beside<Key, Side::FROM>;
        using Down = Beside<Key, Side::BELOW>;
        u32 shape = random.below(distinct) ? 0 : 1 + random.below(3);  // mostly asked alike
        if (shape == 0) ask(Up{from}, Down{to});
        if (shape == 1) ask(Up{from}, Everything{});
        if (shape == 2) ask(Everything{}, Down{to});
        if (shape == 3) ask(Everything{}, Everything{});
        ask_runs<2, 0, true>([&](i128 sum) { return sum > limit; });
        ask_runs<3, 1, false>([&](Real sum) { return sum <= Real(0.25 * double(limit)); });
        ask_runs<4, 2, true>([&](i128 sum) { return sum < i128(limit) << 40; });
    }
    void move_bounds() {
        auto any = [&] { return key_of<Key>(random.below(distinct), odd); };
        if (random.below(8) == 0) from = any();
        if (random.below(8) == 0) to = any();
        if (random.below(4) == 0) limit += i64(random.below(9)) - 4;
        if (random.below(50) == 0) limit = i64(random.below(4 * size + 1));
    }
    void run(u32 questions) {
        for (u32 n = 0; n < questions; ++n) {
            if (n % 512 == 0) odd = random.below(3) == 0, signs = random.below(3) == 0, wild = random.below(4) == 0;
            if (n % 512 == 0) grows = random.below(3);
            for (u32 changes = random.below(3); changes; --changes) change();
            move_bounds();
            ask_all();
            if (n % 64 == 0) TreeCheck::check(texts, tree);
        }
        while (size) --size, tree.erase(texts, items[size].key, items[size].id), ask_all();
        CHECK(tree.is_empty());
    }
};

template <class Key>
static void asks_again_and_again() {
    constexpr u32 shapes[] = {3, 40, 2000};
    for (u32 distinct : shapes) {
        auto* trial = new (Placed{calloc(1, sizeof(Trial<Key>))}) Trial<Key>;
        trial->distinct = distinct, trial->random = {distinct};
        trial->tree.use(trial->nodes);
        trial->run(SMALL ? 5'000 : 60'000);
        trial->~Trial();
        free(trial);
    }
}

// A bound that passes no key is answered without the tree: what the tree holds there is spoilt, and nobody notices.
static void answers_are_remembered() {
    using Tree = RememberingTree<double, Memories<RangeSums<0>>, Lane<i64>>;
    Texts texts;
    Faults faults;
    Tree::Nodes nodes;
    Tree tree{nodes};
    auto counted = [&](double from) {
        i128 count = 0;
        tree.recall_sum<0, 0>(faults, 7, Beside<double, Side::FROM>{from}, Everything{}, count);
        return i64(count);
    };
    for (u32 n = 1; n <= 100; ++n) tree.set(texts, n, n, 1);
    CHECK(counted(50.5) == 50);
    TreeCheck::spoil<0>(tree, 70);
    CHECK(counted(50.1) == 50 && counted(51) == 50);
    tree.set(texts, 200, 200, 1), tree.set(texts, 3, 3, 7);
    CHECK(counted(50.9) == 51);
    CHECK(counted(50) == 52 + 70);
}

int main() {
    asks_again_and_again<double>();
    asks_again_and_again<i64>();
    answers_are_remembered();
    printf("memories: ok\n");
}
