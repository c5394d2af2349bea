// A file that is written and read from one end to the other, in blocks with checksums: nothing of a block is seen before
// its checksum was, and each checksum is that of all blocks so far, so that none can be missing or out of place.
#pragma once

#include "texts.hpp"

extern "C" {
long read(int, void*, size_t);
#ifdef __APPLE__
int* __error() noexcept;
#else
int* __errno_location() noexcept;
#endif
}

namespace viewlet {

inline bool was_interrupted() {
    constexpr int INTERRUPTED = 4;
#ifdef __APPLE__
    return *__error() == INTERRUPTED;
#else
    return *__errno_location() == INTERRUPTED;
#endif
}

// What a file begins with, itself under a checksum.
struct ImageHead {
    static constexpr u32 FORMAT = 3;  // another number for another layout of what follows
    static constexpr u32 DIGEST = 64;

    char magic[8]{'v', 'i', 'e', 'w', 'l', 'e', 't', '\n'};
    u32 format{FORMAT};
    u32 digest_size{DIGEST};
    char digest[DIGEST]{};  // of the program
    u64 sum{};

    u64 expected_sum() const { return hash_bytes(START, magic, offsetof(ImageHead, sum)); }
};

struct Block {
    static constexpr u64 ROOM = u64(1) << 20;

    char* bytes{static_cast<char*>(malloc(ROOM))};
    u64 used{};
    u64 sum{START};  // of all blocks up to this one

    Block() {
        if (!bytes) fail("out of memory");
    }
    Block(const Block&) = delete;
    ~Block() { free(bytes); }

    u64 next_sum() const { return mix(mix(sum, used), hash_bytes(START, bytes, used)); }
};

struct ImageWriter {
    int file;
    Block block{};
    u64 written{};
    bool failed{};  // errno says why

    explicit ImageWriter(int file, const ImageHead& head) : file(file) { write_all(&head, sizeof head); }

    void put(const void* data, u64 size) {
        auto* from = static_cast<const char*>(data);
        while (size) {
            u64 part = size < Block::ROOM - block.used ? size : Block::ROOM - block.used;
            memcpy(block.bytes + block.used, from, part);
            block.used += part, from += part, size -= part;
            if (block.used == Block::ROOM) flush();
        }
    }
    template <class T>
    void put(const T& value) {
        put(&value, sizeof value);
    }
    // The last block is empty.
    void finish() {
        if (block.used) flush();
        flush();
    }

private:
    void flush() {
        block.sum = block.next_sum();
        write_all(&block.used, sizeof block.used);
        write_all(block.bytes, block.used);
        write_all(&block.sum, sizeof block.sum);
        block.used = 0;
    }
    void write_all(const void* data, u64 size) {
        auto* from = static_cast<const char*>(data);
        while (size && !failed) {
            long done = ::write(file, from, size);
            if (done < 0 && was_interrupted()) continue;
            if (done < 0) return void(failed = true);
            from += done, size -= u64(done), written += u64(done);
        }
    }
};

// Once something is wrong, all that it reads is 0.
struct ImageReader {
    int file;
    Block block{};
    u64 place{};
    const char* problem{};  // what is wrong with the file
    bool failed{};          // reading it, for the reason in errno

    explicit ImageReader(int file, const char* digest) : file(file) {
        ImageHead head{}, expected{};
        read_all(&head, sizeof head);
        if (!is_fine()) return;
        if (memcmp(head.magic, expected.magic, sizeof head.magic) != 0)
            problem = "magic";
        else if (head.sum != head.expected_sum())
            problem = "damaged";
        else if (head.format != ImageHead::FORMAT)
            problem = "format";
        else if (memcmp(head.digest, digest, ImageHead::DIGEST) != 0)
            problem = "program";
    }

    bool is_fine() const { return !problem && !failed; }

    void get(void* data, u64 size) {
        auto* to = static_cast<char*>(data);
        while (size) {
            if (place == block.used) next_block();
            if (is_fine() && block.used == 0) problem = "damaged";  // the end came too early
            if (!is_fine()) return void(memset(to, 0, size));
            u64 part = size < block.used - place ? size : block.used - place;
            memcpy(to, block.bytes + place, part);
            place += part, to += part, size -= part;
        }
    }
    template <class T>
    T get() {
        T value{};
        get(&value, sizeof value);
        return value;
    }
    // After all that was put comes the empty block, and after it nothing.
    void finish() {
        if (is_fine() && place != block.used) problem = "damaged";
        next_block();
        if (is_fine() && block.used != 0) problem = "damaged";
        char more;
        if (is_fine() && read_some(&more, 1) == 1) problem = "longer";
    }

private:
    void next_block() {
        u64 sum = 0;
        place = block.used = 0;
        read_all(&block.used, sizeof block.used);
        if (is_fine() && block.used > Block::ROOM) problem = "damaged";
        if (is_fine()) read_all(block.bytes, block.used);
        if (is_fine()) read_all(&sum, sizeof sum);
        if (is_fine() && sum != block.next_sum()) problem = "damaged";
        block.sum = sum;
        if (!is_fine()) block.used = 0;
    }
    u64 read_some(void* data, u64 size) {
        while (true) {
            long done = ::read(file, data, size);
            if (done >= 0) return u64(done);
            if (was_interrupted()) continue;
            failed = true;
            return 0;
        }
    }
    void read_all(void* data, u64 size) {
        auto* to = static_cast<char*>(data);
        while (size) {
            u64 done = read_some(to, size);
            if (done == 0) return void(failed || (problem = "truncated"));
            to += done, size -= done;
        }
    }
};

}  // namespace viewlet
