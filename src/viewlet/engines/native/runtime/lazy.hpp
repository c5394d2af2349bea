// Operators that do not compute an argument which does not matter: it may fail.
#pragma once

#include "base.hpp"

namespace viewlet {

template <class First, class Rest>
VIEWLET_INLINE Opt<bool> and_lazily(const First& first, const Rest& rest) {
    if (!is_null(first) && !known(first)) return false;
    return and3(Opt<bool>(first), rest());
}

template <class First, class Rest>
VIEWLET_INLINE Opt<bool> or_lazily(const First& first, const Rest& rest) {
    if (holds(first)) return true;
    return or3(Opt<bool>(first), rest());
}

// `rest` gives T or Opt<T>.
template <class T, class Rest>
VIEWLET_INLINE auto coalesce_lazily(const Opt<T>& first, const Rest& rest) {
    using Result = decltype(rest());
    return first.null ? rest() : Result(first.value);
}

}  // namespace viewlet
