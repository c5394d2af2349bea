// Q3 by hand. Four maps where the compiler keeps nine views: revenue waits under its order key, and an event follows the
// keys from there. A lineitem of no early order costs one lookup: how many such orders there are stands beside it.
#include "tpch.hpp"

namespace viewlet {

constexpr i64 CUTOFF = 9204;  // 1995-03-15

struct Group {
    i64 orderkey, orderdate, shippriority;
    bool operator==(const Group&) const = default;
    u64 hash() const { return mix(mix(mix(START, orderkey), orderdate), shippriority); }
};

struct Revenue {
    i64 rows{};
    i128 sum{};
    bool settle() { return rows == 0; }
};

struct Lines {  // shipped late, of one order key; and how many early orders have the key
    i64 rows{}, orders{};
    i128 sum{};
    bool settle() { return rows == 0 && orders == 0; }
};

struct ByOrder {
    static u64 hash(const OrdersRow& row) { return mix(START, row.orderkey); }
    static bool same(const OrdersRow& a, const OrdersRow& b) { return a.orderkey == b.orderkey; }
};
struct ByCustomer {
    static u64 hash(const OrdersRow& row) { return mix(START, row.custkey); }
    static bool same(const OrdersRow& a, const OrdersRow& b) { return a.custkey == b.custkey; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<CustomerRow> table_customer;
    Table<OrdersRow> table_orders;
    Table<LineitemRow> table_lineitem;
    Map<Group, Revenue> q3;
    Map<OneKey, Times> builders;
    Map<OneKey, Lines> lines;
    Map<OrdersRow, Times, ByOrder, ByCustomer> orders;
    Text building = texts.constant("BUILDING", 8);

    void insert_customer(const CustomerRow& event) { change(event, 1); }
    void delete_customer(const CustomerRow& event) { change(event, -1); }
    void insert_orders(const OrdersRow& event) { change(event, 1); }
    void delete_orders(const OrdersRow& event) { change(event, -1); }
    void insert_lineitem(const LineitemRow& event) { change(event, 1); }
    void delete_lineitem(const LineitemRow& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const CustomerRow& event, i64 sign) {
        if (event.mktsegment != building) return;
        auto& customer = builders.at({event.custkey});
        if ((customer.values.times += sign) == 0) builders.doubt(customer);
        for (auto* o = orders.first<ByCustomer>({0, event.custkey, 0, 0}); o; o = orders.next<ByCustomer>(o))
            if (auto* waiting = lines.find({o->key.orderkey}); waiting && waiting->values.rows)
                add_revenue(o->key, sign * o->values.times, waiting->values.rows, waiting->values.sum);
        builders.sweep();
        q3.sweep();
    }

    VIEWLET_INLINE void change(const OrdersRow& event, i64 sign) {
        if (event.orderdate >= CUTOFF) return;
        auto& order = orders.at(event);
        if ((order.values.times += sign) == 0) orders.doubt(order);
        auto& waiting = lines.at({event.orderkey});
        if ((waiting.values.orders += sign) == 0) lines.doubt(waiting);
        if (waiting.values.rows)
            if (auto* customer = builders.find({event.custkey}))
                add_revenue(event, sign * customer->values.times, waiting.values.rows, waiting.values.sum);
        orders.sweep();
        lines.sweep();
        q3.sweep();
    }

    VIEWLET_INLINE void change(const LineitemRow& event, i64 sign) {
        if (event.shipdate <= CUTOFF) return;
        i128 amount = i128(event.extendedprice) * (100 - event.discount) * sign;
        auto& waiting = lines.at({event.orderkey});
        waiting.values.sum = add(faults, 0, waiting.values.sum, amount);
        if ((waiting.values.rows += sign) == 0) lines.doubt(waiting);
        if (waiting.values.orders) add_line(event.orderkey, sign, amount);
        lines.sweep();
    }

    void add_line(i64 orderkey, i64 sign, i128 amount) {
        for (auto* o = orders.first<ByOrder>({orderkey, 0, 0, 0}); o; o = orders.next<ByOrder>(o))
            if (auto* customer = builders.find({o->key.custkey}))
                add_revenue(o->key, customer->values.times * o->values.times, sign, amount);
        q3.sweep();
    }

    VIEWLET_INLINE void add_revenue(const OrdersRow& order, i64 times, i64 rows, i128 sum) {
        auto& group = q3.at({order.orderkey, order.orderdate, order.shippriority});
        group.values.sum = add(faults, 0, group.values.sum, mul(faults, 0, times, sum));
        if ((group.values.rows += times * rows) == 0) q3.doubt(group);
    }
};

inline constexpr ResultColumn Q3_COLUMNS[] = {{"orderkey", Sql::BIGINT, 0, 0, false},
                                              {"orderdate", Sql::DATE, 0, 0, false},
                                              {"shippriority", Sql::INTEGER, 0, 0, false},
                                              {"revenue", Sql::DECIMAL, 38, 4, false}};

inline void read_q3(Program& program, Rows& out) {
    for (auto* entry = program.q3.first(); entry; entry = program.q3.next(entry)) {
        out.put(0, entry->key.orderkey);
        out.put(1, entry->key.orderdate);
        out.put(2, entry->key.shippriority);
        out.put(3, entry->values.sum);
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_customer, &Program::insert_customer, &Program::delete_customer>("customer",
                                                                                                      CUSTOMER_COLUMNS),
    relation<Program, &Program::table_orders, &Program::insert_orders, &Program::delete_orders>("orders",
                                                                                                ORDERS_COLUMNS),
    relation<Program, &Program::table_lineitem, &Program::insert_lineitem, &Program::delete_lineitem>(
        "lineitem", LINEITEM_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"q3", Q3_COLUMNS, &read_q3}};
inline constexpr MapOf<Program> MAPS[] = {
    map_of<Program, &Program::q3>("q3"), map_of<Program, &Program::builders>("builders"),
    map_of<Program, &Program::lines>("lines"), map_of<Program, &Program::orders>("orders")};

}  // namespace viewlet
