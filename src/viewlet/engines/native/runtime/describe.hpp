// What a program says about itself to the bridge: which relations, views, results and maps it has, and where the cells
// of a row lie. All in constant tables of plain function pointers, so that the bridge itself is no template and costs
// the compiler nothing for each relation.
#pragma once
#include "map.hpp"
#include "real.hpp"
#include "rows.hpp"

namespace viewlet {

// What became of a row's place in its base table.
enum class Change : u8 { MISSING, SAME, CAME, WENT };

struct RelationInfo {
    const char* name;
    const Column* columns;
    u32 width;
    u32 row_size;
    Change (*change)(void* program, const void* row, i64 times);   // MISSING: the count would be negative; nothing done
    void (*prefetch)(void* program, const void* row);              // its place in the table is needed soon
    void (*fire)(void* program, bool insert, const void* row);     // nullptr: static, no triggers
    i64 (*count)(void* program, const void* row);
    void (*each)(void* program, void* context, void (*visit)(void* context, const void* row, i64 times));
};

enum class Kind : u8 { I64, I128, REAL };

// Views of one key share a map and its entries: `values` finds (or makes) an entry's values, `member` the view's own.
struct ViewInfo {
    const char* name;
    const Column* key;
    u32 width;
    u32 key_size;
    int scale;
    Kind kind;
    void* (*values)(void* program, const void* key, bool make);  // nullptr: absent
    void* (*member)(void* values);
    void (*settle)(void* program, const void* key);  // a value of this entry may have become 0
    void (*each)(void* program, void* context, void (*visit)(void* context, const void* key, void* values));
};

struct ResultInfo {
    const char* name;
    const ResultColumn* columns;
    u32 width;
};

struct MapInfo {
    const char* name;
    u64 (*size)(void* program);
    u64 (*bytes)(void* program);
};

// An empty table of descriptions: a program without results says `inline constexpr Nothing RESULTS;`.
struct Nothing {
    template <class T> constexpr operator const T*() const { return nullptr; }
};

// Everything that one compiled program tells the bridge; there is one in each shared object.
struct ModuleInfo {
    const RelationInfo* relations;
    u32 relation_count;
    const ViewInfo* views;
    u32 view_count;
    const MapInfo* maps;
    u32 map_count;
    u32 result_count;
    const ResultInfo& (*result)(u32 index);
    void (*read)(void* program, u32 result, Rows& out);
    u64 program_size;
    void (*construct)(void* at);
    void (*destroy)(void* program);
    Texts& (*texts)(void* program);
    Faults& (*faults)(void* program);
    bool reads_tables;   // a trigger may read the base table of another stream: it must see it as of its own turn
    bool forgets_texts;  // every text in a view is in a base row, so that one in no base row may go
};
extern const ModuleInfo MODULE;

template <class P> using Relation = RelationInfo;
template <class P> using ViewOf = ViewInfo;
template <class P> using MapOf = MapInfo;

// {"bsv", BSV_COLUMNS, &read_bsv}
template <class P> struct ResultOf : ResultInfo {
    void (*read)(P&, Rows&);
    template <u32 N>
    constexpr ResultOf(const char* name, const ResultColumn (&columns)[N], void (*read)(P&, Rows&))
        : ResultInfo{name, columns, N}, read(read) {}
};

// The parts of a pointer to member.
template <class> struct MemberOf;
template <class C, class T> struct MemberOf<T C::*> { using type = T; };
template <auto member> using member_type = typename MemberOf<decltype(member)>::type;
template <auto map> using key_type = typename member_type<map>::Key;

// -- relations --------------------------------------------------------------------------------------------------------

inline constexpr u32 WELL_CACHED = 1 << 14;  // entries of a table

template <class P, auto table> Change change_row(void* program, const void* row, i64 times) {
    auto& map = static_cast<P*>(program)->*table;
    auto& key = *static_cast<const key_type<table>*>(row);
    if (times == 0) return Change::SAME;
    auto* entry = times > 0 ? &map.at(key) : map.find(key);
    i64 before = entry ? entry->values.times : 0, after;
    if (__builtin_add_overflow(before, times, &after) || after < 0) return Change::MISSING;
    entry->values.times = after;
    if (before == 0) return Change::CAME;
    if (after != 0) return Change::SAME;
    map.doubt(*entry);
    map.sweep();
    return Change::WENT;
}

template <class P, auto table> void prefetch_row(void* program, const void* row) {
    auto& map = static_cast<P*>(program)->*table;
    if (map.size() > WELL_CACHED) map.prefetch(map.hash_of(*static_cast<const key_type<table>*>(row)));
}

template <class P, auto table> VIEWLET_COLD i64 count_row(void* program, const void* row) {
    auto* entry = (static_cast<P*>(program)->*table).find(*static_cast<const key_type<table>*>(row));
    return entry ? entry->values.times : 0;
}

template <class P, auto table>
VIEWLET_COLD void each_row(void* program, void* context, void (*visit)(void*, const void*, i64)) {
    auto& map = static_cast<P*>(program)->*table;
    for (auto* entry = map.first(); entry; entry = map.next(entry)) visit(context, &entry->key, entry->values.times);
}

template <class P, auto table, auto on_insert, auto on_delete>
void fire_row(void* program, bool insert, const void* row) {
    auto& p = *static_cast<P*>(program);
    auto& event = *static_cast<const key_type<table>*>(row);
    insert ? (p.*on_insert)(event) : (p.*on_delete)(event);
}

template <class P, auto table, u32 N>
constexpr RelationInfo static_table(const char* name, const Column (&columns)[N]) {
    return {name,
            columns,
            N,
            sizeof(key_type<table>),
            change_row<P, table>,
            prefetch_row<P, table>,
            nullptr,
            count_row<P, table>,
            each_row<P, table>};
}

template <class P, auto table, auto on_insert, auto on_delete, u32 N>
constexpr RelationInfo relation(const char* name, const Column (&columns)[N]) {
    RelationInfo info = static_table<P, table>(name, columns);
    info.fire = fire_row<P, table, on_insert, on_delete>;
    return info;
}

// -- views ------------------------------------------------------------------------------------------------------------

template <class T> constexpr Kind KIND = Kind::REAL;
template <> inline constexpr Kind KIND<i64> = Kind::I64;
template <> inline constexpr Kind KIND<i128> = Kind::I128;

template <class P, auto map> VIEWLET_COLD void* find_values(void* program, const void* key, bool make) {
    auto& m = static_cast<P*>(program)->*map;
    auto& wanted = *static_cast<const key_type<map>*>(key);
    auto* entry = make ? &m.at(wanted) : m.find(wanted);
    return entry ? &entry->values : nullptr;
}

template <class P, auto map> VIEWLET_COLD void settle_values(void* program, const void* key) {
    auto& m = static_cast<P*>(program)->*map;
    auto* entry = m.find(*static_cast<const key_type<map>*>(key));
    if (entry) m.doubt(*entry), m.sweep();
}

template <class P, auto map>
VIEWLET_COLD void each_values(void* program, void* context, void (*visit)(void*, const void*, void*)) {
    auto& m = static_cast<P*>(program)->*map;
    for (auto* entry = m.first(); entry; entry = m.next(entry)) visit(context, &entry->key, &entry->values);
}

template <class P, auto map, auto member> void* member_of(void* values) {
    return &(static_cast<typename member_type<map>::Values*>(values)->*member);
}

template <class P, auto map, auto member, u32 N>
constexpr ViewInfo view(const char* name, const Column (&key)[N], int scale) {
    return {name,
            key,
            N,
            sizeof(key_type<map>),
            scale,
            KIND<member_type<member>>,
            find_values<P, map>,
            member_of<P, map, member>,
            settle_values<P, map>,
            each_values<P, map>};
}

template <class P, auto map> void* only_values(void* program, const void*, bool) {
    return &(static_cast<P*>(program)->*map).only.values;
}
template <class P, auto map>
void each_only(void* program, void* context, void (*visit)(void*, const void*, void*)) {
    visit(context, nullptr, only_values<P, map>(program, nullptr, false));
}

template <class P, auto map, auto member> constexpr ViewInfo single(const char* name, int scale) {
    return {name,
            nullptr,
            0,
            0,
            scale,
            KIND<member_type<member>>,
            only_values<P, map>,
            member_of<P, map, member>,
            [](void*, const void*) {},
            each_only<P, map>};
}

template <class P, auto map> constexpr MapInfo map_of(const char* name) {
    return {name,
            [](void* program) { return u64((static_cast<P*>(program)->*map).size()); },
            [](void* program) { return u64((static_cast<P*>(program)->*map).bytes()); }};
}

}  // namespace viewlet
