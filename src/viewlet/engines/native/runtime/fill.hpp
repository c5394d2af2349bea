// Result rows are collected column by column in Arrow's own layout, so that nothing is copied when they are handed over.
#pragma once
#include "rows.hpp"

namespace viewlet {

Rows::Rows(const ResultColumn* columns, u32 width, const Texts& texts)
    : columns(columns),
      width(width),
      texts(texts),
      filled(width ? static_cast<Filled*>(calloc(width, sizeof(Filled))) : nullptr) {}

Rows::~Rows() {
    for (u32 c = 0; c < width; ++c) {
        filled[c].values.free_all(), filled[c].ends.free_all();
        filled[c].bits.bytes.free_all(), filled[c].valid.bytes.free_all();
    }
    free(filled);
}

inline constexpr u64 KEPT_COLUMN = 1 << 20;  // bytes, between two answers

void Rows::clear() {
    for (u32 c = 0; c < width; ++c) {
        filled[c].values.clear(KEPT_COLUMN), filled[c].ends.clear(KEPT_COLUMN);
        filled[c].bits.bytes.clear(KEPT_COLUMN), filled[c].valid.bytes.clear(KEPT_COLUMN);
        filled[c].nulls = 0;
    }
    length = 0, times = 1;
    unfit = uncountable = false;
}

inline bool push_decimal(const ResultColumn& column, Pile& values, i128 value) {
    values.push(value);
    if (column.precision > 38) values.push(value < 0 ? i128(-1) : i128(0));
    return has_digits(value, column.precision);
}

void Rows::put(u32 c, i64 value) { put(c, i128(value)); }

void Rows::put(u32 c, i128 value) {
    Pile& values = filled[c].values;
    bool fits = false;
    switch (columns[c].type) {
        case Sql::BOOLEAN: return put(c, value != 0);
        case Sql::DOUBLE: return put(c, double(value));
        case Sql::TINYINT:
        case Sql::UTINYINT: fits = span_of(columns[c].type).has(value), values.push(char(value)); break;
        case Sql::SMALLINT:
        case Sql::USMALLINT: fits = span_of(columns[c].type).has(value), values.push(short(value)); break;
        case Sql::INTEGER:
        case Sql::UINTEGER: fits = span_of(columns[c].type).has(value), values.push(i32(value)); break;
        case Sql::DATE: fits = is_date(value), values.push(i32(value)); break;
        case Sql::BIGINT: fits = is_i64(value), values.push(i64(value)); break;
        case Sql::TIMESTAMP: fits = is_timestamp(value), values.push(i64(value)); break;
        case Sql::DECIMAL: fits = push_decimal(columns[c], values, value); break;
        default: break;
    }
    if (!fits) refuse(c, value);
}

void Rows::put(u32 c, double value) { filled[c].values.push(bits(value)); }  // one zero and one NaN

void Rows::put(u32 c, bool value) { filled[c].bits.set(length, value, 0); }

void Rows::put(u32 c, Text value) {
    Bytes text = texts.bytes(value);
    push_text(c, text.start, text.length);
}

void Rows::null(u32 c) {
    switch (columns[c].type) {
        case Sql::VARCHAR: push_text(c, "", 0); break;
        case Sql::BOOLEAN: put(c, false); break;
        case Sql::DOUBLE: put(c, 0.0); break;
        default: put(c, i128(0));
    }
    filled[c].valid.set(length, false, char(0xff));
    ++filled[c].nulls;
}

void Rows::weight(i64 n) {
    times = n;
    uncountable |= n < 1;
}

void Rows::end() {
    ++length;
    for (; times > 1 && !is_full(); --times, ++length)
        for (u32 c = 0; c < width; ++c) repeat(c);
    times = 1;
}

void Rows::push_text(u32 c, const char* data, u64 size) {
    Filled& column = filled[c];
    if (size) memcpy(column.values.more(size), data, size);
    if (column.values.size > 0x7fffffff) refuse(c, 0);
    if (column.ends.size == 0) column.ends.push(i32(0));
    column.ends.push(i32(column.values.size));
}

void Rows::refuse(u32 c, i128 value) {
    if (unfit) return;
    unfit = true, unfit_column = c, unfit_value = value;
}

void Rows::repeat(u32 c) {
    Filled& column = filled[c];
    u64 last = length - 1;
    if (column.nulls && !column.valid.get(last, true)) return null(c);
    if (columns[c].type == Sql::BOOLEAN) return put(c, column.bits.get(last, false));
    if (columns[c].type == Sql::VARCHAR) return repeat_text(c);
    u64 each = column.values.size / length;
    void* target = column.values.more(each);
    memcpy(target, column.values.data + column.values.size - 2 * each, each);
}

void Rows::repeat_text(u32 c) {
    Filled& column = filled[c];
    i32 from, to;
    memcpy(&from, column.ends.data + 4 * (length - 1), 4);
    memcpy(&to, column.ends.data + 4 * length, 4);
    column.values.more(to - from);  // first: it may move the characters that are to be repeated
    column.values.size -= to - from;
    push_text(c, column.values.data + from, to - from);
}

}  // namespace viewlet
