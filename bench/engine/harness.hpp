// Drives a trigger program, hand-written or generated, without the boundary: rows are decoded beforehand, and only the
// triggers are timed. It follows the program's MODULE in one source and is called through ctypes.
#define BENCH extern "C" __attribute__((visibility("default")))

struct timespec_of_libc {
    long seconds, nanoseconds;
};
extern "C" int clock_gettime(int clock, timespec_of_libc* time) noexcept;

namespace viewlet {

#ifdef __APPLE__
constexpr int MONOTONIC = 6, THREAD_CPU_TIME = 16;
#else
constexpr int MONOTONIC = 1, THREAD_CPU_TIME = 3;
#endif
constexpr u32 ROUNDS = 100, READINGS = 1'000;  // of the clock, to see what one costs: the least of the rounds
constexpr u32 BLOCK = 8192;  // events copied into the cache before they are timed: an engine has just decoded them, too

struct Fired {  // its row follows
    void (*fire)(void* program, bool insert, const void* row);
    u32 step;
    bool insert;
};
static_assert(sizeof(Fired) == 16);

struct Harness {
    void* program;
    char** rows;  // of each relation
    char* block;
    Rows* result;
};

inline u32 step_of(const RelationInfo& relation) { return u32(sizeof(Fired) + (relation.row_size + 15) / 16 * 16); }

inline u32 largest_step() {
    u32 largest = 0;
    for (u32 code = 0; code < MODULE.relation_count; ++code)
        if (u32 step = step_of(MODULE.relations[code]); step > largest) largest = step;
    return largest;
}

inline double cpu_seconds() {
    timespec_of_libc time;
    clock_gettime(THREAD_CPU_TIME, &time);
    return double(time.seconds) + 1e-9 * double(time.nanoseconds);
}

inline u64 nanoseconds() {  // this clock is read without a system call, so that a single event can be timed
    timespec_of_libc time;
    clock_gettime(MONOTONIC, &time);
    return u64(time.seconds) * 1'000'000'000 + u64(time.nanoseconds);
}

inline char* lay_out(Harness& harness, u64 count, const signed char* ops, const signed char* codes, const i64* places) {
    char* end = harness.block;
    for (u64 i = 0; i < count; ++i) {
        const RelationInfo& relation = MODULE.relations[u32(codes[i])];
        Fired event{relation.fire, step_of(relation), ops[i] > 0};
        memcpy(end, &event, sizeof event);
        memcpy(end + sizeof event, harness.rows[u32(codes[i])] + u64(places[i]) * relation.row_size, relation.row_size);
        end += event.step;
    }
    return end;
}

inline double fire_all(Harness& harness, const char* end) {
    double start = cpu_seconds();
    for (const char* at = harness.block; at != end;) {
        auto& event = *reinterpret_cast<const Fired*>(at);
        event.fire(harness.program, event.insert, at + sizeof(Fired));
        at += event.step;
    }
    return cpu_seconds() - start;
}

inline u64* fire_each(Harness& harness, const char* end, u64* took) {
    u64 before = nanoseconds();
    for (const char* at = harness.block; at != end;) {
        auto& event = *reinterpret_cast<const Fired*>(at);
        event.fire(harness.program, event.insert, at + sizeof(Fired));
        at += event.step;
        u64 now = nanoseconds();
        *took++ = now - before;
        before = now;
    }
    return took;
}

template <class T> void fill_cells(char* first, u64 row_size, u64 count, const void* cells) {
    auto* values = static_cast<const T*>(cells);
    for (u64 i = 0; i < count; ++i) memcpy(first + i * row_size, values + i, sizeof(T));
}

// -- from here on, what Python calls ----------------------------------------------------------------------------------

BENCH Harness* bench_open() {
    auto* harness = static_cast<Harness*>(calloc(1, sizeof(Harness)));
    harness->program = calloc(1, MODULE.program_size);
    MODULE.construct(harness->program);
    harness->rows = static_cast<char**>(calloc(MODULE.relation_count + 1, sizeof(char*)));
    harness->block = static_cast<char*>(malloc(u64(largest_step()) * BLOCK));
    return harness;
}

BENCH void bench_close(Harness* harness) {
    MODULE.destroy(harness->program);
    free(harness->program);
    for (u32 code = 0; code < MODULE.relation_count; ++code) free(harness->rows[code]);
    free(harness->rows);
    free(harness->block);
    if (harness->result) harness->result->~Rows();
    free(harness->result);
    free(harness);
}

BENCH const char* bench_relation(u32 code) {
    return code < MODULE.relation_count ? MODULE.relations[code].name : nullptr;
}

BENCH const char* bench_column(u32 code, u32 place) {
    const RelationInfo& relation = MODULE.relations[code];
    return place < relation.width ? relation.columns[place].name : nullptr;
}

BENCH u32 bench_text(Harness* harness, const char* start, u64 length) {
    return MODULE.texts(harness->program).constant(start, length).id;
}

BENCH void bench_make_rows(Harness* harness, u32 code, u64 count) {
    free(harness->rows[code]);
    harness->rows[code] = static_cast<char*>(calloc(count + 1, MODULE.relations[code].row_size));
}

/// The cells of one column; false where the harness cannot fill such a one.
BENCH bool bench_fill(Harness* harness, u32 code, u32 place, u64 count, const void* cells) {
    const RelationInfo& relation = MODULE.relations[code];
    const Column& column = relation.columns[place];
    char* first = harness->rows[code] + column.offset;
    if (column.nullable) return false;
    switch (column.cell) {
        case Cell::I64: fill_cells<i64>(first, relation.row_size, count, cells); break;
        case Cell::F64: fill_cells<double>(first, relation.row_size, count, cells); break;
        case Cell::TEXT: fill_cells<u32>(first, relation.row_size, count, cells); break;
        default: return false;
    }
    return true;
}

/// Rows of a static table: no trigger fires.
BENCH void bench_load(Harness* harness, u32 code, u64 count) {
    const RelationInfo& relation = MODULE.relations[code];
    for (u64 i = 0; i < count; ++i) {
        const char* row = harness->rows[code] + i * relation.row_size;
        relation.change(harness->program, row, relation.announce(harness->program, row), 1);
    }
}

BENCH const char* bench_view(u32 place) { return place < MODULE.view_count ? MODULE.views[place].name : nullptr; }

/// Adds a whole number to a view's value for a key of whole numbers; false for any other kind of view.
BENCH bool bench_put(Harness* harness, u32 place, const i64* cells, i64 sum) {
    const ViewInfo& view = MODULE.views[place];
    alignas(16) char key[256]{};
    if (view.kind == Kind::REAL || view.map->key_size > sizeof key) return false;
    for (u32 i = 0; i < view.width; ++i) {
        if (view.key[i].cell != Cell::I64 || view.key[i].nullable) return false;
        memcpy(key + view.key[i].offset, &cells[i], sizeof(i64));
    }
    void* value = view.member(view.map->access(harness->program, key, Access::MAKE));
    view.kind == Kind::I64 ? void(*static_cast<i64*>(value) += sum) : void(*static_cast<i128*>(value) += sum);
    return true;
}

/// CPU seconds of the triggers of these events; negative if a number did not fit.
BENCH double bench_run(Harness* harness, u64 count, const signed char* ops, const signed char* codes,
                       const i64* places) {
    double seconds = 0;
    for (u64 done = 0; done < count; done += BLOCK) {
        u64 part = count - done < BLOCK ? count - done : BLOCK;
        char* end = lay_out(*harness, part, ops + done, codes + done, places + done);
        seconds += fire_all(*harness, end);
    }
    return MODULE.faults(harness->program).any ? -1 : seconds;
}

/// What each of these events took on the wall; false if a number did not fit.
BENCH bool bench_time_each(Harness* harness, u64 count, const signed char* ops, const signed char* codes,
                           const i64* places, u64* took) {
    for (u64 done = 0; done < count; done += BLOCK) {
        u64 part = count - done < BLOCK ? count - done : BLOCK;
        took = fire_each(*harness, lay_out(*harness, part, ops + done, codes + done, places + done), took);
    }
    return !MODULE.faults(harness->program).any;
}

/// Nanoseconds that one reading of the clock takes.
BENCH double bench_clock() {
    u64 least = ~u64(0);
    for (u32 round = 0; round < ROUNDS; ++round) {
        u64 start = nanoseconds(), last = start;
        for (u32 i = 0; i < READINGS; ++i) last = nanoseconds();
        if (last - start < least) least = last - start;
    }
    return double(least) / READINGS;
}

/// The rows of the first result: how many there are, or -1 where one does not fit its column.
BENCH i64 bench_read(Harness* harness) {
    const ResultInfo& result = MODULE.result(0);
    if (harness->result)
        harness->result->~Rows();
    else
        harness->result = static_cast<Rows*>(malloc(sizeof(Rows)));
    new (Placed{harness->result}) Rows(result.columns, result.width, MODULE.texts(harness->program));
    MODULE.read(harness->program, 0, *harness->result);
    return harness->result->unfit || harness->result->uncountable ? -1 : harness->result->length;
}

/// The type of a result's column as Arrow spells it; nullptr past the last.
BENCH const char* bench_result_type(u32 place, int* precision, int* scale) {
    const ResultInfo& result = MODULE.result(0);
    if (place >= result.width) return nullptr;
    *precision = result.columns[place].precision, *scale = result.columns[place].scale;
    switch (result.columns[place].type) {
        case Sql::BIGINT: return "int64";
        case Sql::INTEGER: return "int32";
        case Sql::DATE: return "date32";
        case Sql::DOUBLE: return "float64";
        case Sql::VARCHAR: return "string";
        case Sql::DECIMAL: return *precision > 38 ? "decimal256" : "decimal128";
        default: return "of a type that the harness does not know";
    }
}

/// One of a result column's buffers: 0 the values, 1 the ends of texts, 2 which are valid.
BENCH u64 bench_buffer(Harness* harness, u32 place, u32 which, const char** data) {
    auto& column = harness->result->filled[place];
    const Pile* piles[] = {&column.values, &column.ends, &column.valid.bytes};
    *data = piles[which]->data;
    return piles[which]->size;
}

BENCH const char* bench_map(Harness* harness, u32 place, u64* size, u64* bytes) {
    if (place >= MODULE.map_count) return nullptr;
    *size = MODULE.maps[place].size(harness->program);
    *bytes = MODULE.maps[place].bytes(harness->program);
    return MODULE.maps[place].name;
}

}  // namespace viewlet
