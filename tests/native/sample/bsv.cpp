// BSV of the order book, as the emitter would write it: the view, and the sum of each broker that it is made of.
#include "program.hpp"
namespace viewlet {

struct BidsRow {
    double t;
    i64 id;
    i64 broker_id;
    double volume;
    double price;
    bool operator==(const BidsRow& o) const {
        return same(t, o.t) && id == o.id && broker_id == o.broker_id && same(volume, o.volume) && same(price, o.price);
    }
    u64 hash() const { return mix(mix(mix(mix(mix(START, t), id), broker_id), volume), price); }
    static constexpr void each_cell(auto& row, const auto& use) {
        use(row.t), use(row.id), use(row.broker_id), use(row.volume), use(row.price);
    }
};
struct BsvKey {
    i64 broker_id;
    bool operator==(const BsvKey&) const = default;
    u64 hash() const { return mix(START, broker_id); }
};
struct BsvValues {
    RealSum bsv_sum{};
    i64 bsv_bids{};
    RealSum bsv_sum_bids{};
    bool settle() {
        if (bsv_bids == 0) bsv_sum.clear(), bsv_sum_bids.clear();
        return bsv_bids == 0 && bsv_sum.is_zero() && bsv_sum_bids.is_zero();
    }
};

struct Program {
    Texts texts;
    Faults faults;
    PackedTable<BidsRow> table_bids;
    Map<BsvKey, BsvValues> bsv;

    void refresh(const BidsRow& event, i64 sign) {
        auto& entry = bsv.at({event.broker_id});
        auto& values = entry.values;
        Real value = Real(event.volume) * Real(event.price), others = values.bsv_sum_bids.value();
        Real signed_value = sign > 0 ? value : -value;
        values.bsv_sum.add(signed_value * others * Real(1.0) + value * value * Real(0.5));
        values.bsv_sum_bids.add(value, sign);
        values.bsv_bids += sign;
        if (values.bsv_bids == 0) bsv.doubt(entry);
        bsv.sweep();
    }
    void insert_bids(const BidsRow& event) { refresh(event, 1); }
    void delete_bids(const BidsRow& event) { refresh(event, -1); }
};

inline void read_bsv(Program& program, Rows& out) {
    for (auto* entry = program.bsv.first(); entry; entry = program.bsv.next(entry)) {
        if (entry->values.bsv_bids == 0) continue;
        out.put(0, entry->key.broker_id);
        out.put(1, entry->values.bsv_sum.value().hi);
        out.end();
    }
}

inline constexpr Column BIDS_COLUMNS[] = {
    {"t", Cell::F64, false, 0, 0, offsetof(BidsRow, t), Sql::DOUBLE},
    {"id", Cell::I64, false, 0, 0, offsetof(BidsRow, id), Sql::BIGINT},
    {"broker_id", Cell::I64, false, 0, 0, offsetof(BidsRow, broker_id), Sql::BIGINT},
    {"volume", Cell::F64, false, 0, 0, offsetof(BidsRow, volume), Sql::DOUBLE},
    {"price", Cell::F64, false, 0, 0, offsetof(BidsRow, price), Sql::DOUBLE},
};
inline constexpr Column BSV_KEY[] = {{"broker_id", Cell::I64, false, 0, 0, offsetof(BsvKey, broker_id)}};
inline constexpr ResultColumn BSV_COLUMNS[] = {{"broker_id", Sql::BIGINT, 0, 0, false}, {"v", Sql::DOUBLE, 0, 0, true}};

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_bids, &Program::insert_bids, &Program::delete_bids>("bids", BIDS_COLUMNS)};
inline constexpr ViewOf<Program> VIEWS[] = {
    view<Program, &Program::bsv, &BsvValues::bsv_sum>("bsv_sum", BSV_KEY, 0),
    view<Program, &Program::bsv, &BsvValues::bsv_bids>("bsv_bids", BSV_KEY, 0),
    view<Program, &Program::bsv, &BsvValues::bsv_sum_bids>("bsv_sum_bids", BSV_KEY, 0),
};
inline constexpr ResultOf<Program> RESULTS[] = {{"bsv", BSV_COLUMNS, &read_bsv}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::table_bids>("bids"),
                                          map_of<Program, &Program::bsv>("bsv")};

}  // namespace viewlet
#include "bridge.hpp"
VIEWLET_MODULE(viewlet_native_bsv, viewlet::Program)
