// The rows of the order book, and the brokers: shared by the hand-written programs.
#pragma once
#include "tree.hpp"

namespace viewlet {

struct Order {
    double t;
    i64 id, broker_id;
    double volume, price;
    bool operator==(const Order&) const = default;
    u64 hash() const { return mix(mix(mix(mix(mix(START, t), id), broker_id), volume), price); }
};

struct BrokerKey {
    i64 broker_id;
    bool operator==(const BrokerKey&) const = default;
    u64 hash() const { return mix(START, broker_id); }
};

inline constexpr Column ORDER_COLUMNS[] = {
    {"t", Cell::F64, false, 0, 0, offsetof(Order, t), Sql::DOUBLE},
    {"id", Cell::I64, false, 0, 0, offsetof(Order, id), Sql::BIGINT},
    {"broker_id", Cell::I64, false, 0, 0, offsetof(Order, broker_id), Sql::BIGINT},
    {"volume", Cell::F64, false, 0, 0, offsetof(Order, volume), Sql::DOUBLE},
    {"price", Cell::F64, false, 0, 0, offsetof(Order, price), Sql::DOUBLE}};

}  // namespace viewlet
