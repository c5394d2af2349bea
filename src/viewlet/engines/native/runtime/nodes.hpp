// The shape of ordered trees: nodes made of columns, and how they split and merge. Nothing here knows what keys and
// values are, so that all trees of a program share the code; tree.hpp has what depends on them.
#pragma once

#include "memory.hpp"

namespace viewlet {

inline constexpr u32 INNER_ROOM = 16, LEAF_GRADES = 3;  // leaves of 4, 8 and 16 entries: many trees are small

// A node has room for some entries or children. Behind this head lie its columns, each `room` places long. The first
// two are key and id: in a leaf of each entry; in an inner node of the least entry below each child but the first,
// whose are not used. Places of these two that are not in use repeat the last that is, so that a search may look at
// all. In inner nodes the children are next. All else belongs to the lanes.
struct Node {
    Node* next;  // to the right, on the same level under the same parent or not; nullptr at the end
    u32 id;      // in its pool
    u8 used, room;
    u8 grade;  // which pool
    u8 level;  // 0: a leaf
};

// The bytes of one place of each column, in leaves [0] and in inner nodes [1].
struct Layout {
    static constexpr u32 MOST = 64;

    u32 widths[2][MOST]{};
    u32 columns[2]{}, bytes[2]{};
    void (*refresh)(Node* parent, u32 place){};  // computes again what a node knows of a child

    constexpr void add(u32 kind, u64 width) {
        widths[kind][columns[kind]++] = u32(width);
        bytes[kind] += u32(width);
    }
};

// The pools of nodes that the trees of one index share.
struct NodePools {
    static constexpr u32 INNER = LEAF_GRADES;

    const Layout& layout;
    Segments pools[LEAF_GRADES + 1];

    explicit NodePools(const Layout& layout) : layout(layout) {}
    NodePools(const NodePools&) = delete;
    ~NodePools() { release(); }

    static u32 room(u32 grade) { return grade == INNER ? INNER_ROOM : 4 << grade; }
    u64 object(u32 grade) const { return sizeof(Node) + room(grade) * layout.bytes[grade == INNER]; }

    Node* take(u32 grade, u32 level) {
        u32 id = pools[grade].take(object(grade));
        Node* node = static_cast<Node*>(pools[grade].address(id, object(grade)));
        *node = {nullptr, id, 0, u8(room(grade)), u8(grade), u8(level)};
        return node;
    }
    void give(Node* node) { pools[node->grade].give(node->id, object(node->grade)); }

    u64 bytes() const {
        u64 sum = 0;
        for (u32 grade = 0; grade <= INNER; ++grade) sum += pools[grade].touched(object(grade));
        return sum;
    }
    void release() {
        for (u32 grade = 0; grade <= INNER; ++grade) pools[grade].release(object(grade));
    }
};

// From the root to a leaf, by level: the nodes, and which child was entered or which place of the leaf is meant.
struct Path {
    static constexpr u32 MOST = 24;  // a node but the root has at least four children

    Node* nodes[MOST];
    u32 places[MOST];
};

struct TreeShape {
    NodePools* nodes{};
    Node* root{};  // nullptr: the tree is empty

    static VIEWLET_INLINE char* column(Node* node, u32 offset) {
        return reinterpret_cast<char*>(node + 1) + node->room * offset;
    }
    Node*& child(Node* node, u32 place) const {
        return reinterpret_cast<Node**>(column(node, nodes->layout.widths[1][0] + u32(sizeof(u32))))[place];
    }

    // Whether an erased entry leaves its node with too few: it is evened out with a neighbour, or a root made smaller.
    static bool is_sparse(const Node* node) { return node->used < node->room / 4; }

    // The first `columns` columns of `count` places.
    __attribute__((noinline)) void copy(Node* from, u32 at, Node* to, u32 where, u32 count, u32 columns) const {
        u32 offset = 0;
        for (u32 i = 0; i < columns; ++i) {
            u32 width = nodes->layout.widths[from->level != 0][i];
            __builtin_memmove(column(to, offset) + where * width, column(from, offset) + at * width, count * width);
            offset += width;
        }
    }
    void copy(Node* from, u32 at, Node* to, u32 where, u32 count) const {
        copy(from, at, to, where, count, nodes->layout.columns[from->level != 0]);
    }
    void copy_key(Node* from, u32 at, Node* to, u32 where) const { copy(from, at, to, where, 1, 2); }

    __attribute__((noinline)) void pad(Node* node) const {
        for (u32 place = node->used; place < node->room; ++place) copy_key(node, node->used - 1, node, place);
    }

    // A gap in a node that is not full, or one fewer. Who changes the last of a node's keys pads it.
    void open(Node* node, u32 place) const {
        copy(node, place, node, place + 1, node->used - place);
        ++node->used;
    }
    void close(Node* node, u32 place) const {
        --node->used;
        copy(node, place + 1, node, place, node->used - place);
    }

    // The leaf of the path is full: one node is split, the highest for whose halves there is room above. The path is
    // void then; who wants to insert looks again, and perhaps comes back.
    VIEWLET_COLD void make_room(Path& path) {
        if (root->level == 0 && root->grade < LEAF_GRADES - 1) return change_grade(root->grade + 1);
        u32 level = 0;
        while (path.nodes[level] != root && path.nodes[level + 1]->used == INNER_ROOM) ++level;
        Node* left = path.nodes[level];
        if (left == root) {
            root = nodes->take(NodePools::INNER, level + 1);
            root->used = 1;
            child(root, 0) = left;
            path.nodes[level + 1] = root, path.places[level + 1] = 0;
        }
        Node *right = nodes->take(left->grade, level), *parent = path.nodes[level + 1];
        u32 place = path.places[level + 1];
        right->used = left->used / 2, left->used -= right->used;
        copy(left, left->used, right, 0, right->used);
        right->next = left->next, left->next = right;
        pad(left), pad(right);
        open(parent, place + 1);
        child(parent, place + 1) = right;
        copy_key(right, 0, parent, place + 1);
        pad(parent);
        nodes->layout.refresh(parent, place), nodes->layout.refresh(parent, place + 1);
    }

    // The leaf of the path is sparse, perhaps empty.
    VIEWLET_COLD void mend(const Path& path) {
        if (root->used == 0) return nodes->give(root), void(root = nullptr);
        if (root->level == 0 && root->grade > 0) return change_grade(root->grade - 1);
        for (u32 level = 0; path.nodes[level] != root && is_sparse(path.nodes[level]); ++level)
            even_out(path.nodes[level + 1], path.places[level + 1]);
        if (root->level && root->used == 1) {
            Node* only = child(root, 0);
            nodes->give(root);
            root = only;
        }
    }

private:
    void change_grade(u32 grade) {
        Node* node = nodes->take(grade, 0);
        copy(root, 0, node, 0, root->used);
        node->used = root->used;
        pad(node);
        nodes->give(root);
        root = node;
    }

    // A child and its neighbour become one if they fit, or else share alike.
    void even_out(Node* parent, u32 place) const {
        if (place + 1u == parent->used) --place;
        Node *left = child(parent, place), *right = child(parent, place + 1);
        if (right->level) copy_key(parent, place + 1, right, 0);
        u32 all = left->used + right->used, kept = all <= left->room ? all : all / 2;
        if (left->used < kept) {
            u32 moved = kept - left->used;
            copy(right, 0, left, left->used, moved);
            copy(right, moved, right, 0, right->used - moved);
        } else {
            u32 moved = left->used - kept;
            copy(right, 0, right, moved, right->used);
            copy(left, kept, right, 0, moved);
        }
        left->used = u8(kept), right->used = u8(all - kept);
        pad(left);
        if (right->used) {
            pad(right);
            copy_key(right, 0, parent, place + 1);
            pad(parent);
            nodes->layout.refresh(parent, place + 1);
        } else {
            left->next = right->next;
            nodes->give(right);
            close(parent, place + 1);
            pad(parent);
        }
        nodes->layout.refresh(parent, place);
    }
};

}  // namespace viewlet
