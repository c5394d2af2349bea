// Strings as numbers: equal strings have one id, so that keys stay small and compare in one step.
#pragma once

#include "slots.hpp"

namespace viewlet {

struct Bytes {
    const char* start;
    u32 length;
};

// Eight bytes at a time, the last ones padded with zeros; the length tells padding from zeros.
inline u64 hash_bytes(u64 state, const char* start, u64 length) {
    u64 word = 0;
    state = mix(state, length);
    for (; length >= 8; start += 8, length -= 8) {
        __builtin_memcpy(&word, start, 8);
        state = mix(state, word);
    }
    word = 0;
    memcpy(&word, start, length);
    return mix(state, word);
}

// The pool of strings. A place that stores a Text holds it; one that nobody holds at the end of a batch is forgotten and its
// id used again, so that memory is bounded by the strings in use.
struct Texts {
    static inline Texts* heritage{};  // of the program that is made next: it takes them over

    Texts() {
        if (heritage) exchange(*heritage);
    }
    Texts(const Texts&) = delete;
    ~Texts() { free_all(); }

    void exchange(Texts& other) {
        char kept[sizeof(Texts)];
        memcpy(kept, static_cast<void*>(this), sizeof(Texts));
        memcpy(static_cast<void*>(this), static_cast<void*>(&other), sizeof(Texts));
        memcpy(static_cast<void*>(&other), kept, sizeof(Texts));
    }

    static u32 hash_of(const char* start, u64 length) { return short_hash(hash_bytes(seed, start, length)); }

    // Not held yet: gone with the next collect() unless hold() comes first.
    Text intern(const char* start, u64 length) {
        if (length == 0) return {};
        u32 hash = hash_of(start, length);
        Slot* slot = slots.find(hash, [&](u32 id) {
            const String& string = *strings.at(id);
            return string.length == length && memcmp(string.start, start, length) == 0;
        });
        return {slot ? slot->id : add(start, length, hash)};
    }
    Text intern(const char* sentence) { return intern(sentence, strlen(sentence)); }

    Text constant(const char* start, u64 length) {
        Text text = intern(start, length);
        hold(text);
        return text;
    }

    Bytes bytes(Text text) const {
        if (text.id == 0) return {"", 0};
        const String& string = *strings.at(text.id);
        return {string.start, string.length};
    }

    // Negative, zero, positive: byte order, which for UTF-8 is the order of code points.
    int compare(Text a, Text b) const {
        if (a.id == b.id) return 0;
        Bytes x = bytes(a), y = bytes(b);
        int order = memcmp(x.start, y.start, x.length < y.length ? x.length : y.length);
        return order ? order : x.length < y.length ? -1 : 1;
    }

    void hold(Text text) {
        if (text.id) ++strings.at(text.id)->holders;
    }
    void release(Text text) {
        if (text.id && --strings.at(text.id)->holders == 0) suspect(text.id);
    }

    // The same for those who are in no file that is saved: what they hold is theirs for as long as the process.
    void take_in(Text text) {
        if (text.id) ++strings.at(text.id)->guests;
    }
    void let_go(Text text) {
        if (text.id && --strings.at(text.id)->guests == 0) suspect(text.id);
    }

    // The end of a batch: strings that nobody holds go.
    void collect() {
        while (pending.size) {
            u32 id = pending.ids[--pending.size];
            strings.at(id)->pending = false;
            if (!strings.at(id)->is_held()) forget(id);
        }
    }

    void clear() {
        free_all();
        strings.release();
        slots.release();
        pending.size = 0;
        characters = 0;
    }

    // What was saved had guests, who are not here.
    void dismiss_guests() {
        for (u32 id = strings.first(); id; id = strings.after(id)) {
            strings.at(id)->guests = 0;
            if (!strings.at(id)->holders) suspect(id);
        }
    }

    u32 size() const { return strings.size; }
    u64 memory() const { return strings.bytes() + slots.bytes() + pending.bytes() + characters; }

    struct String {
        char* start;
        u32 length, hash;
        u32 holders;
        u32 pending : 1, guests : 31;

        bool is_held() const { return holders || guests; }
    };
    Pool<String> strings;
    Slots slots;
    Ids pending;
    u64 characters{};

private:
    void free_all() {
        for (u32 id = strings.first(); id; id = strings.after(id)) free(strings.at(id)->start);
    }

    void suspect(u32 id) {
        if (strings.at(id)->pending) return;
        strings.at(id)->pending = true;
        pending.push(id);
    }

    VIEWLET_COLD u32 add(const char* start, u64 length, u32 hash) {
        if (length > ~u32(0)) fail("a string is longer than 4 GB");
        char* copy = (char*)malloc(length);
        if (!copy) fail("out of memory");
        memcpy(copy, start, length);
        u32 id = strings.take();
        new (Placed{strings.at(id)}) String{copy, u32(length), hash, 0, 0, 0};
        slots.insert(hash, id);
        characters += length;
        suspect(id);
        return id;
    }

    void forget(u32 id) {
        String& string = *strings.at(id);
        slots.erase(string.hash, id);
        characters -= string.length;
        free(string.start);
        strings.give(id);
    }
};

}  // namespace viewlet
