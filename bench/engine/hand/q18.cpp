// Q18 by hand. A large order adds its quantity to its customer, who need not be there yet.
#include "tpch.hpp"

namespace viewlet {

constexpr i64 LARGE = 100'00;

struct Lines {
    i64 rows{}, quantity{};  // sums of one order or customer: 64 bits, and a fault should they not do
    bool settle() { return rows == 0; }
    bool is_large() const { return quantity > LARGE; }
};

struct Customer {
    i64 times{};
    i64 rows{}, quantity{};  // lineitems of large orders
    i128 q18{};              // times · quantity: the view
    bool settle() { return times == 0 && rows == 0; }
};

struct OrderKey {
    i64 orderkey, custkey;
    bool operator==(const OrderKey&) const = default;
    u64 hash() const { return mix(mix(START, orderkey), custkey); }
};

struct ByOrder {
    static u64 hash(const OrderKey& key) { return mix(START, key.orderkey); }
    static bool same(const OrderKey& a, const OrderKey& b) { return a.orderkey == b.orderkey; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<CustomerRow> table_customer;
    Table<OrdersRow> table_orders;
    Table<LineitemRow> table_lineitem;
    Map<OneKey, Customer> customers;
    Map<OrderKey, Times, ByOrder> orders;
    Map<OneKey, Lines> lines;

    void insert_customer(const CustomerRow& event) { change(event, 1); }
    void delete_customer(const CustomerRow& event) { change(event, -1); }
    void insert_orders(const OrdersRow& event) { change(event, 1); }
    void delete_orders(const OrdersRow& event) { change(event, -1); }
    void insert_lineitem(const LineitemRow& event) { change(event, 1); }
    void delete_lineitem(const LineitemRow& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const CustomerRow& event, i64 sign) {
        auto& entry = customers.at({event.custkey});
        Customer& customer = entry.values;
        if ((customer.times += sign) == 0) customers.doubt(entry);
        customer.q18 = i128(customer.times) * customer.quantity;
        customers.sweep();
    }

    VIEWLET_INLINE void change(const OrdersRow& event, i64 sign) {
        auto& entry = orders.at({event.orderkey, event.custkey});
        if ((entry.values.times += sign) == 0) orders.doubt(entry);
        auto* order = lines.find({event.orderkey});
        if (order && order->values.is_large()) add(event.custkey, sign, order->values.rows, order->values.quantity);
        orders.sweep();
        customers.sweep();
    }

    VIEWLET_INLINE void change(const LineitemRow& event, i64 sign) {
        auto& entry = lines.at({event.orderkey});
        Lines& order = entry.values;
        i64 rows = order.is_large() ? -order.rows : 0;
        i64 quantity = order.is_large() ? -order.quantity : 0;
        order.quantity = sum(order.quantity, event.quantity * sign);
        if ((order.rows += sign) == 0) lines.doubt(entry);
        if (order.is_large()) rows += order.rows, quantity += order.quantity;
        if (rows || quantity)
            for (auto* of : orders.slice<ByOrder>({event.orderkey, 0}))
                add(of->key.custkey, of->values.times, rows, quantity);
        lines.sweep();
        customers.sweep();
    }

    VIEWLET_INLINE void add(i64 custkey, i64 times, i64 rows, i64 quantity) {
        auto& entry = customers.at({custkey});
        Customer& customer = entry.values;
        customer.quantity = narrow(faults, 0, customer.quantity + i128(times) * quantity);
        customer.q18 = i128(customer.times) * customer.quantity;
        customer.rows += times * rows;
        if (customer.settle()) customers.doubt(entry);
    }

    VIEWLET_INLINE i64 sum(i64 a, i64 b) { return narrow(faults, 0, i128(a) + b); }
};

inline constexpr ResultColumn Q18_COLUMNS[] = {{"custkey", Sql::BIGINT, 0, 0, false},
                                               {"quantity", Sql::DECIMAL, 38, 2, false}};

inline void read_q18(Program& program, Rows& out) {
    for (auto* entry = program.customers.first(); entry; entry = program.customers.next(entry)) {
        if (!entry->values.times || !entry->values.rows) continue;
        out.put(0, entry->key.key);
        out.put(1, entry->values.q18);
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
inline constexpr ResultOf<Program> RESULTS[] = {{"q18", Q18_COLUMNS, &read_q18}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::customers>("customers"),
                                          map_of<Program, &Program::orders>("orders"),
                                          map_of<Program, &Program::lines>("lines")};

}  // namespace viewlet
