// What a program says about itself to the bridge: which relations, views, results and maps it has, and where the cells
// of a row lie. All in constant tables of plain function pointers, so that the bridge itself is no template and costs
// the compiler nothing for each relation.
#pragma once
#include "map.hpp"
#include "packed.hpp"
#include "real.hpp"
#include "rows.hpp"

namespace viewlet {

enum class Access : u8 { FIND, MAKE, SETTLE };  // SETTLE: a value of the entry may have become 0

// A table of packed rows as the bridge sees it, and a row as its lanes and back.
struct PackedShape {
    PackedRows& (*rows)(void* program);
    u32 lanes, row_size;
    u32 (*hash)(const void* row);
    void (*split)(const void* row, u64* lanes);
    void (*join)(const u64* lanes, void* row);

    i64 count(void* program, const void* row) const;
};

// A map as the bridge sees it: its parts, or those of a table of packed rows. One without keys has neither, and its one
// entry is always there.
struct MapShape {
    u32 entry_size{}, key_offset{}, key_size{}, values_offset{}, tables{};
    MapParts (*parts)(void* program){};
    void* (*access)(void* program, const void* key, Access){};  // the entry's values; nullptr: absent, or settled
    u32 (*hash)(u32 table, const void* key){};
    void (*release_texts)(const void* key, Texts& texts){};  // those that an entry holds; nullptr: it holds none
    const PackedShape* packed{};

    template <class Visit> void each(void* program, const Visit& visit) const;
    // From an entry on, so many; the last one's id, 0 where there are none. Of a map with keys.
    template <class Visit> u32 some(void* program, u32 behind, i64 most, const Visit& visit) const;
    bool is_single() const { return !parts && !packed; }
    u64 size(void* program) const {
        return packed ? packed->rows(program).size : parts ? parts(program).entries.size : 1;
    }
    u64 bytes(void* program) const;
};

// The keys of a table, by their numbers; that of PRIMARY KEY is 0 where there is one.
struct KeysInfo {
    u32 count;
    const void* (*holder)(void* program, u32 key, const void* row);  // nullptr: no row has the same value
    bool (*same)(u32 key, const void* row, const void* other);
    void (*check)(void* program, bool on);
};

struct RelationInfo;

struct Event {
    const RelationInfo* relation;
    i64 times;
    const char* row;
    u32 hash{};     // once its table is about to change
    bool summed{};  // its trigger need not run: the batch was summed up
};

struct RelationInfo {
    const char* name;
    const Column* columns;
    u32 width;
    u32 row_size;
    const MapShape* table;
    Change (*change)(void* program, const void* row, u32 hash, i64 times);
    u32 (*announce)(void* program, const void* row);  // its hash; its place in the table is needed soon
    void (*approach)(void* program, u32 hash);        // and very soon: the place has arrived, the entry has not
    void (*fire)(void* program, bool insert, const void* row);  // nullptr: static, no triggers
    // what its trigger will look up is needed soon; `close`: very soon, as above. nullptr: nobody knows
    void (*foresee)(void* program, const void* row, bool close);
    // the triggers of all its events in a batch at once; false: nothing is done. nullptr: that cannot be
    bool (*sum_up)(void* program, const RelationInfo* own, const Event* first, const Event* last);
    bool stored{true};       // its rows are in the table; else deletes are trusted
    u32 texts{};             // columns up to the last one that has texts
    const KeysInfo* keys{};  // nullptr: any rows may be there

    i64 count(void* program, const void* row) const {
        if (table->packed) return table->packed->count(program, row);
        void* values = table->access(program, row, Access::FIND);
        return values ? static_cast<Times*>(values)->times : 0;
    }
};

enum class Kind : u8 { I64, I128, REAL };

// Views of one key share a map and its entries; `member` of the values is the view's own.
struct ViewInfo {
    const char* name;
    const Column* key;
    u32 width;
    int scale;
    Kind kind;
    const MapShape* map;
    void* (*member)(void* values);
};

struct ResultInfo {
    const char* name;
    const ResultColumn* columns;
    u32 width;
};

struct NodePools;

// An ordered index: its nodes, and either the one tree or a map of slices, whose values are trees.
struct OrderShape {
    NodePools* (*nodes)(void* program);
    u64 tree_size;
    void* (*tree)(void* program);
    MapShape slices;
};

struct MapInfo {
    const char* name;
    const MapShape* map;
    u64 (*order_bytes)(void* program);  // of its ordered indexes
    const OrderShape* orders;
    u32 order_count;
    u64 size(void* program) const { return map->size(program); }
    u64 bytes(void* program) const { return map->bytes(program) + order_bytes(program); }
};

inline i64 PackedShape::count(void* program, const void* row) const {
    auto* lane = static_cast<u64*>(calloc(room_of(lanes), sizeof(u64)));
    split(row, lane);
    i64 times = rows(program).count(lane, hash(row));
    free(lane);
    return times;
}

template <class Visit> u32 some_packed(const PackedShape& of, void* program, u32 behind, i64 most, const Visit& visit) {
    const PackedRows& all = of.rows(program);
    auto* lanes = static_cast<u64*>(malloc(room_of(of.lanes) * sizeof(u64)));
    auto* row = static_cast<char*>(malloc(of.row_size));
    u32 last = 0;
    for (u32 id = all.after(behind); id && most > 0; id = all.after(id), --most) {
        Times times{all.read(id, lanes)};
        of.join(lanes, row);
        visit(row, &times);
        last = id;
    }
    free(lanes), free(row);
    return last;
}

template <class Visit> u32 MapShape::some(void* program, u32 behind, i64 most, const Visit& visit) const {
    if (packed) return some_packed(*packed, program, behind, most, visit);
    const Segments& all = parts(program).entries;
    u32 last = 0;
    for (u32 id = behind ? all.after(behind) : all.first(); id && most > 0; id = all.after(id), --most) {
        char* entry = static_cast<char*>(all.address(id, entry_size));
        visit(entry + key_offset, entry + values_offset);
        last = id;
    }
    return last;
}

template <class Visit> void MapShape::each(void* program, const Visit& visit) const {
    if (is_single()) return visit(nullptr, access(program, nullptr, Access::FIND));
    some(program, 0, i64(~u64(0) >> 1), visit);
}

inline u64 MapShape::bytes(void* program) const {
    if (packed) return packed->rows(program).bytes();
    if (!parts) return entry_size;
    MapParts of = parts(program);
    u64 sum = of.entries.touched(entry_size) + of.chunks.bytes() + of.doubts.bytes();
    for (u32 i = 0; i < tables; ++i) sum += of.tables[i].bytes();
    return sum;
}

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
    bool (*read_one)(void* program, u32 result, const void* key, Rows& out);  // false: the result is only read whole
    u64 program_size;
    void (*construct)(void* at);
    void (*destroy)(void* program);
    Texts& (*texts)(void* program);
    Faults& (*faults)(void* program);
    const ResultInfo* watched;  // what is watched: weight and columns of rows, or weight, key and value of entries
    u32 watched_count;
    void (*watch)(void* program, u32 index, Watch what, Rows& out);
    void (*unmark)(void* program);     // no entry counts as noted any more
    bool (*is_noting)(void* program);  // what is noted may name texts that are in no row any more
    i64* (*clock)(void* program);      // counts refreshes of view caches; nullptr: there is none
    bool reads_tables;   // a trigger may read the base table of another stream: it must see it as of its own turn
    bool forgets_texts;  // every text in a view is in a base row, or held by its map: one that nobody holds may go
    void (*undo)(void* program);  // the maps as before the batch; nullptr: they follow from the tables
    void (*end)(void* program);   // the batch is done: there is nothing to undo any more
};
extern const ModuleInfo MODULE;

template <class P> using Relation = RelationInfo;
template <class P> using ViewOf = ViewInfo;
template <class P> using MapOf = MapInfo;

// {"bsv", BSV_COLUMNS, &read_bsv}, and what reads the row of one key of the view of keys
template <class P> struct ResultOf : ResultInfo {
    void (*read)(P&, Rows&);
    void (*read_one)(P&, const void* key, Rows&);
    template <u32 N>
    constexpr ResultOf(const char* name, const ResultColumn (&columns)[N], void (*read)(P&, Rows&),
                       void (*read_one)(P&, const void*, Rows&) = nullptr)
        : ResultInfo{name, columns, N}, read(read), read_one(read_one) {}
};

// The parts of a pointer to member.
template <class> struct MemberOf;
template <class C, class T> struct MemberOf<T C::*> {
    using type = T;
};
template <auto member> using member_type = typename MemberOf<decltype(member)>::type;
template <auto map> using key_type = typename member_type<map>::Key;

// -- maps -------------------------------------------------------------------------------------------------------------

template <class P, auto map> VIEWLET_COLD void* access(void* program, const void* key, Access how) {
    auto& m = static_cast<P*>(program)->*map;
    auto* entry = m.reach(*static_cast<const key_type<map>*>(key), how == Access::MAKE);
    if (!entry) return nullptr;
    constexpr bool ordered = requires { m.touch(*entry); };  // then it leaves its trees first, when an event is over
    if constexpr (ordered)
        if (how != Access::FIND) m.touch(*entry);
    if (how != Access::SETTLE) return &entry->values;
    m.doubt(*entry);
    if constexpr (!ordered) m.sweep();
    return nullptr;
}

template <class Map> u32 hash_in(u32 table, const void* key) {
    return Map::hash_in(table, *static_cast<const typename Map::Key*>(key));
}

template <class Map> consteval auto texts_releaser() -> void (*)(const void*, Texts&) {
    using Key = typename Map::Key;
    if constexpr (HeldTexts<Key, typename Map::Values>::ANY)
        return [](const void* key, Texts& texts) {
            Map::Values::each_text(*static_cast<const Key*>(key), [&](Text text) { texts.release(text); });
        };
    else
        return nullptr;
}

template <class P, auto table> constexpr PackedShape packed_shape() {
    using Table = member_type<table>;
    using Row = typename Table::Key;
    return {.rows = [](void* program) -> PackedRows& { return static_cast<P*>(program)->*table; },
            .lanes = Table::LANES,
            .row_size = sizeof(Row),
            .hash = [](const void* row) { return Table::hash_of(*static_cast<const Row*>(row)); },
            .split = [](const void* row, u64* lanes) { Table::split(*static_cast<const Row*>(row), lanes); },
            .join = [](const u64* lanes, void* row) { Table::join(lanes, *new (Placed{row}) Row{}); }};
}
template <class P, auto table> inline constexpr PackedShape PACKED_SHAPE = packed_shape<P, table>();

template <class T> inline constexpr bool is_packed = requires { T::LANES; };

template <class P, auto map> consteval MapShape shape() {
    using Map = member_type<map>;
    if constexpr (is_packed<Map>) {
        return {.key_size = sizeof(typename Map::Key), .packed = &PACKED_SHAPE<P, map>};
    } else if constexpr (requires { typename Map::Key; }) {
        using Entry = typename Map::Entry;
        return {.entry_size = sizeof(Entry),
                .key_offset = offsetof(Entry, key),
                .key_size = sizeof(typename Map::Key),
                .values_offset = offsetof(Entry, values),
                .tables = Map::TABLES,
                .parts = [](void* program) { return (static_cast<P*>(program)->*map).parts(); },
                .access = access<P, map>,
                .hash = hash_in<Map>,
                .release_texts = texts_releaser<Map>()};
    } else {
        return {.entry_size = sizeof(Map), .access = [](void* program, const void*, Access how) -> void* {
                    return how == Access::SETTLE ? nullptr : &(static_cast<P*>(program)->*map).only.values;
                }};
    }
}
template <class P, auto map> inline constexpr MapShape SHAPE = shape<P, map>();

template <class P, auto order> consteval OrderShape order_shape() {
    using Order = member_type<order>;
    OrderShape shape{.nodes = [](void* program) -> NodePools* { return &(static_cast<P*>(program)->*order).nodes; },
                     .tree_size = sizeof(typename Order::Tree),
                     .tree = nullptr,
                     .slices = {}};
    if constexpr (requires(Order& o) { o.slices; }) {
        using Entry = typename Order::Slices::Entry;
        shape.slices = {.entry_size = sizeof(Entry),
                        .key_offset = offsetof(Entry, key),
                        .values_offset = offsetof(Entry, values),
                        .tables = Order::Slices::TABLES,
                        .parts = [](void* program) { return (static_cast<P*>(program)->*order).slices.parts(); },
                        .hash = hash_in<typename Order::Slices>};
    } else {
        shape.tree = [](void* program) -> void* { return &(static_cast<P*>(program)->*order).tree; };
    }
    return shape;
}
template <class P, auto... orders> inline constexpr OrderShape ORDER_SHAPES[] = {order_shape<P, orders>()..., {}};

template <class P, auto map, auto... orders> constexpr MapInfo map_of(const char* name) {
    auto bytes = [](void* program) -> u64 {
        (void)program;
        return (u64{} + ... + (static_cast<P*>(program)->*orders).bytes());
    };
    return {name, &SHAPE<P, map>, bytes, ORDER_SHAPES<P, orders...>, sizeof...(orders)};
}

// -- relations --------------------------------------------------------------------------------------------------------

template <class Map> Change change_entry(Map& map, const typename Map::Key& key, u32 hash, i64 times) {
    if (times == 0) return Change::SAME;
    if constexpr (requires { map.is_taken(key, times); })
        if (times > 0 && map.is_taken(key, times)) return Change::TAKEN;
    auto* entry = map.reach(key, hash, times > 0);
    i64 before = entry ? entry->values.times : 0, after;
    if (__builtin_add_overflow(before, times, &after) || after < 0) return Change::MISSING;
    entry->values.times = after;
    if (before == 0) return Change::CAME;
    if (after != 0) return Change::SAME;
    map.erase(*entry, hash);
    return Change::WENT;
}

template <class P, auto table> Change change_row(void* program, const void* row, u32 hash, i64 times) {
    auto& map = static_cast<P*>(program)->*table;
    auto& key = *static_cast<const key_type<table>*>(row);
    if constexpr (is_packed<member_type<table>>) {
        u64 lanes[room_of(map.LANES)]{};
        map.split(key, lanes);
        return map.change(lanes, map.LANES, hash, times);
    } else {
        return change_entry(map, key, hash, times);
    }
}

template <class Table> bool is_cached(const Table& table) {
    if constexpr (is_packed<Table>)
        return table.is_cached();
    else
        return table.size() <= WELL_CACHED;
}

template <class P, auto table> u32 announce_row(void* program, const void* row) {
    auto& map = static_cast<P*>(program)->*table;
    u32 hash = map.hash_of(*static_cast<const key_type<table>*>(row));
    if (!is_cached(map)) map.prefetch(hash);
    return hash;
}

template <class P, auto table> void approach_row(void* program, u32 hash) {
    auto& map = static_cast<P*>(program)->*table;
    if (!is_cached(map)) map.prefetch_entry(hash);
}

// Where there is no `on_delete`, `on_insert` takes a sign: no branch then depends on which of both an event is, which
// processors guess wrong half the time.
template <class P, auto table, auto on_insert, auto on_delete>
void fire_row(void* program, bool insert, const void* row) {
    auto& p = *static_cast<P*>(program);
    auto& event = *static_cast<const key_type<table>*>(row);
    if constexpr (__is_same(decltype(on_delete), decltype(nullptr)))
        (p.*on_insert)(event, 2 * i64(insert) - 1);
    else
        insert ? (p.*on_insert)(event) : (p.*on_delete)(event);
}

template <class P, auto table, auto foresee> void foresee_row(void* program, const void* row, bool close) {
    (static_cast<P*>(program)->*foresee)(*static_cast<const key_type<table>*>(row), close);
}

template <class P, auto sum_up>
bool sum_up_rows(void* program, const RelationInfo* own, const Event* first, const Event* last) {
    return (static_cast<P*>(program)->*sum_up)(own, first, last);
}

template <class P, auto table> constexpr KeysInfo keys_of() {
    using Map = member_type<table>;
    using Row = typename Map::Key;
    return {Map::KEYS,
            [](void* program, u32 key, const void* row) -> const void* {
                return (static_cast<P*>(program)->*table).holder(key, *static_cast<const Row*>(row));
            },
            [](u32 key, const void* row, const void* other) {
                return Map::agree(key, *static_cast<const Row*>(row), *static_cast<const Row*>(other));
            },
            [](void* program, bool on) { (static_cast<P*>(program)->*table).checks = on; }};
}
template <class P, auto table> inline constexpr KeysInfo KEYS_OF = keys_of<P, table>();

template <class P, auto table, u32 N>
constexpr RelationInfo static_table(const char* name, const Column (&columns)[N]) {
    constexpr u32 size = sizeof(key_type<table>);
    RelationInfo info{name,
                      columns,
                      N,
                      size,
                      &SHAPE<P, table>,
                      change_row<P, table>,
                      announce_row<P, table>,
                      approach_row<P, table>,
                      nullptr,
                      nullptr,
                      nullptr};
    for (u32 c = 0; c < N; ++c)
        if (columns[c].cell == Cell::TEXT) info.texts = c + 1;
    if constexpr (requires { member_type<table>::KEYS; }) info.keys = &KEYS_OF<P, table>;
    return info;
}

template <class P, auto table, auto on_insert, auto on_delete, auto foresee = nullptr, auto sum_up = nullptr, u32 N>
constexpr RelationInfo relation(const char* name, const Column (&columns)[N], bool stored = true) {
    RelationInfo info = static_table<P, table>(name, columns);
    info.fire = fire_row<P, table, on_insert, on_delete>;
    if constexpr (!__is_same(decltype(foresee), decltype(nullptr))) info.foresee = foresee_row<P, table, foresee>;
    if constexpr (!__is_same(decltype(sum_up), decltype(nullptr))) info.sum_up = sum_up_rows<P, sum_up>;
    info.stored = stored;
    return info;
}

// -- views ------------------------------------------------------------------------------------------------------------

template <class T> constexpr Kind KIND = Kind::REAL;
template <> inline constexpr Kind KIND<i64> = Kind::I64;
template <> inline constexpr Kind KIND<i128> = Kind::I128;

template <class Values, auto member> void* member_of(void* values) { return &(static_cast<Values*>(values)->*member); }

template <class P, auto map, auto member, u32 N>
constexpr ViewInfo view(const char* name, const Column (&key)[N], int scale) {
    using Values = typename member_type<map>::Values;
    return {name, key, N, scale, KIND<member_type<member>>, &SHAPE<P, map>, member_of<Values, member>};
}

template <class P, auto map, auto member> constexpr ViewInfo single(const char* name, int scale) {
    using Values = typename member_type<map>::Values;
    return {name, nullptr, 0, scale, KIND<member_type<member>>, &SHAPE<P, map>, member_of<Values, member>};
}

}  // namespace viewlet
