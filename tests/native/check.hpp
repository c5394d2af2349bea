// What the tests of the runtime need: a check that says where it failed, random numbers that repeat, output.
#pragma once

#include "base.hpp"

extern "C" {
int printf(const char*, ...);
void exit(int) noexcept;
}

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

namespace viewlet {

struct Random {  // splitmix64
    u64 state;
    u64 operator()() {
        u64 z = (state += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    u32 below(u32 bound) { return u32((*this)() % bound); }
    double unit() { return double((*this)() >> 11) * 0x1p-53; }
};

}  // namespace viewlet
