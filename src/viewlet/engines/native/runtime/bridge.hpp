// What ends a program's source: it makes the program a Python module.
#pragma once
#include "describe.hpp"

extern "C" struct PyObject;

namespace viewlet {

template <class T, u32 N> constexpr u32 count_of(const T (&)[N]) { return N; }
constexpr u32 count_of(Nothing) { return 0; }

template <auto& results> const ResultInfo& result_at(u32 index) {
    if constexpr (count_of(results) == 0)
        __builtin_trap();
    else
        return results[index];
}

template <class P, auto& results> void read_result(void* program, u32 index, Rows& out) {
    if constexpr (count_of(results) > 0) results[index].read(*static_cast<P*>(program), out);
}

template <class P, auto& results> bool read_one(void* program, u32 index, const void* key, Rows& out) {
    if constexpr (count_of(results) > 0) {
        auto* read = results[index].read_one;
        if (read) read(*static_cast<P*>(program), key, out);
        return read;
    }
    return false;
}

// A program that says nothing gets what is always right. One whose triggers read no base table of another stream says
// `static constexpr bool READS_TABLES = false;` and mixed batches with deletes need not touch the tables twice. One
// whose maps (caches too) hold the texts that are in no base row says `static constexpr bool FORGETS_TEXTS = true;` and
// its memory is bounded by the texts in use.
template <class P> consteval bool reads_tables() {
    if constexpr (requires { P::READS_TABLES; })
        return P::READS_TABLES;
    else
        return true;
}
template <class P> consteval bool forgets_texts() {
    if constexpr (requires { P::FORGETS_TEXTS; })
        return P::FORGETS_TEXTS;
    else
        return false;
}

// A program that is watched says `static constexpr const ResultInfo* WATCHED` and `static constexpr u32 WATCHED_COUNT`.
template <class P> inline constexpr bool is_watched = requires { P::WATCHED; };
template <class P> consteval const ResultInfo* watched() {
    if constexpr (is_watched<P>)
        return P::WATCHED;
    else
        return nullptr;
}
template <class P> consteval u32 watched_count() {
    if constexpr (is_watched<P>)
        return P::WATCHED_COUNT;
    else
        return 0;
}
template <class P> void watch_program(void* program, u32 index, Watch what, Rows& out) {
    if constexpr (is_watched<P>) static_cast<P*>(program)->watch(index, what, out);
}
template <class P> void unmark_program(void* program) {
    if constexpr (requires(P& p) { p.unmark_all(); }) static_cast<P*>(program)->unmark_all();
}
template <class P> bool is_noting(void* program) {
    if constexpr (requires(P& p) { p.is_noting(); })
        return static_cast<P*>(program)->is_noting();
    else
        return false;
}
template <class P> i64* clock_of(void* program) {
    if constexpr (requires(P& p) { p.now; })
        return &static_cast<P*>(program)->now;
    else
        return nullptr;
}

using OfProgram = void (*)(void* program);

// A program with a stream that stores no rows says how to undo a batch.
template <class P> consteval OfProgram undo_of() {
    if constexpr (requires(P& p) { p.undo(); })
        return [](void* program) { static_cast<P*>(program)->undo(); };
    else
        return nullptr;
}
template <class P> consteval OfProgram end_of() {
    if constexpr (requires(P& p) { p.end_batch(); })
        return [](void* program) { static_cast<P*>(program)->end_batch(); };
    else
        return nullptr;
}

template <class P, auto& relations, auto& views, auto& results, auto& maps> consteval ModuleInfo describe() {
    return {.relations = relations,
            .relation_count = count_of(relations),
            .views = views,
            .view_count = count_of(views),
            .maps = maps,
            .map_count = count_of(maps),
            .result_count = count_of(results),
            .result = result_at<results>,
            .read = read_result<P, results>,
            .read_one = read_one<P, results>,
            .program_size = sizeof(P),
            .construct = [](void* at) { new (Placed{at}) P; },
            .destroy = [](void* program) { static_cast<P*>(program)->~P(); },
            .texts = [](void* program) -> Texts& { return static_cast<P*>(program)->texts; },
            .faults = [](void* program) -> Faults& { return static_cast<P*>(program)->faults; },
            .watched = watched<P>(),
            .watched_count = watched_count<P>(),
            .watch = watch_program<P>,
            .unmark = unmark_program<P>,
            .is_noting = is_noting<P>,
            .clock = clock_of<P>,
            .reads_tables = reads_tables<P>(),
            .forgets_texts = forgets_texts<P>(),
            .undo = undo_of<P>(),
            .end = end_of<P>()};
}

PyObject* open_module(const char* name);

}  // namespace viewlet

#define VIEWLET_MODULE(NAME, PROGRAM)                                                          \
    namespace viewlet {                                                                        \
    extern constexpr ModuleInfo MODULE = describe<PROGRAM, RELATIONS, VIEWS, RESULTS, MAPS>(); \
    }                                                                                          \
    extern "C" __attribute__((visibility("default"))) PyObject* PyInit_##NAME();               \
    PyObject* PyInit_##NAME() { return viewlet::open_module(#NAME); }

#ifndef VIEWLET_SEPARATE_MODULE
#include "module.hpp"
#endif
