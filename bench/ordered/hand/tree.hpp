// An aggregate B-tree by hand: doubles as keys, lanes of doubles as values, and in each node their running sums, so
// that the sum over a range of keys is one look at each level. Lane 0 counts rows; an entry goes when it counts none.
#pragma once
#include "program.hpp"

extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept;

namespace viewlet::hand {

constexpr u32 FAN = 32, PACK = 4, PACKS = FAN / PACK;
using Pack = double __attribute__((vector_size(8 * PACK), may_alias));
using Marks = long long __attribute__((vector_size(8 * PACK)));  // of a comparison: -1 where it holds

template <class Holds> VIEWLET_INLINE u32 count_where(const double (&values)[FAN], const Holds& holds) {
    auto* packs = reinterpret_cast<const Pack*>(values);
    Marks marks{};
    for (u32 p = 0; p < PACKS; ++p) marks += Marks(holds(packs[p]));
    return u32(-(marks[0] + marks[1] + marks[2] + marks[3]));
}

VIEWLET_INLINE void add_from(double (&running)[FAN], u32 place, double summand) {
    auto* packs = reinterpret_cast<Pack*>(running);
    u32 p = place / PACK;
    Pack all{summand, summand, summand, summand};
    Marks late = Marks{0, 1, 2, 3} >= i64(place % PACK);
    packs[p] += Pack(Marks(all) & late);
    while (++p < PACKS) packs[p] += all;
}

template <u32 LANES> struct Lanes {
    double of[LANES]{};
    VIEWLET_INLINE double operator[](u32 lane) const { return of[lane]; }
    VIEWLET_INLINE Lanes& operator+=(const Lanes& other) {
        for (u32 lane = 0; lane < LANES; ++lane) of[lane] += other.of[lane];
        return *this;
    }
    VIEWLET_INLINE Lanes& operator-=(const Lanes& other) {
        for (u32 lane = 0; lane < LANES; ++lane) of[lane] -= other.of[lane];
        return *this;
    }
    VIEWLET_INLINE Lanes operator-(const Lanes& other) const { return Lanes(*this) -= other; }
};

// Past `size`, keys are infinite and running sums stay at the node's total: whole packs can be looked at.
template <u32 LANES> struct Leaf {
    alignas(64) double keys[FAN];
    double running[LANES][FAN];  // over the entries up to this one
    u32 size;

    VIEWLET_INLINE Lanes<LANES> before(u32 place) const {
        Lanes<LANES> sums;
        if (place)
            for (u32 lane = 0; lane < LANES; ++lane) sums.of[lane] = running[lane][place - 1];
        return sums;
    }
    VIEWLET_INLINE Lanes<LANES> at(u32 place) const { return before(place + 1) - before(place); }

    VIEWLET_INLINE void add(u32 place, const Lanes<LANES>& summand) {
        for (u32 lane = 0; lane < LANES; ++lane) add_from(running[lane], place, summand[lane]);
    }

    // Makes room for an entry whose lanes are 0.
    VIEWLET_INLINE void open(u32 place, double key) {
        Lanes<LANES> sums = before(place);
        u64 moved = (FAN - 1 - place) * sizeof(double);
        __builtin_memmove(keys + place + 1, keys + place, moved);
        keys[place] = key;
        for (u32 lane = 0; lane < LANES; ++lane) {
            __builtin_memmove(running[lane] + place + 1, running[lane] + place, moved);
            running[lane][place] = sums[lane];
        }
        ++size;
    }

    // Takes out an entry whose lanes are 0.
    VIEWLET_INLINE void close(u32 place) {
        u64 moved = (FAN - 1 - place) * sizeof(double);
        __builtin_memmove(keys + place, keys + place + 1, moved);
        keys[FAN - 1] = __builtin_inf();
        for (u32 lane = 0; lane < LANES; ++lane)
            __builtin_memmove(running[lane] + place, running[lane] + place + 1, moved);
        --size;
    }

    // The upper half goes to an empty node.
    void halve(Leaf& upper) {
        Lanes<LANES> kept = before(FAN / 2);
        for (u32 from = FAN / 2; from < FAN; ++from) {
            upper.keys[from - FAN / 2] = keys[from];
            keys[from] = __builtin_inf();
        }
        for (u32 lane = 0; lane < LANES; ++lane)
            for (u32 to = 0; to < FAN; ++to) {
                u32 from = to + FAN / 2 < FAN ? to + FAN / 2 : FAN - 1;
                upper.running[lane][to] = running[lane][from] - kept[lane];
            }
        for (u32 lane = 0; lane < LANES; ++lane)
            for (u32 to = FAN / 2; to < FAN; ++to) running[lane][to] = kept[lane];
        size = upper.size = FAN / 2;
    }
};

// keys[i] is a bound: no key of child i is greater, all of child i + 1 are. The last child has none.
template <u32 LANES> struct Inner : Leaf<LANES> {
    Leaf<LANES>* children[FAN];

    void open_child(u32 place, double bound, Leaf<LANES>* child) {
        this->open(place, bound);
        __builtin_memmove(children + place + 1, children + place, (FAN - 1 - place) * sizeof(void*));
        children[place] = child;
    }
    void close_child(u32 place) {
        if (place > 0 && place == this->size - 1) this->keys[place - 1] = __builtin_inf();
        this->close(place);
        __builtin_memmove(children + place, children + place + 1, (FAN - 1 - place) * sizeof(void*));
    }
};

template <u32 LANES> struct Tree {
    using Sums = Lanes<LANES>;
    struct Around {
        Sums below, above;
    };
    struct Cut {
        Sums below;
        double key;  // the first above the cut; infinite where there is none
    };
    struct Last {
        double key;
        Sums lanes;
    };

    Sums total{};

    Tree() : root(make<Node>()) {}
    Tree(const Tree&) = delete;
    ~Tree() { release(root, height); }

    // Adds to an entry, and tells the sums over the entries before and after it.
    VIEWLET_INLINE Around add(double key, const Sums& summand) {
        if (unlikely(root->size == FAN)) grow();
        Inner<LANES>* path[16];
        u32 places[16];
        Sums below;
        Node* node = root;
        for (u32 level = height; level > 0; --level) {
            auto* inner = static_cast<Inner<LANES>*>(node);
            u32 place = place_of(*inner, key);
            if (unlikely(inner->children[place]->size == FAN)) {
                split(*inner, place, level - 1);
                place = place_of(*inner, key);
            }
            below += inner->before(place);
            inner->add(place, summand);
            path[level] = inner, places[level] = place;
            node = inner->children[place];
        }
        u32 place = count_where(node->keys, [=](Pack keys) { return keys < key; });
        below += node->before(place);
        Sums own;
        if (node->keys[place] == key)
            own = node->at(place);
        else
            node->open(place, key);
        node->add(place, summand);
        Sums above = total - below - own;
        total += summand;
        if (own[0] + summand[0] == 0) {
            node->close(place);
            if (unlikely(node->size == 0)) prune(path, places);
        }
        return {below, above};
    }

    // The sums over the keys for which `holds`: those up to some key.
    template <class Holds> VIEWLET_INLINE Sums before(const Holds& holds) const {
        Sums sums;
        const Node* node = root;
        for (u32 level = height;; --level) {
            u32 place = count_where(node->keys, holds);
            sums += node->before(place);
            if (level == 0) return sums;
            node = static_cast<const Inner<LANES>*>(node)->children[place];
        }
    }

    // The same where it is the running sums in a lane (never falling) for which `holds`.
    template <u32 lane, class Holds> VIEWLET_INLINE Cut cut(const Holds& holds) const {
        Sums sums;
        const Node* node = root;
        for (u32 level = height;; --level) {
            double base = sums[lane];
            u32 place = count_where(node->running[lane], [&](Pack running) { return holds(running + base); });
            if (place > node->size) place = node->size;
            sums += node->before(place);
            if (place == node->size) return {sums, __builtin_inf()};
            if (level == 0) return {sums, node->keys[place]};
            node = static_cast<const Inner<LANES>*>(node)->children[place];
        }
    }

    // The greatest key; not for an empty tree.
    VIEWLET_INLINE Last last() const {
        const Node* node = root;
        for (u32 level = height; level > 0; --level)
            node = static_cast<const Inner<LANES>*>(node)->children[node->size - 1];
        return {node->keys[node->size - 1], node->at(node->size - 1)};
    }

private:
    using Node = Leaf<LANES>;
    Node* root;
    u32 height{};  // of a tree that is one leaf: 0

    static VIEWLET_INLINE u32 place_of(const Inner<LANES>& inner, double key) {
        return count_where(inner.keys, [=](Pack bounds) { return bounds < key; });
    }

    template <class T> static T* make() {
        auto* node = static_cast<T*>(aligned_alloc(alignof(T), sizeof(T)));
        if (!node) fail("out of memory for a tree");
        memset(node, 0, sizeof(T));
        for (double& key : node->keys) key = __builtin_inf();
        return node;
    }

    static void release(Node* node, u32 level) {
        if (level)
            for (u32 i = 0; i < node->size; ++i) release(static_cast<Inner<LANES>*>(node)->children[i], level - 1);
        free(node);
    }

    VIEWLET_COLD void grow() {
        auto* above = make<Inner<LANES>>();
        above->open_child(0, __builtin_inf(), root);
        above->add(0, total);
        split(*above, 0, height++);
        root = above;
    }

    VIEWLET_COLD void split(Inner<LANES>& parent, u32 place, u32 level) {
        Node* lower = parent.children[place];
        double bound = lower->keys[FAN / 2 - 1];
        Node* upper = level ? make<Inner<LANES>>() : make<Node>();
        lower->halve(*upper);
        if (level) {
            lower->keys[FAN / 2 - 1] = __builtin_inf();
            memcpy(static_cast<Inner<LANES>*>(upper)->children, static_cast<Inner<LANES>*>(lower)->children + FAN / 2,
                   FAN / 2 * sizeof(void*));
        }
        Sums kept = lower->before(FAN / 2);
        parent.children[place] = upper;
        parent.open_child(place, bound, lower);
        for (u32 lane = 0; lane < LANES; ++lane) parent.running[lane][place] += kept[lane];
    }

    // A leaf is empty: it goes, and every node above it that has no other child.
    VIEWLET_COLD void prune(Inner<LANES>* const* path, const u32* places) {
        for (u32 level = 1; level <= height; ++level) {
            free(path[level]->children[places[level]]);
            path[level]->close_child(places[level]);
            if (path[level]->size) break;
        }
        if (height && root->size == 0) {
            free(root);
            root = make<Node>();
            height = 0;
        }
        while (height && root->size == 1) {
            Node* only = static_cast<Inner<LANES>*>(root)->children[0];
            free(root);
            root = only;
            --height;
        }
    }
};

}  // namespace viewlet::hand
