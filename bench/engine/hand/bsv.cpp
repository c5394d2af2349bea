// BSV by hand. Σ over pairs of x·y·0.5 is half the square of Σ x: one sum for each broker, and no self-join.
#include "program.hpp"

namespace viewlet {

struct BidsRow {
    double t;
    i64 id, broker_id;
    double volume, price;
    bool operator==(const BidsRow&) const = default;
    u64 hash() const { return mix(mix(mix(mix(mix(START, t), id), broker_id), volume), price); }
};

struct Broker {
    i64 broker_id;
    bool operator==(const Broker&) const = default;
    u64 hash() const { return mix(START, broker_id); }
};

struct Brokers {
    i64 bids{};
    RealSum turnover{};
    Real variance{};
    bool settle() { return bids == 0; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<BidsRow> table_bids;
    Map<Broker, Brokers> bsv;

    void insert_bids(const BidsRow& event) { change(event, 1); }
    void delete_bids(const BidsRow& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const BidsRow& event, i64 sign) {
        auto& entry = bsv.at({event.broker_id});
        auto& broker = entry.values;
        broker.turnover.add(two_prod(event.volume, event.price), sign);
        Real turnover = broker.turnover.value();
        broker.variance = turnover * turnover * Real(0.5);
        if (unlikely((broker.bids += sign) == 0)) {
            bsv.doubt(entry);
            bsv.sweep();
        }
    }
};

inline constexpr Column BIDS_COLUMNS[] = {
    {"t", Cell::F64, false, 0, 0, offsetof(BidsRow, t), Sql::DOUBLE},
    {"id", Cell::I64, false, 0, 0, offsetof(BidsRow, id), Sql::BIGINT},
    {"broker_id", Cell::I64, false, 0, 0, offsetof(BidsRow, broker_id), Sql::BIGINT},
    {"volume", Cell::F64, false, 0, 0, offsetof(BidsRow, volume), Sql::DOUBLE},
    {"price", Cell::F64, false, 0, 0, offsetof(BidsRow, price), Sql::DOUBLE}};
inline constexpr ResultColumn BSV_COLUMNS[] = {{"broker_id", Sql::BIGINT, 0, 0, false},
                                               {"variance", Sql::DOUBLE, 0, 0, false}};

inline void read_bsv(Program& program, Rows& out) {
    for (auto* entry = program.bsv.first(); entry; entry = program.bsv.next(entry)) {
        out.put(0, entry->key.broker_id);
        out.put(1, entry->values.variance.hi);
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_bids, &Program::insert_bids, &Program::delete_bids>("bids", BIDS_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"bsv", BSV_COLUMNS, &read_bsv}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::bsv>("bsv")};

}  // namespace viewlet
