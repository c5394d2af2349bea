// PSP by hand. Σ over pairs of a.price − b.price comes from two sums a side: how many large orders, and their prices.
#include "book.hpp"

namespace viewlet {

enum : u32 { COUNT, PRICE };

struct Side {
    hand::Tree<2> by_volume;
    double volume{};
    hand::Lanes<2> large{};

    VIEWLET_INLINE void change(const Order& event, double sign) {
        by_volume.add(event.volume, {{sign, sign * event.price}});
        volume += sign * event.volume;
        double least = 0.0001 * volume;
        large = by_volume.total - by_volume.before([=](hand::Pack volumes) { return volumes <= least; });
    }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<Order> table_bids, table_asks;
    Side bids, asks;
    double pairs{}, spread{};

    void insert_bids(const Order& event) { change(bids, event, 1); }
    void delete_bids(const Order& event) { change(bids, event, -1); }
    void insert_asks(const Order& event) { change(asks, event, 1); }
    void delete_asks(const Order& event) { change(asks, event, -1); }

private:
    VIEWLET_INLINE void change(Side& side, const Order& event, double sign) {
        side.change(event, sign);
        pairs = bids.large[COUNT] * asks.large[COUNT];
        spread = bids.large[COUNT] * asks.large[PRICE] - asks.large[COUNT] * bids.large[PRICE];
    }
};

inline constexpr ResultColumn PSP_COLUMNS[] = {{"spread", Sql::DOUBLE, 0, 0, true}};

inline void read_psp(Program& program, Rows& out) {
    if (program.pairs > 0)
        out.put(0, program.spread);
    else
        out.null(0);
    out.end();
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_bids, &Program::insert_bids, &Program::delete_bids>("bids", ORDER_COLUMNS),
    relation<Program, &Program::table_asks, &Program::insert_asks, &Program::delete_asks>("asks", ORDER_COLUMNS)};
inline constexpr Nothing VIEWS, MAPS;
inline constexpr ResultOf<Program> RESULTS[] = {{"psp", PSP_COLUMNS, &read_psp}};

}  // namespace viewlet
