// SSB4 by hand. Lineitems wait under their order key; only while an order of 1997 has that key are they joined, along
// their keys, and findable by part and supplier. Those lookups are slices: no key is taken to be unique.
#include "tpch.hpp"

namespace viewlet {

constexpr i64 FIRST = 9862, END = 10227;  // 1997-01-01, 1998-01-01

struct Line {
    i64 orderkey, partkey, suppkey;
    bool operator==(const Line&) const = default;
    u64 hash() const { return mix(mix(mix(START, orderkey), partkey), suppkey); }
};
struct Pair {  // an order and its customer; a customer or supplier and its region
    i64 left, right;
    bool operator==(const Pair&) const = default;
    u64 hash() const { return mix(mix(START, left), right); }
};
struct Group {
    i64 supplier_region, customer_region;
    Text type;
    bool operator==(const Group&) const = default;
    u64 hash() const { return mix(mix(mix(START, supplier_region), customer_region), type); }
};
struct Quantity {
    i64 rows{};
    i128 sum{};
    bool settle() { return rows == 0; }
};

struct Waiting {
    i64 partkey, suppkey, rows;
    i128 sum;
};
struct Waitings {
    i64 orders{};  // of 1997
    Few<Waiting> lines;
    bool settle() { return orders == 0 && lines.size == 0; }
};

template <class Key, auto field> struct By {
    static u64 hash(const Key& key) { return mix(START, key.*field); }
    static bool same(const Key& a, const Key& b) { return a.*field == b.*field; }
};
using LineByPart = By<Line, &Line::partkey>;
using LineBySupplier = By<Line, &Line::suppkey>;
using ByLeft = By<Pair, &Pair::left>;
using ByRight = By<Pair, &Pair::right>;
using TypeByPart = By<PartRow, &PartRow::partkey>;
using RegionByNation = By<NationRow, &NationRow::nationkey>;

struct Program {
    Texts texts;
    Faults faults;
    Table<CustomerRow> table_customer;
    Table<OrdersRow> table_orders;
    Table<LineitemRow> table_lineitem;
    Table<PartRow> table_part;
    Table<SupplierRow> table_supplier;
    Table<NationRow, RegionByNation> table_nation;
    Map<Group, Quantity> ssb4;
    Map<OneKey, Waitings> waiting;
    Map<Line, Quantity, LineByPart, LineBySupplier> joined;
    Map<Pair, Times, ByLeft, ByRight> orders;
    Map<Pair, Times, ByLeft> customers, suppliers;
    Table<PartRow, TypeByPart> parts;

    void insert_customer(const CustomerRow& event) { change(event, 1); }
    void delete_customer(const CustomerRow& event) { change(event, -1); }
    void insert_orders(const OrdersRow& event) { change(event, 1); }
    void delete_orders(const OrdersRow& event) { change(event, -1); }
    void insert_lineitem(const LineitemRow& event) { change(event, 1); }
    void delete_lineitem(const LineitemRow& event) { change(event, -1); }
    void insert_part(const PartRow& event) { change(event, 1); }
    void delete_part(const PartRow& event) { change(event, -1); }
    void insert_supplier(const SupplierRow& event) { change(event, 1); }
    void delete_supplier(const SupplierRow& event) { change(event, -1); }

private:
    void change(const CustomerRow& event, i64 sign) {
        for (auto* n = table_nation.first<RegionByNation>({event.nationkey, 0}); n;
             n = table_nation.next<RegionByNation>(n)) {
            i64 times = sign * n->values.times;
            count(customers, {event.custkey, n->key.regionkey}, times);
            for (auto* o = orders.first<ByRight>({0, event.custkey}); o; o = orders.next<ByRight>(o))
                add_order(o->key.left, n->key.regionkey, times * o->values.times);
        }
        customers.sweep();
        ssb4.sweep();
    }

    VIEWLET_INLINE void change(const OrdersRow& event, i64 sign) {
        if (event.orderdate < FIRST || event.orderdate >= END) return;
        count(orders, {event.orderkey, event.custkey}, sign);
        for (auto* c = customers.first<ByLeft>({event.custkey, 0}); c; c = customers.next<ByLeft>(c))
            add_order(event.orderkey, c->key.right, sign * c->values.times);
        auto& entry = waiting.at({event.orderkey});
        bool was_there = entry.values.orders;
        bool is_there = entry.values.orders += sign;
        if (is_there != was_there) join_lines(entry, sign);
        orders.sweep();
        ssb4.sweep();
        waiting.sweep();
    }

    VIEWLET_INLINE void join_lines(Map<OneKey, Waitings>::Entry& entry, i64 sign) {
        for (const Waiting& line : entry.values.lines)
            add_to(joined, {entry.key.key, line.partkey, line.suppkey}, sign * line.rows, sign * line.sum);
        joined.sweep();
        if (entry.values.settle()) waiting.doubt(entry);
    }

    VIEWLET_INLINE void change(const LineitemRow& event, i64 sign) {
        Line line{event.orderkey, event.partkey, event.suppkey};
        i128 quantity = i128(event.quantity) * sign;
        auto& entry = waiting.at({event.orderkey});
        wait(entry.values.lines, line, sign, quantity);
        if (entry.values.orders) add_joined(line, sign, quantity);
        if (entry.values.settle()) {
            waiting.doubt(entry);
            waiting.sweep();
        }
    }

    VIEWLET_INLINE void wait(Few<Waiting>& lines, const Line& line, i64 sign, i128 quantity) {
        u32 place = 0;
        while (place < lines.size && !is_same(lines.items[place], line)) ++place;
        if (place == lines.size) lines.insert(place, {line.partkey, line.suppkey, 0, 0});
        Waiting& kept = lines.items[place];
        kept.sum = add(faults, 0, kept.sum, quantity);
        if ((kept.rows += sign) == 0) lines.erase(place);
    }

    static VIEWLET_INLINE bool is_same(const Waiting& waiting, const Line& line) {
        return waiting.partkey == line.partkey && waiting.suppkey == line.suppkey;
    }

    void add_joined(const Line& line, i64 sign, i128 quantity) {
        add_to(joined, line, sign, quantity);
        for_each_customer_region(line.orderkey,
                                 [&](i64 region, i64 times) { add_line(line, region, times, sign, quantity); });
        joined.sweep();
        ssb4.sweep();
    }

    void change(const PartRow& event, i64 sign) {
        auto& part = parts.at(event);
        if ((part.values.times += sign) == 0) parts.doubt(part);
        for (auto* l = joined.first<LineByPart>({0, event.partkey, 0}); l; l = joined.next<LineByPart>(l))
            for_each_customer_region(l->key.orderkey, [&](i64 region, i64 times) {
                add_suppliers(l->key, event.type, region, sign * times, l->values.rows, l->values.sum);
            });
        parts.sweep();
        ssb4.sweep();
    }

    void change(const SupplierRow& event, i64 sign) {
        for (auto* n = table_nation.first<RegionByNation>({event.nationkey, 0}); n;
             n = table_nation.next<RegionByNation>(n)) {
            i64 nations = sign * n->values.times;
            count(suppliers, {event.suppkey, n->key.regionkey}, nations);
            for (auto* l = joined.first<LineBySupplier>({0, 0, event.suppkey}); l; l = joined.next<LineBySupplier>(l))
                for_each_customer_region(l->key.orderkey, [&](i64 region, i64 times) {
                    for (auto* p = first_part(l->key); p; p = parts.next<TypeByPart>(p))
                        add_to(ssb4, {n->key.regionkey, region, p->key.type},
                               nations * times * p->values.times * l->values.rows,
                               mul(faults, 0, nations * times * p->values.times, l->values.sum));
                });
        }
        suppliers.sweep();
        ssb4.sweep();
    }

    template <class Visit> VIEWLET_INLINE void for_each_customer_region(i64 orderkey, Visit visit) {
        for (auto* o = orders.first<ByLeft>({orderkey, 0}); o; o = orders.next<ByLeft>(o))
            for (auto* c = customers.first<ByLeft>({o->key.right, 0}); c; c = customers.next<ByLeft>(c))
                visit(c->key.right, o->values.times * c->values.times);
    }

    VIEWLET_INLINE void add_order(i64 orderkey, i64 region, i64 times) {
        auto* entry = waiting.find({orderkey});
        if (!entry) return;
        for (const Waiting& line : entry->values.lines)
            add_line({orderkey, line.partkey, line.suppkey}, region, times, line.rows, line.sum);
    }

    VIEWLET_INLINE void add_line(const Line& line, i64 region, i64 times, i64 rows, i128 sum) {
        for (auto* p = first_part(line); p; p = parts.next<TypeByPart>(p))
            add_suppliers(line, p->key.type, region, times * p->values.times, rows, sum);
    }

    VIEWLET_INLINE void add_suppliers(const Line& line, Text type, i64 region, i64 times, i64 rows, i128 sum) {
        for (auto* s = suppliers.first<ByLeft>({line.suppkey, 0}); s; s = suppliers.next<ByLeft>(s)) {
            i64 all = times * s->values.times;
            add_to(ssb4, {s->key.right, region, type}, all * rows, mul(faults, 0, all, sum));
        }
    }

    VIEWLET_INLINE Table<PartRow, TypeByPart>::Entry* first_part(const Line& line) {
        return parts.first<TypeByPart>({line.partkey, Text{}});
    }

    template <class M> VIEWLET_INLINE void count(M& map, const Pair& key, i64 times) {
        auto& entry = map.at(key);
        if ((entry.values.times += times) == 0) map.doubt(entry);
    }

    template <class M> VIEWLET_INLINE void add_to(M& map, const typename M::Key& key, i64 rows, i128 sum) {
        auto& entry = map.at(key);
        entry.values.sum = add(faults, 0, entry.values.sum, sum);
        if ((entry.values.rows += rows) == 0) map.doubt(entry);
    }
};

inline constexpr ResultColumn SSB4_COLUMNS[] = {{"supplier_region", Sql::BIGINT, 0, 0, false},
                                                {"customer_region", Sql::BIGINT, 0, 0, false},
                                                {"type", Sql::VARCHAR, 0, 0, false},
                                                {"quantity", Sql::DECIMAL, 38, 2, false}};

inline void read_ssb4(Program& program, Rows& out) {
    for (auto* entry = program.ssb4.first(); entry; entry = program.ssb4.next(entry)) {
        out.put(0, entry->key.supplier_region);
        out.put(1, entry->key.customer_region);
        out.put(2, entry->key.type);
        out.put(3, entry->values.sum);
        out.end();
    }
}

inline constexpr Relation<Program> RELATIONS[] = {
    relation<Program, &Program::table_customer, &Program::insert_customer, &Program::delete_customer>("customer",
                                                                                                      CUSTOMER_COLUMNS),
    relation<Program, &Program::table_orders, &Program::insert_orders, &Program::delete_orders>("orders",
                                                                                                ORDERS_COLUMNS),
    relation<Program, &Program::table_lineitem, &Program::insert_lineitem, &Program::delete_lineitem>("lineitem",
                                                                                                      LINEITEM_COLUMNS),
    relation<Program, &Program::table_part, &Program::insert_part, &Program::delete_part>("part", PART_COLUMNS),
    relation<Program, &Program::table_supplier, &Program::insert_supplier, &Program::delete_supplier>("supplier",
                                                                                                      SUPPLIER_COLUMNS),
    static_table<Program, &Program::table_nation>("nation", NATION_COLUMNS)};
inline constexpr Nothing VIEWS;
inline constexpr ResultOf<Program> RESULTS[] = {{"ssb4", SSB4_COLUMNS, &read_ssb4}};
inline constexpr MapOf<Program> MAPS[] = {
    map_of<Program, &Program::ssb4>("ssb4"),           map_of<Program, &Program::waiting>("waiting"),
    map_of<Program, &Program::joined>("joined"),       map_of<Program, &Program::orders>("orders"),
    map_of<Program, &Program::customers>("customers"), map_of<Program, &Program::suppliers>("suppliers"),
    map_of<Program, &Program::parts>("parts"),         map_of<Program, &Program::table_nation>("nation")};

}  // namespace viewlet
