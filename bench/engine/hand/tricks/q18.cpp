// Q18 by hand. A large order adds its quantity to its customer, who need not be there yet. Nearly always an order key
// has one customer: he stands beside its lineitems, and any others in a map of their own.
#include "tpch.hpp"

namespace viewlet {

constexpr i64 LARGE = 100'00;

struct Order {
    i64 rows{}, quantity{};  // sums of one order or customer: 64 bits, and a fault should they not do
    i64 custkey{}, times{};  // the orders of the first customer; times = 0: of none
    i64 others{};            // orders of other customers
    bool settle() { return rows == 0 && times == 0 && others == 0; }
    bool is_large() const { return quantity > LARGE; }
};

struct Customer {
    i64 times{};
    i64 rows{}, quantity{};  // lineitems of large orders
    i128 q18{};              // times · quantity: the view
    bool settle() { return times == 0 && rows == 0; }
};

struct Further {
    i64 orderkey, custkey;
    bool operator==(const Further&) const = default;
    u64 hash() const { return mix(mix(START, orderkey), custkey); }
};

struct ByOrder {
    static u64 hash(const Further& further) { return mix(START, further.orderkey); }
    static bool same(const Further& a, const Further& b) { return a.orderkey == b.orderkey; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<CustomerRow> table_customer;
    Table<OrdersRow> table_orders;
    Table<LineitemRow> table_lineitem;
    Map<OneKey, Customer> customers;
    Map<OneKey, Order> orders;
    Map<Further, Times, ByOrder> further;

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
        auto& entry = orders.at({event.orderkey});
        Order& order = entry.values;
        if (order.times ? order.custkey == event.custkey : order.others == 0) {
            order.custkey = event.custkey;
            order.times += sign;
        } else {
            change_further(event, sign);
            order.others += sign;
        }
        if (order.settle()) orders.doubt(entry);
        if (order.is_large()) add_order(event.custkey, sign, order.rows, order.quantity);
        orders.sweep();
        customers.sweep();
    }

    void change_further(const OrdersRow& event, i64 sign) {
        auto& entry = further.at({event.orderkey, event.custkey});
        if ((entry.values.times += sign) == 0) further.doubt(entry);
        further.sweep();
    }

    VIEWLET_INLINE void change(const LineitemRow& event, i64 sign) {
        auto& entry = orders.at({event.orderkey});
        Order& order = entry.values;
        i64 rows = order.is_large() ? -order.rows : 0;
        i64 quantity = order.is_large() ? -order.quantity : 0;
        order.quantity = sum(order.quantity, event.quantity * sign);
        order.rows += sign;
        if (order.is_large()) rows += order.rows, quantity += order.quantity;
        if (rows || quantity) add_line(event.orderkey, order, rows, quantity);
        if (order.settle()) orders.doubt(entry);
        orders.sweep();
        customers.sweep();
    }

    VIEWLET_INLINE void add_line(i64 orderkey, const Order& order, i64 rows, i64 quantity) {
        if (order.times) add_order(order.custkey, order.times, rows, quantity);
        if (likely(order.others == 0)) return;
        for (auto* f = further.first<ByOrder>({orderkey, 0}); f; f = further.next<ByOrder>(f))
            add_order(f->key.custkey, f->values.times, rows, quantity);
    }

    VIEWLET_INLINE void add_order(i64 custkey, i64 times, i64 rows, i64 quantity) {
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
                                          map_of<Program, &Program::further>("further")};

}  // namespace viewlet
