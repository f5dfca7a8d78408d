#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/hash.hpp>
#include <forebay/plan/plan_json.hpp>

#include "plan/detail/json_lines.hpp"

namespace forebay::plan {
namespace {

using detail::json;
using detail::json_checker;
using detail::json_fields;

constexpr std::array<std::pair<char, copies>, 3> tier_letters{
    {{'d', copies::device}, {'h', copies::host}, {'s', copies::storage}}};

constexpr std::array<std::pair<std::string_view, link>, 4> link_names{{{"h2d", link::h2d},
                                                                       {"d2h", link::d2h},
                                                                       {"storage_read", link::storage_read},
                                                                       {"storage_write", link::storage_write}}};

bool is_of_storage(link over) { return over == link::storage_read || over == link::storage_write; }

std::string letters_of(copies tiers) {
  std::string letters;
  for (const auto& [letter, tier] : tier_letters) {
    if (has(tiers, tier)) {
      letters += letter;
    }
  }
  return letters;
}

json json_of(const operation& op) {
  if (op.what == operation::kind::step) {
    return json::array({"step", op.index});
  }
  if (op.what == operation::kind::drop) {
    return json::array({"drop", op.index, letters_of(op.gone)});
  }
  std::string_view name = "unknown";
  for (const auto& [known, over] : link_names) {
    name = op.over == over ? known : name;
  }
  json j = json::array({std::string(name), op.index});
  if (is_of_storage(op.over)) {
    j.push_back(op.path);
  }
  return j;
}

json json_of(const saved_schedule& s) {
  json j{{"forebay_schedule", schedule_json_version},
         {"trace_hash", fmt::format("{:016x}", s.trace_hash)},
         {"machine_hash", fmt::format("{:016x}", s.machine_hash)},
         {"steps", s.steps},
         {"at_start", json::array()},
         {"stored_on", s.steady.stored_on},
         {"operations", json::array()}};
  for (const copies tiers : s.steady.at_start) {
    j["at_start"].push_back(letters_of(tiers));
  }
  for (const operation& op : s.steady.operations) {
    j["operations"].push_back(json_of(op));
  }
  return j;
}

std::uint64_t read_hash(const json_checker& check, const json& v, const std::string& name) {
  constexpr std::size_t digits = 16;
  const std::string text = check.text(v, name);
  std::uint64_t hash = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (text.size() != digits || failure != std::errc{} || end != text.data() + digits) {
    check.refuse(name, "a text of 16 hexadecimal digits", v);
  }
  return hash;
}

copies read_tiers(const json_checker& check, const json& v, const std::string& name) {
  copies tiers = copies::none;
  for (const char letter : check.text(v, name)) {
    copies more = copies::none;
    for (const auto& [known, tier] : tier_letters) {
      more = letter == known ? tier : more;
    }
    if (more == copies::none || has(tiers, more)) {
      check.refuse(name, "letters of d, h and s, each once", v);
    }
    tiers = tiers | more;
  }
  return tiers;
}

/// Reads one operation after the other of a schedule over so many items and steps.
class operations_reader {
 public:
  operations_reader(const json_checker& check, std::size_t items, std::size_t steps)
      : check_(check), items_(items), steps_(steps) {}

  [[nodiscard]] operation read(const json& v, const std::string& name) const {
    if (!v.is_array() || v.empty()) {
      check_.refuse(name, "a list that begins with the operation's kind", v);
    }
    const std::string kind = check_.text(v[0], name + "[0]");
    if (kind == "step") {
      expect_size(v, name, 2);
      return run_step(check_.index(v[1], name + "[1]", steps_, "steps"));
    }
    if (kind == "drop") {
      expect_size(v, name, 3);
      return drop_copy(item(v, name), read_one_tier(v[2], name + "[2]"));
    }
    for (const auto& [known, over] : link_names) {
      if (kind == known) {
        expect_size(v, name, is_of_storage(over) ? 3 : 2);
        return move_item(item(v, name), over,
                         is_of_storage(over) ? check_.whole<std::uint32_t>(v[2], name + "[2]") : 0);
      }
    }
    check_.refuse(name + "[0]", "step, drop, h2d, d2h, storage_read or storage_write", v[0]);
  }

 private:
  void expect_size(const json& v, const std::string& name, std::size_t size) const {
    if (v.size() != size) {
      check_.refuse(name, fmt::format("a list of {}", size), v);
    }
  }
  [[nodiscard]] item_index item(const json& v, const std::string& name) const {
    return check_.index(v[1], name + "[1]", items_, "items");
  }
  [[nodiscard]] copies read_one_tier(const json& v, const std::string& name) const {
    const copies tier = read_tiers(check_, v, name);
    if (tier != copies::device && tier != copies::host && tier != copies::storage) {
      check_.refuse(name, "one of d, h and s", v);
    }
    return tier;
  }

  const json_checker& check_;
  std::size_t items_;
  std::size_t steps_;
};

saved_schedule read_schedule(const json_checker& check, const json& value) {
  const json_fields f(
      check, value, "",
      {"forebay_schedule", "trace_hash", "machine_hash", "steps", "at_start", "stored_on", "operations"});
  check.version(f.find("forebay_schedule"), "forebay_schedule", schedule_json_version);
  saved_schedule s;
  s.trace_hash = read_hash(check, f.at("trace_hash"), "trace_hash");
  s.machine_hash = read_hash(check, f.at("machine_hash"), "machine_hash");
  s.steps = check.whole<std::uint32_t>(f.at("steps"), "steps");
  check.list(f.at("at_start"), "at_start", [&](const json& tiers, const std::string& name) {
    s.steady.at_start.push_back(read_tiers(check, tiers, name));
  });
  check.list(f.at("stored_on"), "stored_on", [&](const json& path, const std::string& name) {
    s.steady.stored_on.push_back(check.whole<std::uint32_t>(path, name));
  });
  const std::size_t items = s.steady.at_start.size();
  if (s.steady.stored_on.size() != items) {
    check.refuse("stored_on", fmt::format("a list of {}, as at_start is", items), f.at("stored_on"));
  }
  const operations_reader operations(check, items, s.steps);
  check.list(f.at("operations"), "operations", [&](const json& op, const std::string& name) {
    s.steady.operations.push_back(operations.read(op, name));
  });
  return s;
}

}  // namespace

saved_schedule saved(schedule s, const trace& t, const machine& m) {
  if (s.at_start.size() != t.item_bytes.size() || s.stored_on.size() != t.item_bytes.size()) {
    throw usage_error(fmt::format("a schedule of {} and {} items for a trace of {}", s.at_start.size(),
                                  s.stored_on.size(), t.item_bytes.size()));
  }
  return {std::move(s), static_cast<std::uint32_t>(t.steps.size()), hash_of(t), hash_of(m)};
}

bool is_for(const saved_schedule& s, const trace& t, const machine& m) {
  return s.steps == t.steps.size() && s.steady.at_start.size() == t.item_bytes.size() && s.trace_hash == hash_of(t) &&
         s.machine_hash == hash_of(m);
}

void write_schedule(std::ostream& out, const saved_schedule& s) {
  const json j = json_of(s);
  const saved_schedule again = read_schedule(json_checker("the schedule's"), j);  // throws when it cannot be read back
  if (again.steady.at_start != s.steady.at_start) {
    throw usage_error("the schedule's at_start has copies in no known tier");
  }
  detail::write_json_line(out, j, "schedule");
}

std::vector<saved_schedule> read_schedules(std::istream& in, std::string_view file) {
  std::vector<saved_schedule> all;
  detail::for_each_json_line(in, file, "schedule", [&](const json& value, const json_checker& check) {
    all.push_back(read_schedule(check, value));
  });
  return all;
}

}  // namespace forebay::plan
