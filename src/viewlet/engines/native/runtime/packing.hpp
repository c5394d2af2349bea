// Packed rows at work. The functions are compiled with the bridge, once, not with each program.
#pragma once
#include "packed.hpp"

namespace viewlet {

inline void* must(void* block) {
    if (!block) fail("out of memory for the rows of a table");
    return block;
}

// -- packings ---------------------------------------------------------------------------------------------------------

Packing* Packing::make(u32 lanes) {
    auto* made = static_cast<Packing*>(must(calloc(1, sizeof(Packing) + (lanes - 1) * sizeof(PackedLane))));
    made->lanes = lanes;
    for (u32 i = 0; i < lanes; ++i) made->lane[i] = {};
    return made;
}

Packing* Packing::wider(const u64* row) const {
    Packing* made = make(lanes);
    for (u32 i = 0; i < lanes; ++i) {
        made->lane[i] = lane[i];
        if (!lane[i].fits(row[i])) made->lane[i].widen(row[i]);
    }
    made->lay_out();
    return made;
}

void Packing::lay_out() {
    stride = 0;
    for (u32 i = 0; i < lanes; ++i) stride = lane[i].place(stride);
}

void Packing::take(const char* row, u64* to) const {
    for (u32 i = 0; i < lanes; ++i) to[i] = get(row, i);
}

// Each lane is written as a whole word, over which the next ones are; what follows the row is put back.
bool Packing::put(const u64* row, char* to) const {
    u64 behind = load(to + stride), lost = 0;
    for (u32 i = 0; i < lanes; ++i) {
        u64 packed = lane[i].packed(row[i]);
        lost |= lane[i].unpacked(packed) ^ row[i];
        store(to + lane[i].at, packed);
    }
    store(to + stride, behind);
    return !lost;
}

void Packing::set_times(char* row, u64 value) const {
    const PackedLane& last = lane[lanes - 1];
    u64 packed = last.packed(value);
    memcpy(row + last.at, &packed, last.width());
}

// -- tables -----------------------------------------------------------------------------------------------------------

u32 PackedRows::find(const u64* row, u32 hash) const {
    return index.find(hash, [&](u32 id) {
        const PackedBlock& in = block(id);
        return in.packing->holds(in.row(id % PackedBlock::ROWS), row);
    });
}

i64 PackedRows::count(const u64* row, u32 hash) const {
    u32 id = find(row, hash);
    return id ? i64(block(id).packing->get(address(id), packing->lanes - 1)) + 1 : 0;
}

i64 PackedRows::read(u32 id, u64* row) const {
    block(id).packing->take(address(id), row);
    return i64(row[packing->lanes - 1]) + 1;
}

Change PackedRows::change(u64* row, u32 lanes, u32 hash, i64 times) {
    if (times == 0) return Change::SAME;
    u32 id = find(row, hash);
    i64 before = id ? i64(block(id).packing->get(address(id), lanes - 1)) + 1 : 0, after;
    if (__builtin_add_overflow(before, times, &after) || after < 0) return Change::MISSING;
    row[lanes - 1] = u64(after - 1);
    if (!id) return come(row, lanes, hash), Change::CAME;
    if (after) return recount(id, row, lanes), Change::SAME;
    go(id, hash);
    return Change::WENT;
}

void PackedRows::come(const u64* row, u32 lanes, u32 hash) {
    if (unlikely(!packing)) widen(row, lanes);
    PackedBlock& in = open_block();
    u32 number = u32(&in - blocks), place = in.hole();
    if (unlikely(in.packing != packing)) repack(in, in.room);
    if (unlikely(!packing->put(row, in.row(place)))) {
        widen(row, lanes);
        repack(in, in.room);
        packing->put(row, in.row(place));
    }
    in.mark(place);
    if (in.used == PackedBlock::ROWS) --open.size;  // it is the last of them
    index.insert(hash, (number + 1) * PackedBlock::ROWS + place);
    ++size;
}

void PackedRows::go(u32 id, u32 hash) {
    index.erase(hash, id);
    PackedBlock& in = block(id);
    if (in.used == PackedBlock::ROWS) open.push(u32(&in - blocks));
    in.unmark(id % PackedBlock::ROWS);
    --size;
}

void PackedRows::recount(u32 id, const u64* row, u32 lanes) {
    PackedBlock& in = block(id);
    u64 times = row[lanes - 1];
    if (!in.packing->lane[lanes - 1].fits(times)) {
        if (!packing->lane[lanes - 1].fits(times)) widen(row, lanes);
        repack(in, in.room);
    }
    in.packing->set_times(address(id), times);
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

PackedBlock& PackedRows::open_block() {
    if (!open.size) add_block(block_count ? PackedBlock::ROWS : PackedBlock::FIRST, packing);
    PackedBlock& last = blocks[open.ids[open.size - 1]];
    if (last.used == last.room) repack(last, 2 * last.room);
    return last;
}

void PackedRows::add_block(u32 room, Packing* by) {
    if (block_count == ~u32(0) / PackedBlock::ROWS - 1) fail("a table has more than four thousand million rows");
    if (block_count == block_room) {
        block_room = block_room ? block_room + block_room / 4 + 1 : 1;
        blocks = static_cast<PackedBlock*>(must(realloc(static_cast<void*>(blocks), block_room * sizeof(PackedBlock))));
    }
    PackedBlock& made = blocks[block_count];
    made = {nullptr, by, room, 0, {}};
    made.rows = static_cast<char*>(must(calloc(1, made.bytes())));
    ++by->users;
    held += made.bytes();
    open.push(block_count++);
}

void PackedRows::repack(PackedBlock& of, u32 room) {
    PackedBlock made = of;
    made.packing = packing, made.room = room;
    made.rows = static_cast<char*>(must(calloc(1, made.bytes())));
    auto* row = static_cast<u64*>(must(malloc(packing->lanes * sizeof(u64))));
    for (u32 place = 0; (place = of.after(place)) < PackedBlock::ROWS; ++place) {
        of.packing->take(of.row(place), row);
        packing->put(row, made.row(place));
    }
    free(row);
    held += made.bytes() - of.bytes();
    ++packing->users;
    drop(of.packing);
    free(of.rows);
    of = made;
}

void PackedRows::clear() {
    for (u32 i = 0; i < block_count; ++i) {
        drop(blocks[i].packing);
        free(blocks[i].rows);
    }
    free(blocks);
    if (packing) drop(packing);
    index.release();
    blocks = nullptr, packing = nullptr;
    size = block_count = block_room = open.size = 0;
    held = 0;
}

u64 PackedRows::bytes() const {
    u64 described = block_room * sizeof(PackedBlock) + (packing ? packing->bytes() : 0);
    return held + described + open.bytes() + index.bytes();
}

void PackedRows::prefetch_row(u32 hash) const {
    u32 id = index.find(hash, [](u32) { return true; });
    if (!id) return;
    const PackedBlock& in = block(id);
    const char* row = in.row(id % PackedBlock::ROWS);
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
    for (u32 i = 0; i < packing.lanes; ++i) to.put(packing.lane[i].low), to.put(packing.lane[i].high);
}

template <class Reader> Packing* load_packing(Reader& from, u32 lanes) {
    Packing* made = Packing::make(lanes);
    for (u32 i = 0; i < lanes; ++i) {
        made->lane[i].low = from.template get<u8>();
        made->lane[i].high = from.template get<u8>();
    }
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
        to.put(block.room), to.put(block.used), to.put(block.taken);
        save_packing(to, *block.packing);
        to.put(block.rows, block.bytes());
    }
    to.put(open.size);
    to.put(open.ids, open.bytes_used());
}

template <class Reader> void PackedRows::load(Reader& from, u32 lanes) {
    clear();
    u32 found = from.template get<u32>();
    if (!found || !from.is_fine()) return;
    if (found != lanes) return void(from.problem = "program");
    packing = load_packing(from, lanes);
    packing->users = 1;
    for (u32 left = from.template get<u32>(); left && from.is_fine(); --left) {
        u32 room = from.template get<u32>(), used = from.template get<u32>();
        u64 taken[PackedBlock::WORDS];
        from.get(taken, sizeof taken);
        if (!from.is_fine() || room > PackedBlock::ROWS) return;
        add_block(room, load_packing(from, lanes));
        PackedBlock& made = blocks[block_count - 1];
        memcpy(made.taken, taken, sizeof taken);
        from.get(made.rows, made.bytes());
        made.used = used, size += used;
    }
    open.size = 0;
    for (u32 left = from.template get<u32>(); left && from.is_fine(); --left) open.push(from.template get<u32>());
    if (!from.is_fine()) return;
    index.reserve(size);
    auto* row = static_cast<u64*>(must(malloc(lanes * sizeof(u64))));
    for (u32 id = after(0); id; id = after(id)) {
        read(id, row);
        index.insert(hash_lanes(row, lanes - 1), id);
    }
    free(row);
}

}  // namespace viewlet
