// Q11 by hand. A part keeps its few offers beside its view entry, a supplier the keys of the parts that he offers.
#include "tpch.hpp"

namespace viewlet {

struct Offer {
    i64 suppkey, rows;
    i128 cost;
};

struct Part {
    i64 rows{};
    i128 cost{};  // the view, present while rows is not 0
    Few<Offer> offers;
    bool settle() { return offers.size == 0; }
};

struct Supplier {
    i64 times{};
    Few<i64> parts;
    bool settle() { return times == 0 && parts.size == 0; }
};

struct Program {
    Texts texts;
    Faults faults;
    Table<PartsuppRow> table_partsupp;
    Table<SupplierRow> table_supplier;
    Map<OneKey, Part> q11;
    Map<OneKey, Supplier> suppliers;

    void insert_partsupp(const PartsuppRow& event) { change(event, 1); }
    void delete_partsupp(const PartsuppRow& event) { change(event, -1); }
    void insert_supplier(const SupplierRow& event) { change(event, 1); }
    void delete_supplier(const SupplierRow& event) { change(event, -1); }

private:
    VIEWLET_INLINE void change(const PartsuppRow& event, i64 sign) {
        auto& part = q11.at({event.partkey});
        auto& supplier = suppliers.at({event.suppkey});
        i128 cost = i128(event.supplycost) * event.availqty * sign;
        u32 place = place_of(part.values, event.suppkey);
        if (place == part.values.offers.size) {
            part.values.offers.insert(place, {event.suppkey, 0, 0});
            supplier.values.parts.insert(supplier.values.parts.size, event.partkey);
        }
        Offer& offer = part.values.offers.items[place];
        offer.cost = add(faults, 0, offer.cost, cost);
        if ((offer.rows += sign) == 0) {
            part.values.offers.erase(place);
            forget(supplier.values.parts, event.partkey);
        }
        add_cost(part.values, supplier.values.times, sign, cost);
        if (part.values.settle()) q11.doubt(part);
        if (supplier.values.settle()) suppliers.doubt(supplier);
        q11.sweep();
        suppliers.sweep();
    }

    VIEWLET_INLINE void change(const SupplierRow& event, i64 sign) {
        auto& supplier = suppliers.at({event.suppkey});
        supplier.values.times += sign;
        for (i64 partkey : supplier.values.parts) {
            Part& part = q11.find({partkey})->values;
            const Offer& offer = part.offers.items[place_of(part, event.suppkey)];
            add_cost(part, sign, offer.rows, offer.cost);
        }
        if (supplier.values.settle()) suppliers.doubt(supplier);
        suppliers.sweep();
    }

    VIEWLET_INLINE void add_cost(Part& part, i64 times, i64 rows, i128 cost) {
        part.rows += times * rows;
        part.cost = add(faults, 0, part.cost, mul(faults, 0, times, cost));
    }

    static VIEWLET_INLINE u32 place_of(const Part& part, i64 suppkey) {
        u32 place = 0;
        while (place < part.offers.size && part.offers.items[place].suppkey != suppkey) ++place;
        return place;
    }

    static VIEWLET_INLINE void forget(Few<i64>& parts, i64 partkey) {
        u32 place = 0;
        while (parts.items[place] != partkey) ++place;
        parts.items[place] = parts.items[--parts.size];
    }
};

inline constexpr ResultColumn Q11_COLUMNS[] = {{"partkey", Sql::BIGINT, 0, 0, false},
                                               {"cost", Sql::DECIMAL, 38, 2, false}};

inline void read_q11(Program& program, Rows& out) {
    for (auto* entry = program.q11.first(); entry; entry = program.q11.next(entry)) {
        if (entry->values.rows == 0) continue;
        out.put(0, entry->key.key);
        out.put(1, entry->values.cost);
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_partsupp, &Program::insert_partsupp, &Program::delete_partsupp>("partsupp",
                                                                                                      PARTSUPP_COLUMNS),
    relation<Program, &Program::table_supplier, &Program::insert_supplier, &Program::delete_supplier>(
        "supplier", SUPPLIER_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"q11", Q11_COLUMNS, &read_q11}};
inline constexpr MapOf<Program> MAPS[] = {map_of<Program, &Program::q11>("q11"),  // without offers and parts
                                          map_of<Program, &Program::suppliers>("suppliers")};

}  // namespace viewlet
