#pragma once

#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan {

/// A planning problem with known figures. Sizes, capacities and rates are scaled alike, so that fractions of a unit are
/// whole bytes; times are as in the file.
struct instance {
  std::string name;
  plan::machine machine;
  plan::trace trace;
  double lower_bound = 0.0;       ///< certified, for items moved whole
  double best_period = 0.0;       ///< of a feasible schedule
  std::optional<double> optimum;  ///< from an exhaustive search
  nlohmann::json baselines;       ///< periods of simple rules, and "chunked_by_4"
};

inline constexpr double instance_unit = 1e9;  ///< bytes per unit of size

inline uses uses_of(const std::string& letters) {
  uses all = uses::none;
  for (const char c : letters) {
    all = all | (c == 'r' ? uses::read : c == 'w' ? uses::write : c == 'c' ? uses::create : uses::free);
  }
  return all;
}

inline instance instance_of(const nlohmann::json& j) {
  const auto bytes = [](const nlohmann::json& v) {
    return static_cast<byte_count>(v.get<double>() * instance_unit + 0.5);
  };
  const auto rate = [](const nlohmann::json& v) { return v.get<double>() * instance_unit; };
  instance i;
  i.name = j.at("name");
  const nlohmann::json& m = j.at("machine");
  i.machine.device_capacity = bytes(m.at("device_capacity"));
  i.machine.host_capacity = bytes(m.at("host_capacity"));
  i.machine.h2d_rate = rate(m.at("h2d"));
  i.machine.d2h_rate = rate(m.at("d2h"));
  i.machine.half_duplex_storage = m.at("half_duplex_storage");
  for (const nlohmann::json& path : m.at("storage")) {
    i.machine.storage.push_back({rate(path.at("read")), rate(path.at("write"))});
  }
  for (const nlohmann::json& tensor : j.at("tensors")) {
    i.trace.item_bytes.push_back(bytes(tensor.at(1)));
  }
  for (const nlohmann::json& step : j.at("steps")) {
    trace_step s;
    s.phase = step.at(0);
    s.where = step.at(1) == "device" ? place::device : place::host;
    s.seconds = step.at(2);
    for (const nlohmann::json& a : step.at(3)) {
      s.accesses.push_back({a.at(0).get<item_index>(), uses_of(a.at(1))});
    }
    i.trace.steps.push_back(std::move(s));
  }
  i.lower_bound = j.at("lower_bound");
  i.best_period = j.at("best_period");
  if (j.contains("optimum")) {
    i.optimum = j.at("optimum").get<double>();
  }
  i.baselines = j.at("baselines");
  return i;
}

/// All of one file: "tiny", "gpt", "random" or "adversarial". \throws std::runtime_error naming the file.
inline std::vector<instance> read_instances(const std::string& folder, const std::string& kind) {
  const std::string path = folder + "/" + kind + ".jsonl";
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("cannot open " + path);
  }
  std::vector<instance> all;
  for (std::string line; std::getline(file, line);) {
    all.push_back(instance_of(nlohmann::json::parse(line)));
  }
  return all;
}

}  // namespace forebay::plan
