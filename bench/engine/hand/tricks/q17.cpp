// Q17 by hand. 0.005 of a part's quantity is a bar that moves a little with each lineitem. A part keeps its quantities in
// order, with their prices, and how many of them are below the bar: these few steps up or down are all there is to do.
#include "tpch.hpp"

namespace viewlet {

struct Amount {
    i64 quantity, rows, price;
};

struct Part {
    i64 times{}, quantity{};  // sums of one part: 64 bits, and a fault should they not do
    i64 rows_below{}, price_below{};
    Few<Amount> amounts;
    u32 below{};

    bool settle() { return times == 0 && amounts.size == 0; }
    bool is_below(const Amount& amount) const { return i128(amount.quantity) * 200 < quantity; }

    u32 place_of(i64 quantity) {  // of the first amount that is not less; no branch but the loop's
        u32 first = 0;
        for (u32 left = amounts.size; left > 0;) {
            u32 half = left / 2;
            bool less = amounts.items[first + half].quantity < quantity;
            first = less ? first + half + 1 : first;
            left = less ? left - half - 1 : half;
        }
        return first;
    }
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

    void insert_lineitem(const LineitemRow& event) { change(event, 1); }
    void delete_lineitem(const LineitemRow& event) { change(event, -1); }
    void insert_part(const PartRow& event) { change(event, 1); }
    void delete_part(const PartRow& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const LineitemRow& event, i64 sign) {
        auto& entry = parts.at({event.partkey});
        Part& part = entry.values;
        i64 rows = part.rows_below;
        i64 price = part.price_below;
        change_amount(part, event, sign);
        part.quantity = sum(part.quantity, event.quantity * sign);
        move_bar(part);
        if (part.times) add_total(part.times, part.rows_below - rows, i128(part.price_below) - price);
        if (part.settle()) {
            parts.doubt(entry);
            parts.sweep();
        }
    }

    VIEWLET_INLINE void change_amount(Part& part, const LineitemRow& event, i64 sign) {
        u32 place = part.place_of(event.quantity);
        bool is_below = place < part.below;
        if (place == part.amounts.size || part.amounts.items[place].quantity != event.quantity) {
            part.amounts.insert(place, {event.quantity, 0, 0});
            part.below += is_below;
        }
        Amount& amount = part.amounts.items[place];
        i64 price = event.extendedprice * sign;
        amount.price = sum(amount.price, price);
        amount.rows += sign;
        if (is_below) count_below(part, sign, price);
        if (amount.rows == 0) {
            part.amounts.erase(place);
            part.below -= is_below;
        }
    }

    VIEWLET_INLINE void move_bar(Part& part) {
        Amount* amounts = part.amounts.items;
        for (; part.below < part.amounts.size && part.is_below(amounts[part.below]); ++part.below)
            count_below(part, amounts[part.below].rows, amounts[part.below].price);
        for (; part.below > 0 && !part.is_below(amounts[part.below - 1]); --part.below)
            count_below(part, -amounts[part.below - 1].rows, -amounts[part.below - 1].price);
    }

    VIEWLET_INLINE void count_below(Part& part, i64 rows, i64 price) {
        part.rows_below += rows;
        part.price_below = sum(part.price_below, price);
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
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::parts>("parts")};  // without amounts

}  // namespace viewlet
