// A long list of constants in x IN (…) is a sorted array, and a test is one search.
#pragma once

#include "texts.hpp"

namespace viewlet {

template <class T>
bool member(T value, const T* sorted, u32 size) {
    while (size > 1) {
        u32 half = size / 2;
        sorted += value < sorted[half] ? 0 : half;
        size -= half;
    }
    return *sorted == value;
}

// Strings are known by their ids, which they get when the program starts.
struct TextSet {
    TextSet(Texts& texts, const Bytes* words, u32 count) : ids((u32*)malloc(count * sizeof(u32))), size(count) {
        if (!ids) fail("out of memory");
        for (u32 i = 0; i < count; ++i) {
            u32 id = texts.constant(words[i].start, words[i].length).id, at = i;
            for (; at && ids[at - 1] > id; --at) ids[at] = ids[at - 1];  // ids ascend but for words that are known
            ids[at] = id;
        }
    }
    TextSet(const TextSet&) = delete;
    ~TextSet() { free(ids); }

    bool has(Text text) const { return member(text.id, ids, size); }

private:
    u32* ids;
    u32 size;
};

}  // namespace viewlet
