// AXF by hand. An order meets those of its broker's other side that are dearer or cheaper by more than 1000: all but
// the ones between two cuts of a tree.
#include "book.hpp"

namespace viewlet {

enum : u32 { COUNT, VOLUME };
constexpr double APART = 1000;

struct Broker {
    hand::Tree<2> bids, asks;
    double pairs{}, imbalance{};
    bool settle() { return bids.total[COUNT] == 0 && asks.total[COUNT] == 0; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<Order> table_bids, table_asks;
    Map<BrokerKey, Broker> brokers;

    void insert_bids(const Order& event) { change<&Broker::bids, &Broker::asks>(event, 1); }
    void delete_bids(const Order& event) { change<&Broker::bids, &Broker::asks>(event, -1); }
    void insert_asks(const Order& event) { change<&Broker::asks, &Broker::bids>(event, 1); }
    void delete_asks(const Order& event) { change<&Broker::asks, &Broker::bids>(event, -1); }

private:
    template <hand::Tree<2> Broker::* mine, hand::Tree<2> Broker::* others>
    VIEWLET_INLINE void change(const Order& event, double sign) {
        auto& entry = brokers.at({event.broker_id});
        Broker& broker = entry.values;
        (broker.*mine).add(event.price, {{sign, sign * event.volume}});
        auto& other = broker.*others;
        double price = event.price;
        hand::Lanes<2> met = other.before([=](hand::Pack prices) { return price - prices > APART; });
        met += other.total - other.before([=](hand::Pack prices) { return ~(prices - price > APART); });
        double asked_less_bid = mine == &Broker::asks ? 1 : -1;
        broker.pairs += sign * met[COUNT];
        broker.imbalance += sign * asked_less_bid * (met[COUNT] * event.volume - met[VOLUME]);
        if (unlikely(broker.settle())) {
            brokers.doubt(entry);
            brokers.sweep();
        }
    }
};

inline constexpr ResultColumn AXF_COLUMNS[] = {{"broker_id", Sql::BIGINT, 0, 0, false},
                                               {"imbalance", Sql::DOUBLE, 0, 0, false}};

inline void read_axf(Program& program, Rows& out) {
    for (auto* entry = program.brokers.first(); entry; entry = program.brokers.next(entry)) {
        if (entry->values.pairs == 0) continue;
        out.put(0, entry->key.broker_id);
        out.put(1, entry->values.imbalance);
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_bids, &Program::insert_bids, &Program::delete_bids>("bids", ORDER_COLUMNS),
    relation<Program, &Program::table_asks, &Program::insert_asks, &Program::delete_asks>("asks", ORDER_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"axf", AXF_COLUMNS, &read_axf}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::brokers>("brokers")};  // without the trees

}  // namespace viewlet
