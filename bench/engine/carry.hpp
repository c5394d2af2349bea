// Takes the entries of a view out of one program and puts them into another, laid out differently perhaps: a program
// that scans would never get through the events that fill it. Follows harness.hpp; called through ctypes.
namespace viewlet {

inline u64 entries_of(Harness* harness, const ViewInfo& view, auto&& visit) {
    u64 count = 0;
    view.map->each(harness->program, [&](const void* key, void* values) { visit(count++, key, view.member(values)); });
    return count;
}

inline bool has_plain_key(const ViewInfo& view) {
    for (u32 i = 0; i < view.width; ++i)
        if (view.key[i].nullable || (view.key[i].cell != Cell::I64 && view.key[i].cell != Cell::F64)) return false;
    return true;
}

/// How many entries there are; -1 for a view whose key is not of numbers.
BENCH i64 bench_size(Harness* harness, u32 place) {
    const ViewInfo& view = MODULE.views[place];
    return has_plain_key(view) ? i64(entries_of(harness, view, [](auto&&...) {})) : -1;
}

BENCH u32 bench_width(u32 place) { return MODULE.views[place].width; }

/// Of each entry the key's cells, 8 bytes each, and the value: 16 bytes, an integer or a double and its error.
BENCH void bench_take(Harness* harness, u32 place, u64* cells, i128* sums) {
    const ViewInfo& view = MODULE.views[place];
    entries_of(harness, view, [&](u64 number, const void* key, void* value) {
        for (u32 i = 0; i < view.width; ++i)
            memcpy(cells + number * view.width + i, static_cast<const char*>(key) + view.key[i].offset, 8);
        if (view.kind == Kind::REAL) {
            Real real = static_cast<RealSum*>(value)->value();
            memcpy(sums + number, &real, sizeof real);
        } else {
            sums[number] = view.kind == Kind::I64 ? i128(*static_cast<i64*>(value)) : *static_cast<i128*>(value);
        }
    });
}

BENCH void bench_give(Harness* harness, u32 place, u64 count, const u64* cells, const i128* sums) {
    const ViewInfo& view = MODULE.views[place];
    alignas(16) char key[256]{};
    for (u64 number = 0; number < count; ++number) {
        for (u32 i = 0; i < view.width; ++i) memcpy(key + view.key[i].offset, cells + number * view.width + i, 8);
        void* value = view.member(view.map->access(harness->program, key, Access::MAKE));
        if (view.kind == Kind::REAL) {
            Real real;
            memcpy(&real, sums + number, sizeof real);
            static_cast<RealSum*>(value)->add(real);
        } else if (view.kind == Kind::I64) {
            *static_cast<i64*>(value) = i64(sums[number]);
        } else {
            *static_cast<i128*>(value) = sums[number];
        }
    }
}

}  // namespace viewlet
