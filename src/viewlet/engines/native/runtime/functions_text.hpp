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

// -- characters

// Writes a code point in UTF-8 and returns its length.
inline u32 put_character(char* to, u32 code) {
    if (code < 0x80) return to[0] = char(code), 1;
    u32 more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    to[0] = char((0xf00 >> more) | code >> 6 * more);
    for (u32 i = 1; i <= more; ++i) to[i] = char(0x80 | (code >> 6 * (more - i) & 0x3f));
    return more + 1;
}

inline Text chr(Faults& faults, u32 view, Texts& texts, i64 code) {
    if (unlikely(code < 0 || code >= 0x110000 || (0xd800 <= code && code < 0xe000))) {
        faults.refuse(view, "a number is not the number of a character");
        return {};
    }
    char written[4];
    return texts.intern(written, put_character(written, u32(code)));
}

}  // namespace viewlet
