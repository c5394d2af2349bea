// BSP by hand. One walk down the broker's tree adds the order and tells the sums before and after its time.
#include "book.hpp"

namespace viewlet {

enum : u32 { COUNT, TURNOVER };

struct Broker {
    hand::Tree<2> by_time;
    double pairs{}, spread{};
    bool settle() { return by_time.total[COUNT] == 0; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<Order> table_bids;
    Map<BrokerKey, Broker> brokers;

    void insert_bids(const Order& event) { change(event, 1); }
    void delete_bids(const Order& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const Order& event, double sign) {
        auto& entry = brokers.at({event.broker_id});
        Broker& broker = entry.values;
        double turnover = event.volume * event.price;
        auto [before, after] = broker.by_time.add(event.t, {{sign, sign * turnover}});
        broker.pairs += sign * (before[COUNT] + after[COUNT]);
        broker.spread += sign * ((before[COUNT] - after[COUNT]) * turnover - before[TURNOVER] + after[TURNOVER]);
        if (unlikely(broker.settle())) {
            brokers.doubt(entry);
            brokers.sweep();
        }
    }
};

inline constexpr ResultColumn BSP_COLUMNS[] = {{"broker_id", Sql::BIGINT, 0, 0, false},
                                               {"spread", Sql::DOUBLE, 0, 0, false}};

inline void read_bsp(Program& program, Rows& out) {
    for (auto* entry = program.brokers.first(); entry; entry = program.brokers.next(entry)) {
        if (entry->values.pairs == 0) continue;
        out.put(0, entry->key.broker_id);
        out.put(1, entry->values.spread);
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_bids, &Program::insert_bids, &Program::delete_bids>("bids", ORDER_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"bsp", BSP_COLUMNS, &read_bsp}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::brokers>("brokers")};  // without the trees

}  // namespace viewlet
