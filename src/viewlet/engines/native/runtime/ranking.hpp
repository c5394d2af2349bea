// The rows of a result in its order, so that the first of them are found without a look at the others.
//
// The order is brought up to date when somebody reads: until then it is only marked which rows may have changed. Where
// that became most of them, or nobody has read yet, it is made from all rows.
#pragma once

#include "tree.hpp"
#include "watch.hpp"

namespace viewlet {

// Negative where `a` comes first, positive where `b` does.
template <bool descending, bool nulls_first, class T>
VIEWLET_INLINE int ranked(const Texts& texts, const T& a, const T& b) {
    if (precedes(texts, a, b)) return descending ? 1 : -1;
    if (precedes(texts, b, a)) return descending ? -1 : 1;
    return 0;
}
template <bool descending, bool nulls_first, class T>
VIEWLET_INLINE int ranked(const Texts& texts, const Opt<T>& a, const Opt<T>& b) {
    if (a.null || b.null) return a.null == b.null ? 0 : a.null == nulls_first ? -1 : 1;
    return ranked<descending, nulls_first>(texts, a.value, b.value);
}

// The texts of ranks that no entry of a view has: those that `Rank::each_text(rank, use)` names.
template <class Rank>
struct RankTexts {
    void take_in(const Rank&) {}
    void let_go(const Rank&) {}
};
template <class Rank>
    requires requires(const Rank& rank) { Rank::each_text(rank, [](Text) {}); }
struct RankTexts<Rank> {
    Texts& texts;

    void take_in(const Rank& rank) {
        Rank::each_text(rank, [&](Text text) { texts.take_in(text); });
    }
    void let_go(const Rank& rank) {
        Rank::each_text(rank, [&](Text text) { texts.let_go(text); });
    }
};

// What the row of a key is ordered by, and how often it is there; 0: it is not.
template <class Rank>
struct Standing {
    Rank rank{};
    i64 times{};
    bool marked{};
    bool settle() const { return !times && !marked; }
};

template <class Key, class Rank>
struct Ranking {
    using Order = Tree<Rank, Lane<i64>>;
    static constexpr u32 FEW = 1024;

    [[no_unique_address]] RankTexts<Rank> held;
    Map<Key, Standing<Rank>> rows;
    typename Order::Nodes nodes;
    Order order{nodes};
    Ids marked;
    bool is_kept{};  // else the next read makes it again

    // The row of a key is about to change.
    VIEWLET_COLD void mark(const Key& key) {
        if (is_kept) add(key);
        if (marked.size > rows.size() / 2 + FEW) forget();
    }
    VIEWLET_COLD void add(const Key& key) {
        auto& row = rows.at(key);
        if (row.values.marked) return;
        row.values.marked = true;
        marked.push(row.head.id);
    }

    // `stand` computes where the row of a key stands now.
    template <class Stand>
    VIEWLET_COLD void update(const Texts& texts, Rows& out, const Stand& stand) {
        while (marked.size) {
            auto& row = *at(marked.ids[--marked.size]);
            Standing<Rank> before = row.values, now;
            stand(row.key, now);
            out.uncountable |= now.times < 0;
            if (before.times && !(now.times && before.rank == now.rank)) order.erase(texts, before.rank, row.head.id);
            if (now.times) order.set(texts, now.rank, row.head.id, now.times);
            if (now.times) held.take_in(now.rank);
            if (before.times) held.let_go(before.rank);
            row.values = now;
            if (!now.times) rows.doubt(row);
        }
        rows.sweep();
    }

    // The first `limit` rows after `offset`: `put` takes a key, and how often its row is among them.
    template <class Put>
    VIEWLET_COLD void first(u64 limit, u64 offset, const Put& put) {
        for (u32 id : order.range(Everything{}, Everything{})) {
            if (!limit) return;
            u64 times = u64(at(id)->values.times), skipped = times < offset ? times : offset;
            offset -= skipped, times -= skipped;
            if (times > limit) times = limit;
            limit -= times;
            if (times) put(at(id)->key, i64(times));
        }
    }

    VIEWLET_COLD void forget() {
        is_kept = false;
        marked.size = 0;
        for (auto* row : rows.all())
            if (row->values.times) held.let_go(row->values.rank);
        rows.clear();
        nodes.release();
        order.~Order();
        new (Placed{&order}) Order{nodes};
    }

private:
    auto* at(u32 id) {
        using Entry = typename Map<Key, Standing<Rank>>::Entry;
        return static_cast<Entry*>(rows.parts().entries.address(id, sizeof(Entry)));
    }
};

}  // namespace viewlet
