// Memory that never moves: blocks in huge pages where they are large, and pools of objects named by small ids.
#pragma once

#include "base.hpp"

extern "C" {
void* mmap(void*, size_t, int, int, int, long) noexcept;
int munmap(void*, size_t) noexcept;
int madvise(void*, size_t, int) noexcept;
int posix_memalign(void**, size_t, size_t) noexcept;
}

namespace viewlet {

struct Placed {  // new (Placed{p}) T: construct at p
    void* address;
};

}  // namespace viewlet

inline void* operator new(size_t, viewlet::Placed where) noexcept { return where.address; }

namespace viewlet {

inline constexpr u64 HUGE_PAGE = u64(2) << 20;

constexpr u64 whole_pages(u64 bytes) { return (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1); }

// Address space in whole huge pages, zero and without memory behind it until it is touched.
VIEWLET_COLD inline void* map_pages(u64 bytes) {
#ifdef __APPLE__
    constexpr int private_anonymous = 0x1002;
#else
    constexpr int private_anonymous = 0x22;
#endif
    constexpr int read_write = 3;
    u64 length = whole_pages(bytes);
    void* reserved = mmap(nullptr, length + HUGE_PAGE, read_write, private_anonymous, -1, 0);
    if (reserved == (void*)-1) fail("out of memory");
    u64 start = u64(reserved), aligned = whole_pages(start), end = start + length + HUGE_PAGE;
    if (aligned > start) munmap(reserved, aligned - start);
    if (end > aligned + length) munmap((void*)(aligned + length), end - aligned - length);
#ifdef __linux__
    constexpr int huge_page = 14;
    madvise((void*)aligned, length, huge_page);
#endif
    return (void*)aligned;
}

// Zeroed memory. Give it back with the same size.
inline void* allocate(u64 bytes) {
    if (bytes >= HUGE_PAGE) return map_pages(bytes);
    void* block = calloc(1, bytes);
    if (!block) fail("out of memory");
    return block;
}

inline void give_back(void* block, u64 bytes) {
    if (bytes >= HUGE_PAGE)
        munmap(block, whole_pages(bytes));
    else
        free(block);
}

// The same in whole cache lines.
inline void* allocate_lines(u64 bytes) {
    if (bytes >= HUGE_PAGE) return map_pages(bytes);
    void* block;
    if (posix_memalign(&block, 64, bytes)) fail("out of memory");
    return memset(block, 0, bytes);
}

// A growing list of ids: what is to be looked at later.
struct Ids {
    u32* ids{};
    u32 size{}, room{};

    Ids() = default;
    Ids(const Ids&) = delete;
    ~Ids() { free(ids); }

    void push(u32 id) {
        if (unlikely(size == room)) grow();
        ids[size++] = id;
    }
    u64 bytes() const { return u64(room) * sizeof(u32); }
    u64 bytes_used() const { return u64(size) * sizeof(u32); }

    VIEWLET_COLD void grow() {
        room = room ? 2 * room : 16;
        ids = (u32*)realloc(ids, bytes());
        if (!ids) fail("out of memory");
    }
};

// Ids from 64 up (0 names nothing) for objects of one size, in segments of 64, 128, 256, … objects that are never copied.
// The leading zeros of an id tell its segment. A bit for each id says whether it is taken, so that a walk over the
// objects skips 64 free ones at a time. `size` of an object is an argument, so that all pools share the code.
struct Segments {
    static constexpr u32 FIRST = 64, LAST = u32(1) << 31;

    u64 segments[26]{};  // by leading zeros: the address that id 0 would have
    u64 taken[26]{};     // by leading zeros: likewise for the words of bits
    u32 fresh{FIRST};    // no id from here on was ever taken
    u32 gap{};           // the free id to take next; the others are linked from it
    u32 size{};

    VIEWLET_COLD Segments() {}
    Segments(const Segments&) = delete;

    // The smallest id in use that is greater, 0 if there is none.
    VIEWLET_INLINE u32 after(u32 id) const {
        for (++id; id < fresh; id = (id | 63) + 1)
            if (u64 rest = word(id) >> (id & 63)) return id + __builtin_ctzll(rest);
        return 0;
    }
    VIEWLET_INLINE u32 first() const { return after(FIRST - 1); }

    // The objects in use, of which it looks for 64 at a time: what is taken meanwhile it may miss.
    struct Walk {
        const Segments& of;
        u32 start;  // an id whose word of bits it is in
        u64 rest;   // of that word
        u64 segment;

        VIEWLET_INLINE explicit Walk(const Segments& of) : of(of), start(FIRST), rest(0), segment(0) {
            if (of.fresh > FIRST) look();
            skip();
        }
        VIEWLET_INLINE void* object(u64 size) const {
            return (void*)(segment + (start + __builtin_ctzll(rest)) * size);
        }
        VIEWLET_INLINE void step() {
            rest &= rest - 1;
            skip();
        }

    private:
        VIEWLET_INLINE void look() { rest = of.word(start), segment = of.segments[__builtin_clz(start)]; }
        VIEWLET_INLINE void skip() {
            while (!rest && (start += 64) < of.fresh) look();
        }
    };

    VIEWLET_INLINE void* address(u32 id, u64 object) const {
        return (void*)(segments[__builtin_clz(id)] + id * object);
    }

    // Memory touched so far; what a segment has reserved beyond it is only address space.
    u64 touched(u64 object) const { return u64(fresh - FIRST) * object + u64(fresh - FIRST) / 8; }

    VIEWLET_SITE u32 take(u64 object) {
        u32 id = gap;
        if (id)
            __builtin_memcpy(&gap, address(id, object), sizeof gap);
        else
            id = take_fresh(object);
        word(id) |= bit(id);
        ++size;
        return id;
    }

    VIEWLET_SITE void give(u32 id, u64 object) {
        word(id) &= ~bit(id);
        if (--size == 0) return forget();
        __builtin_memcpy(address(id, object), &gap, sizeof gap);
        gap = id;
    }

    // The ids that will be taken next, in this order.
    template <class Visit>
    void each_free(u64 object, const Visit& visit) const {
        for (u32 id = gap; id; __builtin_memcpy(&id, address(id, object), sizeof id)) visit(id);
    }

    // Of an empty one: every id below `end` is taken but these, which will be next in this order.
    VIEWLET_COLD void restore(u64 object, u32 end, const Ids& free) {
        for (; fresh < end; ++size) {
            u32 id = take_fresh(object);
            word(id) |= bit(id);
        }
        for (u32 i = free.size; i-- > 0; --size) {
            u32 id = free.ids[i];
            word(id) &= ~bit(id);
            __builtin_memcpy(address(id, object), &gap, sizeof gap);
            gap = id;
        }
    }

    VIEWLET_COLD void release(u64 object) {
        for (u32 zeros = 0; zeros < 26; ++zeros) {
            if (!segments[zeros]) continue;
            u64 begin = u64(1) << (31 - zeros);
            give_back((void*)(segments[zeros] + begin * object), begin * object);
            give_back((void*)(taken[zeros] + begin / 8), begin / 8);
            segments[zeros] = taken[zeros] = 0;
        }
        size = 0;
        forget();
    }

private:
    VIEWLET_INLINE u64& word(u32 id) const { return ((u64*)taken[__builtin_clz(id)])[id / 64]; }
    static u64 bit(u32 id) { return u64(1) << (id & 63); }

    void forget() {  // nothing is in use: the next walk is short
        fresh = FIRST;
        gap = 0;
    }

    VIEWLET_INLINE u32 take_fresh(u64 object) {
        if (unlikely(!segments[__builtin_clz(fresh)])) add_segment(object);
        return fresh++;
    }

    VIEWLET_COLD void add_segment(u64 object) {
        if (fresh >= LAST) fail("a map has more than two thousand million entries");
        u64 begin = fresh, zeros = __builtin_clz(fresh);
        segments[zeros] = u64(allocate(begin * object)) - begin * object;
        taken[zeros] = u64(allocate(begin / 8)) - begin / 8;
    }
};

// The pool does not construct or destroy objects, and links the free ones through their first bytes.
template <class T>
struct Pool : Segments {
    static_assert(sizeof(T) >= sizeof(u32));

    Pool() = default;
    ~Pool() { release(); }

    VIEWLET_INLINE T* at(u32 id) const { return static_cast<T*>(address(id, sizeof(T))); }
    VIEWLET_INLINE u32 take() { return Segments::take(sizeof(T)); }
    VIEWLET_INLINE void give(u32 id) { Segments::give(id, sizeof(T)); }
    u64 bytes() const { return touched(sizeof(T)); }
    void release() { Segments::release(sizeof(T)); }
};

}  // namespace viewlet
