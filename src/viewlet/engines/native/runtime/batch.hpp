// An update on its way in: its events decoded, then the base tables changed, then the triggers fired; all or nothing.
#pragma once
#include "decode.hpp"
#include "describe.hpp"

namespace viewlet {

inline constexpr u64 KEPT_BYTES = 1 << 20;  // between two batches

// Memory for decoded rows that never moves and is given back all at once; the first piece is kept for the next batch.
struct Arena {
    struct Piece {
        Piece* before;
        u64 size;  // with the head; rows start behind it and so are aligned to 16
    };
    Piece* piece{};
    u64 used{};

    char* take(u64 bytes) {
        bytes = (bytes + 15) & ~u64(15);
        if (!piece || used + bytes > piece->size) grow(bytes);
        used += bytes;
        return reinterpret_cast<char*>(piece) + used - bytes;
    }
    void reset() {
        while (piece && (piece->before || piece->size > KEPT_BYTES)) drop();
        used = sizeof(Piece);
    }
    ~Arena() {
        while (piece) drop();
    }

private:
    void grow(u64 bytes) {
        u64 size = sizeof(Piece) + (piece ? 2 * piece->size : 1 << 16) + bytes;
        auto* next = static_cast<Piece*>(malloc(size));
        if (!next) fail("out of memory for a batch");
        *next = {piece, size};
        piece = next;
        used = sizeof(Piece);
    }
    void drop() {
        Piece* before = piece->before;
        free(piece);
        piece = before;
    }
};

struct Batch {
    Arena rows;
    Pile events;
    const i64* numbers{};  // of the events among those that were given, where they are not all of them
    u64 size() const { return events.size / sizeof(Event); }
    Event* begin() { return reinterpret_cast<Event*>(events.data); }
    Event* end() { return begin() + size(); }
    const Event* begin() const { return reinterpret_cast<const Event*>(events.data); }
    const Event* end() const { return begin() + size(); }
    void reset() {
        rows.reset();
        numbers = nullptr;
        events.size = 0;
        if (events.capacity > KEPT_BYTES) events.free_all();
    }
    ~Batch() { events.free_all(); }
};

struct Division;

struct State {
    const ModuleInfo* module{&MODULE};  // for other modules that are handed the state
    void* program{};
    PyObject* convert{};
    bool keep_tables{};
    bool busy{};
    bool* came{};          // by relation: whether there was a row of it, where a program undoes batches itself
    u64 updates{};         // how many were taken
    Division* division{};  // where other states have the other rows
    Rows** answers{};      // by what is watched: what was told last, once it was
    Library library;
    Batch batch;

    Texts& texts() { return MODULE.texts(program); }
    Faults& faults() { return MODULE.faults(program); }
};

// For the next answer of what is watched: its memory was used before.
inline Rows& answer(State& state, u32 watched) {
    if (!state.answers) state.answers = static_cast<Rows**>(calloc(MODULE.watched_count, sizeof(Rows*)));
    Rows*& rows = state.answers[watched];
    const ResultInfo& result = MODULE.watched[watched];
    if (!rows) rows = new (Placed{malloc(sizeof(Rows))}) Rows(result.columns, result.width, state.texts());
    rows->clear();
    return *rows;
}

inline void free_answers(State& state) {
    for (u32 i = 0; state.answers && i < MODULE.watched_count; ++i) {
        if (state.answers[i]) state.answers[i]->~Rows();
        free(state.answers[i]);
    }
    free(state.answers);
}

// -- base tables ------------------------------------------------------------------------------------------------------

template <class F> void each_text(const RelationInfo& relation, const char* row, F use) {
    for (u32 c = 0; c < relation.texts; ++c)
        if (relation.columns[c].cell == Cell::TEXT) use(fetch<Text>(row, relation.columns[c]));
}

// A row holds its texts while it is in the table.
inline Change change_table(State& state, const Event& event, i64 times) {
    const RelationInfo& relation = *event.relation;
    if (!relation.stored) return Change::SAME;
    Change change = relation.change(state.program, event.row, event.hash, times);
    if (change == Change::CAME) each_text(relation, event.row, [&](Text text) { state.texts().hold(text); });
    if (change == Change::WENT) each_text(relation, event.row, [&](Text text) { state.texts().release(text); });
    return change;
}

inline void undo_tables(State& state, const Event* first, const Event* last) {
    while (last != first) {
        --last;
        change_table(state, *last, -last->times);
    }
}

// How many events before it a row's place in its table is fetched, and how many before it the entry that is there: in a
// large table each of them is far away, and one leads to the other.
inline constexpr u64 ANNOUNCED = 16, APPROACHED = 8;

inline void announce(State& state, Event& event) {
    if (event.relation->stored) event.hash = event.relation->announce(state.program, event.row);
}
inline void approach(State& state, Event& event) {
    if (event.relation->stored) event.relation->approach(state.program, event.hash);
}

// The first event that the tables refuse, these then being as before; or the end.
struct Refused {
    Event* event;
    Change why;
};
inline Refused change_tables(State& state) {
    Event *first = state.batch.begin(), *last = state.batch.end();
    for (Event* event = first; event != last && event != first + ANNOUNCED; ++event) announce(state, *event);
    for (Event* event = first; event != last; ++event) {
        if (u64(last - event) > ANNOUNCED) announce(state, event[ANNOUNCED]);
        if (u64(last - event) > APPROACHED) approach(state, event[APPROACHED]);
        Change change = change_table(state, *event, event->times);
        if (change > Change::TAKEN) continue;
        undo_tables(state, first, event);
        return {event, change};
    }
    return {last, Change::SAME};
}

// -- triggers ---------------------------------------------------------------------------------------------------------

inline void fire(State& state, const Event& event) {
    bool insert = event.times > 0;
    for (i64 left = insert ? event.times : -event.times; left > 0; --left)
        event.relation->fire(state.program, insert, event.row);
}

// Where the batch changes several tables, and a trigger may read one of them, each event must see what those before it
// left: its table changes after its trigger, not before all triggers.
inline bool must_take_turns(State& state) {
    if (!state.keep_tables || !MODULE.reads_tables) return false;
    for (Event& event : state.batch)
        if (event.relation != state.batch.begin()->relation) return true;
    return false;
}

// Whether it is worth while to fetch ahead what triggers look up: a map is large, and the batch is not short.
inline bool must_foresee(State& state) {
    if (state.batch.size() <= ANNOUNCED) return false;
    for (u32 i = MODULE.relation_count; i < MODULE.map_count; ++i)
        if (MODULE.maps[i].size(state.program) > CACHED) return true;
    return false;
}

inline void foresee(State& state, const Event& event, bool close) {
    if (event.relation->foresee) event.relation->foresee(state.program, event.row, close);
}

// A batch of fewer events has no group that is worth a table.
inline constexpr u64 WORTH_SUMMING = 64;

// The triggers of those events that can be summed up by key; whether any are left.
inline bool sum_up(State& state) {
    Event *first = state.batch.begin(), *last = state.batch.end();
    if (last - first < i64(WORTH_SUMMING)) return true;
    i64 left = last - first;
    for (u32 r = 0; r < MODULE.relation_count; ++r) {
        const RelationInfo* own = &MODULE.relations[r];
        if (!own->sum_up || !own->sum_up(state.program, own, first, last)) continue;
        for (Event* event = first; event != last; ++event)
            if (event->relation == own) event->summed = true, --left;
    }
    return left;
}

// The first event for which a view could not be computed, or the end. The tables are then as before, and the views are
// to be built again, if the program does not undo a batch itself.
inline Event* fire_all(State& state, bool in_turn) {
    Faults& faults = state.faults();
    Event* last = state.batch.end();
    bool left = in_turn || sum_up(state), foreseen = left && must_foresee(state);
    for (Event& event : state.batch) {
        if (!left) break;
        if (foreseen && u64(last - &event) > ANNOUNCED) foresee(state, (&event)[ANNOUNCED], false);
        if (foreseen && u64(last - &event) > APPROACHED) foresee(state, (&event)[APPROACHED], true);
        if (!event.summed) fire(state, event);
        if (in_turn) change_table(state, event, event.times);
        if (!faults.any) continue;
        if (state.keep_tables) undo_tables(state, state.batch.begin(), in_turn ? &event + 1 : state.batch.end());
        if (MODULE.undo) MODULE.undo(state.program);
        return &event;
    }
    if (MODULE.end) MODULE.end(state.program);
    return state.batch.end();
}

// So short a batch is over before another Python thread could make use of the interpreter.
inline constexpr i64 SHORT_BATCH = 64;

// While it lives, other Python threads may run, and this one must not touch an object of Python's.
struct WithoutPython {
    PyThreadState* thread;
    explicit WithoutPython(i64 rows) : thread(rows < SHORT_BATCH ? nullptr : PyEval_SaveThread()) {}
    WithoutPython(const WithoutPython&) = delete;
    ~WithoutPython() {
        if (thread) PyEval_RestoreThread(thread);
    }
};

// `number` is the event's, -1 where it was none.
inline PyObject* fault_report(Faults& faults, i64 number = -1) {
    bool overflow = faults.overflow_view != Faults::NONE, inexact = faults.inexact_view != Faults::NONE;
    const char* kind = overflow ? "overflow" : inexact ? "inexact" : "wild";
    u32 view = overflow ? faults.overflow_view : inexact ? faults.inexact_view : faults.wild_view;
    if (faults.refusal) kind = faults.refusal, view = faults.refused_view;
    faults.clear();
    const char* name = view < MODULE.view_count ? MODULE.views[view].name : "";
    return tuple_of(PyUnicode_FromString(kind), PyUnicode_FromString(name), PyLong_FromLongLong(number));
}

// What became of the batch: all is done, or one event of it could not be, and nothing is.
struct Outcome {
    const Event* refused{};  // it takes out what is not there, or a row that is there has its key
    const Event* failed{};   // a view cannot be computed with it: the tables are as before, the views may not be
    Change why{};            // it was refused
};

inline bool stores_any() {
    for (u32 r = 0; r < MODULE.relation_count; ++r)
        if (MODULE.relations[r].stored && MODULE.relations[r].fire) return true;
    return false;
}

inline void note_came(State& state) {
    for (const Event& event : state.batch) state.came[event.relation - MODULE.relations] = true;
}

inline Outcome work(State& state) {
    Batch& batch = state.batch;
    if (state.keep_tables && stores_any())
        if (Refused refused = change_tables(state); refused.event != batch.end())
            return {refused.event, nullptr, refused.why};
    bool in_turn = must_take_turns(state);
    if (in_turn) undo_tables(state, batch.begin(), batch.end());
    Event* failed = fire_all(state, in_turn);
    if (failed != batch.end()) return {nullptr, failed, {}};
    if (MODULE.undo) note_came(state);
    ++state.updates;
    return {};
}

// None; True where there is an infinity or NaN in it; or what went wrong: ("missing" | "taken", number), ("overflow" | "inexact" |
// "wild" | why a function has no value, view, number).
inline PyObject* report_of(State& state, Outcome outcome) {
    auto number = [&](const Event* event) {
        i64 place = event - state.batch.begin();
        return state.batch.numbers ? state.batch.numbers[place] : place;
    };
    if (outcome.refused) {
        const char* why = outcome.why == Change::TAKEN ? "taken" : "missing";
        return tuple_of(PyUnicode_FromString(why), PyLong_FromLongLong(number(outcome.refused)));
    }
    if (outcome.failed) return fault_report(state.faults(), number(outcome.failed));
    return met_wild ? PyBool_FromLong(true) : none();
}

inline PyObject* run_batch(State& state) {
    Outcome outcome;
    {
        WithoutPython released(i64(state.batch.size()));
        outcome = work(state);
    }
    return report_of(state, outcome);
}

// What is noted for those who watch keeps its texts.
inline void forget_texts(State& state) {
    if (state.keep_tables && MODULE.forgets_texts && !MODULE.is_noting(state.program)) state.texts().collect();
}

inline void leave_to_others(State& state);

inline PyObject* run(State& state) {
    if (state.division) leave_to_others(state);
    PyObject* report = run_batch(state);
    forget_texts(state);
    return report;
}

}  // namespace viewlet
