// Ordered indexes of a map: one tree, one for each slice, and entries that come, change and go.
#include "check_tree.hpp"
#include "ordered.hpp"

using namespace viewlet;

struct Row {
    i64 a;
    Opt<i64> price;
    i64 g;
    bool operator==(const Row&) const = default;
    u64 hash() const { return mix(mix(mix(START, a), price), g); }
};
struct Pair {
    i64 a, g;
    bool operator==(const Pair&) const = default;
    u64 hash() const { return mix(mix(START, a), g); }
};
struct ByA {
    static u64 hash(const Pair& key) { return mix(START, key.a); }
    static bool same(const Pair& x, const Pair& y) { return x.a == y.a; }
};
struct Sums {
    i64 count{};
    RealSum sum{};
    bool settle() {
        if (count == 0) sum.clear();
        return count == 0;
    }
};
using Rows = OrderedMap<Row, Sums>;
struct ByPrice {
    using Tree = viewlet::Tree<i64, Lane<i64, Running::AFTER>, Lane<Real>>;
    using Slice = NoSlice;
    static bool orders(const Row& row) { return !row.price.null; }
    static i64 by(const Row& row) { return row.price.value; }
    static Slice slice(const Row&) { return {}; }
    template <class Entry>
    static void set(Tree& tree, const Texts& texts, const Entry& entry) {
        tree.set(texts, by(entry.key), entry.head.id, entry.values.count, entry.values.sum.value());
    }
    static bool is_nothing(const Sums& values) { return values.count == 0; }
};
struct ByPriceInSlices : ByPrice {
    using Slice = Pair;
    static Slice slice(const Row& row) { return {row.a, row.g}; }
};

struct Book {
    static constexpr u32 SIDE = 12, PRICES = 20;

    Texts texts;
    Faults faults;
    Rows rows;
    Ordered<Rows, ByPrice> whole;
    Ordered<Rows, ByPriceInSlices, ByA> sliced;
    i64 expected[SIDE][PRICES][SIDE]{};  // the first price is NULL
    Random random{5};

    static Row row(u32 a, u32 price, u32 g) { return {i64(a), price ? Opt<i64>(price) : Opt<i64>(), i64(g)}; }

    void change(u32 a, u32 price, u32 g, i64 times) {
        auto& entry = rows.at(row(a, price, g));
        entry.values.count += times;
        entry.values.sum.add(Real(0.5 * price), times);
        expected[a][price][g] += times;
        rows.touch(entry), rows.touch(entry);
        if (entry.values.count == 0) rows.doubt(entry);
    }
    void put() {
        while (rows.touched.size) {
            auto& entry = rows.next_touched();
            CHECK(!entry.head.touched);
            whole.put(texts, entry);
            sliced.put(texts, entry);
        }
        rows.sweep();
    }

    i128 naive(i64 a, i64 g, i64 above) const {  // a, g < 0: any
        i128 sum = 0;
        for (i64 x = 0; x < SIDE; ++x)
            for (i64 y = 0; y < SIDE; ++y)
                for (i64 price = above + 1; price < PRICES; ++price)
                    if ((a < 0 || a == x) && (g < 0 || g == y)) sum += expected[x][price][y];
        return sum;
    }
    void check() {
        i64 above = random.below(PRICES);
        auto up = [=](i64 price) { return price > above; };
        i128 all = 0, by_slices = 0;
        u32 trees = 0, there = 0;
        whole.only().sum<0>(faults, 0, up, Everything{}, all);
        CHECK(all == naive(-1, -1, above));
        i64 price = 0;
        for (u32 id : whole.only().range(up, Everything{})) {
            CHECK(rows.named(id).key.price.value >= price && rows.named(id).values.count);
            price = rows.named(id).key.price.value;
        }
        for (auto* slice = sliced.slices.first(); slice; slice = sliced.slices.next(slice), ++trees) {
            CHECK(!slice->values.tree.is_empty() && sliced.find(slice->key) == &slice->values.tree);
            TreeCheck::check(texts, slice->values.tree, false);
            slice->values.tree.sum<0>(faults, 0, up, Everything{}, by_slices);
        }
        CHECK(by_slices == all);
        for (i64 a = 0; a < SIDE; ++a) {
            i128 of_a = 0;
            Real real;
            for (auto* slice : sliced.slices.slice<ByA>({a, 0})) {
                CHECK(slice->key.a == a);
                slice->values.tree.sum<0, 1>(faults, 0, up, Everything{}, of_a, real);
            }
            CHECK(of_a == naive(a, -1, above));
            for (i64 g = 0; g < SIDE; ++g) {
                bool any = false;
                for (u32 price = 1; price < PRICES; ++price) any |= expected[a][price][g] != 0;
                auto* tree = sliced.find({a, g});
                CHECK((tree != nullptr) == any);
                there += any;
                i128 sum = 0;
                if (tree) tree->sum<0>(faults, 0, up, Everything{}, sum);
                CHECK(sum == naive(a, g, above));
            }
        }
        CHECK(trees == there && sliced.slices.size() == there);
    }

    void run(u32 rounds) {
        for (u32 round = 0; round < rounds; ++round) {
            bool growing = round % 2 == 0;
            for (u32 n = random.below(3000); n-- > 0;) {
                u32 a = random.below(SIDE), price = random.below(PRICES), g = random.below(SIDE);
                i64 there = expected[a][price][g];
                if (growing && !there) change(a, price, g, 1 + random.below(3));
                if (!growing && there) change(a, price, g, -there);
                if (random.below(9) == 0) change(a, price, g, 1), change(a, price, g, -1);
                if (random.below(4) == 0) put();
            }
            put();
            check();
        }
        for (u32 a = 0; a < SIDE; ++a)
            for (u32 price = 0; price < PRICES; ++price)
                for (u32 g = 0; g < SIDE; ++g) change(a, price, g, -expected[a][price][g]);
        put();
        check();
        CHECK(rows.size() == 0 && whole.only().is_empty() && whole.bytes() == 0 && sliced.nodes.bytes() == 0);
        change(1, 2, 3, 4);
        change(1, 5, 3, 4);
        put();
        change(1, 6, 3, 4);
        rows.clear(), whole.clear(), sliced.clear();
        expected[1][2][3] = expected[1][5][3] = expected[1][6][3] = 0;
        CHECK(rows.touched.size == 0 && !sliced.find({1, 3}) && whole.bytes() == 0);
        put();
        check();
        change(1, 2, 3, 4);
        put();
        check();
    }
};

// Trees of one to four entries: what each costs.
static void small_trees(u32 count) {
    Texts texts;
    Rows rows;
    Ordered<Rows, ByPriceInSlices, ByA> sliced;
    for (i64 a = 0; a < count; ++a)
        for (i64 price = 0; price <= a % 4; ++price) {
            auto& entry = rows.at({a, price, 0});
            entry.values.count = 1;
            sliced.put(texts, entry);
        }
    CHECK(sliced.slices.size() == count && sliced.nodes.bytes() <= count * 180ull);
    for (i64 a = 0; a < count; ++a) CHECK(rows.named(sliced.find({a, 0})->greatest()).key.price.value == a % 4);
}

int main() {
    auto* book = new (Placed{calloc(1, sizeof(Book))}) Book;
    book->run(SMALL ? 20 : 100);
    book->~Book();
    free(book);
    small_trees(10'000);
    printf("ordered: ok\n");
}
