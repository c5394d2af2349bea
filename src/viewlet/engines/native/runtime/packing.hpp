// Packed rows at work. The functions are compiled with the bridge, once, not with each program.
#pragma once
#include "packed.hpp"

namespace viewlet {

inline void* must(void* block) {
    if (!block) fail("out of memory for the rows of a table");
    return block;
}

// Room for the lanes of a row; those that fill up the last group are 0.
struct Lanes {
    u64* lane;
    explicit Lanes(u32 lanes) : lane(static_cast<u64*>(must(calloc(room_of(lanes), sizeof(u64))))) {}
    Lanes(const Lanes&) = delete;
    ~Lanes() { free(lane); }
};

// -- packings ---------------------------------------------------------------------------------------------------------

Packing* Packing::make(u32 lanes) {
    u32 groups = room_of(lanes) / GROUP;
    auto* made = static_cast<Packing*>(allocate_lines(sizeof(Packing) + (groups - 1) * sizeof(Group)));
    made->lanes = lanes, made->groups = groups;
    for (u32 i = 0; i < groups * GROUP; ++i) made->kept(i) = {};
    return made;
}

Packing* Packing::wider(const u64* row) const {
    Packing* made = make(lanes);
    for (u32 i = 0; i < lanes; ++i) {
        made->kept(i) = kept(i);
        made->kept(i).widen(row[i]);
    }
    made->lay_out();
    return made;
}

void Packing::lay_out() {
    stride = 0;
    for (u32 i = 0; i < groups * GROUP; ++i) {
        Group& in = group[i / GROUP];
        u32 which = i % GROUP, width = kept(i).width(), bits = 8 * width;
        in.at[which] = stride;
        in.mask[which] = bits == 64 ? ~u64(0) : (u64(1) << bits) - 1;
        in.sign[which] = bits ? u64(1) << (bits - 1) : 0;
        in.up[which] = bits ? 8 * kept(i).low : 0;
        stride += width;
    }
}

// The last lane of all does not count: of the row it says how often it is there.
bool Packing::holds(const char* row, const u64* other) const {
    Some differs{};
    for (u32 i = 0; i + 1 < groups; ++i) differs |= group[i].unpacked(group[i].words(row)) ^ some_of(other + i * GROUP);
    const Group& last = group[groups - 1];
    Some rest = last.unpacked(last.words(row)) ^ some_of(other + (groups - 1) * GROUP);
    rest[(lanes - 1) % GROUP] = 0;
    return !is_any(differs | rest);
}

u64 Packing::times(const char* row) const {
    const Group& last = group[groups - 1];
    u32 which = (lanes - 1) % GROUP;
    return (((Group::word(row + last.at[which]) & last.mask[which]) ^ last.sign[which]) - last.sign[which])
           << last.up[which];
}

void Packing::take(const char* row, u64* to) const {
    for (u32 i = 0; i < groups; ++i) {
        Some values = group[i].unpacked(group[i].words(row));
        memcpy(to + i * GROUP, &values, sizeof values);
    }
}

// Each lane is written as a whole word, over which the next ones are; what follows the row is put back.
bool Packing::put(const u64* row, char* to) const {
    u64 behind = Group::word(to + stride);
    Some lost{};
    for (u32 i = 0; i < groups; ++i) {
        Some values = some_of(row + i * GROUP), packed = group[i].packed(values);
        lost |= group[i].unpacked(packed) ^ values;
        for (u32 which = 0; which < GROUP; ++which) {
            u64 word = packed[which];
            __builtin_memcpy(to + group[i].at[which], &word, sizeof word);
        }
    }
    __builtin_memcpy(to + stride, &behind, sizeof behind);
    return !is_any(lost);
}

bool Packing::fits(const u64* row) const {
    Some lost{};
    for (u32 i = 0; i < groups; ++i) {
        Some values = some_of(row + i * GROUP);
        lost |= group[i].unpacked(group[i].packed(values)) ^ values;
    }
    return !is_any(lost);
}

void Packing::set_times(char* row, u64 times) const {
    const Group& last = group[groups - 1];
    u32 which = (lanes - 1) % GROUP;
    u64 packed = times >> last.up[which] & last.mask[which];
    memcpy(row + last.at[which], &packed, last.kept[which].width());
}

// -- tables -----------------------------------------------------------------------------------------------------------

Found PackedRows::find(const u64* row, u32 hash) const {
    return index.find(hash, [&](u32 id) __attribute__((always_inline)) {
        const PackedBlock& in = block(id);
        return in.packing->holds(in.row(id % PackedBlock::ROWS), row);
    });
}

i64 PackedRows::count(const u64* row, u32 hash) const {
    Found found = find(row, hash);
    return found ? i64(block(found.id()).packing->times(address(found.id()))) + 1 : 0;
}

i64 PackedRows::read(u32 id, u64* row) const {
    block(id).packing->take(address(id), row);
    return i64(row[packing->lanes - 1]) + 1;
}

Change PackedRows::change(u64* row, u32 lanes, u32 hash, i64 times) {
    if (times == 0) return Change::SAME;
    Found found = find(row, hash);
    i64 before = found ? i64(block(found.id()).packing->times(address(found.id()))) + 1 : 0, after;
    if (__builtin_add_overflow(before, times, &after) || after < 0) return Change::MISSING;
    if (row[lanes - 1] != u64(after - 1)) row[lanes - 1] = u64(after - 1);  // who reads a group would wait for it
    if (!found) return come(row, lanes, hash), Change::CAME;
    if (after) return recount(found.id(), row, lanes), Change::SAME;
    go(found);
    return Change::WENT;
}

void PackedRows::come(const u64* row, u32 lanes, u32 hash) {
    if (unlikely(!packing)) widen(row, lanes);
    u32 id = take_id(), place = id % PackedBlock::ROWS;
    PackedBlock& in = block(id);
    if (unlikely(in.packing != packing)) repack(in, in.room);
    if (unlikely(!packing->put(row, in.row(place)))) {
        widen(row, lanes);
        repack(in, in.room);
        packing->put(row, in.row(place));
    }
    in.mark(place);
    index.insert(hash, id);
    ++size;
}

void PackedRows::go(Found found) {
    u32 id = found.id();
    index.erase(found);
    block(id).unmark(id % PackedBlock::ROWS);
    gaps.push(id);
    --size;
}

void PackedRows::recount(u32 id, const u64* row, u32 lanes) {
    PackedBlock& in = block(id);
    if (!in.packing->fits(row)) {
        if (!packing->fits(row)) widen(row, lanes);
        repack(in, in.room);
    }
    in.packing->set_times(address(id), row[lanes - 1]);
}

void PackedRows::widen(const u64* row, u32 lanes) {
    Packing* narrow = packing ? packing : Packing::make(lanes);
    packing = narrow->wider(row);
    packing->users = 1;
    narrow->users ? drop(narrow) : free(narrow);
}

void PackedRows::drop(Packing* unused) {
    if (--unused->users == 0) free(unused);
}

u32 PackedRows::take_id() {
    if (gaps.size) return gaps.ids[--gaps.size];
    u32 place = fresh % PackedBlock::ROWS;
    if (unlikely(place == 0 || place == blocks[block_count - 1].room)) grow();
    return fresh++;
}

// Room for one more row behind the last one.
void PackedRows::grow() {
    if (fresh % PackedBlock::ROWS == 0)
        add_block(block_count ? PackedBlock::ROWS : PackedBlock::FIRST, packing);
    else
        repack(blocks[block_count - 1], 2 * blocks[block_count - 1].room);
}

void PackedRows::add_block(u32 room, Packing* by) {
    if (block_count == ~u32(0) / PackedBlock::ROWS / 2 - 1) fail("a table has more than two thousand million rows");
    if (block_count == block_room) {
        block_room = block_room ? block_room + block_room / 4 + 1 : 1;
        blocks = static_cast<PackedBlock*>(must(realloc(static_cast<void*>(blocks), block_room * sizeof(PackedBlock))));
    }
    PackedBlock& made = blocks[block_count];
    made = {nullptr, by, room, Yard::NONE, {}};
    place_rows(made);
    ++by->users;
    ++block_count;
}

void PackedRows::repack(PackedBlock& of, u32 room) {
    PackedBlock made = of;
    made.packing = packing, made.room = room;
    place_rows(made);
    Lanes row(packing->lanes);
    for (u32 place = 0; (place = of.after(place)) < PackedBlock::ROWS; ++place) {
        of.packing->take(of.row(place), row.lane);
        packing->put(row.lane, made.row(place));
    }
    ++packing->users;
    give_rows(of);
    drop(of.packing);
    of = made;
}

void PackedRows::place_rows(PackedBlock& block) {
    u64 bytes = block.bytes();
    held += bytes;
    block.yard = Yard::NONE;
    if (block_count < Yard::FROM || bytes > HUGE_PAGE / 16) {
        block.rows = static_cast<char*>(must(calloc(1, bytes)));
        return;
    }
    if (!yard_count || yards[yard_count - 1].used + bytes > HUGE_PAGE) add_yard();
    Yard& in = yards[block.yard = yard_count - 1];
    block.rows = in.memory + in.used;
    in.used += bytes, ++in.blocks;
}

// What a block leaves in a yard is not used again.
void PackedRows::give_rows(const PackedBlock& block) {
    if (block.yard == Yard::NONE) {
        held -= block.bytes();
        return free(block.rows);
    }
    Yard& of = yards[block.yard];
    if (--of.blocks) return;
    held -= of.used;
    give_back(of.memory, HUGE_PAGE);
    of = {nullptr, HUGE_PAGE, 0};  // nothing more comes into it
}

void PackedRows::add_yard() {
    yards = static_cast<Yard*>(must(realloc(static_cast<void*>(yards), (yard_count + 1) * sizeof(Yard))));
    yards[yard_count++] = {static_cast<char*>(map_pages(HUGE_PAGE)), 0, 0};
}

void PackedRows::clear() {
    for (u32 i = 0; i < block_count; ++i) {
        if (blocks[i].yard == Yard::NONE) free(blocks[i].rows);
        drop(blocks[i].packing);
    }
    for (u32 i = 0; i < yard_count; ++i)
        if (yards[i].memory) give_back(yards[i].memory, HUGE_PAGE);
    free(yards);
    free(blocks);
    yards = nullptr, yard_count = 0;
    if (packing) drop(packing);
    index.release();
    blocks = nullptr, packing = nullptr;
    size = block_count = block_room = gaps.size = 0;
    fresh = PackedBlock::ROWS;
    held = 0;
}

u64 PackedRows::bytes() const {
    u64 described = block_room * sizeof(PackedBlock) + (packing ? packing->bytes() : 0);
    return held + described + gaps.bytes() + index.bytes();
}

void PackedRows::prefetch_entry(u32 hash) const {
    Found found = index.find(hash, [](u32) { return true; });
    if (!found) return;
    const PackedBlock& in = block(found.id());
    const char* row = in.row(found.id() % PackedBlock::ROWS);
    __builtin_prefetch(row);
    __builtin_prefetch(row + in.packing->stride);
}

u32 PackedRows::after(u32 id) const {
    constexpr u32 rows = PackedBlock::ROWS;
    u32 place = id ? id % rows + 1 : 0;
    for (u32 number = id ? id / rows - 1 : 0; number < block_count; ++number, place = 0)
        if ((place = blocks[number].after(place)) < rows) return (number + 1) * rows + place;
    return 0;
}

// -- files: blocks are as they were, and rows in the same order -----------------------------------------------------------

template <class Writer> void save_packing(Writer& to, const Packing& packing) {
    for (u32 i = 0; i < packing.lanes; ++i) to.put(packing.kept(i));
}

template <class Reader> Packing* load_packing(Reader& from, u32 lanes) {
    Packing* made = Packing::make(lanes);
    for (u32 i = 0; i < lanes; ++i) made->kept(i) = from.template get<Kept>();
    made->lay_out();
    return made;
}

template <class Writer> void PackedRows::save(Writer& to) const {
    to.put(packing ? packing->lanes : 0);
    if (!packing) return;
    save_packing(to, *packing);
    to.put(block_count);
    for (u32 i = 0; i < block_count; ++i) {
        const PackedBlock& block = blocks[i];
        to.put(block.room), to.put(block.taken);
        save_packing(to, *block.packing);
        to.put(block.rows, block.bytes());
    }
    to.put(fresh);
    to.put(gaps.size);
    to.put(gaps.ids, gaps.bytes_used());
}

template <class Reader> void PackedRows::load(Reader& from, u32 lanes) {
    clear();
    u32 found = from.template get<u32>();
    if (!found || !from.is_fine()) return;
    if (found != lanes) return void(from.problem = "program");
    packing = load_packing(from, lanes);
    packing->users = 1;
    for (u32 left = from.template get<u32>(); left && from.is_fine(); --left) {
        u32 room = from.template get<u32>();
        u64 taken[PackedBlock::ROWS / 64];
        from.get(taken, sizeof taken);
        if (!from.is_fine() || room > PackedBlock::ROWS) return;
        add_block(room, load_packing(from, lanes));
        PackedBlock& made = blocks[block_count - 1];
        memcpy(made.taken, taken, sizeof taken);
        from.get(made.rows, made.bytes());
        for (u64 word : taken) size += u32(__builtin_popcountll(word));
    }
    fresh = from.template get<u32>();
    for (u32 left = from.template get<u32>(); left && from.is_fine(); --left) gaps.push(from.template get<u32>());
    if (!from.is_fine()) return;
    index.reserve(size);
    Lanes row(lanes);
    for (u32 id = after(0); id; id = after(id)) {
        read(id, row.lane);
        index.insert(hash_lanes(row.lane, lanes - 1), id);
    }
}

}  // namespace viewlet
