// Q22 by hand. A customer without orders is in the tree of his nation by balance; when the sum of the balances moves,
// one look into each tree tells what is below it. A custkey is one customer's.
#include "tpch.hpp"
#include "tree.hpp"

namespace viewlet {

enum : u32 { COUNT, BALANCE };

struct Customer {
    i64 orders{}, nationkey{}, acctbal{};
    bool is_there{};
    bool settle() { return !is_there && orders == 0; }
};

struct Nation {
    hand::Tree<2> idle;
    hand::Lanes<2> below{};
    bool settle() { return idle.total[COUNT] == 0; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<CustomerRow> table_customer;
    Table<OrdersRow> table_orders;
    Map<OneKey, Customer> customers;
    Map<OneKey, Nation> nations;
    double positive{}, wealth{};  // customers with a positive balance, and what they have: cents, exact below 2⁵³

    void insert_customer(const CustomerRow& event) { change(event, 1); }
    void delete_customer(const CustomerRow& event) { change(event, -1); }
    void insert_orders(const OrdersRow& event) { change(event, 1); }
    void delete_orders(const OrdersRow& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const CustomerRow& event, i64 sign) {
        auto& entry = customers.at({event.custkey});
        Customer& customer = entry.values;
        customer.is_there = sign > 0;
        customer.nationkey = event.nationkey, customer.acctbal = event.acctbal;
        if (event.acctbal > 0) positive += double(sign), wealth += double(sign * event.acctbal);
        if (customer.orders == 0) {
            auto& nation = nations.at({event.nationkey});
            nation.values.idle.add(double(event.acctbal), {{double(sign), double(sign * event.acctbal)}});
            if (unlikely(nation.values.settle())) nations.doubt(nation);
        }
        if (!customer.is_there) customers.doubt(entry);
        double all = wealth;
        for (auto* nation = nations.first(); nation; nation = nations.next(nation))
            nation->values.below = nation->values.idle.before([=](hand::Pack balances) { return balances < all; });
        nations.sweep();
        customers.sweep();
    }

    VIEWLET_INLINE void change(const OrdersRow& event, i64 sign) {
        auto& entry = customers.at({event.custkey});
        Customer& customer = entry.values;
        i64 before = customer.orders;
        customer.orders += sign;
        if (customer.is_there && (before == 0 || customer.orders == 0)) {
            auto& nation = nations.at({customer.nationkey});
            double times = customer.orders == 0 ? 1 : -1, balance = double(customer.acctbal);
            hand::Lanes<2> change{{times, times * balance}};
            nation.values.idle.add(balance, change);
            if (balance < wealth) nation.values.below += change;
            if (unlikely(nation.values.settle())) nations.doubt(nation);
            nations.sweep();
        }
        if (unlikely(customer.settle())) {
            customers.doubt(entry);
            customers.sweep();
        }
    }
};

inline constexpr ResultColumn Q22_COLUMNS[] = {{"nationkey", Sql::BIGINT, 0, 0, false},
                                               {"balance", Sql::DECIMAL, 38, 2, false}};

inline void read_q22(Program& program, Rows& out) {
    if (program.positive == 0) return;
    for (auto* entry = program.nations.first(); entry; entry = program.nations.next(entry)) {
        if (entry->values.below[COUNT] == 0) continue;
        out.put(0, entry->key.key);
        out.put(1, i128(entry->values.below[BALANCE]));
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_customer, &Program::insert_customer, &Program::delete_customer>("customer",
                                                                                                      CUSTOMER_COLUMNS),
    relation<Program, &Program::table_orders, &Program::insert_orders, &Program::delete_orders>("orders",
                                                                                                ORDERS_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"q22", Q22_COLUMNS, &read_q22}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::customers>("customers"),
                                          map_of<Program, &Program::nations>("nations")};  // without the trees

}  // namespace viewlet
