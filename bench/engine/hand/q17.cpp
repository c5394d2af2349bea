// Q17 by hand. A part knows its quantity, and what its lineitems below 0.005 of that come to; when the quantity moves,
// one look at the part's different quantities tells which of them are on the other side now.
#include "tpch.hpp"

namespace viewlet {

struct Part {
    i64 times{}, rows{}, quantity{};  // sums of one part: 64 bits, and a fault should they not do
    i64 rows_below{}, price_below{};
    bool settle() { return times == 0 && rows == 0; }
};

struct AmountKey {
    i64 partkey, quantity;
    bool operator==(const AmountKey&) const = default;
    u64 hash() const { return mix(mix(START, partkey), quantity); }
};

struct Amount {
    i64 rows{}, price{};
    bool settle() { return rows == 0; }
};

struct ByPart {
    static constexpr bool read_often = true;
    static u64 hash(const AmountKey& key) { return mix(START, key.partkey); }
    static bool same(const AmountKey& a, const AmountKey& b) { return a.partkey == b.partkey; }
};

struct Total {
    i64 rows{};
    i128 revenue{};
};

struct Program {
    Texts texts;
    Faults faults;
    Table<LineitemRow> table_lineitem;
    Table<PartRow> table_part;
    Single<Total> q17;
    Map<OneKey, Part> parts;
    Map<AmountKey, Amount, ByPart> amounts;

    void insert_lineitem(const LineitemRow& event) { change(event, 1); }
    void delete_lineitem(const LineitemRow& event) { change(event, -1); }
    void insert_part(const PartRow& event) { change(event, 1); }
    void delete_part(const PartRow& event) { change(event, -1); }

private:
    static bool is_below(i64 quantity, i64 all) { return i128(quantity) * 200 < all; }

    VIEWLET_INLINE void change(const LineitemRow& event, i64 sign) {
        auto& entry = parts.at({event.partkey});
        Part& part = entry.values;
        i64 rows = part.rows_below, price = part.price_below, before = part.quantity;
        part.quantity = sum(before, sign * event.quantity);
        for (auto* other : amounts.slice<ByPart>({event.partkey, 0}))
            count(part, other->values,
                  is_below(other->key.quantity, part.quantity) - is_below(other->key.quantity, before));
        change_amount(part, event, sign);
        if ((part.rows += sign) == 0) parts.doubt(entry);
        if (part.times) add_total(part.times, part.rows_below - rows, i128(part.price_below) - price);
        amounts.sweep();
        parts.sweep();
    }

    VIEWLET_INLINE void change_amount(Part& part, const LineitemRow& event, i64 sign) {
        auto& entry = amounts.at({event.partkey, event.quantity});
        Amount change{sign, sign * event.extendedprice};
        entry.values.price = sum(entry.values.price, change.price);
        if ((entry.values.rows += sign) == 0) amounts.doubt(entry);
        if (is_below(event.quantity, part.quantity)) count(part, change, 1);
    }

    VIEWLET_INLINE void count(Part& part, const Amount& amount, int side) {
        if (side == 0) return;
        part.rows_below += side * amount.rows;
        part.price_below = sum(part.price_below, side * amount.price);
    }

    VIEWLET_INLINE i64 sum(i64 a, i64 b) { return narrow(faults, 0, i128(a) + b); }

    VIEWLET_INLINE void change(const PartRow& event, i64 sign) {
        auto& part = parts.at({event.partkey});
        if ((part.values.times += sign) == 0) parts.doubt(part);
        add_total(sign, part.values.rows_below, part.values.price_below);
        parts.sweep();
    }

    VIEWLET_INLINE void add_total(i64 times, i64 rows, i128 price) {
        q17.only.values.rows += times * rows;
        q17.only.values.revenue = add(faults, 0, q17.only.values.revenue, mul(faults, 0, times, price));
    }
};

inline constexpr ResultColumn Q17_COLUMNS[] = {{"revenue", Sql::DECIMAL, 38, 2, true}};

inline void read_q17(Program& program, Rows& out) {
    auto& total = program.q17.only.values;
    if (total.rows)
        out.put(0, total.revenue);
    else
        out.null(0);
    out.end();
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_lineitem, &Program::insert_lineitem, &Program::delete_lineitem>("lineitem",
                                                                                                      LINEITEM_COLUMNS),
    relation<Program, &Program::table_part, &Program::insert_part, &Program::delete_part>("part", PART_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"q17", Q17_COLUMNS, &read_q17}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::parts>("parts"),
                                          map_of<Program, &Program::amounts>("amounts")};

}  // namespace viewlet
