// Functions of texts, which are sequences of code points in UTF-8. algebra/functions/text.py says what they mean.
#pragma once

#include "numbers.hpp"
#include "texts.hpp"

extern "C" void* memchr(const void*, int, size_t) noexcept;

namespace viewlet {

inline constexpr u32 NOWHERE = ~u32(0);
inline constexpr i64 LONGEST = 0xffffffff;  // bytes of a text

// A text in the making; a short one needs no memory of its own.
struct Draft {
    char own[256];
    char* start = own;
    u64 length{}, room = sizeof own;

    Draft() {}
    Draft(const Draft&) = delete;
    ~Draft() {
        if (start != own) free(start);
    }

    char* more(u64 bytes) {
        if (unlikely(length + bytes > room)) grow(2 * (length + bytes));
        length += bytes;
        return start + length - bytes;
    }
    void add(Bytes part) { memcpy(more(part.length), part.start, part.length); }
    Text intern(Texts& texts) const { return texts.intern(start, length); }

private:
    VIEWLET_COLD void grow(u64 bytes) {
        char* bigger = (char*)malloc(bytes);
        if (!bigger) fail("out of memory");
        memcpy(bigger, start, length);
        if (start != own) free(start);
        start = bigger;
        room = bytes;
    }
};

// -- places

inline Bytes part_of(Bytes text, u32 from, u32 to) { return {text.start + from, to - from}; }
inline Text intern(Texts& texts, Bytes part) { return texts.intern(part.start, part.length); }

inline bool is_inside(char byte) { return (byte & 0xc0) == 0x80; }  // a character

inline u32 next_character(Bytes text, u32 at) {
    do ++at;
    while (at < text.length && is_inside(text.start[at]));
    return at;
}

inline u32 last_character(Bytes text, u32 end) {
    do --end;
    while (end > 0 && is_inside(text.start[end]));
    return end;
}

inline i64 count_characters(Bytes text) {
    i64 count = 0;
    for (u32 i = 0; i < text.length; ++i) count += !is_inside(text.start[i]);
    return count;
}

// Where the character of this number, from 0, begins, or the end.
inline u32 place_of(Bytes text, i64 number) {
    u32 at = 0;
    for (; number > 0 && at < text.length; --number) at = next_character(text, at);
    return at;
}

inline bool is_at(Bytes text, u32 at, Bytes part) {
    return part.length <= text.length - at && memcmp(text.start + at, part.start, part.length) == 0;
}

// The first place of a part, which is not empty.
inline u32 find(Bytes text, Bytes part, u32 from = 0) {
    while (from < text.length) {
        void* byte = memchr(text.start + from, part.start[0], text.length - from);
        if (!byte) break;
        from = u32((char*)byte - text.start);
        if (is_at(text, from, part)) return from;
        ++from;
    }
    return NOWHERE;
}

// -- tests

inline bool starts_with(const Texts& texts, Text text, Text prefix) {
    return is_at(texts.bytes(text), 0, texts.bytes(prefix));
}

inline bool ends_with(const Texts& texts, Text text, Text suffix) {
    Bytes whole = texts.bytes(text), part = texts.bytes(suffix);
    return part.length <= whole.length && is_at(whole, whole.length - part.length, part);
}

inline bool contains(const Texts& texts, Text text, Text part) {
    return part.id == 0 || find(texts.bytes(text), texts.bytes(part)) != NOWHERE;
}

inline u32 behind_percents(Bytes pattern, u32 at) {
    while (at < pattern.length && pattern.start[at] == '%') ++at;
    return at;
}

enum class Match { NO, YES, BAD };  // BAD: the pattern ends with the escape character

// Where a part after % does not match, it is tried from the next byte on: only the last % matters.
template <bool ESCAPES>
Match match(Bytes text, Bytes pattern, char escape) {
    u32 i = 0, j = 0, star = NOWHERE, start = 0;  // star: behind the last %, whose part was tried at start
    for (;;) {
        if (i < text.length && j < pattern.length) {
            char sign = pattern.start[j];
            if (ESCAPES && sign == escape) {
                if (j + 1 == pattern.length) return Match::BAD;
                if (pattern.start[j + 1] == text.start[i]) {
                    ++i, j += 2;
                    continue;
                }
            } else if (sign == '_') {
                i = next_character(text, i), ++j;
                continue;
            } else if (sign == '%') {
                j = behind_percents(pattern, j);
                if (j == pattern.length) return Match::YES;
                star = j, start = i;
                continue;
            } else if (sign == text.start[i]) {
                ++i, ++j;
                continue;
            }
        } else if (i == text.length && behind_percents(pattern, j) == pattern.length) {
            return Match::YES;
        }
        if (star == NOWHERE || ++start >= text.length) return Match::NO;
        i = start, j = star;
    }
}

inline bool like(const Texts& texts, Text text, Text pattern) {
    return match<false>(texts.bytes(text), texts.bytes(pattern), 0) == Match::YES;
}

inline bool like_escape(Faults& faults, u32 view, const Texts& texts, Text text, Text pattern, Text escape) {
    Bytes sign = texts.bytes(escape);
    if (sign.length > 1) faults.refuse(view, "LIKE escapes by one character of ASCII");
    Match outcome = match<true>(texts.bytes(text), texts.bytes(pattern), sign.length ? sign.start[0] : 0);
    if (outcome == Match::BAD) faults.refuse(view, "a pattern of LIKE ends with its escape character");
    return outcome == Match::YES;
}

// -- characters

// Writes a code point in UTF-8 and returns its length.
inline u32 put_character(char* to, u32 code) {
    if (code < 0x80) return to[0] = char(code), 1;
    u32 more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    to[0] = char((0xff00 >> (more + 1)) | code >> 6 * more);
    for (u32 i = 1; i <= more; ++i) to[i] = char(0x80 | (code >> 6 * (more - i) & 0x3f));
    return more + 1;
}

inline u32 code_at(Bytes text, u32 at) {
    u8 first = u8(text.start[at]);
    if (first < 0x80) return first;
    u32 more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3, code = first & (0x3f >> more);
    for (u32 i = 1; i <= more; ++i) code = code << 6 | (text.start[at + i] & 0x3f);
    return code;
}

inline i64 first_code(const Texts& texts, Text text) { return text.id ? i64(code_at(texts.bytes(text), 0)) : -1; }

inline Text chr(Faults& faults, u32 view, Texts& texts, i64 code) {
    if (unlikely(code < 0 || code >= 0x110000 || (0xd800 <= code && code < 0xe000))) {
        faults.refuse(view, "no character has this number");
        return {};
    }
    char written[4];
    return texts.intern(written, put_character(written, u32(code)));
}

inline i64 length(const Texts& texts, Text text) { return count_characters(texts.bytes(text)); }
inline i64 octets(const Texts& texts, Text text) { return texts.bytes(text).length; }

inline i64 position(const Texts& texts, Text text, Text part) {
    Bytes whole = texts.bytes(text);
    u32 place = part.id ? find(whole, texts.bytes(part)) : 0;
    return place == NOWHERE ? 0 : count_characters(part_of(whole, 0, place)) + 1;
}

// -- parts

inline i64 offset(Faults& faults, u32 view, i64 place) {
    if (likely(-LONGEST - 1 <= place && place <= LONGEST)) return place;
    faults.refuse(view, "a place or length of SUBSTRING is beyond every text");
    return 0;
}

// From the character `start`, from 1; below 0 from the end. A negative length goes to the left.
inline Text substring(Texts& texts, Text text, i64 start, i64 length) {
    Bytes whole = texts.bytes(text);
    i64 first = start > 0 ? start - 1 : start < 0 ? count_characters(whole) + start : -1;
    i64 last = first + length, low = first < last ? first : last, high = first < last ? last : first;
    if (high <= 0) return {};
    if (low < 0) low = 0;
    u32 from = place_of(whole, low);
    return intern(texts, part_of(part_of(whole, from, whole.length), 0,
                                 place_of(part_of(whole, from, whole.length), high - low)));
}

inline Text left(Texts& texts, Text text, i64 length) {
    Bytes whole = texts.bytes(text);
    i64 kept = length < 0 ? count_characters(whole) + length : length;
    return intern(texts, part_of(whole, 0, place_of(whole, kept)));
}

inline Text right(Texts& texts, Text text, i64 length) {
    Bytes whole = texts.bytes(text);
    i64 dropped = length < 0 ? -(length + 1) : count_characters(whole) - length;
    u32 from = place_of(whole, dropped);
    if (length < 0 && from < whole.length) from = next_character(whole, from);
    return intern(texts, part_of(whole, from, whole.length));
}

inline u32 find_separator(Bytes text, Bytes separator, u32 from) {
    if (separator.length) return find(text, separator, from);
    u32 next = from < text.length ? next_character(text, from) : text.length;
    return next < text.length ? next : NOWHERE;
}

// Part `number`, from 1; below 0 from the end; "" where there is none.
inline Text split_part(Texts& texts, Text text, Text separator, i64 number) {
    Bytes whole = texts.bytes(text), between = texts.bytes(separator);
    i64 parts = 1;
    if (number < 0) {
        for (u32 at = 0; (at = find_separator(whole, between, at)) != NOWHERE; at += between.length) ++parts;
        number = number < -parts ? 0 : parts + number + 1;
    }
    u32 from = 0;
    for (i64 i = 1; number > 0; ++i) {
        u32 to = find_separator(whole, between, from);
        if (i == number) return intern(texts, part_of(whole, from, to == NOWHERE ? whole.length : to));
        if (to == NOWHERE) break;
        from = to + between.length;
    }
    return {};
}

inline u32 is_one_of(Bytes characters, Bytes sought) {
    for (u32 at = 0; at < characters.length; at = next_character(characters, at))
        if (next_character(characters, at) - at == sought.length && is_at(characters, at, sought)) return true;
    return false;
}

inline Text trimmed(Texts& texts, Text text, Text unwanted, bool in_front, bool at_end) {
    Bytes whole = texts.bytes(text), characters = texts.bytes(unwanted);
    u32 from = 0, to = whole.length;
    while (in_front && from < to && is_one_of(characters, part_of(whole, from, next_character(whole, from))))
        from = next_character(whole, from);
    while (at_end && from < to && is_one_of(characters, part_of(whole, last_character(whole, to), to)))
        to = last_character(whole, to);
    return intern(texts, part_of(whole, from, to));
}
inline Text trim(Texts& texts, Text text, Text unwanted) { return trimmed(texts, text, unwanted, true, true); }
inline Text ltrim(Texts& texts, Text text, Text unwanted) { return trimmed(texts, text, unwanted, true, false); }
inline Text rtrim(Texts& texts, Text text, Text unwanted) { return trimmed(texts, text, unwanted, false, true); }

// -- others

inline Text concat(Texts& texts, Text first, Text second) {
    Draft draft;
    draft.add(texts.bytes(first));
    draft.add(texts.bytes(second));
    return draft.intern(texts);
}

inline Text replace(Texts& texts, Text text, Text part, Text by) {
    if (part.id == 0) return text;
    Bytes whole = texts.bytes(text), sought = texts.bytes(part);
    Draft draft;
    u32 from = 0;
    for (u32 place; (place = find(whole, sought, from)) != NOWHERE; from = place + sought.length) {
        draft.add(part_of(whole, from, place));
        draft.add(texts.bytes(by));
    }
    draft.add(part_of(whole, from, whole.length));
    return draft.intern(texts);
}

inline Text repeat(Faults& faults, u32 view, Texts& texts, Text text, i64 times) {
    Bytes whole = texts.bytes(text);
    if (times <= 0 || whole.length == 0) return {};
    if (times > LONGEST || times * i128(whole.length) > LONGEST) {
        faults.refuse(view, "a text would be longer than 4 GB");
        return {};
    }
    Draft draft;
    for (; times > 0; --times) draft.add(whole);
    return draft.intern(texts);
}

inline void add_padding(Faults& faults, u32 view, Draft& draft, i64 missing, Bytes padding) {
    if (missing > 0 && padding.length == 0) return faults.refuse(view, "nothing is no padding for a text");
    for (u32 at = 0; missing > 0; --missing) {
        u32 next = next_character(padding, at);
        draft.add(part_of(padding, at, next));
        at = next == padding.length ? 0 : next;
    }
}

inline Text padded(Faults& faults, u32 view, Texts& texts, Text text, i64 length, Text padding, bool in_front) {
    Bytes whole = texts.bytes(text);
    i64 missing = length - count_characters(whole);
    Draft draft;
    if (in_front) add_padding(faults, view, draft, missing, texts.bytes(padding));
    draft.add(part_of(whole, 0, place_of(whole, length)));
    if (!in_front) add_padding(faults, view, draft, missing, texts.bytes(padding));
    return draft.intern(texts);
}
inline Text lpad(Faults& faults, u32 view, Texts& texts, Text text, i64 length, Text padding) {
    return padded(faults, view, texts, text, length, padding, true);
}
inline Text rpad(Faults& faults, u32 view, Texts& texts, Text text, i64 length, Text padding) {
    return padded(faults, view, texts, text, length, padding, false);
}

}  // namespace viewlet
