// VWAP by hand. Volumes are positive, so the prices below the upper quarter of the volume are a prefix, found in one
// walk down a tree; the greatest price does not count, since SUM over no greater one is NULL.
#include "book.hpp"

namespace viewlet {

enum : u32 { COUNT, VOLUME, TURNOVER };

struct Program {
    Texts texts;
    Faults faults;
    Table<Order> table_bids;
    hand::Tree<3> bids;
    hand::Lanes<3> counted{};

    void insert_bids(const Order& event) { change(event, 1); }
    void delete_bids(const Order& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const Order& event, double sign) {
        bids.add(event.price, {{sign, sign * event.volume, sign * event.volume * event.price}});
        counted = {};
        if (bids.total[COUNT] == 0) return;
        double volume = bids.total[VOLUME], quarter = 0.25 * volume;
        auto below = bids.cut<VOLUME>([=](hand::Pack running) { return volume - running >= quarter; }).below;
        counted = bids.total - below - bids.last().lanes;
    }
};

inline constexpr ResultColumn VWAP_COLUMNS[] = {{"vwap", Sql::DOUBLE, 0, 0, true}};

inline void read_vwap(Program& program, Rows& out) {
    if (program.counted[COUNT] > 0)
        out.put(0, program.counted[TURNOVER]);
    else
        out.null(0);
    out.end();
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_bids, &Program::insert_bids, &Program::delete_bids>("bids", ORDER_COLUMNS)};
inline constexpr Nothing VIEWS, MAPS;
inline constexpr ResultOf<Program> RESULTS[] = {{"vwap", VWAP_COLUMNS, &read_vwap}};

}  // namespace viewlet
