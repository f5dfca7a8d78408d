#include "plan/detail/json_fields.hpp"

#include <algorithm>
#include <cmath>

#include <forebay/base/error.hpp>
#include <forebay/plan/machine.hpp>

namespace forebay::plan::detail {
namespace {

constexpr std::size_t longest_shown = 80;

/// Never a whole list or object, which could be as long, and nested as deep, as the file.
std::string shown(const json& v) {
  if (v.is_array()) {
    return fmt::format("a list of {}", v.size());
  }
  if (v.is_object()) {
    return fmt::format("an object of {}", v.size());
  }
  std::string all = v.dump(-1, ' ', false, json::error_handler_t::replace);
  if (all.size() > longest_shown) {
    all.resize(longest_shown);
    all += "...";
  }
  return all;
}

}  // namespace

void json_checker::refuse(std::string_view name, std::string_view wanted, const json& found) const {
  throw usage_error(fmt::format("{} {} must be {}, and is {}", whose_, name, wanted, shown(found)));
}

void json_checker::refuse(std::string_view name, std::string_view why) const {
  throw usage_error(fmt::format("{} {} {}", whose_, name, why));
}

std::uint64_t json_checker::whole_up_to(const json& v, std::string_view name, std::uint64_t most) const {
  if (!v.is_number_unsigned() || v.get<std::uint64_t>() > most) {
    refuse(name, fmt::format("a whole number up to {}", most), v);
  }
  return v.get<std::uint64_t>();
}

std::uint32_t json_checker::index(const json& v, std::string_view name, std::size_t count,
                                  std::string_view plural) const {
  if (!v.is_number_unsigned() || v.get<std::uint64_t>() >= count) {
    refuse(name, fmt::format("a whole number below the {} {}", count, plural), v);
  }
  return whole<std::uint32_t>(v, name);
}

double json_checker::positive(const json& v, std::string_view name) const {
  if (!v.is_number() || !(v.get<double>() > 0.0) || !std::isfinite(v.get<double>())) {
    refuse(name, "a number above zero", v);
  }
  return v.get<double>();
}

double json_checker::not_negative(const json& v, std::string_view name) const {
  if (!v.is_number() || !(v.get<double>() >= 0.0) || !std::isfinite(v.get<double>())) {
    refuse(name, "a number not below zero", v);
  }
  return v.get<double>();
}

std::string json_checker::text(const json& v, std::string_view name) const {
  if (!v.is_string()) {
    refuse(name, "a text", v);
  }
  return v.get<std::string>();
}

bool json_checker::flag(const json& v, std::string_view name) const {
  if (!v.is_boolean()) {
    refuse(name, "true or false", v);
  }
  return v.get<bool>();
}

void json_checker::version(const json* v, std::string_view name, int supported) const {
  if (v == nullptr) {
    refuse(name, "is missing");
  }
  if (!v->is_number_integer() || *v != supported) {
    throw unsupported_error(
        fmt::format("{} {} is {}; this library reads version {}", whose_, name, shown(*v), supported));
  }
}

json_fields::json_fields(const json_checker& check, const json& value, std::string path,
                         std::initializer_list<std::string_view> known)
    : check_(check), value_(value), path_(std::move(path)) {
  if (!value.is_object()) {
    check_.refuse(path_.empty() ? "description" : path_, "an object", value);
  }
  for (const auto& [key, ignored] : value.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      check_.refuse(name_of(key),
                    fmt::format("is not known; known here are {}", fmt::join(known.begin(), known.end(), ", ")));
    }
  }
}

std::string json_fields::name_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const json* json_fields::find(std::string_view key) const {
  const auto found = value_.find(std::string(key));
  return found == value_.end() ? nullptr : &*found;
}

const json& json_fields::at(std::string_view key) const {
  const json* found = find(key);
  if (found == nullptr) {
    check_.refuse(name_of(key), "is missing");
  }
  return *found;
}

void json_fields::rate(std::string_view key, double& to) const {
  if (const json* v = find(key); v != nullptr && v->is_null()) {
    to = unlimited_rate;
  } else {
    positive(key, to);
  }
}

void json_fields::positive(std::string_view key, double& to) const {
  if (const json* v = find(key); v != nullptr) {
    to = check_.positive(*v, name_of(key));
  }
}

void json_fields::text(std::string_view key, std::string& to) const {
  if (const json* v = find(key); v != nullptr) {
    to = check_.text(*v, name_of(key));
  }
}

void json_fields::flag(std::string_view key, bool& to) const {
  if (const json* v = find(key); v != nullptr) {
    to = check_.flag(*v, name_of(key));
  }
}

}  // namespace forebay::plan::detail
