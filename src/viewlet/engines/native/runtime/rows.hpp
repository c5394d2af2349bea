// Result rows on their way out: what the program's readers write to. The functions are in fill.hpp: they are compiled
// with the bridge, once, not with each program.
#pragma once
#include "texts.hpp"
#include "types.hpp"

namespace viewlet {

// Bytes that grow.
struct Pile {
    char* data{};
    u64 size{}, capacity{};

    void* more(u64 bytes) {
        if (size + bytes > capacity) {
            capacity = (size + bytes) * 2 + 64;
            data = static_cast<char*>(realloc(data, capacity));
            if (!data) fail("out of memory for the rows of a view");
        }
        size += bytes;
        return data + size - bytes;
    }
    template <class T> void push(const T& value) { memcpy(more(sizeof value), &value, sizeof value); }
    void free_all() { free(data), *this = {}; }
    // Empty again; the memory stays where it is no more.
    void clear(u64 kept) {
        if (capacity > kept) return free_all();
        size = 0;
    }
};

// Arrow's bitmaps; `fill` is what a bit is until it is set.
struct Bits {
    Pile bytes;
    void set(u64 place, bool value, char fill) {
        while (bytes.size <= place / 8) bytes.push(fill);
        char mask = char(1 << place % 8);
        value ? bytes.data[place / 8] |= mask : bytes.data[place / 8] &= ~mask;
    }
    bool get(u64 place, bool fill) const {
        return place / 8 < bytes.size ? bytes.data[place / 8] >> place % 8 & 1 : fill;
    }
};

// What is asked of what a program is watched for: what changed since that was forgotten, what was there then, or to
// forget it.
enum class Watch : u8 { CHANGES, STANDING, FORGET };

struct Rows {
    // `valid` stays empty while no NULL came. For VARCHAR `values` are the characters, `ends` where each text ends.
    struct Filled {
        Pile values, ends;
        Bits bits, valid;
        i64 nulls{};
    };

    static constexpr i64 ALL = 0x7fffffffffffffff;

    const ResultColumn* columns;
    u32 width;
    const Texts& texts;
    Filled* filled;
    i64 length{};
    i64 times{1};
    i64 most{ALL};       // rows that are wanted: readers stop when there are so many
    bool unfit{};        // a value does not fit its column: the first such
    bool uncountable{};  // a weight below 1: the program is wrong
    u32 unfit_column{};
    i128 unfit_value{};

    Rows(const ResultColumn* columns, u32 width, const Texts& texts);
    Rows(const Rows&) = delete;
    ~Rows();
    void clear();  // none

    void put(u32 column, i64 value);
    void put(u32 column, i128 value);
    void put(u32 column, double value);
    void put(u32 column, bool value);
    void put(u32 column, Text value);
    template <class T> void put(u32 column, const Opt<T>& value) {
        value.null ? null(column) : put(column, value.value);
    }
    void null(u32 column);
    void weight(i64 n);  // how often the row counts; before end()
    void end();
    bool is_full() const { return length >= most; }
    u64 wanted(u64 limit) const { return limit < u64(most) ? limit : u64(most); }

private:
    void push_text(u32 column, const char* data, u64 size);
    void refuse(u32 column, i128 value);
    void repeat(u32 column);
    void repeat_text(u32 column);
};

}  // namespace viewlet
