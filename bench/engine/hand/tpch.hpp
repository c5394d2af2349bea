// The rows of the TPC-H streams and how they describe themselves: shared by the hand-written programs.
#pragma once
#include "program.hpp"

namespace viewlet {

struct CustomerRow {
    i64 custkey;
    Text name;
    i64 nationkey, acctbal;
    Text mktsegment;
    bool operator==(const CustomerRow&) const = default;
    u64 hash() const { return mix(mix(mix(mix(mix(START, custkey), name), nationkey), acctbal), mktsegment); }
};

struct OrdersRow {
    i64 orderkey, custkey, orderdate, shippriority;
    bool operator==(const OrdersRow&) const = default;
    u64 hash() const { return mix(mix(mix(mix(START, orderkey), custkey), orderdate), shippriority); }
};

struct LineitemRow {
    i64 orderkey, partkey, suppkey, quantity, extendedprice, discount, shipdate;
    bool operator==(const LineitemRow&) const = default;
    u64 hash() const {
        u64 keys = mix(mix(mix(START, orderkey), partkey), suppkey);
        return mix(mix(mix(mix(keys, quantity), extendedprice), discount), shipdate);
    }
};

struct PartRow {
    i64 partkey;
    Text type;
    bool operator==(const PartRow&) const = default;
    u64 hash() const { return mix(mix(START, partkey), type); }
};

struct SupplierRow {
    i64 suppkey, nationkey;
    bool operator==(const SupplierRow&) const = default;
    u64 hash() const { return mix(mix(START, suppkey), nationkey); }
};

struct PartsuppRow {
    i64 partkey, suppkey, availqty, supplycost;
    bool operator==(const PartsuppRow&) const = default;
    u64 hash() const { return mix(mix(mix(mix(START, partkey), suppkey), availqty), supplycost); }
};

struct NationRow {
    i64 nationkey, regionkey;
    bool operator==(const NationRow&) const = default;
    u64 hash() const { return mix(mix(START, nationkey), regionkey); }
};

#define WHOLE(row, name) {#name, Cell::I64, false, 0, 0, offsetof(row, name), Sql::BIGINT}
#define CENTS(row, name) {#name, Cell::I64, false, 12, 2, offsetof(row, name), Sql::DECIMAL}
#define DAYS(row, name) {#name, Cell::I64, false, 0, 0, offsetof(row, name), Sql::DATE}
#define WORDS(row, name) {#name, Cell::TEXT, false, 0, 0, offsetof(row, name), Sql::VARCHAR}

inline constexpr Column CUSTOMER_COLUMNS[] = {WHOLE(CustomerRow, custkey), WORDS(CustomerRow, name),
                                              WHOLE(CustomerRow, nationkey), CENTS(CustomerRow, acctbal),
                                              WORDS(CustomerRow, mktsegment)};
inline constexpr Column ORDERS_COLUMNS[] = {WHOLE(OrdersRow, orderkey), WHOLE(OrdersRow, custkey),
                                            DAYS(OrdersRow, orderdate), WHOLE(OrdersRow, shippriority)};
inline constexpr Column LINEITEM_COLUMNS[] = {WHOLE(LineitemRow, orderkey),      WHOLE(LineitemRow, partkey),
                                              WHOLE(LineitemRow, suppkey),       CENTS(LineitemRow, quantity),
                                              CENTS(LineitemRow, extendedprice), CENTS(LineitemRow, discount),
                                              DAYS(LineitemRow, shipdate)};
inline constexpr Column PART_COLUMNS[] = {WHOLE(PartRow, partkey), WORDS(PartRow, type)};
inline constexpr Column SUPPLIER_COLUMNS[] = {WHOLE(SupplierRow, suppkey), WHOLE(SupplierRow, nationkey)};
inline constexpr Column PARTSUPP_COLUMNS[] = {WHOLE(PartsuppRow, partkey), WHOLE(PartsuppRow, suppkey),
                                              WHOLE(PartsuppRow, availqty), CENTS(PartsuppRow, supplycost)};
inline constexpr Column NATION_COLUMNS[] = {WHOLE(NationRow, nationkey), WHOLE(NationRow, regionkey)};

struct OneKey {  // of the many maps that are keyed by one number
    i64 key;
    bool operator==(const OneKey&) const = default;
    u64 hash() const { return mix(START, key); }
};

// A handful of plain things in a row of memory: below some dozens nothing is faster.
template <class T> struct Few {
    T* items{};
    u32 size{}, capacity{};

    Few() = default;
    Few(const Few&) = delete;
    ~Few() { free(items); }
    T* begin() { return items; }
    T* end() { return items + size; }

    T& insert(u32 place, const T& item) {
        if (size == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            items = static_cast<T*>(realloc(items, capacity * sizeof(T)));
            if (!items) fail("out of memory");
        }
        __builtin_memmove(items + place + 1, items + place, (size++ - place) * sizeof(T));
        return items[place] = item;
    }
    void erase(u32 place) { __builtin_memmove(items + place, items + place + 1, (--size - place) * sizeof(T)); }
};

}  // namespace viewlet
