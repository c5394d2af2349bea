// MST by hand. Each side is cut where the upper quarter of its volume begins, as in VWAP; of the bids, what is above
// the cut is looked up in a tree for each broker.
#include "book.hpp"

namespace viewlet {

enum : u32 { COUNT, VOLUME, TURNOVER };
enum : u32 { OF_BROKER_COUNT, OF_BROKER_TURNOVER };

struct Upper {
    double from, below;  // the prices of the upper quarter without the greatest one, which has no SUM above it
};

VIEWLET_INLINE Upper upper_quarter(const hand::Tree<3>& side, hand::Lanes<3>& counted) {
    counted = {};
    if (side.total[COUNT] == 0) return {};
    double volume = side.total[VOLUME], quarter = 0.25 * volume;
    auto cut = side.cut<VOLUME>([=](hand::Pack running) { return volume - running >= quarter; });
    auto last = side.last();
    counted = side.total - cut.below - last.lanes;
    return {cut.key, last.key};
}

struct Broker {
    hand::Tree<2> bids;
    hand::Lanes<2> counted{};
    double pairs{}, spread{};
    bool settle() { return bids.total[OF_BROKER_COUNT] == 0; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<Order> table_bids, table_asks;
    hand::Tree<3> bids, asks;
    hand::Lanes<3> counted_bids{}, counted_asks{};
    Map<BrokerKey, Broker> brokers;

    void insert_bids(const Order& event) { change_bids(event, 1); }
    void delete_bids(const Order& event) { change_bids(event, -1); }
    void insert_asks(const Order& event) { change_asks(event, 1); }
    void delete_asks(const Order& event) { change_asks(event, -1); }

private:
    VIEWLET_INLINE void change_bids(const Order& event, double sign) {
        double turnover = sign * event.volume * event.price;
        auto& of = brokers.at({event.broker_id});
        of.values.bids.add(event.price, {{sign, turnover}});
        bids.add(event.price, {{sign, sign * event.volume, turnover}});
        if (unlikely(of.values.settle())) {
            brokers.doubt(of);
            brokers.sweep();
        }
        Upper upper = upper_quarter(bids, counted_bids);
        for (auto* entry = brokers.first(); entry; entry = brokers.next(entry)) {
            entry->values.counted = in_upper(entry->values.bids, upper);
            refresh(entry->values);
        }
    }

    VIEWLET_INLINE void change_asks(const Order& event, double sign) {
        asks.add(event.price, {{sign, sign * event.volume, sign * event.volume * event.price}});
        upper_quarter(asks, counted_asks);
        for (auto* entry = brokers.first(); entry; entry = brokers.next(entry)) refresh(entry->values);
    }

    static VIEWLET_INLINE hand::Lanes<2> in_upper(const hand::Tree<2>& mine, Upper upper) {
        hand::Lanes<2> counted = mine.total - mine.before([=](hand::Pack prices) { return prices < upper.from; });
        auto last = mine.last();
        if (last.key == upper.below) counted -= last.lanes;
        return counted;
    }

    VIEWLET_INLINE void refresh(Broker& broker) {
        const hand::Lanes<2>& mine = broker.counted;
        broker.pairs = mine[OF_BROKER_COUNT] * counted_asks[COUNT];
        broker.spread = mine[OF_BROKER_COUNT] * counted_asks[TURNOVER] - counted_asks[COUNT] * mine[OF_BROKER_TURNOVER];
    }
};

inline constexpr ResultColumn MST_COLUMNS[] = {{"broker_id", Sql::BIGINT, 0, 0, false},
                                               {"spread", Sql::DOUBLE, 0, 0, false}};

inline void read_mst(Program& program, Rows& out) {
    for (auto* entry = program.brokers.first(); entry; entry = program.brokers.next(entry)) {
        if (entry->values.pairs == 0) continue;
        out.put(0, entry->key.broker_id);
        out.put(1, entry->values.spread);
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_bids, &Program::insert_bids, &Program::delete_bids>("bids", ORDER_COLUMNS),
    relation<Program, &Program::table_asks, &Program::insert_asks, &Program::delete_asks>("asks", ORDER_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"mst", MST_COLUMNS, &read_mst}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::brokers>("brokers")};  // without the trees

}  // namespace viewlet
