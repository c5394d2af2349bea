// The inner state of an ordered tree against its own rules.
#pragma once

#include "check.hpp"
#include "tree.hpp"

namespace viewlet {

struct TreeCheck {
    const Texts& texts;
    u32 nodes{}, entries{};
    Node* leaf{};  // the one that comes next

    template <class Tree>
    static u32 height(const Tree& tree) {
        return tree.shape.root->level;
    }
    template <class Tree>
    static void check(const Texts& texts, const Tree& tree, bool alone = true) {
        TreeCheck check{texts};
        if (tree.shape.root) {
            check.leaf = tree.shape.root;
            while (check.leaf->level) check.leaf = Tree::children(check.leaf)[0];
            check.node(tree, tree.shape.root);
            check.all_lanes(typename Tree::Order{}, tree);
            CHECK(!check.leaf);
        }
        u32 taken = 0;
        for (auto& pool : tree.shape.nodes->pools) taken += pool.size;
        if (alone) CHECK(taken == check.nodes);
    }

    // Adds so much to the last sum that the root knows: the tree is wrong then.
    template <u32 lane, class Tree>
    static void spoil(Tree& tree, i64 by) {
        Node* root = tree.shape.root;
        Tree::template sums<lane>(root)[root->used - 1] += by;
    }

    template <class Key>
    bool in_order(Key a, u32 a_id, Key b, u32 b_id) const {
        return precedes(texts, a, b) || (same(a, b) && a_id < b_id);
    }

    template <class Tree>
    void node(const Tree& tree, Node* node) {
        ++nodes;
        CHECK(node->used >= (node == tree.shape.root ? 1 : node->room / 4) && node->used <= node->room);
        CHECK(node == tree.shape.root || node->room == (node->level ? INNER_ROOM : 4u << (LEAF_GRADES - 1)));
        auto* keys = Tree::keys(node);
        auto* ids = Tree::ids(node);
        for (u32 i = node->level ? 2 : 1; i < node->used; ++i)
            CHECK(in_order(keys[i - 1], ids[i - 1], keys[i], ids[i]));
        for (u32 i = node->used; i < node->room; ++i)
            CHECK(same(keys[i], keys[node->used - 1]) && ids[i] == ids[node->used - 1]);
        if (!node->level) {
            CHECK(node == leaf);
            leaf = leaf->next;
            entries += node->used;
            return;
        }
        CHECK(node->used >= 2);
        for (u32 i = 0; i < node->used; ++i) {
            Node* child = Tree::children(node)[i];
            CHECK(child->level == node->level - 1);
            this->node(tree, child);
            Node *least = child, *greatest = child;
            while (least->level) least = Tree::children(least)[0];
            while (greatest->level) greatest = Tree::children(greatest)[greatest->used - 1];
            u32 last = greatest->used - 1;
            if (i) CHECK(same(keys[i], Tree::keys(least)[0]) && ids[i] == Tree::ids(least)[0]);
            if (i + 1u < node->used)
                CHECK(in_order(Tree::keys(greatest)[last], Tree::ids(greatest)[last], keys[i + 1], ids[i + 1]));
        }
    }

    template <u32... lanes, class Tree>
    static void all_lanes(Numbers<lanes...>, const Tree& tree) {
        (one_lane<lanes>(tree), ...);
    }
    template <u32 lane, class Tree>
    static void one_lane(const Tree& tree) {
        u32 wild = 0, negative = 0;
        for (auto at = tree.range(Everything{}, Everything{}); at != nullptr; ++at) {
            auto value = Tree::template values<lane>(at.leaf)[at.place];
            wild += is_wild(value), negative += is_negative(tame(value));
        }
        CHECK(tree.wild[lane] == wild);
        if constexpr (!Tree::template LaneAt<lane>::RUNNING) negative = 0;
        CHECK(tree.negatives[lane] == negative);
        sums<lane, Tree>(tree.shape.root);
    }

    // Returns the sum of a node's entries, here of values whose sums are exact.
    template <u32 lane, class Tree>
    static Total<typename Tree::template Value<lane>> sums(Node* node) {
        using Lane = typename Tree::template LaneAt<lane>;
        Total<typename Lane::Value> all;
        for (u32 i = 0; i < node->used; ++i) {
            if (!node->level) {
                all.add(tame(Tree::template values<lane>(node)[i]));
                continue;
            }
            Node* child = Tree::children(node)[i];
            auto sum = sums<lane, Tree>(child);
            CHECK(typename Lane::Value(sum.value()) == Tree::template sums<lane>(node)[i]);
            all.add(Tree::template sums<lane>(node)[i]);
            if constexpr (Lane::RUNNING) {
                u32 count = negatives<lane, Tree>(child);
                CHECK(Tree::template counts<lane>(node)[i] == count);
                if constexpr (Lane::BEFORE) extent<lane, false, Tree>(node, i, count);
                if constexpr (Lane::AFTER) extent<lane, true, Tree>(node, i, count);
            }
        }
        return all;
    }
    template <u32 lane, class Tree>
    static u32 negatives(Node* node) {
        u32 count = 0;
        for (u32 i = 0; i < node->used; ++i)
            count += node->level ? negatives<lane, Tree>(Tree::children(node)[i])
                                 : is_negative(tame(Tree::template values<lane>(node)[i]));
        return count;
    }
    template <u32 lane, bool after, class Tree>
    static void extent(Node* node, u32 place, u32 count) {
        using T = typename Tree::template Value<lane>;
        if (!count) return;
        auto least = Tree::template bounds<lane, after>(node)[place];
        auto greatest = Tree::template bounds<lane, after>(node)[INNER_ROOM + place];
        Total<T> running, low, high;
        covered<lane, after, Tree>(Tree::children(node)[place], running, low, high);
        CHECK(T(least) <= T(low.value()) && T(high.value()) <= T(greatest));
        CHECK(T(least) >= T(low.value()) - T(1) && T(greatest) <= T(high.value()) + T(1));
    }
    template <u32 lane, bool after, class Tree, class Total>
    static void covered(Node* node, Total& running, Total& low, Total& high) {
        for (u32 n = 0; n < node->used; ++n) {
            u32 i = after ? node->used - 1 - n : n;
            if (node->level) {
                covered<lane, after, Tree>(Tree::children(node)[i], running, low, high);
                continue;
            }
            running.add(tame(Tree::template values<lane>(node)[i]));
            if (running.value() < low.value()) low = running;
            if (running.value() > high.value()) high = running;
        }
    }
};

}  // namespace viewlet
