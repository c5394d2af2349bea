// The Arrow C data interface: the two structs every Arrow library agrees on.
#pragma once
#include "base.hpp"

extern "C" {
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    long long flags;
    long long n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    long long length;
    long long null_count;
    long long offset;
    long long n_buffers;
    long long n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};
}

namespace viewlet {

inline constexpr i64 ARROW_NULLABLE = 2;  // ARROW_FLAG_NULLABLE

// Arrow's way to say "destroyed": a consumer that moved a struct away cleared its release.
template <class T> void release_arrow(T* held) {
    if (held->release) held->release(held);
}

// What both exported structs are made of: one block of memory, the children released with their parent unless moved.
template <class T> void release_exported(T* held) {
    for (i64 i = 0; i < held->n_children; ++i) {
        release_arrow(held->children[i]);
        free(held->children[i]);
    }
    free(held->children);
    free(held->private_data);
    held->release = nullptr;
}

template <class T> void give_children(T& parent, i64 count) {
    parent.n_children = count;
    parent.children = static_cast<T**>(malloc(sizeof(T*) * (count + 1)));
    for (i64 i = 0; i < count; ++i) parent.children[i] = static_cast<T*>(calloc(1, sizeof(T)));
}

}  // namespace viewlet
