#include <array>
#include <cstdint>
#include <utility>

#include <forebay/base/error.hpp>
#include <forebay/plan/hash.hpp>
#include <forebay/plan/plan_json.hpp>

#include "plan/detail/json_lines.hpp"

namespace forebay::plan {
namespace {

using detail::json;
using detail::json_checker;
using detail::json_fields;

constexpr std::array<std::pair<char, uses>, 4> use_letters{
    {{'r', uses::read}, {'w', uses::write}, {'c', uses::create}, {'f', uses::free}}};
constexpr std::string_view known_uses = "letters of r, w, c and f, each once, not r with c";

std::string letters_of(uses how) {
  std::string letters;
  for (const auto& [letter, use] : use_letters) {
    if (has(how, use)) {
      letters += letter;
    }
  }
  return letters;
}

uses read_uses(const json_checker& check, const json& v, const std::string& name) {
  uses how = uses::none;
  for (const char letter : check.text(v, name)) {
    uses more = uses::none;
    for (const auto& [known, use] : use_letters) {
      more = letter == known ? use : more;
    }
    if (more == uses::none || has(how, more)) {
      check.refuse(name, known_uses, v);
    }
    how = how | more;
  }
  if (how == uses::none || (has(how, uses::read) && has(how, uses::create))) {
    check.refuse(name, known_uses, v);
  }
  return how;
}

/// Reads the steps of one trace. Finds an item that is twice in a step in O(1) an access.
class steps_reader {
 public:
  steps_reader(const json_checker& check, std::size_t items) : check_(check), last_step_(items, 0) {}

  trace_step read(const json& value, const std::string& name) {
    const json_fields f(check_, value, name, {"where", "seconds", "workspace_bytes", "phase", "accesses"});
    trace_step step;
    step.where = read_place(f.at("where"), f.name_of("where"));
    step.seconds = check_.not_negative(f.at("seconds"), f.name_of("seconds"));
    f.whole("workspace_bytes", step.workspace);
    f.text("phase", step.phase);
    ++steps_;
    check_.list(f.at("accesses"), f.name_of("accesses"), [&](const json& access, const std::string& access_name) {
      step.accesses.push_back(read_access(access, access_name));
    });
    return step;
  }

 private:
  [[nodiscard]] place read_place(const json& v, const std::string& name) const {
    const std::string text = check_.text(v, name);
    if (text != "device" && text != "host") {
      check_.refuse(name, "\"device\" or \"host\"", v);
    }
    return text == "device" ? place::device : place::host;
  }

  item_access read_access(const json& v, const std::string& name) {
    if (!v.is_array() || v.size() != 2) {
      check_.refuse(name, "a list of 2, an item and its uses", v);
    }
    const item_index item = check_.index(v[0], name + "[0]", last_step_.size(), "items");
    if (last_step_[item] == steps_) {
      check_.refuse(name + "[0]", "an item that the step does not access before", v[0]);
    }
    last_step_[item] = steps_;
    return {item, read_uses(check_, v[1], name + "[1]")};
  }

  const json_checker& check_;
  std::size_t steps_ = 0;               // so far, this one included
  std::vector<std::size_t> last_step_;  // by item: the value of steps_ when it was last accessed
};

trace read_trace(const json_checker& check, const json& value) {
  const json_fields f(check, value, "", {"forebay_trace", "item_bytes", "steps"});
  check.version(f.find("forebay_trace"), "forebay_trace", trace_json_version);
  trace t;
  check.list(f.at("item_bytes"), "item_bytes", [&](const json& bytes, const std::string& name) {
    t.item_bytes.push_back(check.whole<byte_count>(bytes, name));
  });
  steps_reader steps(check, t.item_bytes.size());
  check.list(f.at("steps"), "steps",
             [&](const json& step, const std::string& name) { t.steps.push_back(steps.read(step, name)); });
  return t;
}

json json_of(const trace_step& step) {
  json j{{"where", step.where == place::device ? "device" : "host"}, {"seconds", step.seconds}};
  if (step.workspace > 0) {
    j["workspace_bytes"] = step.workspace;
  }
  if (!step.phase.empty()) {
    j["phase"] = step.phase;
  }
  j["accesses"] = json::array();
  for (const item_access& a : step.accesses) {
    j["accesses"].push_back(json::array({a.item, letters_of(a.how)}));
  }
  return j;
}

}  // namespace

void write_trace(std::ostream& out, const trace& t) {
  json j{{"forebay_trace", trace_json_version}, {"item_bytes", t.item_bytes}, {"steps", json::array()}};
  for (const trace_step& step : t.steps) {
    j["steps"].push_back(json_of(step));
  }
  const trace again = read_trace(json_checker("the trace's"), j);  // throws when it cannot be read back
  if (hash_of(again) != hash_of(t)) {
    throw usage_error("the trace's accesses have uses that are not known");
  }
  detail::write_json_line(out, j, "trace");
}

std::vector<trace> read_traces(std::istream& in, std::string_view file) {
  std::vector<trace> all;
  detail::for_each_json_line(in, file, "trace", [&](const json& value, const json_checker& check) {
    all.push_back(read_trace(check, value));
  });
  return all;
}

}  // namespace forebay::plan
