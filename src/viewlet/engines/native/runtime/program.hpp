// Everything of the runtime that a generated trigger program uses.
#pragma once

#include "base.hpp"
#include "dates.hpp"
#include "describe.hpp"
#include "map.hpp"
#include "numbers.hpp"
#include "real.hpp"
#include "texts.hpp"
