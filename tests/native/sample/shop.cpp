// Every type of column, NULLs, a static table, a view without keys, and triggers that read another stream's base table.
#include "program.hpp"
namespace viewlet {

struct OrdersRow {
    i64 id;
    Opt<Text> customer;
    i64 price;
    Opt<i128> weight;
    i64 day;
    Opt<i64> at;
    Opt<bool> paid;
    Opt<i64> small;
    Opt<double> rate;
    bool operator==(const OrdersRow& o) const {
        return id == o.id && customer == o.customer && price == o.price && weight == o.weight && day == o.day &&
               at == o.at && paid == o.paid && small == o.small && rate == o.rate;
    }
    u64 hash() const {
        u64 h = mix(mix(mix(mix(START, id), customer), price), weight);
        return mix(mix(mix(mix(mix(h, day), at), paid), small), rate);
    }
};
struct PaymentsRow {
    Text customer;
    i64 amount;
    bool operator==(const PaymentsRow&) const = default;
    u64 hash() const { return mix(mix(START, customer), amount); }
};
struct NationRow {
    i64 key;
    Text name;
    bool operator==(const NationRow&) const = default;
    u64 hash() const { return mix(mix(START, key), name); }
};
struct CustomerKey {
    Opt<Text> customer;
    bool operator==(const CustomerKey&) const = default;
    u64 hash() const { return mix(START, customer); }
};
struct CustomerValues {
    i64 orders{};
    i128 total{};
    RealSum rates{};
    bool settle() {
        if (orders == 0) rates.clear();
        return orders == 0 && total == 0 && rates.is_zero();
    }
};
struct ScalarValues {
    i64 pairs{};
    i128 squares{};
};
enum : u32 { ORDERS, TOTAL, RATES, PAIRS, SQUARES };

struct Program {
    static constexpr bool FORGETS_TEXTS = true;
    Texts texts;
    Faults faults;
    Table<OrdersRow> table_orders;
    Table<PaymentsRow> table_payments;
    Table<NationRow> table_nation;
    Map<CustomerKey, CustomerValues> by_customer;
    Single<ScalarValues> scalars;

    void refresh_orders(const OrdersRow& event, i64 sign) {
        auto& entry = by_customer.at({event.customer});
        entry.values.orders += sign;
        entry.values.total = add(faults, TOTAL, entry.values.total, sign * i128(event.price));
        if (!event.rate.null) entry.values.rates.add(event.rate.value, sign);
        if (entry.values.orders == 0) by_customer.doubt(entry);
        by_customer.sweep();
        i128 square = event.weight.null ? 0 : mul(faults, SQUARES, event.weight.value, event.weight.value);
        scalars.only.values.squares = add(faults, SQUARES, scalars.only.values.squares, sign * square);
        for (auto* paid = table_payments.first(); paid; paid = table_payments.next(paid))
            if (Opt<Text>(paid->key.customer) == event.customer) scalars.only.values.pairs += sign * paid->values.times;
    }
    void refresh_payments(const PaymentsRow& event, i64 sign) {
        for (auto* order = table_orders.first(); order; order = table_orders.next(order))
            if (order->key.customer == Opt<Text>(event.customer))
                scalars.only.values.pairs += sign * order->values.times;
    }
    void insert_orders(const OrdersRow& event) { refresh_orders(event, 1); }
    void delete_orders(const OrdersRow& event) { refresh_orders(event, -1); }
    void insert_payments(const PaymentsRow& event) { refresh_payments(event, 1); }
    void delete_payments(const PaymentsRow& event) { refresh_payments(event, -1); }
};

inline void read_customers(Program& program, Rows& out) {
    for (auto* entry = program.by_customer.first(); entry; entry = program.by_customer.next(entry)) {
        out.put(0, entry->key.customer);
        out.put(1, entry->values.orders);
        out.put(2, entry->values.total);
        out.end();
    }
}

inline void read_orders(Program& program, Rows& out) {
    for (auto* entry = program.table_orders.first(); entry; entry = program.table_orders.next(entry)) {
        const OrdersRow& row = entry->key;
        out.put(0, row.id), out.put(1, row.customer), out.put(2, row.price), out.put(3, row.weight);
        out.put(4, row.day), out.put(5, row.at), out.put(6, row.paid), out.put(7, row.small), out.put(8, row.rate);
        out.weight(entry->values.times);
        out.end();
    }
}

inline constexpr Column ORDERS_COLUMNS[] = {
    {"id", Cell::I64, false, 0, 0, offsetof(OrdersRow, id), Sql::BIGINT},
    {"customer", Cell::TEXT, true, 0, 0, offsetof(OrdersRow, customer), Sql::VARCHAR},
    {"price", Cell::I64, false, 12, 2, offsetof(OrdersRow, price), Sql::DECIMAL},
    {"weight", Cell::I128, true, 38, 4, offsetof(OrdersRow, weight), Sql::DECIMAL},
    {"day", Cell::I64, false, 0, 0, offsetof(OrdersRow, day), Sql::DATE},
    {"at", Cell::I64, true, 0, 0, offsetof(OrdersRow, at), Sql::TIMESTAMP},
    {"paid", Cell::BOOL, true, 0, 0, offsetof(OrdersRow, paid), Sql::BOOLEAN},
    {"small", Cell::I64, true, 0, 0, offsetof(OrdersRow, small), Sql::INTEGER},
    {"rate", Cell::F64, true, 0, 0, offsetof(OrdersRow, rate), Sql::DOUBLE},
};
inline constexpr Column PAYMENTS_COLUMNS[] = {
    {"customer", Cell::TEXT, false, 0, 0, offsetof(PaymentsRow, customer), Sql::VARCHAR},
    {"amount", Cell::I64, false, 12, 2, offsetof(PaymentsRow, amount), Sql::DECIMAL},
};
inline constexpr Column NATION_COLUMNS[] = {
    {"key", Cell::I64, false, 0, 0, offsetof(NationRow, key), Sql::BIGINT},
    {"name", Cell::TEXT, false, 0, 0, offsetof(NationRow, name), Sql::VARCHAR},
};
inline constexpr Column CUSTOMER_KEY[] = {{"customer", Cell::TEXT, true, 0, 0, offsetof(CustomerKey, customer)}};
inline constexpr ResultColumn CUSTOMER_SHOWN[] = {
    {"customer", Sql::VARCHAR, 0, 0, true},
    {"n", Sql::INTEGER, 0, 0, false},
    {"total", Sql::DECIMAL, 12, 2, false},
};
inline constexpr ResultColumn ORDERS_SHOWN[] = {
    {"id", Sql::BIGINT, 0, 0, false},      {"customer", Sql::VARCHAR, 0, 0, true},
    {"price", Sql::DECIMAL, 12, 2, false}, {"weight", Sql::DECIMAL, 38, 4, true},
    {"day", Sql::DATE, 0, 0, false},       {"at", Sql::TIMESTAMP, 0, 0, true},
    {"paid", Sql::BOOLEAN, 0, 0, true},    {"small", Sql::INTEGER, 0, 0, true},
    {"rate", Sql::DOUBLE, 0, 0, true},
};

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_orders, &Program::insert_orders, &Program::delete_orders>("orders",
                                                                                                ORDERS_COLUMNS),
    relation<Program, &Program::table_payments, &Program::insert_payments, &Program::delete_payments>("payments",
                                                                                                      PAYMENTS_COLUMNS),
    static_table<Program, &Program::table_nation>("nation", NATION_COLUMNS),
};
inline constexpr ViewOf<Program> VIEWS[] = {
    view<Program, &Program::by_customer, &CustomerValues::orders>("orders_by", CUSTOMER_KEY, 0),
    view<Program, &Program::by_customer, &CustomerValues::total>("total_by", CUSTOMER_KEY, 2),
    view<Program, &Program::by_customer, &CustomerValues::rates>("rates_by", CUSTOMER_KEY, 0),
    single<Program, &Program::scalars, &ScalarValues::pairs>("pairs", 0),
    single<Program, &Program::scalars, &ScalarValues::squares>("squares", 8),
};
inline constexpr ResultOf<Program> RESULTS[] = {{"customers", CUSTOMER_SHOWN, &read_customers},
                                                {"all_orders", ORDERS_SHOWN, &read_orders}};
inline constexpr MapOf<Program> MAPS[] = {
    map_of<Program, &Program::table_orders>("orders"), map_of<Program, &Program::table_payments>("payments"),
    map_of<Program, &Program::table_nation>("nation"), map_of<Program, &Program::by_customer>("by_customer"),
    map_of<Program, &Program::scalars>("scalars")};

}  // namespace viewlet
#include "bridge.hpp"
VIEWLET_MODULE(viewlet_native_shop, viewlet::Program)
