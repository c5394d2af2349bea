// Functions of texts, which are sequences of code points in UTF-8.
#pragma once

#include "numbers.hpp"
#include "texts.hpp"

namespace viewlet {

inline bool is_at(const char* at, Bytes part) { return memcmp(at, part.start, part.length) == 0; }

inline bool starts_with(const Texts& texts, Text text, Text prefix) {
    Bytes whole = texts.bytes(text), part = texts.bytes(prefix);
    return part.length <= whole.length && is_at(whole.start, part);
}

inline i64 length(const Texts& texts, Text text) {
    Bytes whole = texts.bytes(text);
    i64 count = 0;
    for (u32 i = 0; i < whole.length; ++i) count += (whole.start[i] & 0xc0) != 0x80;
    return count;
}

}  // namespace viewlet
