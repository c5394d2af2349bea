// The pool of strings: equal strings have one id, byte order, and memory bounded by the strings in use.
#include "check.hpp"
#include "texts.hpp"

using namespace viewlet;

extern "C" int snprintf(char*, size_t, const char*, ...) noexcept;

static void identity_and_order() {
    Texts texts;
    const char* words[] = {"", "a", "a\xff", "aa", "ab", "abcdefgh", "abcdefghi", "b", "\xc3\xa9", "\xe2\x82\xac"};
    Text ids[10];
    for (u32 i = 0; i < 10; ++i) ids[i] = texts.intern(words[i]);
    CHECK(ids[0] == Text{0} && texts.size() == 9);
    for (u32 i = 0; i < 10; ++i) {
        CHECK(texts.intern(words[i]) == ids[i] && texts.bytes(ids[i]).length == strlen(words[i]));
        CHECK(memcmp(texts.bytes(ids[i]).start, words[i], strlen(words[i])) == 0);
        for (u32 j = 0; j < 10; ++j) {
            bool moved = (i == 2) != (j == 2);  // \xff sorts after what begins with a letter
            int order = texts.compare(ids[i], ids[j]);
            CHECK((order == 0) == (i == j) && order * texts.compare(ids[j], ids[i]) <= 0);
            if (!moved) CHECK((order < 0) == (i < j));
        }
    }
    CHECK(texts.compare(ids[2], ids[3]) > 0 && texts.compare(ids[2], ids[7]) < 0);
    CHECK(!(texts.intern("a\0", 2) == ids[1]) && !(texts.intern("\0\0", 2) == texts.intern("\0", 1)));
    CHECK(texts.compare(texts.intern("a\0", 2), ids[1]) > 0);
}

static void holding() {
    Texts texts;
    Text constant = texts.constant("BUILDING", 8), kept = texts.intern("kept"), lost = texts.intern("lost");
    texts.hold(kept);
    texts.hold(kept);
    texts.hold(Text{0});
    texts.release(Text{0});
    texts.collect();
    CHECK(texts.size() == 2 && texts.intern("BUILDING") == constant && texts.intern("kept") == kept);
    CHECK(texts.intern("new one") == lost);  // the id is used again
    texts.release(kept);
    texts.collect();
    CHECK(texts.size() == 2 && texts.intern("kept") == kept);
    texts.release(kept);
    texts.hold(kept);  // deleted and inserted again in one batch
    texts.collect();
    CHECK(texts.size() == 2);
    texts.release(kept);
    texts.hold(kept);
    texts.release(kept);
    texts.collect();
    CHECK(texts.size() == 1);
}

static Text number(Texts& texts, u32 n) {
    char bytes[64];
    int length = snprintf(bytes, sizeof bytes, "customer number %u%s", n, n % 2 ? "" : ", with a longer name");
    return texts.intern(bytes, u64(length));
}

// A window of held strings moves on; now and then a string is interned for nothing.
static void churn(u32 count) {
    constexpr u32 window = 500;
    Texts texts;
    u64 most = 0;
    for (u32 n = 0; n < count; ++n) {
        texts.hold(number(texts, n));
        if (n % 7 == 0) number(texts, n + 1000000000);
        if (n >= window) texts.release(number(texts, n - window));
        if (n % 16 == 0) texts.collect();
        if (n == 10 * window) most = texts.memory();
        if (n > 10 * window) CHECK(texts.memory() < most + most / 4 && texts.size() < window + 32);
    }
    texts.collect();
    CHECK(texts.size() == window);
    for (u32 n = count - window; n < count; ++n) {
        Text text = number(texts, n);
        CHECK(texts.size() == window && texts.bytes(text).length > 16);
    }
}

int main() {
    identity_and_order();
    holding();
    churn(SMALL ? 100'000 : 1'000'000);
    printf("texts: ok\n");
}
